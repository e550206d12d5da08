package web

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/limiter"
)

// TestWaitsAreSharedBetweenTenants begins waits of the service accounts of one tenant until the process has no
// room, and then one of another tenant.
func TestWaitsAreSharedBetweenTenants(t *testing.T) {
	w := newWaits()
	tenant, other := rolecall.TenantID{1}, rolecall.TenantID{2}
	var all []context.Context
	begin := func(tenant rolecall.TenantID, account int) (context.Context, error) {
		waiting, _, err := w.begin(t.Context(), tenant, fmt.Sprint(tenant, account))
		return waiting, err
	}
	for i := range waitsAtOnce {
		waiting, err := begin(tenant, i/waitsOfOne)
		if err != nil {
			t.Fatalf("wait %d: %v", i, err)
		}
		all = append(all, waiting)
	}
	if _, err := begin(tenant, 0); !errors.Is(err, rolecall.ErrTooManyWaits) {
		t.Errorf("one more wait of an account: %v", err)
	}
	if _, err := begin(tenant, waitsAtOnce); !errors.Is(err, errManyWaits) {
		t.Errorf("one more wait of the tenant: %v", err)
	}
	if _, err := begin(other, 1); err != nil {
		t.Errorf("a wait of another tenant: %v", err)
	}
	for i, waiting := range all {
		if lost := context.Cause(waiting) == limiter.ErrLostShare; lost != (i == len(all)-1) {
			t.Errorf("the wait %d has made room: %v", i, lost)
		}
	}
}

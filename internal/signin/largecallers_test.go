package signin

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// TestLargeCallersAreLoadedOneAtATime loads many large callers of one tenant at once. Few of them are read at the
// same time, some are refused, and the callers of other tenants are loaded.
func TestLargeCallersAreLoadedOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{principals: newPrincipalCache(), largeLoads: newLargeLoads()}
		flooding, other := rolecall.NewID[rolecall.Tenant](1), rolecall.NewID[rolecall.Tenant](2)
		cores := runtime.GOMAXPROCS(0)
		var counting sync.Mutex
		running, most := 0, 0
		results := make(chan error, 1000)
		load := func(tenant rolecall.TenantID, n byte, permissions int) {
			stale := func(*principalEntry) bool { return false }
			_, err := s.load(t.Context(), principalKey{tenant, [32]byte{n}}, stale, func(_ context.Context, limit int) (*principalEntry, error) {
				if permissions > limit {
					return nil, store.ErrManyPermissions
				}
				if permissions > largeCaller {
					counting.Lock()
					running++
					most = max(most, running)
					counting.Unlock()
					time.Sleep(100 * time.Millisecond) // of the clock of the bubble
					counting.Lock()
					running--
					counting.Unlock()
				}
				return &principalEntry{principal: authz.NewPrincipal(rolecall.Tenant{}, rolecall.User{}, rolecall.Session{}, nil, 0)}, nil
			})
			results <- err
		}
		expect := func(want error) {
			t.Helper()
			if err := <-results; !errors.Is(err, want) {
				t.Errorf("a load ended with %v, want %v", err, want)
			}
		}
		const callers = 200
		for i := range byte(callers) {
			go load(flooding, i, largeCaller+1)
			synctest.Wait()
		}
		load(flooding, callers, largeCaller) // does not wait
		places := (1 + largeLoadsQueue) * cores
		for range callers - places {
			expect(errManyLoads)
		}
		expect(nil)
		go load(other, 0, largeCaller+1)
		synctest.Wait()
		expect(errManyLoads) // the newest load of the flooding tenant
		for range places {
			expect(nil)
		}
		if most != cores {
			t.Errorf("%d loads ran at the same time", most)
		}
	})
}

package rolecall_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

func TestDraftOfAnOperatorKey(t *testing.T) {
	long := 90 * 24 * time.Hour
	for _, test := range []struct {
		draft rolecall.OperatorKeyDraft
		wrong []string
	}{
		{rolecall.OperatorKeyDraft{Name: "Sign-ups", Lifetime: long}, nil},
		{rolecall.OperatorKeyDraft{Name: "Sign-ups", Lifetime: rolecall.OperatorKeyLifetimeMax, Tenants: []string{"acme", "a-1"}}, nil},
		{rolecall.OperatorKeyDraft{Name: strings.Repeat("é", 100), Lifetime: 1}, nil},
		{rolecall.OperatorKeyDraft{Name: strings.Repeat("é", 101), Lifetime: rolecall.OperatorKeyLifetimeMax + 1}, []string{"/name", "/expires"}},
		{rolecall.OperatorKeyDraft{Name: "ab", Tenants: []string{"acme", "Acme", ""}}, []string{"/name", "/tenants/1", "/tenants/2", "/expires"}},
		{rolecall.OperatorKeyDraft{Name: "a\x00b", Lifetime: -1}, []string{"/name", "/expires"}},
		{rolecall.OperatorKeyDraft{Name: "Sign-ups", Lifetime: long, Tenants: slices.Repeat([]string{"acme"}, 101)}, []string{"/tenants"}},
	} {
		var wrong []string
		for _, fault := range test.draft.Check() {
			wrong = append(wrong, fault.Pointer)
		}
		if !slices.Equal(wrong, test.wrong) {
			t.Errorf("%+v: wrong is %q, want %q", test.draft, wrong, test.wrong)
		}
	}
}

func TestAnOperatorKeyIsForItsTenants(t *testing.T) {
	all := (&rolecall.OperatorKeyDraft{Name: "All", Tenants: []string{}, Lifetime: time.Hour}).OperatorKey(aMoment)
	some := (&rolecall.OperatorKeyDraft{Name: "Some", Tenants: []string{"b", "a", "b"}, Lifetime: time.Hour}).OperatorKey(aMoment)
	if all.Tenants != nil || !slices.Equal(some.Tenants, []string{"a", "b"}) {
		t.Errorf("the tenants are %q and %q", all.Tenants, some.Tenants)
	}
	if !all.IsFor("x") || !some.IsFor("a") || some.IsFor("x") || some.IsFor("") {
		t.Error("a key is for other tenants than it names")
	}
	end := aMoment.Add(time.Hour)
	if some.ExpiresAt != end || !some.Live(end-1) || some.Live(end) {
		t.Errorf("a key for an hour ends at %v", some.ExpiresAt)
	}
}

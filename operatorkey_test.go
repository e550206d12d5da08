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
		{rolecall.OperatorKeyDraft{Name: "Follower", Lifetime: long, Scopes: rolecall.OperatorScopes()}, nil},
		{rolecall.OperatorKeyDraft{Name: "Follower", Lifetime: long, Scopes: []rolecall.OperatorScope{"changes", "everything", ""}}, []string{"/scopes/1", "/scopes/2"}},
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

func TestAnOperatorKeyHasItsScopes(t *testing.T) {
	const tenants, changes, lookup, all = rolecall.ScopeTenants, rolecall.ScopeChanges, rolecall.ScopeLookup, rolecall.ScopeAll
	for _, test := range []struct{ draft, stored, has []rolecall.OperatorScope }{
		{nil, nil, []rolecall.OperatorScope{tenants, changes, lookup, all}},
		{[]rolecall.OperatorScope{changes, all}, nil, []rolecall.OperatorScope{tenants, changes, lookup, all}},
		{[]rolecall.OperatorScope{changes}, []rolecall.OperatorScope{changes}, []rolecall.OperatorScope{changes}},
		{[]rolecall.OperatorScope{tenants, lookup, tenants}, []rolecall.OperatorScope{lookup, tenants}, []rolecall.OperatorScope{tenants, lookup}},
	} {
		key := (&rolecall.OperatorKeyDraft{Name: "Scoped", Scopes: test.draft, Lifetime: time.Hour}).OperatorKey(aMoment)
		if !slices.Equal(key.Scopes, test.stored) {
			t.Errorf("%q: the scopes are %q", test.draft, key.Scopes)
		}
		for _, scope := range rolecall.OperatorScopes() {
			if want := slices.Contains(test.has, scope); key.Has(scope) != want {
				t.Errorf("%q: has %s is %v", test.draft, scope, !want)
			}
		}
	}
}

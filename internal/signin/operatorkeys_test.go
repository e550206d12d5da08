package signin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

func TestSetPasswordActivatesTheUserAndEndsEverySession(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		pending := f.NewUser("ada")
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.OK(f.SignIn.SetPassword(f.Context(), "acme", nodetest.Address("ada"), nodetest.Password))
		token := f.LogIn("ada").Token
		f.OK(f.SignIn.SetPassword(f.Context(), "acme", nodetest.Address("ada"), "another "+nodetest.Password))
		f.Is(nodetest.ErrorOf(f.Authenticate(f.NewNode(), token)), rolecall.ErrUnauthenticated)
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.OK(f.Guess("192.0.2.7", "ada", "another "+nodetest.Password))
		want := []rolecall.EventType{rolecall.EventSignedIn, rolecall.EventSessionEnded, rolecall.EventPasswordChanged, rolecall.EventSignedIn, rolecall.EventPasswordChanged, rolecall.EventUserCreated}
		if got := f.EventTypes(pending.ID); !slices.Equal(got, want) {
			t.Errorf("the events are %v", got)
		}
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, pending.ID, "")))
		f.OK(f.SignIn.SetPassword(f.Context(), "acme", nodetest.Address("ada"), nodetest.Password))
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrUserSuspended)
	})
}

func TestLongPasswordsAreComparedCompletely(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewUser("ada")
		for _, c := range []struct{ stored, given string }{
			{strings.Repeat("p", 72) + " and more than bcrypt reads: a", strings.Repeat("p", 72) + " and more than bcrypt reads: b"},
			{strings.Repeat("long word ", 102) + "last", strings.Repeat("long word ", 102) + "lasT"},
			{"a password with a blank at its end ", "a password with a blank at its end"},
		} {
			f.OK(f.SignIn.SetPassword(f.Context(), "acme", nodetest.Address("ada"), c.stored))
			f.Is(f.Guess("192.0.2.7", "ada", c.given), rolecall.ErrWrongCredentials)
			f.OK(f.Guess("192.0.2.7", "ada", c.stored))
		}
		f.OK(f.SignIn.SetPassword(f.Context(), "acme", nodetest.Address("ada"), "composed caf\u00e9 password"))
		f.OK(f.Guess("192.0.2.7", "ada", "composed cafe\u0301 password"))
	})
}

func TestOperatorsCanChangeAnAddress(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		f.NewUser("bob")
		f.Is(f.SignIn.SetEmail(f.Context(), "acme", nodetest.Address("ada"), nodetest.Address("bob")), rolecall.ErrEmailTaken)
		f.Is(f.SignIn.SetEmail(f.Context(), "acme", nodetest.Address("ada"), "none"), rolecall.ErrValidation)
		f.OK(f.SignIn.SetEmail(f.Context(), "acme", nodetest.Address("ada"), nodetest.Address("lovelace")))
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.OK(f.Guess("192.0.2.7", "lovelace", nodetest.Password))
	})
}

func TestAnOperatorActsInATenantWithoutBeingAUser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		key, token := f.NewOperatorKey("Sign-ups")
		c, err := f.OperatorCaller(f.Node, token)
		f.OK(err)
		role, err := f.Directory.CreateRole(f.Context(), c, nodetest.NewKey(), rolecall.RoleDraft{Name: "Made", Permissions: []string{"*:*", "shop/*:*"}})
		f.OK(err)
		user := f.NewUser("ada")
		a, _, err := f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(user.ID), role.Value.ID, rolecall.AssignmentDraft{})
		f.OK(err)
		if !a.GrantedBy.IsZero() {
			t.Errorf("granted by %s", a.GrantedBy)
		}
		f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			events, err := tx.Events(rolecall.EventQuery{Actor: rolecall.AnyID(key.ID), Limit: 10})
			want := rolecall.Actor{Type: rolecall.ActorOperator, ID: rolecall.UserID(key.ID), Via: "http"}
			for _, e := range events.Items {
				if e.Actor != want || e.RequestID != "request" || e.Source != "192.0.2.1" {
					t.Errorf("%s is by %+v", e.Type, e.Actor)
				}
			}
			if len(events.Items) != 2 {
				t.Errorf("%d events of the operator", len(events.Items))
			}
			return err
		}))
		f.Is(nodetest.ErrorOf(f.Directory.User(f.Context(), c, rolecall.UserID(key.ID))), rolecall.ErrNotFound)
	})
}

// flipped returns the key with a different last character.
func flipped(token secret.Token) secret.Token {
	last := len(token) - 1
	if token[last] == '0' {
		return token[:last] + "1"
	}
	return token[:last] + "0"
}

func TestAnOperatorKeyIsValidForItsTenantsUntilItEnds(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		other := f.NewTenant("other")
		acme := f.Tenant
		_, all := f.NewOperatorKey("All")
		_, some := f.NewOperatorKey("Some", "acme")
		for _, tenant := range []rolecall.Tenant{acme, other, {}} {
			f.Tenant = tenant
			for token, known := range map[secret.Token]bool{
				all: !tenant.ID.IsZero(), some: tenant.ID == acme.ID, secret.NewOperatorKey(): false, flipped(all): false, "rco_": false, "": false,
			} {
				var want error
				if !known {
					want = rolecall.ErrUnauthenticated
				}
				f.Is(nodetest.ErrorOf(f.OperatorCaller(f.Node, token)), want)
			}
		}
		f.Tenant = acme
		f.Tenant.Status = rolecall.TenantSuspended
		f.OK(nodetest.ErrorOf(f.OperatorCaller(f.Node, some)))
		f.Clock.Advance(time.Hour - time.Microsecond)
		f.OK(nodetest.ErrorOf(f.OperatorCaller(f.Node, some)))
		f.Clock.Advance(time.Microsecond)
		f.Is(nodetest.ErrorOf(f.OperatorCaller(f.Node, some)), rolecall.ErrUnauthenticated)
		f.Is(nodetest.ErrorOf(f.SignIn.AuthenticateOperator(f.Context(), string(all), "192.0.2.1")), rolecall.ErrUnauthenticated)
	})
}

func TestAnOperatorKeyIsReadOnceAndItsUseWrittenOnceAMinute(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, token := f.NewOperatorKey("Sign-ups")
		node := f.NewWatchingNode()
		lastUse := func() rolecall.Time {
			keys, err := node.Directory.OperatorKeys(f.Context(), rolecall.OperatorKeyID{}, 10)
			f.OK(err)
			return keys[0].LastUsedAt
		}
		f.OK(nodetest.ErrorOf(f.OperatorCaller(node, token)))
		if lastUse() != nodetest.Start {
			t.Errorf("last used at %v", lastUse())
		}
		for range 3 {
			f.OK(nodetest.ErrorOf(f.OperatorCaller(f.Node, token)))
			asked := f.DB.During(func() { f.OK(nodetest.ErrorOf(f.OperatorCaller(f.Node, token))) })
			if len(asked) != 0 {
				t.Errorf("a known key asks %q", asked)
			}
		}
		f.Clock.Advance(rolecall.TouchInterval)
		f.OK(nodetest.ErrorOf(f.OperatorCaller(f.Node, token)))
		if lastUse() != nodetest.Start.Add(rolecall.TouchInterval) {
			t.Errorf("last used at %v", lastUse())
		}
	})
}

func TestARevokedOperatorKeyEndsOnEveryNode(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		key, token := f.NewOperatorKey("Sign-ups")
		unwatched, watching := f.NewNode(), f.NewWatchingNode()
		for _, node := range []*node.Node{f.Node, unwatched, watching} {
			f.OK(nodetest.ErrorOf(f.OperatorCaller(node, token)))
			if operated, err := node.SignIn.Operated(f.Context()); !operated || err != nil {
				t.Errorf("operated is %v, %v", operated, err)
			}
		}
		f.OK(f.Directory.RevokeOperatorKey(f.Context(), key.ID))
		f.Is(f.Directory.RevokeOperatorKey(f.Context(), key.ID), rolecall.ErrNotFound)
		f.Is(nodetest.ErrorOf(f.OperatorCaller(f.Node, token)), rolecall.ErrUnauthenticated)
		f.Eventually(func() bool { _, err := f.OperatorCaller(watching, token); return err != nil })
		f.Clock.Advance(nodetest.CacheTime)
		f.Is(nodetest.ErrorOf(f.OperatorCaller(unwatched, token)), rolecall.ErrUnauthenticated)
		for _, node := range []*node.Node{f.Node, unwatched, watching} {
			if operated, err := node.SignIn.Operated(f.Context()); operated || err != nil {
				t.Errorf("without a key operated is %v, %v", operated, err)
			}
		}
		f.NewOperatorKey("Next")
		f.Clock.Advance(nodetest.CacheTime)
		if operated, err := unwatched.SignIn.Operated(f.Context()); !operated || err != nil {
			t.Errorf("with a new key operated is %v, %v", operated, err)
		}
	})
}

func TestUnknownKeysAreLimitedPerSource(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{Source: 3}, func(f *nodetest.Fixture) {
		_, known := f.NewOperatorKey("Known")
		_, unknownHere := f.NewOperatorKey("Unknown here")
		f.OK(nodetest.ErrorOf(f.OperatorCaller(f.Node, known)))
		for i := range 5 {
			want := rolecall.ErrUnauthenticated
			if i >= 3 {
				want = rolecall.ErrTooManyAttempts
			}
			f.Is(nodetest.ErrorOf(f.OperatorCaller(f.Node, secret.NewOperatorKey())), want)
		}
		for name, refused := range map[string]func() error{
			"of this node":   func() error { return nodetest.ErrorOf(f.OperatorCaller(f.Node, secret.NewOperatorKey())) },
			"a key not seen": func() error { return nodetest.ErrorOf(f.OperatorCaller(f.Node, unknownHere)) },
		} {
			asked := f.DB.During(func() { f.Is(refused(), rolecall.ErrTooManyAttempts) })
			if len(asked) != 0 {
				t.Errorf("%s: asks %q", name, asked)
			}
		}
		f.OK(nodetest.ErrorOf(f.OperatorCaller(f.Node, known)))
		f.OK(nodetest.ErrorOf(f.SignIn.AuthenticateBearer(f.Context(), f.Tenant, string(unknownHere), "198.51.100.7")))
		asked := f.DB.During(func() {
			f.Is(nodetest.ErrorOf(f.OperatorCaller(f.NewNode(), secret.NewOperatorKey())), rolecall.ErrTooManyAttempts)
		})
		if want := []string{"view", "operator key by token", "update", "count in 1 buckets"}; !slices.Equal(asked, want) {
			t.Errorf("another node asks %q, not %q", asked, want)
		}
		asked = f.DB.During(func() {
			for range 100 {
				f.Is(nodetest.ErrorOf(f.SignIn.AuthenticateBearer(f.Context(), f.Tenant, fmt.Sprintf("rco_%049d", 0), "192.0.2.9")), rolecall.ErrUnauthenticated)
			}
		})
		if len(asked) != 0 {
			t.Errorf("what is no key asks %q", asked)
		}
		f.Clock.Advance(10 * time.Minute)
		f.OK(nodetest.ErrorOf(f.OperatorCaller(f.Node, unknownHere)))
	})
}

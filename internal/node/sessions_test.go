package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

func TestAnUnusedSessionEndsWithItsIdleTime(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		in := f.signIn("owner")
		f.clock.until(start.Add(rolecall.DefaultSessionIdle) - 1)
		_, err := f.authenticate(f.node(), in.Token)
		f.ok(err)
		f.clock.advance(rolecall.DefaultSessionIdle - time.Microsecond)
		_, err = f.authenticate(f.node(), in.Token)
		f.ok(err)
		f.clock.advance(rolecall.DefaultSessionIdle)
		for _, node := range []*node.Node{f.Node, f.node()} {
			_, err = f.authenticate(node, in.Token)
			f.is(err, rolecall.ErrUnauthenticated)
		}
	})
}

func TestUseAndRefreshDoNotExtendTheAbsoluteLifetime(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		in := f.signIn("owner")
		end := in.Principal.Session.ExpiresAt
		if end != start.Add(rolecall.DefaultSessionAbsolute) {
			t.Fatalf("the session ends at %v", end)
		}
		token := in.Token
		for f.clock.Now() < end.Add(-6*time.Hour) {
			f.clock.advance(6 * time.Hour)
			next, err := f.SignIn.Refresh(f.Context(), f.attempt(token))
			f.ok(err)
			token = next.Token
			p, err := f.authenticate(f.Node, token)
			f.ok(err)
			if p.Session.ExpiresAt != end {
				t.Fatalf("the end moved to %v", p.Session.ExpiresAt)
			}
		}
		f.clock.until(end - 1)
		_, err := f.authenticate(f.Node, token)
		f.ok(err)
		f.clock.until(end)
		_, err = f.authenticate(f.Node, token)
		f.is(err, rolecall.ErrUnauthenticated)
		_, err = f.SignIn.Refresh(f.Context(), f.attempt(token))
		f.is(err, rolecall.ErrUnauthenticated)
	})
}

func TestListingASessionIsNotAUse(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		in := f.signIn("owner")
		for range 3 {
			f.clock.advance(rolecall.DefaultSessionIdle / 4)
			_, err := f.SignIn.Authenticate(f.Context(), f.tenant, []secret.Token{in.Token}, false)
			f.ok(err)
		}
		f.clock.advance(rolecall.DefaultSessionIdle / 4)
		_, err := f.authenticate(f.Node, in.Token)
		f.is(err, rolecall.ErrUnauthenticated)
	})
}

func TestTheLastUseIsWrittenAtMostOnceAMinute(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		in := f.signIn("owner")
		asked := f.db.during(func() {
			for range 60 {
				f.clock.advance(2 * time.Second)
				_, err := f.authenticate(f.Node, in.Token)
				f.ok(err)
			}
		})
		if touched := len(slices.DeleteFunc(asked, func(what string) bool { return what != "touch" })); touched != 2 {
			t.Errorf("in two minutes it was written %d times", touched)
		}
	})
}

func TestASessionInUseDoesNotEndAtAShortIdleTimeout(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.settings(rolecall.TenantSettings{SessionIdle: new(rolecall.Seconds(60))})
		in, other := f.signIn("owner"), f.node()
		for range 10 {
			for _, node := range []*node.Node{f.Node, f.Node, other} {
				f.clock.advance(53 * time.Second)
				_, err := f.authenticate(node, in.Token)
				f.ok(err)
			}
		}
		f.clock.advance(60 * time.Second)
		_, err := f.authenticate(f.Node, in.Token)
		f.is(err, rolecall.ErrUnauthenticated)
	})
}

func TestASessionThatLooksExpiredIsReadAgain(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		in, other := f.signIn("owner"), f.node()
		_, err := f.authenticate(f.Node, in.Token)
		f.ok(err)
		f.clock.advance(rolecall.DefaultSessionIdle - time.Second)
		_, err = f.authenticate(other, in.Token)
		f.ok(err)
		f.clock.advance(time.Minute)
		_, err = f.authenticate(f.Node, in.Token)
		f.ok(err)
	})
}

func TestSessionLifetimesOfTheTenantApply(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.settings(rolecall.TenantSettings{SessionIdle: new(rolecall.Seconds(600)), SessionAbsolute: new(rolecall.Seconds(3600))})
		in := f.signIn("owner")
		if got := in.Principal.Session.ExpiresAt; got != start.Add(time.Hour) {
			t.Errorf("the session ends at %v", got)
		}
		f.clock.advance(10 * time.Minute)
		_, err := f.authenticate(f.Node, in.Token)
		f.is(err, rolecall.ErrUnauthenticated)
	})
}

func TestAStoreErrorIsNotAMissingSession(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		in, fresh := f.signIn("owner"), f.node()
		f.db.fail(rolecall.ErrUnavailable)
		_, err := f.authenticate(fresh, in.Token)
		f.is(err, rolecall.ErrUnavailable)
		_, err = fresh.SignIn.Refresh(f.Context(), f.attempt(in.Token))
		f.is(err, rolecall.ErrUnavailable)
		_, err = fresh.Directory.Tenant(f.Context(), f.tenant.Name)
		f.is(err, rolecall.ErrUnavailable)
		f.is(fresh.SignIn.Logout(f.Context(), f.attempt(in.Token)), rolecall.ErrUnavailable)
		f.db.fail(nil)
		_, err = f.authenticate(fresh, in.Token)
		f.ok(err)
	})
}

func TestTheStoreHoldsNoToken(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		in := f.signIn("owner")
		for _, guess := range [][]byte{[]byte(in.Token), in.Token.Hash()[:16]} {
			f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
				if _, err := tx.SessionByToken(guess); err == nil {
					t.Error("a session is found by something else than the hash of its token")
				}
				return nil
			}))
		}
	})
}

func TestTwoValidSessionsInARequestAreAmbiguous(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		one, two := f.signIn("owner"), f.signIn("owner")
		tokens := []secret.Token{one.Token, two.Token}
		_, err := f.SignIn.Authenticate(f.Context(), f.tenant, tokens, true)
		f.is(err, rolecall.ErrAmbiguousSession)
		f.ok(f.SignIn.Logout(f.Context(), f.attempt(one.Token)))
		p, err := f.SignIn.Authenticate(f.Context(), f.tenant, tokens, true)
		f.ok(err)
		if p.Session.ID != two.Principal.Session.ID {
			t.Error("the live one of two is another")
		}
		next, err := f.SignIn.Refresh(f.Context(), f.attempt(two.Token))
		f.ok(err)
		_, err = f.SignIn.Authenticate(f.Context(), f.tenant, []secret.Token{two.Token, next.Token}, true)
		f.ok(err)
	})
}

func TestALogoutOfUnknownTokensWritesNothing(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		token := f.signIn("owner").Token
		f.ok(errorOf(f.authenticate(f.Node, token)))
		asked := f.db.during(func() {
			f.ok(f.SignIn.Logout(f.Context(), f.attempt(secret.NewToken(), secret.NewToken())))
		})
		if slices.Contains(asked, "update") {
			t.Errorf("the store was asked %q", asked)
		}
		if asked := f.db.during(func() { f.ok(errorOf(f.authenticate(f.Node, token))) }); len(asked) != 0 {
			t.Errorf("a stranger's logout ended what is cached: the store was asked %q", asked)
		}
	})
}

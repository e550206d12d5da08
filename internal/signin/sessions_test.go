package signin_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

func TestAnAssignmentExpiresInTheCache(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, role := f.NewMember("ada"), f.NewRole("Reader", "users:read")
		end := f.Clock.Now().Add(500 * time.Millisecond)
		f.Assign(user.ID, role.ID, rolecall.AssignmentDraft{ExpiresAt: &end})
		token := f.LogIn("ada").Token
		for _, at := range []struct {
			moment rolecall.Time
			holds  bool
		}{{end - 1, true}, {end, false}} {
			f.Clock.Until(at.moment)
			p, err := f.Authenticate(f.Node, token)
			f.OK(err)
			if got := !p.Reach(rolecall.UsersRead).IsNowhere(); got != at.holds || (len(p.Assignments) == 1) != at.holds {
				t.Errorf("at %v the role holds: %v", at.moment, got)
			}
		}
	})
}

func TestACachedSessionNeedsNoQuery(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		token := f.LogIn("owner").Token
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, token)))
		asked := f.DB.During(func() {
			for range 100 {
				f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, token)))
			}
		})
		if len(asked) != 0 {
			t.Errorf("the store was asked %q", asked)
		}
	})
}

func TestOneTenantsTokenIsUnknownToAnother(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		token := f.LogIn("owner").Token
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, token)))
		other := f.NewTenant("other")
		_, err := f.SignIn.Authenticate(f.Context(), other, []secret.Token{token}, true)
		f.Is(err, rolecall.ErrUnauthenticated)
		_, err = f.SignIn.Authenticate(f.Context(), rolecall.Tenant{}, []secret.Token{token}, true)
		f.Is(err, rolecall.ErrUnauthenticated)
		f.OK(f.SignIn.Logout(f.Context(), access.Anonymous{Tenant: other, TenantName: "other", Presented: []secret.Token{token}}))
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, token)))
		if got := f.EventTypes(f.Owner.User.ID); slices.Contains(got, rolecall.EventSessionEnded) {
			t.Errorf("a logout in another tenant ended a session: %v", got)
		}
	})
}

func TestASuspendedTenantIsReportedToItsUsersOnly(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		token := f.LogIn("owner").Token
		f.OK(nodetest.ErrorOf(f.Directory.SuspendTenant(f.Context(), access.Command, "acme", "")))
		f.OK(nodetest.ErrorOf(f.Directory.SuspendTenant(f.Context(), access.Command, "acme", "")))
		f.Clock.Advance(nodetest.CacheTime)
		var err error
		f.Tenant, err = f.Directory.Tenant(f.Context(), "acme")
		f.OK(err)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, token)), rolecall.ErrTenantSuspended)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, secret.NewToken())), rolecall.ErrUnauthenticated)
		f.Is(nodetest.ErrorOf(f.SignIn.Refresh(f.Context(), f.Attempt(token))), rolecall.ErrTenantSuspended)
		f.Is(f.Guess("192.0.2.7", "owner", nodetest.Password), rolecall.ErrTenantSuspended)
		f.Is(f.Guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)
		f.OK(f.SignIn.Logout(f.Context(), f.Attempt(token)))
		f.OK(nodetest.ErrorOf(f.Directory.ResumeTenant(f.Context(), access.Command, "acme", "")))
		f.Tenant.Status = rolecall.TenantActive
		f.OK(f.Guess("192.0.2.7", "owner", nodetest.Password))
	})
}

func TestAnUnusedSessionEndsWithItsIdleTime(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		in := f.LogIn("owner")
		f.Clock.Until(nodetest.Start.Add(rolecall.DefaultSessionIdle) - 1)
		_, err := f.Authenticate(f.NewNode(), in.Token)
		f.OK(err)
		f.Clock.Advance(rolecall.DefaultSessionIdle - time.Microsecond)
		_, err = f.Authenticate(f.NewNode(), in.Token)
		f.OK(err)
		f.Clock.Advance(rolecall.DefaultSessionIdle)
		for _, node := range []*node.Node{f.Node, f.NewNode()} {
			_, err = f.Authenticate(node, in.Token)
			f.Is(err, rolecall.ErrUnauthenticated)
		}
	})
}

func TestUseAndRefreshDoNotExtendTheAbsoluteLifetime(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		in := f.LogIn("owner")
		end := in.Principal.Session.ExpiresAt
		if end != nodetest.Start.Add(rolecall.DefaultSessionAbsolute) {
			t.Fatalf("the session ends at %v", end)
		}
		token := in.Token
		for f.Clock.Now() < end.Add(-6*time.Hour) {
			f.Clock.Advance(6 * time.Hour)
			next, err := f.SignIn.Refresh(f.Context(), f.Attempt(token))
			f.OK(err)
			token = next.Token
			p, err := f.Authenticate(f.Node, token)
			f.OK(err)
			if p.Session.ExpiresAt != end {
				t.Fatalf("the end moved to %v", p.Session.ExpiresAt)
			}
		}
		f.Clock.Until(end - 1)
		_, err := f.Authenticate(f.Node, token)
		f.OK(err)
		f.Clock.Until(end)
		_, err = f.Authenticate(f.Node, token)
		f.Is(err, rolecall.ErrUnauthenticated)
		_, err = f.SignIn.Refresh(f.Context(), f.Attempt(token))
		f.Is(err, rolecall.ErrUnauthenticated)
	})
}

func TestListingASessionIsNotAUse(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		in := f.LogIn("owner")
		for range 3 {
			f.Clock.Advance(rolecall.DefaultSessionIdle / 4)
			_, err := f.SignIn.Authenticate(f.Context(), f.Tenant, []secret.Token{in.Token}, false)
			f.OK(err)
		}
		f.Clock.Advance(rolecall.DefaultSessionIdle / 4)
		_, err := f.Authenticate(f.Node, in.Token)
		f.Is(err, rolecall.ErrUnauthenticated)
	})
}

func TestTheLastUseIsWrittenAtMostOnceAMinute(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		in := f.LogIn("owner")
		asked := f.DB.During(func() {
			for range 60 {
				f.Clock.Advance(2 * time.Second)
				_, err := f.Authenticate(f.Node, in.Token)
				f.OK(err)
			}
		})
		if touched := len(slices.DeleteFunc(asked, func(what string) bool { return what != "touch" })); touched != 2 {
			t.Errorf("in two minutes it was written %d times", touched)
		}
	})
}

func TestASessionInUseDoesNotEndAtAShortIdleTimeout(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.SetSettings(rolecall.TenantSettings{SessionIdle: new(rolecall.Seconds(60))})
		in, other := f.LogIn("owner"), f.NewNode()
		for range 10 {
			for _, node := range []*node.Node{f.Node, f.Node, other} {
				f.Clock.Advance(53 * time.Second)
				_, err := f.Authenticate(node, in.Token)
				f.OK(err)
			}
		}
		f.Clock.Advance(60 * time.Second)
		_, err := f.Authenticate(f.Node, in.Token)
		f.Is(err, rolecall.ErrUnauthenticated)
	})
}

func TestASessionThatLooksExpiredIsReadAgain(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		in, other := f.LogIn("owner"), f.NewNode()
		_, err := f.Authenticate(f.Node, in.Token)
		f.OK(err)
		f.Clock.Advance(rolecall.DefaultSessionIdle - time.Second)
		_, err = f.Authenticate(other, in.Token)
		f.OK(err)
		f.Clock.Advance(time.Minute)
		_, err = f.Authenticate(f.Node, in.Token)
		f.OK(err)
	})
}

func TestSessionLifetimesOfTheTenantApply(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.SetSettings(rolecall.TenantSettings{SessionIdle: new(rolecall.Seconds(600)), SessionAbsolute: new(rolecall.Seconds(3600))})
		in := f.LogIn("owner")
		if got := in.Principal.Session.ExpiresAt; got != nodetest.Start.Add(time.Hour) {
			t.Errorf("the session ends at %v", got)
		}
		f.Clock.Advance(10 * time.Minute)
		_, err := f.Authenticate(f.Node, in.Token)
		f.Is(err, rolecall.ErrUnauthenticated)
	})
}

func TestAStoreErrorIsNotAMissingSession(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		in, fresh := f.LogIn("owner"), f.NewNode()
		f.DB.Fail(rolecall.ErrUnavailable)
		_, err := f.Authenticate(fresh, in.Token)
		f.Is(err, rolecall.ErrUnavailable)
		_, err = fresh.SignIn.Refresh(f.Context(), f.Attempt(in.Token))
		f.Is(err, rolecall.ErrUnavailable)
		_, err = fresh.Directory.Tenant(f.Context(), f.Tenant.Name)
		f.Is(err, rolecall.ErrUnavailable)
		f.Is(fresh.SignIn.Logout(f.Context(), f.Attempt(in.Token)), rolecall.ErrUnavailable)
		f.DB.Fail(nil)
		_, err = f.Authenticate(fresh, in.Token)
		f.OK(err)
	})
}

func TestTheStoreHoldsNoToken(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		in := f.LogIn("owner")
		for _, guess := range [][]byte{[]byte(in.Token), in.Token.Hash()[:16]} {
			f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
				if _, err := tx.SessionByToken(guess); err == nil {
					t.Error("a session is found by something else than the hash of its token")
				}
				return nil
			}))
		}
	})
}

func TestTwoValidSessionsInARequestAreAmbiguous(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		one, two := f.LogIn("owner"), f.LogIn("owner")
		tokens := []secret.Token{one.Token, two.Token}
		_, err := f.SignIn.Authenticate(f.Context(), f.Tenant, tokens, true)
		f.Is(err, rolecall.ErrAmbiguousSession)
		f.OK(f.SignIn.Logout(f.Context(), f.Attempt(one.Token)))
		p, err := f.SignIn.Authenticate(f.Context(), f.Tenant, tokens, true)
		f.OK(err)
		if p.Session.ID != two.Principal.Session.ID {
			t.Error("the live one of two is another")
		}
		next, err := f.SignIn.Refresh(f.Context(), f.Attempt(two.Token))
		f.OK(err)
		_, err = f.SignIn.Authenticate(f.Context(), f.Tenant, []secret.Token{two.Token, next.Token}, true)
		f.OK(err)
	})
}

func TestALogoutOfUnknownTokensWritesNothing(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		token := f.LogIn("owner").Token
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, token)))
		asked := f.DB.During(func() {
			f.OK(f.SignIn.Logout(f.Context(), f.Attempt(secret.NewToken(), secret.NewToken())))
		})
		if slices.Contains(asked, "update") {
			t.Errorf("the store was asked %q", asked)
		}
		if asked := f.DB.During(func() { f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, token))) }); len(asked) != 0 {
			t.Errorf("a stranger's logout ended what is cached: the store was asked %q", asked)
		}
	})
}

package signin_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

func TestATokenIsCachedUntilItsHolderChanges(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role, member, account, tokens := f.Programs()
		reads := func(token directory.APIToken) bool {
			p, err := f.AuthenticateToken(f.Node, token)
			f.OK(err)
			return p.Reach(rolecall.UsersRead).IsEverywhere()
		}
		taken := []func() error{
			func() error {
				return f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(member.ID), role.ID)
			},
			func() error {
				return f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(account.ID), role.ID)
			},
		}
		for i, token := range tokens {
			if !reads(token) { // also updates the last use
				t.Error("the token does not do what it is for")
			}
			reads(token)
			if asked := f.DB.During(func() { reads(token) }); len(asked) != 0 {
				t.Errorf("a token that was just used is looked up: %v", asked)
			}
			f.OK(taken[i]())
			if reads(token) {
				t.Error("the token does what its holder may not do any more")
			}
		}
		f.Assign(member.ID, role.ID, rolecall.AssignmentDraft{})
		f.AssignToAccount(account.ID, role.ID)
		f.OK(nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), f.Owner, role.ID, rolecall.RolePatch{Permissions: rolecall.Some([]string{"users.name:read"})}, nil)))
		for _, token := range tokens {
			p, err := f.AuthenticateToken(f.Node, token)
			f.OK(err)
			if p.Reads(rolecall.MemberName).IsNowhere() || !p.Reads(rolecall.MemberEmail).IsNowhere() {
				t.Error("the token is not narrowed with the role of its holder")
			}
		}
	})
}

func TestATokenOfAUserWithoutARequiredFactorIsRefused(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role, member, account, tokens := f.Programs()
		far, demanding := f.NewWatchingNode(), f.NewRole("Demanding")
		demand := func(roles ...rolecall.RoleID) {
			f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: roles}})
		}
		becomes := func(what string, wanted error) {
			t.Helper()
			for i, wanted := range []error{wanted, nil} { // service accounts have no second factors
				if _, err := f.AuthenticateToken(f.Node, tokens[i]); !errors.Is(err, wanted) {
					t.Errorf("%s: %v", what, err)
				}
				f.Eventually(func() bool {
					_, err := f.AuthenticateToken(far, tokens[i])
					return errors.Is(err, wanted)
				})
			}
		}
		becomes("nothing is demanded", nil)
		demand(role.ID)
		becomes("a factor is demanded", rolecall.ErrUnauthenticated)
		demand(demanding.ID)
		becomes("it is demanded of others", nil)
		f.Assign(member.ID, demanding.ID, rolecall.AssignmentDraft{})
		f.AssignToAccount(account.ID, demanding.ID)
		becomes("the user is one of those now", rolecall.ErrUnauthenticated)

		f.OK(f.SignIn.EndUserSessions(f.Context(), f.Owner, member.ID)) // so that the announcement does not come from ending them
		challenge := secret.Token(f.Challenge(f.Attempt(), "programmer", rolecall.ErrEnrolmentRequired).Token)
		e, err := f.SignIn.BeginEnrolment(f.Context(), f.Attempt(), challenge)
		f.OK(err)
		becomes("the user has begun to enrol", rolecall.ErrUnauthenticated)
		f.OK(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: f.AppOf(e.TOTPSecret).Code()})))
		becomes("the user has an app", nil)
		f.OK(f.SignIn.EndUserSessions(f.Context(), f.Owner, member.ID))
		becomes("nobody is signed in", nil)
		f.OK(f.SignIn.ResetFactors(f.Context(), f.Owner, member.ID))
		becomes("it was reset", rolecall.ErrUnauthenticated)

		challenge = secret.Token(f.Challenge(f.Attempt(), "programmer", rolecall.ErrEnrolmentRequired).Token)
		e, err = f.SignIn.BeginEnrolment(f.Context(), f.Attempt(), challenge)
		f.OK(err)
		f.OK(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Passkey: passkeytest.New(nodetest.Origin).Create(t, e.PublicKey)})))
		becomes("the user has a passkey", nil)
	})
}

func TestATokenCannotRemoveFactorsOfItsUser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, _, _ := f.Protected("ada")
		p, err := f.AuthenticateToken(f.Node, f.NewUserToken(f.Owner, "*:*", "*/*:*"))
		f.OK(err)
		f.Enrol(f.Owner)
		program := access.Caller{Principal: p}
		f.Is(f.SignIn.ResetFactors(f.Context(), program, f.Owner.User.ID), rolecall.ErrSessionRequired)
		f.OK(f.SignIn.ResetFactors(f.Context(), program, ada.ID)) // as the user of the token could
		own, err := f.SignIn.Factors(f.Context(), f.Owner)
		f.OK(err)
		if own.Methods() == nil {
			t.Error("the factors are gone")
		}
	})
}

func TestATokenEndsWithItsHolderOrItself(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, member, account, tokens := f.Programs()
		ofUser, ofAccount := tokens[0], tokens[1]
		nothing := func(what string, token directory.APIToken) {
			t.Helper()
			for _, node := range []*node.Node{f.Node, f.NewNode()} {
				if _, err := f.AuthenticateToken(node, token); !errors.Is(err, rolecall.ErrUnauthenticated) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		works := func(token directory.APIToken) {
			t.Helper()
			f.OK(nodetest.ErrorOf(f.AuthenticateToken(f.Node, token)))
		}
		works(ofUser)
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, member.ID, "")))
		nothing("a suspended user", ofUser)
		f.OK(nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, member.ID, "")))
		works(ofUser)
		works(ofAccount)
		f.OK(nodetest.ErrorOf(f.Directory.SuspendServiceAccount(f.Context(), f.Owner, account.ID, "holiday")))
		nothing("a suspended service account", ofAccount)
		f.OK(nodetest.ErrorOf(f.Directory.ResumeServiceAccount(f.Context(), f.Owner, account.ID, "")))
		works(ofAccount)

		revoked := f.NewAccountToken(account.ID, "users:read")
		works(revoked)
		f.OK(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(account.ID), revoked.ID))
		nothing("a revoked token", revoked)
		works(ofAccount)
		f.Is(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(account.ID), ofUser.ID), rolecall.ErrNotFound)
		f.Is(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(member.ID), ofAccount.ID), rolecall.ErrNotFound)

		f.Clock.Until(ofUser.ExpiresAt - 1)
		works(ofUser)
		f.Clock.Until(ofUser.ExpiresAt)
		nothing("a token that has ended", ofUser)
		f.Clock.Until(nodetest.Start)
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, member.ID, nil))
		nothing("a deleted user", ofUser)
		f.OK(f.Directory.DeleteServiceAccount(f.Context(), f.Owner, account.ID, nil))
		nothing("a deleted service account", ofAccount)
	})
}

func TestAMalformedTokenIsRefusedWithoutALookup(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, _, _, tokens := f.Programs()
		text := string(tokens[0].Secret)
		other := "A"
		if text[10:11] == other {
			other = "B"
		}
		for what, bearer := range map[string]string{
			"nothing": "", "a word": "rc_", "a session": string(f.LogIn("owner").Token), "an operator's key": string(secret.NewOperatorKey()),
			"one with a slip": text[:10] + other + text[11:], "one with a blank": " " + text,
		} {
			asked := f.DB.During(func() {
				if _, err := f.SignIn.AuthenticateBearer(f.Context(), f.Tenant, bearer, "192.0.2.1"); !errors.Is(err, rolecall.ErrUnauthenticated) {
					t.Errorf("%s: %v", what, err)
				}
			})
			if what != "an operator's key" && len(asked) != 0 {
				t.Errorf("%s: asked %v", what, asked)
			}
		}
	})
}

func TestATokenIsValidInItsTenantOnly(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, _, _, tokens := f.Programs()
		other := f.NewTenant("other")
		for _, tenant := range []rolecall.Tenant{other, {}} {
			_, err := f.SignIn.AuthenticateBearer(f.Context(), tenant, string(tokens[0].Secret), "192.0.2.1")
			f.Is(err, rolecall.ErrUnauthenticated)
		}
		f.OK(nodetest.ErrorOf(f.Directory.SuspendTenant(f.Context(), access.Command, f.Tenant.Name, "")))
		suspended, err := f.Directory.Tenant(f.Context(), f.Tenant.Name)
		f.OK(err)
		_, err = f.SignIn.AuthenticateBearer(f.Context(), suspended, string(tokens[0].Secret), "192.0.2.1")
		f.Is(err, rolecall.ErrTenantSuspended)
		_, err = f.SignIn.AuthenticateBearer(f.Context(), suspended, string(secret.NewAPIToken()), "192.0.2.1")
		f.Is(err, rolecall.ErrUnauthenticated)
	})
}

func TestTheLastUseOfATokenIsWrittenAtMostOnceAMinute(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, member, _, tokens := f.Programs()
		asked := f.DB.During(func() {
			for range 60 {
				f.OK(nodetest.ErrorOf(f.AuthenticateToken(f.Node, tokens[0])))
				f.Clock.Advance(2 * time.Second)
			}
		})
		if touched := len(slices.DeleteFunc(asked, func(what string) bool { return what != "touch of a token" })); touched != 2 {
			t.Errorf("in two minutes it was written %d times", touched)
		}
		page, err := f.Directory.Tokens(f.Context(), f.Owner, rolecall.HolderOf(member.ID), nil, 10)
		f.OK(err)
		if got := page.Items[0].LastUsedAt; got < nodetest.Start.Add(time.Minute) || got > nodetest.Start.Add(2*time.Minute) {
			t.Errorf("the last use was %v", got)
		}
	})
}

func TestAStoreErrorIsNotAMissingToken(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, _, _, tokens := f.Programs()
		fresh := f.NewNode()
		f.DB.Fail(rolecall.ErrUnavailable)
		_, err := f.AuthenticateToken(fresh, tokens[0])
		f.Is(err, rolecall.ErrUnavailable)
		f.DB.Fail(nil)
	})
}

func TestATokenRevokedDuringFiftyUsesIsRefusedAfterwards(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, member, _, tokens := f.Programs()
		token := tokens[0]
		watching := f.NewWatchingNode()
		var running sync.WaitGroup
		for i := range 50 {
			node := []*node.Node{f.Node, watching}[i%2]
			running.Go(func() {
				if i == 25 {
					f.Is(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(member.ID), token.ID), nil)
				} else if _, err := f.AuthenticateToken(node, token); err != nil && !errors.Is(err, rolecall.ErrUnauthenticated) {
					t.Error(err)
				}
			})
		}
		running.Wait()
		_, err := f.AuthenticateToken(f.Node, token)
		f.Is(err, rolecall.ErrUnauthenticated)
		f.Eventually(func() bool {
			_, err := f.AuthenticateToken(watching, token)
			return errors.Is(err, rolecall.ErrUnauthenticated)
		})
		f.Is(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(member.ID), token.ID), rolecall.ErrNotFound)
	})
}

package signin_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// passwordsOf changes which users can sign in with a password. Later requests of the owner are in
// a new session.
func passwordsOf(f *nodetest.Fixture, scope rolecall.PasswordScope) {
	f.Helper()
	f.SetSettings(rolecall.TenantSettings{PasswordSignIn: scope})
	f.Owner = f.CallerOf(f.LogIn("owner"))
}

// secondOwner creates another owner who can sign in.
func secondOwner(f *nodetest.Fixture, name string) rolecall.User {
	f.Helper()
	user := f.NewMember(name)
	f.Assign(user.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
	return user
}

func TestOnlyOwnersSignInWithAPassword(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		admin, temporary := f.NewMember("admin"), f.NewMember("temporary")
		f.Assign(admin.ID, f.NewRole("All", "*:*", "*/*:*").ID, rolecall.AssignmentDraft{})
		f.Assign(temporary.ID, f.OwnerRole(), rolecall.AssignmentDraft{ExpiresAt: new(nodetest.Start.Add(time.Hour))})
		secondOwner(f, "boss")
		passwordsOf(f, rolecall.PasswordsOfOwners)
		for _, name := range []string{"ada", "admin"} {
			f.Is(f.Guess("192.0.2.7", name, nodetest.Password), rolecall.ErrWrongCredentials)
		}
		for _, name := range []string{"owner", "boss", "temporary"} {
			f.OK(f.Guess("192.0.2.7", name, nodetest.Password))
		}
		f.Clock.Advance(time.Hour)
		f.Is(f.Guess("192.0.2.7", "temporary", nodetest.Password), rolecall.ErrWrongCredentials)
		f.Is(f.Guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.OK(f.Access.Refusals.Flush(f.Context()))
		f.Owner = f.CallerOf(f.LogIn("owner"))
		f.ExpectRefusals(rolecall.EventSignInFailed, map[string]int{"user: password-sign-in-off": 3, "user: wrong-credentials": 1})

		passwordsOf(f, rolecall.PasswordsOfAll)
		for _, name := range []string{"ada", "admin", "temporary", "boss"} {
			f.OK(f.Guess("192.0.2.7", name, nodetest.Password))
		}
	})
}

// TestARightPasswordOfNoOwnerIsTheSameWork also checks that the attempts are counted.
func TestARightPasswordOfNoOwnerIsTheSameWork(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		suspended := f.NewMember("suspended")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, suspended.ID, "")))
		passwordsOf(f, rolecall.PasswordsOfOwners)
		f.Node = f.NewNodeWith(secret.Parameters{Time: 2, MemoryKiB: 64, Threads: 1}) // all stored hashes are outdated
		want := []string{"update", "count in 3 buckets", "view", "user by address", "assignments of a user"}
		for _, c := range []struct{ what, name, secret string }{
			{"the right password of no owner", "ada", nodetest.Password},
			{"a wrong password of no owner", "ada", "wrong"},
			{"the right password of a suspended user", "suspended", nodetest.Password},
			{"a wrong password of an owner", "owner", "wrong"},
			{"an unknown address", "ghost", nodetest.Password},
		} {
			before := f.Hashes.Hashed()
			asked := f.DB.During(func() { f.Is(f.Guess("192.0.2.7", c.name, c.secret), rolecall.ErrWrongCredentials) })
			if spent := f.Hashes.Hashed() - before; spent != 1 {
				t.Errorf("%s: %d hashes", c.what, spent)
			}
			if !slices.Equal(asked, want) {
				t.Errorf("%s: the store was asked %q, not %q", c.what, asked, want)
			}
		}
		for range 8 { // and the two attempts above
			f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrTooManyAttempts)
	})
}

func TestOnlyOwnersSignInWithAPasskeyAlone(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, phone := f.WithPasskey("ada")
		boss, key := f.WithPasskey("boss")
		f.Assign(boss.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		passwordsOf(f, rolecall.PasswordsOfOwners)
		_, err := byPasskey(f, phone.Get(t, signInOptions(f)))
		_, unknown := byPasskey(f, strangersAnswer(f))
		if f.Is(err, rolecall.ErrPasskeyRefused); err != unknown {
			t.Errorf("the error is %v, and for an unknown passkey %v", err, unknown)
		}
		f.OK(nodetest.ErrorOf(byPasskey(f, key.Get(t, signInOptions(f)))))
		f.OK(f.Access.Refusals.Flush(f.Context()))
		f.ExpectRefusals(rolecall.EventSignInFailed, map[string]int{"user: password-sign-in-off": 1})

		passwordsOf(f, rolecall.PasswordsOfAll)
		f.OK(nodetest.ErrorOf(byPasskey(f, phone.Get(t, signInOptions(f)))))
	})
}

func TestOnlyOwnersGetMailedResetLinks(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		secondOwner(f, "boss")
		passwordsOf(f, rolecall.PasswordsOfOwners)
		want := []string{"update", "count in 1 buckets", "update", "count in 1 buckets", "user by address", "assignments of a user", "delete tokens", "insert token", "mail"}
		for name, mailed := range map[string]string{"ada": "nothing", "ghost": "nothing", "boss": "password-reset boss"} {
			f.ExpectMailed(func() {
				asked := f.DB.During(func() { f.OK(f.RequestReset("192.0.2.7", nodetest.Address(name))) })
				if !slices.Equal(asked, want) {
					t.Errorf("%s: the store was asked %q, not %q", name, asked, want)
				}
			}, mailed)
		}
		f.OK(f.ResetPassword(f.LastToken(rolecall.MailPasswordReset, "boss"), nodetest.AnotherPassword))
		f.OK(f.Guess("192.0.2.7", "boss", nodetest.AnotherPassword))
		f.OK(f.Access.Refusals.Flush(f.Context()))
		f.ExpectRefusals(rolecall.EventResetRequested, map[string]int{
			"user: mailed": 1, "user: not mailed: only owners sign in with a password": 1, "tenant: not mailed: no user has the address": 1,
		})

		passwordsOf(f, rolecall.PasswordsOfAll)
		f.OK(f.ResetPassword(f.ResetLink("ada"), nodetest.AnotherPassword))
	})
}

// linkError returns the error with which a mail of the kind would be dropped now.
func linkError(f *nodetest.Fixture, kind rolecall.MailKind, token secret.Token) error {
	return f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		return f.SignIn.CheckLink(tx, f.Tenant, &rolecall.Mail{Kind: kind, Token: string(token)})
	})
}

func TestAResetLinkOfNoOwnerIsInvalid(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		secondOwner(f, "boss")
		link, ofBoss := f.ResetLink("ada"), f.ResetLink("boss")
		passwordsOf(f, rolecall.PasswordsOfOwners)
		before := f.Hashes.Hashed()
		f.Is(f.ResetPassword(link, nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
		f.Is(linkError(f, rolecall.MailPasswordReset, link), rolecall.ErrPasswordResetInvalid)
		if spent := f.Hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes", spent)
		}
		f.OK(f.ResetPassword(ofBoss, nodetest.AnotherPassword))
		f.OK(f.Guess("192.0.2.7", "boss", nodetest.AnotherPassword))

		passwordsOf(f, rolecall.PasswordsOfAll)
		f.OK(f.ResetPassword(link, nodetest.AnotherPassword))
		f.OK(f.Guess("192.0.2.7", "ada", nodetest.AnotherPassword))
	})
}

func TestAdministratorsResetOnlyPasswordsOfOwners(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, boss := f.NewMember("ada"), secondOwner(f, "boss")
		offered := func() bool {
			o, err := f.Directory.Overview(f.Context(), f.Owner, ada.ID)
			f.OK(err)
			return slices.Contains(o.AllowedActions, "sendPasswordReset")
		}
		passwordsOf(f, rolecall.PasswordsOfOwners)
		operator := f.OperatorInTenant()
		operator.Tenant = f.Tenant
		f.ExpectMailed(func() {
			f.Is(nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), f.Owner, nodetest.NewKey(), ada.ID)), rolecall.ErrPasswordsOff)
			f.Is(nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), operator, nodetest.NewKey(), ada.ID)), rolecall.ErrPasswordsOff)
			f.Is(nodetest.ErrorOf(f.SignIn.IssuePasswordReset(f.Context(), operator, nodetest.NewKey(), ada.ID)), rolecall.ErrPasswordsOff)
			f.OK(nodetest.ErrorOf(f.SignIn.IssuePasswordReset(f.Context(), operator, nodetest.NewKey(), boss.ID)))
		})
		f.ExpectMailed(func() {
			f.OK(nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), f.Owner, nodetest.NewKey(), boss.ID)))
		}, "password-reset boss")
		if offered() {
			t.Error("the overview offers a reset that is refused")
		}

		passwordsOf(f, rolecall.PasswordsOfAll)
		f.ExpectMailed(func() {
			f.OK(nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), f.Owner, nodetest.NewKey(), ada.ID)))
		}, "password-reset ada")
		if !offered() {
			t.Error("the overview does not offer the reset")
		}
	})
}

func TestOnlyOwnersAcceptAnInvitationWithAPassword(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		pending, active, boss := f.NewUser("pending"), f.NewMember("active"), f.NewUser("boss")
		f.Assign(boss.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		passwordsOf(f, rolecall.PasswordsOfOwners)
		links := []secret.Token{f.Invite(pending.ID), f.Invite(active.ID)}
		before := f.Hashes.Hashed()
		for _, link := range links {
			f.Is(nodetest.ErrorOf(f.AcceptInvitation(link, nodetest.AnotherPassword)), rolecall.ErrPasswordsOff)
			f.OK(linkError(f, rolecall.MailInvitation, link))
		}
		if spent := f.Hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes", spent)
		}
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(f.Invite(boss.ID), nodetest.Password)))
		f.OK(f.Guess("192.0.2.7", "boss", nodetest.Password))

		passwordsOf(f, rolecall.PasswordsOfAll)
		f.OK(f.Guess("192.0.2.7", "active", nodetest.Password)) // the refused acceptance changed nothing
		for i, name := range []string{"pending", "active"} {
			f.OK(nodetest.ErrorOf(f.AcceptInvitation(links[i], nodetest.AnotherPassword)))
			f.OK(f.Guess("192.0.2.7", name, nodetest.AnotherPassword))
		}
	})
}

func TestASecondFactorDoesNotCompleteARefusedSignIn(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, app, _ := f.Protected("ada")
		boss, key, _ := f.Protected("boss")
		f.Assign(boss.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		f.NewMember("late")
		challenge, ofBoss := f.FactorChallenge("ada"), f.FactorChallenge("boss")
		before := f.Tenant
		f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		enrolment := secret.Token(f.Challenge(f.Attempt(), "late", rolecall.ErrEnrolmentRequired).Token)
		f.SetSettings(rolecall.TenantSettings{PasswordSignIn: rolecall.PasswordsOfOwners})
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: app.Next()})), rolecall.ErrChallengeInvalid)
		f.Is(nodetest.ErrorOf(f.SignIn.BeginEnrolment(f.Context(), f.Attempt(), enrolment)), rolecall.ErrChallengeInvalid)
		f.OK(nodetest.ErrorOf(f.Answer(ofBoss, signin.Proof{Code: key.Next()})))
		f.OK(nodetest.ErrorOf(f.Answer(f.FactorChallenge("boss"), signin.Proof{Code: key.Next()})))
		f.OK(f.Access.Refusals.Flush(f.Context()))
		f.Owner = f.CallerOf(f.LogIn("owner"))
		f.ExpectRefusals(rolecall.EventSignInFailed, map[string]int{"user: password-sign-in-off": 2})

		f.SetSettings(before.Settings)
		f.OK(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Code: app.Next()})))
		f.OK(nodetest.ErrorOf(f.SignIn.BeginEnrolment(f.Context(), f.Attempt(), enrolment)))
	})
}

// TestLiveSessionsDoNotNeedAPassword uses sessions and tokens that began before the tenant
// required a connection.
func TestLiveSessionsDoNotNeedAPassword(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, _, _, tokens := f.Programs()
		f.NewMember("ada")
		in := f.LogIn("ada")
		passwordsOf(f, rolecall.PasswordsOfOwners)
		for _, token := range tokens {
			f.OK(nodetest.ErrorOf(f.AuthenticateToken(f.Node, token)))
		}
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
		in.Token = f.Refresh(f.Node, in.Token)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
		f.OK(reconfirm(f, in, nodetest.Password, signin.Proof{}))
		c := access.Caller{Principal: in.Principal, RequestID: "request", Source: "192.0.2.1"}
		f.Enrol(c)
		f.OK(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), c, nodetest.Password, nodetest.AnotherPassword)))
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.AnotherPassword), rolecall.ErrWrongCredentials)
	})
}

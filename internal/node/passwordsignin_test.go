package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// passwordsOf changes which users can sign in with a password. Later requests of the owner are in
// a new session.
func (f *fixture) passwordsOf(scope rolecall.PasswordScope) {
	f.Helper()
	f.settings(rolecall.TenantSettings{PasswordSignIn: scope})
	f.owner = f.call(f.signIn("owner"))
}

// secondOwner creates another owner who can sign in.
func (f *fixture) secondOwner(name string) rolecall.User {
	f.Helper()
	user := f.member(name)
	f.assign(user.ID, f.ownerRole(), rolecall.AssignmentDraft{})
	return user
}

func TestOnlyOwnersSignInWithAPassword(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		admin, temporary := f.member("admin"), f.member("temporary")
		f.assign(admin.ID, f.role("All", "*:*", "*/*:*").ID, rolecall.AssignmentDraft{})
		f.assign(temporary.ID, f.ownerRole(), rolecall.AssignmentDraft{ExpiresAt: new(start.Add(time.Hour))})
		f.secondOwner("boss")
		f.passwordsOf(rolecall.PasswordsOfOwners)
		for _, name := range []string{"ada", "admin"} {
			f.is(f.guess("192.0.2.7", name, password), rolecall.ErrWrongCredentials)
		}
		for _, name := range []string{"owner", "boss", "temporary"} {
			f.ok(f.guess("192.0.2.7", name, password))
		}
		f.clock.advance(time.Hour)
		f.is(f.guess("192.0.2.7", "temporary", password), rolecall.ErrWrongCredentials)
		f.is(f.guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.ok(f.Access.Refusals.Flush(f.Context()))
		f.owner = f.call(f.signIn("owner"))
		f.expectRefusals(rolecall.EventSignInFailed, map[string]int{"user: password-sign-in-off": 3, "user: wrong-credentials": 1})

		f.passwordsOf(rolecall.PasswordsOfAll)
		for _, name := range []string{"ada", "admin", "temporary", "boss"} {
			f.ok(f.guess("192.0.2.7", name, password))
		}
	})
}

// TestARightPasswordOfNoOwnerIsTheSameWork also checks that the attempts are counted.
func TestARightPasswordOfNoOwnerIsTheSameWork(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		suspended := f.member("suspended")
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, suspended.ID, "")))
		f.passwordsOf(rolecall.PasswordsOfOwners)
		f.Node = f.nodeWith(secret.Parameters{Time: 2, MemoryKiB: 64, Threads: 1}) // all stored hashes are outdated
		want := []string{"update", "count in 3 buckets", "view", "user by address", "assignments of a user"}
		for _, c := range []struct{ what, name, secret string }{
			{"the right password of no owner", "ada", password},
			{"a wrong password of no owner", "ada", "wrong"},
			{"the right password of a suspended user", "suspended", password},
			{"a wrong password of an owner", "owner", "wrong"},
			{"an unknown address", "ghost", password},
		} {
			before := f.hashes.Hashed()
			asked := f.db.during(func() { f.is(f.guess("192.0.2.7", c.name, c.secret), rolecall.ErrWrongCredentials) })
			if spent := f.hashes.Hashed() - before; spent != 1 {
				t.Errorf("%s: %d hashes", c.what, spent)
			}
			if !slices.Equal(asked, want) {
				t.Errorf("%s: the store was asked %q, not %q", c.what, asked, want)
			}
		}
		for range 8 { // and the two attempts above
			f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrTooManyAttempts)
	})
}

func TestOnlyOwnersSignInWithAPasskeyAlone(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, phone := f.withPasskey("ada")
		boss, key := f.withPasskey("boss")
		f.assign(boss.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		f.passwordsOf(rolecall.PasswordsOfOwners)
		_, err := f.byPasskey(phone.Get(t, f.signInOptions()))
		_, unknown := f.byPasskey(f.strangersAnswer())
		if f.is(err, rolecall.ErrPasskeyRefused); err != unknown {
			t.Errorf("the error is %v, and for an unknown passkey %v", err, unknown)
		}
		f.ok(errorOf(f.byPasskey(key.Get(t, f.signInOptions()))))
		f.ok(f.Access.Refusals.Flush(f.Context()))
		f.expectRefusals(rolecall.EventSignInFailed, map[string]int{"user: password-sign-in-off": 1})

		f.passwordsOf(rolecall.PasswordsOfAll)
		f.ok(errorOf(f.byPasskey(phone.Get(t, f.signInOptions()))))
	})
}

func TestOnlyOwnersGetMailedResetLinks(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		f.secondOwner("boss")
		f.passwordsOf(rolecall.PasswordsOfOwners)
		want := []string{"update", "count in 1 buckets", "update", "count in 1 buckets", "user by address", "assignments of a user", "delete tokens", "insert token", "mail"}
		for name, mailed := range map[string]string{"ada": "nothing", "ghost": "nothing", "boss": "password-reset boss"} {
			f.expectMailed(func() {
				asked := f.db.during(func() { f.ok(f.requestReset("192.0.2.7", address(name))) })
				if !slices.Equal(asked, want) {
					t.Errorf("%s: the store was asked %q, not %q", name, asked, want)
				}
			}, mailed)
		}
		f.ok(f.reset(f.lastToken(rolecall.MailPasswordReset, "boss"), anotherPassword))
		f.ok(f.guess("192.0.2.7", "boss", anotherPassword))
		f.ok(f.Access.Refusals.Flush(f.Context()))
		f.expectRefusals(rolecall.EventResetRequested, map[string]int{
			"user: mailed": 1, "user: not mailed: only owners sign in with a password": 1, "tenant: not mailed: no user has the address": 1,
		})

		f.passwordsOf(rolecall.PasswordsOfAll)
		f.ok(f.reset(f.resetLink("ada"), anotherPassword))
	})
}

// linkError returns the error with which a mail of the kind would be dropped now.
func (f *fixture) linkError(kind rolecall.MailKind, token secret.Token) error {
	return f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		return f.SignIn.CheckLink(tx, f.tenant, &rolecall.Mail{Kind: kind, Token: string(token)})
	})
}

func TestAResetLinkOfNoOwnerIsInvalid(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		f.secondOwner("boss")
		link, ofBoss := f.resetLink("ada"), f.resetLink("boss")
		f.passwordsOf(rolecall.PasswordsOfOwners)
		before := f.hashes.Hashed()
		f.is(f.reset(link, anotherPassword), rolecall.ErrPasswordResetInvalid)
		f.is(f.linkError(rolecall.MailPasswordReset, link), rolecall.ErrPasswordResetInvalid)
		if spent := f.hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes", spent)
		}
		f.ok(f.reset(ofBoss, anotherPassword))
		f.ok(f.guess("192.0.2.7", "boss", anotherPassword))

		f.passwordsOf(rolecall.PasswordsOfAll)
		f.ok(f.reset(link, anotherPassword))
		f.ok(f.guess("192.0.2.7", "ada", anotherPassword))
	})
}

func TestAdministratorsResetOnlyPasswordsOfOwners(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, boss := f.member("ada"), f.secondOwner("boss")
		offered := func() bool {
			o, err := f.Directory.Overview(f.Context(), f.owner, ada.ID)
			f.ok(err)
			return slices.Contains(o.AllowedActions, "sendPasswordReset")
		}
		f.passwordsOf(rolecall.PasswordsOfOwners)
		operator := f.operatorInside()
		operator.Tenant = f.tenant
		f.expectMailed(func() {
			f.is(errorOf(f.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), ada.ID)), rolecall.ErrPasswordsOff)
			f.is(errorOf(f.SignIn.SendPasswordReset(f.Context(), operator, newKey(), ada.ID)), rolecall.ErrPasswordsOff)
			f.is(errorOf(f.SignIn.IssuePasswordReset(f.Context(), operator, newKey(), ada.ID)), rolecall.ErrPasswordsOff)
			f.ok(errorOf(f.SignIn.IssuePasswordReset(f.Context(), operator, newKey(), boss.ID)))
		})
		f.expectMailed(func() {
			f.ok(errorOf(f.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), boss.ID)))
		}, "password-reset boss")
		if offered() {
			t.Error("the overview offers a reset that is refused")
		}

		f.passwordsOf(rolecall.PasswordsOfAll)
		f.expectMailed(func() {
			f.ok(errorOf(f.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), ada.ID)))
		}, "password-reset ada")
		if !offered() {
			t.Error("the overview does not offer the reset")
		}
	})
}

func TestOnlyOwnersAcceptAnInvitationWithAPassword(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		pending, active, boss := f.user("pending"), f.member("active"), f.user("boss")
		f.assign(boss.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		f.passwordsOf(rolecall.PasswordsOfOwners)
		links := []secret.Token{f.invite(pending.ID), f.invite(active.ID)}
		before := f.hashes.Hashed()
		for _, link := range links {
			f.is(errorOf(f.accept(link, anotherPassword)), rolecall.ErrPasswordsOff)
			f.ok(f.linkError(rolecall.MailInvitation, link))
		}
		if spent := f.hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes", spent)
		}
		f.ok(errorOf(f.accept(f.invite(boss.ID), password)))
		f.ok(f.guess("192.0.2.7", "boss", password))

		f.passwordsOf(rolecall.PasswordsOfAll)
		f.ok(f.guess("192.0.2.7", "active", password)) // the refused acceptance changed nothing
		for i, name := range []string{"pending", "active"} {
			f.ok(errorOf(f.accept(links[i], anotherPassword)))
			f.ok(f.guess("192.0.2.7", name, anotherPassword))
		}
	})
}

func TestASecondFactorDoesNotCompleteARefusedSignIn(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, app, _ := f.protected("ada")
		boss, key, _ := f.protected("boss")
		f.assign(boss.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		f.member("late")
		challenge, ofBoss := f.factorChallenge("ada"), f.factorChallenge("boss")
		before := f.tenant
		f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		enrolment := secret.Token(f.challenge(f.attempt(), "late", rolecall.ErrEnrolmentRequired).Token)
		f.settings(rolecall.TenantSettings{PasswordSignIn: rolecall.PasswordsOfOwners})
		f.is(errorOf(f.answer(challenge, signin.Proof{Code: app.next()})), rolecall.ErrChallengeInvalid)
		f.is(errorOf(f.SignIn.BeginEnrolment(f.Context(), f.attempt(), enrolment)), rolecall.ErrChallengeInvalid)
		f.ok(errorOf(f.answer(ofBoss, signin.Proof{Code: key.next()})))
		f.ok(errorOf(f.answer(f.factorChallenge("boss"), signin.Proof{Code: key.next()})))
		f.ok(f.Access.Refusals.Flush(f.Context()))
		f.owner = f.call(f.signIn("owner"))
		f.expectRefusals(rolecall.EventSignInFailed, map[string]int{"user: password-sign-in-off": 2})

		f.settings(before.Settings)
		f.ok(errorOf(f.answer(challenge, signin.Proof{Code: app.next()})))
		f.ok(errorOf(f.SignIn.BeginEnrolment(f.Context(), f.attempt(), enrolment)))
	})
}

// TestLiveSessionsDoNotNeedAPassword uses sessions and tokens that began before the tenant
// required a connection.
func TestLiveSessionsDoNotNeedAPassword(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, _, _, tokens := f.programs()
		f.member("ada")
		in := f.signIn("ada")
		f.passwordsOf(rolecall.PasswordsOfOwners)
		for _, token := range tokens {
			f.ok(errorOf(f.bears(f.Node, token)))
		}
		f.ok(errorOf(f.authenticate(f.Node, in.Token)))
		in.Token = f.refresh(f.Node, in.Token)
		f.ok(errorOf(f.authenticate(f.Node, in.Token)))
		f.ok(f.reconfirm(in, password, signin.Proof{}))
		c := access.Caller{Principal: in.Principal, RequestID: "request", Source: "192.0.2.1"}
		f.enrol(c)
		f.ok(errorOf(f.SignIn.ChangePassword(f.Context(), c, password, anotherPassword)))
		f.is(f.guess("192.0.2.7", "ada", anotherPassword), rolecall.ErrWrongCredentials)
	})
}

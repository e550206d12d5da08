package node_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// links are three links that were requested for other users, one of each kind.
type links struct{ invitation, reset, change secret.Token }

// As the caller, requestLinks invites one user, sends a password link to a second, and
// changes the address of a third.
func (f *fixture) requestLinks(c access.Caller) links {
	f.Helper()
	n := serial.Add(1)
	invited, forgetful, moving := f.user(fmt.Sprintf("invited-%d", n)), f.member(fmt.Sprintf("forgetful-%d", n)), f.member(fmt.Sprintf("moving-%d", n))
	f.ok(errorOf(f.Directory.InviteUser(f.Context(), c, newKey(), invited.ID)))
	f.ok(errorOf(f.SignIn.SendPasswordReset(f.Context(), c, newKey(), forgetful.ID)))
	f.ok(f.requestEmailChange(c, moving.ID, fmt.Sprintf("moved-%d", n)))
	return links{
		secret.Token(f.mailAbout(invited.ID, rolecall.MailInvitation).Token),
		secret.Token(f.mailAbout(forgetful.ID, rolecall.MailPasswordReset).Token),
		secret.Token(f.mailAbout(moving.ID, rolecall.MailEmailChange).Token),
	}
}

// expectLinks fails the test unless all of the links work, or none of them does.
func (f *fixture) expectLinks(what string, l links, work bool) {
	f.Helper()
	for _, link := range []struct {
		err, void error
	}{
		{errorOf(f.accept(l.invitation, anotherPassword)), rolecall.ErrInvitationInvalid},
		{f.reset(l.reset, anotherPassword), rolecall.ErrPasswordResetInvalid},
		{f.confirm(l.change), rolecall.ErrEmailChangeInvalid},
	} {
		if work && link.err != nil || !work && !errors.Is(link.err, link.void) {
			f.Errorf("%s: a link is answered %v", what, link.err)
		}
	}
}

// reuse sends an old token of the session after the next token was used.
func (f *fixture) reuse(in signin.SignIn) {
	f.Helper()
	f.ok(errorOf(f.authenticate(f.Node, f.refresh(f.Node, in.Token))))
	f.clock.advance(time.Minute)
	f.is(errorOf(f.authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
}

func TestAnAddressRequestedInASessionEndsWithIt(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		id := func(in signin.SignIn) rolecall.SessionID { return in.Principal.Session.ID }
		for i, c := range []struct {
			what  string
			end   func(ada rolecall.User, thief, other signin.SignIn)
			stays bool
		}{
			{what: "revoked by its owner", end: func(ada rolecall.User, thief, other signin.SignIn) {
				f.ok(f.SignIn.EndUserSession(f.Context(), f.call(other), ada.ID, id(thief)))
			}},
			{what: "revoked by an administrator", end: func(ada rolecall.User, thief, _ signin.SignIn) {
				f.ok(f.SignIn.EndUserSession(f.Context(), f.owner, ada.ID, id(thief)))
			}},
			{what: "all revoked", end: func(ada rolecall.User, _, _ signin.SignIn) {
				f.ok(f.SignIn.EndUserSessions(f.Context(), f.owner, ada.ID))
			}},
			{what: "a token was used again", end: func(_ rolecall.User, thief, _ signin.SignIn) { f.reuse(thief) }},
			{what: "another session is revoked", stays: true, end: func(ada rolecall.User, _, other signin.SignIn) {
				f.ok(f.SignIn.EndUserSession(f.Context(), f.owner, ada.ID, id(other)))
			}},
			{what: "signed out", end: func(_ rolecall.User, thief, _ signin.SignIn) {
				f.ok(f.SignIn.Logout(f.Context(), f.attempt(thief.Token)))
			}},
			{what: "signed in anew", end: func(ada rolecall.User, thief, _ signin.SignIn) {
				f.ok(errorOf(f.SignIn.Login(f.Context(), f.attempt(thief.Token), ada.Email, password)))
			}},
			{what: "too many sessions", end: func(ada rolecall.User, _, _ signin.SignIn) {
				for range f.tenant.Settings.SessionsPerUser() {
					f.ok(errorOf(f.SignIn.Login(f.Context(), f.attempt(), ada.Email, password)))
				}
			}},
			{what: "expired", stays: true, end: func(_ rolecall.User, thief, _ signin.SignIn) {
				f.clock.advance(13 * time.Hour)
				f.is(errorOf(f.authenticate(f.Node, thief.Token)), rolecall.ErrUnauthenticated)
			}},
		} {
			name := fmt.Sprintf("ada-%d", i)
			ada := f.member(name)
			thief, other := f.signIn(name), f.signIn(name)
			link := f.emailLink(f.call(thief), ada.ID, "thief-"+name)
			c.end(ada, thief, other)
			if err := f.confirm(link); c.stays && err != nil || !c.stays && !errors.Is(err, rolecall.ErrEmailChangeInvalid) {
				t.Errorf("%s: the address is answered %v", c.what, err)
			}
		}
	})
}

func TestLinksForOthersEndWithTheSessionThatRequestedThem(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for i, c := range []struct {
			what  string
			end   func(admin rolecall.User, thief signin.SignIn)
			stays bool
		}{
			{what: "revoked", end: func(admin rolecall.User, thief signin.SignIn) {
				f.ok(f.SignIn.EndUserSession(f.Context(), f.owner, admin.ID, thief.Principal.Session.ID))
			}},
			{what: "all revoked", end: func(admin rolecall.User, _ signin.SignIn) {
				f.ok(f.SignIn.EndUserSessions(f.Context(), f.owner, admin.ID))
			}},
			{what: "a token was used again", end: func(_ rolecall.User, thief signin.SignIn) { f.reuse(thief) }},
			{what: "the password is changed elsewhere", end: func(admin rolecall.User, _ signin.SignIn) {
				in, err := f.SignIn.Login(f.Context(), f.attempt(), admin.Email, password)
				f.ok(err)
				f.ok(errorOf(f.SignIn.ChangePassword(f.Context(), f.call(in), password, anotherPassword)))
			}},
			{what: "signed out", stays: true, end: func(_ rolecall.User, thief signin.SignIn) {
				f.ok(f.SignIn.Logout(f.Context(), f.attempt(thief.Token)))
			}},
		} {
			name := fmt.Sprintf("admin-%d", i)
			admin := f.member(name)
			f.assign(admin.ID, f.ownerRole(), rolecall.AssignmentDraft{})
			thief := f.signIn(name)
			requested, others := f.requestLinks(f.call(thief)), f.requestLinks(f.owner)
			c.end(admin, thief)
			f.expectLinks(c.what, requested, c.stays)
			f.expectLinks(c.what+", by somebody else", others, true)
		}
	})
}

func TestLinksEndWithTheTokenThatRequestedThem(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		admin := f.member("admin")
		f.assign(admin.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		account := f.account("Import", f.ownerRole())
		own, theirs, reset := f.userToken(f.call(f.signIn("admin")), "*:*", "*/*:*"), f.accountToken(account.ID, "*:*", "*/*:*"), f.userToken(f.call(f.signIn("admin")), "*:*", "*/*:*")
		kept := f.requestLinks(f.ofProgram(f.accountToken(account.ID, "*:*", "*/*:*")))
		for _, c := range []struct {
			what   string
			token  directory.APIToken
			revoke func(directory.APIToken) error
		}{
			{"of a user", own, func(token directory.APIToken) error {
				return f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(admin.ID), token.ID)
			}},
			{"of a service account", theirs, func(token directory.APIToken) error {
				return f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(account.ID), token.ID)
			}},
			{"of a user whose password is reset", reset, func(directory.APIToken) error {
				return f.reset(f.resetLink("admin"), anotherPassword)
			}},
		} {
			requested := f.requestLinks(f.ofProgram(c.token))
			f.ok(c.revoke(c.token))
			f.expectLinks("a token "+c.what, requested, false)
		}
		f.expectLinks("a token that was kept", kept, true)
	})
}

// TestARevokedCredentialRequestsNoLinks continues requests for links whose session or
// token was revoked after the authentication.
func TestARevokedCredentialRequestsNoLinks(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		admin, pending := f.member("admin"), f.user("pending")
		f.assign(admin.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		in := f.signIn("admin")
		token := f.userToken(f.call(in), "*:*", "*/*:*")
		callers := []access.Caller{f.call(in), f.ofProgram(token)}
		f.ok(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(admin.ID), token.ID))
		f.ok(f.SignIn.EndUserSession(f.Context(), f.owner, admin.ID, in.Principal.Session.ID))
		draft := rolecall.UserDraft{Email: address("invited"), Name: "Ada", Invite: true}
		f.expectMailed(func() {
			for _, c := range callers {
				f.is(errorOf(f.Directory.CreateUser(f.Context(), c, newKey(), draft)), rolecall.ErrUnauthenticated)
				f.is(errorOf(f.Directory.InviteUser(f.Context(), c, newKey(), pending.ID)), rolecall.ErrUnauthenticated)
				f.is(errorOf(f.SignIn.SendPasswordReset(f.Context(), c, newKey(), f.owner.User.ID)), rolecall.ErrUnauthenticated)
				f.is(f.requestEmailChange(c, pending.ID, "moved"), rolecall.ErrUnauthenticated)
			}
			f.is(f.requestEmailChange(callers[0], admin.ID, "moved"), rolecall.ErrUnauthenticated)
		})
	})
}

func TestTheCurrentAddressIsNotifiedOfAnEmailChange(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		a := f.attempt()
		a.Client = "Firefox on Linux"
		in, err := f.SignIn.Login(f.Context(), a, ada.Email, password)
		f.ok(err)
		f.user("taken")
		for _, c := range []struct {
			caller access.Caller
			name   string
			want   rolecall.Mail
		}{
			{f.call(in), "lovelace", rolecall.Mail{NewEmail: "l***@example.com", Client: "Firefox on Linux", Source: a.Source}},
			{f.call(in), "taken", rolecall.Mail{NewEmail: "t***@example.com", Client: "Firefox on Linux", Source: a.Source}},
			{f.owner, "lovelace", rolecall.Mail{NewEmail: "l***@example.com", ByAdministrator: true}},
		} {
			f.ok(f.requestEmailChange(c.caller, ada.ID, c.name))
			mails := f.mails()
			got := mails[len(mails)-1]
			c.want.Kind, c.want.To, c.want.Name, c.want.UserID = rolecall.MailEmailChangeRequested, ada.Email, ada.Name, ada.ID
			c.want.ExpiresAt = f.clock.Now().Add(rolecall.NoticeLifetime)
			if got != c.want {
				t.Errorf("the mail is %+v, not %+v", got, c.want)
			}
		}
		f.expectMailed(func() { f.ok(f.requestEmailChange(f.call(in), ada.ID, "ADA")) }, "email-change ADA")
		f.expectMailed(func() { f.ok(f.requestEmailChange(f.owner, f.user("pending").ID, "corrected")) }, "email-change corrected")
	})
}

// TestLinksPerTenantAndHourAreLimited counts all links together, on two nodes.
// Links that are rejected, repeated or requested by users for themselves do not count.
func TestLinksPerTenantAndHourAreLimited(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{TenantMails: 4}, func(f *fixture) {
		ada, pending, other := f.member("ada"), f.user("pending"), f.node()
		invite := func(name string) error {
			draft := rolecall.UserDraft{Email: address(name), Name: "Ada", Invite: true}
			return errorOf(f.Directory.CreateUser(f.Context(), f.owner, newKey(), draft))
		}
		key := newKey()
		for range 3 {
			f.ok(errorOf(f.Directory.InviteUser(f.Context(), f.owner, key, pending.ID)))
		}
		f.ok(f.requestReset("192.0.2.7", ada.Email))
		f.ok(f.requestEmailChange(f.call(f.signIn("ada")), ada.ID, "own"))
		f.ok(invite("invited"))
		f.ok(errorOf(other.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), ada.ID)))
		f.ok(f.requestEmailChange(f.owner, ada.ID, "moved"))
		f.clock.advance(20 * time.Minute)

		f.expectMailed(func() {
			for _, err := range []error{
				invite("refused"), errorOf(other.Directory.InviteUser(f.Context(), f.owner, newKey(), pending.ID)),
				errorOf(f.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), ada.ID)), f.requestEmailChange(f.owner, ada.ID, "moved"),
			} {
				f.is(err, rolecall.ErrTooManyMails)
				if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 40*time.Minute {
					t.Errorf("one is told to wait %v", err)
				}
			}
		})
		f.user("refused") // the rejected request created no user
		f.ok(f.requestEmailChange(f.call(f.signIn("ada")), ada.ID, "own-2"))
		foreign := f.newTenant("other")
		home := f.tenant
		f.tenant = foreign
		c := f.call(f.signIn("owner"))
		f.ok(errorOf(f.Directory.CreateUser(f.Context(), c, newKey(), rolecall.UserDraft{Email: address("invited"), Name: "Ada", Invite: true})))
		f.tenant = home
		f.clock.advance(40 * time.Minute)
		f.owner = f.call(f.signIn("owner"))
		f.ok(invite("later"))
	})
}

// TestLinksOfARevokedOperatorKeyAreInvalid revokes an operator key that was used to
// create a tenant and to request links in another one. The links of an expired key stay
// valid.
func TestLinksOfARevokedOperatorKeyAreInvalid(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		revoked, token := f.operatorKey("Revoked")
		_, kept := f.operatorKey("Kept")
		c, err := f.operator(f.Node, token)
		f.ok(err)
		stays, err := f.operator(f.Node, kept)
		f.ok(err)
		void, live := f.requestLinks(c), f.requestLinks(stays)
		about, err := f.SignIn.AuthenticateOperator(f.Context(), string(token), "192.0.2.1")
		f.ok(err)
		founded, err := f.Directory.CreateTenant(f.Context(), access.Caller{Principal: about}, newKey(), rolecall.TenantDraft{
			Name: "founded", Owner: rolecall.UserDraft{Email: address("founder"), Name: "Founder"},
		})
		f.ok(err)
		f.clock.advance(2 * time.Hour) // both keys have expired
		f.ok(f.Directory.RevokeOperatorKey(f.Context(), revoked.ID))
		f.is(errorOf(f.accept(void.invitation, anotherPassword)), rolecall.ErrInvitationInvalid)
		f.is(f.confirm(void.change), rolecall.ErrEmailChangeInvalid)
		f.is(f.reset(void.reset, anotherPassword), rolecall.ErrPasswordResetInvalid)
		f.ok(errorOf(f.accept(live.invitation, anotherPassword)))
		f.ok(f.confirm(live.change))
		home := f.tenant
		f.tenant = founded.Value.Tenant
		f.is(errorOf(f.accept(founded.Value.Token, anotherPassword)), rolecall.ErrInvitationInvalid)
		f.tenant = home
	})
}

package signin_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// links are three links that were requested for other users, one of each kind.
type links struct{ invitation, reset, change secret.Token }

// As the caller, requestLinks invites one user, sends a password link to a second, and
// changes the address of a third.
func requestLinks(f *nodetest.Fixture, c access.Caller) links {
	f.Helper()
	n := nodetest.Serial.Add(1)
	invited, forgetful, moving := f.NewUser(fmt.Sprintf("invited-%d", n)), f.NewMember(fmt.Sprintf("forgetful-%d", n)), f.NewMember(fmt.Sprintf("moving-%d", n))
	f.OK(nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), c, nodetest.NewKey(), invited.ID)))
	f.OK(nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), c, nodetest.NewKey(), forgetful.ID)))
	f.OK(f.RequestEmailChange(c, moving.ID, fmt.Sprintf("moved-%d", n)))
	return links{
		secret.Token(f.MailAbout(invited.ID, rolecall.MailInvitation).Token),
		secret.Token(f.MailAbout(forgetful.ID, rolecall.MailPasswordReset).Token),
		secret.Token(f.MailAbout(moving.ID, rolecall.MailEmailChange).Token),
	}
}

// expectLinks fails the test unless all of the links work, or none of them does.
func expectLinks(f *nodetest.Fixture, what string, l links, work bool) {
	f.Helper()
	for _, link := range []struct {
		err, void error
	}{
		{nodetest.ErrorOf(f.AcceptInvitation(l.invitation, nodetest.AnotherPassword)), rolecall.ErrInvitationInvalid},
		{f.ResetPassword(l.reset, nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid},
		{f.ConfirmEmailChange(l.change), rolecall.ErrEmailChangeInvalid},
	} {
		if work && link.err != nil || !work && !errors.Is(link.err, link.void) {
			f.Errorf("%s: a link is answered %v", what, link.err)
		}
	}
}

// reuse sends an old token of the session after the next token was used.
func reuse(f *nodetest.Fixture, in signin.SignIn) {
	f.Helper()
	f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, f.Refresh(f.Node, in.Token))))
	f.Clock.Advance(time.Minute)
	f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
}

func TestAnAddressRequestedInASessionEndsWithIt(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		id := func(in signin.SignIn) rolecall.SessionID { return in.Principal.Session.ID }
		for i, c := range []struct {
			what  string
			end   func(ada rolecall.User, thief, other signin.SignIn)
			stays bool
		}{
			{what: "revoked by its owner", end: func(ada rolecall.User, thief, other signin.SignIn) {
				f.OK(f.SignIn.EndUserSession(f.Context(), f.CallerOf(other), ada.ID, id(thief)))
			}},
			{what: "revoked by an administrator", end: func(ada rolecall.User, thief, _ signin.SignIn) {
				f.OK(f.SignIn.EndUserSession(f.Context(), f.Owner, ada.ID, id(thief)))
			}},
			{what: "all revoked", end: func(ada rolecall.User, _, _ signin.SignIn) {
				f.OK(f.SignIn.EndUserSessions(f.Context(), f.Owner, ada.ID))
			}},
			{what: "a token was used again", end: func(_ rolecall.User, thief, _ signin.SignIn) { reuse(f, thief) }},
			{what: "another session is revoked", stays: true, end: func(ada rolecall.User, _, other signin.SignIn) {
				f.OK(f.SignIn.EndUserSession(f.Context(), f.Owner, ada.ID, id(other)))
			}},
			{what: "signed out", end: func(_ rolecall.User, thief, _ signin.SignIn) {
				f.OK(f.SignIn.Logout(f.Context(), f.Attempt(thief.Token)))
			}},
			{what: "signed in anew", end: func(ada rolecall.User, thief, _ signin.SignIn) {
				f.OK(nodetest.ErrorOf(f.SignIn.Login(f.Context(), f.Attempt(thief.Token), ada.Email, nodetest.Password)))
			}},
			{what: "too many sessions", end: func(ada rolecall.User, _, _ signin.SignIn) {
				for range f.Tenant.Settings.SessionsPerUser() {
					f.OK(nodetest.ErrorOf(f.SignIn.Login(f.Context(), f.Attempt(), ada.Email, nodetest.Password)))
				}
			}},
			{what: "expired", stays: true, end: func(_ rolecall.User, thief, _ signin.SignIn) {
				f.Clock.Advance(13 * time.Hour)
				f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, thief.Token)), rolecall.ErrUnauthenticated)
			}},
		} {
			name := fmt.Sprintf("ada-%d", i)
			ada := f.NewMember(name)
			thief, other := f.LogIn(name), f.LogIn(name)
			link := f.EmailLink(f.CallerOf(thief), ada.ID, "thief-"+name)
			c.end(ada, thief, other)
			if err := f.ConfirmEmailChange(link); c.stays && err != nil || !c.stays && !errors.Is(err, rolecall.ErrEmailChangeInvalid) {
				t.Errorf("%s: the address is answered %v", c.what, err)
			}
		}
	})
}

func TestLinksForOthersEndWithTheSessionThatRequestedThem(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i, c := range []struct {
			what  string
			end   func(admin rolecall.User, thief signin.SignIn)
			stays bool
		}{
			{what: "revoked", end: func(admin rolecall.User, thief signin.SignIn) {
				f.OK(f.SignIn.EndUserSession(f.Context(), f.Owner, admin.ID, thief.Principal.Session.ID))
			}},
			{what: "all revoked", end: func(admin rolecall.User, _ signin.SignIn) {
				f.OK(f.SignIn.EndUserSessions(f.Context(), f.Owner, admin.ID))
			}},
			{what: "a token was used again", end: func(_ rolecall.User, thief signin.SignIn) { reuse(f, thief) }},
			{what: "the password is changed elsewhere", end: func(admin rolecall.User, _ signin.SignIn) {
				in, err := f.SignIn.Login(f.Context(), f.Attempt(), admin.Email, nodetest.Password)
				f.OK(err)
				f.OK(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), f.CallerOf(in), nodetest.Password, nodetest.AnotherPassword)))
			}},
			{what: "signed out", stays: true, end: func(_ rolecall.User, thief signin.SignIn) {
				f.OK(f.SignIn.Logout(f.Context(), f.Attempt(thief.Token)))
			}},
		} {
			name := fmt.Sprintf("admin-%d", i)
			admin := f.NewMember(name)
			f.Assign(admin.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
			thief := f.LogIn(name)
			requested, others := requestLinks(f, f.CallerOf(thief)), requestLinks(f, f.Owner)
			c.end(admin, thief)
			expectLinks(f, c.what, requested, c.stays)
			expectLinks(f, c.what+", by somebody else", others, true)
		}
	})
}

func TestLinksEndWithTheTokenThatRequestedThem(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		admin := f.NewMember("admin")
		f.Assign(admin.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		account := f.NewAccount("Import", f.OwnerRole())
		own, theirs, reset := f.NewUserToken(f.CallerOf(f.LogIn("admin")), "*:*", "*/*:*"), f.NewAccountToken(account.ID, "*:*", "*/*:*"), f.NewUserToken(f.CallerOf(f.LogIn("admin")), "*:*", "*/*:*")
		kept := requestLinks(f, f.CallerByToken(f.NewAccountToken(account.ID, "*:*", "*/*:*")))
		for _, c := range []struct {
			what   string
			token  directory.APIToken
			revoke func(directory.APIToken) error
		}{
			{"of a user", own, func(token directory.APIToken) error {
				return f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(admin.ID), token.ID)
			}},
			{"of a service account", theirs, func(token directory.APIToken) error {
				return f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(account.ID), token.ID)
			}},
			{"of a user whose password is reset", reset, func(directory.APIToken) error {
				return f.ResetPassword(f.ResetLink("admin"), nodetest.AnotherPassword)
			}},
		} {
			requested := requestLinks(f, f.CallerByToken(c.token))
			f.OK(c.revoke(c.token))
			expectLinks(f, "a token "+c.what, requested, false)
		}
		expectLinks(f, "a token that was kept", kept, true)
	})
}

// TestARevokedCredentialRequestsNoLinks continues requests for links whose session or
// token was revoked after the authentication.
func TestARevokedCredentialRequestsNoLinks(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		admin, pending := f.NewMember("admin"), f.NewUser("pending")
		f.Assign(admin.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		in := f.LogIn("admin")
		token := f.NewUserToken(f.CallerOf(in), "*:*", "*/*:*")
		callers := []access.Caller{f.CallerOf(in), f.CallerByToken(token)}
		f.OK(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(admin.ID), token.ID))
		f.OK(f.SignIn.EndUserSession(f.Context(), f.Owner, admin.ID, in.Principal.Session.ID))
		draft := rolecall.UserDraft{Email: nodetest.Address("invited"), Name: "Ada", Invite: true}
		f.ExpectMailed(func() {
			for _, c := range callers {
				f.Is(nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), c, nodetest.NewKey(), draft)), rolecall.ErrUnauthenticated)
				f.Is(nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), c, nodetest.NewKey(), pending.ID)), rolecall.ErrUnauthenticated)
				f.Is(nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), c, nodetest.NewKey(), f.Owner.User.ID)), rolecall.ErrUnauthenticated)
				f.Is(f.RequestEmailChange(c, pending.ID, "moved"), rolecall.ErrUnauthenticated)
			}
			f.Is(f.RequestEmailChange(callers[0], admin.ID, "moved"), rolecall.ErrUnauthenticated)
		})
	})
}

func TestTheCurrentAddressIsNotifiedOfAnEmailChange(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		a := f.Attempt()
		a.Client = "Firefox on Linux"
		in, err := f.SignIn.Login(f.Context(), a, ada.Email, nodetest.Password)
		f.OK(err)
		f.NewUser("taken")
		for _, c := range []struct {
			caller access.Caller
			name   string
			want   rolecall.Mail
		}{
			{f.CallerOf(in), "lovelace", rolecall.Mail{NewEmail: "l***@example.com", Client: "Firefox on Linux", Source: a.Source}},
			{f.CallerOf(in), "taken", rolecall.Mail{NewEmail: "t***@example.com", Client: "Firefox on Linux", Source: a.Source}},
			{f.Owner, "lovelace", rolecall.Mail{NewEmail: "l***@example.com", ByAdministrator: true}},
		} {
			f.OK(f.RequestEmailChange(c.caller, ada.ID, c.name))
			mails := f.Mails()
			got := mails[len(mails)-1]
			c.want.Kind, c.want.To, c.want.Name, c.want.UserID = rolecall.MailEmailChangeRequested, ada.Email, ada.Name, ada.ID
			c.want.ExpiresAt = f.Clock.Now().Add(rolecall.NoticeLifetime)
			if got != c.want {
				t.Errorf("the mail is %+v, not %+v", got, c.want)
			}
		}
		f.ExpectMailed(func() { f.OK(f.RequestEmailChange(f.CallerOf(in), ada.ID, "ADA")) }, "email-change ADA")
		f.ExpectMailed(func() { f.OK(f.RequestEmailChange(f.Owner, f.NewUser("pending").ID, "corrected")) }, "email-change corrected")
	})
}

// TestLinksPerTenantAndHourAreLimited counts all links together, on two nodes.
// Links that are rejected, repeated or requested by users for themselves do not count.
func TestLinksPerTenantAndHourAreLimited(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{TenantMails: 4}, func(f *nodetest.Fixture) {
		ada, pending, other := f.NewMember("ada"), f.NewUser("pending"), f.NewNode()
		invite := func(name string) error {
			draft := rolecall.UserDraft{Email: nodetest.Address(name), Name: "Ada", Invite: true}
			return nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), f.Owner, nodetest.NewKey(), draft))
		}
		key := nodetest.NewKey()
		for range 3 {
			f.OK(nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), f.Owner, key, pending.ID)))
		}
		f.OK(f.RequestReset("192.0.2.7", ada.Email))
		f.OK(f.RequestEmailChange(f.CallerOf(f.LogIn("ada")), ada.ID, "own"))
		f.OK(invite("invited"))
		f.OK(nodetest.ErrorOf(other.SignIn.SendPasswordReset(f.Context(), f.Owner, nodetest.NewKey(), ada.ID)))
		f.OK(f.RequestEmailChange(f.Owner, ada.ID, "moved"))
		f.Clock.Advance(20 * time.Minute)

		f.ExpectMailed(func() {
			for _, err := range []error{
				invite("refused"), nodetest.ErrorOf(other.Directory.InviteUser(f.Context(), f.Owner, nodetest.NewKey(), pending.ID)),
				nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), f.Owner, nodetest.NewKey(), ada.ID)), f.RequestEmailChange(f.Owner, ada.ID, "moved"),
			} {
				f.Is(err, rolecall.ErrTooManyMails)
				if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 40*time.Minute {
					t.Errorf("one is told to wait %v", err)
				}
			}
		})
		f.NewUser("refused") // the rejected request created no user
		f.OK(f.RequestEmailChange(f.CallerOf(f.LogIn("ada")), ada.ID, "own-2"))
		foreign := f.NewTenant("other")
		home := f.Tenant
		f.Tenant = foreign
		c := f.CallerOf(f.LogIn("owner"))
		f.OK(nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), c, nodetest.NewKey(), rolecall.UserDraft{Email: nodetest.Address("invited"), Name: "Ada", Invite: true})))
		f.Tenant = home
		f.Clock.Advance(40 * time.Minute)
		f.Owner = f.CallerOf(f.LogIn("owner"))
		f.OK(invite("later"))
	})
}

// TestLinksOfARevokedOperatorKeyAreInvalid revokes an operator key that was used to
// create a tenant and to request links in another one. The links of an expired key stay
// valid.
func TestLinksOfARevokedOperatorKeyAreInvalid(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		revoked, token := f.NewOperatorKey("Revoked")
		_, kept := f.NewOperatorKey("Kept")
		c, err := f.OperatorCaller(f.Node, token)
		f.OK(err)
		stays, err := f.OperatorCaller(f.Node, kept)
		f.OK(err)
		void, live := requestLinks(f, c), requestLinks(f, stays)
		about, err := f.SignIn.AuthenticateOperator(f.Context(), string(token), "192.0.2.1")
		f.OK(err)
		founded, err := f.Directory.CreateTenant(f.Context(), access.Caller{Principal: about}, nodetest.NewKey(), rolecall.TenantDraft{
			Name: "founded", Owner: rolecall.UserDraft{Email: nodetest.Address("founder"), Name: "Founder"},
		})
		f.OK(err)
		f.Clock.Advance(2 * time.Hour) // both keys have expired
		f.OK(f.Directory.RevokeOperatorKey(f.Context(), revoked.ID))
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(void.invitation, nodetest.AnotherPassword)), rolecall.ErrInvitationInvalid)
		f.Is(f.ConfirmEmailChange(void.change), rolecall.ErrEmailChangeInvalid)
		f.Is(f.ResetPassword(void.reset, nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(live.invitation, nodetest.AnotherPassword)))
		f.OK(f.ConfirmEmailChange(live.change))
		home := f.Tenant
		f.Tenant = founded.Value.Tenant
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(founded.Value.Token, nodetest.AnotherPassword)), rolecall.ErrInvitationInvalid)
		f.Tenant = home
	})
}

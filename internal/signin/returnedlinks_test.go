package signin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
)

// issuer returns a service account with the permissions in a role, and a token of it.
func issuer(f *nodetest.Fixture, permissions ...string) (rolecall.ServiceAccount, directory.APIToken) {
	f.Helper()
	account := f.NewAccount("Issuer of "+strings.Join(permissions, " "), f.NewRole("May "+strings.Join(permissions, " "), permissions...).ID)
	return account, f.NewAccountToken(account.ID, permissions...)
}

// issued returns the tokens of an invitation and of a password reset that the caller gets.
func issued(f *nodetest.Fixture, c access.Caller, pending, active rolecall.UserID) (invitation, reset secret.Token) {
	f.Helper()
	f.ExpectMailed(func() {
		invited, err := f.Directory.IssueInvitation(f.Context(), c, nodetest.NewKey(), pending)
		f.OK(err)
		sent, err := f.SignIn.IssuePasswordReset(f.Context(), c, nodetest.NewKey(), active)
		f.OK(err)
		invitation, reset = invited.Value.Token, sent.Value.Token
	})
	return invitation, reset
}

func TestOnlyProgramsGetLinks(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		pending, active, owner := f.NewUser("pending"), f.NewMember("active"), f.NewMember("owner-too")
		f.Assign(owner.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		f.Assign(active.ID, f.NewRole("Shop", "shop/tills:close").ID, rolecall.AssignmentDraft{})
		operator := f.OperatorInTenant()
		of := func(permissions ...string) access.Caller {
			_, token := issuer(f, permissions...)
			return f.CallerByToken(token)
		}
		denied, beyond := rolecall.ErrPermissionDenied, rolecall.ErrBeyondOwnPermissions
		for _, c := range []struct {
			what                   string
			caller                 access.Caller
			invite, reset, ofOwner error
		}{
			{"an operator", operator, nil, nil, nil},
			{"a service account with all permissions", of("*:*", "*/*:*"), nil, nil, denied},
			{"a service account without the user's permissions", of("users:read", "users:invite", "users:issue-links"), nil, beyond, beyond},
			{"a service account without users:issue-links", of("users:read", "users:invite", "shop/*:*"), denied, denied, denied},
			{"a service account without users:invite", of("users:read", "users:issue-links", "shop/*:*"), denied, denied, denied},
			{"a session of an owner", f.Owner, denied, denied, denied},
			{"an API token of an owner", f.CallerByToken(f.NewUserToken(f.Owner, "*:*", "*/*:*")), denied, denied, denied},
		} {
			for _, call := range []struct {
				user rolecall.UserID
				issue,
				want error
			}{
				{pending.ID, nodetest.ErrorOf(f.Directory.IssueInvitation(f.Context(), c.caller, nodetest.NewKey(), pending.ID)), c.invite},
				{active.ID, nodetest.ErrorOf(f.SignIn.IssuePasswordReset(f.Context(), c.caller, nodetest.NewKey(), active.ID)), c.reset},
				{owner.ID, nodetest.ErrorOf(f.Directory.IssueInvitation(f.Context(), c.caller, nodetest.NewKey(), owner.ID)), c.ofOwner},
				{owner.ID, nodetest.ErrorOf(f.SignIn.IssuePasswordReset(f.Context(), c.caller, nodetest.NewKey(), owner.ID)), c.ofOwner},
			} {
				if !errors.Is(call.issue, call.want) {
					t.Errorf("%s: %v, want %v", c.what, call.issue, call.want)
				}
			}
		}
		f.Is(nodetest.ErrorOf(f.SignIn.IssuePasswordReset(f.Context(), operator, nodetest.NewKey(), pending.ID)), rolecall.ErrUserPending)
	})
}

func TestAReturnedLinkWorksOnceAndOnlyInItsTenant(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		pending, active, other := f.NewUser("pending"), f.NewMember("active"), f.NewTenant("other")
		_, token := issuer(f, "users:read", "users:invite", "users:issue-links")
		mailed := f.Invite(pending.ID)
		invitation, reset := issued(f, f.CallerByToken(token), pending.ID, active.ID)
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(mailed, nodetest.Password)), rolecall.ErrInvitationInvalid) // replaced
		elsewhere := f.Attempt()
		elsewhere.Tenant, elsewhere.TenantName = other, other.Name
		f.Is(nodetest.ErrorOf(f.SignIn.AcceptInvitation(f.Context(), elsewhere, invitation, nodetest.Password)), rolecall.ErrInvitationInvalid)
		f.Is(f.SignIn.ResetPassword(f.Context(), elsewhere, reset, nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(invitation, nodetest.Password)))
		f.OK(f.ResetPassword(reset, nodetest.AnotherPassword))
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(invitation, nodetest.Password)), rolecall.ErrInvitationInvalid)
		f.Is(f.ResetPassword(reset, nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
	})
}

func TestAReturnedLinkEndsWithItsMaker(t *testing.T) {
	for what, end := range map[string]func(*nodetest.Fixture, rolecall.ServiceAccount, directory.APIToken, ...rolecall.User){
		"the token is revoked": func(f *nodetest.Fixture, a rolecall.ServiceAccount, token directory.APIToken, _ ...rolecall.User) {
			f.OK(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(a.ID), token.ID))
		},
		"the account is suspended": func(f *nodetest.Fixture, a rolecall.ServiceAccount, _ directory.APIToken, _ ...rolecall.User) {
			f.OK(nodetest.ErrorOf(f.Directory.SuspendServiceAccount(f.Context(), f.Owner, a.ID, "")))
		},
		"the account loses the role": func(f *nodetest.Fixture, a rolecall.ServiceAccount, _ directory.APIToken, _ ...rolecall.User) {
			held, _, err := f.Directory.Assignments(f.Context(), f.Owner, rolecall.HolderOf(a.ID))
			f.OK(err)
			f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(a.ID), held[0].Role.ID))
		},
		"the users get more permissions than the account": func(f *nodetest.Fixture, _ rolecall.ServiceAccount, _ directory.APIToken, users ...rolecall.User) {
			for _, u := range users {
				f.Assign(u.ID, f.NewRole("Shop "+u.Name, "shop/tills:close").ID, rolecall.AssignmentDraft{})
			}
		},
		"the account is deleted": func(f *nodetest.Fixture, a rolecall.ServiceAccount, _ directory.APIToken, _ ...rolecall.User) {
			f.OK(f.Directory.DeleteServiceAccount(f.Context(), f.Owner, a.ID, nil))
		},
	} {
		t.Run(what, func(t *testing.T) {
			nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
				pending, active := f.NewUser("pending"), f.NewMember("active")
				account, token := issuer(f, "users:read", "users:invite", "users:issue-links")
				invitation, reset := issued(f, f.CallerByToken(token), pending.ID, active.ID)
				end(f, account, token, pending, active)
				f.Is(nodetest.ErrorOf(f.AcceptInvitation(invitation, nodetest.Password)), rolecall.ErrInvitationInvalid)
				f.Is(f.ResetPassword(reset, nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
			})
		})
	}
}

func TestALinkIsReturnedOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		pending, active := f.NewUser("pending"), f.NewMember("active")
		_, token := issuer(f, "users:read", "users:invite", "users:issue-links")
		c, inviteKey, resetKey := f.CallerByToken(token), nodetest.NewKey(), nodetest.NewKey()
		for _, replayed := range []bool{false, true} {
			invited, err := f.Directory.IssueInvitation(f.Context(), c, inviteKey, pending.ID)
			f.OK(err)
			sent, err := f.SignIn.IssuePasswordReset(f.Context(), c, resetKey, active.ID)
			f.OK(err)
			if invited.Replayed != replayed || (invited.Value.Token == "") != replayed || (sent.Value.Token == "") != replayed {
				t.Errorf("replayed %v: %+v and %+v", replayed, invited, sent)
			}
			if invited.Value.Delivery != rolecall.DeliverInResponse || sent.Value.Delivery != rolecall.DeliverInResponse {
				t.Errorf("the deliveries are %q and %q", invited.Value.Delivery, sent.Value.Delivery)
			}
			f.Clock.Advance(time.Minute)
		}
		for _, id := range []rolecall.UserID{pending.ID, active.ID} {
			if newest := f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(id)})[0]; !strings.Contains(string(newest.Values.After), `"delivery":"return"`) {
				t.Errorf("the event %s has %s", newest.Type, newest.Values.After)
			}
		}
	})
}

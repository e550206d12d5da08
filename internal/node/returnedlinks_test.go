package node_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
)

// issuer returns a service account with the permissions in a role, and a token of it.
func (f *fixture) issuer(permissions ...string) (rolecall.ServiceAccount, directory.APIToken) {
	f.Helper()
	account := f.account("Issuer of "+strings.Join(permissions, " "), f.role("May "+strings.Join(permissions, " "), permissions...).ID)
	return account, f.accountToken(account.ID, permissions...)
}

// issued returns the tokens of an invitation and of a password reset that the caller gets.
func (f *fixture) issued(c access.Caller, pending, active rolecall.UserID) (invitation, reset secret.Token) {
	f.Helper()
	f.expectMailed(func() {
		invited, err := f.Directory.IssueInvitation(f.Context(), c, newKey(), pending)
		f.ok(err)
		sent, err := f.SignIn.IssuePasswordReset(f.Context(), c, newKey(), active)
		f.ok(err)
		invitation, reset = invited.Value.Token, sent.Value.Token
	})
	return invitation, reset
}

func TestOnlyProgramsGetLinks(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		pending, active, owner := f.user("pending"), f.member("active"), f.member("owner-too")
		f.assign(owner.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		f.assign(active.ID, f.role("Shop", "shop/tills:close").ID, rolecall.AssignmentDraft{})
		operator := f.operatorInside()
		of := func(permissions ...string) access.Caller {
			_, token := f.issuer(permissions...)
			return f.ofProgram(token)
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
			{"a session of an owner", f.owner, denied, denied, denied},
			{"an API token of an owner", f.ofProgram(f.userToken(f.owner, "*:*", "*/*:*")), denied, denied, denied},
		} {
			for _, call := range []struct {
				user rolecall.UserID
				issue,
				want error
			}{
				{pending.ID, errorOf(f.Directory.IssueInvitation(f.Context(), c.caller, newKey(), pending.ID)), c.invite},
				{active.ID, errorOf(f.SignIn.IssuePasswordReset(f.Context(), c.caller, newKey(), active.ID)), c.reset},
				{owner.ID, errorOf(f.Directory.IssueInvitation(f.Context(), c.caller, newKey(), owner.ID)), c.ofOwner},
				{owner.ID, errorOf(f.SignIn.IssuePasswordReset(f.Context(), c.caller, newKey(), owner.ID)), c.ofOwner},
			} {
				if !errors.Is(call.issue, call.want) {
					t.Errorf("%s: %v, want %v", c.what, call.issue, call.want)
				}
			}
		}
		f.is(errorOf(f.SignIn.IssuePasswordReset(f.Context(), operator, newKey(), pending.ID)), rolecall.ErrUserPending)
	})
}

func TestAReturnedLinkWorksOnceAndOnlyInItsTenant(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		pending, active, other := f.user("pending"), f.member("active"), f.newTenant("other")
		_, token := f.issuer("users:read", "users:invite", "users:issue-links")
		mailed := f.invite(pending.ID)
		invitation, reset := f.issued(f.ofProgram(token), pending.ID, active.ID)
		f.is(errorOf(f.accept(mailed, password)), rolecall.ErrInvitationInvalid) // replaced
		elsewhere := f.attempt()
		elsewhere.Tenant, elsewhere.TenantName = other, other.Name
		f.is(errorOf(f.SignIn.AcceptInvitation(f.Context(), elsewhere, invitation, password)), rolecall.ErrInvitationInvalid)
		f.is(f.SignIn.ResetPassword(f.Context(), elsewhere, reset, anotherPassword), rolecall.ErrPasswordResetInvalid)
		f.ok(errorOf(f.accept(invitation, password)))
		f.ok(f.reset(reset, anotherPassword))
		f.is(errorOf(f.accept(invitation, password)), rolecall.ErrInvitationInvalid)
		f.is(f.reset(reset, anotherPassword), rolecall.ErrPasswordResetInvalid)
	})
}

func TestAReturnedLinkEndsWithItsMaker(t *testing.T) {
	for what, end := range map[string]func(*fixture, rolecall.ServiceAccount, directory.APIToken, ...rolecall.User){
		"the token is revoked": func(f *fixture, a rolecall.ServiceAccount, token directory.APIToken, _ ...rolecall.User) {
			f.ok(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(a.ID), token.ID))
		},
		"the account is suspended": func(f *fixture, a rolecall.ServiceAccount, _ directory.APIToken, _ ...rolecall.User) {
			f.ok(errorOf(f.Directory.SuspendServiceAccount(f.Context(), f.owner, a.ID, "")))
		},
		"the account loses the role": func(f *fixture, a rolecall.ServiceAccount, _ directory.APIToken, _ ...rolecall.User) {
			held, _, err := f.Directory.Assignments(f.Context(), f.owner, rolecall.HolderOf(a.ID))
			f.ok(err)
			f.ok(f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(a.ID), held[0].Role.ID))
		},
		"the users get more permissions than the account": func(f *fixture, _ rolecall.ServiceAccount, _ directory.APIToken, users ...rolecall.User) {
			for _, u := range users {
				f.assign(u.ID, f.role("Shop "+u.Name, "shop/tills:close").ID, rolecall.AssignmentDraft{})
			}
		},
		"the account is deleted": func(f *fixture, a rolecall.ServiceAccount, _ directory.APIToken, _ ...rolecall.User) {
			f.ok(f.Directory.DeleteServiceAccount(f.Context(), f.owner, a.ID, nil))
		},
	} {
		t.Run(what, func(t *testing.T) {
			onEachStore(t, func(f *fixture) {
				pending, active := f.user("pending"), f.member("active")
				account, token := f.issuer("users:read", "users:invite", "users:issue-links")
				invitation, reset := f.issued(f.ofProgram(token), pending.ID, active.ID)
				end(f, account, token, pending, active)
				f.is(errorOf(f.accept(invitation, password)), rolecall.ErrInvitationInvalid)
				f.is(f.reset(reset, anotherPassword), rolecall.ErrPasswordResetInvalid)
			})
		})
	}
}

func TestALinkIsReturnedOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		pending, active := f.user("pending"), f.member("active")
		_, token := f.issuer("users:read", "users:invite", "users:issue-links")
		c, inviteKey, resetKey := f.ofProgram(token), newKey(), newKey()
		for _, replayed := range []bool{false, true} {
			invited, err := f.Directory.IssueInvitation(f.Context(), c, inviteKey, pending.ID)
			f.ok(err)
			sent, err := f.SignIn.IssuePasswordReset(f.Context(), c, resetKey, active.ID)
			f.ok(err)
			if invited.Replayed != replayed || (invited.Value.Token == "") != replayed || (sent.Value.Token == "") != replayed {
				t.Errorf("replayed %v: %+v and %+v", replayed, invited, sent)
			}
			if invited.Value.Delivery != rolecall.DeliverInResponse || sent.Value.Delivery != rolecall.DeliverInResponse {
				t.Errorf("the deliveries are %q and %q", invited.Value.Delivery, sent.Value.Delivery)
			}
			f.clock.advance(time.Minute)
		}
		for _, id := range []rolecall.UserID{pending.ID, active.ID} {
			if newest := f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(id)})[0]; !strings.Contains(string(newest.Values.After), `"delivery":"return"`) {
				t.Errorf("the event %s has %s", newest.Type, newest.Values.After)
			}
		}
	})
}

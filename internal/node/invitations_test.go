package node_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
)

const anotherPassword = "another " + password

func TestAnInvitationActivatesAPendingUser(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.user("ada")
		presented := f.signIn("owner")
		token := f.invite(ada.ID)
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)
		f.clock.advance(time.Hour)
		in, err := f.SignIn.AcceptInvitation(f.Context(), f.attempt(presented.Token), token, password)
		f.ok(err)
		if u := in.Principal.User; u.ID != ada.ID || u.Status != rolecall.UserActive || u.UpdatedAt != f.clock.Now() {
			t.Errorf("who is signed in is %+v", u)
		}
		for _, node := range []*node.Node{f.Node, f.node()} {
			f.ok(errorOf(f.authenticate(node, in.Token)))
			f.is(errorOf(f.authenticate(node, presented.Token)), rolecall.ErrUnauthenticated)
		}
		f.ok(f.guess("192.0.2.7", "ada", password))
		want := []rolecall.EventType{rolecall.EventSignedIn, rolecall.EventSignedIn, rolecall.EventInvitationUsed, rolecall.EventUserInvited, rolecall.EventUserCreated}
		if got := f.eventTypes(ada.ID); !slices.Equal(got, want) {
			t.Errorf("the events are %v", got)
		}
	})
}

func TestAnInvitationOfAnActiveUserReplacesThePassword(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		old, token := f.signIn("ada").Token, f.invite(ada.ID)
		f.ok(errorOf(f.authenticate(f.Node, old)))
		in, err := f.accept(token, anotherPassword)
		f.ok(err)
		f.is(errorOf(f.authenticate(f.Node, old)), rolecall.ErrUnauthenticated)
		f.ok(errorOf(f.authenticate(f.Node, in.Token)))
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)
		f.ok(f.guess("192.0.2.7", "ada", anotherPassword))
	})
}

func TestAnInvitationIsAcceptedOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.user("ada")
		token := f.invite(ada.ID)
		nodes := []*node.Node{f.Node, f.node()}
		accepted := make([]error, 20)
		var running sync.WaitGroup
		for i := range accepted {
			running.Go(func() {
				_, accepted[i] = nodes[i%2].SignIn.AcceptInvitation(f.Context(), f.attempt(), token, password)
			})
		}
		running.Wait()
		won := 0
		for _, err := range accepted {
			if err == nil {
				won++
			} else if !errors.Is(err, rolecall.ErrInvitationInvalid) {
				t.Error(err)
			}
		}
		o, err := f.Directory.Overview(f.Context(), f.owner, ada.ID)
		f.ok(err)
		if won != 1 || o.Sessions.Count != 1 {
			t.Errorf("%d were let in, and there are %d sessions", won, o.Sessions.Count)
		}
		f.is(errorOf(f.accept(token, password)), rolecall.ErrInvitationInvalid)
	})
}

func TestInvitationsExpire(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, bob := f.user("ada"), f.user("bob")
		early, late, invited := f.invite(ada.ID), f.invite(bob.ID), f.clock.Now()
		f.clock.until(invited.Add(72*time.Hour) - 1)
		f.ok(errorOf(f.accept(early, password)))
		f.clock.advance(time.Microsecond)
		f.is(errorOf(f.accept(late, password)), rolecall.ErrInvitationInvalid)

		older := f.invite(bob.ID)
		newer := f.invite(bob.ID)
		f.is(errorOf(f.accept(older, password)), rolecall.ErrInvitationInvalid)
		f.ok(errorOf(f.accept(newer, password)))

		gone := f.user("gone")
		token := f.invite(gone.ID)
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, gone.ID, nil))
		f.is(errorOf(f.accept(token, password)), rolecall.ErrInvitationInvalid)
		f.is(errorOf(f.accept(secret.NewToken(), password)), rolecall.ErrInvitationInvalid)
	})
}

func TestASuspendedUserCannotAcceptAnInvitation(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.user("ada")
		token := f.invite(ada.ID)
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, ada.ID, "")))
		f.is(errorOf(f.accept(token, password)), rolecall.ErrUserSuspended)
		f.is(errorOf(f.Directory.InviteUser(f.Context(), f.owner, newKey(), ada.ID)), rolecall.ErrUserSuspended)
		resumed, err := f.Directory.ResumeUser(f.Context(), f.owner, ada.ID, "")
		f.ok(err)
		if resumed.Status != rolecall.UserPending {
			t.Errorf("without a password the resumed user is %s", resumed.Status)
		}

		f.tenant.Status = rolecall.TenantSuspended
		f.is(errorOf(f.accept(token, password)), rolecall.ErrTenantSuspended)
		f.is(errorOf(f.accept(secret.NewToken(), password)), rolecall.ErrInvitationInvalid)
		f.tenant.Status = rolecall.TenantActive
		for _, elsewhere := range []access.Anonymous{{TenantName: "nobody"}, {Tenant: f.newTenant("other"), TenantName: "other"}} {
			f.is(errorOf(f.SignIn.AcceptInvitation(f.Context(), elsewhere, token, password)), rolecall.ErrInvitationInvalid)
		}
		f.ok(errorOf(f.accept(token, password)))
	})
}

// refusedPasswords are passwords that Augusta Ada Lovelace of ada.lovelace@example.com
// may not choose, each with the code of the field error.
var refusedPasswords = map[string]string{
	"14 characters!":                    "length",
	strings.Repeat("p", 1025):           "length",
	"ADA.lovelace@example.com":          "personal",
	"Augusta Ada Lovelace":              "personal",
	"passwordpassword":                  "common",
	"\xff a password that is not UTF-8": "encoding",
}

// faultsOf returns the pointers and codes of an error's field errors.
func faultsOf(err error) (faults []string) {
	if e, ok := errors.AsType[*rolecall.Error](err); ok {
		for _, fault := range e.FieldErrors {
			faults = append(faults, fault.Pointer+" "+fault.Code)
		}
	}
	return faults
}

func TestAnInvitationRequiresAGoodPassword(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		created, err := f.Directory.CreateUser(f.Context(), f.owner, newKey(), rolecall.UserDraft{Email: "ada.lovelace@example.com", Name: "Augusta Ada Lovelace"})
		f.ok(err)
		token := f.invite(created.Value.ID)
		before := f.hashes.Hashed()
		for refused, code := range refusedPasswords {
			_, err := f.accept(token, refused)
			f.is(err, rolecall.ErrValidation)
			if got := faultsOf(err); !slices.Equal(got, []string{"/password " + code}) {
				t.Errorf("%.40q: the faults are %q, not %s", refused, got, code)
			}
		}
		if spent := f.hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent on refused passwords", spent)
		}
		f.ok(errorOf(f.accept(token, password)))
	})
}

func TestARepeatedInvitationIsMailedOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, key := f.user("ada"), newKey()
		first, err := f.Directory.InviteUser(f.Context(), f.owner, key, ada.ID)
		f.ok(err)
		f.clock.advance(time.Hour)
		again, err := f.node().Directory.InviteUser(f.Context(), f.owner, key, ada.ID)
		f.ok(err)
		if first.Replayed || first.Value.CreatedAt != start || first.Value.ExpiresAt != f.clock.Now().Add(71*time.Hour) {
			t.Errorf("the first answer is %+v", first)
		}
		if !again.Replayed || again.Value.UserID != ada.ID || again.Value.CreatedAt != start || again.Value.ExpiresAt != first.Value.ExpiresAt {
			t.Errorf("the repeat is %+v", again)
		}
		if got := f.eventTypes(ada.ID); len(got) != 2 {
			t.Errorf("the events are %v", got)
		}
		mails := f.mails()
		if len(mails) != 1 || mails[0].To != ada.Email || mails[0].ExpiresAt != first.Value.ExpiresAt {
			t.Fatalf("mailed: %+v", mails)
		}
		f.ok(errorOf(f.accept(secret.Token(mails[0].Token), password)))
	})
}

func TestInviteUserIsAuthorized(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		sales, _ := f.person("Sales")
		research, _ := f.person("Research")
		for _, c := range []struct {
			what   string
			caller access.Caller
			user   rolecall.UserID
			want   error
		}{
			{"without the permission", f.caller(holding("users:read")), sales.ID, rolecall.ErrPermissionDenied},
			{"within the reach", f.caller(holding("users:invite").within("sales")), sales.ID, nil},
			{"outside of it", f.caller(holding("users:invite").within("Sales")), research.ID, rolecall.ErrNotFound},
			{"outside of it, but seen", f.caller(holding("users:read"), holding("users:invite").within("Sales")), research.ID, rolecall.ErrPermissionDenied},
			{"somebody who is not there", f.owner, rolecall.NewID[rolecall.User](start), rolecall.ErrNotFound},
		} {
			if _, err := f.Directory.InviteUser(f.Context(), c.caller, newKey(), c.user); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", c.what, err)
			}
		}
	})
}

// In TestTheGrantorOfALinkIsAuthorizedAgainAtItsUse, a clerk invites one user (the guest), and
// requests another email address for a second user. Both links work only if the clerk still has
// the permissions when the links are used.
func TestTheGrantorOfALinkIsAuthorizedAgainAtItsUse(t *testing.T) {
	clerk := []held{holding("users:read", "users:invite", "users.email:update")}
	for _, c := range []struct {
		what   string
		change func(f *fixture, clerk access.Caller, guests ...rolecall.User)
		void   bool
		gone   bool // deleted with the clerk's sessions, so that the overview does not mention it
	}{
		{"nothing changes", func(*fixture, access.Caller, ...rolecall.User) {}, false, false},
		{"the guest gets a role that the clerk has too", func(f *fixture, _ access.Caller, guests ...rolecall.User) {
			reads := f.role("Reads", "users:read")
			for _, guest := range guests {
				f.assign(guest.ID, reads.ID, rolecall.AssignmentDraft{})
			}
		}, false, false},
		{"the guest becomes an owner", func(f *fixture, _ access.Caller, guests ...rolecall.User) {
			for _, guest := range guests {
				f.assign(guest.ID, f.ownerRole(), rolecall.AssignmentDraft{})
			}
		}, true, false},
		{"the clerk is suspended", func(f *fixture, clerk access.Caller, _ ...rolecall.User) {
			f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, clerk.User.ID, "")))
		}, true, true},
		{"the clerk is deleted", func(f *fixture, clerk access.Caller, _ ...rolecall.User) {
			f.ok(f.Directory.DeleteUser(f.Context(), f.owner, clerk.User.ID, nil))
		}, true, false},
		{"the clerk loses the role", func(f *fixture, clerk access.Caller, _ ...rolecall.User) {
			f.ok(f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(clerk.User.ID), clerk.Assignments[0].Role.ID))
		}, true, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			onEachStore(t, func(f *fixture) {
				clerk, guest, moves := f.caller(clerk...), f.user("guest"), f.user("moves")
				f.ok(errorOf(f.Directory.InviteUser(f.Context(), clerk, newKey(), guest.ID)))
				moved := f.emailLink(clerk, moves.ID, "moved")
				if c.change(f, clerk, guest, moves); f.voidInvitation(guest.ID) != (c.void && !c.gone) {
					t.Errorf("the overview says: %q", f.obstacles(guest.ID))
				}
				var invited, changed error
				if c.void {
					invited, changed = rolecall.ErrInvitationInvalid, rolecall.ErrEmailChangeInvalid
				}
				f.is(errorOf(f.accept(f.lastToken(rolecall.MailInvitation, "guest"), password)), invited)
				f.is(f.confirm(moved), changed)
			})
		})
	}
}

// TestAnInvitationIsMailedToTheCurrentAddress changes the address between the
// authorization and the insertion of the invitation.
func TestAnInvitationIsMailedToTheCurrentAddress(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.user("ada")
		node := f.across(func() {
			f.ok(f.SignIn.SetEmail(f.Context(), f.tenant.Name, address("ada"), address("lovelace")))
		})
		f.expectMailed(func() { f.ok(errorOf(node.Directory.InviteUser(f.Context(), f.owner, newKey(), ada.ID))) }, "email-changed ada", "invitation lovelace")
	})
}

func TestCreateUserWithInvitation(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		draft, key := rolecall.UserDraft{Email: address("ada"), Name: "Ada Lovelace", Invite: true}, newKey()
		created, err := f.Directory.CreateUser(f.Context(), f.owner, key, draft)
		f.ok(err)
		again, err := f.Directory.CreateUser(f.Context(), f.owner, key, draft)
		f.ok(err)
		if !again.Replayed || again.Value.ID != created.Value.ID || len(f.mails()) != 1 {
			t.Errorf("the repeat is %+v, and %d mails wait", again, len(f.mails()))
		}
		if got := f.eventTypes(created.Value.ID); len(got) != 2 || !slices.Contains(got, rolecall.EventUserInvited) {
			t.Errorf("the events are %v", got)
		}
		f.ok(errorOf(f.accept(f.lastToken(rolecall.MailInvitation, "ada"), password)))

		draft.Email = address("eve")
		f.is(errorOf(f.Directory.CreateUser(f.Context(), f.caller(holding("users:create")), newKey(), draft)), rolecall.ErrPermissionDenied)
		sales := f.caller(holding("users:create"), holding("users:invite").within("Sales"))
		f.is(errorOf(f.Directory.CreateUser(f.Context(), sales, newKey(), draft)), rolecall.ErrPermissionDenied)
		draft.Department = new("sales")
		f.expectMailed(func() { f.ok(errorOf(f.Directory.CreateUser(f.Context(), sales, newKey(), draft))) }, "invitation eve")
	})
}

func TestWithdrawnInvitationsAreRefused(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.user("ada")
		token := f.invite(ada.ID)
		f.is(f.Directory.WithdrawInvitation(f.Context(), f.caller(holding("users:read")), ada.ID), rolecall.ErrPermissionDenied)
		for range 2 {
			f.ok(f.Directory.WithdrawInvitation(f.Context(), f.owner, ada.ID))
		}
		f.is(errorOf(f.accept(token, password)), rolecall.ErrInvitationInvalid)
		if got := f.eventTypes(ada.ID); !slices.Equal(got, []rolecall.EventType{rolecall.EventInvitationWithdrawn, rolecall.EventUserInvited, rolecall.EventUserCreated}) {
			t.Errorf("the events are %v", got)
		}
		page, err := f.Directory.Invitations(f.Context(), f.owner, directory.InvitationListing{Limit: 10})
		f.ok(err)
		if len(page.Items) != 0 {
			t.Errorf("listed: %+v", page.Items)
		}
	})
}

package signin_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
)

func TestAnInvitationActivatesAPendingUser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewUser("ada")
		presented := f.LogIn("owner")
		token := f.Invite(ada.ID)
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.Clock.Advance(time.Hour)
		in, err := f.SignIn.AcceptInvitation(f.Context(), f.Attempt(presented.Token), token, nodetest.Password)
		f.OK(err)
		if u := in.Principal.User; u.ID != ada.ID || u.Status != rolecall.UserActive || u.UpdatedAt != f.Clock.Now() {
			t.Errorf("who is signed in is %+v", u)
		}
		for _, node := range []*node.Node{f.Node, f.NewNode()} {
			f.OK(nodetest.ErrorOf(f.Authenticate(node, in.Token)))
			f.Is(nodetest.ErrorOf(f.Authenticate(node, presented.Token)), rolecall.ErrUnauthenticated)
		}
		f.OK(f.Guess("192.0.2.7", "ada", nodetest.Password))
		want := []rolecall.EventType{rolecall.EventSignedIn, rolecall.EventSignedIn, rolecall.EventInvitationUsed, rolecall.EventUserInvited, rolecall.EventUserCreated}
		if got := f.EventTypes(ada.ID); !slices.Equal(got, want) {
			t.Errorf("the events are %v", got)
		}
	})
}

func TestAnInvitationOfAnActiveUserReplacesThePassword(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		old, token := f.LogIn("ada").Token, f.Invite(ada.ID)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, old)))
		in, err := f.AcceptInvitation(token, nodetest.AnotherPassword)
		f.OK(err)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, old)), rolecall.ErrUnauthenticated)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.OK(f.Guess("192.0.2.7", "ada", nodetest.AnotherPassword))
	})
}

func TestAnInvitationIsAcceptedOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewUser("ada")
		token := f.Invite(ada.ID)
		nodes := []*node.Node{f.Node, f.NewNode()}
		accepted := make([]error, 20)
		var running sync.WaitGroup
		for i := range accepted {
			running.Go(func() {
				_, accepted[i] = nodes[i%2].SignIn.AcceptInvitation(f.Context(), f.Attempt(), token, nodetest.Password)
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
		o, err := f.Directory.Overview(f.Context(), f.Owner, ada.ID)
		f.OK(err)
		if won != 1 || o.Sessions.Count != 1 {
			t.Errorf("%d were let in, and there are %d sessions", won, o.Sessions.Count)
		}
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password)), rolecall.ErrInvitationInvalid)
	})
}

func TestInvitationsExpire(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, bob := f.NewUser("ada"), f.NewUser("bob")
		early, late, invited := f.Invite(ada.ID), f.Invite(bob.ID), f.Clock.Now()
		f.Clock.Until(invited.Add(72*time.Hour) - 1)
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(early, nodetest.Password)))
		f.Clock.Advance(time.Microsecond)
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(late, nodetest.Password)), rolecall.ErrInvitationInvalid)

		older := f.Invite(bob.ID)
		newer := f.Invite(bob.ID)
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(older, nodetest.Password)), rolecall.ErrInvitationInvalid)
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(newer, nodetest.Password)))

		gone := f.NewUser("gone")
		token := f.Invite(gone.ID)
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, gone.ID, nil))
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password)), rolecall.ErrInvitationInvalid)
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(secret.NewToken(), nodetest.Password)), rolecall.ErrInvitationInvalid)
	})
}

func TestASuspendedUserCannotAcceptAnInvitation(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewUser("ada")
		token := f.Invite(ada.ID)
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, ada.ID, "")))
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password)), rolecall.ErrUserSuspended)
		f.Is(nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), f.Owner, nodetest.NewKey(), ada.ID)), rolecall.ErrUserSuspended)
		resumed, err := f.Directory.ResumeUser(f.Context(), f.Owner, ada.ID, "")
		f.OK(err)
		if resumed.Status != rolecall.UserPending {
			t.Errorf("without a password the resumed user is %s", resumed.Status)
		}

		f.Tenant.Status = rolecall.TenantSuspended
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password)), rolecall.ErrTenantSuspended)
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(secret.NewToken(), nodetest.Password)), rolecall.ErrInvitationInvalid)
		f.Tenant.Status = rolecall.TenantActive
		for _, elsewhere := range []access.Anonymous{{TenantName: "nobody"}, {Tenant: f.NewTenant("other"), TenantName: "other"}} {
			f.Is(nodetest.ErrorOf(f.SignIn.AcceptInvitation(f.Context(), elsewhere, token, nodetest.Password)), rolecall.ErrInvitationInvalid)
		}
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password)))
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

func TestAnInvitationRequiresAGoodPassword(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		created, err := f.Directory.CreateUser(f.Context(), f.Owner, nodetest.NewKey(), rolecall.UserDraft{Email: "ada.lovelace@example.com", Name: "Augusta Ada Lovelace"})
		f.OK(err)
		token := f.Invite(created.Value.ID)
		before := f.Hashes.Hashed()
		for refused, code := range refusedPasswords {
			_, err := f.AcceptInvitation(token, refused)
			f.Is(err, rolecall.ErrValidation)
			if got := nodetest.FaultsOf(err); !slices.Equal(got, []string{"/password " + code}) {
				t.Errorf("%.40q: the faults are %q, not %s", refused, got, code)
			}
		}
		if spent := f.Hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent on refused passwords", spent)
		}
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password)))
	})
}

// In TestTheGrantorOfALinkIsAuthorizedAgainAtItsUse, a clerk invites one user (the guest), and
// requests another email address for a second user. Both links work only if the clerk still has
// the permissions when the links are used.
func TestTheGrantorOfALinkIsAuthorizedAgainAtItsUse(t *testing.T) {
	clerk := []nodetest.Held{nodetest.Holding("users:read", "users:invite", "users.email:update")}
	for _, c := range []struct {
		what   string
		change func(f *nodetest.Fixture, clerk access.Caller, guests ...rolecall.User)
		void   bool
		gone   bool // deleted with the clerk's sessions, so that the overview does not mention it
	}{
		{"nothing changes", func(*nodetest.Fixture, access.Caller, ...rolecall.User) {}, false, false},
		{"the guest gets a role that the clerk has too", func(f *nodetest.Fixture, _ access.Caller, guests ...rolecall.User) {
			reads := f.NewRole("Reads", "users:read")
			for _, guest := range guests {
				f.Assign(guest.ID, reads.ID, rolecall.AssignmentDraft{})
			}
		}, false, false},
		{"the guest becomes an owner", func(f *nodetest.Fixture, _ access.Caller, guests ...rolecall.User) {
			for _, guest := range guests {
				f.Assign(guest.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
			}
		}, true, false},
		{"the clerk is suspended", func(f *nodetest.Fixture, clerk access.Caller, _ ...rolecall.User) {
			f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, clerk.User.ID, "")))
		}, true, true},
		{"the clerk is deleted", func(f *nodetest.Fixture, clerk access.Caller, _ ...rolecall.User) {
			f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, clerk.User.ID, nil))
		}, true, false},
		{"the clerk loses the role", func(f *nodetest.Fixture, clerk access.Caller, _ ...rolecall.User) {
			f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(clerk.User.ID), clerk.Assignments[0].Role.ID))
		}, true, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
				clerk, guest, moves := f.CallerWith(clerk...), f.NewUser("guest"), f.NewUser("moves")
				f.OK(nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), clerk, nodetest.NewKey(), guest.ID)))
				moved := f.EmailLink(clerk, moves.ID, "moved")
				if c.change(f, clerk, guest, moves); voidInvitation(f, guest.ID) != (c.void && !c.gone) {
					t.Errorf("the overview says: %q", f.Obstacles(guest.ID))
				}
				var invited, changed error
				if c.void {
					invited, changed = rolecall.ErrInvitationInvalid, rolecall.ErrEmailChangeInvalid
				}
				f.Is(nodetest.ErrorOf(f.AcceptInvitation(f.LastToken(rolecall.MailInvitation, "guest"), nodetest.Password)), invited)
				f.Is(f.ConfirmEmailChange(moved), changed)
			})
		})
	}
}

// TestAnInvitationIsMailedToTheCurrentAddress changes the address between the
// authorization and the insertion of the invitation.
func TestAnInvitationIsMailedToTheCurrentAddress(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewUser("ada")
		node := across(f, func() {
			f.OK(f.SignIn.SetEmail(f.Context(), f.Tenant.Name, nodetest.Address("ada"), nodetest.Address("lovelace")))
		})
		f.ExpectMailed(func() {
			f.OK(nodetest.ErrorOf(node.Directory.InviteUser(f.Context(), f.Owner, nodetest.NewKey(), ada.ID)))
		}, "email-changed ada", "invitation lovelace")
	})
}

// voidInvitation reports whether the owner sees that the user's invitation is void,
// because its author could no longer create it.
func voidInvitation(f *nodetest.Fixture, id rolecall.UserID) bool {
	f.Helper()
	return slices.Contains(f.Obstacles(id), "invitation-void UsersController_inviteUser")
}

package signin_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

func TestAnEmailChangeIsConfirmedByALinkToTheNewAddress(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		this, other, foreign := f.LogIn("ada"), f.LogIn("ada"), f.LogIn("owner")
		token := f.EmailLink(f.CallerOf(this), ada.ID, "lovelace")
		f.OK(f.Guess("192.0.2.7", "ada", nodetest.Password)) // the address has not changed yet
		f.Clock.Advance(time.Minute)

		f.ExpectMailed(func() { f.OK(f.ConfirmEmailChange(token, foreign.Token, this.Token)) }, "email-changed ada")
		for _, node := range []*node.Node{f.Node, f.NewNode()} {
			p, err := f.Authenticate(node, this.Token)
			f.OK(err)
			if p.User.Email != nodetest.Address("lovelace") || p.User.Version != ada.Version+2 || p.User.UpdatedAt != f.Clock.Now() {
				t.Errorf("the user is %+v", p.User)
			}
			f.Is(nodetest.ErrorOf(f.Authenticate(node, other.Token)), rolecall.ErrUnauthenticated)
			f.OK(nodetest.ErrorOf(f.Authenticate(node, foreign.Token)))
		}
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.OK(f.Guess("192.0.2.7", "lovelace", nodetest.Password))
		f.Is(f.ConfirmEmailChange(token), rolecall.ErrEmailChangeInvalid)

		var changed rolecall.Event
		for _, e := range f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(ada.ID)}) {
			if e.Type == rolecall.EventUserUpdated {
				changed = e
			}
		}
		before, after := f.Shown(changed)
		if !slices.Equal(changed.Members, []string{"email"}) || changed.Actor.ID != ada.ID || before != "email" || after != "email" {
			t.Errorf("the event is %+v of %s and %s", changed, before, after)
		}
	})
}

func TestAnEmailChangeWithoutASessionEndsAllSessions(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		in := f.LogIn("ada")
		f.OK(f.ConfirmEmailChange(f.EmailLink(f.CallerOf(in), ada.ID, "lovelace")))
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
	})
}

// TestChangingTheCaseOfAnAddressSendsNoNotice changes the spelling of addresses. No
// notification is sent, because the old spelling still receives mail.
func TestChangingTheCaseOfAnAddressSendsNoNotice(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, bob := f.NewMember("ada"), f.NewMember("bob")
		sessions := []signin.SignIn{f.LogIn("ada"), f.LogIn("bob")}
		link := f.EmailLink(f.CallerOf(sessions[0]), ada.ID, "ADA")
		f.ExpectMailed(func() {
			f.OK(f.ConfirmEmailChange(link))
			f.OK(f.SignIn.SetEmail(f.Context(), f.Tenant.Name, bob.Email, nodetest.Address("BOB")))
		})
		for id, email := range map[rolecall.UserID]string{ada.ID: nodetest.Address("ADA"), bob.ID: nodetest.Address("BOB")} {
			if user, err := f.Directory.User(f.Context(), f.Owner, id); err != nil || user.Email != email {
				t.Errorf("the address is %q, not %q: %v", user.Email, email, err)
			}
		}
		for _, in := range sessions {
			f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
		}
	})
}

// TestATakenAddressIsRequestedLikeAFreeOne compares the responses and the database work
// of two requests: for an address that another user has, and for a free address.
func TestATakenAddressIsRequestedLikeAFreeOne(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		call := f.CallerOf(f.LogIn("ada"))
		f.NewUser("bob")
		ask := func(email string) (answer idempotency.Created[rolecall.EmailChange], asked []string) {
			asked = f.DB.During(func() {
				var err error
				answer, err = f.SignIn.RequestEmailChange(f.Context(), call, nodetest.NewKey(), ada.ID, email)
				f.OK(err)
			})
			return answer, asked
		}
		ask(nodetest.Address("warm-up")) // counts the user's keys
		var freeAnswer, takenAnswer idempotency.Created[rolecall.EmailChange]
		var freeAsked, takenAsked []string
		f.ExpectMailed(func() { freeAnswer, freeAsked = ask(nodetest.Address("free")) }, "email-change free", "email-change-requested ada")
		f.ExpectMailed(func() { takenAnswer, takenAsked = ask("BOB@example.com") }, "nothing", "email-change-requested ada")
		if freeAnswer != takenAnswer || !slices.Equal(freeAsked, takenAsked) {
			t.Errorf("a free address is answered %+v after %q, one that is taken %+v after %q", freeAnswer, freeAsked, takenAnswer, takenAsked)
		}
		if want := []string{"update", "count in 1 buckets", "user by address", "delete tokens", "insert token", "mail", "count in 1 buckets", "mail"}; !slices.Equal(freeAsked, want) {
			t.Errorf("the work is %q, not %q", freeAsked, want)
		}
		f.Is(f.ConfirmEmailChange(f.LastToken(rolecall.MailEmailChange, "free")), rolecall.ErrEmailChangeInvalid) // a newer link replaced it
	})
}

func TestAnAddressTakenBeforeTheConfirmationIsRefused(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		in := f.LogIn("ada")
		token := f.EmailLink(f.CallerOf(in), ada.ID, "wanted")
		holder := f.NewUser("wanted")
		f.ExpectMailed(func() { f.Is(f.ConfirmEmailChange(token), rolecall.ErrEmailTaken) })
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, holder.ID, nil))
		f.OK(f.ConfirmEmailChange(token))
	})
}

func TestTheCaseOfAnAddressCanBeChanged(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		created, err := f.SignIn.RequestEmailChange(f.Context(), f.CallerOf(f.LogIn("ada")), nodetest.NewKey(), ada.ID, "Ada@Example.com")
		f.OK(err)
		if want := f.Clock.Now().Add(rolecall.EmailChangeLifetime); created.Value != (rolecall.EmailChange{UserID: ada.ID, ExpiresAt: want}) {
			t.Errorf("the answer is %+v", created)
		}
		mails := f.Mails()
		f.OK(f.ConfirmEmailChange(secret.Token(mails[len(mails)-1].Token)))
		user, err := f.Directory.User(f.Context(), f.Owner, ada.ID)
		f.OK(err)
		if user.Email != "Ada@Example.com" {
			t.Errorf("the address is %s", user.Email)
		}
	})
}

func TestEmailChangesExpire(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.SetSettings(rolecall.TenantSettings{SessionIdle: new(rolecall.Seconds(30 * 86400)), SessionAbsolute: new(rolecall.Seconds(30 * 86400))})
		ada, bob := f.NewMember("ada"), f.NewMember("bob")
		adas, bobs := f.CallerOf(f.LogIn("ada")), f.CallerOf(f.LogIn("bob"))
		early, late := f.EmailLink(adas, ada.ID, "early"), f.EmailLink(bobs, bob.ID, "late")
		f.Clock.Advance(24*time.Hour - time.Microsecond)
		f.OK(f.ConfirmEmailChange(early))
		f.Clock.Advance(time.Microsecond)
		f.Is(f.ConfirmEmailChange(late), rolecall.ErrEmailChangeInvalid)

		older, newer := f.EmailLink(bobs, bob.ID, "older"), f.EmailLink(bobs, bob.ID, "newer")
		f.Is(f.ConfirmEmailChange(older), rolecall.ErrEmailChangeInvalid)
		for _, elsewhere := range []access.Anonymous{{TenantName: "nobody"}, {Tenant: f.NewTenant("other"), TenantName: "other"}} {
			f.Is(f.SignIn.ChangeEmail(f.Context(), elsewhere, newer), rolecall.ErrEmailChangeInvalid)
		}
		f.Is(f.ResetPassword(newer, nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(newer, nodetest.AnotherPassword)), rolecall.ErrInvitationInvalid)
		f.Is(f.ConfirmEmailChange(f.Invite(bob.ID)), rolecall.ErrEmailChangeInvalid)
		f.Is(f.ConfirmEmailChange(secret.NewToken()), rolecall.ErrEmailChangeInvalid)

		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, bob.ID, "")))
		f.Is(f.ConfirmEmailChange(newer), rolecall.ErrEmailChangeInvalid)
		f.Is(f.RequestEmailChange(f.Owner, bob.ID, "suspended"), rolecall.ErrUserSuspended)
		f.OK(nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, bob.ID, "")))
		newer = f.EmailLink(f.Owner, bob.ID, "newest")
		f.Tenant.Status = rolecall.TenantSuspended
		f.Is(f.ConfirmEmailChange(newer), rolecall.ErrTenantSuspended)
		f.Is(f.ConfirmEmailChange(secret.NewToken()), rolecall.ErrEmailChangeInvalid)
		f.Tenant.Status = rolecall.TenantActive
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, bob.ID, nil))
		f.Is(f.ConfirmEmailChange(newer), rolecall.ErrEmailChangeInvalid)
	})
}

func TestAnEmailChangeIsConfirmedOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		token := f.EmailLink(f.CallerOf(f.LogIn("ada")), ada.ID, "lovelace")
		nodes := []*node.Node{f.Node, f.NewNode()}
		done := make([]error, 20)
		var running sync.WaitGroup
		mailed := f.Mailed(func() {
			for i := range done {
				running.Go(func() { done[i] = nodes[i%2].SignIn.ChangeEmail(f.Context(), f.Attempt(), token) })
			}
			running.Wait()
		})
		won := 0
		for _, err := range done {
			if err == nil {
				won++
			} else {
				f.Is(err, rolecall.ErrEmailChangeInvalid)
			}
		}
		if won != 1 || !slices.Equal(mailed, []string{"email-changed ada"}) {
			t.Errorf("%d confirmed it, and mailed were %q", won, mailed)
		}
	})
}

func TestChangeEmailIsAuthorized(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		sales, held := f.Person("Sales")
		research, _ := f.Person("Research")
		auditor, _ := f.Person("Sales", nodetest.Holding("events:read"))
		program := f.CallerByToken(f.NewUserToken(f.CallerWith(nodetest.Holding("users.email:update")), "users.email:update"))
		for _, c := range []struct {
			what   string
			caller access.Caller
			user   rolecall.UserID
			want   error
		}{
			{"oneself", f.CallerAs(sales, held), sales.ID, nil},
			{"oneself, by a program", program, program.User.ID, rolecall.ErrSessionRequired},
			{"another, by a program", program, sales.ID, nil},
			{"without the permission", f.CallerWith(nodetest.Holding("users:read", "users.name:update", "users:invite")), sales.ID, rolecall.ErrPermissionDenied},
			{"within the reach", f.CallerWith(nodetest.Holding("users.email:update").Within("sales")), sales.ID, nil},
			{"outside of it", f.CallerWith(nodetest.Holding("users.email:update").Within("Sales")), research.ID, rolecall.ErrNotFound},
			{"outside of it, but seen", f.CallerWith(nodetest.Holding("users:read"), nodetest.Holding("users.email:update").Within("Sales")), research.ID, rolecall.ErrPermissionDenied},
			{"of who holds more", f.CallerWith(nodetest.Holding("users.email:update")), auditor.ID, rolecall.ErrBeyondOwnPermissions},
			{"of who holds what can be handed on", f.CallerWith(nodetest.Holding("users.email:update"), nodetest.Granting("events:read")), auditor.ID, nil},
			{"somebody who is not there", f.Owner, rolecall.NewID[rolecall.User](nodetest.Start), rolecall.ErrNotFound},
		} {
			name := fmt.Sprintf("new-%d", nodetest.Serial.Add(1))
			var err error
			mailed := f.Mailed(func() { err = f.RequestEmailChange(c.caller, c.user, name) })
			if !errors.Is(err, c.want) || (len(mailed) == 2) != (c.want == nil) {
				t.Errorf("%s: %v, and mailed were %q", c.what, err, mailed)
			}
		}
		pending := f.NewUser("pending")
		f.OK(f.ConfirmEmailChange(f.EmailLink(f.Owner, pending.ID, "corrected")))
		if user, err := f.Directory.User(f.Context(), f.Owner, pending.ID); err != nil || user.Email != nodetest.Address("corrected") || user.Status != rolecall.UserPending {
			t.Errorf("the pending user is %+v, %v", user, err)
		}
	})
}

func TestAnOwnEmailChangeIsValidAfterNewAssignments(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		clerk := f.CallerWith(nodetest.Holding("users:read", "users.email:update"))
		theirs := f.EmailLink(clerk, ada.ID, "theirs")
		own := f.EmailLink(f.CallerOf(f.LogIn("ada")), ada.ID, "own")
		f.Is(f.ConfirmEmailChange(theirs), rolecall.ErrEmailChangeInvalid) // a newer link replaced it
		f.Assign(ada.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		f.OK(f.ConfirmEmailChange(own))
	})
}

// TestAnEndedSessionCannotChangeTheAddress requests an email change in a stolen session, and
// then revokes the session.
func TestAnEndedSessionCannotChangeTheAddress(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i, c := range []struct {
			what string
			act  func(ada rolecall.User, in signin.SignIn) error
		}{
			{"all sessions end", func(ada rolecall.User, _ signin.SignIn) error {
				return f.SignIn.EndUserSessions(f.Context(), f.Owner, ada.ID)
			}},
			{"suspended", func(ada rolecall.User, _ signin.SignIn) error {
				if _, err := f.Directory.SuspendUser(f.Context(), f.Owner, ada.ID, ""); err != nil {
					return err
				}
				return nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, ada.ID, ""))
			}},
			{"a second factor is added", func(_ rolecall.User, in signin.SignIn) error {
				f.Enrol(f.CallerOf(in))
				return nil
			}},
		} {
			name := fmt.Sprintf("ada-%d", i)
			ada := f.NewMember(name)
			thief, in := f.LogIn(name), f.LogIn(name)
			token, reset := f.EmailLink(f.CallerOf(thief), ada.ID, "thief-"+name), f.ResetLink(name)
			f.OK(c.act(ada, in))
			if err := f.ConfirmEmailChange(token); !errors.Is(err, rolecall.ErrEmailChangeInvalid) {
				t.Errorf("%s: the thief's address counts: %v", c.what, err)
			}
			f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, thief.Token)), rolecall.ErrUnauthenticated)
			f.OK(f.ResetPassword(reset, nodetest.AnotherPassword)) // it was sent to the user's address
		}
	})
}

func TestTenEmailChangesPerUserAndHourAreAllowed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, key := f.NewMember("ada"), nodetest.NewKey()
		call := f.CallerOf(f.LogIn("ada"))
		first, err := f.SignIn.RequestEmailChange(f.Context(), call, key, ada.ID, nodetest.Address("first"))
		f.OK(err)
		for i := range 9 {
			f.OK(f.RequestEmailChange(call, ada.ID, fmt.Sprintf("new-%d", i)))
		}
		f.Clock.Advance(time.Minute)
		f.ExpectMailed(func() {
			err := f.RequestEmailChange(call, ada.ID, "one-more")
			f.Is(err, rolecall.ErrTooManyAttempts)
			if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 59*time.Minute {
				t.Errorf("one is told to wait %v", err)
			}
			again, err := f.SignIn.RequestEmailChange(f.Context(), call, key, ada.ID, nodetest.Address("first"))
			f.OK(err)
			if !again.Replayed || again.Value != first.Value {
				t.Errorf("the repeat is %+v", again)
			}
		})
		f.OK(f.RequestEmailChange(f.Owner, ada.ID, "by-the-owner"))
		f.Clock.Advance(59 * time.Minute)
		f.OK(f.RequestEmailChange(call, ada.ID, "one-more"))
	})
}

func TestAnEmailChangeRequiresAValidAddress(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		call := f.CallerOf(f.LogIn("ada"))
		for _, email := range []string{"", "ada", "new@example.com\r\nBcc: eve@example.com", "New <new@example.com>", "new@example.com,eve@example.com", "new@example.com\n", "new@exam\x00ple.com", "new@[192.0.2.1]"} {
			f.ExpectMailed(func() {
				_, err := f.SignIn.RequestEmailChange(f.Context(), call, nodetest.NewKey(), ada.ID, email)
				if f.Is(err, rolecall.ErrValidation); len(nodetest.FaultsOf(err)) != 1 {
					t.Errorf("%q: %v", email, err)
				}
			})
		}
	})
}

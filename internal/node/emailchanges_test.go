package node_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// emailLink requests a new address for a user and returns the token that is mailed to it.
// It expects a notification to the old address, unless the user is pending or the two
// addresses differ only in the case of letters.
func (f *fixture) emailLink(c access.Caller, id rolecall.UserID, name string) secret.Token {
	f.Helper()
	user, err := f.Directory.User(f.Context(), f.owner, id)
	f.ok(err)
	want := []string{"email-change " + name}
	if old := strings.TrimSuffix(user.Email, "@example.com"); user.Status != rolecall.UserPending && !strings.EqualFold(old, name) {
		want = append(want, "email-change-requested "+old)
	}
	f.expectMailed(func() { f.ok(f.requestEmailChange(c, id, name)) }, want...)
	return f.lastToken(rolecall.MailEmailChange, name)
}

func (f *fixture) requestEmailChange(c access.Caller, id rolecall.UserID, name string) error {
	return errorOf(f.SignIn.RequestEmailChange(f.Context(), c, newKey(), id, address(name)))
}

// confirm uses the link that was mailed to the new address. The browser sends the session
// tokens.
func (f *fixture) confirm(token secret.Token, sessions ...secret.Token) error {
	return f.SignIn.ChangeEmail(f.Context(), f.attempt(sessions...), token)
}

func TestAnEmailChangeIsConfirmedByALinkToTheNewAddress(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		this, other, foreign := f.signIn("ada"), f.signIn("ada"), f.signIn("owner")
		token := f.emailLink(f.call(this), ada.ID, "lovelace")
		f.ok(f.guess("192.0.2.7", "ada", password)) // the address has not changed yet
		f.clock.advance(time.Minute)

		f.expectMailed(func() { f.ok(f.confirm(token, foreign.Token, this.Token)) }, "email-changed ada")
		for _, node := range []*node.Node{f.Node, f.node()} {
			p, err := f.authenticate(node, this.Token)
			f.ok(err)
			if p.User.Email != address("lovelace") || p.User.Version != ada.Version+2 || p.User.UpdatedAt != f.clock.Now() {
				t.Errorf("the user is %+v", p.User)
			}
			f.is(errorOf(f.authenticate(node, other.Token)), rolecall.ErrUnauthenticated)
			f.ok(errorOf(f.authenticate(node, foreign.Token)))
		}
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)
		f.ok(f.guess("192.0.2.7", "lovelace", password))
		f.is(f.confirm(token), rolecall.ErrEmailChangeInvalid)

		var changed rolecall.Event
		for _, e := range f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(ada.ID)}) {
			if e.Type == rolecall.EventUserUpdated {
				changed = e
			}
		}
		before, after := f.shown(changed)
		if !slices.Equal(changed.Members, []string{"email"}) || changed.Actor.ID != ada.ID || before != "email" || after != "email" {
			t.Errorf("the event is %+v of %s and %s", changed, before, after)
		}
	})
}

func TestAnEmailChangeWithoutASessionEndsAllSessions(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		in := f.signIn("ada")
		f.ok(f.confirm(f.emailLink(f.call(in), ada.ID, "lovelace")))
		f.is(errorOf(f.authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
	})
}

// TestChangingTheCaseOfAnAddressSendsNoNotice changes the spelling of addresses. No
// notification is sent, because the old spelling still receives mail.
func TestChangingTheCaseOfAnAddressSendsNoNotice(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, bob := f.member("ada"), f.member("bob")
		sessions := []signin.SignIn{f.signIn("ada"), f.signIn("bob")}
		link := f.emailLink(f.call(sessions[0]), ada.ID, "ADA")
		f.expectMailed(func() {
			f.ok(f.confirm(link))
			f.ok(f.SignIn.SetEmail(f.Context(), f.tenant.Name, bob.Email, address("BOB")))
		})
		for id, email := range map[rolecall.UserID]string{ada.ID: address("ADA"), bob.ID: address("BOB")} {
			if user, err := f.Directory.User(f.Context(), f.owner, id); err != nil || user.Email != email {
				t.Errorf("the address is %q, not %q: %v", user.Email, email, err)
			}
		}
		for _, in := range sessions {
			f.is(errorOf(f.authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
		}
	})
}

// TestATakenAddressIsRequestedLikeAFreeOne compares the responses and the database work
// of two requests: for an address that another user has, and for a free address.
func TestATakenAddressIsRequestedLikeAFreeOne(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		call := f.call(f.signIn("ada"))
		f.user("bob")
		ask := func(email string) (answer idempotency.Created[rolecall.EmailChange], asked []string) {
			asked = f.db.during(func() {
				var err error
				answer, err = f.SignIn.RequestEmailChange(f.Context(), call, newKey(), ada.ID, email)
				f.ok(err)
			})
			return answer, asked
		}
		ask(address("warm-up")) // counts the user's keys
		var freeAnswer, takenAnswer idempotency.Created[rolecall.EmailChange]
		var freeAsked, takenAsked []string
		f.expectMailed(func() { freeAnswer, freeAsked = ask(address("free")) }, "email-change free", "email-change-requested ada")
		f.expectMailed(func() { takenAnswer, takenAsked = ask("BOB@example.com") }, "nothing", "email-change-requested ada")
		if freeAnswer != takenAnswer || !slices.Equal(freeAsked, takenAsked) {
			t.Errorf("a free address is answered %+v after %q, one that is taken %+v after %q", freeAnswer, freeAsked, takenAnswer, takenAsked)
		}
		if want := []string{"update", "count in 1 buckets", "user by address", "delete tokens", "insert token", "mail", "count in 1 buckets", "mail"}; !slices.Equal(freeAsked, want) {
			t.Errorf("the work is %q, not %q", freeAsked, want)
		}
		f.is(f.confirm(f.lastToken(rolecall.MailEmailChange, "free")), rolecall.ErrEmailChangeInvalid) // a newer link replaced it
	})
}

func TestAnAddressTakenBeforeTheConfirmationIsRefused(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		in := f.signIn("ada")
		token := f.emailLink(f.call(in), ada.ID, "wanted")
		holder := f.user("wanted")
		f.expectMailed(func() { f.is(f.confirm(token), rolecall.ErrEmailTaken) })
		f.ok(errorOf(f.authenticate(f.Node, in.Token)))
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, holder.ID, nil))
		f.ok(f.confirm(token))
	})
}

func TestTheCaseOfAnAddressCanBeChanged(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		created, err := f.SignIn.RequestEmailChange(f.Context(), f.call(f.signIn("ada")), newKey(), ada.ID, "Ada@Example.com")
		f.ok(err)
		if want := f.clock.Now().Add(rolecall.EmailChangeLifetime); created.Value != (rolecall.EmailChange{UserID: ada.ID, ExpiresAt: want}) {
			t.Errorf("the answer is %+v", created)
		}
		mails := f.mails()
		f.ok(f.confirm(secret.Token(mails[len(mails)-1].Token)))
		user, err := f.Directory.User(f.Context(), f.owner, ada.ID)
		f.ok(err)
		if user.Email != "Ada@Example.com" {
			t.Errorf("the address is %s", user.Email)
		}
	})
}

func TestEmailChangesExpire(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.settings(rolecall.TenantSettings{SessionIdle: new(rolecall.Seconds(30 * 86400)), SessionAbsolute: new(rolecall.Seconds(30 * 86400))})
		ada, bob := f.member("ada"), f.member("bob")
		adas, bobs := f.call(f.signIn("ada")), f.call(f.signIn("bob"))
		early, late := f.emailLink(adas, ada.ID, "early"), f.emailLink(bobs, bob.ID, "late")
		f.clock.advance(24*time.Hour - time.Microsecond)
		f.ok(f.confirm(early))
		f.clock.advance(time.Microsecond)
		f.is(f.confirm(late), rolecall.ErrEmailChangeInvalid)

		older, newer := f.emailLink(bobs, bob.ID, "older"), f.emailLink(bobs, bob.ID, "newer")
		f.is(f.confirm(older), rolecall.ErrEmailChangeInvalid)
		for _, elsewhere := range []access.Anonymous{{TenantName: "nobody"}, {Tenant: f.newTenant("other"), TenantName: "other"}} {
			f.is(f.SignIn.ChangeEmail(f.Context(), elsewhere, newer), rolecall.ErrEmailChangeInvalid)
		}
		f.is(f.reset(newer, anotherPassword), rolecall.ErrPasswordResetInvalid)
		f.is(errorOf(f.accept(newer, anotherPassword)), rolecall.ErrInvitationInvalid)
		f.is(f.confirm(f.invite(bob.ID)), rolecall.ErrEmailChangeInvalid)
		f.is(f.confirm(secret.NewToken()), rolecall.ErrEmailChangeInvalid)

		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, bob.ID, "")))
		f.is(f.confirm(newer), rolecall.ErrEmailChangeInvalid)
		f.is(f.requestEmailChange(f.owner, bob.ID, "suspended"), rolecall.ErrUserSuspended)
		f.ok(errorOf(f.Directory.ResumeUser(f.Context(), f.owner, bob.ID, "")))
		newer = f.emailLink(f.owner, bob.ID, "newest")
		f.tenant.Status = rolecall.TenantSuspended
		f.is(f.confirm(newer), rolecall.ErrTenantSuspended)
		f.is(f.confirm(secret.NewToken()), rolecall.ErrEmailChangeInvalid)
		f.tenant.Status = rolecall.TenantActive
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, bob.ID, nil))
		f.is(f.confirm(newer), rolecall.ErrEmailChangeInvalid)
	})
}

func TestAnEmailChangeIsConfirmedOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		token := f.emailLink(f.call(f.signIn("ada")), ada.ID, "lovelace")
		nodes := []*node.Node{f.Node, f.node()}
		done := make([]error, 20)
		var running sync.WaitGroup
		mailed := f.mailed(func() {
			for i := range done {
				running.Go(func() { done[i] = nodes[i%2].SignIn.ChangeEmail(f.Context(), f.attempt(), token) })
			}
			running.Wait()
		})
		won := 0
		for _, err := range done {
			if err == nil {
				won++
			} else {
				f.is(err, rolecall.ErrEmailChangeInvalid)
			}
		}
		if won != 1 || !slices.Equal(mailed, []string{"email-changed ada"}) {
			t.Errorf("%d confirmed it, and mailed were %q", won, mailed)
		}
	})
}

func TestChangeEmailIsAuthorized(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		sales, held := f.person("Sales")
		research, _ := f.person("Research")
		auditor, _ := f.person("Sales", holding("events:read"))
		program := f.ofProgram(f.userToken(f.caller(holding("users.email:update")), "users.email:update"))
		for _, c := range []struct {
			what   string
			caller access.Caller
			user   rolecall.UserID
			want   error
		}{
			{"oneself", f.callBy(sales, held), sales.ID, nil},
			{"oneself, by a program", program, program.User.ID, rolecall.ErrSessionRequired},
			{"another, by a program", program, sales.ID, nil},
			{"without the permission", f.caller(holding("users:read", "users.name:update", "users:invite")), sales.ID, rolecall.ErrPermissionDenied},
			{"within the reach", f.caller(holding("users.email:update").within("sales")), sales.ID, nil},
			{"outside of it", f.caller(holding("users.email:update").within("Sales")), research.ID, rolecall.ErrNotFound},
			{"outside of it, but seen", f.caller(holding("users:read"), holding("users.email:update").within("Sales")), research.ID, rolecall.ErrPermissionDenied},
			{"of who holds more", f.caller(holding("users.email:update")), auditor.ID, rolecall.ErrBeyondOwnPermissions},
			{"of who holds what can be handed on", f.caller(holding("users.email:update"), granting("events:read")), auditor.ID, nil},
			{"somebody who is not there", f.owner, rolecall.NewID[rolecall.User](start), rolecall.ErrNotFound},
		} {
			name := fmt.Sprintf("new-%d", serial.Add(1))
			var err error
			mailed := f.mailed(func() { err = f.requestEmailChange(c.caller, c.user, name) })
			if !errors.Is(err, c.want) || (len(mailed) == 2) != (c.want == nil) {
				t.Errorf("%s: %v, and mailed were %q", c.what, err, mailed)
			}
		}
		pending := f.user("pending")
		f.ok(f.confirm(f.emailLink(f.owner, pending.ID, "corrected")))
		if user, err := f.Directory.User(f.Context(), f.owner, pending.ID); err != nil || user.Email != address("corrected") || user.Status != rolecall.UserPending {
			t.Errorf("the pending user is %+v, %v", user, err)
		}
	})
}

func TestAnOwnEmailChangeIsValidAfterNewAssignments(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		clerk := f.caller(holding("users:read", "users.email:update"))
		theirs := f.emailLink(clerk, ada.ID, "theirs")
		own := f.emailLink(f.call(f.signIn("ada")), ada.ID, "own")
		f.is(f.confirm(theirs), rolecall.ErrEmailChangeInvalid) // a newer link replaced it
		f.assign(ada.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		f.ok(f.confirm(own))
	})
}

// TestAnEndedSessionCannotChangeTheAddress requests an email change in a stolen session, and
// then revokes the session.
func TestAnEndedSessionCannotChangeTheAddress(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for i, c := range []struct {
			what string
			act  func(ada rolecall.User, in signin.SignIn) error
		}{
			{"all sessions end", func(ada rolecall.User, _ signin.SignIn) error {
				return f.SignIn.EndUserSessions(f.Context(), f.owner, ada.ID)
			}},
			{"suspended", func(ada rolecall.User, _ signin.SignIn) error {
				if _, err := f.Directory.SuspendUser(f.Context(), f.owner, ada.ID, ""); err != nil {
					return err
				}
				return errorOf(f.Directory.ResumeUser(f.Context(), f.owner, ada.ID, ""))
			}},
			{"a second factor is added", func(_ rolecall.User, in signin.SignIn) error {
				f.enrol(f.call(in))
				return nil
			}},
		} {
			name := fmt.Sprintf("ada-%d", i)
			ada := f.member(name)
			thief, in := f.signIn(name), f.signIn(name)
			token, reset := f.emailLink(f.call(thief), ada.ID, "thief-"+name), f.resetLink(name)
			f.ok(c.act(ada, in))
			if err := f.confirm(token); !errors.Is(err, rolecall.ErrEmailChangeInvalid) {
				t.Errorf("%s: the thief's address counts: %v", c.what, err)
			}
			f.is(errorOf(f.authenticate(f.Node, thief.Token)), rolecall.ErrUnauthenticated)
			f.ok(f.reset(reset, anotherPassword)) // it was sent to the user's address
		}
	})
}

func TestTenEmailChangesPerUserAndHourAreAllowed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, key := f.member("ada"), newKey()
		call := f.call(f.signIn("ada"))
		first, err := f.SignIn.RequestEmailChange(f.Context(), call, key, ada.ID, address("first"))
		f.ok(err)
		for i := range 9 {
			f.ok(f.requestEmailChange(call, ada.ID, fmt.Sprintf("new-%d", i)))
		}
		f.clock.advance(time.Minute)
		f.expectMailed(func() {
			err := f.requestEmailChange(call, ada.ID, "one-more")
			f.is(err, rolecall.ErrTooManyAttempts)
			if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 59*time.Minute {
				t.Errorf("one is told to wait %v", err)
			}
			again, err := f.SignIn.RequestEmailChange(f.Context(), call, key, ada.ID, address("first"))
			f.ok(err)
			if !again.Replayed || again.Value != first.Value {
				t.Errorf("the repeat is %+v", again)
			}
		})
		f.ok(f.requestEmailChange(f.owner, ada.ID, "by-the-owner"))
		f.clock.advance(59 * time.Minute)
		f.ok(f.requestEmailChange(call, ada.ID, "one-more"))
	})
}

func TestAnEmailChangeRequiresAValidAddress(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		call := f.call(f.signIn("ada"))
		for _, email := range []string{"", "ada", "new@example.com\r\nBcc: eve@example.com", "New <new@example.com>", "new@example.com,eve@example.com", "new@example.com\n", "new@exam\x00ple.com", "new@[192.0.2.1]"} {
			f.expectMailed(func() {
				_, err := f.SignIn.RequestEmailChange(f.Context(), call, newKey(), ada.ID, email)
				if f.is(err, rolecall.ErrValidation); len(faultsOf(err)) != 1 {
					t.Errorf("%q: %v", email, err)
				}
			})
		}
	})
}

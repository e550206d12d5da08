package node_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// requestReset requests a password reset for an address, from a source address.
func (f *fixture) requestReset(source, email string) error {
	a := f.attempt()
	a.Source = source
	return f.SignIn.RequestPasswordReset(f.Context(), a, email)
}

// resetLink requests a password reset for a user and returns the token that is mailed.
func (f *fixture) resetLink(name string) secret.Token {
	f.Helper()
	f.expectMailed(func() { f.ok(f.requestReset("192.0.2.7", address(name))) }, "password-reset "+name)
	return f.lastToken(rolecall.MailPasswordReset, name)
}

func (f *fixture) reset(token secret.Token, password string) error {
	return f.SignIn.ResetPassword(f.Context(), f.attempt(), token, password)
}

func TestAPasswordIsResetByMail(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		in, bystander := f.signIn("ada"), f.signIn("owner")
		invitation := f.invite(ada.ID)
		f.expectMailed(func() { f.ok(f.requestReset("192.0.2.7", "ADA@example.com")) }, "password-reset ada")
		token := f.lastToken(rolecall.MailPasswordReset, "ada")
		f.ok(errorOf(f.authenticate(f.Node, in.Token)))
		f.clock.advance(time.Minute)

		f.expectMailed(func() { f.ok(f.reset(token, anotherPassword)) }, "credentials-changed ada")
		for _, peer := range []*node.Node{f.Node, f.node()} {
			f.is(errorOf(f.authenticate(peer, in.Token)), rolecall.ErrUnauthenticated)
			f.ok(errorOf(f.authenticate(peer, bystander.Token)))
		}
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)
		f.ok(f.guess("192.0.2.7", "ada", anotherPassword))
		f.is(f.reset(token, password), rolecall.ErrPasswordResetInvalid)
		f.is(errorOf(f.accept(invitation, password)), rolecall.ErrInvitationInvalid)

		f.ok(f.Access.Refusals.Flush(f.Context()))
		want := []rolecall.EventType{
			rolecall.EventResetRequested, rolecall.EventSignInFailed, // both were counted
			rolecall.EventSignedIn, rolecall.EventSessionEnded, rolecall.EventPasswordReset, rolecall.EventUserInvited,
			rolecall.EventSignedIn, rolecall.EventPasswordChanged, rolecall.EventUserCreated,
		}
		got := f.eventTypes(ada.ID)
		slices.Sort(got[:2])
		slices.Sort(want[:2])
		if !slices.Equal(got, want) {
			t.Errorf("the events are %v", got)
		}
	})
}

// TestEveryResetRequestIsTheSameWork requests resets for all kinds of
// addresses. Only one of them gets a mail.
func TestEveryResetRequestIsTheSameWork(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		f.user("pending")
		suspended := f.member("suspended")
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, suspended.ID, "")))
		f.member("often")
		for range 3 {
			f.resetLink("often")
		}
		shut := f.attempt()
		shut.Tenant.Status = rolecall.TenantSuspended
		want := []string{"update", "count in 1 buckets", "update", "count in 1 buckets", "user by address", "delete tokens", "insert token", "mail"}
		for _, c := range []struct {
			what    string
			attempt access.Anonymous
			email   string
			mailed  string
		}{
			{"an active user", f.attempt(), address("ada"), "password-reset ada"},
			{"an unknown address", f.attempt(), address("ghost"), "nothing"},
			{"a pending user", f.attempt(), address("pending"), "nothing"},
			{"a suspended user", f.attempt(), address("suspended"), "nothing"},
			{"a user who asked often", f.attempt(), address("often"), "nothing"},
			{"an unknown address that was asked for often", f.attempt(), address("ghost"), "nothing"},
			{"a suspended tenant", shut, address("ada"), "nothing"},
			{"an unknown tenant", access.Anonymous{TenantName: "nobody", RequestID: "request", Source: "192.0.2.1"}, address("ada"), "nothing"},
		} {
			f.expectMailed(func() {
				asked := f.db.during(func() { f.ok(f.SignIn.RequestPasswordReset(f.Context(), c.attempt, c.email)) })
				if !slices.Equal(asked, want) {
					t.Errorf("%s: the store was asked %q, not %q", c.what, asked, want)
				}
			}, c.mailed)
		}
		for _, m := range f.mails() {
			if m.Kind == rolecall.MailNothing && (m.To != "" || m.Token != "" || !m.UserID.IsZero()) {
				t.Errorf("a decoy holds %+v", m)
			}
		}
	})
}

func TestDummyRowsAreRemovedWithoutATenant(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		unknown := access.Anonymous{TenantName: "nobody", Source: "192.0.2.1"}
		f.ok(f.SignIn.RequestPasswordReset(f.Context(), unknown, address("ada")))
		f.ok(f.requestReset("192.0.2.1", address("ghost")))
		f.clock.advance(time.Hour)
		removed := func() (n int) {
			for _, asked := range f.db.during(func() { f.ok(f.Node.Purge(f.Context())) }) {
				if asked == "purged" {
					n++
				}
			}
			return n
		}
		if first, second := removed(), removed(); first != 2 || second != 0 {
			t.Errorf("the purge removed something in %d places, and then in %d", first, second)
		}
	})
}

func TestThreeResetsPerAccountAndHourAreAllowed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		f.member("bob")
		for i := range 3 {
			f.expectMailed(func() { f.ok(f.requestReset(fmt.Sprintf("198.51.100.%d", i), address("ada"))) }, "password-reset ada")
		}
		newest := f.lastToken(rolecall.MailPasswordReset, "ada")
		for i := range 20 {
			f.expectMailed(func() { f.ok(f.requestReset(fmt.Sprintf("198.51.100.%d", i), address("ada"))) }, "nothing")
		}
		f.resetLink("bob")
		other := f.attempt()
		other.Tenant, other.TenantName = f.newTenant("other"), "other"
		f.expectMailed(func() { f.ok(f.SignIn.RequestPasswordReset(f.Context(), other, address("owner"))) }, "password-reset owner")

		f.clock.advance(time.Hour - time.Microsecond)
		f.expectMailed(func() { f.ok(f.requestReset("192.0.2.7", address("ada"))) }, "nothing")
		f.ok(f.reset(newest, anotherPassword)) // no new link was sent, because an earlier one still works
		f.clock.advance(time.Microsecond)
		f.resetLink("ada")
	})
}

// TestTheWindowOfResetsIsAtMostTheLifetimeOfALink uses links that expire in less than an hour.
func TestTheWindowOfResetsIsAtMostTheLifetimeOfALink(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		f.settings(rolecall.TenantSettings{PasswordReset: new(rolecall.Seconds(300))})
		for range 3 {
			f.resetLink("ada")
		}
		f.expectMailed(func() { f.ok(f.requestReset("192.0.2.7", address("ada"))) }, "nothing")
		f.clock.advance(5 * time.Minute)
		f.resetLink("ada")
	})
}

func TestThirtyResetsPerSourceAndTenMinutesAreAllowed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for i := range 30 {
			f.ok(f.requestReset("2001:db8::7", address(fmt.Sprintf("ghost-%d", i))))
		}
		for _, name := range []string{"owner", "ghost"} {
			err := f.requestReset("2001:db8::8", address(name))
			f.is(err, rolecall.ErrTooManyAttempts)
			if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 10*time.Minute {
				t.Errorf("one is told to wait %v", err)
			}
		}
		f.ok(f.requestReset("2001:db8:0:1::7", address("owner")))
		f.ok(f.guess("2001:db8::7", "owner", password)) // sign-ins have a separate counter
		f.clock.advance(10 * time.Minute)
		f.ok(f.requestReset("2001:db8::7", address("owner")))
	})
}

// TestAnAttackOnAnAccountDoesNotBlockItsReset fills all counters of failed
// sign-ins, on two nodes that cache full counters. A new password clears the counters of
// the account, but not those of a source.
func TestAnAttackOnAnAccountDoesNotBlockItsReset(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 2, Account: 3, Source: 2}, func(f *fixture) {
		f.member("ada")
		peer, other := f.Node, f.watchingNode()
		for i := range 5 {
			for range 3 {
				_ = f.guess(fmt.Sprintf("198.51.100.%d", i), "ada", "wrong")
			}
		}
		for _, f.Node = range []*node.Node{other, peer} {
			f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrTooManyAttempts)
		}
		f.is(f.guess("198.51.100.0", "owner", password), rolecall.ErrTooManyAttempts)
		f.expectMailed(func() { f.ok(f.requestReset("198.51.100.0", address("ada"))) }, "password-reset ada")
		f.ok(f.reset(f.lastToken(rolecall.MailPasswordReset, "ada"), anotherPassword))
		f.ok(f.guess("192.0.2.7", "ada", anotherPassword))
		f.Node = other
		f.eventually(func() bool { return f.guess("192.0.2.7", "ada", anotherPassword) == nil })
		f.is(f.guess("198.51.100.0", "ada", anotherPassword), rolecall.ErrTooManyAttempts)
	})
}

func TestParallelResetRequestsKeepTheLimits(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		nodes := []*node.Node{f.Node, f.node()}
		var mu sync.Mutex
		refused := 0
		var running sync.WaitGroup
		mailed := f.mailed(func() {
			for i := range 40 {
				running.Go(func() {
					err := nodes[i%2].SignIn.RequestPasswordReset(f.Context(), f.attempt(), address("ada"))
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						f.is(err, rolecall.ErrTooManyAttempts)
						refused++
					}
				})
			}
			running.Wait()
		})
		slices.Sort(mailed)
		if want := slices.Concat(slices.Repeat([]string{"nothing"}, 27), slices.Repeat([]string{"password-reset ada"}, 3)); !slices.Equal(mailed, want) || refused != 10 {
			t.Errorf("%d were refused, and mailed were %q", refused, mailed)
		}
	})
}

func TestResetLinksExpire(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.settings(rolecall.TenantSettings{PasswordReset: new(rolecall.Seconds(600))})
		ada := f.member("ada")
		f.member("bob")
		early, late := f.resetLink("ada"), f.resetLink("bob")
		f.clock.advance(10*time.Minute - time.Microsecond)
		f.ok(f.reset(early, anotherPassword))
		f.clock.advance(time.Microsecond)
		f.is(f.reset(late, anotherPassword), rolecall.ErrPasswordResetInvalid)

		older, newer := f.resetLink("ada"), f.resetLink("ada")
		f.is(f.reset(older, password), rolecall.ErrPasswordResetInvalid)
		for _, elsewhere := range []access.Anonymous{{TenantName: "nobody"}, {Tenant: f.newTenant("other"), TenantName: "other"}} {
			f.is(f.SignIn.ResetPassword(f.Context(), elsewhere, newer, password), rolecall.ErrPasswordResetInvalid)
		}
		f.is(f.SignIn.ChangeEmail(f.Context(), f.attempt(), newer), rolecall.ErrEmailChangeInvalid)
		f.is(errorOf(f.accept(newer, password)), rolecall.ErrInvitationInvalid)
		f.is(f.reset(f.signIn("owner").Token, password), rolecall.ErrPasswordResetInvalid)
		f.is(f.reset(f.invite(ada.ID), password), rolecall.ErrPasswordResetInvalid)
		f.ok(f.reset(newer, password))

		gone := f.resetLink("ada")
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, ada.ID, nil))
		f.member("ada") // another user with the same address
		f.is(f.reset(gone, password), rolecall.ErrPasswordResetInvalid)
		f.is(f.reset(secret.NewToken(), password), rolecall.ErrPasswordResetInvalid)
	})
}

func TestASuspendedUserCannotUseAResetLink(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		token := f.resetLink("ada")
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, ada.ID, "")))
		f.is(f.reset(token, anotherPassword), rolecall.ErrUserSuspended)
		f.is(f.reset(secret.NewToken(), anotherPassword), rolecall.ErrPasswordResetInvalid)
		f.ok(errorOf(f.Directory.ResumeUser(f.Context(), f.owner, ada.ID, "")))

		f.tenant.Status = rolecall.TenantSuspended
		f.is(f.reset(token, anotherPassword), rolecall.ErrTenantSuspended)
		f.is(f.reset(secret.NewToken(), anotherPassword), rolecall.ErrPasswordResetInvalid)
		f.tenant.Status = rolecall.TenantActive
		f.ok(f.guess("192.0.2.1", "ada", password))
		f.ok(f.reset(token, anotherPassword))
	})
}

// TestASuspensionDuringAResetWins suspends the user while the password is hashed.
func TestASuspensionDuringAResetWins(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		token := f.resetLink("ada")
		peer := f.across(func() { f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, ada.ID, ""))) })
		f.is(peer.SignIn.ResetPassword(f.Context(), f.attempt(), token, anotherPassword), rolecall.ErrUserSuspended)
		f.ok(errorOf(f.Directory.ResumeUser(f.Context(), f.owner, ada.ID, "")))
		f.ok(f.guess("192.0.2.1", "ada", password))
	})
}

// across returns a node that calls the function happen once, after its next read.
func (f *fixture) across(happen func()) *node.Node {
	return node.New(&interrupted{f.db, happen}, access.Options{
		Clock: f.clock.Now, Passwords: f.hashes, Keys: f.keys, Logger: slog.New(slog.DiscardHandler), Limits: f.limits,
	})
}

func TestAResetLinkIsUsedOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		token := f.resetLink("ada")
		nodes := []*node.Node{f.Node, f.node()}
		done := make([]error, 20)
		var running sync.WaitGroup
		mailed := f.mailed(func() {
			for i := range done {
				running.Go(func() {
					done[i] = nodes[i%2].SignIn.ResetPassword(f.Context(), f.attempt(), token, fmt.Sprintf("%s number %d", password, i))
				})
			}
			running.Wait()
		})
		won := -1
		for i, err := range done {
			switch {
			case err == nil && won >= 0:
				t.Errorf("both %d and %d used it", won, i)
			case err == nil:
				won = i
			default:
				f.is(err, rolecall.ErrPasswordResetInvalid)
			}
		}
		f.ok(f.guess("192.0.2.7", "ada", fmt.Sprintf("%s number %d", password, won)))
		resets := slices.DeleteFunc(f.eventTypes(ada.ID), func(e rolecall.EventType) bool { return e != rolecall.EventPasswordReset })
		if len(resets) != 1 || !slices.Equal(mailed, []string{"credentials-changed ada"}) {
			t.Errorf("%d events, and mailed were %q", len(resets), mailed)
		}
	})
}

// TestOneOfConcurrentResetLinksCanBeUsed creates two valid links, like two concurrent requests
// that do not see each other.
func TestOneOfConcurrentResetLinksCanBeUsed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		links := []secret.Token{f.resetLink("ada"), secret.NewToken()}
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.InsertOneTimeToken(rolecall.OneTimeToken{
				Purpose: rolecall.TokenPasswordReset, UserID: ada.ID, Data: ada.EmailKey(), CreatedAt: start, ExpiresAt: start.Add(time.Hour),
			}, links[1].Hash())
			return nil
		}))
		used := f.inParallel(10, func(i int) error { return f.reset(links[i%2], anotherPassword) })
		if used[nil] != 1 || used[rolecall.ErrPasswordResetInvalid] != 9 {
			t.Errorf("%v", used)
		}
	})
}

func TestAResetLinkRequiresAGoodPassword(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		created, err := f.Directory.CreateUser(f.Context(), f.owner, newKey(), rolecall.UserDraft{Email: "ada.lovelace@example.com", Name: "Augusta Ada Lovelace"})
		f.ok(err)
		f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, created.Value.Email, password))
		token := f.resetLink("ada.lovelace")
		before := f.hashes.Hashed()
		for refused, code := range refusedPasswords {
			err := f.reset(token, refused)
			f.is(err, rolecall.ErrValidation)
			if got := faultsOf(err); !slices.Equal(got, []string{"/password " + code}) {
				t.Errorf("%.40q: the faults are %q, not %s", refused, got, code)
			}
		}
		f.is(f.reset(secret.NewToken(), anotherPassword), rolecall.ErrPasswordResetInvalid)
		if spent := f.hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent on nothing", spent)
		}
		f.ok(f.reset(token, anotherPassword))
	})
}

func TestAResetRequestRequiresAValidAddress(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for _, email := range []string{"", "ada", "ada@example.com\r\nBcc: eve@example.com", "Ada <ada@example.com>", "ada@example.com, eve@example.com", "ada@example.com\x00"} {
			asked := f.db.during(func() {
				err := f.requestReset("192.0.2.7", email)
				if f.is(err, rolecall.ErrValidation); len(faultsOf(err)) != 1 {
					t.Errorf("%q: %v", email, err)
				}
			})
			if len(asked) > 0 {
				t.Errorf("%q: the store was asked %q", email, asked)
			}
		}
	})
}

func TestAnAdministratorDoesNotSeeTheResetLink(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, key := f.member("ada"), newKey()
		var first, again idempotency.Created[signin.IssuedReset]
		var err error
		f.expectMailed(func() {
			first, err = f.SignIn.SendPasswordReset(f.Context(), f.owner, key, ada.ID)
			f.ok(err)
			f.clock.advance(time.Minute)
			again, err = f.node().SignIn.SendPasswordReset(f.Context(), f.owner, key, ada.ID)
			f.ok(err)
		}, "password-reset ada")
		want := signin.IssuedReset{PasswordReset: rolecall.PasswordReset{UserID: ada.ID, ExpiresAt: f.clock.Now().Add(59 * time.Minute)}}
		if first.Value != want || again.Value != want || first.Replayed || !again.Replayed {
			t.Errorf("the answers are %+v and %+v", first, again)
		}
		if got := f.eventTypes(ada.ID)[0]; got != rolecall.EventResetRequested {
			t.Errorf("the newest event is %s", got)
		}
		f.ok(f.reset(f.lastToken(rolecall.MailPasswordReset, "ada"), anotherPassword))

		pending, suspended := f.user("pending"), f.member("suspended")
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, suspended.ID, "")))
		f.expectMailed(func() {
			f.is(errorOf(f.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), pending.ID)), rolecall.ErrUserPending)
			f.is(errorOf(f.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), suspended.ID)), rolecall.ErrUserSuspended)
		})
	})
}

func TestSendPasswordResetIsAuthorized(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		sales, _ := f.person("Sales")
		research, _ := f.person("Research")
		auditor, _ := f.person("Sales", holding("events:read"))
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
			{"to who holds more", f.caller(holding("users:invite")), auditor.ID, rolecall.ErrBeyondOwnPermissions},
			{"to who holds what can be handed on", f.caller(holding("users:invite"), granting("events:read")), auditor.ID, nil},
			{"somebody who is not there", f.owner, rolecall.NewID[rolecall.User](start), rolecall.ErrNotFound},
		} {
			mailed := f.mailed(func() {
				if _, err := f.SignIn.SendPasswordReset(f.Context(), c.caller, newKey(), c.user); !errors.Is(err, c.want) {
					t.Errorf("%s: %v", c.what, err)
				}
			})
			if (len(mailed) == 1) != (c.want == nil) {
				t.Errorf("%s: mailed were %q", c.what, mailed)
			}
		}
	})
}

// TestAResetLinkIsBoundToItsAddress changes the address between the read of the
// address and the insertion of the link.
func TestAResetLinkIsBoundToItsAddress(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		peer := f.across(func() {
			f.ok(f.SignIn.SetEmail(f.Context(), f.tenant.Name, address("ada"), address("lovelace")))
		})
		f.ok(errorOf(peer.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), ada.ID)))
		f.is(f.reset(f.lastToken(rolecall.MailPasswordReset, "ada"), anotherPassword), rolecall.ErrPasswordResetInvalid)
		f.ok(f.guess("192.0.2.1", "lovelace", password))
	})
}

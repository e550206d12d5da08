package signin_test

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
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

func TestAPasswordIsResetByMail(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		in, bystander := f.LogIn("ada"), f.LogIn("owner")
		invitation := f.Invite(ada.ID)
		f.ExpectMailed(func() { f.OK(f.RequestReset("192.0.2.7", "ADA@example.com")) }, "password-reset ada")
		token := f.LastToken(rolecall.MailPasswordReset, "ada")
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
		f.Clock.Advance(time.Minute)

		f.ExpectMailed(func() { f.OK(f.ResetPassword(token, nodetest.AnotherPassword)) }, "credentials-changed ada")
		for _, peer := range []*node.Node{f.Node, f.NewNode()} {
			f.Is(nodetest.ErrorOf(f.Authenticate(peer, in.Token)), rolecall.ErrUnauthenticated)
			f.OK(nodetest.ErrorOf(f.Authenticate(peer, bystander.Token)))
		}
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.OK(f.Guess("192.0.2.7", "ada", nodetest.AnotherPassword))
		f.Is(f.ResetPassword(token, nodetest.Password), rolecall.ErrPasswordResetInvalid)
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(invitation, nodetest.Password)), rolecall.ErrInvitationInvalid)

		f.OK(f.Access.Refusals.Flush(f.Context()))
		want := []rolecall.EventType{
			rolecall.EventResetRequested, rolecall.EventSignInFailed, // both were counted
			rolecall.EventSignedIn, rolecall.EventSessionEnded, rolecall.EventPasswordReset, rolecall.EventUserInvited,
			rolecall.EventSignedIn, rolecall.EventPasswordChanged, rolecall.EventUserCreated,
		}
		got := f.EventTypes(ada.ID)
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		f.NewUser("pending")
		suspended := f.NewMember("suspended")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, suspended.ID, "")))
		f.NewMember("often")
		for range 3 {
			f.ResetLink("often")
		}
		shut := f.Attempt()
		shut.Tenant.Status = rolecall.TenantSuspended
		want := []string{"update", "count in 1 buckets", "update", "count in 1 buckets", "user by address", "delete tokens", "insert token", "mail"}
		for _, c := range []struct {
			what    string
			attempt access.Anonymous
			email   string
			mailed  string
		}{
			{"an active user", f.Attempt(), nodetest.Address("ada"), "password-reset ada"},
			{"an unknown address", f.Attempt(), nodetest.Address("ghost"), "nothing"},
			{"a pending user", f.Attempt(), nodetest.Address("pending"), "nothing"},
			{"a suspended user", f.Attempt(), nodetest.Address("suspended"), "nothing"},
			{"a user who asked often", f.Attempt(), nodetest.Address("often"), "nothing"},
			{"an unknown address that was asked for often", f.Attempt(), nodetest.Address("ghost"), "nothing"},
			{"a suspended tenant", shut, nodetest.Address("ada"), "nothing"},
			{"an unknown tenant", access.Anonymous{TenantName: "nobody", RequestID: "request", Source: "192.0.2.1"}, nodetest.Address("ada"), "nothing"},
		} {
			f.ExpectMailed(func() {
				asked := f.DB.During(func() { f.OK(f.SignIn.RequestPasswordReset(f.Context(), c.attempt, c.email)) })
				if !slices.Equal(asked, want) {
					t.Errorf("%s: the store was asked %q, not %q", c.what, asked, want)
				}
			}, c.mailed)
		}
		for _, m := range f.Mails() {
			if m.Kind == rolecall.MailNothing && (m.To != "" || m.Token != "" || !m.UserID.IsZero()) {
				t.Errorf("a decoy holds %+v", m)
			}
		}
	})
}

func TestDummyRowsAreRemovedWithoutATenant(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		unknown := access.Anonymous{TenantName: "nobody", Source: "192.0.2.1"}
		f.OK(f.SignIn.RequestPasswordReset(f.Context(), unknown, nodetest.Address("ada")))
		f.OK(f.RequestReset("192.0.2.1", nodetest.Address("ghost")))
		f.Clock.Advance(time.Hour)
		removed := func() (n int) {
			for _, asked := range f.DB.During(func() { f.OK(f.Node.Purge(f.Context())) }) {
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		f.NewMember("bob")
		for i := range 3 {
			f.ExpectMailed(func() { f.OK(f.RequestReset(fmt.Sprintf("198.51.100.%d", i), nodetest.Address("ada"))) }, "password-reset ada")
		}
		newest := f.LastToken(rolecall.MailPasswordReset, "ada")
		for i := range 20 {
			f.ExpectMailed(func() { f.OK(f.RequestReset(fmt.Sprintf("198.51.100.%d", i), nodetest.Address("ada"))) }, "nothing")
		}
		f.ResetLink("bob")
		other := f.Attempt()
		other.Tenant, other.TenantName = f.NewTenant("other"), "other"
		f.ExpectMailed(func() { f.OK(f.SignIn.RequestPasswordReset(f.Context(), other, nodetest.Address("owner"))) }, "password-reset owner")

		f.Clock.Advance(time.Hour - time.Microsecond)
		f.ExpectMailed(func() { f.OK(f.RequestReset("192.0.2.7", nodetest.Address("ada"))) }, "nothing")
		f.OK(f.ResetPassword(newest, nodetest.AnotherPassword)) // no new link was sent, because an earlier one still works
		f.Clock.Advance(time.Microsecond)
		f.ResetLink("ada")
	})
}

// TestTheWindowOfResetsIsAtMostTheLifetimeOfALink uses links that expire in less than an hour.
func TestTheWindowOfResetsIsAtMostTheLifetimeOfALink(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		f.SetSettings(rolecall.TenantSettings{PasswordReset: new(rolecall.Seconds(300))})
		for range 3 {
			f.ResetLink("ada")
		}
		f.ExpectMailed(func() { f.OK(f.RequestReset("192.0.2.7", nodetest.Address("ada"))) }, "nothing")
		f.Clock.Advance(5 * time.Minute)
		f.ResetLink("ada")
	})
}

func TestThirtyResetsPerSourceAndTenMinutesAreAllowed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i := range 30 {
			f.OK(f.RequestReset("2001:db8::7", nodetest.Address(fmt.Sprintf("ghost-%d", i))))
		}
		for _, name := range []string{"owner", "ghost"} {
			err := f.RequestReset("2001:db8::8", nodetest.Address(name))
			f.Is(err, rolecall.ErrTooManyAttempts)
			if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 10*time.Minute {
				t.Errorf("one is told to wait %v", err)
			}
		}
		f.OK(f.RequestReset("2001:db8:0:1::7", nodetest.Address("owner")))
		f.OK(f.Guess("2001:db8::7", "owner", nodetest.Password)) // sign-ins have a separate counter
		f.Clock.Advance(10 * time.Minute)
		f.OK(f.RequestReset("2001:db8::7", nodetest.Address("owner")))
	})
}

// TestAnAttackOnAnAccountDoesNotBlockItsReset fills all counters of failed
// sign-ins, on two nodes that cache full counters. A new password clears the counters of
// the account, but not those of a source.
func TestAnAttackOnAnAccountDoesNotBlockItsReset(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 2, Account: 3, Source: 2}, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		peer, other := f.Node, f.NewWatchingNode()
		for i := range 5 {
			for range 3 {
				_ = f.Guess(fmt.Sprintf("198.51.100.%d", i), "ada", "wrong")
			}
		}
		for _, f.Node = range []*node.Node{other, peer} {
			f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrTooManyAttempts)
		}
		f.Is(f.Guess("198.51.100.0", "owner", nodetest.Password), rolecall.ErrTooManyAttempts)
		f.ExpectMailed(func() { f.OK(f.RequestReset("198.51.100.0", nodetest.Address("ada"))) }, "password-reset ada")
		f.OK(f.ResetPassword(f.LastToken(rolecall.MailPasswordReset, "ada"), nodetest.AnotherPassword))
		f.OK(f.Guess("192.0.2.7", "ada", nodetest.AnotherPassword))
		f.Node = other
		f.Eventually(func() bool { return f.Guess("192.0.2.7", "ada", nodetest.AnotherPassword) == nil })
		f.Is(f.Guess("198.51.100.0", "ada", nodetest.AnotherPassword), rolecall.ErrTooManyAttempts)
	})
}

func TestParallelResetRequestsKeepTheLimits(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		nodes := []*node.Node{f.Node, f.NewNode()}
		var mu sync.Mutex
		refused := 0
		var running sync.WaitGroup
		mailed := f.Mailed(func() {
			for i := range 40 {
				running.Go(func() {
					err := nodes[i%2].SignIn.RequestPasswordReset(f.Context(), f.Attempt(), nodetest.Address("ada"))
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						f.Is(err, rolecall.ErrTooManyAttempts)
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.SetSettings(rolecall.TenantSettings{PasswordReset: new(rolecall.Seconds(600))})
		ada := f.NewMember("ada")
		f.NewMember("bob")
		early, late := f.ResetLink("ada"), f.ResetLink("bob")
		f.Clock.Advance(10*time.Minute - time.Microsecond)
		f.OK(f.ResetPassword(early, nodetest.AnotherPassword))
		f.Clock.Advance(time.Microsecond)
		f.Is(f.ResetPassword(late, nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)

		older, newer := f.ResetLink("ada"), f.ResetLink("ada")
		f.Is(f.ResetPassword(older, nodetest.Password), rolecall.ErrPasswordResetInvalid)
		for _, elsewhere := range []access.Anonymous{{TenantName: "nobody"}, {Tenant: f.NewTenant("other"), TenantName: "other"}} {
			f.Is(f.SignIn.ResetPassword(f.Context(), elsewhere, newer, nodetest.Password), rolecall.ErrPasswordResetInvalid)
		}
		f.Is(f.SignIn.ChangeEmail(f.Context(), f.Attempt(), newer), rolecall.ErrEmailChangeInvalid)
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(newer, nodetest.Password)), rolecall.ErrInvitationInvalid)
		f.Is(f.ResetPassword(f.LogIn("owner").Token, nodetest.Password), rolecall.ErrPasswordResetInvalid)
		f.Is(f.ResetPassword(f.Invite(ada.ID), nodetest.Password), rolecall.ErrPasswordResetInvalid)
		f.OK(f.ResetPassword(newer, nodetest.Password))

		gone := f.ResetLink("ada")
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, ada.ID, nil))
		f.NewMember("ada") // another user with the same address
		f.Is(f.ResetPassword(gone, nodetest.Password), rolecall.ErrPasswordResetInvalid)
		f.Is(f.ResetPassword(secret.NewToken(), nodetest.Password), rolecall.ErrPasswordResetInvalid)
	})
}

func TestASuspendedUserCannotUseAResetLink(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		token := f.ResetLink("ada")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, ada.ID, "")))
		f.Is(f.ResetPassword(token, nodetest.AnotherPassword), rolecall.ErrUserSuspended)
		f.Is(f.ResetPassword(secret.NewToken(), nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
		f.OK(nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, ada.ID, "")))

		f.Tenant.Status = rolecall.TenantSuspended
		f.Is(f.ResetPassword(token, nodetest.AnotherPassword), rolecall.ErrTenantSuspended)
		f.Is(f.ResetPassword(secret.NewToken(), nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
		f.Tenant.Status = rolecall.TenantActive
		f.OK(f.Guess("192.0.2.1", "ada", nodetest.Password))
		f.OK(f.ResetPassword(token, nodetest.AnotherPassword))
	})
}

// TestASuspensionDuringAResetWins suspends the user while the password is hashed.
func TestASuspensionDuringAResetWins(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		token := f.ResetLink("ada")
		peer := across(f, func() { f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, ada.ID, ""))) })
		f.Is(peer.SignIn.ResetPassword(f.Context(), f.Attempt(), token, nodetest.AnotherPassword), rolecall.ErrUserSuspended)
		f.OK(nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, ada.ID, "")))
		f.OK(f.Guess("192.0.2.1", "ada", nodetest.Password))
	})
}

// across returns a node that calls the function happen once, after its next read.
func across(f *nodetest.Fixture, happen func()) *node.Node {
	return node.New(&interrupted{f.DB, happen}, access.Options{
		Clock: f.Clock.Now, Passwords: f.Hashes, Keys: f.Keys, Logger: slog.New(slog.DiscardHandler), Limits: f.Limits,
	})
}

func TestAResetLinkIsUsedOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		token := f.ResetLink("ada")
		nodes := []*node.Node{f.Node, f.NewNode()}
		done := make([]error, 20)
		var running sync.WaitGroup
		mailed := f.Mailed(func() {
			for i := range done {
				running.Go(func() {
					done[i] = nodes[i%2].SignIn.ResetPassword(f.Context(), f.Attempt(), token, fmt.Sprintf("%s number %d", nodetest.Password, i))
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
				f.Is(err, rolecall.ErrPasswordResetInvalid)
			}
		}
		f.OK(f.Guess("192.0.2.7", "ada", fmt.Sprintf("%s number %d", nodetest.Password, won)))
		resets := slices.DeleteFunc(f.EventTypes(ada.ID), func(e rolecall.EventType) bool { return e != rolecall.EventPasswordReset })
		if len(resets) != 1 || !slices.Equal(mailed, []string{"credentials-changed ada"}) {
			t.Errorf("%d events, and mailed were %q", len(resets), mailed)
		}
	})
}

// TestOneOfConcurrentResetLinksCanBeUsed creates two valid links, like two concurrent requests
// that do not see each other.
func TestOneOfConcurrentResetLinksCanBeUsed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		links := []secret.Token{f.ResetLink("ada"), secret.NewToken()}
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.InsertOneTimeToken(rolecall.OneTimeToken{
				Purpose: rolecall.TokenPasswordReset, UserID: ada.ID, Data: ada.EmailKey(), CreatedAt: nodetest.Start, ExpiresAt: nodetest.Start.Add(time.Hour),
			}, links[1].Hash())
			return nil
		}))
		used := f.InParallel(10, func(i int) error { return f.ResetPassword(links[i%2], nodetest.AnotherPassword) })
		if used[nil] != 1 || used[rolecall.ErrPasswordResetInvalid] != 9 {
			t.Errorf("%v", used)
		}
	})
}

func TestAResetLinkRequiresAGoodPassword(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		created, err := f.Directory.CreateUser(f.Context(), f.Owner, nodetest.NewKey(), rolecall.UserDraft{Email: "ada.lovelace@example.com", Name: "Augusta Ada Lovelace"})
		f.OK(err)
		f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, created.Value.Email, nodetest.Password))
		token := f.ResetLink("ada.lovelace")
		before := f.Hashes.Hashed()
		for refused, code := range refusedPasswords {
			err := f.ResetPassword(token, refused)
			f.Is(err, rolecall.ErrValidation)
			if got := nodetest.FaultsOf(err); !slices.Equal(got, []string{"/password " + code}) {
				t.Errorf("%.40q: the faults are %q, not %s", refused, got, code)
			}
		}
		f.Is(f.ResetPassword(secret.NewToken(), nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
		if spent := f.Hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent on nothing", spent)
		}
		f.OK(f.ResetPassword(token, nodetest.AnotherPassword))
	})
}

func TestAResetRequestRequiresAValidAddress(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for _, email := range []string{"", "ada", "ada@example.com\r\nBcc: eve@example.com", "Ada <ada@example.com>", "ada@example.com, eve@example.com", "ada@example.com\x00"} {
			asked := f.DB.During(func() {
				err := f.RequestReset("192.0.2.7", email)
				if f.Is(err, rolecall.ErrValidation); len(nodetest.FaultsOf(err)) != 1 {
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, key := f.NewMember("ada"), nodetest.NewKey()
		var first, again idempotency.Created[signin.IssuedReset]
		var err error
		f.ExpectMailed(func() {
			first, err = f.SignIn.SendPasswordReset(f.Context(), f.Owner, key, ada.ID)
			f.OK(err)
			f.Clock.Advance(time.Minute)
			again, err = f.NewNode().SignIn.SendPasswordReset(f.Context(), f.Owner, key, ada.ID)
			f.OK(err)
		}, "password-reset ada")
		want := signin.IssuedReset{PasswordReset: rolecall.PasswordReset{UserID: ada.ID, ExpiresAt: f.Clock.Now().Add(59 * time.Minute)}}
		if first.Value != want || again.Value != want || first.Replayed || !again.Replayed {
			t.Errorf("the answers are %+v and %+v", first, again)
		}
		if got := f.EventTypes(ada.ID)[0]; got != rolecall.EventResetRequested {
			t.Errorf("the newest event is %s", got)
		}
		f.OK(f.ResetPassword(f.LastToken(rolecall.MailPasswordReset, "ada"), nodetest.AnotherPassword))

		pending, suspended := f.NewUser("pending"), f.NewMember("suspended")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, suspended.ID, "")))
		f.ExpectMailed(func() {
			f.Is(nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), f.Owner, nodetest.NewKey(), pending.ID)), rolecall.ErrUserPending)
			f.Is(nodetest.ErrorOf(f.SignIn.SendPasswordReset(f.Context(), f.Owner, nodetest.NewKey(), suspended.ID)), rolecall.ErrUserSuspended)
		})
	})
}

func TestSendPasswordResetIsAuthorized(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		sales, _ := f.Person("Sales")
		research, _ := f.Person("Research")
		auditor, _ := f.Person("Sales", nodetest.Holding("events:read"))
		for _, c := range []struct {
			what   string
			caller access.Caller
			user   rolecall.UserID
			want   error
		}{
			{"without the permission", f.CallerWith(nodetest.Holding("users:read")), sales.ID, rolecall.ErrPermissionDenied},
			{"within the reach", f.CallerWith(nodetest.Holding("users:invite").Within("sales")), sales.ID, nil},
			{"outside of it", f.CallerWith(nodetest.Holding("users:invite").Within("Sales")), research.ID, rolecall.ErrNotFound},
			{"outside of it, but seen", f.CallerWith(nodetest.Holding("users:read"), nodetest.Holding("users:invite").Within("Sales")), research.ID, rolecall.ErrPermissionDenied},
			{"to who holds more", f.CallerWith(nodetest.Holding("users:invite")), auditor.ID, rolecall.ErrBeyondOwnPermissions},
			{"to who holds what can be handed on", f.CallerWith(nodetest.Holding("users:invite"), nodetest.Granting("events:read")), auditor.ID, nil},
			{"somebody who is not there", f.Owner, rolecall.NewID[rolecall.User](nodetest.Start), rolecall.ErrNotFound},
		} {
			mailed := f.Mailed(func() {
				if _, err := f.SignIn.SendPasswordReset(f.Context(), c.caller, nodetest.NewKey(), c.user); !errors.Is(err, c.want) {
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		peer := across(f, func() {
			f.OK(f.SignIn.SetEmail(f.Context(), f.Tenant.Name, nodetest.Address("ada"), nodetest.Address("lovelace")))
		})
		f.OK(nodetest.ErrorOf(peer.SignIn.SendPasswordReset(f.Context(), f.Owner, nodetest.NewKey(), ada.ID)))
		f.Is(f.ResetPassword(f.LastToken(rolecall.MailPasswordReset, "ada"), nodetest.AnotherPassword), rolecall.ErrPasswordResetInvalid)
		f.OK(f.Guess("192.0.2.1", "lovelace", nodetest.Password))
	})
}

package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// guess tries a password of a user from a source address.
func (f *fixture) guess(source, name, secret string) error {
	a := f.attempt()
	a.Source = source
	return errorOf(f.SignIn.Login(f.Context(), a, address(name), secret))
}

func TestTenFailuresPerAccountAndSourceAreAllowed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for range 10 {
			f.is(f.guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)
		}
		before := f.hashes.Hashed()
		f.clock.advance(5 * time.Minute)
		err := f.guess("192.0.2.7", "owner", password)
		f.is(err, rolecall.ErrTooManyAttempts)
		if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 10*time.Minute {
			t.Errorf("one is told to wait %v", err)
		}
		if spent := f.hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent", spent)
		}
		f.ok(f.guess("192.0.2.8", "owner", password))
		f.clock.advance(10 * time.Minute)
		f.ok(f.guess("192.0.2.7", "owner", password))
	})
}

// A throttled sign-in leaves an event, so that an attack that goes on is visible. A flood leaves no more than
// one per account, source and minute.
func TestThrottledSignInsLeaveAnEvent(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 1, Source: 3}, func(f *fixture) {
		throttled := func() (sources []string) {
			f.ok(f.Access.Refusals.Flush(f.Context()))
			for _, e := range f.events(f.owner, directory.EventListing{Type: string(rolecall.EventSignInFailed)}) {
				if strings.HasPrefix(e.Reason, rolecall.ErrTooManyAttempts.Code) {
					sources = append(sources, e.Source+" "+e.Reason+" "+e.Subject.ID.String())
				}
			}
			slices.Sort(sources)
			return sources
		}
		ada := f.user("ada")
		const first, second = "192.0.2.7", "192.0.2.8"
		for _, source := range []string{first, second} {
			f.is(f.guess(source, "ada", "wrong"), rolecall.ErrWrongCredentials)
			for range 20 {
				f.is(f.guess(source, "ada", password), rolecall.ErrTooManyAttempts)
			}
		}
		event := func(source string, subject rolecall.AnyID) string {
			return source + " " + rolecall.ErrTooManyAttempts.Code + " " + subject.String()
		}
		ofAda := []string{event(first, rolecall.AnyID(ada.ID)), event(second, rolecall.AnyID(ada.ID))}
		if got := throttled(); !slices.Equal(got, ofAda) {
			t.Errorf("in the first minute: %q, want %q", got, ofAda)
		}
		f.clock.advance(time.Minute)
		f.is(f.guess(first, "ada", password), rolecall.ErrTooManyAttempts)
		if got := throttled(); len(got) != 3 {
			t.Errorf("in the second minute: %q", got)
		}
		f.is(f.guess(second, "unknown", "wrong"), rolecall.ErrWrongCredentials)
		f.is(f.guess(second, "unknown", "wrong"), rolecall.ErrTooManyAttempts)
		if got := throttled(); !slices.Contains(got, event(second, rolecall.AnyID(f.tenant.ID))) {
			t.Errorf("with an unknown address: %q", got)
		}
	})
}

// TestASecondFactorRefundsWhatItsPasswordCounted proves the password from one source,
// and the second factor from another. The counters of the second source do not change.
func TestASecondFactorRefundsWhatItsPasswordCounted(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 4, Source: 4}, func(f *fixture) {
		_, app, _ := f.protected("ada")
		guest := f.user("guest")
		f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		const home, away = "192.0.2.7", "192.0.2.8"
		from := func(source string) access.Anonymous {
			a := f.attempt()
			a.Source = source
			return a
		}
		complete := func(source string, challenge signin.Challenge, p signin.Proof) {
			t.Helper()
			f.ok(errorOf(f.SignIn.CompleteSignIn(f.Context(), from(source), secret.Token(challenge.Token), p)))
		}
		asked := f.challenge(from(home), "ada", rolecall.ErrSecondFactorRequired)
		accepted, err := f.SignIn.AcceptInvitation(f.Context(), from(home), f.invite(guest.ID), anotherPassword)
		f.is(errorOf(accepted, err), rolecall.ErrEnrolmentRequired)

		for range 3 { // the counter of the account and this source, and that of the source, are full after one more
			f.is(f.guess(away, "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess(away, "nobody", "wrong"), rolecall.ErrWrongCredentials)
		complete(away, asked, signin.Proof{Code: app.next()})
		begun, err := f.SignIn.BeginEnrolment(f.Context(), from(away), secret.Token(accepted.Challenge.Token))
		f.ok(err)
		complete(away, *accepted.Challenge, signin.Proof{Code: f.appOf(begun.TOTPSecret).code()})
		f.is(f.guess(away, "nobody", "wrong"), rolecall.ErrTooManyAttempts)

		// The sign-in from home was refunded, so four more attempts are allowed.
		for range 4 {
			f.is(f.guess(home, "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess(home, "ada", "wrong"), rolecall.ErrTooManyAttempts)
	})
}

// TestASecondFactorRefundsNothingInALaterWindow uses challenges after the window in which
// their attempts were counted has ended. The refund does not reduce the counter of the
// next window.
func TestASecondFactorRefundsNothingInALaterWindow(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{Source: 4}, func(f *fixture) {
		_, _, codes := f.protected("ada")
		f.clock.advance(6 * time.Minute) // the window of the earlier sign-ins has four minutes left
		kept := f.factorChallenge("ada")
		f.clock.advance(4 * time.Minute)
		for i := range 4 {
			f.is(f.guess("192.0.2.1", fmt.Sprintf("user-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		f.ok(errorOf(f.answer(kept, signin.Proof{RecoveryCode: string(codes[0])})))
		f.is(f.guess("192.0.2.1", "nobody", "wrong"), rolecall.ErrTooManyAttempts)
	})
}

func TestASuccessResetsTheCount(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for range 3 {
			for range 9 {
				f.is(f.guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)
			}
			f.ok(f.guess("192.0.2.7", "owner", password))
		}
	})
}

func TestAHundredFailuresPerAccountAreAllowed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for i := range 100 {
			f.is(f.guess(fmt.Sprintf("198.51.100.%d", i), "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess("203.0.113.1", "ada", "wrong"), rolecall.ErrTooManyAttempts)
		f.ok(f.guess("203.0.113.1", "owner", password))
		other := f.newTenant("other")
		_, err := f.SignIn.Login(f.Context(), access.Anonymous{Tenant: other, TenantName: "other", Source: "203.0.113.1"}, address("ada"), "wrong")
		f.is(err, rolecall.ErrWrongCredentials)
	})
}

func TestAHundredFailuresPerSourceAreAllowed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for i := range 100 {
			f.is(f.guess("192.0.2.7", fmt.Sprintf("user-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess("192.0.2.7", "owner", password), rolecall.ErrTooManyAttempts)
		f.ok(f.guess("192.0.2.8", "owner", password))
		f.clock.advance(10 * time.Minute)
		f.ok(f.guess("192.0.2.7", "owner", password))
	})
}

func TestANetworkOfIPv6IsOneSource(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for i := range 10 {
			f.is(f.guess(fmt.Sprintf("2001:db8::%d", i), "owner", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess("2001:db8::ffff:1", "owner", "wrong"), rolecall.ErrTooManyAttempts)
		f.is(f.guess("2001:db8:0:1::1", "owner", "wrong"), rolecall.ErrWrongCredentials)
		for i := range 10 {
			f.is(f.guess("::ffff:192.0.2.9", "ada", fmt.Sprint(i)), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess("192.0.2.9", "ada", "wrong"), rolecall.ErrTooManyAttempts)
	})
}

func TestParallelAttemptsCannotExceedTheLimit(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		before := f.hashes.Hashed()
		var evaluated atomic.Int64
		var running sync.WaitGroup
		for range 200 {
			running.Go(func() {
				switch err := f.guess("192.0.2.7", "owner", "wrong"); {
				case errors.Is(err, rolecall.ErrWrongCredentials):
					evaluated.Add(1)
				case !errors.Is(err, rolecall.ErrTooManyAttempts):
					t.Error(err)
				}
			})
		}
		running.Wait()
		if n, spent := evaluated.Load(), f.hashes.Hashed()-before; n != 10 || spent != 10 {
			t.Errorf("%d were evaluated with %d hashes", n, spent)
		}
	})
}

func TestAnUnknownTenantIsCountedLikeAnyOther(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		a := access.Anonymous{TenantName: "nobody", Source: "192.0.2.7"}
		for range 10 {
			_, err := f.SignIn.Login(f.Context(), a, address("owner"), "wrong")
			f.is(err, rolecall.ErrWrongCredentials)
		}
		_, err := f.SignIn.Login(f.Context(), a, address("owner"), "wrong")
		f.is(err, rolecall.ErrTooManyAttempts)
		f.ok(f.guess("192.0.2.7", "owner", password))
	})
}

func TestTheLimitsAreSettings(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 2, Account: 3, Source: 4}, func(f *fixture) {
		f.is(f.guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.is(f.guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.is(f.guess("192.0.2.7", "ada", "wrong"), rolecall.ErrTooManyAttempts)
		f.is(f.guess("192.0.2.8", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.is(f.guess("192.0.2.9", "ada", "wrong"), rolecall.ErrTooManyAttempts)
		f.is(f.guess("192.0.2.7", "bob", "wrong"), rolecall.ErrWrongCredentials)
		f.is(f.guess("192.0.2.7", "eve", "wrong"), rolecall.ErrWrongCredentials)
		f.is(f.guess("192.0.2.7", "joe", "wrong"), rolecall.ErrTooManyAttempts)
	})
}

func TestARefusedAttemptIsNotCounted(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for i := range 300 {
			want := rolecall.ErrWrongCredentials
			if i >= 10 {
				want = rolecall.ErrTooManyAttempts
			}
			f.is(f.guess("192.0.2.7", "ada", "wrong"), want)
		}
		f.is(f.guess("192.0.2.8", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.ok(f.guess("192.0.2.7", "owner", password))
	})
}

func TestTheCountIsSharedByNodesAndSurvivesARestart(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for range 10 {
			f.is(f.guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)
			f.Node = f.node()
		}
		f.is(f.guess("192.0.2.7", "owner", password), rolecall.ErrTooManyAttempts)
	})
}

// An address is read once, for the event.
func TestRefusedAttemptsWriteNothing(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{Source: 3}, func(f *fixture) {
		f.signIn("owner") // from another source than the guesses
		for i := range 3 {
			f.is(f.guess("192.0.2.7", fmt.Sprintf("user-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess("192.0.2.7", "first", "wrong"), rolecall.ErrTooManyAttempts)
		for _, want := range [][]string{slices.Repeat([]string{"view", "user by address"}, 50), nil} {
			asked := f.db.during(func() {
				for i := range 50 {
					f.is(f.guess("192.0.2.7", fmt.Sprintf("more-%d", i), "wrong"), rolecall.ErrTooManyAttempts)
				}
			})
			if !slices.Equal(asked, want) {
				t.Errorf("the store was asked %q, want %q", asked, want)
			}
		}
		f.clock.advance(10 * time.Minute)
		f.ok(f.guess("192.0.2.7", "owner", password))
	})
}

func TestAnAttemptRefusedForOverloadIsNotCounted(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		peer := f.Node
		busy := node.New(f.db, access.Options{
			Clock: f.clock.Now, Keys: f.keys, Passwords: secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 64, Threads: 1}, 0, 0),
		})
		for range 20 {
			f.Node = busy
			f.is(f.guess("192.0.2.7", "owner", password), rolecall.ErrBusy)
			f.is(errorOf(f.SignIn.ChangePassword(f.Context(), f.owner, password, "another "+password)), rolecall.ErrBusy)
		}
		f.Node = peer
		f.ok(f.guess("192.0.2.7", "owner", password))
		f.ok(errorOf(f.SignIn.ChangePassword(f.Context(), f.owner, password, "another "+password)))
	})
}

// unbounded is a store that counts updates without a deadline.
type unbounded struct {
	store.Database
	count atomic.Int64
}

// Update counts the update if ctx has no deadline.
func (s *unbounded) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		s.count.Add(1)
	}
	return s.Database.Update(ctx, tenant, fn)
}

func TestDetachedWorkHasADeadline(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		store := &unbounded{Database: f.db}
		f.Node = node.New(store, access.Options{
			Clock: f.clock.Now, Keys: f.keys, Passwords: secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 64, Threads: 1}, 0, 0),
		})
		ctx, cancel := context.WithTimeout(f.Context(), patience.Limit)
		defer cancel()
		f.is(errorOf(f.SignIn.Login(ctx, f.attempt(), address("owner"), password)), rolecall.ErrBusy)
		f.Access.Refused(f.owner, f.owner.User.ID, "test", "forbidden")
		cancel()
		f.ok(f.Node.Run(ctx))
		if n := store.count.Load(); n != 0 {
			t.Errorf("%d updates had no end", n)
		}
	})
}

func TestAnInvalidAddressFailsLikeAWrongOne(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for _, email := range []string{"a\x00b@example.com", "\x00", "a\xffb@example.com"} {
			f.is(errorOf(f.SignIn.Login(f.Context(), f.attempt(), email, password)), rolecall.ErrWrongCredentials)
		}
	})
}

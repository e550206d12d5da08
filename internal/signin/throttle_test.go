package signin_test

import (
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
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

func TestTenFailuresPerAccountAndSourceAreAllowed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for range 10 {
			f.Is(f.Guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)
		}
		before := f.Hashes.Hashed()
		f.Clock.Advance(5 * time.Minute)
		err := f.Guess("192.0.2.7", "owner", nodetest.Password)
		f.Is(err, rolecall.ErrTooManyAttempts)
		if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 10*time.Minute {
			t.Errorf("one is told to wait %v", err)
		}
		if spent := f.Hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent", spent)
		}
		f.OK(f.Guess("192.0.2.8", "owner", nodetest.Password))
		f.Clock.Advance(10 * time.Minute)
		f.OK(f.Guess("192.0.2.7", "owner", nodetest.Password))
	})
}

// A throttled sign-in leaves an event, so that an attack that goes on is visible. A flood leaves no more than
// one per account, source and minute.
func TestThrottledSignInsLeaveAnEvent(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 1, Source: 3}, func(f *nodetest.Fixture) {
		throttled := func() (sources []string) {
			f.OK(f.Access.Refusals.Flush(f.Context()))
			for _, e := range f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventSignInFailed)}) {
				if strings.HasPrefix(e.Reason, rolecall.ErrTooManyAttempts.Code) {
					sources = append(sources, e.Source+" "+e.Reason+" "+e.Subject.ID.String())
				}
			}
			slices.Sort(sources)
			return sources
		}
		ada := f.NewUser("ada")
		const first, second = "192.0.2.7", "192.0.2.8"
		for _, source := range []string{first, second} {
			f.Is(f.Guess(source, "ada", "wrong"), rolecall.ErrWrongCredentials)
			for range 20 {
				f.Is(f.Guess(source, "ada", nodetest.Password), rolecall.ErrTooManyAttempts)
			}
		}
		event := func(source string, subject rolecall.AnyID) string {
			return source + " " + rolecall.ErrTooManyAttempts.Code + " " + subject.String()
		}
		ofAda := []string{event(first, rolecall.AnyID(ada.ID)), event(second, rolecall.AnyID(ada.ID))}
		if got := throttled(); !slices.Equal(got, ofAda) {
			t.Errorf("in the first minute: %q, want %q", got, ofAda)
		}
		f.Clock.Advance(time.Minute)
		f.Is(f.Guess(first, "ada", nodetest.Password), rolecall.ErrTooManyAttempts)
		if got := throttled(); len(got) != 3 {
			t.Errorf("in the second minute: %q", got)
		}
		f.Is(f.Guess(second, "unknown", "wrong"), rolecall.ErrWrongCredentials)
		f.Is(f.Guess(second, "unknown", "wrong"), rolecall.ErrTooManyAttempts)
		if got := throttled(); !slices.Contains(got, event(second, rolecall.AnyID(f.Tenant.ID))) {
			t.Errorf("with an unknown address: %q", got)
		}
	})
}

// TestASecondFactorRefundsWhatItsPasswordCounted proves the password from one source,
// and the second factor from another. The counters of the second source do not change.
func TestASecondFactorRefundsWhatItsPasswordCounted(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 4, Source: 4}, func(f *nodetest.Fixture) {
		_, app, _ := f.Protected("ada")
		guest := f.NewUser("guest")
		f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}})
		const home, away = "192.0.2.7", "192.0.2.8"
		from := func(source string) access.Anonymous {
			a := f.Attempt()
			a.Source = source
			return a
		}
		complete := func(source string, challenge signin.Challenge, p signin.Proof) {
			t.Helper()
			f.OK(nodetest.ErrorOf(f.SignIn.CompleteSignIn(f.Context(), from(source), secret.Token(challenge.Token), p)))
		}
		asked := f.Challenge(from(home), "ada", rolecall.ErrSecondFactorRequired)
		accepted, err := f.SignIn.AcceptInvitation(f.Context(), from(home), f.Invite(guest.ID), nodetest.AnotherPassword)
		f.Is(nodetest.ErrorOf(accepted, err), rolecall.ErrEnrolmentRequired)

		for range 3 { // the counter of the account and this source, and that of the source, are full after one more
			f.Is(f.Guess(away, "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess(away, "nobody", "wrong"), rolecall.ErrWrongCredentials)
		complete(away, asked, signin.Proof{Code: app.Next()})
		begun, err := f.SignIn.BeginEnrolment(f.Context(), from(away), secret.Token(accepted.Challenge.Token))
		f.OK(err)
		complete(away, *accepted.Challenge, signin.Proof{Code: f.AppOf(begun.TOTPSecret).Code()})
		f.Is(f.Guess(away, "nobody", "wrong"), rolecall.ErrTooManyAttempts)

		// The sign-in from home was refunded, so four more attempts are allowed.
		for range 4 {
			f.Is(f.Guess(home, "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess(home, "ada", "wrong"), rolecall.ErrTooManyAttempts)
	})
}

// TestASecondFactorRefundsNothingInALaterWindow uses challenges after the window in which
// their attempts were counted has ended. The refund does not reduce the counter of the
// next window.
func TestASecondFactorRefundsNothingInALaterWindow(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{Source: 4}, func(f *nodetest.Fixture) {
		_, _, codes := f.Protected("ada")
		f.Clock.Advance(6 * time.Minute) // the window of the earlier sign-ins has four minutes left
		kept := f.FactorChallenge("ada")
		f.Clock.Advance(4 * time.Minute)
		for i := range 4 {
			f.Is(f.Guess("192.0.2.1", fmt.Sprintf("user-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		f.OK(nodetest.ErrorOf(f.Answer(kept, signin.Proof{RecoveryCode: string(codes[0])})))
		f.Is(f.Guess("192.0.2.1", "nobody", "wrong"), rolecall.ErrTooManyAttempts)
	})
}

func TestASuccessResetsTheCount(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for range 3 {
			for range 9 {
				f.Is(f.Guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)
			}
			f.OK(f.Guess("192.0.2.7", "owner", nodetest.Password))
		}
	})
}

func TestAHundredFailuresPerAccountAreAllowed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i := range 100 {
			f.Is(f.Guess(fmt.Sprintf("198.51.100.%d", i), "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess("203.0.113.1", "ada", "wrong"), rolecall.ErrTooManyAttempts)
		f.OK(f.Guess("203.0.113.1", "owner", nodetest.Password))
		other := f.NewTenant("other")
		_, err := f.SignIn.Login(f.Context(), access.Anonymous{Tenant: other, TenantName: "other", Source: "203.0.113.1"}, nodetest.Address("ada"), "wrong")
		f.Is(err, rolecall.ErrWrongCredentials)
	})
}

func TestAHundredFailuresPerSourceAreAllowed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i := range 100 {
			f.Is(f.Guess("192.0.2.7", fmt.Sprintf("user-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess("192.0.2.7", "owner", nodetest.Password), rolecall.ErrTooManyAttempts)
		f.OK(f.Guess("192.0.2.8", "owner", nodetest.Password))
		f.Clock.Advance(10 * time.Minute)
		f.OK(f.Guess("192.0.2.7", "owner", nodetest.Password))
	})
}

func TestANetworkOfIPv6IsOneSource(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i := range 10 {
			f.Is(f.Guess(fmt.Sprintf("2001:db8::%d", i), "owner", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess("2001:db8::ffff:1", "owner", "wrong"), rolecall.ErrTooManyAttempts)
		f.Is(f.Guess("2001:db8:0:1::1", "owner", "wrong"), rolecall.ErrWrongCredentials)
		for i := range 10 {
			f.Is(f.Guess("::ffff:192.0.2.9", "ada", fmt.Sprint(i)), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess("192.0.2.9", "ada", "wrong"), rolecall.ErrTooManyAttempts)
	})
}

func TestParallelAttemptsCannotExceedTheLimit(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		before := f.Hashes.Hashed()
		var evaluated atomic.Int64
		var running sync.WaitGroup
		for range 200 {
			running.Go(func() {
				switch err := f.Guess("192.0.2.7", "owner", "wrong"); {
				case errors.Is(err, rolecall.ErrWrongCredentials):
					evaluated.Add(1)
				case !errors.Is(err, rolecall.ErrTooManyAttempts):
					t.Error(err)
				}
			})
		}
		running.Wait()
		if n, spent := evaluated.Load(), f.Hashes.Hashed()-before; n != 10 || spent != 10 {
			t.Errorf("%d were evaluated with %d hashes", n, spent)
		}
	})
}

func TestAnUnknownTenantIsCountedLikeAnyOther(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		a := access.Anonymous{TenantName: "nobody", Source: "192.0.2.7"}
		for range 10 {
			_, err := f.SignIn.Login(f.Context(), a, nodetest.Address("owner"), "wrong")
			f.Is(err, rolecall.ErrWrongCredentials)
		}
		_, err := f.SignIn.Login(f.Context(), a, nodetest.Address("owner"), "wrong")
		f.Is(err, rolecall.ErrTooManyAttempts)
		f.OK(f.Guess("192.0.2.7", "owner", nodetest.Password))
	})
}

func TestTheLimitsAreSettings(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{AccountAndSource: 2, Account: 3, Source: 4}, func(f *nodetest.Fixture) {
		f.Is(f.Guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.Is(f.Guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.Is(f.Guess("192.0.2.7", "ada", "wrong"), rolecall.ErrTooManyAttempts)
		f.Is(f.Guess("192.0.2.8", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.Is(f.Guess("192.0.2.9", "ada", "wrong"), rolecall.ErrTooManyAttempts)
		f.Is(f.Guess("192.0.2.7", "bob", "wrong"), rolecall.ErrWrongCredentials)
		f.Is(f.Guess("192.0.2.7", "eve", "wrong"), rolecall.ErrWrongCredentials)
		f.Is(f.Guess("192.0.2.7", "joe", "wrong"), rolecall.ErrTooManyAttempts)
	})
}

func TestARefusedAttemptIsNotCounted(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i := range 300 {
			want := rolecall.ErrWrongCredentials
			if i >= 10 {
				want = rolecall.ErrTooManyAttempts
			}
			f.Is(f.Guess("192.0.2.7", "ada", "wrong"), want)
		}
		f.Is(f.Guess("192.0.2.8", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.OK(f.Guess("192.0.2.7", "owner", nodetest.Password))
	})
}

func TestTheCountIsSharedByNodesAndSurvivesARestart(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for range 10 {
			f.Is(f.Guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)
			f.Node = f.NewNode()
		}
		f.Is(f.Guess("192.0.2.7", "owner", nodetest.Password), rolecall.ErrTooManyAttempts)
	})
}

// An address is read once, for the event.
func TestRefusedAttemptsWriteNothing(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{Source: 3}, func(f *nodetest.Fixture) {
		f.LogIn("owner") // from another source than the guesses
		for i := range 3 {
			f.Is(f.Guess("192.0.2.7", fmt.Sprintf("user-%d", i), "wrong"), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess("192.0.2.7", "first", "wrong"), rolecall.ErrTooManyAttempts)
		for _, want := range [][]string{slices.Repeat([]string{"view", "user by address"}, 50), nil} {
			asked := f.DB.During(func() {
				for i := range 50 {
					f.Is(f.Guess("192.0.2.7", fmt.Sprintf("more-%d", i), "wrong"), rolecall.ErrTooManyAttempts)
				}
			})
			if !slices.Equal(asked, want) {
				t.Errorf("the store was asked %q, want %q", asked, want)
			}
		}
		f.Clock.Advance(10 * time.Minute)
		f.OK(f.Guess("192.0.2.7", "owner", nodetest.Password))
	})
}

func TestAnAttemptRefusedForOverloadIsNotCounted(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		peer := f.Node
		busy := node.New(f.DB, access.Options{
			Clock: f.Clock.Now, Keys: f.Keys, Passwords: secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 64, Threads: 1}, 0, 0),
		})
		for range 20 {
			f.Node = busy
			f.Is(f.Guess("192.0.2.7", "owner", nodetest.Password), rolecall.ErrBusy)
			f.Is(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), f.Owner, nodetest.Password, "another "+nodetest.Password)), rolecall.ErrBusy)
		}
		f.Node = peer
		f.OK(f.Guess("192.0.2.7", "owner", nodetest.Password))
		f.OK(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), f.Owner, nodetest.Password, "another "+nodetest.Password)))
	})
}

func TestAnInvalidAddressFailsLikeAWrongOne(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for _, email := range []string{"a\x00b@example.com", "\x00", "a\xffb@example.com"} {
			f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), f.Attempt(), email, nodetest.Password)), rolecall.ErrWrongCredentials)
		}
	})
}

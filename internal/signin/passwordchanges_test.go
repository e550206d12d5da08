package signin_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/signin"
)

func TestChangingThePasswordEndsTheOtherSessions(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		this, other := f.LogIn("ada"), f.LogIn("ada")
		for _, in := range []signin.SignIn{this, other} {
			f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
		}
		f.OK(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), f.CallerOf(this), nodetest.Password, nodetest.AnotherPassword)))
		for _, node := range []*node.Node{f.Node, f.NewNode()} {
			f.OK(nodetest.ErrorOf(f.Authenticate(node, this.Token)))
			f.Is(nodetest.ErrorOf(f.Authenticate(node, other.Token)), rolecall.ErrUnauthenticated)
		}
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.OK(f.Guess("192.0.2.7", "ada", nodetest.AnotherPassword))
		if got := f.EventTypes(ada.ID); got[1] != rolecall.EventSessionEnded || got[2] != rolecall.EventPasswordChanged {
			t.Errorf("the events are %v", got)
		}
	})
}

func TestChangingThePasswordRequiresAGoodOne(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		call := f.CallerOf(f.LogIn("ada"))
		call.User.Email, call.User.Name = "ada.lovelace@example.com", "Augusta Ada Lovelace"
		before := f.Hashes.Hashed()
		for refused, code := range refusedPasswords {
			_, err := f.SignIn.ChangePassword(f.Context(), call, nodetest.Password, refused)
			f.Is(err, rolecall.ErrValidation)
			if got := nodetest.FaultsOf(err); !slices.Equal(got, []string{"/newPassword " + code}) {
				t.Errorf("%.40q: the faults are %q, not %s", refused, got, code)
			}
		}
		if spent := f.Hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent on refused passwords", spent)
		}
	})
}

func TestAWrongCurrentPasswordIsCounted(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		in := f.LogIn("ada")
		change := func(current string) error {
			return nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), f.CallerOf(in), current, nodetest.AnotherPassword))
		}
		for range 10 {
			err := change("wrong")
			f.Is(err, rolecall.ErrValidation)
			if got := nodetest.FaultsOf(err); !slices.Equal(got, []string{"/currentPassword wrong"}) {
				t.Fatalf("the faults are %q", got)
			}
		}
		before := f.Hashes.Hashed()
		err := change(nodetest.Password)
		f.Is(err, rolecall.ErrTooManyAttempts)
		if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 15*time.Minute {
			t.Errorf("one is told to wait %v", err)
		}
		if spent := f.Hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent", spent)
		}
		f.OK(f.Guess("192.0.2.1", "ada", nodetest.Password))

		f.OK(f.Access.Refusals.Flush(f.Context()))
		failed := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventSignInFailed)})
		if len(failed) != 1 || failed[0].Actor.ID != ada.ID || failed[0].Subject.ID != rolecall.AnyID(ada.ID) || failed[0].Reason != "wrong current password, 10 times" {
			t.Errorf("the events are %+v", failed)
		}

		f.Clock.Advance(15 * time.Minute)
		f.Is(change("wrong"), rolecall.ErrValidation)
		f.OK(change(nodetest.Password))
		for range 10 {
			f.Is(change("wrong"), rolecall.ErrValidation)
		}
	})
}

func TestConcurrentWrongCurrentPasswordsCannotExceedTheLimit(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		call, before := f.CallerOf(f.LogIn("ada")), f.Hashes.Hashed()
		var evaluated atomic.Int64
		var running sync.WaitGroup
		for range 200 {
			running.Go(func() {
				switch _, err := f.SignIn.ChangePassword(f.Context(), call, "wrong", nodetest.AnotherPassword); {
				case errors.Is(err, rolecall.ErrValidation):
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

func TestFailedSignInsDoNotPreventAPasswordChange(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		call := f.CallerOf(f.LogIn("ada"))
		for i := range 101 {
			if err := f.Guess(fmt.Sprintf("198.51.100.%d", i), "ada", "wrong"); i == 100 {
				f.Is(err, rolecall.ErrTooManyAttempts)
			}
		}
		f.OK(nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), call, nodetest.Password, nodetest.AnotherPassword)))
	})
}

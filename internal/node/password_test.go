package node_test

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
	"github.com/rolecall/rolecall/internal/signin"
)

func TestChangingThePasswordEndsTheOtherSessions(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		this, other := f.signIn("ada"), f.signIn("ada")
		for _, in := range []signin.SignIn{this, other} {
			f.ok(errorOf(f.authenticate(f.Node, in.Token)))
		}
		f.ok(errorOf(f.SignIn.ChangePassword(f.Context(), f.call(this), password, anotherPassword)))
		for _, node := range []*node.Node{f.Node, f.node()} {
			f.ok(errorOf(f.authenticate(node, this.Token)))
			f.is(errorOf(f.authenticate(node, other.Token)), rolecall.ErrUnauthenticated)
		}
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)
		f.ok(f.guess("192.0.2.7", "ada", anotherPassword))
		if got := f.eventTypes(ada.ID); got[1] != rolecall.EventSessionEnded || got[2] != rolecall.EventPasswordChanged {
			t.Errorf("the events are %v", got)
		}
	})
}

func TestChangingThePasswordRequiresAGoodOne(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		call := f.call(f.signIn("ada"))
		call.User.Email, call.User.Name = "ada.lovelace@example.com", "Augusta Ada Lovelace"
		before := f.hashes.Hashed()
		for refused, code := range refusedPasswords {
			_, err := f.SignIn.ChangePassword(f.Context(), call, password, refused)
			f.is(err, rolecall.ErrValidation)
			if got := faultsOf(err); !slices.Equal(got, []string{"/newPassword " + code}) {
				t.Errorf("%.40q: the faults are %q, not %s", refused, got, code)
			}
		}
		if spent := f.hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent on refused passwords", spent)
		}
	})
}

func TestAWrongCurrentPasswordIsCounted(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		in := f.signIn("ada")
		change := func(current string) error {
			return errorOf(f.SignIn.ChangePassword(f.Context(), f.call(in), current, anotherPassword))
		}
		for range 10 {
			err := change("wrong")
			f.is(err, rolecall.ErrValidation)
			if got := faultsOf(err); !slices.Equal(got, []string{"/currentPassword wrong"}) {
				t.Fatalf("the faults are %q", got)
			}
		}
		before := f.hashes.Hashed()
		err := change(password)
		f.is(err, rolecall.ErrTooManyAttempts)
		if e, ok := errors.AsType[*rolecall.Error](err); !ok || e.RetryAfter != 15*time.Minute {
			t.Errorf("one is told to wait %v", err)
		}
		if spent := f.hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent", spent)
		}
		f.ok(f.guess("192.0.2.1", "ada", password))

		f.ok(f.Access.Refusals.Flush(f.Context()))
		failed := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventSignInFailed)})
		if len(failed) != 1 || failed[0].Actor.ID != ada.ID || failed[0].Subject.ID != rolecall.AnyID(ada.ID) || failed[0].Reason != "wrong current password, 10 times" {
			t.Errorf("the events are %+v", failed)
		}

		f.clock.advance(15 * time.Minute)
		f.is(change("wrong"), rolecall.ErrValidation)
		f.ok(change(password))
		for range 10 {
			f.is(change("wrong"), rolecall.ErrValidation)
		}
	})
}

func TestConcurrentWrongCurrentPasswordsCannotExceedTheLimit(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		call, before := f.call(f.signIn("ada")), f.hashes.Hashed()
		var evaluated atomic.Int64
		var running sync.WaitGroup
		for range 200 {
			running.Go(func() {
				switch _, err := f.SignIn.ChangePassword(f.Context(), call, "wrong", anotherPassword); {
				case errors.Is(err, rolecall.ErrValidation):
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

func TestFailedSignInsDoNotPreventAPasswordChange(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		call := f.call(f.signIn("ada"))
		for i := range 101 {
			if err := f.guess(fmt.Sprintf("198.51.100.%d", i), "ada", "wrong"); i == 100 {
				f.is(err, rolecall.ErrTooManyAttempts)
			}
		}
		f.ok(errorOf(f.SignIn.ChangePassword(f.Context(), call, password, anotherPassword)))
	})
}

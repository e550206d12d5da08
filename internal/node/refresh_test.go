package node_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// refresh exchanges the session token for the next one on a node. It fails the test if
// there is an error.
func (f *fixture) refresh(node *node.Node, token secret.Token) secret.Token {
	f.Helper()
	next, err := node.SignIn.Refresh(f.Context(), f.attempt(token))
	f.ok(err)
	return next.Token
}

func TestAnOldTokenRefreshesToOneSuccessorUntilThatIsUsed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		old := f.signIn("owner").Token
		next := f.refresh(f.Node, old)
		f.clock.advance(time.Hour)
		if again := f.refresh(f.node(), old); again != next {
			t.Error("another node answered another successor")
		}
		_, err := f.authenticate(f.Node, old)
		f.ok(err)
	})
}

func TestAnOldTokenWorksForTheGraceAndThenEndsTheSession(t *testing.T) {
	for name, grace := range map[string]rolecall.Seconds{"the default": 10, "none": 0, "the longest": 300} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(f *fixture) {
				f.settings(rolecall.TenantSettings{RefreshGrace: &grace})
				in := f.signIn("owner")
				next := f.refresh(f.Node, in.Token)
				_, err := f.authenticate(f.Node, next)
				f.ok(err)
				if grace > 0 {
					f.clock.advance(time.Duration(grace)*time.Second - time.Microsecond)
					if again := f.refresh(f.Node, in.Token); again != next {
						t.Error("within the grace another successor was answered")
					}
					f.clock.advance(time.Microsecond)
				}
				_, err = f.authenticate(f.Node, in.Token)
				f.is(err, rolecall.ErrUnauthenticated)
				_, err = f.authenticate(f.Node, next)
				f.is(err, rolecall.ErrUnauthenticated)
				if got := f.eventTypes(in.Principal.User.ID)[0]; got != rolecall.EventTokenReused {
					t.Errorf("the newest event is %s", got)
				}
			})
		})
	}
}

func TestAnyOlderGenerationEndsTheSession(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		tokens := []secret.Token{f.signIn("owner").Token}
		for range 5 {
			f.clock.advance(time.Minute)
			tokens = append(tokens, f.refresh(f.Node, tokens[len(tokens)-1]))
			f.ok(errorOf(f.authenticate(f.Node, tokens[len(tokens)-1])))
		}
		f.clock.advance(time.Minute)
		_, err := f.SignIn.Refresh(f.Context(), f.attempt(tokens[2]))
		f.is(err, rolecall.ErrUnauthenticated)
		f.is(errorOf(f.authenticate(f.Node, tokens[5])), rolecall.ErrUnauthenticated)
	})
}

// errorOf returns the error. For a sign-in that needs a second factor, it returns the
// problem of the challenge.
func errorOf[T any](value T, err error) error {
	if in, ok := any(value).(signin.SignIn); ok && in.Challenge != nil && err == nil {
		return in.Challenge.Problem
	}
	return err
}

func TestGenerationsOlderThanAHundredAreForgotten(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		first := f.signIn("owner").Token
		tokens := []secret.Token{first}
		for range 103 {
			f.clock.advance(time.Minute)
			tokens = append(tokens, f.refresh(f.Node, tokens[len(tokens)-1]))
			f.ok(errorOf(f.authenticate(f.Node, tokens[len(tokens)-1])))
		}
		last := tokens[len(tokens)-1]
		f.is(errorOf(f.authenticate(f.Node, first)), rolecall.ErrUnauthenticated)
		f.ok(errorOf(f.authenticate(f.Node, last)))
		f.is(errorOf(f.authenticate(f.Node, tokens[10])), rolecall.ErrUnauthenticated)
		f.is(errorOf(f.authenticate(f.Node, last)), rolecall.ErrUnauthenticated)
	})
}

func TestParallelRefreshesOnTwoNodesAnswerOneSuccessor(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		old := f.signIn("owner").Token
		nodes := []*node.Node{f.Node, f.node()}
		successors := make([]secret.Token, 50)
		var running sync.WaitGroup
		for i := range successors {
			running.Go(func() {
				next, err := nodes[i%2].SignIn.Refresh(f.Context(), f.attempt(old))
				if err != nil {
					t.Error(err)
				}
				successors[i] = next.Token
			})
		}
		running.Wait()
		if slices.Sort(successors); len(slices.Compact(successors)) != 1 {
			t.Error("there are several successors")
		}
	})
}

func TestNoRefreshAfterTheSessionEnded(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user := f.member("ada")
		for _, end := range map[string]func(secret.Token){
			"logout": func(token secret.Token) { f.ok(f.SignIn.Logout(f.Context(), f.attempt(token))) },
			"new password": func(secret.Token) {
				f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, address("ada"), password))
			},
			"suspension": func(secret.Token) {
				f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, user.ID, "")))
				f.ok(errorOf(f.Directory.ResumeUser(f.Context(), f.owner, user.ID, "")))
			},
		} {
			old := f.signIn("ada").Token
			next := f.refresh(f.Node, old)
			end(old)
			for _, token := range []secret.Token{old, next} {
				f.is(errorOf(f.SignIn.Refresh(f.Context(), f.attempt(token))), rolecall.ErrUnauthenticated)
				f.is(errorOf(f.authenticate(f.node(), token)), rolecall.ErrUnauthenticated)
			}
		}
	})
}

package signin_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
)

func TestAnOldTokenRefreshesToOneSuccessorUntilThatIsUsed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		old := f.LogIn("owner").Token
		next := f.Refresh(f.Node, old)
		f.Clock.Advance(time.Hour)
		if again := f.Refresh(f.NewNode(), old); again != next {
			t.Error("another node answered another successor")
		}
		_, err := f.Authenticate(f.Node, old)
		f.OK(err)
	})
}

func TestAnOldTokenWorksForTheGraceAndThenEndsTheSession(t *testing.T) {
	for name, grace := range map[string]rolecall.Seconds{"the default": 10, "none": 0, "the longest": 300} {
		t.Run(name, func(t *testing.T) {
			nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
				f.SetSettings(rolecall.TenantSettings{RefreshGrace: &grace})
				in := f.LogIn("owner")
				next := f.Refresh(f.Node, in.Token)
				_, err := f.Authenticate(f.Node, next)
				f.OK(err)
				if grace > 0 {
					f.Clock.Advance(time.Duration(grace)*time.Second - time.Microsecond)
					if again := f.Refresh(f.Node, in.Token); again != next {
						t.Error("within the grace another successor was answered")
					}
					f.Clock.Advance(time.Microsecond)
				}
				_, err = f.Authenticate(f.Node, in.Token)
				f.Is(err, rolecall.ErrUnauthenticated)
				_, err = f.Authenticate(f.Node, next)
				f.Is(err, rolecall.ErrUnauthenticated)
				if got := f.EventTypes(in.Principal.User.ID)[0]; got != rolecall.EventTokenReused {
					t.Errorf("the newest event is %s", got)
				}
			})
		})
	}
}

func TestAnyOlderGenerationEndsTheSession(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		tokens := []secret.Token{f.LogIn("owner").Token}
		for range 5 {
			f.Clock.Advance(time.Minute)
			tokens = append(tokens, f.Refresh(f.Node, tokens[len(tokens)-1]))
			f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, tokens[len(tokens)-1])))
		}
		f.Clock.Advance(time.Minute)
		_, err := f.SignIn.Refresh(f.Context(), f.Attempt(tokens[2]))
		f.Is(err, rolecall.ErrUnauthenticated)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, tokens[5])), rolecall.ErrUnauthenticated)
	})
}

func TestGenerationsOlderThanAHundredAreForgotten(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		first := f.LogIn("owner").Token
		tokens := []secret.Token{first}
		for range 103 {
			f.Clock.Advance(time.Minute)
			tokens = append(tokens, f.Refresh(f.Node, tokens[len(tokens)-1]))
			f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, tokens[len(tokens)-1])))
		}
		last := tokens[len(tokens)-1]
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, first)), rolecall.ErrUnauthenticated)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, last)))
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, tokens[10])), rolecall.ErrUnauthenticated)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, last)), rolecall.ErrUnauthenticated)
	})
}

func TestParallelRefreshesOnTwoNodesAnswerOneSuccessor(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		old := f.LogIn("owner").Token
		nodes := []*node.Node{f.Node, f.NewNode()}
		successors := make([]secret.Token, 50)
		var running sync.WaitGroup
		for i := range successors {
			running.Go(func() {
				next, err := nodes[i%2].SignIn.Refresh(f.Context(), f.Attempt(old))
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := f.NewMember("ada")
		for _, end := range map[string]func(secret.Token){
			"logout": func(token secret.Token) { f.OK(f.SignIn.Logout(f.Context(), f.Attempt(token))) },
			"new password": func(secret.Token) {
				f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address("ada"), nodetest.Password))
			},
			"suspension": func(secret.Token) {
				f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, user.ID, "")))
				f.OK(nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, user.ID, "")))
			},
		} {
			old := f.LogIn("ada").Token
			next := f.Refresh(f.Node, old)
			end(old)
			for _, token := range []secret.Token{old, next} {
				f.Is(nodetest.ErrorOf(f.SignIn.Refresh(f.Context(), f.Attempt(token))), rolecall.ErrUnauthenticated)
				f.Is(nodetest.ErrorOf(f.Authenticate(f.NewNode(), token)), rolecall.ErrUnauthenticated)
			}
		}
	})
}

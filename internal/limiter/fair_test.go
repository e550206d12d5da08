package limiter

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// taken returns how many places the owner gets at once.
func taken(f *Fair[string], owner string) (n int) {
	gaveUp, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		f.mu.Lock()
		ok := f.admit(owner)
		f.mu.Unlock()
		if !ok {
			if err := f.Acquire(gaveUp, owner); !errors.Is(err, context.Canceled) {
				panic(err)
			}
			return n
		}
		n++
	}
}

func TestAnOwnerLeavesPlacesToOthers(t *testing.T) {
	for limit, want := range map[int][]int{1: {1, 0}, 2: {1, 1}, 4: {3, 1}, 16: {12, 3, 1, 0}, 32: {24, 6, 1, 1, 0}} {
		f := NewFair[string](limit)
		for i, n := range want {
			owner := string(rune('a' + i))
			if got := taken(f, owner); got != n {
				t.Errorf("of %d places, owner %s gets %d, want %d", limit, owner, got, n)
			}
		}
		if len(f.waiting) != 0 {
			t.Errorf("%d still wait", len(f.waiting))
		}
	}
}

func TestAFreedPlaceGoesToTheFirstWhoMayHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFair[string](4)
		taken(f, "a")
		taken(f, "b")
		order := make(chan string, 4)
		for _, owner := range []string{"a", "b", "c", "a"} {
			go func() {
				if err := f.Acquire(t.Context(), owner); err != nil {
					t.Error(err)
				}
				order <- owner
			}()
			synctest.Wait()
		}
		for _, step := range []struct{ frees, admits string }{{"a", "c"}, {"a", ""}, {"b", "ab"}, {"c", ""}, {"b", "a"}} {
			f.Release(step.frees)
			synctest.Wait()
			var admitted []string
			for len(order) > 0 {
				admitted = append(admitted, <-order)
			}
			slices.Sort(admitted) // they have their places at the same time
			if got := strings.Join(admitted, ""); got != step.admits {
				t.Errorf("after a place of %s, %q is admitted, want %q (%v)", step.frees, got, step.admits, f.of)
			}
		}
		for range 3 {
			f.Release("a")
		}
		if f.running != 0 || len(f.of) != 0 || len(f.waiting) != 0 {
			t.Errorf("left are %d, %v, %d", f.running, f.of, len(f.waiting))
		}
	})
}

package limiter

import (
	"context"
	"errors"
	"testing"
)

// operations are operations of one owner.
type operations struct {
	contexts []context.Context
	ends     []func()
}

// begin begins n operations of the owner, and returns those that were not refused.
func begin(t *testing.T, s *Shares[string], owner string, n int) (all operations) {
	t.Helper()
	for range n {
		if running, end, ok := s.Begin(t.Context(), owner); ok {
			all.contexts, all.ends = append(all.contexts, running), append(all.ends, end)
		}
	}
	return all
}

// left returns how many of the operations run.
func (o *operations) left(t *testing.T) (n int) {
	t.Helper()
	for i, running := range o.contexts {
		switch {
		case running.Err() == nil && n < i:
			t.Errorf("the operation %d runs, and an older one has ended", i)
		case running.Err() == nil:
			n++
		case !errors.Is(context.Cause(running), ErrLostShare):
			t.Errorf("the operation %d ended with %v", i, context.Cause(running))
		}
	}
	return n
}

func TestTheOwnerWithMostLosesTheNewest(t *testing.T) {
	s := NewShares[string](40)
	large := begin(t, s, "large", 50)
	if n := large.left(t); n != 40 {
		t.Fatalf("one owner has %d operations", n)
	}
	small := begin(t, s, "small", 15)
	if a, b := large.left(t), small.left(t); a != 25 || b != 15 {
		t.Errorf("%d and %d operations run", a, b)
	}
	// An owner takes more only while another one has more.
	small2 := begin(t, s, "small", 10)
	if a, b := large.left(t), small.left(t)+small2.left(t); a != 20 || b != 20 {
		t.Errorf("%d and %d operations run", a, b)
	}
	if more := begin(t, s, "large", 3); len(more.ends) != 0 {
		t.Errorf("on a tie, %d operations began", len(more.ends))
	}
	for i := range 100 { // many owners with one operation
		begin(t, s, string(rune('0'+i)), 1)
	}
	if s.running != 40 {
		t.Errorf("%d operations run", s.running)
	}
	for owner, all := range s.of {
		if len(all) > 2 {
			t.Errorf("%s has %d operations", owner, len(all))
		}
	}
}

func TestAnOperationEndsOnce(t *testing.T) {
	s := NewShares[string](2)
	all := begin(t, s, "a", 2)
	other := begin(t, s, "b", 1)
	for _, end := range append(all.ends, all.ends...) { // one of them has made room already
		end()
	}
	if s.running != 1 || len(s.of) != 1 {
		t.Errorf("%d operations of %d owners run", s.running, len(s.of))
	}
	if other.contexts[0].Err() != nil {
		t.Error("the operation of another owner ended")
	}
	other.ends[0]()
	if s.running != 0 || len(s.of) != 0 {
		t.Errorf("%d operations of %d owners run", s.running, len(s.of))
	}
}

package gate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// enterLater enters in a goroutine of its own, and returns how it goes.
func enterLater(ctx context.Context, g *Gate) <-chan bool {
	in := make(chan bool, 1)
	go func() { in <- g.Enter(ctx) }()
	synctest.Wait()
	return in
}

func TestGate(t *testing.T) {
	t.Run("no more than the slots are in, no more than the queue waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := New(2, 1, time.Second)
			for range 2 {
				if !g.Enter(t.Context()) {
					t.Fatal("a free slot was refused")
				}
			}
			third := enterLater(t.Context(), g)
			before := time.Now()
			if g.Enter(t.Context()) || time.Since(before) != 0 {
				t.Error("one more than the queue holds was not refused at once")
			}
			g.Leave()
			if !<-third {
				t.Error("the slot did not go to who waited")
			}
			g.Leave()
			if !g.Enter(t.Context()) {
				t.Error("a slot that was left stays taken")
			}
		})
	})
	t.Run("nobody waits longer than the patience", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := New(1, 1, time.Second)
			g.Enter(t.Context())
			for range 2 {
				before := time.Now()
				if g.Enter(t.Context()) {
					t.Fatal("a slot that is taken was given")
				}
				if waited := time.Since(before); waited != time.Second {
					t.Errorf("waited %v", waited)
				}
			}
		})
	})
	t.Run("who leaves the queue leaves no trace", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := New(1, 1, 0)
			g.Enter(t.Context())
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				waiting := enterLater(ctx, g)
				cancel()
				if <-waiting {
					t.Fatal("a slot that is taken was given")
				}
			}
			g.Leave()
			if !g.Enter(t.Context()) {
				t.Error("the slot is taken by somebody who gave up")
			}
		})
	})
}

func BenchmarkGate(b *testing.B) {
	g := New(64, 1024, time.Second)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if g.Enter(b.Context()) {
				g.Leave()
			}
		}
	})
}

package limiter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// acquireLater acquires a slot in another goroutine, and returns a channel that receives the
// result.
func acquireLater(ctx context.Context, l *Limiter) <-chan bool {
	in := make(chan bool, 1)
	go func() { in <- l.Acquire(ctx) }()
	synctest.Wait()
	return in
}

func TestLimiter(t *testing.T) {
	t.Run("the numbers of running and waiting operations are limited", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := New(2, 1, time.Second)
			for range 2 {
				if !l.Acquire(t.Context()) {
					t.Fatal("a free slot was refused")
				}
			}
			third := acquireLater(t.Context(), l)
			before := time.Now()
			if l.Acquire(t.Context()) || time.Since(before) != 0 {
				t.Error("the queue took one operation too many, or did not refuse it at once")
			}
			l.Release()
			if !<-third {
				t.Error("the waiting operation did not get the slot")
			}
			l.Release()
			if !l.Acquire(t.Context()) {
				t.Error("a released slot stays taken")
			}
		})
	})
	t.Run("no operation waits longer than maxWait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := New(1, 1, time.Second)
			l.Acquire(t.Context())
			for range 2 {
				before := time.Now()
				if l.Acquire(t.Context()) {
					t.Fatal("a taken slot was given")
				}
				if waited := time.Since(before); waited != time.Second {
					t.Errorf("waited %v", waited)
				}
			}
		})
	})
	t.Run("an operation that leaves the queue leaves no trace", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := New(1, 1, 0)
			l.Acquire(t.Context())
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				waiting := acquireLater(ctx, l)
				cancel()
				if <-waiting {
					t.Fatal("a taken slot was given")
				}
			}
			l.Release()
			if !l.Acquire(t.Context()) {
				t.Error("a canceled operation has the slot")
			}
		})
	})
}

func BenchmarkLimiter(b *testing.B) {
	l := New(64, 1024, time.Second)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if l.Acquire(b.Context()) {
				l.Release()
			}
		}
	})
}

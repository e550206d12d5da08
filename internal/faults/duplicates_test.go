package faults

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestDuplicates sends a hundred duplicates of a creation at once, and kills the program
// during every third round. One user is created, and every duplicate finally gets that
// user.
func TestDuplicates(t *testing.T) {
	onStores(t, func(t *testing.T, database string) {
		const duplicates = 100
		s := serve(t, database)
		l := newLoad(t, s)
		l.spread = 1
		l.open()
		rounds := times(3, 200)
		for round := range rounds {
			c := l.tenants[0].newCreation("")
			heard := make(chan string, duplicates)
			var senders sync.WaitGroup
			before := l.tried.Load()
			for range duplicates {
				senders.Go(func() {
					u, ok := l.tenants[0].create(c)
					if !ok {
						t.Errorf("round %d: a duplicate was refused", round)
					}
					heard <- u.ID
				})
			}
			if round%3 == 1 {
				awaitTried(l, before+1+rand.Int64N(2*duplicates))
				kill(t, s)
				start(t, s)
			}
			senders.Wait()
			first := <-heard
			for range duplicates - 1 {
				if id := <-heard; id != first {
					t.Fatalf("round %d: one duplicate made %s and another %s", round, first, id)
				}
			}
		}
		l.finish()
		l.report("duplicates")
		t.Logf("%d times %d duplicates, each time one user", rounds, duplicates)
	})
}

// awaitTried waits until n requests have been started in total, but not longer than 100 ms, because
// the clients may send fewer requests.
func awaitTried(l *load, n int64) {
	poll := time.NewTicker(100 * time.Microsecond)
	defer poll.Stop()
	for deadline := time.Now().Add(100 * time.Millisecond); l.tried.Load() < n && time.Now().Before(deadline); <-poll.C {
	}
}

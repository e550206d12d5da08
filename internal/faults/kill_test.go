package faults

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestKill kills the program at random moments under load, again and again. After each
// restart, all acknowledged changes are present. The clients that follow the changes have read each of
// them once. On PostgreSQL, they follow on another node, which is killed too: both nodes number events.
func TestKill(t *testing.T) {
	onStores(t, func(t *testing.T, database string) {
		const together = 10 // number of kills per history
		s := serve(t, database)
		l := newLoad(t, s)
		l.follows = true
		if strings.HasPrefix(database, "postgres:") {
			l.far = serve(t, database)
		}
		var slowest time.Duration
		cycles := fewer(1, 3, 300)
		for done := 0; done < cycles; {
			l.start()
			for range min(together, cycles-done) {
				l.await(100 + rand.Int64N(600))
				kill(t, s)
				killed := time.Now()
				start(t, s)
				slowest = max(slowest, time.Since(killed))
				if done++; l.far != nil && rand.IntN(2) == 0 {
					kill(t, l.far)
					start(t, l.far)
				}
			}
			l.await(200)
			l.finish()
		}
		l.report("kill -9")
		t.Logf("killed %d times; ready again within %v", cycles, slowest.Round(time.Millisecond))
	})
}

// dieAgain kills the program under load and starts it again. After the given number of kills, it
// stops the clients.
func (l *load) dieAgain(kills int) {
	l.t.Helper()
	for range kills {
		l.await(20 + rand.Int64N(60))
		kill(l.t, l.server)
		start(l.t, l.server)
	}
	l.await(40)
	l.stop()
}

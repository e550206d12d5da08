package faults

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/process"
)

// TestKill kills the program at random moments under load, again and again. After each
// restart, all acknowledged changes are present. The clients that follow the changes have read each of
// them once, and webhooks have delivered each of them at least once. On PostgreSQL, the clients follow on
// another node, which is killed too: both nodes number events and deliver.
func TestKill(t *testing.T) {
	onStores(t, func(t *testing.T, database string) {
		const together = 10 // number of kills per history
		endpoint := newEndpoint(t)
		s := serveHooked(t, database, endpoint)
		l := newLoad(t, s)
		l.follows, l.endpoint = true, endpoint
		if strings.HasPrefix(database, "postgres:") {
			l.far = serveHooked(t, database, endpoint)
		}
		var slowest time.Duration
		cycles := times(5, 300)
		for done := 0; done < cycles; {
			l.start()
			for range min(together, cycles-done) {
				l.await(50 + rand.Int64N(int64(fewer(150, 600, 600))))
				release := endpoint.hold()
				l.await(50)
				kill(t, s)
				release()
				killed := time.Now()
				start(t, s)
				slowest = max(slowest, time.Since(killed))
				if done++; l.far != nil && rand.IntN(2) == 0 {
					kill(t, l.far)
					start(t, l.far)
				}
			}
			l.await(100)
			l.finish()
		}
		l.endLeases()
		endpoint.check()
		l.report("kill -9")
		t.Logf("killed %d times; ready again within %v", cycles, slowest.Round(time.Millisecond))
	})
}

// serveHooked starts the program whose webhooks reach the endpoint.
func serveHooked(t *testing.T, database string, e *endpoint) *process.Server {
	t.Helper()
	s := newServer(t, database)
	e.trusted(s)
	startUntilEnd(t, s)
	return s
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

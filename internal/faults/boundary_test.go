package faults

import (
	"bytes"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// TestKillDuringAnswer kills the program while it sends its response. The client gets
// half of the response or nothing. The repeat must return the same result as the lost
// response.
func TestKillDuringAnswer(t *testing.T) {
	onStores(t, func(t *testing.T, database string) {
		s := serve(t, database)
		way := newTap(t, "tcp", s.Address)
		l := newLoad(t, s)
		l.url = "http://" + way.address()
		testDeaths(t, l, way, times(4, 100), func(c *creation, round int, die func()) (wasMade bool) {
			way.watch(nil, func(answer []byte) int {
				die()
				return len(answer) / 2 * (round % 2)
			})
			return true
		})
		l.report("killed during the answer")
	})
}

// committed is the end of PostgreSQL's response to a commit: ReadyForQuery, outside of a
// transaction.
var committed = []byte("Z\x00\x00\x00\x05I")

// TestKillAroundCommit kills the program before the insertion of a user reaches PostgreSQL, or
// before PostgreSQL's confirmation of the commit reaches the program.
func TestKillAroundCommit(t *testing.T) {
	alongside(t)
	database := pgtest.URL(t)
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	way := newTap(t, network, address)
	s := serve(t, before(t, way, database))
	testDeaths(t, newLoad(t, s), way, times(6, 200), func(c *creation, round int, die func()) (wasMade bool) {
		after := round%2 == 0
		seen := make(chan struct{}, 100) // more than the number of pieces with the address
		forth := func(sent []byte) int {
			if !bytes.Contains(sent, []byte(c.address)) {
				return len(sent)
			}
			seen <- struct{}{}
			if after {
				return len(sent)
			}
			die()
			return 0
		}
		back := func(answered []byte) int {
			if len(seen) == 0 || !bytes.HasSuffix(answered, committed) || !bytes.Contains(answered, []byte("INSERT")) && !bytes.Contains(answered, []byte("COMMIT")) {
				return len(answered)
			}
			die()
			return 0
		}
		way.watch(forth, back)
		return after
	})
}

// before returns a URL that reaches the database through the tap.
func before(t *testing.T, way *tap, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = way.address(), "sslmode=disable"
	return u.String()
}

// testDeaths kills the program during creations, at the moment at which a hook of prepare calls
// die. It repeats each creation after the restart. If prepare returns true, the lost request
// created the user, and the repeat must be a replay.
func testDeaths(t *testing.T, l *load, way *tap, rounds int, prepare func(c *creation, round int, die func()) (wasMade bool)) {
	l.spread = 1
	l.open()
	tn := l.tenants[0]
	var slowest time.Duration
	for round := range rounds {
		c := tn.newCreation("")
		died := make(chan error, 1)
		wasMade := prepare(c, round, sync.OnceFunc(func() { died <- l.server.Kill() }))
		of := tn.tryCreate(c)
		way.watch(nil, nil)
		select {
		case err := <-died:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience.Limit):
			t.Fatalf("the creation was answered with %d before the program could be killed: %s", of.status, of.body)
		}
		if of.known {
			t.Errorf("round %d: the creation was answered with %d although the program died: %s", round, of.status, of.body)
		}
		again, took := tn.afterDeath(c)
		slowest = max(slowest, took)
		if replayed := again.header.Get("Idempotent-Replayed") != ""; replayed != wasMade {
			t.Errorf("round %d: the repeat was replayed: %t, not %t", round, replayed, wasMade)
		}
	}
	l.finish()
	t.Logf("killed %d times; each user was made once, and the repeat answered within %v", rounds, slowest.Round(time.Millisecond))
}

// afterDeath starts the program again and repeats the creation. It returns the response to the
// repeat, and the duration of the repeat.
func (tn *tenant) afterDeath(c *creation) (again result, took time.Duration) {
	l := tn.load
	l.t.Helper()
	l.client.CloseIdleConnections()
	start(l.t, l.server)
	again = tn.tryCreate(c)
	if again.status != http.StatusCreated {
		l.t.Fatalf("the repeat answered %d: %s", again.status, again.body)
	}
	tn.make(c, again)
	return again, time.Duration(again.end - again.start)
}

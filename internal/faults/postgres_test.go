package faults

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// recoveryGoal is how soon after the end of a fault everything must work again.
const recoveryGoal = 5 * time.Second

// failFast is how soon a request must fail when the database is not reachable.
const failFast = 2 * time.Second

const databaseName = "rolecall"

// startPostgres starts a server with an empty database. It returns the server and the URL of the
// database.
func startPostgres(t *testing.T, settings ...string) (server *pgtest.Server, database string) {
	t.Helper()
	server, err := pgtest.Start(append(settings, pgtest.Production...)...)
	if errors.Is(err, pgtest.ErrNotInstalled) && os.Getenv("CI") == "" {
		t.Skipf("NOT TESTED ON POSTGRESQL: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	database, err = server.NewDatabase(t.Context(), databaseName)
	if err != nil {
		t.Fatal(err)
	}
	return server, database
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// socket returns the path of the socket of a server.
func socket(t *testing.T, server *pgtest.Server) string {
	t.Helper()
	return parse(t, server.URL()).Query().Get("host") + "/.s.PGSQL.5432"
}

// inside returns the administrator's URL of the database on the server.
func inside(t *testing.T, server *pgtest.Server) string {
	t.Helper()
	u := parse(t, server.URL())
	u.Path = "/" + databaseName
	return u.String()
}

// through returns a URL that reaches the database through the relays. With several relays, clients
// use the first one that leads to a primary.
func through(database string, relays ...*relay) string {
	u, err := url.Parse(database)
	if err != nil {
		panic(err) // the URL comes from url.URL.String
	}
	query := url.Values{"sslmode": {"disable"}, "target_session_attrs": {"read-write"}}
	hosts := ""
	for i, r := range relays {
		if i > 0 {
			hosts += ","
		}
		hosts += r.address()
	}
	return "postgres://" + u.User.String() + "@" + hosts + u.Path + "?" + query.Encode()
}

// execute runs a statement as the administrator of the database on the server.
func execute(t *testing.T, server *pgtest.Server, statement string, arguments ...any) {
	t.Helper()
	if _, err := connectTo(t, server).Exec(t.Context(), statement, arguments...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// connectTo returns a connection of the administrator to the database on the server.
func connectTo(t *testing.T, server *pgtest.Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), inside(t, server))
	if err != nil {
		t.Fatal(err)
	}
	// The server may have stopped by then, so the connection may be lost.
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// probe reads from the database as the first owner. The response never comes from a
// cache.
func (l *load) probe() result { return l.tenants[0].owner.send("GET /users?limit=1", "") }

func (of result) took() time.Duration { return time.Duration(of.end - of.start) }

// expectUnavailable checks that the response is a 503 with Retry-After, and that it arrived in time.
func (l *load) expectUnavailable(of result, goal time.Duration) {
	l.t.Helper()
	limit := within(goal)
	if of.status != http.StatusServiceUnavailable || of.header.Get("Retry-After") == "" || of.took() > limit {
		l.t.Errorf("got status %d, Retry-After %q after %v, want 503 with one within %v", of.status, of.header.Get("Retry-After"), of.took(), limit)
	}
}

// recover waits until the database can be read again, and returns how long that took.
func (l *load) recover() time.Duration {
	l.t.Helper()
	began := time.Now()
	if !patience.Poll(func() bool { return l.probe().status == http.StatusOK }) {
		l.t.Fatalf("not well again %v after the end of the fault\n%s", time.Since(began), l.server.Log())
	}
	return time.Since(began)
}

// expectRecovery checks that the database can be read again soon.
func (l *load) expectRecovery() (took time.Duration) {
	l.t.Helper()
	if took = l.recover(); took > within(recoveryGoal) {
		l.t.Errorf("well again only %v after the end of the fault, want %v", took, recoveryGoal)
	}
	return took
}

// TestPostgresKill kills the database server under load and starts it again.
func TestPostgresKill(t *testing.T) {
	alongside(t)
	server, database := startPostgres(t)
	l := newLoad(t, serve(t, database))
	l.inspect = inside(t, server)
	var slowest, longest time.Duration
	cycles := times(1, 20)
	for done := 0; done < cycles; {
		l.start()
		for range min(5, cycles-done) {
			l.await(100)
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				of := l.probe()
				l.expectUnavailable(of, failFast)
				slowest = max(slowest, of.took())
			}
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, l.expectRecovery())
			done++
		}
		l.await(50)
		l.finish()
	}
	l.report("kill -9 of PostgreSQL")
	t.Logf("killed %d times; refused within %v, well again %v after it was", cycles, slowest, longest)
}

// TestCutAtCommit cuts connections to the database during a commit: before the commit
// arrives, while it may or may not arrive, and before its answer arrives.
func TestCutAtCommit(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	server, database := startPostgres(t)
	r := newRelay(t, socket(t, server))
	l := newLoad(t, serve(t, through(database, r)+"&default_query_exec_mode=exec"))
	l.inspect = inside(t, server)
	const together = 100 // number of cuts per history
	wanted := int64(times(40, 1000))
	for r.commits.done() < wanted {
		l.start()
		r.commits.oneIn.Store(10)
		for next := min(r.commits.done()+together, wanted); r.commits.done() < next; {
			l.await(10)
		}
		r.commits.oneIn.Store(0)
		l.finish()
	}
	l.report("cut at COMMIT")
	t.Logf("cut %d times: %d before the commit, %d with it, %d after it", r.commits.done(),
		r.commits.cuts[cutBefore].Load(), r.commits.cuts[cutAt].Load(), r.commits.cuts[cutAfter].Load())
}

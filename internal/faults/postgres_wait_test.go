package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// waitGoal is how long a request may wait for a lock in the database: the four seconds of the program,
// and some time for the rest.
const waitGoal = 8 * time.Second

// lockUsers locks the table of users until unlock is called.
func lockUsers(t *testing.T, server *pgtest.Server) (unlock func()) {
	t.Helper()
	tx, err := connectTo(t, server).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table users in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLockedTable makes more requests wait for a locked table than there are connections. Each of
// them fails in time. Requests that do not need the database continue, and everything
// works as soon as the table is unlocked.
func TestLockedTable(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	server, database := startPostgres(t)
	l := newLoad(t, serve(t, database))
	l.tenants = []*tenant{newTenant(l)}
	unlock := lockUsers(t, server)
	var waiting sync.WaitGroup
	for range 20 * runtime.GOMAXPROCS(0) {
		waiting.Go(func() { l.expectUnavailable(l.probe(), waitGoal) })
	}
	owner := l.tenants[0].owner
	for _, line := range []string{"GET /livez", "GET /auths/session"} {
		if of := owner.send(line, ""); of.status != http.StatusOK || of.took() > within(failFast) {
			t.Errorf("%s answered %d after %v while others wait", line, of.status, of.took())
		}
	}
	if of := owner.send("GET /readyz", ""); of.status != http.StatusServiceUnavailable && of.status != http.StatusOK || of.took() > within(2*failFast) {
		t.Errorf("GET /readyz answered %d after %v while others wait", of.status, of.took())
	}
	waiting.Wait()
	unlock()
	const soon = time.Second
	if took := l.recover(); took > within(soon) {
		t.Errorf("well again only %v after the table was free, want %v", took, soon)
	}
}

// TestDisconnectingClients makes clients disconnect while their requests wait for the database. No
// such request leaves a transaction in the database.
func TestDisconnectingClients(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	server, database := startPostgres(t)
	l := newLoad(t, serve(t, database))
	l.tenants = []*tenant{newTenant(l)}
	owner := l.tenants[0].owner
	admin := connectTo(t, server)
	unlock := lockUsers(t, server)
	leaving, leave := context.WithCancel(t.Context())
	clients := 4 * runtime.GOMAXPROCS(0)
	var waiting sync.WaitGroup
	for i := range clients {
		waiting.Go(func() {
			body := fmt.Sprintf(`{"email":"leaver-%d@faults.example","name":"New"}`, i)
			r, err := http.NewRequestWithContext(leaving, http.MethodPost, l.url+"/users", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header = http.Header{"X-Tenant-Schema": {owner.tenant}, "Cookie": {"session=" + owner.token}, "Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprintf("leaver-%d", i)}}
			response, err := l.client.Do(r)
			if err == nil {
				t.Errorf("a client was answered %d by a locked table", response.StatusCode)
				err = response.Body.Close()
			}
			if !errors.Is(err, context.Canceled) && err != nil {
				t.Error(err)
			}
		})
	}
	awaitTransactions(t, admin, func(n int) bool { return n > 0 })
	leave()
	waiting.Wait()
	awaitTransactions(t, admin, func(n int) bool { return n == 0 })
	unlock()
	l.expectRecovery()
	for i := range clients {
		of := owner.send("POST /users", fmt.Sprintf(`{"email":"leaver-%d@faults.example","name":"New"}`, i), fmt.Sprintf("idempotency-key: leaver-%d", i))
		if of.status != http.StatusCreated {
			t.Errorf("the repeat of who left was answered %d: %s", of.status, of.body)
		}
	}
}

// TestCutConnectionsLeaveNoTransaction cuts the connections to a database in which requests wait for a lock,
// so that no cancellation arrives. The server ends their transactions although the lock is still held.
func TestCutConnectionsLeaveNoTransaction(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	server, database := startPostgres(t)
	r := newRelay(t, socket(t, server))
	l := newLoad(t, serve(t, through(database, r)))
	l.tenants = []*tenant{newTenant(l)}
	admin := connectTo(t, server)
	unlock := lockUsers(t, server)
	var waiting sync.WaitGroup
	waiting.Go(func() { l.expectUnavailable(l.probe(), waitGoal) })
	awaitTransactions(t, admin, func(n int) bool { return n > 0 })
	r.lead("")
	r.cut()
	awaitTransactions(t, admin, func(n int) bool { return n == 0 })
	waiting.Wait()
	unlock()
	r.lead(socket(t, server))
	l.expectRecovery()
}

// awaitTransactions waits until the number of running transactions of the program is as
// wanted.
func awaitTransactions(t *testing.T, admin *pgx.Conn, wanted func(n int) bool) {
	t.Helper()
	var n int
	if !patience.Poll(func() bool {
		if err := admin.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = 'rolecall' and state <> 'idle'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return wanted(n)
	}) {
		t.Fatalf("%d transactions are still under way", n)
	}
}

// TestPoolerRestart cuts all connections to PgBouncer under load, as a restart of PgBouncer would
// do.
func TestPoolerRestart(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	database := pgtest.URL(t)
	pooled := parse(t, pgtest.Bouncer(t)(database))
	bouncer := pooled.Host
	r := newRelay(t, bouncer)
	pooled.Host, pooled.RawQuery = r.address(), "default_query_exec_mode=exec"
	l := newLoad(t, serve(t, pooled.String(), "--direct-database", database))
	l.inspect = pgtest.Admin(t, database)
	l.start()
	for range times(5, 50) {
		l.await(50)
		r.lead("127.0.0.1:1") // no process listens there
		r.cut()
		l.expectUnavailable(l.probe(), failFast)
		r.lead(bouncer)
		l.expectRecovery()
	}
	l.finish()
	l.report("a pooler that is gone")
}

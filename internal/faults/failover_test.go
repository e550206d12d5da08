package faults

import (
	"net/http"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/pgtest"
)

// cluster is a primary and its synchronous standby. Their addresses stay the same when
// servers are replaced.
type cluster struct {
	t         *testing.T
	primary   *pgtest.Server
	standby   *pgtest.Server
	standbys  []*pgtest.Server // all standbys so far
	addresses [2]*relay
	first     int // index of the primary's address
	database  string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t}
	t.Cleanup(func() {
		for _, server := range c.standbys {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		}
	})
	c.primary, c.database = startPostgres(t, "wal_keep_size=256MB")
	c.addresses = [2]*relay{newRelay(t, socket(t, c.primary)), newRelay(t, "")}
	execute(t, c.primary, "alter system set synchronous_standby_names to '*'") // standbys are copies, so they have this setting too
	execute(t, c.primary, "select pg_reload_conf()")
	c.follow()
	c.database = through(c.database, c.addresses[:]...)
	return c
}

// follow adds a standby to the primary, and waits until commits need the confirmation of this
// standby.
func (c *cluster) follow() {
	c.t.Helper()
	var err error
	if c.standby, err = c.primary.Standby(); err != nil {
		c.t.Fatal(err)
	}
	c.standbys = append(c.standbys, c.standby)
	c.addresses[1-c.first].lead(socket(c.t, c.standby))
}

// failOver kills the primary and promotes the standby. Afterwards there is no standby.
func (c *cluster) failOver() {
	c.t.Helper()
	var state string
	if err := connectTo(c.t, c.primary).QueryRow(c.t.Context(), "select sync_state from pg_stat_replication").Scan(&state); err != nil || state != "sync" {
		c.t.Fatalf("commits do not wait for the standby: it is %q (error %v)", state, err)
	}
	if err := c.primary.Kill(); err != nil {
		c.t.Fatal(err)
	}
	if err := c.standby.Promote(); err != nil {
		c.t.Fatal(err)
	}
	c.primary, c.standby, c.first = c.standby, nil, 1-c.first
}

// TestFailover kills the primary under load and promotes its standby, again and again.
// The program finds the new primary by itself, and no acknowledged change is lost.
func TestFailover(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	c := newCluster(t)
	l := newLoad(t, serve(t, c.database))
	cycles := times(1, 20)
	var longest time.Duration
	for range cycles {
		l.start()
		l.await(200)
		c.failOver()
		longest = max(longest, l.expectRecovery())
		c.follow()
		l.await(50)
		l.inspect = inside(t, c.primary)
		l.finish()
	}
	l.report("failover")
	t.Logf("failed over %d times; the new primary was read %v after its promotion", cycles, longest)
}

// TestWritesNeedTheStandby removes the standby. A change that the standby did not confirm is not
// acknowledged, even if PostgreSQL stops waiting and commits with a warning. A repeat that finds
// the change already made is not acknowledged either.
func TestWritesNeedTheStandby(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	c := newCluster(t)
	l := newLoad(t, serve(t, c.database))
	l.tenants = []*tenant{newTenant(l)}
	owner := l.tenants[0].owner
	create := func() result {
		return owner.send("POST /users", `{"email":"lonely@faults.example","name":"Lonely"}`, "idempotency-key: lonely")
	}
	if err := c.standby.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"the creation", "its repeat"} {
		answered := make(chan result, 1)
		go func() { answered <- create() }()
		c.cancelCommits(answered)
		if of := <-answered; of.status != http.StatusServiceUnavailable {
			t.Errorf("%s answered %d while no standby confirmed it: %s", what, of.status, of.body)
		}
	}
	if err := c.standby.Restart(); err != nil {
		t.Fatal(err)
	}
	made := create()
	if made.status != http.StatusCreated {
		t.Fatalf("with a standby the repeat answered %d: %s", made.status, made.body)
	}
	c.failOver()
	l.expectRecovery()
	if of := owner.send("GET /users/"+readUser(made).ID, ""); of.status != http.StatusOK {
		t.Errorf("what was acknowledged is lost: %d %s", of.status, of.body)
	}
}

// cancelCommits cancels commits that wait for a standby until a response arrives.
func (c *cluster) cancelCommits(answered <-chan result) {
	c.t.Helper()
	admin := connectTo(c.t, c.primary)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for ; len(answered) == 0; <-poll.C {
		if _, err := admin.Exec(c.t.Context(), "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'"); err != nil {
			c.t.Fatal(err)
		}
	}
}

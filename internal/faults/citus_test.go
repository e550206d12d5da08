package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// citusRecoveryGoal is longer than recoveryGoal, because an interrupted two-phase
// commit keeps its rows locked until Citus recovers it.
const citusRecoveryGoal = 3 * recoveryGoal

// citus is a Citus cluster with the durability settings of production, the program that uses the
// cluster, and the clients of the program.
type citus struct {
	*load
	cluster *pgtest.Cluster
	admin   string // URL of the coordinator's database
}

// newCitus starts a cluster of two workers, and the program. The clients use many tenants, so that
// each worker has some of them.
func newCitus(t *testing.T) *citus {
	t.Helper()
	pgtest.RequireCitus(t)
	cluster, err := pgtest.StartCluster(2, append([]string{"citus.shard_count=12"}, pgtest.Production...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	database, err := cluster.NewDatabase(t.Context(), databaseName)
	if err != nil {
		t.Fatal(err)
	}
	c := &citus{cluster: cluster, admin: cluster.Admin(databaseName)}
	c.load = newLoad(t, serve(t, database))
	c.inspect, c.spread = c.admin, 6
	t.Cleanup(func() {
		for line := range strings.Lines(c.server.Log()) {
			if t.Failed() && strings.Contains(line, `"level":"ERROR"`) && !strings.Contains(line, "unavailable") {
				t.Log(line)
			}
		}
	})
	return c
}

// query runs a query on the coordinator, and scans the only row of the result into dest.
func (c *citus) query(dest any, query string, args ...any) {
	c.t.Helper()
	ctx := context.WithoutCancel(c.t.Context())
	conn, err := pgx.Connect(ctx, c.admin)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, query, args...).Scan(dest); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
}

// isOn reports whether the rows of the tenant are on the worker.
func (c *citus) isOn(tn *tenant, worker *pgtest.Server) (on bool) {
	c.t.Helper()
	c.query(&on, `select exists (select from citus_shards where shardid = get_shard_id_for_distribution_column('users', (select id from tenants where name = $1))
		and nodeport::text = $2)`, tn.name, worker.Port())
	return on
}

// uses are requests that read and write rows of a tenant. The commit of a request has one phase or
// two.
var uses = []struct{ line, body string }{
	{"GET /users?limit=1", ""},
	{"PATCH /tenant", `{"displayName":"Still here"}`},
}

// use sends each request of uses once. It returns the last response with a status other than 200,
// or one with status 200 if there was no such response.
func (tn *tenant) use() (worst result) {
	for _, u := range uses {
		if of := tn.owner.send(u.line, u.body); worst.status == 0 || of.status != http.StatusOK {
			worst = of
		}
	}
	return worst
}

// TestCitusWorkerKill kills a worker under load and starts it again. Until it runs again, only
// requests of the tenants on this worker are rejected.
func TestCitusWorkerKill(t *testing.T) {
	c := newCitus(t)
	cycles := fewer(1, 3, 50)
	var slowest, longest time.Duration
	refused, served := 0, 0
	for done := 0; done < cycles; {
		c.start()
		for range min(5, cycles-done) {
			c.await(100)
			worker := c.cluster.Workers[done%len(c.cluster.Workers)]
			var dead, alive []*tenant
			for _, tn := range c.tenants {
				if c.isOn(tn, worker) {
					dead = append(dead, tn)
				} else {
					alive = append(alive, tn)
				}
			}
			if err := worker.Kill(); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				for _, tn := range dead {
					of := tn.use()
					c.expectUnavailable(of, failFast)
					slowest = max(slowest, of.took())
					refused++
				}
				for _, tn := range alive {
					if of := tn.use(); of.status != http.StatusOK {
						t.Errorf("while the worker of others is dead, a tenant got %d: %s", of.status, of.body)
					}
					served++
				}
			}
			if err := worker.Restart(); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, c.expectAllRecover())
			done++
		}
		c.await(50)
		c.finish()
		t.Logf("killed %d times so far, lost %d, refuted %d", done, c.lost, c.refuted)
	}
	c.report("kill -9 of a worker")
	t.Logf("killed %d times; its tenants were refused %d times within %v, others served %d times; well again %v after it was", cycles, refused, slowest, served, longest)
}

// expectAllRecover checks that every tenant is served again soon.
func (c *citus) expectAllRecover() time.Duration {
	c.t.Helper()
	began := time.Now()
	for _, tn := range c.tenants {
		if !patience.Poll(func() bool { return tn.use().status == http.StatusOK }) {
			c.t.Fatalf("not well again %v after the end of the fault\n%s", time.Since(began), c.server.Log())
		}
	}
	took := time.Since(began)
	if took > within(citusRecoveryGoal) {
		c.t.Errorf("well again only %v after the end of the fault, want %v", took, citusRecoveryGoal)
	}
	return took
}

// TestCitusCoordinatorKill kills the coordinator under load and starts it again.
func TestCitusCoordinatorKill(t *testing.T) {
	c := newCitus(t)
	cycles := fewer(1, 3, 50)
	var slowest, longest time.Duration
	for done := 0; done < cycles; {
		c.start()
		for range min(5, cycles-done) {
			c.await(100)
			if err := c.cluster.Coordinator.Kill(); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				of := c.probe()
				c.expectUnavailable(of, failFast)
				slowest = max(slowest, of.took())
			}
			if err := c.cluster.Coordinator.Restart(); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, c.expectAllRecover())
			done++
		}
		c.await(50)
		c.finish()
		t.Logf("killed %d times so far, lost %d, refuted %d", done, c.lost, c.refuted)
	}
	c.report("kill -9 of the coordinator")
	t.Logf("killed %d times; refused within %v, well again %v after it was", cycles, slowest, longest)
}

// TestCitusRebalance adds a worker and moves shards to it under load. The requests of a
// tenant fail only during the switch of its shard. In this time writes are blocked,
// because logical replication does not support tables with row-level security.
func TestCitusRebalance(t *testing.T) {
	const switchGoal = 5 * time.Second
	c := newCitus(t)
	c.start()
	c.await(100)
	if err := c.cluster.AddWorker(t.Context(), databaseName); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var watching sync.WaitGroup
	longest := make([]time.Duration, len(c.tenants))
	for i, tn := range c.tenants {
		watching.Go(func() { longest[i] = tn.longestRefusal(over) })
	}
	began := time.Now()
	var moved string
	c.query(&moved, "select rebalance_table_shards(rebalance_strategy => 'by_shard_count', shard_transfer_mode => 'block_writes')::text")
	took := time.Since(began)
	close(over)
	watching.Wait()
	var shards int
	c.query(&shards, "select count(*) from citus_shards where table_name = 'users'::regclass and nodeport::text = $1", c.cluster.Workers[2].Port())
	if shards == 0 {
		t.Error("the new worker has no shard")
	}
	for i, refusal := range longest {
		if refusal > within(switchGoal) {
			t.Errorf("%s was refused for %v", c.tenants[i].name, refusal)
		}
	}
	c.await(50)
	c.finish()
	c.report("rebalance")
	t.Logf("moved %d of 12 shards in %v; tenants were refused for %v at the longest", shards, took, fmt.Sprint(longest))
}

// longestRefusal uses the tenant until over is closed. It returns the longest time
// between two successful uses.
func (tn *tenant) longestRefusal(over <-chan struct{}) (longest time.Duration) {
	last := time.Now()
	for {
		if tn.use().status == http.StatusOK {
			longest = max(longest, time.Since(last))
			last = time.Now()
		}
		select {
		case <-over:
			return max(longest, time.Since(last))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

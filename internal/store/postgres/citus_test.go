package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
	"github.com/rolecall/rolecall/internal/store/storetest"
)

func TestStoreOnCitus(t *testing.T) {
	pgtest.RequireCitus(t)
	storetest.Run(t, func(t *testing.T) store.Database {
		opened, _ := pgtest.CitusOpened(t)
		return opened
	})
}

func TestTablesWithoutATenantArePlacedOnCitus(t *testing.T) {
	if got := postgres.Placed(); !slices.Equal(got, sharedTables) {
		t.Errorf("on Citus, %q have a place, and %q belong to no tenant", got, sharedTables)
	}
}

// TestEveryStatementGoesToOneShard runs the conformance suite of package store. Before
// each statement, it checks the plan of the statement.
func TestEveryStatementGoesToOneShard(t *testing.T) {
	pgtest.RequireCitus(t)
	storetest.Run(t, func(t *testing.T) store.Database {
		opened, _ := pgtest.CitusOpened(t)
		return explained{opened, t}
	})
}

// explained is a database that explains every statement.
type explained struct {
	store.Database
	t *testing.T
}

// View calls fn with an explainer.
func (e explained) View(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	return e.Database.View(ctx, tenant, func(q store.Querier) error { return fn(&explainer{q, e.t}) })
}

// Update calls fn with an explainer.
func (e explained) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	return e.Database.Update(ctx, tenant, func(q store.Querier) error { return fn(&explainer{q, e.t}) })
}

type explainer struct {
	store.Querier
	t *testing.T
}

// Exec explains the statement and queues it.
func (e *explainer) Exec(query string, args ...any) {
	e.explain(query, args)
	e.Querier.Exec(query, args...)
}

// Query explains the statement and runs it.
func (e *explainer) Query(query string, args []any, each func(scan func(dest ...any) error) error) (int, error) {
	e.explain(query, args)
	return e.Querier.Query(query, args, each)
}

// explain fails the test unless Citus sends the statement to one shard. If a statement
// uses only tables of the coordinator, its plan has no tasks for shards, and explain
// accepts it.
func (e *explainer) explain(query string, args []any) {
	var plan strings.Builder
	_, err := e.Querier.Query("explain (costs off) "+query, args, func(scan func(dest ...any) error) error {
		var line string
		err := scan(&line)
		plan.WriteString(line + "\n")
		return err
	})
	if err != nil { // the error is that of an earlier statement, or of this one
		return
	}
	ofTenant := strings.Contains(query, "tenant_id")
	if tasks := strings.Contains(plan.String(), "Task Count: 1\n"); ofTenant && !tasks ||
		strings.Contains(plan.String(), "Task Count:") && !tasks || strings.Contains(plan.String(), "Subplan") {
		e.t.Errorf("%s\n%s", query, plan.String())
	}
}

// TestTheShardsIsolateTenants checks the catalogue of the coordinator, and the catalogue
// of each worker for its shards.
func TestTheShardsIsolateTenants(t *testing.T) {
	url := pgtest.CitusMigrated(t)
	conn := connect(t, url)
	for _, r := range catalogueRules {
		if names := offendersOf(t, conn, r.offenders); len(names) > 0 {
			t.Errorf("%s: broken by %q", r.rule, names)
		}
	}
	// The name of a shard begins with the name of its table.
	rows, err := connect(t, pgtest.Admin(t, url)).Query(t.Context(), `select nodeport::text || ' ' || success::text || ' ' || result
		from run_command_on_workers($$
			select count(*) || ' shards, open: ' || coalesce(string_agg(relname, ', ') filter (where not (relrowsecurity and relforcerowsecurity and 1 = (
				select count(*) from pg_policy where polrelid = c.oid and polname = 'tenant_isolation' and pg_get_expr(polqual, polrelid) = $i$`+isolation+`$i$
					and pg_get_expr(polwithcheck, polrelid) = $i$`+isolation+`$i$))), 'none')
			from (select c.* from pg_class c, set_config('citus.override_table_visibility', 'off', false)
				where relkind = 'r' and relnamespace = 'public'::regnamespace and relname ~ '_\d+$'
					and exists (select from pg_attribute where attrelid = c.oid and attname = 'tenant_id')) c $$)`)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(answers) != 2 {
		t.Fatalf("%q, %v", answers, err)
	}
	for _, answer := range answers {
		if !strings.Contains(answer, " true ") || !strings.HasSuffix(answer, "open: none") || strings.Contains(answer, " 0 shards") {
			t.Error(answer)
		}
	}
}

// TestEveryShardFailsClosed does the same as TestEveryTableFailsClosed for the tables on
// the workers.
func TestEveryShardFailsClosed(t *testing.T) {
	url := pgtest.CitusMigrated(t)
	acme, other := rolecall.NewID[rolecall.Tenant](now), rolecall.NewID[rolecall.Tenant](now)
	admin, owner := connect(t, pgtest.Admin(t, url)), connect(t, url)
	run(t, admin, "set citus.propagate_set_commands = 'local'")
	run(t, owner, "set citus.propagate_set_commands = 'local'")
	foreign := tenantTables(t, admin, other)
	for table, insert := range tenantTables(t, admin, acme) {
		// In the role of a replica, the worker does not check foreign keys.
		run(t, admin, "begin", "set local session_replication_role = replica", insert, foreign[table], "commit")
	}
	for _, state := range []struct {
		name, setting string
		rows          int64
	}{
		{"never set", "", 0},
		{"empty", "set local rolecall.tenant = ''", 0},
		{"not propagated", "select set_config('rolecall.tenant', '" + acme.String() + "', true)", 0},
		{"another tenant's", "set local rolecall.tenant = '" + rolecall.NewID[any](now).String() + "'", 0},
		{"the tenant's", "set local rolecall.tenant = '" + acme.String() + "'", 1},
	} {
		t.Run(state.name, func(t *testing.T) {
			for table, insert := range foreign {
				for _, statement := range []string{
					"select from " + table, "delete from " + table, "select from " + table + " where tenant_id = '" + acme.String() + "'",
					"delete from " + table + " where tenant_id = '" + acme.String() + "'",
				} {
					if n, err := attempt(t, owner, state.setting, statement); err != nil || n != state.rows {
						t.Errorf("%s: %d rows, want %d (%v)", statement, n, state.rows, err)
					}
				}
				if _, err := attempt(t, owner, state.setting, insert); err == nil || !strings.Contains(err.Error(), "row-level security") {
					t.Errorf("%s: %v, want a refusal", insert, err)
				}
			}
		})
	}
}

// placed returns the names of the tables that Citus manages, each with the kind of its
// placement.
func placed(t *testing.T, url string) []string {
	t.Helper()
	rows, err := connect(t, pgtest.Admin(t, url)).Query(t.Context(), `
		select table_name::text || ' ' || citus_table_type || case when citus_table_type = 'distributed' then ' with ' || (
			select count(*) from pg_dist_partition o where o.colocationid = p.colocationid) else '' end
		from citus_tables join pg_dist_partition p on logicalrelid = table_name order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestMigrateDistributesAnEmptyDatabase(t *testing.T) {
	url := pgtest.CitusURL(t)
	for range 2 {
		if err := postgres.Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"job_queue local", "operator_keys reference", "operator_requests local", "outbox local", "tenants local", "webhook_cursors local", "webhook_queues local"}
	for table := range tenantTables(t, connect(t, url), rolecall.NewID[rolecall.Tenant](now)) {
		want = append(want, table+" distributed with 20")
	}
	slices.Sort(want)
	if got := placed(t, url); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if locked, err := postgres.Distribute(t.Context(), url); err != nil || locked != 0 {
		t.Errorf("tables that are distributed were locked for %v (%v)", locked, err)
	}
}

// If a database already has tenants, only Distribute distributes its tables. A running
// service continues with the same rows.
func TestDistributeMovesTheRows(t *testing.T) {
	url := pgtest.CitusURL(t)
	cluster := pgtest.Admin(t, url)
	run(t, connect(t, cluster), "drop extension citus")
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	before := open(t, url, postgres.Options{})
	tenants := make([]rolecall.TenantID, 20)
	users := make([]rolecall.User, len(tenants))
	for i := range tenants {
		tenants[i], users[i] = newTenant(t, before, fmt.Sprint("tenant-", i)), aUser("ada@example.com")
		write(t, before, tenants[i], func(tx *store.Tx) { tx.InsertUser(users[i]) })
	}
	if _, err := postgres.Distribute(t.Context(), url); err == nil || !strings.Contains(err.Error(), "create extension citus") {
		t.Errorf("without the extension: got %v, want how to get it", err)
	}
	pgtest.AddCitus(t, url)
	s := open(t, url, postgres.Options{})
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if got := placed(t, url); len(got) > 0 {
		t.Errorf("a migration moved %q", got)
	}
	for i := range tenants {
		if !has(t, s, tenants[i], users[i].ID) || has(t, s, tenants[(i+1)%len(tenants)], users[i].ID) {
			t.Fatal("with the extension, a tenant does not see just its rows")
		}
	}
	interrupted, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := postgres.Distribute(interrupted, url); err == nil {
		t.Error("a distribution that is interrupted succeeds")
	}
	if got := placed(t, url); len(got) > 0 {
		t.Errorf("an interrupted distribution moved %q", got)
	}
	locked, err := postgres.Distribute(t.Context(), url)
	if err != nil || locked == 0 {
		t.Fatalf("locked for %v (%v)", locked, err)
	}
	if got := placed(t, url); len(got) != 24 {
		t.Errorf("distributed only %q", got)
	}
	for i := range tenants {
		if !has(t, s, tenants[i], users[i].ID) || has(t, s, tenants[(i+1)%len(tenants)], users[i].ID) {
			t.Fatal("afterwards, a tenant does not see just its rows")
		}
		write(t, s, tenants[i], func(tx *store.Tx) { tx.SetPassword(users[i].ID, "hash", now) })
	}
	var left int
	if err := connect(t, cluster).QueryRow(t.Context(), "select coalesce(sum(pg_relation_size(logicalrelid)), 0)::int from pg_dist_partition where partmethod = 'h'").Scan(&left); err != nil || left > 0 {
		t.Errorf("%d bytes of rows are left on the coordinator (%v)", left, err)
	}
	open(t, url, postgres.Options{}) // checks row-level security
}

// If a later migration adds a table with foreign keys, it distributes the table before it
// adds the foreign keys. Citus forwards other statements of the migration by itself.
func TestLaterMigrationsWorkOnDistributedTables(t *testing.T) {
	url := pgtest.CitusMigrated(t)
	conn := connect(t, url)
	run(t, conn, "begin",
		"alter table users add nickname text",
		"create index users_nickname on users (tenant_id, nickname) where nickname is not null",
		"create table notes (tenant_id uuid not null, id uuid not null, user_id uuid not null, primary key (tenant_id, id))",
		`do $$ begin
			if exists (select from pg_extension where extname = 'citus') then
				perform create_distributed_table('notes', 'tenant_id', colocate_with => 'users');
			end if;
		end $$`,
		"alter table notes add constraint notes_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade",
		"alter table notes enable row level security", "alter table notes force row level security",
		`create policy tenant_isolation on notes using (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
			with check (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)`,
		"create table lists (tenant_id uuid not null primary key)", // which migrate distributes
		"commit")
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if got := placed(t, url); !slices.Contains(got, "notes distributed with 22") || !slices.Contains(got, "lists distributed with 22") {
		t.Errorf("placed %q", got)
	}
}

// Migrate returns an error for a table that has no column tenant_id and is not in
// placements, because it does not know where to place the table.
func TestMigrateRefusesAnUnknownTable(t *testing.T) {
	url := pgtest.CitusMigrated(t)
	run(t, connect(t, url), "create table strangers (id uuid primary key)")
	if err := postgres.Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), "strangers") {
		t.Errorf("got %v, want an error that names the table", err)
	}
}

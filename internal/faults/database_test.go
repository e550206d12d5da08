package faults

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// halves are queries that count rows that only incomplete or duplicate changes leave behind. The
// keys describe these rows. The queries are the same for all stores.
var halves = map[string]string{
	"versions that are not one more than the changes": `select count(*) from users u where version <> 1 +
		(select count(*) from events e where e.tenant_id = u.tenant_id and e.subject_id = u.id and e.type in ('user.updated', 'user.suspended', 'user.resumed', 'user.restored'))
		and not exists (select 1 from passwords p where p.tenant_id = u.tenant_id and p.user_id = u.id)`,
	"users that were made without an event": `select count(*) from users u where not exists
		(select 1 from events e where e.tenant_id = u.tenant_id and e.subject_id = u.id and e.type in ('user.created', 'tenant.created'))
		and not exists (select 1 from passwords p where p.tenant_id = u.tenant_id and p.user_id = u.id)`,
	"creations without a key": `select count(*) from events e where type = 'user.created' and actor_via = 'http' and actor_type = 'user' and not exists
		(select 1 from idempotency_keys k where k.tenant_id = e.tenant_id and k.resource_id = e.subject_id)`,
	"keys without a creation": `select count(*) from idempotency_keys k where operation = 'createUser' and not exists
		(select 1 from events e where e.tenant_id = k.tenant_id and e.subject_id = k.resource_id and e.type = 'user.created')`,
	"keys that made two users": `select count(*) from (select 1 from idempotency_keys where operation = 'createUser'
		group by tenant_id, resource_id having count(*) > 1) k`,
	"deletions of users who are there": `select count(*) from events e where type = 'user.deleted' and exists
		(select 1 from users u where u.tenant_id = e.tenant_id and u.id = e.subject_id)
		and not exists (select 1 from events r where r.tenant_id = e.tenant_id and r.subject_id = e.subject_id and r.type = 'user.restored' and r.id > e.id)`,
	"deletions without a tombstone": `select count(*) from events e where type = 'user.deleted' and not exists
		(select 1 from tombstones d where d.tenant_id = e.tenant_id and d.user_id = e.subject_id)
		and not exists (select 1 from events r where r.tenant_id = e.tenant_id and r.subject_id = e.subject_id and r.type in ('user.restored', 'user.erased') and r.id > e.id)`,
	"restores of users who are not there": `select count(*) from events e where type = 'user.restored' and not exists
		(select 1 from users u where u.tenant_id = e.tenant_id and u.id = e.subject_id)
		and not exists (select 1 from events r where r.tenant_id = e.tenant_id and r.subject_id = e.subject_id and r.type in ('user.deleted', 'user.erased') and r.id > e.id)`,
	"users who came back without their role": `select count(*) from events e where type = 'user.restored'
		and exists (select 1 from users u where u.tenant_id = e.tenant_id and u.id = e.subject_id)
		and not exists (select 1 from assignments a where a.tenant_id = e.tenant_id and a.user_id = e.subject_id)`,
	"erased users of whom there is a row": `select count(*) from events e where type = 'user.erased' and (
		exists (select 1 from users u where u.tenant_id = e.tenant_id and u.id = e.subject_id) or
		exists (select 1 from tombstones d where d.tenant_id = e.tenant_id and d.user_id = e.subject_id))`,
	"events that say something of erased users, and will": `select count(*) from events e where (before is not null or after is not null or reason <> '')
		and exists (select 1 from events r where r.tenant_id = e.tenant_id and r.subject_id = e.subject_id and r.type = 'user.erased')
		and not exists (select 1 from erasures n where n.tenant_id = e.tenant_id and n.user_id = e.subject_id)`,
	"tombstones of users who are there": `select count(*) from tombstones d where exists
		(select 1 from users u where u.tenant_id = d.tenant_id and u.id = d.user_id)`,
	"users without words": `select count(*) from users u where not exists
		(select 1 from user_words w where w.tenant_id = u.tenant_id and w.user_id = u.id)`,
	"words of users who are not there": `select count(*) from user_words w where not exists
		(select 1 from users u where u.tenant_id = w.tenant_id and u.id = w.user_id)`,
	"tenants that were made without an event": `select count(*) from tenants t where not exists
		(select 1 from events e where e.tenant_id = t.id and e.type = 'tenant.created')`,
	"tenants whose deletions and restores are not their events": `select count(*) from tenants t where case status when 'deleted' then 1 else 0 end <>
		(select count(*) from events e where e.tenant_id = t.id and e.type = 'tenant.deleted') - (select count(*) from events e where e.tenant_id = t.id and e.type = 'tenant.restored')`,
	"tenants that can be restored and are not deleted": `select count(*) from tenants where status <> 'deleted' and restores_to is not null`,
	"tenants without an owner": `select count(*) from tenants t where not exists
		(select 1 from assignments a join roles r on r.tenant_id = a.tenant_id and r.id = a.role_id where a.tenant_id = t.id and r."key" = 'owner')`,
	"sign-ups without a key": `select count(*) from events e where type = 'tenant.created' and actor_via = 'http' and not exists
		(select 1 from operator_requests k where k.operation = 'foundTenant' and k.resource_id = e.subject_id)`,
	"keys without a sign-up": `select count(*) from operator_requests k where operation = 'foundTenant' and not exists
		(select 1 from tenants t where t.id = k.resource_id)`,
	"sign-ups whose owner cannot come in": `select count(*) from events e where type = 'tenant.created' and actor_via = 'http'
		and exists (select 1 from tenants t where t.id = e.tenant_id) -- not the operators' log
		and not exists (select 1 from passwords p where p.tenant_id = e.tenant_id)
		and not exists (select 1 from invitations i where i.tenant_id = e.tenant_id)`,
	"sign-ups that the operators' log lacks": `select count(*) from events e where type = 'tenant.created' and actor_via = 'http' and not exists
		(select 1 from events o where o.subject_id = e.subject_id and o.type = 'tenant.created' and o.tenant_id <> e.tenant_id)`,
	"sessions without a token": `select count(*) from sessions s where not exists
		(select 1 from session_tokens t where t.tenant_id = s.tenant_id and t.session_id = s.id)`,
}

// checkDatabase checks the database for errors that no response shows.
func (l *load) checkDatabase() {
	l.t.Helper()
	db := l.openDatabase("mode=ro")
	defer func() {
		if err := db.Close(); err != nil {
			l.t.Error(err)
		}
	}()
	l.gather(db)
	for what, count := range halves {
		var n int
		if err := db.QueryRowContext(context.WithoutCancel(l.t.Context()), count).Scan(&n); err != nil {
			l.t.Fatalf("%s: %v", what, err)
		}
		if n > 0 {
			l.t.Errorf("the database holds %d %s", n, what)
		}
	}
	if !strings.HasPrefix(l.server.Database, "postgres") {
		l.checkFile(db)
	}
}

// gather copies the tables of a Citus cluster into temporary tables with the same names, because
// Citus cannot run all queries of halves over several tenants. Temporary tables belong to a
// connection, so gather limits db to one connection. For other stores, it copies nothing.
func (l *load) gather(db *sql.DB) {
	l.t.Helper()
	if !strings.HasPrefix(l.server.Database, "postgres") {
		return
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(context.WithoutCancel(l.t.Context()), `do $$ declare name text; begin
		if to_regclass('pg_dist_partition') is not null then
			for name in select logicalrelid::regclass::text from pg_dist_partition loop
				execute format('create temp table %1$s (like public.%1$s including indexes)', name);
				execute format('insert into %1$s select * from public.%1$s', name);
				execute format('analyze %1$s', name);
			end loop;
		end if;
	end $$`); err != nil {
		l.t.Fatal(err)
	}
}

// endLeases ends the claims of killed processes on webhooks and jobs, as time does. It does so only
// with -short. Other runs wait until the claims expire. There must be no load, because SQLite lets it
// go first.
func (l *load) endLeases() {
	l.t.Helper()
	if !testing.Short() {
		return
	}
	db := l.openDatabase("mode=rw")
	defer func() {
		if err := db.Close(); err != nil {
			l.t.Error(err)
		}
	}()
	for _, statement := range []string{"update webhook_cursors set due_at = 0 where state = 2", "update job_queue set due_at = 0"} {
		if _, err := db.ExecContext(context.WithoutCancel(l.t.Context()), statement); err != nil {
			l.t.Fatal(err)
		}
	}
}

// openDatabase connects to the database. A SQLite file is opened in the mode.
func (l *load) openDatabase(mode string) *sql.DB {
	l.t.Helper()
	busy := fmt.Sprintf("busy_timeout(%d)", patience.Limit.Milliseconds())
	driver, source := "sqlite", "file:"+l.server.Database+"?"+mode+"&_pragma="+busy
	if strings.HasPrefix(l.server.Database, "postgres") {
		if driver, source = "pgx", l.inspect; source == "" {
			source = pgtest.Admin(l.t, l.server.Database)
		}
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		l.t.Fatal(err)
	}
	return db
}

// checkFile runs the integrity checks of SQLite on the file.
func (l *load) checkFile(db *sql.DB) {
	l.t.Helper()
	for _, check := range []string{"select * from pragma_integrity_check where integrity_check <> 'ok'", `select "table" from pragma_foreign_key_check`} {
		rows, err := db.QueryContext(context.WithoutCancel(l.t.Context()), check)
		if err != nil {
			l.t.Fatal(err)
		}
		for rows.Next() {
			var complaint string
			if err := rows.Scan(&complaint); err != nil {
				l.t.Fatal(err)
			}
			l.t.Errorf("%s: %s", check, complaint)
		}
		if err := rows.Err(); err != nil {
			l.t.Fatal(err)
		}
	}
}

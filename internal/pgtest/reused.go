package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rolecall/rolecall/internal/store/postgres"
)

// reused contains the leases of this process that no test uses at the moment.
var reused struct {
	sync.Mutex
	free []*lease
}

// lease is a database for the tests of this process only. It belongs to the process while
// its connection holds an advisory lock.
type lease struct {
	conn *pgx.Conn // of the administrator, in the database
	name string
	open *postgres.Database // nil until Opened
}

// Reused returns the URL of a database with the schema of this program and without rows.
// Unlike with Migrated, an earlier test may have used the database. Deleting the rows of
// that test takes a hundredth of the time of a new database. Tests must use Migrated
// instead if they change more than rows, or if they count or end connections.
func Reused(t testing.TB) string {
	t.Helper()
	return borrow(t).url(t)
}

// Opened returns an open database like that of Reused, and its URL. It is faster than
// Reused and postgres.Open. If an earlier test has opened the database, its connections
// are used again.
func Opened(t testing.TB) (database *postgres.Database, url string) {
	t.Helper()
	l := borrow(t)
	url = l.url(t)
	if l.open == nil {
		var err error
		if l.open, err = postgres.Open(context.WithoutCancel(t.Context()), closingIdle(t, url), postgres.Options{}); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	return l.open, url
}

// closingIdle returns databaseURL with settings that make a pool close its idle
// connections within about a second. Otherwise, the pools of all databases would exceed
// the connection limit of the server.
func closingIdle(t testing.TB, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	query := u.Query()
	query.Set("pool_max_conn_idle_time", "1s")
	query.Set("pool_health_check_period", "500ms")
	u.RawQuery = query.Encode()
	return u.String()
}

// borrow returns a lease of a database without rows. When the test ends, other tests can
// use the lease.
func borrow(t testing.TB) *lease {
	t.Helper()
	l := takeLease(t)
	if _, err := l.conn.Exec(t.Context(), deleteRows); err != nil {
		t.Fatalf("pgtest: %v", errors.Join(err, l.conn.Close(context.WithoutCancel(t.Context()))))
	}
	t.Cleanup(func() {
		reused.Lock()
		defer reused.Unlock()
		reused.free = append(reused.free, l)
	})
	return l
}

func (l *lease) url(t testing.TB) string {
	t.Helper()
	return onDatabase(t, server(t), l.name, url.UserPassword(role, password))
}

// deleteRows deletes the rows of every table, except those that the migrations have inserted.
// It truncates only large tables, because truncating a small table is slower. The setting
// makes the session act as a replica. PostgreSQL then does not check foreign keys, so the
// order of the tables does not matter.
const deleteRows = `set session_replication_role = replica;
do $$
declare
	full_table text;
begin
	for full_table in select quote_ident(tablename) from pg_tables
		where schemaname = 'public' and tablename not in ('migrations', 'compatibility', 'webhook_queues')
	loop
		if pg_relation_size(full_table) > 1000000 then
			execute 'truncate ' || full_table || ' cascade';
		else
			execute 'delete from ' || full_table;
		end if;
	end loop;
end $$`

// takeLease returns a lease of this process that no test uses. If all are in use, it
// leases an existing database that no process uses, or creates a new one.
func takeLease(t testing.TB) *lease {
	t.Helper()
	reused.Lock()
	defer reused.Unlock()
	if last := len(reused.free) - 1; last >= 0 {
		l := reused.free[last]
		reused.free = reused.free[:last]
		return l
	}
	original := template(t)
	for n := 1; ; n++ {
		l := &lease{name: fmt.Sprintf("%s_reused_%d", original, n)}
		if l.lock(t, original) {
			return l
		}
	}
}

// lock tries to lease the database for this process, and reports whether it succeeded. If
// the database does not exist, lock creates it.
func (l *lease) lock(t testing.TB, original string) (mine bool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	address := onDatabase(t, server(t), l.name, nil)
	conn, err := pgx.Connect(ctx, address)
	const noSuchDatabase = "3D000"
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == noSuchDatabase {
		l.create(t, original)
		conn, err = pgx.Connect(ctx, address)
	}
	if err == nil {
		err = conn.QueryRow(ctx, fmt.Sprintf("select pg_try_advisory_lock(%d)", setupLock)).Scan(&mine)
	}
	if err == nil && !mine {
		err = conn.Close(ctx)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	l.conn = conn
	return mine
}

func (l *lease) create(t testing.TB, original string) {
	t.Helper()
	admin := connect(t, server(t))
	locked(t, admin, func() {
		var exists bool // another process may have created it in the meantime
		if err := admin.QueryRow(t.Context(), "select exists (select from pg_database where datname = $1)", l.name).Scan(&exists); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		if !exists {
			createFrom(t, admin, l.name, original)
		}
	})
}

package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
	"github.com/rolecall/rolecall/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Database {
		opened, _ := pgtest.Opened(t)
		return storetest.RowSecured(t, opened)
	})
}

// In transaction mode, the sessions of the server are shared, so prepared statements
// cannot be used. With -short, only a sample of the suite runs behind the pooler.
func TestStoreBehindPgBouncer(t *testing.T) {
	through, every := pgtest.Bouncer(t), 1
	if testing.Short() {
		every = 8
	}
	storetest.RunSample(t, every, func(t *testing.T) store.Database {
		return open(t, through(pgtest.Reused(t))+"?default_query_exec_mode=exec", postgres.Options{})
	})
}

// onServers runs a test on a migrated database of PostgreSQL and on one of Citus.
func onServers(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("postgres", func(t *testing.T) { test(t, pgtest.Migrated(t)) })
	t.Run("citus", func(t *testing.T) { test(t, pgtest.CitusMigrated(t)) })
}

func open(t *testing.T, url string, options postgres.Options) *postgres.Database {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// connect opens a connection without a pool, which is closed when the test ends.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func run(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

const now rolecall.Time = 1_800_000_000_000_000

// newTenant inserts a tenant and returns its id.
func newTenant(t *testing.T, s *postgres.Database, name string) rolecall.TenantID {
	t.Helper()
	tenant := rolecall.Tenant{ID: rolecall.NewID[rolecall.Tenant](now), Name: name, DisplayName: name, Status: rolecall.TenantActive, Version: 1}
	write(t, s, tenant.ID, func(tx *store.Tx) { tx.InsertTenant(tenant) })
	return tenant.ID
}

// write calls fn, which writes without a result, in an Update. It fails the test if the
// writes are not committed.
func write(t *testing.T, s *postgres.Database, tenant rolecall.TenantID, fn func(*store.Tx)) {
	t.Helper()
	if err := tryWrite(t, s, tenant, fn); err != nil {
		t.Fatal(err)
	}
}

func tryWrite(t *testing.T, s *postgres.Database, tenant rolecall.TenantID, fn func(*store.Tx)) error {
	return store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
		fn(tx)
		return nil
	})
}

// aUser returns a user that is not stored yet.
func aUser(email string) rolecall.User {
	draft := rolecall.UserDraft{Email: email, Name: "Ada Lovelace"}
	return draft.User(now)
}

func has(t *testing.T, s *postgres.Database, tenant rolecall.TenantID, id rolecall.UserID) bool {
	t.Helper()
	err := store.New(s, nil).View(t.Context(), tenant, func(tx *store.Tx) error {
		_, err := tx.UserByID(id)
		return err
	})
	if err != nil && rolecall.KindOf(err) != rolecall.NotFound {
		t.Fatal(err)
	}
	return err == nil
}

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// failing makes the database reject inserts into the table users with an error of this
// code. It rejects the given number of inserts, and accepts all later ones.
func failing(t *testing.T, url, code string, times int) {
	t.Helper()
	run(t, connect(t, url), "create sequence failures", fmt.Sprintf(`
		create function fail() returns trigger language plpgsql as $$
		begin
			if nextval('failures') <= %d then
				raise exception using errcode = '%s';
			end if;
			return new;
		end $$`, times, code), "create trigger fail before insert on users for each row execute function fail()")
}

// A database that refuses writes still answers reads, and accepts writes again without a restart.
func TestWritesAreProbed(t *testing.T) {
	url := pgtest.Migrated(t)
	conn := connect(t, url)
	database := pgx.Identifier{conn.Config().Database}.Sanitize()
	s := open(t, url, postgres.Options{})
	probe := func() error {
		return tryWrite(t, s, rolecall.TenantID{}, func(tx *store.Tx) { tx.ProbeWrites() })
	}
	reset := func(value string) {
		t.Helper()
		run(t, conn, "alter database "+database+" set default_transaction_read_only = "+value,
			"select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
	}
	for range 2 {
		patience.Poll(func() bool { return probe() == nil })
		if err := errors.Join(probe(), s.Ready(t.Context())); err != nil {
			t.Fatalf("a database that works: %v", err)
		}
		reset("on")
		patience.Poll(func() bool { return errors.Is(probe(), rolecall.ErrUnavailable) })
		if err := probe(); !errors.Is(err, rolecall.ErrUnavailable) || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("a database that is read-only: %v", err)
		}
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("reads: %v", err)
		}
		reset("off")
	}
}

func TestConflictsOfSerializationAreRetried(t *testing.T) {
	for _, code := range []string{"40001", "40P01"} {
		t.Run(code, func(t *testing.T) {
			url := pgtest.Migrated(t)
			s := open(t, url, postgres.Options{})
			tenant := newTenant(t, s, "acme")
			failing(t, url, code, 3)
			blind, awaited, runs := aUser("ada@example.com"), aUser("grace@example.com"), 0
			write(t, s, tenant, func(tx *store.Tx) {
				runs++
				tx.InsertUser(blind)
			})
			if runs != 4 {
				t.Errorf("the closure ran %d times, want 4", runs)
			}
			run(t, connect(t, url), "select setval('failures', 2)")
			if err := store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
				tx.InsertUser(awaited)
				_, err := tx.UserByID(awaited.ID)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if !has(t, s, tenant, blind.ID) || !has(t, s, tenant, awaited.ID) {
				t.Error("a retried update is not there")
			}
		})
	}
}

func TestConflictsThatDoNotEndAreUnavailable(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, url, postgres.Options{})
	tenant := newTenant(t, s, "acme")
	failing(t, url, "40001", 9)
	runs := 0
	err := tryWrite(t, s, tenant, func(tx *store.Tx) {
		runs++
		tx.InsertUser(aUser("ada@example.com"))
	})
	if !errors.Is(err, rolecall.ErrUnavailable) || runs < 3 || runs > 9 {
		t.Errorf("got %v after %d runs, want unavailable after a few", err, runs)
	}
}

func TestAnUnknownFailureIsInternal(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, url, postgres.Options{})
	tenant := newTenant(t, s, "acme")
	failing(t, url, "22000", 1)
	err := tryWrite(t, s, tenant, func(tx *store.Tx) { tx.InsertUser(aUser("ada@example.com")) })
	if err == nil || rolecall.KindOf(err) != rolecall.Internal {
		t.Errorf("got %v, want an internal error", err)
	}
}

func TestViolationsKeepTheConnection(t *testing.T) { onServers(t, keepTheConnection) }

func keepTheConnection(t *testing.T, url string) {
	s := open(t, url+"&pool_max_conns=1", postgres.Options{})
	tenant := newTenant(t, s, "acme")
	user := aUser("ada@example.com")
	write(t, s, tenant, func(tx *store.Tx) { tx.InsertUser(user) })
	admin := connect(t, pgtest.Admin(t, url))
	backend := func() (pid int) {
		t.Helper()
		if err := admin.QueryRow(t.Context(),
			"select pid from pg_stat_activity where datname = current_database() and application_name = 'rolecall'").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	before := backend()
	for name, fn := range map[string]func(*store.Tx) error{
		"blind": func(tx *store.Tx) error {
			tx.InsertUser(aUser("ada@example.com"))
			return nil
		},
		"awaited": func(tx *store.Tx) error {
			tx.InsertUser(aUser("ada@example.com"))
			_, err := tx.UserByID(user.ID)
			return err
		},
		"at the commit": func(tx *store.Tx) error {
			if _, err := tx.UserByID(user.ID); err != nil {
				return err
			}
			tx.InsertUser(aUser("ada@example.com"))
			return nil
		},
	} {
		if err := store.New(s, nil).Update(t.Context(), tenant, fn); !errors.Is(err, rolecall.ErrEmailTaken) {
			t.Errorf("%s: got %v, want email-taken", name, err)
		}
		if after := backend(); after != before {
			t.Errorf("%s: the violation cost the connection", name)
		}
	}
}

func TestALostConnectionIsUnavailable(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, url+"&pool_max_conns=1", postgres.Options{})
	tenant := newTenant(t, s, "acme")
	user := aUser("ada@example.com")
	write(t, s, tenant, func(tx *store.Tx) { tx.InsertUser(user) })
	admin := connect(t, pgtest.Admin(t, url))
	cut := func() {
		run(t, admin, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'rolecall'")
	}
	err := store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
		if _, err := tx.UserByID(user.ID); err != nil {
			return err
		}
		cut()
		tx.SetPassword(user.ID, "hash", now)
		return nil
	})
	if !errors.Is(err, rolecall.ErrUnavailable) {
		t.Errorf("update: got %v, want unavailable", err)
	}
	if !has(t, s, tenant, user.ID) {
		t.Error("the store did not recover")
	}
}

func TestACommitWhoseAnswerIsLostIsNotASuccess(t *testing.T) {
	for name, fn := range map[string]func(*store.Tx, rolecall.User) error{
		"blind": func(tx *store.Tx, u rolecall.User) error {
			tx.InsertUser(u)
			return nil
		},
		"explicit": func(tx *store.Tx, u rolecall.User) error {
			tx.InsertUser(u)
			_, err := tx.UserByID(u.ID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var net wire
			url := pgtest.Migrated(t)
			s := open(t, url+"&pool_max_conns=1", postgres.Options{Dial: net.dial})
			tenant := newTenant(t, s, "acme")
			err := store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
				err := fn(tx, aUser("ada@example.com"))
				net.severed.Store(true)
				return err
			})
			if !errors.Is(err, rolecall.ErrUnavailable) {
				t.Errorf("got %v, want unavailable", err)
			}
			net.severed.Store(false)
			if err := s.Ready(t.Context()); err != nil {
				t.Errorf("the store did not recover: %v", err)
			}
		})
	}
}

// A View repeats a read on a new connection.
func TestAReadIsRepeatedAfterALostConnection(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, url, postgres.Options{})
	tenant := newTenant(t, s, "acme")
	user := aUser("ada@example.com")
	write(t, s, tenant, func(tx *store.Tx) { tx.InsertUser(user) })
	admin := connect(t, pgtest.Admin(t, url))
	for range 3 {
		cutAll(t, admin)
		if !has(t, s, tenant, user.ID) {
			t.Error("what was there is not found")
		}
	}
}

func cutAll(t *testing.T, admin *pgx.Conn) {
	t.Helper()
	run(t, admin, "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and application_name = 'rolecall'")
}

// An operation whose context has a deadline does not wait long for a lock or a connection.
func TestATransactionThatTakesTooLongIsUnavailable(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	s := open(t, url+"&pool_max_conns=1", postgres.Options{})
	tenant := newTenant(t, s, "acme")
	lock, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "lock table users in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	results := make(chan error)
	for range 2 {
		go func() {
			results <- store.New(s, nil).View(ctx, tenant, func(tx *store.Tx) error {
				_, err := tx.UserByID(aUser("ada@example.com").ID)
				return err
			})
		}()
	}
	for range 2 {
		if err := <-results; !errors.Is(err, rolecall.ErrUnavailable) || ctx.Err() != nil {
			t.Errorf("got %v, want unavailable long before the deadline", err)
		}
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("the store did not recover: %v", err)
	}
}

// The server can cancel a statement because of one of its settings. This is not an
// internal error of the program.
func TestStatementsCancelledByTheServerAreUnavailable(t *testing.T) {
	for _, code := range []string{"55P03", "57014", "58030"} {
		url := pgtest.Migrated(t)
		s := open(t, url, postgres.Options{})
		tenant := newTenant(t, s, "acme")
		failing(t, url, code, 1)
		if err := tryWrite(t, s, tenant, func(tx *store.Tx) { tx.InsertUser(aUser("ada@example.com")) }); !errors.Is(err, rolecall.ErrUnavailable) {
			t.Errorf("%s: got %v, want unavailable", code, err)
		}
	}
}

// If the wait for a standby is cancelled, COMMIT succeeds with a warning.
func TestACommitThatNoStandbyConfirmedIsNotASuccess(t *testing.T) {
	server, err := pgtest.Start("synchronous_standby_names=absent", "synchronous_commit=local")
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := postgres.Migrate(t.Context(), server.URL()); err != nil {
		t.Fatal(err)
	}
	setup := open(t, server.URL(), postgres.Options{AllowSuperuser: true})
	tenant := newTenant(t, setup, "acme")
	s := open(t, server.URL()+"&synchronous_commit=on&application_name=waiting", postgres.Options{AllowSuperuser: true})
	for name, fn := range map[string]func(*store.Tx) error{
		"blind": func(tx *store.Tx) error {
			tx.InsertUser(aUser("ada@example.com"))
			return nil
		},
		"explicit": func(tx *store.Tx) error {
			u := aUser("grace@example.com")
			tx.InsertUser(u)
			_, err := tx.UserByID(u.ID)
			return err
		},
		"nothing written": func(tx *store.Tx) error {
			_, err := tx.CountKeys(rolecall.IdempotencyKey{UserID: aUser("ada@example.com").ID}, 1)
			return err
		},
	} {
		result := make(chan error)
		go func() { result <- store.New(s, nil).Update(t.Context(), tenant, fn) }()
		cancelCommit(t, server.URL())
		if err := <-result; !errors.Is(err, rolecall.ErrUnavailable) {
			t.Errorf("%s: got %v, want unavailable", name, err)
		}
	}
}

// cancelCommit waits until a commit waits for a standby, and then cancels the commit.
func cancelCommit(t *testing.T, url string) {
	t.Helper()
	conn := connect(t, url)
	if !patience.Poll(func() (cancelled bool) {
		err := conn.QueryRow(t.Context(), `select coalesce(bool_or(pg_cancel_backend(pid)), false)
			from pg_stat_activity where application_name = 'waiting' and wait_event = 'SyncRep'`).Scan(&cancelled)
		if err != nil {
			t.Fatal(err)
		}
		return cancelled
	}) {
		t.Fatal("no commit waits")
	}
}

func TestAnUnreachableServerIsReported(t *testing.T) {
	_, err := postgres.Open(t.Context(), "postgres://nobody@/nothing?host="+t.TempDir(), postgres.Options{})
	if err == nil || !strings.Contains(err.Error(), "cannot use the database") {
		t.Errorf("got %v, want a sentence about the database", err)
	}
	if _, err := postgres.Open(t.Context(), "postgres://%zz", postgres.Options{}); err == nil {
		t.Error("opened a URL that is none")
	}
}

func TestAContextThatEndsWhileWaitingForAConnection(t *testing.T) {
	s := open(t, pgtest.Migrated(t)+"&pool_max_conns=1", postgres.Options{})
	tenant := newTenant(t, s, "acme")
	err := store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
		if _, err := tx.UserByID(aUser("nobody@example.com").ID); rolecall.KindOf(err) != rolecall.NotFound {
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return store.New(s, nil).View(ctx, tenant, func(tx *store.Tx) error {
			_, err := tx.UserByID(aUser("nobody@example.com").ID)
			return err
		})
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

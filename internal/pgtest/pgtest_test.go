package pgtest_test

import (
	"errors"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

func TestADatabaseIsEmptyAndOfAnOrdinaryRole(t *testing.T) {
	first, second := pgtest.URL(t), pgtest.URL(t)
	if first == second {
		t.Fatal("two tests share a database")
	}
	var tables int
	var ordinary, owner bool
	err := connect(t, first).QueryRow(t.Context(), `
		select (select count(*) from pg_tables where schemaname = 'public'), not rolsuper and not rolbypassrls,
			(select datdba = r.oid from pg_database where datname = current_database())
		from pg_roles r where rolname = current_user`).Scan(&tables, &ordinary, &owner)
	if err != nil {
		t.Fatal(err)
	}
	if tables != 0 || !ordinary || !owner {
		t.Errorf("got %d tables, ordinary %t, owner %t; want an empty database of an ordinary role", tables, ordinary, owner)
	}
}

func TestMigratedDatabasesAreSeparate(t *testing.T) {
	first, second := connect(t, pgtest.Migrated(t)), connect(t, pgtest.Migrated(t))
	if _, err := first.Exec(t.Context(), "insert into attempts (bucket, n, ends_at) values ('x', 1, 1)"); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := second.QueryRow(t.Context(), "select count(*) from attempts").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("the other database has %d rows (error %v), want none", rows, err)
	}
}

func TestAReusedDatabaseHasNoRowsAndOneUser(t *testing.T) {
	const insert, rows = "insert into attempts (bucket, n, ends_at) select int8send(i), 1, 1 from generate_series(1, $1::bigint) i", "select count(*) from attempts"
	var used string
	for _, size := range []int{1, 100_000, 0} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			url := pgtest.Reused(t)
			if used != "" && url != used {
				t.Errorf("the database of an ended test is not used again")
			}
			used = url
			var found int
			conn := connect(t, url)
			if err := conn.QueryRow(t.Context(), rows).Scan(&found); err != nil || found != 0 {
				t.Errorf("the database has %d rows (error %v), want none", found, err)
			}
			if _, err := conn.Exec(t.Context(), insert, size); err != nil {
				t.Fatal(err)
			}
			if other := pgtest.Reused(t); other == url {
				t.Error("two tests share a database")
			}
		})
	}
}

func TestAnOpenedDatabaseIsUsedAgainWithoutRows(t *testing.T) {
	var used *postgres.Database
	for n := range 2 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			opened, url := pgtest.Opened(t)
			if used != nil && opened != used {
				t.Error("a database that is open is not used again")
			}
			used = opened
			if err := opened.Ready(t.Context()); err != nil {
				t.Error(err)
			}
			var rows int
			conn := connect(t, url)
			if err := conn.QueryRow(t.Context(), "select count(*) from attempts").Scan(&rows); err != nil || rows != 0 {
				t.Errorf("the database has %d rows (error %v), want none", rows, err)
			}
			if _, err := conn.Exec(t.Context(), "insert into attempts (bucket, n, ends_at) values ('x', 1, 1)"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAProductionServerIsDurable(t *testing.T) {
	server, err := pgtest.Start(pgtest.Production...)
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	database, err := server.NewDatabase(t.Context(), "own")
	if err != nil {
		t.Fatal(err)
	}
	var fsync, pages string
	var ordinary bool
	err = connect(t, database).QueryRow(t.Context(), `select current_setting('fsync'), current_setting('full_page_writes'),
		not rolsuper and not rolbypassrls from pg_roles where rolname = current_user`).Scan(&fsync, &pages, &ordinary)
	if err != nil || fsync != "on" || pages != "on" || !ordinary {
		t.Errorf("got fsync %s, full_page_writes %s, an ordinary role %t, error %v", fsync, pages, ordinary, err)
	}
	pid, err := server.PID()
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err != nil || process.Signal(syscall.Signal(0)) != nil {
		t.Errorf("process %d is not there (error %v)", pid, err)
	}
}

func TestAKilledServerKeepsCommittedRows(t *testing.T) {
	primary, err := pgtest.Start(pgtest.Production...)
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := primary.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin := connect(t, primary.URL())
	execute := func(statements ...string) {
		for _, statement := range statements {
			if _, err := admin.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Commits wait only when the checkpointer has read the setting. It does so before the checkpoint of the copy.
	execute("alter system set synchronous_standby_names to '*'", "select pg_reload_conf()")
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(); err != nil {
			t.Error(err)
		}
	})
	execute("create table said ()", "insert into said default values")
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), "select 1"); err == nil {
		t.Error("the server still answers")
	}
	if err := errors.Join(standby.Promote(), primary.Restart()); err != nil {
		t.Fatal(err)
	}
	for _, server := range []*pgtest.Server{primary, standby} {
		var rows int
		var follows bool
		err := connect(t, server.URL()).QueryRow(t.Context(), "select count(*), pg_is_in_recovery() from said").Scan(&rows, &follows)
		if err != nil || rows != 1 || follows {
			t.Errorf("got %d rows, a standby %t, error %v; want 1 row of a primary", rows, follows, err)
		}
	}
}

func TestAStoppedServerLeavesNothing(t *testing.T) {
	server, err := pgtest.Start("work_mem=1234kB")
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var setting string
	if err := connect(t, server.URL()).QueryRow(t.Context(), "show work_mem").Scan(&setting); err != nil || setting != "1234kB" {
		t.Errorf("work_mem is %q (error %v), want what Start was given", setting, err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), server.URL()); err == nil {
		t.Error("the server still answers")
	}
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if folder := u.Query().Get("host"); folder == "" || exists(t, folder) {
		t.Errorf("the folder %q is still there", folder)
	}
}

func TestAFailedStartReportsTheReason(t *testing.T) {
	_, err := pgtest.Start("no_such_setting=1")
	if errors.Is(err, pgtest.ErrNotInstalled) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("got error %v, want one that names the setting", err)
	}
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	// The server may have stopped by then, so the connection may be lost.
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

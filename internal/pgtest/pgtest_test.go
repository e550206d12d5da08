package pgtest_test

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/internal/pgtest"
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

func TestMigratedDatabasesAreApart(t *testing.T) {
	first, second := connect(t, pgtest.Migrated(t)), connect(t, pgtest.Migrated(t))
	if _, err := first.Exec(t.Context(), "insert into attempts (bucket, n, ends_at) values ('x', 1, 1)"); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := second.QueryRow(t.Context(), "select count(*) from attempts").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("the other database has %d rows (error %v), want none", rows, err)
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

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
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
	// The server may be gone by then, and with it the connection.
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

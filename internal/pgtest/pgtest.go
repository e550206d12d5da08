// Package pgtest creates a separate PostgreSQL database for each test. If
// ROLECALL_TEST_POSTGRES contains the URL of an administrator, the databases are on that
// server. Otherwise, they are on a temporary server of the test process.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// Variable is the environment variable with the URL of the test server. The role in the
// URL must be allowed to create roles and databases.
const Variable = "ROLECALL_TEST_POSTGRES"

// This role owns every test database. It is an ordinary role, as in production.
const role, password = "rolecall_test", "rolecall_test"

// setupLock is the advisory lock that a test process holds while it creates the role or
// the template, because several test processes run at the same time.
const setupLock = 7_355_608

// URL returns the URL of a new empty database. The user of the URL is the ordinary role
// that owns the database. The database is dropped when the test ends. If no server is
// available, the test is skipped, or fails if CI or ROLECALL_REQUIRE_POSTGRES is set.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, "template0")
}

// Migrated is like URL, but the new database has the schema of this program.
func Migrated(t testing.TB) string {
	t.Helper()
	return create(t, template(t))
}

// Admin returns databaseURL with the administrator of its server as the user.
func Admin(t testing.TB, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if u.User.Username() != role { // on a cluster
		u.User = url.User("admin")
		return u.String()
	}
	return onDatabase(t, server(t), u.Path[1:], nil)
}

// ownServer starts the server of this process when it is first called. Later calls return
// the same server. The server stops when the process ends, even after a crash.
var ownServer = sync.OnceValues(func() (*Server, error) { return Start() })

func server(t testing.TB) string {
	t.Helper()
	if named := os.Getenv(Variable); named != "" {
		return named
	}
	own, err := ownServer()
	switch {
	case err == nil:
		return own.URL()
	case errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "" && os.Getenv("ROLECALL_REQUIRE_POSTGRES") == "":
		t.Skipf("NOT TESTED ON POSTGRESQL: %v", err)
	default:
		t.Fatalf("pgtest: %v", err)
	}
	return ""
}

func create(t testing.TB, template string) string {
	t.Helper()
	admin := connect(t, server(t))
	locked(t, admin, func() { makeRole(t, admin) })
	name := "rolecall_test_" + rolecall.NewID[any](rolecall.TimeOf(time.Now())).String()
	createFrom(t, admin, name, template)
	t.Cleanup(func() {
		run(t, connect(t, server(t)), fmt.Sprintf("drop database %s with (force)", quoted(name)))
	})
	return onDatabase(t, server(t), name, url.UserPassword(role, password))
}

// createFrom creates a database as a copy of the template. The strategy file_copy takes a
// tenth of the time of the default strategy, which logs every page.
func createFrom(t testing.TB, admin *pgx.Conn, name, template string) {
	t.Helper()
	run(t, admin, fmt.Sprintf("create database %s owner %s template %s strategy file_copy", quoted(name), role, quoted(template)))
}

// template returns the name of a migrated database that other databases are copied from.
// The database is created once per server and schema. It gets this name only when all
// migrations are applied.
func template(t testing.TB) string {
	t.Helper()
	admin := connect(t, server(t))
	name := fmt.Sprintf("rolecall_template_%016x", schemaHash(t))
	locked(t, admin, func() {
		var exists bool
		if err := admin.QueryRow(t.Context(), "select exists (select from pg_database where datname = $1)", name).Scan(&exists); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		if exists {
			return
		}
		makeRole(t, admin)
		unfinished := name + "_unfinished"
		run(t, admin, "drop database if exists "+unfinished)
		run(t, admin, fmt.Sprintf("create database %s owner %s template template0", unfinished, role))
		if err := postgres.Migrate(t.Context(), onDatabase(t, server(t), unfinished, url.UserPassword(role, password))); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		run(t, admin, fmt.Sprintf("alter database %s rename to %s", unfinished, name))
	})
	return name
}

func schemaHash(t testing.TB) uint64 {
	t.Helper()
	files, err := postgres.Migrations()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	hash := fnv.New64a()
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		fmt.Fprintf(hash, "%s\n%s", path, content)
		return err
	})
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return hash.Sum64()
}

func makeRole(t testing.TB, admin *pgx.Conn) {
	t.Helper()
	_, err := admin.Exec(t.Context(), fmt.Sprintf("create role %s login password '%s'", role, password))
	const duplicateObject = "42710"
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == duplicateObject {
		return
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

func locked(t testing.TB, admin *pgx.Conn, fn func()) {
	t.Helper()
	run(t, admin, fmt.Sprintf("select pg_advisory_lock(%d)", setupLock))
	fn()
	run(t, admin, fmt.Sprintf("select pg_advisory_unlock(%d)", setupLock))
}

// connect opens a connection that is closed when the test ends.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(ctx); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return conn
}

func run(t testing.TB, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatalf("pgtest: %s: %v", statement, err)
	}
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// onDatabase returns serverURL with another database. If user is not nil, the returned URL
// also has this user.
func onDatabase(t testing.TB, serverURL, database string, user *url.Userinfo) string {
	t.Helper()
	u, err := url.Parse(serverURL)
	if err != nil {
		t.Fatalf("pgtest: %s: %v", Variable, err)
	}
	u.Path = "/" + database
	if user != nil {
		u.User = user
	}
	return u.String()
}

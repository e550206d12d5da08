package sqlitetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

// reused has the databases of this process that Opened has returned.
var reused struct {
	sync.Mutex
	folder string // of the files
	all    []*sqlite.Database
	free   []lease // no test uses them
}

// lease is an open database.
type lease struct {
	*sqlite.Database
	path string
}

// Opened returns an open database with the schema of this program and without rows, and its path. An
// earlier test may have used the database. Deleting the rows of that test takes a tenth of the time of
// opening a database. A test must not change more than rows. The package of the test must have a
// TestMain that calls Main.
func Opened(t testing.TB) (database *sqlite.Database, path string) {
	t.Helper()
	reused.Lock()
	defer reused.Unlock()
	var l lease
	if last := len(reused.free) - 1; last >= 0 {
		l, reused.free = reused.free[last], reused.free[:last]
	} else {
		l = open(t)
	}
	t.Cleanup(func() {
		if err := deleteRows(l.Database); err != nil {
			t.Errorf("sqlitetest: %v", err)
			return
		}
		reused.Lock()
		defer reused.Unlock()
		reused.free = append(reused.free, l)
	})
	return l.Database, l.path
}

// open creates and opens a database. It is called while reused is locked.
func open(t testing.TB) lease {
	t.Helper()
	content, err := migrated()
	if err == nil && reused.folder == "" {
		reused.folder, err = os.MkdirTemp("", "rolecall-sqlite")
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(reused.folder, rolecall.NewID[any](0).String())
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	database, err := sqlite.Open(context.WithoutCancel(t.Context()), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reused.all = append(reused.all, database)
	return lease{database, path}
}

// deleteRows deletes the rows of every table, except those that the migrations have inserted. It
// checks foreign keys only afterwards, so the order of the tables does not matter.
func deleteRows(database *sqlite.Database) error {
	return database.Update(context.Background(), rolecall.TenantID{}, func(q store.Querier) error {
		var tables []string
		_, err := q.Query(`select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'
			and name not in ('migrations', 'compatibility', 'webhook_queues')`, nil, func(scan func(dest ...any) error) error {
			tables = append(tables, "")
			return scan(&tables[len(tables)-1])
		})
		q.Exec("pragma defer_foreign_keys = on")
		for _, table := range tables {
			q.Exec("delete from " + table)
		}
		return err
	})
}

// Close closes and removes the databases that Opened has returned, when all tests have ended.
func Close() error {
	reused.Lock()
	defer reused.Unlock()
	var errs []error
	for _, database := range reused.all {
		errs = append(errs, database.Close())
	}
	reused.all, reused.free = nil, nil
	if reused.folder != "" {
		errs = append(errs, os.RemoveAll(reused.folder))
	}
	return errors.Join(errs...)
}

// Main runs the tests of a package. It then calls Close, and returns the code with which the process
// must exit.
func Main(m *testing.M) (code int) {
	code = m.Run()
	if err := Close(); err != nil {
		println("sqlitetest:", err.Error())
		return 1
	}
	return code
}

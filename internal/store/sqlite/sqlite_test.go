package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/storetest"
)

const now rolecall.Time = 1_800_000_000_000_000

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Database {
		s := openNew(t)
		t.Cleanup(func() { noTableIsScanned(t, s) })
		return storetest.NewCaches(t, storetest.Isolated(t, s))
	})
}

func TestTheChecksOfTheSuiteFindFaults(t *testing.T) { storetest.RunChecks(t, openNew(t)) }

// openNew returns a new, empty database that is closed when the test ends.
func openNew(t testing.TB) *Database {
	t.Helper()
	content, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rolecall.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, path, Options{})
}

// open opens the database at path, which is closed when the test ends.
func open(t testing.TB, path string, options Options) *Database {
	t.Helper()
	s, err := Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// migrated returns the content of an empty database file with the schema. It applies the
// migrations only once, because the parser of migrations is slow under the race detector:
// it allocates 4 MB for every fourth line.
var migrated = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "rolecall-sqlite")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "rolecall.db")
	database, err := Open(context.Background(), path, Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	if err := database.Close(); err != nil { // moves the log into the file
		return nil, err
	}
	return os.ReadFile(path)
})

// newTenant inserts a tenant and returns its id.
func newTenant(t testing.TB, s *Database) rolecall.TenantID {
	t.Helper()
	tenant := rolecall.Tenant{ID: rolecall.NewID[rolecall.Tenant](now), Status: rolecall.TenantActive, CreatedAt: now, UpdatedAt: now, Version: 1}
	tenant.Name = tenant.ID.String()
	if err := store.New(s, nil).Update(t.Context(), tenant.ID, func(tx *store.Tx) error {
		tx.InsertTenant(tenant)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return tenant.ID
}

// newUser returns a user with a unique address.
func newUser(name string) rolecall.User {
	id := rolecall.NewID[rolecall.User](now)
	return rolecall.User{ID: id, Name: name, Email: id.String() + "@example.com",
		Status: rolecall.UserActive, CreatedAt: now, UpdatedAt: now, Version: 1}
}

func TestEveryConnectionHasThePragmas(t *testing.T) {
	s := openNew(t)
	var conns []*conn
	for range s.count {
		conns = append(conns, <-s.readers)
	}
	defer func() {
		for _, c := range conns {
			s.readers <- c
		}
	}()
	for _, c := range append(slices.Clone(conns), s.writer.conn) {
		for pragma, want := range map[string]string{
			"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "temp_store": "2", "busy_timeout": "5000",
		} {
			var got string
			if err := c.QueryRowContext(t.Context(), "pragma "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q (%v), want %q", pragma, got, err, want)
			}
		}
	}
}

func TestReadersCannotWrite(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	if err := store.New(s, nil).View(t.Context(), tenant, func(tx *store.Tx) error {
		tx.InsertUser(newUser("Ada"))
		return nil
	}); err == nil {
		t.Error("a blind write inside of View was taken")
	}
	if err := store.New(s, nil).View(t.Context(), tenant, func(tx *store.Tx) error {
		_, err := tx.DeleteSession(rolecall.NewID[rolecall.Session](now))
		return err
	}); err == nil {
		t.Error("an awaited write inside of View was taken")
	}
}

func TestTheFileIsReadableByItsOwnerAlone(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "data", "rolecall.db"), Options{Migrate: true})
	newTenant(t, s)
	var path string
	if err := s.writer.conn.QueryRowContext(t.Context(), "select file from pragma_database_list").Scan(&path); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{
		filepath.Dir(path): os.ModeDir | 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
}

// The number of the newest migration must be right, because this program
// does not serve a file without that migration.
func TestTheNewestMigrationIsKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rolecall.db")
	open(t, path, Options{Migrate: true})
	file, err := openPool(path, 1, url.Values{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	v, err := storedVersions(t.Context(), file)
	if err != nil || v.stored != schemaVersion {
		t.Errorf("the newest migration is %d (error %v), and the program needs %d", v.stored, err, schemaVersion)
	}
}

// A program can serve a schema with newer migrations if the table compatibility says so.
func TestOpenRejectsAnUnsupportedSchema(t *testing.T) {
	const newer = "insert into migrations (version_id, is_applied) values (999, true)"
	serving := func(oldest int64) string {
		return fmt.Sprintf("insert into compatibility (migration, oldest) values (999, %d)", oldest)
	}
	for _, c := range []struct {
		name    string
		changes []string
		says    string // "": it is served
	}{
		{"newer, and says nothing", []string{newer}, "newer Rolecall"},
		{"newer, and serves only newer programs", []string{newer, serving(schemaVersion + 1)}, "newer Rolecall"},
		{"newer, and serves this program", []string{newer, serving(schemaVersion)}, ""},
		{"older", []string{"delete from migrations where version_id > 0"}, "rolecall migrate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rolecall.db")
			s, err := Open(t.Context(), path, Options{Migrate: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Ready(t.Context()); err != nil {
				t.Errorf("not ready: %v", err)
			}
			for _, change := range c.changes {
				if err := s.writer.conn.exec(change); err != nil {
					t.Fatal(err)
				}
			}
			expect := func(what string, err error) {
				t.Helper()
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%s says %v, want %q", what, err, c.says)
				}
			}
			expect("Ready", s.Ready(t.Context()))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := Open(t.Context(), path, Options{})
			expect("Open", err)
			if err == nil {
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestAMissingFileIsNotCreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "rolecall.db")
	if _, err := Open(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "rolecall migrate") {
		t.Errorf("Open says %v, want a way to make the file", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("the directory was made")
	}
}

func TestAClosedStoreIsUnavailable(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "rolecall.db"), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	closed := store.New(s, nil)
	for name, run := range map[string]func(context.Context, rolecall.TenantID, func(*store.Tx) error) error{"View": closed.View, "Update": closed.Update} {
		err := run(t.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
			_, err := tx.TenantByName("acme")
			return err
		})
		if rolecall.KindOf(err) != rolecall.Unavailable {
			t.Errorf("%s says %v, want unavailable", name, err)
		}
	}
}

func TestManyProcessesMigrateOneFileAtOnce(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "rolecall.db")
		var failures [4]error
		var opening sync.WaitGroup
		for i := range failures {
			opening.Go(func() {
				s, err := Open(t.Context(), path, Options{Migrate: true})
				if err == nil {
					err = s.Close()
				}
				failures[i] = err
			})
		}
		opening.Wait()
		if err := errors.Join(failures[:]...); err != nil {
			t.Error(err)
		}
	}
}

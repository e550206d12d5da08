// Package sqlitetest gives each test a migrated SQLite database.
package sqlitetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/internal/store/sqlite"
)

// Migrated returns the path of a new database with the schema of this program. It is
// removed when the test ends.
func Migrated(t testing.TB) string {
	t.Helper()
	content, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rolecall.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// migrated returns the content of a migrated file. Copying it takes far less time than
// migrating once more.
var migrated = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "rolecall-sqlite")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "rolecall.db")
	database, err := sqlite.Open(context.Background(), path, sqlite.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	if err := database.Close(); err != nil { // which moves all into the file
		return nil, err
	}
	return os.ReadFile(path)
})

// Package sqlitetest gives each test a migrated SQLite database.
package sqlitetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/rolecall/rolecall/internal/store/sqlite"
)

// migrated creates a database at the first call, and returns the content of its file. Copying this
// file takes far less time than migrating again.
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
	if err := database.Close(); err != nil { // moves the content of the write-ahead log into the file
		return nil, err
	}
	return os.ReadFile(path)
})

package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

// Without the checkpointer, the database file would not change until the write-ahead log
// has 64 MiB.
func TestCheckpointsMoveCommitsToTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rolecall.db")
	tenant := newTenant(t, open(t, path, Options{Migrate: true}))
	if !patience.Poll(func() bool { return isInFile(t, path, tenant[:]) }) {
		t.Fatal("the file does not have the tenant")
	}
}

// isInFile reports whether the database file contains the tenant, without the write-ahead
// log.
func isInFile(t *testing.T, path string, tenant []byte) bool {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?immutable=1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	var n int
	err = db.QueryRow("select count(*) from tenants where id = $1", tenant).Scan(&n)
	return err == nil && n > 0 // at first the file does not even have the table
}

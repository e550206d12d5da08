package sqlite

import (
	"context"
	"net/url"
	"path/filepath"
	"testing"
)

// TestCommitsMustBeDurable checks that checkDurable rejects settings under which a power
// failure could undo acknowledged commits.
func TestCommitsMustBeDurable(t *testing.T) {
	db, err := openPool(filepath.Join(t.TempDir(), "rolecall.db"), 1, url.Values{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	if err := checkDurable(ctx, db); err != nil {
		t.Errorf("the settings of every store are refused: %v", err)
	}
	for _, setting := range []string{"pragma synchronous = normal", "pragma synchronous = full; pragma journal_mode = delete"} {
		if _, err := db.ExecContext(ctx, setting); err != nil {
			t.Fatal(err)
		}
		if checkDurable(ctx, db) == nil {
			t.Errorf("%s is accepted", setting)
		}
	}
}

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/store"
)

func TestADatabaseIsAFileOrAURL(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, database := range []string{"host=localhost dbname=rolecall", "dbname=rolecall", "user=ada dbname=rolecall", "service=rolecall", "mysql://localhost/rolecall"} {
		s, err := (&globals{Database: database}).open(t.Context(), func([]store.Migration) {})
		if err == nil {
			if err := s.close(); err != nil {
				t.Error(err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), "a SQLite file or a postgres:// URL") {
			t.Errorf("%q: %v", database, err)
		}
	}
	if made, err := filepath.Glob("*"); err != nil || len(made) != 0 {
		t.Errorf("files were made: %q, %v", made, err)
	}
}

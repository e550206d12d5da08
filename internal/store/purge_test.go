package store

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var tableOfTenant = regexp.MustCompile(`create table (\w+) \(\s+(?:id\s+uuid\s+not null primary key,\s+)?tenant(?:_id)? `)

// TestNoTableKeepsADeletedTenant checks that a purge empties every tenant table in the
// migrations.
func TestNoTableKeepsADeletedTenant(t *testing.T) {
	files, err := filepath.Glob("postgres/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no migrations: %v", err)
	}
	var tables int
	for _, file := range files {
		schema, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range tableOfTenant.FindAllStringSubmatch(string(schema), -1) {
			tables++
			if !slices.ContainsFunc(emptyings, func(statement string) bool { return strings.HasPrefix(statement, "delete from "+found[1]+" ") }) {
				t.Errorf("no purge empties %s", found[1])
			}
		}
	}
	if tables < 21 {
		t.Errorf("found only %d tables", tables)
	}
}

package store

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Migration is a change of the schema.
type Migration struct {
	Number int64
	Name   string        // such as 0019_removed_events
	Oldest int64         // programs that know this migration can serve the schema afterwards
	Took   time.Duration // zero if it was not applied yet
}

// ServesOlder reports whether programs that do not know the migration can serve the schema afterwards.
func (m *Migration) ServesOlder() bool { return m.Oldest < m.Number }

// compatibility matches the row that each migration adds to the table of the same name.
var compatibility = regexp.MustCompile(`insert into compatibility \([^)]*\) values \(\d+, (\d+)`)

// MigrationsAfter returns the migrations in the files whose number is above the number stored.
func MigrationsAfter(files fs.FS, stored int64) (after []Migration, err error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, file := range names {
		name := strings.TrimSuffix(file, ".sql")
		text, _, _ := strings.Cut(name, "_")
		m := Migration{Name: name}
		if m.Number, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("the migration %s has no number: %w", file, err)
		}
		content, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		row := compatibility.FindSubmatch(content)
		if row == nil {
			return nil, fmt.Errorf("the migration %s does not say which programs can serve its schema", file)
		}
		if m.Oldest, err = strconv.ParseInt(string(row[1]), 10, 64); err != nil {
			return nil, err
		}
		if m.Number > stored {
			after = append(after, m)
		}
	}
	return after, nil
}

// OldSchemaError is the error for a schema that is older than this program.
type OldSchemaError struct {
	Stored, Required int64
	Pending          []Migration
}

// Error returns both versions, and what to do.
func (e *OldSchemaError) Error() string {
	return fmt.Sprintf("the schema has version %d, but this program requires %d: %v", e.Stored, e.Required, ErrOldSchema)
}

// Unwrap returns ErrOldSchema.
func (e *OldSchemaError) Unwrap() error { return ErrOldSchema }

package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

// schemaVersion is the number of the newest migration.
const schemaVersion = 6

// A migration can fail only because another process migrates the file at the same time,
// as SQLite has no lock for all migrations together. It is tried again migrateTries
// times, after migratePause each.
const (
	migrateTries = 20
	migratePause = 100 * time.Millisecond
)

// migrationsTable records the migrations of a file.
const migrationsTable = "migrations"

//go:embed migrations/*.sql
var migrations embed.FS

// ensureSchema returns nil if this program can serve the schema of the file. If migrate is
// true, it first applies missing migrations.
func ensureSchema(ctx context.Context, db *sql.DB, migrate bool) error {
	v, err := storedVersions(ctx, db)
	if err != nil {
		return err
	}
	for tries := 0; migrate && v.stored < schemaVersion; tries++ {
		failed := applyMigrations(ctx, db)
		if v, err = storedVersions(ctx, db); err != nil {
			return err
		}
		if v.stored >= schemaVersion {
			break
		}
		if tries == migrateTries {
			return fmt.Errorf("migrate: %w", failed)
		}
		select { // another process may be migrating, one migration ahead
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(migratePause):
		}
	}
	return v.check()
}

// versions describe the schema of a file: the number of its newest migration, and the
// number of the oldest migration that a program must know to serve it. No older program
// can serve a migration without an entry in the table compatibility.
type versions struct{ stored, oldest int64 }

const selectVersions = `select coalesce(max(m.version_id), 0), coalesce(max(coalesce(c.oldest, m.version_id)), 0)
	from ` + migrationsTable + ` m left join compatibility c on c.migration = m.version_id`

// storedVersions returns the versions of the file, zeros if it has no schema.
func storedVersions(ctx context.Context, db *sql.DB) (v versions, err error) {
	var tables int
	err = db.QueryRowContext(ctx, "select count(*) from sqlite_schema where name = 'compatibility'").Scan(&tables)
	if err != nil || tables == 0 {
		return v, err
	}
	err = db.QueryRowContext(ctx, selectVersions).Scan(&v.stored, &v.oldest)
	return v, err
}

// check returns nil if this program can serve the schema. Otherwise, the error says what to
// do.
func (v versions) check() error {
	switch {
	case v.stored < schemaVersion:
		return fmt.Errorf("the database schema has version %d, but this program requires %d: run: rolecall migrate", v.stored, schemaVersion)
	case v.oldest > schemaVersion:
		return fmt.Errorf("the database schema has version %d, which requires a program that supports version %d, but this one supports only %d: install a newer Rolecall", v.stored, v.oldest, schemaVersion)
	}
	return nil
}

func applyMigrations(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

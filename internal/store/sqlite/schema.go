package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/rekey"
)

// schemaVersion is the number of the newest migration.
var schemaVersion = store.NewestMigration(migrations, rekey.Migration)

// SQLite has no lock for all migrations together. So a migration can fail because another
// process migrates the same file. It is then tried again up to migrateTries times, with a
// pause of migratePause before each attempt.
const (
	migrateTries = 20
	migratePause = 100 * time.Millisecond
)

// migrationsTable is the name of the table that records the applied migrations.
const migrationsTable = "migrations"

//go:embed migrations/*.sql
var migrations embed.FS

// ensureSchema returns an error if this program cannot serve the schema of the file. If
// options.Migrate is true, it first applies all missing migrations.
func ensureSchema(ctx context.Context, db *sql.DB, options Options) error {
	v, err := storedVersions(ctx, db)
	if err != nil {
		return err
	}
	for tries := 0; options.Migrate && v.stored < schemaVersion; tries++ {
		failed := applyMigrations(ctx, db, options.Migrated)
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

// versions describe the schema of a file. The number stored is that of its newest
// migration. A program can serve the schema only if it knows the migration oldest. A
// migration says in the table compatibility which older programs can still serve the
// schema. Without such an entry, none can.
type versions struct{ stored, oldest int64 }

const selectVersions = `select coalesce(max(m.version_id), 0), coalesce(max(coalesce(c.oldest, m.version_id)), 0)
	from ` + migrationsTable + ` m left join compatibility c on c.migration = m.version_id`

// storedVersions returns the versions of the schema in the file. They are zero if the file
// has no schema.
func storedVersions(ctx context.Context, db *sql.DB) (v versions, err error) {
	var tables int
	err = db.QueryRowContext(ctx, "select count(*) from sqlite_schema where name = 'compatibility'").Scan(&tables)
	if err != nil || tables == 0 {
		return v, err
	}
	err = db.QueryRowContext(ctx, selectVersions).Scan(&v.stored, &v.oldest)
	return v, err
}

// check returns nil if this program can serve the schema. Otherwise, the error explains
// how to fix this.
func (v versions) check() error {
	switch {
	case v.stored == 0:
		return store.ErrNoSchema
	case v.stored < schemaVersion:
		files, err := migrationFiles()
		if err != nil {
			return err
		}
		pending, err := store.MigrationsAfter(files, v.stored, rekey.Migration)
		if err != nil {
			return err
		}
		return &store.OldSchemaError{Stored: v.stored, Required: schemaVersion, Pending: pending}
	case v.oldest > schemaVersion:
		return fmt.Errorf("the database schema has version %d, which requires a program that supports version %d, but this one supports only %d: install a newer Rolecall", v.stored, v.oldest, schemaVersion)
	}
	return nil
}

// migrationFiles returns the SQL files of the migrations.
func migrationFiles() (fs.FS, error) { return fs.Sub(migrations, "migrations") }

// applyMigrations applies all missing migrations, and passes them to report, which can be nil.
func applyMigrations(ctx context.Context, db *sql.DB, report func([]store.Migration)) error {
	files, err := migrationFiles()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(keysOfNames))
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	if err != nil || report == nil {
		return err
	}
	known, err := store.MigrationsAfter(files, 0, rekey.Migration)
	if err != nil {
		return err
	}
	var applied []store.Migration
	for _, r := range results {
		for _, m := range known {
			if m.Number == r.Source.Version {
				m.Took = r.Duration
				applied = append(applied, m)
			}
		}
	}
	report(applied)
	return nil
}

// keysOfNames is the migration that SQL cannot express.
var keysOfNames = goose.NewGoMigration(rekey.Version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
	return rekey.Keys(ctx, tx, rekey.Dialect{
		SetTenant: func(rolecall.TenantID) []string { return nil },
		ID:        func(id rolecall.AnyID) any { return id[:] },
	})
}}, nil)

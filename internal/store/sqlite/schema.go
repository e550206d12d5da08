package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// schemaVersion is the number of the newest migration.
const schemaVersion = 1

// migrationsTable records which migrations a file has had.
const migrationsTable = "migrations"

//go:embed migrations/*.sql
var migrations embed.FS

// ensureSchema returns nil if the file has the schema that this program needs,
// after migrating if it may.
func ensureSchema(ctx context.Context, db *sql.DB, migrate bool) error {
	version, err := storedVersion(ctx, db)
	if err != nil {
		return err
	}
	if migrate && version < schemaVersion {
		if err := applyMigrations(ctx, db); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if version, err = storedVersion(ctx, db); err != nil {
			return err
		}
	}
	return checkSchema(version)
}

// storedVersion returns the newest migration that the file has had, 0 if none.
func storedVersion(ctx context.Context, db *sql.DB) (version int64, err error) {
	var tables int
	err = db.QueryRowContext(ctx, "select count(*) from sqlite_schema where name = $1", migrationsTable).Scan(&tables)
	if err != nil || tables == 0 {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "select coalesce(max(version_id), 0) from "+migrationsTable).Scan(&version)
	return version, err
}

func checkSchema(version int64) error {
	switch {
	case version > schemaVersion:
		return fmt.Errorf("the database has schema %d, made by a newer rolecall; this one knows %d: run the newer one", version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("the database has schema %d and this rolecall needs %d: run: rolecall migrate", version, schemaVersion)
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

package postgres

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/rekey"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationsTable is the name of the table that records the applied migrations.
const migrationsTable = "migrations"

// newestMigration is the number of the newest migration.
var newestMigration = store.NewestMigration(migrations, rekey.Migration)

// lockTries is how often a migration tries to get the lock, once a second.
const lockTries = 300

// Migrations returns the SQL files of the migrations. Their names are in the order in
// which they are applied.
func Migrations() (fs.FS, error) { return fs.Sub(migrations, "migrations") }

// Migrate is MigrateAndReport without a report.
func Migrate(ctx context.Context, url string) error {
	return MigrateAndReport(ctx, url, func([]store.Migration) {})
}

// MigrateAndReport applies all missing migrations to the schema in the database at url. A lock
// ensures that only one process migrates at a time. The connection must not go through a
// pooler. Its role must own the tables, or will own them after the first migration.
// It returns an error if the schema is newer and this program cannot serve it. It passes the applied
// migrations to report.
//
// If the database has the Citus extension, MigrateAndReport also distributes the tables, except if
// the database has tenants and was not distributed before.
func MigrateAndReport(ctx context.Context, url string, report func([]store.Migration)) (err error) {
	db, err := openDirect(url)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
	}()
	var encoding, commits string
	if err := db.QueryRowContext(ctx, "select current_setting('server_encoding'), "+commitDefault).Scan(&encoding, &commits); err != nil {
		return fmt.Errorf("postgres: cannot migrate: %w", explain(err))
	}
	if encoding != requiredEncoding {
		return wrongEncoding(encoding)
	}
	if err := checkCommits(commits); err != nil {
		return err
	}
	files, err := Migrations()
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, lockTries))
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(migrationsTable), goose.WithSessionLocker(locker), goose.WithGoMigrations(keysOfNames))
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("postgres: cannot migrate: %w", explain(err))
	}
	applied, err := store.MigrationsAfter(files, 0, rekey.Migration)
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	report(withDurations(applied, results))
	if _, err := distribute(ctx, url, false); err != nil {
		return err
	}
	var v versions
	if err := db.QueryRowContext(ctx, selectVersions).Scan(&v.stored, &v.oldest); err != nil {
		return fmt.Errorf("postgres: cannot read the version of the schema: %w", err)
	}
	return v.check()
}

// withDurations returns those of the migrations that were applied, with the time that each took.
func withDurations(known []store.Migration, results []*goose.MigrationResult) (applied []store.Migration) {
	for _, r := range results {
		for _, m := range known {
			if m.Number == r.Source.Version {
				m.Took = r.Duration
				applied = append(applied, m)
			}
		}
	}
	return applied
}

// Grant connects to url and gives the role the privileges that the program needs to serve
// requests. The role can then read and write rows, but cannot change tables. The user in
// url must own the tables.
func Grant(ctx context.Context, url, role string) (err error) {
	db, err := openDirect(url)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
	}()
	var schema string
	if err := db.QueryRowContext(ctx, "select current_schema()").Scan(&schema); err != nil {
		return fmt.Errorf("postgres: cannot find the schema: %w", explain(err))
	}
	schema, role = pgx.Identifier{schema}.Sanitize(), pgx.Identifier{role}.Sanitize()
	_, err = db.ExecContext(ctx, fmt.Sprintf(`
		grant usage on schema %[1]s to %[2]s;
		grant select, insert, update, delete on all tables in schema %[1]s to %[2]s;
		revoke insert, update, delete on %[3]s, compatibility from %[2]s`, schema, role, migrationsTable))
	if err != nil {
		return fmt.Errorf("postgres: cannot grant to role %s: %w", role, err)
	}
	return nil
}

// openDirect opens the database at url for migrations. The url may contain settings that
// only a pool of connections understands.
func openDirect(url string) (*sql.DB, error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*config.ConnConfig, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set session characteristics as transaction isolation level read committed")
		return err
	})), nil
}

// keysOfNames is the migration that SQL cannot express.
var keysOfNames = goose.NewGoMigration(rekey.Version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
	return rekey.Keys(ctx, tx, rekey.Dialect{
		SetTenant: func(tenant rolecall.TenantID) []string {
			return []string{"set local citus.propagate_set_commands = 'local'", fmt.Sprintf("set local rolecall.tenant = '%s'", tenant)}
		},
		ID: func(id rolecall.AnyID) any { return id.String() },
	})
}}, nil)

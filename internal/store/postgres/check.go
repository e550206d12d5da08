package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/rekey"
)

// oldestServer is the oldest major release of PostgreSQL that has all features which the
// schema and the checks use.
const oldestServer = 15

// requiredEncoding is the server_encoding of the database. With another one, the database cannot store all
// names, and a restored copy has other names.
const requiredEncoding = "UTF8"

func wrongEncoding(encoding string) error {
	return fmt.Errorf("postgres: the encoding of the database is %s, but Rolecall requires %s: create another one, such as `create database rolecall_utf8 owner rolecall encoding 'UTF8' template template0`, and restore a backup into it if the old one has data", encoding, requiredEncoding)
}

// commitDefault is the SQL expression for the synchronous_commit with which sessions begin. Rolecall then changes it
// in its own sessions.
const commitDefault = `(select reset_val from pg_settings where name = 'synchronous_commit')`

// checkCommits returns an error if commits do not wait for the disk by default. After a crash of the server, a session
// that was revoked would then be valid again.
func checkCommits(byDefault string) error {
	if byDefault == "off" {
		return errors.New("postgres: synchronous_commit is off, so a crash of the server undoes changes that were answered, such as the end of a session: remove the setting from postgresql.conf, the database and the role (alter role rolecall reset synchronous_commit)")
	}
	return nil
}

// fsyncWarning is the warning about a server that does not write commits to the disk. It is no error, because the
// servers of tests run in this way.
const fsyncWarning = "the PostgreSQL server has fsync off, so a loss of power can destroy the database: set fsync = on in postgresql.conf and restart it"

// server is what checkServer reports.
type server struct {
	citus bool // the database has the Citus extension
	fsync bool // the server writes commits to the disk
}

// checkServer returns an error if the server is too old, if the database has another encoding than UTF8, if commits
// do not wait for the disk, or if the role of the connection bypasses row-level security and allowSuperuser is false.
func checkServer(ctx context.Context, pool *pgxpool.Pool, allowSuperuser bool) (found server, err error) {
	var version int
	var role, exempt, encoding, commits string
	err = pool.QueryRow(ctx, `
		select current_setting('server_version_num')::int / 10000, current_user, coalesce((
			select rolname from pg_roles
			where (rolsuper or rolbypassrls) and pg_has_role(current_user, oid, 'member')
			order by rolname = current_user desc limit 1), ''),
			exists (select from pg_extension where extname = 'citus'), current_setting('server_encoding'),
			`+commitDefault+`, current_setting('fsync')::bool`).Scan(&version, &role, &exempt, &found.citus, &encoding, &commits, &found.fsync)
	switch {
	case err != nil:
		return found, fmt.Errorf("postgres: cannot use the database: %w", explain(err))
	case version < oldestServer:
		return found, fmt.Errorf("postgres: the server is PostgreSQL %d, but Rolecall requires %d or newer", version, oldestServer)
	case encoding != requiredEncoding:
		return found, wrongEncoding(encoding)
	case exempt == "" || allowSuperuser:
		return found, checkCommits(commits)
	case exempt == role:
		return found, fmt.Errorf("postgres: role %q is a superuser or has BYPASSRLS, which disables the isolation of tenants: connect as an ordinary role (create role rolecall login; create database rolecall owner rolecall), or pass --allow-superuser", role)
	default:
		return found, fmt.Errorf("postgres: role %q can become %q, a superuser or one with BYPASSRLS, which disables the isolation of tenants: revoke that membership, or pass --allow-superuser", role, exempt)
	}
}

// checkRowSecurity returns an error if a table with the data of tenants does not force
// row-level security, or has another policy in addition to its own. A second policy is
// dangerous, because a row is visible if any policy allows it. Only users have one, for the
// search for an email address in all tenants. It is only for select.
func checkRowSecurity(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, `
		select c.relname from pg_class c
		join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
		where c.relkind in ('r', 'p')
			and c.relnamespace = (select relnamespace from pg_class where oid = to_regclass('tenants'))
			and not (c.relrowsecurity and c.relforcerowsecurity
				and (select array_agg(p.polname::text || ' ' || p.polcmd::text order by p.polname) from pg_policy p where p.polrelid = c.oid) is not distinct from
					case c.relname when 'users' then array['address_search r', 'tenant_isolation *'] else array['tenant_isolation *'] end)
		order by 1`)
	if err != nil {
		return fmt.Errorf("postgres: cannot read the catalogue: %w", explain(err))
	}
	open, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("postgres: cannot read the catalogue: %w", explain(err))
	}
	if len(open) > 0 {
		return fmt.Errorf("postgres: row-level security is not enabled and forced on %s: restore it with `alter table … enable row level security, force row level security`, drop policies that Rolecall has not created, and restore those of its migrations", strings.Join(open, ", "))
	}
	return nil
}

// versions describe the schema of a database. The number stored is that of its newest
// migration. A program can serve the schema only if it knows the migration oldest. A
// migration says in the table compatibility which older programs can still serve the
// schema. Without such an entry, none can.
type versions struct{ stored, oldest int64 }

const selectVersions = `select coalesce(max(m.version_id), 0), coalesce(max(coalesce(c.oldest, m.version_id)), 0)
	from ` + migrationsTable + ` m left join compatibility c on c.migration = m.version_id where m.is_applied`

// checkVersion returns an error if this program cannot serve the schema. The error is
// rolecall.ErrUnavailable if the database does not answer.
func checkVersion(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer release(ctx, pool, conn, nil)
	var v versions
	err = conn.QueryRow(ctx, selectVersions).Scan(&v.stored, &v.oldest)
	switch e, _ := errors.AsType[*pgconn.PgError](err); {
	case e != nil && e.Code == codeUndefinedTable:
		return v.check()
	case e != nil && e.Code == codeInsufficientPrivilege:
		role := conn.Conn().Config().User
		return fmt.Errorf("postgres: the role %s may not read the tables (%w): run `rolecall migrate --grant-to %s` as their owner", role, e, role)
	case err != nil:
		return translate(ctx, conn.Conn(), err)
	}
	return v.check()
}

// check returns nil if this program can serve the schema. Otherwise, the error explains
// how to fix this.
func (v versions) check() error {
	switch {
	case v.stored == 0:
		return fmt.Errorf("postgres: %w", store.ErrNoSchema)
	case v.stored < newestMigration:
		return v.old()
	case v.oldest > newestMigration:
		return fmt.Errorf("postgres: the schema has version %d, which requires a program that supports version %d, but this one supports only %d: install a newer Rolecall", v.stored, v.oldest, newestMigration)
	}
	return nil
}

// old returns the error for a schema that is older than this program.
func (v versions) old() error {
	files, err := Migrations()
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	pending, err := store.MigrationsAfter(files, v.stored, rekey.Migration)
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return fmt.Errorf("postgres: %w", &store.OldSchemaError{Stored: v.stored, Required: newestMigration, Pending: pending})
}

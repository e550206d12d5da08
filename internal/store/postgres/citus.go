package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// oldestCitus is the oldest major release of the Citus extension that this program
// accepts.
const oldestCitus = 13

// distributionLock is the advisory lock of a transaction that distributes tables, so that
// only one such transaction runs at a time.
const distributionLock = 7_355_609

// placement says where Citus stores a table. The value is the statement that moves the
// table there.
type placement string

const (
	// distributed tables are split by tenant_id. All rows of a tenant are on one worker.
	distributed placement = "select create_distributed_table(%s, 'tenant_id', colocate_with => %s)"

	// managed tables are on the coordinator. If a transaction writes to a managed table
	// and to a worker, Citus commits it in two phases.
	managed placement = "select citus_add_local_table_to_metadata(%s)"

	// replicated tables are on every node, so that the statements of tenants can join
	// them. Writes to these tables fail while a node is down.
	replicated placement = "select create_reference_table(%s)"

	// unmanaged tables are on the coordinator, and Citus does not know them. If a
	// transaction writes to an unmanaged table and to a worker, its commit is not atomic.
	unmanaged placement = ""
)

// placements contains every table without a column tenant_id. All other tables are
// distributed.
var placements = map[string]placement{
	"tenants":                   managed,    // listed over all tenants, and written together with their rows
	"outbox":                    managed,    // one sender sends the mail of all tenants
	"webhook_cursors":           managed,    // each process delivers the items of all tenants
	"webhook_queues":            managed,    // locked by the claims of webhook_cursors
	"job_queue":                 managed,    // one process runs the jobs of all tenants
	"feed_news":                 managed,    // written together with the numbers of a tenant
	"feed_places":               managed,    // read over all tenants
	"feed_of_tenants":           managed,    // its lock gives places to the numbers of all tenants
	"operator_requests":         managed,    // written together with the tenant that the request creates
	"operator_keys":             replicated, // joined by statements about links, and seldom written
	"attempts":                  unmanaged,  // a count that is wrong by one after a crash does no harm
	"instance_keys":             unmanaged,  // never written together with anything else
	"compatibility":             unmanaged,
	"instance_key_fingerprints": unmanaged,
	migrationsTable:             unmanaged,
}

// Distribute distributes the tables of the database at url over the nodes of a Citus
// cluster. It returns how long the tables were locked for all other transactions. If all
// tables are already distributed, it moves nothing.
func Distribute(ctx context.Context, url string) (locked time.Duration, err error) {
	return distribute(ctx, url, true)
}

// distribute implements Distribute, and the distribution after a migration, for which must
// is false. If must is false and the database does not have the Citus extension,
// distribute does nothing. If must is false and the database has tenants but is not
// distributed, it moves no tables, because all of them would be locked while their rows
// are copied.
func distribute(ctx context.Context, url string, must bool) (locked time.Duration, err error) {
	config, err := parseURL(url)
	if err != nil {
		return 0, err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return 0, fmt.Errorf("postgres: %w", explain(err))
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	release, err := citusRelease(ctx, conn)
	switch {
	case err != nil:
		return 0, err
	case release == 0 && must:
		return 0, errors.New("postgres: the database does not have the Citus extension: add it as a superuser with `create extension citus`")
	case release == 0:
		return 0, nil
	}
	if locked, err = distributeOn(ctx, conn, must); err != nil {
		return 0, fmt.Errorf("postgres: cannot distribute the tables: %w", err)
	}
	return locked, nil
}

// citusRelease returns the major release of the Citus extension in the database, or 0 if
// the database does not have the extension. It returns an error if the release is older
// than oldestCitus.
func citusRelease(ctx context.Context, conn interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (release int, err error) {
	err = conn.QueryRow(ctx, `select coalesce((
		select split_part(extversion, '.', 1)::int from pg_extension where extname = 'citus'), 0)`).Scan(&release)
	switch {
	case err != nil:
		return 0, fmt.Errorf("postgres: cannot read the catalogue: %w", err)
	case release > 0 && release < oldestCitus:
		return 0, fmt.Errorf("postgres: the database has Citus %d, but Rolecall requires %d or newer", release, oldestCitus)
	}
	return release, nil
}

func distributeOn(ctx context.Context, conn *pgx.Conn, must bool) (locked time.Duration, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		d := &distribution{ctx: ctx, tx: tx}
		if err := d.exec(fmt.Sprintf("select pg_advisory_xact_lock(%d)", distributionLock)); err != nil {
			return err
		}
		tables, err := d.missing(must)
		if err != nil || len(tables) == 0 {
			return err
		}
		began, err := d.run(tables)
		if err != nil {
			return err
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		locked = time.Since(began)
		return nil
	})
	if err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		return 0, err
	}
	if err := removeCopied(ctx, conn); err != nil {
		return 0, err
	}
	return locked, setRole(ctx, conn)
}

// distribution is a running transaction that distributes tables.
type distribution struct {
	ctx context.Context
	tx  pgx.Tx
}

func (d *distribution) exec(statements ...string) error {
	for _, statement := range statements {
		if _, err := d.tx.Exec(d.ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// table is a table that Citus does not manage yet.
type table struct {
	Name       string // quoted
	Relname    string
	HasTenant  bool
	Forced     bool // row-level security is forced
	References []reference
}

// reference is a foreign key.
type reference struct{ Table, Name, Definition, Target string }

// missing returns the tables that must be moved. The table users comes first, because the
// others are placed next to it. If must is false and the database has tenants but is not
// distributed, missing returns no tables.
func (d *distribution) missing(must bool) ([]table, error) {
	var leave bool
	err := d.tx.QueryRow(d.ctx, `select not exists (select from pg_dist_partition where logicalrelid = 'users'::regclass)
		and exists (select from tenants)`).Scan(&leave)
	if err != nil || leave && !must {
		return nil, err
	}
	rows, err := d.tx.Query(d.ctx, `select c.oid::regclass::text, c.relname::text, c.relforcerowsecurity, exists (
			select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped)
		from pg_class c
		where c.relkind = 'r' and c.relnamespace = (select relnamespace from pg_class where oid = 'users'::regclass)
			and not exists (select from pg_dist_partition where logicalrelid = c.oid)
		order by c.relname <> 'users', c.relname`)
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t table, err error) {
		err = row.Scan(&t.Name, &t.Relname, &t.Forced, &t.HasTenant)
		return t, err
	})
	return slices.DeleteFunc(tables, func(t table) bool {
		where, known := placements[t.Relname]
		return !t.HasTenant && known && where == unmanaged
	}), err
}

// run locks the tables and moves them. It returns the time at which the first table was
// locked. Citus cannot copy the rows of a table that has foreign keys to others or forces
// row-level security, so run removes both and adds them again.
func (d *distribution) run(tables []table) (began time.Time, err error) {
	// In parallel mode, Citus uses several connections to a worker. One of these
	// connections does not see what another has created in the same transaction.
	if err := d.exec("set local citus.multi_shard_modify_mode = 'sequential'"); err != nil {
		return began, err
	}
	for _, t := range tables {
		if err := d.exec("lock table " + t.Name + " in access exclusive mode"); err != nil {
			return began, err
		}
		began = cmp.Or(began, time.Now())
	}
	references, err := d.dropReferences(tables)
	if err != nil {
		return began, err
	}
	for _, t := range tables {
		if err := d.move(t); err != nil {
			return began, err
		}
	}
	for _, r := range references {
		if err := d.exec(fmt.Sprintf("alter table %s add constraint %s %s", r.Table, pgx.Identifier{r.Name}.Sanitize(), r.Definition)); err != nil {
			return began, err
		}
	}
	return began, nil
}

// dropReferences drops all foreign keys from and to the tables. It returns the foreign
// keys that can be added again afterwards. They do not include those to managed tables,
// because these cannot be the target of a foreign key.
func (d *distribution) dropReferences(tables []table) (again []reference, err error) {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Name
	}
	rows, err := d.tx.Query(d.ctx, `select conrelid::regclass::text, conname::text, pg_get_constraintdef(oid),
			(select relname::text from pg_class where oid = confrelid)
		from pg_constraint
		where contype = 'f' and (conrelid::regclass::text = any ($1) or confrelid::regclass::text = any ($1))`, names)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[reference])
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if err := d.exec(fmt.Sprintf("alter table %s drop constraint %s", r.Table, pgx.Identifier{r.Name}.Sanitize())); err != nil {
			return nil, err
		}
		if placements[r.Target] != managed {
			again = append(again, r)
		}
	}
	return again, nil
}

func (d *distribution) move(t table) error {
	where := placements[t.Relname]
	switch {
	case t.HasTenant:
		where = distributed
	case where == "":
		return fmt.Errorf("table %s has no column tenant_id and is unknown to this version of Rolecall: move it to another schema", t.Name)
	}
	literal := "'" + t.Name + "'"
	statement := fmt.Sprintf(string(where), literal)
	if where == distributed {
		colocated := "'users'"
		if t.Relname == "users" {
			colocated = "'none'"
		}
		statement = fmt.Sprintf(string(where), literal, colocated)
	}
	if !t.Forced {
		return d.exec(statement)
	}
	return d.exec("alter table "+t.Name+" no force row level security", statement, "alter table "+t.Name+" force row level security")
}

// removeCopied deletes rows on the coordinator that Citus has copied to the workers. Citus
// leaves them there, but never reads them again.
func removeCopied(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `select format('select truncate_local_data_after_distributing_table(%L)', logicalrelid)
		from pg_dist_partition join pg_class c on c.oid = logicalrelid
		where partmethod = 'h' and pg_relation_size(c.oid) > 0
			and c.relnamespace = (select relnamespace from pg_class where oid = 'users'::regclass)`)
	if err != nil {
		return err
	}
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// setRole stores the plannerSettings as defaults of the current role in the database. The
// sessions that Citus opens on the workers then have these settings. Settings of a session
// on the coordinator do not reach the workers. setRole changes only settings that differ,
// because each change needs all nodes.
func setRole(ctx context.Context, conn *pgx.Conn) error {
	var database string
	var set []string
	err := conn.QueryRow(ctx, `select current_database()::text, coalesce((
		select setconfig from pg_db_role_setting where setrole = current_user::regrole
			and setdatabase = (select oid from pg_database where datname = current_database())), '{}')`).Scan(&database, &set)
	if err != nil {
		return err
	}
	for _, s := range plannerSettings {
		if slices.Contains(set, s.name+"="+s.value) {
			continue
		}
		statement := fmt.Sprintf("alter role current_user in database %s set %s = %s", pgx.Identifier{database}.Sanitize(), s.name, s.value)
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// Package postgres opens a database in PostgreSQL 15 or newer: pipelined
// transactions, row-level security forced on every table of a tenant, migrations,
// and the meaning of the database's errors.
package postgres

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// connectionsPerCore sizes the pool where the URL does not: enough to keep the
// database busy while others wait for their commit.
const connectionsPerCore = 8

// Options are what may differ from one deployment to another. The zero Options
// suit most.
type Options struct {
	AllowSuperuser bool            // accept a role that row-level security does not hold
	Direct         string          // URL of the same database past a pooler, to listen on; empty: the URL itself
	Dial           pgconn.DialFunc // makes the connections; nil: the usual way
}

// Database is a pool of connections to one database. It implements store.Database.
type Database struct {
	pool     *pgxpool.Pool
	listener *pgx.ConnConfig
	citus    atomic.Bool // new connections are to Citus; Open decides it
}

var _ store.Database = (*Database)(nil)

// Open connects to the database at url, a URL or keywords as libpq takes them,
// with pool_max_conns and default_query_exec_mode besides. It refuses a server,
// a role or a schema that this program cannot work with safely; the error then
// says what to do. The caller closes the database.
func Open(ctx context.Context, url string, options Options) (*Database, error) {
	config, err := parse(url, "rolecall", options)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = int32(connectionsPerCore * runtime.GOMAXPROCS(0))
	}
	config.ShouldPing = noteIdle
	config.ConnConfig.OnNotice = noteWarning
	config.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {} // of a LISTEN that a pooler mixed up: pgx would keep them
	d := new(Database)
	config.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
		if d.citus.Load() { // a preparer prepares
			config.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		return nil
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		registerIDs(conn.TypeMap())
		return settle(ctx, conn, d.citus.Load())
	}
	listener, err := parse(cmp.Or(options.Direct, url), "rolecall listener", options)
	if err != nil {
		return nil, err
	}
	listener.ConnConfig.RuntimeParams["synchronous_commit"] = "off" // what it commits is nothing but its pulse
	d.listener = listener.ConnConfig
	if d.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := d.check(ctx, options); err != nil {
		d.pool.Close()
		return nil, err
	}
	return d, nil
}

// parse returns what the URL says, with a name for the connections if it gives
// none.
func parse(url, name string, options Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = name
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectLimit
	}
	if options.Dial != nil {
		config.ConnConfig.DialFunc = options.Dial
	}
	return config, nil
}

func (d *Database) check(ctx context.Context, options Options) error {
	citus, err := checkServer(ctx, d.pool, options.AllowSuperuser)
	if err != nil {
		return err
	}
	if citus {
		d.citus.Store(true)
		d.pool.Reset()
	}
	if err := checkVersion(ctx, d.pool); err != nil {
		return err
	}
	return checkRowSecurity(ctx, d.pool)
}

// Close waits for the transactions under way and closes the connections.
func (d *Database) Close() { d.pool.Close() }

// Ready returns nil if the database answers and its schema is one that this
// program can serve.
func (d *Database) Ready(ctx context.Context) error { return checkVersion(ctx, d.pool) }

// View runs fn for reading, each statement in a transaction and one round trip
// of its own. If ctx has a deadline it returns rolecall.ErrUnavailable after four
// seconds, as Update does.
func (d *Database) View(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	v := &view{ctx: ctx, pool: d.pool, tenant: tenant}
	if err := fn(v); err != nil {
		return err
	}
	return v.err
}

// Update runs fn in a READ COMMITTED transaction and commits it. While fn only
// writes blindly nothing is sent; then all goes in one round trip. It runs fn
// again after a deadlock or a conflict of serialization, a few times. It returns
// rolecall.ErrUnavailable if the outcome of the commit is not known.
func (d *Database) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	for attempt := 1; ; attempt++ {
		conflict, err := d.attempt(ctx, tenant, fn)
		if !conflict || attempt == maxAttempts {
			return err
		}
		if err := backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

// attempt runs fn once and reports whether it is worth running again.
func (d *Database) attempt(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) (conflict bool, err error) {
	u := &update{ctx: ctx, pool: d.pool, tenant: tenant}
	defer u.release()
	if err = fn(u); err == nil {
		err = u.commit()
	}
	return isConflict(u.err), err
}

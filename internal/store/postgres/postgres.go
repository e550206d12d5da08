// Package postgres implements store.Database with PostgreSQL 15 or newer. It contains the
// migrations, sends statements in pipelines, sets the tenant for row-level security,
// repeats transactions after conflicts, and translates the errors of the database.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// connectionsPerCore is the maximum number of connections per core if the URL does not set
// pool_max_conns. While some transactions wait for their commit, there must be enough
// others to keep the database busy.
const connectionsPerCore = 8

// Options are settings of a deployment. The zero Options suit most deployments.
type Options struct {
	AllowSuperuser bool            // accept a role that bypasses row-level security
	Direct         string          // URL of the same database that bypasses the pooler, for the listening connection; empty: the URL itself
	Dial           pgconn.DialFunc // opens the connections; nil: the default
}

// Database is a pool of connections to one database. It implements store.Database.
type Database struct {
	pool     *pgxpool.Pool
	listener *pgx.ConnConfig
	citus    atomic.Bool // the database has the Citus extension; set by Open
	warnings []string
}

var _ store.Database = (*Database)(nil)

// Open connects to the database at url. The url is a URL or a list of keywords in the form
// of libpq. It can also contain pool_max_conns and default_query_exec_mode. Open returns
// an error if this program cannot work safely with the server, the role or the schema. The
// error explains how to fix this. The caller must close the database.
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
	config.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {} // of a LISTEN in a session that a pooler shares; pgx would collect them
	d := new(Database)
	config.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
		if d.citus.Load() { // the preparer prepares the statements
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
	listener.ConnConfig.RuntimeParams["synchronous_commit"] = "off" // its commits only send the pulse
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

// parseURL parses the URL. It refuses a URL in which the password has an unencoded character that ends it,
// because errors and logs would then contain the rest of the password as the host or the database.
func parseURL(url string) (*pgxpool.Config, error) {
	if _, rest, isURL := strings.Cut(url, "://"); isURL {
		authority := rest
		if end := strings.IndexAny(rest, "/?#"); end >= 0 {
			authority = rest[:end]
		}
		if strings.Count(authority, "@") > 1 || strings.Contains(rest[len(authority):], "@") {
			return nil, errors.New("postgres: the URL can have only one @, between the password and the host: percent-encode @, /, ?, # and % everywhere else, so p@ss is p%40ss")
		}
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	// The role or the database can have another default for both. Poolers accept them at the start of a connection.
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	config.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on"
	return config, nil
}

// Unverified returns the hosts of the URL that are on other machines and whose certificates are not verified, in the
// order of the URL. The mode of TLS can also be in PGSSLMODE. Unverified returns nil if the URL is not valid.
func Unverified(url string) (hosts []string) {
	config, err := parseURL(url)
	if err != nil {
		return nil
	}
	first := config.ConnConfig
	for _, way := range append([]*pgconn.FallbackConfig{{Host: first.Host, Port: first.Port, TLSConfig: first.TLSConfig}}, first.Fallbacks...) {
		network, _ := pgconn.NetworkAddress(way.Host, way.Port)
		ip := net.ParseIP(way.Host)
		isHere := network == "unix" || way.Host == "localhost" || ip != nil && ip.IsLoopback()
		isVerified := way.TLSConfig != nil && !way.TLSConfig.InsecureSkipVerify
		if !isHere && !isVerified && !slices.Contains(hosts, way.Host) {
			hosts = append(hosts, way.Host)
		}
	}
	return hosts
}

// parse parses the URL. For settings that the URL does not contain, it uses name as the
// name of the connections, and connectLimit as the connect timeout.
func parse(url, name string, options Options) (*pgxpool.Config, error) {
	config, err := parseURL(url)
	if err != nil {
		return nil, err
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

// Warnings returns messages about settings of the server that are less safe than they could be.
func (d *Database) Warnings() []string { return d.warnings }

func (d *Database) check(ctx context.Context, options Options) error {
	found, err := checkServer(ctx, d.pool, options.AllowSuperuser)
	if err != nil {
		return err
	}
	if !found.fsync {
		d.warnings = append(d.warnings, fsyncWarning)
	}
	if found.citus {
		d.citus.Store(true)
		d.pool.Reset()
	}
	if err := checkVersion(ctx, d.pool); err != nil {
		return err
	}
	return checkRowSecurity(ctx, d.pool)
}

// Close waits for running transactions and closes the connections.
func (d *Database) Close() { d.pool.Close() }

// Ready returns nil if the database answers and this program can serve its schema.
func (d *Database) Ready(ctx context.Context) error { return checkVersion(ctx, d.pool) }

// Connections returns the state of the pool. It does not count the connection that listens.
func (d *Database) Connections() store.Connections {
	s := d.pool.Stat()
	return store.Connections{InUse: int(s.AcquiredConns()), Max: int(s.MaxConns()), Waits: s.EmptyAcquireCount()}
}

// View calls fn with a Querier that can only read. Each statement is a separate
// transaction in one round trip. If ctx has a deadline, View returns
// rolecall.ErrUnavailable after four seconds.
func (d *Database) View(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	v := &view{ctx: ctx, pool: d.pool, tenant: tenant}
	if err := fn(v); err != nil {
		return err
	}
	return v.err
}

// Update calls fn in a READ COMMITTED transaction and commits the transaction. Writes
// without a result are queued. So a function with no other statements costs one round
// trip. After a deadlock or a serialization conflict, Update calls fn again, up to
// maxAttempts times in total. After store.ErrStale, it does so as store.Repeat does, and these
// repetitions of a tenant run one after another. Update returns rolecall.ErrUnavailable if it
// does not know whether the transaction was committed. If ctx has a deadline, it also does so
// after four seconds.
func (d *Database) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	ctx, cancel := limited(ctx) // for all attempts together
	defer cancel()
	stale := false
	return store.Repeat(func() error {
		err := d.update(ctx, tenant, stale, fn)
		stale = errors.Is(err, store.ErrStale)
		return err
	})
}

// update is Update without a limit. It returns store.ErrStale of fn. The argument stale says
// that an earlier attempt did so.
func (d *Database) update(ctx context.Context, tenant rolecall.TenantID, stale bool, fn func(store.Querier) error) error {
	for attempt := 1; ; attempt++ {
		conflict, err := d.attempt(ctx, tenant, stale, fn)
		if !conflict || attempt == maxAttempts {
			return err
		}
		if err := backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

// attempt runs fn in a transaction once. It reports whether the transaction failed because
// of a conflict with another one.
func (d *Database) attempt(ctx context.Context, tenant rolecall.TenantID, stale bool, fn func(store.Querier) error) (conflict bool, err error) {
	u := &update{ctx: ctx, pool: d.pool, tenant: tenant}
	if stale {
		u.queued = []statement{{query: lockStale, args: []any{staleLock, tenant.String()}}}
	}
	defer u.release()
	if err = fn(u); err == nil {
		err = u.commit()
	}
	return isConflict(u.err), err
}

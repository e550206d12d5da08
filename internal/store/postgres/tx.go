package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rolecall/rolecall"
)

// rollbackTimeout is the limit of a rollback. A rollback does not end with the context of
// its request.
const rollbackTimeout = 5 * time.Second

var errWriteInView = errors.New("postgres: write in View")

// view is a store.Querier that runs each statement in a separate transaction.
type view struct {
	ctx    context.Context
	pool   *pgxpool.Pool
	tenant rolecall.TenantID
	shown  string // the address whose users are visible in all tenants; empty: none
	err    error
}

// begin begins a transaction. It names the isolation level, because the server can have another default.
const begin = "begin isolation level read committed"

// lockStale waits until no other repetition of a stale change of the tenant $2 runs. Only an attempt
// without the lock can then make a repetition stale again, so n changes of a row at once need at most
// 2 n attempts. Without the lock, they need up to n (n + 1) / 2. The lock is the first of its
// transaction, and first attempts do not wait for it, so it is in no deadlock. Repetitions on other rows
// of the tenant wait too.
const lockStale = `select pg_advisory_xact_lock($1, hashtext($2))`

// staleLock is the first key of lockStale.
const staleLock int32 = 7_355_610

// isExplicit reports whether each transaction needs begin and commit. On Citus, only then does Citus set
// the tenant on a worker. Behind a pooler, the isolation level of an implicit transaction would be the
// default of the server.
func isExplicit(conn *pgx.Conn) bool { return isCitus(conn) || !isSettled(conn) }

// Exec fails, because a View only reads.
func (v *view) Exec(string, ...any) { v.err = errWriteInView }

// Query runs the statement for the tenant in one round trip. If the connection is lost
// before the first row, Query tries once more on another connection.
func (v *view) Query(query string, args []any, each func(scan func(dest ...any) error) error) (rows int, err error) {
	rows, lost, err := v.try(query, args, each)
	if lost && rows == 0 {
		rows, _, err = v.try(query, args, each)
	}
	return rows, err
}

func (v *view) try(query string, args []any, each func(scan func(dest ...any) error) error) (rows int, lost bool, err error) {
	conn, err := acquire(v.ctx, v.pool)
	if err != nil {
		return 0, false, err
	}
	defer release(v.ctx, v.pool, conn, nil)
	defer rollBack(v.ctx, conn.Conn())
	batch := new(pgx.Batch)
	explicit := isExplicit(conn.Conn())
	if explicit {
		batch.Queue(begin)
	}
	queueTenant(batch, conn.Conn(), v.tenant)
	if v.shown != "" {
		queueAddress(batch, conn.Conn(), v.shown)
	}
	batch.Queue(query, args...)
	asked := batch.Len() - 1
	if explicit {
		batch.Queue("commit")
	}
	rows, err = sendBatch(v.ctx, conn, batch, asked, each)
	return rows, isLost(v.ctx, conn), translate(v.ctx, conn.Conn(), err)
}

// Announce fails, like Exec.
func (v *view) Announce(rolecall.AnyID) { v.err = errWriteInView }

// AnnounceChanges fails, like Exec.
func (v *view) AnnounceChanges(rolecall.TenantID) { v.err = errWriteInView }

// SetTenant fails, like Exec.
func (v *view) SetTenant(rolecall.TenantID) { v.err = errWriteInView }

// AllowAddressInAllTenants sets rolecall.address in the transactions of the following statements.
func (v *view) AllowAddressInAllTenants(emailKey string) { v.shown = emailKey }

// update is a store.Querier that queues writes. It sends them together with the next
// statement that has a result, or with the commit.
type update struct {
	ctx    context.Context
	pool   *pgxpool.Pool
	tenant rolecall.TenantID
	queued []statement
	wrote  bool
	conn   *pgxpool.Conn // in a transaction; nil until something is sent
	err    error         // the first failure, not translated; the transaction cannot continue
}

type statement struct {
	query  string
	args   []any
	tenant rolecall.TenantID // to enter in place of a query, if it is not zero
}

// Exec queues a write.
func (u *update) Exec(query string, args ...any) {
	u.wrote = true
	u.queued = append(u.queued, statement{query: query, args: args})
}

// Announce queues a notification. PostgreSQL sends the notification when the transaction
// commits.
func (u *update) Announce(id rolecall.AnyID) {
	u.Exec("select pg_notify($1, $2)", channel, id.String())
}

// AnnounceChanges queues a notification, like Announce.
func (u *update) AnnounceChanges(tenant rolecall.TenantID) {
	u.Exec("select pg_notify($1, $2)", changesChannel, tenant.String())
}

// SetTenant queues the change of the tenant.
func (u *update) SetTenant(tenant rolecall.TenantID) {
	u.queued = append(u.queued, statement{tenant: tenant})
}

// AllowAddressInAllTenants fails, because only a View can read rows of several tenants.
func (u *update) AllowAddressInAllTenants(string) {
	u.err = errors.New("postgres: AllowAddressInAllTenants in Update")
}

// Query sends the queued writes and the statement in one round trip. The first Query also
// begins the transaction.
func (u *update) Query(query string, args []any, each func(scan func(dest ...any) error) error) (rows int, err error) {
	batch := new(pgx.Batch)
	if u.conn == nil && u.err == nil {
		if err := u.acquire(); err != nil {
			return 0, err
		}
		batch.Queue(begin)
		queueTenant(batch, u.conn.Conn(), u.tenant)
	}
	u.moveQueued(batch)
	batch.Queue(query, args...)
	return u.send(batch, each)
}

// commit sends the queued writes and commits the transaction in one round trip. If nothing
// was sent before, the writes are sent as an implicit transaction, which needs no rollback
// after a violated constraint, except if isExplicit.
func (u *update) commit() error {
	batch := new(pgx.Batch)
	switch {
	case u.conn != nil || u.err != nil:
		u.moveQueued(batch)
		if !u.wrote {
			batch.Queue(awaitStandby)
		}
		batch.Queue("commit")
	case len(u.queued) == 0:
		return nil
	default:
		if err := u.acquire(); err != nil {
			return err
		}
		explicit := isExplicit(u.conn.Conn())
		if explicit {
			batch.Queue(begin)
		}
		queueTenant(batch, u.conn.Conn(), u.tenant)
		u.moveQueued(batch)
		if explicit {
			batch.Queue("commit")
		}
	}
	if u.err == nil {
		popWarning(u.conn.Conn()) // discards a warning of an earlier statement
	}
	if _, err := u.send(batch, nil); err != nil {
		return err
	}
	if warning := popWarning(u.conn.Conn()); warning != "" {
		u.err = unavailable(warning)
		return u.err
	}
	return nil
}

// awaitStandby makes the commit of a transaction that only read wait for a synchronous
// standby. The transaction may have read data that was committed on the primary and has
// not reached the standby. The caller must not see such data before it is durable.
const awaitStandby = `select case when current_setting('synchronous_standby_names') <> ''
	then pg_logical_emit_message(true, 'rolecall', '') end`

func (u *update) acquire() error {
	u.conn, u.err = acquire(u.ctx, u.pool)
	return u.err
}

func (u *update) moveQueued(batch *pgx.Batch) {
	for _, s := range u.queued {
		switch {
		case s.tenant.IsZero():
			batch.Queue(s.query, s.args...)
		case u.conn != nil:
			queueTenant(batch, u.conn.Conn(), s.tenant)
		}
	}
	u.queued = nil
}

func (u *update) send(batch *pgx.Batch, each func(scan func(dest ...any) error) error) (rows int, err error) {
	if u.err == nil {
		rows, u.err = sendBatch(u.ctx, u.conn, batch, batch.Len()-1, each)
	}
	if u.conn == nil {
		return rows, u.err
	}
	return rows, translate(u.ctx, u.conn.Conn(), u.err)
}

// release rolls back the transaction if it was not committed, and returns its connection
// to the pool. If the rollback fails, the pool closes the connection.
func (u *update) release() {
	if u.conn == nil {
		return
	}
	defer release(u.ctx, u.pool, u.conn, u.err)
	rollBack(u.ctx, u.conn.Conn())
}

// rollBack rolls back the transaction of the connection, if it has one.
func rollBack(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "rollback")
}

// sendBatch sends the batch and reads all results in one round trip. It calls each, which
// can be nil, for every row of the statement with the index, and returns the number of
// these rows.
func sendBatch(ctx context.Context, conn *pgxpool.Conn, batch *pgx.Batch, index int, each func(scan func(dest ...any) error) error) (n int, err error) {
	if p, ok := conn.Conn().PgConn().CustomData()[citusKey].(*preparer); ok {
		if err := p.prepare(ctx, conn.Conn(), batch); err != nil {
			return 0, err
		}
	}
	results := conn.SendBatch(ctx, batch)
	defer func() {
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
	}()
	for i := range batch.Len() {
		if i == index && each != nil {
			n, err = readRows(results, each)
		} else {
			_, err = results.Exec()
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// readRows calls each for every row of the next result, and returns the number of rows.
func readRows(results pgx.BatchResults, each func(scan func(dest ...any) error) error) (n int, err error) {
	rows, err := results.Query()
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
		if err := each(rows.Scan); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// statementsKept is the maximum number of prepared statements of a connection to Citus.
const statementsKept = 512

// preparer prepares the statements of a connection to Citus, in place of pgx. On Citus,
// the statement that sets the tenant contains the tenant's id as text. pgx would prepare
// this statement again for each tenant.
type preparer struct{ known map[string]bool }

// prepare prepares those statements of the batch that have parameters. On a connection
// through a pooler, it prepares nothing.
func (p *preparer) prepare(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
	if !isSettled(conn) {
		return nil
	}
	for _, q := range batch.QueuedQueries {
		if len(q.Arguments) == 0 || p.known[q.SQL] {
			continue
		}
		if len(p.known) == statementsKept {
			if err := conn.DeallocateAll(ctx); err != nil {
				return err
			}
			clear(p.known)
		}
		if _, err := conn.Prepare(ctx, q.SQL, q.SQL); err != nil {
			return err
		}
		p.known[q.SQL] = true
	}
	return nil
}

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rolecall/rolecall"
)

// rollbackTimeout limits a rollback, which also runs after a cancelled request.
const rollbackTimeout = 5 * time.Second

var errWriteInView = errors.New("postgres: write in View")

// view is a store.Querier that sends each statement in a separate transaction.
type view struct {
	ctx    context.Context
	pool   *pgxpool.Pool
	tenant rolecall.TenantID
	err    error
}

// Exec fails, because a View only reads.
func (v *view) Exec(string, ...any) { v.err = errWriteInView }

// Query runs the statement with the tenant set, in one round trip. If the connection is
// lost before the first row, Query tries once more on another connection.
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
	explicit := isCitus(conn.Conn())
	if explicit {
		batch.Queue("begin")
	}
	queueTenant(batch, conn.Conn(), v.tenant)
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

// update is a store.Querier that queues writes until it needs a result: the rows of a
// statement, or the commit.
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
	query string
	args  []any
}

// Exec queues a write.
func (u *update) Exec(query string, args ...any) {
	u.wrote = true
	u.queued = append(u.queued, statement{query, args})
}

// Announce queues a notification, which the commit sends.
func (u *update) Announce(id rolecall.AnyID) {
	u.Exec("select pg_notify($1, $2)", channel, id.String())
}

// Query sends the queued writes and the statement in one round trip. The first Query also
// begins the transaction.
func (u *update) Query(query string, args []any, each func(scan func(dest ...any) error) error) (rows int, err error) {
	batch := new(pgx.Batch)
	if u.conn == nil && u.err == nil {
		if err := u.acquire(); err != nil {
			return 0, err
		}
		batch.Queue("begin")
		queueTenant(batch, u.conn.Conn(), u.tenant)
	}
	u.moveQueued(batch)
	batch.Queue(query, args...)
	return u.send(batch, each)
}

// commit sends the queued writes and ends the transaction. If nothing was sent before,
// the batch is an implicit transaction, so that no rollback is needed after a violation.
// On Citus, the transaction is explicit, because Citus sets the tenant on a worker only
// in an explicit one.
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
		explicit := isCitus(u.conn.Conn())
		if explicit {
			batch.Queue("begin")
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

// awaitStandby makes the commit of a transaction without a write wait for a synchronous
// standby. The transaction may have read data of a commit whose wait for the standby was
// interrupted. The result of the transaction acknowledges this data.
const awaitStandby = `select case when current_setting('synchronous_standby_names') <> ''
	then pg_logical_emit_message(true, 'rolecall', '') end`

func (u *update) acquire() error {
	u.conn, u.err = acquire(u.ctx, u.pool)
	return u.err
}

func (u *update) moveQueued(batch *pgx.Batch) {
	for _, s := range u.queued {
		batch.Queue(s.query, s.args...)
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

// release rolls back an uncommitted transaction and returns the connection. If the
// rollback fails, the pool closes the connection.
func (u *update) release() {
	if u.conn == nil {
		return
	}
	defer release(u.ctx, u.pool, u.conn, u.err)
	rollBack(u.ctx, u.conn.Conn())
}

// rollBack ends a transaction that was not committed.
func rollBack(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "rollback")
}

// sendBatch sends the batch and reads all results in one round trip. It calls each, which
// can be nil, for the rows of the statement with the index, and returns the number
// of these rows.
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

// readRows calls each for the rows of the next result, and returns their number.
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

// statementsKept limits the prepared statements of a connection.
const statementsKept = 512

// preparer prepares the statements of a connection to Citus. There, the statement that
// sets the tenant contains the tenant's id. pgx prepares all statements that it sends,
// so it would prepare this one for each tenant.
type preparer struct{ known map[string]bool }

// prepare prepares the statements that have parameters. It prepares nothing on a
// connection whose session has not been set up, as behind a pooler.
func (p *preparer) prepare(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
	if conn.PgConn().CustomData()[settledKey] != true {
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

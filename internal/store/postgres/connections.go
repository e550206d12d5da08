package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Time limits for the database. All are shorter than five seconds, the time within which
// a node serves again after a network fault has ended.
const (
	// transactionLimit is for a whole transaction with a waiting caller, including the wait
	// for a connection.
	transactionLimit = 4 * time.Second

	// connectLimit is for a new connection, if the URL has no connect_timeout.
	connectLimit = 3 * time.Second

	// pingLimit is for the ping of a connection that was idle for pingAfter.
	pingLimit = time.Second
	pingAfter = time.Second
)

var errSlow = unavailable("no answer within " + transactionLimit.String())

// limited returns a context that ends with errSlow when a transaction takes too long. A
// context without a deadline, such as that of a command, gets no limit.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, awaited := ctx.Deadline(); !awaited {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, transactionLimit, errSlow)
}

// idleKey marks a connection that was idle when the pool returned it.
const idleKey = "rolecall.idle"

// noteIdle marks idle connections, and makes the pool skip its own ping. Function acquire
// pings them.
func noteIdle(_ context.Context, p pgxpool.ShouldPingParams) bool {
	if p.IdleDuration > pingAfter {
		p.Conn.PgConn().CustomData()[idleKey] = true
	}
	return false
}

// acquire returns a connection that works. It does not use the pool's own ping, because
// with it dead connections would keep their places in the pool for a quarter of a minute.
func acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	for {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return nil, translateAcquire(ctx, err)
		}
		if answers(ctx, conn.Conn()) {
			return conn, nil
		}
		pool.Reset()
		conn.Hijack()
	}
}

// answers reports whether the connection was used recently or answers a ping. Otherwise
// it closes the connection.
func answers(ctx context.Context, conn *pgx.Conn) bool {
	data := conn.PgConn().CustomData()
	if data[idleKey] == nil {
		return true
	}
	delete(data, idleKey)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingLimit)
	defer cancel()
	return conn.Ping(ctx) == nil || !conn.IsClosed()
}

// release returns a connection to the pool after its use ended with err. After a lost
// connection, release resets the pool, because its other connections are probably lost
// too. A connection that does not answer is removed from the pool, because closing it
// takes time.
func release(ctx context.Context, pool *pgxpool.Pool, conn *pgxpool.Conn, err error) {
	lost := isLost(ctx, conn)
	if lost || isReadOnly(err) {
		pool.Reset()
	}
	if lost || conn.Conn().IsClosed() && context.Cause(ctx) == errSlow {
		conn.Hijack()
		return
	}
	conn.Release()
}

// isLost reports whether the connection was closed for another reason than the end of
// ctx.
func isLost(ctx context.Context, conn *pgxpool.Conn) bool {
	return conn.Conn().IsClosed() && ctx.Err() == nil
}

// isReadOnly reports whether the error means that the database is a standby, or became one.
func isReadOnly(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == codeReadOnlyTransaction
}

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// What the database may take. All are shorter than the five seconds after which a
// node serves again when a fault of the network is over.
const (
	// transactionLimit is for a whole transaction that somebody waits for, and the
	// wait for a connection.
	transactionLimit = 4 * time.Second

	// connectLimit is for a new connection, if the URL has no connect_timeout.
	connectLimit = 3 * time.Second

	// pingLimit is for the answer of a connection that nobody used for pingAfter.
	pingLimit = time.Second
	pingAfter = time.Second
)

var errSlow = unavailable("no answer within " + transactionLimit.String())

// limited returns a context that ends with errSlow when a transaction takes too
// long. Work without a deadline, such as a command's, may take as long as it does.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, awaited := ctx.Deadline(); !awaited {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, transactionLimit, errSlow)
}

// idleKey is where a connection keeps that it was idle when it was taken.
const idleKey = "rolecall.idle"

// noteIdle leaves the ping of a connection to acquire.
func noteIdle(_ context.Context, p pgxpool.ShouldPingParams) bool {
	if p.IdleDuration > pingAfter {
		p.Conn.PgConn().CustomData()[idleKey] = true
	}
	return false
}

// acquire takes a connection that was alive a moment ago. The pool's own ping would
// let those that are not keep their place for a quarter of a minute.
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

// answers reports whether the connection was used lately or answers now. Otherwise
// it is closed.
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

// release gives back a connection after its use ended with err. If it was lost, so
// are most likely those of the pool, of which none is used again. One that does not
// answer gives up its place: it takes time to close.
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

// isLost reports whether the connection was closed by something else than the end
// of ctx.
func isLost(ctx context.Context, conn *pgxpool.Conn) bool {
	return conn.Conn().IsClosed() && ctx.Err() == nil
}

// isReadOnly reports whether the database is a standby, or became one.
func isReadOnly(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == codeReadOnlyTransaction
}

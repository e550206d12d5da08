package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Time limits for the database. All are shorter than five seconds: after the end of a
// network failure, a node must serve requests again within five seconds.
const (
	// transactionLimit is the limit of a whole transaction with a waiting caller. It
	// includes the wait for a connection.
	transactionLimit = 4 * time.Second

	// connectLimit is the limit for opening a connection if the URL has no
	// connect_timeout.
	connectLimit = 3 * time.Second

	// A connection that was idle for longer than pingAfter is pinged before its use.
	// pingLimit is the limit of this ping.
	pingLimit = time.Second
	pingAfter = time.Second
)

var errSlow = unavailable("no answer within " + transactionLimit.String())

// limited returns a context that ends with errSlow after transactionLimit. If ctx has no
// deadline, as in a command, limited returns ctx without a limit.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, awaited := ctx.Deadline(); !awaited {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, transactionLimit, errSlow)
}

// idleKey is the key with which noteIdle marks a connection that was idle.
const idleKey = "rolecall.idle"

// noteIdle marks a connection that was idle for longer than pingAfter, so that the
// function acquire pings it. It returns false, which makes the pool skip its own ping.
func noteIdle(_ context.Context, p pgxpool.ShouldPingParams) bool {
	if p.IdleDuration > pingAfter {
		p.Conn.PgConn().CustomData()[idleKey] = true
	}
	return false
}

// acquire returns a connection from the pool that works. It pings idle connections itself.
// With the pool's own ping, dead connections would keep their places in the pool for a
// quarter of a minute.
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

// answers reports whether the connection works. It pings a connection that was idle. If
// there is no answer within pingLimit, the ping closes the connection.
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

// release returns a connection to the pool after its use ended with err. If the connection
// was lost, release also resets the pool, because the other connections are probably lost
// too. A connection that was lost or does not answer is removed from the pool, because
// closing it takes time.
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

// isLost reports whether the connection was closed for a reason other than the end of ctx.
func isLost(ctx context.Context, conn *pgxpool.Conn) bool {
	return conn.Conn().IsClosed() && ctx.Err() == nil
}

// isReadOnly reports whether err means that the server rejects writes because it is a
// standby.
func isReadOnly(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == codeReadOnlyTransaction
}

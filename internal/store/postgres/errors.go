package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// maxAttempts limits how often a transaction runs that conflicts with others.
const maxAttempts = 6

// The SQLSTATE codes and classes that this package handles (appendix A of the PostgreSQL
// manual).
const (
	codeWarning              = "01000"
	codeReadOnlyTransaction  = "25006"
	codeSerializationFailure = "40001"
	codeDeadlock             = "40P01"
	codeUndefinedTable       = "42P01"
	codeLockNotAvailable     = "55P03"
	codeAdminShutdown        = "57P01"

	classConnection = "08"
	classConstraint = "23"
	classResources  = "53"
	classOperator   = "57"
	classSystem     = "58"

	// severityFatal is the severity of an error that ends the connection and that the
	// statement did not cause, such as a timeout that is set on the server.
	severityFatal = "FATAL"
)

// translate returns the error of Rolecall for err. An error of PostgreSQL takes
// precedence, then the end of the context. Any other failure that closed the connection
// is a network failure.
func translate(ctx context.Context, conn *pgx.Conn, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return translatePgError(e)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if conn.IsClosed() {
		return unavailable(err)
	}
	return err
}

// translateAcquire returns the error of Rolecall for a failure to get a connection.
func translateAcquire(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return unavailable(err)
}

func translatePgError(e *pgconn.PgError) error {
	if violation := violation(e); violation != nil {
		return violation
	}
	switch class := e.Code[:min(2, len(e.Code))]; {
	case class == classConnection, class == classResources, class == classOperator, class == classSystem,
		e.Code == codeSerializationFailure, e.Code == codeDeadlock, e.Code == codeReadOnlyTransaction, e.Code == codeLockNotAvailable,
		e.SeverityUnlocalized == severityFatal, lostWorker.MatchString(e.Message):
		return unavailable(e)
	}
	return e
}

// violation returns the error for the violated constraint, or nil if the constraint is
// unknown. Citus appends the number of the shard to the constraint's name. If the shard
// is on a worker, the name is only in the message.
func violation(e *pgconn.PgError) error {
	if meant := store.Violation(e.ConstraintName); meant != nil || !strings.HasPrefix(e.Code, classConstraint) {
		return meant
	}
	for _, name := range constraintOfShard.FindAllStringSubmatch(e.ConstraintName+" "+e.Message, -1) {
		if meant := store.Violation(name[1]); meant != nil {
			return meant
		}
	}
	return nil
}

// lostWorker matches the messages of Citus and libpq for a worker that is lost during a
// commit. In this case, Citus does not return the code of a connection failure.
var lostWorker = regexp.MustCompile(`^(could not commit transaction for shard|failure on connection marked as essential|failed to prepare transaction|` +
	`server closed the connection|connection not open|no connection to the server|could not send data to server|could not receive data from server|SSL )`)

var constraintOfShard = regexp.MustCompile(`(\w+)_\d+`)

// unavailable returns rolecall.ErrUnavailable with its cause for the log.
func unavailable(cause any) error {
	return fmt.Errorf("%w: postgres: %v", rolecall.ErrUnavailable, cause)
}

// isConflict reports whether err was caused by a concurrent transaction, so that another
// attempt may succeed.
func isConflict(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == codeSerializationFailure || e.Code == codeDeadlock)
}

// backOff waits before the attempt that follows the given one. The wait is random, and its
// maximum doubles with each attempt, so that colliding transactions do not collide again.
func backOff(ctx context.Context, attempt int) error {
	longest := time.Millisecond << attempt
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// warningKey is the key of the last warning in the data of a connection.
const warningKey = "rolecall.warning"

// noteWarning stores the warnings with which PostgreSQL reports that a commit did not
// reach a synchronous standby. Apart from the warning, such a commit looks successful.
func noteWarning(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.Code == codeWarning || notice.Code == codeAdminShutdown {
		conn.CustomData()[warningKey] = notice.Message
	}
}

// popWarning returns and clears the stored warning. It returns "" without one.
func popWarning(conn *pgx.Conn) string {
	data := conn.PgConn().CustomData()
	warning, _ := data[warningKey].(string)
	delete(data, warningKey)
	return warning
}

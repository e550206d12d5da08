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

// maxAttempts bounds how often a transaction runs that others get in the way of.
const maxAttempts = 6

// The codes that this package acts on, by SQLSTATE (appendix A of the
// PostgreSQL manual).
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

	// severityFatal is of an error that ends the connection, and is none of the
	// statement: a time-out that the server is set to, for example.
	severityFatal = "FATAL"
)

// translate returns what err means to the service. PostgreSQL's own word comes
// first, then the end of the context; any other failure that cost the connection
// is one of the network.
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

// translateAcquire returns what the failure to get a connection means.
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

// violation returns the error that the violated constraint means, nil if it means none.
// Citus puts the number of the shard behind the constraint's name, and gives the name in
// the message alone if the shard is on a worker.
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

// lostWorker matches what Citus and libpq say when a worker is lost during a commit, where
// Citus does not give the code of a connection failure.
var lostWorker = regexp.MustCompile(`^(could not commit transaction for shard|failure on connection marked as essential|failed to prepare transaction|` +
	`server closed the connection|connection not open|no connection to the server|could not send data to server|could not receive data from server|SSL )`)

var constraintOfShard = regexp.MustCompile(`(\w+)_\d+`)

// unavailable returns rolecall.ErrUnavailable with its cause, which is for the
// log.
func unavailable(cause any) error {
	return fmt.Errorf("%w: postgres: %v", rolecall.ErrUnavailable, cause)
}

// isConflict reports whether err is the fault of a transaction at the same time,
// so that another attempt may pass.
func isConflict(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == codeSerializationFailure || e.Code == codeDeadlock)
}

// backOff waits before the attempt after the given one: longer each time, and a
// random part of it, so that those who collided do not meet again.
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

// warningKey is where a connection keeps the warning that came last.
const warningKey = "rolecall.warning"

// noteWarning keeps the warnings by which PostgreSQL says that a commit did not
// reach the standby it had to wait for. The commit itself then looks like a
// success.
func noteWarning(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.Code == codeWarning || notice.Code == codeAdminShutdown {
		conn.CustomData()[warningKey] = notice.Message
	}
}

// takeWarning returns the warning that came since the last call, "" if none did.
func takeWarning(conn *pgx.Conn) string {
	data := conn.PgConn().CustomData()
	warning, _ := data[warningKey].(string)
	delete(data, warningKey)
	return warning
}

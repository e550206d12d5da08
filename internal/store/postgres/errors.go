package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// maxAttempts is how often Update runs a transaction at most if it conflicts with others.
const maxAttempts = 6

// These are the SQLSTATE codes and classes of codes that this package handles. They are
// listed in appendix A of the PostgreSQL manual.
const (
	codeWarning               = "01000"
	codeReadOnlyTransaction   = "25006"
	codeSerializationFailure  = "40001"
	codeDeadlock              = "40P01"
	codeUndefinedTable        = "42P01"
	codeDuplicateStatement    = "42P05"
	codeUnknownStatement      = "26000"
	codeInvalidPassword       = "28P01"
	codeInsufficientPrivilege = "42501"
	codeLockNotAvailable      = "55P03"
	codeAdminShutdown         = "57P01"

	classConnection = "08"
	classConstraint = "23"
	classResources  = "53"
	classOperator   = "57"
	classSystem     = "58"

	// severityFatal is the severity of an error that ends the connection. The statement
	// did not cause it. An example is a timeout that is configured on the server.
	severityFatal = "FATAL"
)

// translate returns the error of package rolecall for err. If err is an error of
// PostgreSQL, translatePgError translates it, even if ctx has ended. Otherwise, if ctx has
// ended, translate returns the cause of that. Otherwise, if the connection is closed, the network has failed, and translate
// returns ErrUnavailable.
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

// translateAcquire returns the error of package rolecall for an err with which the pool
// returned no connection.
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
	return explain(e)
}

// violation returns the error of package rolecall for a violated constraint, or nil if the
// constraint is unknown. Citus appends the number of the shard to the name of the
// constraint. If the shard is on a worker, the name is only in the message.
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

// lostWorker matches the messages of Citus and libpq that report the loss of a worker
// during a commit. Their error code is not that of a connection failure.
var lostWorker = regexp.MustCompile(`^(could not commit transaction for shard|failure on connection marked as essential|failed to prepare transaction|` +
	`server closed the connection|connection not open|no connection to the server|could not send data to server|could not receive data from server|SSL )`)

var constraintOfShard = regexp.MustCompile(`(\w+)_\d+`)

// unavailable returns an error that wraps rolecall.ErrUnavailable and has the text of the
// cause.
func unavailable(cause any) error {
	if err, ok := cause.(error); ok {
		cause = explain(err)
	}
	return rolecall.ErrUnavailable.Because(fmt.Errorf("postgres: %v", cause))
}

// explain returns an error with a plainer text for err, if the server refused a connection or if a pooler
// has lost a prepared statement. Otherwise, it returns err.
func explain(err error) error {
	refusal, refused := errors.AsType[*pgconn.PgError](err)
	if !refused {
		return err
	}
	if refusal.Code == codeDuplicateStatement || refusal.Code == codeUnknownStatement {
		return fmt.Errorf("%w: if a connection pooler such as PgBouncer is in between, add default_query_exec_mode=exec to the URL of --database", err)
	}
	connecting, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	all := hosts(connecting.Config)
	server := "PostgreSQL at " + strings.Join(all, " or ")
	switch {
	case refusal.Code == codeInvalidPassword && connecting.Config.Password == "":
		return fmt.Errorf("%s requires a password of role %s: add it to the URL, or put it into a password file", server, connecting.Config.User)
	case refusal.Code == codeInvalidPassword:
		return fmt.Errorf("%s refused the password of role %s", server, connecting.Config.User)
	case len(all) > 1:
		return err
	}
	return fmt.Errorf("%s refused the connection of role %s to database %s: %w", server, connecting.Config.User, connecting.Config.Database, refusal)
}

// hosts returns the addresses of the servers, without repetitions: an address is in the configuration
// twice if it is tried with and without TLS.
func hosts(config *pgconn.Config) []string {
	all := []string{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))}
	for _, f := range config.Fallbacks {
		if host := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

// isConflict reports whether err is a deadlock or a serialization failure. A concurrent
// transaction caused it, so another attempt can succeed.
func isConflict(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == codeSerializationFailure || e.Code == codeDeadlock)
}

// backOff waits after the failure of the given attempt. The wait is random, so that
// transactions with a conflict do not run at the same time again. Its maximum doubles with
// each attempt. If ctx ends, backOff returns the cause.
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

// warningKey is the key with which a connection stores its last warning.
const warningKey = "rolecall.warning"

// noteWarning stores the warnings that PostgreSQL sends if a commit did not reach a
// synchronous standby. Without the warning, such a commit looks successful.
func noteWarning(conn *pgconn.PgConn, notice *pgconn.Notice) {
	if notice.Code == codeWarning || notice.Code == codeAdminShutdown {
		conn.CustomData()[warningKey] = notice.Message
	}
}

// popWarning returns the stored warning of the connection and clears it. It returns "" if
// there is no warning.
func popWarning(conn *pgx.Conn) string {
	data := conn.PgConn().CustomData()
	warning, _ := data[warningKey].(string)
	delete(data, warningKey)
	return warning
}

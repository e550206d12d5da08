// Package store contains every SQL statement once, for both databases. Placeholders
// are $1…$n in the order of their first appearance, and each statement names the
// tenant.
//
// A Store runs functions in transactions of a Database, which package sqlite or
// postgres opens. The functions read and write through the methods of Tx. Errors that
// a caller can cause are errors of package rolecall: ErrNotFound, ErrUnavailable, and
// the Conflict of the violated constraint. All other errors are internal.
package store

import (
	"context"
	"time"

	"github.com/rolecall/rolecall"
)

// Database runs transactions. Packages sqlite and postgres implement it.
type Database interface {
	// View calls fn with a Querier that can only read. Each statement sees its own
	// snapshot, so values that must be consistent are read in one statement.
	View(ctx context.Context, tenant rolecall.TenantID, fn func(Querier) error) error

	// Update calls fn in a transaction and commits it. If fn or a statement fails,
	// nothing is written. After a serialization conflict, Update can call fn again.
	Update(ctx context.Context, tenant rolecall.TenantID, fn func(Querier) error) error

	// Watch reports changes by other processes to w. It starts by invalidating
	// everything. It returns nil when ctx ends, and otherwise the error that stopped it.
	Watch(ctx context.Context, w Watcher) error

	// Ready returns nil if the database answers and this program supports its schema.
	Ready(ctx context.Context) error
}

// Querier runs the statements of one transaction.
type Querier interface {
	// Exec runs a write without a result. The write may be sent as late as the end of
	// the transaction. If it fails, the transaction fails.
	Exec(query string, args ...any)
	// Query runs a statement, calls each for every row, and returns the number of
	// rows. The function scan reads the columns of the row. Query stops at the first error.
	Query(query string, args []any, each func(scan func(dest ...any) error) error) (rows int, err error)
	// Announce makes Watch in other processes report the id after the commit.
	Announce(id rolecall.AnyID)
}

// Watcher receives the changes that other processes make in a database.
type Watcher interface {
	// Invalidate reports that cached copies of the tenant, user, service account,
	// session, token, key or bucket are stale. The zero id means everything.
	Invalidate(id rolecall.AnyID)
	// CaughtUp reports that Invalidate was called for all changes that were committed
	// until lag ago.
	CaughtUp(lag time.Duration)
}

// Effects are the consequences of an Update outside of the database.
type Effects struct {
	Invalidated []rolecall.AnyID // cached copies of these are stale
	Mailed      bool             // the outbox has new mail
}

// Store runs functions in transactions of one tenant. The zero tenant has no rows.
// Transactions of the zero tenant use the tables that belong to the whole instance.
type Store struct {
	db       Database
	onUpdate func(Effects)
}

// New returns a Store on the database. It calls onUpdate, which can be nil, at the end
// of each Update. It also calls it after a failed Update, because the outcome can be
// unknown.
func New(db Database, onUpdate func(Effects)) *Store { return &Store{db, onUpdate} }

// View calls fn to read. Each statement sees its own snapshot, so values that must be
// consistent are read in one statement.
func (s *Store) View(ctx context.Context, tenant rolecall.TenantID, fn func(*Tx) error) error {
	return s.db.View(ctx, tenant, func(q Querier) error { return fn(&Tx{q: q, tenant: tenant}) })
}

// Update calls fn and commits its writes. If fn or a statement fails, nothing is
// written. Update returns an error of fn unchanged. After a serialization conflict,
// Update can call fn again, so fn must have no side effects outside of the transaction.
// When Update has returned nil, the data that fn has read is durable, like the data that
// it wrote.
//
// The statement of a method of Tx without a result can run after fn has returned. If the
// statement fails, Update returns the error.
func (s *Store) Update(ctx context.Context, tenant rolecall.TenantID, fn func(*Tx) error) error {
	var effects Effects
	err := s.db.Update(ctx, tenant, func(q Querier) error {
		effects = Effects{}
		return fn(&Tx{q: q, tenant: tenant, effects: &effects})
	})
	if s.onUpdate != nil {
		s.onUpdate(effects)
	}
	return err
}

// Watch reports changes by other processes to w. It starts by invalidating everything.
// It returns nil when ctx ends, and otherwise the error that stopped it.
func (s *Store) Watch(ctx context.Context, w Watcher) error { return s.db.Watch(ctx, w) }

// Ready returns nil if the database answers and this program supports its schema.
func (s *Store) Ready(ctx context.Context) error { return s.db.Ready(ctx) }

// Nested returns a Database whose transactions are part of tx. The commit of tx commits
// all of them. A failed Update of this Database does not undo its own writes.
func Nested(tx *Tx) Database { return nested{tx.q} }

type nested struct{ q Querier }

func (n nested) View(_ context.Context, _ rolecall.TenantID, fn func(Querier) error) error {
	return fn(n.q)
}

func (n nested) Update(_ context.Context, _ rolecall.TenantID, fn func(Querier) error) error {
	return fn(n.q)
}

func (nested) Watch(ctx context.Context, _ Watcher) error {
	<-ctx.Done()
	return nil
}

func (nested) Ready(context.Context) error { return nil }

// violations maps constraints and unique indexes to the errors of their violation.
// The constraints have the same names in SQLite and in PostgreSQL.
var violations = map[string]*rolecall.Error{
	"users_email":            rolecall.ErrEmailTaken,
	"users_external_id":      rolecall.ErrExternalIDTaken,
	"roles_name":             rolecall.ErrRoleNameTaken,
	"roles_key":              rolecall.ErrRoleKeyTaken,
	"idempotency_keys_pkey":  rolecall.ErrKeyClaimed,
	"operator_requests_pkey": rolecall.ErrKeyClaimed,
	"tenants_name":           rolecall.ErrTenantExists,
	"assignments_user":       rolecall.ErrNotFound,
	"assignments_role":       rolecall.ErrNotFound,
	"sessions_user":          rolecall.ErrNotFound,
	"passwords_user":         rolecall.ErrNotFound,
	"invitations_user":       rolecall.ErrNotFound,
	"passkeys_pkey":          rolecall.ErrPasskeyTaken,
	"passkeys_user":          rolecall.ErrNotFound,
	"totp_user":              rolecall.ErrNotFound,
	"recovery_codes_user":    rolecall.ErrNotFound,

	"service_accounts_name":         rolecall.ErrAccountNameTaken,
	"service_account_roles_account": rolecall.ErrNotFound,
	"service_account_roles_role":    rolecall.ErrNotFound,
	"api_tokens_user":               rolecall.ErrNotFound,
	"api_tokens_service_account":    rolecall.ErrNotFound,
}

// Violation returns the error for a violated constraint, or nil if the constraint is
// unknown.
func Violation(constraint string) error {
	if err, ok := violations[constraint]; ok {
		return err
	}
	return nil
}

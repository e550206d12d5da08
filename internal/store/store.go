// Package store contains every SQL statement of Rolecall once, for both databases.
// Placeholders are $1…$n in the order of their first appearance. Each statement on the
// data of a tenant names the tenant.
//
// A Store runs functions in transactions of a Database, which package sqlite or postgres
// opens. The functions read and write with the methods of Tx. Errors that a caller can
// cause are errors of package rolecall: ErrNotFound, ErrUnavailable, and one error for
// each constraint that a write can violate. All other errors are internal.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
)

// Database runs transactions. Packages sqlite and postgres implement it.
type Database interface {
	// View calls fn with a Querier that can only read. Each statement sees its own
	// snapshot. So use one statement to read values that must be consistent.
	View(ctx context.Context, tenant rolecall.TenantID, fn func(Querier) error) error

	// Update calls fn in a transaction and commits the transaction. If fn or a statement
	// fails, nothing is written. After a serialization conflict, Update can call fn again in a
	// new transaction. After ErrStale, it does so as Repeat does.
	Update(ctx context.Context, tenant rolecall.TenantID, fn func(Querier) error) error

	// Watch reports changes by other processes to w. First, it reports that all cached
	// data is stale. Watch returns nil when ctx ends, or earlier the error that stopped it.
	Watch(ctx context.Context, w Watcher) error

	// Ready returns nil if the database answers and this program supports its schema.
	Ready(ctx context.Context) error

	// Connections returns how many connections there are and how many are in use.
	Connections() Connections
}

// Connections describes the connections of a Database. On SQLite, only reads use them.
type Connections struct {
	InUse, Max int
	Waits      int64 // how many times all connections were in use when one was needed
}

// ErrOldSchema is returned, wrapped, if the schema of a database is older than this program.
var ErrOldSchema = errors.New("run: rolecall migrate")

// ErrNoSchema is returned, wrapped, if a database has no schema yet. It wraps ErrOldSchema.
var ErrNoSchema = fmt.Errorf("the database has no Rolecall schema: %w", ErrOldSchema)

// Querier runs the statements of one transaction.
type Querier interface {
	// Exec runs a write without a result. The write can be delayed until the end of the
	// transaction. If the write fails, the transaction fails.
	Exec(query string, args ...any)
	// Query runs a statement, calls each for every row, and returns the number of rows.
	// Within each, the argument scan copies the columns of the row into its own arguments.
	// Query stops at the first error.
	Query(query string, args []any, each func(scan func(dest ...any) error) error) (rows int, err error)
	// Announce publishes the id when the transaction commits. Watch in other processes
	// then passes the id to Invalidate.
	Announce(id rolecall.AnyID)
	// AnnounceChanges publishes that the feed of the tenant has new changes, when the transaction
	// commits. Watch in other processes then passes the tenant to Changed.
	AnnounceChanges(tenant rolecall.TenantID)
	// SetTenant makes the following statements of an Update see and write the rows of the tenant instead
	// of those of the tenant of the Update.
	SetTenant(tenant rolecall.TenantID)
	// AllowAddressInAllTenants makes the rows of users with the address visible, of all tenants, to the
	// following statements of a View.
	AllowAddressInAllTenants(emailKey string)
}

// Watcher receives the changes that other processes make in a database.
type Watcher interface {
	// Invalidate reports that cached copies of an object are stale. The id is that of a
	// tenant, user, service account, session, token, operator key or bucket. The zero id
	// means all cached data.
	Invalidate(id rolecall.AnyID)
	// Changed reports that the feed of the tenant may have new changes. The zero id means all
	// tenants.
	Changed(tenant rolecall.TenantID)
	// CaughtUp reports that Invalidate was called for every change that was committed
	// before a certain time. The argument lag is how long ago that time is.
	CaughtUp(lag time.Duration)
}

// Effects are the consequences of an Update outside of the database. The process must act
// on them.
type Effects struct {
	Invalidated    []rolecall.AnyID // cached copies of these are stale
	Mailed         bool             // the outbox has new mail
	Tenant         rolecall.TenantID
	Recorded       bool // the tenant has new events, which need numbers
	OperatorEvents bool // the operators' log has new events, which need numbers
	WebhooksDue    bool // webhooks can be due
	Numbered       bool // the feed of the tenant has new changes
}

// Store runs functions in transactions of one tenant. Transactions of the zero tenant see
// no rows that belong to a tenant. They are for the tables of the whole instance, such as the
// list of tenants.
type Store struct {
	db            Database
	onUpdate      func(Effects)
	eventsAtLeast time.Duration
	ended         atomic.Uint64 // the transactions that ended without an error
}

// New returns a Store on the database. The Store calls onUpdate, which can be nil, at the
// end of each Update. It also does so after a failed Update, because the transaction may
// have been committed in spite of the error.
func New(db Database, onUpdate func(Effects)) *Store { return &Store{db: db, onUpdate: onUpdate} }

// KeepEvents sets the minimum of the setting of tenants that says how long events are kept. Call it before
// the first transaction. Tenants that have set less keep their value until it is changed.
func (s *Store) KeepEvents(atLeast time.Duration) { s.eventsAtLeast = atLeast }

// EventsAtLeast returns the minimum that KeepEvents has set.
func (s *Store) EventsAtLeast() time.Duration { return s.eventsAtLeast }

// View calls fn with a Tx that can only read. Each statement sees its own snapshot. So use
// one statement to read values that must be consistent.
func (s *Store) View(ctx context.Context, tenant rolecall.TenantID, fn func(*Tx) error) error {
	err := s.db.View(ctx, tenant, func(q Querier) error { return fn(&Tx{q: q, tenant: tenant, eventsAtLeast: s.eventsAtLeast}) })
	if err == nil {
		s.ended.Add(1)
	}
	return err
}

// Read calls fn like View, and returns its result.
func Read[T any](ctx context.Context, s *Store, tenant rolecall.TenantID, fn func(*Tx) (T, error)) (T, error) {
	var value T
	err := s.View(ctx, tenant, func(tx *Tx) (err error) {
		value, err = fn(tx)
		return err
	})
	return value, err
}

// ErrStale is the error of a write to a version of a row that is no longer stored, because
// another transaction has changed the row since it was read. Update never returns it.
var ErrStale = errors.New("store: the row has another version")

// maxAttempts is how often Repeat calls its function at most.
const maxAttempts = 100

// CheckVersion returns the error of a write to one version of a row, such as Tx.UpdateUser.
// It returns ErrStale if the write found no row with this version. The row must have been
// read in the same Update. Otherwise, every attempt is stale.
func CheckVersion(found bool, err error) error {
	if err == nil && !found {
		err = ErrStale
	}
	return err
}

// Repeat calls update again while it returns ErrStale. After maxAttempts calls, it returns ErrUnavailable.
// Databases use it in their Update.
func Repeat(update func() error) error {
	for range maxAttempts {
		if err := update(); !errors.Is(err, ErrStale) {
			return err
		}
	}
	return rolecall.ErrUnavailable
}

// Update calls fn and commits its writes. If fn or a statement fails, nothing is written.
// Update returns an error of fn unchanged, except ErrStale. After ErrStale or a serialization
// conflict, Update calls fn again in a new transaction, so fn must have no side effects
// outside of the transaction. If fn returns ErrStale maxAttempts times, Update returns
// ErrUnavailable. When Update has returned nil, the data that fn has read is as durable as
// the data that it wrote.
//
// Methods of Tx without a result can run their statement after fn has returned. If the
// statement fails, Update returns the error.
func (s *Store) Update(ctx context.Context, tenant rolecall.TenantID, fn func(*Tx) error) error {
	var effects Effects
	err := s.db.Update(ctx, tenant, func(q Querier) error {
		effects = Effects{Tenant: tenant}
		tx := &Tx{q: q, tenant: tenant, effects: &effects, eventsAtLeast: s.eventsAtLeast}
		err := fn(tx)
		if err == nil {
			tx.queueEvents()
		}
		return err
	})
	if err == nil {
		s.ended.Add(1)
	}
	if s.onUpdate != nil {
		s.onUpdate(effects)
	}
	return err
}

// Watch reports changes by other processes to w. First, it reports that all cached data
// is stale. Watch returns nil when ctx ends, or earlier the error that stopped it.
func (s *Store) Watch(ctx context.Context, w Watcher) error { return s.db.Watch(ctx, w) }

// Ready returns nil if the database answers and this program supports its schema. A check that got no answer
// before the end of ctx counts as answered if a transaction of this process ended by then. Otherwise a flood, in
// which the check waits for a connection, would take all nodes out of service.
func (s *Store) Ready(ctx context.Context) error {
	ended := s.ended.Load()
	err := s.db.Ready(ctx)
	if ctx.Err() != nil && s.ended.Load() != ended {
		return nil
	}
	return err
}

// Connections returns how many connections the database has and how many are in use.
func (s *Store) Connections() Connections { return s.db.Connections() }

// Nested returns a Database whose transactions are parts of tx. They are all committed
// when tx commits. If an Update of this Database fails, its writes are not undone until tx
// is rolled back.
func Nested(tx *Tx) Database { return nested{tx.q} }

type nested struct{ q Querier }

func (n nested) View(_ context.Context, _ rolecall.TenantID, fn func(Querier) error) error {
	return fn(n.q)
}

func (n nested) Update(_ context.Context, _ rolecall.TenantID, fn func(Querier) error) error {
	err := fn(n.q)
	if errors.Is(err, ErrStale) { // a repetition would keep the writes of this attempt
		err = rolecall.ErrUnavailable
	}
	return err
}

func (nested) Watch(ctx context.Context, _ Watcher) error {
	<-ctx.Done()
	return nil
}

func (nested) Ready(context.Context) error { return nil }

func (nested) Connections() Connections { return Connections{} }

// violations maps the name of a constraint or a unique index to the error of a write that
// violates it. SQLite and PostgreSQL use the same names.
var violations = map[string]*rolecall.Error{
	"users_email":            rolecall.ErrEmailTaken,
	"users_external_id":      rolecall.ErrExternalIDTaken,
	"roles_name":             rolecall.ErrRoleNameTaken,
	"roles_key":              rolecall.ErrRoleKeyTaken,
	"groups_source_name":     rolecall.ErrGroupNameTaken,
	"groups_external_id":     rolecall.ErrGroupExternalIDTaken,
	"group_members_user":     rolecall.ErrNotFound,
	"group_members_group":    rolecall.ErrNotFound,
	"group_roles_group":      rolecall.ErrNotFound,
	"group_roles_role":       rolecall.ErrNotFound,
	"idempotency_keys_pkey":  rolecall.ErrKeyClaimed,
	"operator_requests_pkey": rolecall.ErrKeyClaimed,
	"tenants_name":           rolecall.ErrTenantExists,
	"assignments_user":       rolecall.ErrNotFound,
	"assignments_role":       rolecall.ErrNotFound,
	"sessions_user":          rolecall.ErrNotFound,
	"id_tokens_session":      rolecall.ErrNotFound,
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

	"connections_name":   rolecall.ErrConnectionNameTaken,
	"connections_issuer": rolecall.ErrIssuerTaken,
	"identities_subject": rolecall.ErrIdentityTaken,

	"directories_name":             rolecall.ErrDirectoryNameTaken,
	"directory_tokens_directory":   rolecall.ErrNotFound,
	"directory_users_user":         rolecall.ErrNotFound,
	"directory_users_directory":    rolecall.ErrNotFound,
	"directory_users_name":         rolecall.ErrUserNameTaken,
	"directory_requests_directory": rolecall.ErrNotFound,

	"identities_user":       rolecall.ErrNotFound,
	"identities_connection": rolecall.ErrNotFound,
}

// Violation returns the error of a write that violates the constraint, or nil if the
// constraint is unknown.
func Violation(constraint string) error {
	if err, ok := violations[constraint]; ok {
		return err
	}
	return nil
}

// Migration is a change of the schema.
type Migration struct {
	Number int64
	Name   string        // such as 0019_removed_events
	Oldest int64         // programs that know this migration can serve the schema afterwards
	Took   time.Duration // zero if it was not applied yet
}

// ServesOlder reports whether programs that do not know the migration can serve the schema afterwards.
func (m *Migration) ServesOlder() bool { return m.Oldest < m.Number }

// compatibility matches the row that each migration adds to the table of the same name.
var compatibility = regexp.MustCompile(`insert into compatibility \([^)]*\) values \(\d+, (\d+)`)

// MigrationsAfter returns the migrations in the files, and the others that are not in files, whose number is
// above the number stored. They are in the order of their numbers.
func MigrationsAfter(files fs.FS, stored int64, others ...Migration) (after []Migration, err error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, file := range names {
		name := strings.TrimSuffix(file, ".sql")
		text, _, _ := strings.Cut(name, "_")
		m := Migration{Name: name}
		if m.Number, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("the migration %s has no number: %w", file, err)
		}
		content, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		row := compatibility.FindSubmatch(content)
		if row == nil {
			return nil, fmt.Errorf("the migration %s does not say which programs can serve its schema", file)
		}
		if m.Oldest, err = strconv.ParseInt(string(row[1]), 10, 64); err != nil {
			return nil, err
		}
		if m.Number > stored {
			after = append(after, m)
		}
	}
	for _, m := range others {
		if m.Number > stored {
			after = append(after, m)
		}
	}
	slices.SortFunc(after, func(a, b Migration) int { return cmp.Compare(a.Number, b.Number) })
	return after, nil
}

// NewestMigration returns the greatest number of the migrations in the folder migrations of the program, and of the
// others. It panics if a file of the folder is not a migration.
func NewestMigration(program fs.FS, others ...Migration) int64 {
	files, err := fs.Sub(program, "migrations")
	if err != nil {
		panic(err)
	}
	all, err := MigrationsAfter(files, 0, others...)
	if err != nil {
		panic(err)
	}
	return all[len(all)-1].Number
}

// OldSchemaError is the error for a schema that is older than this program.
type OldSchemaError struct {
	Stored, Required int64
	Pending          []Migration
}

// Error returns both versions, and what to do.
func (e *OldSchemaError) Error() string {
	return fmt.Sprintf("the schema has version %d, but this program requires %d: %v", e.Stored, e.Required, ErrOldSchema)
}

// Unwrap returns ErrOldSchema.
func (e *OldSchemaError) Unwrap() error { return ErrOldSchema }

// Package access has the code that directory and signin share: the caller of a request,
// transactions in the caller's tenant, and events. It also authorizes callers for a user,
// counts refused requests, ends sessions, deletes mailed links, and checks new passwords.
//
// The package may import authz, the store, and mechanisms such as ratelimit and
// outbox. It imports neither directory nor signin.
package access

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/outage"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Options are the settings and dependencies of a Service besides its database.
type Options struct {
	Clock       func() rolecall.Time // nil: the system clock
	Passwords   *secret.Passwords
	Forbidden   secret.Words     // words that do not count toward the strength of a new password
	Breached    *secret.Breached // leaked passwords, which are rejected as new passwords; nil: not checked
	Keys        *secret.Keys
	Passkeys    *passkey.RelyingParty // nil: passkeys are unavailable without a domain
	Logger      *slog.Logger
	Limits      ratelimit.Limits    // zero members: the defaults
	Mailer      outbox.Mailer       // nil: mail waits in the outbox
	DivertMail  func(rolecall.Mail) // receives each mail instead of the outbox; nil: mail goes to the outbox
	Outbound    *outbound.Client    // sends requests to addresses that users chose; nil: a client that reaches only the internet
	OIDC        *oidc.Client        // signs users in with identity providers; nil: a client that reaches only the internet
	PublicURL   string              // the public URL of the service without a trailing slash; it is part of the source of items
	KeepEvents  time.Duration       // minimum of how long tenants keep events; zero: the minimum of the setting
	NameMinimum int                 // the setting nameMinimum of new tenants; zero: the default
	KeyLimit    int                 // maximum number of stored idempotency keys per user; zero: 100,000

	// OperatorOutbound sends requests to addresses that operators chose. Nil: a client that reaches only the
	// internet.
	OperatorOutbound *outbound.Client
}

// Service has the database and the mechanisms that use it, such as rate limits and the
// outbox. It is safe for concurrent use. Several nodes can use the same database, because
// no node needs the memory of another node.
type Service struct {
	Store        *store.Store
	Now          func() rolecall.Time
	Passwords    *secret.Passwords
	Keys         *secret.Keys
	Passkeys     *passkey.RelyingParty // nil: passkeys are unavailable without a domain
	Log          *slog.Logger
	Outages      *outage.Log // logs the failures of the work in the background
	Limiter      *ratelimit.Limiter
	Invalidation *invalidation.Table
	Refusals     *Refusals
	Outbox       *outbox.Outbox
	Feed         *feed.Feed
	AuditLog     *auditlog.Log
	Outbound     *outbound.Client
	OIDC         *oidc.Client
	PublicURL    string
	NameMinimum  int // the setting nameMinimum of new tenants; zero: the default

	// OperatorOutbound sends requests to addresses that operators chose.
	OperatorOutbound *outbound.Client

	// Deliver is called when webhooks can be due, after the transaction. It is set before the first
	// transaction.
	Deliver func()

	unfinished  chan rolecall.TenantID
	idempotency *idempotency.Keys
	forbidden   secret.Words
	breached    *secret.Breached
}

// New returns a Service that uses the database.
func New(db store.Database, o Options) *Service {
	if o.Clock == nil {
		o.Clock = func() rolecall.Time { return rolecall.TimeOf(time.Now()) }
	}
	s := &Service{
		Now: o.Clock, Passwords: o.Passwords, Keys: o.Keys, Passkeys: o.Passkeys, Log: o.Logger, Outages: outage.New(o.Logger), Invalidation: invalidation.New(o.Clock),
		unfinished: make(chan rolecall.TenantID, maxUnfinished), forbidden: o.Forbidden, breached: o.Breached,
		Outbound: o.Outbound, OperatorOutbound: o.OperatorOutbound, OIDC: o.OIDC, PublicURL: o.PublicURL, NameMinimum: o.NameMinimum, Deliver: func() {},
	}
	if s.Outbound == nil {
		s.Outbound = outbound.New(outbound.Options{})
	}
	if s.OperatorOutbound == nil {
		s.OperatorOutbound = outbound.New(outbound.Options{})
	}
	if s.OIDC == nil {
		s.OIDC = oidc.New(oidc.Options{})
	}
	s.Store = store.New(db, s.updated)
	s.Store.KeepEvents(o.KeepEvents)
	s.Outbox = outbox.New(outbox.Options{Store: s.Store, Keys: o.Keys, Clock: o.Clock, Logger: o.Logger, Outages: s.Outages, Mailer: o.Mailer, Divert: o.DivertMail})
	s.Feed = feed.New(s.Store, o.Clock, o.Logger, s.Outages)
	s.AuditLog = auditlog.New(s.Store, o.Keys, o.Clock, o.Logger, s.Outages, s.Feed.CatchUp)
	s.Limiter = ratelimit.New(s.Store, o.Keys, s.Invalidation, o.Clock, o.Limits)
	s.Refusals = NewRefusals(s.Store, o.Clock)
	s.idempotency = idempotency.New(s.Store, o.Clock, o.KeyLimit)
	return s
}

// updated is called at the end of each Store.Update, even after an error, because the transaction may
// have been committed in spite of it. It invalidates the cached data that the transaction changed. If the
// transaction stored a mail, updated wakes the mail sender. If it stored events, also in the operators'
// log, updated has them numbered. If it numbered events, updated has them added to the Merkle log, and
// wakes those who wait for changes. If webhooks can be due, updated wakes their senders.
func (s *Service) updated(effects store.Effects) {
	for _, id := range effects.Invalidated {
		s.Invalidation.Invalidate(id)
	}
	if effects.Mailed {
		s.Outbox.Wake()
	}
	if effects.Recorded {
		s.Feed.Recorded(effects.Tenant)
	}
	if effects.OperatorEvents {
		s.Feed.Recorded(rolecall.OperatorsTenant)
	}
	if effects.Numbered {
		s.AuditLog.Numbered(effects.Tenant)
		s.Feed.Changed(effects.Tenant)
	}
	if effects.WebhooksDue {
		s.Deliver()
	}
}

// maxUnfinished is the maximum number of requests of Unfinished that wait in this process.
// The next periodic purge does the work of requests above the limit.
const maxUnfinished = 100

// Unfinished requests that a background task continue deleting data of the tenant. The
// request can be lost, for example when the process ends. The database records the
// remaining work, so the next periodic purge does it then.
func (s *Service) Unfinished(tenant rolecall.TenantID) {
	select {
	case s.unfinished <- tenant:
	default:
	}
}

// NextUnfinished returns the tenant of the next call of Unfinished, and waits for this call
// if necessary. It returns false if ctx ends first.
func (s *Service) NextUnfinished(ctx context.Context) (rolecall.TenantID, bool) {
	select {
	case tenant := <-s.unfinished:
		return tenant, true
	case <-ctx.Done():
		return rolecall.TenantID{}, false
	}
}

// Ready returns nil if the store can serve requests.
func (s *Service) Ready(ctx context.Context) error { return s.Store.Ready(ctx) }

// Writable writes to the store. It returns nil if the store accepts writes.
func (s *Service) Writable(ctx context.Context) error {
	return s.Store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		tx.ProbeWrites()
		return nil
	})
}

// Watching reports whether this process currently receives notifications of changes that
// other processes make. The result behind is a delay: the process has received all changes
// that are older than this. While ok is true, behind is usually about a quarter of a
// second.
func (s *Service) Watching() (ok bool, behind time.Duration) {
	now := s.Now()
	return s.Invalidation.IsWatching(now), s.Invalidation.Lag(now)
}

// UnknownTenant is the tenant in which a request with an unknown tenant name writes its
// rows. With it, such a request does the same work as a request for a known tenant. No
// stored tenant has this id, because ids begin with their creation time.
var UnknownTenant = rolecall.TenantID{15: 1}

// BatchSize is the maximum number of rows of one kind that a transaction deletes. Large
// deletions use several transactions, so that other writes do not wait long.
const BatchSize = 500

// SettleTime is how long a deletion waits for other nodes that may still write data of the
// deleted tenant or user, because they have it in a cache or because their clock is behind.
// A deleted tenant is purged this long after it can no longer be restored. For an erased
// user, a second search for remaining data follows this long after the erasure.
const SettleTime = time.Minute

// Caller is the principal of a request, with the data of the request that events record.
type Caller struct {
	*authz.Principal
	RequestID string
	Source    string // the client's address
}

// Anonymous is a request without a principal, such as a sign-in. If no tenant has the name
// in the request, Tenant is zero.
type Anonymous struct {
	Tenant     rolecall.Tenant
	TenantName string
	Presented  []secret.Token // tokens of sessions, from cookies or from the Authorization header
	ForHeader  bool           // a new session gets a token for the Authorization header
	Devices    []string       // known-device tokens
	RequestID  string
	Source     string // the client's address
	Client     string // a description such as Firefox on Linux
}

// Caller returns the caller of the request after the request was authenticated as the
// principal p.
func (a *Anonymous) Caller(p *authz.Principal) Caller {
	return Caller{Principal: p, RequestID: a.RequestID, Source: a.Source}
}

// Browser describes the client of a request, for a mail that notifies a user of a change.
// It is zero if an administrator or operator made the change.
type Browser struct {
	Client string // a description such as Firefox on Linux; empty: unknown
	Source string
}

// Browser returns the browser of the caller's session and the IP address of the request.
func (c Caller) Browser() Browser { return Browser{c.Session.Client, c.Source} }

// Browser returns the browser and the IP address of the request.
func (a *Anonymous) Browser() Browser { return Browser{a.Client, a.Source} }

// Create creates an object once for each idempotency key of the caller. If the key was
// used before, Create creates nothing and returns the first result. If the caller's tenant is
// rolecall.OperatorsTenant, the key is stored with those of operators. Create returns the
// errors of idempotency.Create.
func Create[T any](ctx context.Context, s *Service, c Caller, key idempotency.Key, n idempotency.Creation[T]) (idempotency.Created[T], error) {
	settings := &c.Tenant.Settings
	kept := min(settings.KeyLifetime(), settings.EventLifetime()) // the event contains the created object
	owner := idempotency.Owner{Tenant: c.Tenant.ID, User: c.User.ID, KeysUntil: s.Now().Add(kept)}
	if c.Operator != nil {
		owner.Operator = c.Operator.ID
	}
	if c.Tenant.ID == rolecall.OperatorsTenant {
		owner.Tenant, n.Tenant = rolecall.TenantID{}, c.Tenant.ID
	}
	return idempotency.Create(ctx, s.idempotency, owner, key, n)
}

// Refused records, for an event, that the caller was refused an operation on the subject.
// The argument code is the code of the error in the response.
func (s *Service) Refused(c Caller, subject rolecall.UserID, operation, code string) {
	s.Refusals.Count(c.Tenant.ID, rolecall.EventRefused, c.Actor(), subject, operation+": "+code, c.Source)
}

// lastLimit is the timeout of a write that continues after its request has ended. Without a
// timeout, such a write would wait forever for a store that does not respond.
const lastLimit = 5 * time.Second

// Detached returns a context for a write that must happen even if ctx has ended. The new
// context ends after lastLimit.
func Detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
}

// Match is a precondition on the stored value, such as the If-Match header of a request.
// The change is made only if Match returns true for the value. A nil Match always allows
// the change.
//
// A Match encodes and hashes the value inside the transaction of the change. A check before
// the transaction would need another read: on SQLite, the change of a user would then take
// 20 % more CPU time, and 35 % more with the maximum of metadata.
type Match[T any] func(*T) bool

// Check returns ErrPreconditionFailed if the precondition is not met.
func (m Match[T]) Check(value *T) error {
	if m != nil && !m(value) {
		return rolecall.ErrPreconditionFailed
	}
	return nil
}

// View runs fn with a Tx that can read the caller's tenant, and cannot write.
func (s *Service) View(ctx context.Context, c Caller, fn func(*store.Tx) error) error {
	return s.Store.View(ctx, c.Tenant.ID, fn)
}

// Read calls fn like View, and returns its result.
func Read[T any](ctx context.Context, s *Service, c Caller, fn func(*store.Tx) (T, error)) (T, error) {
	return store.Read(ctx, s.Store, c.Tenant.ID, fn)
}

// Mutate runs fn in one transaction of the caller's tenant. It also stores the event that
// fn returns, in the same transaction. If fn changed nothing, it returns a nil event. If fn
// returns store.ErrStale, Mutate runs it again in a new transaction.
func (s *Service) Mutate(ctx context.Context, c Caller, fn func(*store.Tx) (*rolecall.Event, error)) error {
	return s.Store.Update(ctx, c.Tenant.ID, func(tx *store.Tx) error {
		event, err := fn(tx)
		if err == nil && event != nil {
			tx.InsertEvent(*event)
		}
		return err
	})
}

// Event returns a new event of the type kind about the subject. Its actor is the caller.
func (s *Service) Event(c Caller, kind rolecall.EventType, subject rolecall.Subject) *rolecall.Event {
	now := s.Now()
	return &rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](now), Type: kind, OccurredAt: now,
		Actor: c.Actor(), Subject: subject, RequestID: c.RequestID, SessionID: c.Session.ID, Source: c.Source,
	}
}

// Found reports whether a read found its object. The argument err is the error of the read.
// If err is ErrNotFound, Found returns false and no error. It returns every other error
// unchanged.
func Found(err error) (bool, error) {
	if errors.Is(err, rolecall.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

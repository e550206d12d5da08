// Package access has the code that directory and signin share: the caller of a
// request, the transactions in which callers read and change their tenant, the
// events of these changes, the authorization on a user inside of a transaction, the
// end of sessions and links, and the rules of new passwords. It may import authz,
// audit, the store and similar mechanisms, such as ratelimit and outbox. It imports
// neither directory nor signin.
package access

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Options are the settings and dependencies of a Service besides its database.
type Options struct {
	Clock      func() rolecall.Time // nil: the system clock
	Passwords  *secret.Passwords
	Forbidden  secret.Words     // words that do not count toward the strength of a new password
	Breached   *secret.Breached // leaked passwords, which are rejected as new passwords; nil: not checked
	Keys       *secret.Keys
	Passkeys   *passkey.RelyingParty // nil: passkeys are unavailable without a domain
	Logger     *slog.Logger
	Limits     ratelimit.Limits    // zero members: the defaults
	Mailer     outbox.Mailer       // nil: mail waits in the outbox
	DivertMail func(rolecall.Mail) // receives each mail instead of the outbox; nil: mail goes to the outbox
	KeyLimit   int                 // idempotency keys that a user can have stored at once; zero: 100,000
}

// Service is the database with its mechanisms. It is safe for concurrent use. It keeps no
// state in memory that other nodes need.
type Service struct {
	Store        *store.Store
	Now          func() rolecall.Time
	Passwords    *secret.Passwords
	Keys         *secret.Keys
	Passkeys     *passkey.RelyingParty // nil: passkeys are unavailable without a domain
	Log          *slog.Logger
	Limiter      *ratelimit.Limiter
	Invalidation *invalidation.Table
	Refusals     *audit.Refusals
	Outbox       *outbox.Outbox

	unfinished  chan rolecall.TenantID
	idempotency *idempotency.Keys
	forbidden   secret.Words
	breached    *secret.Breached
}

// New returns the mechanisms on the database.
func New(db store.Database, o Options) *Service {
	if o.Clock == nil {
		o.Clock = func() rolecall.Time { return rolecall.TimeOf(time.Now()) }
	}
	s := &Service{
		Now: o.Clock, Passwords: o.Passwords, Keys: o.Keys, Passkeys: o.Passkeys, Log: o.Logger, Invalidation: invalidation.New(o.Clock),
		unfinished: make(chan rolecall.TenantID, maxUnfinished), forbidden: o.Forbidden, breached: o.Breached,
	}
	s.Store = store.New(db, s.updated)
	s.Outbox = outbox.New(outbox.Options{Store: s.Store, Keys: o.Keys, Clock: o.Clock, Logger: o.Logger, Mailer: o.Mailer, Divert: o.DivertMail})
	s.Limiter = ratelimit.New(s.Store, o.Keys, s.Invalidation, o.Clock, o.Limits)
	s.Refusals = audit.NewRefusals(s.Store, o.Clock)
	s.idempotency = idempotency.New(s.Store, o.Clock, o.KeyLimit)
	return s
}

// updated invalidates the cached data that an Update changed, and wakes the mail
// sender.
func (s *Service) updated(effects store.Effects) {
	for _, id := range effects.Invalidated {
		s.Invalidation.Invalidate(id)
	}
	if effects.Mailed {
		s.Outbox.Wake()
	}
}

// maxUnfinished is how many unfinished deletions can wait in this process. The next
// purge finishes the others.
const maxUnfinished = 100

// Unfinished makes a background task continue the deletion of the tenant's data. The
// database records the remaining work: if the process ends, the next purge continues the
// deletion.
func (s *Service) Unfinished(tenant rolecall.TenantID) {
	select {
	case s.unfinished <- tenant:
	default:
	}
}

// NextUnfinished returns a tenant for which Unfinished was called. It reports false when
// ctx ends.
func (s *Service) NextUnfinished(ctx context.Context) (rolecall.TenantID, bool) {
	select {
	case tenant := <-s.unfinished:
		return tenant, true
	case <-ctx.Done():
		return rolecall.TenantID{}, false
	}
}

// Ready returns nil if the store can serve.
func (s *Service) Ready(ctx context.Context) error { return s.Store.Ready(ctx) }

// Watching reports whether this process is notified of changes by other processes, and
// how old a change can be that it has not seen: about a quarter of a second while it is
// notified.
func (s *Service) Watching() (ok bool, behind time.Duration) {
	now := s.Now()
	return s.Invalidation.IsWatching(now), s.Invalidation.Lag(now)
}

// UnknownTenant is the tenant in which requests for unknown tenants write their
// rows, so that they do the same work. No tenant has its id, because ids begin with
// their creation time.
var UnknownTenant = rolecall.TenantID{15: 1}

// BatchSize is how many rows one transaction removes at most, so that no other write waits
// long.
const BatchSize = 500

// SettleTime is the time between the end of the period in which a deleted tenant can be restored and
// its purge, and between the erasure of a user and a second search for traces of the user. A node
// whose clock is behind, or that has the tenant or the user cached, has stopped writing by then.
const SettleTime = time.Minute

// MaxRetries is how often a change is tried again after a concurrent change of the same
// row. Then the service method returns ErrUnavailable.
const MaxRetries = 100

// Caller is the principal of a request, with the data about the request that events
// record.
type Caller struct {
	*authz.Principal
	RequestID string
	Source    string // the client's address
}

// Anonymous is the sender of a request without a principal, such as a sign-in. The tenant
// of the request possibly does not exist.
type Anonymous struct {
	Tenant     rolecall.Tenant
	TenantName string
	Presented  []secret.Token // session cookies
	Devices    []string       // known-device tokens
	RequestID  string
	Source     string // the client's address
	Client     string // a description such as Firefox on Linux
}

// Caller returns the caller of the request, once its principal is known.
func (a *Anonymous) Caller(p *authz.Principal) Caller {
	return Caller{Principal: p, RequestID: a.RequestID, Source: a.Source}
}

// Browser is the browser and the IP address of a request, for notices by mail. It is zero
// for a change by an administrator or operator.
type Browser struct {
	Client string // a description such as Firefox on Linux; empty if it is unknown
	Source string
}

// Browser returns the browser of the caller's session, and the address of the request.
func (c Caller) Browser() Browser { return Browser{c.Session.Client, c.Source} }

// Browser returns the browser and the address of the request.
func (a *Anonymous) Browser() Browser { return Browser{a.Client, a.Source} }

// Create creates an object once for each idempotency key of the caller. If the key
// was used before, it returns the stored key.
func (s *Service) Create(ctx context.Context, c Caller, key idempotency.Key, n idempotency.Creation) (*rolecall.IdempotencyKey, error) {
	settings := &c.Tenant.Settings
	kept := min(settings.KeyLifetime(), settings.EventLifetime()) // the event contains the created object
	owner := idempotency.Owner{Tenant: c.Tenant.ID, User: c.User.ID, KeysUntil: s.Now().Add(kept)}
	if c.Operator != nil {
		owner.Operator = c.Operator.ID
	}
	return s.idempotency.Create(ctx, owner, key, n)
}

// Refused records that the operation on the subject was denied to the caller, with the
// code of the returned problem.
func (s *Service) Refused(c Caller, subject rolecall.UserID, operation, code string) {
	s.Refusals.Count(c.Tenant.ID, rolecall.EventRefused, c.Actor(), subject, operation+": "+code, c.Source)
}

// lastLimit is the timeout of a write that continues after its request has ended.
// Without it, a store that does not respond would block the write forever.
const lastLimit = 5 * time.Second

// Outliving returns a context for a write that must happen even if ctx has ended.
func Outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
}

// View runs fn in a transaction that reads the tenant of the caller.
func (s *Service) View(ctx context.Context, c Caller, fn func(*store.Tx) error) error {
	return s.Store.View(ctx, c.Tenant.ID, fn)
}

// Mutate runs fn in one transaction, and writes the event that it returns. A nil event
// means that nothing changed.
func (s *Service) Mutate(ctx context.Context, c Caller, fn func(*store.Tx) (*rolecall.Event, error)) error {
	return s.Store.Update(ctx, c.Tenant.ID, func(tx *store.Tx) error {
		event, err := fn(tx)
		if err == nil && event != nil {
			tx.InsertEvent(*event)
		}
		return err
	})
}

// Event returns an event about the subject, caused by the caller.
func (s *Service) Event(c Caller, kind rolecall.EventType, subject rolecall.Subject) *rolecall.Event {
	now := s.Now()
	return &rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](now), Type: kind, OccurredAt: now,
		Actor: c.Actor(), Subject: subject, RequestID: c.RequestID, SessionID: c.Session.ID, Source: c.Source,
	}
}

// Found reports whether a read found its row. It returns nil instead of ErrNotFound.
func Found(err error) (bool, error) {
	if errors.Is(err, rolecall.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

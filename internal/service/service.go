// Package service holds the verbs: what a principal can do, asked, done and
// recorded. Every verb takes who is asking first, and asks before it acts.
package service

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

// attempts bounds how often an act is tried on what a concurrent change left;
// after that it is ErrUnavailable.
const attempts = 100

// Options are what a service needs beside its store.
type Options struct {
	Clock      func() rolecall.Time // nil: the system's clock
	Passwords  *secret.Passwords
	Forbidden  secret.Words     // do not count in a new password
	Breached   *secret.Breached // cannot be a new password; nil: not checked
	Keys       *secret.Keys
	Passkeys   *passkey.Party // nil: there is no domain for them
	Logger     *slog.Logger
	Limits     ratelimit.Limits    // zero members: the defaults
	Mailer     outbox.Mailer       // nil: mail waits in the outbox
	DivertMail func(rolecall.Mail) // receives each mail instead of the outbox; nil: mail goes to the outbox
	KeyLimit   int                 // idempotency keys that a user can have stored at once; zero: 100,000
}

// Service serves the verbs. It is safe for concurrent use and keeps nothing that
// another node would miss.
type Service struct {
	store        *store.Store
	now          func() rolecall.Time
	passwords    *secret.Passwords
	forbidden    secret.Words
	breached     *secret.Breached
	keys         *secret.Keys
	passkeys     *passkey.Party
	log          *slog.Logger
	limiter      *ratelimit.Limiter
	idempotency  *idempotency.Keys
	invalidation *invalidation.Table
	tenants      *tenantCache
	principals   *principalCache
	operators    *operatorCache
	refusals     *audit.Refusals
	outbox       *outbox.Outbox
}

// New returns a service on the database.
func New(db store.Database, o Options) *Service {
	if o.Clock == nil {
		o.Clock = func() rolecall.Time { return rolecall.TimeOf(time.Now()) }
	}
	s := &Service{
		invalidation: invalidation.New(o.Clock), now: o.Clock, passwords: o.Passwords, forbidden: o.Forbidden, breached: o.Breached, keys: o.Keys, passkeys: o.Passkeys, log: o.Logger,
		tenants:    newTenantCache(),
		principals: newPrincipalCache(),
		operators:  newOperatorCache(),
	}
	s.store = store.New(db, s.updated)
	s.outbox = outbox.New(outbox.Options{
		Store: s.store, Keys: o.Keys, Clock: o.Clock, Logger: o.Logger, Mailer: o.Mailer, Divert: o.DivertMail,
	})
	s.limiter = ratelimit.New(s.store, o.Keys, s.invalidation, o.Clock, o.Limits)
	s.idempotency = idempotency.New(s.store, o.Clock, o.KeyLimit)
	s.refusals = audit.NewRefusals(s.store, o.Clock)
	return s
}

// updated invalidates what an Update changed, and wakes the sender of mail.
func (s *Service) updated(effects store.Effects) {
	for _, id := range effects.Invalidated {
		s.invalidation.Invalidate(id)
	}
	if effects.Mailed {
		s.outbox.Wake()
	}
}

// Now returns the moment by the service's clock.
func (s *Service) Now() rolecall.Time { return s.now() }

// Keys returns the instance's keys.
func (s *Service) Keys() *secret.Keys { return s.keys }

// Ready returns nil if the store can serve.
func (s *Service) Ready(ctx context.Context) error { return s.store.Ready(ctx) }

// Watching reports whether this process is notified of changes by other processes, and
// how old a change can be that it has not seen: about a quarter of a second while it is
// notified.
func (s *Service) Watching() (ok bool, behind time.Duration) {
	now := s.now()
	return s.invalidation.IsWatching(now), s.invalidation.Lag(now)
}

// Call is who is asking, and through which request.
type Call struct {
	*authz.Principal
	RequestID string
	Source    string // the client's address
}

// create makes something once for each idempotency key of the caller.
func (s *Service) create(ctx context.Context, c Call, key idempotency.Key, n idempotency.Creation) (*rolecall.IdempotencyKey, error) {
	owner := idempotency.Owner{Tenant: c.Tenant.ID, User: c.User.ID, KeysUntil: s.now().Add(c.Tenant.Settings.KeyLifetime())}
	if c.Operator != nil {
		owner.Operator = c.Operator.ID
	}
	return s.idempotency.Create(ctx, owner, key, n)
}

// Refused records that the caller was refused an operation for the reason, a
// problem code.
func (s *Service) Refused(c Call, subject rolecall.UserID, operation, code string) {
	s.refusals.Count(c.Tenant.ID, rolecall.EventRefused, c.Actor(), subject, operation+": "+code, c.Source)
}

// Flush writes the refusals since the last time as events. It keeps those that cannot be
// written for the next time.
func (s *Service) Flush(ctx context.Context) error { return s.refusals.Flush(ctx) }

// Match reports whether a precondition holds for what is stored now. A nil Match
// holds for everything.
type Match[T any] func(*T) bool

func (m Match[T]) check(value *T) error {
	if m != nil && !m(value) {
		return rolecall.ErrPreconditionFailed
	}
	return nil
}

// lastLimit is how long what outlives its cause may take: nobody waits for it, so
// nothing else would end it where the store does not answer.
const lastLimit = 5 * time.Second

// outliving returns a context for what is to be written although ctx ended.
func outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
}

// view reads the caller's tenant.
func (s *Service) view(ctx context.Context, c Call, fn func(*store.Tx) error) error {
	return s.store.View(ctx, c.Tenant.ID, fn)
}

// mutate runs fn in one transaction together with the event it returns; no event
// means that nothing changed.
func (s *Service) mutate(ctx context.Context, c Call, fn func(*store.Tx) (*rolecall.Event, error)) error {
	return s.store.Update(ctx, c.Tenant.ID, func(tx *store.Tx) error {
		event, err := fn(tx)
		if err == nil && event != nil {
			tx.InsertEvent(*event)
		}
		return err
	})
}

// event returns what happened to the subject by the caller's hand.
func (s *Service) event(c Call, kind rolecall.EventType, subject rolecall.Subject) *rolecall.Event {
	now := s.now()
	return &rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](now), Type: kind, OccurredAt: now,
		Actor: c.Actor(), Subject: subject, RequestID: c.RequestID, SessionID: c.Session.ID, Source: c.Source,
	}
}

// found turns the absence of something into a nil error, and reports whether it
// was there.
func found(err error) (bool, error) {
	if errors.Is(err, rolecall.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

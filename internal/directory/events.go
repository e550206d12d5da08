package directory

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/store"
)

// EventListing selects events. A member with its zero value does not filter.
type EventListing struct {
	Type    string
	Actor   rolecall.AnyID
	Subject rolecall.AnyID
	From    rolecall.Time // inclusive
	To      rolecall.Time // exclusive
	After   *rolecall.Position
	Limit   int
}

func (l *EventListing) query() rolecall.EventQuery {
	return rolecall.EventQuery{Type: rolecall.EventType(l.Type), Actor: l.Actor, Subject: l.Subject, From: l.From, To: l.To, After: l.After, Limit: l.Limit}
}

// Events returns a page of the tenant's events, newest first. It removes from each event
// the values that the caller may not read now. Events can fail with ErrPermissionDenied.
func (s *Service) Events(ctx context.Context, c access.Caller, l EventListing) (rolecall.Page[rolecall.Event], error) {
	if err := authz.ReadEvents.Authorize(c.Principal); err != nil {
		return rolecall.Page[rolecall.Event]{}, err
	}
	return s.events(ctx, c, l)
}

// UserEvents returns a page of the events about the user, newest first. With a session,
// users need no permission to read the events about themselves. UserEvents can fail with
// ErrNotFound or ErrPermissionDenied.
func (s *Service) UserEvents(ctx context.Context, c access.Caller, id rolecall.UserID, l EventListing) (page rolecall.Page[rolecall.Event], err error) {
	if err := authz.ReadUserEvents.AuthorizeFor(c.Principal, id); err != nil {
		return page, err
	}
	if !c.IsSelf(id) {
		err := s.access.View(ctx, c, func(tx *store.Tx) error {
			_, err := access.VisibleUser(tx, c, id)
			return err
		})
		if err != nil {
			return page, err
		}
	}
	l.Subject = rolecall.AnyID(id)
	return s.events(ctx, c, l)
}

// Changes returns a page of the tenant's change feed. It removes from each event the values that
// the caller may not read now. Changes can fail with ErrPermissionDenied or ErrChangesExpired.
func (s *Service) Changes(ctx context.Context, c access.Caller, q feed.Query) (feed.Page, error) {
	if err := authz.ReadChanges.Authorize(c.Principal); err != nil {
		return feed.Page{}, err
	}
	page, err := s.access.Feed.Read(ctx, c.Tenant.ID, q)
	if err != nil {
		return page, err
	}
	return page, authz.RedactChanges(c.Principal, page.Changes)
}

// ChangesEnd returns an empty page after all changes of the tenant. It can fail with
// ErrPermissionDenied.
func (s *Service) ChangesEnd(ctx context.Context, c access.Caller) (feed.Page, error) {
	if err := authz.ReadChanges.Authorize(c.Principal); err != nil {
		return feed.Page{}, err
	}
	return s.access.Feed.End(ctx, c.Tenant.ID)
}

// TenantsChanges returns a page of the change feed of all tenants that the caller's operator key can
// access. It can fail with ErrScopeMissing or ErrChangesExpired.
func (s *Service) TenantsChanges(ctx context.Context, c access.Caller, q feed.TenantsQuery) (feed.TenantsPage, error) {
	if err := authz.ReadTenantsChanges.Authorize(c.Principal); err != nil {
		return feed.TenantsPage{}, err
	}
	q.Accepts = c.Operator.IsFor
	page, err := s.access.Feed.ReadTenants(ctx, q)
	if err != nil {
		return page, err
	}
	return page, authz.RedactChanges(c.Principal, page.Changes)
}

// TenantsChangesEnd returns an empty page after all changes of all tenants. It can fail with
// ErrScopeMissing.
func (s *Service) TenantsChangesEnd(ctx context.Context, c access.Caller) (feed.TenantsPage, error) {
	if err := authz.ReadTenantsChanges.Authorize(c.Principal); err != nil {
		return feed.TenantsPage{}, err
	}
	return s.access.Feed.EndOfTenants(ctx)
}

// AwaitTenantsChanges is like AwaitChanges, for the changes of all tenants.
func (s *Service) AwaitTenantsChanges() (changed <-chan struct{}, stop func()) {
	return s.access.Feed.WaitForTenants()
}

// AwaitChanges returns a channel that is closed when the tenant may have changes after this call.
// The caller must call stop at the end of its wait.
func (s *Service) AwaitChanges(c access.Caller) (changed <-chan struct{}, stop func()) {
	return s.access.Feed.Wait(c.Tenant.ID)
}

func (s *Service) events(ctx context.Context, c access.Caller, l EventListing) (page rolecall.Page[rolecall.Event], err error) {
	page, err = access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Page[rolecall.Event], error) { return tx.Events(l.query()) })
	if err != nil {
		return page, err
	}
	return page, authz.RedactEvents(c.Principal, page.Items)
}

// Checkpoint returns the signed state of the Merkle log of the tenant's events. The argument publicURL is
// the public URL of the service. Checkpoint can fail with ErrPermissionDenied.
func (s *Service) Checkpoint(ctx context.Context, c access.Caller, publicURL string) (auditlog.Checkpoint, error) {
	if err := authz.ReadEvents.Authorize(c.Principal); err != nil {
		return auditlog.Checkpoint{}, err
	}
	return s.access.AuditLog.Checkpoint(ctx, c.Tenant.ID, auditlog.Origin(publicURL, c.Tenant.Name))
}

// EventProof is the proof that an event is in the log, with the data of those groups of the event that
// the caller may read.
type EventProof struct {
	auditlog.Proof
	Leaf   []byte
	Opened map[rolecall.EventGroup]OpenedGroup
}

// OpenedGroup is the salt and the data of a group of an event. Its commitment in the leaf is the hash of
// both.
type OpenedGroup struct{ Salt, Data []byte }

// EventProof returns the proof that an event is in the log. It can fail with ErrPermissionDenied,
// ErrNotFound, or ErrUnavailable if the log does not have the event yet.
func (s *Service) EventProof(ctx context.Context, c access.Caller, publicURL string, id rolecall.EventID) (p EventProof, err error) {
	if err := authz.ReadEvents.Authorize(c.Principal); err != nil {
		return p, err
	}
	if p.Proof, err = s.access.AuditLog.Proof(ctx, c.Tenant.ID, auditlog.Origin(publicURL, c.Tenant.Name), id); err != nil {
		return p, err
	}
	readable, err := access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Event, error) { return tx.EventByID(id) })
	if err != nil {
		return p, err
	}
	events := []rolecall.Event{readable}
	if err := authz.RedactEvents(c.Principal, events); err != nil {
		return p, err
	}
	p.open(&events[0])
	return p, nil
}

// open sets the leaf, and the data of the groups that the caller may read. The argument redacted is the
// event with the values that the caller may read.
func (p *EventProof) open(redacted *rolecall.Event) {
	p.Leaf, p.Opened = p.Event.Leaf(p.Salts), map[rolecall.EventGroup]OpenedGroup{}
	for g := range rolecall.EventGroupCount {
		if data := p.Event.GroupData(g); !p.Salts.Erased(g) && (g != rolecall.GroupValues || len(data) == 0 || isComplete(redacted, p.Event)) {
			p.Opened[g] = OpenedGroup{p.Salts.Salt(g), data}
		}
	}
}

// isComplete reports whether a redacted event has all values of the stored event. Without the complete
// values, their salt is not returned, because it allows guessing the rest.
func isComplete(redacted, stored *rolecall.Event) bool {
	return redacted.Values != nil && len(redacted.Values.Withheld) == 0 &&
		len(redacted.Values.Before) > 0 == (len(stored.Values.Before) > 0) && len(redacted.Values.After) > 0 == (len(stored.Values.After) > 0)
}

// Consistency returns the proof that the log of the tenant's events begins with the first from events of
// an earlier checkpoint. It can fail with ErrPermissionDenied or ErrLogShorter.
func (s *Service) Consistency(ctx context.Context, c access.Caller, publicURL string, from int64) (auditlog.Consistency, error) {
	if err := authz.ReadEvents.Authorize(c.Principal); err != nil {
		return auditlog.Consistency{}, err
	}
	return s.access.AuditLog.Consistency(ctx, c.Tenant.ID, auditlog.Origin(publicURL, c.Tenant.Name), from)
}

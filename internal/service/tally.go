package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
)

const (
	// tallyInterval is how long what was refused may wait to be recorded, and how
	// much of it becomes one event.
	tallyInterval = time.Second

	// tallyMost bounds how many different refusals wait. What does not fit is
	// counted without saying whose it was.
	tallyMost = 10_000
)

// tallies count what was refused, so that an attack of thousands a second makes
// one event a second of each kind, and no request writes more because of whom it
// was about.
type tallies struct {
	mu      sync.Mutex
	pending map[tallyKey]tally
}

type tallyKey struct {
	tenant  rolecall.TenantID
	kind    rolecall.EventType
	actor   rolecall.Actor
	subject rolecall.UserID // zero: the tenant
	reason  string
}

type tally struct {
	count  int
	source string // of the first
}

// anonymous is the actor where nobody signed in.
var anonymous = rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "http"}

// tally counts a refusal. Those of unknown tenants are nobody's.
func (s *Service) tally(tenant rolecall.TenantID, kind rolecall.EventType, actor rolecall.Actor, subject rolecall.UserID, reason, source string) {
	if tenant.IsZero() {
		return
	}
	s.tallies.add(map[tallyKey]tally{{tenant, kind, actor, subject, reason}: {1, source}})
}

// add counts what was refused before or besides.
func (t *tallies) add(counted map[tallyKey]tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		t.pending = map[tallyKey]tally{}
	}
	for key, more := range counted {
		pending, ok := t.pending[key]
		if !ok && len(t.pending) >= tallyMost {
			key.actor, key.subject, more.source = anonymous, rolecall.UserID{}, ""
			pending, ok = t.pending[key]
		}
		if !ok {
			pending.source = more.source
		}
		pending.count += more.count
		t.pending[key] = pending
	}
}

// Refused records that the caller was refused an operation for the reason, a
// problem code.
func (s *Service) Refused(c Call, subject rolecall.UserID, operation, code string) {
	s.tally(c.Tenant.ID, rolecall.EventRefused, c.Actor(), subject, operation+": "+code, c.Source)
}

// Flush records what was refused since the last time. What cannot be recorded is
// kept for the next time.
func (s *Service) Flush(ctx context.Context) error {
	s.tallies.mu.Lock()
	pending := s.tallies.pending
	s.tallies.pending = nil
	s.tallies.mu.Unlock()

	byTenant := map[rolecall.TenantID]map[tallyKey]tally{}
	for key, counted := range pending {
		if byTenant[key.tenant] == nil {
			byTenant[key.tenant] = map[tallyKey]tally{}
		}
		byTenant[key.tenant][key] = counted
	}
	var failures []error
	for tenant, counted := range byTenant {
		err := s.store.Update(ctx, tenant, func(tx Tx) error {
			for key, t := range counted {
				tx.InsertEvent(s.tallied(key, t))
			}
			return nil
		})
		if err != nil {
			failures = append(failures, err)
			s.tallies.add(counted)
		}
	}
	return errors.Join(failures...)
}

// tallied returns the event of what was refused until now. It has the time of its
// id, by which lists are cut at a time.
func (s *Service) tallied(key tallyKey, t tally) rolecall.Event {
	now := s.now()
	event := rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](now), Type: key.kind, OccurredAt: now,
		Actor: key.actor, Subject: aboutUser(key.subject), Source: t.source, Reason: key.reason,
	}
	if key.subject.IsZero() {
		event.Subject = aboutTenant(key.tenant)
	}
	if t.count > 1 {
		event.Reason = fmt.Sprintf("%s, %d times", key.reason, t.count)
	}
	return event
}

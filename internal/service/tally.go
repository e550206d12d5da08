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
	pending map[tallyKey]*tally
}

type tallyKey struct {
	tenant  rolecall.TenantID
	kind    rolecall.EventType
	actor   rolecall.UserID // zero: nobody signed in
	subject rolecall.UserID // zero: the tenant
	reason  string
}

type tally struct {
	count  int
	source string // of the first
	at     rolecall.Time
}

// tally counts a refusal. Those of unknown tenants are nobody's.
func (s *Service) tally(tenant rolecall.TenantID, kind rolecall.EventType, actor, subject rolecall.UserID, reason, source string) {
	if tenant.IsZero() {
		return
	}
	t, key := &s.tallies, tallyKey{tenant, kind, actor, subject, reason}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		t.pending = map[tallyKey]*tally{}
	}
	if _, ok := t.pending[key]; !ok && len(t.pending) >= tallyMost {
		key.actor, key.subject, source = rolecall.UserID{}, rolecall.UserID{}, ""
	}
	if t.pending[key] == nil {
		t.pending[key] = &tally{source: source, at: s.now()}
	}
	t.pending[key].count++
}

// Refused records that the caller was refused an operation for the reason, a
// problem code.
func (s *Service) Refused(c Call, subject rolecall.UserID, operation, code string) {
	s.tally(c.Tenant.ID, rolecall.EventRefused, c.User.ID, subject, operation+": "+code, c.Source)
}

// Flush records what was refused since the last time. What cannot be recorded is
// kept for the next time.
func (s *Service) Flush(ctx context.Context) error {
	s.tallies.mu.Lock()
	pending := s.tallies.pending
	s.tallies.pending = nil
	s.tallies.mu.Unlock()

	byTenant := map[rolecall.TenantID][]tallyKey{}
	for key := range pending {
		byTenant[key.tenant] = append(byTenant[key.tenant], key)
	}
	var failures []error
	for tenant, keys := range byTenant {
		err := s.store.Update(ctx, tenant, func(tx Tx) error {
			for _, key := range keys {
				tx.InsertEvent(s.tallied(key, pending[key]))
			}
			return nil
		})
		if err != nil && !errors.Is(err, rolecall.ErrNotFound) { // ErrNotFound: the tenant is gone
			failures = append(failures, err)
			s.keepTallies(keys, pending)
		}
	}
	return errors.Join(failures...)
}

func (s *Service) keepTallies(keys []tallyKey, counted map[tallyKey]*tally) {
	t := &s.tallies
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		t.pending = map[tallyKey]*tally{}
	}
	for _, key := range keys {
		if later := t.pending[key]; later != nil {
			counted[key].count += later.count
		}
		if len(t.pending) < tallyMost {
			t.pending[key] = counted[key]
		}
	}
}

func (s *Service) tallied(key tallyKey, t *tally) rolecall.Event {
	event := rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](s.now()), Type: key.kind, OccurredAt: t.at,
		Actor:   rolecall.Actor{Type: rolecall.ActorUser, ID: key.actor, Via: "http"},
		Subject: aboutUser(key.subject), Source: t.source, Reason: key.reason,
	}
	if key.actor.IsZero() {
		event.Actor.Type = rolecall.ActorAnonymous
	}
	if key.subject.IsZero() {
		event.Subject = aboutTenant(key.tenant)
	}
	if t.count > 1 {
		event.Reason = fmt.Sprintf("%s, %d times", key.reason, t.count)
	}
	return event
}

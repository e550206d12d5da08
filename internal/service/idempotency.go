package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// flightWait bounds how long a request waits for another with its key.
	flightWait = 5 * time.Second

	// defaultKeyLimit bounds the keys that a user can have stored at once.
	defaultKeyLimit = 100_000
)

// Key is an idempotency key as it was sent and the digest of its request.
type Key struct {
	Text        string
	Fingerprint []byte
}

// Created is what a create made, now or when the same request first came.
type Created[T any] struct {
	Value    T
	Replayed bool
	Erased   bool // only the id of Value is left
}

// creation is what a create is about to write.
type creation struct {
	operation string
	location  string
	id        rolecall.AnyID
	value     any // marshals to the resource as it is kept for a replay
	event     *rolecall.Event
	insert    func(*store.Tx) error
	tenant    rolecall.TenantID // where it is written; zero: the caller's
}

// create writes the key, the resource and the event in one transaction. If the
// key was claimed before, it returns what is stored for it instead.
func (s *Service) create(ctx context.Context, c Call, key Key, n creation) (*rolecall.IdempotencyKey, error) {
	resource, err := json.Marshal(n.value)
	if err != nil {
		return nil, err
	}
	n.event.Values = &rolecall.EventValues{After: resource}
	claim := rolecall.IdempotencyKey{
		UserID: c.User.ID, Operation: n.operation,
		Hash: secret.Digest([]byte(key.Text)), Fingerprint: key.Fingerprint,
		ExpiresAt: s.now().Add(c.Tenant.Settings.KeyLifetime()),
		Status:    201, Location: n.location, ResourceID: n.id, Resource: resource,
	}
	if c.Tenant.ID.IsZero() { // about tenants, and in none
		claim.UserID, claim.Operator = rolecall.UserID{}, c.Operator.ID
	}
	waited, leave, err := s.flights.enter(ctx, c.Tenant.ID.String()+c.User.ID.String()+n.operation+string(claim.Hash))
	if err != nil {
		return nil, err
	}
	defer leave()
	if waited {
		if first, err := s.replay(ctx, c, claim); first != nil || err != nil {
			return first, err
		}
	}
	if err := s.spendKey(ctx, c, claim); err != nil {
		if first, replayErr := s.replay(ctx, c, claim); first != nil || replayErr != nil {
			return first, replayErr
		}
		return nil, err
	}
	for range attempts {
		err := s.store.Update(ctx, cmp.Or(n.tenant, c.Tenant.ID), func(tx *store.Tx) error {
			tx.InsertKey(claim)
			if err := n.insert(tx); err != nil {
				return err
			}
			tx.InsertEvent(*n.event)
			return nil
		})
		if !errors.Is(err, rolecall.ErrKeyClaimed) {
			return nil, err
		}
		if first, err := s.replay(ctx, c, claim); first != nil || err != nil {
			return first, err
		}
	}
	return nil, rolecall.ErrUnavailable
}

// replay returns what is stored for the key of the claim, or nil if there is
// nothing any more. It returns ErrKeyReused if the key belongs to another
// request.
func (s *Service) replay(ctx context.Context, c Call, claim rolecall.IdempotencyKey) (*rolecall.IdempotencyKey, error) {
	var first rolecall.IdempotencyKey
	// Not a view: an update answers with nothing that can still be lost.
	err := s.store.Update(ctx, c.Tenant.ID, func(tx *store.Tx) (err error) {
		first, err = tx.Key(claim)
		return err
	})
	if ok, err := found(err); !ok {
		return nil, err
	}
	if now := s.now(); first.ExpiresAt <= now {
		return nil, s.store.Update(ctx, c.Tenant.ID, func(tx *store.Tx) error {
			tx.DeleteKey(claim, now)
			return nil
		})
	}
	if string(first.Fingerprint) != string(claim.Fingerprint) {
		return nil, rolecall.ErrKeyReused
	}
	return &first, nil
}

// recreated returns what a create answers: value, or what a replay found.
func recreated[T any](first *rolecall.IdempotencyKey, value T, identified func(rolecall.AnyID) T) (Created[T], error) {
	switch {
	case first == nil:
		return Created[T]{Value: value}, nil
	case first.Resource == nil:
		return Created[T]{Value: identified(first.ResourceID), Replayed: true, Erased: true}, nil
	}
	replayed := Created[T]{Replayed: true}
	err := json.Unmarshal(first.Resource, &replayed.Value)
	return replayed, err
}

// flights lets the repeats of a request that is still running wait for it,
// instead of each holding a connection of the store.
type flights struct {
	mu      sync.Mutex
	running map[string]chan struct{}
}

// enter returns when no other request of the scope is running here; leave must be
// called then. It returns ErrKeyInProgress after five seconds.
func (f *flights) enter(ctx context.Context, scope string) (waited bool, leave func(), err error) {
	var timeout <-chan time.Time
	for {
		f.mu.Lock()
		done, busy := f.running[scope]
		if !busy {
			done = make(chan struct{})
			if f.running == nil {
				f.running = map[string]chan struct{}{}
			}
			f.running[scope] = done
			f.mu.Unlock()
			return waited, func() {
				f.mu.Lock()
				delete(f.running, scope)
				f.mu.Unlock()
				close(done)
			}, nil
		}
		f.mu.Unlock()
		if timeout == nil {
			timer := time.NewTimer(flightWait)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-done:
			waited = true
		case <-timeout:
			return false, nil, rolecall.ErrKeyInProgress
		case <-ctx.Done():
			return false, nil, ctx.Err()
		}
	}
}

// keyBudgets remember how many more keys each user may store before they are
// counted again, so that the bound costs a create nothing.
type keyBudgets = otter.Cache[rolecall.UserID, *atomic.Int64]

func newKeyBudgets() *keyBudgets {
	return otter.Must(&otter.Options[rolecall.UserID, *atomic.Int64]{MaximumSize: 10_000})
}

// spendKey returns ErrTooManyKeys if the caller has too many keys stored. The
// count is exact for one node and may be passed by as many as other nodes write
// meanwhile.
func (s *Service) spendKey(ctx context.Context, c Call, claim rolecall.IdempotencyKey) error {
	if budget, ok := s.budgets.GetIfPresent(c.User.ID); ok && budget.Add(-1) >= 0 {
		return nil
	}
	var stored int
	err := s.view(ctx, c, func(tx *store.Tx) (err error) {
		stored, err = tx.CountKeys(claim, s.keyLimit)
		return err
	})
	if err != nil {
		return err
	}
	if stored >= s.keyLimit {
		return rolecall.ErrTooManyKeys
	}
	budget := &atomic.Int64{}
	budget.Store(int64(s.keyLimit - stored - 1))
	s.budgets.Set(c.User.ID, budget)
	return nil
}

// Package idempotency makes requests that create an object safe to retry: requests with
// the same idempotency key create one object. It has the stored keys, the mutex of
// requests with the same key, and the limit of keys per user. It may import the store and
// secret.
package idempotency

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// defaultKeyLimit is the maximum number of stored keys per user.
	defaultKeyLimit = 100_000

	// attempts is the maximum number of times that a create is tried while other requests
	// hold its key.
	attempts = 100
)

// Key is the idempotency key of a request and the digest of the request.
type Key struct {
	Text        string
	Fingerprint []byte
}

// Owner is the caller that sent a key.
type Owner struct {
	Tenant    rolecall.TenantID // zero: an operator creates a tenant
	User      rolecall.UserID
	Operator  rolecall.OperatorKeyID
	KeysUntil rolecall.Time // expiry of a new key
}

// Created is the result of a create or of its replay.
type Created[T any] struct {
	Value    T
	Replayed bool
	Erased   bool // the object was erased; only the id of Value is set
}

// Creation is the object that a create writes.
type Creation struct {
	Operation string
	Location  string
	ID        rolecall.AnyID
	Value     any // marshals to the resource that is stored for a replay
	Event     *rolecall.Event
	Insert    func(*store.Tx) error
	Tenant    rolecall.TenantID // the tenant to write to; zero: that of the owner
}

// Keys runs each create once per idempotency key. It is safe for concurrent use.
type Keys struct {
	store   *store.Store
	now     func() rolecall.Time
	limit   int
	running keyedMutex
	// budgets has the number of keys that each user may still store before the user's
	// stored keys are counted again. So most creates do not count the keys.
	budgets *otter.Cache[rolecall.UserID, *atomic.Int64]
}

// New returns Keys with a limit of stored keys per user. Zero means 100,000.
func New(s *store.Store, now func() rolecall.Time, limit int) *Keys {
	return &Keys{
		store: s, now: now, limit: cmp.Or(limit, defaultKeyLimit),
		budgets: otter.Must(&otter.Options[rolecall.UserID, *atomic.Int64]{MaximumSize: 10_000}),
	}
}

// Create writes the key, the resource and the event in one transaction. If the key
// is stored already, it returns the stored key instead. It returns ErrKeyReused,
// ErrKeyInProgress and ErrTooManyKeys.
func (k *Keys) Create(ctx context.Context, o Owner, key Key, n Creation) (*rolecall.IdempotencyKey, error) {
	resource, err := json.Marshal(n.Value)
	if err != nil {
		return nil, err
	}
	n.Event.Values = &rolecall.EventValues{After: resource}
	claim := rolecall.IdempotencyKey{
		UserID: o.User, Operation: n.Operation,
		Hash: secret.Digest([]byte(key.Text)), Fingerprint: key.Fingerprint,
		ExpiresAt: o.KeysUntil,
		Status:    201, Location: n.Location, ResourceID: n.ID, EventID: n.Event.ID,
	}
	if o.Tenant.IsZero() {
		claim.UserID, claim.Operator, claim.Resource = rolecall.UserID{}, o.Operator, resource
	}
	waited, unlock, err := k.running.lock(ctx, o.Tenant.String()+o.User.String()+n.Operation+string(claim.Hash))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if waited {
		if first, err := k.replay(ctx, o, claim); first != nil || err != nil {
			return first, err
		}
	}
	if err := k.checkLimit(ctx, o, claim); err != nil {
		if first, replayErr := k.replay(ctx, o, claim); first != nil || replayErr != nil {
			return first, replayErr
		}
		return nil, err
	}
	for range attempts {
		err := k.store.Update(ctx, cmp.Or(n.Tenant, o.Tenant), func(tx *store.Tx) error {
			tx.InsertKey(claim)
			if err := n.Insert(tx); err != nil {
				return err
			}
			tx.InsertEvent(*n.Event)
			return nil
		})
		if !errors.Is(err, rolecall.ErrKeyClaimed) {
			return nil, err
		}
		if first, err := k.replay(ctx, o, claim); first != nil || err != nil {
			return first, err
		}
	}
	return nil, rolecall.ErrUnavailable
}

// replay returns the stored key of the claim, or nil if it does not exist. It deletes an
// expired key and returns nil. It returns ErrKeyReused if the key belongs to another request.
func (k *Keys) replay(ctx context.Context, o Owner, claim rolecall.IdempotencyKey) (*rolecall.IdempotencyKey, error) {
	var first rolecall.IdempotencyKey
	// Not a View: the result of an Update contains only durable data.
	err := k.store.Update(ctx, o.Tenant, func(tx *store.Tx) (err error) {
		first, err = tx.Key(claim)
		return err
	})
	if errors.Is(err, rolecall.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if now := k.now(); first.ExpiresAt <= now {
		return nil, k.store.Update(ctx, o.Tenant, func(tx *store.Tx) error {
			tx.DeleteKey(claim, now)
			return nil
		})
	}
	if string(first.Fingerprint) != string(claim.Fingerprint) {
		return nil, rolecall.ErrKeyReused
	}
	return &first, nil
}

// Recreated returns value, or the stored result if first is not nil, which means a
// replay.
func Recreated[T any](first *rolecall.IdempotencyKey, value T, identified func(rolecall.AnyID) T) (Created[T], error) {
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

// checkLimit returns ErrTooManyKeys if the owner has too many stored keys. The limit is
// exact on one node. It can be exceeded by the keys that other nodes write at the
// same time.
func (k *Keys) checkLimit(ctx context.Context, o Owner, claim rolecall.IdempotencyKey) error {
	if budget, ok := k.budgets.GetIfPresent(o.User); ok && budget.Add(-1) >= 0 {
		return nil
	}
	var stored int
	err := k.store.View(ctx, o.Tenant, func(tx *store.Tx) (err error) {
		stored, err = tx.CountKeys(claim, k.limit)
		return err
	})
	if err != nil {
		return err
	}
	if stored >= k.limit {
		return rolecall.ErrTooManyKeys
	}
	budget := &atomic.Int64{}
	budget.Store(int64(k.limit - stored - 1))
	k.budgets.Set(o.User, budget)
	return nil
}

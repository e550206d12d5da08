// Package idempotency makes requests that create an object safe to retry: requests with
// the same idempotency key create one object. It stores the keys, makes concurrent
// requests with the same key wait for each other, and limits the number of keys per user.
// It may import packages store and secret.
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

	// attempts is the maximum number of times that claim tries its transaction while
	// other requests claim the same key.
	attempts = 100
)

// Key is the idempotency key of a request, with a digest of the request. The digest shows
// whether another request with the same key is a repetition.
type Key struct {
	Text        string
	Fingerprint []byte
}

// Owner is the caller that sent a key. The same key text of two owners is two keys.
type Owner struct {
	Tenant    rolecall.TenantID // tenant of the caller; zero: an operator creates a tenant
	User      rolecall.UserID
	Operator  rolecall.OperatorKeyID
	KeysUntil rolecall.Time // time at which a new key expires
}

// Created is the result of a request that creates an object.
type Created[T any] struct {
	Value    T
	Replayed bool
	Erased   bool // the object was erased since, so only the id in Value is set
}

// Creation describes the object to create and how to write it.
type Creation[T any] struct {
	Operation string
	ID        rolecall.AnyID
	Value     T // its JSON is stored and is the result of repeated requests, so it must not contain a secret
	Event     *rolecall.Event
	Insert    func(*store.Tx) error
	OnlyID    func(rolecall.AnyID) T // returns the result of repeated requests if the object was erased; nil: it is ErrNotFound
	Tenant    rolecall.TenantID      // tenant to write to; zero: the tenant of the owner
}

// Keys creates objects so that each idempotency key creates one object. It is safe for
// concurrent use.
type Keys struct {
	store   *store.Store
	now     func() rolecall.Time
	limit   int
	running keyedMutex
	// budgets has, for each user, the number of keys that the user may still store before
	// checkLimit counts the user's stored keys again. So most requests need no count.
	budgets *otter.Cache[rolecall.UserID, *atomic.Int64]
}

// New returns Keys. The argument limit is the maximum number of stored keys per user. If
// limit is zero, the maximum is 100,000.
func New(s *store.Store, now func() rolecall.Time, limit int) *Keys {
	return &Keys{
		store: s, now: now, limit: cmp.Or(limit, defaultKeyLimit),
		budgets: otter.Must(&otter.Options[rolecall.UserID, *atomic.Int64]{MaximumSize: 10_000}),
	}
}

// Create writes the key, the object and the event in one transaction, and returns the
// object. If the key is already stored and unexpired, Create writes nothing and returns the
// object that the first request has created. It returns ErrKeyReused if the stored key
// belongs to a different request, ErrKeyInProgress if another request with the key takes too
// long, and ErrTooManyKeys if the user has too many stored keys. If the object of the first
// request was erased, Create returns the result of OnlyID. It also returns the errors of Insert.
func Create[T any](ctx context.Context, k *Keys, o Owner, key Key, n Creation[T]) (created Created[T], err error) {
	resource, err := json.Marshal(n.Value)
	if err != nil {
		return created, err
	}
	n.Event.Values = &rolecall.EventValues{After: resource}
	claim := rolecall.IdempotencyKey{
		UserID: o.User, Operation: n.Operation,
		Hash: secret.Digest([]byte(key.Text)), Fingerprint: key.Fingerprint,
		ExpiresAt: o.KeysUntil, ResourceID: n.ID, EventID: n.Event.ID,
	}
	if o.Tenant.IsZero() {
		claim.UserID, claim.Operator, claim.Resource = rolecall.UserID{}, o.Operator, resource
	}
	first, err := k.claim(ctx, o, claim, cmp.Or(n.Tenant, o.Tenant), func(tx *store.Tx) error {
		if err := n.Insert(tx); err != nil {
			return err
		}
		tx.InsertEvent(*n.Event)
		return nil
	})
	switch {
	case err != nil:
		return created, err
	case first == nil:
		return Created[T]{Value: n.Value}, nil
	case first.Resource != nil:
		created.Replayed = true
		return created, json.Unmarshal(first.Resource, &created.Value)
	case n.OnlyID == nil:
		return created, rolecall.ErrNotFound
	}
	return Created[T]{Value: n.OnlyID(first.ResourceID), Replayed: true, Erased: true}, nil
}

// claim stores the key and calls insert, in one transaction of the tenant, and returns nil.
// If the key is already stored, claim returns the stored key and writes nothing.
func (k *Keys) claim(ctx context.Context, o Owner, claim rolecall.IdempotencyKey, tenant rolecall.TenantID, insert func(*store.Tx) error) (*rolecall.IdempotencyKey, error) {
	waited, unlock, err := k.running.lock(ctx, o.Tenant.String()+o.User.String()+claim.Operation+string(claim.Hash))
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
		err := k.store.Update(ctx, tenant, func(tx *store.Tx) error {
			tx.InsertKey(claim)
			return insert(tx)
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

// replay returns the stored key that is the same as claim. It returns nil if no such key
// is stored. If the stored key has expired, replay deletes it and returns nil. It returns
// ErrKeyReused if the stored key belongs to a different request.
func (k *Keys) replay(ctx context.Context, o Owner, claim rolecall.IdempotencyKey) (*rolecall.IdempotencyKey, error) {
	var first rolecall.IdempotencyKey
	// This must be an Update, although it writes nothing. Only an Update is sure to read
	// data that is durable.
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

// checkLimit returns ErrTooManyKeys if the owner already has the maximum number of stored
// keys. The owner can still exceed the maximum, because concurrent requests and other
// nodes can store keys after this node has counted them.
func (k *Keys) checkLimit(ctx context.Context, o Owner, claim rolecall.IdempotencyKey) error {
	if budget, ok := k.budgets.GetIfPresent(o.User); ok && budget.Add(-1) >= 0 {
		return nil
	}
	stored, err := store.Read(ctx, k.store, o.Tenant, func(tx *store.Tx) (int, error) { return tx.CountKeys(claim, k.limit) })
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

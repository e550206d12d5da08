package node_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const aDay = 24 * time.Hour

func TestPurgeRemovesOnlyExpiredRows(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for range 700 { // more than one batch
			f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
				tx.InsertKey(rolecall.IdempotencyKey{UserID: f.owner.User.ID, Operation: "old", Hash: secret.NewKey(), Fingerprint: secret.NewKey(), ExpiresAt: start.Add(aDay), ResourceID: rolecall.NewID[any](start)})
				return nil
			}))
		}
		ended := f.signIn("owner").Token
		gone := f.user("gone")
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, gone.ID, nil))
		f.is(f.guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)

		f.clock.advance(8 * aDay)
		f.owner = f.call(f.signIn("owner"))
		key := newKey()
		draft := rolecall.UserDraft{Email: address("kept"), Name: "Kept"}
		kept, err := f.Directory.CreateUser(f.Context(), f.owner, key, draft)
		f.ok(err)
		f.ok(f.Node.Purge(f.Context()))

		f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			if n, err := tx.CountKeys(rolecall.IdempotencyKey{UserID: f.owner.User.ID}, 1000); err != nil || n != 1 {
				t.Errorf("%d keys are left, %v", n, err)
			}
			if _, err := tx.SessionByToken(ended.Hash()); !errors.Is(err, rolecall.ErrNotFound) {
				t.Errorf("an ended session is there: %v", err)
			}
			return nil
		}))
		again, err := f.Directory.CreateUser(f.Context(), f.owner, key, draft)
		f.ok(err)
		if !again.Replayed || again.Value.ID != kept.Value.ID {
			t.Errorf("a live key was removed: %v", again)
		}
		if asked := f.db.during(func() { f.ok(f.Node.Purge(f.Context())) }); len(asked) > 10 {
			t.Errorf("with nothing to do the store was asked %q", asked)
		}
	})
}

func TestATenantThatWasDeletedIsPurgedAndItsNameComesBackLater(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		other := f.newTenant("other")
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		create := func() error {
			return errorOf3(f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: "other", Owner: rolecall.UserDraft{Email: address("owner"), Name: "Olga Owner"}}, password))
		}
		f.is(create(), rolecall.ErrTenantExists)
		f.clock.advance(aDay + time.Minute) // after this, no node can restore it
		f.ok(f.Node.Purge(f.Context()))
		f.ok(f.store.View(f.Context(), other.ID, func(tx *store.Tx) error {
			if _, _, err := tx.UserByEmail(address("owner")); !errors.Is(err, rolecall.ErrNotFound) {
				t.Errorf("a user of a deleted tenant is there: %v", err)
			}
			return nil
		}))
		if left := f.tenantsToPurge(); len(left) != 0 {
			t.Errorf("left to purge: %v", left)
		}
		f.clock.advance(29*aDay - time.Minute - time.Second)
		f.is(create(), rolecall.ErrTenantExists)
		f.clock.advance(2 * time.Second)
		f.ok(f.Node.Purge(f.Context()))
		f.ok(create())
		f.ok(errorOf(f.SignIn.Login(f.Context(), f.attempt(), address("owner"), password)))
	})
}

func errorOf3[T, U any](_ T, _ U, err error) error { return err }

// TestPurgeDuringCreations runs purges without a pause while keys are used at the
// moment of their expiry. No key has two effects, and no key is rejected.
func TestPurgeDuringCreations(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.settings(rolecall.TenantSettings{IdempotencyKept: new(rolecall.Seconds(1))})
		f.owner.Tenant = f.tenant
		ctx, stop := context.WithCancel(f.Context())
		var running sync.WaitGroup
		running.Go(func() {
			for ctx.Err() == nil {
				if err := f.Node.Purge(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
		key := newKey()
		for range 30 {
			made := map[rolecall.UserID]bool{}
			var mu sync.Mutex
			draft := rolecall.UserDraft{Email: newKey().Text + "@example.com", Name: "Swept"}
			key.Fingerprint = secret.Digest([]byte(draft.Email))
			var creating sync.WaitGroup
			for range 8 {
				creating.Go(func() {
					created, err := f.Directory.CreateUser(f.Context(), f.owner, key, draft)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					made[created.Value.ID] = true
				})
			}
			creating.Wait()
			if len(made) != 1 {
				t.Errorf("one key made %d users", len(made))
			}
			f.clock.advance(time.Second)
		}
		stop()
		running.Wait()
	})
}

func TestTheBackgroundWorkEndsWithItsContext(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ctx, stop := context.WithCancel(f.Context())
		done := make(chan error, 1)
		go func() { done <- f.Node.Run(ctx) }()
		stop()
		f.ok(<-done)
	})
}

// broken is a store in which writes of one tenant fail.
type broken struct {
	store.Database
	tenant rolecall.TenantID
}

var errBroken = errors.New("a page of this tenant cannot be read")

// Update fails for the tenant.
func (s broken) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	if tenant == s.tenant {
		return errBroken
	}
	return s.Database.Update(ctx, tenant, fn)
}

func TestAFailingPurgeOfOneTenantDoesNotBlockOthers(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for _, name := range []string{"first", "second"} {
			f.newTenant(name)
			f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, name, nil))
		}
		living := f.newTenant("zeta") // sorted after acme, whose purge fails
		expired := rolecall.IdempotencyKey{UserID: f.owner.User.ID, Operation: "old", Hash: secret.NewKey(), Fingerprint: secret.NewKey(), ExpiresAt: start, ResourceID: rolecall.NewID[any](start)}
		f.ok(f.store.Update(f.Context(), living.ID, func(tx *store.Tx) error {
			tx.InsertKey(expired)
			return nil
		}))
		f.clock.advance(aDay + time.Minute)
		deleted := f.tenantsToPurge()
		if len(deleted) != 2 {
			t.Fatalf("there are %d tenants to purge", len(deleted))
		}
		for _, failing := range []rolecall.TenantID{deleted[0], f.tenant.ID} {
			peer := node.New(broken{f.db, failing}, access.Options{Clock: f.clock.Now, Keys: f.keys})
			f.is(peer.Purge(f.Context()), errBroken)
		}
		if left := f.tenantsToPurge(); len(left) != 0 {
			t.Errorf("deleted tenants were not purged: %v", left)
		}
		f.ok(f.store.View(f.Context(), living.ID, func(tx *store.Tx) error {
			if _, err := tx.Key(expired); !errors.Is(err, rolecall.ErrNotFound) {
				t.Errorf("an expired key of a later tenant is there: %v", err)
			}
			return nil
		}))
	})
}

func TestADeletedTenantIsKeptForADayAndThenPurged(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		other := f.newTenant("other")
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		owner := func() error {
			return f.store.View(f.Context(), other.ID, func(tx *store.Tx) error {
				_, _, err := tx.UserByEmail(address("owner"))
				return err
			})
		}
		f.clock.advance(aDay + time.Minute - time.Microsecond)
		f.ok(f.Node.Purge(f.Context()))
		f.ok(owner())
		f.clock.advance(time.Microsecond)
		f.ok(f.Node.Purge(f.Context()))
		f.is(owner(), rolecall.ErrNotFound)
		if left := f.tenantsToPurge(); len(left) != 0 {
			t.Errorf("left to purge: %v", left)
		}
	})
}

// tenantsToPurge returns the deleted tenants that still have rows.
func (f *fixture) tenantsToPurge() (left []rolecall.TenantID) {
	f.Helper()
	f.ok(f.store.View(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		left, err = tx.TenantsToPurge(rolecall.Never, 10)
		return err
	}))
	return left
}

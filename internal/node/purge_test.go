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
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

func TestPurgeRemovesOnlyExpiredRows(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for range 700 { // more than one batch
			f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
				tx.InsertKey(rolecall.IdempotencyKey{UserID: f.Owner.User.ID, Operation: "old", Hash: secret.NewKey(), Fingerprint: secret.NewKey(), ExpiresAt: nodetest.Start.Add(nodetest.Day), ResourceID: rolecall.NewID[any](nodetest.Start)})
				return nil
			}))
		}
		ended := f.LogIn("owner").Token
		gone := f.NewUser("gone")
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, gone.ID, nil))
		f.Is(f.Guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)

		f.Clock.Advance(8 * nodetest.Day)
		f.Owner = f.CallerOf(f.LogIn("owner"))
		key := nodetest.NewKey()
		draft := rolecall.UserDraft{Email: nodetest.Address("kept"), Name: "Kept"}
		kept, err := f.Directory.CreateUser(f.Context(), f.Owner, key, draft)
		f.OK(err)
		f.OK(f.Node.Purge(f.Context()))

		f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			if n, err := tx.CountKeys(rolecall.IdempotencyKey{UserID: f.Owner.User.ID}, 1000); err != nil || n != 1 {
				t.Errorf("%d keys are left, %v", n, err)
			}
			if _, err := tx.SessionByToken(ended.Hash()); !errors.Is(err, rolecall.ErrNotFound) {
				t.Errorf("an ended session is there: %v", err)
			}
			return nil
		}))
		again, err := f.Directory.CreateUser(f.Context(), f.Owner, key, draft)
		f.OK(err)
		if !again.Replayed || again.Value.ID != kept.Value.ID {
			t.Errorf("a live key was removed: %v", again)
		}
		if asked := f.DB.During(func() { f.OK(f.Node.Purge(f.Context())) }); len(asked) > 10 {
			t.Errorf("with nothing to do the store was asked %q", asked)
		}
	})
}

func TestATenantThatWasDeletedIsPurgedAndItsNameComesBackLater(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		other := f.NewTenant("other")
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		create := func() error {
			return nodetest.ErrorOf3(f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: "other", Owner: rolecall.UserDraft{Email: nodetest.Address("owner"), Name: "Olga Owner"}}, nodetest.Password))
		}
		f.Is(create(), rolecall.ErrTenantExists)
		f.Clock.Advance(nodetest.Day + time.Minute) // after this, no node can restore it
		f.OK(f.Node.Purge(f.Context()))
		f.OK(f.Store.View(f.Context(), other.ID, func(tx *store.Tx) error {
			if _, _, err := tx.UserByEmail(nodetest.Address("owner")); !errors.Is(err, rolecall.ErrNotFound) {
				t.Errorf("a user of a deleted tenant is there: %v", err)
			}
			return nil
		}))
		if left := tenantsToPurge(f); len(left) != 0 {
			t.Errorf("left to purge: %v", left)
		}
		f.Clock.Advance(29*nodetest.Day - time.Minute - time.Second)
		f.Is(create(), rolecall.ErrTenantExists)
		f.Clock.Advance(2 * time.Second)
		f.OK(f.Node.Purge(f.Context()))
		f.OK(create())
		f.OK(nodetest.ErrorOf(f.SignIn.Login(f.Context(), f.Attempt(), nodetest.Address("owner"), nodetest.Password)))
	})
}

// TestPurgeDuringCreations runs purges without a pause while keys are used at the
// moment of their expiry. No key has two effects, and no key is rejected.
func TestPurgeDuringCreations(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.SetSettings(rolecall.TenantSettings{IdempotencyKept: new(rolecall.Seconds(1))})
		f.Owner.Tenant = f.Tenant
		ctx, stop := context.WithCancel(f.Context())
		var running sync.WaitGroup
		running.Go(func() {
			for ctx.Err() == nil {
				if err := f.Node.Purge(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
		key := nodetest.NewKey()
		for range 30 {
			made := map[rolecall.UserID]bool{}
			var mu sync.Mutex
			draft := rolecall.UserDraft{Email: nodetest.NewKey().Text + "@example.com", Name: "Swept"}
			key.Fingerprint = secret.Digest([]byte(draft.Email))
			var creating sync.WaitGroup
			for range 8 {
				creating.Go(func() {
					created, err := f.Directory.CreateUser(f.Context(), f.Owner, key, draft)
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
			f.Clock.Advance(time.Second)
		}
		stop()
		running.Wait()
	})
}

func TestAFailingPurgeOfOneTenantDoesNotBlockOthers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for _, name := range []string{"first", "second"} {
			f.NewTenant(name)
			f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, name, nil))
		}
		living := f.NewTenant("zeta") // sorted after acme, whose purge fails
		expired := rolecall.IdempotencyKey{UserID: f.Owner.User.ID, Operation: "old", Hash: secret.NewKey(), Fingerprint: secret.NewKey(), ExpiresAt: nodetest.Start, ResourceID: rolecall.NewID[any](nodetest.Start)}
		f.OK(f.Store.Update(f.Context(), living.ID, func(tx *store.Tx) error {
			tx.InsertKey(expired)
			return nil
		}))
		f.Clock.Advance(nodetest.Day + time.Minute)
		deleted := tenantsToPurge(f)
		if len(deleted) != 2 {
			t.Fatalf("there are %d tenants to purge", len(deleted))
		}
		for _, failing := range []rolecall.TenantID{deleted[0], f.Tenant.ID} {
			peer := node.New(nodetest.Broken{Database: f.DB, Tenant: failing}, access.Options{Clock: f.Clock.Now, Keys: f.Keys})
			f.Is(peer.Purge(f.Context()), nodetest.ErrBroken)
		}
		if left := tenantsToPurge(f); len(left) != 0 {
			t.Errorf("deleted tenants were not purged: %v", left)
		}
		f.OK(f.Store.View(f.Context(), living.ID, func(tx *store.Tx) error {
			if _, err := tx.Key(expired); !errors.Is(err, rolecall.ErrNotFound) {
				t.Errorf("an expired key of a later tenant is there: %v", err)
			}
			return nil
		}))
	})
}

func TestADeletedTenantIsKeptForADayAndThenPurged(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		other := f.NewTenant("other")
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		owner := func() error {
			return f.Store.View(f.Context(), other.ID, func(tx *store.Tx) error {
				_, _, err := tx.UserByEmail(nodetest.Address("owner"))
				return err
			})
		}
		f.Clock.Advance(nodetest.Day + time.Minute - time.Microsecond)
		f.OK(f.Node.Purge(f.Context()))
		f.OK(owner())
		f.Clock.Advance(time.Microsecond)
		f.OK(f.Node.Purge(f.Context()))
		f.Is(owner(), rolecall.ErrNotFound)
		if left := tenantsToPurge(f); len(left) != 0 {
			t.Errorf("left to purge: %v", left)
		}
	})
}

// tenantsToPurge returns the deleted tenants that still have rows.
func tenantsToPurge(f *nodetest.Fixture) (left []rolecall.TenantID) {
	f.Helper()
	f.OK(f.Store.View(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		left, err = tx.TenantsToPurge(rolecall.Never, 10)
		return err
	}))
	return left
}

package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/store"
)

// dying is a store on which only a limited number of updates succeed, as if the process
// had ended after them.
type dying struct {
	store.Database
	left int
}

// Update returns an error when no updates are left.
func (d *dying) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	if d.left--; d.left < 0 {
		return errBroken
	}
	return d.Database.Update(ctx, tenant, fn)
}

// talkedAbout creates a user with more events than one step of an erasure handles.
func (f *fixture) talkedAbout(name string) rolecall.User {
	f.Helper()
	user := f.user(name)
	// The events go directly to the database, because f.db rejects events without a
	// change.
	f.ok(store.New(f.db.Database, nil).Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		for i := range 1200 {
			tx.InsertEvent(rolecall.Event{
				ID: rolecall.NewID[rolecall.Event](start), Type: rolecall.EventUserUpdated, OccurredAt: start,
				Actor: rolecall.Actor{Type: rolecall.ActorOperator, Via: "command"}, Subject: rolecall.About(user.ID),
				Members: []string{"name"}, Source: "192.0.2.1", Reason: fmt.Sprintf("reason %d", i), Values: &rolecall.EventValues{After: []byte(`{"name":"Ada"}`)},
			})
		}
		return nil
	}))
	return user
}

// saying returns the number of events about a user, and the number of those events that
// have content.
func (f *fixture) saying(id rolecall.UserID) (all, saying int) {
	f.Helper()
	f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		q := rolecall.EventQuery{Subject: rolecall.AnyID(id), Limit: rolecall.MaxLimit}
		for {
			page, err := tx.Events(q)
			for _, e := range page.Items {
				all++
				if e.Reason != "" && e.Type != rolecall.EventUserErased || e.Values != nil {
					saying++
				}
			}
			if q.After = page.Next; err != nil || page.Next == nil {
				return err
			}
		}
	}))
	return all, saying
}

func TestAnInterruptedErasureIsFinishedInTheBackground(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		for steps, left := range []int{1201, 701, 201} { // including the creation
			user := f.talkedAbout(fmt.Sprintf("ada-%d", steps))
			peer := node.New(&dying{f.db, 1 + steps}, access.Options{Clock: f.clock.Now, Keys: f.keys, Logger: slog.New(slog.DiscardHandler)})
			f.ok(peer.Directory.EraseUser(f.Context(), f.owner, user.ID, ""))
			f.is(errorOf(f.Directory.User(f.Context(), f.owner, user.ID)), rolecall.ErrNotFound)
			f.is(errorOf(f.Directory.RestoreUser(f.Context(), f.owner, user.ID)), rolecall.ErrNotFound)
			if _, saying := f.saying(user.ID); steps > 0 && saying > left {
				t.Errorf("after %d steps %d events say something", steps, saying)
			}
			f.ok(f.Node.Purge(f.Context()))
			f.clock.advance(time.Minute)
			if _, saying := f.saying(user.ID); saying == 0 {
				t.Error("nothing was left to finish, so nothing can be said")
			}
			f.ok(f.Node.Purge(f.Context()))
			if all, saying := f.saying(user.ID); all != 1202 || saying != 0 {
				t.Errorf("of %d events %d say something", all, saying)
			}
		}
	})
}

func TestAnErasureRunsInBatches(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user := f.talkedAbout("ada")
		updates := 0
		for _, asked := range f.db.during(func() { f.ok(f.Directory.EraseUser(f.Context(), f.owner, user.ID, "")) }) {
			if asked == "update" {
				updates++
			}
		}
		if all, saying := f.saying(user.ID); all != 1202 || saying != 0 || updates != 4 {
			t.Errorf("of %d events %d say something, after %d updates", all, saying, updates)
		}
	})
}

func TestRequestsInProgressAreErasedAMinuteLater(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user := f.user("ada")
		f.ok(f.Directory.EraseUser(f.Context(), f.owner, user.ID, ""))
		event := rolecall.Event{
			ID: rolecall.NewID[rolecall.Event](start), Type: rolecall.EventSignInFailed, OccurredAt: start,
			Actor: rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "http"}, Subject: rolecall.About(user.ID), Reason: "late",
		}
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.InsertEvent(event)
			return nil
		}))
		f.clock.advance(time.Minute)
		f.ok(f.Node.Purge(f.Context()))
		if _, saying := f.saying(user.ID); saying != 0 {
			t.Error("what came late is still there")
		}
	})
}

func TestAfterThirtyDaysADeletedUserIsErased(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user := f.talkedAbout("ada")
		f.remove(user.ID)
		f.clock.advance(30 * aDay)
		f.ok(f.Node.Purge(f.Context()))
		if all, saying := f.saying(user.ID); all != 1203 || saying != 0 {
			t.Errorf("of %d events %d say something", all, saying)
		}
	})
}

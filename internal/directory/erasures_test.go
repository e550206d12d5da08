package directory_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
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
		return nodetest.ErrBroken
	}
	return d.Database.Update(ctx, tenant, fn)
}

// talkedAbout creates a user with more events than one step of an erasure handles.
func talkedAbout(f *nodetest.Fixture, name string) rolecall.User {
	f.Helper()
	user := f.NewUser(name)
	// The events go directly to the database, because f.db rejects events without a
	// change.
	f.OK(store.New(f.DB.Database, nil).Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		for i := range 1200 {
			tx.InsertEvent(rolecall.Event{
				ID: rolecall.NewID[rolecall.Event](nodetest.Start), Type: rolecall.EventUserUpdated, OccurredAt: nodetest.Start,
				Actor: rolecall.Actor{Type: rolecall.ActorOperator, Via: "command"}, Subject: rolecall.About(user.ID),
				Members: []string{"name"}, Source: "192.0.2.1", Reason: fmt.Sprintf("reason %d", i), Values: &rolecall.EventValues{After: []byte(`{"name":"Ada"}`)},
			})
		}
		return nil
	}))
	return user
}

// countSaying returns the number of events about a user, and the number of those events that
// have content.
func countSaying(f *nodetest.Fixture, id rolecall.UserID) (all, saying int) {
	f.Helper()
	f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
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
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		for steps, left := range []int{1201, 701, 201} { // including the creation
			user := talkedAbout(f, fmt.Sprintf("ada-%d", steps))
			peer := node.New(&dying{f.DB, 1 + steps}, access.Options{Clock: f.Clock.Now, Keys: f.Keys, Logger: slog.New(slog.DiscardHandler)})
			f.OK(peer.Directory.EraseUser(f.Context(), f.Owner, user.ID, ""))
			f.Is(nodetest.ErrorOf(f.Directory.User(f.Context(), f.Owner, user.ID)), rolecall.ErrNotFound)
			f.Is(nodetest.ErrorOf(f.Directory.RestoreUser(f.Context(), f.Owner, user.ID)), rolecall.ErrNotFound)
			if _, saying := countSaying(f, user.ID); steps > 0 && saying > left {
				t.Errorf("after %d steps %d events say something", steps, saying)
			}
			f.OK(f.Node.Purge(f.Context()))
			f.Clock.Advance(time.Minute)
			if _, saying := countSaying(f, user.ID); saying == 0 {
				t.Error("nothing was left to finish, so nothing can be said")
			}
			f.OK(f.Node.Purge(f.Context()))
			if all, saying := countSaying(f, user.ID); all != 1202 || saying != 0 {
				t.Errorf("of %d events %d say something", all, saying)
			}
		}
	})
}

func TestAnErasureRunsInBatches(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := talkedAbout(f, "ada")
		updates := 0
		for _, asked := range f.DB.During(func() { f.OK(f.Directory.EraseUser(f.Context(), f.Owner, user.ID, "")) }) {
			if asked == "update" {
				updates++
			}
		}
		if all, saying := countSaying(f, user.ID); all != 1202 || saying != 0 || updates != 4 {
			t.Errorf("of %d events %d say something, after %d updates", all, saying, updates)
		}
	})
}

func TestRequestsInProgressAreErasedAMinuteLater(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := f.NewUser("ada")
		f.OK(f.Directory.EraseUser(f.Context(), f.Owner, user.ID, ""))
		event := rolecall.Event{
			ID: rolecall.NewID[rolecall.Event](nodetest.Start), Type: rolecall.EventSignInFailed, OccurredAt: nodetest.Start,
			Actor: rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "http"}, Subject: rolecall.About(user.ID), Reason: "late",
		}
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.InsertEvent(event)
			return nil
		}))
		f.Clock.Advance(time.Minute)
		f.OK(f.Node.Purge(f.Context()))
		if _, saying := countSaying(f, user.ID); saying != 0 {
			t.Error("what came late is still there")
		}
	})
}

func TestAfterThirtyDaysADeletedUserIsErased(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := talkedAbout(f, "ada")
		f.DeleteUser(user.ID)
		f.Clock.Advance(30 * nodetest.Day)
		f.OK(f.Node.Purge(f.Context()))
		if all, saying := countSaying(f, user.ID); all != 1203 || saying != 0 {
			t.Errorf("of %d events %d say something", all, saying)
		}
	})
}

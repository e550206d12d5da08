package feed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// tenantsFollower reads the changes of all tenants.
type tenantsFollower struct {
	f    *nodetest.Fixture
	c    access.Caller
	at   *rolecall.TenantsMark
	read []string // the tenant and the type of each change
}

// try reads all changes after the position of the follower, two at a time.
func (r *tenantsFollower) try() error {
	r.read = nil
	if err := r.f.Access.Feed.Flush(r.f.Context()); err != nil {
		return err
	}
	for {
		page, err := r.f.Directory.TenantsChanges(r.f.Context(), r.c, feed.TenantsQuery{After: r.at, Limit: 2})
		if err != nil {
			return err
		}
		for i, change := range page.Changes {
			r.read = append(r.read, page.Tenants[i]+" "+string(change.Type))
			if change.Source != "" || !change.SessionID.IsZero() {
				r.f.Errorf("a change has the source %q and the session %v", change.Source, change.SessionID)
			}
		}
		r.at = &page.Next
		if page.UpToDate {
			return nil
		}
	}
}

func (r *tenantsFollower) reads(want ...string) {
	r.f.Helper()
	r.f.OK(r.try())
	if !slices.Equal(r.read, want) {
		r.f.Errorf("read %q, want %q", r.read, want)
	}
}

func newTenantsFollower(f *nodetest.Fixture) *tenantsFollower {
	f.Helper()
	c := f.NewOperator("Follower")
	f.OK(f.Access.Feed.Flush(f.Context()))
	end, err := f.Directory.TenantsChangesEnd(f.Context(), c)
	f.OK(err)
	if !end.UpToDate || len(end.Changes) != 0 {
		f.Errorf("the end is %+v", end)
	}
	return &tenantsFollower{f: f, c: c, at: &end.Next}
}

func TestFollowersOfAllTenantsSeeADeletionAndLoseNothingSilently(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewTenant("other")
		follower := newTenantsFollower(f)
		follower.reads()
		f.NewUser("ada")
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		asleep := *follower
		follower.reads("acme user.created", "other tenant.deleted")
		f.OK(nodetest.ErrorOf(f.Directory.RestoreTenant(f.Context(), access.Command, "other", "")))
		follower.reads("other tenant.restored")
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		follower.reads("other tenant.deleted")

		f.Clock.Advance(nodetest.Day + time.Minute) // after this, it is purged
		f.OK(f.Node.Purge(f.Context()))
		follower.reads()
		f.NewUser("grace")
		follower.reads("acme user.created")
		f.Is(asleep.try(), rolecall.ErrChangesExpired)
		fresh := tenantsFollower{f: f, c: follower.c}
		fresh.reads("acme user.created")
		if *fresh.at != *follower.at {
			f.Errorf("two followers are at %v and %v", *fresh.at, *follower.at)
		}
	})
}

func TestFollowersOfAllTenantsAreToldOfPurgedEvents(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		purge := func() {
			f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error { // ids can be from after the time of the clock
				_, err := tx.PurgeExpired(f.Clock.Now(), nodetest.Start.Add(100*365*nodetest.Day), access.BatchSize)
				return err
			}))
		}
		follower := newTenantsFollower(f)
		f.NewUser("ada")
		asleep := *follower
		follower.reads("acme user.created")
		purge()
		f.NewUser("grace")
		f.Is(asleep.try(), rolecall.ErrChangesExpired)
		follower.reads("acme user.created")
		fresh := tenantsFollower{f: f, c: follower.c}
		fresh.reads("acme user.created")
		f.NewUser("alan")
		purge() // also the event without a number
		f.Is(follower.try(), rolecall.ErrChangesExpired)
		f.OK(f.Node.Purge(f.Context()))
		newTenantsFollower(f).reads()
		fresh = tenantsFollower{f: f, c: follower.c}
		fresh.reads()
		f.Clock.Advance(401 * nodetest.Day) // so that the log allows the removals
	})
}

func TestAPositionThatIsNotInTheFeedOfAllTenantsHasExpired(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewTenant("other")
		follower := newTenantsFollower(f)
		f.NewUser("ada")
		follower.reads("acme user.created")
		at := *follower.at
		for name, lost := range map[string]rolecall.TenantsMark{
			"a place beyond the end":            {Place: at.Place + 1, Number: at.Number, Mark: at.Mark},
			"a place that was given again":      {Place: at.Place, Number: at.Number, Mark: rolecall.NewID[any](nodetest.Start)},
			"a number that the place lacks":     {Place: at.Place, Number: at.Number + 1, Mark: at.Mark},
			"a number from before those of it":  {Place: at.Place, Number: at.Number - 2, Mark: at.Mark},
			"the beginning with another's mark": {Place: 1, Number: 0, Mark: rolecall.NewID[any](nodetest.Start)},
		} {
			follower.at = &lost
			if err := follower.try(); err == nil || err.Error() != rolecall.ErrChangesExpired.Error() {
				f.Errorf("%s: %v, read %q", name, err, follower.read)
			}
		}
	})
}

// The database loses the last commits, and gives their places to other events.
func TestPlacesThatWereLostAreNotMistakenForNewOnes(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		follower := newTenantsFollower(f)
		f.NewUser("ada")
		follower.reads("acme user.created")
		f.OK(f.DB.Update(f.Context(), rolecall.TenantID{}, func(q store.Querier) error {
			q.Exec("delete from feed_places where place = $1", follower.at.Place)
			q.Exec("update feed_of_tenants set last = last - 1 where id = 1")
			return nil
		}))
		f.Is(follower.try(), rolecall.ErrChangesExpired)
		f.NewUser("grace")
		f.Is(follower.try(), rolecall.ErrChangesExpired)
		next := newTenantsFollower(f)
		if next.at.Place != follower.at.Place {
			f.Errorf("the place %d was not given again, but %d", follower.at.Place, next.at.Place)
		}
		f.NewUser("alan")
		next.reads("acme user.created")
	})
}

func TestNumbersThatAKilledProcessHasLeftGetPlaces(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		follower := newTenantsFollower(f)
		killed := f.NewNode() // its feed never numbers events
		_, err := killed.Directory.CreateUser(f.Context(), f.Owner, nodetest.NewKey(), rolecall.UserDraft{Email: nodetest.Address("ada"), Name: "Ada Lovelace"})
		f.OK(err)
		follower.reads()
		f.NewWatchingNode() // numbers what is left when it starts
		f.Eventually(func() bool { return follower.try() == nil && len(follower.read) > 0 })
		if len(follower.read) != 1 || follower.read[0] != "acme user.created" {
			f.Errorf("read %q", follower.read)
		}
	})
}

// The order of the feeds does not depend on the clocks of the nodes.
func TestFeedsContinueAfterTheClockIsSetBack(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewTenant("other")
		follower := newTenantsFollower(f)
		user := f.NewUser("ada")
		follower.reads("acme user.created")
		of, err := f.Directory.ChangesEnd(f.Context(), f.Owner)
		f.OK(err)
		f.Clock.Advance(-time.Hour)
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, user.ID, "")))
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		follower.reads("acme user.suspended", "other tenant.deleted")
		f.Clock.Advance(2 * time.Hour)
		f.OK(nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, user.ID, "")))
		follower.reads("acme user.resumed")
		page, err := f.Directory.Changes(f.Context(), f.Owner, feed.Query{After: &of.Next, Limit: 10})
		f.OK(err)
		if len(page.Changes) != 2 || page.Changes[0].Type != rolecall.EventUserSuspended || page.Changes[1].Type != rolecall.EventUserResumed ||
			page.Changes[0].OccurredAt >= user.CreatedAt {
			f.Errorf("the tenant reads %+v", page.Changes)
		}
	})
}

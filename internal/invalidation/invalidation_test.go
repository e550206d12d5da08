package invalidation

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/store"
)

const start rolecall.Time = 1_800_000_000_000_000

func newTable() (*Table, *rolecall.Time) {
	now := start
	return New(func() rolecall.Time { return now }), &now
}

func TestAnEntryIsFreshUntilOneOfItsIDsIsInvalidated(t *testing.T) {
	table, _ := newTable()
	user, session, other := rolecall.NewID[any](start), rolecall.NewID[any](start), rolecall.NewID[any](start)
	user[15], session[15], other[15] = 1, 2, 3 // so that the ids are in three different slots
	for _, c := range []struct {
		id    rolecall.AnyID
		fresh bool
	}{{other, true}, {user, false}, {session, false}, {rolecall.AnyID{}, false}} {
		before := table.Stamp()
		table.Invalidate(c.id)
		if got := table.IsFresh(before, start, user, session); got != c.fresh {
			t.Errorf("after the invalidation of %v: fresh is %v", c.id, got)
		}
		if got := table.IsFreshAbsence(before, start, user, session); got != c.fresh {
			t.Errorf("after the invalidation of %v: a fresh absence is %v", c.id, got)
		}
		if !table.IsFresh(table.Stamp(), start, user, session) {
			t.Errorf("an entry that was read after the invalidation of %v is stale", c.id)
		}
	}
}

func TestLifetimeOfAnEntry(t *testing.T) {
	table, now := newTable()
	id := rolecall.NewID[any](start)
	stamp := table.Stamp()
	for _, c := range []struct {
		age             time.Duration
		watched         bool
		fresh, isAbsent bool
	}{
		{0, true, true, true},
		{time.Second, true, true, false},
		{time.Minute, true, false, false},
		{-time.Minute, true, false, false}, // the clock was set back
		{700 * time.Millisecond, false, true, true},
		{800 * time.Millisecond, false, false, false},
	} {
		*now = start.Add(c.age)
		table.CaughtUp(0)
		if !c.watched {
			table.CaughtUp(watchTimeout)
		}
		if got := table.IsWatching(*now); got != c.watched {
			t.Errorf("after %v: watching is %v", c.age, got)
		}
		if got := table.IsFresh(stamp, *now, id); got != c.fresh {
			t.Errorf("after %v, watched %v: fresh is %v", c.age, c.watched, got)
		}
		if got := table.IsFreshAbsence(stamp, *now); got != c.isAbsent {
			t.Errorf("after %v: a fresh absence is %v", c.age, got)
		}
	}
}

// failing is a database whose method Watch fails in the first two calls.
type failing struct {
	store.Database
	calls int
	id    rolecall.AnyID
}

func (f *failing) Watch(ctx context.Context, w store.Watcher) error {
	if f.calls++; f.calls < 3 {
		return errors.New("no connection")
	}
	w.Invalidate(f.id)
	<-ctx.Done()
	return nil
}

// watcher is a table that ignores changes of feeds.
type watcher struct{ *Table }

func (watcher) Changed(rolecall.TenantID) {}

func TestAWatchThatFailsIsTriedAgain(t *testing.T) {
	table, _ := newTable()
	db := &failing{id: rolecall.NewID[any](start)}
	stamp := table.Stamp()
	failures := 0
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		table.Watch(ctx, func(ctx context.Context) error { return db.Watch(ctx, watcher{table}) }, func(error) { failures++ })
	}()
	patience.Poll(func() bool { return table.IsInvalidated(stamp, db.id) })
	cancel()
	<-done
	if !table.IsInvalidated(stamp, db.id) || db.calls != 3 {
		t.Errorf("after %d calls, invalidated is %v", db.calls, table.IsInvalidated(stamp, db.id))
	}
	if failures != 1 {
		t.Errorf("the same error was reported %d times, want once", failures)
	}
}

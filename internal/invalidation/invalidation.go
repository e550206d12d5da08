// Package invalidation decides whether data that a process has cached is still fresh. It
// has a table of invalidated ids, and a loop that receives the invalidations of other
// processes. The cached data itself is elsewhere. A cache takes a Stamp before it reads
// an entry from the store, keeps the Stamp with the entry, and calls IsFresh before it
// uses the entry.
package invalidation

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
)

// The lifetimes of cache entries. A process sees its own changes immediately, and the
// changes of other processes within a second. While the database notifies the process of
// these changes, entries can be used for watchedLifetime. Otherwise, they can be used
// only for unwatchedLifetime.
const (
	watchedLifetime   = time.Minute
	unwatchedLifetime = 800 * time.Millisecond // the rest of the second is for reading the entry again

	// watchTimeout is how long after the last message from the database a process still
	// assumes that it receives all notifications. It is long enough for one late message.
	watchTimeout = 500 * time.Millisecond
)

// Table records for each id when it was last invalidated. Each invalidation has a number
// that is higher than all earlier ones. The number of slots is constant, so that memory
// does not grow. Several ids share a slot, which keeps the highest number of its ids. So
// an invalidation of one id can cause unnecessary reads of entries that depend on another
// id, and no other effect.
//
// A Table is safe for concurrent use.
type Table struct {
	now      func() rolecall.Time
	caughtUp atomic.Int64 // a rolecall.Time; the table contains the changes that other processes have made until then
	last     atomic.Uint64
	all      atomic.Uint64 // number of the last invalidation of all entries
	slots    [4096]atomic.Uint64
}

// New returns a Table without invalidations. The function now returns the current time.
func New(now func() rolecall.Time) *Table {
	t := &Table{now: now}
	t.CaughtUp(0) // no cache entry exists yet, so no change can be missing
	return t
}

// Stamp is the point in time at which a cache read an entry from the store.
type Stamp struct {
	At     rolecall.Time
	number uint64 // the number of the last invalidation before the read
}

// Stamp returns the Stamp for an entry that the cache reads from the store after this
// call.
func (t *Table) Stamp() Stamp { return Stamp{t.now(), t.last.Load()} }

// Invalidate makes the entries that depend on the id stale. If the id is zero, it makes
// all entries stale. After a change is committed and before the response is sent, the
// process must call Invalidate with the ids of the changed objects.
func (t *Table) Invalidate(id rolecall.AnyID) {
	slot := &t.all
	if !id.IsZero() {
		slot = t.slot(id)
	}
	number := t.last.Add(1)
	for old := slot.Load(); old < number && !slot.CompareAndSwap(old, number); old = slot.Load() {
	}
}

func (t *Table) slot(id [16]byte) *atomic.Uint64 {
	return &t.slots[binary.BigEndian.Uint16(id[14:])%uint16(len(t.slots))] // the last bytes of an id are random
}

// IsInvalidated reports whether one of the ids, or all entries, may have been invalidated
// after the Stamp s was taken.
func (t *Table) IsInvalidated(s Stamp, ids ...[16]byte) bool {
	for _, id := range ids {
		if t.slot(id).Load() > s.number {
			return true
		}
	}
	return t.all.Load() > s.number
}

// IsFresh reports whether an entry can be used that has the Stamp s and depends on the
// ids. The argument now is the current time.
func (t *Table) IsFresh(s Stamp, now rolecall.Time, ids ...[16]byte) bool {
	lifetime := unwatchedLifetime
	if t.IsWatching(now) {
		lifetime = watchedLifetime
	}
	return isYounger(s, now, lifetime) && !t.IsInvalidated(s, ids...)
}

// IsFreshAbsence is like IsFresh, for an entry that records that an object does not
// exist. Other processes do not notify this process of objects that they create, so such
// an entry is used for less than a second.
func (t *Table) IsFreshAbsence(s Stamp, now rolecall.Time, ids ...[16]byte) bool {
	return isYounger(s, now, unwatchedLifetime) && !t.IsInvalidated(s, ids...)
}

// isYounger reports whether the age of the Stamp is less than the lifetime. It returns
// false if the clock was set back by the lifetime or more.
func isYounger(s Stamp, now rolecall.Time, lifetime time.Duration) bool {
	return now.Sub(s.At).Abs() < lifetime
}

// CaughtUp records that the table contains all changes that were committed up to the time
// that is lag before the current time.
func (t *Table) CaughtUp(lag time.Duration) { t.caughtUp.Store(int64(t.now().Add(-lag))) }

// Lag returns the maximum age of changes by other processes that are not in the table
// yet.
func (t *Table) Lag(now rolecall.Time) time.Duration {
	return now.Sub(rolecall.Time(t.caughtUp.Load()))
}

// IsWatching reports whether this process receives notifications of changes by other
// processes. It returns false if the last message from the database is older than
// watchTimeout, or if the clock was set back by more than that.
func (t *Table) IsWatching(now rolecall.Time) bool { return t.Lag(now).Abs() < watchTimeout }

// Package invalidation decides whether data that a process has cached is still
// fresh. It has the table of invalidated ids and the loop that receives
// invalidations from other processes. It contains no cached data: a cache takes a
// Stamp before it reads an entry, keeps it with the entry, and calls IsFresh before
// it uses the entry.
package invalidation

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
)

// A process sees its own changes immediately, and the changes of other processes within a
// second. Either the database notifies it of these changes, or it does not use cache
// entries that are older.
const (
	watchedLifetime   = time.Minute
	unwatchedLifetime = 800 * time.Millisecond // the rest of the second is for the request that reads again

	// watchTimeout is how long after the last message from the database a process still
	// assumes that it receives all notifications. One message may be late.
	watchTimeout = 500 * time.Millisecond
)

// Table records when ids were last invalidated. Each invalidation has a number, and
// ids share slots that keep the highest number. The number of slots is constant, so
// memory does not grow. Two ids in one slot only cause an unnecessary read.
//
// A Table is safe for concurrent use. It implements store.Watcher.
type Table struct {
	now      func() rolecall.Time
	caughtUp atomic.Int64 // a rolecall.Time: changes by other processes until then are in the table
	last     atomic.Uint64
	all      atomic.Uint64 // the last invalidation of everything
	slots    [4096]atomic.Uint64
}

// New returns an empty Table.
func New(now func() rolecall.Time) *Table {
	t := &Table{now: now}
	t.CaughtUp(0) // no entry exists yet
	return t
}

// Stamp is when a cached entry was read.
type Stamp struct {
	At     rolecall.Time
	number uint64 // the number of the last invalidation before the read
}

// Stamp returns the stamp of a read that begins now.
func (t *Table) Stamp() Stamp { return Stamp{t.now(), t.last.Load()} }

// Invalidate makes entries that depend on the id stale, or all entries if it is zero.
// The writer of a change calls it after the commit and before the response.
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
	return &t.slots[binary.BigEndian.Uint16(id[14:])%uint16(len(t.slots))] // the end of an id is random
}

// IsInvalidated reports whether one of the ids may have been invalidated since the
// stamp.
func (t *Table) IsInvalidated(s Stamp, ids ...[16]byte) bool {
	for _, id := range ids {
		if t.slot(id).Load() > s.number {
			return true
		}
	}
	return t.all.Load() > s.number
}

// IsFresh reports whether an entry that was read at the stamp and depends on the ids
// can be used.
func (t *Table) IsFresh(s Stamp, now rolecall.Time, ids ...[16]byte) bool {
	lifetime := unwatchedLifetime
	if t.IsWatching(now) {
		lifetime = watchedLifetime
	}
	return isYounger(s, now, lifetime) && !t.IsInvalidated(s, ids...)
}

// IsFreshAbsence is IsFresh for an entry that records that something does not exist.
// Processes are not notified of creations, so such an entry is used for less than a
// second.
func (t *Table) IsFreshAbsence(s Stamp, now rolecall.Time, ids ...[16]byte) bool {
	return isYounger(s, now, unwatchedLifetime) && !t.IsInvalidated(s, ids...)
}

// isYounger also returns false if the clock was set back by more than the lifetime.
func isYounger(s Stamp, now rolecall.Time, lifetime time.Duration) bool {
	return now.Sub(s.At).Abs() < lifetime
}

// CaughtUp records that the table contains all changes that were committed until lag
// ago.
func (t *Table) CaughtUp(lag time.Duration) { t.caughtUp.Store(int64(t.now().Add(-lag))) }

// Lag returns how old a change by another process can be that is not in the table.
func (t *Table) Lag(now rolecall.Time) time.Duration {
	return now.Sub(rolecall.Time(t.caughtUp.Load()))
}

// IsWatching reports whether this process is notified of changes by other processes. It
// is also false if the clock was set back by more than watchTimeout.
func (t *Table) IsWatching(now rolecall.Time) bool { return t.Lag(now).Abs() < watchTimeout }

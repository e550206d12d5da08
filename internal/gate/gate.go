// Package gate bounds what is under way at once: so much runs, so much more waits
// for a while, and all else is turned away at once.
package gate

import (
	"context"
	"sync/atomic"
	"time"
)

// Gate is a number of slots with a queue before them, both bounded. It is safe for
// concurrent use.
type Gate struct {
	slots    chan struct{}
	most     int64 // inside and waiting
	count    atomic.Int64
	patience time.Duration
}

// New returns a gate that lets in as many as there are slots, and before which as
// many wait as the queue is long: each no longer than the patience, or than its
// own context if that is zero.
func New(slots, queue int, patience time.Duration) *Gate {
	return &Gate{slots: make(chan struct{}, slots), most: int64(slots + queue), patience: patience}
}

// Enter reports whether there was a slot in time. Whoever is in calls Leave.
func (g *Gate) Enter(ctx context.Context) bool {
	if g.count.Add(1) > g.most {
		g.count.Add(-1)
		return false
	}
	select {
	case g.slots <- struct{}{}: // nobody waits, or they would have it
		return true
	default:
	}
	if !g.wait(ctx) {
		g.count.Add(-1)
		return false
	}
	return true
}

func (g *Gate) wait(ctx context.Context) bool {
	var late <-chan time.Time
	if g.patience > 0 {
		timer := time.NewTimer(g.patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case g.slots <- struct{}{}:
		return true
	case <-late:
	case <-ctx.Done():
	}
	return false
}

// Leave gives the slot to whoever waits longest.
func (g *Gate) Leave() {
	<-g.slots
	g.count.Add(-1)
}

// Count returns how many are inside or waiting.
func (g *Gate) Count() int { return int(g.count.Load()) }

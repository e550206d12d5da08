// Package limiter limits how many operations run at once and how many wait.
package limiter

import (
	"context"
	"sync/atomic"
	"time"
)

// Limiter is a semaphore with a bounded queue. It is safe for concurrent use.
type Limiter struct {
	slots   chan struct{}
	limit   int64        // maximum number of operations that run or wait
	active  atomic.Int64 // number of operations that run or wait
	maxWait time.Duration
}

// New returns a limiter that allows the given numbers of running and waiting operations. An
// operation waits until its context ends, but not longer than maxWait. If maxWait is zero, only the
// context ends the wait.
func New(running, waiting int, maxWait time.Duration) *Limiter {
	return &Limiter{slots: make(chan struct{}, running), limit: int64(running + waiting), maxWait: maxWait}
}

// Acquire waits for a slot and reports whether the operation may run. If Acquire returns true, call
// Release after the operation. Acquire returns false at once if the queue is full. It also returns
// false if ctx ends or maxWait has passed.
func (l *Limiter) Acquire(ctx context.Context) bool {
	if l.active.Add(1) > l.limit {
		l.active.Add(-1)
		return false
	}
	select {
	case l.slots <- struct{}{}: // a free slot means that no operation waits
		return true
	default:
	}
	if !l.wait(ctx) {
		l.active.Add(-1)
		return false
	}
	return true
}

func (l *Limiter) wait(ctx context.Context) bool {
	var timeout <-chan time.Time
	if l.maxWait > 0 {
		timer := time.NewTimer(l.maxWait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case l.slots <- struct{}{}:
		return true
	case <-timeout:
	case <-ctx.Done():
	}
	return false
}

// Release frees a slot. The operation that has waited longest gets the slot.
func (l *Limiter) Release() {
	<-l.slots
	l.active.Add(-1)
}

// Active returns the number of operations that run or wait.
func (l *Limiter) Active() int { return int(l.active.Load()) }

// Slots returns how many operations can run at once.
func (l *Limiter) Slots() int { return cap(l.slots) }

// Package queue does work that waits in the database, such as mail. The database has the state of
// the work. Each process claims work that is due, so that no other process does it at the same time.
package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
)

// Backoff is the pause before the next attempt. It doubles with each failure.
type Backoff struct{ First, Last time.Duration }

// Pause returns the pause after the given number of failed attempts, which is at least 1.
func (b Backoff) Pause(failures int) time.Duration {
	pause := b.First
	for range failures - 1 {
		if pause >= b.Last/2 {
			return b.Last
		}
		pause *= 2
	}
	return min(pause, b.Last)
}

// Worker claims work and does it. Create it with New.
type Worker[T any] struct {
	// AtOnce is the maximum number of pieces of work that this process does at the same time.
	AtOnce int
	// Batch is the maximum number of pieces that are claimed together.
	Batch int
	// Interval is how often the worker looks for work of other processes.
	Interval time.Duration
	// Lingering is the maximum number of pieces that do not count for AtOnce any more, because they
	// have taken longer than LingerAfter. Zero: all pieces count until they end.
	Lingering   int
	LingerAfter time.Duration
	// Claim reserves up to n pieces of work that are due. It returns ErrNotFound if none is due.
	Claim func(ctx context.Context, n int) ([]T, error)
	// Do does a claimed piece of work, and stores the result.
	Do func(ctx context.Context, work T)
	// Report is called with the result of each Claim: its error, or nil, also if no work was due.
	Report func(ctx context.Context, err error)

	wake      chan struct{}
	lingering chan struct{}
}

// New returns the worker w, ready to run.
func New[T any](w Worker[T]) *Worker[T] {
	w.wake, w.lingering = make(chan struct{}, 1), make(chan struct{}, w.Lingering)
	return &w
}

// Wake makes Run look for work immediately. Call it after the transaction with the work has committed.
func (w *Worker[T]) Wake() {
	select {
	case w.wake <- struct{}{}:
	default: // a signal is already pending
	}
}

// Run does work until ctx ends, and waits for the work in progress.
func (w *Worker[T]) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	tick := time.NewTicker(w.Interval)
	defer tick.Stop()
	slots := make(chan struct{}, w.AtOnce)
	for {
		n := w.reserve(ctx, slots)
		if n == 0 {
			return
		}
		claimed, err := w.Claim(ctx, n)
		for range n - len(claimed) {
			<-slots
		}
		for _, work := range claimed {
			working.Go(func() { w.do(ctx, work, slots) })
		}
		if errors.Is(err, rolecall.ErrNotFound) {
			err = nil
		}
		if ctx.Err() == nil {
			w.Report(ctx, err)
		}
		if err == nil && len(claimed) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-tick.C:
		}
	}
}

// do does the work, and frees its slot. If the work takes long, it frees the slot earlier.
func (w *Worker[T]) do(ctx context.Context, work T, slots <-chan struct{}) {
	free := sync.OnceFunc(func() { <-slots })
	defer free()
	if w.Lingering > 0 {
		ended, left := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(left)
			w.linger(ended, free)
		}()
		defer func() {
			close(ended)
			<-left
		}()
	}
	w.Do(ctx, work)
}

// linger calls free when work has taken longer than LingerAfter, and there is room for it. It returns
// when the work has ended.
func (w *Worker[T]) linger(ended <-chan struct{}, free func()) {
	timer := time.NewTimer(w.LingerAfter)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C:
	}
	select {
	case <-ended:
		return
	case w.lingering <- struct{}{}:
	}
	free()
	<-ended
	<-w.lingering
}

// reserve waits for a free slot, and takes up to Batch of them. It returns 0 if ctx ends first.
func (w *Worker[T]) reserve(ctx context.Context, slots chan<- struct{}) (n int) {
	select {
	case <-ctx.Done():
		return 0
	case slots <- struct{}{}:
	}
	for n = 1; n < w.Batch; n++ {
		select {
		case slots <- struct{}{}:
		default:
			return n
		}
	}
	return n
}

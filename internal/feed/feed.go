// Package feed gives the events of each tenant numbers, and reads the change feed that they form. A
// number is given after the transaction of the event was committed, so nothing ever appears before a
// number that was read. The package may import the store.
package feed

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/outage"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// pause is the time between two rounds of numbering. The events of this time get their numbers
	// in one transaction per tenant.
	pause = 25 * time.Millisecond

	// retryPause is the time until the next round after an error.
	retryPause = time.Second

	// batchLimit is the time limit of a transaction that numbers events, and of the last round. The
	// end of the context of Run does not interrupt them.
	batchLimit = 5 * time.Second

	// batchesOfRead is how many batches of events a reader numbers itself. More events than that are
	// waiting only after an upgrade, or if numbering has failed for a while.
	batchesOfRead = 2
)

// Feed numbers events and wakes readers that wait for them. It is safe for concurrent use.
type Feed struct {
	store *store.Store
	now   func() rolecall.Time
	log   *slog.Logger

	outages *outage.Log

	placing turn // is held by a reader of all tenants that gives places

	mu      sync.Mutex
	fresh   *backlog                       // tenants with new events
	failing *backlog                       // tenants whose numbering failed; they have separate rounds, so that they do not delay others
	waiting map[rolecall.TenantID]*waiters // the zero id: readers of all tenants
}

// turn is a mutex for which a caller waits until its context ends. It has room for one value.
type turn chan struct{}

// take waits for the turn. If it returns nil, the caller must call leave.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) leave() { <-t }

// waiters are the readers that wait for changes of one tenant.
type waiters struct {
	changed chan struct{} // closed when there may be changes
	n       int
}

// New returns a feed. Call Run to number events.
func New(s *store.Store, now func() rolecall.Time, log *slog.Logger, outages *outage.Log) *Feed {
	return &Feed{
		store: s, now: now, log: log, outages: outages, placing: make(turn, 1),
		fresh: newBacklog(), failing: newBacklog(), waiting: map[rolecall.TenantID]*waiters{},
	}
}

// Recorded tells Run that the tenant has new events. Call it after their transaction has committed.
func (f *Feed) Recorded(tenant rolecall.TenantID) {
	f.mu.Lock()
	b := f.fresh
	if f.failing.has(tenant) {
		b = f.failing
	}
	b.add(tenant, f.now())
	f.mu.Unlock()
	b.signal()
}

// Changed wakes the readers that wait for changes of the tenant, and those of all tenants. If the id is
// zero, it wakes all readers.
func (f *Feed) Changed(tenant rolecall.TenantID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tenant.IsZero() {
		for _, w := range f.waiting {
			close(w.changed)
		}
		clear(f.waiting)
		return
	}
	for _, id := range []rolecall.TenantID{tenant, {}} {
		if w := f.waiting[id]; w != nil {
			close(w.changed)
			delete(f.waiting, id)
		}
	}
}

// Wait returns a channel that is closed when the tenant may have new changes after this call. The
// caller must call stop at the end of its wait.
func (f *Feed) Wait(tenant rolecall.TenantID) (changed <-chan struct{}, stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.waiting[tenant]
	if w == nil {
		w = &waiters{changed: make(chan struct{})}
		f.waiting[tenant] = w
	}
	w.n++
	return w.changed, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if w.n--; w.n == 0 && f.waiting[tenant] == w {
			delete(f.waiting, tenant)
		}
	}
}

// Lag returns the age of the oldest event of this process that has no number yet. It is zero if
// all have one.
func (f *Feed) Lag() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.failing.oldest(f.fresh.oldest(0))
	if oldest == 0 {
		return 0
	}
	return max(0, f.now().Sub(oldest))
}

// cannotNumber is the task of the log of outages.
const cannotNumber = "cannot number events for the change feed; will retry"

// Run numbers new events until ctx ends, and then once more.
func (f *Feed) Run(ctx context.Context) {
	var retries sync.WaitGroup
	retries.Go(func() {
		f.repeat(ctx, f.failing, retryPause, func(err error) {
			if !errors.Is(err, rolecall.ErrUnavailable) {
				f.outages.Report(ctx, cannotNumber, nil)
			}
		})
	})
	f.repeat(ctx, f.fresh, pause, func(error) {})
	retries.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchLimit)
	defer cancel()
	if err := errors.Join(f.round(ctx, f.fresh), f.round(ctx, f.failing)); err != nil {
		f.log.WarnContext(ctx, "cannot number the last events for the change feed; another process or the next start does it", "error", err)
	}
}

// repeat makes rounds of the backlog until ctx ends, with a pause after each. It passes the error of each round
// to ended.
func (f *Feed) repeat(ctx context.Context, b *backlog, pause time.Duration, ended func(error)) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		if err := f.round(ctx, b); ctx.Err() == nil {
			ended(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// round numbers the events of all tenants that are in the backlog when it begins. It stops early if ctx ends.
// Tenants that have new events later wait for the next round, so that the pause makes one batch of them. If the
// numbering of a tenant fails, the round continues with the next one, and returns one of the errors. It returns
// an error of an unavailable database if there is one.
func (f *Feed) round(ctx context.Context, b *backlog) (failure error) {
	if err := b.round.take(ctx); err != nil {
		return err
	}
	defer b.round.leave()
	f.mu.Lock()
	due := len(b.order)
	f.mu.Unlock()
	for range due {
		tenant, ok := f.next(b)
		if !ok {
			continue
		}
		err := f.numberAll(ctx, tenant)
		if ctx.Err() != nil && err != nil {
			f.end(b, b)
			return context.Cause(ctx)
		}
		if err == nil {
			f.end(b, nil)
			continue
		}
		f.report(ctx, tenant, err, b == f.fresh)
		f.end(b, f.failing)
		if failure == nil || errors.Is(err, rolecall.ErrUnavailable) {
			failure = err
		}
	}
	return failure
}

// next begins to work on the next tenant of the backlog. A new event of a tenant whose numbering has failed in
// the meantime goes to those that fail.
func (f *Feed) next(b *backlog) (tenant rolecall.TenantID, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !b.next() {
		return tenant, false
	}
	if b == f.fresh && f.failing.has(b.at) {
		f.move(b, f.failing)
		return tenant, false
	}
	return b.at, true
}

// end ends the work on a tenant of the backlog. If to is not nil, the tenant still has events without a number,
// and waits there.
func (f *Feed) end(b, to *backlog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.move(b, to)
}

// move is end. The caller must hold f.mu.
func (f *Feed) move(b, to *backlog) {
	if to != nil {
		to.add(b.at, b.since)
		to.signal()
	}
	b.at, b.since = rolecall.TenantID{}, 0
}

// report logs that the numbering of the tenant failed, once until it succeeds. An outage of the database concerns
// all tenants, so the log has one warning of it.
func (f *Feed) report(ctx context.Context, tenant rolecall.TenantID, err error, isFirst bool) {
	switch {
	case errors.Is(err, rolecall.ErrUnavailable):
		f.outages.Report(ctx, cannotNumber, err, "tenant", tenant)
	case isFirst:
		f.log.WarnContext(ctx, cannotNumber, "tenant", tenant, "error", err)
	}
}

// numberAll numbers all events of the tenant, in batches. It stops between two of them if ctx ends.
func (f *Feed) numberAll(ctx context.Context, tenant rolecall.TenantID) error {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if more, err = f.numberInTime(ctx, tenant); err != nil {
			return err
		}
	}
	return nil
}

func (f *Feed) numberInTime(ctx context.Context, tenant rolecall.TenantID) (more bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchLimit)
	defer cancel()
	return f.number(ctx, tenant)
}

// number numbers a batch of events, and reports whether there may be more.
func (f *Feed) number(ctx context.Context, tenant rolecall.TenantID) (more bool, err error) {
	err = f.store.Update(ctx, tenant, func(tx *store.Tx) error {
		n, err := tx.NumberEvents(f.now())
		more = n == store.NumbersAtOnce
		return err
	})
	return more, err
}

// CatchUp gives numbers to the events of the tenant that have none. After an upgrade, some may be left.
func (f *Feed) CatchUp(ctx context.Context, tenant rolecall.TenantID) error {
	_, err := f.catchUp(ctx, tenant)
	return err
}

// catchUp numbers the events of the tenant that have no number yet. They can be from a
// process that has ended, or from a command. It reports whether all have a number now.
func (f *Feed) catchUp(ctx context.Context, tenant rolecall.TenantID) (all bool, err error) {
	err = f.store.View(ctx, tenant, func(tx *store.Tx) error {
		_, err := tx.Unnumbered()
		return err
	})
	if errors.Is(err, rolecall.ErrNotFound) {
		return true, nil
	}
	for range batchesOfRead {
		if err != nil || all {
			break
		}
		var more bool
		more, err = f.number(ctx, tenant)
		all = !more
	}
	return all, err
}

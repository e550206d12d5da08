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
	wake  chan struct{} // signals new events to Run

	outages *outage.Log

	placing   turn // is held by a reader of all tenants that gives places
	numbering turn // is held during a round

	mu      sync.Mutex
	due     map[rolecall.TenantID]rolecall.Time // tenants with new events, and since when
	order   []rolecall.TenantID                 // the same tenants, in the order of the times
	oldest  rolecall.Time                       // the time of the tenant that Run works on; 0: none
	waiting map[rolecall.TenantID]*waiters      // the zero id: readers of all tenants
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
		store: s, now: now, log: log, outages: outages, wake: make(chan struct{}, 1),
		placing: make(turn, 1), numbering: make(turn, 1),
		due: map[rolecall.TenantID]rolecall.Time{}, waiting: map[rolecall.TenantID]*waiters{},
	}
}

// Recorded tells Run that the tenant has new events. Call it after their transaction has committed.
func (f *Feed) Recorded(tenant rolecall.TenantID) {
	f.mu.Lock()
	if _, known := f.due[tenant]; !known {
		f.due[tenant] = f.now()
		f.order = append(f.order, tenant)
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default: // a signal is already pending
	}
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
	oldest := f.oldest
	if oldest == 0 && len(f.order) > 0 {
		oldest = f.due[f.order[0]]
	}
	if oldest == 0 {
		return 0
	}
	return max(0, f.now().Sub(oldest))
}

// next returns the tenant whose events have waited longest.
func (f *Feed) next() (tenant rolecall.TenantID, since rolecall.Time, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.order) == 0 {
		f.oldest = 0
		return tenant, 0, false
	}
	tenant = f.order[0]
	f.order, since = f.order[1:], f.due[tenant]
	delete(f.due, tenant)
	f.oldest = since
	return tenant, since, true
}

// restore records again that the tenant has had events without a number since the given time.
func (f *Feed) restore(tenant rolecall.TenantID, since rolecall.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.due[tenant]; !known {
		f.order = append([]rolecall.TenantID{tenant}, f.order...)
	}
	f.due[tenant], f.oldest = since, 0
}

// Run numbers new events until ctx ends, and then once more.
func (f *Feed) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-f.wake:
			rest, err := pause, f.round(ctx)
			if ctx.Err() == nil {
				f.outages.Report(ctx, "cannot number events for the change feed; will retry", err)
			}
			if err != nil && ctx.Err() == nil {
				rest = retryPause
				f.again()
			}
			select {
			case <-ctx.Done():
			case <-time.After(rest):
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchLimit)
	defer cancel()
	if err := f.round(ctx); err != nil {
		f.log.WarnContext(ctx, "cannot number the last events for the change feed; another process or the next start does it", "error", err)
	}
}

// again makes Run start another round.
func (f *Feed) again() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// round numbers the events of all tenants that have new ones when it begins. It stops early if ctx ends.
// Tenants that have new events later wait for the next round, so that the pause makes one batch of them.
func (f *Feed) round(ctx context.Context) error {
	if err := f.numbering.take(ctx); err != nil {
		return err
	}
	defer f.numbering.leave()
	f.mu.Lock()
	due := len(f.order)
	f.mu.Unlock()
	for range due {
		tenant, since, ok := f.next()
		if !ok {
			return nil
		}
		for more := true; more; {
			err := ctx.Err()
			if err == nil {
				more, err = f.numberInTime(ctx, tenant)
			}
			if err != nil {
				f.restore(tenant, since)
				return err
			}
		}
	}
	f.mu.Lock()
	f.oldest = 0
	f.mu.Unlock()
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

package invalidation

import (
	"context"
	"math/rand/v2"
	"time"
)

// The first and the longest delay before Watch calls the function watch again after an
// error.
const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 5 * time.Second
)

// Watch keeps the table up to date with the changes of other processes until ctx ends.
// The function watch must report these changes to the table, and returns when it fails.
// Watch then calls watch again after a delay. In the meantime, cache entries are used for less than a
// second, which only causes more reads. Watch calls failed with the first error after watch has worked,
// and with each error that differs from the one before.
func (t *Table) Watch(ctx context.Context, watch func(context.Context) error, failed func(error)) {
	last := ""
	for failures := 0; ; failures++ {
		before := t.caughtUp.Load()
		err := watch(ctx)
		if ctx.Err() != nil {
			return
		}
		if t.caughtUp.Load() != before { // watch worked before it failed
			failures, last = 0, ""
		}
		if err.Error() != last {
			failed(err)
			last = err.Error()
		}
		longest := min(retryFirst<<min(failures, 10), retryLast)
		retry := time.NewTimer(longest/2 + rand.N(longest/2)) // random, because all processes lose the database at the same time and should not return together
		select {
		case <-ctx.Done():
			retry.Stop()
			return
		case <-retry.C:
		}
	}
}

package invalidation

import (
	"context"
	"log/slog"
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
// Watch then logs the error and calls watch again after a delay. In the meantime, cache
// entries are used for less than a second, which only causes more reads.
func (t *Table) Watch(ctx context.Context, watch func(context.Context) error, log *slog.Logger) {
	for failures := 0; ; failures++ {
		before := t.caughtUp.Load()
		err := watch(ctx)
		if ctx.Err() != nil {
			return
		}
		log.WarnContext(ctx, "lost notifications of changes by other processes; reading the database more often until they return", "error", err)
		if t.caughtUp.Load() != before { // watch worked before it failed
			failures = 0
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

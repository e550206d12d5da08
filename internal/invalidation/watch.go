package invalidation

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// The first and the longest delay before the store is watched again after an error.
const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 5 * time.Second
)

// Watch receives the changes of other processes until ctx ends. The function watch passes
// them to the table until it fails; Watch then calls it again after a delay. Until a call
// succeeds, cache entries are used for less than a second. The only effect is more reads.
func (t *Table) Watch(ctx context.Context, watch func(context.Context) error, log *slog.Logger) {
	for failures := 0; ; failures++ {
		before := t.caughtUp.Load()
		err := watch(ctx)
		if ctx.Err() != nil {
			return
		}
		log.WarnContext(ctx, "lost notifications of changes by other processes; reading the database more often until they return", "error", err)
		if t.caughtUp.Load() != before { // the watch received changes before it failed
			failures = 0
		}
		longest := min(retryFirst<<min(failures, 10), retryLast)
		retry := time.NewTimer(longest/2 + rand.N(longest/2)) // random, because all processes lose a database at once
		select {
		case <-ctx.Done():
			retry.Stop()
			return
		case <-retry.C:
		}
	}
}

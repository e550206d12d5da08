package service

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rolecall/rolecall"
)

// How soon a store is watched again after it could not be.
const (
	watchRetryFirst = 100 * time.Millisecond
	watchRetryLast  = 5 * time.Second
)

// Watcher is told what other processes change in a store.
type Watcher interface {
	// Changed says that what is cached of the tenant, user, service account, session
	// or token counts no more; of everything, if id is zero.
	Changed(id rolecall.AnyID)
	// Current says that Changed has been called for all that was committed until
	// lag ago.
	Current(lag time.Duration)
}

// watch keeps the store watched until ctx ends. While that fails, what is cached
// lives shortly; so the only harm is more reading.
func (s *Service) watch(ctx context.Context) {
	for failures := 0; ; failures++ {
		before := s.changes.told.Load()
		err := s.store.Watch(ctx, s.changes)
		if ctx.Err() != nil {
			return
		}
		s.log.WarnContext(ctx, "changes by other processes are not told any more; until they are, caches are read anew all the time", "error", err)
		if s.changes.told.Load() != before { // it did work
			failures = 0
		}
		longest := min(watchRetryFirst<<min(failures, 10), watchRetryLast)
		retry := time.NewTimer(longest/2 + rand.N(longest/2)) // spread, as all nodes lose a database at once
		select {
		case <-ctx.Done():
			retry.Stop()
			return
		case <-retry.C:
		}
	}
}

// Watching reports whether this process is being told what others change in the
// store, and for how long such a change may have gone unseen: about a quarter of a
// second while it works.
func (s *Service) Watching() (ok bool, behind time.Duration) {
	now := s.now()
	return s.changes.watched(now), s.changes.behind(now)
}

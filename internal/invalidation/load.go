package invalidation

import (
	"context"
	"errors"

	"github.com/maypok86/otter/v2"
)

// CacheStats describes the use of a cache since the start of the process. A lookup that finds a stale
// entry is a hit, and is followed by a miss if the entry is read again.
type CacheStats struct {
	Entries      int
	Hits, Misses uint64
}

// StatsOf returns the statistics of a cache that was created with a recorder.
func StatsOf[K comparable, E any](cache *otter.Cache[K, E]) CacheStats {
	s := cache.Stats()
	return CacheStats{cache.EstimatedSize(), s.Hits, s.Misses}
}

// Load returns the cached entry with the key if the function current returns true for it.
// Otherwise, it calls the function read, caches the entry that read returns, and returns
// this entry. Concurrent calls with the same key share one call of read.
func Load[K comparable, E any](ctx context.Context, cache *otter.Cache[K, E], key K, current func(E) bool, read func(context.Context, K) (E, error)) (E, error) {
	for {
		own := false
		e, err := cache.Get(ctx, key, otter.LoaderFunc[K, E](func(ctx context.Context, key K) (E, error) {
			own = true
			return read(ctx, key)
		}))
		switch {
		case errors.Is(err, context.Canceled) && ctx.Err() == nil: // this call shared the read of a caller whose request was canceled
			return read(ctx, key)
		case err != nil || own || current(e):
			return e, err
		}
		cache.Invalidate(key) // the entry is stale, or was invalidated during the shared read
	}
}

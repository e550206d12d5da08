package invalidation

import (
	"context"
	"errors"

	"github.com/maypok86/otter/v2"
)

// Load returns the cached entry of the key if the function current accepts it. Otherwise
// it calls read and caches the result. It runs one read at a time for each key.
func Load[K comparable, E any](ctx context.Context, cache *otter.Cache[K, E], key K, current func(E) bool, read func(context.Context, K) (E, error)) (E, error) {
	for {
		own := false
		e, err := cache.Get(ctx, key, otter.LoaderFunc[K, E](func(ctx context.Context, key K) (E, error) {
			own = true
			return read(ctx, key)
		}))
		switch {
		case errors.Is(err, context.Canceled) && ctx.Err() == nil: // the read of another caller, whose request was canceled
			return read(ctx, key)
		case err != nil || own || current(e):
			return e, err
		}
		cache.Invalidate(key) // stale, or invalidated during the read of another caller
	}
}

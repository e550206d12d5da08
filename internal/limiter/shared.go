package limiter

import (
	"context"
	"time"
)

// Shared is a Limiter whose running and waiting operations are shared between owners, such as tenants. If there
// is no room for another operation, the owner with most operations loses its newest one, if that still waits.
// It is safe for concurrent use.
type Shared[K comparable] struct {
	*Limiter
	shares *Shares[K]
}

// NewShared returns a limiter like New. Keep the number of waiting operations low: an operation waits for all
// those of other owners that came before it.
func NewShared[K comparable](running, waiting int, maxWait time.Duration) *Shared[K] {
	// The shares are the bound. An operation that has lost its share can still run, so the limiter has more room.
	return &Shared[K]{New(running, waiting+running, maxWait), NewShares[K](running + waiting)}
}

// AcquireFor is Acquire for an operation of the owner. If ok is true, the caller must call release once after the
// operation.
func (l *Shared[K]) AcquireFor(ctx context.Context, owner K) (release func(), ok bool) {
	waiting, end, ok := l.shares.Begin(ctx, owner)
	if !ok {
		return nil, false
	}
	if !l.Acquire(waiting) {
		end()
		return nil, false
	}
	return func() {
		l.Release()
		end()
	}, true
}

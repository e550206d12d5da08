package limiter

import (
	"context"
	"slices"
	"sync"
)

// shareOfFree is how many times as many places as are free an owner can have.
const shareOfFree = 3

// Fair limits how many operations run at once, and keeps places for other owners, such as tenants. An owner can
// have at most three times as many places as are then free: one owner alone three quarters, two owners three
// sevenths each. An owner without a place gets any that is free. It is safe for concurrent use.
type Fair[K comparable] struct {
	limit int

	mu      sync.Mutex
	running int
	of      map[K]int
	waiting []*waiter[K] // the oldest first; none of them can have a place now
}

type waiter[K comparable] struct {
	owner    K
	admitted chan struct{} // closed when the waiter has a place
}

// NewFair returns a limiter for the number of operations.
func NewFair[K comparable](limit int) *Fair[K] { return &Fair[K]{limit: limit, of: map[K]int{}} }

// Acquire waits for a place for an operation of the owner. If it returns nil, call Release after the operation.
// Otherwise, ctx has ended, and Acquire returns its cause.
func (f *Fair[K]) Acquire(ctx context.Context, owner K) error {
	f.mu.Lock()
	if f.admit(owner) {
		f.mu.Unlock()
		return nil
	}
	w := &waiter[K]{owner, make(chan struct{})}
	f.waiting = append(f.waiting, w)
	f.mu.Unlock()
	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.waiting, w); i >= 0 {
		f.waiting = slices.Delete(f.waiting, i, i+1)
	} else { // it was admitted at the same time
		f.release(owner)
	}
	return context.Cause(ctx)
}

// Release frees a place of the owner. Operations that can have a place now get it, in the order of their waits.
func (f *Fair[K]) Release(owner K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.release(owner)
}

// release is Release. The caller must hold f.mu.
func (f *Fair[K]) release(owner K) {
	f.running--
	if f.of[owner]--; f.of[owner] == 0 {
		delete(f.of, owner)
	}
	f.waiting = slices.DeleteFunc(f.waiting, func(w *waiter[K]) bool {
		admitted := f.admit(w.owner)
		if admitted {
			close(w.admitted)
		}
		return admitted
	})
}

// admit gives the owner a place, and reports whether it could. The caller must hold f.mu.
func (f *Fair[K]) admit(owner K) bool {
	has, free := f.of[owner], f.limit-f.running
	if free == 0 || has > 0 && has+1 > shareOfFree*(free-1) {
		return false
	}
	f.running++
	f.of[owner]++
	return true
}

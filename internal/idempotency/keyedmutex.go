package idempotency

import (
	"context"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
)

// lockWait is how long a request waits for another request with the same key.
const lockWait = 5 * time.Second

// keyedMutex is a mutex for each key. With it, repetitions of a running request wait in
// memory, and not in the store, where each would occupy a connection.
type keyedMutex struct {
	mu     sync.Mutex
	locked map[string]chan struct{}
}

// lock locks the key in this process and reports whether it had to wait. The caller must
// call unlock. If the key is still locked after lockWait, lock returns ErrKeyInProgress.
// If ctx ends before, lock returns the error of ctx.
func (m *keyedMutex) lock(ctx context.Context, key string) (waited bool, unlock func(), err error) {
	var timeout <-chan time.Time
	for {
		m.mu.Lock()
		done, busy := m.locked[key]
		if !busy {
			done = make(chan struct{})
			if m.locked == nil {
				m.locked = map[string]chan struct{}{}
			}
			m.locked[key] = done
			m.mu.Unlock()
			return waited, func() {
				m.mu.Lock()
				delete(m.locked, key)
				m.mu.Unlock()
				close(done)
			}, nil
		}
		m.mu.Unlock()
		if timeout == nil {
			timer := time.NewTimer(lockWait)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-done:
			waited = true
		case <-timeout:
			return false, nil, rolecall.ErrKeyInProgress
		case <-ctx.Done():
			return false, nil, ctx.Err()
		}
	}
}

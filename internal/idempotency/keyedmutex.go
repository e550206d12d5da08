package idempotency

import (
	"context"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
)

// lockWait is how long a request waits for another request with its key.
const lockWait = 5 * time.Second

// keyedMutex makes repeats of a running request wait in memory, so that they do not
// each hold a connection of the store.
type keyedMutex struct {
	mu     sync.Mutex
	locked map[string]chan struct{}
}

// lock locks the key in this process and reports whether it had to wait. The caller
// must call unlock. It returns ErrKeyInProgress after five seconds.
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

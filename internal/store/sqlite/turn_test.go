//go:build linux || darwin

package sqlite

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/internal/store"
)

// TestAnotherProcessCanWriteDuringContinuousWrites writes without a pause through one open
// file, as a busy server does, and writes through a second one, as a command does.
func TestAnotherProcessCanWriteDuringContinuousWrites(t *testing.T) {
	server := openNew(t)
	tenant := newTenant(t, server)
	command := open(t, server.path, Options{})
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var updates atomic.Int64
	for range 2 {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := store.New(server, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
					updates.Add(1)
					tx.InsertUser(newUser("Server"))
					for range 1000 {
						if len(server.writer.queue) > 0 {
							break // the next update begins at once, so that the lock is free for microseconds
						}
						runtime.Gosched()
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	const writes = 50
	for range writes {
		if err := store.New(command, nil).Update(t.Context(), tenant, insert(newUser("Command"))); err != nil {
			t.Errorf("the second process: %v", err)
			break
		}
	}
	if n := updates.Load(); n < writes/4 || n > 4*writes {
		t.Errorf("the first process made %d updates during %d writes of the second one, want about as many", n, writes)
	}
	stop()
	clients.Wait()
}

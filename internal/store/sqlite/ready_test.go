package sqlite

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// A flood takes all connections, so the readiness check gets none. The database works as long as other
// transactions end.
func TestABusyDatabaseIsReady(t *testing.T) {
	d := openNew(t)
	s := store.New(d, nil)
	release := make(chan struct{})
	var reading, all sync.WaitGroup
	for range d.count {
		reading.Add(1)
		all.Go(func() {
			err := d.View(t.Context(), rolecall.TenantID{}, func(q store.Querier) error {
				_, err := q.Query("select 1", nil, func(func(...any) error) error {
					reading.Done()
					<-release
					return nil
				})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	defer all.Wait()
	defer close(release)
	reading.Wait()
	for _, works := range []bool{true, false} {
		ctx, stop := context.WithCancel(t.Context())
		waits := d.waits.Load()
		result := make(chan error)
		go func() { result <- s.Ready(ctx) }()
		for d.waits.Load() == waits { // until the check waits for a connection
			runtime.Gosched()
		}
		if works {
			if err := s.Update(t.Context(), rolecall.TenantID{}, func(*store.Tx) error { return nil }); err != nil {
				t.Error(err)
			}
		}
		stop()
		if err := <-result; (err == nil) != works {
			t.Errorf("with transactions that end (%v): %v", works, err)
		}
	}
}

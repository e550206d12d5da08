package sqlite

import (
	"context"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// lookEvery is how often Watch checks whether another process has changed the file.
const lookEvery = 250 * time.Millisecond

// Watch reports to w that all cached data is stale, at the start and whenever another
// process has changed the file. It returns nil when ctx ends. It returns ErrUnavailable
// when the file is closed, and any other error of the check.
func (d *Database) Watch(ctx context.Context, w store.Watcher) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for known := int64(-1); ; {
		began := time.Now()
		version, err := d.writer.dataVersion(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case version != known:
			known = version
			w.Invalidate(rolecall.AnyID{})
			w.Changed(rolecall.TenantID{})
		}
		w.CaughtUp(time.Since(began))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

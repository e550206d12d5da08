package sqlite

import (
	"context"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

// lookEvery is how often the file is asked whether another process has changed it.
const lookEvery = 250 * time.Millisecond

// Watch tells w that everything may have changed whenever another process has
// changed the file. It returns nil when ctx ends, ErrUnavailable when the store
// closes, or else what keeps it from looking.
func (s *Store) Watch(ctx context.Context, w service.Watcher) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for known := int64(-1); ; {
		began := time.Now()
		version, err := s.writer.dataVersion(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case version != known:
			known = version
			w.Changed(rolecall.AnyID{})
		}
		w.Current(time.Since(began))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

package web

import (
	"context"
	"sync"
	"time"
)

// deadline is the context of one exchange: it ends with the request's, or after
// the time that an exchange may take. The timer starts when somebody first waits
// for the end, which a request that is answered from memory never does.
type deadline struct {
	context.Context // the request's
	at              time.Time

	mu     sync.Mutex
	timed  context.Context // nil until somebody waits
	cancel context.CancelFunc
}

// Deadline returns when the exchange must have ended.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done returns what is closed at the end.
func (d *deadline) Done() <-chan struct{} { return d.wait().Done() }

// Err returns why the context ended, nil if it has not.
func (d *deadline) Err() error {
	if !time.Now().Before(d.at) {
		return d.wait().Err()
	}
	return d.running().Err()
}

// Value returns the value of the key; the context package finds by it that this is
// a context of its own kind.
func (d *deadline) Value(key any) any { return d.running().Value(key) }

// end frees the timer.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}

func (d *deadline) running() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed != nil {
		return d.timed
	}
	return d.Context
}

func (d *deadline) wait() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
	}
	return d.timed
}

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/web"
)

const (
	// readyWithin bounds how long the store may take to answer for readiness.
	readyWithin = 2 * time.Second

	// readyFor is how long /readyz answers from the last check.
	readyFor = 250 * time.Millisecond
)

// readiness checks whether the store can serve, one check at a time and at most one
// in readyFor, however many requests ask.
type readiness struct {
	check func(context.Context) error

	turn    chan struct{} // holds a token while somebody uses what follows
	checked time.Time     // when the last check ended
	err     error         // what it returned
}

func newReadiness(check func(context.Context) error) *readiness {
	return &readiness{check: check, turn: make(chan struct{}, 1)}
}

// result returns what the last check returned, after a new one if that is too old.
func (r *readiness) result(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.turn }()
	if !r.checked.IsZero() && time.Since(r.checked) < readyFor {
		return r.err
	}
	// The result is for other requests too, so a client who leaves does not end the check.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
	defer cancel()
	r.err = r.check(ctx)
	r.checked = time.Now()
	return r.err
}

// ready says whether requests can be served here: not without the store, and not
// while the process is leaving.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.site.IsDraining() {
		return rolecall.ErrUnavailable.With("This process is leaving; another one serves.")
	}
	if err := s.readiness.result(r.Context()); err != nil {
		web.RequestOf(r).Cause = err
		return rolecall.ErrUnavailable
	}
	return live(w, r)
}

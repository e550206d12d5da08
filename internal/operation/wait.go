package operation

import (
	"net/http"
	"reflect"
	"time"

	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/web"
)

// Waiting lets the handler of a request wait for a change. It is a field of the input.
type Waiting struct {
	runner *Runner
	op     *Operation
	w      http.ResponseWriter
	r      *http.Request
	in     reflect.Value
	sent   credentials
}

// Begin prepares the request for waits of at most the given time in total. It returns an error if
// too many requests wait. The caller must call end after the waits.
func (w *Waiting) Begin(longest time.Duration) (end func(), err error) {
	return web.RequestOf(w.r).BeginWait(w.w, longest)
}

// Await waits until the channel is closed or the time has passed. Then it authenticates and
// authorizes the caller again, and returns the caller. The result more is false if the process is about
// to stop, so that the handler must not wait again.
func (w *Waiting) Await(changed <-chan struct{}, longest time.Duration) (c access.Caller, more bool, err error) {
	q := web.RequestOf(w.r)
	if err := q.Await(changed, longest); err != nil {
		return c, false, err
	}
	if err := q.Enter(w.op.Limiter); err != nil {
		return c, false, err
	}
	if err := w.runner.admit(w.op, q, w.in, w.sent, false); err != nil {
		return c, false, err
	}
	return access.Caller{Principal: q.Principal, RequestID: q.ID, Source: q.Source}, !w.runner.Site.IsDraining(), nil
}

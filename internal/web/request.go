package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/tracing"
)

// Request is the context of one request, with the data that the middleware and the handlers share.
// RequestOf returns it.
type Request struct {
	deadline // the context

	ID      string // request id in the log and in X-Request-Id
	TraceID string // id of the trace of the client, or of the span; empty without one
	Source  string // address of the client
	Started time.Time

	// Values for the log and the metrics. They are set while the request is handled.
	Tenant    string           // name
	Principal *authz.Principal // nil for an anonymous request
	Cause     error            // the internal error, if the response does not contain it
	ReadsOnly bool             // the operation changes nothing, although its method is not GET

	site     *Site
	host     string // the Host header
	isTLS    bool
	span     tracing.Request // only if the site has a tracer
	path     string          // of the route
	metrics  *routeMetrics
	limiter  *workLimiter    // the limiter in which the request holds a slot; nil without a slot
	release  func()          // frees the slot, if the limiter has shares
	waiting  context.Context // ends when the request must not wait any longer; set by BeginWait
	response response
}

type requestKey struct{}

// Value returns the value for the key (context.Context).
func (q *Request) Value(key any) any {
	if key == (requestKey{}) {
		return q
	}
	return q.deadline.Value(key)
}

// RequestOf returns the request context that Site.Handler has created.
func RequestOf(r *http.Request) *Request {
	ctx := r.Context()
	if q, ok := ctx.(*Request); ok {
		return q
	}
	q, _ := ctx.Value(requestKey{}).(*Request)
	return q
}

// FromContext returns the request context in ctx, which is the context of a request or derived from
// it.
func FromContext(ctx context.Context) *Request {
	q, _ := ctx.Value(requestKey{}).(*Request)
	return q
}

// Address returns the URL of the root as the client sees it, without a slash at the end.
func (q *Request) Address() string { return q.site.address(q.host, q.isTLS) }

// newRequest creates the request context.
func (s *Site) newRequest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		q := &Request{deadline: deadline{Context: r.Context(), at: now.Add(s.deadline)}, site: s, Started: now}
		q.response = response{ResponseWriter: w, request: q, method: r.Method}
		q.identify(r)
		q.host, q.isTLS = r.Host, r.TLS != nil
		if s.tracer != nil && !s.IsProbe(r) {
			q.Context, q.span = s.tracer.Start(r.Context(), r.Header, now)
			q.TraceID = q.span.TraceID()
			defer func() { q.span.End(r.Method, q.path, q.response.status, q.ID) }()
		}
		defer q.end()
		defer q.Leave()
		next.ServeHTTP(&q.response, r.WithContext(q))
	})
}

// IsProbe reports whether the request is a health check. Load balancers send health checks every
// second, so they have no spans.
func (s *Site) IsProbe(r *http.Request) bool {
	path, isBelow := strings.CutPrefix(r.URL.Path, s.Base)
	return isBelow && (path == "/livez" || path == "/readyz")
}

// identify sets the source address, the id of the request and the id of its trace.
func (q *Request) identify(r *http.Request) {
	source, isFromProxy := q.site.proxies.source(r)
	q.Source = source
	if isFromProxy {
		q.ID = passedRequestID(r.Header)
	} else if r.Header["X-Forwarded-For"] != nil {
		q.site.warnForwarded(source)
	}
	if q.ID == "" {
		q.ID = rolecall.NewID[any](rolecall.TimeOf(q.Started)).String()
	}
	q.TraceID = traceID(r.Header)
}

// hasClientLeft reports whether the client closed the connection before the response.
func (q *Request) hasClientLeft() bool { return q.Context.Err() == context.Canceled }

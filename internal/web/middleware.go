package web

import (
	"net/http"
	"runtime/debug"

	"github.com/rolecall/rolecall"
)

// Middleware wraps the next handler.
type Middleware func(next http.Handler) http.Handler

// ErrorHandler responds to a request that failed with err.
type ErrorHandler func(w http.ResponseWriter, r *http.Request, err error)

// Handler wraps next, which is the router, in the middleware that every request passes. The list
// below begins with the outermost middleware.
func (s *Site) Handler(next http.Handler, onError ErrorHandler) http.Handler {
	return chain(next,
		s.newRequest,          // request ID, client source, deadline
		s.observe,             // access log, metrics
		recovery(onError),     // panics
		s.securityHeaders,     // such as X-Content-Type-Options
		s.crossOriginResponse, // Access-Control-Allow-Origin
	)
}

// routed wraps the handler of one path in more middleware. This middleware runs after the routing,
// so that the log and the metrics can name the route.
func (s *Site) routed(next http.Handler, onError ErrorHandler) http.Handler {
	return chain(next,
		s.preflight,               // the OPTIONS requests of browsers
		limitURL(onError),         // 414
		limitHeaderLines(onError), // 431
	)
}

// chain wraps the handler in the middleware. The first middleware is the outermost.
func chain(h http.Handler, all ...Middleware) http.Handler {
	for i := len(all) - 1; i >= 0; i-- {
		h = all[i](h)
	}
	return h
}

// recovery returns a middleware that responds with an internal error if the next handler panics.
func recovery(onError ErrorHandler) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				switch recovered := recover(); {
				case recovered == nil:
				case recovered == http.ErrAbortHandler:
					panic(recovered)
				default:
					q := RequestOf(r)
					q.site.logger.ErrorContext(q, "panic", "request_id", q.ID, "panic", recovered, "stack", string(debug.Stack()))
					if q.response.status == 0 {
						onError(w, r, rolecall.ErrInternal)
					}
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// limitURL returns a middleware that refuses request targets that are too long.
func limitURL(onError ErrorHandler) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.RequestURI) > MaxURL {
				onError(w, r, ErrURLTooLong)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// limitHeaderLines returns a middleware that refuses requests with too many header lines.
func limitHeaderLines(onError ErrorHandler) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			lines := 0
			for _, values := range r.Header {
				lines += len(values)
			}
			if lines > MaxLines {
				onError(w, r, ErrTooManyLines)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

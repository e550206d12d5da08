package httpserver

import (
	"context"
	"net"
	"net/http"
	"slices"
	"time"
)

// The reserve is a number of connections above the limit. Before the server has read a request, it does not
// know whether the request is a health check. So it accepts connections into the reserve, answers health checks
// on them, and lets other requests wait until there is room.
const (
	maxReserve  = 64
	reserveTime = 50 * time.Millisecond // how long a connection stays in the reserve before a new one replaces it
)

// hasReserve reports whether the reserve has a place for one more connection. If it is full, the oldest
// connection leaves it after reserveTime. The caller must hold c.mu.
func (c *connections) hasReserve() bool {
	if len(c.reserved) < c.reserve {
		return true
	}
	i := slices.IndexFunc(c.reserved, func(r *connection) bool {
		return (r.queued > 0 || !r.waitsSince().IsZero()) && time.Since(r.reserved) >= reserveTime // others are health checks
	})
	if i < 0 {
		return false
	}
	oldest := c.reserved[i]
	if oldest.queued > 0 {
		c.unreserve(oldest)
		oldest.evicted = true // its handlers answer
		c.changed.Broadcast()
	} else {
		c.close(oldest)
	}
	return true
}

// unreserve removes the connection from the reserve. The caller must hold c.mu.
func (c *connections) unreserve(r *connection) {
	if i := slices.Index(c.reserved, r); i >= 0 {
		c.reserved = slices.Delete(c.reserved, i, i+1)
		r.reserved = time.Time{}
		c.searched = time.Time{} // it can make room
	}
}

type connectionKey struct{}

// remember is the ConnContext callback of the http.Server.
func (*connections) remember(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// handler wraps the handler of the http.Server. It notes when handlers wait for their clients, and admits the
// requests on connections in the reserve.
func (c *connections) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
		e, place := c.begin(r, conn)
		if e == nil { // the connection was closed
			next.ServeHTTP(w, r)
			return
		}
		defer c.end(e)
		switch place {
		case refused:
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			http.Error(w, "The server has too many connections. Repeat the request shortly.", http.StatusServiceUnavailable)
			return
		case reserved:
			w.Header().Set("Connection", "close")
		}
		if r.Body != nil && r.Body != http.NoBody {
			r = r.WithContext(r.Context()) // a copy, because net/http uses the original body after the handler
			r.Body = &body{ReadCloser: r.Body, of: e}
		}
		next.ServeHTTP(&writer{w, e}, r)
	})
}

// place is the place of a request.
type place int

const (
	admitted place = iota
	reserved       // in the reserve, for a health check
	refused        // there was no room
)

// maxQueued is the maximum number of requests of one connection that wait for room. Only connections of HTTP/2 can
// have more than one.
const maxQueued = 4

// begin notes that a handler works on a request of the connection, and returns its place. If the connection is
// in the reserve, and the request is not a health check, begin waits until there is room, or until another
// connection needs the place in the reserve. It returns nil for a connection that was closed.
func (c *connections) begin(r *http.Request, conn net.Conn) (*exchange, place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.open[conn]
	if known == nil {
		return nil, admitted
	}
	e := &exchange{conn: known}
	known.exchanges = append(known.exchanges, e)
	known.idle, known.since = false, time.Time{}
	switch {
	case known.evicted || !known.reserved.IsZero() && known.queued >= maxQueued:
		return e, refused
	case known.reserved.IsZero():
		return e, admitted
	case c.isProbe(r):
		return e, reserved
	}
	stop := context.AfterFunc(r.Context(), c.changed.Broadcast)
	defer stop()
	known.queued++
	defer func() { known.queued-- }()
	for !known.reserved.IsZero() && !c.hasRoom() {
		if c.look(); known.evicted || r.Context().Err() != nil {
			return e, refused
		}
	}
	c.unreserve(known)
	return e, admitted
}

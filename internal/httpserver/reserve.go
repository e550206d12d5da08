package httpserver

import (
	"context"
	"io"
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
		return (r.queued || !r.since.IsZero()) && time.Since(r.reserved) >= reserveTime // others are health checks
	})
	if i < 0 {
		return false
	}
	oldest := c.reserved[i]
	if oldest.queued {
		c.unreserve(oldest) // its handler answers
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
	}
}

type connectionKey struct{}

// remember is the ConnContext callback of the http.Server.
func (*connections) remember(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// handler wraps the handler of the http.Server. It notes when handlers wait for bodies, and admits the requests
// on connections in the reserve.
func (c *connections) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
		known, place := c.begin(r, conn)
		switch place {
		case refused:
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			http.Error(w, "The server has too many connections. Repeat the request shortly.", http.StatusServiceUnavailable)
			return
		case reserved:
			w.Header().Set("Connection", "close")
		}
		if known != nil && r.Body != nil && r.Body != http.NoBody {
			read := &body{ReadCloser: r.Body, of: c, conn: known}
			defer read.end()
			r.Body = read
		}
		next.ServeHTTP(w, r)
	})
}

// place is the place of a request.
type place int

const (
	admitted place = iota
	reserved       // in the reserve, for a health check
	refused        // there was no room
)

// begin notes that a handler works on a request of the connection, and returns its place. If the connection is
// in the reserve, and the request is not a health check, begin waits until there is room, or until another
// connection needs the place in the reserve. It returns nil for a connection that was closed.
func (c *connections) begin(r *http.Request, conn net.Conn) (*connection, place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.open[conn]
	if known == nil {
		return nil, admitted
	}
	known.idle, known.since = false, time.Time{}
	if known.reserved.IsZero() {
		return known, admitted
	}
	if c.isProbe(r) {
		return known, reserved
	}
	stop := context.AfterFunc(r.Context(), c.changed.Broadcast)
	defer stop()
	known.queued = true
	defer func() { known.queued = false }()
	for !c.hasRoom() {
		if c.look(); known.reserved.IsZero() || r.Context().Err() != nil {
			return known, refused
		}
	}
	c.unreserve(known)
	return known, admitted
}

// body is the body of a request. While it is read, the server waits for the client.
type body struct {
	io.ReadCloser
	of   *connections
	conn *connection
	read bool // a read has begun
}

// Read reads a part of the body (io.Reader).
func (b *body) Read(p []byte) (int, error) {
	if !b.read {
		b.read = true
		b.begin()
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

// begin notes that a handler waits for the body. Bytes that arrive slowly do not move this time.
func (b *body) begin() {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if b.conn.bodies == nil {
		b.conn.bodies = map[*body]time.Time{}
	}
	b.conn.bodies[b] = time.Now()
}

// end notes that no handler waits for the body any longer.
func (b *body) end() {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	delete(b.conn.bodies, b)
}

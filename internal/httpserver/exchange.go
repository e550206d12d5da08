package httpserver

import (
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// exchange is a request on which a handler works, with its response. It notes since when the handler waits for
// the client.
type exchange struct {
	conn    *connection
	reading instant // since when the handler waits for the body of the request
	writing instant // since when the handler waits until the client takes a part of the response
}

// instant is a time, or none. It is safe for concurrent use.
type instant struct{ nanoseconds atomic.Int64 }

func (i *instant) set()   { i.nanoseconds.Store(time.Now().UnixNano()) }
func (i *instant) clear() { i.nanoseconds.Store(0) }

// earliest returns the earlier one of t and i. It ignores a zero time.
func (i *instant) earliest(t time.Time) time.Time {
	nanoseconds := i.nanoseconds.Load()
	if nanoseconds == 0 {
		return t
	}
	if other := time.Unix(0, nanoseconds); t.IsZero() || other.Before(t) {
		return other
	}
	return t
}

// waitsSince returns since when the server waits for the client, or the zero time. On a connection of HTTP/2, it
// waits as soon as one of the handlers waits.
func (c *connection) waitsSince() time.Time {
	since := c.since
	for _, e := range c.exchanges {
		since = e.writing.earliest(e.reading.earliest(since))
	}
	return since
}

// end notes that the handler has ended. From then on, the server waits for the client until the connection is
// idle: it sends the rest of the response, and reads the rest of the body.
func (c *connections) end(e *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := e.conn
	if i := slices.Index(known.exchanges, e); i >= 0 {
		known.exchanges = slices.Delete(known.exchanges, i, i+1)
	}
	if len(known.exchanges) == 0 {
		known.since = time.Now()
	}
}

// body is the body of a request.
type body struct {
	io.ReadCloser
	of    *exchange
	begun bool
}

// Read reads a part of the body (io.Reader). Bytes that arrive slowly do not move the time since when the server
// waits for the body.
func (b *body) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.of.reading.set()
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.of.reading.clear()
	}
	return n, err
}

// writer is the ResponseWriter of an exchange. A write waits if the client does not read its responses.
type writer struct {
	http.ResponseWriter
	of *exchange
}

// Write sends a part of the response (io.Writer).
func (w *writer) Write(p []byte) (int, error) {
	w.of.writing.set()
	defer w.of.writing.clear()
	return w.ResponseWriter.Write(p)
}

// FlushError sends what is buffered (http.ResponseController).
func (w *writer) FlushError() error {
	w.of.writing.set()
	defer w.of.writing.clear()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap returns the ResponseWriter of net/http (http.ResponseController).
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

package postgres_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
)

// wire is the network between the store and the server. It counts round trips, and can cut
// connections.
type wire struct {
	turns   atomic.Int64 // number of round trips: data that arrived after a write
	severed atomic.Bool  // answers are dropped from now on
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: conn, wire: w}, nil
}

// during returns the number of round trips while fn runs.
func (w *wire) during(fn func()) int64 {
	before := w.turns.Load()
	fn()
	return w.turns.Load() - before
}

type wireConn struct {
	net.Conn
	wire *wire
	sent atomic.Bool
}

func (c *wireConn) Write(b []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(b)
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.sent.Swap(false) { // pgx can read in the background while it writes
		c.wire.turns.Add(1)
	}
	if c.wire.severed.Load() {
		return 0, errors.Join(io.ErrUnexpectedEOF, c.Conn.Close())
	}
	return n, err
}

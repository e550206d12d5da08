package httpserver

import (
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConnections is the maximum number of open connections. It limits the number of concurrent
// requests, and the memory that idle clients can take: about 20 KiB each.
const maxConnections = 2048

// restTime is how long a connection must be idle before the server may close it for a new
// connection. The connection of a busy client is also idle for a moment between two requests.
const restTime = time.Second

// MaxConnections returns the maximum number of connections of the process, at most 2,048. It
// reserves a quarter of the files that the process may open for the database, the log and other
// files.
func MaxConnections() int { return connectionLimit(openFiles()) }

func connectionLimit(files uint64) int {
	return int(max(1, min(maxConnections, files/4*3)))
}

// connections tracks the open connections of a server. At the limit, a new connection replaces a
// connection that has been idle for restTime, or waits until one closes. Further connections wait
// in the queue of the kernel and use no memory of the process.
type connections struct {
	limit int

	mu      sync.Mutex
	changed *sync.Cond
	open    map[net.Conn]time.Time // start of the idle time; zero during a request
}

func newConnections(limit int) *connections {
	c := &connections{limit: limit, open: make(map[net.Conn]time.Time)}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// observe is the ConnState callback of the http.Server. For a new connection, it waits until the
// limit allows the connection. The http.Server accepts no other connection until observe returns.
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.makeRoom()
		c.open[conn] = time.Now()
	case http.StateActive:
		c.open[conn] = time.Time{}
	case http.StateIdle:
		c.open[conn] = time.Now()
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
		c.changed.Signal()
	}
}

// admitAll removes the limit, so that no connection waits any longer.
func (c *connections) admitAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = math.MaxInt
	c.changed.Broadcast()
}

// makeRoom waits until the limit allows one more connection. It closes a connection that has been
// idle for restTime, if one exists. The caller must hold c.mu.
func (c *connections) makeRoom() {
	for len(c.open) >= c.limit {
		if resting := c.anyResting(); resting != nil {
			delete(c.open, resting)
			go closeQuietly(resting)
			return
		}
		look := time.AfterFunc(restTime/10, c.changed.Signal)
		c.changed.Wait()
		look.Stop()
	}
}

// closeQuietly closes a connection and ignores the error. With TLS, Close sends a message. If the
// client is unreachable, that can take seconds, so closeQuietly runs in a separate goroutine.
func closeQuietly(conn net.Conn) { _ = conn.Close() }

// anyResting returns a connection that has been idle for restTime, or nil.
func (c *connections) anyResting() net.Conn {
	for conn, since := range c.open { // random order, so a client with many connections loses the most
		if !since.IsZero() && time.Since(since) >= restTime {
			return conn
		}
	}
	return nil
}

// count returns how many connections are open.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// wait waits until all connections are closed, but not longer than the limit.
func (c *connections) wait(limit time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); c.count() > 0 && time.Now().Before(end); {
		<-tick.C
	}
}

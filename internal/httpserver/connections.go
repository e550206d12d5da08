package httpserver

import (
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConnections limits the memory that silent clients can take, about 20 KiB each, and
// the number of concurrent requests.
const maxConnections = 2048

// restTime is how long a connection must be idle before it can be closed to make room.
// The connection of a busy client is idle too, for a moment between two requests.
const restTime = time.Second

// MaxConnections returns how many connections the process can have, 2,048 at most. A quarter
// of the files that it may open are for the database, the log and the rest.
func MaxConnections() int { return connectionLimit(openFiles()) }

func connectionLimit(files uint64) int {
	return int(max(1, min(maxConnections, files/4*3)))
}

// connections tracks the open connections of a server. At the limit, a new connection
// replaces one that has been idle for restTime, or waits for one. Further connections
// wait in the kernel, where they cost nothing.
type connections struct {
	limit int

	mu      sync.Mutex
	changed *sync.Cond
	open    map[net.Conn]time.Time // since when it is idle; zero: a request is in progress
}

func newConnections(limit int) *connections {
	c := &connections{limit: limit, open: make(map[net.Conn]time.Time)}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// observe is the server's ConnState. The server calls it for a new connection before it
// accepts another.
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

// admitAll lifts the limit.
func (c *connections) admitAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = math.MaxInt
	c.changed.Broadcast()
}

// makeRoom returns when there is room for one more connection.
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

// closeQuietly closes a connection whose client may be unreachable. With TLS this sends a
// message and can take seconds, so it runs in its own goroutine.
func closeQuietly(conn net.Conn) { _ = conn.Close() }

// anyResting returns a connection that has been idle for restTime, or nil.
func (c *connections) anyResting() net.Conn {
	for conn, since := range c.open { // in random order: a client with many connections loses most
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

// wait returns when all connections are closed, or after the limit.
func (c *connections) wait(limit time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); c.count() > 0 && time.Now().Before(end); {
		<-tick.C
	}
}

package server

import (
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections is how many connections a process has at once: it bounds the
// memory that clients who say nothing can take, about 20 KiB each, and what is
// asked at the same moment.
const mostConnections = 2048

// restTime is how long a client may leave a connection alone before it can be
// taken from them: one that is asking all the time only seems idle.
const restTime = time.Second

// connectionLimit returns how many connections there may be when the process may
// have so many open files: a quarter is for the store, the log and the rest.
func connectionLimit(files uint64) int {
	return int(max(1, min(mostConnections, files/4*3)))
}

// connections knows the open connections of a server. Where there are as many as
// the limit, a new one takes the place of one on which nobody has asked for a while,
// or waits for that; those after it wait in the kernel, where they cost nothing.
type connections struct {
	limit int

	mu      sync.Mutex
	changed *sync.Cond
	open    map[net.Conn]time.Time // since when it waits for its client; zero: it does not
}

func newConnections(limit int) *connections {
	c := &connections{limit: limit, open: make(map[net.Conn]time.Time)}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// observe is the server's ConnState, which for a new connection it calls before it
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

// makeRoom returns when there is room for one more.
func (c *connections) makeRoom() {
	for len(c.open) >= c.limit {
		if resting := c.anyResting(); resting != nil {
			delete(c.open, resting)
			go part(resting)
			return
		}
		look := time.AfterFunc(restTime/10, c.changed.Signal)
		c.changed.Wait()
		look.Stop()
	}
}

// part closes a connection whose client may not be there any more. With TLS that
// sends a message, and who reads nothing keeps it waiting for seconds: nobody else
// may wait along.
func part(conn net.Conn) { _ = conn.Close() }

// anyResting returns some connection on which nobody has asked for a while, nil if
// there is none.
func (c *connections) anyResting() net.Conn {
	for conn, since := range c.open { // in no order: who opens most loses most
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

// wait returns when no connection is open, or after the limit.
func (c *connections) wait(limit time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); c.count() > 0 && time.Now().Before(end); {
		<-tick.C
	}
}

package httpserver

import (
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// maxConnections is the maximum number of open connections. It limits the number of concurrent
// requests, and the memory that idle clients can take: about 20 KiB each.
const maxConnections = 2048

// restTime is how long a connection must be idle, must wait for the rest of a request, or must not read its
// responses, before the server may close it for a new connection. The connection of a busy client is also idle for a moment between two
// requests.
const restTime = time.Second

// MaxConnections returns the maximum number of connections of the process, at most 2,048. It
// reserves a quarter of the files that the process may open for the database, the log and other
// files.
func MaxConnections() int { return connectionLimit(openFiles()) }

func connectionLimit(files uint64) int {
	return int(max(1, min(maxConnections, files/4*3)))
}

// connections tracks the open connections of a server. At the limit, a new connection replaces one that waits
// for its client, or gets a place in the reserve. Further connections wait in the queue of the kernel and use no
// memory of the process.
type connections struct {
	limit    int
	ofSource int                   // maximum number of connections of one source
	trusted  func(netip.Addr) bool // whether the limit of a source does not apply to this peer
	reserve  int                   // connections above the limit, for health checks
	isProbe  func(*http.Request) bool

	mu       sync.Mutex
	changed  *sync.Cond
	open     map[net.Conn]*connection
	sources  map[netip.Addr]int // number of open connections by source
	reserved []*connection      // the connections in the reserve, the oldest first
	looking  bool               // a timer will wake all that wait for room
	searched time.Time          // until when no connection outside of the reserve can make room
}

// connection is an open connection. The mutex of connections protects it.
type connection struct {
	net.Conn
	source    netip.Addr
	idle      bool        // no request has begun
	since     time.Time   // since when it is idle, waits for a header, or completes a response; zero while handlers work
	exchanges []*exchange // those on which handlers work
	reserved  time.Time   // since when it is in the reserve; zero outside of it
	queued    int         // how many of its requests wait for room; they leave the reserve if another connection needs the place
	evicted   bool        // it had to leave the reserve without room
}

func newConnections(limit int) *connections {
	c := &connections{
		limit: limit, ofSource: max(1, limit/2), reserve: min(maxReserve, limit/16),
		trusted: func(netip.Addr) bool { return false }, isProbe: func(*http.Request) bool { return false },
		open: map[net.Conn]*connection{}, sources: map[netip.Addr]int{},
	}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// observe is the ConnState callback of the http.Server. For a new connection, it waits until there is room.
// The http.Server accepts no other connection until observe returns.
func (c *connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.add(conn)
	case http.StateActive, http.StateIdle:
		if known := c.open[conn]; known != nil {
			known.idle, known.since = state == http.StateIdle, time.Now()
		}
	case http.StateClosed, http.StateHijacked:
		if known := c.open[conn]; known != nil {
			c.remove(known)
		}
		c.changed.Broadcast()
	}
}

// add adds a new connection when there is room. It closes the connection if its source has too many
// others, and none of them waits for the client. The caller must hold c.mu.
func (c *connections) add(conn net.Conn) {
	added := &connection{Conn: conn, source: sourceOf(conn), idle: true}
	if added.source.IsValid() && c.sources[added.source] >= c.ofSource && !c.trusted(peerOf(conn)) {
		replaced := c.waiting(func(other *connection) bool { return other.source == added.source })
		if replaced == nil {
			go closeQuietly(conn)
			return
		}
		c.close(replaced)
	}
	if !c.makeRoom() {
		c.reserved = append(c.reserved, added)
		added.reserved = time.Now()
	}
	added.since = time.Now()
	c.open[conn] = added
	if added.source.IsValid() {
		c.sources[added.source]++
	}
}

// remove removes a connection that was closed. The caller must hold c.mu.
func (c *connections) remove(gone *connection) {
	delete(c.open, gone.Conn)
	c.unreserve(gone)
	if !gone.source.IsValid() {
		return
	}
	if c.sources[gone.source]--; c.sources[gone.source] == 0 {
		delete(c.sources, gone.source)
	}
}

// close closes the connection, and removes it at once. The caller must hold c.mu.
func (c *connections) close(victim *connection) {
	c.remove(victim)
	go closeQuietly(victim.Conn)
}

// admitAll removes the limit, so that no connection waits any longer.
func (c *connections) admitAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.ofSource = math.MaxInt, math.MaxInt
	c.changed.Broadcast()
}

// makeRoom waits until there is room for one more connection. It returns false if the room is in the
// reserve. The caller must hold c.mu.
func (c *connections) makeRoom() bool {
	for !c.hasRoom() {
		if c.hasReserve() {
			return false
		}
		c.look()
	}
	return true
}

// hasRoom reports whether the limit allows one more connection. If the limit is reached, it closes a connection that
// has waited for its client for at least restTime: for a request, for the rest of one, or until a response is read.
// The caller must hold c.mu.
func (c *connections) hasRoom() bool {
	if len(c.open)-len(c.reserved) < c.limit {
		return true
	}
	if time.Now().Before(c.searched) {
		return false // requests that wait for room need not search again
	}
	victim := c.waiting(func(other *connection) bool { return other.reserved.IsZero() })
	if victim == nil {
		c.searched = c.nextVictim()
		return false
	}
	c.close(victim)
	return true
}

// look waits until a connection changes, or a connection may have waited long enough for its client. The
// caller must hold c.mu.
func (c *connections) look() {
	if !c.looking {
		c.looking = true
		time.AfterFunc(min(restTime/10, reserveTime), c.wake)
	}
	c.changed.Wait()
}

func (c *connections) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looking = false
	c.changed.Broadcast()
}

// nextVictim returns when the first of the connections outside of the reserve can have waited for its client for
// restTime. The caller must hold c.mu.
func (c *connections) nextVictim() time.Time {
	next := time.Now()
	for _, other := range c.open {
		if since := other.waitsSince(); other.reserved.IsZero() && !since.IsZero() && since.Before(next) {
			next = since
		}
	}
	return next.Add(restTime)
}

// closeQuietly closes a connection and ignores the error. With TLS, Close sends a message. If the
// client is unreachable, that can take seconds, so closeQuietly runs in a separate goroutine.
func closeQuietly(conn net.Conn) { _ = conn.Close() }

// waiting returns one of the connections that has waited for its client for restTime, or nil. Idle connections
// come before those that wait for a header, a body or the reading of a response. Then the connections of the source with most connections
// come first, and then those that have waited longest. The caller must hold c.mu.
func (c *connections) waiting(of func(*connection) bool) (victim *connection) {
	now := time.Now()
	var longest time.Time
	for _, other := range c.open {
		since := other.waitsSince()
		if since.IsZero() || now.Sub(since) < restTime || !of(other) {
			continue
		}
		if victim == nil || c.precedes(other, victim, since.Compare(longest)) {
			victim, longest = other, since
		}
	}
	return victim
}

// precedes reports whether a is closed before b. The argument age is negative if a has waited longer.
func (c *connections) precedes(a, b *connection, age int) bool {
	if a.idle != b.idle {
		return a.idle
	}
	if x, y := c.sources[a.source], c.sources[b.source]; x != y {
		return x > y
	}
	return age < 0
}

// count returns how many connections are open.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// wait waits until all connections are closed, but not longer than the limit. Idle connections with a request that
// no goroutine has read yet get lateTime more.
func (c *connections) wait(limit time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); c.count() > 0; <-tick.C {
		if now := time.Now(); now.After(end) && (now.After(end.Add(lateTime)) || !c.unread()) {
			return
		}
	}
}

// unread reports whether a request has arrived on a connection that is still idle.
func (c *connections) unread() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range c.open {
		if known.idle && hasUnread(plain(known.Conn)) {
			return true
		}
	}
	return false
}

// plain returns the connection below the encryption of TLS.
func plain(conn net.Conn) net.Conn {
	if encrypted, ok := conn.(interface{ NetConn() net.Conn }); ok { // of crypto/tls
		return encrypted.NetConn()
	}
	return conn
}

// peerOf returns the address of the peer of the connection.
func peerOf(conn net.Conn) netip.Addr {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{} // not a TCP connection
	}
	return peer.Addr().Unmap().WithZone("")
}

// sourceOf returns the address by which the connections of a source are counted. One customer usually has all
// IPv6 addresses of a /64 network, so they count as one source.
func sourceOf(conn net.Conn) netip.Addr {
	peer := peerOf(conn)
	if !peer.Is6() {
		return peer
	}
	network, err := peer.Prefix(64)
	if err != nil {
		return peer
	}
	return network.Addr()
}

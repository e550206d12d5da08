package faults

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// weather is the behavior of a network. The zero weather has no faults.
type weather struct {
	latency, jitter time.Duration // jitter is the maximum additional latency; data stays in order
	perSecond       int           // bytes per second in each direction; zero: no limit
	slice           int           // bytes per write; zero: no limit
	silent          bool          // connections, also new ones, lose all data without notification
}

// relay is a TCP proxy that simulates the network between clients and one server.
type relay struct {
	t        *testing.T
	listener net.Listener
	weather  atomic.Pointer[weather]
	running  sync.WaitGroup

	mu       sync.Mutex
	target   string // host and port, or the path of a socket
	passages map[*passage]bool

	commits cutter
}

// newRelay returns a relay to the target, at first without network faults.
func newRelay(t *testing.T, target string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, listener: listener, target: target, passages: map[*passage]bool{}}
	r.change(weather{})
	r.running.Go(r.accept)
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		r.cut()
		r.running.Wait()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) change(w weather) { r.weather.Store(&w) }

// lead makes new connections go to another target.
func (r *relay) lead(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
}

// cut resets all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.passages {
		p.reset()
	}
}

func (r *relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			r.t.Error(err)
			return
		}
		r.running.Go(func() { r.pass(conn.(*net.TCPConn)) })
	}
}

// pass forwards the data of one connection until either side ends it. If the target
// is not reachable, it resets the connection.
func (r *relay) pass(near *net.TCPConn) {
	p := &passage{relay: r, near: near}
	p.lost.Store(r.weather.Load().silent)
	r.mu.Lock()
	network, target := "tcp", r.target
	if strings.HasPrefix(target, "/") {
		network = "unix"
	}
	far, err := net.Dial(network, target)
	p.far = far
	r.passages[p] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.passages, p)
	}()
	if err != nil {
		p.reset()
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.carry(near, far, false) })
	p.carry(far, near, true)
	back.Wait()
}

// passage is one connection through a relay.
type passage struct {
	relay   *relay
	near    *net.TCPConn
	far     net.Conn // nil: not connected
	lost    atomic.Bool
	answers atomic.Bool // drop the next data of the server, and end the connection
}

// reset ends both sides at once. Buffered data is lost.
func (p *passage) reset() {
	_ = p.near.SetLinger(0) // a connection that has ended needs no reset
	_ = p.near.Close()
	if p.far != nil {
		_ = p.far.Close()
	}
}

// carry forwards bytes until one side ends the connection. Then it closes both sides.
func (p *passage) carry(to io.Writer, from io.Reader, sent bool) {
	defer func() {
		if !p.lost.Load() {
			p.reset()
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		w := p.relay.weather.Load()
		if w.silent {
			p.lost.Store(true)
		}
		if p.lost.Load() {
			continue
		}
		if !p.meet(buffer[:n], to, sent) || !w.pass(to, buffer[:n]) {
			return
		}
	}
}

// meet reports whether to forward the chunk and keep the connection. For a chunk from the client, it
// asks the cutter. If the cut is at the chunk itself, meet writes the chunk and returns false.
func (p *passage) meet(chunk []byte, to io.Writer, sent bool) bool {
	if !sent {
		return !p.answers.Load()
	}
	switch p.relay.commits.choose(chunk) {
	case cutBefore:
		return false
	case cutAt:
		_, _ = to.Write(chunk) // it may or may not arrive
		return false
	case cutAfter:
		p.answers.Store(true)
	}
	return true
}

// pass writes the chunk with the delays and the write size of the weather. It reports whether that
// succeeded.
func (w *weather) pass(to io.Writer, chunk []byte) bool {
	if w.latency > 0 {
		time.Sleep(w.latency + rand.N(w.jitter+1))
	}
	size := len(chunk)
	if w.slice > 0 {
		size = w.slice
	}
	if w.perSecond > 0 {
		size = min(size, max(1, w.perSecond/20))
	}
	for len(chunk) > 0 {
		part := chunk[:min(size, len(chunk))]
		if w.perSecond > 0 {
			time.Sleep(time.Duration(len(part)) * time.Second / time.Duration(w.perSecond))
		}
		if _, err := to.Write(part); err != nil {
			return false
		}
		chunk = chunk[len(part):]
	}
	return true
}

// The point at which a connection is cut during a commit.
const (
	cutNot    = iota
	cutBefore // the commit does not arrive
	cutAt     // the commit may arrive
	cutAfter  // the commit is made, and the answer does not arrive
)

// cutter cuts connections during a commit. It detects a commit by the text of the statement, so it
// does not work with prepared statements.
type cutter struct {
	oneIn atomic.Int64 // one in this number of commits is cut; zero: none
	cuts  [cutAfter + 1]atomic.Int64
}

// commits are texts in the data that a client sends at the end of a transaction: the statement
// commit or, if the transaction is one batch, the insertion of its event.
var commits = [][]byte{[]byte("\x00commit\x00"), []byte("insert into events")}

func (c *cutter) choose(chunk []byte) int {
	oneIn := c.oneIn.Load()
	if oneIn == 0 || rand.Int64N(oneIn) > 0 || !bytes.HasSuffix(chunk, []byte("S\x00\x00\x00\x04")) {
		return cutNot
	}
	for _, commit := range commits {
		if bytes.Contains(chunk, commit) {
			where := cutBefore + rand.IntN(cutAfter)
			c.cuts[where].Add(1)
			return where
		}
	}
	return cutNot
}

// done returns the number of connections that were cut.
func (c *cutter) done() (n int64) {
	for where := range c.cuts {
		n += c.cuts[where].Load()
	}
	return n
}

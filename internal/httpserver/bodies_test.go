package httpserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

// peerConn is one end of a pipe with the address of a peer.
type peerConn struct {
	net.Conn
	peer string
}

// RemoteAddr returns the address of the peer.
func (c peerConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.peer), 1))
}

// from returns connections of the peers.
func from(t *testing.T, peers ...string) []net.Conn {
	t.Helper()
	ends := pipes(t, len(peers))
	for i := range ends {
		ends[i] = peerConn{ends[i], peers[i]}
	}
	return ends
}

// waitForBody makes a handler of the connection wait for the body of a request.
func (c *connections) waitForBody(t *testing.T, conn net.Conn) {
	t.Helper()
	c.work(t, conn).reading.set()
}

// closedOnes returns the indexes of the connections that were closed.
func closedOnes(ends []net.Conn) string {
	synctest.Wait()
	var closed []string
	for i, end := range ends {
		if isClosed(end) {
			closed = append(closed, fmt.Sprint(i))
		}
	}
	return strings.Join(closed, " ")
}

func TestConnectionsThatWaitForABodyMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(6)
		c.ofSource = 6
		ends := from(t, "192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.2", "192.0.2.3", "192.0.2.3", "192.0.2.9", "192.0.2.9", "192.0.2.9", "192.0.2.9")
		for _, end := range ends[:6] {
			c.observe(end, http.StateNew)
		}
		c.waitForBody(t, ends[0]) // it waits longest, and its source has one connection
		<-time.After(restTime)
		c.waitForBody(t, ends[4])
		c.waitForBody(t, ends[3])
		<-time.After(restTime)
		c.waitForBody(t, ends[2])
		c.work(t, ends[1])
		c.work(t, ends[5])
		<-time.After(restTime)
		for i, want := range []string{
			"3",       // its source has three connections, and 2 has waited for less time
			"3 4",     // now two sources have two that wait, and 4 has waited longer
			"2 3 4",   // its source has two connections, and those of 0 and of 5 have one
			"0 2 3 4", // the last one that waits
		} {
			c.observe(ends[6+i], http.StateNew)
			c.work(t, ends[6+i])
			if got := closedOnes(ends[:6]); got != want {
				t.Errorf("%d new connections closed %q, want %q", i+1, got, want)
			}
		}
	})
}

func TestABodyThatArrivesSlowlyWaitsAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ends := newConnections(1), from(t, "192.0.2.1", "192.0.2.2")
		c.observe(ends[0], http.StateNew)
		in, out := io.Pipe()
		read := &body{ReadCloser: in, of: c.work(t, ends[0])}
		go func() {
			if _, err := io.Copy(io.Discard, read); err != nil {
				t.Error(err)
			}
		}()
		for range 4 { // a byte each half second
			if _, err := out.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			<-time.After(restTime / 2)
		}
		c.observe(ends[1], http.StateNew)
		if got := closedOnes(ends); got != "0" {
			t.Errorf("%q were closed", got)
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

func TestACompleteBodyIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ends := newConnections(1), from(t, "192.0.2.1")
		c.observe(ends[0], http.StateNew)
		read := &body{ReadCloser: io.NopCloser(strings.NewReader("{}")), of: c.work(t, ends[0])}
		if _, err := io.Copy(io.Discard, read); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * restTime)
		c.closesNone(t)
	})
}

func TestConnectionsOfASourceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(8)
		c.trusted = func(peer netip.Addr) bool { return peer == netip.MustParseAddr("192.0.2.9") }
		ends := from(t, "2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4", "2001:db8::5", "2001:db8:0:1::1", "192.0.2.9", "192.0.2.9")
		for _, end := range ends[:6] { // one network has four of eight connections
			c.observe(end, http.StateNew)
			if !isClosed(end) {
				c.work(t, end)
			}
			synctest.Wait()
		}
		if got := closedOnes(ends[:6]); got != "4" {
			t.Errorf("%q were closed", got)
		}
		c.waitForBody(t, ends[1])
		<-time.After(restTime)
		again := from(t, "2001:db8::6")
		c.observe(again[0], http.StateNew)
		if got := closedOnes(append(ends[:4:4], again...)); got != "1" {
			t.Errorf("a new connection closed %q, want the one of its source that waits", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(8)
		c.trusted = func(netip.Addr) bool { return true }
		ends := from(t, "192.0.2.9", "192.0.2.9", "192.0.2.9", "192.0.2.9", "192.0.2.9", "192.0.2.9")
		for _, end := range ends {
			c.observe(end, http.StateNew)
			c.work(t, end)
		}
		if got := closedOnes(ends); got != "" {
			t.Errorf("%q of a trusted proxy were closed", got)
		}
	})
}

// serve starts a server with the handler, whose health checks have the path /livez. It returns the address.
func serve(t *testing.T, limit int, handler http.HandlerFunc) string {
	t.Helper()
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := Server{
		HTTP:     &http.Server{Handler: handler, Protocols: protocols},
		Listener: listener, Limit: limit, Trusted: func(netip.Addr) bool { return true },
		IsProbe: func(r *http.Request) bool { return r.URL.Path == "/livez" },
		OnStop:  func() {}, Logger: slog.New(slog.DiscardHandler),
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// dial opens a connection that ends with the test, and sends the text.
func dial(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the server may have closed it
	if err := conn.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestHealthChecksAreAnsweredAboveTheLimit opens all connections with one byte of a body each. The server cannot
// close them, because the test lets no time pass.
func TestHealthChecksAreAnsweredAboveTheLimit(t *testing.T) {
	const limit = 64 // with four more in the reserve
	reading := make(chan struct{}, limit+8)
	address := serve(t, limit, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			one := make([]byte, 1)
			if _, err := io.ReadFull(r.Body, one); err != nil {
				return
			}
			reading <- struct{}{}
			_, _ = io.Copy(io.Discard, r.Body) // ends when the connection closes
		}
	})
	var slow []net.Conn
	statusOf := func(path string) int {
		answer, err := http.ReadResponse(bufio.NewReader(dial(t, address, "GET "+path+" HTTP/1.1\r\nHost: test\r\n\r\n")), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return answer.StatusCode
	}
	for range limit {
		slow = append(slow, dial(t, address, "POST /slow HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\n{"))
		<-reading
	}
	for range 20 { // more than the reserve has places
		if got := statusOf("/livez"); got != http.StatusOK {
			t.Fatalf("a health check: %d", got)
		}
	}
	if got := statusOf("/users"); got != http.StatusOK { // when one of the others has waited for a second
		t.Errorf("another request: %d", got)
	}
	if _, err := slow[0].Read(make([]byte, 1)); err == nil {
		t.Error("the connection that has waited longest was not closed")
	}
}

func TestTheReserveHasRoomForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(32) // two in the reserve
		ends := pipes(t, 32+6)
		for _, end := range ends[:32] {
			c.observe(end, http.StateNew)
			c.work(t, end)
		}
		for _, end := range ends[32:] { // without a request
			c.observe(end, http.StateNew)
		}
		if got := closedOnes(ends); got != "32 33 34 35" {
			t.Errorf("%q were closed", got)
		}
	})
}

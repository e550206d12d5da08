package httpserver

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// pipes returns one end of each of n connections.
func pipes(t *testing.T, n int) []net.Conn {
	t.Helper()
	ends := make([]net.Conn, n)
	for i := range ends {
		end, other := net.Pipe()
		t.Cleanup(func() { _, _ = end.Close(), other.Close() })
		ends[i] = end
	}
	return ends
}

// work makes the server work on a request of the connection, as the handler of the server does.
func (c *connections) work(t *testing.T, conn net.Conn) *exchange {
	t.Helper()
	c.observe(conn, http.StateActive)
	e, place := c.begin(httptest.NewRequest(http.MethodGet, "/users", nil), conn)
	if place != admitted {
		t.Fatalf("the place of a request is %d", place)
	}
	return e
}

// closesNone checks that no connection makes room for another one.
func (c *connections) closesNone(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasRoom() {
		t.Error("a connection was closed while a handler worked")
	}
}

// isClosed reports whether this end of a pipe was closed.
func isClosed(conn net.Conn) bool {
	return conn.SetDeadline(time.Time{}) != nil
}

// deafConn simulates a connection to an unreachable client. Its Close waits until heard is closed.
type deafConn struct {
	net.Conn
	heard chan struct{}
}

// Close waits until heard is closed, and then closes the connection.
func (c deafConn) Close() error {
	<-c.heard
	return c.Conn.Close()
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Run("when all are let in nobody waits for room", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, ends := newConnections(1), pipes(t, 2)
			c.observe(ends[0], http.StateNew)
			c.work(t, ends[0])
			before := time.Now()
			go c.observe(ends[1], http.StateNew)
			synctest.Wait()
			c.admitAll()
			synctest.Wait()
			if c.count() != 2 || time.Since(before) != 0 {
				t.Errorf("%d are open after %v", c.count(), time.Since(before))
			}
		})
	})
	t.Run("one on which nobody asks makes room", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, ends := newConnections(3), pipes(t, 4)
			for _, end := range ends[:2] {
				c.observe(end, http.StateNew)
			}
			c.work(t, ends[0])
			<-time.After(restTime)
			c.observe(ends[2], http.StateNew)
			c.observe(ends[3], http.StateNew)
			synctest.Wait()
			for i, closed := range []bool{false, true, false, false} {
				if isClosed(ends[i]) != closed {
					t.Errorf("connection %d was closed: %v", i, !closed)
				}
			}
			if c.count() != 3 {
				t.Errorf("%d are open", c.count())
			}
		})
	})
	t.Run("one that takes long to close keeps nobody waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, ends := newConnections(1), pipes(t, 2)
			deaf := deafConn{ends[0], make(chan struct{})}
			c.observe(deaf, http.StateNew)
			<-time.After(restTime)
			before := time.Now()
			time.AfterFunc(time.Minute, func() { close(deaf.heard) })
			c.observe(ends[1], http.StateNew)
			if waited := time.Since(before); waited != 0 {
				t.Errorf("it was let in after %v", waited)
			}
			<-deaf.heard
		})
	})
	for state, wait := range map[http.ConnState]time.Duration{http.StateIdle: restTime, http.StateClosed: 0, http.StateHijacked: 0} {
		t.Run("where all ask a new one waits for one that is "+state.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, ends := newConnections(1), pipes(t, 2)
				c.observe(ends[0], http.StateNew)
				c.work(t, ends[0])
				in := make(chan struct{})
				go func() {
					defer close(in)
					c.observe(ends[1], http.StateNew)
				}()
				<-time.After(10 * restTime)
				select {
				case <-in:
					t.Fatal("it did not wait")
				default:
				}
				before := time.Now()
				c.observe(ends[0], state)
				<-in
				if waited := time.Since(before); waited < wait || waited > wait+restTime/5 || c.count() != 1 {
					t.Errorf("it was let in after %v; %d are open", waited, c.count())
				}
			})
		})
	}
	for files, want := range map[uint64]int{256: 192, 1: 1, 1 << 40: maxConnections} {
		if got := connectionLimit(files); got != want {
			t.Errorf("with %d files there may be %d connections, not %d", files, got, want)
		}
	}
}

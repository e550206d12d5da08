package httpserver

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// writes accepts the connections as a server does, and starts a write on each.
func writes(t *testing.T, c *connections, ends []net.Conn) {
	t.Helper()
	for i, end := range ends {
		accepted, err := writeListener{&oneConn{conn: end}}.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = accepted
		c.observe(accepted, http.StateNew)
		c.work(t, accepted)
		go func() { _, _ = accepted.Write([]byte("HTTP/1.1 200 OK")) }()
		<-time.After(restTime / 4)
	}
}

// oneConn is a listener with one connection.
type oneConn struct {
	net.Listener
	conn net.Conn
}

// Accept returns the connection (net.Listener).
func (l *oneConn) Accept() (net.Conn, error) { return l.conn, nil }

func TestConnectionsWhoseResponsesAreNotReadMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(3)
		c.ofSource = 3
		ends := from(t, "192.0.2.1", "192.0.2.2", "192.0.2.2")
		writes(t, c, ends)
		c.observe(ends[0], http.StateActive) // the handler has ended, and the write still waits
		c.work(t, ends[0])
		<-time.After(restTime)
		more := from(t, "192.0.2.9", "192.0.2.9")
		for i, want := range []string{"1", "0 1"} { // the source with two connections, and then the one that waits longest
			c.observe(more[i], http.StateNew)
			c.work(t, more[i])
			if got := closedOnes(ends); got != want {
				t.Errorf("%d new connections closed %q, want %q", i+1, got, want)
			}
		}
	})
}

func TestAResponseThatIsReadIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(1)
		end, client := net.Pipe()
		defer client.Close()
		ends := []net.Conn{end}
		go func() {
			if _, err := client.Read(make([]byte, 100)); err != nil {
				t.Error(err)
			}
		}()
		writes(t, c, ends)
		<-time.After(2 * restTime)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.hasRoom() {
			t.Error("a connection was closed while a handler worked")
		}
	})
}

// accept returns a connection that the server has accepted, and the connection of its client.
func accept(t *testing.T) (accepted, client net.Conn) {
	t.Helper()
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if accepted, err = (writeListener{listener}).Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), accepted.Close() })
	return accepted, client
}

func TestARequestThatWaitsForAProcessorDelaysTheStop(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells whether a connection has unread bytes")
	}
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(1)
		accepted, client := accept(t)
		c.observe(accepted, http.StateNew)
		if c.unread() {
			t.Error("no request was sent, and one is unread")
		}
		if _, err := client.Write([]byte("GET / HTTP/1.1")); err != nil {
			t.Fatal(err)
		}
		for !c.unread() {
			runtime.Gosched()
		}
		began := time.Now()
		c.wait(0)
		if took := time.Since(began); took < lateTime {
			t.Errorf("the stop waited for %v", took)
		}
		c.observe(accepted, http.StateActive)
		began = time.Now()
		c.wait(0)
		if took := time.Since(began); took > time.Second {
			t.Errorf("with a request in progress, the stop waited for %v", took)
		}
	})
}

func TestTheEndOfTheResponsesReachesTheClient(t *testing.T) {
	accepted, client := accept(t)
	half, ok := accepted.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("http.Server cannot end the responses before it closes a connection with unread bytes")
	}
	if _, err := client.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	if _, err := accepted.Write([]byte("431")); err != nil {
		t.Fatal(err)
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); err != nil || string(got) != "431" {
		t.Errorf("the client read %q, %v", got, err)
	}
}

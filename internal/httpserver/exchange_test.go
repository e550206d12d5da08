package httpserver

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// unread is a ResponseWriter whose client reads nothing.
type unread struct {
	http.ResponseWriter
	left chan struct{}
}

// Write returns when the client has left.
func (w unread) Write([]byte) (int, error) {
	<-w.left
	return 0, io.ErrClosedPipe
}

func TestConnectionsWhoseResponsesAreNotReadMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, left := newConnections(3), make(chan struct{})
		defer close(left)
		c.ofSource = 3
		ends := from(t, "192.0.2.1", "192.0.2.2", "192.0.2.2")
		for _, end := range ends {
			c.observe(end, http.StateNew)
			e := c.work(t, end)
			go func() {
				w := writer{unread{left: left}, e}
				_, _ = w.Write([]byte("HTTP/1.1 200 OK"))
			}()
			<-time.After(restTime / 4)
		}
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
		ends := from(t, "192.0.2.1")
		c.observe(ends[0], http.StateNew)
		w := writer{httptest.NewRecorder(), c.work(t, ends[0])}
		if _, err := w.Write([]byte("read")); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * restTime)
		c.closesNone(t)
	})
}

func TestTheServerWaitsForTheClientAfterTheHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(1)
		ends := from(t, "192.0.2.1", "192.0.2.2")
		c.observe(ends[0], http.StateNew)
		first, second := c.work(t, ends[0]), c.work(t, ends[0])
		c.end(first)
		<-time.After(restTime)
		c.closesNone(t)
		c.end(second)
		c.observe(ends[1], http.StateNew)
		if got := closedOnes(ends[:1]); got != "0" {
			t.Errorf("%q were closed", got)
		}
	})
}

// TestAnIgnoredBodyMakesRoom sends requests whose handler does not read the body. net/http then waits for the body
// before it completes the response.
func TestAnIgnoredBodyMakesRoom(t *testing.T) {
	for name, size := range map[string]int{"a short response": 10, "a long response": 10_000} {
		t.Run(name, func(t *testing.T) {
			began := make(chan struct{}, 10)
			address := serve(t, 2, func(w http.ResponseWriter, _ *http.Request) {
				began <- struct{}{}
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, strings.Repeat("x", size)) // fails if the connection was closed
			})
			for range 2 {
				dial(t, address, "POST /users HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\n")
				<-began
			}
			conn := dial(t, address, "GET /users HTTP/1.1\r\nHost: test\r\n\r\n")
			if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != http.StatusUnauthorized {
				t.Errorf("another connection: %v, %v", answer, err)
			}
		})
	}
}

// http2Client opens a connection of HTTP/2 that lets the server send no part of a body.
func http2Client(t *testing.T, address string) *http2.Framer {
	t.Helper()
	conn := dial(t, address, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	return framer
}

// ask sends a GET on the stream. The header block is in plain HPACK literals.
func ask(t *testing.T, framer *http2.Framer, stream uint32, path string) {
	t.Helper()
	block := []byte{0x82, 0x86, 0x04, byte(len(path))} // :method GET, :scheme http, :path
	block = append(append(block, path...), 0x01, 4)    // :authority
	block = append(block, "test"...)
	err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndStream: true, EndHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAClosedWindowOfHTTP2MakesRoom(t *testing.T) {
	began := make(chan struct{}, 10)
	address := serve(t, 2, func(w http.ResponseWriter, _ *http.Request) {
		began <- struct{}{}
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000)) // fails if the connection was closed
	})
	for range 2 {
		framer := http2Client(t, address)
		ask(t, framer, 1, "/users")
		<-began
	}
	conn := dial(t, address, "GET /users HTTP/1.1\r\nHost: test\r\n\r\n")
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("another connection: %v, %v", answer, err)
	}
}

// TestSlowHealthChecksLeaveTheReserve fills the limit with handlers that work, and the reserve with health checks
// that do not end.
func TestSlowHealthChecksLeaveTheReserve(t *testing.T) {
	for name, request := range map[string]func(t *testing.T, address string){
		"with a body that does not arrive": func(t *testing.T, address string) {
			dial(t, address, "POST /livez HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\n")
		},
		"whose response is not read": func(t *testing.T, address string) { ask(t, http2Client(t, address), 1, "/livez") },
	} {
		t.Run(name, func(t *testing.T) { leaveTheReserve(t, request) })
	}
}

func leaveTheReserve(t *testing.T, request func(t *testing.T, address string)) {
	const limit, reserve = 32, 2
	began, proceed := make(chan struct{}, limit), make(chan struct{})
	address := serve(t, limit, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" {
			began <- struct{}{}
			<-proceed
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000)) // fails if the connection was closed
	})
	defer close(proceed)
	for range limit {
		dial(t, address, "GET /users HTTP/1.1\r\nHost: test\r\n\r\n")
		<-began
	}
	for range reserve {
		request(t, address)
	}
	for range 2 * reserve {
		conn := dial(t, address, "GET /livez HTTP/1.1\r\nHost: test\r\n\r\n")
		if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("a health check: %v, %v", answer, err)
		}
	}
}

func TestAllQueuedRequestsOfAConnectionAreAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ends := newConnections(32), pipes(t, 33) // two in the reserve
		for _, end := range ends {
			c.observe(end, http.StateNew)
		}
		var first *exchange
		for _, end := range ends[:32] {
			first = c.work(t, end)
		}
		places := make(chan place, maxQueued+1)
		for range maxQueued + 1 {
			go func() {
				_, place := c.begin(httptest.NewRequest(http.MethodGet, "/users", nil), ends[32])
				places <- place
			}()
		}
		synctest.Wait()
		if len(places) != 1 || <-places != refused {
			t.Fatalf("%d requests wait, want %d", maxQueued+1-len(places), maxQueued)
		}
		c.observe(first.conn.Conn, http.StateClosed)
		for range maxQueued {
			if got := <-places; got != admitted {
				t.Errorf("the place is %d", got)
			}
		}
	})
}

// TestTheBodyOfNetHTTPIsKept checks two decisions of net/http that depend on the body that it has made.
func TestTheBodyOfNetHTTPIsKept(t *testing.T) {
	address := serve(t, 2, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	})
	const size = 1 << 20
	for name, request := range map[string]string{
		"a body that is sent whole": "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("x", size),
		"a client that asks first":  "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1048576\r\nExpect: 100-continue\r\n\r\n",
	} {
		conn := dial(t, address, request)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
	}
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
	if accepted, err = listener.Accept(); err != nil {
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

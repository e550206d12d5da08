package web

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
)

func TestTheSlowestResponseOfTheLargestShareIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutgoing(100)
		var closed []string
		add := func(name string, tenant byte, bytes int, safe bool) *sending {
			s := &sending{tenant: rolecall.TenantID{tenant}, bytes: bytes}
			if safe {
				s.close = func() { closed = append(closed, name) }
			}
			o.count(s)
			<-time.After(time.Millisecond)
			return s
		}
		add("a change", 1, 30, false)
		first := add("first", 1, 20, true)
		add("second", 1, 20, true)
		small := add("small", 2, 20, true)
		o.progress(first)
		<-time.After(time.Millisecond)
		if closed != nil {
			t.Fatalf("%q were closed below the limit", closed)
		}
		add("third", 1, 20, true)
		add("fourth", 2, 40, true) // closes one of the first tenant, and then the second tenant has most
		if want := []string{"second", "first", "small"}; !slices.Equal(closed, want) {
			t.Errorf("%q were closed, want %q", closed, want)
		}
		o.end(small)
		if o.bytes > o.limit {
			t.Errorf("%d bytes wait", o.bytes)
		}
		ended := &sending{bytes: 1000, ended: true}
		if o.count(ended); ended.counts {
			t.Error("a response that was sent counts")
		}
		add("only changes", 3, 500, false) // closes all others, and stays
		if o.tenants[rolecall.TenantID{3}] == nil || o.tenants[rolecall.TenantID{1}].bytes != 30 || len(o.tenants) != 2 {
			t.Errorf("%d bytes of %d tenants wait", o.bytes, len(o.tenants))
		}
	})
}

// TestSlowReadersDoNotUseTheMemory lets many clients request a large response and read nothing of it.
func TestSlowReadersDoNotUseTheMemory(t *testing.T) {
	const size = 16 << 20 // the buffers of two sockets take less
	site := New(Options{Logger: slog.New(slog.DiscardHandler)})
	site.outgoing = newOutgoing(3 * size)
	body := bytes.Repeat([]byte("x"), size)
	ended := make(chan string, 100)
	server := httptest.NewServer(site.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		RequestOf(r).ReadsOnly = r.URL.Path == "/reads"
		Respond(w, r, http.StatusOK, body)
		ended <- fmt.Sprint(r.Method, " ", r.URL.Path, " ", RequestOf(r).Cause != nil)
	}), site.RespondProblem))
	defer server.Close()
	var clients []net.Conn
	open := func(method, path string) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, conn)
		if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n", method, path); err != nil {
			t.Fatal(err)
		}
	}
	open(http.MethodPost, "/")
	for range 5 {
		open(http.MethodPost, "/reads")
	}
	for range 4 {
		open(http.MethodGet, "/")
	}
	for range 7 { // of ten, three have room
		if got := <-ended; got != "GET / true" && got != "POST /reads true" {
			t.Fatalf("a response ended: %s", got)
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(clients[0]), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(answer.Body); err != nil || len(got) != size {
		t.Errorf("the answer to the change has %d bytes: %v", len(got), err)
	}
	for _, conn := range clients {
		_ = conn.Close() // the server may have closed it
	}
	for range 3 {
		if got := <-ended; strings.HasPrefix(got, "POST / ") && got != "POST / false" {
			t.Errorf("a response ended: %s", got)
		}
	}
	site.outgoing.mu.Lock()
	defer site.outgoing.mu.Unlock()
	if site.outgoing.bytes != 0 || len(site.outgoing.tenants) != 0 {
		t.Errorf("%d bytes are left", site.outgoing.bytes)
	}
}

// Package outboundtest has servers and names for tests of requests to addresses that users choose.
package outboundtest

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// names is a DNS server for tests.
type names struct {
	conn net.PacketConn
	mu   sync.Mutex
	of   map[string][]string // the addresses of each name that were not returned yet
}

// Resolver returns a resolver that knows the names. Each lookup of a name takes the next of its addresses,
// and the last one again and again. A name that is not a key has the addresses of the key "".
func Resolver(t *testing.T, of map[string][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn, of: of}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serve()
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	query := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(query)
		if err != nil {
			return
		}
		if answer := n.answer(query[:size]); answer != nil {
			_, _ = n.conn.WriteTo(answer, from)
		}
	}
}

// answer returns the response to a query with one question.
func (n *names) answer(query []byte) []byte {
	var labels []string
	at := 12
	for at < len(query) && query[at] != 0 {
		end := at + 1 + int(query[at])
		labels, at = append(labels, string(query[at+1:end])), end
	}
	question := query[12 : at+5]
	kind := binary.BigEndian.Uint16(query[at+1:])
	response := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	if kind != 1 { // only addresses of IPv4
		return response
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	name := strings.Join(labels, ".")
	if _, known := n.of[name]; !known {
		name = ""
	}
	addresses := n.of[name]
	if len(addresses) == 0 {
		response[3] |= 3 // no such name
		return response
	}
	if len(addresses) > 1 {
		n.of[name] = addresses[1:]
	}
	response[7] = 1
	response = append(response, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
	return append(response, netip.MustParseAddr(addresses[0]).AsSlice()...)
}

// Endpoint starts a server whose certificate is for example.com. It listens on the address.
func Endpoint(t *testing.T, address string, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(handle)
	_ = s.Listener.Close()
	s.Listener, s.Config.ErrorLog = listener, log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// Roots returns the authority that has issued the certificate of the server.
func Roots(s *httptest.Server) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return roots
}

// Port returns the port of the server.
func Port(s *httptest.Server) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

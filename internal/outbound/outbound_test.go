package outbound

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
	"sync/atomic"
	"testing"
	"time"
)

// names is a DNS server. Each lookup of a name takes the next of its addresses, and the last one
// again and again. A name without addresses has the address of the key "".
type names struct {
	conn net.PacketConn
	mu   sync.Mutex
	of   map[string][]string
}

func newNames(t *testing.T, of map[string][]string) *net.Resolver {
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

// endpoint is a server whose certificate is for example.com. It listens on the address.
func endpoint(t *testing.T, address string, handle http.HandlerFunc) *httptest.Server {
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

func rootsOf(s *httptest.Server) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return roots
}

func portOf(s *httptest.Server) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func (c *Client) try(t *testing.T, url string) Result {
	t.Helper()
	return c.Post(t.Context(), url, http.Header{"Content-Type": {"application/json"}}, []byte(`{}`))
}

func TestPrivateAddressesAreRefusedAtDial(t *testing.T) {
	var reached atomic.Int32
	s := endpoint(t, "127.0.0.1:0", func(http.ResponseWriter, *http.Request) {})
	s.Config.ConnState = func(net.Conn, http.ConnState) { reached.Add(1) }
	// All names lead to the endpoint, as forms such as 2130706433 do for some resolvers.
	c := New(Options{Resolver: newNames(t, map[string][]string{"": {"127.0.0.1"}}), Roots: rootsOf(s)})
	hosts := append([]string{"example.com", "hooks.example.com", "127.0.0.1.nip.example"}, privateHosts...)
	for _, host := range hosts {
		if r := c.try(t, "https://"+host+":"+portOf(s)+"/"); r.Error == "" || r.Status != 0 {
			t.Errorf("%s: %+v", host, r)
		}
	}
	for _, host := range hosts[:3] {
		if r := c.try(t, "https://"+host+":"+portOf(s)+"/"); r.Error != CodeAddress {
			t.Errorf("%s: %+v", host, r)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the endpoint was reached %d times", n)
	}
	if r := New(Options{Resolver: newNames(t, map[string][]string{"": {"127.0.0.1"}}), Roots: rootsOf(s), Allowed: loopback}).try(t, "https://example.com:"+portOf(s)+"/"); r.Error != "" {
		t.Errorf("with an allowed network, the endpoint is not reached: %+v", r)
	}
}

func TestTheSecondLookupIsCheckedToo(t *testing.T) {
	var reached atomic.Int32
	first := endpoint(t, "127.0.0.2:0", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	second, err := net.Listen("tcp", "127.0.0.1:"+portOf(first))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	go func() {
		for {
			conn, err := second.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = conn.Close()
		}
	}()
	c := New(Options{
		Resolver: newNames(t, map[string][]string{"example.com": {"127.0.0.2", "127.0.0.1"}}), Roots: rootsOf(first),
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
	})
	url := "https://example.com:" + portOf(first) + "/"
	if r := c.try(t, url); r.Error != "" {
		t.Fatalf("the first request: %+v", r)
	}
	first.CloseClientConnections()
	c.http.CloseIdleConnections()
	if r := c.try(t, url); r.Error != CodeAddress {
		t.Errorf("the second request: %+v", r)
	}
	if reached.Load() != 0 {
		t.Error("the second address was reached")
	}
}

func TestFaultsOfEndpoints(t *testing.T) {
	late := make(chan struct{})
	s := endpoint(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangs", "/late":
			select {
			case <-late:
			case <-r.Context().Done():
			}
		case "/redirects":
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/large":
			for range 10 << 10 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					return
				}
			}
		case "/header":
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/busy":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/breaks":
			panic(http.ErrAbortHandler)
		}
	})
	defer close(late)
	c := New(Options{Resolver: newNames(t, map[string][]string{"example.com": {"127.0.0.1"}, "other.example.org": {"127.0.0.1"}}), Roots: rootsOf(s), Allowed: loopback, Timeout: 400 * time.Millisecond})
	for path, want := range map[string]Result{
		"/ok": {Status: 200}, "/hangs": {Error: CodeTimeout}, "/late": {Error: CodeTimeout}, "/redirects": {Status: 307, Error: CodeRedirect},
		"/large": {Status: 200}, "/endless": {Status: 200}, "/header": {Error: CodeConnect}, "/gone": {Status: 410, Error: CodeStatus},
		"/busy": {Status: 429, Error: CodeStatus, RetryAfter: 2 * time.Minute}, "/breaks": {Error: CodeConnect},
	} {
		got := c.try(t, "https://example.com:"+portOf(s)+path)
		if got.Duration <= 0 || got.Duration > 5*time.Second {
			t.Errorf("%s took %v", path, got.Duration)
		}
		got.Duration = 0
		if got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	for url, want := range map[string]string{
		"https://other.example.org:" + portOf(s) + "/ok": CodeTLS, // the certificate is for another name
		"https://none.example.org/ok":                    CodeName,
		"http://example.com:" + portOf(s) + "/ok":        CodeAddress,
		"https://example.com:1/ok":                       CodeConnect,
	} {
		if r := c.try(t, url); r.Error != want || r.Status != 0 {
			t.Errorf("%s: %+v, want %s", url, r, want)
		}
	}
	if r := New(Options{Allowed: loopback}).try(t, s.URL+"/ok"); r.Error != CodeTLS {
		t.Errorf("an unknown authority: %+v", r)
	}
}

func TestAPlainServerIsNotReached(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") }))
	defer s.Close()
	c := New(Options{Allowed: loopback})
	if r := c.try(t, strings.Replace(s.URL, "http:", "https:", 1)); r.Error != CodeTLS {
		t.Errorf("%+v", r)
	}
}

func TestTheProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was used") }))
	defer proxy.Close()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	s := endpoint(t, "127.0.0.1:0", func(http.ResponseWriter, *http.Request) {})
	c := New(Options{Resolver: newNames(t, map[string][]string{"example.com": {"127.0.0.1"}}), Roots: rootsOf(s), Allowed: loopback})
	if r := c.try(t, "https://example.com:"+portOf(s)+"/"); r.Error != "" {
		t.Errorf("%+v", r)
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "0": 0, "7": 7 * time.Second, "-1": 0, "x": 0, "99999999": longestPause, "Mon, 01 Jan 2001 00:00:00 GMT": 0} {
		if got := retryAfter(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := retryAfter(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)); got < 59*time.Minute || got > time.Hour {
		t.Errorf("an hour from now: %v", got)
	}
}

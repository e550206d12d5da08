package outbound

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func (c *Client) try(t *testing.T, url string) Result {
	t.Helper()
	return c.Post(t.Context(), url, http.Header{"Content-Type": {"application/json"}}, []byte(`{}`))
}

func TestPrivateAddressesAreRefusedAtDial(t *testing.T) {
	var reached atomic.Int32
	s := outboundtest.Endpoint(t, "127.0.0.1:0", func(http.ResponseWriter, *http.Request) {})
	s.Config.ConnState = func(net.Conn, http.ConnState) { reached.Add(1) }
	// All names lead to the endpoint, as forms such as 2130706433 do for some resolvers.
	c := New(Options{Resolver: outboundtest.Resolver(t, map[string][]string{"": {"127.0.0.1"}}), Roots: outboundtest.Roots(s)})
	hosts := append([]string{"example.com", "hooks.example.com", "127.0.0.1.nip.example"}, privateHosts...)
	for _, host := range hosts {
		if r := c.try(t, "https://"+host+":"+outboundtest.Port(s)+"/"); r.Error == "" || r.Status != 0 {
			t.Errorf("%s: %+v", host, r)
		}
	}
	for _, host := range hosts[:3] {
		if r := c.try(t, "https://"+host+":"+outboundtest.Port(s)+"/"); r.Error != CodeAddress {
			t.Errorf("%s: %+v", host, r)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the endpoint was reached %d times", n)
	}
	if r := New(Options{Resolver: outboundtest.Resolver(t, map[string][]string{"": {"127.0.0.1"}}), Roots: outboundtest.Roots(s), Allowed: loopback}).try(t, "https://example.com:"+outboundtest.Port(s)+"/"); r.Error != "" {
		t.Errorf("with an allowed network, the endpoint is not reached: %+v", r)
	}
}

func TestTheSecondLookupIsCheckedToo(t *testing.T) {
	var reached atomic.Int32
	first := outboundtest.Endpoint(t, "127.0.0.2:0", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	second, err := net.Listen("tcp", "127.0.0.1:"+outboundtest.Port(first))
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
		Resolver: outboundtest.Resolver(t, map[string][]string{"example.com": {"127.0.0.2", "127.0.0.1"}}), Roots: outboundtest.Roots(first),
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
	})
	url := "https://example.com:" + outboundtest.Port(first) + "/"
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
	s := outboundtest.Endpoint(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
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
	options := Options{Resolver: outboundtest.Resolver(t, map[string][]string{"example.com": {"127.0.0.1"}, "other.example.org": {"127.0.0.1"}}), Roots: outboundtest.Roots(s), Allowed: loopback}
	c := New(options)
	options.Timeout = 400 * time.Millisecond
	impatient := New(options) // only for requests without a response: others can take longer on a busy machine
	for path, want := range map[string]Result{
		"/ok": {Status: 200}, "/hangs": {Error: CodeTimeout}, "/late": {Error: CodeTimeout}, "/redirects": {Status: 307, Error: CodeRedirect},
		"/large": {Status: 200}, "/endless": {Status: 200}, "/header": {Error: CodeConnect}, "/gone": {Status: 410, Error: CodeStatus},
		"/busy": {Status: 429, Error: CodeStatus, RetryAfter: 2 * time.Minute}, "/breaks": {Error: CodeConnect},
	} {
		client := c
		if want.Error == CodeTimeout {
			client = impatient
		}
		got := client.try(t, "https://example.com:"+outboundtest.Port(s)+path)
		if got.Duration <= 0 || got.Duration > 5*time.Second {
			t.Errorf("%s took %v", path, got.Duration)
		}
		got.Duration = 0
		if got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	for url, want := range map[string]string{
		"https://other.example.org:" + outboundtest.Port(s) + "/ok": CodeTLS, // the certificate is for another name
		"https://none.example.org/ok":                               CodeName,
		"http://example.com:" + outboundtest.Port(s) + "/ok":        CodeAddress,
		"https://example.com:1/ok":                                  CodeConnect,
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
	s := outboundtest.Endpoint(t, "127.0.0.1:0", func(http.ResponseWriter, *http.Request) {})
	c := New(Options{Resolver: outboundtest.Resolver(t, map[string][]string{"example.com": {"127.0.0.1"}}), Roots: outboundtest.Roots(s), Allowed: loopback})
	if r := c.try(t, "https://example.com:"+outboundtest.Port(s)+"/"); r.Error != "" {
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

func TestLibrariesGetTheSameChecks(t *testing.T) {
	s := outboundtest.Endpoint(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/full":
			_, _ = w.Write(make([]byte, 1000))
		case "/large":
			_, _ = w.Write(make([]byte, 1001))
		case "/redirects":
			http.Redirect(w, r, "/full", http.StatusFound)
		case "/hangs":
			<-r.Context().Done()
		}
	})
	options := Options{Resolver: outboundtest.Resolver(t, map[string][]string{"": {"127.0.0.1"}}), Roots: outboundtest.Roots(s)}
	closed := New(options)
	options.Allowed = loopback
	open := New(options)
	options.Timeout = 400 * time.Millisecond
	impatient := New(options)
	for _, test := range []struct {
		client *Client
		url    string
		want   string
	}{
		{open, "https://example.com:" + outboundtest.Port(s) + "/full", "200, 1000 bytes"},
		{open, "https://example.com:" + outboundtest.Port(s) + "/large", CodeSize},
		{open, "https://example.com:" + outboundtest.Port(s) + "/redirects", "302, 0 bytes"},
		{impatient, "https://example.com:" + outboundtest.Port(s) + "/hangs", CodeTimeout},
		{open, "http://example.com:" + outboundtest.Port(s) + "/full", CodeAddress},
		{closed, "https://example.com:" + outboundtest.Port(s) + "/full", CodeAddress},
	} {
		response, err := test.client.HTTP(1000).Post(test.url, "text/plain", strings.NewReader("hello"))
		var got string
		if err == nil {
			var body []byte
			if body, err = io.ReadAll(response.Body); response.StatusCode == http.StatusFound {
				body = nil
			}
			got = fmt.Sprintf("%d, %d bytes", response.StatusCode, len(body))
			_ = response.Body.Close()
		}
		if err != nil {
			got = CodeOf(err)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.url, got, test.want)
		}
	}
}

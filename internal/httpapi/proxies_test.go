package httpapi

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

func prefixes(texts ...string) proxies {
	var list proxies
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestSourceIsTheNearestHopThatIsNoProxy(t *testing.T) {
	trusted := prefixes("10.0.0.0/8", "2001:db8::/32")
	for _, test := range []struct {
		name, peer string
		forwarded  []string
		source     string
		passed     bool
	}{
		{"a client", "192.0.2.1:1234", nil, "192.0.2.1", false},
		{"a client that forges", "192.0.2.1:1234", []string{"198.51.100.7"}, "192.0.2.1", false},
		{"a client over IPv6", "[2001:db9::1]:1234", []string{"198.51.100.7"}, "2001:db9::1", false},
		{"a proxy's own request", "10.0.0.1:1234", nil, "10.0.0.1", true},
		{"behind a proxy", "10.0.0.1:1234", []string{"192.0.2.1"}, "192.0.2.1", true},
		{"behind a proxy, forged", "10.0.0.1:1234", []string{"198.51.100.7, 192.0.2.1"}, "192.0.2.1", true},
		{"forged to be a proxy", "10.0.0.1:1234", []string{"10.9.9.9, 192.0.2.1"}, "192.0.2.1", true},
		{"behind two proxies", "10.0.0.1:1234", []string{"192.0.2.1, 10.0.0.2"}, "192.0.2.1", true},
		{"behind two proxies, forged", "10.0.0.1:1234", []string{"10.0.0.9, 198.51.100.7,192.0.2.1 , 10.0.0.2"}, "192.0.2.1", true},
		{"in lines of their own", "10.0.0.1:1234", []string{"198.51.100.7", "192.0.2.1", "10.0.0.2"}, "192.0.2.1", true},
		{"only proxies", "10.0.0.1:1234", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3", true},
		{"IPv6 proxy", "[2001:db8::1]:1234", []string{"2001:db9::7"}, "2001:db9::7", true},
		{"with ports", "10.0.0.1:1234", []string{"198.51.100.7, 192.0.2.1:99, [2001:db8::2]:80"}, "192.0.2.1", true},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:1234", []string{"::ffff:192.0.2.1"}, "192.0.2.1", true},
		{"with a zone", "10.0.0.1:1234", []string{"fe80::1%eth0"}, "fe80::1", true},
		{"unknown", "10.0.0.1:1234", []string{"198.51.100.7, unknown"}, "10.0.0.1", true},
		{"unknown behind a proxy", "10.0.0.1:1234", []string{"198.51.100.7, unknown, 10.0.0.2"}, "10.0.0.2", true},
		{"empty", "10.0.0.1:1234", []string{""}, "10.0.0.1", true},
		{"an empty hop", "10.0.0.1:1234", []string{"198.51.100.7, "}, "10.0.0.1", true},
		{"no address at all", "pipe", []string{"198.51.100.7"}, "pipe", false},
	} {
		r := &http.Request{RemoteAddr: test.peer, Header: http.Header{"X-Forwarded-For": test.forwarded}}
		if source, passed := trusted.source(r); source != test.source || passed != test.passed {
			t.Errorf("%s: %s %v, want %s %v", test.name, source, passed, test.source, test.passed)
		}
	}
	forged := &http.Request{RemoteAddr: "10.0.0.1:1234", Header: http.Header{"X-Forwarded-For": {"192.0.2.1"}}}
	if source, passed := proxies(nil).source(forged); source != "10.0.0.1" || passed {
		t.Errorf("nobody is trusted: %s %v", source, passed)
	}
}

func TestRequestIDIsTakenFromTrustedProxiesOnly(t *testing.T) {
	open, behind := newTestServer(t), newTestServerWith(t, Options{TrustedProxies: prefixes("127.0.0.0/8")})
	const given = "Proxy_1-a"
	if r := open.request("GET", "/livez", "", "X-Request-Id", given); r.Header.Get("X-Request-Id") == given {
		t.Error("anybody can name a request")
	}
	r := behind.as(behind.owner, "GET", "/users/x", "", "X-Request-Id", given)
	if r.Header.Get("X-Request-Id") != given || r.document(t)["requestId"] != given || !strings.Contains(behind.log.String(), `"request_id":"`+given+`"`) {
		t.Errorf("a trusted proxy's: %v %s", r.Header, r.body)
	}
	for _, bad := range []string{"", "a b", "a.b", "a\"b", "ä", strings.Repeat("a", maxRequestID+1)} {
		if got := behind.request("GET", "/livez", "", "X-Request-Id", bad).Header["X-Request-Id"]; len(got) != 1 || got[0] == bad {
			t.Errorf("%q was answered with %q", bad, got)
		}
	}
	if got := behind.request("GET", "/livez", "", "X-Request-Id", "a", "X-Request-Id", "b").Header["X-Request-Id"]; len(got) != 1 || len(got[0]) < 16 {
		t.Errorf("two were answered with %q", got)
	}
}

// What counts against a source must not be moved to another by a forged header.
func TestForgedSourceDoesNotMoveTheLimit(t *testing.T) {
	for _, test := range []struct {
		name    string
		trusted proxies
		refused bool
	}{
		{"untrusted peer", nil, true},
		{"trusted proxy", prefixes("127.0.0.1/32"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestServerWith(t, Options{TrustedProxies: test.trusted})
			const tries = 30 // more than an account may fail from one source
			var last reply
			for i := range tries {
				last = s.request("POST", "/auths/login", `{"email":"nobody@example.com","password":"wrong"}`, "X-Forwarded-For", "192.0.2."+strconv.Itoa(i))
			}
			if refused := last.StatusCode == http.StatusTooManyRequests; refused != test.refused {
				t.Errorf("after %d tries: %d %s", tries, last.StatusCode, last.body)
			}
		})
	}
}

func TestHeaderLinesAreBounded(t *testing.T) {
	s := newTestServer(t)
	lines := func(n int) []string {
		var headers []string
		for i := range n {
			headers = append(headers, "X-Line-"+strconv.Itoa(i), "x")
		}
		return headers
	}
	const sentByItself = 4 // tenant, cookie, user agent, accept-encoding
	if r := s.as(s.owner, "GET", "/users", "", lines(maxLines-sentByItself)...); r.StatusCode != 200 {
		t.Errorf("%d lines: %d %s", maxLines, r.StatusCode, r.body)
	}
	expectProblem(t, s.as(s.owner, "GET", "/users", "", lines(maxLines-sentByItself+1)...), 431, "too-many-headers")
	var repeated []string
	for range maxLines + 1 {
		repeated = append(repeated, "X-Same", "x")
	}
	expectProblem(t, s.as(s.owner, "GET", "/users", "", repeated...), 431, "too-many-headers")
}

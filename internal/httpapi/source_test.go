package httpapi

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/web"
)

func TestRequestIDIsTakenFromTrustedProxiesOnly(t *testing.T) {
	open, behind := newTestServer(t), newTestServerWith(t, web.Options{TrustedProxies: prefixes("127.0.0.0/8")})
	const given = "Proxy_1-a"
	if r := open.request("GET", "/livez", "", "X-Request-Id", given); r.Header.Get("X-Request-Id") == given {
		t.Error("anybody can name a request")
	}
	r := behind.as(behind.owner, "GET", "/users/x", "", "X-Request-Id", given)
	if r.Header.Get("X-Request-Id") != given || r.document(t)["requestId"] != given || !strings.Contains(behind.log.String(), `"request_id":"`+given+`"`) {
		t.Errorf("a trusted proxy's: %v %s", r.Header, r.body)
	}
	for _, bad := range []string{"", "a b", "a.b", "a\"b", "ä", strings.Repeat("a", 64+1)} {
		if got := behind.request("GET", "/livez", "", "X-Request-Id", bad).Header["X-Request-Id"]; len(got) != 1 || got[0] == bad {
			t.Errorf("%q was answered with %q", bad, got)
		}
	}
	if got := behind.request("GET", "/livez", "", "X-Request-Id", "a", "X-Request-Id", "b").Header["X-Request-Id"]; len(got) != 1 || len(got[0]) < 16 {
		t.Errorf("two were answered with %q", got)
	}
}

// A proxy that is missing in --trusted-proxies is reported once, because all its clients count as one.
func TestXForwardedForOfAnUntrustedPeerIsReportedOnce(t *testing.T) {
	open, behind := newTestServer(t), newTestServerWith(t, web.Options{TrustedProxies: prefixes("127.0.0.0/8")})
	for _, s := range []*testServer{open, behind} {
		s.request("GET", "/users", "")
		before := strings.Count(s.log.String(), "trusted-proxies")
		for range 3 {
			s.request("GET", "/users", "", "X-Forwarded-For", "192.0.2.1")
		}
		want := map[*testServer]int{open: 1}[s]
		if after := strings.Count(s.log.String(), "trusted-proxies"); before != 0 || after != want {
			t.Errorf("reported %d times before and %d times after, want 0 and %d", before, after, want)
		}
	}
}

// A client cannot use a forged header to move its failed sign-ins to another source address.
func TestForgedSourceDoesNotMoveTheLimit(t *testing.T) {
	for _, test := range []struct {
		name    string
		trusted []netip.Prefix
		refused bool
	}{
		{"untrusted peer", nil, true},
		{"trusted proxy", prefixes("127.0.0.1/32"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestServerWith(t, web.Options{TrustedProxies: test.trusted})
			const tries = 30 // more failures than the limit of an account from one source
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
	if r := s.as(s.owner, "GET", "/users", "", lines(web.MaxLines-sentByItself)...); r.StatusCode != 200 {
		t.Errorf("%d lines: %d %s", web.MaxLines, r.StatusCode, r.body)
	}
	expectProblem(t, s.as(s.owner, "GET", "/users", "", lines(web.MaxLines-sentByItself+1)...), 431, "too-many-headers")
	var repeated []string
	for range web.MaxLines + 1 {
		repeated = append(repeated, "X-Same", "x")
	}
	expectProblem(t, s.as(s.owner, "GET", "/users", "", repeated...), 431, "too-many-headers")
}

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

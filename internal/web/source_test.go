package web

import (
	"net/http"
	"net/netip"
	"testing"
)

func prefixes(texts ...string) proxies {
	var list proxies
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestSourceIsTheNearestUntrustedHop(t *testing.T) {
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

// FuzzSource checks that a client cannot change the address that source returns: the address that
// the nearest proxy appends.
func FuzzSource(f *testing.F) {
	for _, line := range []string{"", "192.0.2.1", "10.0.0.2", "192.0.2.1, 10.0.0.2", "[2001:db8::1]:80,,", "::ffff:10.0.0.1", "fe80::1%eth0", "unknown", "10.0.0.1, x"} {
		f.Add(line, "198.51.100.7")
	}
	trusted := proxies{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, made, seen string) {
		client, err := netip.ParseAddr(seen)
		if err != nil || client != client.Unmap().WithZone("") || trusted.include(client) {
			return
		}
		for _, lines := range [][]string{{made + "," + seen}, {made, seen}, {made, seen + ", 10.0.0.9"}} {
			r := &http.Request{RemoteAddr: "10.0.0.1:1", Header: http.Header{"X-Forwarded-For": lines}}
			if source, passed := trusted.source(r); source != client.String() || !passed {
				t.Errorf("%q came from %s", lines, source)
			}
			r.RemoteAddr = "192.0.2.9:1"
			if source, passed := trusted.source(r); source != "192.0.2.9" || passed {
				t.Errorf("%q past the proxy came from %s", lines, source)
			}
		}
	})
}

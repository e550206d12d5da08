package outbound

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// privateHosts are forms of addresses in private networks, in the host of a URL. The names of the
// last part are resolved to private addresses by the test.
var privateHosts = []string{
	"127.0.0.1", "127.1.2.3", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254",
	"169.254.169.254", "169.254.0.1", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.254", "192.0.0.1", "192.0.0.192", "192.0.2.1",
	"192.88.99.1", "198.18.0.1", "198.19.255.254", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
	// decimal, octal, hexadecimal and short forms
	"2130706433", "017700000001", "0x7f000001", "0x7F.0x0.0x0.0x1", "0177.0.0.1", "0177.0.0.01", "127.1", "127.0.1", "0", "0x0", "00.00.00.00",
	"127.0.0.0x1", "127.0.0.01", "0x7f.1", "3232235521", "0xa9fea9fe", "2852039166", "169.254.43518", "0251.0376.0251.0376", "4294967295", "4294967296", "1", "127.0.0.1.2",
	"127.0.0.1.", "999.1.1.1", "256.0.0.1",
	// IPv6, with forms that have an address of IPv4 in them
	"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]", "[0:0:0:0:0:ffff:a9fe:a9fe]", "[::127.0.0.1]",
	"[64:ff9b::7f00:1]", "[64:ff9b::169.254.169.254]", "[64:ff9b:1::a00:1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
	"[fc00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25eth0]", "[fec0::1]", "[ff02::1]", "[2001:db8::1]", "[3fff::1]", "[100::1]", "[2001:10::1]",
	// names
	"localhost", "LOCALHOST", "a.localhost", "localhost.localdomain", "printer", "metadata.google.internal", "router.local", "nas.home.arpa", "db.corp", "x.lan",
	// characters that some parsers understand differently
	"ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "127。0。0。1", "１２７.0.0.1", "127%2e0.0.1", "exa mple.com", "example.com\\@127.0.0.1", "127.0.0.1\\.example.com", "example.com%00.x", "-a.example.com", "a..example.com",
}

func TestPrivateAddressesAreRefusedAtSave(t *testing.T) {
	for _, host := range privateHosts {
		for _, url := range []string{"https://" + host + "/hook", "https://" + host + ":8443/hook"} {
			if CheckURL(url) == nil {
				t.Errorf("%s is accepted", url)
			}
		}
	}
	if len(privateHosts) < 60 {
		t.Errorf("the list has %d forms", len(privateHosts))
	}
}

func TestURLsThatAreRefusedForOtherReasons(t *testing.T) {
	for _, url := range []string{
		"", "hooks.example.com", "http://hooks.example.com/", "HTTP://hooks.example.com/", "ftp://hooks.example.com/", "file:///etc/passwd", "https:hooks.example.com",
		"https:///hook", "https://?x", "//hooks.example.com/", "https://ada@hooks.example.com/", "https://ada:pw@hooks.example.com/", "https://hooks.example.com@127.0.0.1/",
		"https://127.0.0.1@hooks.example.com/", "https://@hooks.example.com/", "https://hooks.example.com/#a", "https://hooks.example.com/#", "https://hooks.example.com:/",
		"https://hooks.example.com:0/", "https://hooks.example.com:65536/", "https://hooks.example.com:x/", "https://[::1", "https://hooks.example.com/\n", "https://hooks.example.com/\t",
		" https://hooks.example.com/", "https://hooks.example.com /", "https://hooks.example.com/é", "https://hooks.example.com\\.127.0.0.1/", "gopher://hooks.example.com/", "javascript:alert(1)",
		"https://hooks.example.com/%zz", "https://" + strings.Repeat("a.", 126) + "example.com/", "https://hooks.example.com/" + strings.Repeat("a", 2048),
	} {
		if CheckURL(url) == nil {
			t.Errorf("%s is accepted", url)
		}
	}
}

func TestPublicURLsAreAccepted(t *testing.T) {
	for _, url := range []string{
		"https://hooks.example.com", "https://hooks.example.com/rolecall?key=1&x=%20", "https://HOOKS.Example.com:8443/a/b", "https://1.1.1.1/", "https://8.8.8.8:444/hook",
		"https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]:8443/", "https://xn--bcher-kva.example.com/", "https://a_b.example.com/", "https://1.example.com/", "https://0x7f.example.com/",
		"https://100.63.255.255/", "https://100.128.0.1/", "https://172.15.0.1/", "https://172.32.0.1/", "https://192.169.0.1/", "HTTPS://hooks.example.com/",
	} {
		if err := CheckURL(url); err != nil {
			t.Errorf("%s %v", url, err)
		}
	}
}

func TestURLsWithinAllowedNetworks(t *testing.T) {
	allowed := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/64")}
	for url, want := range map[string]bool{
		"https://10.1.2.3/": true, "https://10.2.2.3/": false, "https://[fd00::7]/": true, "https://[fd01::7]/": false, "https://[::ffff:10.1.2.3]/": true, "https://8.8.8.8/": true,
		"https://login/": true, "https://login.corp:8443/realms/a": true, "https://localhost/": true, "https://login.example.com/": true,
		"https://0x0a010203/": false, "https://10.1.515/": false, "https://-a.corp/": false, "http://login.corp/": false, "https://a@login.corp/": false,
	} {
		if err := CheckURLWithin(url, allowed); (err == nil) != want {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestAddressesThatTheDialerRefuses compares checkDial with a list that was written independently of the
// networks in address.go.
func TestAddressesThatTheDialerRefuses(t *testing.T) {
	allowed := []netip.Prefix{netip.MustParsePrefix("192.168.7.0/24")}
	for host, want := range map[string]bool{
		"127.0.0.1": false, "10.1.2.3": false, "172.16.9.9": false, "192.168.1.1": false, "169.254.169.254": false, "100.100.100.200": false, "0.0.0.0": false,
		"224.0.0.251": false, "255.255.255.255": false, "192.0.2.7": false, "198.51.100.7": false, "203.0.113.7": false, "198.18.0.7": false, "::": false, "::1": false,
		"::ffff:127.0.0.1": false, "::ffff:8.8.8.8": false, "64:ff9b::8.8.8.8": false, "2002:808:808::1": false, "2001:db8::1": false, "fe80::1": false, "fe80::1%lo": false,
		"fd12::1": false, "ff05::2": false, "2001::1": false, "192.168.7.9": true, "::ffff:192.168.7.9": true, "192.168.8.9": false, "8.8.8.8": true, "2606:4700:4700::1111": true, "2a00:1450::1": true,
	} {
		for _, network := range []string{"tcp4", "tcp6"} {
			if got := checkDial(allowed, network, net.JoinHostPort(host, strconv.Itoa(443))) == nil; got != want {
				t.Errorf("%s: %v, want %v", host, got, want)
			}
		}
	}
	for _, bad := range []string{"", "8.8.8.8", "example.com:443", "[::1:443"} {
		if checkDial(nil, "tcp", bad) == nil {
			t.Errorf("%q is reached", bad)
		}
	}
	if checkDial(nil, "udp", "8.8.8.8:443") == nil || checkDial(nil, "unix", "/run/x") == nil {
		t.Error("another network than TCP is reached")
	}
}

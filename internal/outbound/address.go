package outbound

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// reserved are the networks that a request must not reach: they are inside of the operator's network,
// or are not assigned (RFC 6890 and the registries of IANA).
var reserved = prefixes(
	"0.0.0.0/8",       // this host
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // shared by the customers of a provider
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, with the metadata services of clouds
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.31.196.0/24", // AS112
	"192.52.193.0/24", // AMT
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"192.175.48.0/24", // AS112
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and broadcast
)

// global is the network of IPv6 that is in use on the internet, and reservedIn6 are the parts of it that
// are not, or that have an address of IPv4 in them. Loopback, link-local and unique local addresses,
// mapped addresses of IPv4 and those of NAT64 are outside of global.
var (
	global      = netip.MustParsePrefix("2000::/3")
	reservedIn6 = prefixes(
		"2001::/23",         // protocol assignments, with Teredo, benchmarks and ORCHID
		"2001:db8::/32",     // documentation
		"2002::/16",         // 6to4
		"2620:4f:8000::/48", // AS112
		"3fff::/20",         // documentation
		"3ffe::/16",         // 6bone
	)
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	for _, p := range networks {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// IsPublic reports whether the address is one of the internet. It is false for every address that can
// lead into a private network, including the forms of IPv6 that contain an address of IPv4.
func IsPublic(a netip.Addr) bool {
	switch {
	case !a.IsValid() || a.Zone() != "":
		return false
	case LoopbackEndpoints && a.IsLoopback():
		return true
	case a.Is4():
		return !within(reserved, a)
	}
	return global.Contains(a) && !within(reservedIn6, a)
}

// ErrAddress is the error for an address that must not be reached.
var ErrAddress = errors.New("the address is not on the internet")

// URLMax is the maximum length of a URL, in characters.
const URLMax = 2048

// CheckURL checks a URL before it is stored. The text of the error continues a sentence about the URL,
// such as "must begin with https://". CheckURL does not resolve names: the check of the dialer
// decides for each connection.
func CheckURL(text string) error { return CheckURLWithin(text, nil) }

// CheckURLWithin is CheckURL for a client that can also reach the allowed networks. If there is one, the
// host can be an address of it, or any name, because private names can lead to it.
func CheckURLWithin(text string, allowed []netip.Prefix) error {
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || c == '\\' {
			return errors.New("must have only visible ASCII characters, without a backslash")
		}
	}
	u, err := url.Parse(text)
	switch {
	case len(text) > URLMax:
		return fmt.Errorf("must have at most %d characters", URLMax)
	case err != nil || u.Opaque != "" || u.Scheme != "https" || u.Host == "":
		return errors.New("must be a URL that begins with https:// and a host")
	case u.User != nil:
		return errors.New("must not have a user name or a password")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return errors.New("must not have a fragment")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("must have a port from 1 to 65535, or none")
		}
	}
	return checkHost(u, allowed)
}

var errHost = errors.New("must have a host on the internet, and not one of a private network")

func checkHost(u *url.URL, allowed []netip.Prefix) error {
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		return checkAddress(host, allowed)
	}
	return checkName(strings.ToLower(host), allowed)
}

func checkAddress(host string, allowed []netip.Prefix) error {
	if a, err := netip.ParseAddr(host); err != nil || !IsPublic(a) && !within(allowed, a.Unmap()) {
		return errHost
	}
	return nil
}

// privateNames are the ends of names that are not in the DNS of the internet.
var privateNames = []string{"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "onion"}

// checkName checks a host that is not in brackets. A name whose last part is a number is an address of
// IPv4 for browsers and for many resolvers, also in decimal, octal and hexadecimal forms. Only
// the usual form is accepted.
func checkName(name string, allowed []netip.Prefix) error {
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	if isNumber(last) {
		return checkAddress(name, allowed)
	}
	if len(labels) < 2 && len(allowed) == 0 || len(name) > 253 {
		return errHost
	}
	for _, label := range labels {
		if !isLabel(label) {
			return errors.New("must have a host of letters, digits, hyphens and dots; write other letters as Punycode")
		}
	}
	if len(allowed) > 0 {
		return nil
	}
	for _, private := range privateNames {
		if strings.HasSuffix("."+name, "."+private) {
			return errHost
		}
	}
	return nil
}

// isNumber reports whether a label is a number in a form that a resolver can understand.
func isNumber(label string) bool {
	if label == "" {
		return false
	}
	if strings.Trim(label, "0123456789") == "" {
		return true
	}
	return strings.HasPrefix(label, "0x") && strings.Trim(label[2:], "0123456789abcdef") == ""
}

func isLabel(label string) bool {
	return label != "" && len(label) <= 63 && label[0] != '-' && label[len(label)-1] != '-' &&
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

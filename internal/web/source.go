package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxies are the networks of trusted proxies. Forwarding headers are ignored if the peer of the
// connection is not in one of these networks.
type proxies []netip.Prefix

// include reports whether the address belongs to one of the trusted proxies.
func (p proxies) include(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(address) })
}

// IsTrustedProxy reports whether the address belongs to one of the trusted proxies.
func (s *Site) IsTrustedProxy(address netip.Addr) bool { return s.proxies.include(address) }

// source returns the address of the client, and whether a trusted proxy forwarded the request. Each
// proxy appends the address of its peer to the right end of X-Forwarded-For. So the client is the
// right-most address that does not belong to a trusted proxy. The client may have
// forged the addresses to the left of that one.
func (p proxies) source(r *http.Request) (source string, trusted bool) {
	peer, ok := readHop(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr, false
	}
	if !p.include(peer) {
		return peer.String(), false
	}
	nearest := peer
	for _, line := range slices.Backward(r.Header["X-Forwarded-For"]) {
		for _, hop := range slices.Backward(strings.Split(line, ",")) {
			address, ok := readHop(strings.TrimSpace(hop))
			if !ok { // the hop is not an address, so the hops to the left of it cannot be trusted
				return nearest.String(), true
			}
			if nearest = address; !p.include(nearest) {
				return nearest.String(), true
			}
		}
	}
	return nearest.String(), true
}

// warnForwarded warns once that a client that is not a trusted proxy sends X-Forwarded-For. If it is
// the operator's proxy, all clients behind it count as one source.
func (s *Site) warnForwarded(peer string) {
	if s.forwardedWarned.CompareAndSwap(false, true) {
		s.logger.Warn("X-Forwarded-For is ignored, because its sender is not in --trusted-proxies: if the sender is your proxy, add it, so that the limits of sign-ins count each client", "sender", peer)
	}
}

// readHop parses one address of X-Forwarded-For, which may have a port. It returns the address
// without the port.
func readHop(text string) (netip.Addr, bool) {
	withPort, err := netip.ParseAddrPort(text)
	address := withPort.Addr()
	if err != nil {
		if address, err = netip.ParseAddr(text); err != nil {
			return netip.Addr{}, false
		}
	}
	return address.Unmap().WithZone(""), true
}

// maxRequestID is the maximum length in bytes of an X-Request-Id header from a proxy.
const maxRequestID = 64

// passedRequestID returns the X-Request-Id header that a trusted proxy sent, or an empty text if
// the header is absent or invalid.
func passedRequestID(h http.Header) string {
	lines := h["X-Request-Id"]
	if len(lines) != 1 || len(lines[0]) > maxRequestID || strings.ContainsFunc(lines[0], isForeignToID) {
		return ""
	}
	return lines[0]
}

// isForeignToID reports whether c is not allowed in a request id: not one of A-Z, a-z, 0-9, _ and
// -.
func isForeignToID(c rune) bool {
	return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-'
}

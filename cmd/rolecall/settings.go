package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/mail"
	"github.com/rolecall/rolecall/internal/passkey"
)

// settings are what the flags of serve mean.
type settings struct {
	serveCommand
	publicURL      *url.URL // nil: none
	insecureCookie bool
	passkeys       *passkey.RelyingParty // nil: there is no domain for them
	trustedProxies []netip.Prefix
	templates      *mail.Templates
	smtp           *mail.SMTP // nil: none
	warnings       []string   // settings that are less secure than they could be
}

// settings returns the settings that the flags describe, or the error in them.
func (c *serveCommand) settings(g *globals) (settings, error) {
	s := settings{serveCommand: *c}
	for _, read := range []func() error{s.readDemo, s.readPublicURL, s.readHSTS, s.readTLS, s.readOrigins, s.readCookieDomain, s.readHostPrefix, s.readPasskeys, s.readProxies, s.readSecurityContact, s.readMail} {
		if err := read(); err != nil {
			return s, err
		}
	}
	if g.SecretKeyFile == "" && !s.Demo {
		s.warn("The instance key is in the database. A copy or a backup of the database exposes the secrets of authenticator apps and the links in waiting mail. Keep the key in a file and give it with --secret-key-file.")
	}
	if g.AllowSuperuser && isPostgres(g.Database) {
		s.warn("--allow-superuser: row-level security may not hold this role, so the isolation of tenants rests on this program alone")
	}
	return s, nil
}

func (s *settings) warn(sentence string) { s.warnings = append(s.warnings, sentence) }

func (s *settings) readDemo() error {
	switch {
	case !s.Demo:
		return nil
	case !isLoopback(s.Listen) || s.OperatorListen != "" && !isLoopback(s.OperatorListen):
		return errors.New("--demo listens on a loopback address only, such as 127.0.0.1:8080")
	case s.TLSCert != "":
		return errors.New("--demo serves plain http: leave out --tls-cert")
	}
	s.insecureCookie = true
	s.warn("demo: the session cookie is not marked Secure")
	return nil
}

// basePath is the path of a public URL: segments that no client, proxy or router
// writes in a second way.
var basePath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9_~.-]*)*/?$`)

// demoURL returns the base URL of the demo, which is served on the address.
func (s *settings) demoURL(address net.Addr) string {
	base := "http://" + address.String()
	if s.publicURL != nil {
		base += strings.TrimRight(s.publicURL.EscapedPath(), "/")
	}
	return base
}

func (s *settings) readPublicURL() error {
	if s.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(s.PublicURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("--public-url must be an http or https URL with a host and perhaps a path, such as https://id.example.com/rolecall")
	}
	if !basePath.MatchString(u.EscapedPath()) {
		return errors.New("--public-url must have a path of letters, digits and _~.- alone, or none")
	}
	s.publicURL = u
	switch {
	case u.Scheme == "https" || s.Demo:
	case isLoopback(net.JoinHostPort(u.Hostname(), "0")):
		s.insecureCookie = true
		s.warn("--public-url is plain http: the session cookie is not marked Secure")
	default:
		s.warn("--public-url is plain http: browsers will not send the session cookie, which is marked Secure")
	}
	return nil
}

func (s *settings) readHSTS() error {
	if s.HSTSSubdomains && (s.publicURL == nil || s.publicURL.Scheme != "https") {
		return errors.New("--hsts-include-subdomains needs an https --public-url")
	}
	return nil
}

func (s *settings) readTLS() error {
	switch https := s.publicURL != nil && s.publicURL.Scheme == "https"; {
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key belong together: give both or none")
	case s.TLSCert == "" || https:
	case s.publicURL != nil:
		return errors.New("--public-url must be https where --tls-cert is given")
	default:
		s.warn("--tls-cert without an https --public-url: answers carry no Strict-Transport-Security")
	}
	return nil
}

// readOrigins refuses what no browser sends as an Origin, since that would never
// match.
func (s *settings) readOrigins() error {
	for _, origin := range s.AllowOrigin {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || !isHost(u.Hostname()) || origin != u.Scheme+"://"+u.Host || isDefaultPort(u) {
			return fmt.Errorf("--allow-origin must be an origin as browsers send it, such as https://app.example.com: lower case, no path, no default port; not %q", origin)
		}
		if u.Scheme == "http" && !isLoopback(net.JoinHostPort(u.Hostname(), "0")) {
			s.warn("--allow-origin " + origin + " is plain http: whoever can change its pages on the way acts as their readers")
		}
	}
	s.checkSites()
	return nil
}

// checkSites warns of origins on another site than the public URL: browsers neither
// keep nor send the session cookie there. Without the list of public suffixes only
// some are known for sure: those with less than two labels in common.
func (s *settings) checkSites() {
	if s.publicURL == nil {
		return
	}
	for _, origin := range s.AllowOrigin {
		u, err := url.Parse(origin)
		if err != nil || !isOtherSite(u, s.publicURL) {
			continue
		}
		remedy := "Serve both under one domain"
		if isSameDomain(u, s.publicURL) {
			remedy = "Use the same scheme for both"
		}
		s.warn("--allow-origin " + origin + " is on another site than --public-url " + s.PublicURL + ". Browsers drop the session cookie there, so nobody can sign in from its pages. " + remedy + ", or let a back end hold the session.")
	}
}

// isOtherSite reports whether the URLs are for certain of two sites, as browsers
// compare them for cookies: by scheme and registrable domain, without the port.
func isOtherSite(a, b *url.URL) bool { return a.Scheme != b.Scheme || !isSameDomain(a, b) }

// isSameDomain reports whether the hosts of the URLs can be of one registrable domain.
func isSameDomain(a, b *url.URL) bool {
	hostA, hostB := strings.ToLower(a.Hostname()), strings.ToLower(b.Hostname())
	if hostA == hostB {
		return true
	}
	if _, err := netip.ParseAddr(hostA); err == nil {
		return false
	}
	labelsA, labelsB := strings.Split(hostA, "."), strings.Split(hostB, ".")
	common := 0
	for common < min(len(labelsA), len(labelsB)) && labelsA[len(labelsA)-1-common] == labelsB[len(labelsB)-1-common] {
		common++
	}
	return common >= 2
}

// hostName is a name in lower case, or an IPv4 address.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// isHost reports whether an origin can have this host.
func isHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return hostName.MatchString(host) || err == nil && address.Is6() && address.String() == host
}

func isDefaultPort(u *url.URL) bool {
	return strings.HasSuffix(u.Host, ":") || u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80"
}

func (s *settings) readCookieDomain() error {
	if s.CookieDomain == "" {
		return nil
	}
	if s.publicURL == nil {
		return errors.New("--cookie-domain needs --public-url")
	}
	host := s.publicURL.Hostname()
	_, err := netip.ParseAddr(host)
	isName := err != nil
	if !isName || !hostName.MatchString(s.CookieDomain) || !strings.Contains(s.CookieDomain, ".") || !strings.HasSuffix(host, "."+s.CookieDomain) {
		return errors.New("--cookie-domain must be a parent domain of the host of --public-url, such as example.com for id.example.com")
	}
	s.warn("--cookie-domain: every host under " + s.CookieDomain + " gets the session cookie and can replace it, so each must be as safe as this service")
	return nil
}

// readHostPrefix refuses the prefix where browsers would drop the cookie: it must be
// Secure and have no domain (RFC 6265bis, 4.1.3.2).
func (s *settings) readHostPrefix() error {
	switch {
	case !s.HostPrefix:
		return nil
	case s.publicURL == nil || s.publicURL.Scheme != "https" || s.Demo:
		return errors.New("--host-cookie-prefix needs an https --public-url, and cannot be used with --demo")
	case s.CookieDomain != "":
		return errors.New("--host-cookie-prefix and --cookie-domain exclude each other: a cookie with the prefix belongs to one host")
	}
	return nil
}

// readPasskeys makes the relying party of the domain, and of those origins whose
// pages browsers let ask for its passkeys. A public host that is an address is no
// domain, and without any there are no passkeys.
func (s *settings) readPasskeys() error {
	domain, origins := s.PasskeyDomain, s.AllowOrigin
	if s.publicURL != nil {
		origins = append([]string{s.publicURL.Scheme + "://" + s.publicURL.Host}, origins...)
		if domain == "" {
			domain = strings.ToLower(s.publicURL.Hostname())
		}
	}
	party, err := passkey.New(domain, slices.DeleteFunc(slices.Clone(origins), func(origin string) bool { return !isWithin(origin, domain) }))
	if err != nil && s.PasskeyDomain != "" {
		return errors.New("--passkey-domain must be the host of --public-url or of an --allow-origin, or a parent domain of one, such as example.com for https://app.example.com")
	}
	s.passkeys = party
	return nil
}

// isWithin reports whether the host of the origin is the domain or one under it.
func isWithin(origin, domain string) bool {
	u, err := url.Parse(origin)
	return err == nil && (strings.EqualFold(u.Hostname(), domain) || strings.HasSuffix(strings.ToLower(u.Hostname()), "."+domain))
}

// readProxies reads networks, or addresses, which are networks of one.
func (s *settings) readProxies() error {
	for _, text := range s.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, addressErr := netip.ParseAddr(text)
			if addressErr != nil {
				return fmt.Errorf("--trusted-proxies must be networks such as 10.0.0.0/8 or 2001:db8::/32, or addresses; not %q", text)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		if network.Bits() == 0 {
			s.warn("--trusted-proxies " + text + " trusts everybody: any client can say where it comes from")
		}
		s.trustedProxies = append(s.trustedProxies, network.Masked())
	}
	return nil
}

// readSecurityContact refuses what security.txt may not name (RFC 9116, 2.5.3).
func (s *settings) readSecurityContact() error {
	if s.SecurityURI == "" {
		return nil
	}
	u, err := url.Parse(s.SecurityURI)
	isASCII := !strings.ContainsFunc(s.SecurityURI, func(r rune) bool { return r <= ' ' || r > '~' })
	if err != nil || !isASCII ||
		!(u.Scheme == "https" && isHost(u.Hostname()) || u.Scheme == "mailto" && strings.Contains(u.Opaque, "@") || u.Scheme == "tel" && u.Opaque != "") {
		return errors.New("--security-contact must be a mailto:, https: or tel: URI, such as mailto:security@example.com")
	}
	return nil
}

// isLoopback reports whether only this machine can reach the address, a host and
// a port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

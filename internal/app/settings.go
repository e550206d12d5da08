package app

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
	passkeys       *passkey.Party // nil: there is no domain for them
	trustedProxies []netip.Prefix
	templates      *mail.Templates
	smtp           *mail.SMTP // nil: none
	warnings       []string   // what is weaker than it could be
}

// settings returns what the flags mean, or what is wrong with them.
func (c *serveCommand) settings(g *globals) (settings, error) {
	s := settings{serveCommand: *c}
	for _, read := range []func() error{s.readDemo, s.readPublicURL, s.readTLS, s.readOrigins, s.readCookieDomain, s.readPasskeys, s.readProxies, s.readMail} {
		if err := read(); err != nil {
			return s, err
		}
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
	return nil
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

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/mail"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// settings are the parsed and checked flags of serve.
type settings struct {
	serveCommand
	publicURL      *url.URL // nil: not set
	insecureCookie bool
	passkeys       *passkey.RelyingParty // nil: no domain, so no passkeys
	trustedProxies []netip.Prefix
	templates      *mail.Templates
	mailLinks      rolecall.MailLinks // the pages of an application; empty: the pages of the console
	oidcNetworks   []netip.Prefix     // private networks of identity providers
	hookNetworks   []netip.Prefix     // private networks that webhooks of operators may reach
	mailNetworks   []netip.Prefix     // private networks that --mail-webhook may reach
	smtp           *mail.SMTP         // nil: no mail server
	warnings       []string           // messages about settings that are less secure than they could be
}

// settings parses and checks the flags.
func (c *serveCommand) settings(g *globals) (settings, error) {
	s := settings{serveCommand: *c, warnings: slices.Clone(g.configWarnings)}
	for _, read := range []func() error{s.readDemo, s.readAddresses, s.readPublicURL, s.readHSTS, s.readTLS, s.readOrigins, s.readCookieDomain, s.readHostPrefix, s.readPasskeys, s.readProxies, s.readSecurityContact, s.readOIDCNetworks, s.readOperatorNetworks, s.readMail, s.readMailLinks, s.readReturnURLs} {
		if err := read(); err != nil {
			return s, err
		}
	}
	s.checkPlainHTTP()
	s.checkModes(g)
	s.checkDatabaseTLS(g)
	if g.SecretKeyFile == "" && !s.Demo {
		s.warn("the instance key is in the database, so a copy or backup of the database exposes the secrets of authenticator apps, webhooks and connections and the links in waiting mail: move the key to a file and set --secret-key-file (docs/operations.md, Keep and rotate the instance key)")
	}
	if g.AllowSuperuser && isPostgres(g.Database) {
		s.warn("--allow-superuser: the database role can bypass row-level security, so only Rolecall itself isolates tenants")
	}
	return s, nil
}

// checkPlainHTTP adds a warning if other machines can reach the address without TLS. It adds no
// warning if an https public URL or a trusted proxy is set, because a proxy in front of Rolecall
// then uses TLS.
func (s *settings) checkPlainHTTP() {
	isProxied := s.publicURL != nil && s.publicURL.Scheme == "https" || len(s.trustedProxies) > 0
	isAddress := s.Listen != "" && !strings.HasPrefix(s.Listen, "fd:")
	if isAddress && !isLoopback(s.Listen) && s.TLSCert == "" && !isProxied {
		s.warn("--listen " + s.Listen + " serves plain http to other machines, so the network can read passwords and sessions: set --tls-cert and --tls-key, or serve behind a proxy with TLS and set an https --public-url")
	}
}

// checkModes adds a warning for each file with secrets that all users of the machine can read or change.
func (s *settings) checkModes(g *globals) {
	files := []struct{ setting, file, content string }{
		{"--secret-key-file", g.SecretKeyFile, "the instance keys"}, {"--tls-key", s.TLSKey, "the private key"},
		{"--mail-webhook-key-file", s.MailWebhookKey, "the key of the webhook"},
	}
	if !isPostgres(g.Database) {
		files = append(files, struct{ setting, file, content string }{"--database", g.sqliteFile(), "the database"})
	}
	for _, f := range files {
		if warning := modeWarning(f.setting, f.file, f.content); warning != "" {
			s.warn(warning)
		}
	}
}

// modeWarning returns a warning if all users of the machine can read or change the file. It ignores a file that does
// not exist, because reading it returns an error.
func modeWarning(setting, file, content string) string {
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o006 != 0 {
		return setting + " " + file + ": every user of this machine can read or change " + content + ": run chmod 600 on the file"
	}
	return ""
}

// checkDatabaseTLS adds a warning for each host of PostgreSQL whose certificate is not verified.
func (s *settings) checkDatabaseTLS(g *globals) {
	for _, d := range []struct{ flag, database string }{{"--database", g.Database}, {"--direct-database", g.DirectDatabase}} {
		if !isPostgres(d.database) {
			continue
		}
		if hosts := postgres.Unverified(d.database); len(hosts) > 0 {
			s.warn(d.flag + ": the certificate of PostgreSQL at " + strings.Join(hosts, ", ") + " is not verified, so the network can read and change all data: add sslmode=verify-full to the URL")
		}
	}
}

func (s *settings) warn(message string) { s.warnings = append(s.warnings, message) }

func (s *settings) readDemo() error {
	switch {
	case !s.Demo:
		return nil
	case !isLoopback(s.Listen) || s.OperatorListen != "" && !isLoopback(s.OperatorListen):
		return errors.New("--demo requires a loopback address for --listen and --operator-listen, such as 127.0.0.1:8080")
	case s.TLSCert != "":
		return errors.New("--demo serves plain http: remove --tls-cert and --tls-key")
	}
	s.insecureCookie = true
	s.warn("--demo: the session cookie is not marked Secure")
	return nil
}

// readAddresses returns an error if two listeners have the same address.
func (s *settings) readAddresses() error {
	addresses := []struct{ flag, address string }{
		{"--listen", s.Listen}, {"--operator-listen", s.OperatorListen}, {"--metrics-listen", s.MetricsListen},
	}
	for i, a := range addresses {
		for _, b := range addresses[:i] {
			if isSameListener(a.address, b.address) {
				return fmt.Errorf("%s %s and %s %s are the same address: use different ports", b.flag, b.address, a.flag, a.address)
			}
		}
	}
	return nil
}

// isSameListener reports whether the program cannot listen on both addresses. An address without a host
// is that of all interfaces. The same is true for 0.0.0.0, because package net listens on it for IPv6 too.
func isSameListener(a, b string) bool {
	if strings.HasPrefix(a, "fd:") || strings.HasPrefix(b, "fd:") {
		return a == b
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return strings.EqualFold(hostA, hostB) || isAnyHost(hostA) || isAnyHost(hostB)
}

func isAnyHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// basePath matches the path of a public URL. It accepts only characters that clients, proxies and
// routers never encode or normalize.
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
		return errors.New("--public-url must be an http or https URL with a host and an optional path, such as https://id.example.com/rolecall")
	}
	if !isOrigin(u) || !strings.HasPrefix(s.PublicURL, u.Scheme+"://"+u.Host) {
		return errors.New("--public-url: write the scheme, the host and the port as browsers send them, in lower case and without a default port, such as https://id.example.com")
	}
	if !basePath.MatchString(u.EscapedPath()) {
		return errors.New("--public-url: segments of the path must consist of ASCII letters, digits, _ ~ . and -, and must not begin with a period")
	}
	s.publicURL = u
	switch {
	case u.Scheme == "https" || s.Demo:
	case isLoopback(net.JoinHostPort(u.Hostname(), "0")):
		s.insecureCookie = true
		s.warn("--public-url uses plain http: the session cookie is not marked Secure")
	default:
		s.warn("--public-url uses plain http: the session cookie is marked Secure, so browsers do not send it; use an https URL")
	}
	return nil
}

func (s *settings) readHSTS() error {
	if s.HSTSSubdomains && (s.publicURL == nil || s.publicURL.Scheme != "https") {
		return errors.New("--hsts-include-subdomains requires an https --public-url")
	}
	return nil
}

func (s *settings) readTLS() error {
	switch https := s.publicURL != nil && s.publicURL.Scheme == "https"; {
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key must be set together")
	case s.TLSCert == "" || https:
	case s.publicURL != nil:
		return errors.New("--tls-cert requires an https --public-url")
	default:
		s.warn("--tls-cert without an https --public-url: responses have no Strict-Transport-Security header")
	}
	return nil
}

// readOrigins checks the allowed origins. It returns an error if an origin is not spelled as
// browsers send it, because such an origin would never match a request.
func (s *settings) readOrigins() error {
	for _, origin := range s.AllowOrigin {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || !isOrigin(u) || origin != u.Scheme+"://"+u.Host {
			return fmt.Errorf("--allow-origin %q is not an origin as browsers send it: use a form such as https://app.example.com, in lower case, without a path or default port", origin)
		}
		if u.Scheme == "http" && !isLoopback(net.JoinHostPort(u.Hostname(), "0")) {
			s.warn("--allow-origin " + origin + " uses plain http: an attacker on the network can change its pages and act as the signed-in user")
		}
	}
	s.checkSites()
	return nil
}

// checkSites adds a warning for each allowed origin that is on another site than the public URL.
// Browsers neither store nor send the session cookie for requests from another site.
func (s *settings) checkSites() {
	if s.publicURL == nil {
		return
	}
	for _, origin := range s.AllowOrigin {
		u, err := url.Parse(origin)
		if err != nil || !isOtherSite(u, s.publicURL) {
			continue
		}
		remedy := "serve both under one domain"
		if isSameDomain(u, s.publicURL) {
			remedy = "use the same scheme for both"
		}
		s.warn("--allow-origin " + origin + " is on another site than --public-url " + s.PublicURL + ": browsers drop the session cookie there, so users cannot sign in with a cookie from its pages; " + remedy + ", let a back end hold the session, or sign in with the transport bearer")
	}
}

// isOtherSite reports whether the URLs are certainly on different sites. Browsers compare sites by
// scheme and registrable domain, without the port.
func isOtherSite(a, b *url.URL) bool { return a.Scheme != b.Scheme || !isSameDomain(a, b) }

// isSameDomain reports whether the hosts of the URLs can have the same registrable domain. Rolecall
// has no list of public suffixes, so isSameDomain returns true if the hosts are equal or have at
// least their last two labels in common.
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

// hostName matches a host name in lower case or an IPv4 address.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// isHost reports whether the host is spelled as browsers spell it in an origin.
func isHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return hostName.MatchString(host) || err == nil && address.Is6() && address.String() == host
}

// isOrigin reports whether the host and the port are spelled as browsers spell them in an origin.
func isOrigin(u *url.URL) bool { return isHost(u.Hostname()) && !isDefaultPort(u) }

func isDefaultPort(u *url.URL) bool {
	return strings.HasSuffix(u.Host, ":") || u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80"
}

func (s *settings) readCookieDomain() error {
	if s.CookieDomain == "" {
		return nil
	}
	if s.publicURL == nil {
		return errors.New("--cookie-domain requires --public-url")
	}
	host := s.publicURL.Hostname()
	_, err := netip.ParseAddr(host)
	isName := err != nil
	if !isName || !hostName.MatchString(s.CookieDomain) || !strings.Contains(s.CookieDomain, ".") || !strings.HasSuffix(host, "."+s.CookieDomain) {
		return errors.New("--cookie-domain must be a parent domain of the host of --public-url, such as example.com for id.example.com")
	}
	s.warn("--cookie-domain: every host under " + s.CookieDomain + " receives the session cookie and can replace it, so a weakness of one of them exposes all sessions")
	return nil
}

// readHostPrefix returns an error if browsers would reject the session cookie. A cookie with the
// prefix __Host- must be Secure and must not have a domain (RFC 6265bis, 4.1.3.2).
func (s *settings) readHostPrefix() error {
	switch {
	case !s.HostPrefix:
		return nil
	case s.publicURL == nil || s.publicURL.Scheme != "https" || s.Demo:
		return errors.New("--host-cookie-prefix requires an https --public-url and cannot be used with --demo")
	case s.CookieDomain != "":
		return errors.New("--host-cookie-prefix and --cookie-domain cannot be used together: a cookie with the prefix is limited to one host")
	}
	return nil
}

// readPasskeys creates the WebAuthn relying party for the passkey domain and for the origins on
// that domain. If there is no domain, passkeys are disabled. A public host that is an IP address is
// not a domain.
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

// isWithin reports whether the host of the origin is the domain or a subdomain of it.
func isWithin(origin, domain string) bool {
	u, err := url.Parse(origin)
	return err == nil && (strings.EqualFold(u.Hostname(), domain) || strings.HasSuffix(strings.ToLower(u.Hostname()), "."+domain))
}

// readProxies parses --trusted-proxies, which has networks and single addresses.
func (s *settings) readProxies() (err error) {
	if s.trustedProxies, err = readNetworks("--trusted-proxies", s.TrustedProxies); err != nil {
		return err
	}
	for i, network := range s.trustedProxies {
		if network.Bits() == 0 {
			s.warn("--trusted-proxies " + s.TrustedProxies[i] + " trusts every client: any client can forge its address with X-Forwarded-For; set only the networks of your proxies")
		}
	}
	return nil
}

// readNetworks returns the networks that the values of a flag name. An address is a network of one
// address.
func readNetworks(flag string, texts []string) (networks []netip.Prefix, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, addressErr := netip.ParseAddr(text)
			if addressErr != nil {
				return nil, fmt.Errorf("%s %q is not a network or an address: use a form such as 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1", flag, text)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// readOIDCNetworks reads the private networks of identity providers.
func (s *settings) readOIDCNetworks() (err error) {
	if s.oidcNetworks, err = readNetworks("--oidc-networks", s.OIDCNetworks); err == nil && s.oidcNetworks != nil {
		s.warn("--oidc-networks lets tenants make this node send requests to these private networks: " + strings.Join(s.OIDCNetworks, ", "))
	}
	return err
}

// readOperatorNetworks reads the private networks of the webhooks of operators.
func (s *settings) readOperatorNetworks() (err error) {
	if s.hookNetworks, err = readNetworks("--operator-webhook-networks", s.OperatorNetworks); err == nil && s.hookNetworks != nil {
		s.warn("--operator-webhook-networks lets every operator key of the scope all make this node send requests to these private networks: " + strings.Join(s.OperatorNetworks, ", "))
	}
	return err
}

// readSecurityContact returns an error unless the contact is empty or an https:, mailto: or tel:
// URI. These are the schemes that RFC 9116 (2.5.3) shows for security.txt.
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

// isLoopback reports whether the address, in the form host:port, can be reached only from this
// machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// readReturnURLs checks the addresses to which a sign-in with an identity provider may return.
func (s *settings) readReturnURLs() error {
	for _, address := range s.ReturnURLs {
		if err := checkReturnURL(address); err != nil {
			return fmt.Errorf("--oidc-return-urls: %s %w", address, err)
		}
		if s.PublicURL != "" && strings.HasPrefix(address, strings.TrimRight(s.PublicURL, "/")+"/console/") {
			return fmt.Errorf("--oidc-return-urls: %s must not be a page of the console, which needs no registration", address)
		}
		if strings.HasPrefix(address, "http:") {
			s.warn("--oidc-return-urls has " + address + ": with plain http, the network can read the codes of sign-ins; use an https URL")
		}
	}
	return nil
}

// checkReturnURL returns an error unless the address is an http or https URL, or has the scheme of an app. Such
// a scheme is a domain of the app in reverse (RFC 8252, 7.1), so it has a dot. This excludes schemes such as
// javascript.
func checkReturnURL(address string) error {
	u, err := url.Parse(strings.ReplaceAll(address, "{tenant}", "a-tenant"))
	switch {
	case err != nil || strings.ContainsAny(address, " \\\t\r\n") || u.User != nil:
		return errors.New("must be an https URL such as https://app.example.com/signed-in, or a URL of an app such as com.example.app:/signed-in")
	case (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() == "", u.Scheme != "https" && u.Scheme != "http" && !strings.Contains(u.Scheme, "."):
		return errors.New("must be an https URL such as https://app.example.com/signed-in, or a URL of an app such as com.example.app:/signed-in")
	case strings.Contains(address, "#"):
		return errors.New("must not have a fragment")
	case strings.ContainsAny(strings.ReplaceAll(address, "{tenant}", ""), "{}"):
		return errors.New("can have only the placeholder {tenant}")
	}
	return nil
}

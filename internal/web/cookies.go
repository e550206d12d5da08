package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// The names of the cookies in the contract.
const (
	SessionCookie = "session" // without the optional __Host- prefix
	deviceCookie  = "rolecall_device"
)

// consoleCookie begins the name of the cookie of a console session. The name of the tenant follows.
const consoleCookie = "console-"

// attemptCookie begins the name of the cookie of a sign-in at an identity provider. The ID of the
// attempt follows.
const attemptCookie = "rolecall_attempt-"

// verifierCookie is the name of the cookie that binds sign-ins at identity providers to the browser.
const verifierCookie = "rolecall_verifier"

// hostPrefix begins the name of a cookie that no other host can set (RFC 6265bis,
// 4.1.3.2).
const hostPrefix = "__Host-"

// cookies are the names and attributes of the cookies. They depend only on the configuration, and
// not on whether the connection uses TLS, because a proxy may end TLS before Rolecall.
type cookies struct {
	session, device     string // names
	verifier            string // name
	console, attempt    string // beginnings of names
	ofSession, ofDevice string // attributes
	ofScript            string // attributes of cookies that scripts set
}

// newCookies returns the cookies that the options describe. The known-device cookie never gets a
// domain, because only Rolecall reads it.
func newCookies(o *Options) cookies {
	domain, secure := "", "; Secure"
	if o.CookieDomain != "" {
		domain = "; Domain=" + o.CookieDomain
	}
	if o.InsecureCookie {
		secure = ""
	}
	c := cookies{
		session: SessionCookie, ofSession: "; HttpOnly" + domain + secure + "; SameSite=Lax",
		device: deviceCookie, ofDevice: "; HttpOnly" + secure + "; SameSite=Lax",
		console: consoleCookie, attempt: attemptCookie, verifier: verifierCookie,
		ofScript: secure + "; SameSite=Lax",
	}
	if o.HostPrefix {
		c.session = hostPrefix + SessionCookie
	}
	if o.PublicURL != nil && o.PublicURL.Scheme == "https" && !o.InsecureCookie {
		c.device, c.console, c.attempt = hostPrefix+deviceCookie, hostPrefix+consoleCookie, hostPrefix+attemptCookie
		c.verifier = hostPrefix + verifierCookie
	}
	return c
}

// SetSession sets the session cookie for the lifetime. The cookie is valid for all paths of the
// host, even if the service has a base path. A narrower path would not protect the cookie from
// other pages of the host. Also, other services on the host can use the cookie to identify the
// user.
func (s *Site) SetSession(w http.ResponseWriter, session secret.Token, lifetime time.Duration) {
	addCookie(w.Header(), s.cookies.session, string(session), lifetime, s.cookies.ofSession)
}

// ClearSession removes the session cookie from the browser.
func (s *Site) ClearSession(w http.ResponseWriter) { s.SetSession(w, "", 0) }

// SetConsoleSession sets the cookie of the console session of the tenant for the lifetime. A
// lifetime of 0 removes the cookie. Each tenant has a separate cookie, so that one browser can use
// the console in several tenants. The cookie never gets a domain, because only the console reads
// it.
func (s *Site) SetConsoleSession(w http.ResponseWriter, tenant string, session secret.Token, lifetime time.Duration) {
	addCookie(w.Header(), s.cookies.console+tenant, string(session), lifetime, s.cookies.ofDevice)
}

// ConsoleSessions returns the session tokens in the console cookies that the request has for the
// tenant.
func (s *Site) ConsoleSessions(r *http.Request, tenant string) []secret.Token {
	return appendTokens(nil, s.cookies.console+tenant, r.Header["Cookie"])
}

// ConsoleTenants returns the names of the tenants for which the request has console cookies, in the
// order of the cookies. Browsers send the oldest cookie first (RFC 6265, 5.4).
func (s *Site) ConsoleTenants(r *http.Request) (tenants []string) {
	for _, cookie := range r.Cookies() {
		tenant, found := strings.CutPrefix(cookie.Name, s.cookies.console)
		if found && rolecall.IsTenantName(tenant) && !slices.Contains(tenants, tenant) {
			tenants = append(tenants, tenant)
		}
	}
	return tenants
}

// attemptsKept is the maximum number of cookies of attempts in one browser. Each has about one
// kilobyte, and proxies limit the size of the headers.
const attemptsKept = 5

// SetAttempt sets the cookie of a sign-in at an identity provider for the lifetime. A lifetime of 0
// removes the cookie. Each attempt has a separate cookie, so that several tabs can sign in at the same
// time. SetAttempt also removes the cookies of the oldest attempts, so that the browser has at most five.
func (s *Site) SetAttempt(w http.ResponseWriter, r *http.Request, id rolecall.AnyID, sealed string, lifetime time.Duration) {
	if lifetime > 0 {
		others := s.attempts(r)
		for _, other := range others[:max(0, len(others)-attemptsKept+1)] {
			addCookie(w.Header(), s.cookies.attempt+other, "", 0, s.cookies.ofDevice)
		}
	}
	addCookie(w.Header(), s.cookies.attempt+id.String(), sealed, lifetime, s.cookies.ofDevice)
}

// attempts returns the IDs of the attempts for which the request has cookies, the oldest first. IDs
// begin with their time.
func (s *Site) attempts(r *http.Request) (ids []string) {
	for _, cookie := range r.Cookies() {
		id, found := strings.CutPrefix(cookie.Name, s.cookies.attempt)
		if _, err := rolecall.ParseID[any](id); found && err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Attempt returns the value of the cookie of the attempt. It returns "" unless the request has exactly
// one such cookie.
func (s *Site) Attempt(r *http.Request, id rolecall.AnyID) string {
	cookies := r.CookiesNamed(s.cookies.attempt + id.String())
	if len(cookies) != 1 {
		return ""
	}
	return cookies[0].Value
}

// SetVerifier sets the cookie with the PKCE verifier of sign-ins at identity providers that the console starts.
// All tabs of a browser have the same one.
func (s *Site) SetVerifier(w http.ResponseWriter, verifier secret.Token, lifetime time.Duration) {
	addCookie(w.Header(), s.cookies.verifier, string(verifier), lifetime, s.cookies.ofDevice)
}

// Verifier returns the verifier in the cookie, or "" unless the request has exactly one.
func (s *Site) Verifier(r *http.Request) secret.Token {
	tokens := appendTokens(nil, s.cookies.verifier, r.Header["Cookie"])
	if len(tokens) != 1 {
		return ""
	}
	return tokens[0]
}

// SetDevices replaces the known-device tokens of the browser. SetDevices also removes the cookie
// under its old name, which had no __Host- prefix.
func (s *Site) SetDevices(w http.ResponseWriter, r *http.Request, tokens []string, lifetime time.Duration) {
	c := &s.cookies
	if c.device != deviceCookie && len(r.CookiesNamed(deviceCookie)) > 0 {
		addCookie(w.Header(), deviceCookie, "", 0, c.ofSession) // the older cookie had the same domain as the session cookie
	}
	addCookie(w.Header(), c.device, strings.Join(tokens, betweenDevices), lifetime, c.ofDevice)
}

// betweenDevices separates the known-device tokens of several accounts.
const betweenDevices = "."

// Devices returns the known-device tokens in the cookies of the request. It also reads cookies
// under the old name without the __Host- prefix, so that the browsers that have them stay known.
func Devices(r *http.Request) (tokens []string) {
	for _, name := range []string{hostPrefix + deviceCookie, deviceCookie} {
		for _, cookie := range r.CookiesNamed(name) {
			tokens = append(tokens, strings.Split(cookie.Value, betweenDevices)...)
		}
	}
	return tokens
}

// AppendSessions appends the tokens in the session cookies of the request, without duplicates, at
// most four. It ignores values that are not well-formed tokens, because other programs may have set
// them.
func (s *Site) AppendSessions(tokens []secret.Token, r *http.Request) []secret.Token {
	return appendTokens(tokens, s.cookies.session, r.Header["Cookie"])
}

// ScriptCookie returns the attributes of a cookie that a script sets for the path. The cookie is
// Secure if the session cookie is Secure.
func (s *Site) ScriptCookie(path string) string { return "; Path=" + path + s.cookies.ofScript }

func addCookie(h http.Header, name, value string, lifetime time.Duration, attributes string) {
	b := make([]byte, 0, 128)
	b = append(b, name...)
	b = append(b, '=')
	b = append(b, value...)
	b = append(b, "; Path=/; Max-Age="...)
	b = strconv.AppendInt(b, seconds(lifetime), 10)
	b = append(b, attributes...)
	h["Set-Cookie"] = append(h["Set-Cookie"], string(b))
}

// seconds rounds a lifetime up, so that a cookie never expires too early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// maxTokens is the maximum number of session tokens of a request that are looked up in the store.
const maxTokens = 4

// appendTokens appends the well-formed tokens in the cookies of that name, without duplicates, at
// most four. It ignores other values, because other programs may have set them.
func appendTokens(tokens []secret.Token, cookie string, lines []string) []secret.Token {
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ";") {
			name, value, found := strings.Cut(strings.TrimLeft(pair, " \t"), "=")
			if !found || name != cookie {
				continue
			}
			token, ok := secret.ParseToken(strings.Trim(strings.TrimRight(value, " \t"), `"`))
			if ok && len(tokens) < maxTokens && !slices.Contains(tokens, token) {
				tokens = append(tokens, token)
			}
		}
	}
	return tokens
}

// themeCookie is the name of the cookie in which console.js stores the theme that the reader has
// chosen. Its path is the base of the site, so that all pages have the same theme.
const themeCookie = "rolecall_theme"

// ThemeOf returns the theme that the reader has chosen: light or dark. It returns an empty text if
// the theme of the system applies.
func ThemeOf(r *http.Request) string {
	cookie, err := r.Cookie(themeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}

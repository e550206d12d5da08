package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// The names of the cookies in the contract.
const (
	SessionCookie = "session" // without the prefix that it may have
	deviceCookie  = "rolecall_device"
)

// hostPrefix begins the name of a cookie that no other host can set (RFC 6265bis,
// 4.1.3.2).
const hostPrefix = "__Host-"

// cookies are the names and attributes of the cookies. They follow from the
// configuration and never from the connection, which a proxy may have opened.
type cookies struct {
	session, device     string // names
	ofSession, ofDevice string // attributes
}

// newCookies returns what the options say. Only Rolecall reads the known-device
// cookie, so it never gets a domain.
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
	}
	if o.HostPrefix {
		c.session = hostPrefix + SessionCookie
	}
	if o.PublicURL != nil && o.PublicURL.Scheme == "https" && !o.InsecureCookie {
		c.device = hostPrefix + deviceCookie
	}
	return c
}

// SetSession gives the browser the session of the sign-in and its known-device token. The
// session is the last cookie, because some clients keep only the last one.
func (s *Site) SetSession(w http.ResponseWriter, r *http.Request, signIn *signin.SignIn) {
	RequestOf(r).Principal = signIn.Principal
	s.SetDevice(w, r, signIn.Principal.Tenant.ID, signIn.Device)
	endsAt := signIn.Principal.Session.EndsAt(signIn.Principal.Settings())
	s.setSession(w.Header(), string(signIn.Token), endsAt.Sub(s.access.Now()))
}

// ClearSession removes the session from the browser.
func (s *Site) ClearSession(w http.ResponseWriter) { s.setSession(w.Header(), "", 0) }

// setSession sends the token for as long as it is valid. Its path is the root also under
// a base: a path would hide it from no page of the host, and what is served next to the
// base can use it to find out who is signed in.
func (s *Site) setSession(h http.Header, token string, lifetime time.Duration) {
	addCookie(h, s.cookies.session, token, lifetime, s.cookies.ofSession)
}

// SetDevice makes the browser a known one for the account. A cookie under the name
// without the prefix is replaced.
func (s *Site) SetDevice(w http.ResponseWriter, r *http.Request, tenant rolecall.TenantID, token string) {
	if token == "" {
		return
	}
	c := &s.cookies
	if c.device != deviceCookie && len(r.CookiesNamed(deviceCookie)) > 0 {
		addCookie(w.Header(), deviceCookie, "", 0, c.ofSession) // it had the domain of the session
	}
	kept := s.signin.KeptDevices(tenant, token, Devices(r))
	addCookie(w.Header(), c.device, strings.Join(kept, betweenDevices), signin.DeviceLifetime, c.ofDevice)
}

// betweenDevices stands between the known-device tokens of several accounts.
const betweenDevices = "."

// Devices returns the known-device tokens of the request's cookies. A cookie under
// the name without the prefix is read too, so that browsers stay known.
func Devices(r *http.Request) (tokens []string) {
	for _, name := range []string{hostPrefix + deviceCookie, deviceCookie} {
		for _, cookie := range r.CookiesNamed(name) {
			tokens = append(tokens, strings.Split(cookie.Value, betweenDevices)...)
		}
	}
	return tokens
}

// AppendSessions appends the tokens of the request's session cookies, each once, at most
// four. Values that are no tokens belong to other programs.
func (s *Site) AppendSessions(tokens []secret.Token, r *http.Request) []secret.Token {
	return appendTokens(tokens, s.cookies.session, r.Header["Cookie"])
}

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

// seconds rounds a lifetime up, so that a cookie is never gone too early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// maxTokens is how many session cookies are looked up.
const maxTokens = 4

// appendTokens appends the well-formed values of the cookies of that name in the
// Cookie lines, each once, at most four. Other values are another program's.
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

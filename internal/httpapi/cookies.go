package httpapi

import (
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

// The names of the cookies in the contract.
const (
	sessionCookie = "session"
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
		session: sessionCookie, ofSession: "; HttpOnly" + domain + secure + "; SameSite=Lax",
		device: deviceCookie, ofDevice: "; HttpOnly" + secure + "; SameSite=Lax",
	}
	if o.HostPrefix {
		c.session = hostPrefix + sessionCookie
	}
	if o.PublicURL != nil && o.PublicURL.Scheme == "https" && !o.InsecureCookie {
		c.device = hostPrefix + deviceCookie
	}
	return c
}

// setCookies gives the browser the session and its known-device token. The session
// is the last cookie, because some clients keep only the last one.
func (x *exchange) setCookies(signIn *service.SignIn) {
	x.call.Principal = signIn.Principal
	x.setDevice(signIn.Device)
	endsAt := signIn.Principal.Session.EndsAt(signIn.Principal.Settings())
	x.setCookie(signIn.Token, endsAt.Sub(x.server.service.Now()))
}

// setCookie sends the token for as long as it can be of use; an empty one clears
// the cookie. Its path is the root also under a base: a path would keep no page
// of the host from it, and what is served beside the base can ask with it who is
// signed in.
func (x *exchange) setCookie(token secret.Token, lifetime time.Duration) {
	x.addCookie(x.server.cookies.session, string(token), lifetime, x.server.cookies.ofSession)
}

// setDevice makes the browser a known one for the account. A cookie under the name
// without the prefix is replaced.
func (x *exchange) setDevice(mark string) {
	if mark == "" {
		return
	}
	c := &x.server.cookies
	if c.device != deviceCookie && len(x.request.CookiesNamed(deviceCookie)) > 0 {
		x.addCookie(deviceCookie, "", 0, c.ofSession) // it had the domain of the session
	}
	kept := x.server.service.KeptDevices(x.tenant.ID, mark, x.devices())
	x.addCookie(c.device, strings.Join(kept, betweenDevices), service.DeviceLifetime, c.ofDevice)
}

// betweenDevices stands between the known-device tokens of several accounts.
const betweenDevices = "."

// devices returns the known-device tokens of the request's cookies. A cookie under
// the name without the prefix is read too, so that browsers stay known.
func (x *exchange) devices() (marks []string) {
	for _, name := range []string{hostPrefix + deviceCookie, deviceCookie} {
		for _, cookie := range x.request.CookiesNamed(name) {
			marks = append(marks, strings.Split(cookie.Value, betweenDevices)...)
		}
	}
	return marks
}

func (x *exchange) addCookie(name, value string, lifetime time.Duration, attributes string) {
	b := make([]byte, 0, 128)
	b = append(b, name...)
	b = append(b, '=')
	b = append(b, value...)
	b = append(b, "; Path=/; Max-Age="...)
	b = strconv.AppendInt(b, seconds(lifetime), 10)
	b = append(b, attributes...)
	x.header["Set-Cookie"] = append(x.header["Set-Cookie"], string(b))
}

// seconds rounds a lifetime up, so that a cookie is never gone too early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

package client

import (
	"net/http"
	"slices"
)

// NewWithCookies is like New, but the client begins with the session of a browser. Pass the cookies of its
// request (http.Request.Cookies): the client sends only those of Rolecall. After a call that signs in or
// out, pass Cookies on to the browser.
func NewWithCookies(base, tenant string, cookies []*http.Cookie, h *http.Client) *Client {
	c := New(base, tenant, h)
	for _, cookie := range cookies {
		if slices.Contains(cookieNames, cookie.Name) {
			c.cookies[cookie.Name] = cookie
		}
	}
	return c
}

// Names of the cookies. The configuration of the service decides whether they have the prefix.
const (
	hostPrefix    = "__Host-"
	sessionCookie = "session"
	deviceCookie  = "rolecall_device"
)

// cookieNames are all names of the cookies. If a browser has a cookie with the prefix and one without it,
// the client sends both: one of them can be of another program, and the service reads only its own.
var cookieNames = []string{hostPrefix + sessionCookie, sessionCookie, hostPrefix + deviceCookie, deviceCookie}

// addCookies adds the cookies of the session and of the known device to a request.
func (c *Client) addCookies(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range cookieNames {
		if cookie := c.cookies[name]; cookie != nil {
			r.AddCookie(&http.Cookie{Name: name, Value: cookie.Value})
		}
	}
}

// Cookies returns the cookies of Rolecall that the responses so far have set or cleared, the last one of each
// name. Pass each to http.SetCookie in the response to the browser.
func (c *Client) Cookies() []*http.Cookie {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.set)
}

// keepCookies stores the session cookie and the known-device token from a response, and
// removes those that the response clears. Without the known-device token, the service
// would send the user a mail about each sign-in.
func (c *Client) keepCookies(answer *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cookie := range answer.Cookies() {
		if !slices.Contains(cookieNames, cookie.Name) {
			continue
		}
		if c.cookies[cookie.Name] = cookie; cookie.Value == "" || cookie.MaxAge < 0 {
			delete(c.cookies, cookie.Name)
		}
		c.set = append(slices.DeleteFunc(c.set, func(other *http.Cookie) bool { return other.Name == cookie.Name }), cookie)
	}
}

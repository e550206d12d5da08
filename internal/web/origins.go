package web

import (
	"net/http"
	"slices"
	"strings"
)

// origins are the web origins whose pages may call the service from a browser with its session
// cookie. The Origin header must be equal to one of them, including the scheme and the port.
type origins struct {
	own       string              // of the public URL; empty if it is not configured
	allowed   map[string]struct{} // other origins; nil without any
	protected *http.CrossOriginProtection
}

func newOrigins(o *Options) origins {
	list := origins{protected: http.NewCrossOriginProtection()}
	if o.PublicURL != nil {
		list.own = o.PublicURL.Scheme + "://" + o.PublicURL.Host
	}
	for _, origin := range o.AllowOrigins {
		if list.allowed == nil {
			list.allowed = map[string]struct{}{}
		}
		list.allowed[origin] = struct{}{}
	}
	return list
}

// allow reports whether the Origin header names an allowed origin.
func (o *origins) allow(r *http.Request) bool {
	lines := r.Header["Origin"]
	if len(lines) != 1 {
		return false
	}
	_, ok := o.allowed[lines[0]]
	return ok
}

// check returns an error if a browser sent the request from a page of an origin that is not
// allowed, and the request can change data. The public origin is always allowed, even behind a
// proxy that changes Host.
func (o *origins) check(r *http.Request) error {
	if o.allow(r) {
		return nil
	}
	return o.checkOwn(r)
}

// checkOwn is like check, but allows only pages of the public origin.
func (o *origins) checkOwn(r *http.Request) error {
	if o.own != "" && r.Header.Get("Origin") == o.own {
		return nil
	}
	return o.protected.Check(r)
}

// preflightAge is how long browsers may cache the response to a preflight request, in seconds.
// Chromium allows no higher value.
const preflightAge = "7200"

// The CORS headers for pages of allowed origins. All responses share these values.
var (
	varyOrigin       = []string{"Origin"}
	allowCredentials = []string{"true"}
	exposeHeaders    = []string{"etag, location, link, retry-after, withheld-fields, x-request-id, idempotent-replayed"}
	allowHeaders     = []string{"content-type, x-tenant-schema, idempotency-key, if-match, if-none-match, authorization"}
	allowMethods     = []string{"GET, HEAD, POST, PUT, PATCH, DELETE"}
	maxAge           = []string{preflightAge}
)

// crossOriginResponse sets the CORS headers that let pages of allowed origins read the response. If
// the configuration allows no other origins, crossOriginResponse sets no header.
func (s *Site) crossOriginResponse(next http.Handler) http.Handler {
	if s.origins.allowed == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Vary"] = varyOrigin
		if s.origins.allow(r) {
			h["Access-Control-Allow-Origin"] = r.Header["Origin"]
			h["Access-Control-Allow-Credentials"] = allowCredentials
			h["Access-Control-Expose-Headers"] = exposeHeaders
		}
		next.ServeHTTP(w, r)
	})
}

// OwnPagesOnly removes the CORS headers, so that pages of allowed origins cannot read the response.
func OwnPagesOnly(h http.Header) {
	delete(h, "Access-Control-Allow-Origin")
	delete(h, "Access-Control-Allow-Credentials")
	delete(h, "Access-Control-Expose-Headers")
}

// preflight responds to CORS preflight requests. A browser sends a preflight request to check
// whether a page of an allowed origin may send the actual request. The response allows every method
// of the API on every path, so that the page can read the error response if the actual request
// fails.
func (s *Site) preflight(next http.Handler) http.Handler {
	if s.origins.allowed == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodOptions || len(r.Header["Access-Control-Request-Method"]) == 0 || !s.origins.allow(r) {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		delete(h, "Access-Control-Expose-Headers")
		h["Access-Control-Allow-Methods"] = allowMethods
		h["Access-Control-Allow-Headers"] = allowHeaders
		h["Access-Control-Max-Age"] = maxAge
		Respond(w, r, http.StatusNoContent, nil)
	})
}

// CheckOrigin returns an error if a browser sent the request from a page of an origin that is not
// allowed, and the request can change data.
func (s *Site) CheckOrigin(r *http.Request) error { return s.origins.check(r) }

// CheckOwnOrigin returns an error if a browser sent the request from a page of an origin other than
// the public one, and the request can change data.
func (s *Site) CheckOwnOrigin(r *http.Request) error { return s.origins.checkOwn(r) }

// Address returns the URL of the root as the client of the request sees it, without a trailing slash.
func (s *Site) Address(r *http.Request) string { return s.address(r.Host, r.TLS != nil) }

func (s *Site) address(host string, isTLS bool) string {
	if s.Public != "" {
		return s.Public
	}
	if isTLS {
		return "https://" + host + s.Base
	}
	return "http://" + host + s.Base
}

// ReturnsTo reports whether callers of the API can let a sign-in of the tenant with an identity provider return
// to the address: whether it is one of Options.ReturnTo. It must be exactly the same, so that an attacker
// cannot send users to another page.
func (s *Site) ReturnsTo(tenant, address string) bool {
	return slices.ContainsFunc(s.returnTo, func(registered string) bool {
		return strings.ReplaceAll(registered, "{tenant}", tenant) == address
	})
}

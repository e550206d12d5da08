package httpapi

import "net/http"

// origins are the web origins whose pages may use the service from a browser
// with its session cookie. Each is compared as a whole, the way browsers send
// it: so no prefix, suffix, port or scheme of one makes another.
type origins struct {
	own       string              // of the public URL, "" if there is none
	allowed   map[string]struct{} // other origins; nil if there are none
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

// allow reports whether the request says that it comes from an allowed origin.
func (o *origins) allow(r *http.Request) bool {
	lines := r.Header["Origin"]
	if len(lines) != 1 {
		return false
	}
	_, ok := o.allowed[lines[0]]
	return ok
}

// check returns an error for a request that could change something and that a
// page of an origin not allowed made a browser send. The public origin is one's
// own also behind a proxy that puts another name into Host.
func (o *origins) check(r *http.Request) error {
	if o.allow(r) {
		return nil
	}
	return o.checkOwn(r)
}

// checkOwn is check where no other origin is allowed.
func (o *origins) checkOwn(r *http.Request) error {
	if o.own != "" && r.Header.Get("Origin") == o.own {
		return nil
	}
	return o.protected.Check(r)
}

// preflightAge is how long, in seconds, a browser may remember the answer to a
// preflight: the most that Chromium does.
const preflightAge = "7200"

// What pages of allowed origins may send and read, shared by all answers.
var (
	varyOrigin       = []string{"Origin"}
	allowCredentials = []string{"true"}
	exposeHeaders    = []string{"etag, location, link, retry-after, withheld-fields, x-request-id, idempotent-replayed"}
	allowHeaders     = []string{"content-type, x-tenant-schema, idempotency-key, if-match, if-none-match, authorization"}
	allowMethods     = []string{"GET, HEAD, POST, PUT, PATCH, DELETE"}
	maxAge           = []string{preflightAge}
)

// share lets the page of an allowed origin read the answer; to every other the
// answer says nothing. Where no origin is allowed, answers do not depend on it.
func (x *exchange) share() {
	origins := &x.server.origins
	if origins.allowed == nil {
		return
	}
	x.header["Vary"] = varyOrigin
	if !origins.allow(x.request) {
		return
	}
	x.header["Access-Control-Allow-Origin"] = x.request.Header["Origin"]
	x.header["Access-Control-Allow-Credentials"] = allowCredentials
	x.header["Access-Control-Expose-Headers"] = exposeHeaders
}

// isPreflight reports whether a browser asks, before it sends it, if a page of
// an allowed origin may send a request.
func (x *exchange) isPreflight() bool {
	return x.request.Method == http.MethodOptions && len(x.request.Header["Access-Control-Request-Method"]) > 0 &&
		x.server.origins.allow(x.request)
}

// permit answers a preflight. It allows every method on every path, so that what
// is wrong with the request itself is said in an answer that the page can read.
func (x *exchange) permit() {
	delete(x.header, "Access-Control-Expose-Headers")
	x.header["Access-Control-Allow-Methods"] = allowMethods
	x.header["Access-Control-Allow-Headers"] = allowHeaders
	x.header["Access-Control-Max-Age"] = maxAge
	x.write(http.StatusNoContent)
}

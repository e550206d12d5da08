package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall"
)

// Route is one method on one path, with its handler.
type Route struct {
	Method  string
	Path    string // below the base
	Label   string // of the operation in the metrics
	Handler http.Handler
}

// Router serves routes. It also responds to OPTIONS requests, to methods that a path does not
// support, and to unknown paths.
type Router struct {
	// AllowSlash allows paths with a slash at the end. Without AllowSlash, such paths are unknown.
	AllowSlash bool

	site    *Site
	onError ErrorHandler
	mux     *http.ServeMux
	unknown http.Handler // serves unknown paths
}

// NewRouter returns a router without routes.
func (s *Site) NewRouter(onError ErrorHandler) *Router {
	r := &Router{site: s, onError: onError, mux: http.NewServeMux()}
	r.unknown = r.handler(&resource{other: Route{Label: "none"}, isServed: func(*http.Request) bool { return false }})
	r.mux.Handle("/", r.unknown)
	return r
}

// Handle adds the routes to the router. If isServed is not nil and returns false for a request, the
// router responds as for an unknown path.
func (rt *Router) Handle(routes []Route, isServed func(*http.Request) bool) {
	resources := map[string]*resource{}
	for _, route := range routes {
		res := resources[route.Path]
		if res == nil {
			res = &resource{isServed: isServed, other: Route{Label: "none", Path: route.Path}}
			resources[route.Path] = res
		}
		res.routes = append(res.routes, measuredRoute{route, rt.site.metrics.of(route.Label)})
	}
	for path, res := range resources {
		res.allow = res.methods()
		rt.mux.Handle(rt.site.Base+path, rt.handler(res))
	}
}

// ServeHTTP routes the request.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawPath != "" {
		decoded := *r
		decoded.URL = decodeUnreserved(r.URL)
		r = &decoded
	}
	if !isCanonical(r.URL) && !(rt.AllowSlash && isCanonicalWithSlash(r.URL)) {
		rt.unknown.ServeHTTP(w, r)
		return
	}
	rt.mux.ServeHTTP(w, r)
}

// resource is one path with its routes.
type resource struct {
	routes   []measuredRoute
	allow    []string // the Allow header
	other    Route    // the route in the log for a method that the path does not support
	isServed func(*http.Request) bool
}

// measuredRoute is a route with its metrics.
type measuredRoute struct {
	Route
	metrics *routeMetrics
}

// handler returns the handler of the resource. The handler includes the middleware of function
// routed.
func (rt *Router) handler(res *resource) http.Handler {
	other := measuredRoute{res.other, rt.site.metrics.of(res.other.Label)}
	serve := rt.site.routed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := res.route(r.Method)
		switch {
		case res.isServed != nil && !res.isServed(r):
			rt.onError(w, r, ErrUnknownPath)
		case r.Method == http.MethodOptions:
			w.Header()["Allow"] = res.allow
			Respond(w, r, http.StatusNoContent, nil)
		case route == nil:
			w.Header()["Allow"] = res.allow
			rt.onError(w, r, ErrMethodNotAllowed)
		default:
			route.Handler.ServeHTTP(w, r)
		}
	}), rt.onError)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := res.route(r.Method)
		if route == nil {
			route = &other
		}
		q := RequestOf(r)
		q.path, q.metrics = route.Path, route.metrics
		if tenant := r.PathValue("tenant"); rolecall.IsTenantName(tenant) {
			q.Tenant = tenant
		}
		serve.ServeHTTP(w, r)
	})
}

// route returns the route for the method, or nil. A HEAD request uses the route of GET.
func (res *resource) route(method string) *measuredRoute {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range res.routes {
		if res.routes[i].Method == method {
			return &res.routes[i]
		}
	}
	return nil
}

// methods returns the values of the Allow header: the methods that the resource supports.
func (res *resource) methods() []string {
	var methods []string
	for _, route := range res.routes {
		methods = append(methods, route.Method)
		if route.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	return []string{strings.Join(append(methods, http.MethodOptions), ", ")}
}

// decodeUnreserved returns the URL with the unreserved characters of its path decoded: /%75sers
// becomes /users (RFC 9110, 4.2.3). All other encoded characters stay encoded, in particular
// slashes. Encoded dots are decoded too, so isCanonical can refuse paths with dotted segments.
func decodeUnreserved(u *url.URL) *url.URL {
	path := u.EscapedPath()
	raw := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			raw = append(raw, path[i])
			continue
		}
		encoded := path[i : i+3] // EscapedPath guarantees two hexadecimal digits after %
		if c, err := strconv.ParseUint(encoded[1:], 16, 8); err == nil && isUnreserved(byte(c)) {
			raw = append(raw, byte(c))
		} else {
			raw = append(raw, encoded...)
		}
		i += 2
	}
	decoded := *u
	decoded.RawPath = string(raw)
	if (&url.URL{Path: u.Path}).EscapedPath() == decoded.RawPath {
		decoded.RawPath = "" // RawPath is empty if the path has the default encoding
	}
	return &decoded
}

// isUnreserved reports whether c has the same meaning in a URL whether it is percent-encoded or not
// (RFC 3986, 2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// isCanonical reports whether the path is in its canonical spelling: without empty segments, dotted
// segments or needless encoding, and without a slash at the end. The router responds to paths in
// other spellings as to unknown paths, and does not redirect them.
func isCanonical(u *url.URL) bool {
	path := u.Path
	if u.RawPath != "" || path == "" || path[0] != '/' || len(path) > 1 && path[len(path)-1] == '/' {
		return false
	}
	for i := 0; i+1 < len(path); i++ {
		if path[i] == '/' && (path[i+1] == '/' || path[i+1] == '.' && !strings.HasPrefix(path[i:], "/.well-known/") && path[i:] != "/.search") {
			return false
		}
	}
	return true
}

// isCanonicalWithSlash reports whether the path is canonical except for a slash at its end.
func isCanonicalWithSlash(u *url.URL) bool {
	path, ok := strings.CutSuffix(u.Path, "/")
	return ok && u.RawPath == "" && isCanonical(&url.URL{Path: path})
}

// Package httpapi is the HTTP edge: it turns requests into calls of the service
// and answers into JSON. Every operation is one entry of one table; checking,
// reading, refusing, encoding and observing are done once for all of them.
package httpapi

import (
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/internal/gate"
	"github.com/rolecall/rolecall/internal/service"
)

// The bounds of a request.
const (
	maxURL    = 8 << 10  // bytes of the request target
	maxHeader = 16 << 10 // bytes of all header lines
	maxLines  = 100      // header lines
	maxBody   = 64 << 10 // bytes of a body
	maxDepth  = 32       // of nested JSON
	maxTokens = 4        // session cookies that are looked up

	maxStreams = 32 // requests at once on one connection of HTTP/2
)

// DefaultDeadline is how long a request may take if the options say nothing.
const DefaultDeadline = 15 * time.Second

// Options configure the edge. The zero value serves plainly at the root.
type Options struct {
	// PublicURL is the address under which clients reach the service. Its path
	// is the base of every route, Location and Link; with https every answer
	// carries Strict-Transport-Security.
	PublicURL *url.URL
	// HSTSSubdomains extends Strict-Transport-Security to every host under the
	// public one.
	HSTSSubdomains bool
	// InsecureCookie leaves Secure out of the session cookie, for plain http on
	// a loopback address.
	InsecureCookie bool
	// CookieDomain is the domain whose hosts all get the session cookie; empty
	// means that only the host that set it does.
	CookieDomain string
	// HostPrefix names the session cookie __Host-session. It needs an https
	// PublicURL and no CookieDomain.
	HostPrefix bool
	// AllowOrigins are the origins, beside that of PublicURL, whose pages may call
	// from a browser with the session cookie. Each is just what a browser sends:
	// https://app.example.com, in lower case and without a default port.
	AllowOrigins []string
	// TrustedProxies are the networks of the proxies whose X-Forwarded-For and
	// X-Request-Id are believed; nil means nobody's are.
	TrustedProxies []netip.Prefix
	// Deadline bounds the work on one request, down to the store; zero means
	// DefaultDeadline.
	Deadline time.Duration
	// OperatorsApart keeps operators out of HTTPServer: they are served by
	// OperatorServer alone.
	OperatorsApart bool
	// Console is what people see in a browser; nil for no such pages.
	Console *Console
	// SecurityContact is the URI where weaknesses are reported: mailto:, https: or tel:.
	// Empty: there is no security.txt.
	SecurityContact string
	// Logger gets one line for each request, and the cause of each internal
	// error; nil means slog.Default.
	Logger *slog.Logger
	// Metrics is where the metrics are registered; nil means nowhere.
	Metrics prometheus.Registerer
	// PasswordHashes returns how many password hashes were computed so far, for
	// the metrics; nil leaves them out.
	PasswordHashes func() uint64
}

// Server answers HTTP requests with what the service does.
type Server struct {
	service   *service.Service
	base      string // path under which everything is served, without a trailing slash
	public    string // address of the root, without a trailing slash; empty if it is not known
	cookies   cookies
	hsts      []string // Strict-Transport-Security; nil: none is sent
	apart     bool     // operators are served by OperatorServer alone
	deadline  time.Duration
	logger    *slog.Logger
	meters    *meters
	mux       *http.ServeMux
	assets    map[string]string  // where the files of the console are, by their names
	refusal   func(*Visit) error // Console.Refuse; nil without a console
	unknown   *resource          // answers on every path that is not served
	origins   origins
	proxies   proxies
	exchanges sync.Pool
	lanes     [lanes]*gate.Gate
	readiness *readiness
	draining  atomic.Bool

	securityContact string // URI; empty: none
}

// New returns a server of all operations.
func New(s *service.Service, o Options) *Server {
	server := &Server{
		service:   s,
		cookies:   newCookies(&o),
		apart:     o.OperatorsApart,
		deadline:  o.Deadline,
		logger:    o.Logger,
		mux:       http.NewServeMux(),
		origins:   newOrigins(&o),
		proxies:   o.TrustedProxies,
		lanes:     newLanes(),
		readiness: newReadiness(s.Ready),
		assets:    map[string]string{},

		securityContact: o.SecurityContact,
	}
	if o.PublicURL != nil {
		server.base = strings.TrimRight(o.PublicURL.EscapedPath(), "/")
		server.public = strings.TrimRight(o.PublicURL.String(), "/")
		if o.PublicURL.Scheme == "https" {
			server.hsts = hstsHeader(o.HSTSSubdomains)
		}
	}
	if server.deadline == 0 {
		server.deadline = DefaultDeadline
	}
	if server.logger == nil {
		server.logger = slog.Default()
	}
	server.meters = newMeters(o.Metrics, o.PasswordHashes)
	server.exchanges.New = func() any { return &exchange{server: server} }
	server.route(operations)
	server.route(operatorOperations)
	server.route(server.pages())
	if o.Console != nil {
		server.route(server.console(o.Console))
	}
	server.unknown = &resource{server: server, unserved: newRoute(&operation{id: "none"}, server.meters), unknown: true}
	server.mux.Handle("/", server.unknown)
	return server
}

// route gives each path of the operations to one resource.
func (s *Server) route(operations []*operation) {
	resources := map[string]*resource{}
	for _, op := range operations {
		r := resources[op.path]
		if r == nil {
			r = &resource{server: s, unserved: newRoute(&operation{id: "none", path: op.path}, s.meters)}
			resources[op.path] = r
			s.mux.Handle(s.base+op.path, r)
		}
		r.operations = append(r.operations, newRoute(op, s.meters))
		r.operator = op.operator
	}
	for _, r := range resources {
		r.allow = r.methods()
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawPath != "" {
		decoded := *r
		decoded.URL = decodeUnreserved(r.URL)
		r = &decoded
	}
	if !onePath(r.URL) && !s.isFolder(r.URL) {
		s.unknown.ServeHTTP(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Drain tells every client from now on to use a new connection, and whoever asks
// /readyz that this process is leaving. It is called some time before
// http.Server.Shutdown, which by itself loses requests that have just arrived.
func (s *Server) Drain() { s.draining.Store(true) }

// HTTPServer returns an http.Server of the handler with the bounds and timeouts
// of this edge. What it refuses before there is a request (400, 431) is plain
// text.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Handler:                      s,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  15 * time.Second,
		WriteTimeout:                 30 * time.Second,
		IdleTimeout:                  120 * time.Second,
		MaxHeaderBytes:               maxHeader - 4<<10, // net/http adds as much
		DisableGeneralOptionsHandler: true,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:                     log.New(connectionLog{s.logger}, "", 0),
	}
}

// OperatorServer is HTTPServer for the listener of operators: it serves them too
// where they are kept apart.
func (s *Server) OperatorServer() *http.Server {
	server := s.HTTPServer()
	server.BaseContext = func(net.Listener) context.Context {
		return context.WithValue(context.Background(), operatorDoor{}, true)
	}
	return server
}

// decodeUnreserved returns the URL with the unreserved characters of its path decoded:
// /%75sers is /users (RFC 9110, 4.2.3). All other encoded characters stay encoded, above
// all slashes. Encoded dots become dots, and onePath refuses those that lead elsewhere.
func decodeUnreserved(u *url.URL) *url.URL {
	path := u.EscapedPath()
	raw := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			raw = append(raw, path[i])
			continue
		}
		encoded := path[i : i+3] // two digits follow, as EscapedPath checks
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
		decoded.RawPath = "" // as net/url writes the usual encoding
	}
	return &decoded
}

// isUnreserved reports whether an encoded c means the same as c (RFC 3986, 2.3).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// onePath reports whether the path has its one spelling: no empty, dotted or
// needlessly encoded segment and no slash at the end. Others are unknown paths,
// so that none reaches a second route or is redirected.
func onePath(u *url.URL) bool {
	path := u.Path
	if u.RawPath != "" || path == "" || path[0] != '/' || len(path) > 1 && path[len(path)-1] == '/' {
		return false
	}
	for i := 0; i+1 < len(path); i++ {
		if path[i] == '/' && (path[i+1] == '/' || path[i+1] == '.' && !strings.HasPrefix(path[i:], "/.well-known/")) {
			return false
		}
	}
	return true
}

// Package httpapi is the HTTP edge: it turns requests into calls of the service
// and answers into JSON. Every operation is one entry of one table; checking,
// reading, refusing, encoding and observing are done once for all of them.
package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
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
	// InsecureCookie leaves Secure out of the session cookie, for plain http on
	// a loopback address.
	InsecureCookie bool
	// CookieDomain is the domain whose hosts all get the session cookie; empty
	// means that only the host that set it does.
	CookieDomain string
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
	cookie    string // attributes of the session cookie
	hsts      bool
	apart     bool // operators are served by OperatorServer alone
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
	draining  atomic.Bool
}

// New returns a server of all operations.
func New(s *service.Service, o Options) *Server {
	server := &Server{
		service:  s,
		cookie:   cookieAttributes(&o),
		apart:    o.OperatorsApart,
		deadline: o.Deadline,
		logger:   o.Logger,
		mux:      http.NewServeMux(),
		origins:  newOrigins(&o),
		proxies:  o.TrustedProxies,
		lanes:    newLanes(),
		assets:   map[string]string{},
	}
	if o.PublicURL != nil {
		server.base = strings.TrimRight(o.PublicURL.EscapedPath(), "/")
		server.public = strings.TrimRight(o.PublicURL.String(), "/")
		server.hsts = o.PublicURL.Scheme == "https"
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
		ErrorLog:                     slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
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

// onePath reports whether the path has its one spelling: no empty, dotted or
// needlessly encoded segment and no slash at the end. Others are unknown paths,
// so that none reaches a second route or is redirected.
func onePath(u *url.URL) bool {
	path := u.Path
	if u.RawPath != "" || path == "" || path[0] != '/' || len(path) > 1 && path[len(path)-1] == '/' {
		return false
	}
	for i := 0; i+1 < len(path); i++ {
		if path[i] == '/' && (path[i+1] == '/' || path[i+1] == '.') {
			return false
		}
	}
	return true
}

// Package web contains the HTTP code that the API and the console share: the middleware
// around every request, the router, the cookies of sessions, the concurrency limiters, the
// responses to errors, and static files. It declares no route and no page, and imports no
// service.
package web

import (
	"context"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/tracing"
)

// The limits of a request.
const (
	MaxURL   = 8 << 10  // bytes of the request target
	MaxLines = 100      // header lines
	MaxBody  = 64 << 10 // bytes of a body

	maxHeader  = 16 << 10 // bytes of all header lines
	maxStreams = 32       // concurrent requests on one HTTP/2 connection
)

// DefaultDeadline is the time limit of a request if Options.Deadline is zero.
const DefaultDeadline = 15 * time.Second

// Options configure a site. The zero value serves plain HTTP at the root.
type Options struct {
	// PublicURL is the address under which clients reach the service. Its path
	// is the base of every route, Location and Link. With https every response
	// carries Strict-Transport-Security.
	PublicURL *url.URL
	// MailLinks replace the addresses that links in mail lead to, by kind of mail. The other links
	// lead to the console.
	MailLinks rolecall.MailLinks
	// ReturnTo are the addresses to which callers of the API can let a sign-in with an identity provider
	// return. They can have {tenant}.
	ReturnTo []string
	// HSTSSubdomains extends Strict-Transport-Security to all subdomains of the public host.
	HSTSSubdomains bool
	// InsecureCookie omits the attribute Secure from the cookies. Use it only for plain HTTP on a
	// loopback address.
	InsecureCookie bool
	// CookieDomain is the domain whose hosts all get the session cookie. If it is
	// empty, only the host that set the cookie gets it.
	CookieDomain string
	// HostPrefix names the session cookie __Host-session. It needs an https
	// PublicURL and no CookieDomain.
	HostPrefix bool
	// AllowOrigins are the origins, in addition to the origin of PublicURL, whose pages may send
	// requests with the session cookie. Each origin has exactly the form that browsers send:
	// https://app.example.com, in lower case and without a default port.
	AllowOrigins []string
	// TrustedProxies are the networks of the proxies whose X-Forwarded-For and
	// X-Request-Id are used. If it is nil, no proxy is trusted.
	TrustedProxies []netip.Prefix
	// Deadline is the time limit for the work on one request, including the work of the store. Zero
	// means DefaultDeadline.
	Deadline time.Duration
	// Logger receives one line for each request, and the cause of each internal error. If it is
	// nil, slog.Default is used.
	Logger *slog.Logger
	// Metrics is the registry for the metrics. If it is nil, the metrics are not registered.
	Metrics prometheus.Registerer
	// Tracer creates a span for each request. If it is nil, there are no spans.
	Tracer *tracing.Tracer
}

// Site serves the API and the console under one public URL. It has the configuration and the
// mechanisms that they share.
type Site struct {
	// Base is the path under which everything is served, without a trailing slash.
	Base string
	// Public is the public URL without a trailing slash. It is empty if no public URL is
	// configured.
	Public string
	// Links has the addresses that links in mail lead to.
	Links rolecall.MailLinks

	returnTo []string // see Options.ReturnTo
	cookies  cookies
	hsts     []string // Strict-Transport-Security; nil if it is not sent
	deadline time.Duration
	logger   *slog.Logger
	metrics  *metrics
	tracer   *tracing.Tracer
	origins  origins
	proxies  proxies
	limiters [limiterKinds]workLimiter
	exports  exports
	waits    waits
	outgoing *outgoing
	draining atomic.Bool
	drained  chan struct{} // closed by Drain

	forwardedWarned atomic.Bool // see warnForwarded
}

// New returns the site that the options describe.
func New(o Options) *Site {
	s := &Site{
		returnTo: o.ReturnTo,
		cookies:  newCookies(&o),
		deadline: o.Deadline,
		logger:   o.Logger,
		metrics:  newMetrics(o.Metrics),
		tracer:   o.Tracer,
		origins:  newOrigins(&o),
		proxies:  o.TrustedProxies,
		limiters: newLimiters(o.Metrics),
		exports:  newExports(),
		waits:    newWaits(),
		outgoing: newOutgoing(outgoingBytes),
		drained:  make(chan struct{}),
	}
	if o.PublicURL != nil {
		s.Base = strings.TrimRight(o.PublicURL.EscapedPath(), "/")
		s.Public = strings.TrimRight(o.PublicURL.String(), "/")
		if o.PublicURL.Scheme == "https" {
			s.hsts = hstsHeader(o.HSTSSubdomains)
		}
	}
	s.Links = rolecall.ConsoleLinks(s.Public)
	maps.Copy(s.Links, o.MailLinks)
	if s.deadline == 0 {
		s.deadline = DefaultDeadline
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	return s
}

// SetLogger replaces the logger.
func (s *Site) SetLogger(logger *slog.Logger) { s.logger = logger }

// Drain makes every response from now on close its connection, so that clients connect to another
// process. Call Drain some time before http.Server.Shutdown, because Shutdown alone loses requests
// that have just arrived. Drain also ends the waits of Request.Await.
func (s *Site) Drain() {
	if !s.draining.Swap(true) {
		close(s.drained)
	}
}

// IsDraining reports whether the process is about to stop.
func (s *Site) IsDraining() bool { return s.draining.Load() }

// Mount returns a handler that passes the path prefix, and all paths below this prefix, to the
// handler below. The returned handler passes all other paths to the handler other.
func Mount(prefix string, below, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, prefix); ok && (rest == "" || rest[0] == '/') {
			below.ServeHTTP(w, r)
			return
		}
		other.ServeHTTP(w, r)
	})
}

// Server returns an http.Server for the handler, with the limits and timeouts of the site. net/http
// refuses some requests before it calls the handler, with status 400 or 431. Those responses are
// plain text.
func (s *Site) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      h,
		ReadHeaderTimeout:            5 * time.Second,
		ReadTimeout:                  15 * time.Second,
		WriteTimeout:                 30 * time.Second,
		IdleTimeout:                  120 * time.Second,
		MaxHeaderBytes:               maxHeader - 4<<10, // net/http adds these 4 KiB
		DisableGeneralOptionsHandler: true,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:                     log.New(connectionLog{s.logger}, "", 0),
	}
}

// OperatorServer is like Server. It marks its requests, so that IsOperatorListener returns true for
// them.
func (s *Site) OperatorServer(h http.Handler) *http.Server {
	server := s.Server(h)
	server.BaseContext = func(net.Listener) context.Context {
		return context.WithValue(context.Background(), operatorListener{}, true)
	}
	return server
}

// operatorListener is the context key that marks requests from the listener for operators.
type operatorListener struct{}

// IsOperatorListener reports whether the request arrived on the listener for operators.
func IsOperatorListener(r *http.Request) bool { return r.Context().Value(operatorListener{}) != nil }

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rolecall/rolecall/console"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/demo"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/httpserver"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/scim"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/tracing"
	"github.com/rolecall/rolecall/internal/web"
)

// Run serves until ctx ends and the drain time has passed. Before it returns, it responds to all
// requests that it has received.
func (c *serveCommand) Run(ctx context.Context, p *program) (err error) {
	settings, err := c.settings(&p.globals)
	if err != nil {
		return err
	}
	if c.Demo && p.Database == "" {
		p.Database = demoDatabase
	}
	listener, err := listen(ctx, "--listen", c.Listen) // first, so that an address in use is reported before the database is changed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(listener.Close())) }()
	var operators *httpserver.Listener
	if c.OperatorListen != "" {
		if operators, err = listen(ctx, "--operator-listen", c.OperatorListen); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ignoreClosed(operators.Close())) }()
	}
	isNew := !isPostgres(p.Database) && !exists(p.sqliteFile())
	logger := newLogger(p.stderr, settings.LogFormat)
	var migrated func([]store.Migration)
	if !c.NoMigrate {
		migrated = logMigrations(logger)
	}
	db, err := p.open(ctx, migrated)
	if err != nil {
		return err
	}
	if isNew && !c.Demo {
		logger.Info("created a new database", "database", p.databaseName())
	}
	defer func() { err = errors.Join(err, db.close()) }()
	settings.warnings = append(settings.warnings, db.warnings...)
	if !c.NoMigrate {
		if err := p.makeKey(ctx, db); err != nil {
			return err
		}
	}
	return serve(ctx, p, settings, db, listener, operators)
}

// ballast is the size of a block of memory that is never accessed. The block takes no physical
// memory, but the garbage collector counts it as live. Without the block, the live heap is so small
// that the garbage collector runs every few milliseconds. The block saves 13 of the 136 thousand
// instructions that a request answered from memory took before (ADR 0022).
const ballast = 16 << 20

// serve serves requests on listener until ctx ends. If operators is not nil, serve accepts operator
// keys only on that listener.
func serve(ctx context.Context, p *program, settings settings, db store.Database, listener, operators *httpserver.Listener) (err error) {
	defer runtime.KeepAlive(make([]byte, ballast))
	logger := newLogger(p.stderr, settings.LogFormat)
	tracer, err := tracing.New(ctx, p.getenv, readVersion().Version, logger)
	if err != nil {
		return err
	}
	defer tracer.Stop(ctx)
	db = tracer.Database(db, p.databaseSystem())
	options, closeFiles, err := p.options(ctx, db, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFiles()) }()
	options.Passkeys, options.Limits = settings.passkeys, settings.limits()
	options.KeepEvents, options.NameMinimum = time.Duration(settings.KeepEvents), settings.NameMinimum
	options.OIDC, options.OperatorOutbound = oidc.New(oidc.Options{Networks: settings.oidcNetworks}), outbound.New(outbound.Options{Allowed: settings.hookNetworks})
	if options.Mailer, err = settings.mailer(p.results(), listener.Addr()); err != nil {
		return err
	}
	if settings.Demo {
		if err := prepareDemo(ctx, p, &settings, db, options, listener); err != nil {
			return err
		}
	}
	registry := newRegistry()
	site := web.New(web.Options{
		PublicURL: settings.publicURL, MailLinks: settings.mailLinks, ReturnTo: settings.ReturnURLs,
		InsecureCookie: settings.insecureCookie,
		HSTSSubdomains: settings.HSTSSubdomains,
		CookieDomain:   settings.CookieDomain,
		HostPrefix:     settings.HostPrefix,
		AllowOrigins:   settings.AllowOrigin,
		TrustedProxies: settings.trustedProxies,
		Logger:         logger,
		Metrics:        registry,
		Tracer:         tracer,
	})
	options.PublicURL = site.Public
	n := node.New(db, options)
	api := httpapi.New(n.Access, n.Directory, n.SignIn, n.Webhooks, site, httpapi.Options{OperatorsApart: operators != nil, SecurityContact: settings.SecurityURI})
	handler := web.Mount(site.Base+console.Path, console.New(n.Access, n.Directory, n.SignIn, n.Webhooks, site, httpapi.Policies()), api)
	handler = web.Mount(site.Base+scim.Root, scim.New(n.Access, n.Directory, site), handler)
	registerNode(registry, n)
	servers := newServers(site, handler, listener, operators, time.Duration(settings.Drain), logger)
	if settings.TLSCert != "" {
		certificate, err := loadCertificate(settings.TLSCert, settings.TLSKey, logger)
		if err != nil {
			return err
		}
		for _, s := range servers {
			s.HTTP.TLSConfig = certificate.config()
		}
	}
	stopMetrics, err := serveMetrics(ctx, settings.MetricsListen, registry, logger)
	if err != nil {
		return err
	}
	logWarnings(logger, settings.warnings)
	if operators != nil {
		logger.Info("serving operators", "address", operators.Addr().String())
	}
	if options.Mailer == nil {
		logger.Warn(noMailer)
	}
	if err := warnShorterRetention(ctx, n, logger); err != nil {
		return err
	}
	logger.Info("serving", "address", listener.Addr().String(), "database", p.databaseName(), "pid", os.Getpid(), "cores", runtime.GOMAXPROCS(0))

	// The background work ends after the last request, and before the store is closed.
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	var workErr error
	background.Go(func() { workErr = n.Run(working) })
	serveErr := serveAll(ctx, servers)
	stopWorking()
	background.Wait()
	return errors.Join(serveErr, workErr, stopMetrics())
}

// prepareDemo creates the demo tenant and prints how to use it.
func prepareDemo(ctx context.Context, p *program, s *settings, db store.Database, options access.Options, listener *httpserver.Listener) error {
	prepared, err := demo.Prepare(ctx, db, options, s.demoURL(listener.Addr()), s.Mailbox)
	if err != nil {
		return fmt.Errorf("create the demo tenant: %w", err)
	}
	return p.print(prepared, prepared.Lines()...)
}

// warnShorterRetention logs how many tenants keep events for a shorter time than the minimum.
func warnShorterRetention(ctx context.Context, n *node.Node, logger *slog.Logger) error {
	shorter, err := n.Directory.CountShorterRetention(ctx)
	if err == nil && shorter > 0 {
		logger.Warn("tenants keep events for a shorter time than --events-kept-at-least until their setting is changed",
			"tenants", shorter, "minimum", n.Access.Store.EventsAtLeast().String())
	}
	return err
}

// noMailer is the warning if the settings have no way to send mail.
const noMailer = "no mail server is set: mail waits in the database until it expires; set --smtp or --mail-webhook to send it"

// operatorConnections is the connection limit of a separate listener for operators.
const operatorConnections = 64

// newServers returns a server for listener and, if operators is not nil, one for operators.
func newServers(site *web.Site, handler http.Handler, listener, operators *httpserver.Listener, drain time.Duration, logger *slog.Logger) []*httpserver.Server {
	limit := httpserver.MaxConnections()
	server := func(s *http.Server, l *httpserver.Listener, limit int) *httpserver.Server {
		return &httpserver.Server{
			HTTP: s, Listener: l, Limit: limit, Trusted: site.IsTrustedProxy, IsProbe: site.IsProbe,
			Drain: drain, OnStop: site.Drain, Logger: logger,
		}
	}
	servers := []*httpserver.Server{server(site.Server(handler), listener, limit)}
	if operators != nil {
		servers = append(servers, server(site.OperatorServer(handler), operators, min(limit, operatorConnections)))
	}
	return servers
}

// serveAll runs the servers until ctx ends. If one of them fails, serveAll stops the others. It
// returns the errors of all servers.
func serveAll(ctx context.Context, servers []*httpserver.Server) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failures := make([]error, len(servers))
	var serving sync.WaitGroup
	for i, s := range servers {
		serving.Go(func() {
			defer stop()
			failures[i] = s.Serve(ctx)
		})
	}
	serving.Wait()
	return errors.Join(failures...)
}

// listen returns a listener on the address. Its error names the flag that has the address.
func listen(ctx context.Context, flag, address string) (*httpserver.Listener, error) {
	listener, err := httpserver.Listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return listener, nil
}

// logWarnings logs the warnings about the settings and the build.
func logWarnings(logger *slog.Logger, warnings []string) {
	for _, warning := range warnings {
		logger.Warn(warning)
	}
	if secret.CheapHashes {
		logger.Warn("this program was built for tests with the tag cheap_hashes: its password hashes are easy to crack; do not use it in production")
	}
	if outbound.LoopbackEndpoints {
		logger.Warn("this program was built for tests with the tag loopback_endpoints: all requests to addresses that users choose, such as those of webhooks and to identity providers, can reach this machine; do not use it in production")
	}
}

// serveMetrics serves the metrics of the registry on a separate listener, and returns a function
// that closes this listener. If the address is empty, it serves no metrics.
func serveMetrics(ctx context.Context, address string, registry *prometheus.Registry, logger *slog.Logger) (stop func() error, err error) {
	if address == "" {
		return func() error { return nil }, nil
	}
	listener, err := listen(ctx, "--metrics-listen", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	logger.Info("serving metrics", "address", listener.Addr().String())
	return func() error {
		err := server.Close()
		if serveErr := <-done; !errors.Is(serveErr, http.ErrServerClosed) {
			err = errors.Join(err, serveErr)
		}
		return err
	}, nil
}

func newLogger(w io.Writer, format string) *slog.Logger {
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}

// ignoreClosed returns nil if err means that a file or listener is already closed. Otherwise, it
// returns err.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Package httpserver serves HTTP without losing a request. It limits the number of connections.
// When it stops, it responds to every request that a client has sent.
package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// The time limits of a stop. http.Server.Shutdown alone loses requests: it drops requests that a
// connection has just read, and it resets connections that are not accepted yet. So Serve first
// ends each open connection after its next response, and still accepts new ones. Then Serve shuts
// down the listener and answers the last accepted connections. At the end, http.Server.Shutdown
// closes the remaining connections.
const (
	partingTime  = time.Second      // for clients to send one more request on their connections
	lateTime     = 5 * time.Second  // for requests that have arrived and still wait for a processor
	shutdownTime = 20 * time.Second // for requests in progress; longer than the deadline of every request
)

// Server is an HTTP server on one listener.
type Server struct {
	HTTP     *http.Server // serves TLS if its TLSConfig is set
	Listener *Listener
	Limit    int                      // maximum number of connections
	Trusted  func(netip.Addr) bool    // whether a peer can have all connections, as a proxy can
	IsProbe  func(*http.Request) bool // whether a request is a health check, which is answered above the limit
	Drain    time.Duration            // how long to continue serving after OnStop
	OnStop   func()                   // called when the server begins to stop
	Logger   *slog.Logger
}

// Serve serves requests until ctx ends. Then it calls OnStop, continues to serve for the Drain
// time, and stops without failing a request.
func (s *Server) Serve(ctx context.Context) error {
	open := newConnections(s.Limit)
	open.trusted, open.isProbe = s.Trusted, s.IsProbe
	s.HTTP.ConnState, s.HTTP.ConnContext, s.HTTP.Handler = open.observe, open.remember, open.handler(s.HTTP.Handler)
	done := make(chan error, 1)
	go func() {
		if s.HTTP.TLSConfig != nil {
			done <- s.HTTP.ServeTLS(s.Listener, "", "")
		} else {
			done <- s.HTTP.Serve(s.Listener)
		}
	}()

	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	s.OnStop()
	s.Logger.Info("stopping", "connections", open.count())
	time.Sleep(s.Drain)
	open.wait(partingTime)
	s.HTTP.SetKeepAlivesEnabled(false) // closes idle connections
	open.admitAll()                    // the last connections are answered instead of waiting for room
	err := s.Listener.Shutdown()
	if serveErr := <-done; !errors.Is(serveErr, net.ErrClosed) { // from here on, no further connection is accepted
		err = errors.Join(err, serveErr)
	}
	open.wait(partingTime)

	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err = errors.Join(err, s.HTTP.Shutdown(limit))
	s.Logger.Info("stopped", "connections", open.count())
	return err
}

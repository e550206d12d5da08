package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rolecall/rolecall/internal/web"
)

// How a serving process ends. http.Server.Shutdown by itself loses requests: it
// drops those that a connection has just read, and the listener it closes resets
// the connections nobody has accepted yet. So first the connections that there are
// end by themselves, each with its next answer, while the door is still open; then
// it is shut, and who came in last is answered; only what is left is shut down.
const (
	partingTime  = time.Second      // for clients to ask once more on the connections they have
	shutdownTime = 20 * time.Second // for requests under way: more than the deadline of any
)

// front is a listener with the server that answers on it.
type front struct {
	server   *http.Server
	listener *door
	limit    int // of connections
}

// operatorConnections is how many connections operators have at once at most, where
// they have a listener of their own: they are few.
const operatorConnections = 64

// frontsOf returns the fronts of the listener and of the one for operators, which
// may be nil.
func frontsOf(site *web.Site, handler http.Handler, listener, operators *door) []front {
	limit := connectionLimit(openFiles())
	fronts := []front{{site.Server(handler), listener, limit}}
	if operators != nil {
		fronts = append(fronts, front{site.OperatorServer(handler), operators, min(limit, operatorConnections)})
	}
	return fronts
}

// serveAll serves on every front until ctx ends, or one of them fails.
func serveAll(ctx context.Context, site *web.Site, fronts []front, drain time.Duration, logger *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failures := make([]error, len(fronts))
	var serving sync.WaitGroup
	for i, f := range fronts {
		serving.Go(func() {
			defer stop()
			failures[i] = serveHTTP(ctx, site, f, drain, logger)
		})
	}
	serving.Wait()
	return errors.Join(failures...)
}

// serveHTTP serves on the listener, with TLS if the server is configured for it,
// until ctx ends. Then /readyz says that this process leaves, it serves on for the
// drain, and ends without failing a request.
func serveHTTP(ctx context.Context, site *web.Site, f front, drain time.Duration, logger *slog.Logger) error {
	server, listener, open := f.server, f.listener, newConnections(f.limit)
	server.ConnState = open.observe
	done := make(chan error, 1)
	go func() {
		if server.TLSConfig != nil {
			done <- server.ServeTLS(listener, "", "")
		} else {
			done <- server.Serve(listener)
		}
	}()

	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	site.Drain()
	logger.Info("stopping", "connections", open.count())
	time.Sleep(drain)
	open.wait(partingTime)
	server.SetKeepAlivesEnabled(false) // ends the connections on which nobody has asked since
	open.admitAll()                    // who is let in last is answered, not kept waiting for room
	err := listener.shut()
	if serveErr := <-done; !errors.Is(serveErr, net.ErrClosed) { // now every connection is known
		err = errors.Join(err, serveErr)
	}
	open.wait(partingTime)

	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err = errors.Join(err, server.Shutdown(limit))
	logger.Info("stopped", "connections", open.count())
	return err
}

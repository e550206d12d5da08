package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/internal/httpapi"
)

// How a serving process ends. http.Server.Shutdown by itself loses requests: it
// drops those that a connection has just read, and the listener it closes resets
// the connections nobody has accepted yet. So first the door is shut, then the
// connections that there are end by themselves, each with its next answer, and
// only what is left is shut down.
const (
	partingTime  = time.Second      // for clients to ask once more on the connections they keep
	shutdownTime = 20 * time.Second // for requests under way: more than the deadline of any
)

// serveHTTP serves on the listener, with TLS if the server is configured for it,
// until ctx ends. Then /readyz says that this process leaves, it serves on for the
// drain, and ends without failing a request.
func serveHTTP(ctx context.Context, api *httpapi.Server, server *http.Server, listener *door, drain time.Duration, logger *slog.Logger) error {
	var open connections
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
	api.Drain()
	logger.Info("stopping", "connections", open.count.Load())
	time.Sleep(drain)
	err := listener.shut()
	if serveErr := <-done; !errors.Is(serveErr, net.ErrClosed) { // now every connection is known
		err = errors.Join(err, serveErr)
	}
	open.wait(partingTime)

	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err = errors.Join(err, server.Shutdown(limit))
	logger.Info("stopped", "connections", open.count.Load())
	return err
}

// connections counts the open connections of a server.
type connections struct{ count atomic.Int64 }

func (c *connections) observe(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.count.Add(1)
	case http.StateClosed, http.StateHijacked:
		c.count.Add(-1)
	}
}

// wait returns when no connection is open, or after the limit.
func (c *connections) wait(limit time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); c.count.Load() > 0 && time.Now().Before(end); {
		<-tick.C
	}
}

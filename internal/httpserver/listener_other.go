//go:build !linux

package httpserver

import (
	"errors"
	"net"
)

// Listener is a listener that can be shut down. On this system, Shutdown does not accept waiting
// connections first; only the Linux version does.
type Listener struct{ *net.TCPListener }

func newListener(listener *net.TCPListener, _ bool) *Listener { return &Listener{listener} }

// Shutdown closes the listener.
func (l *Listener) Shutdown() error { return l.Close() }

func inherit(string) (net.Listener, error) {
	return nil, errors.New("inherited sockets (fd:3) are only supported on Linux")
}

package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// inheritedPrefix begins the address of a socket that the parent process has created:
// fd:3 is descriptor 3, the first that a parent can pass.
const inheritedPrefix = "fd:"

// Listen returns a listener on a TCP address, or on an inherited socket such as fd:3.
func Listen(ctx context.Context, address string) (*Listener, error) {
	var listener net.Listener
	var err error
	descriptor, inherited := strings.CutPrefix(address, inheritedPrefix)
	if inherited {
		listener, err = inherit(descriptor)
	} else {
		var config net.ListenConfig
		config.SetMultipathTCP(false) // Multipath TCP sockets do not support the filter that Shutdown attaches
		listener, err = config.Listen(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s is a %s socket: a TCP socket is required", address, listener.Addr().Network()), listener.Close())
	}
	return newListener(tcp, inherited), nil
}

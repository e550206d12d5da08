package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// inheritedPrefix is how the address of a socket begins that whoever started this
// process has made: fd:3 is descriptor 3, the first that a parent passes on.
const inheritedPrefix = "fd:"

// listen returns a listener on the address that the flag gives: a new socket, or
// one that is inherited.
func listen(ctx context.Context, flag, address string) (*door, error) {
	var listener net.Listener
	var err error
	descriptor, inherited := strings.CutPrefix(address, inheritedPrefix)
	if inherited {
		listener, err = inherit(descriptor)
	} else {
		var config net.ListenConfig
		config.SetMultipathTCP(false) // its sockets take no filter, which shut needs
		listener, err = config.Listen(ctx, "tcp", address)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s: %s is a socket of %s, not of TCP", flag, address, listener.Addr().Network()), listener.Close())
	}
	return newDoor(tcp, inherited), nil
}

//go:build !linux

package server

import (
	"errors"
	"net"
)

// door is a listener that can be shut. Only on Linux it takes in first who is
// waiting.
type door struct{ *net.TCPListener }

func newDoor(listener *net.TCPListener, _ bool) *door { return &door{listener} }

// shut refuses new connections, or leaves those of an inherited socket to whoever
// has it next.
func (d *door) shut() error { return d.Close() }

// inherit says that there is no such thing here.
func inherit(string) (net.Listener, error) {
	return nil, errors.New("sockets are inherited on Linux only")
}

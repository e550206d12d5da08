//go:build !linux

package app

import "net"

// door is a listener that can be shut. Only on Linux it takes in first who is
// waiting.
type door struct{ *net.TCPListener }

func newDoor(listener *net.TCPListener) *door { return &door{listener} }

// shut refuses new connections.
func (d *door) shut() error { return d.Close() }

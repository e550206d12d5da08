//go:build !linux

package httpserver

import "net"

// hasUnread returns false, because this system does not tell whether a connection has unread bytes.
func hasUnread(net.Conn) bool { return false }

package httpserver

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasUnread reports whether the connection has received bytes that the process has not read.
func hasUnread(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var size int
	var sizeErr error
	err = raw.Control(func(fd uintptr) { size, sizeErr = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && sizeErr == nil && size > 0 // an error: the connection is closed
}

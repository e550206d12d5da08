package httpserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Listener is a listener that can be shut down without resetting a connection. Closing a listener
// resets the connections that clients have opened and the process has not yet accepted: dozens
// under load. Shutdown first drops new connection attempts, and then accepts all waiting
// connections. The waiting connections of an inherited socket remain for the next process that has
// the socket.
type Listener struct {
	*net.TCPListener
	inherited    bool
	shuttingDown atomic.Bool
	shutDown     chan struct{}
	late         []net.Conn // connections that waited at the shutdown; only Accept uses it after shutDown is closed
}

func newListener(listener *net.TCPListener, inherited bool) *Listener {
	return &Listener{TCPListener: listener, inherited: inherited, shutDown: make(chan struct{})}
}

// Accept returns the next connection. It returns net.ErrClosed after a shutdown when all
// waiting connections are accepted.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if err == nil || !l.shuttingDown.Load() {
		return conn, err
	}
	<-l.shutDown
	if len(l.late) == 0 {
		return nil, net.ErrClosed
	}
	conn, l.late = l.late[0], l.late[1:]
	return conn, nil
}

// dropAll is a socket filter that drops every packet. It keeps new connections out of the queue of
// a listener. Their clients retry within a second. Without the filter, a process that was not
// scheduled during a shutdown reset up to 32 of 64 clients (ADR 0021).
var dropAll = unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}}

// Shutdown accepts all waiting connections and refuses new ones. It only closes an inherited
// socket, because a shutdown would end the socket for every process that has it. Call Shutdown
// once.
func (l *Listener) Shutdown() error {
	if l.inherited {
		return l.Close()
	}
	l.shuttingDown.Store(true)
	defer close(l.shutDown)
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var waiting []int
	var shutErr error
	err = raw.Control(func(listener uintptr) {
		shutErr = unix.SetsockoptSockFprog(int(listener), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &dropAll)
		for {
			fd, _, err := unix.Accept4(int(listener), unix.SOCK_CLOEXEC)
			if err == nil {
				waiting = append(waiting, fd)
			} else if err != unix.EINTR && err != unix.ECONNABORTED {
				break // usually EAGAIN: no more connections are waiting
			}
		}
		shutErr = errors.Join(shutErr, unix.Shutdown(int(listener), unix.SHUT_RDWR))
	})
	for _, fd := range waiting {
		conn, connErr := connOf(fd)
		if errors.Is(connErr, unix.EMFILE) {
			continue // the process has reached its limit of open files
		}
		if connErr != nil {
			err = errors.Join(err, connErr)
			continue
		}
		l.late = append(l.late, conn)
	}
	return errors.Join(err, shutErr)
}

// inherit returns a listener on the socket of the descriptor, and takes ownership of the
// descriptor. If the descriptor is not a listening socket, it stays open, because it may belong to
// the Go runtime.
func inherit(descriptor string) (net.Listener, error) {
	number, err := strconv.ParseUint(descriptor, 10, 16)
	if err != nil || number < 3 {
		return nil, fmt.Errorf("%s%s is not an inherited socket: use %s3 for the first one", inheritedPrefix, descriptor, inheritedPrefix)
	}
	copied, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s%s: no such socket was passed to this process: %w", inheritedPrefix, descriptor, err)
	}
	file := os.NewFile(uintptr(copied), inheritedPrefix+descriptor)
	listener, err := net.FileListener(file) // uses a duplicate of the descriptor
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("%s%s is not a listening socket: %w", inheritedPrefix, descriptor, err)
	}
	return listener, unix.Close(int(number))
}

// connOf returns the connection of an accepted socket, and takes ownership of the socket.
func connOf(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "connection")
	conn, err := net.FileConn(file) // uses a duplicate of the descriptor
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("accept a waiting connection: %w", err)
	}
	return conn, nil
}

package httpserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Listener is a listener that can be shut down without resetting a connection. Closing a normal
// listener resets the connections that clients have opened and the process has not yet accepted:
// dozens under load. Shutdown first drops new connection attempts, waits until the handshakes in
// progress are complete, and then accepts all waiting connections. The waiting connections of an
// inherited socket remain for the next process that has the socket.
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

// handshakeTime is how long Shutdown waits for TCP handshakes in progress. The last packet of a
// handshake takes one round trip. On a busy machine, the packet also waits for a processor.
const handshakeTime = 100 * time.Millisecond

// dropNew is a socket filter that drops the first packet of a new connection, in which SYN is set
// and ACK is not. The client sends this packet again within a second. Packets that complete a
// handshake pass the filter. Without the filter, up to 32 of 64 clients were reset if the process
// was not scheduled during the shutdown (ADR 0021).
var dropNew = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13}, // the flags of the TCP header
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x12},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x02, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
}

// Shutdown takes all waiting connections, which Accept then returns, and refuses new ones. If the
// socket is inherited, Shutdown only closes it in this process, because a shutdown would end the
// socket for every process that has it. Call Shutdown only once.
func (l *Listener) Shutdown() error {
	if l.inherited {
		return l.Close()
	}
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var filterErr error
	err = raw.Control(func(listener uintptr) {
		filterErr = unix.SetsockoptSockFprog(int(listener), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(dropNew)), Filter: &dropNew[0]})
	})
	if err = errors.Join(err, filterErr); err == nil {
		time.Sleep(handshakeTime)
	}
	l.shuttingDown.Store(true)
	defer close(l.shutDown)
	var waiting []int
	var shutErr error
	controlErr := raw.Control(func(listener uintptr) {
		for {
			fd, _, err := unix.Accept4(int(listener), unix.SOCK_CLOEXEC)
			if err == nil {
				waiting = append(waiting, fd)
			} else if err != unix.EINTR && err != unix.ECONNABORTED {
				break // usually EAGAIN: no more connections are waiting
			}
		}
		shutErr = unix.Shutdown(int(listener), unix.SHUT_RDWR)
	})
	err = errors.Join(err, controlErr, shutErr)
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
	return err
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

package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// door is a listener that can be shut without slamming it on anybody. Closing a
// listener resets the connections that clients have made and nobody has accepted
// yet, dozens under load; shut lets nobody else queue and takes all of them in
// first. Those of an inherited socket wait on, for whoever has it next.
type door struct {
	*net.TCPListener
	inherited bool
	shutting  atomic.Bool
	shutDone  chan struct{}
	late      []net.Conn // who was waiting; belongs to Accept once shutDone is closed
}

func newDoor(listener *net.TCPListener, inherited bool) *door {
	return &door{TCPListener: listener, inherited: inherited, shutDone: make(chan struct{})}
}

// Accept returns the next connection; net.ErrClosed once the door is shut and
// everybody is in.
func (d *door) Accept() (net.Conn, error) {
	conn, err := d.TCPListener.Accept()
	if err == nil || !d.shutting.Load() {
		return conn, err
	}
	<-d.shutDone
	if len(d.late) == 0 {
		return nil, net.ErrClosed
	}
	conn, d.late = d.late[0], d.late[1:]
	return conn, nil
}

// nobody is a filter that drops every packet, and so keeps new connections out of
// the queue of a listener: their clients ask again within a second.
var nobody = unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}}

// shut accepts who is waiting and refuses all others. Of an inherited socket it
// only lets go: a shutdown would end that for everybody who has it. It is called
// once.
func (d *door) shut() error {
	if d.inherited {
		return d.Close()
	}
	d.shutting.Store(true)
	defer close(d.shutDone)
	raw, err := d.SyscallConn()
	if err != nil {
		return err
	}
	var waiting []int
	var shutErr error
	err = raw.Control(func(listener uintptr) {
		shutErr = unix.SetsockoptSockFprog(int(listener), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &nobody)
		for {
			fd, _, err := unix.Accept4(int(listener), unix.SOCK_CLOEXEC)
			if err == nil {
				waiting = append(waiting, fd)
			} else if err != unix.EINTR && err != unix.ECONNABORTED {
				break // as a rule EAGAIN: nobody is left
			}
		}
		shutErr = errors.Join(shutErr, unix.Shutdown(int(listener), unix.SHUT_RDWR))
	})
	for _, fd := range waiting {
		conn, connErr := connOf(fd)
		if errors.Is(connErr, unix.EMFILE) {
			continue // no more room here than at the door
		}
		if connErr != nil {
			err = errors.Join(err, connErr)
			continue
		}
		d.late = append(d.late, conn)
	}
	return errors.Join(err, shutErr)
}

// inherit returns the listener of a descriptor, and takes the descriptor over. One
// that is no listener stays open: it may be the runtime's.
func inherit(descriptor string) (net.Listener, error) {
	number, err := strconv.ParseUint(descriptor, 10, 16)
	if err != nil || number < 3 {
		return nil, fmt.Errorf("%s%s is no inherited socket: the first that a process can inherit is %s3", inheritedPrefix, descriptor, inheritedPrefix)
	}
	copied, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s%s was not passed to this process: %w", inheritedPrefix, descriptor, err)
	}
	file := os.NewFile(uintptr(copied), inheritedPrefix+descriptor)
	listener, err := net.FileListener(file) // with a descriptor of its own
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("%s%s is no listening socket: %w", inheritedPrefix, descriptor, err)
	}
	return listener, unix.Close(int(number))
}

// connOf returns the connection of an accepted socket, and takes it over.
func connOf(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "connection")
	conn, err := net.FileConn(file) // with a descriptor of its own
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("take over a connection: %w", err)
	}
	return conn, nil
}

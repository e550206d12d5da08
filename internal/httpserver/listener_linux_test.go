package httpserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestShutdownAcceptsWaitingConnections(t *testing.T) {
	const waiting = 50
	d, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for range waiting {
		conn, err := net.Dial("tcp", d.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	first, err := d.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := d.Shutdown(); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < waiting; i++ {
		conn, err := d.Accept()
		if err != nil {
			t.Fatalf("%d of %d were let in: %v", i, waiting, err)
		}
		defer conn.Close()
	}
	if conn, err := d.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the last one: %v, %v", conn, err)
	}
	if conn, err := net.Dial("tcp", d.Addr().String()); err == nil {
		t.Errorf("a newcomer got in: %v", conn.LocalAddr())
	}
}

func TestAnInheritedSocketStaysOpenForTheNextProcess(t *testing.T) {
	socket, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	inherit := func() *Listener {
		d, err := Listen(t.Context(), inheritedFrom(t, socket))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	connect := func() net.Conn {
		conn, err := net.Dial("tcp", socket.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() }) // the test writes no data, so this error loses none
		return conn
	}
	first, next := inherit(), inherit()
	defer next.Close()
	waiting := connect()
	if err := first.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if conn, err := first.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the shutdown: %v, %v", conn, err)
	}
	for _, client := range []net.Conn{waiting, connect()} {
		conn, err := next.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if conn.RemoteAddr().String() != client.LocalAddr().String() {
			t.Errorf("%v was let in, want %v", conn.RemoteAddr(), client.LocalAddr())
		}
	}
}

// inheritedFrom duplicates the file descriptor of the socket, and returns the address of the
// duplicate, such as fd:7.
func inheritedFrom(t *testing.T, from interface{ File() (*os.File, error) }) string {
	t.Helper()
	file, err := from.File()
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.Dup(int(file.Fd()))
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(inheritedPrefix, number)
}

func TestInvalidInheritedSocketsAreRefused(t *testing.T) {
	local, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "socket"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for address, want := range map[string]string{
		"fd:2":                       "use fd:3 for the first one",
		"fd:three":                   "use fd:3 for the first one",
		"fd:60000":                   "no such socket was passed",
		fmt.Sprint("fd:", file.Fd()): "is not a listening socket",
		inheritedFrom(t, local):      "a TCP socket is required",
	} {
		if _, err := Listen(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

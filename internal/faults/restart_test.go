package faults

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/process"
)

// between is the minimum number of answered requests between two restarts.
const between = 200

// TestRestartsFailNoRequest restarts a single program, a hundred times with -full. Like systemd,
// the test creates the listening socket, so the kernel queues connections while no process accepts
// them.
func TestRestartsFailNoRequest(t *testing.T) {
	alongside(t)
	for _, way := range []struct {
		name    string
		restart func(t *testing.T, leaving, coming *process.Server)
	}{{"one after the other", stopAndStart}, {"overlapping", startAndStop}} {
		t.Run(way.name, func(t *testing.T) {
			onStores(t, func(t *testing.T, database string) {
				socket, address := listeningSocket(t)
				next := func() *process.Server {
					s := newServer(t, database, "--listen", "fd:3")
					s.Address, s.Files = address, []*os.File{socket}
					return s
				}
				s := next()
				start(t, s)
				makeCrowdTenant(t, s)
				c := gather(t, address)
				rounds := fewer(1, 3, 100)
				for range rounds {
					c.moreAnswers(between)
					successor := next()
					way.restart(t, s, successor)
					checkLog(t, s)
					s = successor
				}
				c.moreAnswers(between)
				c.leave()
				t.Logf("%d restarts, %v", rounds, c)
				stop(t, s)
			})
		})
	}
}

// stopAndStart is a restart in which the new process starts after the old one has ended.
func stopAndStart(t *testing.T, leaving, coming *process.Server) {
	stop(t, leaving)
	start(t, coming)
}

// startAndStop is a restart in which the new process serves before the old one is stopped.
func startAndStop(t *testing.T, leaving, coming *process.Server) {
	if err := coming.Launch(); err != nil {
		t.Fatal(err)
	}
	await(t, "the next process does not serve", func() bool { // reads the log, because the old process also answers at the address
		return strings.Contains(coming.Log(), `"msg":"serving"`)
	})
	stop(t, leaving)
}

func stop(t *testing.T, s *process.Server) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
}

// listeningSocket returns a socket to pass to processes, and its address.
func listeningSocket(t *testing.T) (socket *os.File, address string) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	if socket, err = listener.File(); err != nil { // a second descriptor of the same socket
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := socket.Close(); err != nil {
			t.Error(err)
		}
	})
	return socket, address
}

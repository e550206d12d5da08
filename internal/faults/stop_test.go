package faults

import (
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestPause suspends the process in the middle of its work, and continues it. No session
// that was ended before or during the pause is valid afterwards.
func TestPause(t *testing.T) {
	skipIfShort(t)
	onStores(t, func(t *testing.T, database string) {
		s := serve(t, database)
		l := newLoad(t, s)
		l.start()
		l.await(200)
		pause := time.Duration(times(2, 30)) * time.Second
		signal(t, s.Signal(syscall.SIGSTOP))
		<-time.After(pause) // the fault itself
		signal(t, s.Signal(syscall.SIGCONT))
		l.await(200)
		l.finish()
		l.report(fmt.Sprintf("stopped for %v", pause))
	})
}

func signal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestManyConnections opens more connections than the process may have files, and leaves
// each in a state that keeps it open. Other clients are always served, and the log
// contains no failure to accept.
func TestManyConnections(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	needTool(t, "prlimit")
	const connections = 600
	for _, kind := range []struct{ name, sent string }{
		{"silent", ""},
		{"in the header", "GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: "},
		{"idle", "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			alongside(t)
			s := newServer(t, filepath.Join(t.TempDir(), "rolecall.db"))
			s.Under = []string{"prlimit", "--nofile=256"}
			start(t, s)
			l := newLoad(t, s)
			l.start()
			l.await(50)
			for range connections {
				conn, err := net.Dial("tcp", s.Address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := conn.Write([]byte(kind.sent)); err != nil {
					t.Fatal(err)
				}
			}
			l.await(300)
			l.finish()
			l.report(fmt.Sprintf("%d connections that are %s, 256 files", connections, kind.name))
			signal(t, s.Stop())
			checkLog(t, s)
		})
	}
}

// TestSlowClients sends bodies and reads responses so slowly that each occupies its
// connection. Other clients are always served.
func TestSlowClients(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	const clients = 500
	s := serve(t, filepath.Join(t.TempDir(), "rolecall.db"))
	l := newLoad(t, s)
	l.start()
	l.await(50)
	tn := l.tenants[0]
	head := "Host: x\r\nX-Tenant-Schema: " + tn.name + "\r\nCookie: session=" + tn.owner.token + "\r\n"
	for _, slow := range []string{
		"POST /auths/login HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n" + head + "\r\n{",
		"POST /users HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n" + head + "\r\n{",
		"GET /users?limit=200 HTTP/1.1\r\n" + head + "\r\n",
	} {
		for range clients {
			conn, err := net.Dial("tcp", s.Address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.(*net.TCPConn).SetReadBuffer(1); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte(slow)); err != nil {
				t.Fatal(err)
			}
		}
		l.await(300)
	}
	l.finish()
	l.report(fmt.Sprintf("three times %d slow clients", clients))
}

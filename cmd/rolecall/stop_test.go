package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// While the process stops, clients send requests without pause, on reused connections and on new
// ones. Only new connections may be refused. Each request on an accepted connection must get a
// response.
func TestStopFailsNoRequest(t *testing.T) {
	t.Parallel()
	const clients, before = 64, 2_000
	folder := newTenant(t)
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprintf("connections kept %v", keep), func(t *testing.T) {
			s := startServer(t, folder)
			var answered, failed, turnedAway atomic.Int64
			enough := make(chan struct{})
			var group sync.WaitGroup
			for range clients {
				transport := &http.Transport{DisableKeepAlives: !keep}
				defer transport.CloseIdleConnections()
				group.Go(func() {
					for {
						switch err := postOnce(t.Context(), transport, s.address); {
						case err == nil:
							if answered.Add(1) == before {
								close(enough)
							}
						case isDial(err):
							turnedAway.Add(1)
							return
						default:
							failed.Add(1)
							t.Error(err)
							return
						}
					}
				})
			}
			<-enough
			began := time.Now()
			err := s.stop(syscall.SIGTERM)
			took := time.Since(began)
			group.Wait()
			t.Logf("%d clients: %d answered, %d failed, %d turned away; stopped in %v", clients, answered.Load(), failed.Load(), turnedAway.Load(), took.Round(time.Millisecond))
			if err != nil || turnedAway.Load() != clients {
				t.Errorf("stopped: %v; %d of %d clients turned away", err, turnedAway.Load(), clients)
			}
		})
	}
}

// postOnce sends a POST request without a session, and checks that the response is a 401. net/http
// does not repeat the request, because POST is not idempotent.
func postOnce(ctx context.Context, transport *http.Transport, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/users", strings.NewReader(`{"email":"a@b.example","name":"Nobody"}`))
	if err != nil {
		return err
	}
	request.Header.Set("X-Tenant-Schema", "acme")
	request.Header.Set("Content-Type", "application/json")
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("answered %d", answer.StatusCode)
	}
	return nil
}

// isDial reports whether a request failed because no connection was established.
func isDial(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}

func TestARequestInProgressIsFinished(t *testing.T) {
	t.Parallel()
	s := startServer(t, newTenant(t))
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, ownerEmail, ownerPassword)
	head := fmt.Sprintf("POST /auths/login HTTP/1.1\r\nHost: a\r\nX-Tenant-Schema: acme\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	send := func(text string) {
		t.Helper()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	send(head + body[:10])
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.waitLog("stopping")
	send(body[10:])
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("answered %d, connection closed %v", answer.StatusCode, answer.Close)
	}
	if err := s.command.Wait(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func TestDrainServesOnWhileReadinessIsFalse(t *testing.T) {
	t.Parallel()
	s := startServer(t, newTenant(t), "--drain", "10m")
	if got := s.get("/readyz").StatusCode; got != http.StatusOK {
		t.Fatalf("/readyz: %d", got)
	}
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.waitLog("stopping")
	if answer := s.get("/readyz"); answer.StatusCode != http.StatusServiceUnavailable || !answer.Close {
		t.Errorf("/readyz while it leaves: %d, connection closed %v", answer.StatusCode, answer.Close)
	}
	owner(t, s)

	// A second signal ends the process immediately, although the drain time is ten minutes.
	if err := s.stop(syscall.SIGTERM); err == nil {
		t.Error("the second signal ended it in an orderly way")
	}
}

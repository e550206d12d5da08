package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/bench/load"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/process"
)

const (
	tenant   = "bench"
	host     = "id.example.com"
	password = "correct horse battery"
	users    = 10_000
	owners   = 16 // they send the writes, so that no user exceeds the limit of live idempotency keys
	crowd    = 32 // connections

	startLimit = 2 * time.Minute
)

// subject is Rolecall as in production behind a proxy, with a separate store.
type subject struct {
	process.Server
	folder   string
	postgres *pgtest.Server // nil: the store is a SQLite file
}

// fillStore returns the program with a separate store in the folder, filled and stopped.
// The caller closes it.
func fillStore(ctx context.Context, store, binary, folder string) (*subject, error) {
	s := &subject{folder: folder}
	s.Binary = binary
	err := s.open(ctx, store)
	if err == nil {
		kind, _, _ := strings.Cut(store, ":")
		fmt.Fprintf(os.Stderr, "speed: filling %s with %d users\n", kind, users)
		err = s.fill(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// open creates the folder and an empty store. store is sqlite, postgres, or the URL of an empty
// PostgreSQL database.
func (s *subject) open(ctx context.Context, store string) (err error) {
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		return err
	}
	if s.LogFile, err = os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	metrics, err := process.FreeAddress()
	if err != nil {
		return err
	}
	s.Flags = []string{"--metrics-listen", metrics, "--public-url", "https://" + host, "--trusted-proxies", "127.0.0.1"}
	switch store {
	case "sqlite":
		s.Database = filepath.Join(s.folder, "rolecall.db")
		return nil
	case "postgres":
		if s.postgres, err = pgtest.Start(pgtest.Production...); err != nil {
			return err
		}
		s.Database, err = s.postgres.NewDatabase(ctx, "rolecall")
		return err
	default:
		if !strings.HasPrefix(store, "postgres://") {
			return errors.New("there are two stores: sqlite and postgres")
		}
		s.Database = store
		return nil
	}
}

// close stops the program and the database server.
func (s *subject) close() (err error) {
	if s.PID() != 0 {
		err = s.Stop()
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Stop())
	}
	if s.LogFile != nil {
		err = errors.Join(err, s.LogFile.Close())
	}
	return err
}

// fill creates a tenant with users, and owners who can sign in.
func (s *subject) fill(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	if _, err := s.Run(ctx, password, "tenant", "create", tenant, "--owner-email", address(0), "--owner-name", "Owner", "--password-stdin"); err != nil {
		return err
	}
	session, _, err := s.signIn(ctx, 0)
	if err != nil {
		return err
	}
	for n := 1; n < owners; n++ {
		owner := send("POST", "/users", fmt.Sprintf(`{"email":%q,"name":"Owner"}`, address(n)), "Cookie: session="+session, "Idempotency-Key: "+load.Number)
		if _, err := sendOne(ctx, s.Address, owner); err != nil {
			return err
		}
		if _, err := s.Run(ctx, password, "user", "set-password", "--tenant", tenant, "--email", address(n), "--password-stdin"); err != nil {
			return err
		}
		if _, err := s.Run(ctx, "", "tenant", "add-owner", tenant, "--email", address(n)); err != nil {
			return err
		}
	}
	// Sign-ins must not end the sessions that the other requests use.
	if _, err := sendOne(ctx, s.Address, send("PATCH", "/tenant", `{"settings":{"sessionsPerUser":1000}}`, "Cookie: session="+session)); err != nil {
		return err
	}
	filled, err := load.RunApart(ctx, load.Plan{
		Address: s.Address, Connections: crowd, Duration: 10 * time.Minute, Limit: users - owners,
		Requests: creations([]string{session}), Status: http.StatusCreated,
	})
	return errors.Join(err, filled.Err(), s.Stop())
}

// start starts Rolecall. If the start fails, the error includes the log.
func (s *subject) start(ctx context.Context) error {
	if err := s.Start(ctx); err != nil {
		said, readErr := os.ReadFile(s.LogFile.Name())
		return errors.Join(err, errors.New(string(said)), readErr)
	}
	return nil
}

// server is a program that serves and can be started again.
type server interface {
	Launch() error
	Stop() error
	Ended() bool
	PID() int
	URL() string
}

// measureStart starts the server several times and leaves it running after the last start. It
// returns the median of the time until the path returns 200.
func measureStart(ctx context.Context, s server, path string, times int) (time.Duration, error) {
	asking := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var took []time.Duration
	for i := range times {
		if i > 0 {
			if err := s.Stop(); err != nil {
				return 0, err
			}
		}
		begun := time.Now()
		if err := s.Launch(); err != nil {
			return 0, err
		}
		for !answers(ctx, asking, s.URL()+path) {
			if time.Since(begun) > startLimit || s.Ended() || ctx.Err() != nil {
				return 0, errors.Join(errors.New("the program does not answer"), ctx.Err())
			}
			time.Sleep(time.Millisecond)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func answers(ctx context.Context, asking *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := asking.Do(request)
	return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// signIn signs an owner in, and returns the session token and the response.
func (s *subject) signIn(ctx context.Context, owner int) (token, answer string, err error) {
	return s.signInTo(ctx, tenant, owner)
}

func (s *subject) signInTo(ctx context.Context, tenant string, owner int) (token, answer string, err error) {
	body, err := json.Marshal(map[string]string{"email": address(owner), "password": password})
	if err != nil {
		return "", "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/auths/login", bytes.NewReader(body))
	if err != nil {
		return "", "", err
	}
	request.Header = http.Header{"X-Tenant-Schema": {tenant}, "Content-Type": {"application/json"}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", "", err
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", "", err
	}
	for _, cookie := range response.Cookies() {
		if cookie.Name == "session" {
			return cookie.Value, string(content), nil
		}
	}
	return "", "", fmt.Errorf("no session was given: %s", content)
}

func address(owner int) string { return fmt.Sprintf("owner-%02d@example.com", owner) }

// get returns the text of a request with a session.
func get(target, session string) string {
	return head("GET", target) + "Cookie: session=" + session + "\r\n\r\n"
}

// send returns the text of a request with a body.
func send(method, target, body string, header ...string) string {
	length := len(strings.ReplaceAll(body, load.Number, "0123456789012345"))
	return head(method, target) + strings.Join(append(header, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", length)), "\r\n") +
		"\r\n\r\n" + body
}

// head returns the request line and the first headers of a request, in the form that a proxy sends.
func head(method, target string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: bench\r\nAccept: application/json\r\n" +
		"X-Forwarded-For: 203.0.113.7\r\nX-Tenant-Schema: " + tenant + "\r\n"
}

// creations returns requests that each create a different user. The owners take turns to send them.
func creations(sessions []string) []string {
	var list []string
	for _, session := range sessions {
		for _, name := range []string{"Ada Lovelace", "Grace Hopper", "Hedy Lamarr", "Katherine Johnson"} {
			list = append(list, send("POST", "/users",
				`{"email":"user-`+load.Number+`@example.com","name":"`+name+`","department":"Engineering","externalId":"hr-`+load.Number+`"}`,
				"Cookie: session="+session, "Idempotency-Key: "+load.Number))
		}
	}
	return list
}

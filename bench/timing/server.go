package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/client"
)

const (
	tenant   = "timing"
	password = "correct horse battery"
	accounts = 10 // of each kind, so that few tries fall on each
)

// server is the program, serving a store that was filled for the measurement.
type server struct {
	folder   string
	binary   string
	database string
	base     string
	command  *exec.Cmd
	log      bytes.Buffer
	foreign  string // a live session of another tenant
}

// start builds the program, serves the database and makes the accounts.
func start(ctx context.Context, database string) (_ *server, err error) {
	folder, err := os.MkdirTemp("", "rolecall-timing")
	if err != nil {
		return nil, err
	}
	s := &server{folder: folder, binary: filepath.Join(folder, "rolecall"), database: database}
	if s.database == "" {
		s.database = filepath.Join(folder, "rolecall.db")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "./cmd/rolecall").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w: %s", err, output)
	}
	if err := s.serve(ctx); err != nil {
		return nil, err
	}
	return s, s.fill(ctx)
}

// serve starts the program with limits so high that no attempt is refused for
// their number.
func (s *server) serve(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	s.base = "http://" + address
	const many = "1000000000"
	s.command = exec.Command(s.binary, "serve", "--database", s.database, "--listen", address,
		"--attempts-per-account-and-source", many, "--attempts-per-account", many, "--attempts-per-source", many)
	s.command.Stderr = &s.log
	if err := s.command.Start(); err != nil {
		return err
	}
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for range 500 {
		if answer, err := http.Get(s.base + "/readyz"); err == nil {
			if err := drain(answer); err != nil {
				return err
			}
			if answer.StatusCode < http.StatusMultipleChoices {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-retry.C:
		}
	}
	return errors.New("the server is not ready after ten seconds")
}

// stop ends the server and removes what was made.
func (s *server) stop() error {
	var err error
	if s.command != nil && s.command.Process != nil {
		err = s.command.Process.Signal(syscall.SIGTERM)
		if waited := s.command.Wait(); waited != nil {
			err = errors.Join(err, fmt.Errorf("%w\n%s", waited, &s.log))
		}
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}

// run runs a command of the program with the password as its input.
func (s *server) run(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, s.binary, append(arguments, "--password-stdin", "--database", s.database)...)
	command.Stdin = strings.NewReader(password)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return nil
}

func (s *server) fill(ctx context.Context) error {
	for _, name := range []string{tenant, "foreign"} {
		if err := s.run(ctx, "tenant", "create", name, "--owner-email", address("owner", 0), "--owner-name", "Owner"); err != nil {
			return err
		}
	}
	owner := client.New(s.base, tenant, nil)
	if _, err := owner.Login(ctx, address("owner", 0), password); err != nil {
		return err
	}
	for n := range accounts {
		for _, kind := range []string{"active", "pending", "suspended"} {
			user, err := owner.CreateUser(ctx, fmt.Sprintf("%s-%d", kind, n), client.NewUser{Email: address(kind, n), Name: "Somebody"})
			if err != nil {
				return err
			}
			if kind == "pending" {
				continue
			}
			if err := s.run(ctx, "user", "set-password", "--tenant", tenant, "--email", address(kind, n)); err != nil {
				return err
			}
			if kind == "suspended" {
				if _, err := owner.SuspendUser(ctx, user.ID, ""); err != nil {
					return err
				}
			}
		}
	}
	return s.signInElsewhere(ctx)
}

// signInElsewhere gets a session of another tenant.
func (s *server) signInElsewhere(ctx context.Context) error {
	request, err := s.signIn("foreign", address("owner", 0), password)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request.WithContext(ctx))
	if err != nil {
		return err
	}
	if err := drain(answer); err != nil {
		return err
	}
	for _, cookie := range answer.Cookies() {
		s.foreign = cookie.Value
	}
	return nil
}

func address(kind string, n int) string { return fmt.Sprintf("%s-%d@example.com", kind, n) }

func (s *server) signIn(tenant, email, password string) (*http.Request, error) {
	body, err := json.Marshal(map[string]string{"email": email, "password": password})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, s.base+"/auths/login", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{"X-Tenant-Schema": {tenant}, "Content-Type": {"application/json"}}
	return request, nil
}

// signIns are the sign-ins that must not be told apart.
func (s *server) signIns() []*class {
	refuse := func(name, tenant, kind, password string) *class {
		return &class{name: name, status: http.StatusUnauthorized, ask: func(round int) (*http.Request, error) {
			n := round % accounts
			if kind == "unknown" {
				n = round
			}
			return s.signIn(tenant, address(kind, n), password)
		}}
	}
	return []*class{
		refuse("wrong password", tenant, "active", "not the right password"),
		refuse("unknown address", tenant, "unknown", password),
		refuse("pending user", tenant, "pending", password),
		refuse("suspended user, wrong password", tenant, "suspended", "not the right password"),
		refuse("unknown tenant", "no-such-tenant", "active", password),
	}
}

// sessions are the requests with a token that is no session here.
func (s *server) sessions() []*class {
	refuse := func(name, tenant string, token func() string) *class {
		return &class{name: name, status: http.StatusUnauthorized, ask: func(int) (*http.Request, error) {
			request, err := http.NewRequest(http.MethodGet, s.base+"/auths/session", nil)
			if err == nil {
				request.Header = http.Header{"X-Tenant-Schema": {tenant}, "Cookie": {"session=" + token()}}
			}
			return request, err
		}}
	}
	unknown := func() string { // of the shape of a token: 32 bytes
		return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%016x%016x", rand.Uint64(), rand.Uint64()))
	}
	foreign := func() string { return s.foreign }
	return []*class{
		refuse("unknown token", tenant, unknown),
		refuse("another tenant's session", tenant, foreign),
		refuse("unknown token, unknown tenant", "no-such-tenant", unknown),
		refuse("another tenant's session, unknown tenant", "no-such-tenant", foreign),
	}
}

// drain reads an answer to its end, so that its connection is used again.
func drain(answer *http.Response) error {
	_, err := io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

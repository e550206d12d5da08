package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/rolecall/rolecall/internal/process"
)

const (
	tenant   = "timing"
	password = "correct horse battery"
	accounts = 10 // of each kind, so that each gets few attempts
)

// server is the program with a store that was filled for the measurement.
type server struct {
	process.Server
	folder  string
	owner   string   // a valid session of the owner
	foreign string   // a valid session of another tenant
	moving  []string // ids of active users
}

// start builds the program, serves the database and creates the accounts. The limits are so
// high that no attempt exceeds them.
func start(ctx context.Context, database string) (_ *server, err error) {
	folder, err := os.MkdirTemp("", "rolecall-timing")
	if err != nil {
		return nil, err
	}
	const many = "1000000000"
	s := &server{folder: folder, Server: process.Server{
		Binary: filepath.Join(folder, "rolecall"), Database: cmp.Or(database, filepath.Join(folder, "rolecall.db")),
		Flags: []string{
			"--attempts-per-account-and-source", many, "--attempts-per-account", many, "--attempts-per-source", many,
			"--resets-per-account", many, "--resets-per-source", many,
		},
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if err := process.Build(ctx, s.Binary); err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return s, s.fill(ctx)
}

// stop stops the server and removes its files.
func (s *server) stop() (err error) {
	if s.PID() != 0 {
		err = s.Stop()
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}

// run runs a command of the program with the password as its input.
func (s *server) run(ctx context.Context, arguments ...string) error {
	_, err := s.Run(ctx, password, append(arguments, "--password-stdin")...)
	return err
}

func (s *server) fill(ctx context.Context) error {
	for _, name := range []string{tenant, "foreign"} {
		if err := s.run(ctx, "tenant", "create", name, "--owner-email", address("owner", 0), "--owner-name", "Owner"); err != nil {
			return err
		}
	}
	if err := errors.Join(s.session(ctx, tenant, &s.owner), s.session(ctx, "foreign", &s.foreign)); err != nil {
		return err
	}
	for n := range accounts {
		for _, kind := range []string{"active", "pending", "suspended", "deleted"} {
			var user struct{ ID string }
			body := fmt.Sprintf(`{"email":%q,"name":"Somebody"}`, address(kind, n))
			if err := s.asOwner(ctx, http.MethodPost, "/users", body, &user); err != nil {
				return err
			}
			if kind == "pending" {
				continue
			}
			err := s.run(ctx, "user", "set-password", "--tenant", tenant, "--email", address(kind, n))
			if err != nil {
				return err
			}
			switch kind {
			case "active":
				s.moving = append(s.moving, user.ID)
			case "suspended":
				err = s.asOwner(ctx, http.MethodPost, "/users/"+user.ID+"/suspend", `{"reason":""}`, nil)
			case "deleted":
				err = s.asOwner(ctx, http.MethodDelete, "/users/"+user.ID, "", nil)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// asOwner sends a request with the owner's session. It decodes the response into result, unless that is nil.
// It returns an error if the status is not that of a success.
func (s *server) asOwner(ctx context.Context, method, path, body string, result any) error {
	request, err := http.NewRequestWithContext(ctx, method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = http.Header{"X-Tenant-Schema": {tenant}, "Content-Type": {"application/json"}, "Cookie": {"session=" + s.owner}, "Idempotency-Key": {fmt.Sprint(rand.Uint64())}}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s", method, path, content)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(content, result)
}

// session signs the owner of the tenant in and stores the token.
func (s *server) session(ctx context.Context, tenant string, token *string) error {
	request, err := s.signIn(tenant, address("owner", 0), password)
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
		if cookie.Name == "session" {
			*token = cookie.Value
		}
	}
	return nil
}

func address(kind string, n int) string { return fmt.Sprintf("%s-%d@example.com", kind, n) }

func (s *server) signIn(tenant, email, password string) (*http.Request, error) {
	return s.post(tenant, "/auths/login", map[string]string{"email": email, "password": password})
}

func (s *server) post(tenant, path string, members map[string]string) (*http.Request, error) {
	body, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{"X-Tenant-Schema": {tenant}, "Content-Type": {"application/json"}}
	return request, nil
}

// signIns returns the sign-ins that must be indistinguishable.
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
		refuse("deleted user", tenant, "deleted", password),
		refuse("unknown tenant", "no-such-tenant", "active", password),
	}
}

// resets returns the password reset requests that must be indistinguishable.
func (s *server) resets() []*class {
	accept := func(name, tenant, kind string) *class {
		return &class{name: name, status: http.StatusAccepted, ask: func(round int) (*http.Request, error) {
			n := round % accounts
			if kind == "unknown" {
				n = round
			}
			return s.post(tenant, "/auths/password-resets", map[string]string{"email": address(kind, n)})
		}}
	}
	return []*class{
		accept("reset of an active user", tenant, "active"),
		accept("reset of an unknown address", tenant, "unknown"),
		accept("reset of a pending user", tenant, "pending"),
		accept("reset of a suspended user", tenant, "suspended"),
		accept("reset of a deleted user", tenant, "deleted"),
		accept("reset in an unknown tenant", "no-such-tenant", "active"),
	}
}

// emailChanges returns the email change requests that must be indistinguishable.
func (s *server) emailChanges() []*class {
	accept := func(name, kind string) *class {
		return &class{name: name, status: http.StatusAccepted, ask: func(round int) (*http.Request, error) {
			n := round % accounts
			if kind == "unknown" {
				n = round
			}
			request, err := s.post(tenant, "/users/"+s.moving[round%accounts]+"/email-changes", map[string]string{"email": address(kind, n)})
			if err == nil {
				request.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", kind, round))
				request.Header.Set("Cookie", "session="+s.owner)
			}
			return request, err
		}}
	}
	return []*class{
		accept("change to an unknown address", "unknown"),
		accept("change to an address that is taken", "pending"),
		accept("change to that of a suspended user", "suspended"),
		accept("change to that of a deleted user", "deleted"),
	}
}

// sessions returns the requests with invalid session tokens that must be indistinguishable.
func (s *server) sessions() []*class {
	refuse := func(name, tenant string, token func() string) *class {
		return &class{name: name, status: http.StatusUnauthorized, ask: func(int) (*http.Request, error) {
			request, err := http.NewRequest(http.MethodGet, s.URL()+"/auths/session", nil)
			if err == nil {
				request.Header = http.Header{"X-Tenant-Schema": {tenant}, "Cookie": {"session=" + token()}}
			}
			return request, err
		}}
	}
	unknown := func() string { // has the form of a token: 32 bytes in base64
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

// drain reads a response to its end, so that its connection can be used again.
func drain(answer *http.Response) error {
	_, err := io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

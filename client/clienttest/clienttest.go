// Package clienttest starts Rolecall for the tests of an application. Each test gets a new tenant, so tests
// can run at the same time and in any order:
//
//	var server *clienttest.Server
//
//	func TestMain(m *testing.M) {
//		var err error
//		if server, err = clienttest.Start(clienttest.Options{}); err != nil {
//			log.Fatal(err)
//		}
//		code := m.Run()
//		if err := server.Stop(); err != nil {
//			log.Fatal(err)
//		}
//		os.Exit(code)
//	}
//
//	func TestApprove(t *testing.T) {
//		tenant := server.Tenant(t)
//		clerk := tenant.User(t, clienttest.NewUser{Permissions: []string{"shop/invoices:approve"}})
//		…
//	}
package clienttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Password is the password of all users of the tests.
const Password = "a long password of the tests"

// publicURL is the public URL of servers. With a loopback address, cookies have no attribute Secure, so tests
// over plain HTTP receive them.
const publicURL = "http://localhost"

// startLimit is how long a program may take to start or to stop.
const startLimit = time.Minute

// Options are the options of a server. The zero value suits most tests.
type Options struct {
	Program string   // the file of the program; empty: the variable ROLECALL_PROGRAM, or rolecall in the PATH
	Flags   []string // further flags of rolecall serve
}

// Server is a running Rolecall with an own SQLite database. It is safe for concurrent use.
type Server struct {
	URL         string // for example http://127.0.0.1:41234
	OperatorKey string // with the scope all
	Mailbox     string // the folder with a file for each mail

	program string
	folder  string
	process *exec.Cmd
	log     *serveLog
	ended   chan error

	mu      sync.Mutex
	tenants []string
}

// Start starts the program with an empty database, in a temporary folder. It listens on a free port of this
// machine.
func Start(o Options) (*Server, error) {
	folder, err := os.MkdirTemp("", "rolecall-test")
	if err != nil {
		return nil, err
	}
	s := &Server{program: o.Program, folder: folder, Mailbox: filepath.Join(folder, "mail"), ended: make(chan error, 1)}
	if s.program == "" {
		s.program = os.Getenv("ROLECALL_PROGRAM")
	}
	if s.program == "" {
		s.program = "rolecall"
	}
	if err := s.start(o.Flags); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return s, nil
}

func (s *Server) start(flags []string) error {
	if _, err := s.run("migrate"); err != nil {
		return err
	}
	output, err := s.run("operator-key", "create", "Tests", "--json")
	if err != nil {
		return err
	}
	var made struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(output, &made); err != nil {
		return fmt.Errorf("clienttest: output of operator-key create: %w", err)
	}
	s.OperatorKey = made.Key
	words := append([]string{"serve", "--listen", "127.0.0.1:0", "--public-url", publicURL, "--database", s.database(), "--mailbox", s.Mailbox}, flags...)
	s.process, s.log = exec.Command(s.program, words...), &serveLog{address: make(chan string, 1)}
	s.process.Stderr, s.process.Dir = s.log, s.folder
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("clienttest: %w", err)
	}
	go func() { s.ended <- s.process.Wait() }()
	select {
	case address := <-s.log.address:
		s.URL = "http://" + address
		return nil
	case err := <-s.ended:
		return fmt.Errorf("clienttest: rolecall serve ended (%w):\n%s", err, s.log)
	case <-time.After(startLimit):
		return errors.Join(fmt.Errorf("clienttest: rolecall serve does not serve:\n%s", s.log), s.process.Process.Kill())
	}
}

func (s *Server) database() string { return filepath.Join(s.folder, "rolecall.db") }

// run runs a command of the program on the database, and returns its output.
func (s *Server) run(words ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	command := exec.CommandContext(ctx, s.program, append(words, "--database", s.database())...)
	var failures bytes.Buffer
	command.Stderr, command.Dir = &failures, s.folder
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("clienttest: rolecall %s: %w\n%s", strings.Join(words, " "), err, failures.String())
	}
	return output, nil
}

// Stop stops the program, and removes its data.
func (s *Server) Stop() error {
	err := s.process.Process.Signal(syscall.SIGTERM)
	select {
	case ended := <-s.ended:
		err = errors.Join(err, ended)
	case <-time.After(startLimit):
		err = errors.Join(err, errors.New("clienttest: rolecall serve does not stop"), s.process.Process.Kill())
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}

// Reset deletes the tenants and the mails of all tests so far. New tenants do not need it. Call it if a
// process runs tests for a long time, or before a test that reads the changes of all tenants.
func (s *Server) Reset(ctx context.Context) error {
	s.mu.Lock()
	names := s.tenants
	s.tenants = nil
	s.mu.Unlock()
	for _, name := range names {
		path := "/operator/tenants/" + name
		header, err := s.send(ctx, request{method: http.MethodGet, path: path})
		if err == nil {
			_, err = s.send(ctx, request{method: http.MethodDelete, path: path, ifMatch: header.Get("ETag")})
		}
		if err != nil {
			return err
		}
	}
	mails, err := filepath.Glob(filepath.Join(s.Mailbox, "*"))
	for _, mail := range mails {
		err = errors.Join(err, os.Remove(mail))
	}
	return err
}

// request describes a request that the client has no method for.
type request struct {
	method, path, ifMatch string
	tenant                string // empty for the operations of operators
	anonymous             bool   // send no operator key
	body                  any    // nil for a request without a body
	into                  any    // pointer; nil ignores the response body
}

// send sends the request, and returns the header of the response.
func (s *Server) send(ctx context.Context, r request) (http.Header, error) {
	var body io.Reader = http.NoBody
	headers := map[string]string{"X-Tenant-Schema": r.tenant, "If-Match": r.ifMatch, "Idempotency-Key": random("test")}
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("clienttest: %w", err)
		}
		body, headers["Content-Type"] = bytes.NewReader(encoded), "application/json"
	}
	if !r.anonymous {
		headers["Authorization"] = "Bearer " + s.OperatorKey
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, s.URL+r.path, body)
	if err != nil {
		return nil, fmt.Errorf("clienttest: %w", err)
	}
	for name, value := range headers {
		if value != "" {
			sent.Header.Set(name, value)
		}
	}
	answer, err := http.DefaultClient.Do(sent)
	if err != nil {
		return nil, fmt.Errorf("clienttest: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("clienttest: %w", err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("clienttest: %s %s: %s %s", r.method, r.path, answer.Status, text)
	}
	if r.into != nil {
		if err := json.Unmarshal(text, r.into); err != nil {
			return nil, fmt.Errorf("clienttest: answer of %s %s: %w", r.method, r.path, err)
		}
	}
	return answer.Header, nil
}

// random returns the prefix with a random part.
func random(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()) }

// serveLog keeps the log of the program, and finds its address.
type serveLog struct {
	mu      sync.Mutex
	text    bytes.Buffer
	address chan string
	found   bool
}

// Write implements io.Writer.
func (l *serveLog) Write(part []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(part)
	if l.found {
		return len(part), nil
	}
	for line := range bytes.Lines(l.text.Bytes()) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "serving" {
			l.found = true
			l.address <- entry.Address
			break
		}
	}
	return len(part), nil
}

// String returns the log so far.
func (l *serveLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

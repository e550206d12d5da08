package e2e

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	startLimit = 30 * time.Second
	stopLimit  = 20 * time.Second
	retryEvery = 20 * time.Millisecond

	// answerLimit is longer than the program takes over any request: past it the
	// program hangs.
	answerLimit = 20 * time.Second
)

// canary is part of every password and every address, so that one search tells
// whether the log holds any of them.
const canary = "canary"

// program is the real one, serving one store.
type program struct {
	binary   string
	database string
	flags    []string
	address  string // host and port
	document *document
	process  *os.Process
	log      lockedBuffer
	exited   chan error
	worlds   atomic.Uint32 // numbers tenants and source addresses
	tokensMu sync.Mutex
	tokens   []string // every session token it gave out
}

// serve starts the program and waits until it is ready. When the test ends it is
// asked to stop, and its log is searched for what must not be there.
func serve(t *testing.T, binary, database string, flags ...string) *program {
	t.Helper()
	p := &program{binary: binary, database: database, flags: flags, address: freeAddress(t), document: readDocument(t)}
	p.start(t)
	t.Cleanup(func() { p.stop(t) })
	return p
}

// start starts the process and waits until it is ready.
func (p *program) start(t *testing.T) {
	t.Helper()
	command := exec.Command(p.binary, append([]string{"serve", "--listen", p.address, "--database", p.database}, p.flags...)...)
	command.Env = append(os.Environ(), "GORACE=halt_on_error=1 exitcode=66")
	command.Dir = t.TempDir()
	command.Stdout, command.Stderr = &p.log, &p.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	p.process, p.exited = command.Process, exited
	go func() { exited <- command.Wait() }()
	p.awaitReady(t)
}

// kill ends the process without a chance to finish anything.
func (p *program) kill(t *testing.T) {
	t.Helper()
	if err := p.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.exited
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

func (p *program) awaitReady(t *testing.T) {
	t.Helper()
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	deadline := time.After(startLimit)
	for {
		response, err := http.Get("http://" + p.address + "/readyz")
		if err == nil {
			if err := response.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != http.StatusServiceUnavailable { // under a base it is 404
				return
			}
		}
		select {
		case err := <-p.exited:
			p.exited <- err
			t.Fatalf("the program ended at start: %v\n%s", err, p.log.String())
		case <-deadline:
			t.Fatalf("the program was not ready after %v\n%s", startLimit, p.log.String())
		case <-retry.C:
		}
	}
}

// stop asks the program to leave and checks how it left.
func (p *program) stop(t *testing.T) {
	if err := p.process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("the program was gone before it was asked to stop: %v", err)
	}
	select {
	case err := <-p.exited:
		if err != nil {
			t.Errorf("the program did not stop cleanly: %v", err)
		}
	case <-time.After(stopLimit):
		t.Errorf("the program did not stop within %v", stopLimit)
		if err := p.process.Kill(); err != nil {
			t.Error(err)
		}
	}
	p.checkLog(t)
}

// wrongInLog is what no log of a healthy program holds.
var wrongInLog = regexp.MustCompile(`(?i)panic|DATA RACE|"level":"ERROR"|level=ERROR|` + canary)

func (p *program) checkLog(t *testing.T) {
	log := p.log.String()
	for line := range strings.Lines(log) {
		if found := wrongInLog.FindString(line); found != "" {
			t.Errorf("the log holds %q: %s", found, line)
		}
	}
	p.tokensMu.Lock()
	defer p.tokensMu.Unlock()
	for _, token := range p.tokens {
		if strings.Contains(log, token) {
			t.Error("the log holds a session token")
		}
	}
}

// run runs the command line on the program's store and returns what it printed.
func (p *program) run(t testing.TB, input string, arguments ...string) string {
	t.Helper()
	output, err := p.try(t, input, arguments...)
	if err != nil {
		t.Fatalf("rolecall %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return output
}

// try is run for a command that may fail.
func (p *program) try(t testing.TB, input string, arguments ...string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startLimit)
	defer cancel()
	command := exec.CommandContext(ctx, p.binary, append(arguments, "--database", p.database)...)
	command.Stdin = strings.NewReader(input)
	combined, err := command.CombinedOutput()
	return string(combined), err
}

// lockedBuffer collects the output of a process that is still running.
type lockedBuffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

// Write appends b.
func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.content.Write(b)
}

// String returns all that was written.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.content.String()
}

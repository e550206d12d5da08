package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// TestMain runs the program instead of the tests if the test binary is started under the name
// rolecall.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rolecall": main})
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true})
}

// The test scripts of the operator commands also pass on PostgreSQL.
func TestCommandLineOnPostgres(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Files:               []string{"testdata/script/operator.txtar", "testdata/script/seed.txtar"},
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("ROLECALL_DATABASE", pgtest.URL(t))
			return nil
		},
	})
}

// process is a running `rolecall serve`.
type process struct {
	t       *testing.T
	command *exec.Cmd
	address string        // host:port
	began   time.Time     // when the process was started
	stdout  *bufio.Reader // the standard output of the process
	log     chan logLine  // the log lines after "serving", without requests; closed at the end of the log
	before  []logLine     // the log lines before "serving", except the warnings noMail and noKeyFile

	noKeyFile bool // the process logged that the instance key is in the database
}

// noMail is the beginning of the warning about a missing mail server. Most of these tests cause
// this warning.
const noMail = "no mail server is set"

// noKeyFile is the beginning of the warning about an instance key in the database. Most of these
// tests cause this warning.
const noKeyFile = "the instance key is in the database"

type logLine struct {
	Level   string `json:"level"`
	Message string `json:"msg"`
	Address string `json:"address"`
}

// startServer starts the program in the folder, on a free port, and waits until it serves. The
// process is killed at the end of the test.
func startServer(t *testing.T, folder string, args ...string) *process {
	t.Helper()
	s := &process{t: t, command: exec.Command("rolecall", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...), log: make(chan logLine, 1<<16)}
	s.command.Dir = folder
	s.command.Env = append(os.Environ(), "ROLECALL_LOG_FORMAT=json")
	stdout, err := s.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdout = bufio.NewReader(stdout)
	stderr, err := s.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.began = time.Now()
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.command.ProcessState == nil {
			if err := s.command.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = s.command.Wait() // returns an error because the process was killed
		}
	})
	go s.readLog(stderr)
	for {
		select {
		case line, running := <-s.log:
			if !running {
				t.Fatalf("rolecall serve %s ended: %v", strings.Join(args, " "), s.before)
			}
			if line.Message == "serving" {
				s.address = line.Address
				return s
			}
			switch {
			case strings.HasPrefix(line.Message, noMail):
			case strings.HasPrefix(line.Message, noKeyFile):
				s.noKeyFile = true
			default:
				s.before = append(s.before, line)
			}
		case <-time.After(patience.Limit):
			t.Fatal("rolecall serve does not serve")
		}
	}
}

func (s *process) readLog(stderr io.Reader) {
	defer close(s.log)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		line := logLine{Message: lines.Text()}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "request" {
			continue
		}
		s.log <- line
	}
}

// waitLog waits for the next log line with the message, and returns that line.
func (s *process) waitLog(message string) logLine {
	s.t.Helper()
	for {
		select {
		case line, running := <-s.log:
			if !running {
				s.t.Fatalf("the process ended before it logged %q", message)
			}
			if line.Message == message {
				return line
			}
		case <-time.After(patience.Limit):
			s.t.Fatalf("the process does not log %q", message)
		}
	}
}

// stop sends the signal and waits until the process has ended. It returns the exit error, if any.
func (s *process) stop(signal os.Signal) error {
	s.t.Helper()
	if err := s.command.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	return s.command.Wait()
}

func (s *process) get(path string) *http.Response {
	s.t.Helper()
	answer, err := http.Get("http://" + s.address + path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() }) // a response is only read, so this error loses no data
	return answer
}

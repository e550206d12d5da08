// Package process runs the program as a separate process, for black-box tests, fault
// tests and benchmarks.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

const retryEvery = 20 * time.Millisecond

// ProgramVariable is the environment variable with the path of a program that is already built for
// tests. It saves the time of a build in each test package. The program must be built with TestTags. It
// can be built with the race detector: the test process only sends requests, so it needs no detector.
const ProgramVariable = "ROLECALL_PROGRAM"

// TestTags are the flags of go build for the program of black-box tests: password hashes cost little,
// and webhooks can reach this machine if ROLECALL_TEST_LOOPBACK is 1.
const TestTags = "-tags=cheap_hashes,loopback_endpoints"

// TestProgram returns the program of black-box tests: that of ProgramVariable or, without it, one that
// it builds into the file.
func TestProgram(ctx context.Context, file string) (program string, err error) {
	if program, err = Program(); program != "" || err != nil {
		return program, err
	}
	return file, Build(ctx, file, TestTags)
}

// Program returns the absolute path in ProgramVariable, or an empty path if the variable is not set.
// It looks at the program, so that go test does not return a cached result after another build.
func Program() (file string, err error) {
	if file = os.Getenv(ProgramVariable); file == "" {
		return "", nil
	}
	if file, err = filepath.Abs(file); err == nil {
		_, err = os.Stat(file)
	}
	return file, err
}

// Build builds the program into the file, which must not exist, with the flags of go build. The caller
// can be in another module of the repository. Build uses go run, which caches the linked program. The
// command go build would link it again in each test package.
func Build(ctx context.Context, file string, flags ...string) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	if err := lookAtSources(root); err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	arguments := append([]string{"run", "-exec", "cp"}, flags...)
	command := exec.CommandContext(ctx, "go", append(arguments, "./cmd/rolecall", file)...)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("the program does not build: %w\n%s", err, output)
	}
	return nil
}

// findRoot returns the folder of the module that has the program.
func findRoot() (root string, err error) {
	root = "."
	for _, err = os.Stat(root + "/cmd/rolecall"); err != nil; _, err = os.Stat(root + "/cmd/rolecall") {
		if root += "/.."; len(root) > 30 {
			return "", err
		}
	}
	return root, nil
}

// lookAtSources opens every folder of the module, so that go test does not return a cached result
// after a source file has changed. Go caches the result of a test until a file that the test
// process opened has changed. Files that go build opens do not count, because go build is another
// process.
func lookAtSources(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path != root && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		return err
	})
}

// Server is the program on one database. It can be started again on the same address.
// Only Log is safe for concurrent use.
type Server struct {
	Binary   string
	Database string     // a SQLite file or a postgres:// URL
	Address  string     // host and port; empty: Start chooses a free loopback address
	Flags    []string   // flags of rolecall serve
	Under    []string   // a command that runs the program, with its arguments, such as strace
	Env      []string   // in addition to the environment of this process
	Folder   string     // working directory; empty: that of this process
	Files    []*os.File // inherited files, from descriptor 3 on
	LogFile  *os.File   // receives the output of the process; nil: Log returns the output

	process *os.Process
	exited  chan error
	output  Output
}

// Start starts the process and waits until it is ready, for at most patience.Limit.
func (s *Server) Start(ctx context.Context) (err error) {
	if s.Address == "" {
		if s.Address, err = FreeAddress(); err != nil {
			return err
		}
	}
	if err := s.Launch(); err != nil {
		return err
	}
	return s.AwaitReady(ctx)
}

// Launch starts the process without waiting until it is ready. Address must be set.
func (s *Server) Launch() error {
	line := append(s.Under[:len(s.Under):len(s.Under)], s.Binary, "serve", "--listen", s.Address, "--database", s.Database)
	line = append(line, s.Flags...)
	command := exec.Command(line[0], line[1:]...)
	command.Env, command.Dir, command.ExtraFiles = append(os.Environ(), s.Env...), s.Folder, s.Files
	command.Stdout, command.Stderr = &s.output, &s.output
	if s.LogFile != nil {
		command.Stdout, command.Stderr = s.LogFile, s.LogFile
	}
	if err := command.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	s.process, s.exited = command.Process, exited
	go func() { exited <- command.Wait() }()
	return nil
}

// AwaitReady waits until /readyz returns a status other than 503, for at most
// patience.Limit. Any such status counts, because the path of /readyz differs if the public URL has a
// base path.
func (s *Server) AwaitReady(ctx context.Context) error {
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for deadline := time.After(patience.Limit); ; {
		if s.answers(ctx) {
			return nil
		}
		select {
		case err := <-s.exited:
			s.exited <- err
			return fmt.Errorf("the program ended during its start: %v\n%s", err, s.Log())
		case <-deadline:
			return fmt.Errorf("the program was not ready after %v\n%s", patience.Limit, s.Log())
		case <-ctx.Done():
			return ctx.Err()
		case <-retry.C:
		}
	}
}

func (s *Server) answers(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode != http.StatusServiceUnavailable
}

// URL returns the URL of the program.
func (s *Server) URL() string { return "http://" + s.Address }

// PID returns the id of the latest process, or zero.
func (s *Server) PID() int {
	if s.process == nil {
		return 0
	}
	return s.process.Pid
}

// Ended reports whether the process has ended by itself.
func (s *Server) Ended() bool {
	select {
	case err := <-s.exited:
		s.exited <- err
		return true
	default:
		return false
	}
}

// Signal sends the signal to the process.
func (s *Server) Signal(signal os.Signal) error { return s.process.Signal(signal) }

// Kill kills the process and waits for its end.
func (s *Server) Kill() error {
	if err := s.process.Kill(); err != nil {
		return err
	}
	<-s.exited
	return nil
}

// Stop sends SIGTERM to the process and waits as Wait does.
func (s *Server) Stop() error {
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("the program ended before the test stopped it: %w", err)
	}
	return s.Wait()
}

// Wait waits until the process has ended, and returns an error unless the process exited with
// status 0. After patience.Limit, Wait kills the process and returns an error.
func (s *Server) Wait() error {
	select {
	case err := <-s.exited:
		if err != nil {
			return fmt.Errorf("the program did not stop cleanly: %w", err)
		}
		return nil
	case <-time.After(patience.Limit):
		return errors.Join(fmt.Errorf("the program did not stop within %v", patience.Limit), s.Kill())
	}
}

// Run runs a command of the program on its database and returns the standard output of
// the command. If the command fails, Run returns its standard output and its standard
// error.
func (s *Server) Run(ctx context.Context, input string, arguments ...string) (output string, err error) {
	command := exec.CommandContext(ctx, s.Binary, append(arguments, "--database", s.Database)...)
	command.Stdin = strings.NewReader(input)
	var told strings.Builder
	command.Stderr = &told
	result, err := command.Output()
	if err != nil {
		return string(result) + told.String(), fmt.Errorf("rolecall %s: %w\n%s%s", strings.Join(arguments, " "), err, result, told.String())
	}
	return string(result), nil
}

// Log returns the output of all processes that this Server has started. It is empty if LogFile is
// set.
func (s *Server) Log() string { return s.output.String() }

// AwaitLog waits until the output of the processes matches the expression, for at most
// patience.Limit. It returns the match and its groups. The wait is necessary, because the output of
// a request can arrive after its response.
func (s *Server) AwaitLog(ctx context.Context, expression *regexp.Regexp) ([]string, error) {
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for deadline := time.After(patience.Limit); ; {
		if match := expression.FindStringSubmatch(s.Log()); match != nil {
			return match, nil
		}
		select {
		case <-deadline:
			return nil, fmt.Errorf("no output matched %q within %v\n%s", expression, patience.Limit, s.Log())
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-retry.C:
		}
	}
}

// Output collects the output of a running process. It is safe for concurrent use.
type Output struct {
	mu      sync.Mutex
	content bytes.Buffer
}

// Write appends b.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content.Write(b)
}

// String returns all that was written.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content.String()
}

package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/internal/process"
)

const (
	fillLimit = 5 * time.Minute
	stopLimit = 30 * time.Second
)

// Service is a peer with a separate store.
type Service struct {
	Peer     Peer
	Program  string // path of the program, from Fetch
	Address  string // host and port where it serves
	Folder   string // for its data
	Database string // URL of a PostgreSQL database, over TCP; empty if the service needs no PostgreSQL

	log     *os.File
	command *exec.Cmd
	exited  chan error
}

// New fetches the peer and creates its store in the folder. If postgres is not nil, New also
// creates a database on that server. The caller must close the Service.
func New(ctx context.Context, peer Peer, cache, folder string, postgres *Postgres) (_ *Service, err error) {
	s := &Service{Peer: peer, Folder: folder}
	if s.Program, err = peer.Fetch(ctx, cache); err != nil {
		return nil, err
	}
	if s.Address, err = process.FreeAddress(); err != nil {
		return nil, err
	}
	if postgres != nil {
		if s.Database, err = postgres.NewDatabase(ctx, "peer"); err != nil {
			return nil, err
		}
	}
	if s.log, err = os.Create(filepath.Join(folder, "log")); err != nil {
		return nil, err
	}
	if err := peer.Prepare(ctx, s); err != nil {
		return nil, errors.Join(err, s.log.Close())
	}
	return s, nil
}

// Close stops the service if it runs.
func (s *Service) Close() (err error) {
	if s.command != nil {
		err = s.Stop()
	}
	return errors.Join(err, s.log.Close())
}

// Launch starts the service and does not wait until it serves.
func (s *Service) Launch() error {
	command := s.Peer.Command(s)
	command.Stdout, command.Stderr = s.log, s.log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a process group, so that Stop can kill all processes
	if err := command.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	s.command, s.exited = command, exited
	go func() { exited <- command.Wait() }()
	return nil
}

// Stop stops the service. After half a minute, it kills all its processes.
func (s *Service) Stop() error {
	pid := s.PID()
	s.command = nil
	// A shell or a runtime may report the signal as its exit status, so the status of the
	// service is ignored.
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	select {
	case <-s.exited:
		return nil
	case <-time.After(stopLimit):
		err := syscall.Kill(-pid, syscall.SIGKILL)
		<-s.exited
		return err
	}
}

// PID returns the id of the service's root process, or zero if it does not run.
func (s *Service) PID() int {
	if s.command == nil {
		return 0
	}
	return s.command.Process.Pid
}

// Ended reports whether the service has ended by itself.
func (s *Service) Ended() bool {
	select {
	case err := <-s.exited:
		s.exited <- err
		return true
	default:
		return false
	}
}

// URL returns the URL of the service.
func (s *Service) URL() string { return "http://" + s.Address }

// Log returns the end of the service's output.
func (s *Service) Log() string {
	const most = 2000
	content, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-most):])
}

// run runs a command that prepares the store.
func (s *Service) run(command *exec.Cmd) error {
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path), err, output)
	}
	return nil
}

// call sends one request. If body is not nil, call sends it as JSON. If into is not nil, call
// decodes the response into it. call returns the header of the response, or an error if the status
// is 300 or higher.
func (s *Service) call(ctx context.Context, method, target string, header http.Header, body, into any) (http.Header, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.URL()+target, content)
	if err != nil {
		return nil, err
	}
	if header != nil {
		request.Header = header.Clone()
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return do(request, into)
}

// do sends the request. If into is not nil, do decodes the response into it. do returns the header
// of the response, or an error if the status is 300 or higher.
func do(request *http.Request, into any) (http.Header, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %s: %.500s", request.Method, request.URL.Path, response.Status, content)
	}
	if into == nil {
		return response.Header, nil
	}
	return response.Header, json.Unmarshal(content, into)
}

package pgtest

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ErrNotInstalled says that this machine has no PostgreSQL server; its text says
// how to get one.
var ErrNotInstalled = errors.New("no PostgreSQL server is installed (Debian, Ubuntu: apt install postgresql; Fedora: dnf install postgresql-server; Alpine: apk add postgresql; macOS: brew install postgresql), and " + Variable + " names none")

// guard makes a server, says so, waits for the end of its input, and takes the
// server away again. The end of its input is also the end of this process,
// however sudden.
//
//go:embed guard.sh
var guard string

// Server is a throw-away PostgreSQL server. It keeps nothing on disk when it
// stops, and is careless about a loss of power.
type Server struct {
	folder string
	guard  *exec.Cmd
	input  io.Closer
}

// Start starts a server with the settings, each as in name=value. It returns
// ErrNotInstalled if this machine has none.
func Start(settings ...string) (*Server, error) {
	binaries, err := findBinaries()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "rolecall-pg")
	if err != nil {
		return nil, fmt.Errorf("cannot start PostgreSQL: %w", err)
	}
	options := []string{"-k", folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=300"}
	for _, setting := range settings {
		options = append(options, "-c", setting)
	}
	s := &Server{folder: folder, guard: exec.Command("/bin/sh", "-c", guard, "guard", binaries, folder, strings.Join(options, " "))}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start PostgreSQL: %w", err), os.RemoveAll(folder))
	}
	return s, nil
}

func (s *Server) start() error {
	s.guard.Dir = s.folder
	// A session of its own keeps an interrupt from the terminal away from the
	// guard, which must outlive this process by a moment.
	s.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		if err := s.dropRoot(); err != nil {
			return err
		}
	}
	var complaints bytes.Buffer
	s.guard.Stderr = &complaints
	output, err := s.guard.StdoutPipe()
	if err != nil {
		return err
	}
	if s.input, err = s.guard.StdinPipe(); err != nil {
		return err
	}
	if err := s.guard.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
		return errors.Join(err, s.guard.Wait(), errors.New(complaints.String()))
	}
	return nil
}

// dropRoot makes the server run as an ordinary user, because PostgreSQL refuses
// to run as root.
func (s *Server) dropRoot() error {
	owner, err := ordinaryUser()
	if err != nil {
		return err
	}
	s.guard.SysProcAttr.Credential = owner
	return os.Chown(s.folder, int(owner.Uid), int(owner.Gid))
}

func ordinaryUser() (*syscall.Credential, error) {
	owner, err := user.Lookup("postgres")
	if err != nil {
		owner, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(owner.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(owner.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// Installed reports whether this machine has all that the tests use: PostgreSQL
// and PgBouncer.
func Installed() bool {
	_, serverErr := findBinaries()
	_, bouncerErr := findBouncer()
	return errors.Join(serverErr, bouncerErr) == nil
}

// URL returns the URL of the server's administrator.
func (s *Server) URL() string {
	u := url.URL{Scheme: "postgres", User: url.User("admin"), Path: "/postgres", RawQuery: url.Values{"host": {s.folder}}.Encode()}
	return u.String()
}

// Stop stops the server at once and removes its data.
func (s *Server) Stop() error {
	return errors.Join(s.input.Close(), s.guard.Wait())
}

// findBinaries returns the folder of initdb and pg_ctl, of the newest release if
// there are several.
func findBinaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	var found []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin/initdb",         // Debian
		"/usr/lib/postgresql*/bin/initdb",          // SUSE
		"/usr/pgsql-*/bin/initdb",                  // the PostgreSQL project's own packages
		"/usr/libexec/postgresql*/initdb",          // Alpine
		"/opt/homebrew/opt/postgresql*/bin/initdb", // macOS
		"/usr/local/opt/postgresql*/bin/initdb",    // macOS on Intel
		"/Applications/Postgres.app/Contents/Versions/*/bin/initdb",
	} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		found = append(found, matches...)
	}
	if len(found) == 0 {
		return "", ErrNotInstalled
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return release(a) - release(b) })), nil
}

// release returns the first number in path, 0 if there is none.
func release(path string) int {
	start := strings.IndexAny(path, "0123456789")
	if start < 0 {
		return 0
	}
	digits := path[start:]
	digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
	number, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return number
}

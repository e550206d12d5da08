package pgtest

import (
	"bufio"
	"bytes"
	"context"
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

	"github.com/jackc/pgx/v5"
)

// ErrNotInstalled means that this machine has no PostgreSQL server. Its text says how to
// install one.
var ErrNotInstalled = errors.New("no PostgreSQL server is installed (Debian, Ubuntu: apt install postgresql; Fedora: dnf install postgresql-server; Alpine: apk add postgresql; macOS: brew install postgresql), and " + Variable + " names none")

// guard is a script that creates a server, executes the commands that it reads from its
// input, and removes the server when the input ends. The input also ends when this process
// dies.
//
//go:embed guard.sh
var guard string

// Server is a temporary PostgreSQL server. It deletes its data when it stops. Only its
// method URL may be called from several goroutines at the same time.
type Server struct {
	folder   string
	port     string // empty: the default
	settings []string
	guard    *exec.Cmd
	orders   io.WriteCloser
	answers  *bufio.Reader
	// complaints may be read only after the guard has ended.
	complaints bytes.Buffer
}

// Production are the settings with which a server writes its data to the disk as in
// production.
var Production = []string{"fsync=on", "full_page_writes=on"}

// portSetting is the beginning of the setting with the port of a server.
const portSetting = "port="

// Start starts a server with the settings, each in the form name=value. Without the
// settings of Production, a loss of power can destroy the data, and the data is in memory
// if enough memory is free. Start returns ErrNotInstalled if this machine has no
// PostgreSQL server.
func Start(settings ...string) (*Server, error) {
	return start("", append([]string{"fsync=off", "full_page_writes=off"}, settings...))
}

// Standby starts a standby: a copy of the server with the same settings that receives all
// later changes.
func (s *Server) Standby() (*Server, error) {
	return start(fmt.Sprintf("host=%s user=admin", s.folder), s.settings)
}

// start starts a server. If primary is not empty, it is the connection string of another
// server, and the new server becomes its standby.
func start(primary string, settings []string) (*Server, error) {
	binaries, err := findBinaries()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(parentFolder(settings), "rolecall-pg")
	if err != nil {
		return nil, fmt.Errorf("cannot start PostgreSQL: %w", err)
	}
	options := []string{"-k", folder, "-c", "listen_addresses=", "-c", "max_connections=300"}
	var port string
	for _, setting := range settings {
		options = append(options, "-c", setting)
		if number, ok := strings.CutPrefix(setting, portSetting); ok {
			port = number
		}
	}
	s := &Server{folder: folder, port: port, settings: settings, guard: exec.Command("/bin/sh", "-c", guard, "guard", binaries, folder, strings.Join(options, " "), primary)}
	if err := s.startGuard(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start PostgreSQL: %w", err), os.RemoveAll(folder))
	}
	if err := s.Restart(); err != nil {
		return nil, err
	}
	return s, nil
}

// parentFolder returns the folder in which the data folder of a server is created, or ""
// for the default folder. Without the settings of Production, it returns a folder in
// memory if enough memory is free. Creating and removing the hundreds of files of a
// database on a disk would take most of a test's time.
func parentFolder(settings []string) string {
	const memory, enough = "/dev/shm", 4 << 30
	var stat syscall.Statfs_t
	if slices.Contains(settings, Production[0]) || syscall.Statfs(memory, &stat) != nil || uint64(stat.Bsize)*stat.Bavail < enough {
		return ""
	}
	return memory
}

func (s *Server) startGuard() (err error) {
	s.guard.Dir = s.folder
	// In a separate session, the guard does not receive an interrupt from the terminal.
	// The guard must run a moment longer than this process.
	s.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		if err := s.dropRoot(); err != nil {
			return err
		}
	}
	s.guard.Stderr = &s.complaints
	output, err := s.guard.StdoutPipe()
	if err != nil {
		return err
	}
	s.answers = bufio.NewReader(output)
	if s.orders, err = s.guard.StdinPipe(); err != nil {
		return err
	}
	return s.guard.Start()
}

// Kill ends the server as a loss of power would. The only difference is that the operating
// system still writes its cache. Restart then starts the server with the data on the disk.
func (s *Server) Kill() error { return s.order("kill") }

// Restart starts a server after Kill, and returns when the server accepts connections.
func (s *Server) Restart() error { return s.order("start") }

// Promote makes a standby a primary, and returns when the server accepts writes.
func (s *Server) Promote() error { return s.order("promote") }

// order sends a command to the guard and waits for the answer. After an error, the guard
// and the server have ended.
func (s *Server) order(what string) error {
	_, err := io.WriteString(s.orders, what+"\n")
	if err == nil {
		_, err = s.answers.ReadString('\n')
	}
	if err != nil {
		return fmt.Errorf("cannot %s PostgreSQL: %w", what, errors.Join(err, s.guard.Wait(), errors.New(s.complaints.String())))
	}
	return nil
}

// dropRoot makes the server run as an ordinary user, because PostgreSQL does not run as
// root.
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

// Installed reports whether this machine has PostgreSQL and PgBouncer.
func Installed() bool {
	_, serverErr := findBinaries()
	_, bouncerErr := findBouncer()
	return errors.Join(serverErr, bouncerErr) == nil
}

// URL returns the URL of the server's administrator.
func (s *Server) URL() string {
	return s.url("admin", "postgres")
}

// Port returns the port of the server, empty for the default.
func (s *Server) Port() string { return s.port }

// url returns the URL of a database on this server with the role as the user. The port is
// part of the name of the socket.
func (s *Server) url(role, database string) string {
	query := url.Values{"host": {s.folder}}
	if s.port != "" {
		query.Set("port", s.port)
	}
	u := url.URL{Scheme: "postgres", User: url.User(role), Path: "/" + database, RawQuery: query.Encode()}
	return u.String()
}

// PID returns the id of the server's main process.
func (s *Server) PID() (int, error) {
	content, err := os.ReadFile(filepath.Join(s.folder, "data", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return strconv.Atoi(line)
}

// Log returns the content of the server's log file.
func (s *Server) Log() (string, error) {
	content, err := os.ReadFile(filepath.Join(s.folder, "server.log"))
	return string(content), err
}

// NewDatabase creates an empty database, and an ordinary role with the same name that owns
// the database. It returns the URL of the database with this role as the user.
func (s *Server) NewDatabase(ctx context.Context, name string) (_ string, err error) {
	admin, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, admin.Close(ctx)) }()
	for _, statement := range []string{"create role %[1]s login", "create database %[1]s owner %[1]s template template0"} {
		if _, err := admin.Exec(ctx, fmt.Sprintf(statement, quoted(name))); err != nil {
			return "", err
		}
	}
	return s.url(name, name), nil
}

// Stop stops the server immediately and removes its data.
func (s *Server) Stop() error {
	return errors.Join(s.orders.Close(), s.guard.Wait())
}

// findBinaries returns the folder with the programs initdb and pg_ctl. If initdb is in the
// PATH, this is its folder. Otherwise, it is the folder of the newest release in the usual
// places.
func findBinaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path) // the folder of the link may not contain all programs
		return filepath.Dir(path), err
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

// release returns the first number in the path, or 0 if the path has no number.
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

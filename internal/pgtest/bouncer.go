package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/process"
)

// errNoBouncer means that PgBouncer is not installed. Its text says how to install it.
var errNoBouncer = errors.New("no PgBouncer is installed (Debian, Ubuntu: apt install pgbouncer; Fedora: dnf install pgbouncer; Alpine: apk add pgbouncer; macOS: brew install pgbouncer)")

// bouncerGuard is a shell command that runs PgBouncer until its standard input ends. The
// input also ends when the process that started the command dies.
const bouncerGuard = `"$1" "$2" & cat; kill $!; wait`

// Bouncer starts a PgBouncer in transaction mode in front of the server of the test
// databases. Each of the settings is an additional line of its configuration. The returned
// function converts the URL of a test database into a URL of the same database through
// PgBouncer. If PgBouncer is not installed, the test is skipped, or fails if CI or
// ROLECALL_REQUIRE_POSTGRES is set.
func Bouncer(t testing.TB, settings ...string) (through func(databaseURL string) string) {
	t.Helper()
	binary, err := findBouncer()
	if err != nil {
		if os.Getenv("CI") == "" && os.Getenv("ROLECALL_REQUIRE_POSTGRES") == "" {
			t.Skipf("NOT TESTED BEHIND PGBOUNCER: %v", err)
		}
		t.Fatalf("pgtest: %v", err)
	}
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	var log bytes.Buffer
	guard := exec.Command("/bin/sh", "-c", bouncerGuard, "guard", binary, configureBouncer(t, address, settings))
	guard.Stdout, guard.Stderr = &log, &log
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		if guard.SysProcAttr.Credential, err = ordinaryUser(); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	input, err := guard.StdinPipe()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if err := guard.Start(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(input.Close(), guard.Wait()); err != nil {
			t.Errorf("pgtest: PgBouncer: %v\n%s", err, log.String())
		}
	})
	awaitListener(t, address)
	return func(databaseURL string) string {
		u, err := url.Parse(databaseURL)
		if err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		u.Host, u.RawQuery = address, ""
		return u.String()
	}
}

func findBouncer() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	for _, path := range []string{"/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer", "/usr/local/bin/pgbouncer"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errNoBouncer
}

// configureBouncer writes the configuration file of PgBouncer and returns its path.
func configureBouncer(t testing.TB, address string, more []string) string {
	t.Helper()
	config, err := pgconn.ParseConfig(server(t))
	if err != nil {
		t.Fatalf("pgtest: %s: %v", Variable, err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	folder, err := os.MkdirTemp("", "rolecall-pgbouncer")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	users, settings := filepath.Join(folder, "users.txt"), filepath.Join(folder, "pgbouncer.ini")
	for path, content := range map[string]string{
		users: fmt.Sprintf("%q %q\n", role, password),
		settings: fmt.Sprintf(`[databases]
* = host=%s port=%d
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
max_client_conn = 1000
%s
`, config.Host, config.Port, host, port, users, strings.Join(more, "\n")),
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil { // PgBouncer may run as another user
		t.Fatalf("pgtest: %v", err)
	}
	return settings
}

func awaitListener(t testing.TB, address string) {
	t.Helper()
	var failure error
	if !patience.Poll(func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.Close()
		}
		failure = err
		return err == nil
	}) {
		t.Fatalf("pgtest: PgBouncer does not answer: %v", failure)
	}
}

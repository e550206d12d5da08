package deploy

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// maxExposure is the maximum of systemd-analyze security, in tenths.
const maxExposure = "20"

func TestUnits(t *testing.T) {
	analyze := need(t, "systemd-analyze")
	socket := read(t, "deploy/systemd/rolecall.socket")
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			folder := t.TempDir()
			// The checks need an existing program and user.
			unit := replaceAll(t, read(t, "deploy/systemd/"+store+"/rolecall.service"), "/usr/local/bin/rolecall", program, "User=rolecall", "User=daemon")
			service := write(t, folder, "rolecall.service", unit)
			out, err := exec.Command(analyze, "verify", "--man=no", service, write(t, folder, "rolecall.socket", socket)).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("systemd-analyze verify: %v\n%s", err, out)
			}
			report := output(t, analyze, "security", "--offline=true", "--no-pager", "--threshold="+maxExposure, service)
			lines := strings.Split(strings.TrimSpace(report), "\n")
			t.Log(lines[len(lines)-1])
		})
	}
	t.Log("NOT TESTED: the units in a running systemd. TestUnitsAllowTheSystemCalls tests their filter of system calls, and cmd/rolecall tests the socket.")
}

var systemCall = regexp.MustCompile(`(?m)^\d+ +(?:\d\S* )?([a-z0-9_]+)\(`)

// TestUnitsAllowTheSystemCalls runs a node and records its system calls. Those that the filter of the
// units refuses get EPERM in a second run. The node must work without them.
func TestUnitsAllowTheSystemCalls(t *testing.T) {
	strace, analyze := need(t, "strace"), need(t, "systemd-analyze")
	if _, err := exec.Command(strace, "true").CombinedOutput(); err != nil {
		notTested(t, "strace does not work here: "+err.Error())
	}
	used := trace(t, strace, nil)
	allowed := filter(t, analyze, "@system-service")
	for _, name := range append(filter(t, analyze, "@privileged"), filter(t, analyze, "@resources")...) {
		allowed = slices.DeleteFunc(allowed, func(a string) bool { return a == name })
	}
	var refused []string
	for _, name := range used {
		if !slices.Contains(allowed, name) && name != "execve" { // systemd allows the execve that starts the program
			refused = append(refused, name)
		}
	}
	t.Logf("%d system calls used, of which the units refuse %v", len(used), refused)
	if len(refused) > 0 {
		trace(t, strace, refused)
	}
}

// filter returns the system calls of a set of systemd and of the sets that it contains.
func filter(t *testing.T, analyze, set string) (names []string) {
	t.Helper()
	for line := range strings.Lines(output(t, analyze, "syscall-filter", "--no-pager", set)) {
		name := strings.TrimSpace(line)
		switch {
		case name == set || name == "" || name[0] == '#':
		case name[0] == '@':
			names = append(names, filter(t, analyze, name)...)
		default:
			names = append(names, name)
		}
	}
	return names
}

// trace runs a node under strace, signs in, and stops it. The system calls in refused fail with EPERM. It
// returns the names of the system calls that the node has used.
func trace(t *testing.T, strace string, refused []string) []string {
	t.Helper()
	file, record, address := database(t), filepath.Join(t.TempDir(), "calls"), "127.0.0.1:"+freePort(t)
	args := []string{"-f", "-qq", "-o", record}
	if refused != nil {
		args = append(args, "-e", "inject="+strings.Join(refused, ",")+":error=EPERM")
	}
	command, _ := start(t, nil, strace, append(args, program, "serve", "--listen", address, "--database", file)...)
	awaitOK(t, http.DefaultClient, "http://"+address+"/readyz")
	if status, _ := signIn(t, http.DefaultClient, "http://"+address, ownerPassword); status != http.StatusOK {
		t.Errorf("the sign-in got %d", status)
	}
	if err := command.Process.Signal(syscall.SIGINT); err != nil { // strace passes it to the program
		t.Fatal(err)
	}
	if state, err := command.Process.Wait(); err != nil || state.ExitCode() != 0 && refused != nil {
		t.Errorf("the node ended with %v, %v", state, err)
	}
	content, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, match := range systemCall.FindAllStringSubmatch(string(content), -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return names
}

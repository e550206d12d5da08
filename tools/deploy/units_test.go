package deploy

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
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
	t.Log("NOT TESTED: the units in a running systemd. Their filter of system calls is not tested.")
}

var (
	listenStream = regexp.MustCompile(`(?m)^ListenStream=(\S+)$`)
	execStart    = regexp.MustCompile(`(?m)^ExecStart=\S+ (.+)$`)
)

// TestSockets starts a node with the arguments of the units, and passes one socket for each ListenStream, as
// systemd does. Only the last socket accepts operator keys.
func TestSockets(t *testing.T) {
	streams := listenStream.FindAllString(read(t, "deploy/systemd/rolecall.socket"), -1)
	var files []*os.File
	var addresses []string
	for range streams {
		file, address := listeningSocket(t)
		files, addresses = append(files, file), append(addresses, address)
	}
	if len(addresses) != 2 {
		t.Fatalf("the unit has the sockets %v", streams)
	}
	sqlite, postgres := arguments(t, "sqlite"), arguments(t, "postgres")
	if sqlite != postgres {
		t.Errorf("the units have the arguments %q and %q", sqlite, postgres)
	}
	data := database(t)
	key := createOperatorKey(t, "--database", data)
	startWithFiles(t, []string{"ROLECALL_DATABASE=" + data}, files, program, strings.Fields(sqlite)...)
	awaitOK(t, http.DefaultClient, "http://"+addresses[0]+"/readyz")
	for i, want := range []int{http.StatusNotFound, http.StatusOK} {
		if response, body := send(t, http.DefaultClient, http.MethodGet, "http://"+addresses[i]+"/operator/tenants", nil, map[string]string{"authorization": "Bearer " + key}); response.StatusCode != want {
			t.Errorf("socket %d answers an operator key with %d, want %d: %s", i+1, response.StatusCode, want, body)
		}
	}
}

// arguments returns the arguments of the program in the unit for the store.
func arguments(t *testing.T, store string) string {
	t.Helper()
	start := execStart.FindStringSubmatch(read(t, "deploy/systemd/"+store+"/rolecall.service"))
	if start == nil {
		t.Fatalf("the unit for %s starts no program with arguments", store)
	}
	return start[1]
}

// listeningSocket returns a socket that listens on a free port, and its address.
func listeningSocket(t *testing.T) (socket *os.File, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, err = listener.(*net.TCPListener).File()
	if err = errors.Join(err, listener.Close()); err != nil { // the file is a copy of the socket
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := socket.Close(); err != nil {
			t.Error(err)
		}
	})
	return socket, listener.Addr().String()
}

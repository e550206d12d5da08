package e2e

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/process"
)

// startProxy runs a third-party proxy until the test ends, and waits until it listens on the
// address.
func startProxy(t *testing.T, address, binary string, arguments ...string) {
	t.Helper()
	command := exec.Command(binary, arguments...)
	var log process.Output
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		err := command.Wait()
		if code := command.ProcessState.ExitCode(); err != nil && code != -1 && code != 128+int(syscall.SIGINT) { // some proxies report the signal as the exit status
			t.Errorf("%s ended: %v\n%s", binary, err, log.String())
		}
	})
	if !patience.Poll(func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		return true
	}) {
		t.Fatalf("%s does not listen:\n%s", binary, log.String())
	}
}

package deploy

import (
	"os/exec"
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
	t.Log("NOT TESTED: the units in a running systemd. Their filter of system calls is not tested. cmd/rolecall tests the socket.")
}

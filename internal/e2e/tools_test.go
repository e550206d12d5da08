package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// tool returns the path of a program that is not part of this module. If the program is not
// installed, the test is skipped. In CI, and where ROLECALL_REQUIRE_TOOLS is set, the test
// fails.
func tool(t *testing.T, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" || os.Getenv("ROLECALL_REQUIRE_TOOLS") != "" {
		t.Fatalf("%s is not installed", name)
	}
	t.Skipf("NOT TESTED: %s is not installed", name)
	return ""
}

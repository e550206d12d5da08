package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// tool returns the path of a third-party program. Without it, the test is skipped, or fails
// where all tests must run.
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

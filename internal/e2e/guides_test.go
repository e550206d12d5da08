package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	shellBlock   = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	demoPassword = regexp.MustCompile(`(?m)^  password  (\S+)`)
)

// TestGuidesRunAsTheyAreWritten runs the commands of each guide as one shell script, against
// the demo.
func TestGuidesRunAsTheyAreWritten(t *testing.T) {
	guides, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(guides) < 6 {
		t.Fatalf("found %d guides: %v", len(guides), err)
	}
	p := serve(t, build(t), filepath.Join(t.TempDir(), "demo.db"), "--demo")
	password, err := p.AwaitLog(t.Context(), demoPassword)
	if err != nil {
		t.Fatal(err)
	}
	for _, guide := range guides {
		name := strings.TrimSuffix(filepath.Base(guide), ".md")
		t.Run(name, func(t *testing.T) {
			if name == "proxy-hook" {
				tool(t, "nginx")
			}
			runGuide(t, guide, p.Address, password[1])
		})
	}
}

// runGuide runs the commands of a guide in an empty folder, with unused addresses.
func runGuide(t *testing.T, guide, address, password string) {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	// When a failing guide ends, the trap stops its processes. A process that the guide
	// itself has stopped may already be ending.
	script := "trap 'kill $(cat nginx.pid) 2>/dev/null || true' EXIT\n"
	for _, block := range shellBlock.FindAllSubmatch(text, -1) {
		script += string(block[1])
	}
	script = strings.NewReplacer(
		"127.0.0.1:8080", address, "127.0.0.1:8090", freeAddress(t), "127.0.0.1:8091", freeAddress(t),
	).Replace(script)
	command := exec.Command("bash", "-euo", "pipefail", "-c", script)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "PASSWORD="+password)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		t.Errorf("%v after:\n%s", err, output.String())
	}
}

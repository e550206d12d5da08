package client_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTheGuideRunsAsItIsWritten builds the program of docs/guides/go.md, and runs its commands.
func TestTheGuideRunsAsItIsWritten(t *testing.T) {
	guide, err := os.ReadFile("../docs/guides/go.md")
	if err != nil {
		t.Fatal(err)
	}
	d := newDemo(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	application := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(d.Address, "http://"), "127.0.0.1:8090", application, "5EQW54C-VOG2KQE-JJXKSBE-IVDAI", d.Password)
	blocks := func(language string) string {
		text := ""
		for _, block := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(guide), -1) {
			text += here.Replace(block[1])
		}
		return text
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(blocks("go")), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "shop"), filepath.Join(folder, "main.go")) // in this module, for the client
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	script := "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n" + blocks("bash") // the guide can have ended the program
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	var output bytes.Buffer
	command.Dir, command.Stdout, command.Stderr, command.WaitDelay = folder, &output, &output, time.Second
	if err := command.Run(); err != nil {
		t.Errorf("%v after:\n%s", err, output.String())
	}
}

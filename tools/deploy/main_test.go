// Package deploy tests everything in the folder deploy: the image, the compose file, the chart, the
// units, the configurations of proxies, the alerts and the dashboard. It is a separate module, so that
// Rolecall does not depend on Kubernetes. What cannot run on a machine is printed as NOT TESTED.
package deploy

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/process"
)

// root is the root of the repository.
const root = "../.."

// program is the path of the static program that all tests use.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "rolecall-deploy-")
	if err == nil {
		defer os.RemoveAll(folder)
		err = os.Chmod(folder, 0o755) // other users run the program
	}
	program = filepath.Join(folder, "rolecall")
	if err == nil {
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w -X main.releaseVersion=1.2.3 -X main.releaseCommit=abc", "-o", program, "./cmd/rolecall")
		build.Dir, build.Env, build.Stderr = root, append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the program:", err)
		return 1
	}
	return m.Run()
}

// need returns the path of a tool. Without the tool, it calls notTested.
func need(t *testing.T, tool string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + tool)
	}
	if err != nil {
		notTested(t, tool+" is not installed")
	}
	return path
}

// notTested skips the test with the reason. If CI or ROLECALL_REQUIRE_TOOLS is set, it fails the test.
func notTested(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" || os.Getenv("ROLECALL_REQUIRE_TOOLS") != "" {
		t.Fatal("NOT TESTED: " + reason)
	}
	t.Skip("NOT TESTED: " + reason)
}

// output runs a command and returns its standard output. The test fails if the command fails.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// syncBuffer is a buffer that a process writes while a test reads it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start starts a process, and ends it with SIGTERM at the end of the test. If the test fails, it prints
// what the process wrote.
func start(t *testing.T, env []string, name string, args ...string) (*exec.Cmd, *syncBuffer) {
	t.Helper()
	return startWithFiles(t, env, nil, name, args...)
}

// startWithFiles is like start, and passes the files to the process, from descriptor 3.
func startWithFiles(t *testing.T, env []string, files []*os.File, name string, args ...string) (*exec.Cmd, *syncBuffer) {
	t.Helper()
	log := new(syncBuffer)
	command := exec.Command(name, args...)
	command.Env, command.ExtraFiles = append(os.Environ(), env...), files
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // an error means that it has ended
		_ = command.Wait()                          // the tests that need its exit code wait themselves
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(name), log)
		}
	})
	return command, log
}

// await calls ready ten times a second until it returns nil, for at most patience.Limit.
func await(t *testing.T, what string, ready func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-again.C:
		}
	}
}

// awaitOK waits until the URL answers 200.
func awaitOK(t *testing.T, client *http.Client, url string) {
	t.Helper()
	await(t, url, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", response.StatusCode)
		}
		return nil
	})
}

// freePort returns a port of the loopback address that no process uses.
func freePort(t *testing.T) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// write writes a file of the folder and returns its path.
func write(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read returns the content of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// replaceAll returns the text with the replacements. The test fails if the text has no old part.
func replaceAll(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the file does not contain %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// certificate returns a certificate for the host and its key, in PEM.
func certificate(t *testing.T, host string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

package faults

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/process"
)

// restartGuide contains the configurations of proxies that these tests run.
const restartGuide = "../../docs/restarts.md"

// TestRestartsBehindHAProxyFailNoRequest restarts two nodes in turn, a hundred times with -full,
// behind an haproxy that checks /readyz and never repeats a request.
func TestRestartsBehindHAProxyFailNoRequest(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	binary := installed(t, "haproxy")
	nodes := startNodes(t, "--drain", "700ms")
	address, state := freeAddress(t), freeAddress(t)
	configuration := guideBlock(t, "haproxy", map[string]string{
		"192.0.2.11:8080": nodes[0].Address, "192.0.2.12:8080": nodes[1].Address, "bind :8080": "bind " + address,
		"inter 1s": "inter 100ms", "mode http\n": "mode http\n    retries 0\n    http-reuse always\n",
	}) + "frontend state\n    bind " + state + "\n    stats enable\n    stats uri /\n"
	startProxy(t, binary, configuration, "-db", "-f")

	awaitUp := func(node string) {
		await(t, "haproxy does not find node "+node, func() bool { return strings.HasPrefix(haproxyState(t, state, node), "UP") })
	}
	awaitUp("a")
	awaitUp("b")
	c := gather(t, address)
	rounds := times(3, 100)
	for i := range rounds {
		c.moreAnswers(between)
		restartNode(t, nodes[i%2])
		awaitUp([]string{"a", "b"}[i%2])
	}
	c.moreAnswers(between)
	c.leave()
	t.Logf("%d restarts behind haproxy, %v", rounds, c)
}

// TestRestartsBehindNginxFailNoRequest is the same test behind an nginx, which detects
// by itself that a node is down.
func TestRestartsBehindNginxFailNoRequest(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	binary := installed(t, "nginx")
	nodes := startNodes(t)
	address := freeAddress(t)
	configuration := "daemon off; pid nginx.pid; worker_processes 2; events {}\n" +
		"http {\naccess_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n" +
		guideBlock(t, "nginx", map[string]string{
			"192.0.2.11:8080": nodes[0].Address, "192.0.2.12:8080": nodes[1].Address, "listen 8080": "listen " + address,
		}) + "}\n"
	startProxy(t, binary, configuration, "-p", ".", "-e", "stderr", "-c")

	await(t, "nginx does not answer", func() bool { return statusOf(t, address) == http.StatusOK })
	c := gather(t, address)
	rounds := times(3, 100)
	for i := range rounds {
		c.moreAnswers(between)
		restartNode(t, nodes[i%2])
	}
	c.moreAnswers(between)
	c.leave()
	t.Logf("%d restarts behind nginx, %v", rounds, c)
}

// startNodes starts two nodes on one PostgreSQL database, with the tenant of a crowd.
func startNodes(t *testing.T, flags ...string) [2]*process.Server {
	t.Helper()
	database := pgtest.URL(t)
	flags = append(flags, "--trusted-proxies", "127.0.0.1")
	nodes := [2]*process.Server{serve(t, database, flags...), serve(t, database, flags...)}
	makeCrowdTenant(t, nodes[0])
	return nodes
}

func restartNode(t *testing.T, node *process.Server) {
	t.Helper()
	stop(t, node)
	start(t, node)
}

// installed returns the path of a third-party program. Without it, the test is skipped,
// or fails where all tests must run.
func installed(t *testing.T, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name} {
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

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// guideBlock returns the code block of the guide in this language, with these replacements of text.
func guideBlock(t *testing.T, language string, replacements map[string]string) string {
	t.Helper()
	guide, err := os.ReadFile(restartGuide)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begun := bytes.Cut(guide, []byte("```"+language+"\n"))
	shown, _, ended := bytes.Cut(rest, []byte("```\n"))
	if !begun || !ended {
		t.Fatalf("the guide shows nothing of %s", language)
	}
	block := string(shown)
	for old, replacement := range replacements {
		if !strings.Contains(block, old) {
			t.Fatalf("the guide's %s does not say %q", language, old)
		}
		block = strings.ReplaceAll(block, old, replacement)
	}
	return block
}

// startProxy runs a proxy in a separate folder until the test ends. Its last argument is
// the path of the configuration.
func startProxy(t *testing.T, binary, configuration string, arguments ...string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "proxy.conf"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, append(arguments, "proxy.conf")...)
	command.Dir = folder
	var log process.Output
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("the proxy has ended before: %v", err)
		}
		_ = command.Wait() // haproxy exits like a process that was stopped by a signal
		if t.Failed() {
			t.Logf("the proxy said:\n%s", log.String())
		}
	})
}

// haproxyState returns the state of a node in haproxy: UP, DOWN, or a transition.
func haproxyState(t *testing.T, address, node string) string {
	t.Helper()
	answer, err := http.Get("http://" + address + "/;csv")
	if err != nil {
		return err.Error() // it does not listen yet
	}
	defer answer.Body.Close()
	table, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Split(line, ","); len(fields) > 17 && fields[0] == "rolecall" && fields[1] == node {
			return fields[17]
		}
	}
	t.Fatalf("haproxy knows nothing of %s:\n%s", node, table)
	return ""
}

// statusOf returns the status of /readyz at the address, or zero without a response.
func statusOf(t *testing.T, address string) int {
	t.Helper()
	answer, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		return 0
	}
	if err := readToEnd(answer); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	s := startServer(t, newTenant(t), "--public-url", "http://localhost/people")
	for _, args := range [][]string{{"--listen", s.address, "--public-url", "http://localhost/people/"}, {"--url", "http://" + s.address + "/people/livez"}} {
		if out := run(t, t.TempDir(), "", append([]string{"health"}, args...)...); !strings.Contains(out, "answered 200.") {
			t.Errorf("%q: %s", args, out)
		}
	}
}

// A proxy would answer in place of the node, or not reach the loopback addresses of this machine.
func TestHealthUsesNoProxy(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer proxy.Close()
	command := exec.Command("rolecall", "health", "--url", "http://0.0.0.0:1/readyz") // net/http uses no proxy for loopback addresses
	command.Env = append(os.Environ(), "HTTP_PROXY="+proxy.URL, "NO_PROXY=")
	if out, err := command.CombinedOutput(); err == nil {
		t.Errorf("a proxy answered in place of the node: %s", out)
	}
}

func TestHealthOfANodeWithTLS(t *testing.T) {
	s, _ := serveTLS(t)
	if out := run(t, s.command.Dir, "", "health", "--listen", s.address, "--tls-cert", "cert.pem"); !strings.Contains(out, "https://"+s.address+"/readyz answered 200.") {
		t.Error(out)
	}
}

func TestTheAddressOfTheNodeIsThatOfTheMachine(t *testing.T) {
	for listen, want := range map[string]string{":8080": "http://127.0.0.1:8080", "0.0.0.0:80": "http://127.0.0.1:80", "[::]:80": "http://127.0.0.1:80", "10.1.2.3:80": "http://10.1.2.3:80", "[::1]:80": "http://[::1]:80", "fd:3": ""} {
		s := served{Listen: listen}
		if got, err := s.local(); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", listen, got, err, want)
		}
	}
}

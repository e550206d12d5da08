package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
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
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("NO_PROXY", "")
	address := "http://192.0.2.1:80/readyz" // net/http uses no proxy for loopback addresses
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var stderr bytes.Buffer
	runCommand(ctx, []string{"health", "--url", address}, nil, nil, io.Discard, &stderr)
	if strings.Contains(stderr.String(), "proxyconnect") || strings.Contains(stderr.String(), "127.0.0.1:1") {
		t.Errorf("the request went to a proxy: %s", &stderr)
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

package main

import (
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

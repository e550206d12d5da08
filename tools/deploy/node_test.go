package deploy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	ownerEmail    = "ada@acme.example"
	ownerPassword = "correct horse battery staple"
)

// database returns the path of a new SQLite database with the tenant acme.
func database(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rolecall.db")
	output(t, program, "migrate", "--database", file)
	createTenant(t, "--database", file)
	return file
}

func createTenant(t *testing.T, args ...string) {
	t.Helper()
	create := exec.Command(program, append([]string{"tenant", "create", "acme", "--owner-email", ownerEmail, "--owner-name", "Ada Lovelace", "--password-stdin"}, args...)...)
	create.Stdin = strings.NewReader(ownerPassword + "\n")
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("create the tenant: %v\n%s", err, out)
	}
}

// createOperatorKey returns a new operator key with the scope all. The flags name the database.
func createOperatorKey(t *testing.T, flags ...string) string {
	t.Helper()
	var created struct{ Key string }
	answer := output(t, program, append([]string{"operator-key", "create", "Test", "--scope", "all", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(answer), &created); err != nil || created.Key == "" {
		t.Fatalf("create an operator key: %v %s", err, answer)
	}
	return created.Key
}

// startNode starts a node on the database and returns its address and its log. It is reached through
// proxies on this machine, under the public URL.
func startNode(t *testing.T, file, publicURL string, args ...string) (address string, log *syncBuffer) {
	t.Helper()
	address = "127.0.0.1:" + freePort(t)
	_, log = start(t, nil, program, append([]string{"serve", "--listen", address, "--database", file, "--public-url", publicURL, "--trusted-proxies", "127.0.0.1"}, args...)...)
	awaitOK(t, http.DefaultClient, "http://"+address+"/readyz")
	return address, log
}

// clientTo returns a client that trusts the certificate, and connects to the address for every host.
func clientTo(t *testing.T, address, cert string) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(cert)) {
		t.Fatal("the certificate is malformed")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	transport.DialContext = nil
	transport.Dial = func(string, string) (net.Conn, error) { return net.Dial("tcp", address) } //nolint:staticcheck // the address of the URL is ignored
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// signIn signs in as the owner of acme and returns the status and the session cookie. The client claims
// to have the address 203.0.113.7.
func signIn(t *testing.T, client *http.Client, url, password string) (status int, cookie string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"email": ownerEmail, "password": password})
	if err != nil {
		t.Fatal(err)
	}
	response, _ := send(t, client, http.MethodPost, url+"/auths/login", body, map[string]string{
		"x-tenant-schema": "acme", "content-type": "application/json", "x-forwarded-for": "203.0.113.7",
	})
	for _, c := range response.Cookies() {
		if c.Name == "session" {
			cookie = c.Name + "=" + c.Value
		}
	}
	return response.StatusCode, cookie
}

// send sends a request and returns the response with its body.
func send(t *testing.T, client *http.Client, method, url string, body []byte, header map[string]string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(content)
}

// testService checks that a service with TLS works through its proxy: a sign-in, the session, the source
// address of events, and a body that is too large.
func testService(t *testing.T, client *http.Client, url string) {
	t.Helper()
	awaitOK(t, client, url+"/readyz")
	if status, _ := signIn(t, client, url, "wrong"); status != http.StatusUnauthorized {
		t.Errorf("a sign-in with a wrong password got %d, want 401", status)
	}
	status, cookie := signIn(t, client, url, ownerPassword)
	if status != http.StatusOK || cookie == "" {
		t.Fatalf("the sign-in got %d and the cookie %q", status, cookie)
	}
	header := map[string]string{"x-tenant-schema": "acme", "cookie": cookie}
	response, body := send(t, client, http.MethodGet, url+"/auths/session", nil, header)
	if response.StatusCode != http.StatusOK || !strings.Contains(body, ownerEmail) {
		t.Errorf("the session: %d %s", response.StatusCode, body)
	}
	if response.Header.Get("Strict-Transport-Security") == "" {
		t.Error("the response has no Strict-Transport-Security")
	}
	_, events := send(t, client, http.MethodGet, url+"/events?type=session.started", nil, header)
	if !strings.Contains(events, `"source":"127.0.0.1"`) || strings.Contains(events, "203.0.113.7") {
		t.Errorf("the event of the sign-in does not have the address of the client: %s", events)
	}
	header["content-type"] = "application/json"
	response, _ = send(t, client, http.MethodPost, url+"/users", bytes.Repeat([]byte(" "), 70<<10), header)
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 70 KiB got %d, want 413", response.StatusCode)
	}
	for i := range 20 { // both nodes answer
		if response, body := send(t, client, http.MethodGet, url+"/auths/session", nil, header); response.StatusCode != http.StatusOK {
			t.Fatal(fmt.Errorf("request %d: %d %s", i, response.StatusCode, body))
		}
	}
}

// Package oidctest is an OpenID provider for tests. It signs a preset person in without interaction, and
// can misbehave in the ways that a test sets.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// The client that is registered at the provider.
const (
	ClientID     = "rolecall"
	ClientSecret = "the secret of rolecall: & + %"
)

// The paths of the endpoints.
const (
	PathMetadata      = "/.well-known/openid-configuration"
	PathAuthorization = "/authorize"
	PathToken         = "/token"
	PathKeys          = "/keys"
	PathUserInfo      = "/userinfo"
	PathEndSession    = "/end"
)

// Person is the person who signs in.
type Person struct {
	Subject  string
	Claims   map[string]any // further claims of the ID token, such as email
	UserInfo map[string]any // further claims of the userinfo endpoint
}

// Settings are the settings that a test can change. The functions change a message of the provider before it
// is sent.
type Settings struct {
	Person Person

	Metadata func(metadata map[string]any)
	Keys     func(keys []any) any // returns the document of the keys
	Callback func(query url.Values)
	Token    func(t *Token)
	Response func(response map[string]any) // of the token endpoint
	UserInfo func(t *Token)                // the userinfo endpoint responds with a signed token
	Handlers map[string]http.HandlerFunc   // replace endpoints, by path
}

// Provider is a running provider.
type Provider struct {
	Issuer string

	server   *httptest.Server
	roots    *x509.CertPool
	rootsPEM []byte

	mu       sync.Mutex
	settings Settings
	now      func() time.Time
	keys     []key // the last one signs
	codes    map[string]*authorization
	access   string         // the last access token
	idToken  string         // the last ID token
	requests map[string]int // by path
	last     map[string]url.Values
}

// Start starts a provider on a port of 127.0.0.1. It ends with the test.
func Start(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{
		settings: Settings{Person: Person{Subject: "248289761001", Claims: map[string]any{
			"email": "ada@acme.example", "email_verified": true, "name": "Ada Lovelace",
		}}},
		now: time.Now, keys: []key{firstKey()}, codes: map[string]*authorization{}, requests: map[string]int{}, last: map[string]url.Values{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc(PathMetadata, p.ServeMetadata)
	mux.HandleFunc(PathAuthorization, p.authorize)
	mux.HandleFunc(PathToken, p.token)
	mux.HandleFunc(PathKeys, p.publishKeys)
	mux.HandleFunc(PathUserInfo, p.userInfo)
	mux.HandleFunc(PathEndSession, p.endSession)
	p.server = httptest.NewUnstartedServer(p.record(mux))
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.EnableHTTP2 = true
	p.certify(t)
	p.server.StartTLS()
	t.Cleanup(p.server.Close)
	_, port, err := net.SplitHostPort(p.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p.Issuer = "https://localhost:" + port
	return p
}

// certify creates an authority, and the certificate of the server for localhost, 127.0.0.1 and example.com.
func (p *Provider) certify(t testing.TB) {
	t.Helper()
	authorityKey, errAuthority := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	serverKey, errServer := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if errAuthority != nil || errServer != nil {
		t.Fatal(errAuthority, errServer)
	}
	from, until := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "oidctest"}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: from, NotAfter: until,
		DNSNames: []string{"localhost", "example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.CreateCertificate(rand.Reader, server, authority, serverKey.Public(), authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	p.rootsPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	p.roots = x509.NewCertPool()
	p.roots.AppendCertsFromPEM(p.rootsPEM)
	p.server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf, root}, PrivateKey: serverKey}}}
}

// Roots returns the authority that issued the certificate of the provider.
func (p *Provider) Roots() *x509.CertPool { return p.roots }

// RootsPEM returns the authority as PEM.
func (p *Provider) RootsPEM() []byte { return p.rootsPEM }

// RootsFile returns a file with the authority, for SSL_CERT_FILE of a program.
func (p *Provider) RootsFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oidctest.pem")
	if err := os.WriteFile(path, p.rootsPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Set changes the settings.
func (p *Provider) Set(change func(s *Settings)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.settings)
}

// SetClock sets the clock of the provider.
func (p *Provider) SetClock(now func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// Stop stops the provider before the test ends.
func (p *Provider) Stop() { p.server.Close() }

// Requests returns the number of requests to the path.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// Last returns the parameters of the last request to the path.
func (p *Provider) Last(path string) url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.last[path])
}

// Authorize opens the authorization URL as a browser does, and returns the URL to which the provider
// redirects it.
func (p *Provider) Authorize(t testing.TB, authorizationURL string) *url.URL {
	t.Helper()
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	response, err := client.Get(authorizationURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	location, err := response.Location()
	if err != nil {
		body, _ := io.ReadAll(response.Body)
		t.Fatalf("the authorization endpoint responded with %d: %s", response.StatusCode, body)
	}
	return location
}

// record counts requests, and calls the handlers that a test has set.
func (p *Provider) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		p.mu.Lock()
		p.requests[r.URL.Path]++
		p.last[r.URL.Path] = maps.Clone(r.Form)
		replaced := p.settings.Handlers[r.URL.Path]
		p.mu.Unlock()
		if replaced != nil {
			replaced(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

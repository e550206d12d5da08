package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

// providerSuites are the tests of sign-ins with identity providers. They have a separate program, which
// reaches the providers of this machine.
var providerSuites = []struct {
	name string
	run  func(*testing.T, *providerWorld)
}{
	{"first sign-in", testFirstSignIn},
	{"provisioning", testProvisioningOfUsers},
	{"invitation", testInvitationWithProvider},
	{"tabs", testTabs},
	{"state", testStates},
	{"mix-up", testMixUp},
	{"return addresses", testReturnAddresses},
	{"bearer", testBearerWithProvider},
	{"link to a sign-in", testLinkToSignIn},
	{"confirm", testConfirmWithProvider},
	{"link", testLink},
	{"too many identities", testTooManyIdentities},
	{"deletion", testDeletionOfIdentities},
	{"sign-out", testSignOutAtProvider},
	{"groups", testGroupsFromClaims},
	{"down", testProviderDown},
	{"redirecting", testProviderRedirects},
	{"slow", testProviderSlow},
	{"private address", testProviderAtPrivateAddress},
}

// publicTLS is the public URL of the program in these tests, so that the cookies are as in production.
const publicTLS = "https://id.example.com"

// TestIdentityProviders signs in with providers as an application and a browser do.
func TestIdentityProviders(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p, providers := serveWithProviders(t, store, 2*len(providerSuites)) // each test has two
			for i, suite := range providerSuites {
				t.Run(suite.name, func(t *testing.T) {
					t.Parallel()
					suite.run(t, newProviderWorld(t, p, providers[2*i], providers[2*i+1]))
				})
			}
		})
	}
}

// serveWithProviders starts a program with an operator key that trusts n new providers.
func serveWithProviders(t *testing.T, store store, n int) (*program, []*oidctest.Provider) {
	t.Helper()
	database := store.database(t)
	var providers []*oidctest.Provider
	var roots bytes.Buffer
	for range n {
		provider := oidctest.Start(t)
		providers = append(providers, provider)
		roots.Write(provider.RootsPEM())
	}
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, roots.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, build(t), database, "--public-url", publicTLS, "--oidc-return-urls", returnURLs, "--oidc-networks", "127.0.0.1/32,::1/128")
	p.Env = append(p.Env, "SSL_CERT_FILE="+file)
	p.start(t)
	t.Cleanup(func() { p.stop(t) })
	p.operator = p.operatorKey(t)
	return p, providers
}

// providerWorld is a tenant with a connection to a provider.
type providerWorld struct {
	*world
	provider   *oidctest.Provider
	connection string
	other      *oidctest.Provider // without a connection
}

func newProviderWorld(t *testing.T, p *program, provider, other *oidctest.Provider) *providerWorld {
	t.Helper()
	w := &providerWorld{world: newWorld(t, p), provider: provider, other: other}
	w.connection = w.connect(t, provider, "Acme SSO")
	return w
}

// connect creates a connection to the provider, and returns its id.
func (w *world) connect(t testing.TB, provider *oidctest.Provider, name string) string {
	t.Helper()
	body := `{"name":` + quoted(name) + `,"issuer":` + quoted(provider.Issuer) + `,"clientId":` + quoted(oidctest.ClientID) + `,"clientSecret":` + quoted(oidctest.ClientSecret) + `}`
	return w.owner.do(t, "POST /connections", body).expect(t, 201).text("/id")
}

// change changes the connection.
func (w *providerWorld) change(t testing.TB, body string) {
	t.Helper()
	w.owner.do(t, "PATCH /connections/"+w.connection, body).expect(t, 200)
}

// provisions lets the connection create users with the role Viewer.
func (w *providerWorld) provisions(t testing.TB) {
	t.Helper()
	w.change(t, `{"provisioning":{"roleIds":["`+w.builtIn(t, "viewer")+`"],"department":"Sales"}}`)
}

// person sets the person who signs in at the provider, who has a verified address.
func person(provider *oidctest.Provider, name string) {
	claims := map[string]any{"email": address(name), "email_verified": true, "name": "User " + name}
	provider.Set(func(s *oidctest.Settings) { s.Person = oidctest.Person{Subject: name, Claims: claims} })
}

// userAgent has the cookies of a browser, by name.
type userAgent map[string]string

// cookie is the header with the cookies.
func (b userAgent) cookie() string {
	var pairs []string
	for name, value := range b {
		pairs = append(pairs, name+"="+value)
	}
	return "cookie: " + strings.Join(pairs, "; ")
}

// attempts returns the names of the cookies of sign-ins that have begun.
func (b userAgent) attempts() (names []string) {
	for name := range b {
		if strings.HasPrefix(name, "__Host-rolecall_attempt-") {
			names = append(names, name)
		}
	}
	return names
}

// visit opens a URL of the program by navigation, without a tenant in the header.
func (b userAgent) visit(t testing.TB, w *world, address string) *answer {
	t.Helper()
	path, ours := strings.CutPrefix(address, publicTLS)
	if !ours {
		t.Fatalf("%s is not a URL of the program", address)
	}
	return b.keep(w.anonymous().do(t, "GET "+path, "", "-x-tenant-schema", b.cookie()))
}

// exchange exchanges the code for a session in a cookie of the browser.
func (b userAgent) exchange(t testing.TB, w *world, code string) *answer {
	t.Helper()
	return b.keep(w.anonymous().do(t, "POST /auths/codes/exchange", exchangeBody(code, appVerifier, ""), b.cookie()))
}

// keep stores the cookies of the response.
func (b userAgent) keep(a *answer) *answer {
	for _, cookie := range a.cookies {
		if b[cookie.Name] = cookie.Value; cookie.MaxAge < 0 || cookie.Value == "" {
			delete(b, cookie.Name)
		}
	}
	return a
}

// user returns the caller with the session of the browser.
func (b userAgent) user(t testing.TB, w *world) *caller {
	t.Helper()
	c := &caller{world: w, tenant: w.name, token: b["session"]}
	c.id = c.do(t, "GET /auths/session", "").expect(t, 200).text("/principal/id")
	return c
}

// startBody is the body of POST /auths/oidc/start, with further members. Without a purpose, it has the challenge of
// a sign-in.
func (w *providerWorld) startBody(returnTo, more string) string {
	if !strings.Contains(more, `"purpose"`) {
		more += `,"codeChallenge":"` + challengeOf(appVerifier) + `"`
	}
	return `{"connectionId":"` + w.connection + `","returnTo":` + quoted(returnTo) + more + `}`
}

// start starts a sign-in and returns the URL that the browser opens.
func (w *providerWorld) start(t testing.TB, c *caller, returnTo, more string) string {
	t.Helper()
	return c.do(t, "POST /auths/oidc/start", w.startBody(returnTo, more)).expect(t, 200).text("/url")
}

// leave opens the URL of a started sign-in, and returns the page of the provider.
func (w *providerWorld) leave(t testing.TB, b userAgent, started string) string {
	t.Helper()
	return b.visit(t, w.world, started).expect(t, 303).header.Get("Location")
}

// begin starts a sign-in and signs in at the provider. It returns the URL of the callback.
func (w *providerWorld) begin(t testing.TB, b userAgent) string {
	t.Helper()
	return w.provider.Authorize(t, w.leave(t, b, w.start(t, w.anonymous(), w.returnTo(), ""))).String()
}

// completed completes a sign-in from its start, and returns the parameters with which the browser returns.
func (w *providerWorld) completed(t testing.TB, b userAgent, c *caller, returnTo, more string) url.Values {
	t.Helper()
	callback := w.provider.Authorize(t, w.leave(t, b, w.start(t, c, returnTo, more))).String()
	return returned(t, b.visit(t, w.world, callback), returnTo)
}

// signsIn signs in with a new browser, which must get a session.
func (w *providerWorld) signsIn(t testing.TB) *caller {
	t.Helper()
	b := userAgent{}
	query := w.completed(t, b, w.anonymous(), w.returnTo(), "")
	b.exchange(t, w.world, query.Get("code")).expect(t, 200)
	return b.user(t, w.world)
}

// fails signs in with a new browser, which must return with the error and without a session.
func (w *providerWorld) fails(t testing.TB, code, more string) {
	t.Helper()
	b := userAgent{}
	if query := w.completed(t, b, w.anonymous(), w.returnTo(), more); query.Encode() != "error="+code || b["session"] != "" {
		t.Errorf("the sign-in returned %v, want %s", query, code)
	}
}

// returned returns the parameters with which the browser returns to the address.
func returned(t testing.TB, a *answer, returnTo string) url.Values {
	t.Helper()
	location := a.expect(t, 303).header.Get("Location")
	rest, found := strings.CutPrefix(location, returnTo)
	query, err := url.ParseQuery(strings.TrimPrefix(rest, "?"))
	if !found || err != nil {
		t.Fatalf("the browser returns to %s, not to %s", location, returnTo)
	}
	return query
}

// The verifier of an application, and its challenge (PKCE).
const appVerifier = "a-verifier-of-the-application-with-43-letters"

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// appReturn is the address of an app.
const appReturn = "com.example.app:/signed-in"

// byHeader is the rest of an exchange for a session in the Authorization header.
const byHeader = `,"transport":"bearer"`

func exchangeBody(code, verifier, more string) string {
	return `{"code":` + quoted(code) + `,"codeVerifier":` + quoted(verifier) + more + `}`
}

// identities returns the ids of the identities of the user.
func (w *world) identities(t testing.TB, user string) []string {
	t.Helper()
	return w.owner.do(t, "GET /users/"+user+"/identities", "").expect(t, 200).texts("id")
}

// replaced sets a handler for one of the endpoints of the provider.
func replaced(provider *oidctest.Provider, path string, handler http.HandlerFunc) {
	provider.Set(func(s *oidctest.Settings) { s.Handlers = map[string]http.HandlerFunc{path: handler} })
}

package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/web"
)

const (
	appReturn    = "https://acme.app.example/signed-in"
	mobileReturn = "com.example.app:/signed-in"
	verifier     = "a-verifier-of-the-application-with-43-letters"
)

var codeChallenge = base64.RawURLEncoding.EncodeToString(secret.Token(verifier).Hash())

// oidcServer is a testServer with an identity provider and a connection to it. The owner has an identity
// there.
type oidcServer struct {
	*testServer
	provider   *oidctest.Provider
	tenant     rolecall.Tenant
	connection rolecall.Connection
}

func newOIDCServer(t *testing.T) *oidcServer {
	t.Helper()
	s := &oidcServer{provider: oidctest.Start(t)}
	s.testServer = newTestServerWith(t, web.Options{InsecureCookie: true, ReturnTo: []string{"https://{tenant}.app.example/signed-in", mobileReturn, "https://query.example/?a=b"}})
	s.newProviders()
	tenant, err := s.node.Directory.Tenant(t.Context(), tenantName)
	if err != nil {
		t.Fatal(err)
	}
	s.tenant = tenant
	now := s.node.Access.Now()
	s.connection = rolecall.Connection{
		ID: rolecall.NewID[rolecall.Connection](now), Name: "Acme SSO", Issuer: s.provider.Issuer, ClientID: oidctest.ClientID, Domains: []string{}, Linking: rolecall.LinkInvited,
		SecondFactor: rolecall.FactorRequire, ACRValues: []string{}, AMRValues: []string{}, CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	s.connection.Secret = []byte(s.keys.Seal("connection", []byte(oidctest.ClientSecret), append(tenant.ID[:], s.connection.ID[:]...)))
	err = s.node.Access.Store.Update(t.Context(), tenant.ID, func(tx *store.Tx) error {
		tx.InsertConnection(s.connection)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.identify(s.ownerID, "owner-1")
	s.person("owner-1", nil)
	return s
}

// newProviders makes the server forget what it knows of providers.
func (s *oidcServer) newProviders() {
	s.node.Access.OIDC = oidc.New(oidc.Options{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: s.provider.Roots()})
}

// identify links an identity to the user.
func (s *oidcServer) identify(user, subject string) {
	s.t.Helper()
	id, err := rolecall.ParseID[rolecall.User](user)
	if err == nil {
		now := s.node.Access.Now()
		err = s.node.Access.Store.Update(s.t.Context(), s.tenant.ID, func(tx *store.Tx) error {
			tx.InsertIdentity(rolecall.Identity{ID: rolecall.NewID[rolecall.Identity](now), UserID: id, ConnectionID: s.connection.ID, Issuer: s.connection.Issuer, Subject: subject, CreatedAt: now})
			return nil
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *oidcServer) person(subject string, claims map[string]any) {
	s.provider.Set(func(settings *oidctest.Settings) { settings.Person = oidctest.Person{Subject: subject, Claims: claims} })
}

// startBody is the body of POST /auths/oidc/start, with further members.
func (s *oidcServer) startBody(returnTo, more string) string {
	return `{"connectionId":"` + s.connection.ID.String() + `","returnTo":` + strconv.Quote(returnTo) + more + `}`
}

// signInStart is startBody for a sign-in with codeChallenge.
func (s *oidcServer) signInStart(returnTo, more string) string {
	return s.startBody(returnTo, `,"codeChallenge":"`+codeChallenge+`"`+more)
}

// browser has the cookies of a browser, by name.
type browser map[string]string

func (b browser) header() string {
	var pairs []string
	for name, value := range b {
		pairs = append(pairs, name+"="+value)
	}
	return strings.Join(pairs, "; ")
}

// visit opens a URL of the server by navigation, without x-tenant-schema.
func (s *oidcServer) visit(b browser, address string) reply {
	s.t.Helper()
	path, ok := strings.CutPrefix(address, s.url)
	if !ok {
		s.t.Fatalf("%s is not on the server", address)
	}
	return b.keep(s.request("GET", path, "", "X-Tenant-Schema", "", "Cookie", b.header()))
}

// keep stores the cookies of the response.
func (b browser) keep(r reply) reply {
	for _, cookie := range r.Cookies() {
		if cookie.MaxAge <= 0 {
			delete(b, cookie.Name)
		} else {
			b[cookie.Name] = cookie.Value
		}
	}
	return r
}

// started starts a sign-in, and returns the URL to open.
func (s *oidcServer) started(body string, headers ...string) string {
	s.t.Helper()
	r := s.request("POST", "/auths/oidc/start", body, headers...)
	if r.StatusCode != http.StatusOK {
		s.t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	address, _ := r.document(s.t)["url"].(string)
	return address
}

// authorized lets the browser sign in at the provider, and returns the URL of the callback.
func (s *oidcServer) authorized(b browser, address string) string {
	s.t.Helper()
	r := s.visit(b, address)
	if r.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	back := s.provider.Authorize(s.t, r.Header.Get("Location"))
	return back.String()
}

// returned fails the test unless the browser returns to the address, and returns the query.
func (s *oidcServer) returned(r reply, address string) url.Values {
	s.t.Helper()
	location := r.Header.Get("Location")
	rest, found := strings.CutPrefix(location, address)
	if r.StatusCode != http.StatusSeeOther || !found {
		s.t.Fatalf("%d to %q: %s", r.StatusCode, location, r.body)
	}
	query, err := url.ParseQuery(strings.TrimLeft(rest, "?&"))
	if err != nil {
		s.t.Fatal(err)
	}
	return query
}

// signedIn signs in with a page of an application in the browser, and returns the response of the exchange.
func (s *oidcServer) signedIn(b browser) reply {
	s.t.Helper()
	code := s.code(b, s.started(s.signInStart(appReturn, "")), appReturn)
	return b.keep(s.request("POST", "/auths/codes/exchange", exchangeBody(code, verifier, ""), "Cookie", b.header()))
}

// A link that starts a sign-in signs no browser in: only the application that has the verifier can exchange the code.
func TestALinkToASignInKeepsTheSessionOfTheBrowser(t *testing.T) {
	s := newOIDCServer(t)
	bob, id := s.member("bob", []string{"users:read"})
	b := browser{"session": strings.TrimPrefix(bob, "session=")}
	code := s.code(b, s.started(s.signInStart(appReturn, "")), appReturn) // started by the owner, opened by bob
	if len(b) != 1 || "session="+b["session"] != bob {
		t.Errorf("the cookies are %v", b)
	}
	if who := s.as(bob, "GET", "/auths/session", "").document(t); who["principal"].(map[string]any)["id"] != id {
		t.Errorf("who is signed in is %v", who)
	}
	r := s.request("POST", "/auths/codes/exchange", exchangeBody(code, string(secret.NewToken()), ""), "Cookie", bob)
	expectProblem(t, r, 401, "sign-in-code-invalid")
	if len(r.Cookies()) > 0 {
		t.Errorf("the response sets %v", r.Cookies())
	}
}

func TestASignInWithAProviderSetsTheSessionCookie(t *testing.T) {
	s := newOIDCServer(t)
	b := browser{"session": strings.TrimPrefix(s.owner, "session=")}
	address := s.started(s.signInStart(appReturn, ""))
	if !strings.HasPrefix(address, s.url+"/auths/oidc/begin?ticket=") {
		t.Fatalf("the URL is %s", address)
	}
	callback := s.authorized(b, address)
	if len(b) != 2 {
		t.Fatalf("the cookies are %v", b)
	}
	query := s.returned(s.visit(b, callback), appReturn)
	if len(query) != 1 || len(b) != 1 || "session="+b["session"] != s.owner {
		t.Errorf("the query is %v, and the cookies are %v", query, b)
	}
	r := b.keep(s.request("POST", "/auths/codes/exchange", exchangeBody(query.Get("code"), verifier, ""), "Cookie", b.header()))
	if d := r.document(t); r.StatusCode != http.StatusOK || d["token"] != nil || d["deviceToken"] != nil {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	for _, line := range r.Header.Values("Set-Cookie") {
		if !strings.Contains(line, "HttpOnly") || !strings.Contains(line, "SameSite=Lax") {
			t.Errorf("the cookie is %s", line)
		}
	}
	if who := s.as("session="+b["session"], "GET", "/auths/session", "").document(t); who["principal"].(map[string]any)["id"] != s.ownerID {
		t.Errorf("who is signed in is %v", who)
	}
	expectProblem(t, s.as(s.owner, "GET", "/auths/session", ""), 401, "unauthenticated") // the session before has ended
	for name := range b {
		if strings.HasPrefix(name, "rolecall_attempt-") {
			t.Errorf("the cookie %s is left", name)
		}
	}
	expectProblem(t, s.visit(b, callback), 403, "sign-in-attempt-invalid")
	if strings.Contains(s.log.String(), "ticket") || strings.Contains(s.log.String(), "state=") {
		t.Error("the log has a secret")
	}
}

func TestACallbackOfAnotherBrowserIsRefused(t *testing.T) {
	s := newOIDCServer(t)
	b := browser{}
	callback := s.authorized(b, s.started(s.signInStart(appReturn, "")))
	stranger := browser{}
	r := s.visit(stranger, callback)
	expectProblem(t, r, 403, "sign-in-attempt-invalid")
	if r.Header.Get("Location") != "" || len(stranger) != 0 {
		t.Errorf("the answer redirects to %q and sets %v", r.Header.Get("Location"), stranger)
	}
	other := browser{}
	swapped := s.authorized(other, s.started(s.signInStart(appReturn, "")))
	expectProblem(t, s.visit(b, swapped), 403, "sign-in-attempt-invalid")
	var name, value string
	for name, value = range b {
	}
	moved := browser{}
	for other := range other {
		moved[other] = value // the content of an attempt in the cookie of another one
	}
	expectProblem(t, s.visit(moved, swapped), 403, "sign-in-attempt-invalid")
	twice := s.request("GET", strings.TrimPrefix(callback, s.url), "", "X-Tenant-Schema", "", "Cookie", name+"="+value+"; "+name+"="+value)
	expectProblem(t, twice, 403, "sign-in-attempt-invalid")
	own, another := s.connection.ID.String(), rolecall.NewID[rolecall.Connection](1).String()
	page := s.url + "/auths/oidc/callback/"
	for _, address := range []string{
		page + "x", page + own + "?state=x", page + own + "?code=a&state=a&state=b", strings.Replace(callback, own, another, 1),
		s.url + "/auths/oidc/begin", s.url + "/auths/oidc/begin?ticket=" + value,
	} {
		expectProblem(t, s.visit(b, address), 403, "sign-in-attempt-invalid")
	}
	if head := s.request("HEAD", strings.TrimPrefix(callback, s.url), "", "X-Tenant-Schema", "", "Cookie", b.header()); head.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("HEAD: %d", head.StatusCode)
	}
	s.returned(s.visit(b, callback), appReturn) // none of these has used the attempt up
}

func TestSeveralTabsSignIn(t *testing.T) {
	s := newOIDCServer(t)
	b := browser{}
	var callbacks []string
	for range 7 {
		callbacks = append(callbacks, s.authorized(b, s.started(s.signInStart(appReturn, ""))))
	}
	if len(b) != 5 {
		t.Errorf("the browser has %d cookies", len(b))
	}
	for i, callback := range callbacks {
		if r := s.visit(b, callback); i < 2 {
			expectProblem(t, r, 403, "sign-in-attempt-invalid")
		} else {
			s.returned(r, appReturn)
		}
	}
}

func TestReturnAddressesAreExact(t *testing.T) {
	s := newOIDCServer(t)
	for _, returnTo := range []string{
		"https://acme.app.example/signed-in/", "https://acme.app.example/signed-in?x=y", "https://acme.app.example/signed-in#x", "https://acme.app.example",
		"https://acme.app.example.evil.example/signed-in", "https://acme.app.example@evil.example/signed-in", "https://evil@acme.app.example/signed-in",
		"HTTPS://acme.app.example/signed-in", "https://ACME.app.example/signed-in", "https://acme.app.example/%73igned-in", "https://acme.app.example:443/signed-in",
		"http://acme.app.example/signed-in", "//acme.app.example/signed-in", "https://other.app.example/signed-in", "https://{tenant}.app.example/signed-in",
		" https://acme.app.example/signed-in", "https://acme.app.example\\@evil.example/signed-in", "com.example.app:/signed-in/x", "com.example.app://signed-in",
		"javascript:alert(1)", "/console/acme", s.url + "/console/acme", s.url + "/console/acme/sign-in", s.url + "/console/other/sign-in", "https://acme.app.example/signed-in\n",
	} {
		r := s.request("POST", "/auths/oidc/start", s.signInStart(returnTo, ""))
		if r.StatusCode != http.StatusUnprocessableEntity || r.faults(t) != "/returnTo unregistered" {
			t.Errorf("%q: %d %s", returnTo, r.StatusCode, r.body)
		}
	}
	for _, returnTo := range []string{appReturn, mobileReturn, "https://query.example/?a=b"} {
		s.started(s.signInStart(returnTo, ""))
	}
	expectProblem(t, s.request("POST", "/auths/oidc/start", s.signInStart("https://nobody.app.example/signed-in", ""), "X-Tenant-Schema", "nobody"), 404, "not-found")
}

// An attempt is in a cookie, and browsers refuse cookies of more than 4 KiB.
func TestTheContentOfAnAttemptIsBounded(t *testing.T) {
	s := newOIDCServer(t)
	long := strings.Repeat("a", 5000)
	for more, want := range map[string]string{
		`,"email":"ada"`:                      "/email email",
		`,"email":"ada\u0000@example.com"`:    "/email control-character",
		`,"email":"` + long + `@example.com"`: "/email length",
		`,"invitation":"` + long + `"`:        "/invitation format",
	} {
		if r := s.request("POST", "/auths/oidc/start", s.signInStart(appReturn, more)); r.StatusCode != http.StatusUnprocessableEntity || r.faults(t) != want {
			t.Errorf("%.40s: %d %s", more, r.StatusCode, r.body)
		}
	}
	b := browser{}
	email := strings.Repeat("a", 64) + "@" + strings.Repeat(strings.Repeat("b", 59)+".", 3) + "example"
	s.authorized(b, s.started(s.signInStart(mobileReturn, `,"email":"`+email+`","invitation":"`+string(secret.NewToken())+`"`)))
	for name, value := range b {
		if size := len(name) + len(value); size > 2048 {
			t.Errorf("the cookie of an attempt has %d bytes", size)
		}
	}
}

func TestRefusalsReturnToTheApplication(t *testing.T) {
	s := newOIDCServer(t)
	s.person("unknown", nil)
	b := browser{}
	query := s.returned(s.visit(b, s.authorized(b, s.started(s.signInStart("https://query.example/?a=b", "")))), "https://query.example/?a=b&")
	if query.Encode() != "error=identity-unknown" || len(b) != 0 {
		t.Errorf("%v, cookies %v", query, b)
	}
	callback, err := url.Parse(s.authorized(b, s.started(s.signInStart(appReturn, ""))))
	if err != nil {
		t.Fatal(err)
	}
	values := callback.Query()
	values.Set("iss", "https://mixed-up.example")
	callback.RawQuery = values.Encode()
	query = s.returned(s.visit(b, callback.String()), appReturn)
	if query.Encode() != "error=sign-in-refused" {
		t.Errorf("the query is %v", query)
	}
	first := s.authorized(b, s.started(s.signInStart(appReturn, "")))
	second := s.started(s.signInStart(appReturn, ""))
	s.provider.Set(func(settings *oidctest.Settings) {
		settings.Handlers = map[string]http.HandlerFunc{oidctest.PathToken: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }}
	})
	query = s.returned(s.visit(b, first), appReturn)
	if query.Encode() != "error=connection-unavailable" {
		t.Errorf("the query is %v", query)
	}
	s.provider.Stop()
	s.newProviders()
	expectProblem(t, s.request("POST", "/auths/oidc/start", s.signInStart(appReturn, "")), 503, "connection-unavailable")
	expectProblem(t, s.visit(b, second), 503, "connection-unavailable")
}

// Sign-ins have the concurrency limiter of sessions: before and after the time in which they wait for the
// provider.
func TestAnOverloadedServerStartsAndCompletesNoSignIn(t *testing.T) {
	t.Parallel() // because a refused request waits for a second
	s := newOIDCServer(t)
	b := browser{}
	address := s.started(s.signInStart(appReturn, ""))
	free := s.site.Occupy(t.Context(), web.SessionLimiter)
	expectProblem(t, s.request("POST", "/auths/oidc/start", s.signInStart(appReturn, "")), 503, "unavailable")
	expectProblem(t, s.visit(b, address), 503, "unavailable")
	free()
	callback := s.authorized(b, address)
	s.provider.Set(func(settings *oidctest.Settings) {
		settings.Response = func(map[string]any) { free = s.site.Occupy(t.Context(), web.SessionLimiter) }
	})
	query := s.returned(s.visit(b, callback), appReturn)
	free()
	if query.Encode() != "error=connection-unavailable" || len(b) != 0 {
		t.Errorf("%v, cookies %v", query, b)
	}
}

// byHeader is the rest of an exchange for a session in the Authorization header.
const byHeader = `,"transport":"bearer"`

func exchangeBody(code, verifier, more string) string {
	return `{"code":"` + code + `","codeVerifier":"` + verifier + `"` + more + `}`
}

// code returns the code with which the browser returns.
func (s *oidcServer) code(b browser, address, returnTo string) string {
	s.t.Helper()
	query := s.returned(s.visit(b, s.authorized(b, address)), returnTo)
	if !query.Has("code") {
		s.t.Fatalf("the browser returns with %v", query)
	}
	return query.Get("code")
}

func TestACodeOfAProviderIsExchangedForTokens(t *testing.T) {
	s := newOIDCServer(t)
	b := browser{"session": strings.TrimPrefix(s.owner, "session=")}
	code := s.code(b, s.started(s.signInStart(mobileReturn, "")), mobileReturn)
	if len(b) != 1 {
		t.Errorf("the cookies are %v", b)
	}
	token, device := s.request("POST", "/auths/codes/exchange", exchangeBody(code, verifier, byHeader), "Cookie", s.owner).headerTokensIn(t)
	if device == "" {
		t.Error("the response has no known-device token")
	}
	if r := s.bearing(token, "GET", "/auths/session", ""); r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := s.as(s.owner, "GET", "/auths/session", ""); r.StatusCode != http.StatusOK {
		t.Errorf("the session in the cookie: %d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.request("POST", "/auths/codes/exchange", exchangeBody(code, verifier, byHeader)), 401, "sign-in-code-invalid")
	expectProblem(t, s.request("POST", "/auths/codes/exchange", exchangeBody("x", verifier, byHeader)), 401, "sign-in-code-invalid")
	both := s.bearing(token, "POST", "/auths/codes/exchange", exchangeBody(code, verifier, byHeader), "Cookie", s.owner)
	expectProblem(t, both, 400, "malformed-request")
	expectProblem(t, s.bearing(token, "POST", "/auths/oidc/start", s.signInStart(appReturn, ""), "Cookie", s.owner), 400, "malformed-request")
	for more, want := range map[string]string{
		``:                     "/codeChallenge required",
		`,"purpose":"sign-in"`: "/codeChallenge required",
		`,"codeChallenge":"` + codeChallenge[1:] + `"`:                  "/codeChallenge format",
		`,"purpose":"link","codeChallenge":"x"`:                         "/codeChallenge format",
		`,"codeChallenge":"` + codeChallenge + `","transport":"cookie"`: "/transport unknown",
		`,"codeChallenge":"` + codeChallenge + `","purpose":"admin"`:    "/purpose unknown-value",
		`,"codeChallenge":"` + codeChallenge + `","invitation":"x"`:     "/invitation format",
	} {
		if r := s.request("POST", "/auths/oidc/start", s.startBody(appReturn, more)); r.StatusCode != http.StatusUnprocessableEntity || r.faults(t) != want {
			t.Errorf("%s: %d %s", more, r.StatusCode, r.body)
		}
	}
	if r := s.request("POST", "/auths/codes/exchange", `{"code":"`+code+`"}`); r.StatusCode != http.StatusUnprocessableEntity || r.faults(t) != "/codeVerifier required" {
		t.Errorf("without a verifier: %d %s", r.StatusCode, r.body)
	}
}

func TestAProviderConfirmsTheUserOfTheSession(t *testing.T) {
	s := newOIDCServer(t)
	confirmStart := s.startBody(appReturn, `,"purpose":"confirm"`)
	expectProblem(t, s.request("POST", "/auths/oidc/start", confirmStart), 401, "unauthenticated")
	b := browser{}
	code := s.code(b, s.started(confirmStart, "Cookie", s.owner), appReturn)
	if s.provider.Last(oidctest.PathAuthorization).Get("max_age") != "0" {
		t.Error("the provider was not requested to authenticate the user again")
	}
	other := s.signIn(ownerEmail, ownerPassword)
	confirm := func(cookie, code string) reply {
		return s.as(cookie, "POST", "/auths/confirm", `{"connectionCode":"`+code+`"}`)
	}
	if r := confirm(other, code); r.StatusCode != 422 || r.faults(t) != "/connectionCode wrong" {
		t.Errorf("in another session: %d %s", r.StatusCode, r.body)
	}
	r := confirm(s.owner, code)
	if r.StatusCode != http.StatusOK || r.document(t)["confirmedAt"] == nil {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	confirmed := r.sessionCookie()
	if r := confirm(confirmed, code); r.StatusCode != 422 {
		t.Errorf("twice: %d %s", r.StatusCode, r.body)
	}
	signInCode := s.code(b, s.started(s.signInStart(appReturn, "")), appReturn)
	if r := confirm(confirmed, signInCode); r.StatusCode != 422 {
		t.Errorf("the code of a sign-in: %d %s", r.StatusCode, r.body)
	}
	for _, stated := range []any{nil, s.node.Access.Now().Std().Unix() - 3600} {
		s.provider.Set(func(settings *oidctest.Settings) {
			settings.Token = func(token *oidctest.Token) { token.Claims["auth_time"] = stated }
		})
		query := s.returned(s.visit(b, s.authorized(b, s.started(confirmStart, "Cookie", confirmed))), appReturn)
		if query.Encode() != "error=sign-in-refused" {
			t.Errorf("auth_time %v: %v", stated, query)
		}
	}
	s.provider.Set(func(settings *oidctest.Settings) { settings.Token = nil })
	_, id := s.member("bob", []string{"users:read"})
	s.identify(id, "bob-1")
	s.person("bob-1", nil)
	query := s.returned(s.visit(b, s.authorized(b, s.started(confirmStart, "Cookie", confirmed))), appReturn)
	if query.Encode() != "error=sign-in-refused" {
		t.Errorf("another user: %v", query)
	}
}

func TestASignedInUserLinksAnIdentity(t *testing.T) {
	s := newOIDCServer(t)
	bob, id := s.member("bob", []string{"users:read"})
	s.person("bob-1", map[string]any{"email": "bob@elsewhere.example"}) // not verified
	b := browser{}
	linkStart := s.startBody(appReturn, `,"purpose":"link"`)
	code := s.code(b, s.started(linkStart, "Cookie", bob), appReturn)
	link := func(cookie, code string) reply {
		return s.as(cookie, "POST", "/auths/oidc/link", `{"code":"`+code+`"}`)
	}
	if r := link(s.owner, code); r.StatusCode != 422 || r.faults(t) != "/code wrong" { // the code of another user, for example by a link
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	r := link(bob, code)
	if d := r.document(t); r.StatusCode != http.StatusOK || d["userId"] != id || d["subject"] != "bob-1" {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := link(bob, code); r.StatusCode != 422 {
		t.Errorf("twice: %d %s", r.StatusCode, r.body)
	}
	s.signedIn(b)
	if who := s.as("session="+b["session"], "GET", "/auths/session", "").document(t); who["principal"].(map[string]any)["id"] != id {
		t.Errorf("who is signed in is %v", who)
	}
	code = s.code(b, s.started(linkStart, "Cookie", s.owner), appReturn)
	expectProblem(t, link(s.owner, code), 409, "identity-taken")
}

func TestASecondFactorFollowsTheProvider(t *testing.T) {
	s := newOIDCServer(t)
	if r := s.as(s.owner, "PATCH", "/tenant", `{"settings":{"secondFactor":{"required":"all"}}}`); r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	b := browser{}
	r := s.signedIn(b)
	expectProblem(t, r, 401, "second-factor-enrolment-required")
	challenge, _ := r.document(t)["challenge"].(string)
	if len(b) != 0 {
		t.Fatalf("the cookies are %v", b)
	}
	if r := s.request("POST", "/auths/login/enrolment", `{"challenge":"`+challenge+`"}`); r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	code := s.code(b, s.started(s.signInStart(mobileReturn, "")), mobileReturn)
	expectProblem(t, s.request("POST", "/auths/codes/exchange", exchangeBody(code, verifier, byHeader)), 401, "second-factor-enrolment-required")
}

func TestASignOutReturnsTheAddressOfTheProvider(t *testing.T) {
	s := newOIDCServer(t)
	signOut := func(cookie, returnTo string) reply {
		return s.as(cookie, "POST", "/auths/oidc/sign-out", `{"returnTo":`+strconv.Quote(returnTo)+`}`)
	}
	signedIn := func() string {
		b := browser{}
		s.signedIn(b)
		return "session=" + b["session"]
	}
	session := signedIn()
	listed := s.as(session, "GET", "/users/"+s.ownerID+"/sessions", "").items(t)
	if listed[0]["connectionId"] != s.connection.ID.String() || listed[1]["connectionId"] != nil {
		t.Errorf("the sessions are %v", listed)
	}
	if r := signOut(session, "https://evil.example/"); r.StatusCode != 422 || r.faults(t) != "/returnTo unregistered" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	r := signOut(session, appReturn)
	address, _ := r.document(t)["url"].(string)
	u, err := url.Parse(address)
	if err != nil || r.StatusCode != http.StatusOK || !strings.HasPrefix(address, s.provider.Issuer+oidctest.PathEndSession+"?") {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	query := u.Query()
	query.Del("id_token_hint") // Authorize checks it
	if want := (url.Values{"client_id": {oidctest.ClientID}, "post_logout_redirect_uri": {appReturn}}).Encode(); query.Encode() != want {
		t.Errorf("the query is %s, not %s", query.Encode(), want)
	}
	if back := s.provider.Authorize(t, address).String(); back != appReturn {
		t.Errorf("the provider returns to %s", back)
	}
	if r.sessionCookie() != "" && r.sessionCookie() != "session=" {
		t.Errorf("the cookie is %s", r.sessionCookie())
	}
	expectProblem(t, s.as(session, "GET", "/auths/session", ""), 401, "unauthenticated")

	withPassword := s.signIn(ownerEmail, ownerPassword)
	for _, cookie := range []string{session, withPassword, "session=x"} {
		if r := signOut(cookie, appReturn); r.StatusCode != http.StatusOK || r.document(t)["url"] != nil {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
	}
	expectProblem(t, s.as(withPassword, "GET", "/auths/session", ""), 401, "unauthenticated")

	session = signedIn()
	s.provider.Stop()
	s.newProviders()
	if r := signOut(session, appReturn); r.StatusCode != http.StatusOK || r.document(t)["url"] != nil {
		t.Errorf("of a provider that cannot be reached: %d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.as(session, "GET", "/auths/session", ""), 401, "unauthenticated")
}

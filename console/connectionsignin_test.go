package console

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

// surfer is a browser: it keeps cookies, and follows no redirects.
type surfer struct {
	*fixture
	provider *oidctest.Provider
	cookies  map[string]string
}

func (s *surfer) do(method, address string, form url.Values) reply {
	s.t.Helper()
	var pairs []string
	for name, value := range s.cookies {
		pairs = append(pairs, name+"="+value)
	}
	a := s.send(method, strings.TrimPrefix(address, s.url), strings.Join(pairs, "; "), form)
	for _, cookie := range a.Cookies() {
		if s.cookies[cookie.Name] = cookie.Value; cookie.MaxAge < 0 {
			delete(s.cookies, cookie.Name)
		}
	}
	return a
}

// signedInAtProvider follows the page that leads to the identity provider, and signs in there. It returns the
// response to the address to which the browser returns.
func (s *surfer) signedInAtProvider(left reply) reply {
	s.t.Helper()
	refresh := left.refresh()
	link := regexp.MustCompile(`href="(/auths/oidc/begin\?ticket=[^"]+)"`).FindStringSubmatch(left.body)
	if left.StatusCode != http.StatusOK || link == nil || refresh != html.UnescapeString(link[1]) {
		_, main, _ := strings.Cut(left.body, "<main")
		s.t.Fatalf("%d, refresh %q: %s", left.StatusCode, refresh, main)
	}
	begun := s.do(http.MethodGet, html.UnescapeString(link[1]), nil)
	back := s.provider.Authorize(s.t, begun.Header.Get("Location"))
	called := s.do(http.MethodGet, back.String(), nil)
	if called.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("%d %s", called.StatusCode, called.body)
	}
	return s.do(http.MethodGet, called.Header.Get("Location"), nil)
}

// refresh returns the URL to which the page leads at once, or "".
func (a reply) refresh() string {
	meta := regexp.MustCompile(`<meta http-equiv="refresh" content="0; url=([^"]+)">`).FindStringSubmatch(a.body)
	if meta == nil {
		return ""
	}
	return html.UnescapeString(meta[1])
}

func (s *surfer) person(subject, email string) {
	s.provider.Set(func(settings *oidctest.Settings) {
		settings.Person = oidctest.Person{Subject: subject, Claims: map[string]any{"email": email, "email_verified": true, "name": "Ada Lovelace"}}
	})
}

func newSurfer(t *testing.T, changes ...func(*rolecall.ConnectionDraft)) (*surfer, rolecall.Connection) {
	t.Helper()
	f := newFixture(t)
	s := &surfer{f, f.provide(), map[string]string{}}
	return s, f.makeConnection(s.provider.Issuer, changes...)
}

// settings changes settings of acme.
func (f *fixture) settings(patch rolecall.SettingsPatch) {
	f.t.Helper()
	if _, err := f.node.Directory.UpdateTenant(f.t.Context(), f.asOwner(), rolecall.TenantPatch{Settings: patch}, nil); err != nil {
		f.t.Fatal(err)
	}
}

func TestASignInWithAProviderOpensTheConsole(t *testing.T) {
	s, c := newSurfer(t)
	eve := s.hire("eve@acme.example", "Eve Adams", []string{"users:read"})
	s.identify(eve, c, "eve-1")
	s.person("eve-1", "eve@acme.example")
	shows(t, s.do(http.MethodGet, "/console/acme/sign-in", nil), "Sign in with Acme SSO", "/console/acme/sign-in/connection")
	if strings.Contains(s.do(http.MethodGet, "/console/other/sign-in", nil).body, "Acme SSO") {
		t.Error("another tenant offers the connection")
	}
	s.cookies["session"] = strings.TrimPrefix(s.apiSession("acme"), "session=")
	before := s.cookies["session"]
	a := s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/sign-in/connection", url.Values{"connection": {c.ID.String()}, "return": {"/users?q=eve"}}))
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/console/acme/users?q=eve" || s.cookies["console-acme"] == "" || s.cookies["session"] != before {
		t.Fatalf("%d to %s with %v", a.StatusCode, a.Header.Get("Location"), s.cookies)
	}
	shows(t, s.do(http.MethodGet, "/console/acme/account", nil), "Eve Adams")

	// The typed address leads to the connection with its domain, and tells nothing of users.
	for _, path := range []string{"/console/acme/sign-in", "/console/"} {
		for _, email := range []string{"eve@acme.example", "nobody@ACME.example"} {
			s.cookies = map[string]string{}
			left := s.do(http.MethodPost, path, url.Values{"tenant": {"acme"}, "email": {email}, "password": {""}})
			if left.StatusCode != http.StatusOK || !strings.Contains(left.body, "opening the sign-in page") {
				t.Errorf("%s of %s: %d %s", path, email, left.StatusCode, left.body)
			}
		}
		if a := s.signedInAtProvider(s.do(http.MethodPost, path, url.Values{"tenant": {"acme"}, "email": {"eve@acme.example"}})); s.cookies["console-acme"] == "" {
			t.Errorf("%s: %d to %s", path, a.StatusCode, a.Header.Get("Location"))
		}
		if s.provider.Last(oidctest.PathAuthorization).Get("login_hint") != "eve@acme.example" {
			t.Error("the provider does not get the typed address")
		}
		for _, email := range []string{ownerEmail, "nobody@example.com"} {
			a := s.do(http.MethodPost, path, url.Values{"tenant": {"acme"}, "email": {email}, "password": {""}})
			if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "enter your password") {
				t.Errorf("%s of %s: %d", path, email, a.StatusCode)
			}
		}
	}
}

func TestTheCodeOfASignInWorksOnlyInItsBrowser(t *testing.T) {
	s, c := newSurfer(t)
	s.identify(s.owner, c, "owner-1")
	s.person("owner-1", ownerEmail)
	left := s.do(http.MethodPost, "/console/acme/sign-in/connection", url.Values{"connection": {c.ID.String()}})
	own := s.cookies["rolecall_verifier"]
	s.cookies["rolecall_verifier"] = strings.Repeat("A", len(own)) // the browser of another person
	if a := s.signedInAtProvider(left); a.Header.Get("Location") != "/console/acme/sign-in?why=sign-in-code-invalid" || s.cookies["console-acme"] != "" {
		t.Errorf("%d to %s", a.StatusCode, a.Header.Get("Location"))
	}
	shows(t, s.do(http.MethodGet, "/console/acme/sign-in?why=sign-in-code-invalid", nil), "began in another browser")
	s.cookies["rolecall_verifier"] = own
	if s.do(http.MethodPost, "/console/acme/sign-in/connection", url.Values{"connection": {c.ID.String()}}); s.cookies["rolecall_verifier"] != own {
		t.Error("a second tab makes the first one fail")
	}
	if a := s.do(http.MethodPost, "/console/acme/sign-in/connection", url.Values{"connection": {"x"}}); a.StatusCode != http.StatusNotFound {
		t.Errorf("%d", a.StatusCode)
	}
}

func TestRefusedSignInsAreExplained(t *testing.T) {
	s, c := newSurfer(t)
	start := func() reply {
		return s.do(http.MethodPost, "/console/acme/sign-in/connection", url.Values{"connection": {c.ID.String()}, "return": {"/roles"}})
	}
	s.person("stranger", "stranger@acme.example")
	a := s.signedInAtProvider(start())
	if a.Header.Get("Location") != "/console/acme/sign-in?return=%2Froles&why=identity-unknown" {
		t.Errorf("%s", a.Header.Get("Location"))
	}
	shows(t, s.do(http.MethodGet, a.Header.Get("Location"), nil), "isn&#39;t linked to a user here")
	s.provider.Set(func(p *oidctest.Settings) {
		p.Callback = func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }
	})
	shows(t, s.do(http.MethodGet, s.signedInAtProvider(start()).Header.Get("Location"), nil), "The sign-in was refused.")
	for _, code := range []string{"x", "", "tenant-format"} {
		if a := s.do(http.MethodGet, "/console/acme/sign-in/connected?error="+code, nil); a.Header.Get("Location") != "/console/acme/sign-in?why=sign-in-refused" {
			t.Errorf("%q leads to %s", code, a.Header.Get("Location"))
		}
	}
	s.provider.Stop()
	s.provide() // an empty cache
	if a := start(); a.StatusCode != http.StatusServiceUnavailable || !strings.Contains(a.body, "cannot be reached") || !strings.Contains(a.body, `name="password"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestASecondFactorFollowsASignInWithAProvider(t *testing.T) {
	for _, factor := range []rolecall.ConnectionFactor{rolecall.FactorRequire, rolecall.FactorTrust} {
		s, c := newSurfer(t, func(d *rolecall.ConnectionDraft) {
			d.SecondFactor, d.AMRValues = rolecall.Some(factor), []string{"mfa"}
		})
		s.identify(s.hire("eve@acme.example", "Eve Adams", []string{"users:read"}), c, "eve-1")
		s.person("eve-1", "eve@acme.example")
		s.provider.Set(func(p *oidctest.Settings) { p.Person.Claims["amr"] = []string{"pwd", "mfa"} })
		s.settings(rolecall.SettingsPatch{SecondFactor: rolecall.SecondFactorPatch{Required: rolecall.Some(string(rolecall.SecondFactorOfAll))}})
		a := s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/sign-in/connection", url.Values{"connection": {c.ID.String()}, "return": {"/users"}}))
		if factor == rolecall.FactorTrust {
			if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/console/acme/users" {
				t.Errorf("%d to %s", a.StatusCode, a.Header.Get("Location"))
			}
			continue
		}
		shows(t, a, "Set up a second factor", `name="return" value="/users"`)
		if a.StatusCode != http.StatusUnauthorized || s.cookies["console-acme"] != "" {
			t.Errorf("%d %v", a.StatusCode, s.cookies)
		}
	}
}

func TestAnInvitationIsAcceptedWithAProvider(t *testing.T) {
	s, c := newSurfer(t)
	owner := s.asOwner()
	created, err := s.node.Directory.CreateUser(t.Context(), owner, idempotency.Key{Text: "k", Fingerprint: []byte("k")}, rolecall.UserDraft{Email: "new@acme.example", Name: "Nina New"})
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := s.node.Directory.CreateOperatorKey(t.Context(), rolecall.OperatorKeyDraft{Name: "Sign-ups", Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	operator := owner
	if operator.Principal, err = s.node.SignIn.AuthenticateBearer(t.Context(), owner.Tenant, string(key), "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	token, err := s.node.Directory.IssueInvitation(t.Context(), operator, idempotency.Key{Text: "i", Fingerprint: []byte("i")}, created.Value.ID)
	if err != nil {
		t.Fatal(err)
	}
	shows(t, s.do(http.MethodGet, "/console/acme/invitation", nil), "Accept with Acme SSO", `name="password"`)
	s.person("new-1", "new@acme.example")
	if a := s.do(http.MethodPost, "/console/acme/invitation/connection", url.Values{"connection": {c.ID.String()}, "token": {"x"}}); a.StatusCode != http.StatusUnauthorized && a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d", a.StatusCode)
	}
	a := s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/invitation/connection", url.Values{"connection": {c.ID.String()}, "token": {string(token.Value.Token)}}))
	if a.StatusCode != http.StatusSeeOther || s.cookies["session"] == "" || s.cookies["console-acme"] != "" {
		t.Fatalf("%d to %s with %v", a.StatusCode, a.Header.Get("Location"), s.cookies)
	}
	shows(t, s.do(http.MethodGet, "/console/acme/account", nil), "Nina New")
}

func TestConnectionsComeFirstIfPasswordsAreForOwners(t *testing.T) {
	s, _ := newSurfer(t)
	order := func() bool {
		page := s.do(http.MethodGet, "/console/acme/sign-in", nil).body
		return strings.Index(page, "Sign in with Acme SSO") < strings.Index(page, `name="password"`)
	}
	if order() {
		t.Error("the connection comes before the password")
	}
	s.settings(rolecall.SettingsPatch{Passwords: rolecall.Some(string(rolecall.PasswordsOfOwners))})
	if !order() {
		t.Error("the password comes before the connection")
	}
	shows(t, s.do(http.MethodGet, "/console/acme/sign-in", nil), "or, as an owner")
}

func TestASignOutLeadsToTheProviderAndBack(t *testing.T) {
	s, c := newSurfer(t)
	eve := s.hire("eve@acme.example", "Eve Adams", []string{"users:read"})
	s.identify(eve, c, "eve-1")
	s.person("eve-1", "eve@acme.example")
	signIn := func() {
		s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/sign-in/connection", url.Values{"connection": {c.ID.String()}}))
		if s.cookies["console-acme"] == "" {
			t.Fatal("no session")
		}
	}
	signIn()
	session := s.cookies["console-acme"]
	shows(t, s.do(http.MethodGet, "/console/acme/users/"+eve.ID.String()+"/sessions", nil), "Signed in with Acme SSO")
	left := s.do(http.MethodPost, "/console/acme/sign-out", nil)
	address := left.refresh()
	if left.StatusCode != http.StatusOK || !strings.HasPrefix(address, s.provider.Issuer+oidctest.PathEndSession+"?") {
		t.Fatalf("%d, refresh %q: %s", left.StatusCode, address, left.body)
	}
	shows(t, left, "signed out here", "data-forget", html.EscapeString(address))
	if s.cookies["console-acme"] != "" {
		t.Errorf("the cookies %v are left", s.cookies)
	}
	s.cookies["console-acme"] = session
	if a := s.do(http.MethodGet, "/console/acme/account", nil); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the session is valid after the sign-out: %d", a.StatusCode)
	}
	delete(s.cookies, "console-acme")
	back := s.provider.Authorize(t, address)
	if back.Path != "/console/acme/signed-out" || back.RawQuery != "" {
		t.Errorf("the provider returns to %s", back)
	}
	a := s.do(http.MethodGet, back.String(), nil)
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/console/acme/sign-in?done=signed-out" {
		t.Errorf("%d to %s", a.StatusCode, a.Header.Get("Location"))
	}

	// Without a provider, or without its end-session endpoint, the sign-out leads to the sign-in page.
	toSignIn := func(what string) {
		t.Helper()
		if a := s.do(http.MethodPost, "/console/acme/sign-out", nil); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/console/acme/sign-in?done=signed-out" || s.cookies["console-acme"] != "" {
			t.Errorf("%s: %d to %s", what, a.StatusCode, a.Header.Get("Location"))
		}
	}
	s.cookies["console-acme"] = strings.TrimPrefix(s.signIn("acme", ownerEmail), "console-acme=")
	shows(t, s.do(http.MethodGet, "/console/acme/users/"+s.owner.ID.String()+"/sessions", nil), "This session")
	if page := s.do(http.MethodGet, "/console/acme/users/"+s.owner.ID.String()+"/sessions", nil); strings.Contains(page.body, "Signed in with") {
		t.Error("the session of a password has a connection")
	}
	toSignIn("a password")
	signIn()
	s.provider.Stop()
	s.provide() // an empty cache
	toSignIn("a provider that cannot be reached")
}

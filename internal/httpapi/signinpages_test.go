package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

// browserAccepts is the Accept header of a browser that opens a page.
const browserAccepts = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// opens opens a URL of the server as a browser does.
func (s *oidcServer) opens(b browser, address string) reply {
	s.t.Helper()
	return s.request("GET", strings.TrimPrefix(address, s.url), "", "X-Tenant-Schema", "", "Accept", browserAccepts, "Cookie", b.header())
}

func TestAFailedNavigationOfASignInShowsAPage(t *testing.T) {
	s := newOIDCServer(t)
	b := browser{}
	callback := s.authorized(b, s.started(s.signInStart(appReturn, "")))
	back := `href="` + appReturn + `?error=sign-in-refused"`
	shows := func(what string, r reply, status int, wants ...string) {
		t.Helper()
		if r.StatusCode != status || r.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") || !strings.Contains(strings.Join(r.Header.Values("Vary"), ","), "Accept") {
			t.Errorf("%s: %d %v", what, r.StatusCode, r.Header)
		}
		for _, want := range wants {
			if !strings.Contains(string(r.body), want) {
				t.Errorf("%s: the page has no %s: %s", what, want, r.body)
			}
		}
	}
	shows("no ticket", s.opens(b, s.url+"/auths/oidc/begin"), 403, "sign-in-attempt-invalid", `href="/console/"`)
	shows("another browser", s.opens(browser{}, callback), 403, "sign-in-attempt-invalid", `href="/console/"`)
	shows("no connection", s.opens(b, s.url+"/auths/oidc/callback/x"), 403, `href="/console/"`)
	other := strings.Replace(callback, s.connection.ID.String(), s.connection.ID.String()[:35]+"0", 1)
	shows("another connection", s.opens(b, other), 403, back)
	s.returned(s.visit(browser{name(b): b[name(b)]}, callback), appReturn)
	shows("again", s.opens(b, callback), 403, back)

	custom := s.started(s.signInStart(mobileReturn, ""))
	s.provider.Stop()
	s.newProviders()
	shows("the provider is down", s.opens(b, custom), 503, `href="`+mobileReturn+`?error=connection-unavailable"`)
	r := s.request("GET", strings.TrimPrefix(custom, s.url), "", "X-Tenant-Schema", "", "Accept", "*/*")
	if expectProblem(t, r, 503, "connection-unavailable"); !strings.Contains(strings.Join(r.Header.Values("Vary"), ","), "Accept") {
		t.Errorf("Vary is %v", r.Header.Values("Vary"))
	}
	if n := s.provider.Requests(oidctest.PathToken); n != 1 {
		t.Errorf("%d codes were sent to the provider", n)
	}
}

// name returns the name of the only cookie.
func name(b browser) string {
	for name := range b {
		return name
	}
	return ""
}

// A proxy can add its own bearer token to each request. It neither hides the session cookie nor replaces the check of
// the origin.
func TestATokenOfAProxyIsIgnored(t *testing.T) {
	s := newTestServer(t)
	for _, token := range []string{"Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln", "Bearer x", "bearer RC_x", "Bearer"} {
		if r := s.request("GET", "/auths/session", "", "Authorization", token, "Cookie", s.owner); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", token, r.StatusCode, r.body)
		}
		expectProblem(t, s.request("GET", "/auths/session", "", "Authorization", token), 401, "unauthenticated")
		expectProblem(t, s.request("POST", "/auths/logout", "", "Authorization", token, "Cookie", s.owner, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403, "cross-origin")
	}
	for _, token := range []string{"Bearer rs_x", "Bearer rc_x", "Bearer rco_x"} {
		if r := s.request("GET", "/auths/session", "", "Authorization", token, "Cookie", s.owner); r.StatusCode == http.StatusOK {
			t.Errorf("%s: %d %s", token, r.StatusCode, r.body)
		}
	}
}

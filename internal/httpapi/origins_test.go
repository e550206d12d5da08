package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/web"
)

const allowedOrigin = "https://app.example.com"

func newSharedServer(t *testing.T) *testServer {
	t.Helper()
	return newTestServerWith(t, web.Options{
		PublicURL:    &url.URL{Scheme: "https", Host: "id.example.com"},
		AllowOrigins: []string{allowedOrigin, "https://admin.example.com:8443"},
	})
}

// hostileOrigins are similar to an allowed origin, but are not allowed.
var hostileOrigins = []string{
	"null",
	"https://evil.example",
	"https://example.com",
	"https://app.example.com.evil.example",
	"https://evilapp.example.com",
	"https://www.app.example.com",
	"https://evil.example/https://app.example.com",
	"https://app.example.com@evil.example",
	"http://app.example.com",
	"https://app.example.com:443",
	"https://app.example.com:8443",
	"https://admin.example.com",
	"https://app.example.com/",
	"https://APP.example.com",
	"https://app.example.com https://evil.example",
	"https://app.example.com\tx",
	"https://app_example.com",
	"*",
	"file://",
	"https://аpp.example.com",
}

// corsHeaders returns the names of the CORS headers in h.
func corsHeaders(h http.Header) []string {
	var names []string
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			names = append(names, name)
		}
	}
	return names
}

func TestHostileOriginsGetNothing(t *testing.T) {
	s := newSharedServer(t)
	path := "/users/" + s.ownerID
	for _, origin := range hostileOrigins {
		t.Run(origin, func(t *testing.T) {
			s := s.in(t)
			read := s.as(s.owner, "GET", path, "", "Origin", origin, "Sec-Fetch-Site", "cross-site")
			preflight := s.request("OPTIONS", path, "", "Origin", origin, "Access-Control-Request-Method", "PATCH")
			change := s.as(s.owner, "PATCH", path, `{}`, "Origin", origin, "Sec-Fetch-Site", "same-site")
			unmarked := s.as(s.owner, "PATCH", path, `{}`, "Origin", origin)
			for name, r := range map[string]reply{"read": read, "preflight": preflight, "change": change, "without Sec-Fetch-Site": unmarked} {
				if got := corsHeaders(r.Header); got != nil {
					t.Errorf("%s: %v", name, got)
				}
				if got := r.Header.Get("Vary"); got != "Origin" {
					t.Errorf("%s: Vary is %q", name, got)
				}
			}
			if preflight.StatusCode != 204 || preflight.Header.Get("Allow") == "" {
				t.Errorf("the preflight is no ordinary OPTIONS: %d", preflight.StatusCode)
			}
			expectProblem(t, change, 403, "cross-origin")
			expectProblem(t, unmarked, 403, "cross-origin")
		})
	}
	r := s.as(s.owner, "GET", path, "", "Origin", allowedOrigin, "Origin", "https://evil.example")
	if got := corsHeaders(r.Header); got != nil {
		t.Errorf("two origins, one of them allowed: %v", got)
	}
}

func TestAllowedOriginsReadAndChange(t *testing.T) {
	s := newSharedServer(t)
	path := "/users/" + s.ownerID
	for _, origin := range []string{allowedOrigin, "https://admin.example.com:8443"} {
		for _, test := range []struct {
			name   string
			r      reply
			status int
		}{
			{"read", s.as(s.owner, "GET", path, "", "Origin", origin, "Sec-Fetch-Site", "same-site"), 200},
			{"change", s.as(s.owner, "PATCH", path, `{}`, "Origin", origin, "Sec-Fetch-Site", "same-site"), 200},
			{"problem", s.request("GET", path, "", "Origin", origin), 401},
			{"unknown path", s.request("GET", "/x", "", "Origin", origin), 404},
			{"page", s.request("GET", "/livez", "", "Origin", origin), 200},
		} {
			h := test.r.Header
			if test.r.StatusCode != test.status || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Credentials") != "true" || h.Get("Vary") != "Origin" ||
				h.Get("Access-Control-Expose-Headers") != "etag, location, link, retry-after, withheld-fields, x-request-id, idempotent-replayed" {
				t.Errorf("%s from %s: %d %v", test.name, origin, test.r.StatusCode, h)
			}
		}
	}
}

func TestPreflightComesBeforeAllOtherChecks(t *testing.T) {
	s := newSharedServer(t)
	for _, path := range []string{"/users", "/users/" + s.ownerID, "/no/such/path", "/auths/login", "/users?" + strings.Repeat("x", web.MaxURL)} {
		r := s.request("OPTIONS", path, "", "X-Tenant-Schema", "", "Origin", allowedOrigin, "Sec-Fetch-Site", "cross-site", "Accept", "text/html",
			"Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers", "content-type,x-tenant-schema")
		want := map[string]string{
			"Access-Control-Allow-Origin": allowedOrigin, "Access-Control-Allow-Credentials": "true",
			"Access-Control-Allow-Methods":  "GET, HEAD, POST, PUT, PATCH, DELETE",
			"Access-Control-Allow-Headers":  "content-type, x-tenant-schema, idempotency-key, if-match, if-none-match, authorization",
			"Access-Control-Expose-Headers": "", "Access-Control-Max-Age": "7200", "Vary": "Origin",
		}
		for name, value := range want {
			if got := r.Header.Get(name); r.StatusCode != 204 || got != value {
				t.Errorf("%.30s: %d, %s is %q", path, r.StatusCode, name, got)
			}
		}
	}
	plain := s.request("OPTIONS", "/users", "", "Origin", allowedOrigin)
	if plain.Header.Get("Access-Control-Allow-Methods") != "" || plain.Header.Get("Allow") == "" {
		t.Errorf("an OPTIONS that asks for no method is no preflight: %v", plain.Header)
	}
}

func TestWithoutAllowedOriginsNothingIsShared(t *testing.T) {
	s := newTestServer(t)
	for _, r := range []reply{
		s.as(s.owner, "GET", "/users", "", "Origin", allowedOrigin),
		s.request("OPTIONS", "/users", "", "Origin", allowedOrigin, "Access-Control-Request-Method", "POST"),
	} {
		if got := corsHeaders(r.Header); got != nil || r.Header.Get("Vary") != "" {
			t.Errorf("%s: %v, Vary %q", r.Request.Method, got, r.Header.Get("Vary"))
		}
	}
}

// If a request has no Sec-Fetch-Site header, the server compares Origin with Host. A proxy may
// have replaced Host, so the server must also accept the public URL as the origin.
func TestOwnOriginBehindAProxy(t *testing.T) {
	s := newSharedServer(t)
	path := "/users/" + s.ownerID
	if r := s.as(s.owner, "PATCH", path, `{}`, "Origin", "https://id.example.com"); r.StatusCode != 200 {
		t.Errorf("the public origin: %d %s", r.StatusCode, r.body)
	}
	for _, origin := range []string{"http://id.example.com", "https://id.example.com:8443", "https://id.example.com.evil.example"} {
		expectProblem(t, s.as(s.owner, "PATCH", path, `{}`, "Origin", origin), 403, "cross-origin")
	}
}

func TestSignInFromAnotherSiteSaysThatTheCookieIsDropped(t *testing.T) {
	s := newSharedServer(t)
	count := 0
	for _, op := range declared {
		if !op.SetsSession() || op.Path == "/auths/login/second-factor" { // its challenge decides, and such a page has none
			continue
		}
		count++
		r := s.request(op.Method, op.Path, `{}`, "Origin", allowedOrigin, "Sec-Fetch-Site", "cross-site")
		expectProblem(t, r, 403, "cross-site")
		if r.Header.Get("Access-Control-Allow-Origin") != allowedOrigin || r.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: the page cannot read why: %v", op.ID, r.Header)
		}
		expectProblem(t, s.request(op.Method, op.Path, `{}`, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403, "cross-origin")
	}
	if count < 5 {
		t.Errorf("%d operations set the session cookie", count)
	}
	login := `{"email":"` + ownerEmail + `","password":"` + ownerPassword + `"}`
	for _, site := range []string{"same-site", "same-origin", "none", ""} {
		headers := []string{"Origin", allowedOrigin}
		if site != "" {
			headers = append(headers, "Sec-Fetch-Site", site)
		}
		if r := s.request("POST", "/auths/login", login, headers...); r.StatusCode != 200 {
			t.Errorf("from %q: %d %s", site, r.StatusCode, r.body)
		}
	}
	if r := s.request("POST", "/auths/login", login); r.StatusCode != 200 {
		t.Errorf("of a program: %d %s", r.StatusCode, r.body)
	}
}

func TestFilesOfPagesVaryByBoth(t *testing.T) {
	s := newSharedServer(t)
	for _, a := range s.edge.newDocs().assets {
		want := "Origin"
		if s.request("GET", a.Path, "", "Accept-Encoding", "gzip").Header.Get("Content-Encoding") == "gzip" {
			want = "Origin Accept-Encoding"
		}
		if got := strings.Join(s.request("GET", a.Path, "").Header["Vary"], " "); got != want {
			t.Errorf("%s: Vary is %q, want %q", a.Path, got, want)
		}
	}
}

func TestCookieDomain(t *testing.T) {
	s := newTestServerWith(t, web.Options{CookieDomain: "example.com"})
	in := s.request("POST", "/auths/login", `{"email":"`+ownerEmail+`","password":"`+ownerPassword+`"}`)
	out := s.request("POST", "/auths/logout", "")
	for _, r := range []reply{in, out} {
		if got := r.setSession(); !strings.HasSuffix(got, "; HttpOnly; Domain=example.com; Secure; SameSite=Lax") || !strings.Contains(got, "; Path=/;") {
			t.Errorf("%s: %q", r.Request.URL.Path, got)
		}
	}
}

func TestEverythingStandsUnderTheBase(t *testing.T) {
	s := newTestServerWith(t, web.Options{PublicURL: &url.URL{Scheme: "https", Host: "app.example.com", Path: "/people/"}})
	created := s.as(s.owner, "POST", "/users", `{"email":"base@example.com","name":"Base"}`, "Idempotency-Key", "base")
	if got, want := created.Header.Get("Location"), "/people/users/"+created.id(t); created.StatusCode != 201 || got != want {
		t.Errorf("%d, Location %q, want %q", created.StatusCode, got, want)
	}
	list := s.as(s.owner, "GET", "/users?limit=1", "")
	if got := list.Header.Get("Link"); !strings.HasPrefix(got, "</people/users?") || !strings.HasSuffix(got, `>; rel="next"`) {
		t.Errorf("Link %q", got)
	}
	problem := s.as(s.owner, "GET", "/users?x=1", "").document(t)
	if problem["type"] != "/people/problems/malformed-request" || problem["instance"] != "/people/users" {
		t.Errorf("type %v, instance %v", problem["type"], problem["instance"])
	}
	if page := s.request("GET", "/problems/malformed-request", ""); page.StatusCode != 200 {
		t.Errorf("the page of the problem: %d", page.StatusCode)
	}
	if cookie := s.request("POST", "/auths/logout", "").Header.Get("Set-Cookie"); !strings.Contains(cookie, "; Path=/;") {
		t.Errorf("cookie %q", cookie)
	}
	root := *s
	root.url = strings.TrimSuffix(s.url, "/people")
	for _, path := range []string{"/users", "/livez", "/people", "/people/", "/people//users", "/people/people/users"} {
		if r := root.as(s.owner, "GET", path, ""); r.StatusCode != 404 {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
}

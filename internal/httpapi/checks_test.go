package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

func TestChecksComeInTheOrderOfTheContract(t *testing.T) {
	s := newTestServer(t)
	viewer, _ := s.member("viewer", []string{"users:read"})
	const bad = `{"name":1,"x":2}`
	id := "/users/" + s.ownerID
	unknown := "/users/00000000-0000-7000-8000-000000000000"
	nobody := "session=" + string(secret.NewToken())

	// The cases are in the order of the checks. Each request also violates all later checks, so
	// the response shows which check runs first.
	for _, test := range []struct {
		name, cookie, method, path, body string
		headers                          []string
		status                           int
		code                             string
	}{
		{"URL", "", "PATCH", "/users?" + strings.Repeat("x", web.MaxURL), bad, []string{"X-Tenant-Schema", ""}, 414, "uri-too-long"},
		{"path", "", "PATCH", "/user", bad, []string{"X-Tenant-Schema", ""}, 404, "unknown-path"},
		{"method", "", "PATCH", "/users", bad, []string{"X-Tenant-Schema", ""}, 405, "method-not-allowed"},
		{"body size", "", "PATCH", id, strings.Repeat(" ", web.MaxBody+1), []string{"X-Tenant-Schema", ""}, 413, "content-too-large"},
		{"tenant", "", "PATCH", id, bad, []string{"X-Tenant-Schema", "", "Sec-Fetch-Site", "cross-site"}, 400, "malformed-request"},
		{"origin", "", "PATCH", id, bad, []string{"Sec-Fetch-Site", "cross-site", "Accept", "text/html"}, 403, "cross-origin"},
		{"Accept", "", "PATCH", id, bad, []string{"Accept", "text/html", "Content-Type", "text/plain"}, 406, "not-acceptable"},
		{"Content-Type", "", "PATCH", id, bad, []string{"Content-Type", "text/plain"}, 415, "unsupported-media-type"},
		{"session", "", "PATCH", "/users/x?y=1", bad, nil, 401, "unauthenticated"},
		{"live session", nobody, "PATCH", "/users/x?y=1", bad, nil, 401, "unauthenticated"},
		{"permission", viewer, "POST", "/users?y=1", bad, nil, 403, "permission-denied"},
		{"header, path, query, syntax", s.owner, "PATCH", "/users/x?y=1", `{"a":1,"a":2}`, []string{"If-Match", "x"}, 400, "malformed-request"},
		{"body", s.owner, "PATCH", unknown, bad, []string{"If-Match", `"stale"`}, 422, "validation"},
		{"visibility", s.owner, "PATCH", unknown, `{"name":"Eve Adams"}`, []string{"If-Match", `"stale"`}, 404, "not-found"},
		{"precondition", s.owner, "PATCH", id, `{"name":"Eve Adams"}`, []string{"If-Match", `"stale"`}, 412, "precondition-failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			expectProblem(t, s.in(t).as(test.cookie, test.method, test.path, test.body, test.headers...), test.status, test.code)
		})
	}
}

func TestThePermissionForAMemberComesBeforeItsValue(t *testing.T) {
	s := newTestServer(t)
	plain, plainID := s.member("plain", []string{"roles:read"})
	renamer, _ := s.member("renamer", []string{"users.name:update"})
	sales, _ := s.member("sales", []string{"users:read", "users.department:update"}, "Sales")
	maker, _ := s.member("maker", []string{"users:create"})
	own, others, nobody := "/users/"+plainID, "/users/"+s.ownerID, "/users/00000000-0000-7000-8000-000000000000"
	var worst strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&worst, `,"\u007f%d":1`, i)
	}
	for _, test := range []struct {
		name, cookie, method, path, body string
		status                           int
		needs                            string // the permission that is missing
	}{
		{"a member of oneself", plain, "PATCH", own, `{"metadata":{"k":1}}`, 403, "users.metadata:update"},
		{"thousands of wrong values", plain, "PATCH", own, `{"metadata":{"k":1` + worst.String() + `}}`, 403, "users.metadata:update"},
		{"one's own name", plain, "PATCH", own, `{"name":"a"}`, 422, ""},
		{"one's own name and another member", plain, "PATCH", own, `{"name":"a","externalId":1}`, 403, "users.externalId:update"},
		{"an unknown member and a forbidden one", plain, "PATCH", own, `{"x":1,"department":1}`, 403, "users.department:update"},
		{"syntax", plain, "PATCH", own, `{"metadata":{"k":1,"k":2}}`, 400, ""},
		{"no member", plain, "PATCH", own, `{"x":1}`, 422, ""},
		{"another member than one's own to change", renamer, "PATCH", others, `{"name":"a","department":""}`, 403, "users.department:update"},
		{"a user who does not exist", renamer, "PATCH", nobody, `{"department":"Ops"}`, 403, "users.department:update"},
		{"a member that may be changed of others", sales, "PATCH", others, `{"department":""}`, 422, ""},
		{"an invitation", maker, "POST", "/users", `{"email":1,"invite":true}`, 403, "users:invite"},
		{"an invitation of another type", maker, "POST", "/users", `{"invite":[]}`, 403, "users:invite"},
		{"no invitation", maker, "POST", "/users", `{"email":1,"invite":false}`, 422, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := s.in(t).as(test.cookie, test.method, test.path, test.body, "Idempotency-Key", "k")
			code := map[int]string{400: "malformed-request", 403: "permission-denied", 422: "validation"}[test.status]
			expectProblem(t, r, test.status, code)
			if test.needs != "" && (!strings.Contains(r.body, "You need the permission "+test.needs+" for this.") || strings.Contains(r.body, `"errors"`)) {
				t.Errorf("want a refusal for lack of %s: %s", test.needs, r.body)
			}
		})
	}
}

func TestFaultsOutsideTheBodyComeTogether(t *testing.T) {
	s := newTestServer(t)
	r := s.as(s.owner, "PATCH", "/users/x?y=1&z=%ff", `{"a":1,"a":2}`, "If-Match", "x")
	if got, want := r.faults(t), "id format; if-match format; y unknown; z unknown; /a duplicate"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r = s.as(s.owner, "GET", "/users?limit=0&limit=5&sort=age&role=x&q=%21&cursor=abc&count=1&email=", "")
	want := "limit range; limit repeated; sort format; role format; q no-word; count format; email length; cursor cursor"
	if got := r.faults(t); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r = s.as(s.owner, "POST", "/roles", `[]`)
	if got, want := r.faults(t), "idempotency-key required"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, body := range []string{`[]`, `"x"`, ` 1 `, `null`, `[{"name":"Night shift"}]`} {
		r = s.as(s.owner, "POST", "/roles", body, "Idempotency-Key", "k")
		expectProblem(t, r, 422, "validation")
		if got := r.faults(t); got != "type" || !strings.Contains(r.body, `"detail":"must be an object"`) {
			t.Errorf("%s: %s", body, r.body)
		}
	}
	r = s.as(s.owner, "POST", "/roles", "")
	if got, want := r.faults(t), "idempotency-key required; required"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"Idempotency-Key", "If-Match", "Content-Type", "X-Tenant-Schema"} {
		path, method := "/roles", "POST"
		if name == "If-Match" {
			path, method = "/users/"+s.ownerID, "PATCH"
		}
		headers := []string{"Idempotency-Key", "k"}
		if name == "Idempotency-Key" {
			headers = nil
		}
		r := s.as(s.owner, method, path, `{"name":"Night shift"}`, append(headers, name, "a", name, "b")...)
		if got, want := r.faults(t), strings.ToLower(name)+" repeated"; r.StatusCode != 400 || got != want {
			t.Errorf("%s twice: %d %q", name, r.StatusCode, got)
		}
	}
}

func TestPathsHaveOneSpelling(t *testing.T) {
	s := newTestServer(t)
	for _, path := range []string{
		"/", "/users/", "//users", "/users//" + s.ownerID, "/./users", "/users/..", "/roles/../users", "/users/%2e%2e/roles",
		"/users%2F" + s.ownerID, "/users%2f" + s.ownerID, "/%75sers%2f" + s.ownerID, "/%2fusers", "/%55sers", "/Users", "/%2e/users", "/%2E%2E/users", "/users/%2E%2e/%75sers", "/users/.%2e/roles", "/users%00", "/%75sers%00", "/%75sers/", "/users%3Fq=x", "/users%5c", "/%2575sers", "/users%25", "/users/" + s.ownerID + "/", "/users/" + s.ownerID + "/x",
	} {
		r := s.sendPath(path)
		if r.StatusCode != http.StatusNotFound || r.Header.Get("Content-Type") != "application/problem+json" || r.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
}

// sendPath sends a GET request of the owner for exactly this path. It does not normalize or
// encode the path.
func (s *testServer) sendPath(path string) reply {
	return s.send(&http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: strings.TrimPrefix(s.url, "http://"), Opaque: path}, Header: http.Header{"X-Tenant-Schema": {tenantName}, "Cookie": {s.owner}}})
}

func TestEncodedUnreservedCharactersAreTheSamePath(t *testing.T) {
	s := newTestServer(t)
	encoded := func(path string) string {
		var b strings.Builder
		for i, c := range []byte(path) {
			if c == '/' || i%3 == 0 {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, []string{"%%%02x", "%%%02X"}[i%2], c)
			}
		}
		return b.String()
	}
	for _, path := range []string{"/users", "/users/" + s.ownerID, "/users/" + s.ownerID + "/overview", "/auths/session", "/openapi.yaml", "/problems/last-owner", "/livez"} {
		plain, other := s.sendPath(path), s.sendPath(encoded(path))
		if plain.StatusCode != 200 || other.StatusCode != 200 || plain.Header.Get("Etag") != other.Header.Get("Etag") || len(plain.body) != len(other.body) {
			t.Errorf("%s: %d and %d", encoded(path), plain.StatusCode, other.StatusCode)
		}
	}
	if r := s.sendPath("/%75sers/none"); r.StatusCode != 400 || !strings.Contains(r.body, `"instance":"/users/none"`) || r.faults(t) != "id format" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := s.sendPath("/%75sers/a%20b"); r.StatusCode != 400 || r.faults(t) != "id format" {
		t.Errorf("with another encoded character: %d %s", r.StatusCode, r.body)
	}
	if r := s.sendPath("/%75sers?limit=1"); r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Link"), "</users?") && r.Header.Get("Link") != "" {
		t.Errorf("%d, Link %q", r.StatusCode, r.Header.Get("Link"))
	}
}

func TestMethods(t *testing.T) {
	s := newTestServer(t)
	path := "/users/" + s.ownerID
	const allow = "GET, HEAD, PATCH, DELETE, OPTIONS"
	r := s.request("PUT", path, "")
	expectProblem(t, r, 405, "method-not-allowed")
	if got := r.Header.Get("Allow"); got != allow {
		t.Errorf("Allow %q", got)
	}
	r = s.request("OPTIONS", path, "", "X-Tenant-Schema", "")
	if r.StatusCode != 204 || r.Header.Get("Allow") != allow || r.body != "" {
		t.Errorf("OPTIONS: %d %q %q", r.StatusCode, r.Header.Get("Allow"), r.body)
	}
	get, head := s.as(s.owner, "GET", path, ""), s.as(s.owner, "HEAD", path, "")
	if head.StatusCode != 200 || head.body != "" || head.ContentLength != int64(len(get.body)) || head.Header.Get("Etag") != get.Header.Get("Etag") {
		t.Errorf("HEAD: %d, %d bytes of %d", head.StatusCode, head.ContentLength, len(get.body))
	}
}

func TestTenantHeader(t *testing.T) {
	s := newTestServer(t)
	for _, name := range []string{"", "Acme", "-acme", "acme,acme", "a b", strings.Repeat("a", 64)} {
		expectProblem(t, s.as(s.owner, "GET", "/users", "", "X-Tenant-Schema", name), 400, "malformed-request")
	}
	known := s.request("GET", "/users", "", "Cookie", "session="+string(secret.NewToken()))
	other := s.as(s.owner, "GET", "/users", "", "X-Tenant-Schema", "nobody")
	expectProblem(t, known, 401, "unauthenticated")
	expectProblem(t, other, 401, "unauthenticated")
	if strip(known) != strip(other) || other.Header.Get("Www-Authenticate") != "Session, Bearer" {
		t.Errorf("an unknown tenant is told apart:\n%s\n%s", known.body, other.body)
	}
}

// strip returns the body without the request ID, so that responses to equal requests are equal.
func strip(r reply) string {
	return strings.ReplaceAll(r.body, r.Header.Get("X-Request-Id"), "")
}

func TestBodies(t *testing.T) {
	s := newTestServer(t)
	path := "/users/" + s.ownerID
	for name, headers := range map[string][]string{
		"none":       {"Content-Type", ""},
		"form":       {"Content-Type", "application/x-www-form-urlencoded"},
		"latin-1":    {"Content-Type", "application/json; charset=latin-1"},
		"compressed": {"Content-Encoding", "gzip"},
	} {
		r := s.as(s.owner, "PATCH", path, `{}`, headers...)
		expectProblem(t, r, 415, "unsupported-media-type")
		if r.Header.Get("Accept-Patch")+r.Header.Get("Accept-Encoding") == "" {
			t.Errorf("%s: the answer does not say what is taken", name)
		}
	}
	if r := s.as(s.owner, "PATCH", path, `{}`, "Content-Type", "application/merge-patch+json"); r.StatusCode != 200 {
		t.Errorf("merge patch: %d %s", r.StatusCode, r.body)
	}
	r := s.as(s.owner, "POST", "/roles", `{}`, "Content-Type", "application/merge-patch+json")
	expectProblem(t, r, 415, "unsupported-media-type")
	if r.Header.Get("Accept") != "application/json" {
		t.Errorf("Accept %q", r.Header.Get("Accept"))
	}
	if r := s.as(s.owner, "POST", path+"/resume", ""); r.StatusCode != 200 {
		t.Errorf("an optional body left out: %d %s", r.StatusCode, r.body)
	}

	streamed, err := http.NewRequest("PATCH", s.url+path, io.MultiReader(strings.NewReader(strings.Repeat(" ", web.MaxBody)), strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	streamed.Header = http.Header{"X-Tenant-Schema": {tenantName}, "Content-Type": {"application/json"}, "Cookie": {s.owner}}
	expectProblem(t, s.send(streamed), 413, "content-too-large")
}

func TestTruncatedBody(t *testing.T) {
	s := newTestServer(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "PATCH /users/"+s.ownerID+" HTTP/1.1\r\nHost: x\r\nX-Tenant-Schema: acme\r\nCookie: "+s.owner+
		"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"nam\r\nzz\r\n")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 400 || !answer.Close || !strings.Contains(string(body), `"truncated"`) {
		t.Errorf("%d %s, close %v, %v", answer.StatusCode, body, answer.Close, err)
	}
}

func TestABodyInChunksEndsTheConnection(t *testing.T) {
	s := newTestServer(t)
	const role = `{"name":"Night shift"}`
	for name, body := range map[string]io.Reader{"chunks": io.MultiReader(strings.NewReader(role)), "a length": strings.NewReader(role)} {
		request, err := http.NewRequest("POST", s.url+"/roles", body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"X-Tenant-Schema": {tenantName}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}, "Cookie": {s.owner}}
		r := s.send(request)
		if r.StatusCode != 201 || r.Close != (name == "chunks") {
			t.Errorf("%s: %d, close %v: %s", name, r.StatusCode, r.Close, r.body)
		}
	}
}

func TestPagesAreDeniedWhatTheyDoNotUse(t *testing.T) {
	s := newTestServer(t)
	for _, path := range []string{"/docs", "/docs/permissions", "/problems", "/problems/validation"} {
		policy := s.as(s.owner, "GET", path, "").Header.Get("Permissions-Policy")
		if !strings.Contains(policy, "camera=()") || !strings.Contains(policy, "geolocation=()") || strings.Contains(policy, "publickey-credentials") {
			t.Errorf("%s: Permissions-Policy is %q", path, policy)
		}
	}
}

func TestSecurityContact(t *testing.T) {
	const path = "/.well-known/security.txt"
	expectProblem(t, newTestServer(t).request("GET", path, ""), 404, "unknown-path")
	s := newTestServerOf(t, web.Options{PublicURL: &url.URL{Scheme: "https", Host: "id.example.com"}}, Options{SecurityContact: "mailto:security@example.com"})
	r := s.request("GET", path, "")
	form := regexp.MustCompile(`^Contact: mailto:security@example\.com\nExpires: (\S+)\nCanonical: https://id\.example\.com/\.well-known/security\.txt\n$`)
	match := form.FindStringSubmatch(r.body)
	if r.StatusCode != 200 || match == nil || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Fatalf("%d %q %q", r.StatusCode, r.Header.Get("Content-Type"), r.body)
	}
	expires, err := time.Parse(time.RFC3339, match[1])
	if left := time.Until(expires); err != nil || left < 24*time.Hour || left > 365*24*time.Hour {
		t.Errorf("it expires at %s: %v", match[1], err)
	}
	if r := s.request("GET", path, "", "If-None-Match", r.Header.Get("Etag")); r.StatusCode != 304 {
		t.Errorf("with its entity tag it answers %d", r.StatusCode)
	}
	for _, other := range []string{"/.well-known", "/.well-known/", "/.well-known/other", "/.well-known/../users", "/.well-known/./security.txt", "/.security.txt"} {
		expectProblem(t, s.request("GET", other, ""), 404, "unknown-path")
	}
}

func TestEveryAnswerCarriesTheSafeHeaders(t *testing.T) {
	s := newTestServerWith(t, web.Options{PublicURL: &url.URL{Scheme: "https", Host: "id.example.com"}})
	for _, r := range []reply{s.request("GET", "/x", ""), s.request("GET", "/users", ""), s.as(s.owner, "GET", "/users", ""), s.request("GET", "/livez", "")} {
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
			"Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'", "Cache-Control": "no-store",
			"Strict-Transport-Security": "max-age=31536000",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", r.Request.URL.Path, name, got)
			}
		}
		if len(r.Header.Get("X-Request-Id")) < 16 {
			t.Errorf("%s: request id %q", r.Request.URL.Path, r.Header.Get("X-Request-Id"))
		}
	}
	if r := newTestServer(t).request("GET", "/livez", ""); r.Header.Get("Strict-Transport-Security") != "" {
		t.Error("HSTS without https")
	}
}

func TestPagesWithoutTenant(t *testing.T) {
	s := newTestServer(t)
	for path, content := range map[string]string{
		"/openapi.json": "application/json", "/openapi.yaml": "application/yaml", "/problems": "text/html; charset=utf-8",
		"/problems/validation": "text/html; charset=utf-8", "/livez": "application/json", "/readyz": "application/json",
	} {
		r := s.request("GET", path, "", "X-Tenant-Schema", "")
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != content || r.body == "" {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.Header.Get("Content-Type"))
		}
	}
	for _, p := range catalogue {
		if r := s.request("GET", "/problems/"+p.Code, ""); r.StatusCode != 200 || !strings.Contains(r.body, "<code>"+p.Code+"</code>") {
			t.Errorf("%s: %d", p.Code, r.StatusCode)
		}
	}
	expectProblem(t, s.request("GET", "/problems/nonsense", ""), 404, "not-found")
}

func TestDrainingClosesConnections(t *testing.T) {
	s := newTestServer(t)
	s.site.Drain()
	if r := s.as(s.owner, "GET", "/users", ""); r.StatusCode != 200 || !r.Close {
		t.Errorf("%d, close %v", r.StatusCode, r.Close)
	}
	r := s.request("GET", "/readyz", "")
	expectProblem(t, r, 503, "unavailable")
	if r.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
	}
}

func TestPanicsAreAnsweredAsInternalErrors(t *testing.T) {
	s := newTestServer(t)
	s.edge.router.Handle([]web.Route{s.edge.page("/panic", "panic", func(http.ResponseWriter, *http.Request) error { panic("secret cause") })}, nil)
	r := s.request("GET", "/panic", "")
	expectProblem(t, r, 500, "internal")
	if strings.Contains(r.body, "secret") || !strings.Contains(s.log.String(), "secret cause") {
		t.Error("the cause belongs into the log, and nowhere else")
	}
	if r := s.request("GET", "/livez", ""); r.StatusCode != 200 {
		t.Errorf("after a panic: %d", r.StatusCode)
	}
}

func TestLogAndMetrics(t *testing.T) {
	s := newTestServer(t)
	s.as(s.owner, "GET", "/users/"+s.ownerID, "")
	log := s.log.String()
	for _, want := range []string{`"route":"/users/{id}"`, `"principal":"` + s.ownerID + `"`, `"tenant":"acme"`, `"status":200`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	for _, never := range []string{ownerEmail, ownerPassword, strings.TrimPrefix(s.owner, "session="), "Lovelace"} {
		if strings.Contains(log, never) {
			t.Errorf("the log holds %s", never)
		}
	}
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0.0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "rolecall_http_requests_total" && strings.Contains(m.String(), `"UsersController_getUser"`) && strings.Contains(m.String(), `"2xx"`) {
				counted += m.GetCounter().GetValue()
			}
		}
	}
	if counted != 1 {
		t.Errorf("%v reads were counted", counted)
	}
}

func TestDeadlineAndDisconnectedClient(t *testing.T) {
	s := newTestServer(t)
	edge := New(s.node.Access, s.node.Directory, s.node.SignIn, s.node.Webhooks, web.New(web.Options{Deadline: time.Nanosecond, Logger: slog.New(slog.DiscardHandler)}), Options{})
	r := httptest.NewRequest("GET", "/users/"+s.ownerID, nil)
	r.Header = http.Header{"X-Tenant-Schema": {tenantName}, "Cookie": {s.owner}}
	w := httptest.NewRecorder()
	edge.ServeHTTP(w, r)
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("past the deadline: %d %s", w.Code, w.Body)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	w = httptest.NewRecorder()
	func() {
		defer func() {
			if cut := recover(); cut != http.ErrAbortHandler {
				t.Errorf("the connection was not cut, but: %v", cut)
			}
		}()
		s.edge.ServeHTTP(w, r.WithContext(gone))
	}()
	if w.Body.Len() != 0 || !strings.Contains(s.log.String(), `"status":499`) {
		t.Errorf("who has left was answered: %s", w.Body)
	}
}

func TestFaultsAreBounded(t *testing.T) {
	s := newTestServer(t)
	unknown := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"x%d":1`, i)
		}
		return b.String()
	}
	path := "/users/" + s.ownerID
	r := s.as(s.owner, "PATCH", path, `{"metadata":{"`+strings.Repeat("k", 5000)+`":"\u0001"}`+unknown(3000)+`}`)
	if r.StatusCode != 422 || len(r.body) > 20_000 {
		t.Errorf("%d, %d bytes", r.StatusCode, len(r.body))
	}
	const cut = "Only the first 100 errors are listed."
	for _, test := range []struct {
		name           string
		answer         reply
		status, listed int
		more           bool
	}{
		{"many members", r, 422, 100, true},
		{"a hundred members", s.as(s.owner, "PATCH", path, `{"name":"Ada Lovelace"`+unknown(100)+`}`), 422, 100, false},
		{"one more", s.as(s.owner, "PATCH", path, `{"name":"Ada Lovelace"`+unknown(101)+`}`), 422, 100, true},
		{"many rules of values", s.as(s.owner, "POST", "/roles", `{"name":"Night shift","permissions":[`+strings.Repeat(`"x",`, 150)+`"y"]}`, "Idempotency-Key", "k"), 422, 100, true},
		{"many parameters", s.as(s.owner, "GET", "/users?"+strings.Repeat("x&", 200), ""), 400, 100, true},
	} {
		d := test.answer.document(t)
		listed, _ := d["errors"].([]any)
		more, said := d["moreErrors"].(bool)
		if test.answer.StatusCode != test.status || len(listed) != test.listed || more != test.more || said != test.more || strings.HasSuffix(d["detail"].(string), cut) != test.more {
			t.Errorf("%s: %d, %d errors, moreErrors %v, %q", test.name, test.answer.StatusCode, len(listed), d["moreErrors"], d["detail"])
		}
	}
}

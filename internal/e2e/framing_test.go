package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

func testFraming(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("tenant header", func(t *testing.T) { testTenantHeader(t, w) })
	t.Run("cross-site", func(t *testing.T) { testCrossSite(t, w) })
	t.Run("media types", func(t *testing.T) { testMediaTypes(t, w) })
	t.Run("methods", func(t *testing.T) { testMethods(t, w) })
	t.Run("paths", func(t *testing.T) { testPaths(t, w) })
	t.Run("encoded paths", func(t *testing.T) { testEncodedPaths(t, w) })
	t.Run("sizes", func(t *testing.T) { testSizes(t, w) })
	t.Run("raw", func(t *testing.T) { testRawRequests(t, w) })
	t.Run("pages", func(t *testing.T) { testPages(t, w) })
}

func testTenantHeader(t *testing.T, w *world) {
	form := func(name, value, fault string) scenario {
		return scenario{name: name, as: w.owner, send: "GET /auths/session", header: []string{"x-tenant-schema: " + value}, status: 400, code: "malformed-request", faults: []string{"header:x-tenant-schema " + fault}}
	}
	repeated := form("given twice", w.name, "repeated")
	repeated.header = append(repeated.header, "+x-tenant-schema: "+w.name)
	missing := form("missing", "", "required")
	missing.header = []string{"-x-tenant-schema"}
	play(t, []scenario{
		missing, repeated,
		form("empty", "", "format"),
		form("upper case", strings.ToUpper(w.name), "format"),
		form("a dot", w.name+".", "format"),
		form("a slash", "../"+w.name, "format"),
		form("percent-encoded", "%74enant-1", "format"),
		form("a list", w.name+","+w.name, "format"),
		form("a leading hyphen", "-"+w.name, "format"),
		form("a leading underscore", "_"+w.name, "format"),
		form("64 characters", strings.Repeat("t", 64), "format"),
		form("10 kB", strings.Repeat("t", 10<<10), "format"),
		form("a look-alike", "tеnant", "format"),
		form("quotes", `"`+w.name+`"`, "format"),
		form("SQL", "t' or '1'='1", "format"),
		{name: "63 characters", as: w.owner, send: "GET /auths/session", header: []string{"x-tenant-schema: " + strings.Repeat("t", 63)}, status: 401, code: "unauthenticated"},
	})
}

func testCrossSite(t *testing.T, w *world) {
	id := w.user(t, "cross", "")
	host := w.program.Address
	var scenarios []scenario
	for _, request := range []struct{ line, body string }{
		{"PATCH /users/" + id, `{"name":"Crossed"}`},
		{"POST /users", `{"email":"x@canary.example","name":"Crossed"}`},
		{"DELETE /users/" + never, ""},
		{"PUT /users/" + id + "/roles/" + never, "{}"},
		{"POST /auths/login", credentials("x@canary.example", "x")},
		{"POST /auths/logout", ""},
		{"POST /auths/refresh", ""},
	} {
		for _, header := range [][]string{
			{"sec-fetch-site: cross-site"}, {"sec-fetch-site: same-site"},
			{"origin: https://evil.example"}, {"origin: null"}, {"origin: http://" + host + ".evil.example"},
			{"sec-fetch-site: cross-site", "origin: http://" + host},
		} {
			scenarios = append(scenarios, scenario{name: request.line + " " + strings.Join(header, " "), as: w.owner, send: request.line, body: request.body, header: header, status: 403, code: "cross-origin"})
		}
	}
	for _, header := range [][]string{{"sec-fetch-site: same-origin"}, {"sec-fetch-site: none"}, {"origin: http://" + host}, {"sec-fetch-site: same-origin", "origin: https://public.example"}} {
		scenarios = append(scenarios, scenario{name: "allowed " + strings.Join(header, " "), as: w.owner, send: "PATCH /users/" + id, body: `{}`, header: header, status: 200})
	}
	for _, header := range []string{"sec-fetch-site: cross-site", "origin: https://evil.example"} {
		scenarios = append(scenarios, scenario{name: "reading " + header, as: w.owner, send: "GET /users/" + id, header: []string{header}, status: 200,
			headers: map[string]string{"Access-Control-Allow-Origin": "", "Access-Control-Allow-Credentials": ""}})
	}
	play(t, scenarios)
	if got := w.owner.do(t, "GET /users/"+id, "").text("/name"); got == "Crossed" {
		t.Error("a cross-site request changed something")
	}
}

func testMediaTypes(t *testing.T, w *world) {
	id := w.user(t, "media", "")
	post := func(contentType string, status int) scenario {
		s := scenario{name: "POST of " + contentType, as: w.owner, send: "POST /users", body: `{"email":"m` + newKey() + `@canary.example","name":"Media"}`, header: []string{"content-type: " + contentType}, status: status}
		if status == 415 {
			s.code = "unsupported-media-type"
		}
		return s
	}
	patch := func(contentType string, status int) scenario {
		s := post(contentType, status)
		s.name, s.send, s.body = "PATCH of "+contentType, "PATCH /users/"+id, `{}`
		return s
	}
	accept := func(status int, lines ...string) scenario {
		s := scenario{name: fmt.Sprintf("Accept %q", lines), as: w.owner, send: "GET /users/" + id, status: status}
		for _, line := range lines {
			s.header = append(s.header, "+accept: "+line)
		}
		if status == 406 {
			s.code = "not-acceptable"
		}
		return s
	}
	missing := post("-", 415)
	missing.header = []string{"-content-type"}
	twice := post("application/json", 400)
	twice.name, twice.header = "two content types", append(twice.header, "+content-type: application/json")
	gzip := post("application/json", 415)
	gzip.name, gzip.header = "a compressed body", append(gzip.header, "content-encoding: gzip")
	identity := post("application/json", 201)
	identity.name, identity.header = "identity", append(identity.header, "content-encoding: identity")
	play(t, []scenario{
		post("application/json", 201), post("application/json; charset=utf-8", 201), post(`application/json;charset="UTF-8"`, 201), post("Application/JSON", 201),
		post("application/json; charset=iso-8859-1", 415), post("text/plain", 415), post("text/json", 415), post("application/x-www-form-urlencoded", 415),
		post("multipart/form-data; boundary=x", 415), post("application/merge-patch+json", 415), post("application/jsonp", 415), post("application/xml", 415), post("json", 415), missing, twice, gzip, identity,
		patch("application/merge-patch+json", 200), patch("application/merge-patch+json; charset=utf-8", 200), patch("application/json-patch+json", 415), patch("text/plain", 415),
		accept(200, "application/json"), accept(200, "*/*"), accept(200, "application/*"), accept(200, "text/html, */*;q=0.1"), accept(200, "text/html", "application/json;q=0.5"),
		accept(200, "application/json, application/problem+json"), accept(200, "APPLICATION/JSON"),
		accept(406, "text/html"), accept(406, "application/xml"), accept(406, "application/json;q=0"), accept(406, "application/json;q=0.000, */*"), accept(406, "image/png, text/*"),
		{name: "an act without a body needs no content type", as: w.owner, send: "POST /users/" + id + "/suspend", status: 200},
		{name: "a body of a GET is ignored", as: w.owner, send: "GET /users/" + id, body: `{"broken`, status: 200},
	})
}

func testMethods(t *testing.T, w *world) {
	paths := map[string][]string{}
	for _, op := range w.program.document.operations {
		paths[op.path] = append(paths[op.path], op.method)
	}
	for template, methods := range paths {
		path := strings.NewReplacer("{id}", never, "{roleId}", never).Replace(template)
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "BREW", "get"} {
			if strings.Contains(strings.Join(methods, " "), method) || method == "CONNECT" {
				continue
			}
			a := w.owner.do(t, method+" "+path, "")
			a.refused(t, 405, "method-not-allowed")
			for _, served := range methods {
				if !strings.Contains(a.header.Get("Allow"), served) {
					t.Errorf("%s %s: Allow is %q", method, path, a.header.Get("Allow"))
				}
			}
		}
		options := w.owner.do(t, "OPTIONS "+path, "").expect(t, 204)
		if options.header.Get("Allow") == "" {
			t.Errorf("OPTIONS %s: no Allow", path)
		}
	}
	for _, path := range []string{"/users", "/users/" + w.owner.id, "/roles", "/auths/session", "/users/" + w.owner.id + "/overview"} {
		get, head := w.owner.do(t, "GET "+path, "").expect(t, 200), w.owner.do(t, "HEAD "+path, "").expect(t, 200)
		if len(head.body) != 0 || head.header.Get("Etag") != get.header.Get("Etag") || head.header.Get("Content-Length") != fmt.Sprint(len(get.body)) {
			t.Errorf("HEAD %s differs from GET: %v, %v", path, head.header, get.header)
		}
	}
}

func testPaths(t *testing.T, w *world) {
	for _, path := range []string{
		"/", "/nothing", "/users/", "//users", "/users//" + w.owner.id, "/./users", "/users/.", "/users/..", "/roles/../users", "/users/" + w.owner.id + "/",
		"/%2575sers", "/%55sers", "/%75sers/", "/%75sers%2F" + w.owner.id, "/%2e/users", "/users/%2E", "/users/%2e%2E/%75sers", "/users%2F" + w.owner.id, "/users/" + w.owner.id + "%2Foverview", "/Users", "/users/" + w.owner.id + "/nothing", "/users/%2e%2e/roles", "/users;a=b",
		"/users\\" + w.owner.id, "/auths", "/auths/login/", "/admin", "/.env", "/debug/pprof/", "/metrics", "/users/" + w.owner.id + "%00",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			a := w.owner.do(t, method+" "+strings.ReplaceAll(path, `\`, "%5C"), "")
			encoded := strings.HasSuffix(path, "%00") // this path is known, but its id is invalid
			if a.status != 404 && !(encoded && (a.status == 400 || a.status == 405)) {
				t.Errorf("%s %s answered %d: %s", method, path, a.status, a.body)
			}
		}
	}
}

// testEncodedPaths sends paths in which unreserved characters are percent-encoded. The
// responses must be the same as for the plain paths.
func testEncodedPaths(t *testing.T, w *world) {
	plain := w.member(t, "encoded", "")
	play(t, []scenario{
		{name: "an encoded letter", as: w.owner, send: "GET /%75sers?limit=1", status: 200},
		{name: "an encoded dash", as: w.owner, send: "GET /users/" + strings.ReplaceAll(w.owner.id, "-", "%2d"), status: 200, has: map[string]any{"/id": w.owner.id}},
		{name: "an encoded dot within a name", as: w.owner, send: "GET /openapi%2Eyaml", status: 200},
		{name: "without a session", as: w.anonymous(), send: "GET /%75sers", status: 401},
		{name: "without the permission", as: plain, send: "GET /%75sers", status: 403, has: map[string]any{"/instance": "/users"}},
		{name: "of operators, without a key", as: w.owner, send: "GET /%6Fperator/tenants", status: 401},
		{name: "from another origin", as: w.owner, send: "POST /%75sers", body: "{}", header: []string{"origin: https://evil.example"}, status: 403, code: "cross-origin"},
	})
}

func testSizes(t *testing.T, w *world) {
	fill := func(size int) string {
		body := `{"email":"size` + newKey() + `@canary.example","name":"Sized","metadata":{}`
		return body + strings.Repeat(" ", size-len(body)-1) + "}"
	}
	play(t, []scenario{
		{name: "a body of 64 KiB", as: w.owner, send: "POST /users", body: fill(64 << 10), status: 201},
		{name: "one byte more", as: w.owner, send: "POST /users", body: fill(64<<10 + 1), status: 413, code: "content-too-large"},
		{name: "a query of nearly 8 KiB", as: w.owner, send: "GET /users?q=" + strings.Repeat("a", 8000), status: 400, faults: []string{"parameter:q length"}},
		{name: "a query of more", as: w.owner, send: "GET /users?q=" + strings.Repeat("a", 9000), status: 414, code: "uri-too-long"},
	})
	r := w.owner.request(t, "POST /users", "", "content-type: application/json")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(fill(100<<10))), -1
	a, err := w.send(r)
	if err != nil {
		t.Fatal(err)
	}
	a.refused(t, 413, "content-too-large")
}

// exchangeRaw sends raw on a new connection. It returns the first response and its body.
func (w *world) exchangeRaw(t *testing.T, raw string) (*http.Response, string) {
	t.Helper()
	connection, err := net.Dial("tcp", w.program.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := connection.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(connection, raw); err != nil {
		t.Fatal(err)
	}
	if half, ok := connection.(*net.TCPConn); ok && strings.HasSuffix(raw, "<end>") {
		if err := half.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatalf("no answer to %.80q: %v", raw, err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func testRawRequests(t *testing.T, w *world) {
	head := "Host: " + w.program.Address + "\r\nX-Tenant-Schema: " + w.name + "\r\nCookie: session=" + w.owner.token + "\r\n"
	post := "POST /users HTTP/1.1\r\n" + head + "Content-Type: application/json\r\nIdempotency-Key: raw\r\n"
	for _, r := range []struct {
		name, raw string
		status    int
	}{
		{"a length and chunks", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"two lengths", post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", 400},
		{"an unknown coding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
		{"a blank before the colon", "GET /users HTTP/1.1\r\nHost : x\r\n\r\n", 400},
		{"no host", "GET /users HTTP/1.1\r\n\r\n", 400},
		{"two hosts", "GET /users HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		{"20 KiB of header", "GET /users HTTP/1.1\r\n" + head + "X-Long: " + strings.Repeat("h", 21<<10) + "\r\n\r\n", 431},
		{"a body that ends early", post + "Content-Length: 50\r\n\r\n{\"email\"<end>", 400},
		{"a NUL in a header", "GET /users HTTP/1.1\r\n" + head + "X-Nul: a\x00b\r\n\r\n", 400},
		{"two keys", post + "Idempotency-Key: raw2\r\nContent-Length: 2\r\n\r\n{}", 400},
		{"an absolute target", "GET http://" + w.program.Address + "/auths/session HTTP/1.1\r\n" + head + "\r\n", 200},
		{"two tenants", "GET /users HTTP/1.1\r\n" + head + "X-Tenant-Schema: other\r\n\r\n", 400},
		{"a tenant that goes on in the next line", "GET /users HTTP/1.1\r\n" + strings.Replace(head, w.name, w.name+"\r\n other", 1) + "\r\n", 400},
		{"a tenant behind the body", strings.Replace(post, "X-Tenant-Schema: "+w.name+"\r\n", "Trailer: X-Tenant-Schema\r\n", 1) + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Tenant-Schema: " + w.name + "\r\n\r\n", 400},
		{"two preconditions", "DELETE /users/" + never + " HTTP/1.1\r\n" + head + "If-Match: \"a\"\r\nIf-Match: \"b\"\r\n\r\n", 400},
		{"two content types", post + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 400},
		{"lines that end in a bare LF", strings.ReplaceAll("GET /auths/session HTTP/1.1\r\n"+head+"\r\n", "\r\n", "\n"), 200},
		{"chunks whose lines end in a bare LF", post + "Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n", 400},
		{"10 GB that never come", post + "Content-Length: 10000000000\r\n\r\n", 413},
		{"chunks without end", post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat(" ", 4096)+"\r\n", 17), 413},
		{"a star", "OPTIONS * HTTP/1.1\r\n" + head + "\r\n", 404},
	} {
		t.Run(r.name, func(t *testing.T) {
			response, body := w.exchangeRaw(t, r.raw)
			if response.StatusCode != r.status {
				t.Errorf("answered %d, not %d: %s", response.StatusCode, r.status, body)
			}
			if findInside([]byte(body)) != "" {
				t.Errorf("the body shows the inside: %s", body)
			}
		})
	}
	if total := w.owner.do(t, "GET /users?q=raw", "").expect(t, 200).list("/items"); len(total) != 0 {
		t.Errorf("a broken request made something: %v", total)
	}
}

func testPages(t *testing.T, w *world) {
	for _, page := range []struct{ path, contentType, contains string }{
		{"/openapi.json", "application/json", `"openapi"`},
		{"/openapi.yaml", "application/yaml", "openapi: 3.1"},
		{"/livez", "", ""},
		{"/readyz", "", ""},
		{"/problems/validation", "text/html", "validation"},
		{"/problems", "text/html", "email-taken"},
	} {
		request := w.owner.anonymous().request(t, "GET "+page.path, "", "-x-tenant-schema")
		a, err := w.send(request)
		if err != nil {
			t.Fatal(err)
		}
		if a.expect(t, 200); !strings.HasPrefix(a.header.Get("Content-Type"), page.contentType) || !bytes.Contains(a.body, []byte(page.contains)) {
			t.Errorf("%s is %q: %.200s", page.path, a.header.Get("Content-Type"), a.body)
		}
	}
	a, err := w.send(w.owner.anonymous().request(t, "GET /problems/none", "", "-x-tenant-schema"))
	if err != nil {
		t.Fatal(err)
	}
	a.expect(t, 404)
}

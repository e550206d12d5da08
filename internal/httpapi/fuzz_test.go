package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

// bodySeeds are valid bodies, and bodies with different kinds of errors.
var bodySeeds = []string{
	`{}`, `null`, `[`, `[{}]`, `"x"`, ` 1`, `{"email":"ada@example.com","name":"Ada Lovelace","department":"Sales","externalId":null,"metadata":{"a":"b"}}`,
	`{"email":1,"name":[],"metadata":{"a":null}}`, `{"a":1,"\u0061":2}`, `{"a":"\ud800"}`, "{\"\xff\":1}", `{"a":{"b":{"c":[[[[]]]]}}} `,
	`{"metadata":{"~/":1}}`, `{"name":"Ada"}{"name":"Eve"}`,
}

// bodyReaders returns, for each schema of a request body, a function that decodes a body as the
// operation does.
func bodyReaders() map[string]func(body string) (reflect.Value, error) {
	readers := map[string]func(string) (reflect.Value, error){}
	for _, op := range declared {
		takes := op.Input()
		if !takes.TakesJSON() {
			continue
		}
		readers[bodySchema(op)] = func(body string) (reflect.Value, error) {
			in := takes.New()
			err := takes.DecodeBody(in, []byte(body), unrestricted(), 0)
			return in.FieldByName("Body"), err
		}
	}
	return readers
}

// textsOf returns the string fields of the struct v, by their JSON names.
func textsOf(v reflect.Value) map[string]string {
	texts := map[string]string{}
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || f.Anonymous {
			continue
		}
		value := v.FieldByIndex(f.Index)
		if optional, ok := value.Interface().(rolecall.Optional[string]); ok {
			value = reflect.ValueOf(optional.Value)
		}
		if value.Kind() == reflect.String {
			texts[name] = value.String()
		}
	}
	return texts
}

// FuzzBodies checks that the decoder reads the same values as encoding/json, that it accepts only
// documented members, and that it returns field errors for each invalid body.
func FuzzBodies(f *testing.F) {
	for _, seed := range append(bodySeeds,
		`{"name":"Night shift","key":"night","description":null,"permissions":["users:read"],"grants":["shop/*:*"]}`,
		`{"name":"Nightly","permissions":["users:read"],"expiresAt":"2030-01-31T12:00:00Z"}`, `{"name":"Import","description":null}`,
		`{"reach":{"departments":["Sales"]},"expiresAt":"2030-01-31T12:00:00+01:00"}`, `{"reach":{"departments":[]},"expiresAt":"x"}`,
		`{"displayName":"Acme","settings":{"sessionIdleSeconds":900,"x":1e3}}`, `{"reason":"left"}`, `{"email":"a@b.c","password":"\u0000"}`,
		`{"checks":[{"permission":"shop/invoices:approve","department":"Sales"},{"permission":"users:read","department":null},{"permission":"x"},1]}`,
		`{"currentPassword":"a","newPassword":"b"}`, `{"token":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","password":"x"}`,
		`{"challenge":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","code":"123456"}`, `{"name":"Phone","passkey":{"id":"AA","response":{}}}`, `{"recoveryCode":"0123-4567-89ab-cdef","passkey":[]}`,
		`{"name":"customer","displayName":"Customer","owner":{"email":"o@b.c","name":"Olga"}}`, `{"name":"customer","owner":{"email":1,"name":null,"x":{}}}`,
	) {
		f.Add(seed)
	}
	schemas, readers := Document().Components.Schemas.Map(), bodyReaders()
	f.Fuzz(func(t *testing.T, body string) {
		if !jsontext.Value(body).IsValid() { // duplicate members and invalid UTF-8 included
			return
		}
		var document any
		if err := json.Unmarshal([]byte(body), &document); err != nil {
			t.Fatalf("%q passed as JSON: %v", body, err)
		}
		sent, isObject := document.(map[string]any)
		for schema, read := range readers {
			value, err := read(body)
			if err != nil {
				if _, told := web.StatusOf(err); told.Kind != rolecall.Invalid && told.Kind != rolecall.Unauthenticated || told.Kind == rolecall.Invalid && len(told.FieldErrors) == 0 {
					t.Fatalf("%s of %q: %v", schema, body, err)
				}
				continue
			}
			if !isObject {
				t.Errorf("%s was read from %q", schema, body)
			}
			kept := textsOf(value)
			for member, value := range sent {
				if schemas[schema].Properties[member] == nil {
					t.Errorf("%s of %q took the member %q", schema, body, member)
				}
				text, isText := value.(string)
				if keptText, ok := kept[member]; ok && isText && keptText != text {
					t.Errorf("%s of %q read %s as %q", schema, body, member, keptText)
				}
			}
		}
	})
}

// operationNamed returns the operation with the id.
func operationNamed(id string) *operation.Operation {
	i := slices.IndexFunc(declared, func(op *operation.Operation) bool { return op.ID == id })
	return declared[i]
}

// FuzzRequests sends arbitrary requests to the server with a real service and store. No request
// may cause an internal error. Each error must be a problem of the catalogue, and each response
// must match the OpenAPI document. If a request succeeds, the same request must fail without
// credentials, and for another tenant.
func FuzzRequests(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET", "/users?limit=2&q=ada&count=true", "", ""}, {"HEAD", "/roles", "", ""}, {"GET", "/auths/session?touch=false", "", ""}, {"GET", "/auths/check?permission=users:read", "", ""},
		{"POST", "/users", "idempotency-key: k", `{"email":"ada@example.com","name":"Ada Lovelace","metadata":{"a":"b"}}`}, {"OPTIONS", "/users", "origin: http://x", ""},
		{"POST", "/roles", "idempotency-key: \"k\"", `{"name":"Night shift","permissions":["users:read"]}`}, {"GET", "/events?from=2030-01-31T12:00:00Z", "", ""},
		{"PATCH", "/users/{id}", "if-match: *\ncontent-type: application/merge-patch+json", `{"name":"Ada King","department":null}`}, {"GET", "/users/{id}", "if-none-match: W/\"a\", *", ""},
		{"PATCH", "/tenant", "", `{"displayName":"Acme","settings":{}}`}, {"PUT", "/users/{id}/roles/{id}", "", `{"reach":{"departments":["Sales"]}}`}, {"DELETE", "/users/{id}", "", ""},
		{"POST", "/users/{id}/suspend", "", `{"reason":"x"}`}, {"POST", "/users/{id}/invitations", "idempotency-key: i", ""}, {"GET", "/users/{id}/overview", "accept: text/html", ""},
		{"POST", "/auths/login", "", `{"email":"owner@example.com","password":"x"}`}, {"POST", "/auths/refresh", "sec-fetch-site: cross-site", ""}, {"POST", "/auths/logout", "", ""},
		{"PUT", "/auths/password", "", `{"currentPassword":"x","newPassword":"y"}`}, {"POST", "/auths/invitations/accept", "", `{"token":"x","password":"y"}`}, {"BREW", "/../%2e//x", "x-tenant-schema: b", "{"},
		{"GET", "/problems/validation", "", ""}, {"GET", "/docs", "", ""}, {"GET", "/openapi.json", "", ""}, {"GET", "/readyz", "", ""}, {"GET", "/users?cursor=AAAA", "cookie: session=x; session=y", ""},
		{"GET", "/operator/tenants?limit=1", "", ""}, {"POST", "/operator/tenants", "idempotency-key: t", `{"name":"customer","owner":{"email":"o@example.com","name":"Olga"}}`}, {"DELETE", "/operator/tenants/operated", "if-match: \"x\"", ""},
		{"PATCH", "/operator/tenants/operated", "", `{"displayName":null,"settings":{"refreshGraceSeconds":1}}`}, {"POST", "/operator/tenants/operated/suspend", "authorization: bearer x", `{"reason":"x"}`},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	s := newTestServerWith(f, web.Options{Logger: slog.New(slog.DiscardHandler)})
	s.operate()
	if _, _, err := s.node.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: "other", Owner: rolecall.UserDraft{Email: ownerEmail, Name: "Olga Other"}}, ownerPassword); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, target, header, body string) {
		request := s.fuzzed(method, target, header, body)
		if request == nil {
			return
		}
		s := s.in(t)
		r := s.answered(request, body)
		if r.StatusCode >= 500 || r.StatusCode < 200 || r.StatusCode == 304 && request.Header.Get("If-None-Match") == "" || r.StatusCode/100 == 3 && r.StatusCode != 304 {
			t.Fatalf("%s %s answered %d %s", method, target, r.StatusCode, r.body)
		}
		if problem := r.StatusCode >= 400; problem != (r.Header.Get("Content-Type") == "application/problem+json") || problem && method != http.MethodHead && !isKnownProblem(r) {
			t.Fatalf("%s %s answered %d %v %s", method, target, r.StatusCode, r.Header, r.body)
		}
		if r.StatusCode >= 300 {
			return
		}
		if op := serves(request); method == http.MethodOptions || op != nil && op.Policy.Public {
			return
		}
		abroad, anonymous := request.Clone(t.Context()), request.Clone(t.Context())
		abroad.Header.Set("X-Tenant-Schema", "other")
		anonymous.Header.Del("Cookie")
		anonymous.Header.Del("Authorization")
		strangers := []*http.Request{anonymous}
		if !isOperators(request.URL) { // requests of operators do not depend on the tenant in the header
			strangers = append(strangers, abroad)
		}
		for _, stranger := range strangers {
			if r := s.answered(stranger, body); r.StatusCode < 300 {
				t.Fatalf("%s %s is answered to a stranger: %d %s", method, target, r.StatusCode, r.body)
			}
		}
	})
}

// operatedTenant is the tenant that fuzzed operator requests may change.
const operatedTenant = "operated"

// operate creates the operator keys of fuzzed requests, and the tenant that these requests may
// change. The first key is for all tenants, and the second key only for this tenant.
func (s *testServer) operate() {
	s.t.Helper()
	owner := rolecall.UserDraft{Email: ownerEmail, Name: "Olga Operated"}
	if _, _, err := s.node.Directory.CreateTenantWithPassword(context.Background(), rolecall.TenantDraft{Name: operatedTenant, Owner: owner}, ownerPassword); err != nil {
		s.t.Fatal(err)
	}
	for _, tenants := range [][]string{nil, {operatedTenant}} {
		_, key, err := s.node.Directory.CreateOperatorKey(context.Background(), rolecall.OperatorKeyDraft{Name: "Fuzzed", Tenants: tenants, Lifetime: time.Hour})
		if err != nil {
			s.t.Fatal(err)
		}
		s.operators = append(s.operators, "Bearer "+string(key))
	}
}

// isOperators reports whether the path belongs to the operator operations.
func isOperators(u *url.URL) bool { return strings.HasPrefix(u.Path, "/operator/") }

// fuzzed returns the request with the header lines and with credentials. It returns nil for a
// request that net/http would reject. The credentials are the owner's session. Public operations
// could end this session, so requests to them have an unknown session token. Requests to operator
// operations have an operator key. For the operations on one tenant, the key is limited to
// operatedTenant.
func (s *testServer) fuzzed(method, target, header, body string) *http.Request {
	target = strings.ReplaceAll(target, "{id}", s.ownerID)
	u, err := url.ParseRequestURI(target)
	if err != nil || !isToken(method) || method == http.MethodConnect {
		return nil
	}
	r := &http.Request{Method: method, URL: u, RequestURI: target, Host: "localhost", RemoteAddr: "127.0.0.1:1", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body))}
	r.Header = http.Header{"X-Tenant-Schema": {tenantName}, "Cookie": {s.owner}, "Content-Type": {"application/json"}}
	if slices.ContainsFunc(declared, func(op *operation.Operation) bool { return op.Policy.Public && op.Path == u.Path }) { // public operations, such as a sign-in, could end the owner's session
		r.Header.Set("Cookie", web.SessionCookie+"="+string(secret.NewToken()))
	}
	if isOperators(u) {
		r.Header.Del("Cookie")
		key := 0
		if strings.HasPrefix(u.Path, "/operator/tenants/") {
			key = 1
		}
		r.Header.Set("Authorization", s.operators[key])
	}
	for line := range strings.SplitSeq(header, "\n") {
		name, value, found := strings.Cut(line, ":")
		if value = strings.Trim(value, " \t"); !found || !isToken(name) || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return nil
		}
		r.Header.Add(name, value)
		if key := http.CanonicalHeaderKey(name); len(r.Header[key]) == 2 && key != "Idempotency-Key" {
			r.Header[key] = r.Header[key][1:]
		}
	}
	return r
}

// isToken reports whether text is a token of HTTP (RFC 9110, 5.6.2).
func isToken(text string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(marks, c)
	})
}

// handled passes the request to the server and returns the response.
func (s *testServer) handled(request *http.Request, body string) reply {
	request = request.Clone(s.t.Context())
	request.Body = io.NopCloser(strings.NewReader(body))
	recorder := httptest.NewRecorder()
	s.edge.ServeHTTP(recorder, request)
	answer := recorder.Result()
	answer.Request = request
	return reply{answer, recorder.Body.String()}
}

// answered is like handled, and checks the response against the OpenAPI document.
func (s *testServer) answered(request *http.Request, body string) reply {
	r := s.handled(request, body)
	if request.Method != http.MethodHead && r.StatusCode != http.StatusNotModified {
		checkContract(s.t, s.site.Base, r)
	}
	return r
}

// isKnownProblem reports whether the response is a problem of the catalogue.
func isKnownProblem(r reply) bool {
	var problem struct {
		Type, Code, Title, Detail, RequestID string
		Status                               int
	}
	return json.Unmarshal([]byte(r.body), &problem) == nil && problem.Status == r.StatusCode && problem.RequestID == r.Header.Get("X-Request-Id") &&
		slices.ContainsFunc(catalogue, func(e *rolecall.Error) bool {
			status, _ := web.StatusOf(e)
			return e.Code == problem.Code && status == problem.Status
		})
}

// serves returns the operation that serves the request, or nil.
func serves(r *http.Request) *operation.Operation {
	mux, method := http.NewServeMux(), r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, op := range declared {
		if op.Method == method {
			mux.Handle(op.Path, http.NotFoundHandler())
		}
	}
	_, pattern := mux.Handler(r)
	for _, op := range declared {
		if op.Method == method && op.Path == pattern {
			return op
		}
	}
	return nil
}

// bodySchema returns the name of the schema of the operation's request body.
func bodySchema(op *operation.Operation) string { return operation.ComponentName(op.Input().Body.Type) }

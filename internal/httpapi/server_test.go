package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/sqlitetest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/web"
)

func TestMain(m *testing.M) { os.Exit(sqlitetest.Main(m)) }

const (
	tenantName    = "acme"
	ownerEmail    = "owner@example.com"
	ownerPassword = "correct horse battery staple"
	passkeyOrigin = "https://example.com"
)

// testServer is the API over a real service and store, with one tenant and its owner.
type testServer struct {
	t        testing.TB
	site     *web.Site
	edge     *Server
	node     *node.Node
	db       store.Database
	keys     *secret.Keys
	url      string
	owner    string // the owner's cookie
	ownerID  string
	log      *lockedBuffer
	registry *prometheus.Registry

	operators []string // values of Authorization: a key for all tenants, and a key for one; see operate
}

func newTestServer(t testing.TB) *testServer { return newTestServerWith(t, web.Options{}) }

func newTestServerWith(t testing.TB, o web.Options) *testServer {
	t.Helper()
	return newTestServerOf(t, o, Options{})
}

func newTestServerOf(t testing.TB, o web.Options, api Options) *testServer {
	t.Helper()
	ctx := context.Background()
	db, _ := sqlitetest.Opened(t)
	s := &testServer{t: t, db: db, keys: secret.NewKeys(secret.NewKey()), log: &lockedBuffer{}, registry: prometheus.NewRegistry()}
	passkeys, err := passkey.New("example.com", []string{passkeyOrigin})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewJSONHandler(s.log, nil))
	s.node = node.New(db, access.Options{
		Passwords: secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 64, Threads: 1}, 2, 8),
		Keys:      s.keys,
		Passkeys:  passkeys,
		Logger:    logger,
	})
	display := "Acme"
	_, owner, err := s.node.Directory.CreateTenantWithPassword(ctx, rolecall.TenantDraft{Name: tenantName, DisplayName: &display, Owner: rolecall.UserDraft{Email: ownerEmail, Name: "Ada Lovelace"}}, ownerPassword)
	if err != nil {
		t.Fatal(err)
	}
	s.ownerID = owner.ID.String()
	o.Metrics = s.registry
	if o.Logger == nil {
		o.Logger = logger
	}
	s.site = web.New(o)
	s.edge = New(s.node.Access, s.node.Directory, s.node.SignIn, s.node.Webhooks, s.site, api)
	server := httptest.NewUnstartedServer(s.edge)
	server.Config = s.site.Server(s.edge)
	server.Start()
	s.url = server.URL + s.site.Base
	t.Cleanup(server.Close)
	s.owner = s.signIn(ownerEmail, ownerPassword)
	return s
}

// lockedBuffer is a log buffer that is safe for concurrent writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// reply is a response and its body.
type reply struct {
	*http.Response
	body string
}

// setSession returns the last Set-Cookie line, which sets the session cookie.
func (r reply) setSession() string {
	lines := r.Header.Values("Set-Cookie")
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// sessionCookie returns the session cookie that was set, as name=value.
func (r reply) sessionCookie() string {
	cookie, _, _ := strings.Cut(r.setSession(), ";")
	return cookie
}

// in returns the same server, which reports failures to t.
func (s *testServer) in(t testing.TB) *testServer {
	c := *s
	c.t = t
	return &c
}

// request sends a request. The headers are alternating names and values. A header with an empty
// value is not sent. The request has the tenant header, unless the headers contain it.
func (s *testServer) request(method, path, body string, headers ...string) reply {
	s.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, s.url+path, content)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Tenant-Schema", tenantName)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	seen := map[string]bool{}
	for i := 0; i < len(headers); i += 2 {
		name := http.CanonicalHeaderKey(headers[i])
		if !seen[name] {
			r.Header.Del(name)
			seen[name] = true
		}
		if headers[i+1] != "" {
			r.Header.Add(name, headers[i+1])
		}
	}
	return s.send(r)
}

func (s *testServer) send(r *http.Request) reply {
	s.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	read := reply{answer, string(body)}
	checkContract(s.t, s.site.Base, read)
	return read
}

// as sends a request with the session cookie.
func (s *testServer) as(cookie, method, path, body string, headers ...string) reply {
	s.t.Helper()
	return s.request(method, path, body, append([]string{"Cookie", cookie}, headers...)...)
}

// signIn signs the user in, and returns the session cookie.
func (s *testServer) signIn(email, password string) string {
	s.t.Helper()
	r := s.request("POST", "/auths/login", `{"email":"`+email+`","password":"`+password+`"}`)
	if r.StatusCode != http.StatusOK {
		s.t.Fatalf("sign-in: %d %s", r.StatusCode, r.body)
	}
	return r.sessionCookie()
}

// member creates a user with a role that has the permissions. It returns the session cookie and
// the id of the user. If departments are given, the assignment of the role is limited to them.
func (s *testServer) member(name string, permissions []string, departments ...string) (cookie, id string) {
	s.t.Helper()
	user := s.as(s.owner, "POST", "/users", `{"email":"`+name+`@example.com","name":"`+name+` Member","department":"Sales"}`, "Idempotency-Key", name)
	role := s.as(s.owner, "POST", "/roles", `{"name":"role of `+name+`","permissions":["`+strings.Join(permissions, `","`)+`"]}`, "Idempotency-Key", name)
	if user.StatusCode != http.StatusCreated || role.StatusCode != http.StatusCreated {
		s.t.Fatalf("member: %d %s; %d %s", user.StatusCode, user.body, role.StatusCode, role.body)
	}
	body := ""
	if departments != nil {
		body = `{"reach":{"departments":["` + strings.Join(departments, `","`) + `"]}}`
	}
	if r := s.as(s.owner, "PUT", user.Header.Get("Location")+"/roles/"+role.id(s.t), body); r.StatusCode != http.StatusCreated {
		s.t.Fatalf("assign: %d %s", r.StatusCode, r.body)
	}
	if err := s.node.SignIn.SetPassword(context.Background(), tenantName, name+"@example.com", ownerPassword); err != nil {
		s.t.Fatal(err)
	}
	return s.signIn(name+"@example.com", ownerPassword), user.id(s.t)
}

// document returns the decoded JSON body.
func (r reply) document(t testing.TB) map[string]any {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal([]byte(r.body), &document); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	return document
}

func (r reply) id(t testing.TB) string {
	t.Helper()
	id, _ := r.document(t)["id"].(string)
	return id
}

// faults returns the field errors of the problem, each as its location and its code.
func (r reply) faults(t testing.TB) string {
	t.Helper()
	var problem struct {
		Errors []struct{ Pointer, Header, Parameter, Code string }
	}
	if err := json.Unmarshal([]byte(r.body), &problem); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	var faults []string
	for _, e := range problem.Errors {
		faults = append(faults, strings.TrimSpace(e.Pointer+e.Header+e.Parameter+" "+e.Code))
	}
	return strings.Join(faults, "; ")
}

// expectProblem fails the test unless the response is a complete problem document with the status
// and the code.
func expectProblem(t *testing.T, r reply, status int, code string) {
	t.Helper()
	if r.StatusCode != status || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%d %s %s, want %d %s", r.StatusCode, r.Header.Get("Content-Type"), r.body, status, code)
	}
	p := r.document(t)
	path, _ := url.PathUnescape(r.Request.URL.EscapedPath())
	if p["code"] != code || p["type"] != "/problems/"+code || p["status"] != float64(status) || p["instance"] != path ||
		p["requestId"] != r.Header.Get("X-Request-Id") || p["title"] == "" || p["detail"] == "" {
		t.Errorf("want %d %s: %s", status, code, r.body)
	}
	if n := r.ContentLength; n != int64(len(r.body)) {
		t.Errorf("Content-Length is %d of %d", n, len(r.body))
	}
}

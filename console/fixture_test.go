package console

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/sqlitetest"
	"github.com/rolecall/rolecall/internal/web"
)

const (
	ownerEmail = "owner@example.com"
	password   = "correct horse battery staple"
)

func TestMain(m *testing.M) { os.Exit(sqlitetest.Main(m)) }

// fixture is the console with a real HTTP handler, service and store. It has two tenants,
// whose owners have the same email address and password.
type fixture struct {
	t     testing.TB
	url   string
	node  *node.Node
	owner rolecall.User // of tenant acme
	ahead atomic.Int64  // how far the clock of the service is ahead, in nanoseconds
}

func newFixture(t testing.TB) *fixture { return newFixtureAt(t, "") }

// newFixtureAt returns a fixture that is served below the base.
func newFixtureAt(t testing.TB, base string) *fixture {
	t.Helper()
	ctx := context.Background()
	store, _ := sqlitetest.Opened(t)
	logger := slog.New(slog.DiscardHandler)
	party, err := passkey.New("example.com", []string{"https://example.com"})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t}
	n := node.New(store, access.Options{
		Clock:     func() rolecall.Time { return rolecall.TimeOf(time.Now().Add(time.Duration(f.ahead.Load()))) },
		Passkeys:  party,
		Passwords: secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 64, Threads: 1}, 2, 8),
		Keys:      secret.NewKeys(secret.NewKey()), Logger: logger,
	})
	f.node = n
	for _, name := range []string{"other", "acme"} {
		shown := "Tenant " + name
		if _, f.owner, err = n.Directory.CreateTenantWithPassword(ctx, rolecall.TenantDraft{Name: name, DisplayName: &shown, Owner: rolecall.UserDraft{Email: ownerEmail, Name: "Ada Lovelace"}}, password); err != nil {
			t.Fatal(err)
		}
	}
	options := web.Options{Logger: logger, AllowOrigins: []string{"https://app.example.com"}}
	if base != "" {
		options.PublicURL = &url.URL{Scheme: "https", Host: "id.example.com", Path: base}
	}
	site := web.New(options)
	server := httptest.NewServer(web.Mount(base+Path, New(n.Access, n.Directory, n.SignIn, n.Webhooks, site, httpapi.Policies()), httpapi.New(n.Access, n.Directory, n.SignIn, n.Webhooks, site, httpapi.Options{})))
	f.url = server.URL
	t.Cleanup(server.Close)
	return f
}

// reply is a response and its body. Redirects are not followed.
type reply struct {
	*http.Response
	body string
}

// send sends a request. headers are names and values in turn.
func (f *fixture) send(method, path, cookie string, form url.Values, headers ...string) reply {
	f.t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequest(method, f.url+path, body)
	if err != nil {
		f.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		f.t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = response.Body.Close()
	return reply{response, string(content)}
}

func (f *fixture) get(path, cookie string, headers ...string) reply {
	return f.send(http.MethodGet, path, cookie, nil, headers...)
}

// signIn returns the cookie of a new session.
func (f *fixture) signIn(tenant, email string) string {
	f.t.Helper()
	a := f.send(http.MethodPost, "/console/"+tenant+"/sign-in", "", url.Values{"email": {email}, "password": {password}})
	if a.StatusCode != http.StatusSeeOther || len(a.Cookies()) == 0 {
		f.t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	session := a.Cookies()[len(a.Cookies())-1] // the session cookie is the last one
	return session.Name + "=" + session.Value
}

// await advances the clock of the service until a sign-in is too old for operations that need a
// recent sign-in.
func (f *fixture) await() { f.ahead.Add(int64(rolecall.DefaultReauthentication + time.Minute)) }

// asOwner returns the owner of acme as a caller.
func (f *fixture) asOwner() access.Caller {
	f.t.Helper()
	ctx := context.Background()
	tenant, err := f.node.Directory.Tenant(ctx, "acme")
	if err != nil {
		f.t.Fatal(err)
	}
	signIn, err := f.node.SignIn.Login(ctx, access.Anonymous{Tenant: tenant, TenantName: "acme"}, ownerEmail, password)
	if err != nil {
		f.t.Fatal(err)
	}
	return access.Caller{Principal: signIn.Principal}
}

// hire creates an active user of acme with the permissions. With departments, the permissions are
// limited to these departments.
func (f *fixture) hire(email, name string, permissions []string, departments ...string) rolecall.User {
	f.t.Helper()
	ctx, c := context.Background(), f.asOwner()
	created, err := f.node.Directory.CreateUser(ctx, c, idempotency.Key{Text: email, Fingerprint: []byte(email)}, rolecall.UserDraft{Email: email, Name: name})
	if err == nil {
		err = f.node.SignIn.SetPassword(ctx, "acme", email, password)
	}
	if err == nil && permissions != nil {
		var role idempotency.Created[rolecall.Role]
		role, err = f.node.Directory.CreateRole(ctx, c, idempotency.Key{Text: email, Fingerprint: []byte(email)}, rolecall.RoleDraft{Name: "Role of " + email, Permissions: permissions})
		if err == nil {
			_, _, err = f.node.Directory.AssignRole(ctx, c, rolecall.HolderOf(created.Value.ID), role.Value.ID, rolecall.AssignmentDraft{Departments: departments})
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Value
}

func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

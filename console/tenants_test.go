package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
)

// apiSession returns the cookie of a new session of the API.
func (f *fixture) apiSession(tenantName string) string {
	f.t.Helper()
	ctx := context.Background()
	tenant, err := f.node.Directory.Tenant(ctx, tenantName)
	if err != nil {
		f.t.Fatal(err)
	}
	signIn, err := f.node.SignIn.Login(ctx, access.Anonymous{Tenant: tenant, TenantName: tenantName}, ownerEmail, password)
	if err != nil {
		f.t.Fatal(err)
	}
	return "session=" + string(signIn.Token)
}

// opens reports whether the list of users of the tenant opens with the cookies.
func (f *fixture) opens(tenant string, cookies ...string) bool {
	f.t.Helper()
	a := f.get("/console/"+tenant+"/users", strings.Join(cookies, "; "))
	if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusSeeOther {
		f.t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return a.StatusCode == http.StatusOK
}

func TestOneBrowserHasSessionsOfSeveralTenants(t *testing.T) {
	f := newFixture(t)
	acme, other := f.signIn("acme", ownerEmail), f.signIn("other", ownerEmail)
	for _, tenant := range []string{"acme", "other"} {
		if !f.opens(tenant, acme, other) {
			t.Errorf("tenant %s asks for a sign-in", tenant)
		}
	}
	page := f.get("/console/acme/users", acme+"; "+other).body
	if !strings.Contains(page, `<a class="menu-item" href="/console/other/"><bdi>Tenant other</bdi></a>`) || strings.Contains(page, `<a class="menu-item" href="/console/acme/">`) {
		t.Errorf("the switcher does not list the other tenant: %s", page)
	}
	if a := f.get("/console/", acme+"; "+other); !strings.Contains(a.body, `href="/console/acme/"`) || !strings.Contains(a.body, `href="/console/other/"`) {
		t.Errorf("the start page does not list the tenants: %s", a.body)
	}
	f.send(http.MethodPost, "/console/acme/sign-out", acme+"; "+other, nil)
	if f.opens("acme", acme, other) || !f.opens("other", acme, other) {
		t.Error("a sign-out does not end exactly the session of its tenant")
	}
	if renamed := strings.Replace(other, "console-other", "console-acme", 1); f.opens("acme", renamed) {
		t.Error("a session of one tenant opens another")
	}
}

func TestConsoleAcceptsTheSessionOfTheAPI(t *testing.T) {
	f := newFixture(t)
	shared := f.apiSession("acme")
	if !f.opens("acme", shared) || f.opens("other", shared) {
		t.Error("the session of the API does not open exactly its tenant")
	}
	own, ended := f.signIn("other", ownerEmail), f.signIn("acme", ownerEmail)
	f.send(http.MethodPost, "/console/acme/users/"+f.owner.ID.String()+"/sessions/end", ended, nil)
	if !f.opens("acme", strings.Replace(own, "console-other", "console-acme", 1), f.apiSession("acme")) {
		t.Error("a console session that is not live hides the session of the API")
	}

	// A sign-out ends the API session and the console session of its tenant. It does not end the
	// API session of another tenant.
	shared, own = f.apiSession("acme"), f.signIn("acme", ownerEmail)
	a := f.send(http.MethodPost, "/console/acme/sign-out", own+"; "+shared, nil)
	if f.opens("acme", own) || f.opens("acme", shared) || len(a.Cookies()) != 2 {
		t.Errorf("a sign-out leaves a session: %q", a.Header["Set-Cookie"])
	}
	shared, own = f.apiSession("acme"), f.signIn("other", ownerEmail)
	a = f.send(http.MethodPost, "/console/other/sign-out", own+"; "+shared, nil)
	if !f.opens("acme", shared) || len(a.Cookies()) != 1 {
		t.Errorf("a sign-out ends the session of another tenant: %q", a.Header["Set-Cookie"])
	}
}

func TestBrowserHasAtMostEightConsoleSessions(t *testing.T) {
	f := newFixture(t)
	cookies := make([]string, maxTenants)
	for i := range cookies {
		name := fmt.Sprintf("tenant-%d", i)
		if _, _, err := f.node.Directory.CreateTenantWithPassword(context.Background(), rolecall.TenantDraft{Name: name, Owner: rolecall.UserDraft{Email: ownerEmail, Name: "Ada Lovelace"}}, password); err != nil {
			t.Fatal(err)
		}
		cookies[i] = f.signIn(name, ownerEmail)
	}
	sign := func(tenant string) reply {
		return f.send(http.MethodPost, "/console/"+tenant+"/sign-in", strings.Join(cookies, "; "), map[string][]string{"email": {ownerEmail}, "password": {password}})
	}
	if a := sign("tenant-3"); len(a.Cookies()) == 0 || strings.Contains(strings.Join(a.Header["Set-Cookie"], "\n"), "tenant-0") {
		t.Errorf("a new sign-in to the same tenant ends another session: %q", a.Header["Set-Cookie"])
	}
	if a := sign("acme"); !strings.Contains(strings.Join(a.Header["Set-Cookie"], "\n"), "console-tenant-0=; Path=/; Max-Age=0") {
		t.Errorf("the ninth sign-in sets %q", a.Header["Set-Cookie"])
	}
	if f.opens("tenant-0", cookies...) || !f.opens("tenant-1", cookies...) {
		t.Error("the ninth sign-in does not end exactly the oldest session")
	}
}

package console

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/store"
)

// makeConnection creates a connection of acme to the provider with the issuer, after the changes.
func (f *fixture) makeConnection(issuer string, changes ...func(*rolecall.ConnectionDraft)) rolecall.Connection {
	f.t.Helper()
	draft := rolecall.ConnectionDraft{Name: "Acme SSO", Issuer: issuer, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Domains: []string{"acme.example"}}
	for _, change := range changes {
		change(&draft)
	}
	created, err := f.node.SignIn.CreateConnection(f.t.Context(), f.asOwner(), idempotency.Key{Text: issuer, Fingerprint: []byte(issuer)}, draft)
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Value
}

// provide starts an identity provider that the fixture can reach.
func (f *fixture) provide() *oidctest.Provider {
	f.t.Helper()
	provider, now := oidctest.Start(f.t), func() time.Time { return f.node.Access.Now().Std() }
	provider.SetClock(now)
	f.node.Access.OIDC = oidc.New(oidc.Options{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: provider.Roots(), Now: now})
	return provider
}

// identify links an identity of the connection to the user.
func (f *fixture) identify(user rolecall.User, c rolecall.Connection, subject string) rolecall.Identity {
	f.t.Helper()
	now := f.node.Access.Now()
	identity := rolecall.Identity{ID: rolecall.NewID[rolecall.Identity](now), UserID: user.ID, ConnectionID: c.ID, Issuer: c.Issuer, Subject: subject, Email: user.Email, CreatedAt: now}
	err := f.node.Access.Store.Update(f.t.Context(), f.asOwner().Tenant.ID, func(tx *store.Tx) error {
		tx.InsertIdentity(identity)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return identity
}

// shows fails the test unless the page has all parts.
func shows(t *testing.T, a reply, parts ...string) {
	t.Helper()
	body := strings.Join(strings.Fields(a.body), " ")
	for _, part := range parts {
		if !strings.Contains(body, part) {
			_, main, _ := strings.Cut(body, "<main")
			t.Errorf("%d, without %q: %.4000s", a.StatusCode, part, main)
		}
	}
}

func TestConnectionsInTheConsole(t *testing.T) {
	f := newFixture(t)
	provider, role, cookie := f.provide(), f.makeRole("Staff", "users:read"), f.signIn("acme", ownerEmail)
	shows(t, f.get("/console/acme/connections", cookie), "No connections", "New connection")
	shows(t, f.get("/console/acme/connections/create", cookie), "The page of the connection shows it", "openid email profile", "https://login.microsoftonline.com/", "Sign-in redirect URIs")
	form := url.Values{
		"idempotency-key": {"k"}, "name": {"Acme SSO"}, "issuer": {provider.Issuer}, "clientId": {oidctest.ClientID}, "clientSecret": {oidctest.ClientSecret},
		"domains": {"acme.example\n ACME.test \n"}, "linking": {"verified-email"}, "provisions": {"true"}, "provisioning/roleIds": {role.ID.String()},
		"provisioning/department": {"Sales"}, "secondFactor": {"trust"}, "amrValues": {"mfa"}, "acrValues": {""},
		"fillsGroups": {"true"}, "groups/claim": {" groups "}, "groups/matchBy": {"externalId"}, "groups/create": {"true"}, "groups/scopes": {"groups roles"},
	}
	made := f.send(http.MethodPost, "/console/acme/connections/create", cookie, form)
	list, err := f.node.SignIn.Connections(t.Context(), f.asOwner())
	if made.StatusCode != http.StatusSeeOther || err != nil || len(list) != 1 {
		t.Fatalf("%d %v %v %s", made.StatusCode, list, err, made.body)
	}
	c := list[0]
	if strings.Join(c.Domains, " ") != "acme.example acme.test" || c.Linking != rolecall.LinkVerifiedEmail || c.SecondFactor != rolecall.FactorTrust || c.Provisioning == nil || *c.Provisioning.Department != "Sales" || c.Provisioning.RoleIDs[0] != role.ID {
		t.Errorf("the connection is %+v", c)
	}
	if g := c.Groups; g == nil || g.Claim != "groups" || g.MatchBy != rolecall.MatchExternalID || !g.Create || strings.Join(g.Scopes, " ") != "groups roles" {
		t.Errorf("the groups are %+v", g)
	}
	path := "/console/acme/connections/" + c.ID.String()
	shows(t, f.get("/console/acme/connections", cookie), "Acme SSO", provider.Issuer, "acme.example, acme.test")
	shown := f.get(made.Header.Get("Location"), cookie)
	shows(t, shown, "Acme SSO", ">Staff<", "Department: <bdi>Sales</bdi>", "<code>mfa</code>", "The claim <code>groups</code> has the external IDs", "openid email profile groups roles", "You created a connection", "Test it, and sign in with it once")
	if strings.Contains(shown.body, oidctest.ClientSecret) {
		t.Error("the page shows the client secret")
	}

	tested := f.send(http.MethodPost, path+"/test", cookie, url.Values{})
	shows(t, tested, "The provider can be reached", "5 keys", "It has an address for signing out.")
	provider.Set(func(s *oidctest.Settings) {
		s.Metadata = func(m map[string]any) { m["issuer"] = "https://other.example" }
	})
	shows(t, f.send(http.MethodPost, path+"/test", cookie, url.Values{}), "can&#39;t sign in with this connection", "https://other.example", "/.well-known/openid-configuration")
}

func TestAConnectionIsEditedAndDeletedInTheConsole(t *testing.T) {
	f := newFixture(t)
	role, cookie := f.makeRole("Staff"), f.signIn("acme", ownerEmail)
	c := f.makeConnection("https://login.acme.example", func(d *rolecall.ConnectionDraft) {
		d.Provisioning = &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{role.ID}}
		d.Groups = &rolecall.ConnectionGroups{Claim: "groups", Create: true}
	})
	path := "/console/acme/connections/" + c.ID.String()
	edit := f.get(path+"/edit", cookie)
	tag := fieldOf(t, edit.body, "if-match", "value")
	was := url.Values{
		"if-match": {tag}, "was-name": {c.Name}, "was-clientId": {c.ClientID}, "was-linking": {"invited"}, "was-secondFactor": {"require"}, "was-domains": {"acme.example"},
		"was-amrValues": {""}, "was-acrValues": {""}, "was-provisions": {"true"}, "was-provisioning/roleIds": {role.ID.String()}, "was-provisioning/department": {""},
		"was-fillsGroups": {"true"}, "was-groups/claim": {"groups"}, "was-groups/matchBy": {"name"}, "was-groups/create": {"true"}, "was-groups/scopes": {""},
	}
	form := url.Values{
		"name": {"Acme"}, "clientId": {c.ClientID}, "clientSecret": {""}, "linking": {"invited"}, "secondFactor": {"require"}, "domains": {"acme.example\nbeta.example"},
		"amrValues": {""}, "acrValues": {""}, "provisioning/department": {""},
		"fillsGroups": {"true"}, "groups/claim": {"roles"}, "groups/matchBy": {"name"}, "groups/scopes": {""},
	}
	for name, values := range was {
		form[name] = values
	}
	if a := f.send(http.MethodPost, path+"/edit", cookie, form); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	changed, err := f.node.SignIn.Connection(t.Context(), f.asOwner(), c.ID)
	if err != nil || changed.Name != "Acme" || len(changed.Domains) != 2 || changed.Provisioning != nil || string(changed.Secret) != string(c.Secret) || changed.Linking != c.Linking {
		t.Errorf("%+v %v", changed, err)
	}
	if g := changed.Groups; g == nil || g.Claim != "roles" || g.Create {
		t.Errorf("the groups are %+v", g)
	}
	form.Set("name", "Other")
	if a := f.send(http.MethodPost, path+"/edit", cookie, form); a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.body, "while you were editing") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form.Set("if-match", "")
	form.Set("secondFactor", "trust")
	form.Set("groups/claim", "")
	if a := f.send(http.MethodPost, path+"/edit", cookie, form); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `value="trust" checked`) || !strings.Contains(a.body, `id="fault-groups/claim"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}

	shows(t, f.get(path+"/delete", cookie), "No user has an identity")
	f.identify(f.hire("eve@example.com", "Eve Adams", nil), c, "eve-1")
	asked := f.get(path+"/delete", cookie)
	shows(t, asked, "1 user identity of this connection is deleted too", `name="force" value="true"`)
	if a := f.send(http.MethodPost, path+"/delete", cookie, url.Values{}); a.StatusCode != http.StatusConflict {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.send(http.MethodPost, path+"/delete", cookie, url.Values{"force": {"true"}}); a.StatusCode != http.StatusSeeOther || f.get(path, cookie).StatusCode != http.StatusNotFound {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestOnlyThoseWithAllPermissionsConfigureConnections(t *testing.T) {
	f := newFixture(t)
	c := f.makeConnection("https://login.acme.example")
	f.hire("reader@example.com", "Rita Reader", []string{"connections:read", "connections:create", "connections:update", "connections:delete", "tenant:read"})
	f.hire("user@example.com", "Uma User", []string{"tenant:read"})
	reader, user := f.signIn("acme", "reader@example.com"), f.signIn("acme", "user@example.com")
	path := "/console/acme/connections/" + c.ID.String()
	for _, page := range []string{"/console/acme/connections", path} {
		a := f.get(page, reader)
		shows(t, a, "Acme SSO", "can become any other user")
		if strings.Contains(a.body, "/connections/create") || strings.Contains(a.body, path+"/edit") || strings.Contains(a.body, path+"/delete") {
			t.Errorf("%s offers a change: %s", page, a.body)
		}
		if a := f.get(page, user); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", page, a.StatusCode)
		}
	}
	for _, page := range []string{"/console/acme/connections/create", path + "/edit", path + "/delete"} {
		if a := f.get(page, reader); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", page, a.StatusCode)
		}
	}
	if strings.Contains(f.get("/console/acme/settings", user).body, "/acme/connections") || !strings.Contains(f.get("/console/acme/settings", reader).body, "/acme/connections") {
		t.Error("the tab of connections is not shown to exactly those who may read them")
	}
}

func TestPasswordsOnlyForOwnersAreConfirmed(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	form := url.Values{"settings/passwordSignIn": {"owners"}, "was-settings/passwordSignIn": {"all"}}
	asked := f.send(http.MethodPost, "/console/acme/settings/edit", cookie, form)
	shows(t, asked, "only owners can sign in with a password", "no connection exists", "Nothing is saved yet", `value="owners" checked`)
	form.Set("accepted", fieldOf(t, asked.body, "accepted", "value"))
	if a := f.send(http.MethodPost, "/console/acme/settings/edit", cookie, form); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	shows(t, f.get("/console/acme/settings", cookie), "Only owners")
	shows(t, f.get("/console/acme/connections", cookie), "all other users are locked out")
	form = url.Values{"settings/passwordSignIn": {"all"}, "was-settings/passwordSignIn": {"owners"}}
	shows(t, f.send(http.MethodPost, "/console/acme/settings/edit", cookie, form), "Everyone can sign in with a password again")
}

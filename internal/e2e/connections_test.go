package e2e

import (
	"strings"
	"testing"
)

func testConnections(t *testing.T, p *program) {
	t.Run("life", func(t *testing.T) { testLifeOfConnections(t, newWorld(t, p)) })
	t.Run("who configures", func(t *testing.T) { testWhoConfiguresConnections(t, newWorld(t, p)) })
	t.Run("public", func(t *testing.T) { testPublicConnections(t, newWorld(t, p)) })
	t.Run("secret", func(t *testing.T) { testSecretOfConnections(t, newWorld(t, p)) })
}

// returnTo returns the address of the tenant to which a sign-in with an identity provider returns.
func (w *world) returnTo() string { return "https://" + w.name + ".app.example/signed-in" }

// newConnection is the body of a connection, followed by further members.
func newConnection(name, issuer, more string) string {
	return `{"name":"` + name + `","issuer":"` + issuer + `","clientId":"rolecall","clientSecret":"canary-secret"` + more + `}`
}

func testLifeOfConnections(t *testing.T, w *world) {
	const acme = "https://login.acme.example"
	create := w.owner.do(t, "POST /connections", newConnection("Acme SSO", acme, `,"domains":["ACME.example"]`), "idempotency-key: connection").expect(t, 201)
	id, tag := create.text("/id"), create.header.Get("Etag")
	owner := w.builtIn(t, "owner")
	play(t, []scenario{
		{name: "a repeat", as: w.owner, send: "POST /connections", header: []string{"idempotency-key: connection"}, body: newConnection("Acme SSO", acme, `,"domains":["ACME.example"]`), status: 201, has: map[string]any{"/id": id}},
		{name: "reading", as: w.owner, send: "GET /connections/" + id, status: 200, members: everyConnectionMember, has: map[string]any{"/issuer": acme, "/domains/0": "acme.example", "/linking": "invited", "/provisioning": nil, "/secondFactor": "require"}},
		{name: "the same name", as: w.owner, send: "POST /connections", body: newConnection("ACME sso", "https://other.example", ""), status: 409, code: "connection-name-taken"},
		{name: "the same issuer", as: w.owner, send: "POST /connections", body: newConnection("Other", acme, ""), status: 409, code: "issuer-taken"},
		{name: "the same domain", as: w.owner, send: "POST /connections", body: newConnection("Other", "https://other.example", `,"domains":["acme.Example"]`), status: 409, code: "domain-taken"},
		{name: "an issuer for everybody", as: w.owner, send: "POST /connections", body: newConnection("Other", "https://login.microsoftonline.com/common/v2.0", ""), status: 422, code: "validation"},
		{name: "an issuer inside", as: w.owner, send: "POST /connections", body: newConnection("Other", "https://127.0.0.1", ""), status: 422, code: "validation"},
		{name: "plain HTTP", as: w.owner, send: "POST /connections", body: newConnection("Other", "http://other.example", ""), status: 422, code: "validation"},
		{name: "provisioning of owners", as: w.owner, send: "PATCH /connections/" + id, body: `{"provisioning":{"roleIds":["` + owner + `"]}}`, status: 422, code: "validation"},
		{name: "provisioning of an unknown role", as: w.owner, send: "PATCH /connections/" + id, body: `{"provisioning":{"roleIds":["` + never + `"]}}`, status: 422, code: "validation"},
		{name: "provisioning", as: w.owner, send: "PATCH /connections/" + id, body: `{"provisioning":{"roleIds":["` + w.builtIn(t, "viewer") + `"],"department":"Sales"}}`, status: 200, has: map[string]any{"/provisioning/department": "Sales"}},
		{name: "an empty secret", as: w.owner, send: "PATCH /connections/" + id, body: `{"clientSecret":""}`, status: 422, faults: []string{"/clientSecret length"}},
		{name: "a client ID with a NUL", as: w.owner, send: "PATCH /connections/" + id, body: `{"clientId":"a\u0000"}`, status: 422, faults: []string{"/clientId format"}},
		{name: "a client of other characters", as: w.owner, send: "POST /connections", body: `{"name":"Other","issuer":"https://other.example","clientId":"ä","clientSecret":"\u0000"}`, status: 422, faults: []string{"/clientId format", "/clientSecret format"}},
		{name: "another issuer", as: w.owner, send: "PATCH /connections/" + id, body: `{"issuer":"https://other.example"}`, status: 422, code: "validation"},
		{name: "trust without values", as: w.owner, send: "PATCH /connections/" + id, body: `{"secondFactor":"trust"}`, status: 422, code: "validation"},
		{name: "an old version", as: w.owner, send: "PATCH /connections/" + id, body: `{"name":"Renamed"}`, header: []string{"if-match: " + tag}, status: 412, code: "precondition-failed"},
	})
	w.owner.do(t, "DELETE /connections/"+id, "").expect(t, 204)
	w.owner.do(t, "GET /connections/"+id, "").refused(t, 404, "not-found")
}

// testWhoConfiguresConnections checks that all permissions for connections are not enough: an identity
// provider can sign in as any user.
func testWhoConfiguresConnections(t *testing.T, w *world) {
	id := w.makeConnection(t, "ceiling")
	for name, c := range map[string]*caller{
		"every permission for connections":         w.holder(t, "connects", "", "", "connections:*"),
		"everything in Rolecall":                   w.holder(t, "rolecall", "", "", "*:*"),
		"everything, in a department":              w.holder(t, "department", "", "Sales", "*:*", "*/*:*"),
		"everything in applications, and the rest": w.holder(t, "applications", "", "", "connections:*", "*/*:*"),
	} {
		for _, request := range [][2]string{{"POST /connections", connectionBody("more")}, {"PATCH /connections/" + id, `{"name":"Mine"}`}, {"DELETE /connections/" + id, ""}} {
			if a := c.do(t, request[0], request[1]); a.status != 403 || a.text("/code") != "permission-denied" {
				t.Errorf("%s: %s answered %d %s", name, request[0], a.status, a.text("/code"))
			}
		}
	}
	all := w.holder(t, "everything", "", "", "*:*", "*/*:*")
	all.do(t, "PATCH /connections/"+id, `{"name":"Changed"}`).expect(t, 200)
}

// testPublicConnections checks that the public operations show names only, depend on no user, and treat an
// unknown tenant like one without connections.
func testPublicConnections(t *testing.T, w *world) {
	nobody, unknown := w.anonymous(), w.anonymous().in("no-such-tenant")
	find := func(c *caller, email string) string {
		return string(c.do(t, "POST /auths/connections/find", emailBody(email)).expect(t, 200).body)
	}
	const list = "GET /auths/connections"
	if a, b := nobody.do(t, list, "").expect(t, 200), unknown.do(t, list, "").expect(t, 200); string(a.body) != string(b.body) {
		t.Errorf("without connections: %s, of an unknown tenant: %s", a.body, b.body)
	}
	if a, b := find(nobody, "ada@acme.example"), find(unknown, "ada@acme.example"); a != b {
		t.Errorf("without connections: %s, of an unknown tenant: %s", a, b)
	}
	id := w.owner.do(t, "POST /connections", newConnection("Acme SSO", "https://login.acme.example", `,"domains":["`+canary+`.example"]`)).expect(t, 201).text("/id")
	if got, want := string(nobody.do(t, list, "").expect(t, 200).body), `{"items":[{"id":"`+id+`","name":"Acme SSO"}],"nextCursor":null}`; strings.TrimSpace(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w.user(t, "known", "")
	if known, unknown := find(nobody, address("known")), find(nobody, strings.ToUpper(address("nobody"))); known != unknown || !strings.Contains(known, id) {
		t.Errorf("of a user: %s, of nobody: %s", known, unknown)
	}
	if other := find(nobody, "known@sub."+canary+".example"); strings.Contains(other, id) {
		t.Errorf("of another domain: %s", other)
	}
	nobody.do(t, "POST /auths/connections/find", emailBody("acme.example")).refused(t, 422, "validation")
}

// testSecretOfConnections checks that no response and no event contains the client secret.
func testSecretOfConnections(t *testing.T, w *world) {
	create := w.owner.do(t, "POST /connections", newConnection("Acme SSO", "https://login.acme.example", "")).expect(t, 201)
	id := create.text("/id")
	answers := []*answer{
		create, w.owner.do(t, "GET /connections/"+id, ""), w.owner.do(t, "GET /connections", ""), w.owner.do(t, "PATCH /connections/"+id, `{"name":"Renamed","clientSecret":"canary-secret-2"}`),
		w.owner.do(t, "DELETE /connections/"+id, ""), w.owner.do(t, "GET /events?limit=10", ""), w.owner.do(t, "GET /changes", ""),
	}
	for _, a := range answers {
		if strings.Contains(string(a.body), "canary-secret") || strings.Contains(string(a.body), `"secret"`) {
			t.Errorf("the response has the secret: %s", a.body)
		}
	}
}

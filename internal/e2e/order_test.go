package e2e

import (
	"strings"
	"testing"
)

// testOrder sends requests that violate several rules. The response must report only the rule
// that is checked first. Violations of rules that are checked together must be reported
// together.
func testOrder(t *testing.T, p *program) {
	w := newWorld(t, p)
	id := w.user(t, "ordered", "Ops")
	w.owner.do(t, "POST /users", `{"email":"taken@canary.example","name":"Taken","externalId":"taken"}`).expect(t, 201)
	plain := w.member(t, "plain", "")
	sales := w.holder(t, "sales", "", "Sales", "users:read", "users:update", "users:delete")
	reader := w.holder(t, "reader", "", "", "users:read", "users.name:update")
	editor := w.holder(t, "editor", "", "", "users:read", "users:update")

	suspended := newWorld(t, p)
	p.run(t, "", "tenant", "suspend", suspended.name)
	awaitStatus(t, suspended.owner, "GET /auths/session", 403)
	out := w.anonymous()
	tooLong := "?q=" + strings.Repeat("q", 9000)
	stale := `if-match: "stale"`
	noTenant := "-x-tenant-schema"
	play(t, []scenario{
		{name: "a long address before an unknown path", as: out, send: "GET /none" + tooLong, status: 414},
		{name: "an unknown path before the tenant", as: out, send: "GET /none", header: []string{noTenant}, status: 404, code: "unknown-path"},
		{name: "the method before the tenant", as: out, send: "PUT /users", header: []string{noTenant}, status: 405},
		{name: "the length before the tenant", as: out, send: "POST /users", body: strings.Repeat(" ", 70<<10), header: []string{noTenant}, status: 413},
		{name: "the tenant before the origin", as: out, send: "POST /users", body: "{}", header: []string{noTenant, "origin: https://evil.example"}, status: 400},
		{name: "the origin before Accept", as: out, send: "POST /users", body: "{}", header: []string{"origin: https://evil.example", "accept: text/html"}, status: 403, code: "cross-origin"},
		{name: "Accept before the content type", as: out, send: "POST /users", body: "{}", header: []string{"accept: text/html", "content-type: text/plain"}, status: 406},
		{name: "the content type before the session", as: out, send: "POST /users", body: "{}", header: []string{"content-type: text/plain"}, status: 415},
		{name: "the session before the suspended tenant", as: suspended.anonymous(), send: "GET /users", status: 401},
		{name: "a foreign session before the suspended tenant", as: w.owner.in(suspended.name), send: "GET /users", status: 401},
		{name: "the suspended tenant before the permission", as: suspended.owner, send: "POST /users", body: "{", status: 403, code: "tenant-suspended"},
		{name: "the session before the permission", as: out, send: "POST /users", body: "{", status: 401},
		{name: "the permission before the header", as: plain, send: "POST /users", body: "{", header: []string{"-idempotency-key"}, status: 403, code: "permission-denied"},
		{name: "the permission before the query", as: plain, send: "GET /users?limit=0", status: 403, code: "permission-denied"},
		{name: "the permission before the path", as: plain, send: "DELETE /users/none", status: 403, code: "permission-denied"},
		{name: "header and syntax together", as: w.owner, send: "POST /users", body: "{", header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required", " syntax"}},
		{name: "path, query, header and syntax together", as: w.owner, send: "PATCH /users/none?x=1", body: "[", header: []string{"if-match: stale"}, status: 400,
			faults: []string{"parameter:id format", "parameter:x unknown", "header:if-match format", " syntax"}},
		{name: "the syntax before the type of the body", as: w.owner, send: "POST /users", body: "[]]", status: 400, faults: []string{" syntax"}},
		{name: "header before the type of the body", as: w.owner, send: "POST /users", body: "[]", header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required"}},
		{name: "header before the rules of the body", as: w.owner, send: "POST /users", body: `{"name":"a"}`, header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required"}},
		{name: "the path before the rules of the body", as: w.owner, send: "PATCH /users/none", body: `{"name":"a"}`, status: 400, faults: []string{"parameter:id format"}},
		{name: "the rules of the body before visibility", as: w.owner, send: "PATCH /users/" + never, body: `{"name":"a"}`, status: 422},
		{name: "the rules of the body before visibility, out of reach", as: sales, send: "PATCH /users/" + id, body: `{"name":"a"}`, status: 422},
		{name: "the permission for a member before its value", as: reader, send: "PATCH /users/" + id, body: `{"name":"a","department":1}`, status: 403, code: "permission-denied", contains: []string{"users.department:update"}},
		{name: "the permission for a member before visibility", as: reader, send: "PATCH /users/" + never, body: `{"department":"Sales"}`, status: 403, code: "permission-denied"},
		{name: "the syntax before the permission for a member", as: reader, send: "PATCH /users/" + id, body: `{"department":1,}`, status: 400},
		{name: "visibility before the permission on the object", as: sales, send: "PATCH /users/" + id, body: `{"name":"Renamed"}`, status: 404, code: "not-found"},
		{name: "visibility before the precondition", as: sales, send: "PATCH /users/" + id, body: `{"name":"Renamed"}`, header: []string{stale}, status: 404},
		{name: "visibility before the precondition of a deletion", as: w.owner, send: "DELETE /users/" + never, header: []string{stale}, status: 404},
		{name: "the permission on the object before the precondition", as: reader, send: "PATCH /users/" + id, body: `{"department":"Sales"}`, header: []string{stale}, status: 403, code: "permission-denied"},
		{name: "the precondition before the conflict", as: editor, send: "PATCH /users/" + id, body: `{"externalId":"taken"}`, header: []string{stale}, status: 412, code: "precondition-failed"},
		{name: "the precondition before the last owner", as: w.owner, send: "DELETE /users/" + w.owner.id, header: []string{stale}, status: 412},
		{name: "the precondition before the system role", as: w.owner, send: "DELETE /roles/" + w.builtIn(t, "owner"), header: []string{stale}, status: 412},
		{name: "the conflict last", as: editor, send: "PATCH /users/" + id, body: `{"externalId":"taken"}`, status: 409, code: "external-id-taken"},
	})
	if got := w.owner.do(t, "GET /users/"+id, "").text("/name"); got != "User ordered" {
		t.Errorf("a refused request changed the name to %q", got)
	}
}

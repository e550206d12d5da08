package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/process"
)

// operatorKey creates an operator key by the command line. It returns a caller with the key.
// The caller has no tenant yet, so call its method of before you send requests.
func (p *program) operatorKey(t testing.TB, flags ...string) *caller {
	t.Helper()
	output := p.run(t, "", append([]string{"operator-key", "create", "End to end", "--json"}, flags...)...)
	var made struct{ ID, Key string }
	if err := json.Unmarshal([]byte(output), &made); err != nil {
		t.Fatal(err)
	}
	p.secret(made.Key)
	return &caller{bearer: made.Key, id: made.ID}
}

// of returns a copy of the caller that sends requests to the tenant of w, from the source
// address of w.
func (c *caller) of(w *world) *caller {
	there := *c
	there.world, there.tenant = w, w.name
	return &there
}

// operator creates an operator key that is valid for the tenant of w only.
func (w *world) operator(t testing.TB) *caller {
	t.Helper()
	return w.program.operatorKey(t, "--tenant", w.name).of(w)
}

// testOperators tests the operations under /operator, for which a program needs an operator
// key.
func testOperators(t *testing.T, p *program) {
	t.Run("sign-up", func(t *testing.T) { testSignUpByProgram(t, newWorld(t, p)) })
	t.Run("bad input", func(t *testing.T) { testTenantsOfBadInput(t, newWorld(t, p)) })
	t.Run("life", func(t *testing.T) { testOperatedTenant(t, newWorld(t, p)) })
	t.Run("deletion", func(t *testing.T) { testDeletedTenant(t, newWorld(t, p)) })
	t.Run("one key, one tenant", func(t *testing.T) { testTenantIsMadeOnce(t, newWorld(t, p)) })
	t.Run("keys", func(t *testing.T) { testOperatorKeys(t, newWorld(t, p)) })
	t.Run("scopes", func(t *testing.T) { testOperatorScopes(t, newWorld(t, p)) })
	t.Run("list", func(t *testing.T) { testTenantsArePaged(t, newWorld(t, p)) })
	t.Run("addresses elsewhere", func(t *testing.T) { testAnAddressElsewhereIsNotSeen(t, p) })
	t.Run("webhooks", func(t *testing.T) { testOperatorWebhooks(t, newWorld(t, p)) })
	t.Run("guessing", func(t *testing.T) { testGuessingKeys(t, newWorld(t, p)) })
}

// testSignUpByProgram creates a tenant and its roles with only an operator key. The owner
// accepts the mailed invitation. The events of the tenant must name the key as the actor.
func testSignUpByProgram(t *testing.T, w *world) {
	name := w.name + "-customer"
	there := *w // becomes a world of the new tenant, with the source address of w
	there.name = name
	operator := w.program.operator.of(&there)
	made := operator.do(t, "POST /operator/tenants", newTenant(name), "-x-tenant-schema").expect(t, 201)
	if location := made.header.Get("Location"); location != "/operator/tenants/"+name {
		t.Errorf("the tenant is at %q", location)
	}
	support := operator.do(t, "POST /roles", roleBody("Support", []string{"users:read", "shop/orders:*"}, nil)).expect(t, 201).text("/id")
	auditors := operator.do(t, "POST /roles", roleBody("Auditor", []string{"events:read"}, nil)).expect(t, 201).text("/id")
	agent := operator.do(t, "POST /users", `{"email":"agent@canary.example","name":"Agent"}`).expect(t, 201).text("/id")
	play(t, []scenario{
		{name: "the role is given by nobody", as: operator, send: "PUT /users/" + agent + "/roles/" + support, status: 201, has: map[string]any{"/grantedBy": nil}},
		{name: "somebody is invited", as: operator, send: "POST /users/" + agent + "/invitations", status: 201},
		{name: "what a person alone may", as: operator, send: "PUT /auths/password", body: passwords(password, newPassword), status: 403, code: "session-required"},
		{name: "an operator is no user", as: operator, send: "GET /users/" + operator.id, status: 404},
		{name: "an operator is checked", as: operator, send: "GET /auths/check?permission=shop/orders:refund", status: 204, headers: map[string]string{"X-Auth-User": operator.id, "X-Auth-Tenant": name}},
	})
	m := there.mailTo(t, address("owner"), rolecall.MailInvitation)
	if token := m.Token(); token != made.text("/invitation/token") || m.Link().String() != made.text("/invitation/link") {
		t.Errorf("the owner is mailed %q, and the program is shown %q", m.Link(), made.text("/invitation/link"))
	}
	in := operator.anonymous().do(t, "POST /auths/invitations/accept", acceptance(m.Token(), password)).expect(t, 200)
	there.owner = &caller{world: &there, tenant: name, token: in.session(t), id: in.text("/user/id"), email: address("owner")}
	if there.owner.id != made.text("/owner/id") {
		t.Errorf("the invitation was of %q", there.owner.id)
	}
	operator.do(t, "PUT /users/"+there.owner.id+"/roles/"+auditors, "").expect(t, 201)
	operator.do(t, "DELETE /users/"+there.owner.id+"/roles/"+auditors, "").expect(t, 204)
	play(t, []scenario{
		{name: "the owner owns it", as: there.owner, send: "GET /auths/session", status: 200, has: map[string]any{"/roles/0/key": "owner", "/roles/1": nil, "/permissions/1": "*:*"}},
		{name: "a role of the program's is given on", as: there.owner, send: "PUT /users/" + agent + "/roles/" + there.builtIn(t, "owner"), status: 201},
		{name: "no other tenant has it", as: w.owner, send: "GET /roles/" + support, status: 404},
	})
	auditor := there.guest(t, "auditor", "")
	there.assign(t, auditor.id, auditors, "")
	byOperator := auditor.do(t, "GET /events?limit=200&actor="+operator.id, "").expect(t, 200)
	var types []string
	for i, kind := range byOperator.texts("type") {
		if kind == "request.refused" { // it can be recorded up to two seconds later
			continue
		}
		types = append(types, kind)
		at := fmt.Sprintf("/items/%d/actor", i)
		if byOperator.text(at+"/type") != "operator" || byOperator.text(at+"/via") != "http" || byOperator.text(at+"/id") != operator.id {
			t.Errorf("%s is by %v", kind, byOperator.value(at))
		}
	}
	wanted := []string{"role.assigned", "role.assigned", "role.assigned", "role.created", "role.created", "role.unassigned", "tenant.created", "user.created", "user.created", "user.invited", "user.invited"}
	if !slices.Equal(sorted(types), wanted) {
		t.Errorf("the auditor reads %q, not %q", sorted(types), wanted)
	}
}

func testTenantsOfBadInput(t *testing.T, w *world) {
	operator := w.program.operator.of(w)
	const owner = `"owner":{"email":"o@canary.example","name":"Olga"}`
	bad := func(name, body string, faults ...string) scenario {
		return scenario{name: name, as: operator, send: "POST /operator/tenants", body: body, status: 422, code: "validation", faults: faults}
	}
	play(t, []scenario{
		bad("nothing", `{}`, "/name required", "/owner required"),
		bad("no owner to invite", `{"name":"fine","owner":{}}`, "/owner/email required", "/owner/name required"),
		bad("an owner of nothing", `{"name":"fine","owner":null}`, "/owner type"),
		bad("everything at once", `{"name":"-x","displayName":"","owner":{"email":"none","name":"","department":"Ops"},"status":"active"}`,
			"/displayName length", "/name format", "/owner/department unknown", "/owner/email email", "/owner/name length", "/status unknown"),
		bad("other types", `{"name":1,"displayName":true,"owner":[]}`, "/name type", "/displayName type", "/owner type"),
		{name: "no key", as: operator, send: "POST /operator/tenants", body: "{" + owner, header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required", " syntax"}},
		{name: "a name that is none", as: operator, send: "GET /operator/tenants/Acme?x=1", status: 400, faults: []string{"parameter:name format", "parameter:x unknown"}},
		{name: "a cursor of another list", as: operator, send: "GET /operator/tenants?cursor=abc", status: 400, faults: []string{"parameter:cursor cursor"}},
		{name: "a name that is taken", as: operator, send: "POST /operator/tenants", body: `{"name":"` + w.name + `",` + owner + `}`, status: 409, code: "tenant-exists"},
		{name: "a reason that is too long", as: operator, send: "POST /operator/tenants/" + w.name + "/suspend", body: `{"reason":"` + strings.Repeat("r", 2000) + `"}`, status: 422, faults: []string{"/reason length"}},
		{name: "the method before the key", as: w.anonymous(), send: "PUT /operator/tenants", status: 405},
		{name: "the origin before the key", as: w.owner, send: "POST /operator/tenants", body: "{}", header: []string{"origin: https://evil.example"}, status: 403, code: "cross-origin"},
		{name: "Accept before the key", as: w.anonymous(), send: "GET /operator/tenants", header: []string{"accept: text/html"}, status: 406},
		{name: "the key before everything else", as: w.anonymous(), send: "PATCH /operator/tenants/Acme?x=1", body: "{", status: 401, code: "unauthenticated"},
		{name: "a session is no key", as: w.owner, send: "GET /operator/tenants", status: 401, code: "unauthenticated"},
		{name: "a malformed tenant header means nothing", as: operator, send: "GET /operator/tenants/" + w.name, header: []string{"x-tenant-schema: NOT A NAME"}, status: 200},
	})
}

func testOperatedTenant(t *testing.T, w *world) {
	operator, line := w.program.operator.of(w), "/operator/tenants/"+w.name
	tag := operator.do(t, "GET "+line, "").expect(t, 200).header.Get("Etag")
	play(t, []scenario{
		{name: "unchanged", as: operator, send: "GET " + line, header: []string{"if-none-match: " + tag}, status: 304},
		{name: "stale", as: operator, send: "PATCH " + line, body: `{"displayName":"Stale"}`, header: []string{`if-match: "stale"`}, status: 412, code: "precondition-failed"},
		{name: "changed", as: operator, send: "PATCH " + line, body: `{"displayName":"Changed","settings":{"refreshGraceSeconds":20}}`, header: []string{"if-match: " + tag}, status: 200,
			has: map[string]any{"/displayName": "Changed", "/settings/refreshGraceSeconds": 20.0}},
		{name: "a wrong setting", as: operator, send: "PATCH " + line, body: `{"settings":{"refreshGraceSeconds":301}}`, status: 422, faults: []string{"/settings/refreshGraceSeconds range"}},
		{name: "what never changes", as: operator, send: "PATCH " + line, body: `{"name":"other"}`, status: 422, faults: []string{"/name immutable"}},
		{name: "the tenant sees it", as: w.owner, send: "GET /tenant", status: 200, has: map[string]any{"/displayName": "Changed"}},
		{name: "suspended", as: operator, send: "POST " + line + "/suspend", body: `{"reason":"unpaid since May"}`, status: 200, has: map[string]any{"/status": "suspended"}},
		{name: "suspended again", as: operator, send: "POST " + line + "/suspend", status: 200, has: map[string]any{"/status": "suspended"}},
		{name: "its users are out", as: w.owner, send: "GET /tenant", status: 403, code: "tenant-suspended"},
		{name: "its operator is not", as: operator, send: "GET /events?type=tenant.suspended", status: 200, has: map[string]any{"/items/0/reason": "unpaid since May", "/items/0/actor/id": operator.id, "/items/1": nil}},
		{name: "resumed", as: operator, send: "POST " + line + "/resume", status: 200, has: map[string]any{"/status": "active"}},
		{name: "its users are in", as: w.owner, send: "GET /tenant", status: 200},
	})
}

// testDeletedTenant deletes a tenant and restores it. While the tenant is deleted, its users
// and tokens have no access. After the restore, its users, roles, sessions and tokens must
// work again.
func testDeletedTenant(t *testing.T, w *world) {
	operator, line := w.program.operator.of(w), "/operator/tenants/"+w.name
	ada := w.member(t, "ada", "")
	w.assign(t, ada.id, w.role(t, "Reads users", "users:read"), "")
	token := w.owner.do(t, "POST /users/"+w.owner.id+"/tokens", `{"name":"Script","permissions":["users:read"],"expiresAt":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`).expect(t, 201)
	script := w.anonymous()
	script.bearer = token.text("/token")
	script.do(t, "GET /users", "").expect(t, 200)
	before := operator.do(t, "GET "+line, "").expect(t, 200)
	users := w.owner.do(t, "GET /users?limit=200", "").expect(t, 200)
	tag := before.header.Get("Etag")
	operator.do(t, "PATCH "+line, `{"displayName":"Renamed"}`).expect(t, 200)
	current := operator.do(t, "GET "+line, "").expect(t, 200).header.Get("Etag")
	operatorHere := w.operator(t)
	play(t, []scenario{
		{name: "without a precondition", as: operator, send: "DELETE " + line, status: 428, code: "precondition-required"},
		{name: "a stale deletion", as: operator, send: "DELETE " + line, header: []string{"if-match: " + tag}, status: 412, code: "precondition-failed"},
		{name: "a precondition that is none", as: operator, send: "DELETE " + line, header: []string{"if-match: current"}, status: 400, faults: []string{"header:if-match format"}},
		{name: "still there", as: w.owner, send: "GET /tenant", status: 200},
		{name: "deleted", as: operatorHere, send: "DELETE " + line, header: []string{"if-match: " + current}, status: 204},
		{name: "deleted again", as: operator, send: "DELETE " + line, header: []string{"if-match: *"}, status: 404, code: "not-found"},
		{name: "gone for its users", as: w.owner, send: "GET /tenant", status: 401, code: "unauthenticated"},
		{name: "gone for its tokens", as: script, send: "GET /users", status: 401, code: "unauthenticated"},
		{name: "gone for its operator", as: operator, send: "GET /tenant", status: 401, code: "unauthenticated"},
		{name: "right credentials", as: w.anonymous(), send: "POST /auths/login", body: credentials(address("owner"), password), status: 401, code: "wrong-credentials"},
		{name: "its name stays taken", as: operator, send: "POST /operator/tenants", body: newTenant(w.name), status: 409, code: "tenant-exists"},
		{name: "not to be changed", as: operator, send: "PATCH " + line, body: `{"displayName":"Deleted"}`, status: 404, code: "not-found"},
		{name: "not to be suspended", as: operator, send: "POST " + line + "/suspend", status: 404, code: "not-found"},
		{name: "seen by its operator", as: operatorHere, send: "GET " + line, status: 200, members: everyTenantMember + " purgeAt", has: map[string]any{"/status": "deleted", "/displayName": "Renamed"}},
		{name: "listed", as: operatorHere, send: "GET /operator/tenants?status=deleted", status: 200, has: map[string]any{"/items/0/name": w.name, "/items/0/status": "deleted", "/items/1": nil}},
		{name: "not listed with the others", as: operatorHere, send: "GET /operator/tenants", status: 200, has: map[string]any{"/items/0": nil}},
		{name: "a status that is none", as: operator, send: "GET /operator/tenants?status=purged", status: 422, faults: []string{"parameter:status unknown-value"}},
		{name: "a restore by a user", as: w.owner, send: "POST " + line + "/restore", status: 401, code: "unauthenticated"},
		{name: "a restore of another", as: operatorHere, send: "POST /operator/tenants/" + w.name + "-other/restore", status: 404, code: "not-found"},
		{name: "a member that is none", as: operator, send: "POST " + line + "/restore", body: `{"why":"?"}`, status: 422, faults: []string{"/why unknown"}},
	})
	deleted := operator.do(t, "GET "+line, "").expect(t, 200)
	at, err := time.Parse(time.RFC3339, deleted.text("/purgeAt"))
	since, sinceErr := time.Parse(time.RFC3339, deleted.text("/updatedAt"))
	if err != nil || sinceErr != nil || at.Sub(since) != 24*time.Hour || time.Until(at) < 23*time.Hour {
		t.Errorf("deleted %s, it is purged %s", deleted.text("/updatedAt"), deleted.text("/purgeAt"))
	}
	restored := operatorHere.do(t, "POST "+line+"/restore", `{"reason":"deleted by mistake"}`).expect(t, 200)
	s := scenario{status: 200, members: everyTenantMember, has: map[string]any{"/status": "active", "/id": before.text("/id"), "/displayName": "Renamed"}}
	s.check(t, restored)
	awaitStatus(t, w.owner, "GET /tenant", 200) // a node may still have the deletion in its cache
	if again := w.owner.do(t, "GET /users?limit=200", "").expect(t, 200); string(again.body) != string(users.body) {
		t.Errorf("the users were %s, and are %s", users.body, again.body)
	}
	play(t, []scenario{
		{name: "restored again", as: operator, send: "POST " + line + "/restore", status: 200, has: map[string]any{"/updatedAt": restored.text("/updatedAt")}},
		{name: "a token", as: script, send: "GET /users", status: 200},
		{name: "a role", as: ada, send: "GET /users/" + w.owner.id, status: 200},
		{name: "right credentials", as: w.anonymous(), send: "POST /auths/login", body: credentials(address("owner"), password), status: 200},
		{name: "what happened", as: operator, send: "GET /events?subject=" + before.text("/id"), status: 200, has: map[string]any{
			"/items/0/type": "tenant.restored", "/items/0/reason": "deleted by mistake", "/items/0/actor/id": operatorHere.id, "/items/1/type": "tenant.deleted", "/items/1/actor/id": operatorHere.id}},
	})
}

// testTenantIsMadeOnce checks that many requests at once with the same idempotency key create
// one tenant.
func testTenantIsMadeOnce(t *testing.T, w *world) {
	operator, name := w.program.operator.of(w), w.name+"-once"
	var mu sync.Mutex
	var firsts int
	ids := map[string]bool{}
	var running sync.WaitGroup
	for range 50 {
		running.Go(func() {
			a, err := operator.try(t, "POST /operator/tenants", newTenant(name), "idempotency-key: once-"+name)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if a.status != http.StatusCreated {
				t.Errorf("answered %d: %s", a.status, a.body)
			}
			ids[a.text("/tenant/id")+a.text("/owner/id")+a.text("/owner/email")] = true
			if replayed := a.header.Get("Idempotent-Replayed") == "true"; !replayed {
				firsts++
			} else if a.text("/invitation/token")+a.text("/invitation/link") != "" || a.value("/invitation/secretWithheld") != true {
				t.Errorf("a replay shows %v", a.value("/invitation"))
			}
		})
	}
	running.Wait()
	if len(ids) != 1 || firsts != 1 {
		t.Errorf("%d tenants, %d first answers", len(ids), firsts)
	}
	operator.in(name).do(t, "GET /events?type=tenant.created", "").expect(t, 200)
	if events := operator.in(name).do(t, "GET /events?limit=200", "").texts("type"); len(events) != 4 {
		t.Errorf("the events are %q", events)
	}
	play(t, []scenario{
		{name: "another request", as: operator, send: "POST /operator/tenants", body: newTenant(name + "-2"), header: []string{"idempotency-key: once-" + name}, status: 422, code: "idempotency-key-reused"},
		{name: "another key", as: operator, send: "POST /operator/tenants", body: newTenant(name), status: 409, code: "tenant-exists"},
		{name: "another operator's", as: w.program.operatorKey(t).of(w), send: "POST /operator/tenants", body: newTenant(name), header: []string{"idempotency-key: once-" + name}, status: 409, code: "tenant-exists"},
	})
	operator.do(t, "DELETE /operator/tenants/"+name, "", "if-match: *").expect(t, 204)
	again := operator.do(t, "POST /operator/tenants", newTenant(name), "idempotency-key: once-"+name).expect(t, 201)
	if again.text("/tenant/name") != name {
		t.Errorf("a replay after the deletion shows %s", again.body)
	}
}

func testOperatorKeys(t *testing.T, w *world) {
	foreign := newWorld(t, w.program)
	own, all := w.operator(t), w.program.operator.of(w)
	revoked := w.program.operatorKey(t).of(w)
	revoked.do(t, "GET /users", "").expect(t, 200)
	w.program.run(t, "", "operator-key", "revoke", revoked.id)
	brief := w.program.operatorKey(t, "--expires", "1ms").of(w)
	mistyped := *all
	mistyped.bearer = all.bearer[:10] + string(other(all.bearer[10])) + all.bearer[11:]
	both := *all
	both.token = w.owner.token
	var scenarios []scenario
	for _, line := range []string{"GET /users", "GET /operator/tenants", "GET /auths/session"} {
		scenarios = append(scenarios,
			scenario{name: "a key: " + line, as: own, send: line, status: 200},
			scenario{name: "an expired one: " + line, as: brief, send: line, status: 401, code: "unauthenticated"},
			scenario{name: "a mistyped one: " + line, as: &mistyped, send: line, status: 401, code: "unauthenticated"},
			scenario{name: "beside a session: " + line, as: &both, send: line, status: 400, faults: []string{"header:authorization ambiguous"}},
			scenario{name: "twice: " + line, as: all, send: line, header: []string{"+authorization: Bearer " + all.bearer}, status: 400, faults: []string{"header:authorization repeated"}},
			scenario{name: "by another scheme: " + line, as: all, send: line, header: []string{"authorization: Basic " + all.bearer}, status: 401, code: "unauthenticated"},
		)
	}
	play(t, append(scenarios,
		scenario{name: "in another tenant", as: own.in(foreign.name), send: "GET /users", status: 401, code: "unauthenticated"},
		scenario{name: "in no tenant", as: all.in("no-such-tenant"), send: "GET /users", status: 401, code: "unauthenticated"},
		scenario{name: "another tenant", as: own, send: "GET /operator/tenants/" + foreign.name, status: 404, code: "not-found"},
		scenario{name: "signing in with it", as: own, send: "POST /auths/login", body: credentials(address("owner"), password), status: 200},
	))
	awaitStatus(t, revoked, "GET /users", 401)
	awaitStatus(t, revoked, "GET /operator/tenants", 401)
	if list := w.program.run(t, "", "operator-key", "list"); strings.Contains(list, "rco_") || !strings.Contains(list, own.id) || strings.Contains(list, revoked.id) {
		t.Errorf("the keys are listed as %s", list)
	}
}

func testOperatorScopes(t *testing.T, w *world) {
	line := "/operator/tenants/" + w.name
	key := func(flags ...string) *caller { return w.program.operatorKey(t, flags...).of(w) }
	tenants, lookup := key("--scope", "tenants"), key("--scope", "lookup")
	changes, several := key("--scope", "changes", "--tenant", w.name), key("--scope", "changes", "--scope", "tenants", "--tenant", w.name)
	email := w.name + "@lookup.example"
	user := w.owner.do(t, "POST /users", fmt.Sprintf(`{"email":%s,"name":"Only Here"}`, quoted(email))).expect(t, 201).text("/id")
	refusal := func(name string, as *caller, send string) scenario {
		return scenario{name: name, as: as, send: send, status: 403, code: "scope-missing", headers: map[string]string{"Www-Authenticate": `Bearer error="insufficient_scope"`}}
	}
	play(t, []scenario{
		{name: "tenants: list", as: tenants, send: "GET /operator/tenants", status: 200},
		{name: "tenants: read", as: tenants, send: "GET " + line, status: 200},
		{name: "tenants: change", as: tenants, send: "PATCH " + line, body: `{"displayName":"By scope"}`, status: 200, has: map[string]any{"/displayName": "By scope"}},
		{name: "tenants: create", as: tenants, send: "POST /operator/tenants", body: newTenant(w.name + "-scoped"), status: 201},
		refusal("tenants: inside of a tenant", tenants, "GET /users"),
		refusal("tenants: the same tenant inside of it", tenants, "GET /tenant"),
		refusal("tenants: changes", tenants, "GET /changes"),
		refusal("tenants: what only a person can do", tenants, "GET /auths/factors"),
		refusal("tenants: a check", tenants, "GET /auths/check?permission=users:read"),
		{name: "changes: the feed of a tenant", as: changes, send: "GET /changes?type=tenant.updated", status: 200, has: map[string]any{"/items/0/data/after/displayName": "By scope", "/items/0/data/actor/id": tenants.id}},
		{name: "changes: another tenant", as: changes.in(w.name + "-scoped"), send: "GET /changes", status: 401, code: "unauthenticated"},
		refusal("changes: events", changes, "GET /events"),
		refusal("changes: tenants", changes, "GET /operator/tenants"),
		refusal("tenants: the operators' log", tenants, "GET /operator/events"),
		refusal("changes: one's session", changes, "GET /auths/session"),
		refusal("lookup: tenants", lookup, "GET /operator/tenants"),
		refusal("lookup: changes", lookup, "GET /changes"),
		refusal("lookup: the user", lookup, "GET /users/"+w.owner.id),
		refusal("changes: an address", changes, "GET /operator/users?email="+url.QueryEscape(w.owner.email)),
		{name: "lookup: an address", as: lookup, send: "GET /operator/users?email=" + url.QueryEscape(strings.ToUpper(email)), status: 200, has: map[string]any{"/items/0/tenant": w.name, "/items/0/displayName": "By scope", "/items/0/tenantStatus": "active", "/items/0/userId": user, "/items/0/userStatus": "pending", "/nextCursor": nil}, lacks: []string{"Only", email}},
		{name: "lookup: an address of nobody", as: lookup, send: "GET /operator/users?email=" + url.QueryEscape("x"+w.owner.email), status: 200, contains: []string{`"items":[]`}},
		{name: "lookup: a pattern", as: lookup, send: "GET /operator/users?email=" + url.QueryEscape("%"), status: 200, contains: []string{`"items":[]`}},
		{name: "lookup: no address", as: lookup, send: "GET /operator/users", status: 400, faults: []string{"parameter:email required"}},
		{name: "lookup: an empty address", as: lookup, send: "GET /operator/users?email=", status: 400, faults: []string{"parameter:email length"}},
		{name: "lookup: a body", as: lookup, send: "POST /operator/users", body: "{}", status: 405},
		{name: "several: changes", as: several, send: "GET /changes", status: 200},
		{name: "several: tenants", as: several, send: "GET " + line, status: 200},
		refusal("several: users", several, "POST /users"),
	})
	detail := tenants.do(t, "GET /changes", "").text("/detail")
	if !strings.Contains(detail, "scope changes") || !strings.Contains(detail, "rolecall operator-key create NAME --scope changes") {
		t.Errorf("the detail is %q", detail)
	}
	list := w.program.run(t, "", "operator-key", "list", "--json")
	var rows []struct {
		ID              string
		Tenants, Scopes []string
	}
	if err := json.Unmarshal([]byte(list), &rows); err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, row := range rows {
		shown[row.ID] = fmt.Sprint(row.Scopes, row.Tenants)
	}
	for key, want := range map[*caller]string{
		tenants: "[tenants] []", changes: fmt.Sprintf("[changes] [%s]", w.name), several: fmt.Sprintf("[changes tenants] [%s]", w.name), w.program.operator: "[all] []",
	} {
		if shown[key.id] != want {
			t.Errorf("the key %s is listed with %s, not %s", key.id, shown[key.id], want)
		}
	}
}

func testTenantsArePaged(t *testing.T, w *world) {
	flags := []string{"--tenant", w.name}
	wanted := []string{w.name}
	for range 4 {
		next := newWorld(t, w.program)
		flags, wanted = append(flags, "--tenant", next.name), append(wanted, next.name)
	}
	operator := w.program.operatorKey(t, flags...).of(w)
	var names []string
	for query := "?limit=2"; query != ""; {
		a := operator.do(t, "GET /operator/tenants"+query, "").expect(t, 200)
		names = append(names, a.texts("name")...)
		query = ""
		if next := a.text("/nextCursor"); next != "" {
			query = "?limit=2&cursor=" + next
			w.program.operator.of(w).do(t, "GET /operator/tenants"+query, "").refused(t, 400, "malformed-request")
		}
	}
	if !slices.Equal(names, sorted(wanted)) {
		t.Errorf("the tenants are %q, not %q", names, sorted(wanted))
	}
}

// testAnAddressElsewhereIsNotSeen searches with keys for one tenant for an address that other tenants have, before
// and after this tenant. The pages must be those of a server that has only this tenant.
func testAnAddressElsewhereIsNotSeen(t *testing.T, p *program) {
	const email = "elsewhere@canary.example"
	for i := range 5 {
		w := newWorld(t, p)
		want := []string{}
		if i%2 == 0 {
			w.owner.do(t, "POST /users", `{"email":`+quoted(email)+`,"name":"Is Elsewhere"}`).expect(t, 201)
			want = []string{w.name}
		}
		key := p.operatorKey(t, "--tenant", w.name).of(w)
		for _, limit := range []string{"1", "2"} {
			a := key.do(t, "GET /operator/users?limit="+limit+"&email="+email, "").expect(t, 200)
			if got := a.texts("tenant"); !slices.Equal(got, want) || a.text("/nextCursor") != "" || a.header.Get("Link") != "" {
				t.Errorf("tenant %d with the limit %s: %s, link %q", i, limit, a.body, a.header.Get("Link"))
			}
		}
	}
}

// testGuessingKeys checks that a source address that has sent too many requests with an
// invalid key must wait. The limit must not affect requests with a session.
func testGuessingKeys(t *testing.T, w *world) {
	gone := w.program.operatorKey(t).of(w)
	w.program.run(t, "", "operator-key", "revoke", gone.id)
	status := http.StatusUnauthorized
	for range 150 {
		if status = gone.do(t, "GET /operator/tenants", "").status; status != http.StatusUnauthorized {
			break
		}
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("150 unknown keys answered %d at last", status)
	}
	if a := gone.do(t, "GET /users", "").refused(t, 429, "too-many-attempts"); a.header.Get("Retry-After") == "" {
		t.Error("nothing says when to try again")
	}
	w.owner.do(t, "GET /users", "").expect(t, 200)
	w.signIn(t, address("owner"))
}

// TestOperatorPathsExistWithAKeyOnly checks that paths under /operator answer like unknown
// paths while no operator key exists.
func TestOperatorPathsExistWithAKeyOnly(t *testing.T) {
	t.Parallel()
	binary := build(t)
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, binary, store.database(t))
			w := newWorld(t, p)
			for _, line := range []string{"GET /operator/tenants", "POST /operator/tenants", "PUT /operator/tenants", "OPTIONS /operator/tenants", "GET /operator/tenants/" + w.name, "DELETE /operator/tenants/" + w.name} {
				none := w.anonymous().do(t, line, "").refused(t, 404, "unknown-path")
				if got, wanted := anonymousBody(t, none), anonymousBody(t, w.anonymous().do(t, "GET /none", "")); got != wanted {
					t.Errorf("%s: %s, not %s", line, got, wanted)
				}
			}
			operator := p.operatorKey(t).of(w)
			awaitStatus(t, w.anonymous(), "GET /operator/tenants", 401)
			operator.do(t, "GET /operator/tenants", "").expect(t, 200)
			p.run(t, "", "operator-key", "revoke", operator.id)
			awaitStatus(t, w.anonymous(), "GET /operator/tenants", 404)
		})
	}
}

// TestSeparateOperatorListener checks that with --operator-listen, operator keys are accepted
// only at that address.
func TestSeparateOperatorListener(t *testing.T) {
	t.Parallel()
	apart := freeAddress(t)
	p := serve(t, build(t), stores[0].database(t), "--operator-listen", apart)
	w := newWorld(t, p)
	operator := p.operatorKey(t).of(w)
	there := *w
	there.program = &program{document: p.document, Server: process.Server{Address: apart}}
	inside := operator.of(&there)
	awaitStatus(t, inside, "GET /operator/tenants", 200)
	for _, line := range []string{"serving operators", "built for tests with the tag cheap_hashes"} {
		if _, err := p.AwaitLog(t.Context(), regexp.MustCompile(line)); err != nil {
			t.Error(err)
		}
	}
	play(t, []scenario{
		{name: "tenants, inside", as: inside, send: "GET /operator/tenants/" + w.name, status: 200},
		{name: "a tenant, inside", as: inside, send: "GET /users", status: 200},
		{name: "a session, inside", as: w.owner.of(&there), send: "GET /users", status: 200},
		{name: "tenants, outside", as: operator, send: "GET /operator/tenants", status: 404, code: "unknown-path"},
		{name: "a tenant, outside", as: operator, send: "GET /users", status: 401, code: "unauthenticated"},
		{name: "a session, outside", as: w.owner, send: "GET /users", status: 200},
	})
	for send, status := range map[string]int{"GET /operator/tenants": 404, "GET /users": 401} {
		if detail := operator.do(t, send, "").expect(t, status).text("/detail"); !strings.Contains(detail, "--operator-listen") {
			t.Errorf("%s outside does not name the other address: %s", send, detail)
		}
	}
}

// TestAnOperatorKeyIsRevokedOnEveryNode checks that another node refuses a revoked key within
// seenWithin.
func TestAnOperatorKeyIsRevokedOnEveryNode(t *testing.T) {
	t.Parallel()
	binary, database := build(t), pgtest.URL(t)
	one := serve(t, binary, database)
	other := serve(t, binary, database)
	w := newWorld(t, one)
	operator := one.operatorKey(t).of(w)
	there := *w
	there.program = other
	elsewhere := operator.of(&there)
	awaitStatus(t, elsewhere, "GET /users", 200)
	for range 3 {
		elsewhere.do(t, "GET /users", "").expect(t, 200)
	}
	one.run(t, "", "operator-key", "revoke", operator.id)
	if honored := elsewhere.until(t, 401); honored >= seenWithin {
		t.Errorf("a revoked key was honored for %v", honored)
	}
}

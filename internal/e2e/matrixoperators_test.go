package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// everyTenant is the value of principal.operates for an operator key that is valid for all
// tenants.
var everyTenant = []string{"*"}

// operated reports whether the principal has an operator key that is valid for the tenant.
func (p *principal) operated(tenant string) bool {
	return slices.Contains(p.operates, tenant) || slices.Equal(p.operates, everyTenant)
}

// compareOperated is like compare, for the operations under /operator/tenants. Principals without an
// operator key must get 401.
func (p *principal) compareOperated(t *testing.T, what, line, body string, wanted expectation, header ...string) *answer {
	t.Helper()
	who := *p
	who.live = p.operates != nil && p.hasScope("tenants")
	return who.compare(t, what, line, body, wanted, header...)
}

// hasScope reports whether the principal has an operator key with the scope.
func (p *principal) hasScope(scope string) bool {
	return p.operates != nil && (p.scope == "" || p.scope == scope)
}

func listTenantsCells(t *testing.T, m *matrix, p *principal) {
	var names []string
	for next, more := "", true; more; more = next != "" {
		a := p.compareOperated(t, "tenants", "GET /operator/tenants?limit=200"+next, "", done(200, "items nextCursor"))
		names = append(names, a.texts("name")...)
		if next = a.text("/nextCursor"); next != "" {
			next = "&cursor=" + next
		}
	}
	for _, name := range []string{m.name, m.foreign.name} {
		if listed := slices.Contains(names, name); listed != (p.hasScope("tenants") && p.operated(name)) {
			t.Errorf("%s: listed is %v", name, listed)
		}
	}
	if p.scope == "" && !slices.Equal(p.operates, everyTenant) && len(names) != len(p.operates) {
		t.Errorf("the tenants are %q", names)
	}
}

var _ = specify("OperatorController_listTenants", changesNothing, byOperator("GET /operator/tenants?limit=2", ""), listTenantsCells)

func createTenantCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	body := newTenant(fmt.Sprintf("%s-made-%d", m.name, m.fresh))
	p.compareOperated(t, "a tenant", "POST /operator/tenants", body, first(done(201, "tenant owner invitation"), check{slices.Equal(p.operates, everyTenant), mayNot}))
}

var _ = specify("OperatorController_createTenant", grantsAccess, func(_ *testing.T, w *providerWorld) request {
	return request{as: w.program.operator.of(w.world), line: "POST /operator/tenants", body: newTenant("made-" + newKey()), events: []string{"tenant.created tenant {id} []"}}
}, createTenantCells)

// operatedCells returns the function in specs for an operation on a tenant. act is the end of
// the operation's path, and body is the request body.
func operatedCells(method, act, body string) func(*testing.T, *matrix, *principal) {
	return func(t *testing.T, m *matrix, p *principal) {
		for _, name := range []string{m.name, m.foreign.name, "no-such-tenant"} {
			p.compareOperated(t, name, method+" /operator/tenants/"+name+act, body, first(done(200, everyTenantMember),
				check{p.operated(name) && name != "no-such-tenant", notThere}))
			if act == "/suspend" && p.hasScope("tenants") && p.operated(name) && name != "no-such-tenant" {
				p.do(t, "POST /operator/tenants/"+name+"/resume", "").expect(t, 200)
			}
		}
	}
}

var (
	_ = specify("OperatorController_getTenant", changesNothing, byOperator("GET /operator/tenants/{id}", ""), operatedCells("GET", "", ""))
	_ = specify("OperatorController_updateTenant", grantsAccess, func(_ *testing.T, w *providerWorld) request {
		return request{as: w.program.operator.of(w.world), id: w.name, line: "PATCH /operator/tenants/{id}", body: `{"displayName":"Acme ` + newKey() + `"}`, events: []string{"tenant.updated tenant {tenant} [displayName]"}}
	}, operatedCells("PATCH", "", `{"displayName":"Operated"}`))
	_ = specify("OperatorController_suspendTenant", endsAccess, withTenant("POST /operator/tenants/{id}/suspend", `{"reason":"unpaid"}`, "", "tenant.suspended tenant {id} []"), operatedCells("POST", "/suspend", `{"reason":"unpaid"}`))
	_ = specify("OperatorController_resumeTenant", grantsAccess, withTenant("POST /operator/tenants/{id}/resume", "", "POST /operator/tenants/{id}/suspend", "tenant.resumed tenant {id} []"), operatedCells("POST", "/resume", ""))
)

// newTenant creates a tenant and returns its name.
func (m *matrix) newTenant(t *testing.T) string {
	t.Helper()
	m.fresh++
	name := fmt.Sprintf("%s-gone-%d", m.name, m.fresh)
	m.program.operator.of(m.world).do(t, "POST /operator/tenants", newTenant(name)).expect(t, 201)
	return name
}

func deleteTenantCells(t *testing.T, m *matrix, p *principal) {
	name := m.newTenant(t)
	line := "DELETE /operator/tenants/" + name
	p.compareOperated(t, name+" without If-Match", line, "", expectation{status: 428, code: "precondition-required"})
	p.compareOperated(t, name+" with a stale If-Match", line, "", first(expectation{status: 412, code: "precondition-failed"}, check{p.operated(name), notThere}), `if-match: "stale"`)
	a := p.compareOperated(t, name, line, "", first(done(204, ""), check{p.operated(name), notThere}), "if-match: *")
	p.compareOperated(t, name+" again", line, "", notThere, "if-match: *")
	if a.status == http.StatusNotFound {
		m.program.operator.of(m.world).do(t, line, "", "if-match: *").expect(t, 204)
	}
}

var _ = specify("OperatorController_deleteTenant", removesForGood, withTenant("DELETE /operator/tenants/{id}", "", "", "tenant.deleted tenant {id} []"), deleteTenantCells)

func restoreTenantCells(t *testing.T, m *matrix, p *principal) {
	name, every := m.newTenant(t), m.program.operator.of(m.world)
	every.do(t, "DELETE /operator/tenants/"+name, "", "if-match: *").expect(t, 204)
	p.compareOperated(t, name+" deleted", "GET /operator/tenants/"+name, "", first(done(200, everyTenantMember+" purgeAt"), check{p.operated(name), notThere}))
	deleted := p.compareOperated(t, "deleted tenants", "GET /operator/tenants?status=deleted&limit=200", "", done(200, "items nextCursor"))
	if listed := slices.Contains(deleted.texts("name"), name); listed != (p.hasScope("tenants") && p.operated(name)) && deleted.text("/nextCursor") == "" {
		t.Errorf("%s: listed among the deleted is %v", name, listed)
	}
	line := "POST /operator/tenants/" + name + "/restore"
	a := p.compareOperated(t, name, line, "", first(done(200, everyTenantMember), check{p.operated(name), notThere}))
	p.compareOperated(t, name+" again", line, "", first(done(200, everyTenantMember), check{p.operated(name), notThere}))
	if a.status != http.StatusOK {
		every.do(t, line, "").expect(t, 200)
	}
	p.compareOperated(t, "no such tenant", "POST /operator/tenants/no-such-tenant/restore", "", notThere)
}

var _ = specify("OperatorController_restoreTenant", grantsAccess, withTenant("POST /operator/tenants/{id}/restore", "", "DELETE /operator/tenants/{id}", "tenant.restored tenant {id} []"), restoreTenantCells)

func tenantsChangesCells(t *testing.T, m *matrix, p *principal) {
	who := *p
	who.live = p.hasScope("changes")
	const path = "GET /operator/changes?type=tenant.created&limit=200"
	made := map[string]string{"-": m.newTenant(t)}
	for _, name := range []string{m.name, m.foreign.name} {
		made[name] = name
	}
	if p.operates != nil && !slices.Equal(p.operates, everyTenant) {
		made["-"] = p.operates[0]
	}
	for _, name := range made {
		m.program.operator.of(m.world).in(name).do(t, "GET /changes?at=now", "").expect(t, 200) // numbers the events
	}
	shown := map[string]bool{}
	for cursor, more := "", true; more; {
		a := who.compare(t, "changes of all tenants", path+cursor, "", done(200, "items nextCursor upToDate"))
		for _, name := range a.texts("data/tenant") {
			shown[name] = true
		}
		if more = a.status == http.StatusOK && a.value("/upToDate") != true; more {
			cursor = "&after=" + url.QueryEscape(a.text("/nextCursor"))
		}
	}
	for _, name := range made {
		if shown[name] != (who.live && p.operated(name)) {
			t.Errorf("%s: its creation is shown: %v", name, shown[name])
		}
	}
}

var _ = specify("OperatorController_listChanges", changesNothing, byOperator("GET /operator/changes?limit=2", ""), tenantsChangesCells)

func findUsersCells(t *testing.T, m *matrix, p *principal) {
	who := *p
	who.live = p.hasScope("lookup")
	var found []string // the owners of all tenants have the same address
	for next, more := "", true; more; more = next != "" {
		a := who.compare(t, "the tenants of an owner", "GET /operator/users?limit=200&email="+url.QueryEscape(m.owner.email)+next, "", done(200, "items nextCursor"))
		found = append(found, a.texts("tenant")...)
		if next = a.text("/nextCursor"); next != "" {
			next = "&cursor=" + next
		}
	}
	for _, name := range []string{m.name, m.foreign.name} {
		if want := who.live && p.operated(name); slices.Contains(found, name) != want {
			t.Errorf("%s: found is %v", name, !want)
		}
	}
}

var _ = specify("OperatorController_findUsers", changesNothing, byOperator("GET /operator/users?email=owner@canary.example", ""), findUsersCells)

// operatorEventsCells returns the function in specs for an operation on the operators' log.
func operatorEventsCells(path, members string) func(*testing.T, *matrix, *principal) {
	return func(t *testing.T, _ *matrix, p *principal) {
		who := *p
		who.live = p.hasScope("all")
		who.compare(t, "the operators' log", "GET /operator/events"+path, "", first(done(200, members), check{slices.Equal(p.operates, everyTenant), mayNot}))
	}
}

var (
	_ = specify("OperatorController_listEvents", changesNothing, byOperator("GET /operator/events?limit=2", ""), operatorEventsCells("", "items nextCursor"))
	_ = specify("OperatorController_getCheckpoint", changesNothing, byOperator("GET /operator/events/checkpoint", ""), operatorEventsCells("/checkpoint", "size root builtAt note verifierKey"))
	_ = specify("OperatorController_getConsistency", changesNothing, byOperator("GET /operator/events/consistency?from=1", ""), operatorEventsCells("/consistency?from=1", "from hashes checkpoint"))
)

func operatorProofCells(t *testing.T, m *matrix, p *principal) {
	event := m.program.operator.of(m.world).do(t, "GET /operator/events?limit=1", "").expect(t, 200).text("/items/0/id")
	operatorEventsCells("/"+event+"/proof", "id index leaf hashes values reason source checkpoint")(t, m, p)
}

var _ = specify("OperatorController_getEventProof", changesNothing, func(t *testing.T, w *providerWorld) request {
	operator := w.program.operator.of(w.world)
	return request{as: operator, line: "GET /operator/events/" + operator.do(t, "GET /operator/events?limit=1", "").expect(t, 200).text("/items/0/id") + "/proof"}
}, operatorProofCells)

const operatorHookMembers = "id url types ignoreActors enabled disabledReason createdAt updatedAt"

// operatorHook is the body that creates a webhook of operators that sends nothing.
const operatorHook = `{"url":"https://hooks.example.com/","enabled":false}`

// compareHooks is like compare, for the operations under /operator/webhooks that need the scope.
func (p *principal) compareHooks(t *testing.T, scope, what, line, body string, wanted expectation) *answer {
	t.Helper()
	who := *p
	who.live = p.hasScope(scope)
	return who.compare(t, what, line, body, first(wanted, check{slices.Equal(p.operates, everyTenant), mayNot}))
}

// operatorHookCells returns the function in specs for an operation on webhooks of operators. It is sent
// for a webhook of operators, for one of a tenant, and for one that does not exist.
func operatorHookCells(method, path, body, scope string, success expectation) func(*testing.T, *matrix, *principal) {
	return func(t *testing.T, m *matrix, p *principal) {
		every := m.program.operator.of(m.world)
		ofOperators := every.do(t, "POST /operator/webhooks", operatorHook).expect(t, 201).text("/id")
		var ofTenant []string
		m.eachHook(t, func(h hook) { ofTenant = append(ofTenant, h.id) })
		for _, id := range []string{ofOperators, ofTenant[0], never} {
			wanted := success
			if id != ofOperators && path != "" {
				wanted = notThere
			}
			p.compareHooks(t, scope, "a webhook", method+" /operator/webhooks"+strings.ReplaceAll(path, "{id}", id), body, wanted)
		}
		every.do(t, "DELETE /operator/webhooks/"+ofOperators, "")
	}
}

var (
	_ = specify("OperatorController_listWebhooks", changesNothing, byOperator("GET /operator/webhooks", ""), operatorHookCells("GET", "", "", "changes", done(200, "items nextCursor")))
	_ = specify("OperatorController_getWebhook", changesNothing, withOperatorHook("GET /operator/webhooks/{id}", ""), operatorHookCells("GET", "/{id}", "", "changes", done(200, operatorHookMembers)))
	_ = specify("OperatorController_updateWebhook", grantsAccess, withOperatorHook("PATCH /operator/webhooks/{id}", `{"types":["user.created"]}`, "webhook.updated webhook {id} [types]"), operatorHookCells("PATCH", "/{id}", `{"types":["user.created"]}`, "all", done(200, operatorHookMembers)))
	_ = specify("OperatorController_deleteWebhook", removesForGood, withOperatorHook("DELETE /operator/webhooks/{id}", "", "webhook.deleted webhook {id} []"), operatorHookCells("DELETE", "/{id}", "", "all", done(204, "")))
	_ = specify("OperatorController_rotateSecret", grantsAccess, withOperatorHook("POST /operator/webhooks/{id}/rotate-secret", "", "webhook.secret_rotated webhook {id} [secret]"), operatorHookCells("POST", "/{id}/rotate-secret", "", "all", done(200, operatorHookMembers+" secret")))
	_ = specify("OperatorController_testWebhook", changesNothing, withOperatorHook("POST /operator/webhooks/{id}/test", ""), operatorHookCells("POST", "/{id}/test", "", "changes", done(200, "itemId")))
	_ = specify("OperatorController_replayWebhook", changesNothing, withOperatorHook("POST /operator/webhooks/{id}/replay", `{"from":"2030-01-01T00:00:00Z","to":"2030-01-02T00:00:00Z"}`, "webhook.replayed webhook {id} []"), operatorHookCells("POST", "/{id}/replay", `{"from":"2030-01-01T00:00:00Z","to":"2030-01-02T00:00:00Z"}`, "changes", done(204, "")))
	_ = specify("OperatorController_skipItems", changesNothing, withOperatorHook("POST /operator/webhooks/{id}/skip", `{"all":true}`, "webhook.skipped webhook {id} []"), operatorHookCells("POST", "/{id}/skip", "", "changes", done(204, "")))
	_ = specify("OperatorController_listDeliveries", changesNothing, withOperatorHook("GET /operator/webhooks/{id}/deliveries", ""), operatorHookCells("GET", "/{id}/deliveries", "", "changes", done(200, "items nextCursor")))
)

func createOperatorHookCells(t *testing.T, m *matrix, p *principal) {
	a := p.compareHooks(t, "all", "a webhook", "POST /operator/webhooks", operatorHook, done(201, operatorHookMembers+" secret"))
	if a.status == http.StatusCreated {
		p.do(t, "DELETE /operator/webhooks/"+a.text("/id"), "").expect(t, 204)
	}
}

var _ = specify("OperatorController_createWebhook", grantsAccess, func(_ *testing.T, w *providerWorld) request {
	return request{as: w.program.operator.of(w.world), line: "POST /operator/webhooks", body: operatorHook, events: []string{"webhook.created webhook {id} []"}}
}, createOperatorHookCells) // its endpoint receives the changes of all tenants

// newTenant returns the body that creates a tenant.
func newTenant(name string) string {
	return fmt.Sprintf(`{"name":%s,"owner":{"email":%s,"name":"Olga Owner"}}`, quoted(name), quoted(address("owner")))
}

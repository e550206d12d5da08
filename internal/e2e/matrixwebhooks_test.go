package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	everyWebhookMember = "id url types serviceAccountId ignoreActors enabled disabledReason createdAt updatedAt"
	newWebhookMembers  = everyWebhookMember + " secret"
)

// hook is a webhook that the requests of the matrix name.
type hook struct {
	*subject // its service account
	id       string
	exists   bool
}

// makeHook creates a disabled webhook with the service account and returns its id.
func (w *world) makeHook(t testing.TB, account string) string {
	t.Helper()
	return w.owner.do(t, "POST /webhooks", hookBody(account)).expect(t, 201).text("/id")
}

func hookBody(account string) string {
	return fmt.Sprintf(`{"url":"https://hooks.example.com/","serviceAccountId":%q,"enabled":false}`, account)
}

// hookAccounts returns service accounts as accounts does, and always the same ones: no request of the
// matrix about a webhook changes them.
func (m *matrix) hookAccounts(t *testing.T) []*subject {
	t.Helper()
	if m.ofHooks == nil {
		m.ofHooks = m.newAccounts(t)
	}
	return m.ofHooks
}

// eachHook calls send with webhooks of this tenant, of another tenant, and with one that does not exist.
// They are the same ones until endHooks deletes them.
func (m *matrix) eachHook(t *testing.T, send func(h hook)) {
	t.Helper()
	if m.hooks == nil {
		accounts := m.hookAccounts(t)
		m.hooks = []hook{
			{accounts[0], m.makeHook(t, accounts[0].id), true}, {accounts[1], m.makeHook(t, accounts[1].id), true},
			{accounts[0], m.foreign.makeHook(t, accounts[2].id), false}, {accounts[0], never, false},
		}
	}
	for _, h := range m.hooks {
		send(h)
	}
}

// endHooks deletes the webhooks of eachHook, so that the next call makes new ones.
func (m *matrix) endHooks(t *testing.T) {
	t.Helper()
	for _, h := range m.hooks[:2] {
		m.owner.do(t, "DELETE /webhooks/"+h.id, "")
	}
	m.foreign.owner.do(t, "DELETE /webhooks/"+m.hooks[2].id, "").expect(t, 204)
	m.hooks = nil
}

// readableWebhook returns the members of a webhook that the principal may read.
func (p *principal) readableWebhook(members string) string {
	switch {
	case p.may("webhooks:read", ""):
		return members
	case strings.HasSuffix(members, "secret"):
		return "id secret"
	}
	return "id"
}

// configures returns the expected response to a request that configures the webhook.
func (p *principal) configures(h hook, permission, members string) expectation {
	return first(done(200, p.readableWebhook(members)), check{p.may(permission, ""), mayNot}, check{p.may("service-accounts:update", ""), mayNot},
		check{!p.byToken, needsSession}, check{h.exists, notThere}, check{p.mayTakeOver(h.subject), beyondOwn})
}

func listWebhooksCells(t *testing.T, m *matrix, p *principal) {
	m.eachHook(t, func(h hook) {
		a := p.compare(t, "webhooks", "GET /webhooks?limit=200", "", first(done(200, "items nextCursor"), check{p.may("webhooks:read", ""), mayNot}))
		if listed := strings.Contains(string(a.body), h.id); a.status == http.StatusOK && listed != h.exists {
			t.Errorf("a webhook is listed: %v, want %v", listed, h.exists)
		}
	})
}

var _ = specify("WebhooksController_listWebhooks", changesNothing, withoutObject("GET /webhooks", ""), listWebhooksCells)

func createWebhookCells(t *testing.T, m *matrix, p *principal) {
	unknown := expectation{status: 422, code: "validation"}
	for _, s := range m.hookAccounts(t) {
		a := p.compare(t, s.name, "POST /webhooks", hookBody(s.id), first(done(201, p.readableWebhook(newWebhookMembers)), check{p.may("webhooks:create", ""), mayNot},
			check{p.may("service-accounts:update", ""), mayNot}, check{!p.byToken, needsSession}, check{s.exists, unknown}, check{p.mayTakeOver(s), beyondOwn}))
		if a.status == http.StatusCreated {
			m.owner.do(t, "DELETE /webhooks/"+a.text("/id"), "").expect(t, 204)
		}
	}
}

var _ = specify("WebhooksController_createWebhook", grantsAccess, func(t *testing.T, w *providerWorld) request {
	return request{line: "POST /webhooks", body: hookBody(anAccount(t, w)), events: []string{"webhook.created webhook {id} []"}}
}, createWebhookCells) // its endpoint receives the values that the service account may read

func getWebhookCells(t *testing.T, m *matrix, p *principal) {
	m.eachHook(t, func(h hook) {
		p.compare(t, "a webhook", "GET /webhooks/"+h.id, "", first(done(200, everyWebhookMember), check{p.may("webhooks:read", ""), mayNot}, check{h.exists, notThere}))
	})
}

var _ = specify("WebhooksController_getWebhook", changesNothing, withObject(aHook, "GET /webhooks/{id}", ""), getWebhookCells)

func updateWebhookCells(t *testing.T, m *matrix, p *principal) {
	m.eachHook(t, func(h hook) {
		p.compare(t, "a webhook of "+h.name, "PATCH /webhooks/"+h.id, `{"url":"https://other.example.com/"}`, p.configures(h, "webhooks:update", everyWebhookMember))
	})
}

var _ = specify("WebhooksController_updateWebhook", grantsAccess, withObject(aHook, "PATCH /webhooks/{id}", `{"url":"https://other.example.com/","types":["user.created"]}`, "webhook.updated webhook {id} [url types]"), updateWebhookCells)

func rotateSecretCells(t *testing.T, m *matrix, p *principal) {
	m.eachHook(t, func(h hook) {
		p.compare(t, "a webhook of "+h.name, "POST /webhooks/"+h.id+"/rotate-secret", "", p.configures(h, "webhooks:update", newWebhookMembers))
	})
}

var _ = specify("WebhooksController_rotateSecret", grantsAccess, withObject(aHook, "POST /webhooks/{id}/rotate-secret", "", "webhook.secret_rotated webhook {id} [secret]"), rotateSecretCells)

func deleteWebhookCells(t *testing.T, m *matrix, p *principal) {
	m.eachHook(t, func(h hook) {
		p.compare(t, "a webhook", "DELETE /webhooks/"+h.id, "", first(done(204, ""), check{p.may("webhooks:delete", ""), mayNot}, check{h.exists, notThere}))
	})
	m.endHooks(t)
}

var _ = specify("WebhooksController_deleteWebhook", removesForGood, withObject(aHook, "DELETE /webhooks/{id}", "", "webhook.deleted webhook {id} []"), deleteWebhookCells)

// operateWebhookCells returns the cells of an operation that does not configure the webhook.
func operateWebhookCells(line, body string, success expectation) func(*testing.T, *matrix, *principal) {
	return func(t *testing.T, m *matrix, p *principal) {
		m.eachHook(t, func(h hook) {
			p.compare(t, "a webhook", "POST /webhooks/"+h.id+line, body, first(success, check{p.may("webhooks:update", ""), mayNot}, check{h.exists, notThere}))
		})
	}
}

var (
	_ = specify("WebhooksController_testWebhook", changesNothing, withObject(aHook, "POST /webhooks/{id}/test", ""), operateWebhookCells("/test", "", done(200, "itemId")))
	_ = specify("WebhooksController_replayWebhook", changesNothing, withObject(aHook, "POST /webhooks/{id}/replay", `{"from":"2030-01-01T00:00:00Z","to":"2030-01-02T00:00:00Z"}`, "webhook.replayed webhook {id} []"), operateWebhookCells("/replay", `{"from":"2030-01-01T00:00:00Z","to":"2030-01-02T00:00:00Z"}`, done(204, ""))) // the endpoint receives these items anyway
	_ = specify("WebhooksController_skipItems", changesNothing, withObject(aHook, "POST /webhooks/{id}/skip", `{"all":true}`, "webhook.skipped webhook {id} []"), operateWebhookCells("/skip", "", done(204, "")))
)

func deliveriesCells(t *testing.T, m *matrix, p *principal) {
	m.eachHook(t, func(h hook) {
		p.compare(t, "a webhook", "GET /webhooks/"+h.id+"/deliveries", "", first(done(200, "items nextCursor"), check{p.may("webhooks:read", ""), mayNot}, check{h.exists, notThere}))
	})
}

var _ = specify("WebhooksController_listDeliveries", changesNothing, withObject(aHook, "GET /webhooks/{id}/deliveries", ""), deliveriesCells)

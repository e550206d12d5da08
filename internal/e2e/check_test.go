package e2e

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// testCheck asks what back ends and the auth hooks of proxies ask.
func testCheck(t *testing.T, p *program) {
	w := newWorld(t, p)
	c := w.holder(t, "checked", "Ops", "Sales", "users:read", "shop/invoices:approve", "shop/invoices.total:read", "roles:create")
	wild := w.holder(t, "wild", "", "", "shop/*:read", "*/stock:count", "users.email:read")
	ask := func(name string, as *caller, query string, status int) scenario {
		s := scenario{name: name, as: as, send: "GET /auths/check?permission=" + query, status: status}
		switch status {
		case http.StatusNoContent:
			s.headers = map[string]string{"X-Auth-User": as.id, "X-Auth-Tenant": w.name, "Content-Type": "", "Set-Cookie": ""}
		case http.StatusForbidden:
			s.code, s.headers = "permission-denied", map[string]string{"X-Auth-User": "", "X-Auth-Tenant": ""}
		case http.StatusBadRequest:
			s.code = "malformed-request"
		}
		return s
	}
	play(t, []scenario{
		ask("an owner of all", w.owner, "shop/invoices:approve", 204), ask("an owner in a department", w.owner, "users:delete&department=Sales", 204),
		ask("within the reach", c, "shop/invoices:approve&department=Sales", 204), ask("within the reach, in another case", c, "shop/invoices:approve&department=sALES", 204),
		ask("outside of the reach", c, "shop/invoices:approve&department=Ops", 403), ask("everywhere, held in a department", c, "shop/invoices:approve", 403),
		ask("a field that is held", c, "shop/invoices.total:read&department=Sales", 204), ask("the whole, of which a field is held", c, "shop/invoices:read&department=Sales", 403),
		ask("a field of what is held", c, "users.email:read&department=Sales", 204), ask("another action", c, "users:delete&department=Sales", 403),
		ask("what counts for nothing within a reach", c, "roles:create&department=Sales", 403), ask("another application", c, "store/invoices:approve&department=Sales", 403),
		ask("any resource", wild, "shop/boxes:read", 204), ask("any application", wild, "depot/stock:count", 204), ask("never from an application to Rolecall", wild, "roles:read", 403), ask("any application is not the own", wild, "users:read", 403),
		ask("nobody", w.nobody(), "users:read", 401), ask("a session of another tenant", c.in("no-such-tenant"), "users:read", 401),
		ask("a wildcard", c, "shop/*:read", 400), ask("all", w.owner, "*:*", 400), ask("every field", w.owner, "users.*:read", 400),
		ask("what is no permission", c, "users", 400), ask("what nobody can hold", w.owner, "users:fly", 400), ask("an empty one", c, "", 400), ask("two", c, "users:read&permission=users:read", 400),
		ask("an empty department", c, "users:read&department=", 400), ask("two departments", c, "users:read&department=Sales&department=Ops", 400), ask("something unknown", c, "users:read&user="+w.owner.id, 400),
		{name: "no permission", as: c, send: "GET /auths/check", status: 400, faults: []string{"parameter:permission required"}},
		{name: "not by POST", as: c, send: "POST /auths/check?permission=users:read", status: 405},
		{name: "by HEAD", as: w.owner, send: "HEAD /auths/check?permission=users:read", status: 204, headers: map[string]string{"X-Auth-User": w.owner.id}},
	})
	header := []string{"x-auth-user: " + w.owner.id, "x-auth-tenant: other"}
	if got := c.do(t, "GET /auths/check?permission=users:read&department=Sales", "", header...).expect(t, 204).header["X-Auth-User"]; len(got) != 1 || got[0] != c.id {
		t.Errorf("who it is, is taken from the request: %q", got)
	}
	// A refused check is an answer, and no refusal that must be recorded.
	plain := w.guest(t, "plain-checked", "")
	plain.do(t, "GET /auths/check?permission=users:read", "").refused(t, 403, "permission-denied")
	plain.do(t, "GET /users", "").refused(t, 403, "permission-denied")
	if got := awaitEvents(t, w.owner, "/events?type=request.refused&actor="+plain.id, 1); !slices.Equal(got, []string{"UsersController_listUsers: permission-denied"}) {
		t.Errorf("the refusals are %q", got)
	}
}

// awaitEvents returns the reasons of the events of a list, newest first, as soon
// as there are as many: what is refused is recorded within two seconds.
func awaitEvents(t *testing.T, c *caller, path string, n int) []string {
	t.Helper()
	var a *answer
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		if a = c.do(t, "GET "+path, "").expect(t, 200); len(a.list("/items")) >= n {
			return a.texts("reason")
		}
	}
	t.Fatalf("%s never held %d events: %s", path, n, a.body)
	return nil
}

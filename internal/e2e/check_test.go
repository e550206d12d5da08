package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

// testCheck tests the operations with which back ends and the auth hooks of proxies check a
// user's permissions.
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
		ask("nobody", w.anonymous(), "users:read", 401), ask("a session of another tenant", c.in("no-such-tenant"), "users:read", 401),
		ask("a wildcard", c, "shop/*:read", 400), ask("all", w.owner, "*:*", 400), ask("every field", w.owner, "users.*:read", 400),
		ask("what is no permission", c, "users", 400), ask("what nobody can hold", w.owner, "users:fly", 400), ask("an empty one", c, "", 400), ask("two", c, "users:read&permission=users:read", 400),
		ask("an empty department", c, "users:read&department=", 400), ask("two departments", c, "users:read&department=Sales&department=Ops", 400), ask("something unknown", c, "users:read&user="+w.owner.id, 400),
		{name: "no permission", as: c, send: "GET /auths/check", status: 400, faults: []string{"parameter:permission required"}},
		{name: "not by POST", as: c, send: "POST /auths/check?permission=users:read", status: 405},
		{name: "by HEAD", as: w.owner, send: "HEAD /auths/check?permission=users:read", status: 204, headers: map[string]string{"X-Auth-User": w.owner.id}},
	})
	const many = `{"checks":[{"permission":"shop/invoices:approve","department":"sALES"},{"permission":"shop/invoices:approve"},{"permission":"users.email:read","department":"Sales"},{"permission":"shop/invoices:approve","department":"sALES"}]}`
	answered := func(allowed ...bool) string {
		return fmt.Sprintf(`{"results":[{"permission":"shop/invoices:approve","department":"sALES","allowed":%v},{"permission":"shop/invoices:approve","department":null,"allowed":%v},{"permission":"users.email:read","department":"Sales","allowed":%v},{"permission":"shop/invoices:approve","department":"sALES","allowed":%v}]}`, allowed[0], allowed[1], allowed[2], allowed[3])
	}
	play(t, []scenario{
		{name: "many by an owner", as: w.owner, send: "POST /auths/checks", body: many, status: 200, contains: []string{answered(true, true, true, true)}, headers: map[string]string{"X-Auth-User": w.owner.id, "X-Auth-Tenant": w.name, "Set-Cookie": ""}},
		{name: "many within a reach", as: c, send: "POST /auths/checks", body: many, status: 200, contains: []string{answered(true, false, true, true)}},
		{name: "many of nothing", as: wild, send: "POST /auths/checks", body: many, status: 200, contains: []string{answered(false, false, true, false)}},
		{name: "with an idempotency key", as: c, send: "POST /auths/checks", body: many, header: []string{"idempotency-key: once", "+idempotency-key: twice"}, status: 200, contains: []string{answered(true, false, true, true)}},
		{name: "none", as: c, send: "POST /auths/checks", body: `{"checks":[]}`, status: 200, contains: []string{`{"results":[]}`}},
		{name: "too many", as: c, send: "POST /auths/checks", body: `{"checks":[` + strings.Repeat(`{"permission":"users:read"},`, 200) + `{"permission":"users:read"}]}`, status: 422, faults: []string{"/checks too-many"}},
		{name: "what is no permission", as: c, send: "POST /auths/checks", body: `{"checks":[{"permission":"users"},{"permission":"shop/*:read"},{"permission":"users:fly","department":""}]}`, status: 422,
			faults: []string{"/checks/0/permission format", "/checks/1/permission wildcard", "/checks/2/permission unknown-permission", "/checks/2/department length"}},
		{name: "many by nobody", as: w.anonymous(), send: "POST /auths/checks", body: many, status: 401, code: "unauthenticated"},
		{name: "many for another site", as: c, send: "POST /auths/checks", body: many, header: []string{"sec-fetch-site: cross-site"}, status: 403, code: "cross-origin"},
		{name: "many as a form", as: c, send: "POST /auths/checks", body: many, header: []string{"content-type: text/plain"}, status: 415},
		{name: "not by GET", as: c, send: "GET /auths/checks", status: 405},
	})
	header := []string{"x-auth-user: " + w.owner.id, "x-auth-tenant: other"}
	if got := c.do(t, "GET /auths/check?permission=users:read&department=Sales", "", header...).expect(t, 204).header["X-Auth-User"]; len(got) != 1 || got[0] != c.id {
		t.Errorf("who it is, is taken from the request: %q", got)
	}
	// If a permission check finds that the permission is missing, no event about a refused
	// request is recorded.
	plain := w.guest(t, "plain-checked", "")
	plain.do(t, "GET /auths/check?permission=users:read", "").refused(t, 403, "permission-denied")
	plain.do(t, "GET /users", "").refused(t, 403, "permission-denied")
	if got := awaitEvents(t, w.owner, "/events?type=request.refused&actor="+plain.id, 1); !slices.Equal(got, []string{"UsersController_listUsers: permission-denied"}) {
		t.Errorf("the refusals are %q", got)
	}
}

// awaitEvents waits until the list at path has at least n events. It returns their reasons,
// newest first. Events about refusals can be recorded up to two seconds later.
func awaitEvents(t *testing.T, c *caller, path string, n int) []string {
	t.Helper()
	var a *answer
	if !patience.Poll(func() bool {
		a = c.do(t, "GET "+path, "").expect(t, 200)
		return len(a.list("/items")) >= n
	}) {
		t.Fatalf("%s never held %d events: %s", path, n, a.body)
	}
	return a.texts("reason")
}

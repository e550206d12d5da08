package e2e

import (
	"net/url"
	"testing"
	"time"
)

// now returns the current time as the value of a query parameter.
func now() string { return url.QueryEscape(time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")) }

// testRolesAtATime checks the roles of a user and the users of a role at earlier times.
func testRolesAtATime(t *testing.T, w *world) {
	user, role := w.user(t, "historical", "Sales"), w.role(t, "Historical", "shop/a:b")
	before := now()
	w.assign(t, user, role, `{"reach":{"departments":["Sales"]}}`)
	first := now()
	w.owner.do(t, "PUT /users/"+user+"/roles/"+role, `{"expiresAt":"2999-01-01T00:00:00Z"}`).expect(t, 200)
	second := now()
	w.owner.do(t, "DELETE /users/"+user+"/roles/"+role, "").expect(t, 204)
	after := now()
	w.owner.do(t, "DELETE /roles/"+role, "").expect(t, 204)
	reader, elsewhere, blind := w.holder(t, "history-reader", "", "Sales", "roles:read", "users:read"), w.holder(t, "history-elsewhere", "", "Ops", "roles:read", "users:read"), w.holder(t, "history-blind", "", "", "users:read")
	roles, holders := "GET /users/"+user+"/roles?at=", "GET /roles/"+role+"/users?at="
	held := map[string]any{"/items/0/role/id": role, "/items/0/role/name": "Historical", "/items/0/role/key": nil, "/items/1": nil, "/nextCursor": nil}
	in := func(reach, expires any) map[string]any {
		has := map[string]any{"/items/0/reach/departments/0": reach, "/items/0/expiresAt": expires}
		for member, value := range held {
			has[member] = value
		}
		return has
	}
	none, listed := map[string]any{"/items/0": nil, "/nextCursor": nil}, map[string]any{"/items/0/id": user, "/items/1": nil, "/nextCursor": nil}
	play(t, []scenario{
		{name: "roles before the assignment", as: w.owner, send: roles + before, status: 200, has: none},
		{name: "roles after the assignment", as: w.owner, send: roles + first, status: 200, has: in("Sales", nil)},
		{name: "roles after the replacement", as: reader, send: roles + second, status: 200, has: in(nil, "2999-01-01T00:00:00.000000Z")},
		{name: "roles after the removal", as: w.owner, send: roles + after, status: 200, has: none},
		{name: "roles now", as: w.owner, send: "GET /users/" + user + "/roles", status: 200, has: none},
		{name: "roles outside of the reach", as: elsewhere, send: roles + first, status: 404, code: "not-found"},
		{name: "roles without the permission", as: blind, send: roles + first, status: 403, code: "permission-denied"},
		{name: "users before the assignment", as: w.owner, send: holders + before, status: 200, has: none},
		{name: "users after the assignment", as: w.owner, send: holders + first, status: 200, has: listed},
		{name: "users after the replacement", as: reader, send: holders + second + "&q=historical&sort=name&count=true", status: 200, has: map[string]any{"/items/0/id": user, "/total": 1.0, "/totalIsExact": true}},
		{name: "users after the removal", as: w.owner, send: holders + after, status: 200, has: none},
		{name: "users outside of the reach", as: elsewhere, send: holders + first, status: 200, has: none},
		{name: "users without the permission", as: blind, send: holders + first, status: 403, code: "permission-denied"},
		{name: "users of the deleted role now", as: w.owner, send: "GET /roles/" + role + "/users", status: 404, code: "not-found"},
		{name: "users of an unknown role", as: w.owner, send: "GET /roles/01890a5d-ac96-774b-bcce-b302099a8057/users?at=" + first, status: 404, code: "not-found"},
		{name: "a time before the record", as: w.owner, send: roles + "2001-01-01T00:00:00Z", status: 410, code: "history-expired"},
		{name: "the start of 1970", as: w.owner, send: holders + "1970-01-01T00:00:00Z", status: 410, code: "history-expired"},
		{name: "a time in the future", as: w.owner, send: roles + "2999-01-01T00:00:00Z", status: 400, faults: []string{"parameter:at future"}},
		{name: "users in the future", as: w.owner, send: holders + "2999-01-01T00:00:00Z", status: 400, faults: []string{"parameter:at future"}},
		{name: "a date", as: w.owner, send: roles + "2026-01-01", status: 400, faults: []string{"parameter:at format"}},
		{name: "an empty time", as: w.owner, send: holders, status: 400, faults: []string{"parameter:at format"}},
		{name: "with expired ones", as: w.owner, send: roles + first + "&includeExpired=true", status: 400, faults: []string{"parameter:includeExpired conflict"}},
		{name: "of a service account", as: w.owner, send: "GET /service-accounts/" + w.account(t, "Historical import") + "/roles?at=" + first, status: 400, faults: []string{"parameter:at unknown"}},
	})
}

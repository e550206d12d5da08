package e2e

import (
	"fmt"
	"testing"
)

func testOverview(t *testing.T, p *program) {
	w := newWorld(t, p)
	clerk := w.holder(t, "overseen", "Sales", "Sales", "users:read", "shop/invoices:approve")
	role := clerk.do(t, "GET /auths/session", "").text("/roles/0/id")
	line := "GET /users/" + clerk.id + "/overview"
	const everyPart = "user assignments assignmentCount permissions signIn invitation sessions tokens factors recentEvents allowedActions"

	a := w.owner.do(t, line, "").expect(t, 200)
	s := scenario{status: 200, members: everyPart, has: map[string]any{
		"/user/id": clerk.id, "/assignmentCount": 1.0, "/assignments/0/role/id": role, "/assignments/0/reach/departments/0": "Sales", "/assignments/0/grantedBy": w.owner.id,
		"/permissions/0/permission": "shop/invoices:approve", "/permissions/0/reach/departments/0": "Sales", "/permissions/0/roles/0/id": role, "/permissions/1/permission": "users:read",
		"/signIn/canSignIn": true, "/sessions/count": 1.0, "/recentEvents/0/type": "role.assigned", "/recentEvents/0/actor/id": w.owner.id, "/recentEvents/0/subject/id": clerk.id,
	}}
	s.check(t, a)
	if got := fmt.Sprint(a.value("/allowedActions")); got != "[update delete suspend invite sendPasswordReset changeEmail assignRole erase resetFactors revokeSessions]" {
		t.Errorf("an owner may %s", got)
	}
	if fmt.Sprint(a.list("/signIn/reasons")) != "[]" || a.text("/signIn/lastLoginAt") == "" || a.text("/sessions/newestAt") == "" {
		t.Errorf("how the user signs in: %s", a.body)
	}
	types := []string{}
	for i := range a.list("/recentEvents") {
		types = append(types, a.text(fmt.Sprintf("/recentEvents/%d/type", i)))
	}
	if got := fmt.Sprint(types); got != "[role.assigned session.started user.password_changed user.created]" {
		t.Errorf("the events are %s", got)
	}

	inviter, guest := w.holder(t, "overseen-inviter", "", "", "users:read", "users:invite"), w.user(t, "overseen-guest", "")
	token := w.invite(t, inviter, guest)
	invited := scenario{name: "an invited user", as: w.owner, send: "GET /users/" + guest + "/overview", status: 200,
		has: map[string]any{"/invitation/createdBy": inviter.id, "/signIn/reasons/0/code": "user-pending", "/signIn/reasons/1": nil}}
	play(t, []scenario{invited, {name: "the list of invitations", as: w.owner, send: "GET /invitations", status: 200, has: map[string]any{"/items/0/userId": guest, "/items/0/createdBy": inviter.id}}})
	w.owner.do(t, "DELETE /users/"+inviter.id, "").expect(t, 204)
	invited.name, invited.has = "an invited user whose inviter is gone", map[string]any{"/signIn/reasons/1/code": "invitation-void", "/signIn/reasons/1/operation": "UsersController_inviteUser", "/signIn/reasons/2": nil}
	play(t, []scenario{invited})
	w.nobody().do(t, "POST /auths/invitations/accept", acceptance(token, password)).refused(t, 401, "invitation-invalid")

	pending := w.user(t, "overseen-pending", "")
	w.owner.do(t, "POST /users/"+clerk.id+"/suspend", `{"reason":"on leave"}`).expect(t, 200)
	blind := w.holder(t, "blind", "", "", "users.department:update")
	partly := w.holder(t, "partly", "", "", "users.status:read", "sessions:read")
	viewer := w.member(t, "viewer", "")
	w.assign(t, viewer.id, w.builtIn(t, "viewer"), "")
	admin := w.member(t, "overseer", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	nobody := w.member(t, "nothing", "")
	play(t, []scenario{
		{name: "a suspended user", as: w.owner, send: line, status: 200, has: map[string]any{"/signIn/canSignIn": false, "/signIn/reasons/0/code": "user-suspended", "/signIn/reasons/0/operation": "UsersController_resumeUser", "/sessions/count": 0.0, "/sessions/newestAt": nil, "/recentEvents/0/type": "session.ended", "/recentEvents/1/reason": "on leave", "/allowedActions/2": "resume"}},
		{name: "a pending user", as: w.owner, send: "GET /users/" + pending + "/overview", status: 200, has: map[string]any{"/signIn/canSignIn": false, "/signIn/reasons/0/code": "user-pending", "/signIn/lastLoginAt": nil, "/assignmentCount": 0.0}},
		{name: "who reads nothing", as: blind, send: line, status: 200, members: "user allowedActions", has: map[string]any{"/allowedActions/0": "update", "/allowedActions/1": nil}, lacks: []string{"canary", "Sales"}},
		{name: "who reads the status", as: partly, send: line, status: 200, members: "user signIn invitation sessions tokens allowedActions", has: map[string]any{"/user/status": "suspended", "/user/name": nil}},
		{name: "a viewer", as: viewer, send: line, status: 200, members: "user assignments assignmentCount permissions signIn invitation allowedActions", contains: []string{`"allowedActions":[]`}},
		{name: "a viewer of themselves", as: viewer, send: "GET /users/" + viewer.id + "/overview", status: 200, members: everyPart},
		{name: "anybody of themselves", as: nobody, send: "GET /users/" + nobody.id + "/overview", status: 200, members: everyPart, has: map[string]any{"/sessions/count": 1.0, "/allowedActions/0": "update"}},
		{name: "an administrator of an owner", as: admin, send: "GET /users/" + w.owner.id + "/overview", status: 200, members: everyPart, has: map[string]any{"/allowedActions/0": "update", "/allowedActions/1": "assignRole", "/allowedActions/2": nil}},
		{name: "nobody of others", as: nobody, send: line, status: 403, code: "permission-denied"},
		{name: "of nobody", as: w.owner, send: "GET /users/" + never + "/overview", status: 404, code: "not-found"},
	})
}

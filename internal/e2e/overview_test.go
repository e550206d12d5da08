package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

func testOverview(t *testing.T, p *program) {
	w := newWorld(t, p)
	clerk := w.holder(t, "overseen", "Sales", "Sales", "users:read", "shop/invoices:approve")
	role := clerk.do(t, "GET /auths/session", "").text("/roles/0/id")
	line := "GET /users/" + clerk.id + "/overview"
	const everyPart = "user assignments assignmentCount expiredAssignments permissions hasMorePermissions signIn invitation sessions tokens factors recentEvents allowedActions"

	a := w.owner.do(t, line, "").expect(t, 200)
	s := scenario{status: 200, members: everyPart, has: map[string]any{
		"/user/id": clerk.id, "/assignmentCount": 1.0, "/assignments/0/role/id": role, "/assignments/0/reach/departments/0": "Sales", "/assignments/0/grantedBy": w.owner.id,
		"/permissions/0/permission": "shop/invoices:approve", "/permissions/0/reach/departments/0": "Sales", "/permissions/0/roles/0/id": role, "/permissions/1/permission": "users:read",
		"/signIn/canSignIn": true, "/sessions/count": 1.0, "/recentEvents/0/type": "role.assigned", "/recentEvents/0/actor/id": w.owner.id, "/recentEvents/0/subject/id": clerk.id,
	}}
	s.check(t, a)
	if got := fmt.Sprint(a.value("/allowedActions")); got != "[update delete suspend invite sendPasswordReset changeEmail assignRole erase resetFactors revokeSessions withdrawInvitation]" {
		t.Errorf("an owner may %s", got)
	}
	if fmt.Sprint(a.list("/signIn/reasons")) != "[]" || a.text("/signIn/lastLoginAt") == "" || a.text("/sessions/newestAt") == "" {
		t.Errorf("how the user signs in: %s", a.body)
	}
	types := []string{}
	for i := range a.list("/recentEvents") {
		types = append(types, a.text(fmt.Sprintf("/recentEvents/%d/type", i)))
	}
	if got := fmt.Sprint(types); got != "[role.assigned session.started user.invitation_accepted user.invited user.created]" {
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
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, password)).refused(t, 401, "invitation-invalid")

	testExpiredAssignments(t, w)
	testRefusedSignIns(t, w)

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
		{name: "a suspended user", as: w.owner, send: line, status: 200, has: map[string]any{"/signIn/canSignIn": false, "/signIn/reasons/0/code": "user-suspended", "/signIn/reasons/0/operation": "UsersController_resumeUser", "/signIn/reasons/0/remedy": "POST /users/{id}/resume", "/sessions/count": 0.0, "/sessions/newestAt": nil, "/recentEvents/0/type": "session.ended", "/recentEvents/1/reason": "on leave", "/allowedActions/2": "resume"}},
		{name: "a pending user", as: w.owner, send: "GET /users/" + pending + "/overview", status: 200, has: map[string]any{"/signIn/canSignIn": false, "/signIn/reasons/0/code": "user-pending", "/signIn/lastLoginAt": nil, "/assignmentCount": 0.0}},
		{name: "who reads nothing", as: blind, send: line, status: 200, members: "user allowedActions", has: map[string]any{"/allowedActions/0": "update", "/allowedActions/1": nil}, lacks: []string{"canary", "Sales"}},
		{name: "who reads the status", as: partly, send: line, status: 200, members: "user signIn invitation sessions tokens allowedActions", has: map[string]any{"/user/status": "suspended", "/user/name": nil}},
		{name: "a viewer", as: viewer, send: line, status: 200, members: "user assignments assignmentCount expiredAssignments permissions hasMorePermissions signIn invitation allowedActions", contains: []string{`"allowedActions":[]`}},
		{name: "a viewer of themselves", as: viewer, send: "GET /users/" + viewer.id + "/overview", status: 200, members: everyPart},
		{name: "anybody of themselves", as: nobody, send: "GET /users/" + nobody.id + "/overview", status: 200, members: everyPart, has: map[string]any{"/sessions/count": 1.0, "/allowedActions/0": "update"}},
		{name: "an administrator of an owner", as: admin, send: "GET /users/" + w.owner.id + "/overview", status: 200, members: everyPart, has: map[string]any{"/allowedActions/0": "update", "/allowedActions/1": "assignRole", "/allowedActions/2": nil}},
		{name: "nobody of others", as: nobody, send: line, status: 403, code: "permission-denied"},
		{name: "of nobody", as: w.owner, send: "GET /users/" + never + "/overview", status: 404, code: "not-found"},
	})
}

// testExpiredAssignments checks that expired role assignments are listed separately, with
// their reach and their expiry.
func testExpiredAssignments(t *testing.T, w *world) {
	user, role, account := w.user(t, "temporary", ""), w.role(t, "Temporary", "shop/a:b"), w.account(t, "Temporary import")
	endSoon(t, func(end string) *answer {
		body := `{"reach":{"departments":["Sales"]},"expiresAt":` + quoted(end) + `}`
		if a := w.owner.do(t, "PUT /users/"+user+"/roles/"+role, body); a.status >= 300 {
			return a
		}
		return w.owner.do(t, "PUT /service-accounts/"+account+"/roles/"+role, body)
	})
	expired := map[string]any{"role/id": role, "role/name": "Temporary", "reach/departments/0": "Sales", "grantedBy": w.owner.id}
	below := func(list string) map[string]any {
		has := map[string]any{list + "/1": nil}
		for member, value := range expired {
			has[list+"/0/"+member] = value
		}
		return has
	}
	for _, holder := range []string{"/users/" + user, "/service-accounts/" + account} {
		if !patience.Poll(func() bool {
			return len(w.owner.do(t, "GET "+holder+"/roles", "").expect(t, 200).list("/items")) == 0
		}) {
			t.Fatal("the assignment does not expire")
		}
		play(t, []scenario{
			{name: "expired too", as: w.owner, send: "GET " + holder + "/roles?includeExpired=true", status: 200, has: below("/items"), contains: []string{`"nextCursor":null`}},
			{name: "not expired", as: w.owner, send: "GET " + holder + "/roles?includeExpired=false", status: 200, contains: []string{`"items":[]`}},
			{name: "neither", as: w.owner, send: "GET " + holder + "/roles?includeExpired=1", status: 400, faults: []string{"parameter:includeExpired format"}},
		})
	}
	overview := below("/expiredAssignments")
	overview["/assignmentCount"], overview["/assignments/0"], overview["/permissions/0"] = 0.0, nil, nil
	// In events, only callers who may read roles see the reach and the expiry of an
	// assignment.
	overview["/recentEvents/0/type"], overview["/recentEvents/0/after/departments/0"], overview["/recentEvents/0/after/roleId"] = "role.assigned", "Sales", role
	auditor := w.holder(t, "overseen-auditor", "", "", "events:read", "users:read")
	play(t, []scenario{
		{name: "the overview", as: w.owner, send: "GET /users/" + user + "/overview", status: 200, has: overview, contains: []string{`"expiresAt":"`}},
		{name: "events without roles:read", as: auditor, send: "GET /users/" + user + "/events?type=role.assigned", status: 200, has: map[string]any{"/items/0/after": nil}, lacks: []string{"Sales", role}},
		{name: "roles without roles:read", as: auditor, send: "GET /users/" + user + "/roles?includeExpired=true", status: 403},
	})
}

// testRefusedSignIns checks that after too many failed sign-ins, the overview shows the source
// that is refused and the time at which it can sign in again.
func testRefusedSignIns(t *testing.T, w *world) {
	target := w.member(t, "guessed", "")
	for range 10 {
		w.anonymous().do(t, "POST /auths/login", credentials(target.email, "wrong")).refused(t, 401, "wrong-credentials")
	}
	w.anonymous().do(t, "POST /auths/login", credentials(target.email, password)).refused(t, 429, "too-many-attempts")
	awaitEvents(t, w.owner, "/events?type=session.sign_in_failed&subject="+target.id, 1)
	line := "GET /users/" + target.id + "/overview"
	refused := map[string]any{"/signIn/canSignIn": false, "/signIn/reasons/0/code": "too-many-attempts", "/signIn/reasons/0/covers": "source", "/signIn/reasons/0/source": w.source, "/signIn/reasons/1": nil}
	blind := w.holder(t, "overseen-reader", "", "", "users:read")
	play(t, []scenario{
		{name: "by a reader of events", as: w.owner, send: line, status: 200, has: refused},
		{name: "without events:read", as: blind, send: line, status: 200, has: map[string]any{"/signIn/canSignIn": false, "/signIn/reasons/0/covers": "source", "/signIn/reasons/0/source": nil}},
	})
	until, err := time.Parse(time.RFC3339Nano, w.owner.do(t, line, "").text("/signIn/reasons/0/until"))
	if wait := time.Until(until); err != nil || wait < 10*time.Minute || wait > 15*time.Minute {
		t.Errorf("refused for %v: %v", wait, err)
	}
}

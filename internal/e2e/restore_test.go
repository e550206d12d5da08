package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

func testRestore(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("back", func(t *testing.T) { testBack(t, w) })
	t.Run("taken", func(t *testing.T) { testTakenBeforeRestore(t, w) })
	t.Run("ceiling", func(t *testing.T) { testRestoreCeiling(t, w) })
	t.Run("list", func(t *testing.T) { testListOfDeleted(t, newWorld(t, p)) })
	t.Run("parallel", func(t *testing.T) { testRestoreInParallel(t, w) })
}

func testBack(t *testing.T, w *world) {
	c := w.holder(t, "returns", "Sales", "Sales", "shop/a:b")
	other := w.user(t, "returns-pending", "")
	line := "/users/" + c.id
	before := w.owner.do(t, "GET "+line, "").expect(t, 200)
	roles := w.owner.do(t, "GET "+line+"/roles", "").expect(t, 200)
	w.owner.do(t, "DELETE "+line, "").expect(t, 204)
	w.owner.do(t, "DELETE /users/"+other, "").expect(t, 204)
	play(t, []scenario{
		{name: "a living user is none to restore", as: w.owner, send: "POST /users/" + w.owner.id + "/restore", status: 404, code: "not-found"},
		{name: "nor is nobody", as: w.owner, send: "POST /users/" + never + "/restore", status: 404, code: "not-found"},
		{name: "it takes an id", as: w.owner, send: "POST /users/none/restore", status: 400, faults: []string{"parameter:id format"}},
		{name: "it takes a session", as: w.anonymous(), send: "POST " + line + "/restore", status: 401, code: "unauthenticated"},
		{name: "restored", as: w.owner, send: "POST " + line + "/restore", status: 200, members: "user rolesNotRestored groupsNotRestored",
			has:      map[string]any{"/user/id": c.id, "/user/email": c.email, "/user/name": before.text("/name"), "/user/department": "Sales", "/user/status": "pending", "/user/createdAt": before.text("/createdAt")},
			contains: []string{`"rolesNotRestored":[]`}, headers: map[string]string{"Withheld-Fields": ""}},
		{name: "not twice", as: w.owner, send: "POST " + line + "/restore", status: 404, code: "not-found"},
		{name: "there again", as: w.owner, send: "GET /users?q=returns&department=sales", status: 200, has: map[string]any{"/items/0/id": c.id, "/items/1": nil}},
		{name: "the old session stays ended", as: c, send: "GET /auths/session", status: 401, code: "unauthenticated"},
		{name: "the old password is gone", as: c.anonymous(), send: "POST /auths/login", body: credentials(c.email, password), status: 401, code: "wrong-credentials"},
		{name: "the event", as: w.owner, send: "GET " + line + "/events?type=user.restored", status: 200,
			has: map[string]any{"/items/0/actor/id": w.owner.id, "/items/0/after/email": c.email, "/items/0/after/roles/0": roles.text("/items/0/role/id"), "/items/0/before": nil, "/items/1": nil}},
	})
	if again := w.owner.do(t, "GET "+line+"/roles", "").expect(t, 200); string(again.body) != string(roles.body) {
		t.Errorf("the roles were %s and are %s", roles.body, again.body)
	}
	a := w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(w.invite(t, w.owner, c.id), password)).expect(t, 200)
	c.with(a.session(t)).do(t, "GET /auths/check?permission=shop/a:b&department=Sales", "").expect(t, 204)
}

func testTakenBeforeRestore(t *testing.T, w *world) {
	body := `{"email":"taken-%s@canary.example","name":"Taken","externalId":"taken-%s"}`
	one := w.owner.do(t, "POST /users", fmt.Sprintf(body, "1", "1")).expect(t, 201).text("/id")
	w.owner.do(t, "DELETE /users/"+one, "").expect(t, 204)
	address := w.owner.do(t, "POST /users", fmt.Sprintf(body, "1", "2")).expect(t, 201).text("/id")
	w.owner.do(t, "POST /users/"+one+"/restore", "").refused(t, 409, "email-taken")
	w.owner.do(t, "DELETE /users/"+address, "").expect(t, 204)
	external := w.owner.do(t, "POST /users", fmt.Sprintf(body, "3", "1")).expect(t, 201).text("/id")
	w.owner.do(t, "POST /users/"+one+"/restore", "").refused(t, 409, "external-id-taken")
	w.owner.do(t, "DELETE /users/"+external, "").expect(t, 204)
	w.owner.do(t, "POST /users/"+one+"/restore", "").expect(t, 200)
	w.owner.do(t, "POST /users/"+address+"/restore", "").refused(t, 409, "email-taken")
}

// testRestoreCeiling restores users who had permissions that the caller cannot grant. The
// users come back without the roles that have these permissions.
func testRestoreCeiling(t *testing.T, w *world) {
	admin := w.member(t, "restoring-admin", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	sales := w.holder(t, "restores-sales", "Sales", "Sales", "users.name:read", "users:restore", "roles:assign", "shop/a:b")
	shop, reads := w.role(t, "Restored shop", "shop/a:b"), w.role(t, "Restored reads", "users:read")
	deleted := func(name string, roles ...string) string {
		id := w.user(t, name, "Sales")
		for _, role := range roles {
			w.assign(t, id, role, within("Sales"))
		}
		w.owner.do(t, "DELETE /users/"+id, "").expect(t, 204)
		return "POST /users/" + id + "/restore"
	}
	owner := w.user(t, "restored-owner", "Sales")
	w.assign(t, owner, w.builtIn(t, "owner"), "")
	w.owner.do(t, "DELETE /users/"+owner, "").expect(t, 204)
	outside := w.user(t, "restored-outside", "Ops")
	w.owner.do(t, "DELETE /users/"+outside, "").expect(t, 204)
	both := deleted("restored-both", shop, reads)
	play(t, []scenario{
		{name: "an administrator restores an owner as nobody in particular", as: admin, send: "POST /users/" + owner + "/restore", status: 200, has: map[string]any{"/rolesNotRestored/0": w.builtIn(t, "owner"), "/rolesNotRestored/1": nil}},
		{name: "who holds no roles now", as: w.owner, send: "GET /users/" + owner + "/roles", status: 200, contains: []string{`"items":[]`}},
		{name: "somebody of one's department, with what one holds there", as: sales, send: both, status: 200, members: "user", has: map[string]any{"/user/name": "User restored-both", "/user/email": nil}, headers: map[string]string{"Withheld-Fields": "email, department, externalId, metadata, status, managedBy, createdAt, updatedAt"}, lacks: []string{"canary"}},
		{name: "which is not what one does not hold", as: w.owner, send: "GET " + strings.TrimSuffix(strings.TrimPrefix(both, "POST "), "restore") + "roles", status: 200, has: map[string]any{"/items/0/role/id": shop, "/items/1": nil}},
		{name: "nobody of another department", as: sales, send: "POST /users/" + outside + "/restore", status: 404, code: "not-found"},
		{name: "not without the permission", as: w.holder(t, "deletes", "", "", "users:read", "users:create", "users:delete", "users:erase"), send: "POST /users/" + outside + "/restore", status: 403, code: "permission-denied"},
	})
}

func testListOfDeleted(t *testing.T, w *world) {
	var ids []string
	for i, department := range []string{"Sales", "Ops", "", "Sales", "Ops"} {
		id := w.user(t, fmt.Sprintf("listed-%d", i), department)
		w.owner.do(t, "DELETE /users/"+id, "").expect(t, 204)
		ids = append([]string{id}, ids...)
	}
	if got := w.owner.readAll(t, "/users?status=deleted&limit=2"); !slices.Equal(got, ids) {
		t.Errorf("deleted are %v, not %v", got, ids)
	}
	sales := w.holder(t, "lists-sales", "", "Sales", "users.name:read", "users:restore")
	reads := w.holder(t, "reads", "", "", "users:read")
	play(t, []scenario{
		{name: "everything", as: w.owner, send: "GET /users?status=deleted", status: 200, has: map[string]any{"/items/0/id": ids[0], "/items/0/status": "deleted", "/items/0/email": address("listed-4"), "/items/0/department": "Ops", "/nextCursor": nil},
			contains: []string{`"deletedAt":"20`}, headers: map[string]string{"Withheld-Fields": ""}},
		{name: "of a department, as far as one reads", as: sales, send: "GET /users?status=deleted", status: 200, has: map[string]any{"/items/0/id": ids[1], "/items/0/name": "User listed-3", "/items/1/id": ids[4], "/items/2": nil}, lacks: []string{"canary", "status", `"Sales"`}},
		{name: "not without the permission", as: reads, send: "GET /users?status=deleted", status: 403, code: "permission-denied"},
		{name: "nothing else goes with it", as: w.owner, send: "GET /users?status=deleted&q=listed&email=a&externalId=b&department=c&role=" + never + "&sort=name&count=true", status: 400, code: "malformed-request",
			faults: []string{"parameter:q combination", "parameter:email combination", "parameter:externalId combination", "parameter:department combination", "parameter:role combination", "parameter:sort combination", "parameter:count combination"}},
		{name: "no holder of a role is deleted", as: w.owner, send: "GET /roles/" + w.builtIn(t, "owner") + "/users?status=deleted", status: 422, faults: []string{"parameter:status unknown-value"}},
		{name: "another status is only another status", as: w.owner, send: "GET /users?status=Deleted", status: 422, faults: []string{"parameter:status unknown-value"}},
	})
	page := w.owner.do(t, "GET /users?status=deleted&limit=1", "").expect(t, 200)
	sales.do(t, "GET /users?status=deleted&limit=1&cursor="+page.text("/nextCursor"), "").refused(t, 400, "malformed-request")
	w.owner.do(t, "GET /users?limit=1&cursor="+page.text("/nextCursor"), "").refused(t, 400, "malformed-request")
	w.owner.do(t, "POST /users/"+ids[0]+"/restore", "").expect(t, 200)
	if got := w.owner.readAll(t, "/users?status=deleted&limit=1"); !slices.Equal(got, ids[1:]) {
		t.Errorf("deleted are %v, not %v", got, ids[1:])
	}
}

// testRestoreInParallel sends fifty requests at once that restore a deleted user, or create a
// user with the same address. Only one of them may succeed.
func testRestoreInParallel(t *testing.T, w *world) {
	id := w.user(t, "wanted", "")
	w.owner.do(t, "DELETE /users/"+id, "").expect(t, 204)
	var mu sync.Mutex
	answers := map[string]int{}
	var running sync.WaitGroup
	for i := range 50 {
		running.Go(func() {
			line, body := "POST /users/"+id+"/restore", ""
			if i%5 == 0 {
				line, body = "POST /users", `{"email":`+quoted(address("wanted"))+`,"name":"Wanted"}`
			}
			a, err := w.owner.try(t, line, body)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if a.status == http.StatusOK || a.status == http.StatusCreated {
				answers["done"]++
			} else {
				answers[a.text("/code")]++
			}
		})
	}
	running.Wait()
	if answers["done"] != 1 || answers["done"]+answers["not-found"]+answers["email-taken"] != 50 {
		t.Errorf("they were answered %v", answers)
	}
	if got := w.owner.readAll(t, "/users?email="+address("wanted")); len(got) != 1 {
		t.Errorf("the address is that of %v", got)
	}
}

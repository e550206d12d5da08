package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

func testReach(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("departments", func(t *testing.T) { testDepartments(t, w) })
	t.Run("ceiling", func(t *testing.T) { testCeiling(t, w) })
	t.Run("expiry", func(t *testing.T) { testExpiry(t, w) })
	t.Run("at once", func(t *testing.T) { testChangesAtOnce(t, w) })
}

func testDepartments(t *testing.T, w *world) {
	c := w.holder(t, "manager", "Board", "Ｓａｌｅｓ", "users:read", "users:create", "users:update", "users:delete", "users:suspend", "roles:read", "roles:assign", "roles:create", "events:read")
	inside, outside, none := w.user(t, "inside", "SALES"), w.user(t, "outside", "Sales East"), w.user(t, "none", "")
	viewer := w.builtIn(t, "viewer")
	body := func(name, department string) string {
		return `{"email":"` + name + `@canary.example","name":"Made","department":` + department + `}`
	}
	play(t, []scenario{
		{name: "one of the department", as: c, send: "GET /users/" + inside, status: 200, members: everyMember},
		{name: "one of another", as: c, send: "GET /users/" + outside, status: 404, code: "not-found"},
		{name: "one of none", as: c, send: "GET /users/" + none, status: 404, code: "not-found"},
		{name: "oneself", as: c, send: "GET /users/" + c.id, status: 200, members: everyMember},
		{name: "change one of the department", as: c, send: "PATCH /users/" + inside, body: `{"name":"Changed"}`, status: 200},
		{name: "the department by another spelling", as: c, send: "PATCH /users/" + inside, body: `{"department":"sales"}`, status: 200, has: map[string]any{"/department": "sales"}},
		{name: "move out", as: c, send: "PATCH /users/" + inside, body: `{"department":"Sales East"}`, status: 403, code: "outside-reach"},
		{name: "move to none", as: c, send: "PATCH /users/" + inside, body: `{"department":null}`, status: 403, code: "outside-reach"},
		{name: "change one of another", as: c, send: "PATCH /users/" + outside, body: `{"department":"Sales"}`, status: 404},
		{name: "delete one of another", as: c, send: "DELETE /users/" + outside, status: 404},
		{name: "suspend one of none", as: c, send: "POST /users/" + none + "/suspend", status: 404},
		{name: "overview of another", as: c, send: "GET /users/" + outside + "/overview", status: 404},
		{name: "roles of another", as: c, send: "GET /users/" + outside + "/roles", status: 404},
		{name: "assign to another", as: c, send: "PUT /users/" + outside + "/roles/" + viewer, status: 404},
		{name: "unassign from another", as: c, send: "DELETE /users/" + outside + "/roles/" + viewer, status: 404},
		{name: "create within", as: c, send: "POST /users", body: body("made-1", `"Sales"`), status: 201, members: everyMember},
		{name: "create without", as: c, send: "POST /users", body: body("made-2", `"Ops"`), status: 403, code: "outside-reach"},
		{name: "create of none", as: c, send: "POST /users", body: body("made-3", "null"), status: 403, code: "outside-reach"},
		{name: "roles are made for all", as: c, send: "POST /roles", body: `{"name":"Made within"}`, status: 403, code: "permission-denied"},
		{name: "move oneself", as: c, send: "PATCH /users/" + c.id, body: `{"department":"Sales"}`, status: 403, code: "permission-denied"},
		{name: "delete oneself", as: c, send: "DELETE /users/" + c.id, status: 403, code: "permission-denied"},
		{name: "suspend within", as: c, send: "POST /users/" + inside + "/suspend", status: 200},
	})
	if got := c.readAll(t, "/users"); slices.Contains(got, outside) || slices.Contains(got, none) || slices.Contains(got, c.id) || !slices.Contains(got, inside) {
		t.Errorf("the list of a manager is %q", got)
	}
	for _, query := range []string{"department=Sales+East", "email=outside@canary.example", "q=outside", "role=" + w.builtIn(t, "owner"), "status=active"} {
		a := c.do(t, "GET /users?count=true&"+query, "").expect(t, 200)
		if len(a.list("/items")) != 0 || a.value("/total") != 0.0 {
			t.Errorf("%s tells of others: %s", query, a.body)
		}
	}
	mover := w.holder(t, "mover", "", "Sales", "users:read", "users:update")
	w.assign(t, mover.id, w.role(t, "Sees Ops", "users:read"), within("Ops"))
	mover.do(t, "PATCH /users/"+inside, `{"department":"Ops"}`).refused(t, 403, "outside-reach")
}

func testCeiling(t *testing.T, w *world) {
	manager := w.holder(t, "assigner", "Board", "Sales", "users:read", "roles:read", "roles:assign")
	clerk := w.user(t, "clerk", "Sales")
	reader, viewer, owner := w.role(t, "Reader only", "users:read"), w.builtIn(t, "viewer"), w.builtIn(t, "owner")
	admin := w.member(t, "admin", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	all, shop := w.role(t, "Everything own", "*:*"), w.role(t, "Shop", "shop/invoices:approve")
	maker := w.holder(t, "maker", "", "", "roles:create", "roles:update", "roles:delete", "roles:read", "users:read")
	beyond := "beyond-own-permissions"
	play(t, []scenario{
		{name: "within the reach", as: manager, send: "PUT /users/" + clerk + "/roles/" + reader, body: within("Sales"), status: 201},
		{name: "further than the reach", as: manager, send: "PUT /users/" + clerk + "/roles/" + reader, status: 403, code: beyond},
		{name: "elsewhere", as: manager, send: "PUT /users/" + clerk + "/roles/" + reader, body: within("Ops"), status: 403, code: beyond},
		{name: "both here and elsewhere", as: manager, send: "PUT /users/" + clerk + "/roles/" + reader, body: `{"reach":{"departments":["Sales","Ops"]}}`, status: 403, code: beyond, contains: []string{"users:read"}},
		{name: "more than one has", as: manager, send: "PUT /users/" + clerk + "/roles/" + all, body: within("Sales"), status: 403, code: beyond},
		{name: "an application's that one does not have", as: manager, send: "PUT /users/" + clerk + "/roles/" + shop, body: within("Sales"), status: 403, code: beyond, contains: []string{"shop/invoices:approve"}},
		{name: "an administrator hands on an application's", as: admin, send: "PUT /users/" + clerk + "/roles/" + shop, status: 201},
		{name: "but not to themselves", as: admin, send: "PUT /users/" + admin.id + "/roles/" + shop, status: 403, code: beyond},
		{name: "and not the owner role", as: admin, send: "PUT /users/" + clerk + "/roles/" + owner, status: 403, code: beyond},
		{name: "not take it either", as: admin, send: "DELETE /users/" + w.owner.id + "/roles/" + owner, status: 403, code: beyond},
		{name: "not delete an owner", as: admin, send: "DELETE /users/" + w.owner.id, status: 403, code: beyond},
		{name: "not suspend an owner", as: admin, send: "POST /users/" + w.owner.id + "/suspend", status: 403, code: beyond},
		{name: "not change the owner role", as: admin, send: "PATCH /roles/" + owner, body: `{"name":"Mine"}`, status: 403, code: beyond},
		{name: "not make a stronger role", as: admin, send: "POST /roles", body: roleBody("Stronger", []string{"tenant:update"}, nil), status: 403, code: beyond, contains: []string{"tenant:update"}},
		{name: "not by a grant", as: admin, send: "POST /roles", body: roleBody("Stronger by grant", nil, []string{"*:*"}), status: 403, code: beyond},
		{name: "make an application's role", as: admin, send: "POST /roles", body: roleBody("Shop clerk", []string{"shop/*:*"}, []string{"shop/*:*"}), status: 201},
		{name: "make what one holds", as: maker, send: "POST /roles", body: roleBody("As mine", []string{"users.email:read", "roles:read"}, nil), status: 201},
		{name: "not what one does not", as: maker, send: "POST /roles", body: roleBody("Not mine", []string{"users:delete"}, nil), status: 403, code: beyond, contains: []string{"users:delete"}},
		{name: "nothing covers all of users but itself", as: maker, send: "POST /roles", body: roleBody("Wild", []string{"users:*"}, nil), status: 403, code: beyond},
		{name: "change what is beyond, to less", as: maker, send: "PATCH /roles/" + all, body: `{"permissions":[]}`, status: 403, code: beyond},
		{name: "change what is not, to more", as: maker, send: "PATCH /roles/" + reader, body: `{"permissions":["users:read","users:delete"]}`, status: 403, code: beyond},
		{name: "delete what is beyond", as: maker, send: "DELETE /roles/" + all, status: 403, code: beyond},
		{name: "change what is not", as: maker, send: "PATCH /roles/" + reader, body: `{"description":"Reads."}`, status: 200},
		{name: "only an assigner assigns", as: maker, send: "PUT /users/" + clerk + "/roles/" + viewer, status: 403, code: "permission-denied"},
		{name: "an administrator takes what was given", as: admin, send: "DELETE /users/" + clerk + "/roles/" + reader, status: 204},
	})
	w.assign(t, clerk, reader, "")
	manager.do(t, "DELETE /users/"+clerk+"/roles/"+reader, "").refused(t, 403, beyond)
	manager.do(t, "PUT /users/"+clerk+"/roles/"+reader, within("Sales")).refused(t, 403, beyond)

	brief := w.member(t, "brief", "")
	end := time.Now().Add(time.Hour).UTC()
	w.assign(t, brief.id, w.role(t, "Brief assigner", "roles:assign", "roles:read", "users:read"), `{"expiresAt":`+quoted(end.Format(time.RFC3339))+`}`)
	other := w.user(t, "brief-receiver", "")
	line := "PUT /users/" + other + "/roles/" + reader
	play(t, []scenario{
		{name: "without an end by somebody with one", as: brief, send: line, status: 403, code: beyond},
		{name: "longer than oneself", as: brief, send: line, body: `{"expiresAt":` + quoted(end.Add(time.Minute).Format(time.RFC3339)) + `}`, status: 403, code: beyond},
		{name: "shorter than oneself", as: brief, send: line, body: `{"expiresAt":` + quoted(end.Add(-time.Minute).Format(time.RFC3339)) + `}`, status: 201},
	})
}

func testExpiry(t *testing.T, w *world) {
	c, role := w.member(t, "expiring", ""), w.role(t, "Short-lived", "users:read")
	end := endSoon(t, func(end string) *answer {
		a := w.owner.do(t, "PUT /users/"+c.id+"/roles/"+role, `{"expiresAt":`+quoted(end)+`}`)
		if got := a.text("/expiresAt"); a.status == 201 && got != end {
			t.Errorf("the end is %s", got)
		}
		return a
	})
	if !patience.Poll(func() bool {
		sent := time.Now()
		a := c.do(t, "GET /users/"+w.owner.id, "")
		answered := time.Now()
		if answered.Before(end) && a.status != 200 {
			t.Fatalf("the role ended before its time: %d", a.status)
		}
		if sent.After(end) {
			a.refused(t, 403, "permission-denied")
			return true
		}
		return false
	}) {
		t.Error("the time of the test stands still")
	}
	play(t, []scenario{
		{name: "it is not listed", as: w.owner, send: "GET /users/" + c.id + "/roles", status: 200, contains: []string{`"items":[]`}},
		{name: "it is not told", as: c, send: "GET /auths/session", status: 200, contains: []string{`"permissions":[]`, `"roles":[]`}},
		{name: "nobody is found by it", as: w.owner, send: "GET /users?role=" + role, status: 200, contains: []string{`"items":[]`}},
		{name: "nobody holds it", as: w.owner, send: "GET /roles/" + role + "/users", status: 200, contains: []string{`"items":[]`}},
		{name: "it is not in use", as: w.owner, send: "DELETE /roles/" + role, status: 204},
	})
}

// testChangesAtOnce checks that each change of a user's rights has an effect on the user's
// next request.
func testChangesAtOnce(t *testing.T, w *world) {
	role := w.role(t, "Changing rights", "users:read")
	c := w.member(t, "changing", "")
	look := func() int { return c.do(t, "GET /users/"+w.owner.id, "").status }
	expect := func(what string, status int) {
		t.Helper()
		if got := look(); got != status {
			t.Errorf("after %s: %d, not %d", what, got, status)
		}
	}
	for range 3 {
		expect("nothing", 403)
		w.assign(t, c.id, role, "")
		expect("the assignment", 200)
		w.owner.do(t, "PATCH /roles/"+role, `{"permissions":[]}`).expect(t, 200)
		expect("the change of the role", 403)
		w.owner.do(t, "PATCH /roles/"+role, `{"permissions":["users:read"]}`).expect(t, 200)
		expect("the change back", 200)
		w.assign(t, c.id, role, within("Nowhere"))
		expect("the reach", 404)
		w.owner.do(t, "DELETE /users/"+c.id+"/roles/"+role, "").expect(t, 204)
	}
	w.assign(t, c.id, role, "")
	expect("the assignment", 200)
	w.owner.do(t, "DELETE /roles/"+role+"?force=true", "").expect(t, 204)
	expect("the deletion of the role", 403)
	w.owner.do(t, "POST /users/"+c.id+"/suspend", "").expect(t, 200)
	expect("the suspension", 401)
}

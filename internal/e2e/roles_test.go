package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// everyRoleMember is the list of members of a role for callers who may read roles.
const everyRoleMember = "id key name description permissions grants system createdAt updatedAt"

func testRoles(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("create", func(t *testing.T) { testCreateRole(t, w) })
	t.Run("change", func(t *testing.T) { testChangeRole(t, w) })
	t.Run("built-in", func(t *testing.T) { testBuiltInRoles(t, w) })
	t.Run("assign", func(t *testing.T) { testAssign(t, w) })
	t.Run("holders", func(t *testing.T) { testHolders(t, w) })
	t.Run("at a time", func(t *testing.T) { testRolesAtATime(t, newWorld(t, p)) })
	t.Run("access", func(t *testing.T) { testAccess(t, newWorld(t, p)) })
}

func testCreateRole(t *testing.T, w *world) {
	o := w.owner
	many := func(n int) string {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprintf("shop/r%d:read", i)
		}
		return roleBody(fmt.Sprintf("Role with %d", n), texts, nil)
	}
	play(t, []scenario{
		{name: "a name is enough", as: o, send: "POST /roles", body: `{"name":"Clerk"}`, status: 201, members: everyRoleMember,
			has: map[string]any{"/name": "Clerk", "/key": nil, "/description": "", "/system": false}, contains: []string{`"permissions":[]`, `"grants":[]`}},
		{name: "names are unique by folding", as: o, send: "POST /roles", body: `{"name":"CLERK"}`, status: 409, code: "role-name-taken"},
		{name: "everything may be given", as: o, send: "POST /roles",
			body:   `{"name":"Cashier","key":"cashier","description":"At the till.","permissions":["users:read","shop/invoices:approve","users:read"],"grants":["shop/*:*"]}`,
			status: 201, has: map[string]any{"/key": "cashier", "/permissions/0": "shop/invoices:approve", "/permissions/1": "users:read", "/permissions/2": nil, "/grants/0": "shop/*:*"}},
		{name: "keys are unique", as: o, send: "POST /roles", body: `{"name":"Other","key":"cashier"}`, status: 409, code: "role-key-taken"},
		{name: "all faults come at once", as: o, send: "POST /roles", body: `{"name":"ab","key":"Bad Key","description":7,"permissions":["nonsense","users:fly","users.email:read"],"grants":"all","system":true}`,
			status: 422, faults: []string{"/name length", "/key format", "/description type", "/permissions/0 format", "/permissions/1 unknown-permission", "/grants type", "/system unknown"}},
		{name: "a name of 128", as: o, send: "POST /roles", body: `{"name":` + quoted(strings.Repeat("é", 128)) + `}`, status: 201},
		{name: "a name of 129", as: o, send: "POST /roles", body: `{"name":` + quoted(strings.Repeat("ö", 129)) + `}`, status: 422, faults: []string{"/name length"}},
		{name: "a name of 2", as: o, send: "POST /roles", body: `{"name":"ab"}`, status: 422, faults: []string{"/name length"}},
		{name: "a name of 3 wide characters", as: o, send: "POST /roles", body: `{"name":"𝒜𝒜𝒜"}`, status: 201},
		{name: "a description of 1024", as: o, send: "POST /roles", body: `{"name":"Long","description":` + quoted(strings.Repeat("d", 1024)) + `}`, status: 201},
		{name: "a description of 1025", as: o, send: "POST /roles", body: `{"name":"Longer","description":` + quoted(strings.Repeat("d", 1025)) + `}`, status: 422, faults: []string{"/description length"}},
		{name: "256 permissions", as: o, send: "POST /roles", body: many(256), status: 201},
		{name: "257 permissions", as: o, send: "POST /roles", body: many(257), status: 422, faults: []string{"/permissions too-many"}},
		{name: "wildcards are known", as: o, send: "POST /roles", body: roleBody("Wild", []string{"*:*", "*/*:*", "users.*:read", "users:*", "*:read", "shop/*.price:read"}, nil), status: 201},
		{name: "own wildcards that cover nothing are not", as: o, send: "POST /roles", body: roleBody("Tame", []string{"users.status:update", "invoices:*", "*:fly", "roles.name:read"}, nil), status: 422,
			faults: []string{"/permissions/0 unknown-permission", "/permissions/1 unknown-permission", "/permissions/2 unknown-permission", "/permissions/3 unknown-permission"}},
		{name: "a key of 63", as: o, send: "POST /roles", body: `{"name":"Key 63","key":"` + strings.Repeat("k", 63) + `"}`, status: 201},
		{name: "a key of 64", as: o, send: "POST /roles", body: `{"name":"Key 64","key":"` + strings.Repeat("k", 64) + `"}`, status: 422, faults: []string{"/key format"}},
		{name: "a permission of 201", as: o, send: "POST /roles", body: roleBody("Permission 201", []string{"a" + strings.Repeat("b", 62) + "/" + strings.Repeat("c", 64) + "." + strings.Repeat("d", 64) + ":eeeeeee"}, nil), status: 422,
			faults: []string{"/permissions/0 format"}},
	})
	a := o.do(t, "POST /roles", `{"name":"Located"}`).expect(t, 201)
	if want := "/roles/" + a.text("/id"); a.header.Get("Location") != want {
		t.Errorf("the location is %q, not %q", a.header.Get("Location"), want)
	}
	read := o.do(t, "GET "+a.header.Get("Location"), "").expect(t, 200)
	if string(read.body) != string(a.body) || read.header.Get("Etag") != a.header.Get("Etag") {
		t.Errorf("what was created reads differently: %s, %s", a.body, read.body)
	}
}

func testChangeRole(t *testing.T, w *world) {
	id := w.owner.do(t, "POST /roles", `{"name":"Changing","key":"changing","permissions":["users:read","roles:read"],"description":"Old"}`).expect(t, 201).text("/id")
	line := "PATCH /roles/" + id
	play(t, []scenario{
		{name: "absent members stay", as: w.owner, send: line, body: `{"name":"Changed"}`, status: 200, has: map[string]any{"/name": "Changed", "/description": "Old", "/permissions/1": "users:read"}},
		{name: "sets are replaced whole", as: w.owner, send: line, body: `{"permissions":["shop/a:b"]}`, status: 200, has: map[string]any{"/permissions/0": "shop/a:b", "/permissions/1": nil}},
		{name: "null clears", as: w.owner, send: line, body: `{"permissions":null,"description":null}`, status: 200, contains: []string{`"permissions":[]`, `"description":""`}},
		{name: "a key never changes", as: w.owner, send: line, body: `{"key":"other"}`, status: 422, faults: []string{"/key immutable"}},
		{name: "a name cannot be null", as: w.owner, send: line, body: `{"name":null}`, status: 422, faults: []string{"/name type"}},
		{name: "a name stays unique", as: w.owner, send: line, body: `{"name":"owner"}`, status: 409, code: "role-name-taken"},
		{name: "unknown members are refused", as: w.owner, send: line, body: `{"system":true,"Name":"x"}`, status: 422, faults: []string{"/system unknown", "/Name unknown"}},
		{name: "a change to itself", as: w.owner, send: line, body: `{"name":"Changed"}`, status: 200},
		{name: "no such role", as: w.owner, send: "PATCH /roles/" + never, body: `{"name":"Ghost"}`, status: 404, code: "not-found"},
		{name: "no such id", as: w.owner, send: "GET /roles/owner", status: 400, faults: []string{"parameter:id format"}},
	})
	before := w.owner.do(t, "GET /roles/"+id, "").expect(t, 200)
	after := w.owner.do(t, line, `{}`).expect(t, 200)
	if string(after.body) != string(before.body) || after.header.Get("Etag") != before.header.Get("Etag") {
		t.Errorf("an empty patch changed something: %s, %s", before.body, after.body)
	}

	holder := w.user(t, "holder-of-changed", "")
	w.assign(t, holder, id, "")
	w.owner.do(t, "DELETE /roles/"+id, "").refused(t, 409, "role-in-use")
	w.owner.do(t, "DELETE /roles/"+id+"?force=maybe", "").refused(t, 400, "malformed-request")
	w.owner.do(t, "DELETE /roles/"+id+"?force=true", "").expect(t, 204)
	w.owner.do(t, "GET /roles/"+id, "").refused(t, 404, "not-found")
	w.owner.do(t, "DELETE /roles/"+id, "").refused(t, 404, "not-found")
	if items := w.owner.do(t, "GET /users/"+holder+"/roles", "").expect(t, 200).list("/items"); len(items) != 0 {
		t.Errorf("a role that was deleted is still held: %v", items)
	}
	w.owner.do(t, "POST /roles", `{"name":"Changed","key":"changing"}`).expect(t, 201)
}

func testBuiltInRoles(t *testing.T, w *world) {
	owner := w.builtIn(t, "owner")
	play(t, []scenario{
		{name: "an owner may do everything", as: w.owner, send: "GET /roles/" + owner, status: 200, has: map[string]any{"/name": "Owner", "/system": true, "/permissions/0": "*/*:*", "/permissions/1": "*:*"}},
		{name: "the owner role does not change", as: w.owner, send: "PATCH /roles/" + owner, body: `{"name":"Boss"}`, status: 409, code: "system-role"},
		{name: "the owner role is not deleted", as: w.owner, send: "DELETE /roles/" + owner + "?force=true", status: 409, code: "system-role"},
		{name: "an administrator hands on applications", as: w.owner, send: "GET /roles/" + w.builtIn(t, "administrator"), status: 200, has: map[string]any{"/system": false, "/grants/0": "*/*:*"}, lacks: []string{"tenant:update"}},
		{name: "a viewer sees", as: w.owner, send: "GET /roles/" + w.builtIn(t, "viewer"), status: 200, has: map[string]any{"/permissions/0": "roles:read", "/permissions/1": "users:read", "/permissions/2": nil}},
		{name: "the last owner stays", as: w.owner, send: "DELETE /users/" + w.owner.id + "/roles/" + owner, status: 409, code: "last-owner"},
		{name: "the last owner gets no end", as: w.owner, send: "PUT /users/" + w.owner.id + "/roles/" + owner, body: `{"expiresAt":"2099-01-01T00:00:00Z"}`, status: 409, code: "last-owner"},
		{name: "the last owner gets no reach", as: w.owner, send: "PUT /users/" + w.owner.id + "/roles/" + owner, body: within("Sales"), status: 409, code: "last-owner"},
	})
	pending := w.user(t, "pending-owner", "")
	w.assign(t, pending, owner, "")
	w.owner.do(t, "DELETE /users/"+w.owner.id+"/roles/"+owner, "").refused(t, 409, "last-owner")
	second := w.member(t, "second-owner", "")
	w.assign(t, second.id, owner, "")
	w.owner.do(t, "PUT /users/"+w.owner.id+"/roles/"+owner, within("Sales")).expect(t, 200)
	second.do(t, "DELETE /users/"+second.id+"/roles/"+owner, "").refused(t, 409, "last-owner")
	second.do(t, "PUT /users/"+w.owner.id+"/roles/"+owner, "").expect(t, 200)
	w.owner.do(t, "DELETE /users/"+second.id+"/roles/"+owner, "").expect(t, 204)
}

func testAssign(t *testing.T, w *world) {
	user, role := w.user(t, "assigned", "Sales"), w.role(t, "Assigned", "users:read")
	line := "PUT /users/" + user + "/roles/" + role
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	stored := soon.Format("2006-01-02T15:04:05.000000Z")
	play(t, []scenario{
		{name: "no body: everywhere and without end", as: w.owner, send: line, status: 201, members: everyAssignmentMember,
			has: map[string]any{"/role/id": role, "/role/name": "Assigned", "/reach": nil, "/expiresAt": nil, "/grantedBy": w.owner.id}},
		{name: "again replaces", as: w.owner, send: line, body: `{"reach":{"departments":["Sales","SALES","Ops"]},"expiresAt":` + quoted(soon.In(time.FixedZone("", 3600)).Format(time.RFC3339)) + `}`, status: 200,
			has: map[string]any{"/reach/departments/0": "Ops", "/reach/departments/1": "Sales", "/reach/departments/2": nil, "/expiresAt": stored}},
		{name: "what is left out is gone", as: w.owner, send: line, body: `{}`, status: 200, has: map[string]any{"/reach": nil, "/expiresAt": nil}},
		{name: "null is not the whole tenant", as: w.owner, send: line, body: `{"reach":null,"expiresAt":null}`, status: 422, faults: []string{"/expiresAt type", "/reach type"}},
		{name: "a reach of null is not the whole tenant", as: w.owner, send: line, body: `{"reach":{"departments":null}}`, status: 422, faults: []string{"/reach/departments type"}},
		{name: "a past end is refused", as: w.owner, send: line, body: `{"expiresAt":"2020-01-01T00:00:00Z"}`, status: 422, faults: []string{"/expiresAt past"}},
		{name: "an end is a moment", as: w.owner, send: line, body: `{"expiresAt":"tomorrow"}`, status: 422, faults: []string{"/expiresAt format"}},
		{name: "a reach names somebody", as: w.owner, send: line, body: `{"reach":{"departments":[]}}`, status: 422, faults: []string{"/reach/departments too-few"}},
		{name: "a reach has departments", as: w.owner, send: line, body: `{"reach":{}}`, status: 422, faults: []string{"/reach/departments required"}},
		{name: "departments are texts", as: w.owner, send: line, body: `{"reach":{"departments":["",7],"users":[]},"role":"x"}`, status: 422,
			faults: []string{"/reach/departments/0 length", "/reach/departments/1 type", "/reach/users unknown", "/role unknown"}},
		{name: "no such user", as: w.owner, send: "PUT /users/" + never + "/roles/" + role, status: 404, code: "not-found"},
		{name: "no such role", as: w.owner, send: "PUT /users/" + user + "/roles/" + never, status: 404, code: "not-found"},
		{name: "no such ids", as: w.owner, send: "PUT /users/x/roles/y", status: 400, faults: []string{"parameter:id format", "parameter:roleId format"}},
		{name: "it is listed", as: w.owner, send: "GET /users/" + user + "/roles", status: 200, has: map[string]any{"/items/0/role/id": role, "/items/0/grantedBy": w.owner.id, "/items/1": nil}},
		{name: "it can be taken", as: w.owner, send: "DELETE /users/" + user + "/roles/" + role, status: 204},
		{name: "but not twice", as: w.owner, send: "DELETE /users/" + user + "/roles/" + role, status: 404, code: "not-found"},
		{name: "nothing is left", as: w.owner, send: "GET /users/" + user + "/roles", status: 200, contains: []string{`"items":[]`}},
	})
}

func testHolders(t *testing.T, w *world) {
	role := w.role(t, "Held", "users:read")
	wanted := []string{}
	for i := range 5 {
		id := w.user(t, fmt.Sprintf("held-%d", i), "Sales")
		w.assign(t, id, role, "")
		wanted = append(wanted, id)
	}
	w.user(t, "not-held", "Sales")
	a := w.owner.do(t, "GET /roles/"+role+"/users?limit=3&count=true", "").expect(t, 200)
	if got := a.value("/total"); got != 5.0 {
		t.Errorf("the total is %v", got)
	}
	got := a.texts("id")
	for a.text("/nextCursor") != "" {
		a = w.owner.do(t, "GET /roles/"+role+"/users?limit=3&cursor="+a.text("/nextCursor"), "").expect(t, 200)
		got = append(got, a.texts("id")...)
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("the holders are %q, not %q", got, wanted)
	}
	play(t, []scenario{
		{name: "nobody holds it", as: w.owner, send: "GET /roles/" + w.role(t, "Unheld") + "/users", status: 200, contains: []string{`"items":[]`}, has: map[string]any{"/nextCursor": nil}},
		{name: "no such role", as: w.owner, send: "GET /roles/" + never + "/users", status: 404, code: "not-found"},
		{name: "filters work too", as: w.owner, send: "GET /roles/" + role + "/users?q=held-3&sort=-name", status: 200, has: map[string]any{"/items/0/id": wanted[3], "/items/1": nil}},
	})
}

func testAccess(t *testing.T, w *world) {
	erases, sells := w.role(t, "Erases", "users:erase"), w.role(t, "Sells", "shop/invoices:*")
	inside, outside := w.user(t, "inside", "Ops"), w.user(t, "outside", "Ops")
	account := w.account(t, "Nightly")
	w.assign(t, inside, erases, `{"reach":{"departments":["Sales"]},"expiresAt":"2999-01-01T00:00:00Z"}`)
	w.assign(t, outside, erases, within("Legal"))
	w.owner.do(t, "PUT /service-accounts/"+account+"/roles/"+sells, "").expect(t, 201)
	const erase = "/access?permission=users:erase"
	play(t, []scenario{
		{name: "everyone, by wildcards too", as: w.owner, send: "GET " + erase, status: 200, members: "items nextCursor", has: map[string]any{
			"/items/0/user/id": w.owner.id, "/items/0/grants/0/role/key": "owner", "/items/0/grants/0/permissions/0": "*:*", "/items/0/grants/0/reach": nil, "/items/0/grants/0/expiresAt": nil,
			"/items/1/user/id": inside, "/items/1/serviceAccount": nil, "/items/1/grants/0/role/id": erases, "/items/1/grants/0/reach/departments/0": "Sales", "/items/1/grants/0/expiresAt": "2999-01-01T00:00:00.000000Z",
			"/items/2/user/id": outside, "/nextCursor": nil}},
		{name: "in a department, by folding", as: w.owner, send: "GET " + erase + "&department=sALES", status: 200, has: map[string]any{"/items/0/user/id": w.owner.id, "/items/1/user/id": inside, "/items/2": nil}},
		{name: "service accounts", as: w.owner, send: "GET /access?permission=shop/invoices:approve", status: 200, has: map[string]any{
			"/items/1/user": nil, "/items/1/serviceAccount/id": account, "/items/1/grants/0/permissions/0": "shop/invoices:*"}},
		{name: "no permission", as: w.owner, send: "GET /access", status: 400, faults: []string{"parameter:permission required"}},
		{name: "a wildcard", as: w.owner, send: "GET /access?permission=users:*", status: 400, faults: []string{"parameter:permission wildcard"}},
		{name: "no such permission", as: w.owner, send: "GET /access?permission=users:fly", status: 400, faults: []string{"parameter:permission unknown-permission"}},
		{name: "roles with the permission", as: w.owner, send: "GET /roles?permission=users:erase&sort=name", status: 200, has: map[string]any{"/items/0/name": "Administrator", "/items/1/name": "Erases", "/items/2/name": "Owner", "/items/3": nil}},
		{name: "roles with a wildcard", as: w.owner, send: "GET /roles?permission=*:*", status: 400, faults: []string{"parameter:permission wildcard"}},
	})
	var ids []string
	for next, more := "", true; more; more = next != "" {
		a := w.owner.do(t, "GET "+erase+"&limit=1"+next, "").expect(t, 200)
		if len(a.list("/items")) > 0 {
			ids = append(ids, a.text("/items/0/user/id"))
		}
		if next = a.text("/nextCursor"); next != "" {
			next = "&cursor=" + url.QueryEscape(next)
		}
	}
	if want := []string{w.owner.id, inside, outside}; !slices.Equal(ids, want) {
		t.Errorf("page by page: %v, want %v", ids, want)
	}
	w.owner.do(t, "DELETE /users/"+inside, "").expect(t, 204)
	w.owner.do(t, "POST /users/"+outside+"/suspend", "").expect(t, 200)
	a := w.owner.do(t, "GET "+erase, "").expect(t, 200)
	if len(a.list("/items")) != 2 || a.text("/items/1/user/status") != "suspended" {
		t.Errorf("after a deletion and a suspension: %s", a.body)
	}
}

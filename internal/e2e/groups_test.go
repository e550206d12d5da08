package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

func testGroups(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("create", func(t *testing.T) { testCreateGroup(t, w) })
	t.Run("change", func(t *testing.T) { testChangeGroup(t, w) })
	t.Run("members", func(t *testing.T) { testGroupMembers(t, newWorld(t, p)) })
	t.Run("roles", func(t *testing.T) { testGroupRoles(t, w) })
	t.Run("ways to a role", func(t *testing.T) { testWaysToRole(t, newWorld(t, p)) })
	t.Run("filters", func(t *testing.T) { testGroupFilters(t, newWorld(t, p)) })
	t.Run("at once", func(t *testing.T) { testGroupChangesAtOnce(t, w) })
	t.Run("at a time", func(t *testing.T) { testGroupsAtATime(t, newWorld(t, p)) })
	t.Run("restore", func(t *testing.T) { testRestoreGroups(t, newWorld(t, p)) })
	t.Run("ceiling", func(t *testing.T) { testGroupCeiling(t, newWorld(t, p)) })
	t.Run("oneself", func(t *testing.T) { testOwnGroups(t, newWorld(t, p)) })
	t.Run("take-over", func(t *testing.T) { testTakeOverThroughGroup(t, newWorld(t, p)) })
	t.Run("events", func(t *testing.T) { testGroupEvents(t, newWorld(t, p)) })
	t.Run("large", func(t *testing.T) { testLargeGroup(t, newWorld(t, p)) })
	t.Run("parallel", func(t *testing.T) { testGroupsInParallel(t, newWorld(t, p)) })
	t.Run("deleted roles", func(t *testing.T) { testDeletedRolesOfGroups(t, newWorld(t, p)) })
}

func testCreateGroup(t *testing.T, w *world) {
	o, key := w.owner, "idempotency-key: group"
	made := o.do(t, "POST /groups", `{"name":"Support","description":"Answers questions.","externalId":"G-1"}`, key).expect(t, 201)
	again := o.do(t, "POST /groups", `{"externalId":"G-1", "name":"Support", "description":"Answers questions."}`, key)
	if created(again) != created(made) || again.header.Get("Idempotent-Replayed") != "true" || made.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the repeated request answered %s, not %s", created(again), created(made))
	}
	o.do(t, "POST /groups", `{"name":"Support"}`, key).refused(t, 422, "idempotency-key-reused")
	if want := "/groups/" + made.text("/id"); made.header.Get("Location") != want {
		t.Errorf("the location is %q, not %q", made.header.Get("Location"), want)
	}
	if read := o.do(t, "GET "+made.header.Get("Location"), "").expect(t, 200); string(read.body) != string(made.body) || read.header.Get("Etag") != made.header.Get("Etag") {
		t.Errorf("what was created reads differently: %s, %s", made.body, read.body)
	}
	maker := w.holder(t, "group-maker", "", "", "groups:create")
	play(t, []scenario{
		{name: "a name is enough", as: o, send: "POST /groups", body: `{"name":"Night shift"}`, status: 201, members: everyGroupMember, has: map[string]any{"/name": "Night shift", "/description": "", "/externalId": nil}},
		{name: "names are unique by folding", as: o, send: "POST /groups", body: `{"name":"SUPPORT"}`, status: 409, code: "group-name-taken"},
		{name: "external IDs are unique", as: o, send: "POST /groups", body: `{"name":"Other","externalId":"G-1"}`, status: 409, code: "group-external-id-taken"},
		{name: "external IDs are not folded", as: o, send: "POST /groups", body: `{"name":"Other","externalId":"g-1"}`, status: 201},
		{name: "another tenant has its own names", as: newWorld(t, w.program).owner, send: "POST /groups", body: `{"name":"Support","externalId":"G-1"}`, status: 201},
		{name: "all faults come at once", as: o, send: "POST /groups", body: `{"name":"ab","description":7,"externalId":"","members":[]}`, status: 422,
			faults: []string{"/name length", "/description type", "/externalId length", "/members unknown"}},
		{name: "no name", as: o, send: "POST /groups", body: `{}`, status: 422, faults: []string{"/name required"}},
		{name: "a name of 255", as: o, send: "POST /groups", body: `{"name":` + quoted(strings.Repeat("é", 255)) + `}`, status: 201},
		{name: "a name of 256", as: o, send: "POST /groups", body: `{"name":` + quoted(strings.Repeat("ö", 256)) + `}`, status: 422, faults: []string{"/name length"}},
		{name: "a description of 1024", as: o, send: "POST /groups", body: `{"name":"Long","description":` + quoted(strings.Repeat("d", 1024)) + `}`, status: 201},
		{name: "a description of 1025", as: o, send: "POST /groups", body: `{"name":"Longer","description":` + quoted(strings.Repeat("d", 1025)) + `}`, status: 422, faults: []string{"/description length"}},
		{name: "no key", as: o, send: "POST /groups", body: `{"name":"Keyless"}`, header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required"}},
		{name: "who may only create sees the ID", as: maker, send: "POST /groups", body: `{"name":"Blind"}`, status: 201, members: "id", headers: map[string]string{"Withheld-Fields": "name, description, externalId, source, createdAt, updatedAt"}},
		{name: "found by a word", as: o, send: "GET /groups?q=nig+shi", status: 200, has: map[string]any{"/items/0/name": "Night shift", "/items/1": nil, "/nextCursor": nil}},
		{name: "found by the external ID", as: o, send: "GET /groups?externalId=G-1&count=true", status: 200, has: map[string]any{"/items/0/name": "Support", "/items/1": nil, "/total": 1.0}},
		{name: "an unknown order", as: o, send: "GET /groups?sort=externalId", status: 400, faults: []string{"parameter:sort format"}},
	})
	byName, reverse := o.readAll(t, "/groups?sort=name&limit=2"), o.readAll(t, "/groups?sort=-name&limit=3")
	slices.Reverse(reverse)
	if len(byName) != 6 || !slices.Equal(sorted(byName), o.readAll(t, "/groups")) || !slices.Equal(reverse, byName) {
		t.Errorf("%d groups by name, and %d in reverse", len(byName), len(reverse))
	}
}

func testChangeGroup(t *testing.T, w *world) {
	o := w.owner
	made := o.do(t, "POST /groups", `{"name":"Changing","description":"Old","externalId":"C-1"}`).expect(t, 201)
	w.owner.do(t, "POST /groups", `{"name":"In the way","externalId":"C-2"}`).expect(t, 201)
	id, tag := made.text("/id"), made.header.Get("Etag")
	line, foreign := "PATCH /groups/"+id, newWorld(t, w.program).group(t, "Foreign")
	play(t, []scenario{
		{name: "absent members stay", as: o, send: line, body: `{"name":"Changed"}`, header: []string{"if-match: " + tag}, status: 200, has: map[string]any{"/name": "Changed", "/description": "Old", "/externalId": "C-1"}},
		{name: "the old tag is stale", as: o, send: line, body: `{"name":"Changed again"}`, header: []string{"if-match: " + tag}, status: 412, code: "precondition-failed"},
		{name: "the old tag is stale for a deletion", as: o, send: "DELETE /groups/" + id, header: []string{"if-match: " + tag}, status: 412, code: "precondition-failed"},
		{name: "null clears", as: o, send: line, body: `{"description":null,"externalId":null}`, status: 200, has: map[string]any{"/description": "", "/externalId": nil}},
		{name: "a name cannot be null", as: o, send: line, body: `{"name":null}`, status: 422, faults: []string{"/name type"}},
		{name: "a name stays unique", as: o, send: line, body: `{"name":"in the WAY"}`, status: 409, code: "group-name-taken"},
		{name: "an external ID stays unique", as: o, send: line, body: `{"externalId":"C-2"}`, status: 409, code: "group-external-id-taken"},
		{name: "unknown members are refused", as: o, send: line, body: `{"id":"x","Name":"x"}`, status: 422, faults: []string{"/id unknown", "/Name unknown"}},
		{name: "no such group", as: o, send: "PATCH /groups/" + never, body: `{"name":"Ghost"}`, status: 404, code: "not-found"},
		{name: "another tenant's group", as: o, send: "PATCH /groups/" + foreign, body: `{"name":"Ghost"}`, status: 404, code: "not-found"},
		{name: "a user is no group", as: o, send: "GET /groups/" + o.id, status: 404, code: "not-found"},
		{name: "no such id", as: o, send: "GET /groups/support", status: 400, faults: []string{"parameter:id format"}},
		{name: "another tenant's group is not deleted", as: o, send: "DELETE /groups/" + foreign + "?force=true", status: 404, code: "not-found"},
		{name: "force is true or false", as: o, send: "DELETE /groups/" + id + "?force=maybe", status: 400, faults: []string{"parameter:force format"}},
	})
	before := o.do(t, "GET /groups/"+id, "").expect(t, 200)
	if after := o.do(t, line, `{"name":"Changed"}`).expect(t, 200); string(after.body) != string(before.body) || after.header.Get("Etag") != before.header.Get("Etag") {
		t.Errorf("a patch without changes changed something: %s, %s", before.body, after.body)
	}
	o.do(t, "DELETE /groups/"+id, "", "if-match: "+before.header.Get("Etag")).expect(t, 204)
	for _, line := range []string{"GET /groups/" + id, "DELETE /groups/" + id, "GET /groups/" + id + "/users", "GET /groups/" + id + "/roles", "PUT /groups/" + id + "/users/" + o.id} {
		o.do(t, line, "").refused(t, 404, "not-found")
	}
	o.do(t, "POST /groups", `{"name":"Changed","externalId":"C-1"}`).expect(t, 201)
}

func testGroupMembers(t *testing.T, w *world) {
	group, other, foreign := w.group(t, "Support"), w.group(t, "Sales"), newWorld(t, w.program)
	wanted := []string{}
	for i := range 5 {
		id := w.user(t, fmt.Sprintf("member-%d", i), []string{"Sales", "Ops"}[i%2])
		w.join(t, group, id)
		wanted = append(wanted, id)
	}
	outside, deleted := w.user(t, "outside", "Sales"), w.user(t, "deleted", "")
	w.join(t, other, wanted[0])
	w.join(t, group, deleted)
	w.owner.do(t, "DELETE /users/"+deleted, "").expect(t, 204)
	w.owner.do(t, "POST /users/"+wanted[1]+"/suspend", "").expect(t, 200)
	member, reader := w.member(t, "reads-own", ""), w.holder(t, "reader", "", "Sales", "users:read")
	w.assign(t, reader.id, w.role(t, "Reads groups", "groups:read"), "")
	w.join(t, other, member.id)
	users, of := "/groups/"+group+"/users", "/groups/"+group+"/users/"
	account := w.account(t, "Robot")
	play(t, []scenario{
		{name: "again changes nothing", as: w.owner, send: "PUT " + of + wanted[0], status: 204},
		{name: "no such user", as: w.owner, send: "PUT " + of + never, status: 404, code: "not-found"},
		{name: "another tenant's user", as: w.owner, send: "PUT " + of + foreign.owner.id, status: 404, code: "not-found"},
		{name: "a deleted user", as: w.owner, send: "PUT " + of + deleted, status: 404, code: "not-found"},
		{name: "a service account", as: w.owner, send: "PUT " + of + account, status: 404, code: "not-found"},
		{name: "groups do not nest", as: w.owner, send: "PUT " + of + other, status: 404, code: "not-found"},
		{name: "another tenant's group", as: foreign.owner, send: "PUT " + of + foreign.owner.id, status: 404, code: "not-found"},
		{name: "another tenant's group is not read", as: foreign.owner, send: "GET " + users, status: 404, code: "not-found"},
		{name: "who is no member cannot be removed", as: w.owner, send: "DELETE " + of + outside, status: 404, code: "not-found"},
		{name: "no ids", as: w.owner, send: "PUT /groups/x/users/y", status: 400, faults: []string{"parameter:id format", "parameter:userId format"}},
		{name: "filters work too", as: w.owner, send: "GET " + users + "?q=member-3&sort=-name&count=true", status: 200, has: map[string]any{"/items/0/id": wanted[3], "/items/1": nil, "/total": 1.0}},
		{name: "a suspended member", as: w.owner, send: "GET " + users + "?status=suspended", status: 200, has: map[string]any{"/items/0/id": wanted[1], "/items/1": nil}},
		{name: "no deleted members", as: w.owner, send: "GET " + users + "?status=deleted", status: 422, faults: []string{"parameter:status unknown-value"}},
		{name: "memberships", as: w.owner, send: "GET /users/" + wanted[0] + "/groups", status: 200, has: map[string]any{
			"/items/0/group/id": group, "/items/0/group/name": "Support", "/items/0/addedBy": w.owner.id, "/items/1/group/id": other, "/items/2": nil, "/nextCursor": nil}},
		{name: "one's own", as: member, send: "GET /users/" + member.id + "/groups", status: 200, has: map[string]any{"/items/0/group/name": "Sales", "/items/1": nil}},
		{name: "not others'", as: member, send: "GET /users/" + wanted[0] + "/groups", status: 403, code: "permission-denied"},
		{name: "not the group", as: member, send: "GET /groups/" + other, status: 403, code: "permission-denied"},
		{name: "only users that one sees", as: reader, send: "GET /users/" + wanted[1] + "/groups", status: 404, code: "not-found"},
	})
	if got := w.owner.readAll(t, users+"?limit=2"); !slices.Equal(got, wanted) {
		t.Errorf("the members are %q, not %q", got, wanted)
	}
	if got := reader.readAll(t, users+"?limit=1"); !slices.Equal(got, []string{wanted[0], wanted[2], wanted[4]}) {
		t.Errorf("a reader of Sales gets %q", got)
	}
	first := w.owner.do(t, "GET /users/"+wanted[0]+"/groups?limit=1", "").expect(t, 200)
	second := w.owner.do(t, "GET /users/"+wanted[0]+"/groups?limit=1&cursor="+url.QueryEscape(first.text("/nextCursor")), "").expect(t, 200)
	if first.text("/items/0/group/id") != group || second.text("/items/0/group/id") != other || second.value("/nextCursor") != nil {
		t.Errorf("page by page: %s, %s", first.body, second.body)
	}
}

func testGroupRoles(t *testing.T, w *world) {
	group, role := w.group(t, "With roles"), w.role(t, "Of a group", "users:read")
	line, foreign := "PUT /groups/"+group+"/roles/"+role, newWorld(t, w.program)
	departments := func(n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = quoted(fmt.Sprintf("Department %d", i))
		}
		return `{"reach":{"departments":[` + strings.Join(names, ",") + `]}}`
	}
	admin := w.member(t, "group-admin", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	owner := w.builtIn(t, "owner")
	play(t, []scenario{
		{name: "no body: everywhere and without end", as: w.owner, send: line, status: 201, members: everyAssignmentMember,
			has: map[string]any{"/role/id": role, "/through": nil, "/reach": nil, "/expiresAt": nil, "/grantedBy": w.owner.id}},
		{name: "again replaces", as: w.owner, send: line, body: `{"reach":{"departments":["Sales"]},"expiresAt":"2999-01-01T00:00:00Z"}`, status: 200, has: map[string]any{"/reach/departments/0": "Sales", "/expiresAt": "2999-01-01T00:00:00.000000Z"}},
		{name: "20 departments", as: w.owner, send: line, body: departments(20), status: 200},
		{name: "21 departments", as: w.owner, send: line, body: departments(21), status: 409, code: "limit-reached"},
		{name: "no such role", as: w.owner, send: "PUT /groups/" + group + "/roles/" + never, status: 404, code: "not-found"},
		{name: "another tenant's role", as: w.owner, send: "PUT /groups/" + group + "/roles/" + foreign.role(t, "Foreign"), status: 404, code: "not-found"},
		{name: "another tenant's group", as: w.owner, send: "PUT /groups/" + foreign.group(t, "Foreign") + "/roles/" + role, status: 404, code: "not-found"},
		{name: "never the role Owner", as: w.owner, send: "PUT /groups/" + group + "/roles/" + owner, status: 422, code: "owner-needs-user"},
		{name: "nor with a reach", as: w.owner, send: "PUT /groups/" + group + "/roles/" + owner, body: within("Sales"), status: 422, code: "owner-needs-user"},
		{name: "nor by an operator", as: w.operator(t), send: "PUT /groups/" + group + "/roles/" + owner, status: 422, code: "owner-needs-user"},
		{name: "who cannot assign it is told that first", as: admin, send: "PUT /groups/" + group + "/roles/" + owner, status: 403, code: "beyond-own-permissions"},
		{name: "it is listed", as: w.owner, send: "GET /groups/" + group + "/roles", status: 200, has: map[string]any{"/items/0/role/id": role, "/items/0/reach/departments/19": "Department 9", "/items/1": nil}},
		{name: "a group with roles is kept", as: w.owner, send: "DELETE /groups/" + group, status: 409, code: "group-has-roles"},
		{name: "the precondition comes before the roles", as: w.owner, send: "DELETE /groups/" + group, header: []string{`if-match: "stale"`}, status: 412, code: "precondition-failed"},
		{name: "force=false too", as: w.owner, send: "DELETE /groups/" + group + "?force=false", status: 409, code: "group-has-roles"},
		{name: "it can be taken", as: w.owner, send: "DELETE /groups/" + group + "/roles/" + role, status: 204},
		{name: "but not twice", as: w.owner, send: "DELETE /groups/" + group + "/roles/" + role, status: 404, code: "not-found"},
		{name: "a group without roles is deleted", as: w.owner, send: "DELETE /groups/" + group, status: 204},
	})
}

// rolesOf returns the ways in which the user has roles, page by page. Each has the form "role through group".
func (c *caller) rolesOf(t *testing.T, user, query string) (ways []string) {
	t.Helper()
	for next := ""; ; {
		a := c.do(t, "GET /users/"+user+"/roles?"+query+next, "").expect(t, 200)
		for i := range a.list("/items") {
			at := fmt.Sprintf("/items/%d", i)
			ways = append(ways, a.text(at+"/role/id")+" through "+a.text(at+"/through/group/id"))
		}
		if a.value("/nextCursor") == nil {
			return ways
		}
		next = "&cursor=" + url.QueryEscape(a.text("/nextCursor"))
	}
}

// testWaysToRole checks a role that users have directly and through groups.
func testWaysToRole(t *testing.T, w *world) {
	c, other, direct := w.member(t, "grace", "Sales"), w.role(t, "Other", "shop/a:b"), w.user(t, "direct", "Sales")
	role, support, night := w.role(t, "Reads people", "users:read"), w.group(t, "Support"), w.group(t, "Night shift")
	c.do(t, "GET /users/"+w.owner.id, "").refused(t, 403, "permission-denied") // now the session is cached
	w.assignToGroup(t, support, role, within("Sales"))
	w.join(t, support, c.id)
	session := scenario{status: 200, has: map[string]any{"/groups/0/id": support, "/groups/0/name": "Support", "/groups/1": nil, "/roles/0/id": role, "/roles/1": nil,
		"/permissions/0": nil, "/scopedPermissions/0/permissions/0": "users:read", "/scopedPermissions/0/reach/departments/0": "Sales"}}
	session.check(t, c.do(t, "GET /auths/session", ""))
	c.do(t, "GET /users/"+direct, "").expect(t, 200)
	c.do(t, "GET /users/"+w.owner.id, "").refused(t, 404, "not-found")
	w.assignToGroup(t, night, other, "")
	w.assignToGroup(t, night, role, "")
	w.join(t, night, c.id)
	w.assign(t, c.id, role, within("Ops"))
	w.assign(t, direct, role, "")
	session = scenario{status: 200, has: map[string]any{"/groups/0/id": support, "/groups/1/id": night, "/roles/0/id": other, "/roles/1/id": role, "/roles/2": nil, "/permissions/0": "shop/a:b", "/permissions/1": "users:read"}}
	session.check(t, c.do(t, "GET /auths/session", ""))
	c.makeToken(t, "", "users:read").do(t, "GET /users/"+w.owner.id, "").expect(t, 200)

	want := []string{other + " through " + night, role + " through ", role + " through " + support, role + " through " + night}
	for _, query := range []string{"limit=1", "limit=2", "limit=3", "limit=200", "limit=1&includeExpired=true", "limit=1&at=" + now()} {
		if got := w.owner.rolesOf(t, c.id, query); !slices.Equal(got, want) {
			t.Errorf("%s: the roles are %q, not %q", query, got, want)
		}
	}
	roles, holders := "/users/"+c.id+"/roles", "/roles/"+role+"/users"
	play(t, []scenario{
		{name: "the group has a name", as: w.owner, send: "GET " + roles, status: 200, has: map[string]any{"/items/1/through": nil, "/items/2/through/group/name": "Support", "/items/2/reach/departments/0": "Sales", "/items/3/reach": nil}},
		{name: "oneself sees the ways", as: c, send: "GET " + roles, status: 200, has: map[string]any{"/items/2/through/group/name": "Support"}},
		{name: "all holders, each once", as: w.owner, send: "GET " + holders + "?count=true", status: 200, has: map[string]any{"/items/0/id": c.id, "/items/1/id": direct, "/items/2": nil, "/total": 2.0}},
		{name: "a direct assignment is removed", as: w.owner, send: "DELETE " + roles + "/" + role, status: 204},
		{name: "one through a group is not", as: w.owner, send: "DELETE " + roles + "/" + role, status: 404, code: "not-found"},
		{name: "nor is another", as: w.owner, send: "DELETE " + roles + "/" + other, status: 404, code: "not-found"},
		{name: "it is still held", as: c, send: "GET /users/" + w.owner.id, status: 200},
		{name: "members of a group hold the role", as: w.owner, send: "GET " + holders, status: 200, has: map[string]any{"/items/0/id": c.id, "/items/1/id": direct, "/items/2": nil}},
		{name: "direct holders only", as: w.owner, send: "GET " + holders + "?direct=true&count=true", status: 200, has: map[string]any{"/items/0/id": direct, "/items/1": nil, "/total": 1.0}},
		{name: "a filter of users", as: w.owner, send: "GET /users?role=" + other, status: 200, has: map[string]any{"/items/0/id": c.id, "/items/1": nil}},
		{name: "the overview", as: w.owner, send: "GET /users/" + c.id + "/overview", status: 200, has: map[string]any{"/assignmentCount": 3.0, "/assignments/1/through/group/id": support, "/assignments/2/through/group/id": night}},
	})
	for query, want := range map[string][]string{"": {c.id, direct}, "?direct=true": {direct}} {
		if got := column(w.owner.do(t, "GET /exports"+holders+query, "").expect(t, 200).rows(t), "id"); !slices.Equal(got, want) {
			t.Errorf("the export%s has %q, not %q", query, got, want)
		}
	}
	if got := w.owner.readAll(t, holders+"?limit=1"); !slices.Equal(got, []string{c.id, direct}) {
		t.Errorf("page by page, the holders are %q", got)
	}
}

func testGroupFilters(t *testing.T, w *world) {
	group, empty, role := w.group(t, "Support"), w.group(t, "Empty"), w.role(t, "Erases", "users:erase")
	inside, outside := w.user(t, "inside", "Sales"), w.user(t, "outside", "Ops")
	w.user(t, "no-member", "Sales")
	w.join(t, group, inside)
	w.join(t, group, outside)
	w.assignToGroup(t, group, role, within("Sales"))
	w.assign(t, inside, role, "")
	blind := w.holder(t, "blind", "", "", "users:read", "users:suspend", "roles:read")
	sales := w.holder(t, "sales", "", "Sales", "users:read", "roles:read")
	w.assign(t, sales.id, w.role(t, "Reads groups", "groups:read"), "")
	filter := `{"users":{"group":` + quoted(group) + `,"department":"Sales"}}`
	play(t, []scenario{
		{name: "members", as: w.owner, send: "GET /users?count=true&group=" + group, status: 200, has: map[string]any{"/items/0/id": inside, "/items/1/id": outside, "/items/2": nil, "/total": 2.0}},
		{name: "with another filter", as: w.owner, send: "GET /users?sort=name&q=user&department=sales&group=" + group, status: 200, has: map[string]any{"/items/0/id": inside, "/items/1": nil}},
		{name: "with a role", as: w.owner, send: "GET /users?role=" + role + "&group=" + group, status: 200, has: map[string]any{"/items/0/id": inside, "/items/1/id": outside, "/items/2": nil}},
		{name: "as far as one sees", as: sales, send: "GET /users?group=" + group, status: 200, has: map[string]any{"/items/0/id": inside, "/items/1": nil}},
		{name: "of an empty group", as: w.owner, send: "GET /users?group=" + empty, status: 200, contains: []string{`"items":[]`}},
		{name: "of no group", as: w.owner, send: "GET /users?group=" + never, status: 200, contains: []string{`"items":[]`}},
		{name: "of no id", as: w.owner, send: "GET /users?group=support", status: 400, faults: []string{"parameter:group format"}},
		{name: "not of the deleted", as: w.owner, send: "GET /users?status=deleted&group=" + group, status: 400, faults: []string{"parameter:group combination"}},
		{name: "not without groups:read", as: blind, send: "GET /users?group=" + group, status: 403, code: "permission-denied"},
		{name: "no export without groups:read", as: blind, send: "GET /exports/users?group=" + group, status: 403, code: "permission-denied"},
		{name: "no job without groups:read", as: blind, send: "POST /jobs/suspend-users", body: filter, status: 403, code: "permission-denied"},
		{name: "access names the ways", as: w.owner, send: "GET /access?permission=users:erase&department=sales", status: 200, has: map[string]any{
			"/items/0/user/id": w.owner.id, "/items/0/grants/0/through": nil,
			"/items/1/user/id": inside, "/items/1/grants/0/through": nil, "/items/1/grants/0/reach": nil, "/items/1/grants/1/through/group/id": group, "/items/1/grants/1/through/group/name": "Support",
			"/items/1/grants/1/reach/departments/0": "Sales", "/items/1/grants/2": nil,
			"/items/2/user/id": outside, "/items/2/grants/0/through/group/id": group, "/items/2/grants/1": nil, "/items/3": nil}},
		{name: "access elsewhere", as: w.owner, send: "GET /access?permission=users:erase&department=ops", status: 200, has: map[string]any{"/items/1/user/id": inside, "/items/1/grants/0/through": nil, "/items/1/grants/1": nil, "/items/2": nil}},
	})
	if got := column(w.owner.do(t, "GET /exports/users?group="+group, "").expect(t, 200).rows(t), "id"); !slices.Equal(got, []string{inside, outside}) {
		t.Errorf("the export has %q", got)
	}
	if event := w.owner.do(t, "GET /events?limit=1&type=users.exported", "").expect(t, 200); event.text("/items/0/after/group") != group {
		t.Errorf("the event of the export is %s", event.body)
	}
	job := w.awaitJob(t, w.startJob(t, w.owner, "suspend-users", filter))
	s := scenario{status: 200, has: map[string]any{"/status": "completed", "/users/group": group, "/changed": 1.0, "/unchanged": 0.0, "/refused": 0.0}}
	s.check(t, job)
	if got := w.owner.readAll(t, "/users?status=suspended"); !slices.Equal(got, []string{inside}) {
		t.Errorf("the job suspended %q", got)
	}
	job = w.awaitJob(t, w.startJob(t, w.owner, "unassign-role", `{"users":{"group":`+quoted(group)+`},"roleId":`+quoted(role)+`}`))
	s = scenario{status: 200, has: map[string]any{"/status": "completed", "/changed": 1.0, "/refused": 0.0}}
	s.check(t, job)
	if got := w.owner.rolesOf(t, inside, ""); !slices.Equal(got, []string{role + " through " + group}) {
		t.Errorf("after the job, the roles are %q", got)
	}
}

// testGroupChangesAtOnce checks that each change of groups has an effect on the next request of a member.
func testGroupChangesAtOnce(t *testing.T, w *world) {
	role, c := w.role(t, "At once", "users:read"), w.member(t, "at-once", "")
	group := w.group(t, "At once")
	line := "/groups/" + group
	w.assign(t, c.id, role, "")
	token := c.makeToken(t, "", "users:read")
	w.owner.do(t, "DELETE /users/"+c.id+"/roles/"+role, "").expect(t, 204)
	expect := func(what string, status int) {
		t.Helper()
		for _, who := range []*caller{c, token} {
			if got := who.do(t, "GET /users/"+w.owner.id, "").status; got != status {
				t.Errorf("after %s: %d, not %d", what, got, status)
			}
		}
	}
	for range 2 {
		expect("nothing", 403)
		w.join(t, group, c.id)
		expect("the membership", 403)
		w.assignToGroup(t, group, role, "")
		expect("the assignment", 200)
		w.owner.do(t, "PUT "+line+"/roles/"+role, within("Nowhere")).expect(t, 200)
		expect("the reach", 404)
		w.owner.do(t, "PUT "+line+"/roles/"+role, "").expect(t, 200)
		expect("the reach of all", 200)
		w.owner.do(t, "DELETE "+line+"/users/"+c.id, "").expect(t, 204)
		expect("the removal of the member", 403)
		w.join(t, group, c.id)
		expect("the return of the member", 200)
		w.owner.do(t, "PATCH /roles/"+role, `{"permissions":[]}`).expect(t, 200)
		expect("the change of the role", 403)
		w.owner.do(t, "PATCH /roles/"+role, `{"permissions":["users:read"]}`).expect(t, 200)
		expect("the change back", 200)
		w.owner.do(t, "DELETE "+line+"/roles/"+role, "").expect(t, 204)
		expect("the removal of the role", 403)
		w.owner.do(t, "DELETE "+line+"/users/"+c.id, "").expect(t, 204)
	}
	w.join(t, group, c.id)
	w.assignToGroup(t, group, role, "")
	w.owner.do(t, "PATCH "+line, `{"name":"Renamed at once"}`).expect(t, 200)
	if got := c.do(t, "GET /auths/session", "").expect(t, 200); got.text("/groups/0/name") != "Renamed at once" {
		t.Errorf("the session is %s", got.body)
	}
	expect("the new name", 200)
	w.owner.do(t, "DELETE "+line, "").refused(t, 409, "group-has-roles")
	expect("the refused deletion", 200)
	w.owner.do(t, "DELETE "+line+"?force=true", "").expect(t, 204)
	expect("the deletion of the group", 403)
	s := scenario{status: 200, contains: []string{`"groups":[]`, `"roles":[]`, `"permissions":[]`}}
	s.check(t, c.do(t, "GET /auths/session", ""))

	again := w.group(t, "At once again")
	w.join(t, again, c.id)
	end := endSoon(t, func(end string) *answer {
		return w.owner.do(t, "PUT /groups/"+again+"/roles/"+role, `{"expiresAt":`+quoted(end)+`}`)
	})
	for time.Now().Before(end) {
		time.Sleep(time.Until(end))
	}
	expect("the expiry", 403)
	play(t, []scenario{
		{name: "an expired role is not listed", as: w.owner, send: "GET /groups/" + again + "/roles", status: 200, contains: []string{`"items":[]`}},
		{name: "unless asked for", as: w.owner, send: "GET /groups/" + again + "/roles?includeExpired=true", status: 200, has: map[string]any{"/items/0/role/id": role}},
		{name: "nor is it for the member", as: w.owner, send: "GET /users/" + c.id + "/roles?includeExpired=true", status: 200, has: map[string]any{"/items/0/role/id": role, "/items/0/through/group/id": again, "/items/1": nil}},
		{name: "nobody holds it", as: w.owner, send: "GET /roles/" + role + "/users", status: 200, contains: []string{`"items":[]`}},
		{name: "it keeps no group", as: w.owner, send: "DELETE /groups/" + again, status: 204},
	})
}

// testGroupsAtATime checks roles through groups at earlier times.
func testGroupsAtATime(t *testing.T, w *world) {
	role := w.role(t, "Historical", "shop/a:b")
	for _, end := range []string{"DELETE /groups/{group}/users/{user}", "DELETE /groups/{group}/roles/" + role, "DELETE /groups/{group}?force=true", "DELETE /users/{user}"} {
		user, group := w.user(t, newKey(), "Sales"), w.group(t, "Group of "+newKey())
		begin := now()
		w.join(t, group, user)
		joined := now()
		w.assignToGroup(t, group, role, within("Sales"))
		assigned := now()
		w.owner.do(t, "PUT /groups/"+group+"/roles/"+role, "").expect(t, 200)
		replaced := now()
		w.owner.do(t, strings.NewReplacer("{group}", group, "{user}", user).Replace(end), "").expect(t, 204)
		ended := now()
		if strings.HasPrefix(end, "DELETE /users/") {
			w.owner.do(t, "POST /users/"+user+"/restore", "").expect(t, 200)
		}
		for at, want := range map[string]int{begin: 0, joined: 0, assigned: 1, replaced: 1, ended: 0} {
			a := w.owner.do(t, "GET /users/"+user+"/roles?at="+at, "").expect(t, 200)
			if got := len(a.list("/items")); got != want || want > 0 && (a.text("/items/0/through/group/id") != group || a.value("/items/0/reach") == nil != (at == replaced)) {
				t.Errorf("%s: roles at %s: %s", end, at, a.body)
			}
			holders := w.owner.do(t, "GET /roles/"+role+"/users?at="+at, "").expect(t, 200)
			if got := slices.Contains(holders.texts("id"), user); got != (want > 0) {
				t.Errorf("%s: users at %s: %s", end, at, holders.body)
			}
			if direct := w.owner.do(t, "GET /roles/"+role+"/users?direct=true&at="+at, "").expect(t, 200); len(direct.list("/items")) != 0 {
				t.Errorf("%s: direct users at %s: %s", end, at, direct.body)
			}
		}
	}
}

func testRestoreGroups(t *testing.T, w *world) {
	c := w.member(t, "returns", "Sales")
	plain, shop, strong, gone := w.group(t, "Plain"), w.group(t, "Shop"), w.group(t, "Strong"), w.group(t, "Gone")
	w.assignToGroup(t, shop, w.role(t, "Sells", "shop/a:b"), "")
	w.assignToGroup(t, strong, w.role(t, "Changes the tenant", "tenant:update"), "")
	for _, group := range []string{plain, shop, strong, gone} {
		w.join(t, group, c.id)
	}
	admin := w.member(t, "restoring-admin", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	blind := w.holder(t, "restores-blindly", "", "Sales", "users:read", "users:restore", "groups:members")
	line := "/users/" + c.id
	w.owner.do(t, "DELETE "+line, "").expect(t, 204)
	w.owner.do(t, "DELETE /groups/"+gone, "").expect(t, 204)
	if got := w.owner.readAll(t, "/groups/"+plain+"/users"); len(got) != 0 {
		t.Errorf("a deleted user is in the list of members: %q", got)
	}
	play(t, []scenario{
		{name: "by an administrator", as: admin, send: "POST " + line + "/restore", status: 200, members: "user rolesNotRestored groupsNotRestored",
			has: map[string]any{"/groupsNotRestored/0": strong, "/groupsNotRestored/1": gone, "/groupsNotRestored/2": nil}, contains: []string{`"rolesNotRestored":[]`}},
		{name: "back in the other groups", as: w.owner, send: "GET " + line + "/groups", status: 200, has: map[string]any{"/items/0/group/id": plain, "/items/0/addedBy": admin.id, "/items/1/group/id": shop, "/items/2": nil}},
		{name: "with their roles", as: w.owner, send: "GET " + line + "/roles", status: 200, has: map[string]any{"/items/0/through/group/id": shop, "/items/1": nil}},
		{name: "the event", as: w.owner, send: "GET " + line + "/events?type=user.restored", status: 200,
			has: map[string]any{"/items/0/after/groups/0": plain, "/items/0/after/groups/1": shop, "/items/0/after/groups/2": nil, "/items/0/after/groupsNotRestored/0": strong, "/items/0/after/groupsNotRestored/1": gone}},
		{name: "deleted again", as: w.owner, send: "DELETE " + line, status: 204},
		{name: "by somebody without roles:assign and groups:read", as: blind, send: "POST " + line + "/restore", status: 200, members: "user"},
		{name: "back only in groups without roles", as: w.owner, send: "GET " + line + "/groups", status: 200, has: map[string]any{"/items/0/group/id": plain, "/items/1": nil}},
	})
	w.join(t, strong, c.id)
	w.owner.do(t, "DELETE "+line, "").expect(t, 204)
	s := scenario{status: 200, contains: []string{`"groupsNotRestored":[]`}}
	s.check(t, w.owner.do(t, "POST "+line+"/restore", ""))
	a := w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(w.invite(t, w.owner, c.id), password)).expect(t, 200)
	s = scenario{status: 200, has: map[string]any{"/groups/0/id": plain, "/groups/1/id": strong, "/groups/2": nil, "/permissions/0": "tenant:update"}}
	s.check(t, c.with(a.session(t)).do(t, "GET /auths/session", ""))
}

// testGroupCeiling checks that delegates change no membership that gives more than they may assign.
func testGroupCeiling(t *testing.T, w *world) {
	reads, all, shop := w.role(t, "Reads people", "users:read"), w.role(t, "Everything", "*:*"), w.role(t, "Sells", "shop/a:b")
	soon := `{"expiresAt":` + quoted(time.Now().Add(time.Hour).UTC().Format(time.RFC3339)) + `}`
	group := func(name string, roles ...string) string { // roles and bodies, in turn
		id := w.group(t, name)
		for i := 0; i < len(roles); i += 2 {
			w.assignToGroup(t, id, roles[i], roles[i+1])
		}
		return id
	}
	plain, sales, ops, wide := group("Plain"), group("Of Sales", reads, within("Sales")), group("Of Ops", reads, within("Ops")), group("Wide", reads, "")
	strong, both, brief := group("Strong", all, within("Sales")), group("Both", reads, within("Sales"), shop, within("Sales")), group("Brief", reads, soon)
	clerk, outside := w.user(t, "clerk", "Sales"), w.user(t, "outside", "Ops")
	suspended := w.user(t, "suspended", "Sales")
	w.owner.do(t, "POST /users/"+suspended+"/suspend", "").expect(t, 200)
	delegate := w.holder(t, "delegate", "Board", "Sales", "users:read", "groups:members", "roles:assign")
	helper := w.holder(t, "helper", "", "", "users:read", "groups:members")
	deleter := w.holder(t, "deleter", "", "", "users:read", "groups:delete")
	short := w.member(t, "short", "")
	w.assign(t, short.id, w.role(t, "Short", "users:read", "groups:members", "roles:assign"), soon)
	const beyond = "beyond-own-permissions"
	member := func(method, group, user string) string {
		return method + " /groups/" + group + "/users/" + user
	}
	play(t, []scenario{
		{name: "a group without roles", as: delegate, send: member("PUT", plain, clerk), status: 204},
		{name: "a role of one's department", as: delegate, send: member("PUT", sales, clerk), status: 204},
		{name: "a suspended user", as: delegate, send: member("PUT", sales, suspended), status: 204},
		{name: "a role of another department", as: delegate, send: member("PUT", ops, clerk), status: 403, code: beyond},
		{name: "a role of all departments", as: delegate, send: member("PUT", wide, clerk), status: 403, code: beyond},
		{name: "a role that one does not hold", as: delegate, send: member("PUT", strong, clerk), status: 403, code: beyond},
		{name: "one role of two", as: delegate, send: member("PUT", both, clerk), status: 403, code: beyond, contains: []string{"shop/a:b"}},
		{name: "a user of another department", as: delegate, send: member("PUT", plain, outside), status: 404, code: "not-found"},
		{name: "no such group", as: delegate, send: member("PUT", never, clerk), status: 404, code: "not-found"},
		{name: "oneself, of another department", as: delegate, send: member("PUT", plain, delegate.id), status: 403, code: "permission-denied"},
		{name: "a group's role", as: delegate, send: "PUT /groups/" + plain + "/roles/" + reads, body: within("Sales"), status: 403, code: "permission-denied"},
		{name: "a group's role, away", as: delegate, send: "DELETE /groups/" + sales + "/roles/" + reads, status: 403, code: "permission-denied"},
		{name: "groups themselves", as: delegate, send: "POST /groups", body: `{"name":"Mine"}`, status: 403, code: "permission-denied"},
		{name: "nobody was added", as: w.owner, send: "GET /users/" + clerk + "/groups", status: 200, has: map[string]any{"/items/0/group/id": plain, "/items/1/group/id": sales, "/items/2": nil}},
		{name: "without roles:assign, a group without roles", as: helper, send: member("PUT", plain, outside), status: 204},
		{name: "without roles:assign, a group with roles", as: helper, send: member("PUT", sales, outside), status: 403, code: "permission-denied", contains: []string{"roles:assign"}},
		{name: "without roles:assign, not away either", as: helper, send: member("DELETE", sales, clerk), status: 403, code: "permission-denied"},
		{name: "longer than oneself", as: short, send: member("PUT", wide, outside), status: 403, code: beyond},
		{name: "not longer than oneself", as: short, send: member("PUT", brief, outside), status: 204},
		{name: "away, of one's department", as: delegate, send: member("DELETE", sales, suspended), status: 204},
		{name: "a group whose roles one may not remove", as: deleter, send: "DELETE /groups/" + strong + "?force=true", status: 403, code: beyond},
		{name: "nor without force", as: deleter, send: "DELETE /groups/" + strong, status: 403, code: beyond},
		{name: "a group whose roles one holds", as: deleter, send: "DELETE /groups/" + ops + "?force=true", status: 204},
	})
	w.join(t, strong, clerk)
	delegate.do(t, member("DELETE", strong, clerk), "").refused(t, 403, beyond)
	delegate.do(t, "PUT /users/"+clerk+"/roles/"+reads, within("Sales")).expect(t, 201)
}

// testOwnGroups checks that users cannot add permissions to themselves through a group.
func testOwnGroups(t *testing.T, w *world) {
	admin := w.member(t, "admin", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	shop, more, other := w.role(t, "Sells", "shop/a:b"), w.role(t, "Sells more", "shop/c:d"), w.user(t, "other", "")
	sellers, own, others := w.group(t, "Sellers"), w.group(t, "Own"), w.group(t, "Others")
	w.assignToGroup(t, sellers, shop, "")
	token := admin.makeToken(t, "", "users:read", "groups:members", "roles:assign", "roles:update", "*/*:*")
	const beyond = "beyond-own-permissions"
	play(t, []scenario{
		{name: "an administrator adds others", as: admin, send: "PUT /groups/" + sellers + "/users/" + other, status: 204},
		{name: "but not themselves", as: admin, send: "PUT /groups/" + sellers + "/users/" + admin.id, status: 403, code: beyond},
		{name: "nor with a token", as: token, send: "PUT /groups/" + sellers + "/users/" + admin.id, status: 403, code: beyond},
		{name: "they add themselves to a group without roles", as: admin, send: "PUT /groups/" + own + "/users/" + admin.id, status: 204},
		{name: "they give roles to other groups", as: admin, send: "PUT /groups/" + others + "/roles/" + shop, status: 201},
		{name: "but not to their own", as: admin, send: "PUT /groups/" + own + "/roles/" + shop, status: 403, code: beyond},
		{name: "nor with a reach", as: admin, send: "PUT /groups/" + own + "/roles/" + shop, body: within("Sales"), status: 403, code: beyond},
		{name: "nor with a token", as: token, send: "PUT /groups/" + own + "/roles/" + shop, status: 403, code: beyond},
		{name: "nor through another group then", as: admin, send: "PUT /groups/" + others + "/users/" + admin.id, status: 403, code: beyond},
		{name: "an owner gives a role to the group", as: w.owner, send: "PUT /groups/" + own + "/roles/" + shop, body: within("Sales"), status: 201},
		{name: "of which they hold what it gives", as: admin, send: "GET /auths/check?permission=shop/a:b&department=Sales", status: 204},
		{name: "they do not add to it", as: admin, send: "PATCH /roles/" + shop, body: `{"permissions":["shop/a:b","shop/c:d"]}`, status: 403, code: beyond},
		{name: "nor with a token", as: token, send: "PATCH /roles/" + shop, body: `{"permissions":["shop/a:b","shop/c:d"]}`, status: 403, code: beyond},
		{name: "nor widen it", as: admin, send: "PUT /groups/" + own + "/roles/" + shop, status: 403, code: beyond},
		{name: "nor take it for themselves elsewhere", as: admin, send: "PUT /users/" + admin.id + "/roles/" + shop, body: within("Ops"), status: 403, code: beyond},
		{name: "they describe it", as: admin, send: "PATCH /roles/" + shop, body: `{"description":"Sells."}`, status: 200},
		{name: "they keep its permissions", as: admin, send: "PATCH /roles/" + shop, body: `{"permissions":["shop/a:b"]}`, status: 200},
		{name: "they change roles of other groups", as: admin, send: "PATCH /roles/" + more, body: `{"permissions":["shop/c:d","shop/e:f"]}`, status: 200},
		{name: "they give these to their group no more", as: admin, send: "PUT /groups/" + own + "/roles/" + more, status: 403, code: beyond},
		{name: "nothing was gained", as: admin, send: "GET /auths/check?permission=shop/a:b", status: 403},
		{name: "nor more", as: admin, send: "GET /auths/check?permission=shop/c:d&department=Sales", status: 403},
		{name: "an owner has all of it", as: w.owner, send: "PUT /groups/" + own + "/users/" + w.owner.id, status: 204},
		{name: "so they may", as: w.owner, send: "PUT /groups/" + own + "/roles/" + more, status: 201},
	})
	admin.do(t, "GET /auths/check?permission=shop/e:f", "").expect(t, 204)
	admin.do(t, "DELETE /groups/"+own+"/users/"+admin.id, "").expect(t, 204)
	admin.do(t, "GET /auths/check?permission=shop/e:f", "").expect(t, 403)
}

// testTakeOverThroughGroup checks that a user who has permissions only through a group is protected by them.
func testTakeOverThroughGroup(t *testing.T, w *world) {
	group, target := w.group(t, "Chiefs"), w.member(t, "chief", "Sales")
	role := w.role(t, "Changes the tenant", "tenant:update")
	w.assignToGroup(t, group, role, "")
	w.join(t, group, target.id)
	helper := w.holder(t, "helper", "", "", "users:read", "users:reset-factors", "users:invite", "users:suspend", "users:delete", "users:erase", "users.email:update", "sessions:revoke")
	line := "/users/" + target.id
	requests := []struct {
		send, body string
		status     int // after the user was removed from the group
	}{
		{"DELETE " + line + "/factors", "", 204},
		{"POST " + line + "/password-resets", "", 201},
		{"POST " + line + "/email-changes", `{"email":` + quoted(address("elsewhere")) + `}`, 202},
		{"POST " + line + "/invitations", "", 201},
		{"DELETE " + line + "/sessions", "", 204},
		{"POST " + line + "/suspend", "", 200},
		{"POST " + line + "/resume", "", 200},
		{"POST " + line + "/erase", "", 204},
		{"DELETE " + line, "", 404},
	}
	for _, r := range requests {
		helper.do(t, r.send, r.body).refused(t, 403, "beyond-own-permissions")
	}
	actions := helper.do(t, "GET "+line+"/overview", "").expect(t, 200).list("/allowedActions")
	for _, action := range []any{"resetFactors", "sendPasswordReset", "changeEmail", "invite", "suspend", "delete", "erase", "revokeSessions"} {
		if slices.Contains(actions, action) {
			t.Errorf("a helper may %s", action)
		}
	}
	job := w.awaitJob(t, w.startJob(t, helper, "suspend-users", `{"users":{"q":"chief"}}`))
	s := scenario{status: 200, has: map[string]any{"/changed": 0.0, "/refused": 1.0}}
	s.check(t, job)
	w.demand(t, `{"required":"roles","roles":[`+quoted(role)+`]}`)
	target.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated") // the session began without a second factor
	w.challenge(t, target.email, "second-factor-enrolment-required")
	w.owner.do(t, "DELETE /groups/"+group+"/users/"+target.id, "").expect(t, 204)
	w.signIn(t, target.email)
	w.demand(t, `{"required":"none"}`)
	for _, r := range requests {
		if a := helper.do(t, r.send, r.body); a.status != r.status {
			t.Errorf("after the removal: %s answered %d %s", a.line, a.status, a.body)
		}
	}
}

func testGroupEvents(t *testing.T, w *world) {
	group, role, user := w.group(t, "Support"), w.role(t, "Reads people", "users:read"), w.user(t, "member", "Sales")
	line := "/groups/" + group
	w.owner.do(t, "PATCH "+line, `{"name":"Help","externalId":"H-1"}`).expect(t, 200)
	w.join(t, group, user)
	w.join(t, group, user) // changes nothing
	member := w.member(t, "member-with-session", "")
	w.join(t, group, member.id)
	w.assignToGroup(t, group, role, within("Sales"))
	w.owner.do(t, "DELETE "+line+"/users/"+user, "").expect(t, 204)
	w.join(t, group, user)
	w.owner.do(t, "DELETE "+line+"?force=true", "").expect(t, 204)
	about := func(id string) []string {
		types := w.owner.do(t, "GET /events?subject="+id, "").expect(t, 200).texts("type")
		slices.Reverse(types)
		return types
	}
	if got, want := about(group), []string{"group.created", "group.updated", "role.assigned", "role.unassigned", "group.deleted"}; !slices.Equal(got, want) {
		t.Errorf("the events of the group are %q, not %q", got, want)
	}
	if got, want := about(user), []string{"user.created", "group.member_added", "group.member_removed", "group.member_added", "group.member_removed"}; !slices.Equal(got, want) {
		t.Errorf("the events of the member are %q, not %q", got, want)
	}
	event := func(subject, kind string) string { return "GET /events?subject=" + subject + "&type=" + kind }
	auditor, reader := w.holder(t, "auditor", "", "", "events:read"), w.holder(t, "reader", "", "", "events:read", "groups:read")
	play(t, []scenario{
		{name: "created", as: w.owner, send: event(group, "group.created"), status: 200, has: map[string]any{"/items/0/subject/type": "group", "/items/0/actor/id": w.owner.id, "/items/0/after/name": "Support", "/items/0/before": nil, "/items/1": nil}},
		{name: "updated", as: w.owner, send: event(group, "group.updated"), status: 200, has: map[string]any{"/items/0/members/0": "name", "/items/0/members/1": "externalId", "/items/0/before/name": "Support", "/items/0/after/name": "Help", "/items/0/after/externalId": "H-1"}},
		{name: "the role", as: w.owner, send: event(group, "role.assigned"), status: 200, has: map[string]any{"/items/0/subject/type": "group", "/items/0/after/roleId": role, "/items/0/after/departments/0": "Sales"}},
		{name: "added", as: w.owner, send: event(user, "group.member_added"), status: 200, has: map[string]any{"/items/0/subject/type": "user", "/items/0/members/0": "groups", "/items/0/after/groupId": group, "/items/0/after/groupName": "Help", "/items/0/before": nil}},
		{name: "removed", as: w.owner, send: event(user, "group.member_removed"), status: 200, has: map[string]any{"/items/0/reason": "group deleted", "/items/0/before/groupName": "Help", "/items/0/after": nil, "/items/1/reason": nil, "/items/2": nil}},
		{name: "deleted", as: w.owner, send: event(group, "group.deleted"), status: 200, has: map[string]any{"/items/0/before/name": "Help", "/items/0/after": nil}},
		{name: "the role, away", as: w.owner, send: event(group, "role.unassigned"), status: 200, has: map[string]any{"/items/0/reason": "group deleted", "/items/0/before/roleId": role}},
		{name: "without groups:read, no values", as: auditor, send: "GET /events?subject=" + user + "&type=group.member_added", status: 200, has: map[string]any{"/items/0/subject/id": user, "/items/0/after": nil}, lacks: []string{"Help"}},
		{name: "nor of groups", as: auditor, send: "GET /events?subject=" + group, status: 200, lacks: []string{"Help", "Support", role}},
		{name: "of oneself, the values", as: member, send: "GET /users/" + member.id + "/events?type=group.member_added", status: 200, has: map[string]any{"/items/0/after/groupName": "Help"}},
		{name: "with groups:read, the values", as: reader, send: "GET /events?subject=" + user + "&type=group.member_added", status: 200, has: map[string]any{"/items/0/after/groupName": "Help"}},
		{name: "without roles:read, no roles", as: reader, send: "GET /events?subject=" + group, status: 200, contains: []string{"Support"}, lacks: []string{role}},
	})
	if got := w.owner.do(t, "GET /changes?type=group.deleted", "").expect(t, 200); got.text("/items/0/data/subject/id") != group {
		t.Errorf("the change is %s", got.body)
	}
}

func testDeletedRolesOfGroups(t *testing.T, w *world) {
	group, role, c := w.group(t, "Support"), w.role(t, "Reads people", "users:read"), w.member(t, "member", "")
	w.assignToGroup(t, group, role, "")
	w.owner.do(t, "DELETE /roles/"+role, "").refused(t, 409, "role-in-use")
	w.join(t, group, c.id)
	c.do(t, "GET /users/"+w.owner.id, "").expect(t, 200)
	w.owner.do(t, "DELETE /roles/"+role+"?force=true", "").expect(t, http.StatusNoContent)
	c.do(t, "GET /users/"+w.owner.id, "").refused(t, 403, "permission-denied")
	play(t, []scenario{
		{name: "the group has no role", as: w.owner, send: "GET /groups/" + group + "/roles?includeExpired=true", status: 200, contains: []string{`"items":[]`}},
		{name: "nor has the member", as: w.owner, send: "GET /users/" + c.id + "/roles", status: 200, contains: []string{`"items":[]`}},
		{name: "the member stays", as: c, send: "GET /auths/session", status: 200, has: map[string]any{"/groups/0/id": group}, contains: []string{`"roles":[]`}},
		{name: "the event", as: w.owner, send: "GET /events?type=role.unassigned&subject=" + group, status: 200, has: map[string]any{"/items/0/reason": "role deleted", "/items/0/before/roleId": role, "/items/1": nil}},
		{name: "nothing keeps the group", as: w.owner, send: "DELETE /groups/" + group, status: 204},
	})
}

// testLargeGroup deletes a group whose members are removed in several steps, and checks that all of them lose
// its role at once.
func testLargeGroup(t *testing.T, w *world) {
	const members, callers = 520, 8 // more than one step
	group, role, c := w.group(t, "Large"), w.role(t, "Reads people", "users:read"), w.member(t, "last", "")
	w.assignToGroup(t, group, role, "")
	ids := make([]string, members)
	if got := atOnce(t, callers, func(caller int) (a *answer, err error) {
		for i := caller; i < members; i += callers {
			if a, err = w.owner.try(t, "POST /users", fmt.Sprintf(`{"email":"large-%d@canary.example","name":"Member"}`, i)); err != nil {
				return nil, err
			}
			ids[i] = a.text("/id")
			if a, err = w.owner.try(t, "PUT /groups/"+group+"/users/"+ids[i], ""); err != nil || a.status != http.StatusNoContent {
				return a, err
			}
		}
		return a, nil
	}); got[http.StatusNoContent] != callers {
		t.Fatalf("adding members answered %v", got)
	}
	w.join(t, group, c.id)
	c.do(t, "GET /users/"+w.owner.id, "").expect(t, 200)
	if a := w.owner.do(t, "GET /groups/"+group+"/users?limit=1&count=true", "").expect(t, 200); a.value("/total") != members+1.0 {
		t.Errorf("%v members are counted", a.value("/total"))
	}
	w.owner.do(t, "DELETE /groups/"+group+"?force=true", "").expect(t, 204)
	c.do(t, "GET /users/"+w.owner.id, "").refused(t, 403, "permission-denied")
	last := sorted(append(ids, c.id))[members]
	play(t, []scenario{
		{name: "there is no such group", as: w.owner, send: "GET /groups/" + group, status: 404, code: "not-found"},
		{name: "it is not listed", as: w.owner, send: "GET /groups", status: 200, contains: []string{`"items":[]`}},
		{name: "nobody is added", as: w.owner, send: "PUT /groups/" + group + "/users/" + ids[0], status: 404, code: "not-found"},
		{name: "it has no members", as: w.owner, send: "GET /users?count=true&group=" + group, status: 200, has: map[string]any{"/total": 0.0}, contains: []string{`"items":[]`}},
		{name: "the last member is in no group", as: w.owner, send: "GET /users/" + last + "/groups", status: 200, contains: []string{`"items":[]`}},
		{name: "nor in a session", as: c, send: "GET /auths/session", status: 200, contains: []string{`"groups":[]`}},
		{name: "nobody holds the role", as: w.owner, send: "GET /roles/" + role + "/users", status: 200, contains: []string{`"items":[]`}},
		{name: "the name is free", as: w.owner, send: "POST /groups", body: `{"name":"Large"}`, status: 201},
	})
	awaitEvents(t, w.owner, "/events?type=group.member_removed&subject="+last, 1)
	if !patience.Poll(func() bool {
		return len(w.owner.readAll(t, "/events?type=group.member_removed&limit=200")) == members+1
	}) {
		t.Error("some members have no event of their removal")
	}
}

// testGroupsInParallel sends the same requests many times at once. Only one of them may have an effect.
func testGroupsInParallel(t *testing.T, w *world) {
	const n = 20
	group, role, user := w.group(t, "Contended"), w.role(t, "Reads people", "users:read"), w.user(t, "contended", "")
	send := func(line, body string) map[int]int {
		return atOnce(t, n, func(int) (*answer, error) { return w.owner.try(t, line, body) })
	}
	for _, c := range []struct {
		line, body     string
		one, others    int    // the statuses
		event, subject string // the event that one of the requests writes, if it is set
	}{
		{"POST /groups", `{"name":"Only one"}`, 201, 409, "", ""},
		{"PUT /groups/" + group + "/users/" + user, "", 204, 204, "group.member_added", user},
		{"PUT /groups/" + group + "/roles/" + role, "", 201, 200, "", ""},
		{"DELETE /groups/" + group + "/users/" + user, "", 204, 404, "group.member_removed", user},
		{"DELETE /groups/" + group + "/roles/" + role, "", 204, 404, "role.unassigned", group},
		{"DELETE /groups/" + group, "", 204, 404, "group.deleted", group},
	} {
		got := send(c.line, c.body)
		if c.one == c.others && got[c.one] != n || c.one != c.others && (got[c.one] != 1 || got[c.others] != n-1) {
			t.Errorf("%s: %d at once answered %v", c.line, n, got)
		}
		if c.event == "" {
			continue
		}
		if got := len(w.owner.readAll(t, "/events?type="+c.event+"&subject="+c.subject)); got != 1 {
			t.Errorf("%s: %d events", c.line, got)
		}
	}
}

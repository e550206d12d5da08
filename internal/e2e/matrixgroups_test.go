package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// everyGroupMember is the list of members of a group for callers who may read groups.
const everyGroupMember = "id name description externalId source createdAt updatedAt"

var (
	groupHasRoles  = expectation{status: 409, code: "group-has-roles"}
	ownerNeedsUser = expectation{status: 422, code: "owner-needs-user"}
)

// groupObject is a group that the requests of the matrix name.
type groupObject struct {
	name       string
	id         string
	exists     bool
	role       *roleObject // nil: the group has no role
	department string      // the reach of the role; empty: the whole tenant
}

// group creates a group and returns its id.
func (w *world) group(t testing.TB, name string) string {
	t.Helper()
	return w.owner.do(t, "POST /groups", `{"name":`+quoted(name)+`}`).expect(t, 201).text("/id")
}

// join adds the user to the group.
func (w *world) join(t testing.TB, group, user string) {
	t.Helper()
	w.owner.do(t, "PUT /groups/"+group+"/users/"+user, "").expect(t, 204)
}

// assignToGroup assigns the role to the group. body is the body of the request, as for assign.
func (w *world) assignToGroup(t testing.TB, group, role, body string) {
	t.Helper()
	w.owner.do(t, "PUT /groups/"+group+"/roles/"+role, body).expect(t, 201)
}

// reaching returns the body that assigns a role for the users of the department. An empty department
// means the whole tenant.
func reaching(department string) string {
	if department == "" {
		return ""
	}
	return within(department)
}

// standingGroups returns the groups that requests name. They are always the same.
func (m *matrix) standingGroups(t *testing.T) []*groupObject {
	t.Helper()
	if m.groups == nil {
		m.groups = m.newGroups(t)
	}
	return m.groups
}

func (m *matrix) newGroups(t *testing.T) []*groupObject {
	t.Helper()
	m.fresh++
	name := func(what string) string { return fmt.Sprintf("%s %d", what, m.fresh) }
	with := func(what string, role *roleObject, department string) *groupObject {
		g := &groupObject{name: what, id: m.group(t, name(what)), exists: true, role: role, department: department}
		if role != nil {
			m.assignToGroup(t, g.id, role.id, reaching(department))
		}
		return g
	}
	deleted := m.group(t, name("Deleted"))
	m.owner.do(t, "DELETE /groups/"+deleted, "").expect(t, 204)
	return []*groupObject{
		with("a group without roles", nil, ""),
		with("a group with a role", m.roles[0], ""),
		with("a group with a role in Sales", m.roles[0], "Sales"),
		with("a group with an application's role", m.roles[1], ""),
		{name: "another tenant's group", id: m.foreign.group(t, name("Foreign"))},
		{name: "a deleted group", id: deleted},
		{name: "a group that never was", id: never},
	}
}

// isUser reports whether the principal is a user of the tenant, or acts for one.
func (p *principal) isUser() bool { return p.live && (!p.program || p.holder != nil) }

// readableGroupMembers returns the members of a group that the principal may read.
func (p *principal) readableGroupMembers() string {
	if p.may("groups:read", "") {
		return everyGroupMember
	}
	return "id"
}

func listGroupsCells(t *testing.T, m *matrix, p *principal) {
	groups := m.standingGroups(t)
	listed := map[string]bool{}
	for next, more := "", true; more; more = next != "" {
		a := p.compare(t, "groups", "GET /groups?sort=-createdAt&limit=200"+next, "", first(done(200, "items nextCursor"), check{p.may("groups:read", ""), mayNot}))
		for i, id := range a.texts("id") {
			if listed[id] = true; !slices.Equal(a.members(fmt.Sprintf("/items/%d", i)), sorted(strings.Fields(everyGroupMember))) {
				t.Errorf("a group has %q", a.members(fmt.Sprintf("/items/%d", i)))
			}
		}
		if next = a.text("/nextCursor"); next != "" {
			next = "&cursor=" + url.QueryEscape(next)
		}
	}
	for _, g := range groups {
		if wanted := g.exists && p.live && p.may("groups:read", ""); listed[g.id] != wanted {
			t.Errorf("%s: listed is %v", g.name, listed[g.id])
		}
	}
}

var _ = specify("GroupsController_listGroups", changesNothing, withoutObject("GET /groups?limit=2", ""), listGroupsCells)

func createGroupCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	p.compare(t, "a group", "POST /groups", fmt.Sprintf(`{"name":"Made %d"}`, m.fresh), first(done(201, p.readableGroupMembers()), check{p.may("groups:create", ""), mayNot}))
}

var _ = specify("GroupsController_createGroup", changesNothing, func(*testing.T, *providerWorld) request {
	key := newKey()
	return request{line: "POST /groups", body: `{"name":"Support ` + key + `","description":"Answers the questions of customers","externalId":"support-` + key + `"}`, events: []string{"group.created group {id} []"}}
}, createGroupCells) // it has no role and no member

func getGroupCells(t *testing.T, m *matrix, p *principal) {
	for _, g := range m.standingGroups(t) {
		p.compare(t, g.name, "GET /groups/"+g.id, "", first(done(200, everyGroupMember), check{p.may("groups:read", ""), mayNot}, check{g.exists, notThere}))
	}
}

var _ = specify("GroupsController_getGroup", changesNothing, withObject(aGroup, "GET /groups/{id}", ""), getGroupCells)

func updateGroupCells(t *testing.T, m *matrix, p *principal) {
	for _, g := range m.standingGroups(t) {
		m.fresh++
		p.compare(t, g.name, "PATCH /groups/"+g.id, fmt.Sprintf(`{"description":"Changed %d"}`, m.fresh),
			first(done(200, p.readableGroupMembers()), check{p.may("groups:update", ""), mayNot}, check{g.exists, notThere}))
	}
}

var _ = specify("GroupsController_updateGroup", changesNothing, withObject(aGroup, "PATCH /groups/{id}", `{"description":"Answers the questions of partners"}`, "group.updated group {id} [description]"), updateGroupCells)

func deleteGroupCells(t *testing.T, m *matrix, p *principal) {
	groups := m.standingGroups(t)
	if p.live {
		groups = m.newGroups(t)
	}
	for _, g := range groups {
		checks := []check{{p.may("groups:delete", ""), mayNot}, {g.exists, notThere}}
		if g.role != nil {
			checks = append(checks, check{p.mayPass(g.role.permissions, g.department), beyondOwn})
			p.compare(t, g.name+", without force", "DELETE /groups/"+g.id, "", first(groupHasRoles, checks...))
		}
		p.compare(t, g.name, "DELETE /groups/"+g.id+"?force=true", "", first(done(204, ""), checks...))
	}
}

var _ = specify("GroupsController_deleteGroup", removesForGood, func(t *testing.T, w *providerWorld) request {
	id, user := aGroup(t, w), aUser(t, w)
	w.join(t, id, user)
	w.assignToGroup(t, id, aRole(t, w), "")
	return request{id: id, line: "DELETE /groups/{id}?force=true", events: []string{"role.unassigned group {id} [roles]", "group.deleted group {id} []", "group.member_removed user " + user + " [groups]"}}
}, deleteGroupCells)

// gather adds the standing subjects to the first group, which has no role, and returns the group.
func (m *matrix) gather(t *testing.T, p *principal) *groupObject {
	t.Helper()
	g := m.standingGroups(t)[0]
	for _, s := range m.standingSubjects(t, p) {
		if s.exists && !p.speaksFor(s) {
			m.join(t, g.id, s.id)
		}
	}
	return g
}

func listGroupUsersCells(t *testing.T, m *matrix, p *principal) {
	gathered := m.gather(t, p)
	for _, g := range m.standingGroups(t) {
		listed := map[string][]string{} // the member names by user id
		for next, more := "", true; more; more = next != "" {
			a := p.compare(t, g.name, "GET /groups/"+g.id+"/users?limit=200"+next, "", first(done(200, "items nextCursor"),
				check{p.may("groups:read", "") && p.readsAnything(), mayNot}, check{g.exists, notThere}))
			for i, id := range a.texts("id") {
				listed[id] = a.members(fmt.Sprintf("/items/%d", i))
			}
			if next = a.text("/nextCursor"); next != "" {
				next = "&cursor=" + url.QueryEscape(next)
			}
		}
		if g != gathered {
			continue
		}
		for _, s := range m.standingSubjects(t, p) {
			var wanted []string
			if p.live && p.may("groups:read", "") && p.readsAnything() && s.exists && !p.speaksFor(s) && p.knowsDepartment(s.department) {
				wanted = sorted(strings.Fields(p.membersOf(s.department)))
			}
			if !slices.Equal(listed[s.id], wanted) {
				t.Errorf("%s: listed with %q, not %q", s.name, listed[s.id], wanted)
			}
		}
	}
}

var _ = specify("GroupsController_listGroupUsers", changesNothing, func(t *testing.T, w *providerWorld) request {
	id := aGroup(t, w)
	w.join(t, id, aUser(t, w))
	return request{id: id, line: "GET /groups/{id}/users"}
}, listGroupUsersCells)

func userGroupsCells(t *testing.T, m *matrix, p *principal) {
	g := m.gather(t, p)
	for _, s := range m.standingSubjects(t, p) {
		a := p.compare(t, s.name, "GET /users/"+s.id+"/groups", "", first(done(200, "items nextCursor"), check{p.is(s) || p.may("groups:read", ""), mayNot}, check{p.sees(s), notThere}))
		if a.status != http.StatusOK || p.speaksFor(s) {
			continue
		}
		if got := a.members("/items/0"); a.text("/items/0/group/id") != g.id || !slices.Equal(got, []string{"addedAt", "addedBy", "group"}) {
			t.Errorf("%s is in %s", s.name, a.body)
		}
	}
}

var _ = specify("UsersController_listUserGroups", changesNothing, func(t *testing.T, w *providerWorld) request {
	id := aUser(t, w)
	w.join(t, aGroup(t, w), id)
	return request{id: id, line: "GET /users/{id}/groups"}
}, userGroupsCells)

// changesMembership returns the checks of a request that adds the user to the group, or removes the user
// from it.
func (p *principal) changesMembership(g *groupObject, s *subject) []check {
	checks := []check{{p.mayAnywhere("groups:members"), mayNot}, {g.exists && p.sees(s), notThere}, {p.may("groups:members", s.department), mayNot}}
	if g.role != nil {
		checks = append(checks, check{p.may("roles:assign", s.department), mayNot}, check{p.mayPass(g.role.permissions, g.department), beyondOwn})
	}
	return checks
}

func addGroupUserCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		for _, g := range m.standingGroups(t) {
			line := "/groups/" + g.id + "/users/" + s.id
			wanted := first(done(204, ""), append(p.changesMembership(g, s),
				check{!p.speaksFor(s) || g.role == nil || p.has(p.holds, g.role.permissions, g.department), beyondOwn})...)
			p.compare(t, s.name+" and "+g.name, "PUT "+line, "", wanted)
			if p.live && p.speaksFor(s) && wanted.status == http.StatusNoContent {
				m.owner.do(t, "DELETE "+line, "").expect(t, 204)
			}
		}
	}
}

var _ = specify("GroupsController_addGroupUser", grantsAccess, func(t *testing.T, w *providerWorld) request {
	user := aUser(t, w)
	return request{id: aGroup(t, w), subject: user, line: "PUT /groups/{id}/users/" + user, events: []string{"group.member_added user {id} [groups]"}}
}, addGroupUserCells)

// memberOf returns the principal with the permissions that it has as a member of the group. If it has
// an API token, the token must have these permissions.
func (p *principal) memberOf(g *groupObject) *principal {
	joined := *p
	if g.role != nil {
		joined.holds = slices.Concat(p.holds, held(g.department, g.role.permissions...))
	}
	return &joined
}

func removeGroupUserCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		for _, g := range m.standingGroups(t) {
			line, who := "/groups/"+g.id+"/users/"+s.id, p
			if s.exists && g.exists {
				m.join(t, g.id, s.id)
				if p.speaksFor(s) {
					who = p.memberOf(g)
				}
			}
			wanted := first(done(204, ""), who.changesMembership(g, s)...)
			p.compare(t, s.name+" and "+g.name, "DELETE "+line, "", wanted)
			switch removed := p.live && wanted.status == http.StatusNoContent; {
			case removed:
				p.compare(t, s.name+" and "+g.name+", again", "DELETE "+line, "", notThere)
			case s.exists && g.exists:
				m.owner.do(t, "DELETE "+line, "").expect(t, 204)
			}
		}
	}
}

var _ = specify("GroupsController_removeGroupUser", removesForGood, func(t *testing.T, w *providerWorld) request {
	id, user := aGroup(t, w), aUser(t, w)
	w.join(t, id, user)
	return request{id: id, subject: user, line: "DELETE /groups/{id}/users/" + user, events: []string{"group.member_removed user {id} [groups]"}}
}, removeGroupUserCells)

func groupRolesCells(t *testing.T, m *matrix, p *principal) {
	for _, g := range m.standingGroups(t) {
		a := p.compare(t, g.name, "GET /groups/"+g.id+"/roles", "", first(done(200, "items nextCursor"), check{p.may("groups:read", ""), mayNot}, check{g.exists, notThere}))
		var wanted []string
		if g.role != nil {
			wanted = []string{g.role.id}
		}
		if a.status == http.StatusOK && !slices.Equal(a.texts("role/id"), wanted) {
			t.Errorf("%s has the roles %q, not %q", g.name, a.texts("role/id"), wanted)
		}
	}
}

var _ = specify("GroupsController_listGroupRoles", changesNothing, func(t *testing.T, w *providerWorld) request {
	id := aGroup(t, w)
	w.assignToGroup(t, id, aRole(t, w), within("Sales"))
	return request{id: id, line: "GET /groups/{id}/roles"}
}, groupRolesCells)

func assignGroupRoleCells(t *testing.T, m *matrix, p *principal) {
	groups, own := slices.Delete(slices.Clone(m.standingGroups(t)), 1, 4), &groupObject{name: "one's own group", exists: true}
	if p.isUser() {
		m.fresh++
		own.id = m.group(t, fmt.Sprintf("Own %d", m.fresh))
		m.join(t, own.id, p.id)
		groups = append(groups, own)
	}
	for _, g := range groups {
		for _, r := range m.roles {
			for _, department := range []string{"", "Sales"} {
				line := "/groups/" + g.id + "/roles/" + r.id
				wanted := first(done(201, everyAssignmentMember), check{p.may("roles:assign", ""), mayNot}, check{g.exists && r.exists, notThere},
					check{p.mayPass(r.permissions, department), beyondOwn}, check{!r.system, ownerNeedsUser}, check{g != own || p.has(p.holds, r.permissions, department), beyondOwn})
				p.compare(t, fmt.Sprintf("%s and %s in %q", g.name, r.name, department), "PUT "+line, reaching(department), wanted)
				if p.live && wanted.status == http.StatusCreated {
					m.owner.do(t, "DELETE "+line, "").expect(t, 204)
				}
			}
		}
	}
	if own.id != "" {
		m.owner.do(t, "DELETE /groups/"+own.id, "").expect(t, 204)
	}
}

var _ = specify("GroupsController_assignGroupRole", grantsAccess, func(t *testing.T, w *providerWorld) request {
	return request{id: aGroup(t, w), line: "PUT /groups/{id}/roles/" + aRole(t, w), body: within("Sales"), events: []string{"role.assigned group {id} [roles]"}}
}, assignGroupRoleCells)

func unassignGroupRoleCells(t *testing.T, m *matrix, p *principal) {
	for _, g := range slices.Delete(slices.Clone(m.standingGroups(t)), 1, 4) {
		for _, r := range m.passed() {
			line := "/groups/" + g.id + "/roles/" + r.id
			if g.exists && r.exists {
				m.assignToGroup(t, g.id, r.id, within("Ops"))
			}
			wanted := first(done(204, ""), check{p.may("roles:assign", ""), mayNot}, check{g.exists && r.exists, notThere}, check{p.mayPass(r.permissions, "Ops"), beyondOwn})
			p.compare(t, g.name+" and "+r.name, "DELETE "+line, "", wanted)
			switch removed := p.live && wanted.status == http.StatusNoContent; {
			case removed:
				p.compare(t, g.name+" and "+r.name+", again", "DELETE "+line, "", notThere)
			case g.exists && r.exists:
				m.owner.do(t, "DELETE "+line, "").expect(t, 204)
			}
		}
	}
}

var _ = specify("GroupsController_unassignGroupRole", removesForGood, func(t *testing.T, w *providerWorld) request {
	id, role := aGroup(t, w), aRole(t, w)
	w.assignToGroup(t, id, role, "")
	return request{id: id, line: "DELETE /groups/{id}/roles/" + role, events: []string{"role.unassigned group {id} [roles]"}}
}, unassignGroupRoleCells)

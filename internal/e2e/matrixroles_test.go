package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func userRolesCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.standingSubjects(t, p) {
		for _, at := range []string{"", "?at=" + now()} {
			p.compare(t, s.name, "GET /users/"+s.id+"/roles"+at, "", first(done(200, "items nextCursor"),
				check{p.is(s) || p.mayAnywhere("roles:read"), mayNot}, check{p.sees(s), notThere}, check{p.is(s) || p.may("roles:read", s.department), mayNot}))
		}
	}
}

var _ = specify("UsersController_listUserRoles", changesNothing, withObject(aUser, "GET /users/{id}/roles", ""), userRolesCells)

// everyAssignmentMember is the list of members of an assignment of a role.
const everyAssignmentMember = "role through reach expiresAt grantedBy grantedAt"

// passed returns the roles that requests of the matrix assign to users. System roles such as
// owner are left out, because they would change the principals.
func (m *matrix) passed() []*roleObject {
	return slices.DeleteFunc(slices.Clone(m.roles), func(r *roleObject) bool { return r.system })
}

func assignCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		for _, r := range m.passed() {
			wanted := first(done(201, everyAssignmentMember),
				check{p.mayAnywhere("roles:assign"), mayNot}, check{p.sees(s) && r.exists, notThere}, check{p.may("roles:assign", s.department), mayNot},
				check{p.mayPass(r.permissions, "Sales"), beyondOwn}, check{!p.speaksFor(s) || p.has(p.holds, r.permissions, "Sales"), beyondOwn})
			line := "/users/" + s.id + "/roles/" + r.id
			p.compare(t, s.name+" and "+r.name, "PUT "+line, within("Sales"), wanted)
			if wanted.status == http.StatusCreated && p.live {
				m.owner.do(t, "DELETE "+line, "").expect(t, 204)
			}
		}
	}
	inside := m.subjects(t, p)[0]
	p.compare(t, "the owner role", "PUT /users/"+inside.id+"/roles/"+m.roles[2].id, within("Sales"), first(done(201, everyAssignmentMember),
		check{p.mayAnywhere("roles:assign"), mayNot}, check{p.sees(inside), notThere}, check{p.may("roles:assign", inside.department), mayNot}, check{p.mayPass(m.roles[2].permissions, "Sales"), beyondOwn}))
}

var _ = specify("UsersController_assignRole", grantsAccess, func(t *testing.T, w *providerWorld) request {
	return request{id: aUser(t, w), line: "PUT /users/{id}/roles/" + aRole(t, w), body: within("Sales"), events: []string{"role.assigned user {id} [roles]"}}
}, assignCells)

func unassignCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range p.among(m.newSubjects(t)) {
		for _, r := range m.passed() {
			line := "/users/" + s.id + "/roles/" + r.id
			if s.exists && r.exists {
				m.owner.do(t, "PUT "+line, within("Ops")).expect(t, 201)
			}
			wanted := first(done(204, ""), check{p.mayAnywhere("roles:assign"), mayNot}, check{p.sees(s) && r.exists, notThere},
				check{p.may("roles:assign", s.department), mayNot}, check{p.mayPass(r.permissions, "Ops"), beyondOwn})
			p.compare(t, s.name+" and "+r.name, "DELETE "+line, "", wanted)
			if s.exists && r.exists && (wanted.status != http.StatusNoContent || !p.live) {
				m.owner.do(t, "DELETE "+line, "").expect(t, 204)
			}
		}
	}
}

var _ = specify("UsersController_unassignRole", removesForGood, func(t *testing.T, w *providerWorld) request {
	id, role := aUser(t, w), aRole(t, w)
	w.assign(t, id, role, "")
	return request{id: id, line: "DELETE /users/{id}/roles/" + role, events: []string{"role.unassigned user {id} [roles]"}}
}, unassignCells)

func listRolesCells(t *testing.T, m *matrix, p *principal) {
	a := p.compare(t, "roles", "GET /roles?limit=200", "", first(done(200, "items nextCursor"), check{p.mayAnywhere("roles:read"), mayNot}))
	if a.status != http.StatusOK {
		return
	}
	for _, r := range m.roles {
		if listed := slices.Contains(a.texts("id"), r.id); listed != r.exists {
			t.Errorf("%s: listed is %v", r.name, listed)
		}
	}
	for i := range a.list("/items") {
		if got := a.members(fmt.Sprintf("/items/%d", i)); !slices.Equal(got, sorted(strings.Fields(everyRoleMember))) {
			t.Errorf("a role has %q", got)
		}
	}
}

var _ = specify("RolesController_listRoles", changesNothing, withoutObject("GET /roles", ""), listRolesCells)

// readableRoleMembers returns the members of a role that the principal may read.
func (p *principal) readableRoleMembers() string {
	if p.mayAnywhere("roles:read") {
		return everyRoleMember
	}
	return "id"
}

func createRoleCells(t *testing.T, m *matrix, p *principal) {
	for _, r := range m.roles {
		if !r.exists {
			continue
		}
		m.fresh++
		p.compare(t, r.name, "POST /roles", roleBody(fmt.Sprintf("Made %d", m.fresh), r.permissions, nil), first(done(201, p.readableRoleMembers()),
			check{p.mayAnywhere("roles:create"), mayNot}, check{p.mayPass(r.permissions, ""), beyondOwn}))
		m.fresh++
		p.compare(t, "grants of "+r.name, "POST /roles", roleBody(fmt.Sprintf("Made %d", m.fresh), nil, r.permissions), first(done(201, p.readableRoleMembers()),
			check{p.mayAnywhere("roles:create"), mayNot}, check{p.mayPass(r.permissions, ""), beyondOwn}))
	}
}

var _ = specify("RolesController_createRole", grantsAccess, func(*testing.T, *providerWorld) request {
	return request{line: "POST /roles", body: roleBody("Invoice reader "+newKey(), []string{"shop/invoices:read"}, nil), events: []string{"role.created role {id} []"}}
}, createRoleCells)

func getRoleCells(t *testing.T, m *matrix, p *principal) {
	for _, r := range m.roles {
		p.compare(t, r.name, "GET /roles/"+r.id, "", first(done(200, everyRoleMember), check{p.mayAnywhere("roles:read"), mayNot}, check{r.exists, notThere}))
	}
}

var _ = specify("RolesController_getRole", changesNothing, withObject(aRole, "GET /roles/{id}", ""), getRoleCells)

func updateRoleCells(t *testing.T, m *matrix, p *principal) {
	for _, r := range m.roles {
		m.fresh++
		p.compare(t, r.name, "PATCH /roles/"+r.id, fmt.Sprintf(`{"description":"Changed %d"}`, m.fresh), first(done(200, p.readableRoleMembers()),
			check{p.mayAnywhere("roles:update"), mayNot}, check{r.exists, notThere}, check{p.mayPass(r.permissions, ""), beyondOwn}, check{!r.system, systemRole}))
	}
}

var _ = specify("RolesController_updateRole", grantsAccess, withObject(aRole, "PATCH /roles/{id}", `{"description":"Reads names"}`, "role.updated role {id} [description]"), updateRoleCells)

func deleteRoleCells(t *testing.T, m *matrix, p *principal) {
	for _, r := range m.roles {
		id := r.id
		if r.exists && !r.system {
			m.fresh++
			id = m.role(t, fmt.Sprintf("To delete %d", m.fresh), r.permissions...)
		}
		p.compare(t, r.name, "DELETE /roles/"+id, "", first(done(204, ""),
			check{p.mayAnywhere("roles:delete"), mayNot}, check{r.exists, notThere}, check{p.mayPass(r.permissions, ""), beyondOwn}, check{!r.system, systemRole}))
	}
}

var _ = specify("RolesController_deleteRole", removesForGood, withObject(aRole, "DELETE /roles/{id}", "", "role.deleted role {id} []"), deleteRoleCells)

func roleUsersCells(t *testing.T, m *matrix, p *principal) {
	for _, r := range m.roles {
		p.compare(t, r.name, "GET /roles/"+r.id+"/users", "", first(done(200, "items nextCursor"),
			check{p.mayAnywhere("roles:read") && p.readsAnything(), mayNot}, check{r.exists, notThere}))
		if r.exists { // a deleted role can have past holders
			p.compare(t, r.name+" at a time", "GET /roles/"+r.id+"/users?at="+now(), "", first(done(200, "items nextCursor"), check{p.mayAnywhere("roles:read") && p.readsAnything(), mayNot}))
		}
	}
}

var _ = specify("RolesController_listRoleUsers", changesNothing, withObject(aRole, "GET /roles/{id}/users", ""), roleUsersCells)

func accessCells(t *testing.T, m *matrix, p *principal) {
	subjects := m.subjects(t, p)
	for _, s := range subjects[:3] {
		m.assign(t, s.id, m.roles[0].id, within("Sales"))
	}
	account := m.account(t, fmt.Sprintf("Holder %d", m.fresh))
	m.owner.do(t, "PUT /service-accounts/"+account+"/roles/"+m.roles[0].id, "").expect(t, 201)
	const line = "GET /access?permission=users.email:read&department=sales&limit=200"
	listed, accounts := map[string]string{}, ""
	for next, more := "", true; more; more = next != "" {
		a := p.compare(t, "access", line+next, "", first(done(200, "items nextCursor"), check{p.mayAnywhere("roles:read") && p.readsAnything(), mayNot}))
		for i := range a.list("/items") {
			at := fmt.Sprintf("/items/%d", i)
			if id := a.text(at + "/user/id"); id != "" {
				listed[id] = strings.Join(a.members(at+"/user"), " ") + "; " + a.text(at+"/grants/0/permissions/0")
			} else {
				accounts += a.text(at + "/serviceAccount/id")
			}
		}
		if next = a.text("/nextCursor"); next != "" {
			next = "&cursor=" + url.QueryEscape(next)
		}
	}
	for _, s := range subjects[:4] {
		wanted, by := "", "users.email:read"
		if len(s.holds) > 0 {
			by = "*:*"
		}
		if p.live && p.readsAnything() && p.may("roles:read", s.department) && p.knowsDepartment(s.department) {
			wanted = strings.Join(sorted(strings.Fields(p.membersOf(s.department))), " ") + "; " + by
		}
		if listed[s.id] != wanted {
			t.Errorf("%s: listed with %q, not %q", s.name, listed[s.id], wanted)
		}
	}
	if got, wanted := strings.Contains(accounts, account), p.live && p.mayAnywhere("roles:read") && p.readsAnything() && p.may("service-accounts:read", ""); got != wanted {
		t.Errorf("the service account: listed is %v", got)
	}
}

var _ = specify("AccessController_listAccess", changesNothing, withoutObject("GET /access?permission=users:read", ""), accessCells)

func sessionCells(t *testing.T, _ *matrix, p *principal) {
	a := p.compare(t, "session", "GET /auths/session", "", done(200, "tenant principal user roles groups permissions scopedPermissions permissionsExpireAt session"))
	oneself := everyMember
	if p.program && p.holder == nil {
		oneself = "id name"
	}
	if a.status == http.StatusOK && (!slices.Equal(a.members("/user"), sorted(strings.Fields(oneself))) || (a.value("/session") == nil) != p.program) {
		t.Errorf("one sees %q of oneself, and the session %v", a.members("/user"), a.value("/session"))
	}
	if got := len(a.list("/scopedPermissions")) > 0; got != slices.ContainsFunc(p.holds, func(h holding) bool { return h.department != "" }) {
		t.Errorf("scoped permissions: %v", got)
	}
}

var _ = specify("AuthsController_getSession", changesNothing, withoutObject("GET /auths/session", ""), sessionCells)

func loginCells(t *testing.T, m *matrix, p *principal) {
	if p.live && !p.program {
		a := m.anonymous().do(t, "POST /auths/login", credentials(p.email, password)).expect(t, 200)
		if !slices.Equal(a.members("/user"), sorted(strings.Fields(everyMember))) {
			t.Errorf("one sees %q of oneself", a.members("/user"))
		}
	}
	m.fresh++
	p.with("").do(t, "POST /auths/login", credentials(address(fmt.Sprintf("nobody-%d", m.fresh)), password)).refused(t, 401, "wrong-credentials")
}

var _ = specify("AuthsController_login", provesItself, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	return request{as: w.anonymous(), id: c.id, line: "POST /auths/login", body: credentials(c.email, password), events: []string{"session.started user {id} []"}}
}, loginCells)

// ofNoScope returns the principal for a public operation, which does not read the operator key.
func (p *principal) ofNoScope() *principal {
	who := *p
	who.scope = ""
	return &who
}

func refreshCells(t *testing.T, _ *matrix, p *principal) {
	members := "user session"
	if p.sendsSession() {
		members += " expiresAt token"
	}
	a := p.ofNoScope().compare(t, "refresh", "POST /auths/refresh", "", first(done(200, members), check{!p.program, mustSignIn}))
	if p.sendsSession() {
		p.bearer = a.text("/token")
	}
}

var _ = specify("AuthsController_refresh", changesNothing, func(t *testing.T, w *providerWorld) request {
	return request{as: w.member(t, newKey(), ""), line: "POST /auths/refresh"}
}, refreshCells)

func logoutCells(t *testing.T, m *matrix, p *principal) {
	m.signsOut(t, p, "POST /auths/logout", "", 204)
}

var _ = specify("AuthsController_logout", endsAccess, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	return request{as: c, id: c.id, line: "POST /auths/logout", events: []string{"session.ended user {id} []"}}
}, logoutCells)

func signOutOIDCCells(t *testing.T, m *matrix, p *principal) {
	m.signsOut(t, p, "POST /auths/oidc/sign-out", `{"returnTo":`+quoted(m.returnTo())+`}`, 200)
}

var _ = specify("AuthsController_signOutOidc", endsAccess, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	return request{as: c, id: c.id, line: "POST /auths/oidc/sign-out", body: `{"returnTo":` + quoted(w.returnTo()) + `}`, events: []string{"session.ended user {id} []"}}
}, signOutOIDCCells)

func (m *matrix) signsOut(t *testing.T, p *principal, line, body string, status int) {
	t.Helper()
	if p.program {
		p.do(t, line, body).expect(t, status)
		p.compare(t, "signing out ends no key", "GET /auths/check?permission=users:read", "", done(204, ""))
		return
	}
	gone := p.caller
	if p.live {
		gone = m.signIn(t, p.email)
	}
	gone.do(t, line, body).expect(t, status)
	gone.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	m.foreign.owner.do(t, "GET /auths/session", "").expect(t, 200)
}

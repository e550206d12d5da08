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

// roleObject is a role that the requests of the matrix name.
type roleObject struct {
	name        string
	id          string
	exists      bool
	system      bool
	permissions []string
}

// matrix is a tenant with the principals that send requests, and the objects that the requests
// name.
type matrix struct {
	*world
	foreign    *world
	principals []*principal
	roles      []*roleObject
	groups     []*groupObject // of standingGroups, or nil
	fresh      int
	standing   []*subject         // for requests that change nothing
	refused    []*subject         // for principals whose requests are all refused
	ofHooks    []*subject         // the service accounts of webhooks
	hooks      []hook             // of eachHook, or nil
	ofRefused  []*subject         // service accounts for principals whose requests are all refused
	last       []func(*testing.T) // requests that remove a principal; they run at the end
}

// spec is what the tests of all operations expect of an operation. It is written independently of the program's own
// declarations, to check them.
type spec struct {
	effect  string                                // on access
	prepare preparation                           // of one request that succeeds
	send    func(*testing.T, *matrix, *principal) // sends requests as one principal, and compares the responses with the rules in oracle_test.go
}

// specs has the spec of each operation, by its id.
var specs = map[string]spec{}

// specify adds the spec of an operation. It stands next to the function that sends the requests.
func specify(operation, effect string, prepare preparation, send func(*testing.T, *matrix, *principal)) struct{} {
	if specs[operation].send != nil {
		panic(operation + " has two specs")
	}
	specs[operation] = spec{effect, prepare, send}
	return struct{}{}
}

// sampled is the sampling rate of the matrix. On PostgreSQL and Citus, only one of eight pairs of an
// operation and a principal is tested, because authorization does not depend on the store.
const sampled = 8

// testMatrix sends every operation as every principal. On PostgreSQL and Citus, it sends only a sample.
// Each operation and each principal is in the sample.
func testMatrix(t *testing.T, p *program) {
	m := newMatrix(t, p)
	whole := !strings.HasPrefix(p.Database, "postgres:")
	for i, op := range p.document.operations {
		send := specs[op.id].send
		if send == nil {
			t.Errorf("%s has no spec: call specify next to the function that sends its requests", op.id)
			continue
		}
		for j, who := range m.principals {
			if !whole && (i+j)%sampled != 0 {
				continue
			}
			t.Run(op.id+" by "+who.name, func(t *testing.T) { send(t, m, who) })
		}
	}
	for _, leave := range m.last {
		leave(t)
	}
}

// administrates are the permissions of the built-in role administrator.
var administrates = []string{"users:read", "users:create", "users:update", "users:delete", "users:suspend", "users:invite", "users:restore", "users:erase", "users:reset-factors", "roles:read", "roles:create", "roles:update", "roles:delete", "roles:assign", "sessions:read", "sessions:revoke", "events:read", "changes:read", "webhooks:read", "webhooks:create", "webhooks:update", "webhooks:delete", "connections:read", "identities:read", "identities:delete", "tenant:read",
	"groups:read", "groups:create", "groups:update", "groups:delete", "groups:members", "service-accounts:read", "service-accounts:create", "service-accounts:update", "service-accounts:delete"}

func newMatrix(t *testing.T, p *program) *matrix {
	m := &matrix{world: newWorld(t, p), foreign: newWorld(t, p)}
	everywhere := func(permissions ...string) []holding { return held("", permissions...) }

	expired := m.member(t, "expired", "Sales")
	soon := endSoon(t, func(end string) *answer {
		return m.owner.do(t, "PUT /users/"+expired.id+"/roles/"+m.builtIn(t, "administrator"), `{"expiresAt":`+quoted(end)+`}`)
	})

	owner, administrator, viewer := m.member(t, "owner-2", ""), m.member(t, "administrator", "Sales"), m.member(t, "viewer", "Ops")
	m.assign(t, owner.id, m.builtIn(t, "owner"), "")
	m.assign(t, administrator.id, m.builtIn(t, "administrator"), "")
	m.assign(t, viewer.id, m.builtIn(t, "viewer"), "")
	manages := []string{"users:read", "users:create", "users:update", "users:delete", "users:suspend", "users:invite", "roles:read", "roles:assign", "roles:create", "groups:members", "sessions:read", "events:read", "changes:read"}
	m.principals = []*principal{
		{caller: owner, name: "an owner", holds: everywhere("*:*", "*/*:*"), live: true},
		{caller: administrator, name: "an administrator", department: "Sales", holds: everywhere(administrates...), grants: everywhere(append(administrates, "*/*:*")...), live: true},
		{caller: viewer.byHeader(t), name: "a viewer with the session in a header", department: "Ops", holds: everywhere("users:read", "roles:read"), live: true},
		{caller: m.holder(t, "emails", "", "", "users.email:read"), name: "a reader of addresses", holds: everywhere("users.email:read"), live: true},
		{caller: m.holder(t, "renames", "Sales", "", "users.name:update"), name: "a changer of names", department: "Sales", holds: everywhere("users.name:update"), live: true},
		{caller: m.holder(t, "manager", "Board", "Sales", manages...), name: "a manager of Sales", department: "Board", holds: held("Sales", manages...), live: true},
		{caller: m.holder(t, "auditor", "", "", "events:read", "changes:read", "users.name:read", "tenant:read"), name: "an auditor", holds: everywhere("events:read", "changes:read", "users.name:read", "tenant:read"), live: true},
		{caller: m.member(t, "nobody", "Sales"), name: "somebody without a role", department: "Sales", live: true},
		{caller: expired, name: "somebody whose role has ended", department: "Sales", live: true},
		{caller: m.operator(t), name: "an operator", holds: everywhere("*:*", "*/*:*"), live: true, program: true, operates: []string{m.name}},
		{caller: p.operator.of(m.world), name: "an operator of all tenants", holds: everywhere("*:*", "*/*:*"), live: true, program: true, operates: everyTenant},
		{caller: p.operatorKey(t, "--scope", "tenants").of(m.world), name: "an operator for tenants", program: true, operates: everyTenant, scope: "tenants"},
		{caller: p.operatorKey(t, "--scope", "changes").of(m.world), name: "an operator for changes", program: true, operates: everyTenant, scope: "changes"},
		{caller: p.operatorKey(t, "--scope", "lookup").of(m.world), name: "an operator for lookups", program: true, operates: everyTenant, scope: "lookup"},
		m.machine(t),
		m.delegate(t, everywhere(administrates...)),
		m.revokedToken(t),
		{caller: m.foreign.operator(t).in(m.name), name: "an operator of another tenant", program: true, operates: []string{m.foreign.name}},
		{caller: m.foreign.owner.in(m.name), name: "another tenant's owner"},
		{caller: m.anonymous(), name: "no session"},
	}
	m.principals = append(m.principals, m.unconfirmed(t)...)
	deleted := m.role(t, "Deleted role")
	m.owner.do(t, "DELETE /roles/"+deleted, "").expect(t, 204)
	m.roles = []*roleObject{
		{name: "a role", id: m.role(t, "Reads addresses", "users.email:read"), exists: true, permissions: []string{"users.email:read"}},
		{name: "an application's role", id: m.role(t, "Shop", "shop/a:b"), exists: true, permissions: []string{"shop/a:b"}},
		{name: "the owner role", id: m.builtIn(t, "owner"), exists: true, system: true, permissions: []string{"*:*", "*/*:*"}},
		{name: "another tenant's role", id: m.foreign.role(t, "Foreign")},
		{name: "a deleted role", id: deleted},
		{name: "a role that never was", id: never},
	}
	patience.Poll(func() bool { return time.Now().After(soon) })
	return m
}

func held(department string, permissions ...string) []holding {
	var all []holding
	for _, permission := range permissions {
		all = append(all, holding{permission, department})
	}
	return all
}

// subjects returns the users that the requests of one principal to one operation name. The users are
// new in each call, because requests may change them, except for a principal whose requests are all
// refused.
func (m *matrix) subjects(t *testing.T, p *principal) []*subject {
	t.Helper()
	m.fresh++ // also numbers what the cells create
	if p.live {
		return p.among(m.newSubjects(t))
	}
	if m.refused == nil {
		m.refused = m.newSubjects(t)
	}
	return m.refused
}

// standingSubjects is like subjects, for requests that change nothing. The users are always the same.
func (m *matrix) standingSubjects(t *testing.T, p *principal) []*subject {
	t.Helper()
	if m.standing == nil {
		m.standing = m.newSubjects(t)
	}
	return p.among(m.standing)
}

func (m *matrix) newSubjects(t *testing.T) []*subject {
	t.Helper()
	m.fresh++
	name := func(what string) string { return fmt.Sprintf("%s-%d", what, m.fresh) }
	owner := m.user(t, name("boss"), "Sales")
	m.assign(t, owner, m.roles[2].id, "")
	deleted := m.user(t, name("deleted"), "Sales")
	m.owner.do(t, "DELETE /users/"+deleted, "").expect(t, 204)
	return []*subject{
		{name: "a user of Sales", id: m.user(t, name("inside"), "Sales"), department: "Sales", exists: true},
		{name: "a user of Ops", id: m.user(t, name("outside"), "Ops"), department: "Ops", exists: true},
		{name: "a user of no department", id: m.user(t, name("none"), ""), exists: true},
		{name: "an owner", id: owner, department: "Sales", exists: true, holds: held("", "*:*", "*/*:*")},
		{name: "another tenant's user", id: m.foreign.owner.id},
		{name: "a deleted user", id: deleted, department: "Sales", deleted: true},
		{name: "a user who never was", id: never},
	}
}

// among returns the subjects, and the principal itself if it is a user or acts for one.
func (p *principal) among(subjects []*subject) []*subject {
	if p.live && (!p.program || p.holder != nil) {
		return append(subjects[:len(subjects):len(subjects)], p.self())
	}
	return subjects
}

func (p *principal) self() *subject {
	s := &subject{name: "oneself", id: p.id, department: p.department, exists: true, holds: p.holds}
	if p.holder != nil {
		s.name, s.holds = "one's holder", p.holder
	}
	return s
}

// compare sends a request and compares the response with the expectation wanted. If the
// principal's credentials are not valid in the tenant, compare expects 401 instead, or 403 for an
// operator key that lacks the scope.
func (p *principal) compare(t *testing.T, what, line, body string, wanted expectation, header ...string) *answer {
	t.Helper()
	if !p.live {
		wanted = first(mustSignIn, check{p.scope == "", outOfScope})
	}
	a := p.do(t, line, body, header...)
	switch {
	case a.status != wanted.status || wanted.code != "" && a.text("/code") != wanted.code:
		t.Errorf("%s on %s: answered %d %s, not %d %s", line, what, a.status, a.text("/code"), wanted.status, wanted.code)
	case wanted.members != "" && !slices.Equal(a.members(""), sorted(strings.Fields(wanted.members))):
		t.Errorf("%s on %s: the members are %q, not %q", line, what, a.members(""), wanted.members)
	case a.status == http.StatusNoContent && len(a.body) > 0:
		t.Errorf("%s on %s: 204 with %s", line, what, a.body)
	}
	return a
}

func listUsersCells(t *testing.T, m *matrix, p *principal) {
	subjects := m.standingSubjects(t, p)
	listed := map[string][]string{} // the member names by user id
	for next, more := "", true; more; more = next != "" {
		a := p.compare(t, "users", "GET /users?limit=200"+next, "", first(done(200, "items nextCursor"), check{p.readsAnything(), mayNot}))
		for i, id := range a.texts("id") {
			listed[id] = a.members(fmt.Sprintf("/items/%d", i))
		}
		if next = a.text("/nextCursor"); next != "" {
			next = "&cursor=" + url.QueryEscape(next)
		}
	}
	var gone []string
	if a := p.compare(t, "deleted users", "GET /users?status=deleted&limit=200", "", first(done(200, "items nextCursor"), check{p.readsAnything(), mayNot}, check{p.mayAnywhere("users:restore"), mayNot})); a.status == http.StatusOK {
		gone = p.readAll(t, "/users?status=deleted&limit=200")
	}
	for _, s := range subjects {
		if listed := slices.Contains(gone, s.id); listed != (p.live && p.readsAnything() && s.deleted && p.may("users:restore", s.department)) {
			t.Errorf("%s: among the deleted is %v", s.name, listed)
		}
		var wanted []string
		if p.live && p.readsAnything() && s.exists && p.knowsDepartment(s.department) {
			wanted = sorted(strings.Fields(p.membersOf(s.department)))
		}
		if !slices.Equal(listed[s.id], wanted) {
			t.Errorf("%s: listed with %q, not %q", s.name, listed[s.id], wanted)
		}
	}
}

var _ = specify("UsersController_listUsers", changesNothing, withoutObject("GET /users?limit=2", ""), listUsersCells)

func createUserCells(t *testing.T, m *matrix, p *principal) {
	for _, department := range []string{"Sales", "Ops", ""} {
		m.fresh++
		body := fmt.Sprintf(`{"email":"made-%d@canary.example","name":"Made"}`, m.fresh)
		if department != "" {
			body = strings.TrimSuffix(body, "}") + `,"department":` + quoted(department) + "}"
		}
		p.compare(t, "department "+department, "POST /users", body, first(done(201, p.membersOf(department)),
			check{p.mayAnywhere("users:create"), mayNot}, check{p.may("users:create", department), outsideReach}))
	}
}

var _ = specify("UsersController_createUser", changesNothing, func(*testing.T, *providerWorld) request {
	return request{line: "POST /users", body: `{"email":` + quoted(address(newKey())) + `,"name":"Eve Adams","department":"Sales"}`, events: []string{"user.created user {id} []"}}
}, createUserCells) // a new user holds no role

func getUserCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.standingSubjects(t, p) {
		p.compare(t, s.name, "GET /users/"+s.id, "", first(done(200, p.readableMembers(s)), check{p.speaksFor(s) || p.seesSomeUser(), mayNot}, check{p.sees(s), notThere}))
	}
}

var _ = specify("UsersController_getUser", changesNothing, withObject(aUser, "GET /users/{id}", ""), getUserCells)

func updateUserCells(t *testing.T, m *matrix, p *principal) {
	changesAnything := slices.ContainsFunc(changeable, func(member string) bool { return p.mayAnywhere("users." + member + ":update") })
	for _, s := range m.subjects(t, p) {
		changes := func(member string) []check { // a missing permission is reported before visibility is checked
			mine := member == "name" && p.is(s)
			return []check{
				{p.is(s) || changesAnything, mayNot}, {mine || p.mayAnywhere("users."+member+":update"), mayNot},
				{p.sees(s), notThere}, {mine || p.may("users."+member+":update", s.department), mayNot},
			}
		}
		m.fresh++
		p.compare(t, s.name, "PATCH /users/"+s.id, fmt.Sprintf(`{"name":"Renamed %d"}`, m.fresh),
			first(done(200, p.readableMembers(s)), changes("name")...))
		p.compare(t, s.name, "PATCH /users/"+s.id, fmt.Sprintf(`{"metadata":{"k":"%d"}}`, m.fresh),
			first(done(200, p.readableMembers(s)), changes("metadata")...))
		if !p.is(s) {
			p.compare(t, s.name, "PATCH /users/"+s.id, `{"department":"Ops"}`, first(done(200, p.membersOf("Ops")),
				append(changes("department"), check{p.may("users.department:update", "Ops"), outsideReach})...))
		}
	}
}

var _ = specify("UsersController_updateUser", changesNothing, withObject(aUser, "PATCH /users/{id}", `{"name":"Renamed","department":"Ops"}`, "user.updated user {id} [name department]"), updateUserCells)

// protective returns the expected response to a request that removes access from a user.
// success is expected if the principal is authorized.
func (p *principal) protective(s *subject, permission string, success expectation) expectation {
	return first(success, check{p.mayAnywhere(permission), mayNot}, check{p.sees(s), notThere}, check{p.may(permission, s.department), mayNot}, check{!p.isBelow(s), beyondOwn})
}

func deleteUserCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		wanted := p.protective(s, "users:delete", done(204, ""))
		if p.is(s) && wanted.status == http.StatusNoContent {
			m.last = append(m.last, func(t *testing.T) { p.compare(t, s.name, "DELETE /users/"+s.id, "", wanted) })
			continue
		}
		p.compare(t, s.name, "DELETE /users/"+s.id, "", wanted)
	}
}

var _ = specify("UsersController_deleteUser", removesForGood, withObject(aUser, "DELETE /users/{id}", "", "user.deleted user {id} []"), deleteUserCells)

func suspendUserCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		wanted := p.protective(s, "users:suspend", done(200, p.readableMembers(s)))
		p.compare(t, s.name, "POST /users/"+s.id+"/suspend", "", wanted)
		if p.is(s) && p.live && wanted.status == http.StatusOK {
			m.owner.do(t, "POST /users/"+s.id+"/resume", "").expect(t, 200)
			p.signInAgain(t)
		}
	}
}

var _ = specify("UsersController_suspendUser", endsAccess, withObject(aMember, "POST /users/{id}/suspend", `{"reason":"leave"}`, "user.suspended user {id} [status]", "session.ended user {id} []"), suspendUserCells)

func resumeUserCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		if s.exists && !p.speaksFor(s) {
			m.owner.do(t, "POST /users/"+s.id+"/suspend", "").expect(t, 200)
		}
		p.compare(t, s.name, "POST /users/"+s.id+"/resume", "", p.protective(s, "users:suspend", first(done(200, p.readableMembers(s)), check{p.mayTakeOver(s), beyondOwn})))
	}
}

var _ = specify("UsersController_resumeUser", grantsAccess, withObject(aSuspendedUser, "POST /users/{id}/resume", "", "user.resumed user {id} [status]"), resumeUserCells)

func eraseUserCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		wanted := p.protective(s, "users:erase", done(204, ""))
		if s.deleted {
			wanted = first(done(204, ""), check{p.mayAnywhere("users:erase"), mayNot}, check{p.may("users:erase", s.department), notThere})
		}
		if p.is(s) && wanted.status == http.StatusNoContent {
			continue // users may delete themselves
		}
		p.compare(t, s.name, "POST /users/"+s.id+"/erase", "", wanted)
	}
}

var _ = specify("UsersController_eraseUser", removesForGood, withObject(aUser, "POST /users/{id}/erase", `{"reason":"asked for"}`, "user.erased user {id} []"), eraseUserCells)

func restoreUserCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		members := "user"
		if p.may("roles:read", s.department) {
			members += " rolesNotRestored"
		}
		if p.may("groups:read", "") {
			members += " groupsNotRestored"
		}
		a := p.compare(t, s.name, "POST /users/"+s.id+"/restore", "", first(done(200, members),
			check{p.mayAnywhere("users:restore"), mayNot}, check{s.deleted && p.may("users:restore", s.department), notThere}))
		if a.status == http.StatusOK && !slices.Equal(a.members("/user"), sorted(strings.Fields(p.membersOf(s.department)))) {
			t.Errorf("%s: came back with %q", s.name, a.members("/user"))
		}
	}
}

var _ = specify("UsersController_restoreUser", grantsAccess, withObject(aDeletedUser, "POST /users/{id}/restore", "", "user.restored user {id} []"), restoreUserCells)

func overviewCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.standingSubjects(t, p) {
		members := "user allowedActions"
		if p.is(s) || p.may("roles:read", s.department) {
			members += " assignments assignmentCount expiredAssignments permissions hasMorePermissions"
		}
		if p.speaksFor(s) || p.may("users.status:read", s.department) {
			members += " signIn invitation"
		}
		if p.is(s) || p.may("sessions:read", s.department) {
			members += " sessions tokens"
		}
		if p.is(s) || p.may("users:reset-factors", s.department) {
			members += " factors"
		}
		if p.is(s) || p.may("events:read", s.department) {
			members += " recentEvents"
		}
		a := p.compare(t, s.name, "GET /users/"+s.id+"/overview", "", first(done(200, members), check{p.speaksFor(s) || p.seesSomeUser(), mayNot}, check{p.sees(s), notThere}))
		if a.status == http.StatusOK && !slices.Equal(a.members("/user"), sorted(strings.Fields(p.readableMembers(s)))) {
			t.Errorf("%s: the overview shows %q", s.name, a.members("/user"))
		}
	}
}

var _ = specify("UsersController_getUserOverview", changesNothing, withObject(aUser, "GET /users/{id}/overview", ""), overviewCells)

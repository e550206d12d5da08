package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// makeToken creates an API token with the permissions and returns a caller with it. The token
// belongs to the service account, or to c if account is empty.
func (c *caller) makeToken(t testing.TB, account string, permissions ...string) *caller {
	t.Helper()
	path := "/users/" + c.id
	if account != "" {
		path = "/service-accounts/" + account
	}
	a := c.do(t, "POST "+path+"/tokens", tokenBody("Token "+newKey(), permissions...)).expect(t, 201)
	c.world.program.secret(a.text("/token"))
	holder := account
	if account == "" {
		holder = c.id
	}
	return &caller{world: c.world, tenant: c.tenant, bearer: a.text("/token"), bearerID: a.text("/id"), id: holder, email: c.email}
}

// account creates a service account and returns its id. If permissions are given, the account
// gets a tenant-wide role with them.
func (w *world) account(t testing.TB, name string, permissions ...string) string {
	t.Helper()
	id := w.owner.do(t, "POST /service-accounts", `{"name":`+quoted(name)+`}`).expect(t, 201).text("/id")
	if len(permissions) > 0 {
		w.owner.do(t, "PUT /service-accounts/"+id+"/roles/"+w.role(t, "Role of "+name, permissions...), "").expect(t, 201)
	}
	return id
}

// accounts returns the service accounts that the requests of one principal to one operation name. They
// are new in each call, except for a principal whose requests are all refused.
func (m *matrix) accounts(t *testing.T, p *principal) []*subject {
	t.Helper()
	m.fresh++ // also numbers what the cells create
	if p.live {
		return m.newAccounts(t)
	}
	if m.ofRefused == nil {
		m.ofRefused = m.newAccounts(t)
	}
	return m.ofRefused
}

func (m *matrix) newAccounts(t *testing.T) []*subject {
	t.Helper()
	m.fresh++
	name := func(what string) string { return fmt.Sprintf("%s %d", what, m.fresh) }
	owner, deleted := m.account(t, name("Owning")), m.account(t, name("Deleted"))
	m.owner.do(t, "PUT /service-accounts/"+owner+"/roles/"+m.roles[2].id, "").expect(t, 201)
	m.owner.do(t, "DELETE /service-accounts/"+deleted, "").expect(t, 204)
	return []*subject{
		{name: "a service account", id: m.account(t, name("Import"), "users.email:read"), exists: true, holds: held("", "users.email:read")},
		{name: "a service account that owns", id: owner, exists: true, holds: held("", "*:*", "*/*:*")},
		{name: "another tenant's service account", id: m.foreign.account(t, name("Foreign"))},
		{name: "a deleted service account", id: deleted},
		{name: "a service account that never was", id: never},
	}
}

// machine returns a principal for the token of a service account. The token has fewer
// permissions than the account.
func (m *matrix) machine(t *testing.T) *principal {
	t.Helper()
	account := m.account(t, "Robot", "users:*", "roles:*", "groups:*", "service-accounts:*", "sessions:*", "events:read", "changes:read", "webhooks:*", "shop/*:*")
	permissions := []string{"users:read", "users:create", "users:delete", "users:invite", "users:issue-links", "roles:read", "roles:create", "roles:assign", "groups:read", "groups:create", "groups:members", "sessions:revoke", "events:read", "changes:read", "webhooks:read", "webhooks:create", "webhooks:update",
		"service-accounts:read", "service-accounts:create", "service-accounts:update", "service-accounts:delete", "shop/a:b"}
	return &principal{caller: m.owner.makeToken(t, account, permissions...), name: "a service account with a token", holds: held("", permissions...), live: true, program: true, byToken: true}
}

// delegate returns a principal for the API token of an administrator. The token has fewer
// permissions than the administrator.
func (m *matrix) delegate(t *testing.T, administrates []holding) *principal {
	t.Helper()
	administrator := m.member(t, "delegating", "Sales")
	m.assign(t, administrator.id, m.builtIn(t, "administrator"), "")
	permissions := []string{"users:read", "users.name:update", "users:invite", "roles:read", "roles:assign", "roles:update", "groups:read", "groups:members", "service-accounts:update"}
	return &principal{
		caller: administrator.makeToken(t, "", append(permissions, "*/*:*")...), name: "a token of an administrator with fewer permissions", department: "Sales",
		holds: held("", permissions...), grants: held("", append(permissions, "*/*:*")...), live: true, program: true, byToken: true, holder: administrates,
	}
}

// revokedToken returns a principal for a revoked token of a service account that still exists.
func (m *matrix) revokedToken(t *testing.T) *principal {
	t.Helper()
	account := m.account(t, "Discharged", "*:*")
	c := m.owner.makeToken(t, account, "*:*")
	c.do(t, "GET /users", "").expect(t, 200)
	m.owner.do(t, "DELETE /service-accounts/"+account+"/tokens/"+c.bearerID, "").expect(t, 204)
	return &principal{caller: c, name: "a revoked token", program: true, byToken: true}
}

const everyAccountMember = "id name description status createdAt updatedAt"

// readableAccountMembers returns the members of a service account that the principal may read.
func (p *principal) readableAccountMembers() string {
	if p.may("service-accounts:read", "") {
		return everyAccountMember
	}
	return "id"
}

func listAccountsCells(t *testing.T, m *matrix, p *principal) {
	accounts := m.accounts(t, p)
	listed := map[string]bool{}
	for next, more := "", true; more; more = next != "" {
		a := p.compare(t, "service accounts", "GET /service-accounts?sort=-createdAt&limit=200"+next, "", first(done(200, "items nextCursor"), check{p.may("service-accounts:read", ""), mayNot}))
		for i, id := range a.texts("id") {
			if listed[id] = true; !slices.Equal(a.members(fmt.Sprintf("/items/%d", i)), sorted(strings.Fields(everyAccountMember))) {
				t.Errorf("a service account has %q", a.members(fmt.Sprintf("/items/%d", i)))
			}
		}
		if next = a.text("/nextCursor"); next != "" {
			next = "&cursor=" + next
		}
	}
	for _, s := range accounts {
		if wanted := s.exists && p.live && p.may("service-accounts:read", ""); listed[s.id] != wanted {
			t.Errorf("%s: listed is %v", s.name, listed[s.id])
		}
	}
}

var _ = specify("ServiceAccountsController_listServiceAccounts", changesNothing, withoutObject("GET /service-accounts", ""), listAccountsCells)

func createAccountCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	p.compare(t, "a service account", "POST /service-accounts", fmt.Sprintf(`{"name":"Made %d"}`, m.fresh),
		first(done(201, p.readableAccountMembers()), check{p.may("service-accounts:create", ""), mayNot}))
}

var _ = specify("ServiceAccountsController_createServiceAccount", changesNothing, func(*testing.T, *providerWorld) request {
	return request{line: "POST /service-accounts", body: `{"name":"Nightly import ` + newKey() + `","description":"Imports invoices"}`, events: []string{"service_account.created service_account {id} []"}}
}, createAccountCells) // it has no role and no token

func getAccountCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.accounts(t, p) {
		p.compare(t, s.name, "GET /service-accounts/"+s.id, "", first(done(200, everyAccountMember), check{p.may("service-accounts:read", ""), mayNot}, check{s.exists, notThere}))
	}
}

var _ = specify("ServiceAccountsController_getServiceAccount", changesNothing, withObject(anAccount, "GET /service-accounts/{id}", ""), getAccountCells)

func updateAccountCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.accounts(t, p) {
		m.fresh++
		p.compare(t, s.name, "PATCH /service-accounts/"+s.id, fmt.Sprintf(`{"name":"Changed %d"}`, m.fresh),
			first(done(200, p.readableAccountMembers()), check{p.may("service-accounts:update", ""), mayNot}, check{s.exists, notThere}))
	}
}

var _ = specify("ServiceAccountsController_updateServiceAccount", changesNothing, withObject(anAccount, "PATCH /service-accounts/{id}", `{"description":"Imports invoices every night"}`, "service_account.updated service_account {id} [description]"), updateAccountCells)

// protectiveOfAccount returns the expected response to a request that removes access from a
// service account. success is expected if the principal is authorized.
func (p *principal) protectiveOfAccount(s *subject, permission string, success expectation) expectation {
	return first(success, check{p.may(permission, ""), mayNot}, check{s.exists, notThere}, check{!p.isBelow(s), beyondOwn})
}

func deleteAccountCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.accounts(t, p) {
		p.compare(t, s.name, "DELETE /service-accounts/"+s.id, "", p.protectiveOfAccount(s, "service-accounts:delete", done(204, "")))
	}
}

var _ = specify("ServiceAccountsController_deleteServiceAccount", removesForGood, withObject(anAccount, "DELETE /service-accounts/{id}", "", "service_account.deleted service_account {id} []"), deleteAccountCells)

func suspendAccountCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.accounts(t, p) {
		p.compare(t, s.name, "POST /service-accounts/"+s.id+"/suspend", "", p.protectiveOfAccount(s, "service-accounts:update", done(200, p.readableAccountMembers())))
	}
}

var _ = specify("ServiceAccountsController_suspendServiceAccount", endsAccess, withObject(anAccount, "POST /service-accounts/{id}/suspend", `{"reason":"The import is paused"}`, "service_account.suspended service_account {id} [status]"), suspendAccountCells)

func resumeAccountCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.accounts(t, p) {
		if s.exists {
			m.owner.do(t, "POST /service-accounts/"+s.id+"/suspend", "").expect(t, 200)
		}
		p.compare(t, s.name, "POST /service-accounts/"+s.id+"/resume", "", p.protectiveOfAccount(s, "service-accounts:update", first(done(200, p.readableAccountMembers()), check{p.mayTakeOver(s), beyondOwn})))
	}
}

var _ = specify("ServiceAccountsController_resumeServiceAccount", grantsAccess, withObject(aSuspendedAccount, "POST /service-accounts/{id}/resume", "", "service_account.resumed service_account {id} [status]"), resumeAccountCells)

func accountRolesCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.accounts(t, p) {
		a := p.compare(t, s.name, "GET /service-accounts/"+s.id+"/roles", "", first(done(200, "items nextCursor"), check{p.may("service-accounts:read", ""), mayNot}, check{s.exists, notThere}))
		if a.status == http.StatusOK && len(a.list("/items")) != 1 {
			t.Errorf("%s holds %s", s.name, a.body)
		}
	}
}

var _ = specify("ServiceAccountsController_listServiceAccountRoles", changesNothing, withObject(anAccount, "GET /service-accounts/{id}/roles", ""), accountRolesCells)

func assignToAccountCells(t *testing.T, m *matrix, p *principal) {
	accounts := m.accounts(t, p)
	for _, s := range []*subject{accounts[0], accounts[2], accounts[4]} {
		for _, r := range m.roles {
			wanted := first(done(201, everyAssignmentMember), check{p.may("service-accounts:update", ""), mayNot},
				check{s.exists && r.exists, notThere}, check{p.mayPass(r.permissions, "Sales"), beyondOwn})
			p.compare(t, s.name+" and "+r.name, "PUT /service-accounts/"+s.id+"/roles/"+r.id, within("Sales"), wanted)
		}
	}
}

var _ = specify("ServiceAccountsController_assignServiceAccountRole", grantsAccess, func(t *testing.T, w *providerWorld) request {
	return request{id: anAccount(t, w), line: "PUT /service-accounts/{id}/roles/" + aRole(t, w), body: within("Sales"), events: []string{"role.assigned service_account {id} [roles]"}}
}, assignToAccountCells)

func unassignFromAccountCells(t *testing.T, m *matrix, p *principal) {
	accounts := m.newAccounts(t)
	for _, s := range []*subject{accounts[0], accounts[2]} {
		for _, r := range m.roles {
			line := "/service-accounts/" + s.id + "/roles/" + r.id
			if s.exists && r.exists {
				m.owner.do(t, "PUT "+line, within("Sales")).expect(t, 201)
			}
			p.compare(t, s.name+" and "+r.name, "DELETE "+line, "", first(done(204, ""), check{p.may("service-accounts:update", ""), mayNot},
				check{s.exists && r.exists, notThere}, check{p.mayPass(r.permissions, "Sales"), beyondOwn}))
		}
	}
}

var _ = specify("ServiceAccountsController_unassignServiceAccountRole", removesForGood, func(t *testing.T, w *providerWorld) request {
	id, role := anAccount(t, w), aRole(t, w)
	w.owner.do(t, "PUT /service-accounts/"+id+"/roles/"+role, "").expect(t, 201)
	return request{id: id, line: "DELETE /service-accounts/{id}/roles/" + role, events: []string{"role.unassigned service_account {id} [roles]"}}
}, unassignFromAccountCells)

const (
	everyTokenMember = "id name permissions createdBy createdAt expiresAt lastUsedAt"
	newTokenMembers  = everyTokenMember + " token"
)

func accountTokensCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.newAccounts(t) {
		if s.exists {
			m.owner.makeToken(t, s.id, "users.email:read")
		}
		a := p.compare(t, s.name, "GET /service-accounts/"+s.id+"/tokens", "", first(done(200, "items nextCursor"), check{p.may("service-accounts:read", ""), mayNot}, check{s.exists, notThere}))
		if a.status == http.StatusOK && !slices.Equal(a.members("/items/0"), sorted(strings.Fields(everyTokenMember))) {
			t.Errorf("%s has tokens of %q", s.name, a.members("/items/0"))
		}
	}
}

var _ = specify("ServiceAccountsController_listServiceAccountTokens", changesNothing, withObject(anAccount, "GET /service-accounts/{id}/tokens", ""), accountTokensCells)

func createAccountTokenCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.accounts(t, p) {
		p.compare(t, s.name, "POST /service-accounts/"+s.id+"/tokens", tokenBody("Made", "users.email:read"), first(done(201, newTokenMembers),
			check{p.may("service-accounts:update", ""), mayNot}, check{!p.byToken, needsSession}, check{s.exists, notThere}, check{p.mayTakeOver(s), beyondOwn}))
	}
}

var _ = specify("ServiceAccountsController_createServiceAccountToken", grantsAccess, func(t *testing.T, w *providerWorld) request {
	return request{id: w.account(t, "Account "+newKey(), "users:read"), line: "POST /service-accounts/{id}/tokens", body: tokenBody("Import", "users:read"), events: []string{"token.created service_account {id} [tokens]"}}
}, createAccountTokenCells)

func revokeAccountTokenCells(t *testing.T, m *matrix, p *principal) {
	accounts := m.newAccounts(t)
	elsewhere := m.owner.makeToken(t, m.account(t, fmt.Sprintf("Elsewhere %d", m.fresh), "users.email:read"), "users.email:read")
	for _, s := range accounts {
		line := "DELETE /service-accounts/" + s.id + "/tokens/"
		p.compare(t, "another's token of "+s.name, line+elsewhere.bearerID, "", p.protectiveOfAccount(s, "service-accounts:update", notThere))
		if s.exists {
			token := m.owner.makeToken(t, s.id, "users.email:read")
			p.compare(t, s.name, line+token.bearerID, "", p.protectiveOfAccount(s, "service-accounts:update", done(204, "")))
		}
	}
	elsewhere.do(t, "GET /auths/session", "").expect(t, 200)
}

var _ = specify("ServiceAccountsController_revokeServiceAccountToken", endsAccess, func(t *testing.T, w *providerWorld) request {
	id := w.account(t, "Account "+newKey(), "users:read")
	return request{id: id, line: "DELETE /service-accounts/{id}/tokens/" + w.owner.makeToken(t, id, "users:read").bearerID, events: []string{"token.revoked service_account {id} [tokens]"}}
}, revokeAccountTokenCells)

func userTokensCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.standingSubjects(t, p) {
		p.compare(t, s.name, "GET /users/"+s.id+"/tokens", "", p.listingAccess(s))
	}
}

var _ = specify("UsersController_listUserTokens", changesNothing, withObject(aUser, "GET /users/{id}/tokens", ""), userTokensCells)

func createUserTokenCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		permission, wanted := "users:read", expectation{status: 422, code: "validation"} // a user without permissions cannot delegate any
		if len(p.holds) > 0 {
			permission, wanted = p.holds[0].permission, done(201, newTokenMembers)
		}
		p.compare(t, s.name, "POST /users/"+s.id+"/tokens", tokenBody("Made", permission), first(wanted, check{p.id != "" && p.id == s.id, mayNot}, check{!p.program, needsSession}))
	}
}

var _ = specify("UsersController_createUserToken", grantsAccess, func(_ *testing.T, w *providerWorld) request {
	return request{id: w.owner.id, line: "POST /users/{id}/tokens", body: tokenBody("Import", "users:read"), events: []string{"token.created user {id} [tokens]"}}
}, createUserTokenCells)

func revokeUserTokenCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		visible := []check{{p.is(s) || p.mayAnywhere("sessions:revoke"), mayNot}, {p.sees(s), notThere}, {p.is(s) || p.may("sessions:revoke", s.department), mayNot}, {p.is(s) || !p.isBelow(s), beyondOwn}}
		p.compare(t, "no token of "+s.name, "DELETE /users/"+s.id+"/tokens/"+never, "", first(notThere, visible...))
		if p.is(s) && p.live && len(p.holds) > 0 {
			token := p.makeToken(t, "", p.holds[0].permission)
			p.compare(t, s.name, "DELETE /users/"+s.id+"/tokens/"+token.bearerID, "", first(done(204, ""), visible...))
		}
	}
}

var _ = specify("UsersController_revokeUserToken", endsAccess, func(t *testing.T, w *providerWorld) request {
	return request{id: w.owner.id, line: "DELETE /users/{id}/tokens/" + w.owner.makeToken(t, "", "users:read").bearerID, events: []string{"token.revoked user {id} [tokens]"}}
}, revokeUserTokenCells)

// tokenBody returns the body that creates a token with the permissions, valid for 24 hours.
func tokenBody(name string, permissions ...string) string {
	list, err := json.Marshal(permissions)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return fmt.Sprintf(`{"name":%s,"permissions":%s,"expiresAt":%s}`, quoted(name), list, quoted(time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339)))
}

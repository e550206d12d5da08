package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

const everyConnectionMember = "id name issuer clientId domains linking provisioning secondFactor acrValues amrValues groups createdAt updatedAt"

// connectionBody returns a new connection whose name and issuer contain the mark.
func connectionBody(mark string) string {
	return fmt.Sprintf(`{"name":"SSO %[1]s","issuer":"https://login-%[1]s.example.com","clientId":"rolecall","clientSecret":"canary-secret"}`, mark)
}

// makeConnection creates a connection and returns its id.
func (w *world) makeConnection(t testing.TB, mark string) string {
	t.Helper()
	return w.owner.do(t, "POST /connections", connectionBody(mark)).expect(t, 201).text("/id")
}

// eachConnection calls send with a connection of this tenant, one of another tenant, and one that does not
// exist. It deletes them afterwards, because a tenant can have only a few.
func (m *matrix) eachConnection(t *testing.T, send func(id string, exists bool)) {
	t.Helper()
	m.fresh++
	own, foreign := m.makeConnection(t, fmt.Sprint(m.fresh)), m.foreign.makeConnection(t, fmt.Sprint(m.fresh))
	send(own, true)
	send(foreign, false)
	send(never, false)
	m.owner.do(t, "DELETE /connections/"+own, "")
	m.foreign.owner.do(t, "DELETE /connections/"+foreign, "").expect(t, 204)
}

// connects returns the expected response to a request that configures a connection. The principal must hold
// everything in the whole tenant, because an identity provider can sign in as any user.
func (p *principal) connects(permission string, exists bool, success expectation) expectation {
	return first(success, check{p.may(permission, ""), mayNot}, check{!p.byToken, needsSession},
		check{p.has(p.holds, []string{"*:*", "*/*:*"}, ""), mayNot}, check{exists, notThere})
}

func listConnectionsCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "connections", "GET /connections", "", first(done(200, "items nextCursor"), check{p.may("connections:read", ""), mayNot}))
}

var _ = specify("ConnectionsController_listConnections", changesNothing, withoutObject("GET /connections", ""), listConnectionsCells)

func createConnectionCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	a := p.compare(t, "a connection", "POST /connections", connectionBody(fmt.Sprint(m.fresh)), p.connects("connections:create", true, done(201, everyConnectionMember)))
	if a.status == 201 {
		m.owner.do(t, "DELETE /connections/"+a.text("/id"), "").expect(t, 204)
	}
}

var _ = specify("ConnectionsController_createConnection", grantsAccess, func(*testing.T, *providerWorld) request {
	return request{line: "POST /connections", body: connectionBody(newKey()), events: []string{"connection.created connection {id} []"}}
}, createConnectionCells)

func getConnectionCells(t *testing.T, m *matrix, p *principal) {
	m.eachConnection(t, func(id string, exists bool) {
		p.compare(t, "a connection", "GET /connections/"+id, "", first(done(200, everyConnectionMember), check{p.may("connections:read", ""), mayNot}, check{exists, notThere}))
	})
}

var _ = specify("ConnectionsController_getConnection", changesNothing, withObject(aConnection, "GET /connections/{id}", ""), getConnectionCells)

func updateConnectionCells(t *testing.T, m *matrix, p *principal) {
	m.eachConnection(t, func(id string, exists bool) {
		p.compare(t, "a connection", "PATCH /connections/"+id, `{"clientId":"other"}`, p.connects("connections:update", exists, done(200, everyConnectionMember)))
	})
}

var _ = specify("ConnectionsController_updateConnection", grantsAccess, withObject(aConnection, "PATCH /connections/{id}", `{"name":"Renamed","clientSecret":"argon2-secret"}`, "connection.updated connection {id} [name clientSecret]"), updateConnectionCells)

func deleteConnectionCells(t *testing.T, m *matrix, p *principal) {
	m.eachConnection(t, func(id string, exists bool) {
		p.compare(t, "a connection", "DELETE /connections/"+id, "", p.connects("connections:delete", exists, done(204, "")))
	})
}

var _ = specify("ConnectionsController_deleteConnection", removesForGood, withObject(aConnection, "DELETE /connections/{id}", "", "connection.deleted connection {id} []"), deleteConnectionCells)

// testConnectionCells sends no request to an identity provider, because the matrix has none.
func testConnectionCells(t *testing.T, m *matrix, p *principal) {
	m.eachConnection(t, func(id string, exists bool) {
		if !exists {
			p.compare(t, "a connection", "POST /connections/"+id+"/test", "", first(notThere, check{p.may("connections:read", ""), mayNot}))
		}
	})
}

var _ = specify("ConnectionsController_testConnection", changesNothing, func(_ *testing.T, w *providerWorld) request {
	return request{id: w.connection, line: "POST /connections/{id}/test", events: []string{"connection.tested connection {id} []"}}
}, testConnectionCells)

func offeredConnectionsCells(t *testing.T, _ *matrix, p *principal) {
	p.do(t, "GET /auths/connections", "").expect(t, 200)
}

var _ = specify("AuthsController_listConnections", changesNothing, func(_ *testing.T, w *providerWorld) request {
	return request{as: w.anonymous(), line: "GET /auths/connections"}
}, offeredConnectionsCells)

func findConnectionCells(t *testing.T, _ *matrix, p *principal) {
	p.do(t, "POST /auths/connections/find", emailBody("ada@nowhere.example")).expect(t, 200)
}

var _ = specify("AuthsController_findConnection", changesNothing, func(_ *testing.T, w *providerWorld) request {
	return request{as: w.anonymous(), line: "POST /auths/connections/find", body: emailBody("ada@nowhere.example")}
}, findConnectionCells)

func listIdentitiesCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.standingSubjects(t, p) {
		p.compare(t, s.name, "GET /users/"+s.id+"/identities", "", first(done(200, "items nextCursor"),
			check{p.is(s) || p.mayAnywhere("identities:read"), mayNot}, check{p.sees(s), notThere}, check{p.is(s) || p.may("identities:read", s.department), mayNot}))
	}
}

var _ = specify("UsersController_listIdentities", changesNothing, withObject(aUser, "GET /users/{id}/identities", ""), listIdentitiesCells)

func deleteIdentityCells(t *testing.T, m *matrix, p *principal) {
	subjects := p.among(m.newSubjects(t))
	connection := m.makeConnection(t, fmt.Sprint(m.fresh))
	identities := m.identify(t, connection, subjects)
	for _, s := range subjects {
		expected := func(success expectation) expectation {
			return first(success, check{p.is(s) || p.mayAnywhere("identities:delete"), mayNot}, check{p.sees(s), notThere}, check{p.is(s) || p.may("identities:delete", s.department), mayNot},
				check{p.is(s) || !p.speaksFor(s), needsSession}, check{p.is(s) || p.mayTakeOver(s), beyondOwn})
		}
		p.compare(t, s.name+" without the identity", "DELETE /users/"+s.id+"/identities/"+never, "", expected(notThere))
		if identities[s.id] != "" {
			p.compare(t, s.name, "DELETE /users/"+s.id+"/identities/"+identities[s.id], "", expected(done(204, "")))
		}
	}
	m.owner.do(t, "DELETE /connections/"+connection+"?force=true", "").expect(t, 204)
}

var _ = specify("UsersController_deleteIdentity", removesForGood, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	person(w.provider, newKey())
	w.link(t, c, w.code(t, c, w.returnTo(), linkPurpose)).expect(t, 200)
	return request{id: c.id, line: "DELETE /users/{id}/identities/" + w.identities(t, c.id)[0], events: []string{"user.identity_unlinked user {id} []"}}
}, deleteIdentityCells)

// identify links an identity to each of the users, and returns the ids of the identities by those of the users.
// It writes them into the database, because the matrix has no identity provider.
func (m *matrix) identify(t *testing.T, connection string, users []*subject) map[string]string {
	t.Helper()
	identities := map[string]string{}
	var statement strings.Builder
	for _, s := range users {
		if !s.exists {
			continue
		}
		id := rolecall.NewID[any](rolecall.TimeOf(time.Now())).String()
		fmt.Fprintf(&statement, `insert into identities (tenant_id, id, user_id, connection_id, issuer, subject, email, created_at, last_used_at)
			select tenant_id, %s, id, %s, 'https://login.example.com', '%s', '', 1, 0 from users where id = %s;`,
			m.program.literal(id), m.program.literal(connection), id, m.program.literal(s.id))
		identities[s.id] = id
	}
	m.program.execute(t, statement.String())
	return identities
}

package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

// TestKillDuringDeletionsOfTenants kills the program while tenants are deleted and
// restored. A tenant is either complete, with its users and sessions, or deleted. Users
// cannot use a deleted tenant, and an operator can restore it. Acknowledged changes
// persist.
func TestKillDuringDeletionsOfTenants(t *testing.T) {
	skipIfShort(t)
	onStores(t, func(t *testing.T, database string) {
		s := serve(t, database)
		l := newLoad(t, s)
		l.spread = 0
		l.open()
		operator := newFounder(l, nil).operator
		for range 4 {
			e := newTenantEndings(l, operator)
			l.running.Go(func() {
				for !l.isOver() {
					e.deleteAndRestore()
				}
			})
		}
		kills := times(5, 300)
		l.dieAgain(kills)
		l.checkDatabase()
		l.report("kill -9 during the deletion of tenants")
		t.Logf("killed %d times", kills)
	})
}

// tenantEndings deletes and restores one tenant.
type tenantEndings struct {
	load     *load
	operator string // the header with the key
	owner    caller
	line     string // path of the tenant for operators
	users    string // the response with all users of the tenant
}

func newTenantEndings(l *load, operator string) *tenantEndings {
	l.t.Helper()
	tenant := fmt.Sprintf("deleted-%d", loads.Add(1))
	const owner = "owner@faults.example"
	command(l.t, l.server, password+"\n", "tenant", "create", tenant, "--owner-email", owner, "--owner-name", "Olga Owner", "--password-stdin")
	in := (caller{load: l, tenant: tenant}).send("POST /auths/login", credentials(owner))
	e := &tenantEndings{load: l, operator: operator, owner: caller{l, tenant, in.session()}, line: "/operator/tenants/" + tenant}
	for i := range 3 {
		e.owner.send("POST /users", fmt.Sprintf(`{"email":"user-%d@faults.example","name":"A User"}`, i), fmt.Sprintf("idempotency-key: %d", i))
	}
	e.users = string(e.owner.send("GET /users", "").body)
	return e
}

// operate sends a request of the operator until its outcome is known.
func (e *tenantEndings) operate(line string, header ...string) (of result, again bool) {
	return (caller{load: e.load}).insist(line, "", append(header, e.operator)...)
}

// deleteAndRestore deletes the tenant and restores it.
func (e *tenantEndings) deleteAndRestore() {
	etag := e.check("active").header.Get("Etag")
	of, again := e.operate("DELETE "+e.line, "if-match: "+etag)
	if of.status != http.StatusNoContent && (of.status != http.StatusNotFound || !again) {
		e.load.t.Errorf("a deletion is answered %d %s", of.status, of.body)
	}
	e.check("deleted")
	if of, _ := e.operate("POST " + e.line + "/restore"); of.status != http.StatusOK {
		e.load.t.Errorf("a restore is answered %d %s", of.status, of.body)
	}
	e.check("active")
}

// check fails the test unless both the operator and the owner see the wanted status of the tenant.
// It returns the response to the operator.
func (e *tenantEndings) check(want string) result {
	seen, _ := e.operate("GET " + e.line)
	var tenant struct{ Status, PurgeAt string }
	if err := json.Unmarshal(seen.body, &tenant); err != nil || tenant.Status != want || (tenant.PurgeAt != "") != (want == "deleted") {
		e.load.lost++
		e.load.t.Errorf("%s should be %s: %s", e.line, want, seen.body)
	}
	status := map[string]int{"active": http.StatusOK, "deleted": http.StatusUnauthorized}[want]
	users, _ := e.owner.insist("GET /users", "")
	for deadline := time.Now().Add(patience.Limit); users.status != status && time.Now().Before(deadline); { // a node may still have the deletion in its cache
		e.load.pause()
		users, _ = e.owner.insist("GET /users", "")
	}
	if users.status != status || status == http.StatusOK && string(users.body) != e.users {
		e.load.lost++
		e.load.t.Errorf("%s should be %s: its owner is answered %d %s", e.line, want, users.status, users.body)
	}
	return seen
}

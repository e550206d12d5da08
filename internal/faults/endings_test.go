package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// TestKillDuringDeletions kills the program while users are deleted, restored and erased.
// A user is either present with their role, or deleted, or erased, but never two of
// these. Acknowledged changes persist.
func TestKillDuringDeletions(t *testing.T) {
	skipIfShort(t)
	onStores(t, func(t *testing.T, database string) {
		s := serve(t, database)
		l := newLoad(t, s)
		l.spread = 0
		l.open()
		e := newEndings(l)
		for client := range 4 {
			l.running.Go(func() {
				for n := 0; !l.isOver(); n++ {
					e.live(fmt.Sprintf("mortal-%d-%d@faults.example", client, n))
				}
			})
		}
		kills := times(5, 300)
		l.dieAgain(kills)
		l.checkDatabase()
		l.report("kill -9 during the ends of accounts")
		t.Logf("killed %d times", kills)
	})
}

// endings deletes, restores and erases users of one tenant.
type endings struct {
	load  *load
	owner caller
	role  string
}

func newEndings(l *load) *endings {
	l.t.Helper()
	tenant := fmt.Sprintf("endings-%d", loads.Add(1))
	const owner = "owner@faults.example"
	command(l.t, l.server, password+"\n", "tenant", "create", tenant, "--owner-email", owner, "--owner-name", "Olga Owner", "--password-stdin")
	in := (caller{load: l, tenant: tenant}).send("POST /auths/login", credentials(owner))
	e := &endings{load: l, owner: caller{l, tenant, in.session()}}
	e.expect("of any age", e.owner.send("PATCH /tenant", `{"settings":{"reauthenticationSeconds":0}}`), http.StatusOK)
	var role struct{ ID string }
	e.owner.send("POST /roles", `{"name":"Mortal","permissions":["shop/a:b"]}`, "idempotency-key: mortal").decode(&role)
	e.role = role.ID
	return e
}

func (e *endings) expect(what string, of result, status int) bool {
	if of.status != status {
		e.load.t.Errorf("%s: answered %d %s, not %d", what, of.status, of.body, status)
	}
	return of.status == status
}

// act sends a request until it is known to be done. Such a request can succeed only once, so act
// accepts a 404 if an earlier attempt may have had an effect.
func (e *endings) act(line string, status int) {
	of, again := e.owner.insist(line, "")
	if of.status != http.StatusNotFound || !again {
		e.expect(line, of, status)
	}
}

// live creates a user, and randomly deletes, restores and erases them.
func (e *endings) live(address string) {
	of, _ := e.owner.insist("POST /users", `{"email":`+quoted(address)+`,"name":"A Mortal"}`, "idempotency-key: "+address)
	if !e.expect("creation", of, http.StatusCreated) {
		return
	}
	id := readUser(of).ID
	of, again := e.owner.insist("PUT /users/"+id+"/roles/"+e.role, "{}")
	if of.status != http.StatusOK || !again {
		e.expect("assignment", of, http.StatusCreated)
	}
	for range rand.IntN(3) {
		e.act("DELETE /users/"+id, http.StatusNoContent)
		e.check(id, "deleted")
		if rand.IntN(3) == 0 {
			break
		}
		e.act("POST /users/"+id+"/restore", http.StatusOK)
		e.check(id, "there")
	}
	if rand.IntN(4) == 0 {
		return // stays as it is
	}
	e.act("POST /users/"+id+"/erase", http.StatusNoContent)
	e.check(id, "erased")
}

// check fails the test unless the user is in the wanted state: there, deleted or erased.
func (e *endings) check(id, want string) {
	user, _ := e.owner.insist("GET /users/"+id, "")
	roles, _ := e.owner.insist("GET /users/"+id+"/roles", "")
	deleted, _ := e.owner.insist("GET /users?status=deleted&limit=200", "")
	events, _ := e.owner.insist("GET /events?limit=200&subject="+id, "")
	is := fmt.Sprint(user.status == http.StatusOK, strings.Contains(string(roles.body), e.role), strings.Contains(string(deleted.body), id),
		strings.Contains(string(events.body), "user.erased"))
	if wanted := map[string]string{"there": "true true false false", "deleted": "false false true false", "erased": "false false false true"}[want]; is != wanted {
		e.load.lost++
		e.load.t.Errorf("%s should be %s: there, with their role, among the deleted, said to be erased: %s", id, want, is)
	}
}

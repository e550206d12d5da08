package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
)

// guest is a user who can sign in.
type guest struct {
	*tenant
	id, email string
	token     string // "" while signed out
	session   string // the id of the session
}

// newGuest creates a guest, whose password an operator sets.
func newGuest(tn *tenant) *guest {
	tn.load.t.Helper()
	c := tn.newCreation("")
	id := readUser(tn.must(201, "POST /users", fmt.Sprintf(`{"email":%s,"name":"New"}`, quoted(c.address)), "idempotency-key: "+c.key)).ID
	command(tn.load.t, tn.load.server, password+"\n", "user", "set-password", "--tenant", tn.name, "--email", c.address, "--password-stdin")
	tn.make(c, tn.must(200, "GET /users/"+id, ""))
	return &guest{tenant: tn, id: id, email: c.address}
}

// signIn starts a session, and reports whether that succeeded.
func (g *guest) signIn() bool {
	of := (caller{load: g.load, tenant: g.name}).send("POST /auths/login", credentials(g.email))
	g.expect(of, of.status == http.StatusOK, "session.started", g.id)
	switch {
	case of.known && of.status == http.StatusOK:
		var in struct{ Session struct{ ID string } }
		of.decode(&in)
		g.token, g.session = of.session(), in.Session.ID
		g.sessions.add(g.session, of, sessionStarted(g.token), "sign in as %.6s", g.token)
		return true
	case of.known && of.status == http.StatusForbidden:
		g.resume(g.id, "active")
	case of.known && of.status != 0:
		g.load.t.Errorf("the right password was refused with %d: %s", of.status, of.body)
	default:
		g.load.pause()
	}
	return false
}

// send sends a request with the token, and records the result in the history of the session.
func (g *guest) send(token, line string) result {
	of := caller{g.load, g.name, token}.send(line, "")
	g.sessions.add(g.session, of, sessionUsed(of, token), "%s with %.6s", line, token)
	return of
}

// refresh requests the successor of the token and returns it. It returns "" if the request failed.
// g.token does not change.
func (g *guest) refresh(token string) (successor string) {
	of := caller{g.load, g.name, token}.send("POST /auths/refresh", "")
	if of.known && of.status == http.StatusOK {
		successor = of.session()
	}
	g.sessions.add(g.session, of, sessionRefreshed(of, token), "refresh %.6s to %.6s", token, successor)
	return successor
}

// comeAndGo signs a guest in, and uses and refreshes the session with several requests at once.
// Then it ends the session in one of the possible ways.
func (tn *tenant) comeAndGo(random *rand.Rand) {
	g := <-tn.guests
	defer func() { tn.guests <- g }()
	if !g.signIn() {
		return
	}
	old := ""
	for range 4 + random.IntN(8) {
		var users sync.WaitGroup
		token, successor := g.token, ""
		users.Go(func() { g.send(token, "GET /auths/session") })
		if random.IntN(2) == 0 {
			users.Go(func() { g.refresh(token) })
			successor = g.refresh(token)
		}
		users.Wait()
		if successor != "" {
			old, g.token = token, successor
		}
		if of := g.send(g.token, "GET /auths/session"); of.status == http.StatusUnauthorized || tn.load.isOver() {
			return
		}
		if old != "" && random.IntN(6) == 0 {
			g.send(old, "GET /auths/session") // as a thief of the old token would do
			g.send(g.token, "GET /auths/session")
			return
		}
	}
	g.end(random)
	for range 2 {
		g.send(g.token, "GET /auths/session")
	}
}

// end ends the session while other requests use it.
func (g *guest) end(random *rand.Rand) {
	var users sync.WaitGroup
	token := g.token
	users.Go(func() { g.send(token, "GET /auths/session") })
	defer users.Wait()
	switch random.IntN(3) {
	case 0:
		of := g.suspend(g.id)
		g.sessions.add(g.session, of, sessionEnded(of, http.StatusOK), "suspend")
		for again := g.resume(g.id, "active"); again.status != http.StatusOK && g.load.pause(); {
			again = g.resume(g.id, "active")
		}
	default:
		of := caller{g.load, g.name, token}.send("POST /auths/logout", "")
		g.sessions.add(g.session, of, sessionEnded(of, http.StatusNoContent), "sign out")
	}
}

// changeRoles assigns a role to a guest, or removes the role, while the guest uses its permission.
func (tn *tenant) changeRoles(random *rand.Rand) {
	g := <-tn.grantees
	defer func() { tn.grantees <- g }()
	if g.token == "" && !g.signIn() {
		return
	}
	var users sync.WaitGroup
	for range 2 {
		users.Go(g.readEvents)
	}
	if random.IntN(2) == 0 {
		g.assign()
	} else {
		g.unassign()
	}
	users.Wait()
	g.readEvents()
	g.listRoles()
}

func (g *guest) readEvents() {
	switch of := g.send(g.token, "GET /events?limit=1"); of.status {
	case http.StatusOK, http.StatusForbidden:
		g.rights.add(g.id, of, grantSeen(of.status == http.StatusOK), "read events")
	}
}

func (g *guest) assign() {
	of := g.request("PUT /users/"+g.id+"/roles/"+g.role, "")
	g.grants.add(g.id, of, granted(of), "assign")
	g.rights.add(g.id, of, granted(of), "assign")
	g.expect(of, of.status == http.StatusOK || of.status == http.StatusCreated, "role.assigned", g.id)
}

func (g *guest) unassign() {
	of := g.request("DELETE /users/"+g.id+"/roles/"+g.role, "")
	g.grants.add(g.id, of, withdrawn(of), "unassign")
	g.rights.add(g.id, of, withdrawn(of), "unassign")
	g.expect(of, of.status == http.StatusNoContent, "role.unassigned", g.id)
}

func (g *guest) listRoles() {
	of := g.request("GET /users/"+g.id+"/roles", "")
	if of.status != http.StatusOK {
		return
	}
	var list struct {
		Items []struct{ Role struct{ ID string } }
	}
	of.decode(&list)
	held := slices.ContainsFunc(list.Items, func(a struct{ Role struct{ ID string } }) bool { return a.Role.ID == g.role })
	g.grants.add(g.id, of, grantSeen(held), "list: %t", held)
}

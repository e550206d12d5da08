package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
)

// tenant is a tenant that the load uses, with the record of all actions in it.
type tenant struct {
	load    *load
	name    string
	owner   caller
	ownerID string
	role    string // a role that allows reading events

	users     *register[userState]
	addresses *register[addressState]
	keys      *register[keyState]
	sessions  *register[sessionState]
	grants    *register[grantState] // according to the list of a user's roles
	rights    *register[grantState] // according to the user's permissions

	contended, marks, created atomic.Int64

	mu         sync.Mutex
	known      map[string]string // the addresses of the users whose creation was acknowledged, by id
	lost       map[string]result // the first creation of each key whose answer was lost
	firsthand  map[string]bool   // keys with a response that was not a replay
	pending    []*creation       // creations with an unknown outcome
	hot        []*hotUser        // shared by the editors
	guests     chan *guest       // guests who sign in and out; each client takes one while it uses it
	grantees   chan *guest       // guests whose role changes
	tally      eventBounds
	feed       followed // used by one client
	checkpoint string   // the file with an earlier checkpoint of the audit log; empty: none
}

// eventBounds has the minimum and the maximum number of events, by type and subject.
type eventBounds map[string]map[string]bounds

type bounds struct{ least, most int }

// expect records that a request caused an event, or may have.
func (tn *tenant) expect(of result, success bool, kind, subject string) {
	switch {
	case !of.known:
		tn.allow(kind, subject, bounds{0, 1})
	case success:
		tn.allow(kind, subject, bounds{1, 1})
	}
}

func (tn *tenant) allow(kind, subject string, more bounds) {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	if tn.tally[kind] == nil {
		tn.tally[kind] = map[string]bounds{}
	}
	b := tn.tally[kind][subject]
	tn.tally[kind][subject] = bounds{b.least + more.least, b.most + more.most}
}

// user is a user in a response.
type user struct {
	ID       string
	Email    string
	Name     string
	Status   string
	Metadata struct{ Mark string }

	userState
}

func (u *user) note(etag string) {
	u.userState = userState{there: true, mark: u.Metadata.Mark, name: u.Name, status: u.Status, etag: etag}
}

func readUser(of result) (u user) {
	of.decode(&u)
	u.note(of.header.Get("Etag"))
	return u
}

// newTenant creates a tenant and its content. Call it before the faults begin.
func newTenant(l *load) *tenant {
	l.t.Helper()
	tn := &tenant{
		load: l, name: fmt.Sprintf("faults-%d", loads.Add(1)),
		users: newRegister[userState]("user"), addresses: newRegister[addressState]("address"), keys: newRegister[keyState]("key"),
		sessions: newRegister[sessionState]("session"), grants: newRegister[grantState]("assignment"), rights: newRegister[grantState]("right"),
		known: map[string]string{}, lost: map[string]result{}, firsthand: map[string]bool{}, tally: eventBounds{}, guests: make(chan *guest, 2), grantees: make(chan *guest, 2),
	}
	tn.owner = caller{load: l, tenant: tn.name}
	const owner = "owner@faults.example"
	command(l.t, l.server, password+"\n", "tenant", "create", tn.name, "--owner-email", owner, "--owner-name", "Olga Owner", "--password-stdin")
	in := tn.must(200, "POST /auths/login", credentials(owner))
	tn.owner.token, tn.ownerID = in.session(), in.userID()
	tn.must(200, "PATCH /tenant", `{"settings":{"refreshGraceSeconds":0,"reauthenticationSeconds":0}}`)
	var role struct{ ID string }
	tn.must(201, "POST /roles", `{"name":"Reader","permissions":["events:read"]}`, "idempotency-key: role").decode(&role)
	tn.role = role.ID
	for range cap(tn.guests) {
		tn.guests <- newGuest(tn)
		tn.grantees <- newGuest(tn)
	}
	for range 3 {
		tn.hot = append(tn.hot, nil)
	}
	if l.endpoint != nil {
		l.endpoint.subscribe(tn)
	}
	return tn
}

// must sends a request of the owner before the faults begin, and fails the test unless the response
// has the status.
func (tn *tenant) must(status int, line, body string, header ...string) result {
	tn.load.t.Helper()
	of := tn.owner.send(line, body, header...)
	if of.status != status {
		tn.load.t.Fatalf("%s answered %d, not %d, before any fault: %s", line, of.status, status, of.body)
	}
	return of
}

// request sends a request of the owner, which must never be rejected with 401 or 403.
func (tn *tenant) request(line, body string, header ...string) result {
	of := tn.owner.send(line, body, header...)
	if of.known && (of.status == http.StatusUnauthorized || of.status == http.StatusForbidden) {
		tn.load.t.Errorf("%s of the owner was refused with %d: %s", line, of.status, of.body)
	}
	if !of.known || of.status == 0 {
		tn.load.pause()
	}
	return of
}

func credentials(email string) string {
	return fmt.Sprintf(`{"email":%s,"password":%s}`, quoted(email), quoted(password))
}

// userID returns the id of the signed-in user.
func (of result) userID() string {
	var in struct{ User struct{ ID string } }
	of.decode(&in)
	return in.User.ID
}

// creation is the creation of one user, which can be requested several times.
type creation struct {
	key, address string
	first        int64 // time of the first request
}

// newCreation returns a creation with the address. If address is empty, the creation gets a unique
// address.
func (tn *tenant) newCreation(address string) *creation {
	n := tn.created.Add(1)
	if address == "" {
		address = fmt.Sprintf("user-%d@faults.example", n)
	}
	return &creation{fmt.Sprintf("key-%d", n), address, clock()}
}

// create requests the creation, and repeats the request with the same key until the outcome is
// known. If the outcome is still unknown when the load ends, resolve repeats the request later.
func (tn *tenant) create(c *creation) (u user, ok bool) {
	doubtful := false
	for {
		of := tn.tryCreate(c)
		switch {
		case of.known && of.status == http.StatusCreated:
			return tn.make(c, of), true
		case !of.known:
			doubtful = true
		case of.status == http.StatusConflict && of.code() == "email-taken" && !doubtful:
			tn.addresses.add(c.address, of, addressHeld, "create with %s", c.key)
			return u, false
		case of.status == http.StatusConflict && of.code() == "email-taken":
			tn.leave(c) // an earlier request may still create the user
			return u, false
		}
		if !tn.load.pause() {
			if doubtful {
				tn.leave(c)
			}
			return u, false
		}
	}
}

func (tn *tenant) tryCreate(c *creation) result {
	of := tn.request("POST /users", fmt.Sprintf(`{"email":%s,"name":"New"}`, quoted(c.address)), "idempotency-key: "+c.key)
	tn.noteKey(c, of)
	return of
}

// noteKey records a response to a creation. If responses were lost, closeKeys later records only
// the first of them. The other lost requests have no additional effect, and a check of all possible
// orders would take too long.
func (tn *tenant) noteKey(c *creation, of result) {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	switch {
	case !of.known:
		if first, ok := tn.lost[c.key]; !ok || of.start < first.start {
			tn.lost[c.key] = of
		}
		return
	case of.status == http.StatusCreated && of.header.Get("Idempotent-Replayed") == "":
		tn.firsthand[c.key] = true
	}
	tn.keys.add(c.key, of, keyUsed(of), "create %s, replayed: %q", c.address, of.header.Get("Idempotent-Replayed"))
}

// closeKeys records the first lost response of each key. It leaves out keys for which another
// request is known to have created the user.
func (tn *tenant) closeKeys() {
	for key, of := range tn.lost {
		if !tn.firsthand[key] {
			tn.keys.add(key, of, keyUsed(of), "create")
		}
	}
}

func (tn *tenant) leave(c *creation) {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	tn.pending = append(tn.pending, c)
}

// make records the user of a creation, once: repeats contain no new information.
func (tn *tenant) make(c *creation, of result) user {
	u := readUser(of)
	tn.mu.Lock()
	_, known := tn.known[u.ID]
	tn.known[u.ID] = c.address
	tn.mu.Unlock()
	if known {
		return u
	}
	of.start = c.first
	tn.users.add(u.ID, of, userMade(u.userState), "create")
	tn.addresses.add(c.address, of, addressTaken(u.ID), "create %s", u.ID)
	tn.expect(of, true, "user.created", u.ID)
	return u
}

// read reads a user. It returns nil if the user does not exist or the outcome is unknown.
func (tn *tenant) read(id string) *userState {
	of := tn.request("GET /users/"+id, "")
	switch {
	case !of.known || of.status == 0:
	case of.status == http.StatusNotFound:
		tn.users.add(id, of, userGone, "read")
	default:
		u := readUser(of)
		tn.users.add(id, of, userRead(u.userState), "read %+v", u.userState)
		return &u.userState
	}
	return nil
}

// patch changes a user. If basis is not nil, the request has the ETag of basis as its precondition.
func (tn *tenant) patch(id string, basis *userState, body string, change func(*userState)) *userState {
	var header []string
	text := "patch " + body
	if basis != nil {
		header = []string{"if-match: " + basis.etag}
		text += " if " + basis.etag
	}
	of := tn.request("PATCH /users/"+id, body, header...)
	tn.expect(of, of.status == http.StatusOK, "user.updated", id)
	return tn.changed(id, of, basis, change, text)
}

var statusEvents = map[string]string{"suspend": "user.suspended", "resume": "user.resumed"}

// setStatus suspends or resumes a user. The event is optional, because the user may already have
// the new status.
func (tn *tenant) setStatus(act, id string, change func(*userState)) result {
	of := tn.request("POST /users/"+id+"/"+act, "{}")
	if !of.known || of.status == http.StatusOK {
		tn.allow(statusEvents[act], id, bounds{0, 1})
	}
	tn.changed(id, of, nil, change, act)
	return of
}

func (tn *tenant) suspend(id string) result {
	return tn.setStatus("suspend", id, func(s *userState) { s.status = "suspended" })
}

// resume restores the former status of a suspended user.
func (tn *tenant) resume(id, was string) result {
	return tn.setStatus("resume", id, func(s *userState) {
		if s.status == "suspended" {
			s.status = was
		}
	})
}

// changed records the result of a requested change. It returns the new state of the user, or nil if
// the status of the response is not 200.
func (tn *tenant) changed(id string, of result, basis *userState, change func(*userState), text string) *userState {
	step := userChanged(of, basis, change)
	if of.status != http.StatusOK {
		tn.users.add(id, of, step, "%s", text)
		return nil
	}
	u := readUser(of)
	tn.users.add(id, of, step, "%s: %+v", text, u.userState)
	return &u.userState
}

func (tn *tenant) delete(id, address string) {
	of := tn.request("DELETE /users/"+id, "")
	tn.users.add(id, of, userDeleted(of), "delete")
	tn.addresses.add(address, of, addressFreed(of, id), "delete %s", id)
	tn.expect(of, of.status == http.StatusNoContent, "user.deleted", id)
}

// lookUp returns the id of the user with the address. It returns a pointer to "" if no user has the
// address, and nil if the outcome is unknown.
func (tn *tenant) lookUp(address string) *string {
	of := tn.request("GET /users?email="+url.QueryEscape(address), "")
	if of.status != http.StatusOK {
		return nil
	}
	var page struct{ Items []user }
	of.decode(&page)
	holder := ""
	if len(page.Items) > 0 {
		holder = page.Items[0].ID
	}
	tn.addresses.add(address, of, addressFound(holder), "look up %q", holder)
	return &holder
}

// hotUser is a user that many clients change.
type hotUser struct {
	user
	address string
	left    int // number of changes until another user replaces this one, so that histories stay short
}

// shared returns a user that other clients change too.
func (tn *tenant) shared(random *rand.Rand) (hotUser, bool) {
	const changes = 60
	place := random.IntN(len(tn.hot))
	tn.mu.Lock()
	if u := tn.hot[place]; u != nil && u.left > 0 {
		u.left--
		taken := *u
		tn.mu.Unlock()
		return taken, true
	}
	tn.mu.Unlock()
	c := tn.newCreation("")
	u, ok := tn.create(c)
	if !ok {
		return hotUser{}, false
	}
	next := &hotUser{u, c.address, changes}
	tn.mu.Lock()
	defer tn.mu.Unlock()
	tn.hot[place] = next
	return *next, true
}

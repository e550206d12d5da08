package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// visits are the kinds of requests, each with its relative frequency.
var visits = []struct {
	weight int
	ask    func(*visitor)
}{
	{20, (*visitor).readOwn}, {10, (*visitor).readUnchanged}, {10, (*visitor).whoAmI}, {10, (*visitor).list}, {6, (*visitor).search}, {3, (*visitor).overview},
	{6, (*visitor).readForeign}, {4, (*visitor).crossOver}, {5, (*visitor).readRoles}, {4, (*visitor).readEvents}, {8, (*visitor).create}, {2, (*visitor).replayShared},
	{5, (*visitor).change}, {3, (*visitor).refused}, {3, (*visitor).remove}, {2, (*visitor).assign}, {2, (*visitor).check}, {1, (*visitor).tenant}, {8, (*visitor).leave},
}

var allWeights = func() (sum int) {
	for _, kind := range visits {
		sum += kind.weight
	}
	return sum
}()

// user returns a user that this client created in the tenant. If there is no such user, it
// returns the owner.
func (v *visitor) user() string {
	if made := v.made[v.marked]; len(made) > 0 {
		return made[v.random.IntN(len(made))]
	}
	return v.owner
}

// other returns another tenant.
func (v *visitor) other() *marked {
	for {
		if c := v.tenants[v.random.IntN(len(v.tenants))]; c != v.marked {
			return c
		}
	}
}

// signIn starts a session, and keeps it if it is the tenant's first. Later sessions
// only cause load.
func (v *visitor) signIn() {
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, v.address, password)
	of, told := v.expect("POST /auths/login", body, []string{"cookie: a=b"}, 200) // replaces the session cookie, because a sign-in ends the session that it is sent with
	if told && v.token == "" {
		v.token = result{header: of.header}.session()
	}
}

func (v *visitor) readOwn() { v.expect("GET /users/"+v.user(), "", nil, 200) }

func (v *visitor) readUnchanged() {
	line := "GET /users/" + v.owner
	if of, ok := v.expect(line, "", nil, 200); ok {
		v.expect(line, "", []string{"if-none-match: " + of.header.Get("Etag")}, 304)
	}
}

func (v *visitor) whoAmI() {
	if v.random.IntN(300) == 0 {
		v.signIn()
	}
	v.expect("GET /auths/session", "", nil, 200)
}

func (v *visitor) list() {
	line := [...]string{"/users?limit=20&sort=-name", "/users?limit=20&count=true", "/roles?sort=name", "/events?limit=20", "/users?status=pending&limit=5", "/users?role=" + v.role}[v.random.IntN(6)]
	v.something(line)
}

// search must find the user that every tenant has and the users of this tenant, and no
// user of another tenant.
func (v *visitor) search() {
	v.something("/users?email=same@everywhere.example")
	v.something("/users?q=" + v.mark + "+same")
	v.nothing("/users?q=" + v.other().mark)
	v.nothing("/users?externalId=owner-" + v.other().mark)
	v.nothing("/users?department=Department+" + v.other().mark)
}

// something requests a list that must have items.
func (v *visitor) something(path string) {
	if of, told := v.expect("GET "+path, "", nil, 200); told && of.id() == "" {
		v.t.Errorf("%s asked %s and got %s", v.mark, path, of.body)
	}
}

// nothing requests a list that must be empty.
func (v *visitor) nothing(path string) {
	if of, told := v.expect("GET "+path, "", nil, 200); told && of.id() != "" {
		v.foreign.Add(1)
		v.t.Errorf("FOREIGN: %s asked %s and got %s", v.mark, path, of.body)
	}
}

func (v *visitor) overview() { v.expect("GET /users/"+v.user()+"/overview", "", nil, 200) }

// readForeign requests objects of another tenant with the session of this tenant.
func (v *visitor) readForeign() {
	c := v.other()
	for _, line := range []string{"GET /users/" + c.shared, "GET /users/" + c.owner + "/overview", "GET /roles/" + c.role, "GET /roles/" + c.role + "/users", "PUT /users/" + v.owner + "/roles/" + c.role} {
		v.expect(line, "", nil, 404)
	}
	v.expect("PATCH /users/"+c.shared, `{"name":"Stolen `+v.mark+`"}`, nil, 404)
	v.nothing("/events?subject=" + c.shared)
}

// crossOver sends the session of this tenant with the name of another tenant in the header. The
// session must not be valid in the other tenant.
func (v *visitor) crossOver() {
	v.expect("GET /users", "", []string{"x-tenant-schema: " + v.other().mark}, 401)
	v.expect("POST /users", `{"email":"x@`+v.mark+`.example","name":"Cuckoo"}`, []string{"x-tenant-schema: " + v.other().mark, "idempotency-key: x"}, 401)
}

func (v *visitor) readRoles() {
	v.expect("GET /roles/"+v.role, "", nil, 200)
	v.something("/roles?q=" + v.mark)
	v.expect("GET /users/"+v.owner+"/roles", "", nil, 200)
}

func (v *visitor) readEvents() {
	v.expect("GET /events?limit=10", "", nil, 200)
	v.expect("GET /users/"+v.shared+"/events?limit=10", "", nil, 200)
}

// create creates a user and repeats the request. The first request may have created the user
// without a response, so only the response to the second request is recorded.
func (v *visitor) create() {
	v.serial++
	name := fmt.Sprintf("%d-%d", v.name, v.serial)
	body := fmt.Sprintf(`{"email":"%s@%s.example","name":"Visitor %s %s","department":"Department %s","externalId":"%s-%s","metadata":{%q:%q}}`, name, v.mark, name, v.mark, v.mark, name, v.mark, v.mark, v.mark)
	key := []string{"idempotency-key: " + name}
	first, told := v.expect("POST /users", body, key, 201)
	again, toldAgain := v.expect("POST /users", body, key, 201)
	if told && toldAgain && first.id() != again.id() {
		v.t.Errorf("%s: one key made %s and %s", v.mark, first.body, again.body)
	}
	if toldAgain {
		v.made[v.marked] = append(v.made[v.marked], again.id())
	}
}

// replayShared repeats the creation that every tenant sent with the same idempotency key. The
// response must contain the user of this tenant.
func (v *visitor) replayShared() {
	of, told := v.expect("POST /users", `{"email":"same@everywhere.example","name":"Same `+v.mark+`"}`, []string{"idempotency-key: same"}, 201)
	if told && of.id() != v.shared {
		v.t.Errorf("%s: a replay answered %s", v.mark, of.body)
	}
}

func (v *visitor) change() {
	user := v.user()
	if user == v.owner {
		return
	}
	v.serial++
	v.expect("PATCH /users/"+user, fmt.Sprintf(`{"name":"Changed %d %s"}`, v.serial, v.mark), nil, 200)
	v.expect("PATCH /users/"+user, `{"name":"Stale `+v.mark+`"}`, []string{`if-match: "stale"`}, 412)
}

func (v *visitor) refused() {
	v.serial++
	key := []string{fmt.Sprintf("idempotency-key: refused-%d-%d", v.name, v.serial)}
	v.expect("POST /users", `{"email":"same@everywhere.example","name":"Twin `+v.mark+`"}`, key, 409)
	v.expect("POST /users", `{"email":"no address `+v.mark+`","name":"x"}`, key, 422)
	v.expect("POST /roles", `{"name":"keeper OF `+v.mark+`"}`, key, 409)
}

func (v *visitor) remove() {
	made := v.made[v.marked]
	if len(made) < 5 {
		return
	}
	user := made[0]
	v.made[v.marked] = slices.Delete(made, 0, 1)
	if _, told := v.expect("DELETE /users/"+user, "", nil, 204); told {
		v.expect("GET /users/"+user, "", nil, 404)
	}
}

func (v *visitor) assign() {
	user := v.user()
	if user == v.owner {
		return
	}
	v.expect("PUT /users/"+user+"/roles/"+v.role, "", nil, 200, 201)
	v.expect("GET /roles/"+v.role+"/users?limit=10", "", nil, 200)
}

func (v *visitor) check() {
	of, told := v.expect("GET /auths/check?permission="+v.mark+"/shop:open", "", nil, 204)
	if told && of.header.Get("X-Auth-Tenant") != v.mark {
		v.foreign.Add(1)
		v.t.Errorf("FOREIGN: %s is told to be %q", v.mark, of.header.Get("X-Auth-Tenant"))
	}
}

func (v *visitor) tenant() { v.expect("GET /tenant", "", nil, 200) }

// leave aborts a request after a random time.
func (v *visitor) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.Int64N(int64(20*time.Millisecond))))
	defer cancel()
	line, body := [...]string{"GET /users?limit=50&q=" + v.mark, "GET /events", "PATCH /users/" + v.shared, "GET /users/" + v.owner + "/overview"}[v.random.IntN(4)], ""
	if line == "PATCH /users/"+v.shared {
		body = fmt.Sprintf(`{"department":"Department %s","externalId":"left-%d-%s"}`, v.mark, v.random.IntN(1000), v.mark)
	}
	of := v.sendWithin(ctx, line, body)
	if of.status == 0 {
		v.dropped.Add(1)
	}
	v.checkMarks(v.marked, of, false)
}

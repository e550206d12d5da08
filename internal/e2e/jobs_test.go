package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

const everyJobMember = "id action status problem users roleId reach expiresAt reason startedBy createdAt endedAt expected expectedIsExact changed unchanged refused"

var fieldNotReadable = expectation{status: 403, code: "field-not-readable"}

// startJob starts a job and returns its id.
func (w *world) startJob(t testing.TB, c *caller, change, body string) string {
	t.Helper()
	return c.do(t, "POST /jobs/"+change, body).expect(t, 201).text("/id")
}

// awaitJob waits until the job has ended, and returns it.
func (w *world) awaitJob(t testing.TB, id string) (a *answer) {
	t.Helper()
	if !patience.Poll(func() bool {
		a = w.owner.do(t, "GET /jobs/"+id, "").expect(t, 200)
		return a.text("/status") != "running"
	}) {
		t.Fatalf("the job goes on: %s", a.body)
	}
	return a
}

func testJobs(t *testing.T, p *program) {
	t.Run("change all matching users", func(t *testing.T) { testJobsChangeUsers(t, newWorld(t, p)) })
	t.Run("are started once", func(t *testing.T) { testJobStarts(t, newWorld(t, p)) })
	t.Run("stop with their session", func(t *testing.T) { testJobStops(t, newWorld(t, p)) })
	t.Run("can be canceled", func(t *testing.T) { testJobCancel(t, newWorld(t, p)) })
}

func testJobsChangeUsers(t *testing.T, w *world) {
	role := w.role(t, "Given by a job", "shop/a:b")
	sales := make([]string, 0, 60)
	for i := range 60 { // more than two steps
		sales = append(sales, w.user(t, fmt.Sprintf("sales-%d", i), "Sales"))
	}
	ops, boss := w.user(t, "ops", "Ops"), w.user(t, "boss", "Sales")
	w.assign(t, boss, w.builtIn(t, "owner"), "")
	c := w.holder(t, "starter", "Sales", "Sales", "users:read", "users:suspend", "roles:read", "roles:assign", "shop/a:b")

	id := w.startJob(t, c, "suspend-users", `{"users":{"department":"SALES"},"reason":"The office closes"}`)
	job := w.awaitJob(t, id)
	s := scenario{status: 200, members: everyJobMember, has: map[string]any{
		"/status": "completed", "/action": "suspend", "/changed": 60.0, "/unchanged": 1.0, "/refused": 1.0, "/expected": 62.0, "/expectedIsExact": true,
		"/problem": nil, "/reason": "The office closes", "/users/department": "SALES", "/users/searched": false, "/startedBy/id": c.id, "/roleId": nil,
	}}
	s.check(t, job)
	refused := c.do(t, "GET /jobs/"+id+"/results?outcome=refused", "").expect(t, 200)
	if refused.text("/items/0/userId") != boss || refused.text("/items/0/problem") != "beyond-own-permissions" || len(refused.list("/items")) != 1 {
		t.Errorf("refused: %s", refused.body)
	}
	var listed []string
	for next := ""; ; {
		a := c.do(t, "GET /jobs/"+id+"/results?limit=25"+next, "").expect(t, 200)
		listed = append(listed, a.texts("userId")...)
		if a.value("/nextCursor") == nil {
			break
		}
		next = "&cursor=" + a.text("/nextCursor")
	}
	if want := sorted(append([]string{boss, c.id}, sales...)); !slices.Equal(listed, want) {
		t.Errorf("%d results, want %d", len(listed), len(want))
	}
	if got := w.owner.do(t, "GET /users/"+ops, "").text("/status"); got != "pending" {
		t.Errorf("a user of another department is %s", got)
	}
	event := w.owner.do(t, "GET /events?limit=1&subject="+sales[0], "").expect(t, 200)
	s = scenario{status: 200, has: map[string]any{"/items/0/type": "user.suspended", "/items/0/reason": "The office closes", "/items/0/actor/id": c.id}}
	s.check(t, event)
	if n := len(w.owner.readAll(t, "/events?type=user.suspended&limit=200")); n != 60 {
		t.Errorf("%d events", n)
	}

	assign := `{"users":{"q":"sales","status":"suspended"},"roleId":` + quoted(role) + `,"reach":{"departments":["Sales"]},"expiresAt":"2999-12-31T00:00:00Z"}`
	job = w.awaitJob(t, w.startJob(t, c, "assign-role", assign))
	s = scenario{status: 200, has: map[string]any{"/changed": 60.0, "/roleId": role, "/reach/departments/0": "Sales", "/expiresAt": "2999-12-31T00:00:00.000000Z", "/users/searched": true}, lacks: []string{`"q"`}}
	s.check(t, job)
	if n := len(w.owner.readAll(t, "/roles/"+role+"/users?limit=200")); n != 60 {
		t.Errorf("%d users have the role", n)
	}
	job = w.awaitJob(t, w.startJob(t, c, "unassign-role", `{"users":{"role":`+quoted(role)+`},"roleId":`+quoted(role)+`}`))
	s = scenario{status: 200, has: map[string]any{"/action": "unassign-role", "/changed": 60.0, "/refused": 0.0}}
	s.check(t, job)
	job = w.awaitJob(t, w.startJob(t, c, "resume-users", `{"users":{"status":"suspended"}}`))
	s = scenario{status: 200, has: map[string]any{"/action": "resume", "/changed": 60.0}}
	s.check(t, job)
}

func testJobStarts(t *testing.T, w *world) {
	o := w.owner
	reader := w.holder(t, "reader", "", "", "users.name:read", "users:suspend")
	suspend := func(name, body string, faults ...string) scenario {
		return scenario{name: name, as: o, send: "POST /jobs/suspend-users", body: body, status: 422, faults: faults}
	}
	play(t, []scenario{
		{name: "a job needs an idempotency key", as: o, send: "POST /jobs/suspend-users", body: `{"users":{}}`, header: []string{"-idempotency-key"}, status: 400},
		suspend("users are required", `{}`, "/users required"),
		suspend("null is not all users", `{"users":null}`, "/users type"),
		suspend("nor is a filter of null", `{"users":{"q":null,"status":null,"department":null,"role":null}}`, "/users/q type", "/users/status type", "/users/department type", "/users/role type"),
		suspend("nor is an empty filter", `{"users":{"q":"","status":"","department":"","role":""}}`, "/users/q length", "/users/status format", "/users/department length", "/users/role format"),
		{name: "nor is a reach of null the whole tenant", as: o, send: "POST /jobs/assign-role", body: `{"users":{},"roleId":` + quoted(never) + `,"reach":{"departments":null},"expiresAt":null}`, status: 422, faults: []string{"/reach/departments type", "/expiresAt type"}},
		suspend("all faults come at once", `{"users":{"q":"","status":"deleted","department":7,"role":"x","email":"ada@example.com"},"reason":7,"roleId":"x"}`,
			"/users/q length", "/users/status format", "/users/department type", "/users/role format", "/users/email unknown", "/reason type", "/roleId unknown"),
		suspend("a search has words", `{"users":{"q":"!"}}`, "/users/q no-word"),
		{name: "an assignment has a role", as: o, send: "POST /jobs/assign-role", body: `{"users":{},"expiresAt":"2000-01-01T00:00:00Z"}`, status: 422, faults: []string{"/roleId required", "/expiresAt past"}},
		{name: "the role must exist", as: o, send: "POST /jobs/assign-role", body: `{"users":{},"roleId":` + quoted(never) + `}`, status: 422, faults: []string{"/roleId unknown"}},
		{name: "a filter must be readable", as: reader, send: "POST /jobs/suspend-users", body: `{"users":{"status":"active"}}`, status: 403, code: "field-not-readable"},
		{name: "a search that is partly readable works", as: reader, send: "POST /jobs/suspend-users", body: `{"users":{"q":"zzz"}}`, status: 201, has: map[string]any{"/expected": 0.0}},
		{name: "a job that does not exist", as: o, send: "GET /jobs/" + never, status: 404, code: "not-found"},
		{name: "nor can be canceled", as: o, send: "POST /jobs/" + never + "/cancel", status: 404, code: "not-found"},
		{name: "an unknown outcome", as: o, send: "GET /jobs/" + never + "/results?outcome=x", status: 422, faults: []string{"parameter:outcome unknown-value"}},
	})
	key := "idempotency-key: one-job"
	first := o.do(t, "POST /jobs/suspend-users", `{"users":{"q":"nobody at all"}}`, key).expect(t, 201)
	again := o.do(t, "POST /jobs/suspend-users", `{"users":{"q":"nobody at all"}}`, key).expect(t, 201)
	if string(again.body) != string(first.body) || again.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Location") != "/jobs/"+first.text("/id") {
		t.Errorf("a repeat answered %s of %s", again.body, first.body)
	}
	o.do(t, "POST /jobs/resume-users", `{"users":{"q":"nobody at all"}}`, key).refused(t, 422, "idempotency-key-reused")
	w.awaitJob(t, first.text("/id"))
	started := o.do(t, "GET /events?type=job.started&limit=1", "").expect(t, 200)
	s := scenario{status: 200, has: map[string]any{"/items/0/after/id": first.text("/id"), "/items/0/members/0": "q"}, lacks: []string{"nobody"}}
	s.check(t, started)
}

func testJobStops(t *testing.T, w *world) {
	for i := range 150 {
		w.user(t, fmt.Sprintf("user-%d", i), "Sales")
	}
	c := w.holder(t, "starter", "", "", "users:read", "users:suspend")
	id := w.startJob(t, c, "suspend-users", `{"users":{"department":"Sales"}}`)
	c.do(t, "POST /auths/logout", "").expect(t, 204)
	job := w.awaitJob(t, id)
	suspended := len(w.owner.readAll(t, "/users?status=suspended&limit=200"))
	switch changed := int(job.value("/changed").(float64)); {
	case job.text("/status") == "completed" && changed == 150: // it was quicker
	case job.text("/status") != "stopped" || job.text("/problem") != "unauthenticated" || changed != suspended:
		t.Errorf("%d users are suspended, and the job is %s", suspended, job.body)
	}
	ended := w.owner.do(t, "GET /events?type=job.ended&limit=1", "").expect(t, 200)
	s := scenario{status: 200, has: map[string]any{"/items/0/after/id": id, "/items/0/after/changed": job.value("/changed"), "/items/0/reason": job.value("/problem"), "/items/0/actor/id": c.id}}
	s.check(t, ended)
}

func testJobCancel(t *testing.T, w *world) {
	for i := range 150 {
		w.user(t, fmt.Sprintf("user-%d", i), "Sales")
	}
	id := w.startJob(t, w.owner, "suspend-users", `{"users":{}}`)
	canceled := w.owner.do(t, "POST /jobs/"+id+"/cancel", "").expect(t, 200)
	again := w.owner.do(t, "POST /jobs/"+id+"/cancel", "").expect(t, 200)
	if status := canceled.text("/status"); string(again.body) != string(canceled.body) || status != "canceled" && status != "completed" {
		t.Errorf("%s, then %s", canceled.body, again.body)
	}
	if suspended := len(w.owner.readAll(t, "/users?status=suspended&limit=200")); float64(suspended) != canceled.value("/changed") {
		t.Errorf("%d users are suspended, and the job is %s", suspended, canceled.body)
	}
}

// startsJob prepares a request that starts a job, which concerns a role if withRole is true. It waits for the earlier
// jobs, because a tenant can run only a few at a time.
func startsJob(change string, withRole bool) preparation {
	return func(t *testing.T, w *providerWorld) request {
		if !patience.Poll(func() bool { return !slices.Contains(w.owner.do(t, "GET /jobs", "").texts("status"), "running") }) {
			t.Fatal("an earlier job goes on")
		}
		more := `,"reason":"The office closes"`
		if withRole {
			more = `,"roleId":` + quoted(aRole(t, w))
		}
		return request{line: "POST /jobs/" + change, body: `{"users":{"department":"Nowhere"}` + more + `}`, events: []string{"job.started tenant {tenant} [department]"}}
	}
}

// startJobCells starts jobs that match no user.
func startJobCells(change, permission, more string) func(*testing.T, *matrix, *principal) {
	return func(t *testing.T, m *matrix, p *principal) {
		body := `{"users":{"department":"Nowhere"}` + more + `}`
		wanted := first(done(201, everyJobMember), check{p.mayAnywhere(permission), mayNot}, check{p.readsAnything(), mayNot}, check{p.mayAnywhere("users.department:read"), fieldNotReadable})
		if more != "" { // an unknown role
			wanted = first(expectation{status: 422, code: "validation"}, check{p.mayAnywhere(permission), mayNot}, check{p.readsAnything(), mayNot}, check{p.mayAnywhere("users.department:read"), fieldNotReadable})
		}
		if a := p.compare(t, "no users", "POST /jobs/"+change, body, wanted); a.status == http.StatusCreated {
			m.awaitJob(t, a.text("/id"))
		}
	}
}

var (
	_ = specify("JobsController_suspendUsers", endsAccess, startsJob("suspend-users", false), startJobCells("suspend-users", "users:suspend", ""))
	_ = specify("JobsController_resumeUsers", grantsAccess, startsJob("resume-users", false), startJobCells("resume-users", "users:suspend", ""))
	_ = specify("JobsController_unassignRole", removesForGood, startsJob("unassign-role", true), startJobCells("unassign-role", "roles:assign", `,"roleId":"`+never+`"`))
)

func assignJobCells(t *testing.T, m *matrix, p *principal) {
	for _, r := range m.passed() {
		body := `{"users":{"department":"Nowhere"},"roleId":` + quoted(r.id) + `,"reach":{"departments":["Sales"]}}`
		a := p.compare(t, r.name, "POST /jobs/assign-role", body, first(done(201, everyJobMember), check{p.mayAnywhere("roles:assign"), mayNot}, check{p.readsAnything(), mayNot},
			check{p.mayAnywhere("users.department:read"), fieldNotReadable}, check{r.exists, expectation{status: 422, code: "validation"}}, check{p.mayPass(r.permissions, "Sales"), beyondOwn}))
		if a.status == http.StatusCreated {
			m.awaitJob(t, a.text("/id"))
		}
	}
}

var _ = specify("JobsController_assignRole", grantsAccess, startsJob("assign-role", true), assignJobCells)

func listJobsCells(t *testing.T, m *matrix, p *principal) {
	id := m.startJob(t, m.owner, "resume-users", `{"users":{"department":"Nowhere"}}`)
	m.awaitJob(t, id)
	a := p.compare(t, "jobs", "GET /jobs?limit=200", "", done(200, "items nextCursor"))
	if listed := slices.Contains(a.texts("id"), id); listed != (p.live && p.may("events:read", "")) {
		t.Errorf("the job of another user: listed is %v", listed)
	}
}

var _ = specify("JobsController_listJobs", changesNothing, withoutObject("GET /jobs", ""), listJobsCells)

// jobCells reads a job of another user.
func jobCells(method, path, members string) func(*testing.T, *matrix, *principal) {
	return func(t *testing.T, m *matrix, p *principal) {
		id := m.startJob(t, m.owner, "suspend-users", `{"users":{"department":"Nowhere"}}`)
		m.awaitJob(t, id)
		p.compare(t, "another user's job", method+" /jobs/"+id+path, "", first(done(200, members), check{p.may("events:read", ""), notThere}))
		p.compare(t, "a job that never was", method+" /jobs/"+never+path, "", notThere)
	}
}

var (
	_ = specify("JobsController_getJob", changesNothing, withObject(aJob, "GET /jobs/{id}", ""), jobCells("GET", "", everyJobMember))
	_ = specify("JobsController_listJobResults", changesNothing, withObject(aJob, "GET /jobs/{id}/results", ""), jobCells("GET", "/results", "items nextCursor"))
)

func cancelJobCells(t *testing.T, m *matrix, p *principal) {
	id := m.startJob(t, m.owner, "suspend-users", `{"users":{"department":"Nowhere"}}`)
	m.awaitJob(t, id)
	p.compare(t, "another user's job", "POST /jobs/"+id+"/cancel", "", first(done(200, everyJobMember), check{p.may("events:read", ""), notThere}, check{p.may("users:suspend", ""), mayNot}))
	p.compare(t, "a job that never was", "POST /jobs/"+never+"/cancel", "", notThere)
}

var _ = specify("JobsController_cancelJob", changesNothing, withObject(aJob, "POST /jobs/{id}/cancel", ""), cancelJobCells) // users that the job has changed stay changed

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

func testChanges(t *testing.T, p *program) {
	t.Run("items", func(t *testing.T) { testChangeItems(t, newWorld(t, p)) })
	t.Run("pages", func(t *testing.T) { testChangePages(t, newWorld(t, p)) })
	t.Run("bad input", func(t *testing.T) { testChangesBadInput(t, newWorld(t, p)) })
	t.Run("readers", func(t *testing.T) { testChangeReaders(t, newWorld(t, p)) })
	t.Run("waits", func(t *testing.T) { testChangeWaits(t, newWorld(t, p)) })
	t.Run("ends of waits", func(t *testing.T) { testEndsOfWaits(t, newWorld(t, p)) })
	t.Run("limits of waits", func(t *testing.T) { testLimitsOfWaits(t, newWorld(t, p)) })
}

// now returns the cursor after all changes, with the parameters.
func (c *caller) now(t testing.TB, parameters ...string) string {
	t.Helper()
	a := c.do(t, "GET /changes?"+strings.Join(append(parameters, "at=now"), "&"), "").expect(t, 200)
	if len(a.list("/items")) != 0 || a.value("/upToDate") != true {
		t.Errorf("now: %s", a.body)
	}
	return a.text("/nextCursor")
}

// since returns "GET /changes" after the cursor, with further parameters.
func since(cursor string, parameters ...string) string {
	return "GET /changes?after=" + url.QueryEscape(cursor) + strings.Join(append([]string{""}, parameters...), "&")
}

func testChangeItems(t *testing.T, w *world) {
	const allData = "tenant subject members actor requestId reason expiresAt"
	cursor := w.owner.now(t)
	account := w.account(t, "Robot", "*:*", "*/*:*")
	robot := w.owner.makeToken(t, account, "users:create", "users:read", "changes:read")
	made := robot.do(t, "POST /users", `{"email":"item@example.com","name":"First Item","department":"Sales"}`).expect(t, 201)
	id := made.text("/id")
	w.owner.do(t, "PATCH /users/"+id, `{"name":"Second Item"}`).expect(t, 200)
	w.owner.do(t, "POST /users/"+id+"/suspend", `{"reason":"leave"}`).expect(t, 200)
	role := w.role(t, "Item", "users:read")
	w.assign(t, id, role, `{"expiresAt":"2999-12-31T00:00:00Z"}`)
	w.owner.do(t, "DELETE /users/"+id, "").expect(t, 204)

	a := w.owner.do(t, since(cursor), "").expect(t, 200)
	s := scenario{status: 200, members: "items nextCursor upToDate", has: map[string]any{"/upToDate": true}, lacks: []string{`"sessionId"`, "127.0.0.1", robot.bearer}}
	s.check(t, a)
	about := map[string]int{} // index of the item about the user, by type
	for i, subject := range a.texts("subject") {
		if subject == "user/"+id {
			about[a.text(fmt.Sprintf("/items/%d/type", i))] = i
		}
	}
	kinds := []string{"user.created", "user.updated", "user.suspended", "role.assigned", "user.deleted"}
	last := -1
	for _, kind := range kinds {
		i, ok := about[kind]
		if !ok || i <= last {
			t.Fatalf("%s has the place %d after %d: %s", kind, i, last, a.body)
		}
		last = i
	}
	at := func(kind string) string { return fmt.Sprintf("/items/%d", about[kind]) }
	events := w.owner.do(t, "GET /events?limit=200&subject="+id, "").expect(t, 200)
	first := len(events.list("/items")) - 1
	created := at("user.created")
	has := scenario{status: 200, has: map[string]any{
		created + "/specversion": "1.0", created + "/id": events.text(fmt.Sprintf("/items/%d/id", first)), created + "/source": public + "/tenants/" + w.name,
		created + "/time": events.text(fmt.Sprintf("/items/%d/occurredAt", first)), created + "/datacontenttype": "application/json",
		created + "/data/tenant": w.name, created + "/data/subject/type": "user", created + "/data/subject/id": id,
		created + "/data/actor/type": "service_account", created + "/data/actor/id": account, created + "/data/actor/via": "token", created + "/data/actor/tokenId": robot.bearerID,
		created + "/data/requestId": made.header.Get("X-Request-Id"), created + "/data/after/name": "First Item", created + "/data/expiresAt": nil,
		at("user.updated") + "/data/members/0": "name", at("user.updated") + "/data/before/name": "First Item", at("user.updated") + "/data/after/name": "Second Item",
		at("user.updated") + "/data/actor/id": w.owner.id, at("user.updated") + "/data/actor/tokenId": nil,
		at("user.suspended") + "/data/reason":   "leave",
		at("role.assigned") + "/data/expiresAt": "2999-12-31T00:00:00.000000Z", at("role.assigned") + "/data/after/roleId": role,
		at("user.deleted") + "/data/expiresAt": nil,
	}}
	has.check(t, a)
	if got, want := a.members(created), sorted(strings.Fields("specversion id source type time subject datacontenttype data")); !slices.Equal(got, want) {
		t.Errorf("an item has %q, not %q", got, want)
	}
	if got, want := a.members(created+"/data"), sorted(append(strings.Fields(allData), "after")); !slices.Equal(got, want) {
		t.Errorf("data has %q, not %q", got, want)
	}
	w.owner.do(t, "POST /users/"+id+"/erase", "").expect(t, 204)
	erased := scenario{status: 200, contains: []string{`"user.erased"`}, lacks: []string{"First Item", "Second Item", "item@example.com"}}
	erased.check(t, w.owner.do(t, since(cursor), ""))
}

func testChangePages(t *testing.T, w *world) {
	cursor := w.owner.now(t)
	var users []string
	for i := range 5 {
		users = append(users, w.user(t, fmt.Sprintf("page-%d", i), ""))
	}
	all := w.owner.do(t, since(cursor), "").expect(t, 200)
	var ids []string
	for at := cursor; ; {
		a := w.owner.do(t, since(at, "limit=2"), "").expect(t, 200)
		if n := len(a.list("/items")); n > 2 {
			t.Errorf("a page has %d items", n)
		}
		ids = append(ids, a.texts("id")...)
		at = a.text("/nextCursor")
		if a.value("/upToDate") == true {
			break
		}
	}
	if !slices.Equal(ids, all.texts("id")) {
		t.Errorf("page by page %q, at once %q", ids, all.texts("id"))
	}
	const created = "type=user.created"
	a := w.owner.do(t, "GET /changes?limit=200&"+created, "").expect(t, 200)
	var about []string
	for _, subject := range a.texts("subject") {
		about = append(about, strings.TrimPrefix(subject, "user/"))
	}
	if len(about) != 6 || !slices.Equal(about[1:], users) { // the owner is the first
		t.Errorf("created are %q, want the owner and %q", about, users)
	}
	// A cursor after events of other types is at the end, too.
	w.owner.do(t, "PATCH /users/"+users[0], `{"name":"Renamed Once"}`).expect(t, 200)
	at := a.text("/nextCursor")
	for range 2 {
		a = w.owner.do(t, since(at, created), "").expect(t, 200)
		if at = a.text("/nextCursor"); len(a.list("/items")) != 0 || a.value("/upToDate") != true || at == "" {
			t.Errorf("after all: %s", a.body)
		}
	}
	user := w.user(t, "page-last", "")
	if a = w.owner.do(t, since(at, created), "").expect(t, 200); !slices.Equal(a.texts("subject"), []string{"user/" + user}) {
		t.Errorf("the last is %q", a.texts("subject"))
	}
}

func testChangesBadInput(t *testing.T, w *world) {
	cursor := w.owner.now(t)
	foreign := newWorld(t, w.program)
	elsewhere := foreign.owner.now(t)
	list := w.owner.do(t, "GET /events?limit=1", "").expect(t, 200).text("/nextCursor")
	bad := func(name, send string, status int, faults ...string) scenario {
		return scenario{name: name, as: w.owner, send: send, status: status, faults: faults}
	}
	const notCursor = "parameter:after cursor"
	play(t, []scenario{
		bad("an empty cursor", "GET /changes?after=", 400, notCursor),
		bad("not a cursor", since("x"), 400, notCursor),
		bad("a changed cursor", since(cursor[:len(cursor)-2]+"AA"), 400, notCursor),
		bad("a cursor of another tenant", since(elsewhere), 400, notCursor),
		bad("a cursor of another type", since(cursor, "type=user.created"), 400, notCursor),
		bad("a cursor of a list", since(list), 400, notCursor),
		bad("two cursors", since(cursor, "after=x"), 400, "parameter:after repeated"),
		bad("a cursor and a place", since(cursor, "at=now"), 400, "parameter:at ambiguous"),
		bad("another place", "GET /changes?at=then", 422, "parameter:at unknown-value"),
		bad("an unknown type", "GET /changes?type=user.painted", 422, "parameter:type unknown-value"),
		bad("a limit of zero", "GET /changes?limit=0", 400, "parameter:limit range"),
		bad("a negative wait", "GET /changes?wait=-1", 400, "parameter:wait range"),
		bad("too long a wait", "GET /changes?wait=31", 400, "parameter:wait range"),
		bad("a wait that is no number", "GET /changes?wait=soon", 400, "parameter:wait range"),
		bad("a wait with a fraction", "GET /changes?wait=1.5", 400, "parameter:wait range"),
		bad("an unknown parameter", "GET /changes?cursor="+url.QueryEscape(cursor), 400, "parameter:cursor unknown"),
		{name: "a large limit", as: w.owner, send: "GET /changes?limit=100000", status: 200},
		{name: "nobody", as: w.anonymous(), send: "GET /changes", status: 401},
		{name: "another method", as: w.owner, send: "POST /changes", body: "{}", status: 405},
	})
}

func testChangeReaders(t *testing.T, w *world) {
	denied := func(name string, c *caller) scenario {
		return scenario{name: name, as: c, send: "GET /changes?wait=5", status: 403, code: "permission-denied"}
	}
	reader := w.holder(t, "reader", "", "", "changes:read", "users.name:read")
	play(t, []scenario{
		denied("without the permission", w.holder(t, "auditor", "", "", "events:read", "users:read")),
		denied("within a department", w.holder(t, "scoped", "Sales", "Sales", "changes:read", "users:read")),
		{name: "with one member", as: reader, send: "GET /changes?limit=200", status: 200, contains: []string{`"name":`}, lacks: []string{w.owner.email, `"permissions":`}},
	})
	cursor := reader.now(t)
	reader.do(t, since(cursor), "").expect(t, 200)
	w.assign(t, reader.id, w.role(t, "Reads addresses", "users.email:read"), "")
	reader.do(t, since(cursor), "").refused(t, 410, "changes-expired")
	cursor = reader.now(t)
	w.assign(t, reader.id, w.role(t, "Reads nothing more", "shop/a:b"), "")
	reader.do(t, since(cursor), "").expect(t, 200)
	other := w.holder(t, "other-reader", "", "", "changes:read", "users.name:read")
	other.do(t, since(cursor), "").refused(t, 410, "changes-expired") // may read other values
}

// asked sends the request in the background.
func (c *caller) asked(t *testing.T, line string) <-chan *answer {
	answers := make(chan *answer, 1)
	go func() {
		a, err := c.try(t, line, "")
		if err != nil {
			t.Errorf("%s: %v", line, err)
			a = &answer{line: line}
		}
		answers <- a
	}()
	return answers
}

// waits sends a request that waits in the background. It repeats the request while too many others
// wait.
func (c *caller) waits(t *testing.T, line string) <-chan *answer {
	answers := make(chan *answer, 1)
	go func() {
		for {
			if a := <-c.asked(t, line); a.status != http.StatusTooManyRequests {
				answers <- a
				return
			}
		}
	}()
	return answers
}

// awaitWaits returns when n requests of the principal wait: with as many more as may wait and one,
// one is refused.
func (c *caller) awaitWaits(t *testing.T, n int) {
	t.Helper()
	if !patience.Poll(func() (refused bool) {
		var others []<-chan *answer
		for range maxWaits - n + 1 {
			others = append(others, c.asked(t, "GET /changes?wait=1&"+rare))
		}
		for _, other := range others {
			refused = (<-other).status == 429 || refused
		}
		return refused
	}) {
		t.Fatalf("%d requests do not wait", n)
	}
}

// rare is the parameter for a type without events.
const rare = "type=job.ended"

// waitLongest is the parameter for the longest wait, which ends after longestWait.
const (
	waitLongest = "wait=30"
	longestWait = 30 * time.Second
)

// maxWaits is the number of requests of a principal that can wait on a node.
const maxWaits = 8

func testChangeWaits(t *testing.T, w *world) {
	began := time.Now()
	a := w.owner.do(t, since(w.owner.now(t), "wait=1"), "").expect(t, 200)
	if took := time.Since(began); took < time.Second || len(a.list("/items")) != 0 || a.value("/upToDate") != true {
		t.Errorf("after %v: %s", took, a.body)
	}
	w.owner.do(t, since(a.text("/nextCursor")), "").expect(t, 200)

	inLessThan(t, longestWait, func() {
		cursor := w.owner.now(t)
		waiting, filtered := w.owner.waits(t, since(cursor, waitLongest)), w.owner.waits(t, since(w.owner.now(t, "type=user.deleted"), waitLongest, "type=user.deleted"))
		w.owner.awaitWaits(t, 2)
		user := w.user(t, "awaited", "")
		if a := (<-waiting).expect(t, 200); a.text("/items/0/subject") != "user/"+user {
			t.Errorf("waited for %s", a.body)
		}
		w.owner.do(t, "DELETE /users/"+user, "").expect(t, 204)
		if a := (<-filtered).expect(t, 200); a.text("/items/0/type") != "user.deleted" {
			t.Errorf("waited for %s", a.body)
		}
	})
}

func testEndsOfWaits(t *testing.T, w *world) {
	for _, end := range []struct {
		name   string
		status int
		code   string
		do     func(c *caller, role string)
	}{
		{"the session ends", 401, "unauthenticated", func(c *caller, _ string) {
			w.owner.do(t, "DELETE /users/"+c.id+"/sessions", "").expect(t, 204)
		}},
		{"the user is suspended", 401, "unauthenticated", func(c *caller, _ string) {
			w.owner.do(t, "POST /users/"+c.id+"/suspend", "").expect(t, 200)
		}},
		{"the permission is removed", 403, "permission-denied", func(_ *caller, role string) {
			w.owner.do(t, "PATCH /roles/"+role, `{"permissions":["users:read"]}`).expect(t, 200)
		}},
		{"other values become readable", 410, "changes-expired", func(_ *caller, role string) {
			w.owner.do(t, "PATCH /roles/"+role, `{"permissions":["changes:read","users:read"]}`).expect(t, 200)
		}},
	} {
		t.Run(end.name, func(t *testing.T) {
			attempts := 0
			inLessThan(t, longestWait, func() {
				attempts++
				c := w.member(t, fmt.Sprintf("waits-until-%s-%d", strings.ReplaceAll(end.name, " ", "-"), attempts), "")
				role := w.role(t, fmt.Sprintf("Waits until %s %d", end.name, attempts), "changes:read")
				w.assign(t, c.id, role, "")
				waiting := c.waits(t, since(c.now(t, rare), waitLongest, rare))
				c.awaitWaits(t, 1)
				end.do(c, role)
				(<-waiting).refused(t, end.status, end.code)
			})
		})
	}
}

func testLimitsOfWaits(t *testing.T, w *world) {
	c := w.holder(t, "impatient", "", "", "changes:read")
	cursor := c.now(t, rare)
	var waiting []<-chan *answer
	for range maxWaits {
		waiting = append(waiting, c.waits(t, since(cursor, waitLongest, rare)))
	}
	c.awaitWaits(t, maxWaits)
	a := c.do(t, since(cursor, "wait=1", rare), "").refused(t, 429, "too-many-waits")
	if a.header.Get("Retry-After") == "" {
		t.Error("without Retry-After")
	}
	c.do(t, since(cursor, rare), "").expect(t, 200) // does not wait
	w.holder(t, "patient", "", "", "changes:read").do(t, "GET /changes?wait=1", "").expect(t, 200)
	w.awaitJob(t, w.startJob(t, w.owner, "suspend-users", `{"users":{"department":"Nowhere"}}`)) // ends the waits
	for _, answers := range waiting {
		(<-answers).expect(t, 200)
	}
	c.do(t, since(c.now(t, rare), "wait=1", rare), "").expect(t, 200)
}

// TestADrainingNodeAnswersItsWaits stops a program while a request waits.
func TestADrainingNodeAnswersItsWaits(t *testing.T) {
	t.Parallel()
	inLessThan(t, longestWait, func() {
		p := newProgram(t, build(t), stores[0].database(t))
		p.start(t)
		stop := sync.OnceFunc(func() { p.stop(t) })
		t.Cleanup(stop)
		w := newWorld(t, p)
		waiting := w.owner.waits(t, since(w.owner.now(t, rare), waitLongest, rare))
		w.owner.awaitWaits(t, 1)
		go stop()
		if a := (<-waiting).expect(t, 200); len(a.list("/items")) != 0 || a.text("/nextCursor") == "" {
			t.Errorf("a node that stops answered %s", a.body)
		}
	})
}

// lookEvery is the time after which a waiting request looks at the database if nothing wakes it.
const lookEvery = 5 * time.Second

// TestAWaitOnAnotherNodeIsAnsweredAtOnce changes users on one node, while a request waits on another
// node. The change must wake the request before it looks at the database by itself.
func TestAWaitOnAnotherNodeIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	binary, url := build(t), pgtest.URL(t)
	near, metrics := serve(t, binary, url), freeAddress(t)
	far := serve(t, binary, url, "--metrics-listen", metrics)
	r := newRevoked(t, near)
	there := *r.world.owner
	there.world = r.on(t, far)
	awaitMetric(t, metrics, "rolecall_watch_up 1")
	cursor := there.now(t)
	renamed := 0
	for range 3 {
		inLessThan(t, lookEvery, func() {
			waiting := there.waits(t, since(cursor, waitLongest))
			there.awaitWaits(t, 1)
			renamed++
			r.world.owner.do(t, "PATCH /users/"+r.caller.id, fmt.Sprintf(`{"name":"Renamed %d times"}`, renamed)).expect(t, 200)
			got := (<-waiting).expect(t, 200)
			if got.text("/items/0/data/after/name") != fmt.Sprintf("Renamed %d times", renamed) {
				t.Errorf("waited for %s", got.body)
			}
			cursor = got.text("/nextCursor")
		})
	}
	awaitMetric(t, metrics, "rolecall_changes_lag_seconds 0")
}

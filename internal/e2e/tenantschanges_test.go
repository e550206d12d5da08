package e2e

import (
	"fmt"
	"net"
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

func testTenantsChanges(t *testing.T, p *program) {
	t.Run("items", func(t *testing.T) { testTenantsChangeItems(t, newWorld(t, p), newWorld(t, p)) })
	t.Run("pages", func(t *testing.T) { testTenantsChangePages(t, newWorld(t, p), newWorld(t, p)) })
	t.Run("deletion", func(t *testing.T) { testTenantsChangesOfADeletion(t, newWorld(t, p)) })
	t.Run("bad input", func(t *testing.T) { testTenantsChangesBadInput(t, newWorld(t, p)) })
	t.Run("waits", func(t *testing.T) { testTenantsChangeWaits(t, newWorld(t, p)) })
}

// follower returns a caller with a key for the changes of the given worlds only, or of all tenants.
func (p *program) follower(t *testing.T, here *world, of ...*world) *caller {
	t.Helper()
	flags := []string{"--scope", "changes"}
	for _, w := range of {
		flags = append(flags, "--tenant", w.name)
	}
	return p.operatorKey(t, flags...).of(here)
}

// nowOfTenants is like now, for the changes of all tenants.
func (c *caller) nowOfTenants(t testing.TB, parameters ...string) string {
	t.Helper()
	var a *answer
	if !patience.Poll(func() bool { // other tests change many tenants at the same time
		a = c.do(t, "GET /operator/changes?"+strings.Join(append(parameters, "at=now"), "&"), "").expect(t, 200)
		return a.value("/upToDate") == true
	}) || len(a.list("/items")) != 0 {
		t.Errorf("now: %s", a.body)
	}
	return a.text("/nextCursor")
}

// sinceOfTenants returns "GET /operator/changes" after the cursor, with further parameters.
func sinceOfTenants(cursor string, parameters ...string) string {
	return "GET /operator/changes?after=" + url.QueryEscape(cursor) + strings.Join(append([]string{""}, parameters...), "&")
}

// followTenants reads the changes after the cursor until the feed is up to date, and returns the items of
// each tenant as JSON, and the last cursor.
func (c *caller) followTenants(t testing.TB, cursor string, parameters ...string) (items map[string][]string, next string) {
	t.Helper()
	items = map[string][]string{}
	for {
		a := c.do(t, sinceOfTenants(cursor, parameters...), "").expect(t, 200)
		for i, tenant := range a.texts("data/tenant") {
			items[tenant] = append(items[tenant], fmt.Sprint(a.value(fmt.Sprintf("/items/%d", i))))
		}
		if cursor = a.text("/nextCursor"); a.value("/upToDate") == true {
			return items, cursor
		}
	}
}

// awaitOf reads the changes after the cursor again and again, until there are n of the tenant. A change is
// in the feed of all tenants some milliseconds after its response.
func (c *caller) awaitOf(t testing.TB, tenant string, n int, cursor string, parameters ...string) (items []string, next string) {
	t.Helper()
	if !patience.Poll(func() bool {
		var all map[string][]string
		all, next = c.followTenants(t, cursor, parameters...)
		items = all[tenant]
		return len(items) >= n
	}) || len(items) > n {
		t.Fatalf("%s: read %q, want %d changes", tenant, items, n)
	}
	return items, next
}

func testTenantsChangeItems(t *testing.T, w, other *world) {
	operator, limited := w.program.follower(t, w), w.program.follower(t, w, other)
	cursor, of, ofOther, ofLimited := operator.nowOfTenants(t), w.owner.now(t), other.owner.now(t), limited.nowOfTenants(t)
	user := w.user(t, "item", "Sales")
	other.user(t, "item", "")
	w.owner.do(t, "PATCH /users/"+user, `{"name":"Renamed Item"}`).expect(t, 200)
	w.assign(t, user, w.role(t, "Item", "users:read"), `{"expiresAt":"2999-12-31T00:00:00Z"}`)
	other.owner.do(t, "DELETE /users/"+other.user(t, "gone", ""), "").expect(t, 204)
	w.owner.now(t) // numbers the events
	other.owner.now(t)
	read, next := operator.followTenants(t, cursor, "limit=20")
	for tenant, feed := range map[*world]string{w: of, other: ofOther} {
		a := tenant.owner.do(t, since(feed), "").expect(t, 200)
		var want []string
		for i := range a.list("/items") {
			want = append(want, fmt.Sprint(a.value(fmt.Sprintf("/items/%d", i))))
		}
		if !slices.Equal(read[tenant.name], want) || len(want) < 3 {
			t.Errorf("%s: the operator reads %d changes, or others than the %d of the tenant", tenant.name, len(read[tenant.name]), len(want))
		}
	}
	only, _ := limited.followTenants(t, ofLimited)
	if !slices.Equal(only[other.name], read[other.name]) || len(only) != 1 {
		t.Errorf("a key for one tenant reads %d changes of %d tenants", len(only[other.name]), len(only))
	}
	if again, _ := operator.followTenants(t, next); len(again[w.name])+len(again[other.name]) != 0 {
		t.Errorf("after all: %q", again)
	}
	s := scenario{status: 200, members: "items nextCursor upToDate"}
	s.check(t, operator.do(t, sinceOfTenants(cursor, "limit=200"), ""))
	shows := func(lacks string, contains ...string) {
		t.Helper()
		read, _ := operator.followTenants(t, cursor, "limit=200")
		text := strings.Join(read[w.name], "\n")
		for _, part := range contains {
			if !strings.Contains(text, part) {
				t.Errorf("the changes do not have %q: %s", part, text)
			}
		}
		for _, part := range []string{lacks, "sessionId", "127.0.0.1"} {
			if strings.Contains(text, part) {
				t.Errorf("the changes have %q: %s", part, text)
			}
		}
	}
	shows("user.erased", "Renamed Item", public+"/tenants/"+w.name)
	w.owner.do(t, "POST /users/"+user+"/erase", "").expect(t, 204)
	w.owner.now(t)
	shows("Renamed Item", "user.erased")
}

func testTenantsChangePages(t *testing.T, w, other *world) {
	operator, limited := w.program.follower(t, w), w.program.follower(t, w, w, other)
	cursor, of, rare := operator.nowOfTenants(t), limited.nowOfTenants(t), limited.nowOfTenants(t, "type=user.deleted")
	for i := range 3 {
		for _, of := range []*world{w, other} {
			user := of.user(t, fmt.Sprintf("page-%d", i), "")
			of.owner.do(t, "DELETE /users/"+user, "").expect(t, 204)
			of.owner.now(t)
		}
	}
	all, _ := operator.followTenants(t, cursor, "limit=200")
	for _, limit := range []string{"limit=1", "limit=3"} { // of all tenants, other tests write more changes than such pages can follow
		if paged, _ := limited.followTenants(t, of, limit); fmt.Sprint(paged[w.name], paged[other.name]) != fmt.Sprint(all[w.name], all[other.name]) {
			t.Errorf("%s: read %q, at once %q", limit, paged, all)
		}
	}
	for _, limit := range []string{"limit=1", "limit=200"} {
		deleted, _ := limited.followTenants(t, rare, limit, "type=user.deleted")
		for _, name := range []string{w.name, other.name} {
			if len(deleted[name]) != 3 || !strings.Contains(fmt.Sprint(deleted[name]), "user.deleted") || strings.Contains(fmt.Sprint(deleted[name]), "user.created") {
				t.Errorf("%s: deleted are %q", limit, deleted[name])
			}
		}
	}
	var names []string
	for cursor, more := "", true; more; { // from the beginning
		a := operator.do(t, "GET /operator/changes?type=tenant.created&limit=200"+cursor, "").expect(t, 200)
		names = append(names, a.texts("data/tenant")...)
		cursor, more = "&after="+url.QueryEscape(a.text("/nextCursor")), a.value("/upToDate") != true
	}
	if !slices.Contains(names, w.name) || !slices.Contains(names, other.name) {
		t.Errorf("created were %q", names)
	}
}

func testTenantsChangesOfADeletion(t *testing.T, w *world) {
	operator, all, line := w.program.follower(t, w), w.program.operator.of(w), "/operator/tenants/"+w.name
	cursor := operator.nowOfTenants(t, "type=tenant.deleted")
	before := operator.nowOfTenants(t)
	user := w.user(t, "before", "")
	all.do(t, "DELETE "+line, "", "if-match: *").expect(t, 204)
	operator.awaitOf(t, w.name, 1, cursor, "type=tenant.deleted")
	of, next := operator.awaitOf(t, w.name, 2, before)
	if !strings.Contains(of[0], user) || !strings.Contains(of[1], "tenant.deleted") {
		t.Errorf("of the deleted tenant: %q", of)
	}
	all.do(t, "POST "+line+"/restore", "").expect(t, 200)
	if of, next = operator.awaitOf(t, w.name, 1, next); !strings.Contains(of[0], "tenant.restored") {
		t.Errorf("of the restored tenant: %q", of)
	}
	w.program.run(t, "", "tenant", "suspend", w.name) // numbers its events itself
	if read, _ := operator.followTenants(t, next); len(read[w.name]) != 1 || !strings.Contains(read[w.name][0], "tenant.suspended") {
		t.Errorf("after a command: %q", read[w.name])
	}
}

func testTenantsChangesBadInput(t *testing.T, w *world) {
	operator, limited := w.program.follower(t, w), w.program.follower(t, w, w)
	cursor, ofLimited := operator.nowOfTenants(t), limited.nowOfTenants(t)
	const notCursor, path = "parameter:after cursor", "GET /operator/changes"
	bad := func(name, send string, status int, faults ...string) scenario {
		return scenario{name: name, as: operator, send: send, status: status, faults: faults}
	}
	play(t, []scenario{
		bad("an empty cursor", path+"?after=", 400, notCursor),
		bad("not a cursor", sinceOfTenants("x"), 400, notCursor),
		bad("a changed cursor", sinceOfTenants(cursor[:len(cursor)-2]+"AA"), 400, notCursor),
		bad("a cursor of a tenant", sinceOfTenants(w.owner.now(t)), 400, notCursor),
		bad("a cursor of another type", sinceOfTenants(cursor, "type=user.created"), 400, notCursor),
		bad("a cursor of a key for one tenant", sinceOfTenants(ofLimited), 400, notCursor),
		bad("a cursor and a place", sinceOfTenants(cursor, "at=now"), 400, "parameter:at ambiguous"),
		bad("another place", path+"?at=then", 422, "parameter:at unknown-value"),
		bad("an unknown type", path+"?type=user.painted", 422, "parameter:type unknown-value"),
		bad("a limit of zero", path+"?limit=0", 400, "parameter:limit range"),
		bad("too long a wait", path+"?wait=31", 400, "parameter:wait range"),
		bad("an unknown parameter", path+"?tenant="+w.name, 400, "parameter:tenant unknown"),
		{name: "the cursor of all tenants for one", as: w.owner, send: since(cursor), status: 400, faults: []string{notCursor}},
		{name: "the cursor of another key", as: w.program.follower(t, w), send: sinceOfTenants(cursor), status: 200},
		{name: "the cursor of a key for the same tenant", as: w.program.follower(t, w, w), send: sinceOfTenants(ofLimited), status: 200},
		{name: "nobody", as: w.anonymous(), send: path, status: 401},
		{name: "a session", as: w.owner, send: path, status: 401},
		{name: "another method", as: operator, send: "POST /operator/changes", body: "{}", status: 405},
	})
}

func testTenantsChangeWaits(t *testing.T, w *world) {
	operator, patient := w.program.follower(t, w, w), w.program.follower(t, w, w) // not for the tenants of other tests
	none := operator.nowOfTenants(t, "type=job.canceled")
	began := time.Now()
	a := operator.do(t, sinceOfTenants(none, "wait=1", "type=job.canceled"), "").expect(t, 200)
	if took := time.Since(began); took < time.Second && a.value("/upToDate") == true { // otherwise, it has read many changes of other tests
		t.Errorf("waited only %v for %s", took, a.body)
	}
	inLessThan(t, longestWait, func() { testTenantsChangeWaitsEndEarly(t, operator, patient, w) })
}

// testTenantsChangeWaitsEndEarly lets as many requests wait as may wait, and ends the waits by a change.
func testTenantsChangeWaitsEndEarly(t *testing.T, operator, patient *caller, w *world) {
	t.Helper()
	cursor, none := operator.nowOfTenants(t, "type=tenant.logo_removed"), operator.nowOfTenants(t, "type=job.canceled")
	var waiting []<-chan *answer
	for range maxWaits {
		waiting = append(waiting, operator.waitsForTenants(t, cursor, waitLongest, "type=tenant.logo_removed"))
	}
	var refused *answer
	if !patience.Poll(func() bool {
		refused = operator.do(t, sinceOfTenants(none, "wait=1", "type=job.canceled"), "")
		return refused.status == 429
	}) {
		t.Fatal("the requests do not wait")
	}
	refused.refused(t, 429, "too-many-waits")
	operator.do(t, sinceOfTenants(none, "type=job.canceled"), "").expect(t, 200) // does not wait
	patient.do(t, sinceOfTenants(none, "wait=1", "type=job.canceled"), "").expect(t, 200)
	w.owner.do(t, "PUT /tenant/logo", aLogo(t, 64)).expect(t, 200)
	w.owner.do(t, "DELETE /tenant/logo", "").expect(t, 204)
	for _, answers := range waiting {
		a := (<-answers).expect(t, 200)
		if !slices.Contains(a.texts("data/tenant"), w.name) {
			t.Errorf("waited for %s", a.body)
		}
	}
}

// waitsForTenants sends a request for the changes of all tenants that waits, in the background. It
// repeats the request while too many others wait, and continues after an answer without changes, which
// can come early after many changes of other tests.
func (c *caller) waitsForTenants(t *testing.T, cursor string, parameters ...string) <-chan *answer {
	answers := make(chan *answer, 1)
	go func() {
		for {
			a := <-c.asked(t, sinceOfTenants(cursor, parameters...))
			switch {
			case a.status == http.StatusOK && len(a.list("/items")) == 0:
				cursor = a.text("/nextCursor")
			case a.status != http.StatusTooManyRequests:
				answers <- a
				return
			}
		}
	}()
	return answers
}

// TestFollowersOfAllTenantsOnTwoNodes follows all tenants on two nodes of PostgreSQL while clients write
// in several tenants on both. Each event is read once, and those of a tenant in its order. One node is
// stopped in the meantime.
func TestFollowersOfAllTenantsOnTwoNodes(t *testing.T) {
	t.Parallel()
	binary, url := build(t), pgtest.URL(t)
	near, far := serve(t, binary, url), newProgram(t, binary, url)
	far.start(t)
	stop := sync.OnceFunc(func() { far.stop(t) })
	t.Cleanup(stop)
	var worlds []*world
	for range 4 {
		worlds = append(worlds, newWorld(t, near))
	}
	operator := near.operatorKey(t, "--scope", "changes").of(worlds[0])
	for _, w := range worlds {
		w.owner.now(t) // numbers earlier events
	}
	cursor := operator.nowOfTenants(t)
	feeds := map[*world]string{}
	for _, w := range worlds {
		feeds[w] = w.owner.now(t)
	}
	there := *operator
	there.world = &world{program: far, name: operator.tenant}
	there.world.connectFrom(t, net.IPv4(127, 1, 0, 1))
	waiting := there.asked(t, sinceOfTenants(operator.nowOfTenants(t, "type=job.canceled"), "wait=30", "type=job.canceled"))

	var writing sync.WaitGroup
	for i, w := range worlds {
		shared := []string{w.user(t, "shared-0", ""), w.user(t, "shared-1", "")}
		for j, p := range []*program{near, far} {
			c := *w.owner
			if p == far {
				c.world = &world{program: far, name: w.name}
				c.world.connectFrom(t, net.IPv4(127, 1, 0, 1))
			}
			writing.Go(func() { churn(t, &c, 2*i+j, 15, shared) })
		}
	}
	done := make(chan map[string][]string)
	over := make(chan struct{})
	go func() {
		read := map[string][]string{}
		for last := false; ; {
			select {
			case <-over:
				last = true
			default:
			}
			items, next := operator.followTenants(t, cursor, "limit=50")
			cursor = next
			for tenant, of := range items {
				read[tenant] = append(read[tenant], of...)
			}
			if last {
				done <- read
				return
			}
		}
	}()
	writing.Wait()
	go stop()
	(<-waiting).expect(t, 200)
	for _, w := range worlds {
		w.owner.now(t) // numbers the last events
	}
	close(over)
	read := <-done
	for _, w := range worlds {
		var want []string
		for at := feeds[w]; ; {
			a := w.owner.do(t, since(at, "limit=200"), "").expect(t, 200)
			for i := range a.list("/items") {
				want = append(want, fmt.Sprint(a.value(fmt.Sprintf("/items/%d", i))))
			}
			if at = a.text("/nextCursor"); a.value("/upToDate") == true {
				break
			}
		}
		if !slices.Equal(read[w.name], want) || len(want) < 100 {
			t.Errorf("%s: the operator read %d changes, the tenant has %d", w.name, len(read[w.name]), len(want))
		}
	}
}

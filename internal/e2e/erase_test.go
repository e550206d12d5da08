package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

func testErase(t *testing.T, p *program) {
	t.Run("nothing is left", func(t *testing.T) { testNothingIsLeft(t, newWorld(t, p)) })
	t.Run("refused", func(t *testing.T) { testErasuresRefused(t, newWorld(t, p)) })
	t.Run("parallel", func(t *testing.T) { testErasuresInParallel(t, newWorld(t, p)) })
}

// rows returns the content of all tables. For SQLite, it is a vacuumed copy of the database
// file, because the file itself can contain deleted data in its free space.
func (p *program) rows(t *testing.T) []byte {
	t.Helper()
	if strings.HasPrefix(p.Database, "postgres") {
		return p.dump(t)
	}
	vacuumed := filepath.Join(t.TempDir(), "rows.db")
	if output, err := exec.CommandContext(t.Context(), tool(t, "sqlite3"), p.Database, ".timeout 10000", "vacuum into '"+vacuumed+"'").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	rows, err := os.ReadFile(vacuumed)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// erasable creates a user whose name is in every text about the user. The user also sends
// requests from a separate address, so that the store contains the user as an actor and the
// address.
func (w *world) erasable(t *testing.T, name string, network byte) *caller {
	t.Helper()
	from := net.ParseIP(w.source).To4()
	there := *w
	there.connectFrom(t, net.IPv4(127, network, from[2], from[3]))
	body := fmt.Sprintf(`{"email":"%[1]s@canary.example","name":"%[1]s of Rotterdam","department":"%[1]s Ltd","externalId":"%[1]s-1","metadata":{"k":"%[1]s"}}`, name)
	id := w.owner.do(t, "POST /users", body).expect(t, 201).text("/id")
	w.owner.do(t, "PATCH /users/"+id, fmt.Sprintf(`{"name":"%s Gerritszoon","externalId":"%s-2"}`, name, name)).expect(t, 200)
	w.invite(t, w.owner, id)
	a := there.anonymous().do(t, "POST /auths/invitations/accept", acceptance(w.invite(t, w.owner, id), password)).expect(t, 200)
	w.assign(t, id, w.builtIn(t, "administrator"), "")
	c := &caller{world: &there, tenant: w.name, token: a.session(t), id: id, email: name + "@canary.example"}
	c.do(t, "PATCH /users/"+id, fmt.Sprintf(`{"name":"Desiderius %s"}`, name)).expect(t, 200)
	c.do(t, "POST /users/"+w.owner.id+"/suspend", `{"reason":"I can"}`).expect(t, 403)
	c.do(t, "POST /roles", roleBody("Role made by "+id, nil, nil)).expect(t, 201)
	c.do(t, "POST /users", fmt.Sprintf(`{"email":"hired-by-%s@canary.example","name":"A Guest"}`, id)).expect(t, 201)
	c.do(t, "POST /users/"+id+"/tokens", tokenBody("Token of "+name, "users:read")).expect(t, 201)
	there.anonymous().do(t, "POST /auths/login", credentials(c.email, "wrong")).expect(t, 401)
	w.owner.do(t, "POST /users/"+id+"/suspend", fmt.Sprintf(`{"reason":"%s is on leave"}`, name)).expect(t, 200)
	w.owner.do(t, "POST /users/"+id+"/resume", fmt.Sprintf(`{"reason":"%s is back"}`, name)).expect(t, 200)
	w.owner.do(t, "POST /users/"+id+"/invitations", "").expect(t, 201)
	w.owner.do(t, "POST /users/"+id+"/password-resets", "").expect(t, 201)
	w.owner.do(t, "POST /users/"+id+"/email-changes", fmt.Sprintf(`{"email":"%s@elsewhere.example"}`, name)).expect(t, 202)
	awaitEvents(t, w.owner, "/events?type=session.sign_in_failed&subject="+id, 1)
	awaitEvents(t, w.owner, "/events?type=request.refused&actor="+id, 1)
	return c
}

// onlyRole is the value of an assignment that stays in an event about an erased user.
var onlyRole = regexp.MustCompile(`"(before|after)":\{"roleId":"[0-9a-f-]{36}"\}`)

func testNothingIsLeft(t *testing.T, w *world) {
	living, deleted, stays := w.erasable(t, "Erasmus", 61), w.erasable(t, "Erasma", 62), w.erasable(t, "Petrarch", 63)
	w.owner.do(t, "DELETE /users/"+deleted.id, "").expect(t, 204)
	again := w.signIn(t, living.email)
	traces := []string{"erasmus", "erasma", living.world.source, deleted.world.source}
	for _, trace := range traces {
		if !bytes.Contains(bytes.ToLower(w.program.rows(t)), []byte(trace)) {
			t.Fatalf("the store does not hold %s, so nothing can be said", trace)
		}
	}
	events := map[string][]string{}
	for _, c := range []*caller{living, deleted} {
		events[c.id] = w.owner.do(t, "GET /events?limit=200&subject="+c.id, "").expect(t, 200).texts("type")
		w.owner.do(t, "POST /users/"+c.id+"/erase", "").expect(t, 204)
	}
	again.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	rows := bytes.ToLower(w.program.rows(t))
	for _, trace := range traces {
		if at := bytes.Index(rows, []byte(trace)); at >= 0 {
			t.Errorf("left is %q", rows[max(0, at-300):min(len(rows), at+100)])
		}
	}
	for _, others := range []string{"petrarch is on leave", stays.world.source, w.source} {
		if !bytes.Contains(rows, []byte(others)) {
			t.Errorf("what is known of others is gone too: %s", others)
		}
	}
	for id, before := range events {
		a := w.owner.do(t, "GET /events?limit=200&subject="+id, "").expect(t, 200)
		kept := onlyRole.ReplaceAll(a.body, nil)
		if bytes.Equal(kept, a.body) {
			t.Errorf("the events have lost the id of the role: %s", a.body)
		}
		for _, left := range []string{"Erasm", `"before"`, `"after"`, "on leave"} {
			if bytes.Contains(kept, []byte(left)) {
				t.Errorf("events still hold %q: %s", left, a.body)
			}
		}
		if got, want := a.texts("type"), append([]string{"user.erased"}, before...); !slices.Equal(got, want) {
			t.Errorf("the events are %v, not %v", got, want)
		}
		play(t, []scenario{
			{name: "not there", as: w.owner, send: "GET /users/" + id, status: 404, code: "not-found"},
			{name: "not restored", as: w.owner, send: "POST /users/" + id + "/restore", status: 404, code: "not-found"},
			{name: "not erased twice", as: w.owner, send: "POST /users/" + id + "/erase", status: 404, code: "not-found"},
			{name: "not among the deleted", as: w.owner, send: "GET /users?status=deleted", status: 200, lacks: []string{id}},
		})
	}
	w.owner.do(t, "GET /users/"+stays.id, "").expect(t, 200)
	w.owner.do(t, "POST /users", `{"email":"Erasmus@canary.example","name":"Another one"}`).expect(t, 201)
}

func testErasuresRefused(t *testing.T, w *world) {
	admin := w.member(t, "erasing-admin", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	sales := w.holder(t, "erases-sales", "", "Sales", "users:erase")
	owner := w.user(t, "erased-owner", "Sales")
	w.assign(t, owner, w.builtIn(t, "owner"), "")
	gone := w.user(t, "erased-gone", "Sales")
	w.assign(t, gone, w.builtIn(t, "owner"), "")
	w.owner.do(t, "DELETE /users/"+gone, "").expect(t, 204)
	ops, opsGone, inSales := w.user(t, "erased-ops", "Ops"), w.user(t, "erased-ops-gone", "Ops"), w.user(t, "erased-sales", "Sales")
	w.owner.do(t, "DELETE /users/"+opsGone, "").expect(t, 204)
	deletes := w.holder(t, "erases-nobody", "", "", "users:read", "users:delete", "users:restore")
	play(t, []scenario{
		{name: "it takes a session", as: w.anonymous(), send: "POST /users/" + inSales + "/erase", status: 401, code: "unauthenticated"},
		{name: "it takes the permission", as: deletes, send: "POST /users/" + inSales + "/erase", status: 403, code: "permission-denied"},
		{name: "it takes an id", as: w.owner, send: "POST /users/none/erase", status: 400, faults: []string{"parameter:id format"}},
		{name: "it takes a user", as: w.owner, send: "POST /users/" + never + "/erase", status: 404, code: "not-found"},
		{name: "nobody above oneself", as: admin, send: "POST /users/" + owner + "/erase", status: 403, code: "beyond-own-permissions"},
		{name: "nobody who was above oneself", as: admin, send: "POST /users/" + gone + "/erase", status: 403, code: "beyond-own-permissions"},
		{name: "nobody of another department", as: sales, send: "POST /users/" + ops + "/erase", status: 404, code: "not-found"},
		{name: "nor who was deleted there", as: sales, send: "POST /users/" + opsGone + "/erase", status: 404, code: "not-found"},
		{name: "not the last owner", as: w.owner, send: "POST /users/" + w.owner.id + "/erase", status: 409, code: "last-owner"},
		{name: "who is refused stays", as: w.owner, send: "GET /users?status=deleted", status: 200, contains: []string{gone, opsGone}},
		{name: "somebody of one's department", as: sales, send: "POST /users/" + inSales + "/erase", status: 204},
		{name: "an owner of an owner", as: w.owner, send: "POST /users/" + owner + "/erase", status: 204},
		{name: "an owner of who was one", as: w.owner, send: "POST /users/" + gone + "/erase", status: 204},
	})
}

// testErasuresInParallel sends many requests at once that erase, delete and restore one user.
// The user must be erased exactly once and must not be restored after that.
func testErasuresInParallel(t *testing.T, w *world) {
	for round := range 5 {
		id := w.user(t, fmt.Sprintf("torn-%d", round), "")
		var mu sync.Mutex
		erased := 0
		var running sync.WaitGroup
		for i := range 30 {
			running.Go(func() {
				line := [...]string{"POST /users/" + id + "/erase", "DELETE /users/" + id, "POST /users/" + id + "/restore"}[i%3]
				a, err := w.owner.try(t, line, "")
				if err != nil || a.status >= http.StatusInternalServerError {
					t.Errorf("%v, %+v", err, a)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if i%3 == 0 && a.status == http.StatusNoContent {
					erased++
				}
			})
		}
		running.Wait()
		if erased != 1 {
			t.Errorf("they were erased %d times", erased)
		}
		w.owner.do(t, "GET /users/"+id, "").refused(t, 404, "not-found")
		w.owner.do(t, "POST /users/"+id+"/restore", "").refused(t, 404, "not-found")
	}
}

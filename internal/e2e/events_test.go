package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

func testEvents(t *testing.T, p *program) {
	t.Run("changes", func(t *testing.T) { testEventsOfChanges(t, newWorldByCommand(t, p)) })
	t.Run("refusals", func(t *testing.T) { testEventsOfRefusals(t, newWorld(t, p)) })
	t.Run("lists", func(t *testing.T) { testEventLists(t, newWorld(t, p)) })
	t.Run("values", func(t *testing.T) { testEventValues(t, newWorld(t, p)) })
	t.Run("readers", func(t *testing.T) { testEventReaders(t, newWorld(t, p)) })
}

// count returns the number of events in the tenant.
func (w *world) count(t *testing.T) int { return len(w.owner.readAll(t, "/events?limit=200")) }

// testEventsOfChanges sends changes of many kinds. Each change must cause exactly one event
// with the actor, the subject and the request id. A request that changes nothing must cause no
// event.
func testEventsOfChanges(t *testing.T, w *world) {
	user := w.user(t, "subject", "")
	role := w.role(t, "Subject", "users:read")
	tenant := w.owner.do(t, "GET /tenant", "").text("/id")
	other := w.guest(t, "bystander", "")
	session := w.owner.do(t, "GET /auths/session", "").text("/session/id")
	hook := w.makeHook(t, w.account(t, "Hooks"))
	connection := w.makeConnection(t, "events")
	for _, change := range []struct {
		line, body string
		kind       string
		subject    string // "type id" of the event's subject; "" if no event is expected
		members    string
	}{
		{"PATCH /users/" + user, `{"name":"Renamed","department":"Sales"}`, "user.updated", "user " + user, "[name department]"},
		{"PATCH /users/" + user, `{"name":"Renamed"}`, "", "", ""},
		{"PATCH /users/" + user, `{}`, "", "", ""},
		{"PATCH /users/" + user, `{"name":"x"}`, "", "", ""},
		{"POST /users/" + user + "/suspend", `{"reason":"leave"}`, "user.suspended", "user " + user, "[status]"},
		{"POST /users/" + user + "/suspend", "", "", "", ""},
		{"POST /users/" + user + "/resume", "", "user.resumed", "user " + user, "[status]"},
		{"PATCH /roles/" + role, `{"description":"Changed"}`, "role.updated", "role " + role, "[description]"},
		{"PATCH /roles/" + role, `{"description":"Changed"}`, "", "", ""},
		{"PUT /users/" + user + "/roles/" + role, "", "role.assigned", "user " + user, "[roles]"},
		{"PUT /users/" + user + "/roles/" + never, "", "", "", ""},
		{"DELETE /roles/" + role, "", "", "", ""}, // refused with role-in-use
		{"DELETE /users/" + user + "/roles/" + role, "", "role.unassigned", "user " + user, "[roles]"},
		{"DELETE /users/" + user + "/roles/" + role, "", "", "", ""},
		{"DELETE /roles/" + role, "", "role.deleted", "role " + role, "[]"},
		{"PATCH /webhooks/" + hook, `{"url":"https://other.example.com/","types":["user.created"]}`, "webhook.updated", "webhook " + hook, "[url types]"},
		{"PATCH /webhooks/" + hook, `{"url":"https://other.example.com/"}`, "", "", ""},
		{"POST /webhooks/" + hook + "/rotate-secret", "", "webhook.secret_rotated", "webhook " + hook, "[secret]"},
		{"POST /webhooks/" + hook + "/test", "", "", "", ""},
		{"POST /webhooks/" + hook + "/replay", `{"from":"2030-01-01T00:00:00Z","to":"2030-01-02T00:00:00Z"}`, "webhook.replayed", "webhook " + hook, "[]"},
		{"POST /webhooks/" + hook + "/skip", "", "", "", ""},
		{"POST /webhooks/" + hook + "/skip", `{"all":true}`, "webhook.skipped", "webhook " + hook, "[]"},
		{"DELETE /webhooks/" + hook, "", "webhook.deleted", "webhook " + hook, "[]"},
		{"PATCH /connections/" + connection, `{"name":"Renamed","clientSecret":"argon2-secret"}`, "connection.updated", "connection " + connection, "[name clientSecret]"},
		{"PATCH /connections/" + connection, `{"name":"Renamed"}`, "", "", ""},
		{"DELETE /connections/" + connection, "", "connection.deleted", "connection " + connection, "[]"},
		{"PATCH /tenant", `{"displayName":"Renamed"}`, "tenant.updated", "tenant " + tenant, "[displayName]"},
		{"PATCH /tenant", `{"displayName":"Renamed"}`, "", "", ""},
		{"PUT /tenant/logo", aLogo(t, 64), "tenant.logo_changed", "tenant " + tenant, "[logo]"},
		{"PUT /tenant/logo", aLogo(t, 64), "", "", ""},
		{"PUT /tenant/logo", aLogo(t, 64)[:60], "", "", ""},
		{"DELETE /tenant/logo", "", "tenant.logo_removed", "tenant " + tenant, "[logo]"},
		{"DELETE /tenant/logo", "", "", "", ""},
		{"POST /users/" + user + "/invitations", "", "user.invited", "user " + user, "[]"},
		{"POST /users", `{"email":"bystander@canary.example","name":"Taken"}`, "", "", ""},
		{"DELETE /users/" + user, "", "user.deleted", "user " + user, "[]"},
		{"DELETE /users/" + user, "", "", "", ""},
		{"PUT /auths/password", passwords(password, newPassword), "user.password_changed", "user " + w.owner.id, "[]"},
		{"PUT /auths/password", passwords(newPassword, "short"), "", "", ""},
	} {
		before := w.count(t)
		a := w.owner.do(t, change.line, change.body)
		if change.kind == "" {
			if n := w.count(t) - before; n != 0 {
				t.Errorf("%s %s answered %d and wrote %d events", change.line, change.body, a.status, n)
			}
			continue
		}
		events := w.owner.do(t, "GET /events?limit=1", "").expect(t, 200)
		s := scenario{has: map[string]any{
			"/items/0/type": change.kind, "/items/0/actor/type": "user", "/items/0/actor/id": w.owner.id, "/items/0/actor/via": "http",
			"/items/0/requestId": a.header.Get("X-Request-Id"), "/items/0/sessionId": session, "/items/0/source": w.source,
		}, status: 200, lacks: []string{"battery", "argon2"}}
		s.check(t, events)
		if got := events.text("/items/0/subject/type") + " " + events.text("/items/0/subject/id"); got != change.subject || fmt.Sprint(events.value("/items/0/members")) != change.members {
			t.Errorf("%s: the event is about %s and its members are %v", change.line, got, events.value("/items/0/members"))
		}
		if n := w.count(t) - before; n != 1 {
			t.Errorf("%s wrote %d events", change.line, n)
		}
	}
	other.do(t, "POST /auths/logout", "").expect(t, 204)
	ended := w.owner.do(t, "GET /events?limit=1", "").expect(t, 200)
	s := scenario{status: 200, has: map[string]any{"/items/0/type": "session.ended", "/items/0/actor/id": other.id, "/items/0/reason": "signed out"}}
	s.check(t, ended)
	s = scenario{status: 200, has: map[string]any{"/items/0/actor/type": "operator", "/items/0/actor/id": nil, "/items/0/actor/via": "command", "/items/0/source": nil}}
	s.check(t, w.owner.do(t, "GET /events?type=tenant.created", "").expect(t, 200))
}

// testEventsOfRefusals checks that refused requests are recorded as events, and that many
// refusals of the same kind are combined into a few events.
func testEventsOfRefusals(t *testing.T, w *world) {
	c, victim := w.guest(t, "refused", ""), w.guest(t, "victim", "")
	for range 20 {
		c.do(t, "DELETE /users/"+victim.id, "").refused(t, 403, "permission-denied")
	}
	c.do(t, "GET /roles", "").refused(t, 403, "permission-denied")
	c.do(t, "GET /users/"+victim.id, "").expect(t, 403)
	var reasons []string
	total := 0
	patience.Poll(func() bool {
		reasons, total = awaitEvents(t, w.owner, "/events?type=request.refused&actor="+c.id+"&subject="+victim.id, 2), 0
		for _, reason := range reasons {
			n := 1
			if _, err := fmt.Sscanf(reason, "UsersController_deleteUser: permission-denied, %d times", &n); err == nil || reason == "UsersController_deleteUser: permission-denied" {
				total += n
			}
		}
		return total >= 20
	})
	if total != 20 || len(reasons) > 10 {
		t.Errorf("twenty refusals are told as %q", reasons)
	}
	if got := awaitEvents(t, w.owner, "/events?type=request.refused&actor="+c.id+"&subject="+w.tenantID(t), 1); !slices.Equal(got, []string{"RolesController_listRoles: permission-denied"}) {
		t.Errorf("a refusal about nobody is told as %q", got)
	}

	for range 5 {
		w.anonymous().do(t, "POST /auths/login", credentials(victim.email, "wrong")).refused(t, 401, "wrong-credentials")
		w.anonymous().do(t, "POST /auths/login", credentials(address("never-was"), "wrong")).refused(t, 401, "wrong-credentials")
	}
	failed := awaitEvents(t, w.owner, "/users/"+victim.id+"/events?type=session.sign_in_failed", 1)
	if !strings.HasPrefix(failed[0], "wrong-credentials") {
		t.Errorf("failed sign-ins are told as %q", failed)
	}
	a := w.owner.do(t, "GET /events?type=session.sign_in_failed", "").expect(t, 200)
	s := scenario{status: 200, has: map[string]any{"/items/0/actor/type": "anonymous", "/items/0/actor/id": nil, "/items/0/source": w.source}, lacks: []string{"never-was", "canary"}}
	s.check(t, a)
}

func (w *world) tenantID(t *testing.T) string {
	t.Helper()
	return w.owner.do(t, "GET /tenant", "").expect(t, 200).text("/id")
}

func testEventLists(t *testing.T, w *world) {
	user := w.user(t, "listed", "")
	began := time.Now().UTC()
	for i := range 7 {
		w.owner.do(t, "PATCH /users/"+user, fmt.Sprintf(`{"name":"Listed %d"}`, i)).expect(t, 200)
	}
	about := "/events?subject=" + user
	all := w.owner.readAll(t, about)
	newestFirst := w.owner.do(t, "GET "+about, "").texts("occurredAt")
	if len(all) != 8 || !slices.IsSortedFunc(newestFirst, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%d events, at %q", len(all), newestFirst)
	}
	moment := func(at time.Time) string { return url.QueryEscape(at.Format(time.RFC3339Nano)) }
	third := newestFirst[2]
	for _, q := range []struct {
		query  string
		wanted []string
	}{
		{"&limit=3", all}, {"&limit=1", all}, {"&limit=200", all}, {"&type=user.updated", all[:7]}, {"&type=user.updated&limit=2", all[:7]}, {"&type=user.created", all[7:]}, {"&type=session.started", nil},
		{"&actor=" + w.owner.id, all}, {"&actor=" + user, nil}, {"&from=" + moment(began), all[:7]}, {"&to=" + moment(began), all[7:]}, {"&from=" + third, all[:3]}, {"&to=" + third, all[3:]},
		{"&from=" + third + "&to=" + third, nil}, {"&from=" + url.QueryEscape("2000-01-01T00:00:00+02:00"), all}, {"&from=" + moment(time.Now().Add(time.Hour)), nil},
	} {
		if got := w.owner.readAll(t, about+q.query); !slices.Equal(got, q.wanted) && len(got)+len(q.wanted) > 0 {
			t.Errorf("%s found %q, not %q", q.query, got, q.wanted)
		}
		if got := w.owner.readAll(t, "/users/"+user+"/events?"+strings.TrimPrefix(q.query, "&")); !slices.Equal(got, q.wanted) && len(got)+len(q.wanted) > 0 {
			t.Errorf("%s of the user found %q, not %q", q.query, got, q.wanted)
		}
	}
	page := w.owner.do(t, "GET "+about+"&limit=3", "").expect(t, 200)
	link := page.header.Get("Link")
	next, rel, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
	if got := w.owner.do(t, "GET "+next, "").expect(t, 200).texts("id"); rel != `; rel="next"` || !slices.Equal(got, all[3:6]) {
		t.Errorf("Link %q leads to %q", link, got)
	}
	fault := func(query, where string) scenario {
		return scenario{name: query, as: w.owner, send: "GET /events?" + query, status: 400, code: "malformed-request", faults: []string{"parameter:" + where}}
	}
	play(t, []scenario{
		fault("limit=0", "limit range"), fault("actor=me", "actor format"), fault("subject=x", "subject format"), fault("from=yesterday", "from format"), fault("to=2030-01-31", "to format"),
		fault("cursor=x", "cursor cursor"), fault("sort=id", "sort unknown"), fault("tenant=x", "tenant unknown"), fault("type=a&type=b", "type repeated"),
		{name: "an unknown type", as: w.owner, send: "GET /events?type=user.update", status: 422, code: "validation", faults: []string{"parameter:type unknown-value"}, contains: []string{"/docs/events"}},
		{name: "an unknown type of a user's events", as: w.owner, send: "GET /users/" + user + "/events?type=x", status: 422, faults: []string{"parameter:type unknown-value"}},
		{name: "a subject where the path names it", as: w.owner, send: "GET /users/" + user + "/events?subject=" + user, status: 400, faults: []string{"parameter:subject unknown"}},
		{name: "events are not changed", as: w.owner, send: "DELETE /events", status: 405}, {name: "nor made", as: w.owner, send: "POST /events", body: "{}", status: 405},
	})
}

// testEventValues checks that events contain only values that the reader may read. After a
// user has left a department, readers of that department no longer see the user's values.
func testEventValues(t *testing.T, w *world) {
	user := w.owner.do(t, "POST /users", `{"email":"valued@canary.example","name":"First Name","department":"Sales"}`).expect(t, 201).text("/id")
	w.owner.do(t, "PATCH /users/"+user, `{"name":"Second Name","metadata":{"k":"secret"}}`).expect(t, 200)
	role := w.role(t, "Valued", "users:read")
	w.assign(t, user, role, within("Sales"))
	names := w.holder(t, "names", "", "", "events:read", "users.name:read")
	sales := w.holder(t, "sales", "Board", "Sales", "users:read")
	w.assign(t, sales.id, w.role(t, "Reads events", "events:read"), "")
	path := "GET /events?subject=" + user
	shown := func(name string, as *caller, has map[string]any, lacks ...string) scenario {
		return scenario{name: name, as: as, send: path, status: 200, has: has, lacks: lacks}
	}
	play(t, []scenario{
		shown("an owner", w.owner, map[string]any{"/items/0/after/roleId": role, "/items/0/after/departments/0": "Sales", "/items/0/before": nil, "/items/1/before/name": "First Name", "/items/1/after/name": "Second Name", "/items/1/after/metadata/k": "secret", "/items/2/after/email": "valued@canary.example"}),
		shown("a reader of names", names, map[string]any{"/items/0/type": "role.assigned", "/items/0/after": nil, "/items/1/before/name": "First Name", "/items/1/after/name": "Second Name", "/items/2/after/name": "First Name"}, "canary", "secret", "Sales"),
		shown("a reader of Sales", sales, map[string]any{"/items/0/after": nil, "/items/2/after/email": "valued@canary.example"}, role),
		{name: "oneself", as: names, send: "GET /users/" + names.id + "/events?type=user.created", status: 200, has: map[string]any{"/items/0/after/email": names.email}},
	})
	w.owner.do(t, "PATCH /users/"+user, `{"department":"Ops"}`).expect(t, 200)
	moved := shown("what one could read before", sales, map[string]any{"/items/0/type": "user.updated", "/items/3/type": "user.created"}, "canary", "First Name", "Second Name", "secret")
	play(t, []scenario{moved})
	w.owner.do(t, "DELETE /users/"+user, "").expect(t, 204)
	gone := shown("the deleted", sales, map[string]any{"/items/0/type": "user.deleted", "/items/4/type": "user.created"}, "canary", "First Name", "Second Name", "secret", "Sales")
	play(t, []scenario{gone})
}

// testEventReaders checks which callers may read the events about a user, and which members of
// the events they see.
func testEventReaders(t *testing.T, w *world) {
	plain, other := w.guest(t, "plain", "Sales"), w.guest(t, "other", "Ops")
	blind := w.holder(t, "blind", "", "", "events:read")
	scoped := w.holder(t, "scoped", "", "Sales", "events:read", "users:read")
	foreign := newWorld(t, w.program)
	session, own := w.owner.do(t, "GET /auths/session", "").text("/session/id"), plain.do(t, "GET /auths/session", "").text("/session/id")
	created := "GET /users/" + plain.id + "/events?type=user.created"
	play(t, []scenario{
		{name: "an administrator's act, to the user", as: plain, send: created, status: 200,
			has:   map[string]any{"/items/0/actor/id": w.owner.id, "/items/0/source": nil, "/items/0/sessionId": nil},
			lacks: []string{session}},
		{name: "an administrator's act, in the user's overview", as: plain, send: "GET /users/" + plain.id + "/overview", status: 200,
			contains: []string{"user.created", own}, lacks: []string{session}},
		{name: "an administrator's act, to an auditor", as: w.owner, send: created, status: 200, contains: []string{session, `"source":"`}},
		{name: "oneself", as: plain, send: "GET /users/" + plain.id + "/events", status: 200, has: map[string]any{"/items/0/type": "session.started"}},
		{name: "somebody else", as: plain, send: "GET /users/" + other.id + "/events", status: 403, code: "permission-denied"},
		{name: "all", as: plain, send: "GET /events", status: 403, code: "permission-denied"},
		{name: "oneself among all", as: plain, send: "GET /events?subject=" + plain.id, status: 403, code: "permission-denied"},
		{name: "a department's", as: scoped, send: "GET /events", status: 403, code: "permission-denied"},
		{name: "of a user of the department", as: scoped, send: "GET /users/" + plain.id + "/events", status: 403, code: "permission-denied"},
		{name: "without any sight of users", as: blind, send: "GET /events?subject=" + other.id, status: 200, lacks: []string{"canary"}},
		{name: "of a user that one does not see", as: blind, send: "GET /users/" + other.id + "/events", status: 404, code: "not-found"},
		{name: "of nobody", as: w.owner, send: "GET /users/" + never + "/events", status: 404, code: "not-found"},
		{name: "of another tenant's user", as: w.owner, send: "GET /users/" + foreign.owner.id + "/events", status: 404, code: "not-found"},
		{name: "of another tenant's user among all", as: w.owner, send: "GET /events?subject=" + foreign.owner.id, status: 200, contains: []string{`"items":[]`}},
		{name: "by another tenant's user", as: w.owner, send: "GET /events?actor=" + foreign.owner.id, status: 200, contains: []string{`"items":[]`}},
		{name: "nobody", as: w.anonymous(), send: "GET /events", status: 401},
	})
	if all := strings.Join(w.owner.readAll(t, "/events?limit=200"), " "); strings.Contains(all, foreign.owner.readAll(t, "/events")[0]) {
		t.Error("an event crossed from tenant to tenant")
	}
}

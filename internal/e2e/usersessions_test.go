package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
)

func testUserSessions(t *testing.T, p *program) {
	t.Run("list", func(t *testing.T) { testListOfSessions(t, newWorld(t, p)) })
	t.Run("ending", func(t *testing.T) { testEndingSessions(t, newWorld(t, p)) })
	t.Run("limit", func(t *testing.T) { testLimitOfSessions(t, newWorld(t, p)) })
}

const (
	firefox = "user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0"
	noAgent = "user-agent: " // sends no User-Agent; without this line, Go's client sends its own
)

// signInWith signs a user in. The request has one more header line.
func (w *world) signInWith(t *testing.T, email, line string) *caller {
	t.Helper()
	a := w.anonymous().do(t, "POST /auths/login", credentials(email, password), line).expect(t, 200)
	return &caller{world: w, tenant: w.name, token: a.session(t), id: a.text("/user/id"), email: email}
}

// sessionID returns the id of the caller's session.
func (c *caller) sessionID(t *testing.T) string {
	t.Helper()
	return c.do(t, "GET /auths/session", "").expect(t, 200).text("/session/id")
}

func testListOfSessions(t *testing.T, w *world) {
	ada := w.member(t, "ada", "Sales")
	second, third := w.signInWith(t, ada.email, firefox), w.signInWith(t, ada.email, noAgent)
	list := "GET /users/" + ada.id + "/sessions"
	a := second.do(t, list, "").expect(t, 200)
	wanted := []string{third.sessionID(t), second.sessionID(t), ada.sessionID(t)}
	if got := a.texts("id"); !slices.Equal(got, wanted) {
		t.Errorf("the sessions are %q, not %q", got, wanted)
	}
	for pointer, want := range map[string]any{
		"/items/0/client": nil, "/items/1/client": "Firefox on Linux", "/items/2/client": "Go client", "/items/0/current": false, "/items/1/current": true, "/items/2/current": false, "/nextCursor": nil,
	} {
		if got := a.value(pointer); got != want {
			t.Errorf("%s is %v, not %v", pointer, got, want)
		}
	}
	if got := a.members("/items/0"); !slices.Equal(got, []string{"address", "client", "connectionId", "createdAt", "current", "expiresAt", "id", "lastUsedAt", "secondFactor"}) || a.text("/items/0/address") == "" {
		t.Errorf("a session has %q: %s", got, a.body)
	}
	if lives := timestamp(t, a, "/items/0/expiresAt").Sub(timestamp(t, a, "/items/0/createdAt")).Hours(); lives != 7*24 {
		t.Errorf("it lives for %v hours", lives)
	}
	var paged []string
	for next := ""; ; {
		page := ada.do(t, list+"?limit=1"+next, "").expect(t, 200)
		paged = append(paged, page.texts("id")...)
		if next = page.text("/nextCursor"); next == "" {
			break
		}
		w.owner.do(t, list+"?limit=1&cursor="+url.QueryEscape(next), "").refused(t, 400, "malformed-request")
		next = "&cursor=" + url.QueryEscape(next)
	}
	if !slices.Equal(paged, wanted) {
		t.Errorf("page by page the sessions are %q", paged)
	}
	reader := w.holder(t, "reader", "", "Sales", "users:read", "sessions:read")
	play(t, []scenario{
		{name: "by an administrator", as: w.owner, send: list, status: 200, has: map[string]any{"/items/0/current": false, "/items/2/id": wanted[2]}},
		{name: "by a reader of the department", as: reader, send: list, status: 200, has: map[string]any{"/items/0/id": wanted[0]}},
		{name: "who may read users only", as: w.holder(t, "blind", "", "", "users:read"), send: list, status: 403, code: "permission-denied"},
		{name: "beyond the department", as: reader, send: "GET /users/" + w.owner.id + "/sessions", status: 404, code: "not-found"},
		{name: "of nobody", as: w.owner, send: "GET /users/" + never + "/sessions", status: 404, code: "not-found"},
		{name: "of what is no id", as: w.owner, send: "GET /users/x/sessions", status: 400, faults: []string{"parameter:id format"}},
		{name: "with what it does not take", as: ada, send: list + "?count=true", status: 400, faults: []string{"parameter:count unknown"}},
		{name: "without a session", as: w.anonymous(), send: list, status: 401},
	})
}

// clearing is the Set-Cookie value that removes the session cookie.
const clearing = "session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"

func testEndingSessions(t *testing.T, w *world) {
	ada := w.member(t, "ada", "Sales")
	sessions := "DELETE /users/" + ada.id + "/sessions"
	second, third := w.signIn(t, ada.email), w.signIn(t, ada.email)
	play(t, []scenario{
		{name: "another's session is not one's own", as: ada, send: sessions + "/" + w.owner.sessionID(t), status: 404, code: "not-found"},
		{name: "nor is one at another's address", as: ada, send: "DELETE /users/" + w.owner.id + "/sessions/" + w.owner.sessionID(t), status: 403, code: "permission-denied"},
		{name: "no session at all", as: ada, send: sessions + "/" + never, status: 404, code: "not-found"},
		{name: "no id", as: ada, send: sessions + "/x", status: 400, faults: []string{"parameter:sessionId format"}},
		{name: "another one of one's own", as: ada, send: sessions + "/" + second.sessionID(t), status: 204, headers: map[string]string{"Set-Cookie": ""}},
		{name: "it is over", as: second, send: "GET /auths/session", status: 401, code: "unauthenticated"},
		{name: "and does not come back", as: second, send: "POST /auths/refresh", status: 401, code: "unauthenticated"},
		{name: "the current one", as: third, send: sessions + "/" + third.sessionID(t), status: 204, headers: map[string]string{"Set-Cookie": clearing}},
		{name: "is over too", as: third, send: "GET /auths/session", status: 401},
		{name: "one is left", as: ada, send: "GET /users/" + ada.id + "/sessions", status: 200, has: map[string]any{"/items/0/current": true, "/items/1": nil}},
		{name: "all, by an administrator", as: w.owner, send: sessions, status: 204, headers: map[string]string{"Set-Cookie": ""}},
		{name: "are over at once", as: ada, send: "GET /auths/session", status: 401},
		{name: "all of nobody's", as: w.owner, send: sessions, status: 204},
	})
	ada, second = w.signIn(t, ada.email), w.signIn(t, ada.email)
	play(t, []scenario{
		{name: "all of one's own", as: ada, send: sessions, status: 204, headers: map[string]string{"Set-Cookie": clearing}},
		{name: "the current one is over", as: ada, send: "GET /auths/session", status: 401},
		{name: "the other one is over", as: second, send: "GET /auths/session", status: 401},
	})
	boss := w.member(t, "boss", "Sales")
	w.assign(t, boss.id, w.builtIn(t, "owner"), "")
	helper := w.holder(t, "helper", "", "Sales", "users:read", "sessions:revoke")
	ada = w.signIn(t, ada.email)
	play(t, []scenario{
		{name: "of whoever holds more", as: helper, send: "DELETE /users/" + boss.id + "/sessions", status: 403, code: "beyond-own-permissions"},
		{name: "one of whoever holds more", as: helper, send: "DELETE /users/" + boss.id + "/sessions/" + boss.sessionID(t), status: 403, code: "beyond-own-permissions"},
		{name: "of who is not seen", as: helper, send: "DELETE /users/" + w.owner.id + "/sessions", status: 404, code: "not-found"},
		{name: "of the department", as: helper, send: "DELETE /users/" + ada.id + "/sessions/" + ada.sessionID(t), status: 204},
		{name: "is told by an event", as: w.owner, send: "GET /users/" + ada.id + "/events?type=session.ended&limit=1", status: 200, has: map[string]any{"/items/0/reason": "revoked", "/items/0/actor/id": helper.id, "/items/0/subject/id": ada.id}},
	})
}

func testLimitOfSessions(t *testing.T, w *world) {
	ada := w.member(t, "ada", "")
	w.owner.do(t, "PATCH /tenant", `{"settings":{"sessionsPerUser":2}}`).expect(t, 200)
	second := w.signIn(t, ada.email)
	first := ada.sessionID(t)
	third := w.signIn(t, ada.email)
	play(t, []scenario{
		{name: "the oldest is over", as: ada, send: "GET /auths/session", status: 401, code: "unauthenticated"},
		{name: "the others are not", as: second, send: "GET /users/" + ada.id + "/sessions", status: 200, has: map[string]any{"/items/0/id": third.sessionID(t), "/items/1/id": second.sessionID(t), "/items/2": nil}},
		{name: "an event says why", as: w.owner, send: "GET /users/" + ada.id + "/events?type=session.ended", status: 200, has: map[string]any{"/items/0/reason": "too many sessions", "/items/0/sessionId": first, "/items/1": nil}},
	})
	w.owner.do(t, "PATCH /tenant", `{"settings":{"sessionsPerUser":null}}`).expect(t, 200)
	w.signIn(t, ada.email)
	second.do(t, "GET /auths/session", "").expect(t, 200)
}

func userSessionsCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		p.compare(t, s.name, "GET /users/"+s.id+"/sessions", "", p.listingAccess(s))
	}
}

var _ = specify("UsersController_listUserSessions", changesNothing, withObject(aMember, "GET /users/{id}/sessions", ""), userSessionsCells)

// listingAccess returns the expected response when the principal lists the subject's sessions
// or tokens.
func (p *principal) listingAccess(s *subject) expectation {
	return first(done(200, "items nextCursor"),
		check{p.is(s) || p.mayAnywhere("sessions:read"), mayNot}, check{p.sees(s), notThere}, check{p.is(s) || p.may("sessions:read", s.department), mayNot})
}

func endUserSessionCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		if p.live && p.is(s) {
			p.compare(t, s.name, "DELETE /users/"+s.id+"/sessions/"+m.signIn(t, p.email).sessionID(t), "", done(204, ""))
			continue
		}
		p.compare(t, s.name+", no session of theirs", "DELETE /users/"+s.id+"/sessions/"+m.owner.sessionID(t), "", p.protective(s, "sessions:revoke", notThere))
	}
	c := m.member(t, fmt.Sprintf("signed-in-%d", m.fresh), "Sales")
	s := &subject{name: "who is signed in", id: c.id, department: "Sales", exists: true}
	wanted := p.protective(s, "sessions:revoke", done(204, ""))
	p.compare(t, s.name, "DELETE /users/"+s.id+"/sessions/"+c.sessionID(t), "", wanted)
	if ended := c.do(t, "GET /auths/session", "").status == 401; ended != (p.live && wanted.status == 204) {
		t.Errorf("the session is over: %v", ended)
	}
}

var _ = specify("UsersController_endUserSession", endsAccess, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "Sales")
	return request{id: c.id, line: "DELETE /users/{id}/sessions/" + c.sessionID(t), events: []string{"session.ended user {id} []"}}
}, endUserSessionCells)

func endUserSessionsCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		wanted := p.protective(s, "sessions:revoke", done(204, ""))
		if p.live && p.is(s) {
			wanted = done(204, "")
		}
		p.compare(t, s.name, "DELETE /users/"+s.id+"/sessions", "", wanted)
		if p.live && p.is(s) {
			p.signInAgain(t)
		}
	}
}

var _ = specify("UsersController_endUserSessions", endsAccess, withObject(aMember, "DELETE /users/{id}/sessions", "", "session.ended user {id} []"), endUserSessionsCells)

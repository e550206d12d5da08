package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// passwords returns the body that changes the caller's password.
func passwords(current, wanted string) string {
	return fmt.Sprintf(`{"currentPassword":%s,"newPassword":%s}`, quoted(current), quoted(wanted))
}

func testPasswords(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("rules", func(t *testing.T) { testPasswordRules(t, w) })
	t.Run("change", func(t *testing.T) { testPasswordChange(t, w) })
	t.Run("guessing", func(t *testing.T) { testPasswordGuessing(t, newWorld(t, p)) })
}

const newPassword = canary + " quite another battery"

func testPasswordRules(t *testing.T, w *world) {
	c := w.guest(t, "ruled.by.passwords", "")
	const send = "PUT /auths/password"
	too := func(name, password, fault string) scenario {
		return scenario{name: name, as: c, send: send, body: passwords("wrong", password), status: 422, code: "validation", faults: []string{"/newPassword " + fault}}
	}
	play(t, []scenario{
		{name: "nothing", as: c, send: send, status: 400, code: "malformed-request"},
		{name: "no members", as: c, send: send, body: `{}`, status: 422, faults: []string{"/currentPassword required", "/newPassword required"}},
		{name: "other types", as: c, send: send, body: `{"currentPassword":1,"newPassword":{},"userId":"` + w.owner.id + `"}`, status: 422, faults: []string{"/currentPassword type", "/newPassword type", "/userId unknown"}},
		{name: "without the current one", as: c, send: send, body: `{"newPassword":` + quoted(newPassword) + `}`, status: 422, faults: []string{"/currentPassword required"}},
		{name: "with a wrong one", as: c, send: send, body: passwords(password+" ", newPassword), status: 422, faults: []string{"/currentPassword wrong"}, lacks: []string{canary}},
		{name: "without a session", as: w.anonymous(), send: send, body: passwords(password, newPassword), status: 401, code: "unauthenticated"},
		{name: "from another site", as: c, send: send, body: passwords(password, newPassword), header: []string{"sec-fetch-site: same-site"}, status: 403, code: "cross-origin"},
		{name: "as a form", as: c, send: send, body: passwords(password, newPassword), header: []string{"content-type: application/x-www-form-urlencoded"}, status: 415},
		too("short", "fourteen chars", "length"), too("long", strings.Repeat("long ", 205), "length"), too("common", "1234567890123456", "common"), too("the address", address("ruled.by.passwords"), "personal"), too("the name", "user ruled.by.passwords", "personal"),
	})
	w.signIn(t, address("ruled.by.passwords"))
}

func testPasswordChange(t *testing.T, w *world) {
	c := w.guest(t, "changes", "")
	others := []*caller{w.signIn(t, address("changes")), w.signIn(t, address("changes"))}
	refreshed := others[0].with(others[0].do(t, "POST /auths/refresh", "").expect(t, 200).session(t))
	bystander := w.guest(t, "bystander", "")

	a := c.do(t, "PUT /auths/password", passwords(password, newPassword)).expect(t, 204)
	if set := a.header["Set-Cookie"]; len(a.body) > 0 || len(set) != 1 || !deviceForm.MatchString(set[0]) {
		t.Errorf("a change answers %q and sets %q", a.body, set)
	}
	for _, old := range append(others, refreshed) {
		old.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
		old.do(t, "POST /auths/refresh", "").refused(t, 401, "unauthenticated")
	}
	c.do(t, "GET /auths/session", "").expect(t, 200)
	bystander.do(t, "GET /auths/session", "").expect(t, 200)
	w.anonymous().do(t, "POST /auths/login", credentials(c.email, password)).refused(t, 401, "wrong-credentials")
	w.anonymous().do(t, "POST /auths/login", credentials(c.email, newPassword)).expect(t, 200)
	w.signIn(t, bystander.email)
	c.do(t, "PUT /auths/password", passwords(password, newPassword)).refused(t, 422, "validation")

	events := w.owner.do(t, "GET /users/"+c.id+"/events?type=user.password_changed", "").expect(t, 200)
	s := scenario{status: 200, has: map[string]any{"/items/0/actor/id": c.id, "/items/0/subject/id": c.id, "/items/0/requestId": a.header.Get("X-Request-Id"), "/items/1": nil}, lacks: []string{"battery", "argon2"}}
	s.check(t, events)
}

// testPasswordGuessing guesses the current password in a stolen session, to change it. The
// guesses are limited, but the limit must not affect sign-ins. So the owner of the account can
// still end the session.
func testPasswordGuessing(t *testing.T, w *world) {
	c := w.guest(t, "guessed", "")
	for i := range 10 {
		c.do(t, "PUT /auths/password", passwords(fmt.Sprintf("guess %d", i), newPassword)).refused(t, 422, "validation")
	}
	c.do(t, "PUT /auths/password", passwords(password, newPassword)).refused(t, 429, "too-many-attempts")
	again := w.signIn(t, c.email)
	again.do(t, "PUT /auths/password", passwords(password, newPassword)).refused(t, 429, "too-many-attempts")
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(w.invite(t, w.owner, c.id), newPassword)).expect(t, 200)
	c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
}

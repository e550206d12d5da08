package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

func testConfirm(t *testing.T, p *program) {
	t.Run("confirmation", func(t *testing.T) { testConfirmation(t, newWorld(t, p)) })
	t.Run("second factor", func(t *testing.T) { testConfirmationByFactor(t, newWorld(t, p)) })
	t.Run("guessing", func(t *testing.T) { testGuessingInConfirmations(t, newWorld(t, p)) })
	t.Run("every operation", func(t *testing.T) { testStepUp(t, p) })
}

// recentFor is the setting reauthenticationSeconds of these tests: for how many seconds after
// a sign-in sensitive operations need no re-authentication.
const recentFor = 2

func confirmation(password string) string { return `{"password":` + quoted(password) + `}` }

// probe is a request that requires a recent sign-in and no permission. It changes nothing for
// users without an authenticator app.
const probe = "DELETE /auths/totp"

// awaitStale waits until the program requires the caller to re-authenticate.
func (c *caller) awaitStale(t *testing.T) {
	t.Helper()
	if !patience.Poll(func() bool { return c.do(t, probe, "").text("/code") == "reauthentication-required" }) {
		t.Fatal("a sign-in stays recent")
	}
}

// recently re-authenticates and sends the request directly afterwards. On a slow machine, the
// re-authentication can expire in between. Then recently tries both again.
func (c *caller) recently(t *testing.T, line, body string) *answer {
	t.Helper()
	for range 10 {
		c.do(t, "POST /auths/confirm", confirmation(password)).expect(t, 200)
		if a := c.do(t, line, body); a.text("/code") != "reauthentication-required" {
			return a
		}
	}
	t.Fatalf("%s is refused soon after a confirmation", line)
	return nil
}

func testConfirmation(t *testing.T, w *world) {
	admin := w.guest(t, "admin", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	if a := admin.do(t, "GET /auths/session", ""); a.value("/session/confirmedAt") != nil || a.value("/session/secondFactor") != false {
		t.Errorf("a new session is %s", a.body)
	}
	admin.do(t, probe, "").expect(t, 404)
	w.owner.do(t, "PATCH /tenant", fmt.Sprintf(`{"settings":{"reauthenticationSeconds":%d}}`, recentFor)).expect(t, 200)
	admin.awaitStale(t)
	operator := w.operator(t)
	play(t, []scenario{
		{name: "what needs no recent sign-in goes on", as: admin, send: "GET /users", status: 200},
		{name: "and so do changes", as: admin, send: "PATCH /users/" + admin.id, body: `{"name":"Changed"}`, status: 200},
		{name: "what ends access is quick", as: admin, send: "DELETE /users/" + admin.id + "/invitations", status: 204},
		{name: "permission is asked first", as: admin, send: "PATCH /tenant", body: `{}`, status: 403, code: "permission-denied"},
		{name: "and before everything else of the request", as: admin, send: "DELETE /users/x?y=z", status: 403, code: "reauthentication-required", contains: []string{"POST /auths/confirm"}},
		{name: "a program is not asked", as: operator, send: "DELETE /users/" + never, status: 404},
		{name: "and cannot confirm", as: operator, send: "POST /auths/confirm", body: confirmation(password), status: 403, code: "session-required"},
		{name: "nor can nobody", as: w.anonymous(), send: "POST /auths/confirm", body: confirmation(password), status: 401, code: "unauthenticated"},
		{name: "nor another tenant", as: admin.in("no-such-tenant"), send: "POST /auths/confirm", body: confirmation(password), status: 401, code: "unauthenticated"},
		{name: "nothing", as: admin, send: "POST /auths/confirm", status: 400, code: "malformed-request"},
		{name: "no password", as: admin, send: "POST /auths/confirm", body: `{"code":"000000"}`, status: 422, faults: []string{"/password required"}},
		{name: "other types", as: admin, send: "POST /auths/confirm", body: `{"password":1,"code":2,"recoveryCode":null,"passkey":"x","token":"y"}`, status: 422,
			faults: []string{"/password type", "/code type", "/recoveryCode type", "/passkey type", "/token unknown"}},
		{name: "two ways", as: admin, send: "POST /auths/confirm", body: `{"password":"x","code":"000000","recoveryCode":"y"}`, status: 422, faults: []string{" one-of"}},
		{name: "a wrong password", as: admin, send: "POST /auths/confirm", body: confirmation(password + " "), status: 422, code: "validation", faults: []string{"/password wrong"}, lacks: []string{canary}},
		{name: "a second factor that one does not have", as: admin, send: "POST /auths/confirm", body: `{"password":` + quoted(password) + `,"code":"000000"}`, status: 422, faults: []string{"/code wrong"}},
		{name: "from another site", as: admin, send: "POST /auths/confirm", body: confirmation(password), header: []string{"sec-fetch-site: cross-site"}, status: 403, code: "cross-origin"},
		{name: "none of this confirmed anything", as: admin, send: probe, status: 403, code: "reauthentication-required"},
		{name: "the right password", as: admin, send: "POST /auths/confirm", body: confirmation(password), status: 200, members: "id authenticatedAt confirmedAt secondFactor idleExpiresAt expiresAt"},
	})
	replaced := admin.do(t, "POST /auths/confirm", confirmation(password)).expect(t, 200)
	if lines := replaced.header["Set-Cookie"]; len(lines) != 1 || !sessionForm.MatchString(lines[0]) || replaced.session(t) == admin.token {
		t.Errorf("the cookies of a confirmation are %q", lines)
	}
	old := admin
	admin = admin.with(replaced.session(t))
	for _, c := range []*caller{old, admin, old} { // another tab still sends the old token
		if got := c.do(t, "GET /auths/session", "").expect(t, 200).text("/session/id"); got != replaced.text("/id") {
			t.Errorf("the session is %s, not %s", got, replaced.text("/id"))
		}
	}
	admin.recently(t, probe, "").expect(t, 404)
	a := admin.do(t, "GET /auths/session", "").expect(t, 200)
	if confirmed := timestamp(t, a, "/session/confirmedAt"); !confirmed.After(timestamp(t, a, "/session/authenticatedAt")) {
		t.Errorf("the session is %s", a.body)
	}
	admin.awaitStale(t)
	admin.with(admin.do(t, "POST /auths/refresh", "").expect(t, 200).session(t)).do(t, probe, "").refused(t, 403, "reauthentication-required")
	events := operator.do(t, "GET /users/"+admin.id+"/events?type=session.confirmed", "").expect(t, 200)
	if n := len(events.list("/items")); n < 2 || events.text("/items/0/sessionId") != a.text("/session/id") || events.text("/items/0/actor/id") != admin.id {
		t.Errorf("%d confirmations are told: %s", n, events.body)
	}
	operator.do(t, "PATCH /tenant", `{"settings":{"reauthenticationSeconds":0}}`).expect(t, 200)
	admin = w.signIn(t, admin.email)
	admin.do(t, probe, "").expect(t, 404)
}

func testConfirmationByFactor(t *testing.T, w *world) {
	ada := w.member(t, "ada", "")
	app, codes := ada.enrol(t)
	const send = "POST /auths/confirm"
	next := code(t, app, 1)
	with := func(way, value string) string {
		return fmt.Sprintf(`{"password":%s,%s:%s}`, quoted(password), quoted(way), quoted(value))
	}
	a := ada.do(t, send, confirmation(password)).refused(t, 401, "second-factor-required")
	if methods := a.list("/methods"); !slices.Equal(methods, []any{"totp", "recovery-code"}) {
		t.Errorf("asked for %s", a.body)
	}
	play(t, []scenario{
		{name: "and the session goes on", as: ada, send: "GET /auths/session", status: 200, has: map[string]any{"/session/confirmedAt": nil}},
		{name: "a wrong password", as: ada, send: send, body: strings.Replace(with("code", next), password, "wrong", 1), status: 422, faults: []string{"/password wrong"}},
		{name: "a wrong code", as: ada, send: send, body: with("code", "000000"), status: 422, faults: []string{"/code wrong"}},
		{name: "what is no passkey of anybody", as: ada, send: send, body: `{"password":` + quoted(password) + `,"passkey":{}}`, status: 422, faults: []string{"/passkey wrong"}},
		{name: "the code that a failure did not use", as: ada, send: send, body: with("code", next), status: 200},
		{name: "the same code again", as: ada, send: send, body: with("code", next), status: 422, faults: []string{"/code wrong"}},
		{name: "a recovery code", as: ada, send: send, body: with("recoveryCode", codes[0]), status: 200},
		{name: "the same recovery code", as: ada, send: send, body: with("recoveryCode", codes[0]), status: 422, faults: []string{"/recoveryCode wrong"}},
	})
	if got := ada.do(t, "GET /auths/factors", "").expect(t, 200).value("/recoveryCodes"); got != 9.0 {
		t.Errorf("%v recovery codes are left", got)
	}
}

func testGuessingInConfirmations(t *testing.T, w *world) {
	ada := w.member(t, "ada", "")
	statuses := map[int]int{}
	for range 15 {
		statuses[ada.do(t, "POST /auths/confirm", confirmation("wrong")).status]++
	}
	if statuses[http.StatusUnprocessableEntity] != 10 || statuses[http.StatusTooManyRequests] != 5 {
		t.Errorf("fifteen guesses were answered %v", statuses)
	}
	if wait := ada.do(t, "POST /auths/confirm", confirmation(password)).refused(t, 429, "too-many-attempts").header.Get("Retry-After"); wait == "" {
		t.Error("nothing says when to try again")
	}
	w.signIn(t, ada.email).do(t, "GET /auths/session", "").expect(t, 200)
}

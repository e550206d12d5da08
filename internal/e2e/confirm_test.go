package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func testConfirm(t *testing.T, p *program) {
	t.Run("confirmation", func(t *testing.T) { testConfirmation(t, newWorld(t, p)) })
	t.Run("second factor", func(t *testing.T) { testConfirmationByFactor(t, newWorld(t, p)) })
	t.Run("guessing", func(t *testing.T) { testGuessingInConfirmations(t, newWorld(t, p)) })
	t.Run("every operation", func(t *testing.T) { testSignInsLongAgo(t, newWorld(t, p)) })
}

// recentFor is, in seconds, for how long a sign-in is recent in these tests.
const recentFor = 2

func confirmation(password string) string { return `{"password":` + quoted(password) + `}` }

// probe is a request that anybody may make who signed in recently, and that changes
// nothing for who has no authenticator app.
const probe = "DELETE /auths/totp"

// grows returns when the caller's sign-in is too long ago.
func (c *caller) grows(t *testing.T) {
	t.Helper()
	retry, deadline := time.NewTicker(retryEvery), time.After(startLimit)
	defer retry.Stop()
	for c.do(t, probe, "").text("/code") != "reauthentication-required" {
		select {
		case <-deadline:
			t.Fatal("a sign-in stays recent")
		case <-retry.C:
		}
	}
}

// recently sends a request at once after a confirmation; again if that took so long
// that it counts no more.
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
	admin.grows(t)
	operator := w.operator(t)
	play(t, []scenario{
		{name: "what needs no recent sign-in goes on", as: admin, send: "GET /users", status: 200},
		{name: "and so do changes", as: admin, send: "POST /users", body: `{"email":"made@canary.example","name":"Made"}`, status: 201},
		{name: "permission is asked first", as: admin, send: "PATCH /tenant", body: `{}`, status: 403, code: "permission-denied"},
		{name: "and before everything else of the request", as: admin, send: "DELETE /users/x?y=z", status: 403, code: "reauthentication-required", contains: []string{"POST /auths/confirm"}},
		{name: "a program is not asked", as: operator, send: "DELETE /users/" + never, status: 404},
		{name: "and cannot confirm", as: operator, send: "POST /auths/confirm", body: confirmation(password), status: 403, code: "session-required"},
		{name: "nor can nobody", as: w.nobody(), send: "POST /auths/confirm", body: confirmation(password), status: 401, code: "unauthenticated"},
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
		{name: "the right password", as: admin, send: "POST /auths/confirm", body: confirmation(password), status: 200, members: "id authenticatedAt confirmedAt secondFactor idleExpiresAt expiresAt", headers: map[string]string{"Set-Cookie": ""}},
	})
	admin.recently(t, probe, "").expect(t, 404)
	a := admin.do(t, "GET /auths/session", "").expect(t, 200)
	if confirmed := moment(t, a, "/session/confirmedAt"); !confirmed.After(moment(t, a, "/session/authenticatedAt")) {
		t.Errorf("the session is %s", a.body)
	}
	admin.grows(t)
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
	with := func(way, value string) string {
		return fmt.Sprintf(`{"password":%s,%s:%s}`, quoted(password), quoted(way), quoted(value))
	}
	a := ada.do(t, send, confirmation(password)).refused(t, 401, "second-factor-required")
	if methods := a.list("/methods"); !slices.Equal(methods, []any{"totp", "recovery-code"}) {
		t.Errorf("asked for %s", a.body)
	}
	play(t, []scenario{
		{name: "and the session goes on", as: ada, send: "GET /auths/session", status: 200, has: map[string]any{"/session/confirmedAt": nil}},
		{name: "a wrong password", as: ada, send: send, body: strings.Replace(with("code", code(t, app, 1)), password, "wrong", 1), status: 422, faults: []string{"/password wrong"}},
		{name: "a wrong code", as: ada, send: send, body: with("code", "000000"), status: 422, faults: []string{"/code wrong"}},
		{name: "what is no passkey of anybody", as: ada, send: send, body: `{"password":` + quoted(password) + `,"passkey":{}}`, status: 422, faults: []string{"/passkey wrong"}},
		{name: "the code that a failure did not use", as: ada, send: send, body: with("code", code(t, app, 1)), status: 200},
		{name: "the same code again", as: ada, send: send, body: with("code", code(t, app, 1)), status: 422, faults: []string{"/code wrong"}},
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

// recent are the operations that need a recent sign-in, each with the permission
// that is asked for first; none for what everybody may do to themselves, and to
// nobody else.
var recent = map[string]string{
	"UsersController_deleteUser": "users:delete", "UsersController_eraseUser": "users:erase", "UsersController_resetFactors": "users:reset-factors",
	"UsersController_assignRole": "roles:assign", "UsersController_unassignRole": "roles:assign", "RolesController_deleteRole": "roles:delete",
	"UsersController_requestEmailChange": "users.email:update", "TenantController_updateTenant": "tenant:update",
	"ServiceAccountsController_assignServiceAccountRole": "service-accounts:update", "ServiceAccountsController_unassignServiceAccountRole": "service-accounts:update",
	"ServiceAccountsController_createServiceAccountToken": "service-accounts:update", "ServiceAccountsController_deleteServiceAccount": "service-accounts:delete",
	"UsersController_createUserToken": "",
	"AuthsController_beginTotp":       "", "AuthsController_confirmTotp": "", "AuthsController_deleteTotp": "", "AuthsController_makeRecoveryCodes": "",
	"AuthsController_getPasskeyOptions": "", "AuthsController_createPasskey": "", "AuthsController_updatePasskey": "", "AuthsController_deletePasskey": "",
}

// testSignInsLongAgo sends every operation by people whose sign-in is long ago, with
// bodies that would be refused later; and by programs, which are not asked.
func testSignInsLongAgo(t *testing.T, w *world) {
	user, role := w.user(t, "somebody", ""), w.role(t, "Something")
	callers := []*principal{
		{caller: w.owner, name: "an owner", holds: held("", "*:*", "*/*:*")},
		{caller: w.guest(t, "administrator", ""), name: "an administrator", holds: held("", administrates...)},
		{caller: w.member(t, "nobody", ""), name: "somebody without a role"},
	}
	w.assign(t, callers[1].id, w.builtIn(t, "administrator"), "")
	programs := []*caller{w.operator(t), w.owner.makeToken(t, "", "*:*"), w.owner.makeToken(t, w.account(t, "Robot", "*:*"), "*:*")}
	w.owner.do(t, "PATCH /tenant", fmt.Sprintf(`{"settings":{"reauthenticationSeconds":%d}}`, recentFor)).expect(t, 200)
	for _, c := range callers {
		c.grows(t)
	}
	asked := map[string]bool{}
	for _, op := range w.program.document.operations {
		if op.isOperators() || slices.Contains([]string{"AuthsController_login", "AuthsController_logout", "AuthsController_refresh"}, op.id) {
			continue
		}
		permission, needed := recent[op.id]
		asked[op.id] = needed
		for _, c := range callers {
			about := user
			if needed && permission == "" {
				about = c.id
			}
			a := c.do(t, op.line(about, role), `{"unheardOf":1}`)
			switch got := a.text("/code"); {
			case needed && (permission == "" || c.mayAnywhere(permission)) && (a.status != http.StatusForbidden || got != "reauthentication-required"):
				t.Errorf("%s by %s: answered %d %s long after the sign-in", op.id, c.name, a.status, got)
			case needed && permission != "" && !c.mayAnywhere(permission) && got != "permission-denied":
				t.Errorf("%s by %s: answered %d %s before the permission was asked for", op.id, c.name, a.status, got)
			case !needed && got == "reauthentication-required":
				t.Errorf("%s by %s: needs a recent sign-in", op.id, c.name)
			}
		}
	}
	for _, op := range w.program.document.operations {
		for _, c := range programs {
			if asked[op.id] && c.do(t, op.line(never, never), `{"unheardOf":1}`).text("/code") == "reauthentication-required" {
				t.Errorf("%s by a program needs a recent sign-in", op.id)
			}
		}
	}
	for id := range recent {
		if !asked[id] {
			t.Errorf("there is no operation %s", id)
		}
	}
	for _, op := range w.program.document.operations {
		about := never
		if recent[op.id] == "" {
			about = w.owner.id
		}
		if asked[op.id] {
			w.owner.recently(t, op.line(about, never), `{"unheardOf":1}`)
		}
	}
}

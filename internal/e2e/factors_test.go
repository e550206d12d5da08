package e2e

import (
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/secret"
)

func testFactors(t *testing.T, p *program) {
	t.Run("authenticator app", func(t *testing.T) { testApp(t, newWorld(t, p)) })
	t.Run("refused", func(t *testing.T) { testRefusedFactors(t, newWorld(t, p)) })
	t.Run("recovery codes", func(t *testing.T) { testRecoveryCodes(t, newWorld(t, p)) })
	t.Run("in parallel", func(t *testing.T) { testFactorsInParallel(t, newWorld(t, p)) })
	t.Run("void challenges", func(t *testing.T) { testVoidChallenges(t, newWorld(t, p)) })
	t.Run("other tenants", func(t *testing.T) { testFactorsOfOtherTenants(t, newWorld(t, p), newWorld(t, p)) })
	t.Run("demanded of all", func(t *testing.T) { testDemandedFactor(t, newWorld(t, p)) })
	t.Run("demanded of a role", func(t *testing.T) { testFactorDemandedOfRole(t, newWorld(t, p)) })
	t.Run("lifetimes of a role", func(t *testing.T) { testLifetimesOfRoles(t, newWorld(t, p)) })
	t.Run("reset", func(t *testing.T) { testResetFactors(t, newWorld(t, p)) })
	t.Run("passkeys", func(t *testing.T) { testPasskeys(t, newWorld(t, p)) })
	t.Run("passkeys alone", func(t *testing.T) { testPasskeysAlone(t, newWorld(t, p), newWorld(t, p)) })
}

// code returns the code that an authenticator app shows in a time step of 30 seconds. If steps
// is 0, it is the current time step. The program also accepts the code of the next time step,
// because the app's clock may be ahead.
func code(t testing.TB, text string, steps int64) string {
	t.Helper()
	raw, err := base32.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return secret.TOTP(raw).Code(time.Now().Unix()/30 + steps)
}

// answerTo returns the body that completes a sign-in: the challenge and the proof of the
// second factor. way is "code", "recoveryCode" or "passkey".
func answerTo(challenge, way, value string) string {
	if way == "passkey" {
		return fmt.Sprintf(`{"challenge":%s,"passkey":%s}`, quoted(challenge), value)
	}
	return fmt.Sprintf(`{"challenge":%s,%s:%s}`, quoted(challenge), quoted(way), quoted(value))
}

const completes = "POST /auths/login/second-factor"

// enrol adds an authenticator app to the caller. It returns the app's secret and the recovery
// codes. The app's code of the current time step is used up.
func (c *caller) enrol(t testing.TB) (app string, codes []string) {
	t.Helper()
	app = c.do(t, "POST /auths/totp", "").expect(t, 200).text("/secret")
	a := c.do(t, "POST /auths/totp/confirm", `{"code":`+quoted(code(t, app, 0))+`}`).expect(t, 200)
	c.world.keepSecret(app)
	return app, a.recoveryCodes(c.world)
}

// recoveryCodes returns the recovery codes in the response, and calls keepSecret for them.
func (a *answer) recoveryCodes(w *world) (codes []string) {
	for i := range a.list("/recoveryCodes") {
		codes = append(codes, a.text(fmt.Sprintf("/recoveryCodes/%d", i)))
	}
	w.keepSecret(codes...)
	return codes
}

// keepSecret adds texts to those that must not appear in the program's log.
func (w *world) keepSecret(texts ...string) {
	w.program.secret(texts...)
}

// challenge signs in with the correct password. The sign-in must be refused with the error
// code wanted and a challenge. challenge returns the response.
func (w *world) challenge(t testing.TB, email, wanted string) *answer {
	t.Helper()
	a := w.anonymous().do(t, "POST /auths/login", credentials(email, password)).refused(t, 401, wanted)
	if a.text("/challenge") == "" || len(a.cookies) > 0 {
		t.Fatalf("nothing is asked for, or a cookie is set: %s", a.body)
	}
	w.keepSecret(a.text("/challenge"))
	return a
}

// factorChallenge signs in a user who has a second factor. It returns the text of the
// challenge.
func (w *world) factorChallenge(t testing.TB, email string) string {
	t.Helper()
	return w.challenge(t, email, "second-factor-required").text("/challenge")
}

// noticed waits until the address gets a notice about changed credentials that contains the
// text what.
func (w *world) noticed(t testing.TB, email, what string) {
	t.Helper()
	_, err := w.program.mail.Await(email, func(m *mailtest.Message) bool {
		return w.isMail(m, rolecall.MailCredentialsChanged) && strings.Contains(m.Text, ": "+what+".")
	}, patience.Limit)
	if err != nil {
		t.Errorf("%s was not told that %s: %v", email, what, err)
	}
}

func testApp(t *testing.T, w *world) {
	ada := w.member(t, "ada", "")
	other := w.signIn(t, ada.email)
	none := ada.do(t, "GET /auths/factors", "").expect(t, 200)
	if none.value("/totp") != nil || len(none.list("/passkeys")) != 0 || none.value("/recoveryCodes") != 0.0 || none.value("/demanded") != false {
		t.Errorf("a new user has %s", none.body)
	}
	ada.do(t, "POST /auths/totp/confirm", `{"code":"000000"}`).refused(t, 422, "validation")
	begun := ada.do(t, "POST /auths/totp", "").expect(t, 200)
	app := begun.text("/secret")
	if want := "otpauth://totp/" + w.name + ":" + "ada@canary.example"; begun.text("/uri")[:len(want)] != want {
		t.Errorf("the uri is %s", begun.text("/uri"))
	}
	ada.do(t, "POST /auths/totp/confirm", `{"code":"000000"}`).refused(t, 422, "validation")
	w.signIn(t, ada.email) // an unconfirmed factor is not requested
	confirmed := ada.do(t, "POST /auths/totp/confirm", `{"code":`+quoted(code(t, app, 0))+`}`).expect(t, 200)
	w.keepSecret(app)
	if codes := confirmed.recoveryCodes(w); len(codes) != 10 {
		t.Errorf("the recovery codes are %q", codes)
	}
	other.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	ada.do(t, "GET /auths/session", "").expect(t, 200)

	asked := w.challenge(t, ada.email, "second-factor-required")
	if methods := asked.list("/methods"); !slices.Equal(methods, []any{"totp", "recovery-code"}) || asked.value("/publicKey") != nil {
		t.Errorf("asked for %s", asked.body)
	}
	challenge := asked.text("/challenge")
	w.anonymous().do(t, completes, answerTo(challenge, "code", "000000")).refused(t, 401, "wrong-code")
	w.anonymous().do(t, completes, answerTo(challenge, "code", code(t, app, 0))).refused(t, 401, "wrong-code") // the enrolment has used this code
	next := code(t, app, 1)
	in := w.anonymous().do(t, completes, answerTo(challenge, "code", next)).expect(t, 200)
	if in.text("/user/id") != ada.id || in.value("/recoveryCodes") != nil {
		t.Errorf("signed in with %s", in.body)
	}
	signedIn := ada.with(in.session(t))
	signedIn.do(t, "GET /auths/session", "").expect(t, 200)
	w.anonymous().do(t, completes, answerTo(challenge, "code", next)).refused(t, 401, "challenge-invalid")
	w.anonymous().do(t, completes, answerTo(w.factorChallenge(t, ada.email), "code", next)).refused(t, 401, "wrong-code")

	second := signedIn.do(t, "POST /auths/totp", "").expect(t, 200).text("/secret")
	w.factorChallenge(t, ada.email) // the first app is valid until the second is confirmed
	if a := signedIn.do(t, "POST /auths/totp/confirm", `{"code":`+quoted(code(t, second, 0))+`}`).expect(t, 200); a.value("/recoveryCodes") != nil {
		t.Errorf("there are codes from before, and new ones are shown: %s", a.body)
	}
	w.anonymous().do(t, completes, answerTo(w.factorChallenge(t, ada.email), "code", code(t, second, 1))).expect(t, 200)
	signedIn.do(t, "DELETE /auths/totp", "").expect(t, 204)
	signedIn.do(t, "DELETE /auths/totp", "").refused(t, 404, "not-found")
	if left := signedIn.do(t, "GET /auths/factors", ""); left.value("/recoveryCodes") != 0.0 || left.value("/totp") != nil {
		t.Errorf("left is %s", left.body)
	}
	w.signIn(t, ada.email)
	for _, what := range []string{"an authenticator app was added", "an authenticator app was added", "an authenticator app was removed"} {
		w.noticed(t, ada.email, what)
	}
	var events []string
	for _, kind := range w.owner.do(t, "GET /users/"+ada.id+"/events", "").expect(t, 200).texts("type") {
		if kind == "user.factor_added" || kind == "user.factor_removed" {
			events = append(events, kind)
		}
	}
	if got := fmt.Sprint(events); got != "[user.factor_removed user.factor_added user.factor_added]" {
		t.Errorf("the events are %s", got)
	}
}

func testRefusedFactors(t *testing.T, w *world) {
	ada := w.member(t, "ada", "")
	ada.enrol(t)
	challenge := w.factorChallenge(t, ada.email)
	key := func(send, body string, faults ...string) scenario {
		return scenario{name: send + " " + body, as: ada, send: send, body: body, header: []string{"idempotency-key: " + newKey()}, status: 422, code: "validation", faults: faults}
	}
	answer := func(name, body string, status int, code string, faults ...string) scenario {
		return scenario{name: name, as: w.anonymous(), send: completes, body: body, status: status, code: code, faults: faults, headers: map[string]string{"Set-Cookie": ""}}
	}
	play(t, []scenario{
		answer("nothing", "", 400, "malformed-request", " required"),
		answer("no challenge", `{"code":"000000"}`, 422, "validation", "/challenge required"),
		answer("no proof", `{"challenge":`+quoted(challenge)+`}`, 422, "validation", " one-of"),
		answer("an empty proof", answerTo(challenge, "code", ""), 422, "validation", " one-of"),
		answer("two proofs", `{"challenge":`+quoted(challenge)+`,"code":"000000","recoveryCode":"0000-0000-0000-0000"}`, 422, "validation", " one-of"),
		answer("a passkey that is none", answerTo(challenge, "passkey", `{}`), 401, "wrong-code"),
		answer("a passkey that is a text", answerTo(challenge, "passkey", `"x"`), 422, "validation", "/passkey type"),
		answer("a code of letters", answerTo(challenge, "code", "abcdef"), 401, "wrong-code"),
		answer("no challenge of ours", answerTo("x", "code", "000000"), 401, "challenge-invalid"),
		answer("a challenge that never was", answerTo(string(secret.NewToken()), "code", "000000"), 401, "challenge-invalid"),
		{name: "enrolment of somebody who is enrolled", as: w.anonymous(), send: "POST /auths/login/enrolment", body: `{"challenge":` + quoted(challenge) + `}`, status: 401, code: "challenge-invalid"},
		key("POST /auths/passkeys", `{"name":"","passkey":{}}`, "/name length", "/passkey refused"),
		key("POST /auths/passkeys", `{"name":"Phone","passkey":{"id":"AA","response":{}}}`, "/passkey refused"),
		key("POST /auths/passkeys", `{"name":"Phone\u0000"}`, "/passkey required"),
		{name: "no key", as: ada, send: "POST /auths/passkeys", body: `{"name":"Phone","passkey":{}}`, header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required"}},
		{name: "no such passkey", as: ada, send: "DELETE /auths/passkeys/AAAA", status: 404, code: "not-found"},
		{name: "no id of a passkey", as: ada, send: "DELETE /auths/passkeys/A", status: 400, faults: []string{"parameter:passkeyId format"}},
		{name: "a passkey of nobody", as: w.anonymous(), send: "POST /auths/passkeys/sign-in", body: `{"passkey":{}}`, status: 401, code: "passkey-refused"},
	})
}

func testRecoveryCodes(t *testing.T, w *world) {
	ada := w.member(t, "ada", "")
	ada.do(t, "POST /auths/recovery-codes", "").refused(t, 409, "no-second-factor")
	_, codes := ada.enrol(t)
	use := func(code string) *answer {
		return w.anonymous().do(t, completes, answerTo(w.factorChallenge(t, ada.email), "recoveryCode", code))
	}
	use(codes[0]).expect(t, 200)
	use(codes[0]).refused(t, 401, "wrong-code")
	use(" "+codes[1][:9]+" "+codes[1][10:]).expect(t, 200)
	if left := ada.do(t, "GET /auths/factors", "").value("/recoveryCodes"); left != 8.0 {
		t.Errorf("%v are left", left)
	}
	made := ada.do(t, "POST /auths/recovery-codes", "").expect(t, 200).recoveryCodes(w)
	if len(made) != 10 || slices.Contains(made, codes[2]) {
		t.Errorf("new ones are %q", made)
	}
	use(codes[2]).refused(t, 401, "wrong-code")
	use(made[9]).expect(t, 200)
	w.noticed(t, ada.email, "new recovery codes were created")
	for range 3 {
		w.noticed(t, ada.email, "a recovery code was used")
	}
	events := w.owner.do(t, "GET /users/"+ada.id+"/events?type=user.recovery_code_used", "").expect(t, 200).texts("type")
	if len(events) != 3 {
		t.Errorf("the events are %q", events)
	}
}

// testFactorsInParallel completes sign-ins with fifty requests at once. It sends one correct
// app code to one challenge, then one recovery code to five challenges, then a wrong code to
// one challenge. A correct code must work once, and wrong codes must be limited.
func testFactorsInParallel(t *testing.T, w *world) {
	ada := w.member(t, "ada", "")
	app, _ := ada.enrol(t)
	tally := func(n int, body func(i int) string) map[string]int {
		var mu sync.Mutex
		results := map[string]int{}
		var running sync.WaitGroup
		for i := range n {
			running.Go(func() {
				a, err := w.anonymous().try(t, completes, body(i))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				results[fmt.Sprintf("%d %s", a.status, a.text("/code"))]++
			})
		}
		running.Wait()
		return results
	}
	challenge, right := w.factorChallenge(t, ada.email), code(t, app, 1)
	if got := tally(50, func(int) string { return answerTo(challenge, "code", right) }); got["200 "] != 1 {
		t.Errorf("one right code: %v", got)
	}
	grace := w.member(t, "grace", "")
	_, codes := grace.enrol(t)
	challenges := make([]string, 5)
	for i := range challenges {
		challenges[i] = w.factorChallenge(t, grace.email)
	}
	if got := tally(50, func(i int) string { return answerTo(challenges[i%5], "recoveryCode", codes[4]) }); got["200 "] != 1 || got["401 wrong-code"] > 10 {
		t.Errorf("one recovery code: %v", got)
	}
	mary := w.member(t, "mary", "")
	mary.enrol(t)
	challenge = w.factorChallenge(t, mary.email)
	got := tally(50, func(int) string { return answerTo(challenge, "code", "000000") })
	if got["401 wrong-code"] != 5 || got["401 challenge-invalid"] != 45 {
		t.Errorf("wrong codes: %v", got)
	}
}

func testVoidChallenges(t *testing.T, w *world) {
	for name, void := range map[string]struct {
		happens func(*caller)
		status  int
		code    string
	}{
		"suspended": {func(c *caller) { w.owner.do(t, "POST /users/"+c.id+"/suspend", "").expect(t, 200) }, 403, "user-suspended"},
		"deleted":   {func(c *caller) { w.owner.do(t, "DELETE /users/"+c.id, "").expect(t, 204) }, 401, "challenge-invalid"},
		"changed": {func(c *caller) {
			c.do(t, "PUT /auths/password", passwords(password, "another "+password)).expect(t, 204)
		}, 401, "challenge-invalid"},
		"set": {func(c *caller) {
			w.program.run(t, password, "user", "set-password", "--tenant", w.name, "--email", c.email, "--password-stdin")
		}, 401, "challenge-invalid"},
		"reset": {func(c *caller) { w.owner.do(t, "DELETE /users/"+c.id+"/factors", "").expect(t, 204) }, 401, "challenge-invalid"},
	} {
		c := w.member(t, "void-"+name, "")
		_, codes := c.enrol(t)
		challenge := w.factorChallenge(t, c.email)
		void.happens(c)
		w.anonymous().do(t, completes, answerTo(challenge, "recoveryCode", codes[0])).refused(t, void.status, void.code)
	}
}

func testFactorsOfOtherTenants(t *testing.T, w, other *world) {
	ada, hers := w.member(t, "ada", ""), other.member(t, "ada", "")
	_, codes := ada.enrol(t)
	_, foreign := hers.enrol(t)
	challenge := w.factorChallenge(t, ada.email)
	void := w.anonymous().in(other.name).do(t, completes, answerTo(challenge, "recoveryCode", codes[0])).refused(t, 401, "challenge-invalid")
	unknown := w.anonymous().in("no-such-tenant").do(t, completes, answerTo(challenge, "recoveryCode", codes[0])).refused(t, 401, "challenge-invalid")
	if anonymousBody(t, void) != anonymousBody(t, unknown) {
		t.Errorf("a tenant that is not there is told from one that is: %s and %s", void.body, unknown.body)
	}
	w.anonymous().do(t, completes, answerTo(challenge, "recoveryCode", foreign[0])).refused(t, 401, "wrong-code")
	w.anonymous().do(t, completes, answerTo(challenge, "recoveryCode", codes[0])).expect(t, 200)
}

// demand sets the tenant's rule about which users need a second factor.
func (w *world) demand(t testing.TB, rule string) {
	t.Helper()
	w.owner.do(t, "PATCH /tenant", `{"settings":{"secondFactor":`+rule+`}}`).expect(t, 200)
}

// enrolment signs in a user who must add a second factor first, and begins to add an
// authenticator app. It returns the challenge and the response, which contains the app's
// secret.
func (w *world) enrolment(t testing.TB, email string) (challenge string, a *answer) {
	t.Helper()
	challenge = w.challenge(t, email, "second-factor-enrolment-required").text("/challenge")
	a = w.anonymous().do(t, "POST /auths/login/enrolment", `{"challenge":`+quoted(challenge)+`}`).expect(t, 200)
	w.keepSecret(a.text("/secret"))
	return challenge, a
}

func testDemandedFactor(t *testing.T, w *world) {
	ada, grace := w.member(t, "ada", ""), w.member(t, "grace", "")
	app, _ := ada.enrol(t)
	without := ada
	a := w.anonymous().do(t, completes, answerTo(w.factorChallenge(t, ada.email), "code", code(t, app, 1))).expect(t, 200)
	ada = ada.with(a.session(t))
	w.demand(t, `{"required":"all"}`)

	for _, c := range []*caller{w.owner, grace, without} {
		c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
		c.do(t, "POST /auths/refresh", "").refused(t, 401, "unauthenticated")
	}
	ada.do(t, "GET /auths/session", "").expect(t, 200)
	ada.do(t, "DELETE /auths/totp", "").refused(t, 409, "second-factor-demanded")

	challenge, a := w.enrolment(t, grace.email)
	w.anonymous().do(t, completes, answerTo(challenge, "code", "000000")).refused(t, 401, "wrong-code")
	in := w.anonymous().do(t, completes, answerTo(challenge, "code", code(t, a.text("/secret"), 0))).expect(t, 200)
	if codes := in.recoveryCodes(w); len(codes) != 10 {
		t.Errorf("enrolled with %s", in.body)
	}
	grace = grace.with(in.session(t))
	grace.do(t, "GET /auths/session", "").expect(t, 200)
	w.anonymous().do(t, "POST /auths/login/enrolment", `{"challenge":`+quoted(challenge)+`}`).refused(t, 401, "challenge-invalid")
	w.factorChallenge(t, grace.email)

	phone := passkeytest.New(public)
	challenge, a = w.enrolment(t, w.owner.email)
	in = w.anonymous().do(t, completes, answerTo(challenge, "passkey", string(phone.Create(t, a.json(t, "/publicKey"))))).expect(t, 200)
	in.recoveryCodes(w)
	w.owner = w.owner.with(in.session(t))
	if own := w.owner.do(t, "GET /auths/factors", "").expect(t, 200); own.value("/demanded") != true || len(own.list("/passkeys")) != 1 {
		t.Errorf("the owner has %s", own.body)
	}
	w.owner.do(t, "DELETE /users/"+w.owner.id+"/factors", "").refused(t, 409, "second-factor-demanded")
	w.demand(t, `{"required":"none"}`)
	ada.do(t, "DELETE /auths/totp", "").expect(t, 204)
	w.signIn(t, ada.email)
}

func testFactorDemandedOfRole(t *testing.T, w *world) {
	ada, grace := w.member(t, "ada", ""), w.member(t, "grace", "")
	role := w.role(t, "Support", "users:read")
	w.assign(t, ada.id, role, within("Sales"))
	w.assign(t, grace.id, w.role(t, "Programs", "users:read"), "")
	program := grace.makeToken(t, "", "users:read")
	w.demand(t, `{"required":"roles","roles":[`+quoted(role)+`]}`)
	ada.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	grace.do(t, "GET /auths/session", "").expect(t, 200)
	program.do(t, "GET /users", "").expect(t, 200)
	w.enrolment(t, ada.email)
	w.assign(t, grace.id, role, "")
	for _, c := range []*caller{grace, program} {
		c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	}
	sessions := "GET /users/" + grace.id + "/sessions"
	if listed := w.owner.do(t, sessions, "").expect(t, 200); len(listed.list("/items")) != 1 || listed.value("/items/0/secondFactor") != false {
		t.Errorf("a session that counts again when nothing is demanded is not listed so: %s", listed.body)
	}
	challenge, enrolment := w.enrolment(t, grace.email)
	w.anonymous().do(t, completes, answerTo(challenge, "code", code(t, enrolment.text("/secret"), 0))).expect(t, 200).recoveryCodes(w)
	program.do(t, "GET /users", "").expect(t, 200)
	grace.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated") // the session began without a second factor
	if listed := w.owner.do(t, sessions, "").expect(t, 200); len(listed.list("/items")) != 1 || listed.value("/items/0/secondFactor") != true {
		t.Errorf("enrolled in %s", listed.body)
	}
	w.owner.do(t, "DELETE /users/"+grace.id+"/factors", "").expect(t, 204)
	program.do(t, "GET /users", "").refused(t, 401, "unauthenticated")
	w.owner.do(t, "DELETE /users/"+grace.id+"/roles/"+role, "").expect(t, 204)
	program.do(t, "GET /users", "").expect(t, 200)
	w.signIn(t, grace.email)
}

func testResetFactors(t *testing.T, w *world) {
	ada := w.member(t, "ada", "Sales")
	ada.enrol(t)
	helper := w.holder(t, "helper", "", "", "users:read", "users:reset-factors")
	scoped := w.holder(t, "scoped", "", "Ops", "users:reset-factors")
	owner := w.member(t, "owner-2", "")
	w.assign(t, owner.id, w.builtIn(t, "owner"), "")
	owner.enrol(t)
	w.factorChallenge(t, owner.email)
	reset := "DELETE /users/" + ada.id + "/factors"
	play(t, []scenario{
		{name: "by somebody without the permission", as: ada, send: "DELETE /users/" + w.owner.id + "/factors", status: 403, code: "permission-denied"},
		{name: "oneself, without the permission", as: ada, send: reset, status: 403, code: "permission-denied"},
		{name: "outside of one's reach", as: scoped, send: reset, status: 404, code: "not-found"},
		{name: "of an owner, by a helper", as: helper, send: "DELETE /users/" + owner.id + "/factors", status: 403, code: "beyond-own-permissions"},
		{name: "of nobody", as: helper, send: "DELETE /users/" + never + "/factors", status: 404, code: "not-found"},
		{name: "by a helper", as: helper, send: reset, status: 204},
		{name: "again", as: helper, send: reset, status: 204},
		{name: "their sessions are over", as: ada, send: "GET /auths/session", status: 401},
	})
	ada = w.signIn(t, ada.email)
	if a := ada.do(t, "GET /auths/factors", ""); a.value("/totp") != nil || a.value("/recoveryCodes") != 0.0 {
		t.Errorf("left is %s", a.body)
	}
	if events := w.owner.do(t, "GET /users/"+ada.id+"/events?type=user.factors_reset", "").texts("actor/id"); !slices.Equal(events, []string{helper.id}) {
		t.Errorf("reset by %q", events)
	}
	w.factorChallenge(t, owner.email)
	w.noticed(t, ada.email, "all second factors were removed by an administrator")
}

// json returns the value at a JSON pointer of the body, encoded as JSON. It fails the test if
// the body has no such value.
func (a *answer) json(t testing.TB, pointer string) []byte {
	t.Helper()
	value := a.value(pointer)
	if value == nil {
		t.Fatalf("%s has no %s: %s", a.line, pointer, a.body)
	}
	document, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// addPasskey adds a passkey from the authenticator to the caller. It returns the response.
func (c *caller) addPasskey(t testing.TB, phone *passkeytest.Authenticator, header ...string) *answer {
	t.Helper()
	options := c.do(t, "POST /auths/passkeys/options", "").expect(t, 200).json(t, "/publicKey")
	body := `{"name":"Telefon","passkey":` + string(phone.Create(t, options)) + `}`
	a := c.do(t, "POST /auths/passkeys", body, append([]string{"idempotency-key: " + newKey()}, header...)...).expect(t, 201)
	a.recoveryCodes(c.world)
	return a
}

func testPasskeys(t *testing.T, w *world) {
	ada, phone := w.member(t, "ada", ""), passkeytest.New(public)
	other := w.signIn(t, ada.email)
	options := ada.do(t, "POST /auths/passkeys/options", "").expect(t, 200)
	if options.text("/publicKey/rp/id") != "id.example.com" || options.text("/publicKey/attestation") != "none" || options.text("/publicKey/user/name") != ada.email+" ("+w.name+")" {
		t.Errorf("the options are %s", options.body)
	}
	body := `{"name":"Telefon","passkey":` + string(phone.Create(t, options.json(t, "/publicKey"))) + `}`
	key := "idempotency-key: " + newKey()
	added := ada.do(t, "POST /auths/passkeys", body, key).expect(t, 201)
	if len(added.recoveryCodes(w)) != 10 || added.text("/name") != "Telefon" || added.value("/lastUsedAt") != nil {
		t.Errorf("added %s", added.body)
	}
	again := ada.do(t, "POST /auths/passkeys", body, key).expect(t, 201)
	if again.header.Get("Idempotent-Replayed") != "true" || again.value("/secretWithheld") != true || again.value("/recoveryCodes") != nil || again.text("/id") != added.text("/id") {
		t.Errorf("added again %s", again.body)
	}
	ada.do(t, "POST /auths/passkeys", body, "idempotency-key: "+newKey()).refused(t, 409, "passkey-taken")
	w.owner.do(t, "POST /auths/passkeys", body, "idempotency-key: "+newKey()).refused(t, 422, "validation")
	other.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")

	asked := w.challenge(t, ada.email, "second-factor-required")
	if methods := asked.list("/methods"); !slices.Equal(methods, []any{"passkey", "recovery-code"}) {
		t.Errorf("asked for %s", asked.body)
	}
	phone.Verifies = false // the passkey need not verify the user after the password
	signed := string(phone.Get(t, asked.json(t, "/publicKey")))
	w.anonymous().do(t, completes, answerTo(w.factorChallenge(t, ada.email), "passkey", signed)).refused(t, 401, "wrong-code")
	in := w.anonymous().do(t, completes, answerTo(asked.text("/challenge"), "passkey", signed)).expect(t, 200)
	ada = ada.with(in.session(t))
	w.anonymous().do(t, completes, answerTo(asked.text("/challenge"), "passkey", signed)).refused(t, 401, "challenge-invalid")
	list := ada.do(t, "GET /auths/factors", "").expect(t, 200)
	if list.text("/passkeys/0/id") != added.text("/id") || list.text("/passkeys/0/lastUsedAt") == "" {
		t.Errorf("the factors are %s", list.body)
	}
	if created := ada.do(t, "GET /users/"+ada.id+"/events?type=user.factor_added", "").expect(t, 200); list.text("/passkeys/0/createdAt") != added.text("/createdAt") || created.text("/items/0/after/passkey/createdAt") != added.text("/createdAt") {
		t.Errorf("made at %s, and told as %s and %s", added.text("/createdAt"), list.body, created.body)
	}
	testPasskeyNames(t, ada, added.text("/id"))
	ada.do(t, "DELETE /auths/passkeys/"+added.text("/id"), "").expect(t, 204)
	ada.do(t, "DELETE /auths/passkeys/"+added.text("/id"), "").refused(t, 404, "not-found")
	w.noticed(t, ada.email, "a passkey was added")
	w.noticed(t, ada.email, "a passkey was removed")
	w.signIn(t, ada.email)
}

// testPasskeyNames checks which names a passkey can get, and who can read the names in events.
func testPasskeyNames(t *testing.T, ada *caller, id string) {
	path, owner := "/auths/passkeys/"+id, ada.world.owner
	about := "GET /users/" + ada.id + "/events?type="
	play(t, []scenario{
		{name: "another name", as: ada, send: "PATCH " + path, body: `{"name":"Schlüssel"}`, status: 200, members: "id name createdAt lastUsedAt", has: map[string]any{"/id": id, "/name": "Schlüssel"}},
		{name: "as a merge patch", as: ada, send: "PATCH " + path, body: `{"name":"Key"}`, header: []string{"content-type: application/merge-patch+json"}, status: 200, has: map[string]any{"/name": "Key"}},
		{name: "the same name", as: ada, send: "PATCH " + path, body: `{"name":"Key"}`, status: 200, has: map[string]any{"/name": "Key"}},
		{name: "nothing", as: ada, send: "PATCH " + path, body: `{}`, status: 200, has: map[string]any{"/name": "Key"}},
		{name: "no name", as: ada, send: "PATCH " + path, body: `{"name":null}`, status: 422, faults: []string{"/name type"}},
		{name: "an empty name", as: ada, send: "PATCH " + path, body: `{"name":""}`, status: 422, faults: []string{"/name length"}},
		{name: "a name that is too long", as: ada, send: "PATCH " + path, body: `{"name":` + quoted(strings.Repeat("x", 101)) + `}`, status: 422, faults: []string{"/name length"}},
		{name: "something else", as: ada, send: "PATCH " + path, body: `{"name":"x","lastUsedAt":null}`, status: 422, faults: []string{"/lastUsedAt unknown"}},
		{name: "another's", as: owner, send: "PATCH " + path, body: `{"name":"Mine"}`, status: 404, code: "not-found"},
		{name: "it is listed so", as: ada, send: "GET /auths/factors", status: 200, has: map[string]any{"/passkeys/0/name": "Key"}},
		{name: "events of it", as: ada, send: about + "user.factor_renamed", status: 200, has: map[string]any{"/items/0/before/passkey/name": "Schlüssel", "/items/0/after/passkey/name": "Key", "/items/1/before/passkey/name": "Telefon", "/items/2": nil}},
		{name: "an owner sees that it was renamed, and no name", as: owner, send: about + "user.factor_renamed", status: 200, has: map[string]any{"/items/1/members/0": "passkey", "/items/0/after": nil, "/items/0/before": nil}, lacks: []string{"Key", "Telefon"}},
		{name: "nor when it was made", as: owner, send: about + "user.factor_added", status: 200, has: map[string]any{"/items/0/members/0": "passkey", "/items/0/after": nil}, lacks: []string{"Telefon"}},
	})
}

func testPasskeysAlone(t *testing.T, w, other *world) {
	ada, phone := w.member(t, "ada", ""), passkeytest.New(public)
	ada.addPasskey(t, phone)
	options := func(w *world) []byte {
		return w.anonymous().do(t, "POST /auths/passkeys/sign-in-options", "").expect(t, 200).json(t, "/publicKey")
	}
	signIn := func(w *world, document []byte) *answer {
		return w.anonymous().do(t, "POST /auths/passkeys/sign-in", `{"passkey":`+string(document)+`}`)
	}
	signed := phone.Get(t, options(w))
	elsewhere := signIn(other, signed).refused(t, 401, "passkey-refused")
	in := signIn(w, signed).expect(t, 200)
	if in.text("/user/id") != ada.id {
		t.Errorf("signed in as %s", in.body)
	}
	ada.with(in.session(t)).do(t, "GET /auths/session", "").expect(t, 200)
	signIn(w, signed).refused(t, 401, "passkey-refused")
	foreign := signIn(other, phone.Get(t, options(other))).refused(t, 401, "passkey-refused")
	unknown := w.anonymous().in("no-such-tenant").do(t, "POST /auths/passkeys/sign-in", `{"passkey":`+string(phone.Get(t, options(w)))+`}`).refused(t, 401, "passkey-refused")
	if anonymousBody(t, elsewhere) != anonymousBody(t, foreign) || anonymousBody(t, foreign) != anonymousBody(t, unknown) {
		t.Errorf("refusals differ: %s, %s, %s", elsewhere.body, foreign.body, unknown.body)
	}
	phone.Verifies = false
	signIn(w, phone.Get(t, options(w))).refused(t, 401, "passkey-refused")
	phone.Verifies, phone.Origin = true, "http://evil.example.com"
	signIn(w, phone.Get(t, options(w))).refused(t, 401, "passkey-refused")
	phone.Origin = public
	w.demand(t, `{"required":"all"}`)
	signIn(w, phone.Get(t, options(w))).expect(t, 200)

	signed = phone.Get(t, options(w))
	var mu sync.Mutex
	results := map[int]int{}
	var running sync.WaitGroup
	for range 50 {
		running.Go(func() {
			a, err := w.anonymous().try(t, "POST /auths/passkeys/sign-in", `{"passkey":`+string(signed)+`}`)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			results[a.status]++
		})
	}
	running.Wait()
	if results[http.StatusOK] != 1 || results[http.StatusUnauthorized] != 49 {
		t.Errorf("one answer of a passkey: %v", results)
	}
}

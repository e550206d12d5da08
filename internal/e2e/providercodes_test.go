package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

// code completes a sign-in and returns the code of the return address.
func (w *providerWorld) code(t testing.TB, c *caller, returnTo, more string) string {
	t.Helper()
	query := w.completed(t, userAgent{}, c, returnTo, more)
	if !query.Has("code") {
		t.Fatalf("the browser returns with %v", query)
	}
	return query.Get("code")
}

// testBearerWithProvider exchanges codes for tokens as an app does.
func testBearerWithProvider(t *testing.T, w *providerWorld) {
	const exchange = "POST /auths/codes/exchange"
	w.provisions(t)
	person(w.provider, "ada")
	app := w.anonymous()
	b := userAgent{}
	query := w.completed(t, b, app, appReturn, "")
	if len(query) != 1 || len(b) != 0 {
		t.Fatalf("the app gets %v, the browser has %v", query, b)
	}
	code := query.Get("code")
	a := app.do(t, exchange, exchangeBody(code, appVerifier, byHeader)).expect(t, 200)
	if a.text("/deviceToken") == "" || len(a.cookies) > 0 {
		t.Errorf("the response is %s with %v", a.body, a.cookies)
	}
	ada := &caller{world: w.world, tenant: w.name, bearer: a.text("/token"), id: a.text("/user/id")}
	ada.do(t, "GET /auths/session", "").expect(t, 200)
	app.do(t, exchange, exchangeBody(code, appVerifier, byHeader)).refused(t, 401, "sign-in-code-invalid") // twice

	code = w.code(t, app, appReturn, "")
	app.in(newWorld(t, w.program).name).do(t, exchange, exchangeBody(code, appVerifier, byHeader)).refused(t, 401, "sign-in-code-invalid")
	app.do(t, exchange, exchangeBody(code, appVerifier+"x", byHeader)).refused(t, 401, "sign-in-code-invalid")
	app.do(t, exchange, exchangeBody(code, appVerifier, byHeader)).refused(t, 401, "sign-in-code-invalid") // the wrong verifier has used it up

	code = w.code(t, app, appReturn, "")
	ends := fmt.Sprintf("expires_at - created_at = %d", time.Minute.Microseconds())
	w.program.execute(t, "update one_time_tokens set expires_at = created_at where purpose = 'oidc-code' and "+ends+" and user_id = "+w.program.literal(ada.id))
	app.do(t, exchange, exchangeBody(code, appVerifier, byHeader)).refused(t, 401, "sign-in-code-invalid")

	for _, more := range []string{`,"purpose":"sign-in"`, `,"purpose":"sign-in","codeChallenge":"x"`, `,"transport":"bearer"`} {
		app.do(t, "POST /auths/oidc/start", w.startBody(appReturn, more)).refused(t, 422, "validation")
	}
	w.demand(t, `{"required":"roles","roles":["`+w.builtIn(t, "viewer")+`"]}`)
	code = w.code(t, app, appReturn, "")
	app.do(t, exchange, exchangeBody(code, appVerifier, byHeader)).refused(t, 401, "second-factor-enrolment-required")
	code = w.code(t, app, w.returnTo(), "")
	if a := b.exchange(t, w.world, code).refused(t, 401, "second-factor-enrolment-required"); a.text("/challenge") == "" || b["session"] != "" {
		t.Errorf("the response is %s, and the browser has %v", a.body, b)
	}
	w.change(t, `{"secondFactor":"trust","amrValues":["mfa"]}`)
	w.provider.Set(func(s *oidctest.Settings) { s.Person.Claims["amr"] = []string{"pwd", "mfa"} })
	code = w.code(t, app, appReturn, "")
	if a := app.do(t, exchange, exchangeBody(code, appVerifier, byHeader)).expect(t, 200); a.value("/session/secondFactor") != true {
		t.Errorf("the trusted second factor leads to %s", a.body)
	}
}

// testLinkToSignIn opens the URL of a sign-in that another person started, and that person's own code, in the browser of
// a signed-in user.
func testLinkToSignIn(t *testing.T, w *providerWorld) {
	w.provisions(t)
	person(w.provider, "mallory")
	bob := w.member(t, "bob", "")
	b := userAgent{"session": bob.token}
	query := w.completed(t, b, w.anonymous(), w.returnTo(), "")
	if b["session"] != bob.token || len(b) != 1 || b.user(t, w.world).id != bob.id {
		t.Errorf("the browser has %v", b)
	}
	other := exchangeBody(query.Get("code"), appVerifier+"x", "") // the browser does not have the verifier of mallory
	a := b.keep(w.anonymous().do(t, "POST /auths/codes/exchange", other, b.cookie()))
	if a.refused(t, 401, "sign-in-code-invalid"); b["session"] != bob.token || b.user(t, w.world).id != bob.id {
		t.Errorf("the browser has %v", b)
	}
}

// testConfirmWithProvider re-authenticates with the provider.
func testConfirmWithProvider(t *testing.T, w *providerWorld) {
	const purpose = `,"purpose":"confirm"`
	w.provisions(t)
	person(w.provider, "ada")
	ada := w.signsIn(t)
	other := w.signsIn(t) // another session of the same user
	if ada.id != other.id {
		t.Fatal("the sessions have different users")
	}
	w.owner.do(t, "PATCH /tenant", fmt.Sprintf(`{"settings":{"reauthenticationSeconds":%d}}`, recentFor)).expect(t, 200)
	ada.awaitStale(t)
	w.anonymous().do(t, "POST /auths/oidc/start", w.startBody(w.returnTo(), purpose)).refused(t, 401, "unauthenticated")
	confirm := func(c *caller, code string) *answer {
		return c.do(t, "POST /auths/confirm", `{"connectionCode":`+quoted(code)+`}`)
	}
	wrong := func(what string, a *answer) {
		t.Helper()
		if faults := a.expect(t, 422).faults(); len(faults) != 1 || faults[0] != "/connectionCode wrong" {
			t.Errorf("%s: %v", what, faults)
		}
	}
	now := time.Now().Unix()
	for what, stated := range map[string]any{"an old": now - 3600, "no": nil, "a future": now + 3600} {
		w.provider.Set(func(s *oidctest.Settings) {
			s.Token = func(token *oidctest.Token) { token.Claims["auth_time"] = stated }
		})
		if query := w.completed(t, userAgent{}, ada, w.returnTo(), purpose); query.Encode() != "error=sign-in-refused" {
			t.Errorf("%s auth_time returns with %v", what, query)
		}
	}
	w.provider.Set(func(s *oidctest.Settings) { s.Token = nil })
	code := w.code(t, ada, w.returnTo(), purpose)
	if sent := w.provider.Last(oidctest.PathAuthorization); sent.Get("max_age") != "0" {
		t.Errorf("the provider gets %v", sent)
	}
	wrong("in another session", confirm(other, code))
	ada.do(t, "POST /auths/oidc/link", `{"code":`+quoted(code)+`}`).expect(t, 403) // which needs a recent sign-in itself
	a := confirm(ada, code).expect(t, 200)
	if a.text("/confirmedAt") == "" {
		t.Errorf("the session is %s", a.body)
	}
	ada = ada.with(a.session(t))
	wrong("twice", confirm(ada, code))
	wrong("the code of a sign-in", confirm(ada, w.code(t, w.anonymous(), appReturn, "")))

	person(w.provider, "bob")
	w.signsIn(t)
	if query := w.completed(t, userAgent{}, ada, w.returnTo(), purpose); query.Encode() != "error=sign-in-refused" {
		t.Errorf("another user returns with %v", query)
	}
	person(w.provider, "nobody")
	if query := w.completed(t, userAgent{}, ada, w.returnTo(), purpose); query.Encode() != "error=identity-unknown" {
		t.Errorf("an unknown identity returns with %v", query)
	}
}

const linkPurpose = `,"purpose":"link"`

func (w *providerWorld) link(t testing.TB, c *caller, code string) *answer {
	t.Helper()
	return c.do(t, "POST /auths/oidc/link", `{"code":`+quoted(code)+`}`)
}

// testLink adds an identity to a signed-in user, who is notified.
func testLink(t *testing.T, w *providerWorld) {
	bob, eve := w.member(t, "bob", ""), w.member(t, "eve", "")
	person(w.provider, "somebody") // the address of the identity does not matter
	code := w.code(t, bob, w.returnTo(), linkPurpose)
	for what, c := range map[string]*caller{"another user": eve, "another session": w.signIn(t, bob.email)} {
		if faults := w.link(t, c, code).expect(t, 422).faults(); len(faults) != 1 || faults[0] != "/code wrong" {
			t.Errorf("%s: %v", what, faults)
		}
	}
	if n := len(w.identities(t, bob.id)) + len(w.identities(t, eve.id)); n > 0 {
		t.Errorf("%d identities were linked", n)
	}
	a := w.link(t, bob, code).expect(t, 200)
	if a.text("/userId") != bob.id || a.text("/subject") != "somebody" || a.text("/connectionId") != w.connection {
		t.Errorf("the identity is %s", a.body)
	}
	w.mailTo(t, bob.email, rolecall.MailCredentialsChanged)
	if faults := w.link(t, bob, code).expect(t, 422).faults(); len(faults) != 1 {
		t.Errorf("twice: %v", faults)
	}
	if c := w.signsIn(t); c.id != bob.id {
		t.Errorf("the identity signs %s in, not %s", c.id, bob.id)
	}
	w.link(t, eve, w.code(t, eve, w.returnTo(), linkPurpose)).refused(t, 409, "identity-taken")
	w.owner.do(t, "PATCH /tenant", fmt.Sprintf(`{"settings":{"reauthenticationSeconds":%d}}`, recentFor)).expect(t, 200)
	person(w.provider, "eve")
	code = w.code(t, eve, w.returnTo(), linkPurpose)
	eve.awaitStale(t)
	w.link(t, eve, code).refused(t, 403, "reauthentication-required")
}

// identitiesMax is the maximum number of identities of a user.
const identitiesMax = 20

func testTooManyIdentities(t *testing.T, w *providerWorld) {
	bob := w.member(t, "bob", "")
	for i := range identitiesMax {
		person(w.provider, fmt.Sprint("bob-", i))
		w.link(t, bob, w.code(t, bob, w.returnTo(), linkPurpose)).expect(t, 200)
	}
	person(w.provider, "one-more")
	w.link(t, bob, w.code(t, bob, w.returnTo(), linkPurpose)).refused(t, 409, "too-many-identities")

	// A sign-in adds none either, although the connection would link the verified address.
	w.change(t, `{"linking":"verified-email"}`)
	w.provider.Set(func(s *oidctest.Settings) { s.Person.Claims["email"] = bob.email })
	w.fails(t, "identity-unknown", "")
	if n := len(w.identities(t, bob.id)); n != identitiesMax {
		t.Errorf("the user has %d identities", n)
	}
}

// testDeletionOfIdentities checks that a deleted identity ends its sessions, also with its connection.
func testDeletionOfIdentities(t *testing.T, w *providerWorld) {
	w.provisions(t)
	person(w.provider, "ada")
	ada := w.signsIn(t)
	withPassword := w.member(t, "bob", "")
	identity := w.identities(t, ada.id)[0]
	w.owner.do(t, "DELETE /users/"+withPassword.id+"/identities/"+identity, "").expect(t, 404)
	w.owner.do(t, "DELETE /users/"+ada.id+"/identities/"+identity, "").expect(t, 204)
	ada.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	if left := w.identities(t, ada.id); len(left) > 0 {
		t.Errorf("the identities %v are left", left)
	}
	w.fails(t, "identity-unknown", "") // the user with the address has no invitation

	person(w.provider, "eve")
	eve := w.signsIn(t)
	w.owner.do(t, "DELETE /connections/"+w.connection, "").refused(t, 409, "connection-in-use")
	eve.do(t, "GET /auths/session", "").expect(t, 200)
	b := userAgent{}
	callback := w.begin(t, b)
	w.owner.do(t, "DELETE /connections/"+w.connection+"?force=true", "").expect(t, 204)
	eve.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	withPassword.do(t, "GET /auths/session", "").expect(t, 200)
	if query := returned(t, b.visit(t, w.world, callback), w.returnTo()); query.Encode() != "error=sign-in-refused" {
		t.Errorf("after the deletion, the browser returns with %v", query)
	}
}

func testSignOutAtProvider(t *testing.T, w *providerWorld) {
	w.provisions(t)
	person(w.provider, "ada")
	signOut := func(c *caller) *answer {
		a := c.do(t, "POST /auths/oidc/sign-out", `{"returnTo":`+quoted(w.returnTo())+`}`).expect(t, 200)
		c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
		return a
	}
	address := signOut(w.signsIn(t)).text("/url")
	u, err := url.Parse(address)
	if err != nil || u.Scheme+"://"+u.Host != w.provider.Issuer || u.Path != oidctest.PathEndSession || u.Query().Get("client_id") != oidctest.ClientID {
		t.Errorf("the URL is %s (%v)", address, err)
	}
	if back := w.provider.Authorize(t, address).String(); back != w.returnTo() {
		t.Errorf("the provider returns to %s", back)
	}
	if a := signOut(w.member(t, "bob", "")); a.value("/url") != nil { // with a password
		t.Errorf("the response is %s", a.body)
	}
	w.signsIn(t)
	eve := w.signsIn(t)
	w.provider.Set(func(s *oidctest.Settings) {
		s.Metadata = func(metadata map[string]any) { delete(metadata, "end_session_endpoint") }
	})
	w.owner.do(t, "POST /connections/"+w.connection+"/test", "").expect(t, 200)
	signOut(eve)
}

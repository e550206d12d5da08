package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
)

// unconfirmed returns two principals of one administrator: a session that began before a
// second factor became mandatory for the user, and an API token.
func (m *matrix) unconfirmed(t *testing.T) []*principal {
	t.Helper()
	c := m.member(t, "unconfirmed", "Sales")
	role := m.role(t, "Demanding")
	m.assign(t, c.id, m.builtIn(t, "administrator"), "")
	m.assign(t, c.id, role, "")
	token := c.makeToken(t, "", administrates...)
	for _, c := range []*caller{c, token} {
		c.do(t, "GET /users", "").expect(t, 200)
	}
	m.demand(t, `{"required":"roles","roles":[`+quoted(role)+`]}`)
	m.challenge(t, c.email, "second-factor-enrolment-required")
	return []*principal{
		{caller: c, name: "somebody without the second factor that is demanded", department: "Sales"},
		{caller: token, name: "a token of somebody without the second factor that is demanded", program: true, byToken: true},
	}
}

func resetFactorsCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		p.compare(t, s.name, "DELETE /users/"+s.id+"/factors", "", first(done(204, ""),
			check{p.mayAnywhere("users:reset-factors"), mayNot}, check{p.sees(s), notThere}, check{p.may("users:reset-factors", s.department), mayNot}, check{p.is(s) || !p.speaksFor(s), needsSession}, check{p.mayTakeOver(s), beyondOwn}))
	}
}

var _ = specify("UsersController_resetFactors", removesForGood, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "Sales")
	c.enrol(t)
	return request{line: "DELETE /users/{id}/factors", id: c.id, events: []string{"user.factors_reset user {id} []", "session.ended user {id} []"}}
}, resetFactorsCells)

// ofOneself returns the expected response to a request about the caller's own credentials.
// Programs get the error session-required instead of success.
func (p *principal) ofOneself(success expectation) expectation {
	return first(success, check{!p.program, needsSession})
}

// isPerson reports whether the principal is a user with a valid session. Only these can have
// second factors.
func (p *principal) isPerson() bool { return p.live && !p.program }

func completeLoginCells(t *testing.T, _ *matrix, p *principal) {
	p.do(t, completes, answerTo(string(secret.NewToken()), "code", "000000")).refused(t, 401, "challenge-invalid")
}

var _ = specify("AuthsController_completeLogin", provesItself, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	_, codes := c.enrol(t)
	return request{as: w.anonymous(), line: completes, id: c.id, body: answerTo(w.factorChallenge(t, c.email), "recoveryCode", codes[0]), events: []string{"user.recovery_code_used user {id} []", "session.started user {id} []"}}
}, completeLoginCells)

func beginEnrolmentCells(t *testing.T, _ *matrix, p *principal) {
	p.do(t, "POST /auths/login/enrolment", `{"challenge":`+quoted(string(secret.NewToken()))+`}`).refused(t, 401, "challenge-invalid")
}

var _ = specify("AuthsController_beginEnrolment", provesItself, func(t *testing.T, w *providerWorld) request {
	c, role := w.member(t, newKey(), ""), aRole(t, w)
	w.assign(t, c.id, role, "")
	w.demand(t, `{"required":"roles","roles":[`+quoted(role)+`]}`)
	challenge := w.challenge(t, c.email, "second-factor-enrolment-required").text("/challenge")
	return request{as: w.anonymous(), line: "POST /auths/login/enrolment", body: `{"challenge":` + quoted(challenge) + `}`}
}, beginEnrolmentCells)

func getFactorsCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "one's own", "GET /auths/factors", "", p.ofOneself(done(200, "totp passkeys recoveryCodes demanded")))
}

var _ = specify("AuthsController_getFactors", changesNothing, withoutObject("GET /auths/factors", ""), getFactorsCells)

func beginTOTPCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "one's own", "POST /auths/totp", "", p.ofOneself(done(200, "secret uri")))
}

var _ = specify("AuthsController_beginTotp", grantsAccess, func(t *testing.T, w *providerWorld) request {
	return request{as: w.member(t, newKey(), ""), line: "POST /auths/totp"}
}, beginTOTPCells)

func confirmTOTPCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "a wrong code", "POST /auths/totp/confirm", `{"code":"000000"}`, p.ofOneself(expectation{status: 422, code: "validation"}))
	if p.isPerson() {
		app := p.do(t, "POST /auths/totp", "").expect(t, 200).text("/secret")
		p.compare(t, "a right code", "POST /auths/totp/confirm", `{"code":`+quoted(code(t, app, 0))+`}`, done(200, "recoveryCodes"))
		p.do(t, "DELETE /auths/totp", "").expect(t, 204)
	}
}

var _ = specify("AuthsController_confirmTotp", grantsAccess, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	app := c.do(t, "POST /auths/totp", "").expect(t, 200).text("/secret")
	return request{as: c, id: c.id, line: "POST /auths/totp/confirm", body: `{"code":` + quoted(code(t, app, 0)) + `}`, events: []string{"user.factor_added user {id} [totp]"}}
}, confirmTOTPCells)

func deleteTOTPCells(t *testing.T, _ *matrix, p *principal) {
	if p.isPerson() {
		p.enrol(t)
		p.compare(t, "one's own", "DELETE /auths/totp", "", done(204, ""))
	}
	p.compare(t, "none", "DELETE /auths/totp", "", p.ofOneself(notThere))
}

var _ = specify("AuthsController_deleteTotp", removesForGood, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	c.enrol(t)
	return request{as: c, id: c.id, line: "DELETE /auths/totp", events: []string{"user.factor_removed user {id} [totp]"}}
}, deleteTOTPCells)

func recoveryCodesCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "without a factor", "POST /auths/recovery-codes", "", p.ofOneself(expectation{status: 409, code: "no-second-factor"}))
	if p.isPerson() {
		p.enrol(t)
		p.compare(t, "with one", "POST /auths/recovery-codes", "", done(200, "recoveryCodes"))
		p.do(t, "DELETE /auths/totp", "").expect(t, 204)
	}
}

var _ = specify("AuthsController_makeRecoveryCodes", grantsAccess, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	c.enrol(t)
	return request{as: c, id: c.id, line: "POST /auths/recovery-codes", events: []string{"user.recovery_codes_made user {id} []"}}
}, recoveryCodesCells)

func passkeyOptionsCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "one's own", "POST /auths/passkeys/options", "", p.ofOneself(done(200, "publicKey")))
}

var _ = specify("AuthsController_getPasskeyOptions", grantsAccess, func(t *testing.T, w *providerWorld) request {
	return request{as: w.member(t, newKey(), ""), line: "POST /auths/passkeys/options"}
}, passkeyOptionsCells)

func createPasskeyCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "what is none", "POST /auths/passkeys", `{"name":"Phone","passkey":{}}`, p.ofOneself(expectation{status: 422, code: "validation"}))
	if p.isPerson() {
		options := p.do(t, "POST /auths/passkeys/options", "").expect(t, 200).json(t, "/publicKey")
		made := p.compare(t, "one's own", "POST /auths/passkeys", `{"name":"Phone","passkey":`+string(passkeytest.New(public).Create(t, options))+`}`, done(201, "id name createdAt lastUsedAt recoveryCodes"))
		p.do(t, "DELETE /auths/passkeys/"+made.text("/id"), "").expect(t, 204)
	}
}

var _ = specify("AuthsController_createPasskey", grantsAccess, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	options := c.do(t, "POST /auths/passkeys/options", "").expect(t, 200).json(t, "/publicKey")
	return request{as: c, id: c.id, line: "POST /auths/passkeys", body: `{"name":"Laptop","passkey":` + string(passkeytest.New(publicTLS).Create(t, options)) + `}`, events: []string{"user.factor_added user {id} [passkey]"}}
}, createPasskeyCells)

func updatePasskeyCells(t *testing.T, m *matrix, p *principal) {
	theirs := m.owner.addPasskey(t, passkeytest.New(public)).text("/id")
	p.compare(t, "another's", "PATCH /auths/passkeys/"+theirs, `{"name":"Mine"}`, p.ofOneself(notThere))
	if p.isPerson() {
		own := p.addPasskey(t, passkeytest.New(public)).text("/id")
		p.compare(t, "one's own", "PATCH /auths/passkeys/"+own, `{"name":"Mine"}`, done(200, "id name createdAt lastUsedAt"))
		p.do(t, "DELETE /auths/passkeys/"+own, "").expect(t, 204)
	}
	m.owner.do(t, "DELETE /auths/passkeys/"+theirs, "").expect(t, 204)
}

var _ = specify("AuthsController_updatePasskey", grantsAccess, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	return request{as: c, id: c.id, line: "PATCH /auths/passkeys/" + c.addPasskey(t, passkeytest.New(publicTLS)).text("/id"), body: `{"name":"Work laptop"}`, events: []string{"user.factor_renamed user {id} [passkey]"}}
}, updatePasskeyCells) // users recognise their credentials by the names

func deletePasskeyCells(t *testing.T, m *matrix, p *principal) {
	theirs := m.owner.addPasskey(t, passkeytest.New(public)).text("/id")
	p.compare(t, "another's", "DELETE /auths/passkeys/"+theirs, "", p.ofOneself(notThere))
	if p.isPerson() {
		own := p.addPasskey(t, passkeytest.New(public)).text("/id")
		p.compare(t, "one's own", "DELETE /auths/passkeys/"+own, "", done(204, ""))
	}
	m.owner.do(t, "DELETE /auths/passkeys/"+theirs, "").expect(t, 204)
}

var _ = specify("AuthsController_deletePasskey", removesForGood, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	return request{as: c, id: c.id, line: "DELETE /auths/passkeys/" + c.addPasskey(t, passkeytest.New(publicTLS)).text("/id"), events: []string{"user.factor_removed user {id} [passkey]"}}
}, deletePasskeyCells)

func passkeySignInOptionsCells(t *testing.T, _ *matrix, p *principal) {
	p.do(t, "POST /auths/passkeys/sign-in-options", "").expect(t, 200)
}

var _ = specify("AuthsController_getPasskeySignInOptions", changesNothing, func(_ *testing.T, w *providerWorld) request {
	return request{as: w.anonymous(), line: "POST /auths/passkeys/sign-in-options"}
}, passkeySignInOptionsCells)

func signInByPasskeyCells(t *testing.T, _ *matrix, p *principal) {
	p.do(t, "POST /auths/passkeys/sign-in", `{"passkey":{}}`).refused(t, 401, "passkey-refused")
	if !p.isPerson() {
		return
	}
	phone := passkeytest.New(public)
	made := p.addPasskey(t, phone).text("/id")
	options := p.anonymous().do(t, "POST /auths/passkeys/sign-in-options", "").expect(t, 200).json(t, "/publicKey")
	in := p.anonymous().do(t, "POST /auths/passkeys/sign-in", `{"passkey":`+string(phone.Get(t, options))+`}`).expect(t, http.StatusOK)
	if in.text("/user/id") != p.id {
		t.Errorf("signed in as %s", in.body)
	}
	p.do(t, "DELETE /auths/passkeys/"+made, "").expect(t, 204)
}

var _ = specify("AuthsController_signInByPasskey", provesItself, func(t *testing.T, w *providerWorld) request {
	c, phone := w.member(t, newKey(), ""), passkeytest.New(publicTLS)
	c.addPasskey(t, phone)
	options := w.anonymous().do(t, "POST /auths/passkeys/sign-in-options", "").expect(t, 200).json(t, "/publicKey")
	return request{as: w.anonymous(), id: c.id, line: "POST /auths/passkeys/sign-in", body: `{"passkey":` + string(phone.Get(t, options)) + `}`, events: []string{"session.started user {id} []"}}
}, signInByPasskeyCells)

func startOIDCCells(t *testing.T, m *matrix, p *principal) {
	body := `{"connectionId":` + quoted(never) + `,"returnTo":` + quoted(m.returnTo()) + `,"codeChallenge":"` + challengeOf(appVerifier) + `"}`
	p.do(t, "POST /auths/oidc/start", body).refused(t, 404, "not-found")
}

var _ = specify("AuthsController_startOidc", changesNothing, func(_ *testing.T, w *providerWorld) request {
	return request{as: w.anonymous(), line: "POST /auths/oidc/start", body: w.startBody(w.returnTo(), "")}
}, startOIDCCells)

func exchangeCodeCells(t *testing.T, _ *matrix, p *principal) {
	p.do(t, "POST /auths/codes/exchange", exchangeBody(strings.Repeat("A", 43), appVerifier, "")).refused(t, 401, "sign-in-code-invalid")
}

var _ = specify("AuthsController_exchangeCode", provesItself, func(t *testing.T, w *providerWorld) request {
	w.provisions(t)
	person(w.provider, newKey())
	return request{as: w.anonymous(), line: "POST /auths/codes/exchange", body: exchangeBody(w.code(t, w.anonymous(), appReturn, ""), appVerifier, byHeader), events: []string{"session.started user {id} []"}}
}, exchangeCodeCells)

func linkOIDCCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "a wrong code", "POST /auths/oidc/link", oidcCode, p.ofOneself(expectation{status: 422, code: "validation"}))
}

var _ = specify("AuthsController_linkOidc", grantsAccess, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	person(w.provider, newKey())
	return request{as: c, id: c.id, line: "POST /auths/oidc/link", body: `{"code":` + quoted(w.code(t, c, w.returnTo(), linkPurpose)) + `}`, events: []string{"user.identity_linked user {id} []"}}
}, linkOIDCCells)

// oidcCode is a body with an unknown code.
var oidcCode = `{"code":"` + strings.Repeat("A", 43) + `"}`

package e2e

import (
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
)

var (
	userPending   = expectation{status: 409, code: "user-pending"}
	userSuspended = expectation{status: 403, code: "user-suspended"}
)

func sendResetCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		line := "POST /users/" + s.id + "/password-resets"
		asked := []check{{p.mayAnywhere("users:invite"), mayNot}, {p.sees(s), notThere}, {p.may("users:invite", s.department), mayNot}}
		p.compare(t, s.name, line, "", first(done(201, "userId expiresAt"),
			append(asked[:len(asked):len(asked)], check{p.mayTakeOver(s), beyondOwn}, check{p.speaksFor(s), userPending})...))
		if s.exists && !p.speaksFor(s) {
			m.owner.do(t, "POST /users/"+s.id+"/suspend", "").expect(t, 200)
			p.compare(t, s.name+", suspended", line, "", first(userSuspended, asked...))
		}
	}
	m.fresh++
	c := m.member(t, fmt.Sprintf("forgetful-%d", m.fresh), "Sales")
	s := &subject{name: "a user with a password", id: c.id, department: "Sales", exists: true}
	p.compare(t, s.name+", with the link in the response", "POST /users/"+s.id+"/password-resets", `{"delivery":"return"}`, first(done(201, "userId expiresAt token link"),
		check{p.mayAnywhere("users:invite") && p.mayAnywhere("users:issue-links") && p.program && p.holder == nil, mayNot},
		check{p.sees(s), notThere}, check{p.may("users:invite", s.department), mayNot}, check{p.may("users:issue-links", s.department), mayNot}))
	a := p.compare(t, s.name, "POST /users/"+s.id+"/password-resets", "", first(done(201, "userId expiresAt"),
		check{p.mayAnywhere("users:invite"), mayNot}, check{p.sees(s), notThere}, check{p.may("users:invite", s.department), mayNot}))
	if a.status == 201 {
		m.anonymous().do(t, resetByLink, acceptance(m.resetToken(t, c.email), newPassword)).expect(t, 204)
	}
}

var _ = specify("UsersController_sendPasswordReset", changesNothing, withObject(aMember, "POST /users/{id}/password-resets", "", "user.password_reset_requested user {id} []"), sendResetCells) // anonymous callers can cause the same mail

func requestEmailCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		m.fresh++
		line, email := "POST /users/"+s.id+"/email-changes", address(fmt.Sprintf("asked-%d", m.fresh))
		asked := []check{{p.is(s) || p.mayAnywhere("users.email:update"), mayNot}, {p.sees(s), notThere}, {p.is(s) || p.may("users.email:update", s.department), mayNot}}
		a := p.compare(t, s.name, line, emailBody(email), first(done(202, "userId expiresAt"),
			append(asked[:len(asked):len(asked)], check{p.is(s) || !p.speaksFor(s), needsSession}, check{p.is(s) || p.mayTakeOver(s), beyondOwn})...))
		if a.status == 202 {
			m.mailTo(t, email, rolecall.MailEmailChange)
		}
		if s.exists && !p.speaksFor(s) {
			m.owner.do(t, "POST /users/"+s.id+"/suspend", "").expect(t, 200)
			p.compare(t, s.name+", suspended", line, emailBody(email), first(userSuspended, asked...))
		}
	}
}

var _ = specify("UsersController_requestEmailChange", grantsAccess, func(t *testing.T, w *providerWorld) request {
	return request{line: "POST /users/{id}/email-changes", id: aMember(t, w), body: emailBody(address(newKey())), events: []string{"user.email_change_requested user {id} []"}}
}, requestEmailCells)

// requestResetCells expects the same response for every principal: the operation ignores the
// session.
func requestResetCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	c := m.member(t, fmt.Sprintf("forgets-%d", m.fresh), "")
	p.do(t, resetRequest, emailBody(c.email)).expect(t, 202)
	m.resetToken(t, c.email)
}

var _ = specify("AuthsController_requestPasswordReset", changesNothing, func(t *testing.T, w *providerWorld) request {
	return request{as: w.anonymous(), line: resetRequest, body: emailBody(w.member(t, newKey(), "").email)}
}, requestResetCells)

func resetPasswordCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	c := m.member(t, fmt.Sprintf("resets-%d", m.fresh), "")
	m.owner.do(t, "POST /users/"+c.id+"/password-resets", "").expect(t, 201)
	token := m.resetToken(t, c.email)
	p.do(t, resetByLink, acceptance(never, newPassword)).refused(t, 401, "password-reset-invalid")
	p.in(m.foreign.name).do(t, resetByLink, acceptance(token, newPassword)).refused(t, 401, "password-reset-invalid")
	p.do(t, resetByLink, acceptance(token, newPassword)).expect(t, 204)
	c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
}

var _ = specify("AuthsController_resetPassword", provesItself, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	return request{as: w.anonymous(), line: resetByLink, id: c.id, body: acceptance(w.resetLink(t, c.email), newPassword), events: []string{"user.password_reset user {id} []", "session.ended user {id} []"}}
}, resetPasswordCells)

func changeEmailCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	c := m.member(t, fmt.Sprintf("renamed-%d", m.fresh), "")
	token := m.emailLink(t, c, c.id, address(fmt.Sprintf("renamed-too-%d", m.fresh)))
	p.do(t, changeByLink, linkBody(never)).refused(t, 401, "email-change-invalid")
	p.in(m.foreign.name).do(t, changeByLink, linkBody(token)).refused(t, 401, "email-change-invalid")
	p.do(t, changeByLink, linkBody(token)).expect(t, 204)
	c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	m.signIn(t, address(fmt.Sprintf("renamed-too-%d", m.fresh)))
}

var _ = specify("AuthsController_changeEmail", provesItself, func(t *testing.T, w *providerWorld) request {
	c := w.member(t, newKey(), "")
	return request{as: w.anonymous(), line: changeByLink, id: c.id, body: linkBody(w.emailLink(t, c, c.id, address(newKey()))), events: []string{"user.updated user {id} [email]", "session.ended user {id} []"}}
}, changeEmailCells)

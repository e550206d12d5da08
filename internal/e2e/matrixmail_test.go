package e2e

import (
	"fmt"
	"testing"
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
			append(asked[:len(asked):len(asked)], check{p.mayTakeOver(s), beyondOwn}, check{p.is(s), userPending})...))
		if s.exists && !p.is(s) {
			m.owner.do(t, "POST /users/"+s.id+"/suspend", "").expect(t, 200)
			p.compare(t, s.name+", suspended", line, "", first(userSuspended, asked...))
		}
	}
	m.fresh++
	c := m.member(t, fmt.Sprintf("forgetful-%d", m.fresh), "Sales")
	s := &subject{name: "a user with a password", id: c.id, department: "Sales", exists: true}
	p.compare(t, s.name, "POST /users/"+s.id+"/password-resets", "", first(done(201, "userId expiresAt"),
		check{p.mayAnywhere("users:invite"), mayNot}, check{p.sees(s), notThere}, check{p.may("users:invite", s.department), mayNot}))
}

func requestEmailCells(t *testing.T, m *matrix, p *principal) {
	for _, s := range m.subjects(t, p) {
		m.fresh++
		line, email := "POST /users/"+s.id+"/email-changes", address(fmt.Sprintf("asked-%d", m.fresh))
		asked := []check{{p.is(s) || p.mayAnywhere("users.email:update"), mayNot}, {p.sees(s), notThere}, {p.is(s) || p.may("users.email:update", s.department), mayNot}}
		p.compare(t, s.name, line, emailBody(email), first(done(202, "userId expiresAt"),
			append(asked[:len(asked):len(asked)], check{p.is(s) || p.mayTakeOver(s), beyondOwn})...))
		if s.exists && !p.is(s) {
			m.owner.do(t, "POST /users/"+s.id+"/suspend", "").expect(t, 200)
			p.compare(t, s.name+", suspended", line, emailBody(email), first(userSuspended, asked...))
		}
	}
}

// requestResetCells asks as everybody: who is signed in makes no difference.
func requestResetCells(t *testing.T, m *matrix, p *principal) {
	m.fresh++
	c := m.member(t, fmt.Sprintf("forgets-%d", m.fresh), "")
	p.do(t, askForReset, emailBody(c.email)).expect(t, 202)
}

func resetPasswordCells(t *testing.T, _ *matrix, p *principal) {
	p.do(t, resetByLink, acceptance(never, newPassword)).refused(t, 401, "password-reset-invalid")
}

func changeEmailCells(t *testing.T, _ *matrix, p *principal) {
	p.do(t, changeByLink, linkBody(never)).refused(t, 401, "email-change-invalid")
}

const (
	askForReset  = "POST /auths/password-resets"
	resetByLink  = "POST /auths/password-resets/complete"
	changeByLink = "POST /auths/email-changes/complete"
)

// emailBody is the body that names an address.
func emailBody(email string) string { return `{"email":` + quoted(email) + `}` }

func linkBody(token string) string { return `{"token":` + quoted(token) + `}` }

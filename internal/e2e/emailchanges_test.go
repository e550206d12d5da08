package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
)

const changeByLink = "POST /auths/email-changes/complete"

func linkBody(token string) string { return `{"token":` + quoted(token) + `}` }

// emailLink requests a change of a user's email address. It returns the token of the
// confirmation link, which is mailed to the new address.
func (w *world) emailLink(t testing.TB, by *caller, user, email string) string {
	t.Helper()
	by.do(t, "POST /users/"+user+"/email-changes", emailBody(email)).expect(t, 202)
	m := w.mailTo(t, email, rolecall.MailEmailChange)
	return m.Token()
}

func testEmailChanges(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("flow", func(t *testing.T) { testEmailFlow(t, w) })
	t.Run("rules", func(t *testing.T) { testEmailRules(t, w) })
	t.Run("enumeration", func(t *testing.T) { testEmailEnumeration(t, w) })
	t.Run("replay", func(t *testing.T) { testEmailReplay(t, newWorld(t, p)) })
	t.Run("once", func(t *testing.T) { testOneEmailChange(t, w) })
	t.Run("ended sessions", func(t *testing.T) { testEmailOfAnEndedSession(t, w) })
	t.Run("others", func(t *testing.T) { testEmailsOfOthers(t, newWorld(t, p)) })
}

func testEmailFlow(t *testing.T, w *world) {
	c := w.member(t, "moves", "")
	other, elsewhere := w.signIn(t, c.email), address("moved")
	reset := w.resetLink(t, c.email)
	a := c.do(t, "POST /users/"+c.id+"/email-changes", emailBody(elsewhere)).expect(t, 202)
	s := scenario{status: 202, members: "userId expiresAt", has: map[string]any{"/userId": c.id}, headers: map[string]string{"Set-Cookie": ""}}
	s.check(t, a)
	m := w.mailTo(t, elsewhere, rolecall.MailEmailChange)
	link, token := m.Link(), m.Token()
	if len(token) != 43 || link.Path != "/console/"+w.name+"/email-change" || link.Host != "id.example.com" || strings.Contains(m.Text+m.HTML, "User moves") {
		t.Errorf("the mail is %s", m.Raw)
	}
	w.signIn(t, c.email)
	if told := w.mailTo(t, c.email, rolecall.MailEmailChangeRequested); strings.Contains(string(told.Raw), elsewhere) ||
		!strings.Contains(told.Text, "If you made this request") || !strings.Contains(told.Text, "m***@"+canary+".example") {
		t.Errorf("the old address is told %s", told.Raw)
	}

	done := c.do(t, changeByLink, linkBody(token)).expect(t, 204)
	if len(done.body) > 0 || done.header["Set-Cookie"] != nil {
		t.Errorf("a change answers %q and sets %q", done.body, done.header["Set-Cookie"])
	}
	if got := c.do(t, "GET /auths/session", "").expect(t, 200).text("/user/email"); got != elsewhere {
		t.Errorf("the address is %q", got)
	}
	other.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	w.anonymous().do(t, "POST /auths/login", credentials(c.email, password)).refused(t, 401, "wrong-credentials")
	w.signIn(t, elsewhere)
	w.anonymous().do(t, changeByLink, linkBody(token)).refused(t, 401, "email-change-invalid")
	w.anonymous().do(t, resetByLink, acceptance(reset, newPassword)).refused(t, 401, "password-reset-invalid")
	if notice := w.mailTo(t, c.email, rolecall.MailEmailChanged); strings.Contains(string(notice.Raw), elsewhere) {
		t.Error("the notice tells the new address")
	}
	events := w.owner.do(t, "GET /users/"+c.id+"/events?type=user.updated", "").expect(t, 200)
	s = scenario{status: 200, has: map[string]any{"/items/0/actor/id": c.id, "/items/0/members/0": "email", "/items/0/before/email": c.email, "/items/0/after/email": elsewhere, "/items/1": nil}, lacks: []string{token}}
	s.check(t, events)
}

// testEmailOfAnEndedSession requests an email change in a stolen session. After the session
// was revoked, the confirmation link is invalid. While the session is valid, the link works.
func testEmailOfAnEndedSession(t *testing.T, w *world) {
	c := w.member(t, "robbed", "")
	confirm := func(token string) *answer { return w.anonymous().do(t, changeByLink, linkBody(token)) }
	thief := w.signIn(t, c.email)
	link := w.emailLink(t, thief, c.id, address("thief"))
	c.do(t, "DELETE /users/"+c.id+"/sessions/"+thief.do(t, "GET /auths/session", "").text("/session/id"), "").expect(t, 204)
	confirm(link).refused(t, 401, "email-change-invalid")

	thief = w.signIn(t, c.email)
	link = w.emailLink(t, thief, c.id, address("thief-2"))
	confirm(link).expect(t, 204) // while the session is valid
}

func testEmailRules(t *testing.T, w *world) {
	c := w.member(t, "ruled-mover", "")
	send := "POST /users/" + c.id + "/email-changes"
	wrong := func(name, email, fault string) scenario {
		return scenario{name: name, as: c, send: send, body: emailBody(email), status: 422, code: "validation", faults: []string{"/email " + fault}}
	}
	out := w.anonymous()
	play(t, []scenario{
		{name: "without a session", as: out, send: send, body: emailBody(address("x")), status: 401, code: "unauthenticated"},
		{name: "without a key", as: c, send: send, body: emailBody(address("x")), header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required"}},
		{name: "nothing", as: c, send: send, status: 400, code: "malformed-request"},
		{name: "no members", as: c, send: send, body: `{}`, status: 422, faults: []string{"/email required"}},
		{name: "other members", as: c, send: send, body: `{"email":"a@b.example","userId":"` + w.owner.id + `"}`, status: 422, faults: []string{"/userId unknown"}},
		wrong("no address", "moved", "email"), wrong("a second header", address("x")+"\r\nBcc: eve@evil.example", "control-character"), wrong("a name", "Eve <eve@evil.example>", "email"), wrong("two addresses", "eve@evil.example,eva@evil.example", "email"),
		{name: "still not by PATCH", as: w.owner, send: "PATCH /users/" + c.id, body: emailBody(address("x")), status: 422},
		{name: "a token of nobody", as: out, send: changeByLink, body: linkBody(strings.Repeat("A", 43)), status: 401, code: "email-change-invalid"},
		{name: "what is no token", as: out, send: changeByLink, body: linkBody("token"), status: 401, code: "email-change-invalid"},
		{name: "no token", as: out, send: changeByLink, body: `{}`, status: 422, faults: []string{"/token required"}},
		{name: "from another site", as: out, send: changeByLink, body: linkBody("token"), header: []string{"origin: https://evil.example"}, status: 403, code: "cross-origin"},
	})
	for i := range 10 {
		c.do(t, send, emailBody(address(fmt.Sprintf("often-%d", i)))).expect(t, 202)
	}
	c.do(t, send, emailBody(address("often"))).refused(t, 429, "too-many-attempts")
}

// testEmailEnumeration requests a change to an unused address and to another user's address.
// The responses must not reveal which address is in use.
func testEmailEnumeration(t *testing.T, w *world) {
	c := w.member(t, "curious", "")
	w.user(t, "taken-already", "")
	send := "POST /users/" + c.id + "/email-changes"
	free := c.do(t, send, emailBody(address("still-free"))).expect(t, 202)
	first := w.mailTo(t, address("still-free"), rolecall.MailEmailChange)
	taken := c.do(t, send, emailBody(strings.ToUpper(address("taken-already")))).expect(t, 202)
	if fmt.Sprint(free.members(""), free.header["Content-Length"]) != fmt.Sprint(taken.members(""), taken.header["Content-Length"]) {
		t.Errorf("a free address is answered %s, one that is taken %s", free.body, taken.body)
	}
	shown := func(a *answer) string { return fmt.Sprint(a.texts("type")) }
	events := shown(c.do(t, "GET /users/"+c.id+"/events?type=user.email_change_requested", "").expect(t, 200))
	if events != "[user.email_change_requested user.email_change_requested]" {
		t.Errorf("the events are %s", events)
	}
	w.anonymous().do(t, changeByLink, linkBody(first.Token())).refused(t, 401, "email-change-invalid") // a newer link replaced it
	last := w.emailLink(t, c, c.id, address("last-one"))
	for _, m := range w.program.mail.Messages() {
		if strings.EqualFold(m.To, address("taken-already")) && w.isMail(&m, rolecall.MailEmailChange) {
			t.Errorf("the holder was mailed %s", m.Subject)
		}
	}
	w.anonymous().do(t, changeByLink, linkBody(last)).expect(t, 204)
}

func testEmailReplay(t *testing.T, w *world) {
	c := w.member(t, "replaced", "")
	confirm := func(as *caller, token string) *answer { return as.do(t, changeByLink, linkBody(token)) }
	older := w.emailLink(t, c, c.id, address("older"))
	newer := w.emailLink(t, c, c.id, address("newer"))
	confirm(w.anonymous(), older).refused(t, 401, "email-change-invalid")
	confirm(newWorld(t, w.program).anonymous(), newer).refused(t, 401, "email-change-invalid")
	confirm(w.anonymous().in("no-such-tenant"), newer).refused(t, 401, "email-change-invalid")
	w.anonymous().do(t, resetByLink, acceptance(newer, newPassword)).refused(t, 401, "password-reset-invalid")
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(newer, newPassword)).refused(t, 401, "invitation-invalid")

	holder := w.user(t, "newer", "")
	confirm(w.anonymous(), newer).refused(t, 409, "email-taken")
	c.do(t, "GET /auths/session", "").expect(t, 200)
	w.owner.do(t, "DELETE /users/"+holder, "").expect(t, 204)
	confirm(w.anonymous(), newer).expect(t, 204)

	again := w.signIn(t, address("newer"))
	void := w.emailLink(t, again, c.id, address("void"))
	again.do(t, "PUT /auths/password", passwords(password, newPassword)).expect(t, 204)
	confirm(w.anonymous(), void).refused(t, 401, "email-change-invalid")
	void = w.emailLink(t, again, c.id, address("void-too"))
	w.owner.do(t, "DELETE /users/"+c.id+"/sessions", "").expect(t, 204)
	confirm(w.anonymous(), void).refused(t, 401, "email-change-invalid")
}

func testOneEmailChange(t *testing.T, w *world) {
	c := w.member(t, "confirms-once", "")
	token := w.emailLink(t, c, c.id, address("confirmed-once"))
	var mu sync.Mutex
	won := 0
	var running sync.WaitGroup
	for range 12 {
		running.Go(func() {
			a, err := w.anonymous().try(t, changeByLink, linkBody(token))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if a.status == http.StatusNoContent {
				won++
			} else if a.text("/code") != "email-change-invalid" {
				t.Errorf("the others are answered %d %s", a.status, a.body)
			}
		})
	}
	running.Wait()
	if won != 1 {
		t.Errorf("one change was confirmed %d times", won)
	}
}

func testEmailsOfOthers(t *testing.T, w *world) {
	c := w.member(t, "corrected", "Sales")
	clerk := w.holder(t, "mail-clerk", "", "Sales", "users:read", "users.email:update")
	w.anonymous().do(t, changeByLink, linkBody(w.emailLink(t, clerk, c.id, address("corrected-2")))).expect(t, 204)
	w.mailTo(t, c.email, rolecall.MailEmailChanged)

	send := "POST /users/" + c.id + "/email-changes"
	// After the clerk's request, the user gets a permission that the clerk does not have. So
	// the link is no longer valid.
	token := w.emailLink(t, clerk, c.id, address("corrected-3"))
	w.assign(t, c.id, w.role(t, "Buys by mail", "shop/a:b"), "")
	w.anonymous().do(t, changeByLink, linkBody(token)).refused(t, 401, "email-change-invalid")
	// After the clerk's request, the clerk is deleted. So the link is no longer valid.
	other, leaving := w.member(t, "left-alone", "Sales"), w.holder(t, "leaving-clerk", "", "Sales", "users:read", "users.email:update")
	token = w.emailLink(t, leaving, other.id, address("left-alone-2"))
	w.owner.do(t, "DELETE /users/"+leaving.id, "").expect(t, 204)
	w.anonymous().do(t, changeByLink, linkBody(token)).refused(t, 401, "email-change-invalid")
	play(t, []scenario{
		{name: "who holds more", as: clerk, send: send, body: emailBody(address("taken-over")), status: 403, code: "beyond-own-permissions"},
		{name: "an owner", as: clerk, send: "POST /users/" + w.owner.id + "/email-changes", body: emailBody(address("taken-over")), status: 404, code: "not-found"},
		{name: "without the permission", as: w.member(t, "no-clerk", ""), send: send, body: emailBody(address("taken-over")), status: 403, code: "permission-denied"},
		{name: "nobody", as: w.owner, send: "POST /users/" + never + "/email-changes", body: emailBody(address("nobody-s")), status: 404, code: "not-found"},
	})
}

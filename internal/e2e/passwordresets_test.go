package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
)

const (
	resetRequest = "POST /auths/password-resets"
	resetByLink  = "POST /auths/password-resets/complete"
)

// emailBody returns a request body that contains only an email address.
func emailBody(email string) string { return `{"email":` + quoted(email) + `}` }

// resetLink requests a password reset for the address. It returns the token in the mailed
// link.
func (w *world) resetLink(t testing.TB, email string) string {
	t.Helper()
	w.anonymous().do(t, resetRequest, emailBody(email)).expect(t, 202)
	return w.resetToken(t, email)
}

func (w *world) resetToken(t testing.TB, email string) string {
	t.Helper()
	m := w.mailTo(t, email, rolecall.MailPasswordReset)
	return m.Token()
}

func testPasswordResets(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("flow", func(t *testing.T) { testResetFlow(t, w) })
	t.Run("rules", func(t *testing.T) { testResetRules(t, w) })
	t.Run("enumeration", func(t *testing.T) { testResetEnumeration(t, newWorld(t, p)) })
	t.Run("replay", func(t *testing.T) { testResetReplay(t, newWorld(t, p)) })
	t.Run("once", func(t *testing.T) { testOneReset(t, w) })
	t.Run("limits", func(t *testing.T) { testResetLimits(t, newWorld(t, p)) })
	t.Run("siege", func(t *testing.T) { testResetUnderSiege(t, newWorld(t, p)) })
	t.Run("sent by administrators", func(t *testing.T) { testSentResets(t, newWorld(t, p)) })
}

func testResetFlow(t *testing.T, w *world) {
	c := w.member(t, "forgets", "")
	other := w.signIn(t, c.email)
	w.assign(t, c.id, w.role(t, "Forgets", "users:read"), "")
	program := c.makeToken(t, "", "users:read")
	a := w.anonymous().do(t, resetRequest, emailBody(strings.ToUpper(c.email))).expect(t, 202)
	if a.members("")[0] != "detail" || a.header["Set-Cookie"] != nil {
		t.Errorf("the answer is %s with %q", a.body, a.header["Set-Cookie"])
	}
	m := w.mailTo(t, c.email, rolecall.MailPasswordReset)
	link, token := m.Link(), m.Token()
	if len(token) != 43 || link.Path != "/console/"+w.name+"/password-reset" || link.Host != "id.example.com" {
		t.Errorf("the link is %s", link)
	}
	for _, still := range []*caller{c, other, program} {
		still.do(t, "GET /auths/session", "").expect(t, 200)
	}

	done := c.do(t, resetByLink, acceptance(token, newPassword)).expect(t, 204)
	if set := done.header["Set-Cookie"]; len(done.body) > 0 || set != nil {
		t.Errorf("a new password answers %q and sets %q", done.body, set)
	}
	for _, old := range []*caller{c, other} {
		old.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
		old.do(t, "POST /auths/refresh", "").refused(t, 401, "unauthenticated")
	}
	program.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	w.anonymous().do(t, "POST /auths/login", credentials(c.email, password)).refused(t, 401, "wrong-credentials")
	w.anonymous().do(t, "POST /auths/login", credentials(c.email, newPassword)).expect(t, 200)
	w.anonymous().do(t, resetByLink, acceptance(token, password)).refused(t, 401, "password-reset-invalid")
	for _, want := range []string{"an API token was created.", "the password was changed, and all API tokens were revoked."} {
		if notice := w.mailTo(t, c.email, rolecall.MailCredentialsChanged); strings.Contains(string(notice.Raw), token) || !strings.Contains(notice.Text, want) {
			t.Errorf("the notice of %q is %s", want, notice.Raw)
		}
	}
	events := w.owner.do(t, "GET /users/"+c.id+"/events?type=user.password_reset", "").expect(t, 200)
	s := scenario{status: 200, has: map[string]any{"/items/0/actor/id": c.id, "/items/0/requestId": done.header.Get("X-Request-Id"), "/items/1": nil}, lacks: []string{token, "battery"}}
	s.check(t, events)
}

func testResetRules(t *testing.T, w *world) {
	c := w.member(t, "ruled.by.resets", "")
	token := w.resetLink(t, c.email)
	out := w.anonymous()
	too := func(name, password, fault string) scenario {
		return scenario{name: name, as: out, send: resetByLink, body: acceptance(token, password), status: 422, code: "validation", faults: []string{"/password " + fault}}
	}
	play(t, []scenario{
		{name: "nothing", as: out, send: resetRequest, status: 400, code: "malformed-request"},
		{name: "no members", as: out, send: resetRequest, body: `{}`, status: 422, faults: []string{"/email required"}},
		{name: "other types", as: out, send: resetRequest, body: `{"email":["a@b.example"],"password":"x"}`, status: 422, faults: []string{"/email type", "/password unknown"}},
		{name: "no address", as: out, send: resetRequest, body: emailBody("ada"), status: 422, faults: []string{"/email email"}},
		{name: "a second header in the address", as: out, send: resetRequest, body: emailBody(c.email + "\r\nBcc: eve@evil.example"), status: 422, faults: []string{"/email control-character"}},
		{name: "two addresses", as: out, send: resetRequest, body: emailBody(c.email + ",eve@evil.example"), status: 422, faults: []string{"/email email"}},
		{name: "an address twice", as: out, send: resetRequest, body: `{"email":"a@b.example","email":` + quoted(c.email) + `}`, status: 400, code: "malformed-request"},
		{name: "as a form", as: out, send: resetRequest, body: emailBody(c.email), header: []string{"content-type: text/plain"}, status: 415},
		{name: "from another site", as: out, send: resetRequest, body: emailBody(c.email), header: []string{"sec-fetch-site: cross-site"}, status: 403, code: "cross-origin"},
		{name: "no members of a completion", as: out, send: resetByLink, body: `{}`, status: 422, faults: []string{"/password required", "/token required"}},
		{name: "a token of nobody", as: out, send: resetByLink, body: acceptance(strings.Repeat("A", 43), newPassword), status: 401, code: "password-reset-invalid"},
		{name: "what is no token", as: out, send: resetByLink, body: acceptance("token", newPassword), status: 401, code: "password-reset-invalid"},
		{name: "a password for nobody is not judged", as: out, send: resetByLink, body: acceptance(strings.Repeat("A", 43), "short"), status: 401, code: "password-reset-invalid"},
		{name: "a session for a token", as: out, send: resetByLink, body: acceptance(w.owner.token, newPassword), status: 401, code: "password-reset-invalid"},
		{name: "a token for a session", as: out.with(token), send: "GET /auths/session", status: 401, code: "unauthenticated"},
		{name: "for an invitation", as: out, send: "POST /auths/invitations/accept", body: acceptance(token, newPassword), status: 401, code: "invitation-invalid"},
		{name: "for a change of address", as: out, send: changeByLink, body: linkBody(token), status: 401, code: "email-change-invalid"},
		too("short", "fourteen chars", "length"), too("common", "password1234567", "common"), too("the address", c.email, "personal"),
	})
	c.do(t, "GET /auths/session", "").expect(t, 200)
	out.do(t, resetByLink, acceptance(token, newPassword)).expect(t, 204)
}

// testResetEnumeration requests resets for known and unknown addresses, and for suspended
// users and tenants. The responses must be the same, and only the active user gets a mail.
func testResetEnumeration(t *testing.T, w *world) {
	w.member(t, "active", "")
	w.user(t, "pending", "")
	w.owner.do(t, "POST /users/"+w.member(t, "suspended", "").id+"/suspend", "").expect(t, 200)
	suspended := newWorld(t, w.program)
	suspended.member(t, "active", "")
	w.program.run(t, "", "tenant", "suspend", suspended.name)
	awaitStatus(t, suspended.owner, "GET /auths/session", 403)
	var wanted *answer
	for _, c := range []struct{ what, tenant, email string }{
		{"an active user", w.name, address("active")},
		{"an unknown address", w.name, address("ghost")},
		{"a pending user", w.name, address("pending")},
		{"a suspended user", w.name, address("suspended")},
		{"a suspended tenant", suspended.name, address("active")},
		{"an unknown tenant", "no-such-tenant", address("active")},
	} {
		a := w.anonymous().in(c.tenant).do(t, resetRequest, emailBody(c.email)).expect(t, 202)
		if wanted == nil {
			wanted = a
		}
		names := func(a *answer) []string { return slices.Sorted(maps.Keys(a.header)) }
		if string(a.body) != string(wanted.body) || !slices.Equal(names(a), names(wanted)) || a.header.Get("Content-Length") != wanted.header.Get("Content-Length") {
			t.Errorf("%s is answered %s with %q, and an active user %s with %q", c.what, a.body, a.header, wanted.body, wanted.header)
		}
	}
	w.resetToken(t, address("active"))
	w.resetLink(t, address("owner")) // all earlier mail has been sent when this arrives
	for _, m := range w.program.mail.Messages() {
		if link := m.Link(); link != nil && strings.HasSuffix(link.Path, "/password-reset") &&
			(strings.Contains(link.Path, "/"+suspended.name+"/") || strings.Contains(link.Path, "/"+w.name+"/") && m.To != address("active") && m.To != address("owner")) {
			t.Errorf("%s was mailed %s", m.To, link.Path)
		}
	}
}

// testResetReplay uses links that were replaced, and links in another tenant, for a suspended
// user and for a deleted user.
func testResetReplay(t *testing.T, w *world) {
	c := w.member(t, "replayed", "")
	older := w.resetLink(t, c.email)
	newer := w.resetLink(t, c.email)
	reset := func(as *caller, token string) *answer { return as.do(t, resetByLink, acceptance(token, newPassword)) }
	reset(w.anonymous(), older).refused(t, 401, "password-reset-invalid")
	foreign := newWorld(t, w.program)
	reset(foreign.anonymous(), newer).refused(t, 401, "password-reset-invalid")
	reset(w.anonymous().in("no-such-tenant"), newer).refused(t, 401, "password-reset-invalid")

	w.owner.do(t, "POST /users/"+c.id+"/suspend", "").expect(t, 200)
	reset(w.anonymous(), newer).refused(t, 403, "user-suspended")
	w.owner.do(t, "POST /users/"+c.id+"/resume", "").expect(t, 200)
	invitation := w.invite(t, w.owner, c.id)
	reset(w.anonymous(), newer).expect(t, 204)
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(invitation, password)).refused(t, 401, "invitation-invalid")

	gone := w.member(t, "reset-gone", "")
	token := w.resetLink(t, gone.email)
	w.owner.do(t, "DELETE /users/"+gone.id, "").expect(t, 204)
	w.member(t, "reset-gone", "")
	reset(w.anonymous(), token).refused(t, 401, "password-reset-invalid")
	w.signIn(t, gone.email)
}

// testOneReset uses one link with many requests at once. Only one request may succeed.
func testOneReset(t *testing.T, w *world) {
	c := w.member(t, "reset-once", "")
	token := w.resetLink(t, c.email)
	chosen := func(i int) string { return fmt.Sprintf("%s %d", newPassword, i) }
	var mu sync.Mutex
	won := []int{}
	var running sync.WaitGroup
	for i := range 12 {
		running.Go(func() {
			a, err := w.anonymous().try(t, resetByLink, acceptance(token, chosen(i)))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if a.status == http.StatusNoContent {
				won = append(won, i)
			} else if a.text("/code") != "password-reset-invalid" {
				t.Errorf("the others are answered %d %s", a.status, a.body)
			}
		})
	}
	running.Wait()
	if len(won) != 1 {
		t.Fatalf("one link was used %d times", len(won))
	}
	w.anonymous().do(t, "POST /auths/login", credentials(c.email, chosen(won[0]))).expect(t, 200)
}

func testResetLimits(t *testing.T, w *world) {
	c := w.member(t, "often", "")
	var links []string
	for range 3 {
		links = append(links, w.resetLink(t, c.email))
	}
	for range 3 { // these requests send no mail
		w.anonymous().do(t, resetRequest, emailBody(c.email)).expect(t, 202)
	}
	for i := range 24 {
		w.anonymous().do(t, resetRequest, emailBody(address(fmt.Sprintf("ghost-%d", i)))).expect(t, 202)
	}
	for _, email := range []string{c.email, address("owner"), address("ghost")} {
		a := w.anonymous().do(t, resetRequest, emailBody(email)).refused(t, 429, "too-many-attempts")
		if a.header.Get("Retry-After") == "" {
			t.Error("nobody says when to ask again")
		}
	}
	for _, replaced := range links[:2] {
		w.anonymous().do(t, resetByLink, acceptance(replaced, newPassword)).refused(t, 401, "password-reset-invalid")
	}
	w.anonymous().do(t, resetByLink, acceptance(links[2], newPassword)).expect(t, 204)
	w.mailTo(t, c.email, rolecall.MailCredentialsChanged)
	mailed := 0
	for _, m := range w.program.mail.Messages() {
		if m.To == c.email && w.isMail(&m, rolecall.MailPasswordReset) {
			mailed++
		}
	}
	if mailed != 3 {
		t.Errorf("%d were mailed in an hour", mailed)
	}
}

// testResetUnderSiege sends wrong passwords until even the correct one is refused. A reset
// link and a sign-in with the new password must still work. The reset must not set a cookie,
// so the browser does not become a known device.
func testResetUnderSiege(t *testing.T, w *world) {
	c := w.member(t, "besieged", "")
	for range 10 {
		w.anonymous().do(t, "POST /auths/login", credentials(c.email, "wrong")).refused(t, 401, "wrong-credentials")
	}
	w.anonymous().do(t, "POST /auths/login", credentials(c.email, password)).refused(t, 429, "too-many-attempts")
	done := w.anonymous().do(t, resetByLink, acceptance(w.resetLink(t, c.email), newPassword)).expect(t, 204)
	if cookies := done.header["Set-Cookie"]; cookies != nil {
		t.Errorf("a reset sets %q", cookies)
	}
	w.anonymous().do(t, "POST /auths/login", credentials(c.email, newPassword)).expect(t, 200)
}

func testSentResets(t *testing.T, w *world) {
	c, pending := w.member(t, "helped", "Sales"), w.user(t, "helped-pending", "")
	send := "POST /users/" + c.id + "/password-resets"
	a := w.owner.do(t, send, "", "idempotency-key: helped").expect(t, 201)
	s := scenario{status: 201, members: "userId expiresAt", has: map[string]any{"/userId": c.id}, headers: map[string]string{"Idempotent-Replayed": ""}}
	s.check(t, a)
	token := w.resetToken(t, c.email)
	play(t, []scenario{
		{name: "a repeat", as: w.owner, send: send, header: []string{"idempotency-key: helped"}, status: 201, has: map[string]any{"/expiresAt": a.text("/expiresAt")}, headers: map[string]string{"Idempotent-Replayed": "true"}, lacks: []string{token}},
		{name: "it takes a key", as: w.owner, send: send, header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required"}},
		{name: "a pending user", as: w.owner, send: "POST /users/" + pending + "/password-resets", status: 409, code: "user-pending"},
		{name: "a user who never was", as: w.owner, send: "POST /users/" + never + "/password-resets", status: 404, code: "not-found"},
		{name: "no answer shows it", as: w.owner, send: "GET /users/" + c.id + "/events", status: 200, has: map[string]any{"/items/0/type": "user.password_reset_requested", "/items/0/actor/id": w.owner.id}, lacks: []string{token}},
	})
	w.anonymous().do(t, resetByLink, acceptance(token, newPassword)).expect(t, 204)

	inviter := w.holder(t, "reset-inviter", "", "Sales", "users:read", "users:invite")
	w.assign(t, c.id, w.role(t, "Buys and resets", "shop/a:b"), "")
	inviter.do(t, send, "").refused(t, 403, "beyond-own-permissions")
	inviter.do(t, "POST /users/"+w.owner.id+"/password-resets", "").refused(t, 404, "not-found")
}

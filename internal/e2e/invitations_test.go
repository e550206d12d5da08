package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

// acceptance returns the body that accepts an invitation.
func acceptance(token, password string) string {
	return fmt.Sprintf(`{"token":%s,"password":%s}`, quoted(token), quoted(password))
}

// invite sends an invitation to the user. It returns the token in the mailed link.
func (w *world) invite(t testing.TB, by *caller, user string) string {
	t.Helper()
	by.do(t, "POST /users/"+user+"/invitations", "").expect(t, 201)
	return w.invited(t, user)
}

// invited waits for the invitation mail of the user. It returns the token in the mailed link.
func (w *world) invited(t testing.TB, user string) string {
	t.Helper()
	email := w.owner.do(t, "GET /users/"+user, "").expect(t, 200).text("/email")
	m := w.mailTo(t, email, rolecall.MailInvitation)
	return m.Token()
}

// guest creates a user who has accepted an invitation. It returns a caller with the user's
// session.
func (w *world) guest(t testing.TB, name, department string) *caller {
	t.Helper()
	id := w.user(t, name, department)
	return w.accept(t, address(name), id, w.invite(t, w.owner, id))
}

func testInvitations(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("link", func(t *testing.T) { testInvitationLink(t, w) })
	t.Run("acceptance", func(t *testing.T) { testAcceptance(t, w) })
	t.Run("password", func(t *testing.T) { testInvitedPassword(t, w) })
	t.Run("once", func(t *testing.T) { testOneAcceptance(t, w) })
	t.Run("void", func(t *testing.T) { testVoidInvitations(t, w) })
	t.Run("reset", func(t *testing.T) { testInvitationResets(t, w) })
	t.Run("ceiling", func(t *testing.T) { testInvitationCeiling(t, w) })
	t.Run("keys", func(t *testing.T) { testInvitationKeys(t, w) })
}

func testInvitationLink(t *testing.T, w *world) {
	id := w.user(t, "linked", "")
	before := time.Now()
	a := w.owner.do(t, "POST /users/"+id+"/invitations", "", "idempotency-key: linked").expect(t, 201)
	s := scenario{status: 201, members: "userId createdAt expiresAt", has: map[string]any{"/userId": id}, headers: map[string]string{"Idempotent-Replayed": "", "Set-Cookie": ""}}
	s.check(t, a)
	m := w.mailTo(t, address("linked"), rolecall.MailInvitation)
	link, token := m.Link(), m.Token()
	if link.Fragment = ""; len(token) != 43 || link.String() != public+"/console/"+w.name+"/invitation" || !strings.Contains(m.HTML, `href="`+link.String()+"#"+token+`"`) {
		t.Errorf("the link is %s, and its token %q", link, token)
	}
	if m.From != "rolecall@example.org" || m.Header.Get("From") != `"`+w.name+`" <rolecall@example.org>` || m.Subject != "You have been invited to join "+w.name || !strings.Contains(m.Text, "Hello User linked,") {
		t.Errorf("the mail is %s", m.Raw)
	}
	expires, err := time.Parse(time.RFC3339, a.text("/expiresAt"))
	if err != nil || expires.Before(before.Add(72*time.Hour)) || expires.After(time.Now().Add(72*time.Hour)) {
		t.Errorf("it expires at %q, %v", a.text("/expiresAt"), err)
	}
	play(t, []scenario{
		{name: "a repeat is answered as before", as: w.owner, send: "POST /users/" + id + "/invitations", header: []string{"idempotency-key: linked"}, status: 201, members: "userId createdAt expiresAt",
			has: map[string]any{"/createdAt": a.text("/createdAt"), "/expiresAt": a.text("/expiresAt")}, headers: map[string]string{"Idempotent-Replayed": "true"}, lacks: []string{token}},
		{name: "it takes a key", as: w.owner, send: "POST /users/" + id + "/invitations", header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required"}},
		{name: "it takes a user", as: w.owner, send: "POST /users/" + never + "/invitations", status: 404, code: "not-found"},
		{name: "it takes an id", as: w.owner, send: "POST /users/none/invitations", status: 400, faults: []string{"parameter:id format"}},
		{name: "no answer shows it", as: w.owner, send: "GET /users/" + id + "/overview", status: 200, has: map[string]any{"/recentEvents/0/type": "user.invited", "/recentEvents/1/type": "user.created"}, lacks: []string{token}},
		{name: "nor do events", as: w.owner, send: "GET /users/" + id + "/events", status: 200, lacks: []string{token}},
		{name: "an invited user is pending", as: w.owner, send: "GET /users/" + id, status: 200, has: map[string]any{"/status": "pending"}},
	})
	if n := w.mailsTo(address("linked")); n != 1 {
		t.Errorf("%d mails came, want one", n)
	}
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, password)).expect(t, 200)
}

func testAcceptance(t *testing.T, w *world) {
	id := w.user(t, "accepts", "Sales")
	token := w.invite(t, w.owner, id)
	const send = "POST /auths/invitations/accept"
	out := w.anonymous()
	play(t, []scenario{
		{name: "nothing", as: out, send: send, status: 400, code: "malformed-request"},
		{name: "no members", as: out, send: send, body: `{}`, status: 422, faults: []string{"/token required", "/password required"}},
		{name: "other types", as: out, send: send, body: `{"token":[],"password":null,"email":"x"}`, status: 422, faults: []string{"/token type", "/password type", "/email unknown"}},
		{name: "a member twice", as: out, send: send, body: `{"token":"a","token":"b","password":"c"}`, status: 400, code: "malformed-request"},
		{name: "a form", as: out, send: send, body: acceptance(token, password), header: []string{"content-type: text/plain"}, status: 415},
		{name: "from another site", as: out, send: send, body: acceptance(token, password), header: []string{"sec-fetch-site: cross-site"}, status: 403, code: "cross-origin"},
		{name: "a token of nobody", as: out, send: send, body: acceptance(strings.Repeat("A", 43), password), status: 401, code: "invitation-invalid", headers: map[string]string{"Set-Cookie": ""}},
		{name: "what is no token", as: out, send: send, body: acceptance("token", password), status: 401, code: "invitation-invalid"},
		{name: "a session for a token", as: out, send: send, body: acceptance(w.owner.token, password), status: 401, code: "invitation-invalid"},
		{name: "a token for a session", as: out.with(token), send: "GET /auths/session", status: 401, code: "unauthenticated"},
		{name: "a password for nobody is not judged", as: out, send: send, body: acceptance(strings.Repeat("A", 43), "short"), status: 401, code: "invitation-invalid"},
		{name: "a tenant of nobody", as: out.in("no-such-tenant"), send: send, body: acceptance(token, password), status: 401, code: "invitation-invalid"},
	})
	chosen := strings.Repeat("A", 43)
	a := out.with(chosen).do(t, send, acceptance(token, password)).expect(t, 200)
	s := scenario{status: 200, members: "user session", has: map[string]any{"/user/id": id, "/user/status": "active", "/user/department": "Sales"}, lacks: []string{token, "password"}}
	s.check(t, a)
	if got := a.header["Set-Cookie"]; a.session(t) == chosen || a.session(t) == token || !cookieForm.MatchString(got[len(got)-1]) {
		t.Errorf("the cookies are %q", got)
	}
	in := out.with(a.session(t))
	if got := in.do(t, "GET /auths/session", "").expect(t, 200).text("/user/id"); got != id {
		t.Errorf("%s is signed in, not %s", got, id)
	}
	w.signIn(t, address("accepts"))
	out.do(t, send, acceptance(token, password)).refused(t, 401, "invitation-invalid")
	events := w.owner.do(t, "GET /users/"+id+"/events", "").expect(t, 200).texts("type")
	if got := fmt.Sprint(events); got != "[session.started session.started user.invitation_accepted user.invited user.created]" {
		t.Errorf("the events are %s", got)
	}
}

// testInvitedPassword checks that passwords that are too easy are refused, and that the
// invitation can be used after that.
func testInvitedPassword(t *testing.T, w *world) {
	id := w.user(t, "choosing.a.password", "")
	token := w.invite(t, w.owner, id)
	try := func(name, password, fault string) scenario {
		return scenario{name: name, as: w.anonymous(), send: "POST /auths/invitations/accept", body: acceptance(token, password), status: 422, code: "validation", faults: []string{"/password " + fault}, headers: map[string]string{"Set-Cookie": ""}}
	}
	play(t, []scenario{
		try("empty", "", "length"), try("14 characters", "abcdefgh ijklm", "length"), try("14 characters of many bytes", strings.Repeat("ß", 14), "length"), try("too long", strings.Repeat("long ", 205), "length"),
		try("the address", address("choosing.a.password"), "personal"), try("the address in another case", strings.ToUpper(address("choosing.a.password")), "personal"), try("the name", "User choosing.a.password", "personal"),
		try("common", "iloveyou1234567", "common"), try("one character", strings.Repeat("a", 20), "common"), try("neighbouring keys", "qwertyuiopasdfgh", "common"),
	})
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, canary+" e\u0301 fifteen and more")).expect(t, 200)
	w.anonymous().do(t, "POST /auths/login", credentials(address("choosing.a.password"), canary+" é fifteen and more")).expect(t, 200)
}

func testOneAcceptance(t *testing.T, w *world) {
	token := w.invite(t, w.owner, w.user(t, "once", ""))
	const n = 12
	var mu sync.Mutex
	accepted, sessions := 0, []string{}
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			a, err := w.anonymous().try(t, "POST /auths/invitations/accept", acceptance(token, fmt.Sprintf("%s %d", password, i)))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if a.status == http.StatusOK {
				accepted++
				sessions = append(sessions, a.session(t))
			} else if a.text("/code") != "invitation-invalid" {
				t.Errorf("the others are answered %d %s", a.status, a.body)
			}
		})
	}
	running.Wait()
	if accepted != 1 {
		t.Fatalf("one invitation was accepted %d times", accepted)
	}
	w.anonymous().with(sessions[0]).do(t, "GET /auths/session", "").expect(t, 200)
}

func testVoidInvitations(t *testing.T, w *world) {
	accept := func(token string) *answer {
		return w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, password))
	}
	id := w.user(t, "void", "")
	replaced := w.invite(t, w.owner, id)
	newer := w.invite(t, w.owner, id)
	accept(replaced).refused(t, 401, "invitation-invalid")

	w.owner.do(t, "POST /users/"+id+"/suspend", "").expect(t, 200)
	w.owner.do(t, "POST /users/"+id+"/invitations", "").refused(t, 403, "user-suspended")
	accept(newer).refused(t, 403, "user-suspended")
	accept(replaced).refused(t, 401, "invitation-invalid")
	w.owner.do(t, "POST /users/"+id+"/resume", "").expect(t, 200)
	accept(newer).expect(t, 200)

	gone := w.user(t, "void-deleted", "")
	token := w.invite(t, w.owner, gone)
	w.owner.do(t, "DELETE /users/"+gone, "").expect(t, 204)
	void := accept(token).refused(t, 401, "invitation-invalid")
	again := w.user(t, "void-deleted", "")
	if a := accept(token); anonymousBody(t, a) != anonymousBody(t, void) {
		t.Errorf("an invitation of a deleted user is told from none: %s", a.body)
	}
	if got := w.owner.do(t, "GET /users/"+again, "").text("/status"); got != "pending" {
		t.Errorf("the one who has the address now is %s", got)
	}
}

// testInvitationResets invites a user who already has a password. Accepting the invitation
// must replace the password and end the user's other sessions.
func testInvitationResets(t *testing.T, w *world) {
	c := w.guest(t, "resets", "")
	other := w.signIn(t, address("resets"))
	token := w.invite(t, w.owner, c.id)
	c.do(t, "GET /auths/session", "").expect(t, 200)
	a := w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, "another "+password)).expect(t, 200)
	for _, old := range []*caller{c, other} {
		old.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
		old.do(t, "POST /auths/refresh", "").refused(t, 401, "unauthenticated")
	}
	c.with(a.session(t)).do(t, "GET /auths/session", "").expect(t, 200)
	w.anonymous().do(t, "POST /auths/login", credentials(address("resets"), password)).refused(t, 401, "wrong-credentials")
	w.anonymous().do(t, "POST /auths/login", credentials(address("resets"), "another "+password)).expect(t, 200)
}

// testInvitationCeiling checks that callers cannot invite users who have permissions that the
// callers cannot grant.
func testInvitationCeiling(t *testing.T, w *world) {
	inviter := w.holder(t, "inviter", "", "", "users:read", "users:invite")
	scoped := w.holder(t, "sales-inviter", "Sales", "Sales", "users:read", "users:invite", "shop/a:b")
	briefly := w.guest(t, "brief-inviter", "")
	w.assign(t, briefly.id, w.role(t, "Invites briefly", "users:read", "users:invite"), `{"expiresAt":"2099-01-01T00:00:00Z"}`)
	admin := w.guest(t, "inviting-admin", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	reads, buys := w.role(t, "Reads users", "users:read"), w.role(t, "Buys", "shop/a:b")
	holder := func(name, role, body string) string {
		id := w.user(t, name, "Sales")
		w.assign(t, id, role, body)
		return "POST /users/" + id + "/invitations"
	}
	owner, reader := holder("ceil-owner", w.builtIn(t, "owner"), ""), holder("ceil-reader", reads, "")
	buyer, near, brief := holder("ceil-buyer", buys, ""), holder("ceil-near", buys, within("Sales")), holder("ceil-brief", reads, `{"expiresAt":"2098-01-01T00:00:00Z"}`)
	outside := "POST /users/" + w.user(t, "ceil-outside", "Ops") + "/invitations"
	beyond := func(name string, as *caller, send string) scenario {
		return scenario{name: name, as: as, send: send, status: 403, code: "beyond-own-permissions", lacks: []string{"token", "link"}}
	}
	play(t, []scenario{
		{name: "who holds as much", as: inviter, send: reader, status: 201},
		{name: "who holds it within one's reach", as: scoped, send: near, status: 201},
		{name: "who holds it for as long", as: briefly, send: brief, status: 201},
		{name: "an administrator by their grants", as: admin, send: buyer, status: 201},
		beyond("an owner, by a permission", inviter, owner), beyond("an owner, by an administrator", admin, owner),
		beyond("an application's permission", inviter, buyer), beyond("everywhere, from a department", scoped, buyer), beyond("without an end, from one who has one", briefly, reader),
		{name: "outside of one's reach", as: scoped, send: outside, status: 404, code: "not-found"},
	})
}

func testInvitationKeys(t *testing.T, w *world) {
	one, two := w.user(t, "key-one", ""), w.user(t, "key-two", "")
	other := w.holder(t, "key-inviter", "", "", "users:read", "users:invite")
	const key = "idempotency-key: invitations"
	first := w.owner.do(t, "POST /users/"+one+"/invitations", "", key).expect(t, 201)
	w.owner.do(t, "POST /users/"+two+"/invitations", "", key).refused(t, 422, "idempotency-key-reused")
	theirs := other.do(t, "POST /users/"+two+"/invitations", "", key).expect(t, 201)
	if theirs.header.Get("Idempotent-Replayed") != "" || theirs.text("/userId") != two || first.text("/userId") != one {
		t.Errorf("a key crossed from user to user: %s", theirs.body)
	}
	foreign := newWorld(t, w.program)
	elsewhere := foreign.owner.do(t, "POST /users/"+foreign.user(t, "key-one", "")+"/invitations", "", key).expect(t, 201)
	if elsewhere.header.Get("Idempotent-Replayed") != "" {
		t.Error("a key crossed from tenant to tenant")
	}
	w.owner.do(t, "DELETE /users/"+one, "").expect(t, 204)
	w.owner.do(t, "POST /users/"+one+"/invitations", "", key).refused(t, 404, "not-found")

	parallel := w.user(t, "key-parallel", "")
	var mu sync.Mutex
	effects := 0
	var running sync.WaitGroup
	for range 30 {
		running.Go(func() {
			a, err := w.owner.try(t, "POST /users/"+parallel+"/invitations", "", "idempotency-key: in-parallel")
			if err != nil || a.status != http.StatusCreated {
				t.Errorf("%v, %+v", err, a)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if a.header.Get("Idempotent-Replayed") == "" {
				effects++
			}
		})
	}
	running.Wait()
	token := w.invited(t, parallel)
	if n := w.mailsTo(address("key-parallel")); effects != 1 || n != 1 {
		t.Errorf("of thirty equal requests %d had an effect, and %d mails came", effects, n)
	}
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, password)).expect(t, 200)
}

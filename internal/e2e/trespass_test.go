package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// testTrespass sends all operations from pages of other sites, without a session, with invalid
// tokens and in a suspended tenant. It also uses cursors of other users.
func testTrespass(t *testing.T, p *program) {
	t.Run("other sites", func(t *testing.T) { testEveryOperationCrossSite(t, newWorld(t, p)) })
	t.Run("cursors", func(t *testing.T) { testCursorsOfOthers(t, newWorld(t, p)) })
	t.Run("no session", func(t *testing.T) { testEveryOperationWithoutSession(t, newWorld(t, p)) })
	t.Run("suspended tenant", func(t *testing.T) { testSuspendedTenant(t, newWorld(t, p)) })
	t.Run("bearers", func(t *testing.T) { testEveryOperationByBearer(t, newWorld(t, p)) })
}

// line returns "METHOD /path" of the operation, with the ids of the user and the role in the
// path.
func (op *operation) line(user, role string) string { return op.about(user, role, never) }

// about returns "METHOD /path" of the operation, with the ids of the user, the role and the
// service account in the path.
func (op *operation) about(user, role, account string) string {
	id := user
	switch {
	case strings.HasPrefix(op.path, "/roles/"), strings.HasPrefix(op.path, "/exports/roles/"):
		id = role
	case strings.HasPrefix(op.path, "/groups/"):
		id = never
	case strings.HasPrefix(op.path, "/service-accounts/"):
		id = account
	}
	line := op.method + " " + strings.NewReplacer("{id}", id, "{roleId}", role, "{userId}", user, "{sessionId}", never, "{identityId}", never, "{tokenId}", never, "{passkeyId}", "AAAA", "{name}", "no-such-tenant").Replace(op.path)
	switch op.path {
	case "/auths/check", "/access":
		line += "?permission=users:read"
	case "/events/consistency":
		line += "?from=1"
	}
	return line
}

// isOperators reports whether the operation requires an operator key. Such operations accept
// no session.
func (op *operation) isOperators() bool { return strings.HasPrefix(op.path, "/operator/") }

// isPublic reports whether the document says that the operation needs no authentication.
func (op *operation) isPublic() bool { return op.spec.Security == nil || len(*op.spec.Security) == 0 }

// testEveryOperationCrossSite sends every operation that changes something with the headers
// that a browser sends for a page of another site. All must be refused and must change
// nothing.
func testEveryOperationCrossSite(t *testing.T, w *world) {
	user, role := w.user(t, "crossed", ""), w.role(t, "Crossed")
	before := w.owner.readAll(t, "/events?limit=200")
	for _, op := range w.program.document.operations {
		if op.method == http.MethodGet {
			continue
		}
		for _, header := range [][]string{
			{"sec-fetch-site: cross-site"}, {"sec-fetch-site: same-site"}, {"origin: https://evil.example"}, {"origin: null"}, {"sec-fetch-site: cross-site", "origin: http://" + w.program.Address},
		} {
			a := w.owner.do(t, op.line(user, role), `{"displayName":"Crossed"}`, header...).refused(t, 403, "cross-origin")
			if a.header["Set-Cookie"] != nil {
				t.Errorf("%s sets %q", op.id, a.header["Set-Cookie"])
			}
		}
		for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
			w.owner.do(t, op.line(user, role), `{"displayName":"Crossed"}`, "content-type: "+contentType).expect(t, 415)
		}
	}
	if after := w.owner.readAll(t, "/events?limit=200"); len(after) != len(before) {
		t.Errorf("requests of other sites left %d events", len(after)-len(before))
	}
	w.owner.do(t, "GET /auths/session", "").expect(t, 200)
}

func testCursorsOfOthers(t *testing.T, w *world) {
	for i := range 4 {
		w.user(t, fmt.Sprintf("paged-%d", i), "")
	}
	reader := w.holder(t, "reader", "", "", "events:read", "users:read")
	foreign := newWorld(t, w.program)
	foreign.user(t, "paged", "")
	const list = "/events?type=user.created&limit=1"
	cursor := w.owner.do(t, "GET "+list, "").expect(t, 200).text("/nextCursor")
	user := w.owner.do(t, "GET /users/"+reader.id+"/events?limit=1", "").text("/nextCursor")
	refused := func(name string, as *caller, path, cursor string) scenario {
		return scenario{name: name, as: as, send: "GET " + path + "&cursor=" + url.QueryEscape(cursor), status: 400, code: "malformed-request", faults: []string{"parameter:cursor cursor"}}
	}
	scenarios := []scenario{
		{name: "one's own", as: w.owner, send: "GET " + list + "&cursor=" + url.QueryEscape(cursor), status: 200},
		{name: "one's own, another size of page", as: w.owner, send: "GET /events?type=user.created&limit=9&cursor=" + url.QueryEscape(cursor), status: 200},
		{name: "one's own in another session", as: w.signIn(t, w.owner.email), send: "GET " + list + "&cursor=" + url.QueryEscape(cursor), status: 200},
		refused("another user's", reader, list, cursor), refused("another tenant's", foreign.owner, list, cursor), refused("another filter", w.owner, "/events?type=user.updated", cursor), refused("no filter", w.owner, "/events?limit=1", cursor),
		refused("one filter more", w.owner, list+"&actor="+w.owner.id, cursor), refused("a moment more", w.owner, list+"&from=2000-01-01T00:00:00Z", cursor), refused("another list", w.owner, "/users?limit=1", cursor), refused("the list of a user", w.owner, "/users/"+reader.id+"/events?type=user.created", cursor),
		refused("another user's list", w.owner, "/users/"+w.owner.id+"/events?limit=1", user), refused("one's own among all", w.owner, "/events?limit=1", user),
	}
	for i := 0; i < len(cursor); i += 5 {
		scenarios = append(scenarios, refused(fmt.Sprintf("another character at %d", i), w.owner, list, cursor[:i]+string(other(cursor[i]))+cursor[i+1:]))
	}
	play(t, scenarios)
}

// other returns a character that differs from c and can be in a cursor or a token.
func other(c byte) byte {
	if c == 'A' {
		return 'B'
	}
	return 'A'
}

// comparable returns the status, the headers and the body of a refusal as text, without the
// parts that differ for each request.
func (a *answer) comparable(t *testing.T) string {
	header := a.header.Clone()
	for _, name := range []string{"X-Request-Id", "Date"} {
		header.Del(name)
	}
	return fmt.Sprint(a.status, header, anonymousBody(t, a))
}

// testEveryOperationWithoutSession checks that an operation returns the same response to all
// callers without a valid session in the tenant, whether or not the tenant exists.
func testEveryOperationWithoutSession(t *testing.T, w *world) {
	foreign := newWorld(t, w.program)
	for _, op := range w.program.document.operations {
		if op.id == "AuthsController_startOidc" || op.id == "AuthsController_signOutOidc" || op.id == "AuthsController_listConnections" || op.id == "AuthsController_findConnection" || op.id == "AuthsController_login" || op.id == "AuthsController_logout" || op.id == "AuthsController_requestPasswordReset" || op.id == "AuthsController_getPasskeySignInOptions" {
			continue
		}
		body, token := "", w.invite(t, w.owner, w.user(t, "invited-for-"+op.id, ""))
		switch op.id {
		case "AuthsController_acceptInvitation":
			body = acceptance(token, password)
		case "AuthsController_resetPassword":
			body = acceptance(w.resetLink(t, w.owner.email), newPassword)
		case "AuthsController_changeEmail":
			body = linkBody(w.emailLink(t, w.owner, w.owner.id, address("elsewhere")))
		case "AuthsController_changePassword":
			body = passwords(password, newPassword)
		case "AuthsController_completeLogin":
			body = answerTo(strings.Repeat("A", 43), "code", "000000")
		case "AuthsController_beginEnrolment":
			body = `{"challenge":"` + strings.Repeat("A", 43) + `"}`
		case "AuthsController_exchangeCode":
			body = exchangeBody(strings.Repeat("A", 43), appVerifier, "")
		case "AuthsController_signInByPasskey":
			body = `{"passkey":{}}`
		}
		line := op.line(w.owner.id, never)
		none := foreign.anonymous().do(t, line, body).expect(t, 401)
		for name, c := range map[string]*caller{
			"a token of nobody": foreign.anonymous().with(strings.Repeat("x", 43)), "a session of another tenant": w.owner.in(foreign.name), "an invitation for a session": w.anonymous().with(token),
			"an unknown tenant": w.anonymous().in("no-such-tenant"), "an unknown tenant and a live session": w.owner.in("no-such-tenant"), "an unknown tenant and a token of nobody": w.anonymous().in("no-such-tenant").with(strings.Repeat("x", 43)),
		} {
			if c.tenant == w.name && slices.Contains([]string{"AuthsController_acceptInvitation", "AuthsController_resetPassword", "AuthsController_changeEmail"}, op.id) {
				continue
			}
			if a := c.do(t, line, body); a.comparable(t) != none.comparable(t) {
				t.Errorf("%s with %s answers %s, without a session %s", line, name, a.comparable(t), none.comparable(t))
			}
		}
	}
}

// testEveryOperationByBearer sends every operation with bearer tokens. An invalid token must
// get the same response as a revoked one. A request with a token and a session must be
// refused. A token in another place than the Authorization header must have no effect. Valid
// tokens are accepted from any origin.
func testEveryOperationByBearer(t *testing.T, w *world) {
	foreign := newWorld(t, w.program)
	account := w.account(t, "Shop", "shop/a:b")
	c, revoked := w.owner.makeToken(t, account, "shop/a:b"), w.owner.makeToken(t, account, "shop/a:b")
	w.owner.do(t, "DELETE /service-accounts/"+account+"/tokens/"+revoked.bearerID, "").expect(t, 204)
	cut, shouting, foreignToken, session := *c, *c, *c, w.owner.with("")
	foreignToken.bearer = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"
	cut.bearer, shouting.bearer, session.bearer = c.bearer[:len(c.bearer)-1], strings.ToUpper(c.bearer), w.owner.token
	for _, op := range w.program.document.operations {
		line := op.line(w.owner.id, never)
		if op.isPublic() {
			continue
		}
		for _, header := range [][]string{{"+cookie: session=" + w.owner.token}, {"authorization: bearer rc_x", "+cookie: session=" + w.owner.token}} {
			a := c.do(t, line, "", header...).refused(t, 400, "malformed-request")
			if !slices.Equal(a.faults(), []string{"header:authorization ambiguous"}) {
				t.Errorf("%s with two credentials: %q", line, a.faults())
			}
		}
		if a := c.do(t, line, "", "+authorization: Bearer "+c.bearer).refused(t, 400, "malformed-request"); !slices.Equal(a.faults(), []string{"header:authorization repeated"}) {
			t.Errorf("%s with two headers: %q", line, a.faults())
		}
		over := revoked.do(t, line, "").refused(t, 401, "unauthenticated").comparable(t)
		for name, c := range map[string]*caller{"a token of another tenant": c.in(foreign.name), "a token in an unknown tenant": c.in("no-such-tenant"), "a token cut short": &cut} {
			if a := c.do(t, line, ""); a.comparable(t) != over {
				t.Errorf("%s with %s answers %s, with one that was revoked %s", line, name, a.comparable(t), over)
			}
		}
		none := w.anonymous().do(t, line, "").refused(t, 401, "unauthenticated").comparable(t)
		for name, c := range map[string]*caller{"a token in capitals": &shouting, "a session for a token": session, "a token of a proxy": &foreignToken} {
			if a := c.do(t, line, ""); a.comparable(t) != none {
				t.Errorf("%s with %s answers %s, without a token %s", line, name, a.comparable(t), none)
			}
		}
		query := "?"
		if strings.Contains(line, query) {
			query = "&"
		}
		for _, place := range []string{"access_token=", "token=", "authorization=Bearer%20"} {
			if a := w.anonymous().do(t, line+query+place+c.bearer, ""); a.comparable(t) != none {
				t.Errorf("%s with %s answers %s", line, place, a.comparable(t))
			}
		}
		for _, header := range []string{"cookie: session=", "cookie: access_token=", "x-access-token: "} {
			if a := w.anonymous().do(t, line, "", header+c.bearer); a.comparable(t) != none {
				t.Errorf("%s with %s answers %s", line, header, a.comparable(t))
			}
		}
		for _, header := range []string{"authorization: Basic " + c.bearer, "authorization: " + c.bearer, "authorization: Bearer" + c.bearer, "authorization: DPoP " + c.bearer} {
			if a := c.do(t, line, "", header); a.comparable(t) != none {
				t.Errorf("%s with %s answers %s", line, header, a.comparable(t))
			}
		}
		for _, header := range []string{"origin: https://evil.example", "origin: null", "sec-fetch-site: cross-site", "authorization: bEaReR  " + c.bearer} {
			if a := c.do(t, line, "", header); (a.status == 401) != op.isOperators() || a.text("/code") == "cross-origin" {
				t.Errorf("%s with %s answers %d %s", line, header, a.status, a.body)
			}
		}
	}
	for _, kind := range w.owner.do(t, "GET /events?limit=200&actor="+account, "").expect(t, 200).texts("type") {
		if kind != "request.refused" {
			t.Errorf("a token that may do nothing left %s", kind)
		}
	}
	c.do(t, "GET /auths/check?permission=shop/a:b", "").expect(t, 204)
}

func testSuspendedTenant(t *testing.T, w *world) {
	user, role := w.user(t, "invited", ""), w.role(t, "Suspended")
	token := w.invite(t, w.owner, user)
	reset, email := w.resetLink(t, w.owner.email), w.emailLink(t, w.owner, w.owner.id, address("elsewhere"))
	w.program.run(t, "", "tenant", "suspend", w.name)
	awaitStatus(t, w.owner, "GET /tenant", 403)
	for _, op := range w.program.document.operations {
		// POST /auths/refresh is public in the document, because it needs no permission. It still needs a session.
		if op.isPublic() && op.path != "/auths/refresh" || op.isOperators() {
			continue
		}
		line := op.line(user, role)
		w.owner.do(t, line, "").refused(t, 403, "tenant-suspended")
		w.anonymous().do(t, line, "").refused(t, 401, "unauthenticated")
	}
	accept := func(token string) *answer {
		return w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, password))
	}
	accept(token).refused(t, 403, "tenant-suspended")
	accept(strings.Repeat("A", 43)).refused(t, 401, "invitation-invalid")
	w.anonymous().do(t, "POST /auths/codes/exchange", exchangeBody(strings.Repeat("A", 43), appVerifier, "")).refused(t, 401, "sign-in-code-invalid")
	w.anonymous().do(t, resetByLink, acceptance(reset, newPassword)).refused(t, 403, "tenant-suspended")
	w.anonymous().do(t, changeByLink, linkBody(email)).refused(t, 403, "tenant-suspended")
	w.program.run(t, "", "tenant", "resume", w.name)
	awaitStatus(t, w.owner, "GET /tenant", 200)
	accept(token).expect(t, 200)
}

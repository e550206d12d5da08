package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
)

func testSessions(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("login", func(t *testing.T) { testLogin(t, w) })
	t.Run("cookie", func(t *testing.T) { testCookie(t, w) })
	t.Run("session", func(t *testing.T) { testWhoAmI(t, w) })
	t.Run("many cookies", func(t *testing.T) { testManyCookies(t, w) })
	t.Run("refresh", func(t *testing.T) { testRefresh(t, w) })
	t.Run("logout", func(t *testing.T) { testLogout(t, w) })
	t.Run("mails", func(t *testing.T) { testSessionMails(t, newWorld(t, p)) })
}

func testLogin(t *testing.T, w *world) {
	out := w.anonymous()
	play(t, []scenario{
		{name: "the right ones", as: out, send: "POST /auths/login", body: credentials(address("owner"), password), status: 200, members: "user session",
			has: map[string]any{"/user/email": address("owner"), "/user/status": "active", "/user/id": w.owner.id}, lacks: []string{"password", "token"}},
		{name: "an address in another case", as: out, send: "POST /auths/login", body: credentials("OWNER@CANARY.example", password), status: 200},
		{name: "a password in another case", as: out, send: "POST /auths/login", body: credentials(address("owner"), strings.ToUpper(password)), status: 401, code: "wrong-credentials", headers: map[string]string{"Set-Cookie": "", "Www-Authenticate": "Session"}},
		{name: "a password and a blank", as: out, send: "POST /auths/login", body: credentials(address("owner"), password+" "), status: 401, code: "wrong-credentials"},
		{name: "an empty password", as: out, send: "POST /auths/login", body: credentials(address("owner"), ""), status: 401, code: "wrong-credentials"},
		{name: "a very long password", as: out, send: "POST /auths/login", body: credentials(address("owner"), strings.Repeat("x", 5000)), status: 401, code: "wrong-credentials"},
		{name: "what is no address", as: out, send: "POST /auths/login", body: credentials("owner", password), status: 401, code: "wrong-credentials"},
		{name: "nothing", as: out, send: "POST /auths/login", status: 400, code: "malformed-request"},
		{name: "no members", as: out, send: "POST /auths/login", body: `{}`, status: 422, faults: []string{"/email required", "/password required"}},
		{name: "other types", as: out, send: "POST /auths/login", body: `{"email":["a"],"password":{"$ne":null},"tenant":"x"}`, status: 422, faults: []string{"/email type", "/password type", "/tenant unknown"}},
		{name: "null", as: out, send: "POST /auths/login", body: `{"email":null,"password":null}`, status: 422, faults: []string{"/email type", "/password type"}},
	})
	first := w.signIn(t, address("owner"))
	second := first.do(t, "POST /auths/login", credentials(address("owner"), password)).expect(t, 200)
	if second.session(t) == first.token {
		t.Error("a sign-in adopted the token it came with")
	}
	first.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	chosen := strings.Repeat("A", 43)
	fixed := w.anonymous().with(chosen).do(t, "POST /auths/login", credentials(address("owner"), password)).expect(t, 200)
	if fixed.session(t) == chosen {
		t.Error("a chosen token was adopted")
	}
	w.anonymous().with(chosen).do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	third := w.signIn(t, address("owner"))
	third.do(t, "POST /auths/login", credentials(address("owner"), "wrong")).refused(t, 401, "wrong-credentials")
	third.do(t, "GET /auths/session", "").expect(t, 200)
}

// cookieForm matches the whole Set-Cookie line of a new session. The line has no Domain and no
// Expires.
var cookieForm = regexp.MustCompile(`^session=[A-Za-z0-9_-]{43}; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax$`)

// sessionForm matches the Set-Cookie line of a session that began less than 100 seconds ago.
var sessionForm = regexp.MustCompile(`^session=[A-Za-z0-9_-]{43}; Path=/; Max-Age=(6047\d\d|604800); HttpOnly; Secure; SameSite=Lax$`)

// deviceForm matches the whole Set-Cookie line with the known-device token.
var deviceForm = regexp.MustCompile(`^rolecall_device=[A-Za-z0-9_-]{64,}; Path=/; Max-Age=7776000; HttpOnly; Secure; SameSite=Lax$`)

func testCookie(t *testing.T, w *world) {
	a := w.anonymous().do(t, "POST /auths/login", credentials(address("owner"), password)).expect(t, 200)
	if lines := a.header["Set-Cookie"]; len(lines) != 2 || !deviceForm.MatchString(lines[0]) || !cookieForm.MatchString(lines[1]) {
		t.Errorf("the cookies are %q", lines)
	}
	c := w.anonymous().with(a.session(t))
	r := c.do(t, "POST /auths/refresh", "").expect(t, 200)
	if lines := r.header["Set-Cookie"]; len(lines) != 1 || !sessionForm.MatchString(lines[0]) {
		t.Errorf("the cookie of a refresh is %q", lines)
	}
	out := c.with(r.session(t)).do(t, "POST /auths/logout", "").expect(t, 204)
	if lines := out.header["Set-Cookie"]; len(lines) != 1 || lines[0] != "session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax" {
		t.Errorf("the cookie of a logout is %q", lines)
	}
	for _, line := range []string{"GET /auths/session", "GET /users", "GET /users/" + w.owner.id} {
		if lines := w.owner.do(t, line, "").expect(t, 200).header["Set-Cookie"]; lines != nil {
			t.Errorf("%s sets %q", line, lines)
		}
	}
}

func testWhoAmI(t *testing.T, w *world) {
	a := w.owner.do(t, "GET /auths/session", "").expect(t, 200)
	s := scenario{status: 200, members: "tenant principal user roles groups permissions scopedPermissions permissionsExpireAt session",
		has: map[string]any{"/tenant/name": w.name, "/user/id": w.owner.id, "/user/email": address("owner"), "/roles/0/key": "owner", "/permissions/0": "*/*:*", "/permissions/1": "*:*"},
	}
	s.check(t, a)
	for pointer, wanted := range map[string]string{"/tenant": "[id name]", "/session": "[authenticatedAt confirmedAt expiresAt id idleExpiresAt secondFactor]", "/roles/0": "[id key name]"} {
		if got := fmt.Sprint(a.members(pointer)); got != wanted {
			t.Errorf("%s has %s", pointer, got)
		}
	}
	if !strings.Contains(string(a.body), `"permissionsExpireAt":null`) {
		t.Errorf("the permissions of the owner expire: %s", a.body)
	}
	c := w.holder(t, "scoped", "Board", "Sales", "users:read", "roles:create", "shop/invoices:approve")
	for _, until := range []string{"2999-12-31T00:00:00Z", "2999-01-01T00:00:00Z"} {
		w.assign(t, c.id, w.role(t, "Until "+until, "users:read"), `{"reach":{"departments":["Sales"]},"expiresAt":"`+until+`"}`)
	}
	play(t, []scenario{
		{name: "what holds somewhere is not told as if it held everywhere", as: c, send: "GET /auths/session", status: 200, contains: []string{`"permissions":[]`},
			has: map[string]any{"/scopedPermissions/0/permissions/0": "shop/invoices:approve", "/scopedPermissions/0/reach/departments/0": "Sales", "/scopedPermissions/0/permissions/1": "users:read", "/scopedPermissions/1": nil, "/permissionsExpireAt": "2999-01-01T00:00:00.000000Z"}},
		{name: "a look that does not count", as: c, send: "GET /auths/session?touch=false", status: 200},
		{name: "touch is true or false", as: c, send: "GET /auths/session?touch=no", status: 400, faults: []string{"parameter:touch format"}},
		{name: "without a session", as: c.anonymous(), send: "GET /auths/session", status: 401, code: "unauthenticated", headers: map[string]string{"Www-Authenticate": "Session, Bearer"}},
		{name: "a session of another tenant", as: c.in("no-such-tenant"), send: "GET /auths/session", status: 401, code: "unauthenticated"},
	})
}

func testManyCookies(t *testing.T, w *world) {
	one, two := w.signIn(t, address("owner")), w.signIn(t, address("owner"))
	unknown := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "session=%s%d0; ", strings.Repeat("u", 41), i)
		}
		return b.String()
	}
	session := "session=" + one.token
	cookies := func(name string, status int, code string, lines ...string) scenario {
		s := scenario{name: name, as: w.anonymous(), send: "GET /auths/session", status: status, code: code}
		for _, line := range lines {
			s.header = append(s.header, "+cookie: "+line)
		}
		return s
	}
	play(t, []scenario{
		cookies("two live ones", 401, "ambiguous-session", session+"; session="+two.token),
		cookies("two live ones in two lines", 401, "ambiguous-session", session, "session="+two.token),
		cookies("the same one twice", 200, "", session+"; "+session),
		cookies("junk beside it", 200, "", `session=; session=abc; session="quoted; session=`+strings.Repeat("x", 200)+"; "+session+"; session"),
		cookies("any amount of junk", 200, "", strings.Repeat("session=junk; ", 50)+session),
		cookies("unknown ones beside it", 200, "", unknown(3)+session),
		cookies("a fifth well-formed one is not looked up", 401, "unauthenticated", unknown(4)+session),
		cookies("other cookies", 200, "", "theme=dark; Session="+two.token+"; SESSION="+two.token+"; xsession="+two.token+"; "+session+"; session-id="+two.token),
		cookies("no value", 401, "unauthenticated", "session"),
		cookies("a value one too short", 401, "unauthenticated", session[:len(session)-1]),
		cookies("a value one too long", 401, "unauthenticated", session+"A"),
		cookies("another last character", 401, "unauthenticated", session[:len(session)-2]+"--"),
	})
	for _, header := range []string{"authorization: Bearer " + one.token, "authorization: Session " + one.token, "x-session: " + one.token} {
		w.anonymous().do(t, "GET /auths/session", "", header).refused(t, 401, "unauthenticated")
	}
	w.anonymous().do(t, "GET /auths/session?session="+one.token, "").refused(t, 401, "unauthenticated")

	both := "cookie: " + session + "; session=" + two.token
	in := w.anonymous().do(t, "POST /auths/login", credentials(address("owner"), password), both).expect(t, 200)
	for _, old := range []*caller{one, two} {
		old.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	}
	three := w.signIn(t, address("owner"))
	w.anonymous().do(t, "POST /auths/refresh", "", "cookie: session="+in.session(t)+"; session="+three.token).refused(t, 401, "ambiguous-session")
	w.anonymous().do(t, "POST /auths/logout", "", "cookie: session="+in.session(t)+"; session="+three.token).expect(t, 204)
	three.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	three.with(in.session(t)).do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
}

func testRefresh(t *testing.T, w *world) {
	old := w.signIn(t, address("owner"))
	first := old.do(t, "POST /auths/refresh", "").expect(t, 200)
	s := scenario{status: 200, members: "user session", has: map[string]any{"/user/id": w.owner.id}}
	s.check(t, first)
	next := old.with(first.session(t))
	if next.token == old.token {
		t.Error("a refresh answered the token it came with")
	}
	if again := old.do(t, "POST /auths/refresh", "").expect(t, 200).session(t); again != next.token {
		t.Error("a repeated refresh answered another successor")
	}
	old.do(t, "GET /auths/session", "").expect(t, 200)
	if got := next.do(t, "GET /auths/session", "").expect(t, 200).text("/session/id"); got != first.text("/session/id") {
		t.Error("the successor bears another session")
	}
	old.do(t, "GET /auths/session", "").expect(t, 200)

	parallel := next
	successors := make([]string, 50)
	var running sync.WaitGroup
	for i := range successors {
		running.Go(func() {
			a, err := parallel.try(t, "POST /auths/refresh", "")
			if err != nil || a.status != http.StatusOK {
				t.Errorf("a parallel refresh: %v, %+v", err, a)
				return
			}
			successors[i] = a.session(t)
		})
	}
	running.Wait()
	for _, successor := range successors {
		if successor != successors[0] {
			t.Fatalf("parallel refreshes answered different successors")
		}
	}
	w.anonymous().do(t, "POST /auths/refresh", "").refused(t, 401, "unauthenticated")
	next.in("no-such-tenant").do(t, "POST /auths/refresh", "").refused(t, 401, "unauthenticated")
	newest := next.with(successors[0])
	newest.do(t, "GET /auths/session", "").expect(t, 200)
	newest.do(t, "POST /auths/logout", "").expect(t, 204)
	for _, c := range []*caller{old, next, newest} {
		c.do(t, "POST /auths/refresh", "").refused(t, 401, "unauthenticated")
	}
}

func testLogout(t *testing.T, w *world) {
	c := w.signIn(t, address("owner"))
	play(t, []scenario{
		{name: "it ends the session", as: c, send: "POST /auths/logout", status: 204},
		{name: "which is over", as: c, send: "GET /auths/session", status: 401},
		{name: "it may be repeated", as: c, send: "POST /auths/logout", status: 204},
		{name: "it needs no session", as: c.anonymous(), send: "POST /auths/logout", status: 204},
		{name: "a token of nobody", as: c.with(strings.Repeat("n", 43)), send: "POST /auths/logout", status: 204},
		{name: "what is no token", as: c.with("%00"), send: "POST /auths/logout", status: 204},
		{name: "a tenant of nobody", as: c.in("no-such-tenant"), send: "POST /auths/logout", status: 204},
	})
	other := w.signIn(t, address("owner"))
	other.in("no-such-tenant").do(t, "POST /auths/logout", "").expect(t, 204)
	other.do(t, "GET /auths/session", "").expect(t, 200)
	for _, line := range []string{"GET /users", "GET /users/" + w.owner.id, "PATCH /users/" + w.owner.id, "DELETE /users/" + w.owner.id, "POST /users", "GET /roles", "POST /roles", "GET /users/" + w.owner.id + "/overview"} {
		body := ""
		if strings.HasPrefix(line, "P") {
			body = `{"name":"Ghost"}`
		}
		c.do(t, line, body).refused(t, 401, "unauthenticated")
	}
}

// testSessionMails checks the mails about sign-ins from new browsers and about session tokens
// that were used again after they had been replaced.
func testSessionMails(t *testing.T, w *world) {
	login, agent := credentials(address("owner"), password), "user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	w.owner.do(t, "PATCH /tenant", `{"settings":{"refreshGraceSeconds":0}}`).expect(t, 200)
	in := w.anonymous().do(t, "POST /auths/login", login, agent).expect(t, 200)
	about := func(kind rolecall.MailKind, says ...string) {
		t.Helper()
		m := w.mailTo(t, address("owner"), kind)
		for _, text := range append(says, "Browser: Firefox on Linux", "IP address: "+w.source, "reset your password") {
			if !strings.Contains(m.Text, text) {
				t.Errorf("the mail %s lacks %q: %s", kind, text, m.Text)
			}
		}
	}
	about(rolecall.MailNewBrowser, "a browser that was not used for it before")
	device := strings.SplitN(in.header["Set-Cookie"][0], ";", 2)[0]
	known := w.anonymous().do(t, "POST /auths/login", login, agent, "cookie: "+device).expect(t, 200)
	c := w.anonymous().with(known.session(t))
	next := c.with(c.do(t, "POST /auths/refresh", "").expect(t, 200).session(t))
	next.do(t, "GET /auths/session", "").expect(t, 200)
	c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	about(rolecall.MailTokenReused, "an old copy of its sign-in cookie was used")
	next.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	if n := w.mailsTo(address("owner")); n != 2 {
		t.Errorf("%d mails: a known browser was mailed about", n)
	}
}

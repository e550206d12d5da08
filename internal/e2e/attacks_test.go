package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/e2e/browser"
)

// testAttacks lets the pages of a stranger and of a sibling host try what they
// can on somebody who is signed in.
func testAttacks(t *testing.T, b *browser.Browser, binary string) {
	f := newFront(t)
	id, app := f.origin("id.example.test"), f.origin("app.example.test")
	p := serveBehind(t, binary, "--public-url", id, "--allow-origin", app)
	f.serve("id.example.test", f.pass(p))
	for _, host := range []string{"app.example.test", "blog.example.test", "evil.test"} {
		f.serve(host, http.HandlerFunc(page))
	}
	for _, attacker := range []struct {
		host   string
		cookie bool // whether the browser sends the session along
	}{{"evil.test", false}, {"blog.example.test", true}} {
		t.Run(attacker.host, func(t *testing.T) {
			v := &victim{front: f, tab: b.NewTab(t), id: id, app: app, attacker: f.origin(attacker.host), cookie: attacker.cookie}
			v.tab.Visit(t, app)
			expect(t, v.tab, "sign-in", "200", signIn(id))
			testForms(t, v)
			testFetches(t, v)
			testReading(t, v)
		})
	}
	t.Run("tossed cookies", func(t *testing.T) { testTossing(t, f, p, b.NewTab(t)) })
}

// victim is somebody who is signed in and visits the page of an attacker.
type victim struct {
	front             *front
	tab               *browser.Tab
	id, app, attacker string // origins
	cookie            bool   // whether the session comes with what the attacker sends
}

// attack runs the script in the attacker's page; it must come through to be
// refused, or be stopped by the browser.
func (v *victim) attack(t *testing.T, what string, run func(string), script string, lines ...string) {
	t.Helper()
	v.tab.Visit(t, v.attacker)
	v.front.passed()
	run(script)
	var got []string
	for _, passage := range v.front.passed() {
		if strings.HasSuffix(passage.line, "/favicon.ico") {
			continue
		}
		got = append(got, passage.line)
		if change := !strings.HasPrefix(passage.line, "GET ") && !strings.HasPrefix(passage.line, "OPTIONS "); change && (passage.status < 400 || passage.status > 499) {
			t.Errorf("%s: %s was answered %d", what, passage.line, passage.status)
		}
		if strings.HasPrefix(passage.line, "POST ") && passage.session != v.cookie {
			t.Errorf("%s: %s came with the session: %v", what, passage.line, passage.session)
		}
	}
	if strings.Join(got, ", ") != strings.Join(lines, ", ") {
		t.Errorf("%s: %q came through, want %q", what, got, lines)
	}
	v.tab.Visit(t, v.app)
	expect(t, v.tab, "the session after "+what, "200 Olga Owner", fmt.Sprintf(`
const mine = await call(%q, 'GET /auths/session')
return mine.status + ' ' + mine.json.user.name`, v.id))
}

func testForms(t *testing.T, v *victim) {
	leave := func(script string) { t.Helper(); v.tab.Leave(t, script) }
	form := func(path, encoding, name, value string) string {
		return fmt.Sprintf(`
const form = document.createElement('form')
form.method = 'POST'; form.action = '%s%s'; form.enctype = '%s'
const field = document.createElement('input')
field.name = %q; field.value = %q
form.append(field); document.body.append(form); form.submit()`, v.id, path, encoding, name, value)
	}
	v.attack(t, "a form", leave, form("/auths/logout", "application/x-www-form-urlencoded", "a", "b"), "POST /auths/logout")
	v.attack(t, "a form of several parts", leave, form("/users", "multipart/form-data", "email", "evil@canary.example"), "POST /users")
	v.attack(t, "a form that looks like JSON", leave, form("/users", "text/plain", `{"email":"evil@canary.example","name":"Evil","metadata":{"x":"`, `"}}`), "POST /users")
	v.attack(t, "a form that signs in as the attacker", leave, form("/auths/login", "text/plain", `{"email":"evil@canary.example","password":"`, `"}`), "POST /auths/login")
	v.attack(t, "a link", leave, fmt.Sprintf(`location = '%s/auths/logout'`, v.id), "GET /auths/logout")
}

func testFetches(t *testing.T, v *victim) {
	run := func(want string) func(string) {
		return func(script string) { t.Helper(); expect(t, v.tab, script, want, script) }
	}
	fetch := func(path, options string) string {
		return fmt.Sprintf(`return thrownBy(fetch('%s%s', {credentials: 'include', %s}))`, v.id, path, options)
	}
	const logout, users = "/auths/logout", "/users"
	const user = `body: '{"email":"evil@canary.example","name":"Evil"}'`
	v.attack(t, "an opaque request", run("TypeError"), fetch(logout, `method: 'POST', mode: 'no-cors'`), "POST /auths/logout")
	v.attack(t, "an opaque request with headers", run("TypeError"), fetch(logout, `method: 'POST', mode: 'no-cors', headers: {'x-tenant-schema': 'acme'}`), "POST /auths/logout")
	v.attack(t, "JSON as plain text", run("TypeError"), fetch(users, `method: 'POST', mode: 'no-cors', headers: {'content-type': 'text/plain'}, `+user), "POST /users")
	v.attack(t, "a simple request", run("TypeError"), fetch(users, `method: 'POST', headers: {'content-type': 'text/plain'}, `+user), "POST /users")
	v.attack(t, "a request with headers", run("TypeError"), fetch(logout, `method: 'POST', headers: {'x-tenant-schema': 'acme'}`), "OPTIONS /auths/logout")
	v.attack(t, "a JSON request", run("TypeError"), fetch(users, `method: 'POST', headers: {'content-type': 'application/json', 'x-tenant-schema': 'acme', 'idempotency-key': 'evil'}, `+user), "OPTIONS /users")
	v.attack(t, "another method", run("TypeError"), fetch("/users/"+never, `method: 'DELETE'`), "OPTIONS /users/"+never)
	v.attack(t, "a beacon", run("true"), fmt.Sprintf(`
const sent = navigator.sendBeacon('%s/auths/logout', new Blob(['{}'], {type: 'text/plain'}))
await fetch('%[1]s/livez', {mode: 'no-cors'}).catch(() => null)
return sent`, v.id), "POST /auths/logout", "GET /livez")
}

func testReading(t *testing.T, v *victim) {
	run := func(script string) { t.Helper(); expect(t, v.tab, script, "TypeError", script) }
	v.attack(t, "reading", run, fmt.Sprintf(`return thrownBy(call(%q, 'GET /auths/session'))`, v.id), "OPTIONS /auths/session")
	v.attack(t, "reading without a tenant", run, fmt.Sprintf(`return thrownBy(fetch('%s/auths/session', {credentials: 'include'}))`, v.id), "GET /auths/session")
	v.attack(t, "loading as part of a page", run, fmt.Sprintf(`return thrownBy(fetch('%s/openapi.json', {mode: 'no-cors'}))`, v.id), "GET /openapi.json")
	framed := func(script string) { t.Helper(); expect(t, v.tab, "a frame", "null", script) }
	v.attack(t, "framing", framed, fmt.Sprintf(`
const frame = document.createElement('iframe')
const loads = new Promise(resolve => frame.onload = resolve)
frame.src = '%s/docs'
document.body.append(frame)
await loads
return frame.contentDocument`, v.id), "GET /docs")
}

// testTossing lets a sibling host set cookies of the name that the service uses.
// The name cannot carry the prefix by which browsers would prevent it, so what is
// tested is that nobody acts as another without knowing.
func testTossing(t *testing.T, f *front, p *program, tab *browser.Tab) {
	id, app, blog := f.origin("id.example.test"), f.origin("app.example.test"), f.origin("blog.example.test")
	p.run(t, password, "tenant", "add-owner", "acme", "--email", owner)
	attackers := attackersToken(t, p)
	whoAmI := fmt.Sprintf(`
const mine = await call(%q, 'GET /auths/session')
return mine.status + ' ' + (mine.json.code ?? mine.json.user.name)`, id)
	toss := func(value, attributes string) {
		t.Helper()
		tab.Visit(t, blog)
		tab.Run(t, fmt.Sprintf(`document.cookie = 'session=%s; domain=example.test; secure; %s'`, value, attributes))
		tab.Visit(t, app)
	}
	tab.Visit(t, app)
	expect(t, tab, "sign-in", "200", signIn(id))
	toss("nonsense", "path=/auths")
	expect(t, tab, "with a value of another form", "200 Olga Owner", whoAmI)
	toss(strings.Repeat("A", len(attackers)), "path=/auths")
	expect(t, tab, "with a session that never was", "200 Olga Owner", whoAmI)
	toss(attackers, "path=/auths")
	expect(t, tab, "with the attacker's session", "401 ambiguous-session", whoAmI)
	expect(t, tab, "a new sign-in", "200", signIn(id))
	expect(t, tab, "after it", "200 Olga Owner", whoAmI)
}

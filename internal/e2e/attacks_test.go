package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/e2e/browser"
)

// testAttacks lets pages of another site and of a sibling host, which is in the same domain,
// attack a signed-in user.
func testAttacks(t *testing.T, b *browser.Browser, binary string) {
	t.Parallel()
	f := newReverseProxy(t)
	id, app := f.origin("id.example.test"), f.origin("app.example.test")
	p := serveBehind(t, binary, "--public-url", id, "--allow-origin", app)
	f.serve("id.example.test", f.pass(p))
	for _, host := range []string{"app.example.test", "blog.example.test", "evil.test"} {
		f.serve(host, http.HandlerFunc(page))
	}
	for _, attacker := range []struct {
		host   string
		cookie bool // whether the browser sends the session cookie with the attacker's requests
	}{{"evil.test", false}, {"blog.example.test", true}} {
		t.Run(attacker.host, func(t *testing.T) {
			v := &victim{proxy: f, tab: b.NewTab(t), id: id, app: app, attacker: f.origin(attacker.host), cookie: attacker.cookie}
			v.tab.Visit(t, app)
			expect(t, v.tab, "sign-in", "200", signIn(id))
			testForms(t, v)
			testFetches(t, v)
			testReading(t, v)
		})
	}
	t.Run("tossed cookies", func(t *testing.T) { testTossing(t, f, p, b.NewTab(t)) })
}

// victim is a signed-in user who visits an attacker's page.
type victim struct {
	proxy             *reverseProxy
	tab               *browser.Tab
	id, app, attacker string // origins
	cookie            bool   // whether the attacker's requests include the session cookie
}

// attack runs a script in the attacker's page. Exactly one request must reach the program: the
// one in line, "METHOD /path". If the request is a POST, the program must refuse it. The victim
// must still be signed in afterwards.
func (v *victim) attack(t *testing.T, what, line string, run func(script string), script string) {
	t.Helper()
	v.tab.Visit(t, v.attacker)
	v.proxy.passed()
	run(script)
	passages := v.proxy.awaitPassed(t)
	if len(passages) != 1 || passages[0].line != line {
		t.Fatalf("%s: %+v came through, want %s", what, passages, line)
	}
	switch passage, method := passages[0], strings.Fields(line)[0]; method {
	case http.MethodPost:
		if passage.status < 400 || passage.status > 499 || passage.session != v.cookie {
			t.Errorf("%s: %+v, want it refused, and sent with the session: %v", what, passage, v.cookie)
		}
	case http.MethodOptions:
		if passage.session {
			t.Errorf("%s: the preflight came with the session", what)
		}
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
	v.attack(t, "a form", "POST /auths/logout", leave, form("/auths/logout", "application/x-www-form-urlencoded", "a", "b"))
	v.attack(t, "a form of several parts", "POST /users", leave, form("/users", "multipart/form-data", "email", "evil@canary.example"))
	v.attack(t, "a form that looks like JSON", "POST /users", leave, form("/users", "text/plain", `{"email":"evil@canary.example","name":"Evil","metadata":{"x":"`, `"}}`))
	v.attack(t, "a form that signs in as the attacker", "POST /auths/login", leave, form("/auths/login", "text/plain", `{"email":"evil@canary.example","password":"`, `"}`))
	v.attack(t, "a link", "GET /auths/logout", leave, fmt.Sprintf(`location = '%s/auths/logout'`, v.id))
}

func testFetches(t *testing.T, v *victim) {
	fetch := func(what, line, options string) {
		t.Helper()
		fails := func(script string) { t.Helper(); expect(t, v.tab, what, "TypeError", script) }
		method, path, _ := strings.Cut(line, " ")
		if method == http.MethodOptions {
			method = http.MethodPost
		}
		v.attack(t, what, line, fails, fmt.Sprintf(`return thrownBy(fetch('%s%s', {method: '%s', credentials: 'include', %s}))`, v.id, path, method, options))
	}
	const user = `body: '{"email":"evil@canary.example","name":"Evil"}'`
	fetch("a simple request", "POST /auths/logout", "")
	fetch("an opaque request", "POST /auths/logout", `mode: 'no-cors'`)
	fetch("an opaque request with a header", "POST /auths/logout", `mode: 'no-cors', headers: {'x-tenant-schema': 'acme'}`)
	fetch("JSON as plain text", "POST /users", `headers: {'content-type': 'text/plain'}, `+user)
	fetch("JSON as opaque plain text", "POST /users", `mode: 'no-cors', headers: {'content-type': 'text/plain'}, `+user)
	fetch("a request with a header", "OPTIONS /auths/logout", `headers: {'x-tenant-schema': 'acme'}`)
	fetch("a JSON request", "OPTIONS /users", `headers: {'content-type': 'application/json', 'x-tenant-schema': 'acme', 'idempotency-key': 'evil'}, `+user)
	sent := func(script string) { t.Helper(); expect(t, v.tab, "a beacon", "true", script) }
	v.attack(t, "a beacon", "POST /auths/logout", sent, fmt.Sprintf(`return navigator.sendBeacon('%s/auths/logout', new Blob(['{}'], {type: 'text/plain'}))`, v.id))
}

func testReading(t *testing.T, v *victim) {
	fails := func(script string) { t.Helper(); expect(t, v.tab, script, "TypeError", script) }
	v.attack(t, "reading", "OPTIONS /auths/session", fails, fmt.Sprintf(`return thrownBy(call(%q, 'GET /auths/session'))`, v.id))
	v.attack(t, "reading without a tenant", "GET /auths/session", fails, fmt.Sprintf(`return thrownBy(fetch('%s/auths/session', {credentials: 'include'}))`, v.id))
	v.attack(t, "loading as part of a page", "GET /openapi.json", fails, fmt.Sprintf(`return thrownBy(fetch('%s/openapi.json', {mode: 'no-cors'}))`, v.id))
	script := fmt.Sprintf(`
return new Promise(resolve => {
  const script = document.createElement('script')
  script.onerror = () => resolve('refused')
  script.onload = () => resolve('loaded')
  script.src = '%s/auths/session'
  document.body.append(script)
})`, v.id)
	v.attack(t, "loading as a script", "GET /auths/session", func(script string) { t.Helper(); expect(t, v.tab, "a script", "refused", script) }, script)
}

// testTossing lets a host of the same domain set cookies with the name of the session cookie.
// Browsers prevent such cookies only if the program runs with --host-cookie-prefix. Here it
// does not, so the test checks that the attacker's cookie cannot make a signed-in user act
// with the attacker's session.
func testTossing(t *testing.T, f *reverseProxy, p *program, tab *browser.Tab) {
	id, app, blog := f.origin("id.example.test"), f.origin("app.example.test"), f.origin("blog.example.test")
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

// testTossingAtThePrefix lets a host of the same domain set cookies while the program runs
// with --host-cookie-prefix. These cookies must have no effect.
func testTossingAtThePrefix(t *testing.T, b *browser.Browser, binary string) {
	t.Parallel()
	f := newReverseProxy(t)
	id, app, blog := f.origin("id.example.test"), f.origin("app.example.test"), f.origin("blog.example.test")
	p := serveBehind(t, binary, "--public-url", id, "--allow-origin", app, "--host-cookie-prefix")
	f.serve("id.example.test", f.pass(p))
	for _, host := range []string{"app.example.test", "blog.example.test"} {
		f.serve(host, http.HandlerFunc(page))
	}
	attackers, tab := attackersToken(t, p), b.NewTab(t)
	whoAmI := func(what, want string) {
		t.Helper()
		tab.Visit(t, blog)
		for _, name := range []string{"session", "__Host-session"} {
			tab.Run(t, fmt.Sprintf(`document.cookie = '%s=%s; domain=example.test; path=/; secure'`, name, attackers))
		}
		tab.Visit(t, app)
		expect(t, tab, what, want, fmt.Sprintf(`
const mine = await call(%q, 'GET /auths/session')
return mine.status + ' ' + (mine.json.code ?? mine.json.user.name)`, id))
	}
	whoAmI("nobody is signed in", "401 unauthenticated")
	expect(t, tab, "sign-in", "200", signIn(id))
	whoAmI("the owner is signed in", "200 Olga Owner")
	onlyCookies(t, tab,
		browser.Cookie{Name: "__Host-session", Domain: "id.example.test", Path: "/", HTTPOnly: true, Secure: true, SameSite: "Lax"},
		browser.Cookie{Name: "session", Domain: ".example.test", Path: "/", Secure: true})
}

// attackersToken creates a second user in the tenant, signs the user in, and returns the
// session token.
func attackersToken(t *testing.T, p *program) string {
	t.Helper()
	w := &world{program: p, client: http.DefaultClient, name: "acme"}
	w.owner = (&caller{world: w, tenant: w.name, email: owner}).byHeader(t)
	w.user(t, "eve", "")
	p.run(t, password, "user", "set-password", "--tenant", "acme", "--email", address("eve"), "--password-stdin")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.Address+"/auths/login", strings.NewReader(credentials(address("eve"), password)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "X-Tenant-Schema": {"acme"}}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	for _, cookie := range response.Cookies() {
		if strings.HasSuffix(cookie.Name, "session") {
			return cookie.Value
		}
	}
	t.Fatalf("the attacker did not sign in: %d", response.StatusCode)
	return ""
}

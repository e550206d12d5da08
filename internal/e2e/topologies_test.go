package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/e2e/browser"
)

// TestTopologies runs the topologies of docs/guides/topologies.md in a real browser.
func TestTopologies(t *testing.T) {
	b := browser.Start(t)
	binary := build(t)
	t.Run("same host under a path", func(t *testing.T) { testSameHost(t, b, binary) })
	t.Run("sibling host", func(t *testing.T) { testSiblingHost(t, b, binary) })
	t.Run("back end holds the cookie", func(t *testing.T) { testBackEnd(t, b, binary) })
	t.Run("cookie for a domain", func(t *testing.T) { testCookieDomain(t, b, binary) })
	t.Run("cookies with the prefix", func(t *testing.T) { testTossingAtThePrefix(t, b, binary) })
	t.Run("another site", func(t *testing.T) { testOtherSite(t, b, binary) })
	t.Run("attacks", func(t *testing.T) { testAttacks(t, b, binary) })
}

const owner = "owner@" + canary + ".example"

// serveBehind starts a program that has the tenant acme and trusts a reverse proxy at
// 127.0.0.1.
func serveBehind(t *testing.T, binary string, flags ...string) *program {
	t.Helper()
	p := serve(t, binary, filepath.Join(t.TempDir(), "rolecall.db"), append(flags, "--trusted-proxies", "127.0.0.1")...)
	p.run(t, password, "tenant", "create", "acme", "--owner-email", owner, "--owner-name", "Olga Owner", "--password-stdin")
	return p
}

// signIn returns a script that signs the owner in and returns the status of the response.
func signIn(service string) string {
	return fmt.Sprintf(`return (await call(%q, 'POST /auths/login', %s)).status`, service, credentials(owner, password))
}

// expect runs the script in the page and compares its result with want.
func expect(t *testing.T, tab *browser.Tab, what, want, script string) {
	t.Helper()
	if got := tab.Run(t, script); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// work returns a script that does the work of a typical application. It creates a user, reads
// the user at the address in Location, and changes the user with the ETag. Then it uses the
// ETag again, which must fail, requests a user with an invalid id, and deletes the user. The
// script returns the statuses.
func work(service, host string) string {
	return fmt.Sprintf(`
const service = %q
const created = await call(service, 'POST /users', {email: 'new@canary.example', name: 'Grace Hopper'})
const at = new URL(created.header('location'), %q).pathname
const root = new URL(%[2]q).origin
const read = await call(root, 'GET ' + at)
const tag = read.header('etag')
const changed = await call(root, 'PATCH ' + at, {name: 'Grace B. Hopper'}, {'if-match': tag})
const stale = await call(root, 'PATCH ' + at, {name: 'Grace M. Hopper'}, {'if-match': tag})
const none = await call(service, 'GET /users/none')
const deleted = await call(root, 'DELETE ' + at)
return [created, read, changed, stale, none, deleted].map(answer => answer.status).join(' ') + ' ' + (none.header('x-request-id') == none.json.requestId)`, service, host)
}

const worked = "201 200 200 412 400 204 true"

// onlyCookies checks that the tab has exactly these cookies, in addition to the known-device
// cookie. It ignores the values.
func onlyCookies(t *testing.T, tab *browser.Tab, want ...browser.Cookie) {
	t.Helper()
	got := map[browser.Cookie]bool{}
	for _, cookie := range tab.Cookies(t) {
		cookie.Value = ""
		if cookie.Name != "__Host-rolecall_device" {
			got[cookie] = true
		}
	}
	for _, cookie := range want {
		if !got[cookie] {
			t.Errorf("the browser keeps %+v, want %+v", got, cookie)
		}
		delete(got, cookie)
	}
	if len(got) != 0 {
		t.Errorf("the browser also keeps %+v", got)
	}
}

func testSameHost(t *testing.T, b *browser.Browser, binary string) {
	t.Parallel()
	f := newReverseProxy(t)
	public := f.origin("app.example.test") + "/people"
	p := serveBehind(t, binary, "--public-url", public)
	mux := http.NewServeMux()
	mux.Handle("/people/", f.pass(p))
	mux.HandleFunc("/", page)
	sentBeside := make(chan bool, 1)
	mux.HandleFunc("/invoices", func(w http.ResponseWriter, r *http.Request) {
		sentBeside <- len(r.CookiesNamed("session")) == 1
		page(w, r)
	})
	f.serve("app.example.test", mux)

	tab := b.NewTab(t)
	tab.Visit(t, f.origin("app.example.test")+"/")
	expect(t, tab, "sign-in", "200", signIn("/people"))
	onlyCookies(t, tab, browser.Cookie{Name: "session", Domain: "app.example.test", Path: "/", HTTPOnly: true, Secure: true, SameSite: "Lax"})
	expect(t, tab, "what scripts see of the cookie", "false", `return document.cookie.includes('session')`)
	expect(t, tab, "work", worked, work("/people", public))
	tab.Visit(t, f.origin("app.example.test")+"/invoices")
	if !<-sentBeside {
		t.Error("what is served beside the base does not get the cookie")
	}
	expect(t, tab, "session after a reload", "200", `return (await call('/people', 'GET /auths/session')).status`)
	expect(t, tab, "sign-out", "204", `return (await call('/people', 'POST /auths/logout')).status`)
	expect(t, tab, "session after sign-out", "401", `return (await call('/people', 'GET /auths/session')).status`)
	onlyCookies(t, tab)
}

func testSiblingHost(t *testing.T, b *browser.Browser, binary string) {
	t.Parallel()
	f := newReverseProxy(t)
	id, app, blog, evil := f.origin("id.example.test"), f.origin("app.example.test"), f.origin("blog.example.test"), f.origin("evil.test")
	p := serveBehind(t, binary, "--public-url", id, "--allow-origin", app)
	f.serve("id.example.test", f.pass(p))
	for _, host := range []string{"app.example.test", "blog.example.test", "evil.test"} {
		f.serve(host, http.HandlerFunc(page))
	}
	tab := b.NewTab(t)
	tab.Visit(t, app)
	expect(t, tab, "sign-in", "200", signIn(id))
	onlyCookies(t, tab, browser.Cookie{Name: "session", Domain: "id.example.test", Path: "/", HTTPOnly: true, Secure: true, SameSite: "Lax"})
	expect(t, tab, "work", worked, work(id, id))
	expect(t, tab, "without credentials", "401", fmt.Sprintf(`return (await fetch('%s/auths/session', {headers: {'x-tenant-schema': 'acme'}})).status`, id))

	f.passed()
	for _, other := range []string{blog, evil} {
		tab.Visit(t, other)
		expect(t, tab, other+" reads", "TypeError", fmt.Sprintf(`return thrownBy(call(%q, 'GET /auths/session'))`, id))
		expect(t, tab, other+" signs in", "TypeError", fmt.Sprintf(`return thrownBy(call(%q, 'POST /auths/login', {}))`, id))
	}
	for _, passage := range f.passed() {
		if passage.line != "OPTIONS /auths/session" && passage.line != "OPTIONS /auths/login" {
			t.Errorf("more than preflights came through: %+v", passage)
		}
	}
	tab.Visit(t, app)
	expect(t, tab, "session in the end", "200", fmt.Sprintf(`return (await call(%q, 'GET /auths/session')).status`, id))
}

// testOtherSite checks that users cannot sign in from an allowed origin on another site,
// because browsers would not send the cookie. The response must have the error code
// cross-site.
func testOtherSite(t *testing.T, b *browser.Browser, binary string) {
	t.Parallel()
	f := newReverseProxy(t)
	id, app := f.origin("id.example.test"), f.origin("app.other.test")
	p := serveBehind(t, binary, "--public-url", id, "--allow-origin", app)
	f.serve("id.example.test", f.pass(p))
	f.serve("app.other.test", http.HandlerFunc(page))
	if !strings.Contains(p.Log(), "--allow-origin "+app+" is on another site than --public-url "+id) {
		t.Error("the log does not warn of the origin")
	}
	tab := b.NewTab(t)
	tab.Visit(t, app)
	expect(t, tab, "sign-in", "403 cross-site", fmt.Sprintf(`const answer = await call(%q, 'POST /auths/login', %s); return answer.status + ' ' + answer.json.code`, id, credentials(owner, password)))
	onlyCookies(t, tab)
}

func testBackEnd(t *testing.T, b *browser.Browser, binary string) {
	t.Parallel()
	f := newReverseProxy(t)
	p := serveBehind(t, binary, "--public-url", "https://id.internal.test")
	backEnd := newBackEnd(p)
	f.serve("shop.example.test", backEnd)
	f.serve("evil.test", http.HandlerFunc(page))
	shop := f.origin("shop.example.test")

	tab := b.NewTab(t)
	tab.Visit(t, shop)
	expect(t, tab, "before sign-in", "401", `return (await fetch('/me')).status`)
	expect(t, tab, "sign-in", "204", fmt.Sprintf(`return (await fetch('/sign-in', {method: 'POST', body: JSON.stringify(%s)})).status`, credentials(owner, password)))
	onlyCookies(t, tab, browser.Cookie{Name: "__Host-shop", Domain: "shop.example.test", Path: "/", HTTPOnly: true, Secure: true, SameSite: "Lax"})
	expect(t, tab, "who am I", "Olga Owner", `return (await fetch('/me')).text()`)

	tab.Visit(t, f.origin("evil.test"))
	expect(t, tab, "another site signs out", "nothing", fmt.Sprintf(`return thrownBy(fetch('%s/sign-out', {method: 'POST', mode: 'no-cors', credentials: 'include'}))`, shop))
	tab.Visit(t, shop)
	expect(t, tab, "still there", "Olga Owner", `return (await fetch('/me')).text()`)
	expect(t, tab, "sign-out", "204", `return (await fetch('/sign-out', {method: 'POST'})).status`)
	expect(t, tab, "after sign-out", "401", `return (await fetch('/me')).status`)
}

func testCookieDomain(t *testing.T, b *browser.Browser, binary string) {
	t.Parallel()
	f := newReverseProxy(t)
	id, app := f.origin("id.example.test"), f.origin("app.example.test")
	p := serveBehind(t, binary, "--public-url", id, "--allow-origin", app, "--cookie-domain", "example.test")
	f.serve("id.example.test", f.pass(p))
	sent := make(chan int, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/invoices", func(w http.ResponseWriter, r *http.Request) {
		sent <- len(r.CookiesNamed("session"))
		page(w, r)
	})
	f.serve("app.example.test", mux)
	tab := b.NewTab(t)
	visit := func(cookies int) {
		t.Helper()
		tab.Visit(t, app+"/invoices")
		if got := <-sent; got != cookies {
			t.Errorf("the sibling gets %d session cookies, want %d", got, cookies)
		}
	}
	visit(0)
	expect(t, tab, "sign-in", "200", signIn(id))
	onlyCookies(t, tab, browser.Cookie{Name: "session", Domain: ".example.test", Path: "/", HTTPOnly: true, Secure: true, SameSite: "Lax"})
	visit(1)
	expect(t, tab, "sign-out", "204", fmt.Sprintf(`return (await call(%q, 'POST /auths/logout')).status`, id))
	visit(0)
}

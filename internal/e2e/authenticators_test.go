package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/internal/e2e/browser"
)

// TestPasskeysInABrowser follows docs/guides/second-factors.md in a real browser with a
// virtual authenticator.
func TestPasskeysInABrowser(t *testing.T) {
	b := browser.Start(t)
	binary := build(t)
	t.Run("on the host of the service", func(t *testing.T) {
		t.Parallel()
		f := newReverseProxy(t)
		id := f.origin("id.example.test")
		p := serveBehind(t, binary, "--public-url", id+"/people")
		mux := http.NewServeMux()
		mux.Handle("/people/", f.pass(p))
		mux.HandleFunc("/", page)
		f.serve("id.example.test", mux)
		testPasskeysInABrowser(t, b, id, id+"/people")
	})
	t.Run("on a sibling host", func(t *testing.T) {
		t.Parallel()
		f := newReverseProxy(t)
		id, app, blog := f.origin("id.example.test"), f.origin("app.example.test"), f.origin("blog.example.test")
		p := serveBehind(t, binary, "--public-url", id, "--allow-origin", app, "--passkey-domain", "example.test")
		f.serve("id.example.test", f.pass(p))
		f.serve("app.example.test", http.HandlerFunc(page))
		f.serve("blog.example.test", http.HandlerFunc(page))
		tab := testPasskeysInABrowser(t, b, app, id)
		testStolenAnswer(t, tab, app, blog, id)
	})
}

// ceremonies defines the JavaScript functions that create and use a passkey, as in the guide.
const ceremonies = `
const {parseCreationOptionsFromJSON: forCreation, parseRequestOptionsFromJSON: forRequest} = PublicKeyCredential
const create = async options => (await navigator.credentials.create({publicKey: forCreation.call(PublicKeyCredential, options)})).toJSON()
const get = async options => (await navigator.credentials.get({publicKey: forRequest.call(PublicKeyCredential, options)})).toJSON()
const says = answer => answer.status + ' ' + (answer.json?.code ?? '')
`

// testPasskeysInABrowser creates a passkey in a page. It signs in with the passkey as a second
// factor, and then with the passkey alone. It returns the browser tab, whose authenticator
// still has the passkey.
func testPasskeysInABrowser(t *testing.T, b *browser.Browser, page, service string) *browser.Tab {
	run := func(tab *browser.Tab, what, want, script string) {
		t.Helper()
		expect(t, tab, what, want, ceremonies+fmt.Sprintf("const service = %q, credentials = %s\n", service, credentials(owner, password))+script)
	}
	tab := b.NewTab(t)
	authenticator := tab.AddAuthenticator(t)
	tab.Visit(t, page)
	expect(t, tab, "sign-in by password", "200", signIn(service))
	run(tab, "a new passkey", "201 10 codes", `
const {json: {publicKey}} = await call(service, 'POST /auths/passkeys/options')
const made = await call(service, 'POST /auths/passkeys', {name: 'Browser', passkey: await create(publicKey)})
return made.status + ' ' + made.json.recoveryCodes.length + ' codes'`)
	run(tab, "the same authenticator again", "InvalidStateError", `
const {json: {publicKey}} = await call(service, 'POST /auths/passkeys/options')
return thrownBy(create(publicKey))`)

	const asSecondFactor = `
const {json: problem} = await call(service, 'POST /auths/login', credentials)
return problem.methods + ' ' + says(await call(service, 'POST /auths/login/second-factor', {challenge: problem.challenge, passkey: await get(problem.publicKey)}))`
	run(tab, "as a second factor", "passkey,recovery-code 200 ", asSecondFactor)
	const alone = `
const {json: {publicKey}} = await call(service, 'POST /auths/passkeys/sign-in-options')
return says(await call(service, 'POST /auths/passkeys/sign-in', {passkey: await get(publicKey)}))`
	run(tab, "sign-out", "204 ", `return says(await call(service, 'POST /auths/logout'))`)
	run(tab, "alone", "200 ", alone)
	expect(t, tab, "the session after that", "200", fmt.Sprintf(`return (await call(%q, 'GET /auths/session')).status`, service))
	run(tab, "the same answer again", "401 passkey-refused", `
const {json: {publicKey}} = await call(service, 'POST /auths/passkeys/sign-in-options')
const passkey = await get(publicKey)
await call(service, 'POST /auths/passkeys/sign-in', {passkey})
return says(await call(service, 'POST /auths/passkeys/sign-in', {passkey}))`)

	authenticator.Verify(t, false)
	run(tab, "alone, with the wrong finger", "NotAllowedError", `return thrownBy((async () => {`+alone+`})())`)
	run(tab, "alone, with the finger left out by the page", "401 passkey-refused", `
const {json: {publicKey}} = await call(service, 'POST /auths/passkeys/sign-in-options')
publicKey.userVerification = 'discouraged'
return says(await call(service, 'POST /auths/passkeys/sign-in', {passkey: await get(publicKey)}))`)
	authenticator.Verify(t, true)
	return tab
}

// testStolenAnswer gets a passkey signature on a page of a sibling host whose origin is not
// allowed. The authenticator signs, because both hosts belong to the passkey's domain. The
// service must reject the signature, because the signed data contains the origin of that page.
func testStolenAnswer(t *testing.T, tab *browser.Tab, app, blog, service string) {
	tab.Visit(t, app)
	options := tab.Run(t, fmt.Sprintf(`return JSON.stringify((await call(%q, 'POST /auths/passkeys/sign-in-options')).json.publicKey)`, service))
	tab.Visit(t, blog)
	stolen := tab.Run(t, ceremonies+`return JSON.stringify(await get(`+options+`))`)
	tab.Visit(t, app)
	expect(t, tab, "what another sibling's page was answered", "401 passkey-refused",
		ceremonies+fmt.Sprintf(`return says(await call(%q, 'POST /auths/passkeys/sign-in', {passkey: %s}))`, service, stolen))
}

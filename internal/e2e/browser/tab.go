package browser

import (
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

// Tab is a browser tab that shares no cookies with other tabs.
type Tab struct {
	browser *Browser
	context string
	session string
	loads   chan struct{}
}

// Cookie is a cookie as the browser stores it.
type Cookie struct {
	Name, Value string
	Domain      string // with a leading dot if subdomains get it too
	Path        string
	HTTPOnly    bool `json:"httpOnly"`
	Secure      bool
	SameSite    string // Strict, Lax or None; empty if the cookie has none
}

// NewTab opens an empty tab. It shares no cookies or storage with other tabs.
func (b *Browser) NewTab(t testing.TB) *Tab {
	t.Helper()
	var context struct{ BrowserContextID string }
	b.call(t, "", "Target.createBrowserContext", nil, &context)
	var target struct{ TargetID string }
	b.call(t, "", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": context.BrowserContextID}, &target)
	var attached struct{ SessionID string }
	b.call(t, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	tab := &Tab{browser: b, context: context.BrowserContextID, session: attached.SessionID, loads: make(chan struct{}, 64)}
	b.mu.Lock()
	b.loads[tab.session] = tab.loads
	b.mu.Unlock()
	b.call(t, tab.session, "Page.enable", nil, nil)
	return tab
}

// Visit goes to the address as if a user had typed it in, and waits until the page has
// loaded.
func (tab *Tab) Visit(t testing.TB, url string) {
	t.Helper()
	var result struct{ ErrorText string }
	tab.browser.call(t, tab.session, "Page.navigate", map[string]any{"url": url}, &result)
	if result.ErrorText != "" {
		t.Fatalf("%s: %s", url, result.ErrorText)
	}
	tab.awaitLoad(t)
}

// Leave runs a script that leads to another page, for example by sending a form, and waits
// until that page has loaded.
func (tab *Tab) Leave(t testing.TB, script string) {
	t.Helper()
	tab.Run(t, script)
	tab.awaitLoad(t)
}

// Run runs script in the page, as the body of an async function. It returns the script's
// result, converted to a string. An exception in the script fails the test.
func (tab *Tab) Run(t testing.TB, script string) string {
	t.Helper()
	var result struct {
		Result           struct{ Value string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	tab.browser.call(t, tab.session, "Runtime.evaluate", map[string]any{
		"expression": "(async () => {" + script + "\n})().then(String)", "awaitPromise": true, "returnByValue": true,
	}, &result)
	if thrown := result.ExceptionDetails; thrown.Text != "" {
		t.Fatalf("%s: %s in: %s", thrown.Text, thrown.Exception.Description, script)
	}
	return result.Result.Value
}

// Cookies returns all cookies of the tab.
func (tab *Tab) Cookies(t testing.TB) []Cookie {
	t.Helper()
	var result struct{ Cookies []Cookie }
	tab.browser.call(t, "", "Storage.getCookies", map[string]any{"browserContextId": tab.context}, &result)
	return result.Cookies
}

func (tab *Tab) awaitLoad(t testing.TB) {
	t.Helper()
	select {
	case <-tab.loads:
	case <-time.After(patience.Limit):
		t.Fatal("no page has loaded")
	}
}

// Authenticator is a virtual authenticator of a tab.
type Authenticator struct {
	tab *Tab
	id  string
}

// AddAuthenticator adds a virtual authenticator to the tab. The authenticator stores passkeys,
// as a phone or a computer does, and responds without user interaction. Other tabs cannot use
// it.
func (tab *Tab) AddAuthenticator(t testing.TB) *Authenticator {
	t.Helper()
	tab.browser.call(t, tab.session, "WebAuthn.enable", nil, nil)
	var added struct{ AuthenticatorID string }
	tab.browser.call(t, tab.session, "WebAuthn.addVirtualAuthenticator", map[string]any{"options": map[string]any{
		"protocol": "ctap2", "ctap2Version": "ctap2_1", "transport": "internal",
		"hasResidentKey": true, "hasUserVerification": true, "isUserVerified": true, "automaticPresenceSimulation": true,
	}}, &added)
	return &Authenticator{tab, added.AuthenticatorID}
}

// Verify sets whether the authenticator's next user verifications succeed, as if the user had
// the right fingerprint.
func (a *Authenticator) Verify(t testing.TB, verified bool) {
	t.Helper()
	a.tab.browser.call(t, a.tab.session, "WebAuthn.setUserVerified", map[string]any{"authenticatorId": a.id, "isUserVerified": verified}, nil)
}

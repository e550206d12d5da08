package console

import (
	"encoding/base32"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"rsc.io/qr"

	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
)

// fieldOf returns an attribute of the field of the page.
func fieldOf(t *testing.T, page, name, attribute string) string {
	t.Helper()
	input := regexp.MustCompile(`<input[^>]* name="` + regexp.QuoteMeta(name) + `"[^>]*>`).FindString(page)
	found := regexp.MustCompile(` ` + attribute + `="([^"]*)"`).FindStringSubmatch(input)
	if found == nil {
		t.Fatalf("no %s of %s: %s", attribute, name, page)
	}
	return html.UnescapeString(found[1])
}

// codeOf returns a code from an authenticator app that has the secret on the page. later
// shifts the time of the code by periods of 30 seconds.
func (f *fixture) codeOf(page string, later int64) string {
	f.t.Helper()
	uri, err := url.Parse(html.UnescapeString(regexp.MustCompile(`href="(otpauth:[^"]+)"`).FindStringSubmatch(page)[1]))
	if err != nil {
		f.t.Fatal(err)
	}
	raw, err := base32.StdEncoding.DecodeString(uri.Query().Get("secret"))
	if err != nil {
		f.t.Fatal(err)
	}
	return secret.TOTP(raw).Code(f.node.Access.Now().Std().Unix()/30 + later)
}

// addApp sets up an authenticator app for the user of the session cookie. It returns the
// page with the app's secret, and the recovery codes.
func (f *fixture) addApp(cookie string) (page string, codes []string) {
	f.t.Helper()
	page = f.send(http.MethodPost, "/console/acme/account/app", cookie, nil).body
	a := f.send(http.MethodPost, "/console/acme/account/app/confirm", cookie, url.Values{"code": {f.codeOf(page, 0)}})
	for _, match := range regexp.MustCompile(`<li><code>([0-9a-z-]{32})</code>`).FindAllStringSubmatch(a.body, -1) {
		codes = append(codes, match[1])
	}
	if a.StatusCode != http.StatusOK || len(codes) != secret.RecoveryCodes {
		f.t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return page, codes
}

func TestTheCodeForACameraIsTheOneOfTheText(t *testing.T) {
	for _, text := range []string{"", "otpauth://totp/Acme:ada%40example.com?issuer=Acme&secret=JBSWY3DPEHPK3PXP", strings.Repeat("é", 400)} {
		code, err := qr.Encode(text, qr.L)
		if err != nil {
			t.Fatal(err)
		}
		path, side := qrPath(text)
		drawn := map[[2]int]bool{}
		for _, run := range regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`).FindAllStringSubmatch(path, -1) {
			x, y, length := number(t, run[1]), number(t, run[2]), number(t, run[3])
			if run[3] != run[4] {
				t.Fatalf("not closed: %s", run[0])
			}
			for i := range length {
				drawn[[2]int{x + i, y}] = true
			}
		}
		for y := range side {
			for x := range side {
				if drawn[[2]int{x, y}] != code.Black(x-quiet, y-quiet) {
					t.Fatalf("%q: %d %d is wrong", text, x, y)
				}
			}
		}
		if side != code.Size+2*quiet || len(drawn) < side {
			t.Errorf("%q: %d wide, %d modules", text, side, len(drawn))
		}
	}
	if path, side := qrPath(strings.Repeat("x", 3000)); path != "" || side != 0 {
		t.Errorf("more than a code holds: %d", side)
	}
}

func TestTheSecretOfAnAppIsInTheAnswerAlone(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	if a := f.get("/console/acme/account/app", cookie); a.StatusCode != http.StatusOK || strings.Contains(a.body, "otpauth") {
		t.Errorf("looking made one: %d %s", a.StatusCode, a.body)
	}
	begun := f.send(http.MethodPost, "/console/acme/account/app", cookie, nil)
	if begun.Header.Get("Cache-Control") != "no-store" || !strings.Contains(begun.body, `<svg class="qr"`) || strings.Contains(begun.body, "data:") {
		t.Errorf("%v %s", begun.Header, begun.body)
	}
	key := fieldOf(t, begun.body, "secret", "value")
	wrong := f.send(http.MethodPost, "/console/acme/account/app/confirm", cookie, url.Values{"code": {"000000"}, "secret": {key}, "uri": {fieldOf(t, begun.body, "uri", "value")}})
	if wrong.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(wrong.body, `id="fault-code"`) || !strings.Contains(wrong.body, key) {
		t.Errorf("%d %s", wrong.StatusCode, wrong.body)
	}
	odd := f.send(http.MethodPost, "/console/acme/account/app/confirm", cookie, url.Values{"code": {"000000"}, "secret": {"<b>"}, "uri": {"javascript:alert(1)"}})
	if strings.Contains(odd.body, `href="javascript`) || strings.Contains(odd.body, "<b>") {
		t.Errorf("%s", odd.body)
	}
	right := f.send(http.MethodPost, "/console/acme/account/app/confirm", cookie, url.Values{"code": {f.codeOf(begun.body, 0)}})
	if right.StatusCode != http.StatusOK || right.Header.Get("Location") != "" || strings.Count(right.body, "<li><code>") != secret.RecoveryCodes {
		t.Errorf("%d %s", right.StatusCode, right.body)
	}
	for _, path := range []string{"/console/acme/account", "/console/acme/account/app", "/console/acme/account/app/confirm", "/console/acme/account/recovery-codes"} {
		if a := f.get(path, cookie); strings.Contains(a.body, key) || strings.Contains(a.body, "<li><code>") {
			t.Errorf("%s shows it again", path)
		}
	}
}

func TestReauthenticationAcceptsASecondFactor(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", nil)
	cookie := f.signIn("acme", ownerEmail)
	page, codes := f.addApp(cookie)
	path := "/console/acme/users/" + user.ID.String() + "/delete"
	f.await()
	shown := f.get(path, cookie).body
	for _, name := range []string{"current-password", "current-code", "current-recoveryCode"} {
		fieldOf(t, shown, name, "id")
	}
	for field, form := range map[string]url.Values{
		"current-password":     {"current-password": {"not the password"}, "current-code": {f.codeOf(page, 1)}},
		"current-code":         {"current-password": {password}, "current-code": {"000000"}},
		"current-recoveryCode": {"current-password": {password}, "current-recoveryCode": {"0000-0000-0000-0000"}},
	} {
		if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="fault-`+field+`"`) || strings.Contains(a.body, password) {
			t.Errorf("%s: %d %s", field, a.StatusCode, a.body)
		}
	}
	if a := f.send(http.MethodPost, path, cookie, url.Values{"current-password": {password}}); a.StatusCode != http.StatusUnauthorized || !strings.Contains(a.body, "your second factor is also required") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	confirmed := f.send(http.MethodPost, path, cookie, url.Values{"current-password": {password}, "current-code": {f.codeOf(page, 1)}})
	if confirmed.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", confirmed.StatusCode, confirmed.body)
	}
	old := cookie
	if set := confirmed.Cookies(); len(set) != 1 || set[0].Name != "console-acme" || strings.HasSuffix(old, set[0].Value) {
		t.Fatalf("a confirmation sets %q", confirmed.Header["Set-Cookie"])
	} else {
		cookie = "console-acme=" + set[0].Value
	}
	for _, tab := range []string{old, cookie, old} {
		if a := f.get("/console/acme/account", tab); a.StatusCode != http.StatusOK {
			t.Errorf("a tab is answered %d", a.StatusCode)
		}
	}
	if shown := f.get("/console/acme/account/recovery-codes", cookie).body; strings.Contains(shown, "current-password") {
		t.Error("it is asked for twice")
	}
	f.await()
	made := f.send(http.MethodPost, "/console/acme/account/recovery-codes", cookie, url.Values{"current-password": {password}, "current-recoveryCode": {codes[0]}})
	if made.StatusCode != http.StatusOK || strings.Count(made.body, "<li><code>") != secret.RecoveryCodes {
		t.Errorf("%d %s", made.StatusCode, made.body)
	}
}

func TestAPasskeyIsMadeRenamedConfirmedByAndRemoved(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	device := passkeytest.New("https://example.com")
	shown := f.get("/console/acme/account/passkeys/add", cookie).body
	form := url.Values{"idempotency-key": {fieldOf(t, shown, "idempotency-key", "value")}, "name": {`<b>Key</b>`}, "passkey": {"{}"}}
	if a := f.send(http.MethodPost, "/console/acme/account/passkeys", cookie, form); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "data-passkey-says>Must be the response") || fieldOf(t, a.body, "name", "value") != `<b>Key</b>` {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form.Set("passkey", string(device.Create(t, []byte(fieldOf(t, shown, "passkey", "data-passkey")))))
	first := f.send(http.MethodPost, "/console/acme/account/passkeys", cookie, form)
	if first.StatusCode != http.StatusOK || strings.Count(first.body, "<li><code>") != secret.RecoveryCodes {
		t.Fatalf("%d %s", first.StatusCode, first.body)
	}
	if again := f.send(http.MethodPost, "/console/acme/account/passkeys", cookie, form); again.StatusCode != http.StatusSeeOther || strings.Contains(again.body, "<li><code>") {
		t.Errorf("sent twice: %d %s", again.StatusCode, again.body)
	}
	account := f.get("/console/acme/account", cookie).body
	if strings.Contains(account, "<b>Key") || strings.Count(account, "&lt;b&gt;Key") != 1 {
		t.Errorf("%s", account)
	}
	address := strings.TrimSuffix(regexp.MustCompile(`/console/acme/account/passkeys/[\w-]+/rename`).FindString(account), "/rename")

	f.await()
	shown = f.get(address+"/rename", cookie).body
	renamed := url.Values{"name": {"Pocket"}, "current-password": {password}, "current-passkey": {"{"}}
	if a := f.send(http.MethodPost, address+"/rename", cookie, renamed); a.StatusCode != http.StatusUnprocessableEntity || fieldOf(t, a.body, "name", "value") != "Pocket" || !strings.Contains(a.body, "Does not match any of your second factors") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	renamed.Set("current-passkey", string(device.Get(t, []byte(fieldOf(t, shown, "current-passkey", "data-passkey")))))
	if a := f.send(http.MethodPost, address+"/rename", cookie, renamed); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if account := f.get("/console/acme/account", cookie).body; !strings.Contains(account, "<bdi>Pocket</bdi>") {
		t.Errorf("%s", account)
	}
	if a := f.send(http.MethodPost, address+"/remove", cookie, nil); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, below := range []string{"/rename", "/remove"} {
		if a := f.get(address+below, cookie); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s of what is gone: %d", below, a.StatusCode)
		}
	}
}

func TestThePasswordIsChangedAtItsForm(t *testing.T) {
	f := newFixture(t)
	cookie, other := f.signIn("acme", ownerEmail), f.signIn("acme", ownerEmail)
	const next = "another sentence of a few words"
	for field, form := range map[string]url.Values{
		"currentPassword": {"currentPassword": {"not the password"}, "newPassword": {next}},
		"newPassword":     {"currentPassword": {password}, "newPassword": {"short"}},
	} {
		if a := f.send(http.MethodPost, "/console/acme/account/password", cookie, form); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="fault-`+field+`"`) || strings.Contains(a.body, next) {
			t.Errorf("%s: %d %s", field, a.StatusCode, a.body)
		}
	}
	if a := f.send(http.MethodPost, "/console/acme/account/password", cookie, url.Values{"currentPassword": {password}, "newPassword": {next}}); a.Header.Get("Location") != "/console/acme/account?done=password-changed" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for cookie, status := range map[string]int{cookie: http.StatusOK, other: http.StatusSeeOther} {
		if a := f.get("/console/acme/account", cookie); a.StatusCode != status {
			t.Errorf("%d, not %d", a.StatusCode, status)
		}
	}
}

func TestAUserWhoEndsTheCurrentSessionIsSignedOut(t *testing.T) {
	f := newFixture(t)
	ways := []string{"/sign-out", "/sessions/{session}/end"}
	for _, way := range ways {
		cookie := f.signIn("acme", ownerEmail)
		list := f.get("/console/acme/users/"+f.owner.ID.String()+"/sessions", cookie).body
		own := regexp.MustCompile(`This session</span>(?s:.*?)/sessions/([0-9a-f-]{36})/end`).FindStringSubmatch(list)
		path := "/console/acme/users/" + f.owner.ID.String() + strings.Replace(way, "{session}", own[1], 1)
		a := f.send(http.MethodPost, path, cookie, nil)
		if a.Header.Get("Location") != "/console/acme/sign-in?done=signed-out" || !strings.Contains(a.Header.Get("Set-Cookie"), "console-acme=; ") {
			t.Errorf("%s: %d %v", way, a.StatusCode, a.Header)
		}
	}
}

func TestTheAccountOfAUserWithoutPermissions(t *testing.T) {
	f := newFixture(t)
	f.hire("eve@example.com", "Eve Adams", nil)
	f.hire("sam@example.com", "Sam Scoped", []string{"users:read", "shop/invoices:approve"}, "Sales")
	eve, sam := f.signIn("acme", "eve@example.com"), f.signIn("acme", "sam@example.com")
	if a := f.get("/console/acme/", eve); a.Header.Get("Location") != "/console/acme/account" {
		t.Errorf("%d %s", a.StatusCode, a.Header.Get("Location"))
	}
	if a := f.get("/console/acme/account", eve); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "You can only manage your own account") || strings.Contains(a.body, "href=\"/console/acme/users\"") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	a := f.get("/console/acme/account", sam)
	for _, part := range []string{"users:read", "In Sales", "shop/invoices:approve", msg(applicationsTitle)} {
		if !strings.Contains(a.body, part) {
			t.Errorf("lacks %s: %s", part, a.body)
		}
	}
}

package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

func testTenant(t *testing.T, p *program) {
	t.Run("reading", func(t *testing.T) { testReadingTenant(t, newWorld(t, p)) })
	t.Run("summary", func(t *testing.T) { testSummary(t, newWorld(t, p)) })
	t.Run("settings", func(t *testing.T) { testSettings(t, newWorld(t, p)) })
	t.Run("conditional", func(t *testing.T) { testConditionalTenant(t, newWorld(t, p)) })
	t.Run("logo", func(t *testing.T) { testLogo(t, newWorld(t, p)) })
	t.Run("effect", func(t *testing.T) { testEffectOfSettings(t, newWorld(t, p)) })
	t.Run("effect on mail", func(t *testing.T) { testEffectOfSettingsOnMail(t, newWorld(t, p)) })
}

func testReadingTenant(t *testing.T, w *world) {
	admin := w.guest(t, "admin", "")
	w.assign(t, admin.id, w.builtIn(t, "administrator"), "")
	blind := w.holder(t, "blind", "", "", "tenant:update")
	scoped := w.holder(t, "scoped", "", "Sales", "tenant:read", "tenant:update")
	standard := map[string]any{"/name": w.name, "/status": "active", "/settings/secondFactor/required": "none", "/settings/mailSenderName": nil, "/settings/brandColor": nil, "/logo": nil}
	for _, s := range numberSettings {
		standard["/settings/"+s.name] = s.standard
	}
	numbers := 0
	settings, _ := w.owner.do(t, "GET /tenant", "").expect(t, 200).value("/settings").(map[string]any)
	for _, value := range settings {
		if _, isNumber := value.(float64); isNumber {
			numbers++
		}
	}
	if numbers != len(numberSettings) {
		t.Errorf("%d settings are numbers, and numberSettings has %d", numbers, len(numberSettings))
	}
	play(t, []scenario{
		{name: "an owner", as: w.owner, send: "GET /tenant", status: 200, members: everyTenantMember, has: standard},
		{name: "an administrator", as: admin, send: "GET /tenant", status: 200, members: everyTenantMember},
		{name: "an administrator changes nothing", as: admin, send: "PATCH /tenant", body: `{"displayName":"Mine"}`, status: 403, code: "permission-denied"},
		{name: "who may only change", as: blind, send: "GET /tenant", status: 403, code: "permission-denied"},
		{name: "who may only change, changes", as: blind, send: "PATCH /tenant", body: `{"displayName":"Changed blindly"}`, status: 200, members: "id", headers: map[string]string{"Etag": ""}},
		{name: "what counts for nothing within a reach", as: scoped, send: "GET /tenant", status: 403, code: "permission-denied"},
		{name: "nor for a change", as: scoped, send: "PATCH /tenant", body: `{"displayName":"Mine"}`, status: 403, code: "permission-denied"},
		{name: "nobody", as: w.anonymous(), send: "GET /tenant", status: 401},
		{name: "it is not deleted here", as: w.owner, send: "DELETE /tenant", status: 405},
		{name: "the change is there", as: w.owner, send: "GET /tenant", status: 200, has: map[string]any{"/displayName": "Changed blindly"}},
	})
}

// numberSettings has the default of each setting that is a number, and its least and greatest value in a new tenant of
// these tests, if no other setting is changed.
var numberSettings = []struct {
	name     string
	min, max int
	standard float64
}{
	{"sessionAbsoluteSeconds", 300, 7776000, 604800},
	{"sessionIdleSeconds", 60, 604800, 43200},
	{"refreshGraceSeconds", 0, 300, 10},
	{"idempotencyKeptSeconds", 86400, 2592000, 86400},
	{"eventsKeptSeconds", 7776000, 316224000, 34560000},
	{"reauthenticationSeconds", 0, 86400, 900},
	{"invitationSeconds", 300, 2592000, 259200},
	{"passwordResetSeconds", 300, 86400, 3600},
	{"passwordMinimum", 15, 64, 15},
	{"sessionsPerUser", 1, 1000, 100},
	{"nameMinimum", 1, 3, 3},
}

// testSummary checks the parts of the tenant's summary. Callers whose permissions are limited
// to a department must get 403.
func testSummary(t *testing.T, w *world) {
	before := w.owner.do(t, "GET /tenant/summary", "").expect(t, 200)
	user := w.owner.do(t, "POST /users", `{"email":"ada@example.org","name":"Ada Lovelace","invite":true}`).expect(t, 201).text("/id")
	role := w.role(t, "Temporary", "users:read")
	soon := time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	w.owner.do(t, "PUT /users/"+user+"/roles/"+role, `{"expiresAt":"`+soon+`"}`).expect(t, 201)
	w.owner.do(t, "PUT /users/"+user+"/roles/"+w.role(t, "Later", "users:read"), `{"expiresAt":"`+time.Now().Add(30*24*time.Hour).UTC().Format(time.RFC3339)+`"}`).expect(t, 201)
	account := w.owner.do(t, "POST /service-accounts", `{"name":"Nightly import"}`).expect(t, 201).text("/id")
	w.owner.do(t, "PUT /service-accounts/"+account+"/roles/"+role, `{}`).expect(t, 201)
	token := w.owner.do(t, "POST /service-accounts/"+account+"/tokens", `{"name":"Nightly job","permissions":["users:read"],"expiresAt":"`+soon+`"}`).expect(t, 201).text("/id")
	play(t, []scenario{
		{name: "an owner", as: w.owner, send: "GET /tenant/summary", status: 200, members: "invitations secondFactors failedSignIns expiringRoles expiringTokens activity", has: map[string]any{
			"/invitations/count": before.value("/invitations/count").(float64) + 1, "/invitations/isExact": true,
			"/expiringRoles/items/0/userId": user, "/expiringRoles/items/0/serviceAccountId": nil, "/expiringRoles/items/0/roleId": role, "/expiringRoles/items/0/roleName": "Temporary", "/expiringRoles/items/1": nil, "/expiringRoles/hasMore": false,
			"/expiringTokens/items/0/id": token, "/expiringTokens/items/0/serviceAccountId": account, "/expiringTokens/items/0/userId": nil, "/expiringTokens/hasMore": false,
			"/failedSignIns/isExact": true, "/secondFactors/isExact": true}},
		{name: "an unknown time zone", as: w.owner, send: "GET /tenant/summary?timeZone=Europe/Nowhere", status: 400, code: "malformed-request", faults: []string{"parameter:timeZone format"}},
		{name: "the zone of the server", as: w.owner, send: "GET /tenant/summary?timeZone=Local", status: 400, code: "malformed-request", faults: []string{"parameter:timeZone format"}},
		{name: "without a session", as: w.anonymous(), send: "GET /tenant/summary", status: 401},
	})
	scoped := w.holder(t, "scoped", "", "Sales", "users:invite", "users:reset-factors", "users:read", "roles:read", "sessions:read")
	scoped.do(t, "GET /tenant/summary", "").expect(t, 403)

	zone, err := time.LoadLocation("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().In(zone)
	days := w.owner.do(t, "GET /tenant/summary?timeZone=Asia/Kathmandu", "").expect(t, 200)
	is := func(today time.Time) bool {
		return days.text("/activity/0/date") == today.AddDate(0, 0, -29).Format(time.DateOnly) && days.text("/activity/29/date") == today.Format(time.DateOnly)
	}
	if !is(began) && !is(time.Now().In(zone)) {
		t.Errorf("the days are from %s to %s", days.text("/activity/0/date"), days.text("/activity/29/date"))
	}
	if days.value("/activity/28/events").(float64)+days.value("/activity/29/events").(float64) == 0 {
		t.Error("the events of today are not counted")
	}
}

// testSettings checks the minimum, the maximum and the default of each setting that is a
// number, and the other members that a change of the tenant can contain.
func testSettings(t *testing.T, w *world) {
	patch := func(name, body string, faults ...string) scenario {
		s := scenario{name: name, as: w.owner, send: "PATCH /tenant", body: body, status: 200, members: everyTenantMember}
		if faults != nil {
			s.status, s.code, s.members, s.faults = 422, "validation", "", faults
		}
		return s
	}
	scenarios := []scenario{
		patch("an empty patch", `{}`), patch("no settings", `{"settings":{}}`), patch("a name", `{"displayName":"Acme & Söhne"}`), patch("the shortest name", `{"displayName":"A"}`), patch("the longest name", `{"displayName":"`+strings.Repeat("ß", 255)+`"}`),
		patch("a name too long", `{"displayName":"`+strings.Repeat("a", 256)+`"}`, "/displayName length"), patch("an empty name", `{"displayName":""}`, "/displayName length"), patch("no name", `{"displayName":null}`, "/displayName type"),
		patch("a control character", `{"displayName":"a\u0007b"}`, "/displayName control-character"), patch("what never changes", `{"name":"other"}`, "/name immutable"), patch("what is not there", `{"status":"suspended","id":"x"}`, "/status unknown", "/id unknown"),
		patch("an unknown setting", `{"settings":{"sessionIdle":60,"SessionIdleSeconds":60}}`, "/settings/sessionIdle unknown", "/settings/SessionIdleSeconds unknown"),
		patch("other types", `{"settings":{"sessionIdleSeconds":"60","refreshGraceSeconds":1.5,"eventsKeptSeconds":true}}`, "/settings/sessionIdleSeconds type", "/settings/refreshGraceSeconds type", "/settings/eventsKeptSeconds type"),
		patch("settings that are none", `{"settings":[]}`, "/settings type"), patch("a huge number", `{"settings":{"sessionIdleSeconds":99999999999999999999}}`, "/settings/sessionIdleSeconds range"),
		patch("a huge exponent", `{"settings":{"sessionIdleSeconds":1e400000000}}`, "/settings/sessionIdleSeconds range"), patch("a tiny number", `{"settings":{"sessionIdleSeconds":1e-400000000}}`, "/settings/sessionIdleSeconds type"),
		patch("whole numbers in other spellings", `{"settings":{"refreshGraceSeconds":10.0,"reauthenticationSeconds":9e2}}`),
		patch("every fault at once", `{"displayName":"","settings":{"refreshGraceSeconds":-1},"x":1}`, "/displayName length", "/settings/refreshGraceSeconds range", "/x unknown"),
	}
	for _, s := range numberSettings {
		set := func(value string) string { return fmt.Sprintf(`{"settings":{%q:%s}}`, s.name, value) }
		for _, value := range []int{s.min, s.max} {
			fine := patch(fmt.Sprintf("%s %d", s.name, value), set(fmt.Sprint(value)))
			fine.has = map[string]any{"/settings/" + s.name: float64(value)}
			scenarios = append(scenarios, fine)
		}
		tooSmall, tooLarge := "range", "range"
		if s.name == "passwordMinimum" {
			tooSmall = "conflict" // because the tenant requires no second factor
		}
		if s.name == "sessionIdleSeconds" {
			tooLarge = "conflict" // because it would exceed the default of sessionAbsoluteSeconds
		}
		back := patch(s.name+" back to the default", set("null"))
		back.has = map[string]any{"/settings/" + s.name: s.standard}
		scenarios = append(scenarios, back,
			patch(s.name+" too small", set(fmt.Sprint(s.min-1)), "/settings/"+s.name+" "+tooSmall), patch(s.name+" too large", set(fmt.Sprint(s.max+1)), "/settings/"+s.name+" "+tooLarge))
	}
	play(t, scenarios)
	w.owner.do(t, "PATCH /tenant", `{"displayName":"Merged"}`, "content-type: application/merge-patch+json").expect(t, 200)
	w.owner.do(t, "PATCH /tenant", `{"displayName":"Form"}`, "content-type: text/plain").expect(t, 415)
	play(t, factorScenarios(t, w, patch))
}

// factorScenarios returns scenarios about settings that are not numbers or that depend on each
// other. The last one requires a second factor, so sessions of users without one are not valid
// afterwards.
func factorScenarios(t *testing.T, w *world, patch func(name, body string, faults ...string) scenario) []scenario {
	role, foreign := w.builtIn(t, "administrator"), newWorld(t, w.program).builtIn(t, "administrator")
	set := func(settings string) string { return `{"settings":{` + settings + `}}` }
	ofRoles := patch("roles", set(`"secondFactor":{"required":"roles","roles":[`+quoted(role)+`,`+quoted(role)+`]}`))
	ofRoles.has = map[string]any{"/settings/secondFactor/required": "roles", "/settings/secondFactor/roles/0": role, "/settings/secondFactor/roles/1": nil, "/settings/sessionIdleSeconds": 43200.0}
	ofAll := patch("all", set(`"secondFactor":{"required":"all"},"passwordMinimum":8`))
	ofAll.has = map[string]any{"/settings/secondFactor/required": "all", "/settings/secondFactor/roles/0": nil, "/settings/passwordMinimum": 8.0, "/settings/sessionIdleSeconds": 3600.0, "/settings/sessionAbsoluteSeconds": 86400.0}
	back := patch("none again", set(`"secondFactor":{"required":"none"},"passwordMinimum":null`))
	back.has = map[string]any{"/settings/secondFactor/required": "none", "/settings/passwordMinimum": 15.0, "/settings/sessionIdleSeconds": 43200.0}
	return []scenario{
		patch("a short password", set(`"passwordMinimum":8`), "/settings/passwordMinimum conflict"),
		patch("no scope", set(`"secondFactor":{"required":"everybody"}`), "/settings/secondFactor/required format"),
		patch("roles without one", set(`"secondFactor":{"required":"roles"}`), "/settings/secondFactor/roles required"),
		patch("roles that are none of the tenant's", set(`"secondFactor":{"required":"roles","roles":[`+quoted(role)+`,`+quoted(never)+`,`+quoted(foreign)+`,"x"]}`),
			"/settings/secondFactor/roles/1 unknown-role", "/settings/secondFactor/roles/2 unknown-role", "/settings/secondFactor/roles/3 format"),
		patch("roles and all", set(`"secondFactor":{"required":"all","roles":[`+quoted(role)+`]}`), "/settings/secondFactor/roles conflict"),
		patch("null does not lift a restriction", set(`"secondFactor":null,"passwordSignIn":null`), "/settings/secondFactor type", "/settings/passwordSignIn type"),
		patch("nor within the rule", set(`"secondFactor":{"required":null,"roles":null}`), "/settings/secondFactor/required type", "/settings/secondFactor/roles type"),
		patch("nor of everything at once", `{"settings":null}`, "/settings type"),
		ofRoles, back,
		patch("a sender", set(`"mailSenderName":"The Sesame Company"`)), patch("a sender of two lines", set(`"mailSenderName":"a\r\nBcc: b"`), "/settings/mailSenderName control-character"), patch("no sender", set(`"mailSenderName":null`)),
		patch("a color", set(`"brandColor":"#1F6feb"`)), patch("no color", set(`"brandColor":"blue"`), "/settings/brandColor format"), patch("a color with a rule", set(`"brandColor":"#12345}"`), "/settings/brandColor format"), patch("the color of the console", set(`"brandColor":null`)),
		patch("a factor that shortens the life of sessions", set(`"sessionIdleSeconds":86401,"secondFactor":{"required":"all"}`), "/settings/sessionIdleSeconds conflict"),
		ofAll,
	}
}

func testConditionalTenant(t *testing.T, w *world) {
	first := w.owner.do(t, "GET /tenant", "").expect(t, 200)
	tag := first.header.Get("Etag")
	play(t, []scenario{
		{name: "unchanged", as: w.owner, send: "GET /tenant", header: []string{"if-none-match: " + tag}, status: 304},
		{name: "an empty patch", as: w.owner, send: "PATCH /tenant", body: `{}`, header: []string{"if-match: " + tag}, status: 200, headers: map[string]string{"Etag": tag}, has: map[string]any{"/updatedAt": first.text("/updatedAt")}},
		{name: "the same again", as: w.owner, send: "PATCH /tenant", body: `{"settings":{"refreshGraceSeconds":null}}`, status: 200, headers: map[string]string{"Etag": tag}},
		{name: "stale", as: w.owner, send: "PATCH /tenant", body: `{"displayName":"Stale"}`, header: []string{`if-match: "stale"`}, status: 412, code: "precondition-failed"},
		{name: "weak", as: w.owner, send: "PATCH /tenant", body: `{"displayName":"Weak"}`, header: []string{"if-match: W/" + tag}, status: 412},
		{name: "any", as: w.owner, send: "PATCH /tenant", body: `{"displayName":"Any"}`, header: []string{"if-match: *"}, status: 200},
		{name: "changed", as: w.owner, send: "GET /tenant", header: []string{"if-none-match: " + tag}, status: 200, has: map[string]any{"/displayName": "Any"}},
	})
	tag = w.owner.do(t, "GET /tenant", "").header.Get("Etag")
	statuses := atOnce(t, 50, func(i int) (*answer, error) {
		return w.owner.try(t, "PATCH /tenant", fmt.Sprintf(`{"displayName":"Parallel %d"}`, i), "if-match: "+tag)
	})
	if statuses[http.StatusOK] != 1 || statuses[http.StatusPreconditionFailed] != 49 {
		t.Errorf("fifty changes under one tag answered %v", statuses)
	}
}

// pngSignature is the beginning of each PNG.
const pngSignature = "\x89PNG"

// aLogo returns a PNG with the width and a height of 32 pixels.
func aLogo(t testing.TB, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 32))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// testLogo sets, replaces and removes the logo, and checks that other tenants do not see it.
func testLogo(t *testing.T, w *world) {
	other, small := newWorld(t, w.program), aLogo(t, 64)
	set := w.owner.do(t, "PUT /tenant/logo", small).expect(t, 200)
	tag := set.header.Get("Etag")
	got := w.owner.do(t, "GET /tenant/logo", "").expect(t, 200)
	if string(got.body) != small || got.header.Get("Etag") != tag || got.header.Get("Content-Type") != "image/png" {
		t.Errorf("read %d bytes, %v", len(got.body), got.header)
	}
	other.owner.do(t, "GET /tenant/logo", "").refused(t, 404, "not-found")
	w.owner.in(other.name).do(t, "GET /tenant/logo", "").refused(t, 401, "unauthenticated")
	put := func(name, mediaType, body string, status int, code string, faults ...string) scenario {
		return scenario{name: name, as: w.owner, send: "PUT /tenant/logo", body: body, header: []string{"content-type: " + mediaType}, status: status, code: code, faults: faults}
	}
	play(t, []scenario{
		{name: "the tenant has it", as: w.owner, send: "GET /tenant", status: 200, has: map[string]any{"/logo/mediaType": "image/png", "/logo/width": 64.0, "/logo/height": 32.0, "/logo/size": float64(len(small)), "/logo/updatedAt": set.text("/updatedAt")}},
		{name: "unchanged", as: w.owner, send: "GET /tenant/logo", header: []string{"if-none-match: " + tag}, status: 304},
		{name: "the same again", as: w.owner, send: "PUT /tenant/logo", body: small, status: 200, headers: map[string]string{"Etag": tag}, has: map[string]any{"/updatedAt": set.text("/updatedAt")}},
		{name: "stale", as: w.owner, send: "PUT /tenant/logo", body: aLogo(t, 65), header: []string{`if-match: "stale"`}, status: 412, code: "precondition-failed"},
		{name: "a stale removal", as: w.owner, send: "DELETE /tenant/logo", header: []string{`if-match: "stale"`}, status: 412, code: "precondition-failed"},
		put("a truncated PNG", "image/png", small[:len(small)-1], 422, "validation", " format"),
		put("a PNG that is called WebP", "image/webp", small, 422, "validation", " type"),
		put("a page", "image/png", "<!DOCTYPE html>", 422, "validation", " format"),
		put("an SVG", "image/svg+xml", "<svg/>", 415, "unsupported-media-type"),
		put("a PNG that is too wide", "image/png", aLogo(t, 1025), 422, "validation", " range"),
		put("too many bytes", "image/png", small+strings.Repeat("x", 32<<10), 413, "content-too-large"),
		put("no bytes", "image/png", "", 400, "malformed-request", " required"),
		{name: "nothing of that had an effect", as: w.owner, send: "GET /tenant/logo", status: 200, headers: map[string]string{"Etag": tag}},
		{name: "another", as: w.owner, send: "PUT /tenant/logo", body: aLogo(t, 65), header: []string{"if-match: " + tag}, status: 200, has: map[string]any{"/width": 65.0}},
		{name: "removed", as: w.owner, send: "DELETE /tenant/logo", status: 204},
		{name: "it is not there", as: w.owner, send: "GET /tenant/logo", status: 404, code: "not-found"},
		{name: "it is not removed again", as: w.owner, send: "DELETE /tenant/logo", status: 404, code: "not-found"},
	})
	statuses := atOnce(t, 20, func(i int) (*answer, error) { return w.owner.try(t, "PUT /tenant/logo", aLogo(t, 100+i)) })
	if statuses[http.StatusOK] != 20 {
		t.Errorf("twenty logos at once: %v", statuses)
	}
	last := w.owner.do(t, "GET /tenant", "").expect(t, 200)
	if file := w.owner.do(t, "GET /tenant/logo", "").expect(t, 200); float64(len(file.body)) != last.value("/logo/size") || aLogo(t, int(last.value("/logo/width").(float64))) != string(file.body) {
		t.Errorf("the image does not belong to %v", last.value("/logo"))
	}
}

// testEffectOfSettings checks that changed settings apply to the next request.
func testEffectOfSettings(t *testing.T, w *world) {
	w.owner.do(t, "PATCH /tenant", `{"displayName":"The Sesame Company","settings":{"sessionAbsoluteSeconds":300,"sessionIdleSeconds":60}}`).expect(t, 200)
	a := w.anonymous().do(t, "POST /auths/login", credentials(address("owner"), password)).expect(t, 200)
	if got := a.cookie("session"); got == nil || got.MaxAge != 300 {
		t.Errorf("the cookie of a short session is %v", got)
	}
	session := a.members("/session")
	lives, idle := timestamp(t, a, "/session/expiresAt").Sub(timestamp(t, a, "/session/authenticatedAt")), timestamp(t, a, "/session/idleExpiresAt").Sub(timestamp(t, a, "/session/authenticatedAt"))
	if lives.Seconds() != 300 || idle.Seconds() != 60 {
		t.Errorf("a session of %q lives %v, and %v unused", session, lives, idle)
	}
	w.owner.do(t, "PUT /auths/password", passwords(password, "the sesame company")).refused(t, 422, "validation")
	w.owner.do(t, "PATCH /tenant", `{"settings":{"sessionAbsoluteSeconds":null,"sessionIdleSeconds":null}}`).expect(t, 200)
	if got := w.anonymous().do(t, "POST /auths/login", credentials(address("owner"), password)).cookie("session"); got == nil || got.MaxAge != 604800 {
		t.Errorf("the cookie is %v", got)
	}
}

func testEffectOfSettingsOnMail(t *testing.T, w *world) {
	set := func(settings string) {
		w.owner.do(t, "PATCH /tenant", `{"displayName":"The Sesame Company","settings":{`+settings+`}}`).expect(t, 200)
	}
	mailed := func(kind rolecall.MailKind, from string) (token string) {
		m := w.mailTo(t, address("told"), kind)
		sender, err := m.Header.AddressList("From")
		if err != nil || sender[0].Name != from || !strings.HasSuffix(m.Subject, "The Sesame Company") {
			t.Errorf("%s: %q is from %v, %v", kind, m.Subject, sender, err)
		}
		return m.Token()
	}
	told := "POST /users/" + w.user(t, "told", "")
	set(`"invitationSeconds":600,"passwordMinimum":30,"mailSenderName":"Open, Sesame"`)
	a := w.owner.do(t, told+"/invitations", "").expect(t, 201)
	if lives := timestamp(t, a, "/expiresAt").Sub(timestamp(t, a, "/createdAt")); lives.Seconds() != 600 {
		t.Errorf("an invitation lives %v", lives)
	}
	acceptance := acceptance(mailed(rolecall.MailInvitation, "Open, Sesame"), password)
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance).refused(t, 422, "validation")
	set(`"passwordMinimum":null,"passwordResetSeconds":900,"mailSenderName":null`)
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance).expect(t, 200)
	before := time.Now()
	a = w.owner.do(t, told+"/password-resets", "").expect(t, 201)
	const lives = 900 * time.Second
	if ends := timestamp(t, a, "/expiresAt"); ends.Before(before.Add(lives-time.Second)) || ends.After(time.Now().Add(lives)) {
		t.Errorf("a password reset that began after %v ends at %v", before, ends)
	}
	mailed(rolecall.MailPasswordReset, "The Sesame Company")
}

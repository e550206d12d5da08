package httpapi

import (
	"encoding/base32"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

// headerTokensIn returns the token of the session and the known-device token in the response. It
// fails the test if the response sets a cookie.
func (r reply) headerTokensIn(t *testing.T) (token, device string) {
	t.Helper()
	d := r.document(t)
	token, _ = d["token"].(string)
	device, _ = d["deviceToken"].(string)
	if _, ok := secret.ParseHeaderSession(token); r.StatusCode != http.StatusOK || !ok || r.Header.Get("Set-Cookie") != "" {
		t.Fatalf("%d %s, cookies %q", r.StatusCode, r.body, r.Header.Values("Set-Cookie"))
	}
	return token, device
}

// bearing sends a request with the token in the Authorization header.
func (s *testServer) bearing(token, method, path, body string, headers ...string) reply {
	s.t.Helper()
	return s.request(method, path, body, append(headers, "Authorization", "Bearer "+token)...)
}

const headerLogin = `{"email":"` + ownerEmail + `","password":"` + ownerPassword + `","transport":"bearer"}`

func TestASessionInTheAuthorizationHeader(t *testing.T) {
	s := newTestServer(t)
	token, device := s.request("POST", "/auths/login", headerLogin).headerTokensIn(t)
	if device == "" {
		t.Error("the response has no known-device token")
	}
	who := s.bearing(token, "GET", "/auths/session", "")
	if d := who.document(t); who.StatusCode != http.StatusOK || d["session"] == nil || who.Header.Get("Set-Cookie") != "" {
		t.Fatalf("%d %s", who.StatusCode, who.body)
	}
	if r := s.bearing(token, "GET", "/auths/factors", ""); r.StatusCode != http.StatusOK { // needs a session
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	confirmed, _ := s.bearing(token, "POST", "/auths/confirm", `{"password":"`+ownerPassword+`"}`).headerTokensIn(t)
	refreshed, _ := s.bearing(confirmed, "POST", "/auths/refresh", "").headerTokensIn(t)
	again, _ := s.bearing(confirmed, "POST", "/auths/refresh", "").headerTokensIn(t)
	if refreshed == token || refreshed != again {
		t.Error("the refresh must return the same successor until it is used")
	}
	if r := s.bearing(refreshed, "PATCH", "/tenant", `{"settings":{"refreshGraceSeconds":0}}`); r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.bearing(confirmed, "POST", "/auths/refresh", ""), 401, "unauthenticated") // the reuse ends the session
	expectProblem(t, s.bearing(refreshed, "GET", "/auths/session", ""), 401, "unauthenticated")
	other, _ := s.request("POST", "/auths/login", headerLogin).headerTokensIn(t)
	out := s.bearing(other, "POST", "/auths/logout", "")
	if out.StatusCode != http.StatusNoContent || out.Header.Get("Set-Cookie") != "" {
		t.Errorf("%d, cookies %q", out.StatusCode, out.Header.Values("Set-Cookie"))
	}
	expectProblem(t, s.bearing(other, "GET", "/auths/session", ""), 401, "unauthenticated")
	if r := s.as(s.owner, "GET", "/auths/session", ""); r.StatusCode != http.StatusOK {
		t.Errorf("the session in the cookie: %d %s", r.StatusCode, r.body)
	}
}

// Applications that keep the response must not keep it longer than the token works.
func TestTheSessionOfAReplacedTokenShowsItsExpiry(t *testing.T) {
	s := newTestServer(t)
	old, _ := s.request("POST", "/auths/login", headerLogin).headerTokensIn(t)
	expiry := func(token string) any {
		t.Helper()
		session, _ := s.bearing(token, "GET", "/auths/session", "").document(t)["session"].(map[string]any)
		if session == nil {
			t.Fatal("the response has no session")
		}
		return session["tokenExpiresAt"]
	}
	refreshed := s.bearing(old, "POST", "/auths/refresh", "")
	token, _ := refreshed.headerTokensIn(t)
	if got := expiry(old); got != nil {
		t.Errorf("before the new token is used, the old one expires at %v", got)
	}
	before := time.Now()
	if got := expiry(token); got != nil {
		t.Errorf("the new token expires at %v", got)
	}
	after := time.Now()
	text, _ := expiry(old).(string)
	got, err := time.Parse(time.RFC3339Nano, text)
	if grace := rolecall.DefaultRefreshGrace; err != nil || got.Before(before.Add(grace).Truncate(time.Microsecond)) || got.After(after.Add(grace)) {
		t.Errorf("the old token expires at %q, and the new one was used from %v to %v", text, before, after)
	}
	again := s.bearing(old, "POST", "/auths/refresh", "")
	if session, _ := again.document(t)["session"].(map[string]any); session == nil || session["tokenExpiresAt"] != nil {
		t.Errorf("the response to a refresh is about the new token: %s", again.body)
	}
}

func TestASessionInAHeaderAndACookieDoNotMix(t *testing.T) {
	s := newTestServer(t)
	token, _ := s.request("POST", "/auths/login", headerLogin, "Cookie", s.owner).headerTokensIn(t) // does not replace the session in the cookie
	cookie := s.signIn(ownerEmail, ownerPassword)
	if _, _, err := s.node.Directory.CreateOperatorKey(t.Context(), rolecall.OperatorKeyDraft{Name: "Provisioning", Lifetime: time.Hour}); err != nil {
		t.Fatal(err)
	}
	_, inCookie, _ := strings.Cut(cookie, "=")
	for _, path := range []string{"GET /auths/session", "POST /auths/refresh", "POST /auths/logout"} {
		method, path, _ := strings.Cut(path, " ")
		r := s.bearing(token, method, path, "", "Cookie", cookie)
		expectProblem(t, r, 400, "malformed-request")
		if r.faults(t) != "authorization ambiguous" {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	for what, r := range map[string]reply{
		"the token of a cookie in the header": s.bearing(inCookie, "GET", "/auths/session", ""),
		"with the prefix":                     s.bearing("rs_"+inCookie, "GET", "/auths/session", ""),
		"the token of the header in a cookie": s.as("session="+token, "GET", "/auths/session", ""),
		"without the prefix":                  s.as("session="+strings.TrimPrefix(token, "rs_"), "GET", "/auths/session", ""),
		"a cut token":                         s.bearing(token[:len(token)-1], "GET", "/auths/session", ""),
		"a refresh with a cut token":          s.bearing(token[:len(token)-1], "POST", "/auths/refresh", ""),
		"an operation of operators":           s.bearing(token, "GET", "/operator/tenants", ""),
		"of an unknown tenant":                s.bearing(token, "GET", "/auths/session", "", "X-Tenant-Schema", "nobody"),
	} {
		if r.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
	}
	for _, c := range []string{s.owner, cookie} {
		if r := s.as(c, "GET", "/auths/session", ""); r.StatusCode != http.StatusOK {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
	}
	if bad := s.request("POST", "/auths/login", `{"email":"a@b","password":"x","transport":"carrier"}`); bad.StatusCode != 422 || bad.faults(t) != "/transport unknown-value" {
		t.Errorf("%d %s", bad.StatusCode, bad.body)
	}
}

func TestEverySignInReturnsTheToken(t *testing.T) {
	s := newTestServer(t)
	object := func(members map[string]any) string {
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	publicKey := func(r reply) []byte {
		var options struct{ PublicKey json.RawMessage }
		if err := json.Unmarshal([]byte(r.body), &options); err != nil {
			t.Fatal(err)
		}
		return options.PublicKey
	}
	created := s.as(s.owner, "POST", "/users", `{"email":"eve@example.com","name":"Eve Adams"}`, "Idempotency-Key", "k")
	s.as(s.owner, "POST", "/users/"+created.id(t)+"/invitations", "", "Idempotency-Key", "k")
	invited, _ := s.request("POST", "/auths/invitations/accept", object(map[string]any{"token": s.mailed(t), "password": ownerPassword, "transport": "bearer"})).headerTokensIn(t)

	device := passkeytest.New(passkeyOrigin)
	begun, _ := s.bearing(invited, "POST", "/auths/totp", "").document(t)["secret"].(string)
	raw, err := base32.StdEncoding.DecodeString(begun)
	if err != nil {
		t.Fatal(err)
	}
	code := func(step int64) string { return secret.TOTP(raw).Code(time.Now().Unix()/30 + step) }
	if r := s.bearing(invited, "POST", "/auths/totp/confirm", object(map[string]any{"code": code(0)})); r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	made := device.Create(t, publicKey(s.bearing(invited, "POST", "/auths/passkeys/options", "")))
	if r := s.bearing(invited, "POST", "/auths/passkeys", object(map[string]any{"name": "Phone", "passkey": made}), "Idempotency-Key", "k"); r.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	signed := device.Get(t, publicKey(s.request("POST", "/auths/passkeys/sign-in-options", "")))
	s.request("POST", "/auths/passkeys/sign-in", object(map[string]any{"passkey": signed, "transport": "bearer"})).headerTokensIn(t)

	login := map[string]any{"email": "eve@example.com", "password": ownerPassword, "transport": "bearer"}
	challenge := s.request("POST", "/auths/login", object(login))
	if challenge.StatusCode != http.StatusUnauthorized || strings.Contains(challenge.body, "rs_") {
		t.Fatalf("%d %s", challenge.StatusCode, challenge.body)
	}
	// The request with the code does not repeat the transport.
	s.request("POST", "/auths/login/second-factor", object(map[string]any{"challenge": challenge.document(t)["challenge"], "code": code(1)})).headerTokensIn(t)
}

func TestAPageOnAnotherSiteGetsTheToken(t *testing.T) {
	s := newTestServerWith(t, web.Options{PublicURL: &url.URL{Scheme: "https", Host: "id.example.com"}, AllowOrigins: []string{allowedOrigin}})
	elsewhere := []string{"Origin", allowedOrigin, "Sec-Fetch-Site", "cross-site"}
	token, _ := s.request("POST", "/auths/login", headerLogin, elsewhere...).headerTokensIn(t)
	refreshed, _ := s.bearing(token, "POST", "/auths/refresh", "", elsewhere...).headerTokensIn(t)
	if r := s.bearing(refreshed, "PATCH", "/users/"+s.ownerID, `{"name":"Ada King"}`, elsewhere...); r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.request("POST", "/auths/login", headerLogin, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403, "cross-origin")
	expectProblem(t, s.request("POST", "/auths/login", strings.Replace(headerLogin, "bearer", "cookie", 1), elsewhere...), 403, "cross-site")
}

func TestTheDeviceTokenProtectsAgainstLockout(t *testing.T) {
	s := newTestServer(t)
	_, device := s.request("POST", "/auths/login", headerLogin).headerTokensIn(t)
	wrong := `{"email":"` + ownerEmail + `","password":"a wrong guess"}`
	for range 10 {
		expectProblem(t, s.request("POST", "/auths/login", wrong), 401, "wrong-credentials")
	}
	expectProblem(t, s.request("POST", "/auths/login", headerLogin), 429, "too-many-attempts")
	s.request("POST", "/auths/login", strings.TrimSuffix(headerLogin, "}")+`,"deviceToken":"`+device+`"}`).headerTokensIn(t)
	expectProblem(t, s.request("POST", "/auths/login", strings.TrimSuffix(headerLogin, "}")+`,"deviceToken":"forged"}`), 429, "too-many-attempts")
}

package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/web"
)

// mailed returns the token in the waiting mail. Exactly one waiting mail must have a token.
func (s *testServer) mailed(t *testing.T) string {
	t.Helper()
	var tokens []string
	err := store.New(s.db, nil).View(t.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
		waiting, err := tx.ExpiredMail(rolecall.Never-1, 10)
		for i := range waiting {
			plain, err := s.keys.Open("mail", string(waiting[i].Sealed), append(waiting[i].TenantID[:], waiting[i].ID[:]...))
			if err != nil {
				return err
			}
			var m rolecall.Mail
			if err := json.Unmarshal(plain, &m); err != nil {
				return err
			}
			if m.Token != "" {
				tokens = append(tokens, m.Token)
			}
		}
		return err
	})
	if err != nil || len(tokens) != 1 {
		t.Fatalf("%d mails with a token wait, %v", len(tokens), err)
	}
	return tokens[0]
}

func TestInvitationFromItsLinkToASession(t *testing.T) {
	s := newTestServer(t)
	created := s.as(s.owner, "POST", "/users", `{"email":"eve@example.com","name":"Eve Adams"}`, "Idempotency-Key", "k")
	path := "/users/" + created.id(t) + "/invitations"
	invited := s.as(s.owner, "POST", path, "", "Idempotency-Key", "k")
	d := invited.document(t)
	token := s.mailed(t)
	if _, ok := secret.ParseToken(token); invited.StatusCode != 201 || !ok || d["userId"] != created.id(t) || len(d) != 3 || strings.Contains(invited.body, token) {
		t.Fatalf("%d %s", invited.StatusCode, invited.body)
	}
	again := s.as(s.owner, "POST", path, "", "Idempotency-Key", "k")
	if again.StatusCode != 201 || again.Header.Get("Idempotent-Replayed") != "true" || again.body != invited.body {
		t.Errorf("the repeat: %d %s", again.StatusCode, again.body)
	}
	expectProblem(t, s.as(s.owner, "POST", "/users/"+s.ownerID+"/invitations", "", "Idempotency-Key", "k"), 422, "idempotency-key-reused")

	accept := func(token, password string, headers ...string) reply {
		return s.request("POST", "/auths/invitations/accept", `{"token":"`+token+`","password":"`+password+`"}`, headers...)
	}
	short := accept(token, "too short")
	if short.StatusCode != 422 || short.faults(t) != "/password length" || strings.Contains(short.body, "too short") {
		t.Errorf("%d %s", short.StatusCode, short.body)
	}
	in := accept(token, ownerPassword)
	cookies := in.Header.Values("Set-Cookie")
	if in.StatusCode != 200 || !strings.Contains(in.body, `"status":"active"`) || len(cookies) != 2 ||
		!strings.HasPrefix(cookies[0], "rolecall_device=") || !strings.HasPrefix(cookies[1], "session=") {
		t.Fatalf("%d %s, cookies %q", in.StatusCode, in.body, cookies)
	}
	cookie := in.sessionCookie()
	if r := s.as(cookie, "GET", "/auths/session", ""); r.document(t)["user"].(map[string]any)["id"] != created.id(t) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}

	used := accept(token, ownerPassword)
	expectProblem(t, used, 401, "invitation-invalid")
	for what, r := range map[string]reply{
		"an unknown one":    accept(string(secret.NewToken()), ownerPassword),
		"what is no token":  accept("token", ownerPassword),
		"an unknown tenant": accept(token, ownerPassword, "X-Tenant-Schema", "nobody"),
	} {
		if r.StatusCode != 401 || strip(r) != strip(used) || r.Header.Get("Www-Authenticate") != "Session" || r.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s is told apart: %d %s", what, r.StatusCode, r.body)
		}
	}
	s.signIn("eve@example.com", ownerPassword)
}

func TestALinkInAResponse(t *testing.T) {
	links := rolecall.MailLinks{rolecall.MailInvitation: "https://{tenant}.example.com/welcome#{token}"}
	s := newTestServerWith(t, web.Options{PublicURL: &url.URL{Scheme: "https", Host: "id.example.com"}, MailLinks: links})
	_, key, err := s.node.Directory.CreateOperatorKey(t.Context(), rolecall.OperatorKeyDraft{Name: "Provisioning", Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	created := s.as(s.owner, "POST", "/users", `{"email":"eve@example.com","name":"Eve Adams"}`, "Idempotency-Key", "k")
	ask := func(path, body, key, credential string) reply {
		return s.request("POST", path, body, "Idempotency-Key", key, "Authorization", credential)
	}
	operator := "Bearer " + string(key)
	for path, prefix := range map[string]string{
		"/users/" + created.id(t) + "/invitations": "https://" + tenantName + ".example.com/welcome#",
		"/users/" + s.ownerID + "/password-resets": "https://id.example.com/console/" + tenantName + "/password-reset#",
	} {
		r := ask(path, `{"delivery":"return"}`, "k", operator)
		d := r.document(t)
		token, _ := d["token"].(string)
		if _, ok := secret.ParseToken(token); r.StatusCode != 201 || !ok || d["link"] != prefix+token {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
		again := ask(path, `{"delivery":"return"}`, "k", operator)
		if again.StatusCode != 201 || again.document(t)["secretWithheld"] != true || strings.Contains(again.body, token) || strings.Contains(again.body, "link") {
			t.Errorf("the repeat: %d %s", again.StatusCode, again.body)
		}
		expectProblem(t, ask(path, `{"delivery":"mail"}`, "k", operator), 422, "idempotency-key-reused")
		if bad := ask(path, `{"delivery":"post"}`, "k2", operator); bad.StatusCode != 422 || bad.faults(t) != "/delivery unknown-value" {
			t.Errorf("%d %s", bad.StatusCode, bad.body)
		}
		expectProblem(t, s.as(s.owner, "POST", path, `{"delivery":"return"}`, "Idempotency-Key", "k3"), 403, "permission-denied")
	}
}

func TestWhatInvitationsAskFor(t *testing.T) {
	s := newTestServer(t)
	clerk, clerkID := s.member("clerk", []string{"users:invite", "users:read"}, "Sales")
	viewer, _ := s.member("viewer", []string{"users:read"})
	for _, c := range []struct {
		cookie, path, key string
		status            int
		code              string
	}{
		{"", "/users/" + clerkID, "k", 401, "unauthenticated"},
		{viewer, "/users/" + clerkID, "k", 403, "permission-denied"},
		{clerk, "/users/" + clerkID, "", 400, "malformed-request"},
		{clerk, "/users/clerk", "k", 400, "malformed-request"},
		{clerk, "/users/" + s.ownerID, "k", 404, "not-found"},
		{clerk, "/users/00000000-0000-7000-8000-000000000000", "k", 404, "not-found"},
	} {
		expectProblem(t, s.as(c.cookie, "POST", c.path+"/invitations", "", "Idempotency-Key", c.key), c.status, c.code)
	}
	if r := s.as(clerk, "POST", "/users/"+clerkID+"/invitations", "", "Idempotency-Key", "k"); r.StatusCode != 201 || !strings.Contains(r.body, `"userId":"`+clerkID) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := s.as(s.owner, "POST", "/users/"+clerkID+"/suspend", ""); r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.as(s.owner, "POST", "/users/"+clerkID+"/invitations", "", "Idempotency-Key", "k2"), 403, "user-suspended")

	for body, want := range map[string]string{
		`{}`:                         "/token required; /password required",
		`{"token":5,"password":[]}`:  "/token type; /password type",
		`{"Token":"t","password":5}`: "/Token unknown; /password type; /token required",
	} {
		r := s.request("POST", "/auths/invitations/accept", body)
		if got := r.faults(t); r.StatusCode != 422 || got != want {
			t.Errorf("%s: %d %q, want %q", body, r.StatusCode, got, want)
		}
	}
}

func TestUsersChangeTheirOwnPassword(t *testing.T) {
	s := newTestServer(t)
	eve, _ := s.member("eve", []string{"users:read"})
	other := s.signIn("eve@example.com", ownerPassword)
	change := func(cookie, body string) reply { return s.as(cookie, "PUT", "/auths/password", body) }
	const good = `{"currentPassword":"` + ownerPassword + `","newPassword":"another correct horse"}`
	for body, want := range map[string]string{
		`{}`: "/currentPassword required; /newPassword required",
		`{"currentPassword":"wrong","newPassword":"another correct horse"}`:         "/currentPassword wrong",
		`{"currentPassword":"` + ownerPassword + `","newPassword":"short"}`:         "/newPassword length",
		`{"currentPassword":"` + ownerPassword + `","newPassword":null}`:            "/newPassword type",
		`{"currentPassword":"` + ownerPassword + `","newPassword":"x","user":"id"}`: "/user unknown",
	} {
		if r := change(eve, body); r.StatusCode != 422 || r.faults(t) != want {
			t.Errorf("%s: %d %q, want %q", body, r.StatusCode, r.faults(t), want)
		}
	}
	expectProblem(t, change("", good), 401, "unauthenticated")
	if r := change(eve, good); r.StatusCode != 204 || r.body != "" || !strings.HasPrefix(r.Header.Get("Set-Cookie"), "rolecall_device=") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := s.as(eve, "GET", "/auths/session", ""); r.StatusCode != 200 {
		t.Errorf("this session: %d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.as(other, "GET", "/auths/session", ""), 401, "unauthenticated")
	expectProblem(t, s.request("POST", "/auths/login", `{"email":"eve@example.com","password":"`+ownerPassword+`"}`), 401, "wrong-credentials")
	s.signIn("eve@example.com", "another correct horse")
}

func TestDeviceCookie(t *testing.T) {
	s := newTestServer(t)
	login := func(password string, headers ...string) reply {
		return s.request("POST", "/auths/login", `{"email":"`+ownerEmail+`","password":"`+password+`"}`, headers...)
	}
	in := login(ownerPassword)
	cookies := in.Header.Values("Set-Cookie")
	if len(cookies) != 2 || !strings.HasPrefix(cookies[0], "rolecall_device=") || !strings.HasSuffix(cookies[0], "; Path=/; Max-Age=7776000; HttpOnly; Secure; SameSite=Lax") {
		t.Fatalf("%q", cookies)
	}
	device, _, _ := strings.Cut(cookies[0], ";")
	session := in.sessionCookie()
	if r := s.as(session, "POST", "/auths/refresh", ""); len(r.Header.Values("Set-Cookie")) != 1 {
		t.Errorf("a refresh sets %q", r.Header.Values("Set-Cookie"))
	}
	for range 10 {
		r := login("wrong", "Cookie", "rolecall_device=nonsense")
		expectProblem(t, r, 401, "wrong-credentials")
		if r.Header.Get("Set-Cookie") != "" {
			t.Errorf("a failure sets %q", r.Header.Values("Set-Cookie"))
		}
	}
	throttled := login(ownerPassword)
	expectProblem(t, throttled, 429, "too-many-attempts")
	if throttled.Header.Get("Retry-After") == "" {
		t.Error("nothing says when to try again")
	}
	if r := login(ownerPassword, "Cookie", device); r.StatusCode != 200 {
		t.Errorf("from a known device: %d %s", r.StatusCode, r.body)
	}
}

func TestOnlyOwnersUsePasswordsIfTheTenantSaysSo(t *testing.T) {
	s := newTestServer(t)
	_, ada := s.member("ada", []string{"users:read"})
	eve := s.as(s.owner, "POST", "/users", `{"email":"eve@example.com","name":"Eve Adams"}`, "Idempotency-Key", "k").id(t)
	s.as(s.owner, "POST", "/users/"+eve+"/invitations", "", "Idempotency-Key", "i")
	accepted := `{"token":"` + s.mailed(t) + `","password":"` + ownerPassword + `"}`
	set := func(scope string) {
		t.Helper()
		if r := s.as(s.owner, "PATCH", "/tenant", `{"settings":{"passwordSignIn":"`+scope+`"}}`); r.StatusCode != 200 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
	login := func(email string) reply {
		return s.request("POST", "/auths/login", `{"email":"`+email+`","password":"`+ownerPassword+`"}`)
	}
	set("owners")
	expectProblem(t, login("ada@example.com"), 401, "wrong-credentials")
	if r := login(ownerEmail); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.as(s.owner, "POST", "/users/"+ada+"/password-resets", "", "Idempotency-Key", "r"), 409, "password-sign-in-off")
	expectProblem(t, s.request("POST", "/auths/invitations/accept", accepted), 409, "password-sign-in-off")
	set("all")
	if r := s.request("POST", "/auths/invitations/accept", accepted); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := login("ada@example.com"); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

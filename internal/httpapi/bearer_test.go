package httpapi

import (
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/secret"
)

// TestResponsesNameTheAcceptedSchemes calls every operation without a credential. It also calls the
// operations that accept bearer tokens with an invalid token.
func TestResponsesNameTheAcceptedSchemes(t *testing.T) {
	var s *testServer
	for i, op := range declared {
		if i%50 == 0 { // a server refuses an address after 100 wrong operator keys
			s = newTestServer(t)
			s.operate()
		}
		path := s.pathOf(op)
		opens, refused := "Session, Bearer", `Session, Bearer error="invalid_token"`
		switch {
		case op.Policy.Public:
			continue
		case op.Policy.Operators:
			opens, refused = "Bearer", `Bearer error="invalid_token"`
		case op.Policy.SessionOnly:
			opens = "Session"
		}
		for header, want := range map[string]string{"": opens, "Basic YTpi": opens, "Bearer": opens, "Bearer rc_x": refused, "bearer " + string(secret.NewAPIToken()): refused, "Bearer " + string(secret.NewOperatorKey()): refused} {
			r := s.request(op.Method, path, "", "Authorization", header)
			if got := r.Header.Get("Www-Authenticate"); r.StatusCode != 401 || got != want {
				t.Errorf("%s of %q answers %d %q, not %q", op.ID, header, r.StatusCode, got, want)
			}
		}
	}
}

// TestResponsesNameTheErrorOfABearerToken checks the error codes of RFC 6750, 3.1.
func TestResponsesNameTheErrorOfABearerToken(t *testing.T) {
	s := newTestServer(t)
	s.operate()
	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	made := s.as(s.owner, "POST", "/users/"+s.ownerID+"/tokens", `{"name":"Narrow","permissions":["roles:create","shop/a:b"],"expiresAt":"`+expires+`"}`, "Idempotency-Key", "narrow")
	token, _ := made.document(t)["token"].(string)
	bearer := "Bearer " + token
	const scope, request, key = `Bearer error="insufficient_scope"`, `Bearer error="invalid_request"`, "Idempotency-Key"
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		"more than the token":              {"GET", "/users", "", []string{"Authorization", bearer}, 403, scope},
		"more than it may give":            {"POST", "/roles", `{"name":"More","permissions":["users:read"]}`, []string{"Authorization", bearer, key, "k"}, 403, scope},
		"by a check":                       {"GET", "/auths/check?permission=users:read", "", []string{"Authorization", bearer}, 403, scope},
		"what no token may":                {"GET", "/auths/factors", "", []string{"Authorization", bearer}, 403, ""},
		"what the token may":               {"GET", "/auths/check?permission=shop/a:b", "", []string{"Authorization", bearer}, 204, ""},
		"a key for some tenants makes one": {"POST", "/operator/tenants", `{"name":"no","owner":{"email":"o@example.com","name":"Olga"}}`, []string{"Authorization", s.operators[1], key, "k"}, 403, scope},
		"a token beside a session":         {"GET", "/users", "", []string{"Authorization", bearer, "Cookie", s.owner}, 400, request},
		"two of them":                      {"GET", "/users", "", []string{"Authorization", bearer, "Authorization", bearer}, 400, request},
		"another fault":                    {"GET", "/users?x=1", "", []string{"Authorization", s.operators[0]}, 400, ""},
		"by a session":                     {"GET", "/users?x=1", "", []string{"Cookie", s.owner}, 400, ""},
		"from another origin":              {"POST", "/users", "{}", []string{"Cookie", s.owner, "Origin", "https://evil.example", key, "k"}, 403, ""},
		"the same beside another scheme":   {"POST", "/users", "{}", []string{"Cookie", s.owner, "Authorization", "Basic YTpi", "Origin", "https://evil.example", key, "k"}, 403, ""},
		"a wrong password":                 {"POST", "/auths/login", `{"email":"` + ownerEmail + `","password":"x"}`, nil, 401, "Session"},
	} {
		r := s.request(c.method, c.path, c.body, c.header...)
		if got := r.Header.Get("Www-Authenticate"); r.StatusCode != c.status || got != c.want {
			t.Errorf("%s: %d %q, not %d %q", name, r.StatusCode, got, c.status, c.want)
		}
	}
}

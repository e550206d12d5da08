package oidc_test

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// flow is a provider, and a client that uses it.
type flow struct {
	*oidctest.Provider
	client   *oidc.Client
	provider oidc.Provider
	now      time.Time
}

func newFlow(t *testing.T) *flow {
	t.Helper()
	f := &flow{Provider: oidctest.Start(t), now: time.Now().Truncate(time.Second)}
	f.SetClock(f.clock)
	f.client = f.newClient()
	f.provider = oidc.Provider{Issuer: f.Issuer, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret}
	return f
}

func (f *flow) clock() time.Time { return f.now }

func (f *flow) newClient() *oidc.Client {
	return oidc.New(oidc.Options{Networks: loopback, Roots: f.Roots(), Now: f.clock})
}

func attempt() oidc.Attempt {
	return oidc.Attempt{
		RedirectURI: "https://rolecall.example/auths/oidc/callback", State: "the state", Nonce: "the nonce of this attempt",
		Verifier: "the-verifier-of-this-attempt-with-43-characters",
	}
}

// callback sends the browser to the provider and returns the parameters with which it comes back.
func (f *flow) callback(t *testing.T, a oidc.Attempt) url.Values {
	t.Helper()
	address, err := f.client.AuthorizationURL(t.Context(), f.provider, a)
	if err != nil {
		t.Fatal(err)
	}
	return f.Authorize(t, address).Query()
}

// signIn signs in with one attempt, and gets the address from the userinfo endpoint if the ID token has none.
func (f *flow) signIn(t *testing.T, a oidc.Attempt) (oidc.Claims, error) {
	t.Helper()
	return f.redeem(t, f.client, a, f.callback(t, a))
}

func (f *flow) redeem(t *testing.T, client *oidc.Client, a oidc.Attempt, callback url.Values) (oidc.Claims, error) {
	t.Helper()
	claims, err := client.Redeem(t.Context(), f.provider, a, callback)
	if err == nil && claims.HasMore() {
		err = client.AddUserInfo(t.Context(), f.provider, &claims)
	}
	return claims, err
}

// reason returns the reason of a refusal, and otherwise the text of the error.
func reason(err error) string {
	var refusal *oidc.RefusedError
	switch {
	case errors.As(err, &refusal):
		return refusal.Reason
	case errors.Is(err, oidc.ErrUnavailable):
		return "unavailable"
	case err != nil:
		return err.Error()
	}
	return "accepted"
}

func TestSignIn(t *testing.T) {
	f := newFlow(t)
	claims, err := f.signIn(t, attempt())
	if err != nil {
		t.Fatal(err)
	}
	if claims.Subject != "248289761001" || claims.Email != "ada@acme.example" || !claims.EmailVerified || claims.Name != "Ada Lovelace" || !claims.AuthTime.IsZero() || claims.ACR != "" || claims.AMR != nil {
		t.Errorf("%+v", claims)
	}
}

func TestSignOutURL(t *testing.T) {
	f := newFlow(t)
	claims, err := f.signIn(t, attempt())
	if err != nil {
		t.Fatal(err)
	}
	address, err := f.client.SignOutURL(t.Context(), f.provider, claims.IDToken, "https://shop.example/signed-out?a=1&b=2")
	if err != nil || f.Authorize(t, address).String() != "https://shop.example/signed-out?a=1&b=2" {
		t.Errorf("%s, %v", address, err)
	}
	address, err = f.client.SignOutURL(t.Context(), f.provider, "", "https://shop.example/")
	if want := f.Issuer + oidctest.PathEndSession + "?client_id=" + oidctest.ClientID + "&post_logout_redirect_uri=https%3A%2F%2Fshop.example%2F"; address != want || err != nil {
		t.Errorf("%s, not %s: %v", address, want, err)
	}
	f.Set(func(s *oidctest.Settings) {
		s.Metadata = func(m map[string]any) { delete(m, "end_session_endpoint") }
	})
	if address, err := f.newClient().SignOutURL(t.Context(), f.provider, claims.IDToken, "https://shop.example/"); address != "" || err != nil {
		t.Errorf("%s, %v", address, err)
	}
}

func TestInspect(t *testing.T) {
	f := newFlow(t)
	m, err := f.client.Inspect(t.Context(), f.Issuer)
	if err != nil || len(m.Problems) > 0 || m.Keys != 5 || len(m.Algorithms) != 10 || !m.Passed() || m.TokenEndpoint != f.Issuer+oidctest.PathToken {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestUserInfo(t *testing.T) {
	f := newFlow(t)
	email := map[string]any{"email": "grace@acme.example", "email_verified": true, "name": "Grace Hopper"}
	for _, test := range []struct {
		name            string
		claims, info    map[string]any
		want            string
		email, fullName string
		verified        bool
	}{
		{"in the ID token", map[string]any{"email": "ada@acme.example", "name": "Ada"}, email, "accepted", "ada@acme.example", "Ada", false},
		{"at the endpoint", nil, email, "accepted", "grace@acme.example", "Grace Hopper", true},
		{"the name in the ID token", map[string]any{"name": "Ada"}, email, "accepted", "grace@acme.example", "Ada", true},
		{"not verified there", map[string]any{"email_verified": true}, map[string]any{"email": "grace@acme.example"}, "accepted", "grace@acme.example", "", false},
		{"verified as a string", nil, map[string]any{"email": "grace@acme.example", "email_verified": "true"}, "accepted", "grace@acme.example", "", false},
		{"nowhere", nil, nil, "accepted", "", "", false},
		{"of another user", nil, map[string]any{"sub": "mallory", "email": "grace@acme.example"}, oidc.ReasonUserInfo, "", "", false},
		{"without a subject", nil, map[string]any{"sub": ""}, oidc.ReasonUserInfo, "", "", false},
	} {
		f.Set(func(s *oidctest.Settings) { s.Person.Claims, s.Person.UserInfo = test.claims, test.info })
		claims, err := f.signIn(t, attempt())
		if reason(err) != test.want || claims.Email != test.email || claims.Name != test.fullName || claims.EmailVerified != test.verified || err == nil && claims.Subject == "" {
			t.Errorf("%s: %+v, %v", test.name, claims, err)
		}
	}
	f.Set(func(s *oidctest.Settings) {
		s.Metadata = func(m map[string]any) { delete(m, "userinfo_endpoint") }
	})
	f.client = f.newClient()
	before := f.Requests(oidctest.PathUserInfo)
	if claims, err := f.signIn(t, attempt()); err != nil || claims.Email != "" || f.Requests(oidctest.PathUserInfo) != before {
		t.Errorf("without the endpoint: %+v, %v", claims, err)
	}
}

func TestSignedUserInfo(t *testing.T) {
	f := newFlow(t)
	f.Set(func(s *oidctest.Settings) {
		s.Person.Claims, s.Person.UserInfo = nil, map[string]any{"email": "grace@acme.example", "email_verified": true}
	})
	without := func(claim string) func(*oidctest.Token) {
		return func(token *oidctest.Token) { delete(token.Claims, claim) }
	}
	with := func(claim string, value any) func(*oidctest.Token) {
		return func(token *oidctest.Token) { token.Claims[claim] = value }
	}
	for name, test := range map[string]struct {
		change func(*oidctest.Token)
		want   string
	}{
		"as it should be":         {func(*oidctest.Token) {}, "accepted"},
		"another algorithm":       {func(token *oidctest.Token) { token.Use("ES256") }, "accepted"},
		"without an issuer":       {without("iss"), "accepted"},
		"without an audience":     {without("aud"), "accepted"},
		"one of two audiences":    {with("aud", []string{"another", oidctest.ClientID}), "accepted"},
		"of another issuer":       {with("iss", "https://login.elsewhere.example"), oidc.ReasonUserInfoResponse},
		"for another client":      {with("aud", "another"), oidc.ReasonUserInfoResponse},
		"for a number":            {with("aud", 1), oidc.ReasonUserInfoResponse},
		"expired":                 {with("exp", f.now.Add(-2*time.Minute).Unix()), oidc.ReasonUserInfoResponse},
		"of another user":         {with("sub", "mallory"), oidc.ReasonUserInfo},
		"without a subject":       {without("sub"), oidc.ReasonUserInfo},
		"not signed":              {func(token *oidctest.Token) { token.Change = func(string) string { return "eyJhbGciOiJub25lIn0.e30." } }, oidc.ReasonUserInfoResponse},
		"of an unknown key":       {func(token *oidctest.Token) { token.KeyID = "unknown" }, oidc.ReasonUserInfoResponse},
		"with another signature":  {func(token *oidctest.Token) { token.Change = func(c string) string { return c[:len(c)-8] + "AAAAAAAA" } }, oidc.ReasonUserInfoResponse},
		"with another media type": {func(token *oidctest.Token) { token.Change = func(string) string { return "<html></html>" } }, oidc.ReasonUserInfoResponse},
	} {
		f.Set(func(s *oidctest.Settings) { s.UserInfo = test.change })
		claims, err := f.signIn(t, attempt())
		if reason(err) != test.want || (err == nil) != (claims.Email == "grace@acme.example" && claims.EmailVerified) {
			t.Errorf("%s: %+v, %v", name, claims, err)
		}
	}
	f.Set(func(s *oidctest.Settings) {
		s.UserInfo = func(token *oidctest.Token) { token.Use("ES256") }
		s.Metadata = func(m map[string]any) { m["userinfo_signing_alg_values_supported"] = []string{"RS256"} }
	})
	f.client = f.newClient()
	if claims, err := f.signIn(t, attempt()); reason(err) != oidc.ReasonUserInfoResponse || claims.Email != "" {
		t.Errorf("an algorithm that is not listed: %+v, %v", claims, err)
	}
}

// The userinfo endpoint is not requested if the ID token has the address, and never by Redeem.
func TestUserInfoIsRequestedOnDemand(t *testing.T) {
	f := newFlow(t)
	f.Set(func(s *oidctest.Settings) {
		s.Handlers = map[string]http.HandlerFunc{oidctest.PathUserInfo: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }}
	})
	if claims, err := f.signIn(t, attempt()); err != nil || claims.HasMore() {
		t.Errorf("%+v, %v", claims, err)
	}
	f.Set(func(s *oidctest.Settings) { s.Person.Claims = nil })
	a := attempt()
	claims, err := f.client.Redeem(t.Context(), f.provider, a, f.callback(t, a))
	if n := f.Requests(oidctest.PathUserInfo); err != nil || !claims.HasMore() || n != 0 {
		t.Errorf("%d requests, %+v, %v", n, claims, err)
	}
	if err := f.client.AddUserInfo(t.Context(), f.provider, &claims); reason(err) != oidc.ReasonUserInfoResponse {
		t.Errorf("status 403: %v", err)
	}
}

package oidc_test

import (
	"errors"
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

// signIn signs in with one attempt.
func (f *flow) signIn(t *testing.T, a oidc.Attempt) (oidc.Claims, error) {
	t.Helper()
	return f.client.Redeem(t.Context(), f.provider, a, f.callback(t, a))
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

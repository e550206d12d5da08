package oidc_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

// TestWrongTokens sends every wrong token twice: the second time, the metadata lists none and HMAC.
func TestWrongTokens(t *testing.T) {
	f := newFlow(t)
	accepted := 0
	for _, metadata := range []func(map[string]any){nil, func(m map[string]any) {
		m["id_token_signing_alg_values_supported"] = append([]string{"none", "None", "HS256", "HS384", "HS512"}, oidctest.Algorithms...)
	}} {
		f.client = f.newClient()
		for _, wrong := range oidctest.WrongTokens {
			t.Run(wrong.Name, func(t *testing.T) {
				f.Set(func(s *oidctest.Settings) { s.Metadata, s.Token = metadata, wrong.Change })
				claims, err := f.signIn(t, attempt())
				if err == nil {
					accepted++
				}
				if got := reason(err); got != wrong.Reason {
					t.Errorf("%s, want %s (%+v)", got, wrong.Reason, claims)
				}
			})
		}
		f.Set(func(s *oidctest.Settings) { s.Token = nil })
		if _, err := f.signIn(t, attempt()); err != nil {
			t.Errorf("a valid token: %v", err)
		}
	}
	if accepted != 0 || len(oidctest.WrongTokens) < 70 {
		t.Errorf("%d of %d wrong tokens are accepted", accepted, len(oidctest.WrongTokens))
	}
}

func TestAcceptedAlgorithms(t *testing.T) {
	f := newFlow(t)
	for _, algorithm := range oidctest.Algorithms {
		f.Set(func(s *oidctest.Settings) {
			s.Token = func(token *oidctest.Token) {
				token.Use(algorithm)
				token.HashAccessToken()
			}
		})
		if _, err := f.signIn(t, attempt()); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		f.Set(func(s *oidctest.Settings) {
			s.Token = func(token *oidctest.Token) {
				token.Use(algorithm)
				token.AccessToken = "another token"
				token.HashAccessToken()
			}
		})
		if _, err := f.signIn(t, attempt()); reason(err) != oidc.ReasonAccessToken {
			t.Errorf("%s with the hash of another access token: %s", algorithm, reason(err))
		}
	}
}

func TestAlgorithmsThatTheMetadataDoesNotListAreRefused(t *testing.T) {
	f := newFlow(t)
	for _, test := range []struct {
		listed []string // nil: no list
		used   string
		want   string
	}{
		{nil, "RS256", "accepted"}, {nil, "ES256", oidc.ReasonAlgorithm}, {[]string{"ES256"}, "ES256", "accepted"}, {[]string{"ES256"}, "RS256", oidc.ReasonAlgorithm},
		{[]string{"RS256", "EdDSA"}, "PS256", oidc.ReasonAlgorithm}, {[]string{"RS256", "EdDSA"}, "EdDSA", "accepted"},
	} {
		f.Set(func(s *oidctest.Settings) {
			s.Metadata = func(m map[string]any) {
				delete(m, "id_token_signing_alg_values_supported")
				if test.listed != nil {
					m["id_token_signing_alg_values_supported"] = test.listed
				}
			}
			s.Token = func(token *oidctest.Token) { token.Use(test.used) }
		})
		f.client = f.newClient()
		if _, err := f.signIn(t, attempt()); reason(err) != test.want {
			t.Errorf("%s, with %v listed: %s, want %s", test.used, test.listed, reason(err), test.want)
		}
	}
}

func TestClocksMayDifferByAMinute(t *testing.T) {
	f := newFlow(t)
	for _, test := range []struct {
		claim string
		shift time.Duration
		want  string
	}{
		{"exp", -59 * time.Second, "accepted"}, {"exp", -60 * time.Second, oidc.ReasonExpired},
		{"iat", 60 * time.Second, "accepted"}, {"iat", 61 * time.Second, oidc.ReasonTime},
		{"nbf", 60 * time.Second, "accepted"}, {"nbf", 61 * time.Second, oidc.ReasonTime},
	} {
		f.Set(func(s *oidctest.Settings) {
			s.Token = func(token *oidctest.Token) { token.Claims[test.claim] = f.now.Add(test.shift).Unix() }
		})
		if _, err := f.signIn(t, attempt()); reason(err) != test.want {
			t.Errorf("%s in %s: %s, want %s", test.claim, test.shift, reason(err), test.want)
		}
	}
}

func TestValidTokensThatAreUnusual(t *testing.T) {
	f := newFlow(t)
	for name, change := range map[string]map[string]any{
		"aud in an array":          {"aud": []string{oidctest.ClientID}},
		"azp":                      {"azp": oidctest.ClientID},
		"exp with a fraction":      {"exp": float64(f.now.Unix()) + 0.5},
		"exp in the far future":    {"exp": 1e300},
		"sub of 255 characters":    {"sub": strings.Repeat("a", 255)},
		"sub with a space":         {"sub": "auth0|a b"},
		"claims of other types":    {"email": 7, "name": []string{"Ada"}, "acr": 1, "amr": "pwd", "auth_time": -1e300, "email_verified": []bool{true}},
		"unknown claims":           {"x": map[string]any{"a": []any{1, nil, "b"}}},
		"claims with other letter": {"NONCE": "other", "ISS": "other", "Exp": 0},
	} {
		f.Set(func(s *oidctest.Settings) { s.Token = func(token *oidctest.Token) { maps.Copy(token.Claims, change) } })
		claims, err := f.signIn(t, attempt())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if change["email"] == 7 && (claims.Email != "" || claims.Name != "" || claims.ACR != "" || claims.AMR != nil || !claims.AuthTime.IsZero() || claims.EmailVerified) {
			t.Errorf("%s: %+v", name, claims)
		}
	}
}

func TestOnlyTheBooleanTrueVerifiesAnAddress(t *testing.T) {
	f := newFlow(t)
	for name, value := range map[string]any{"false": false, "null": nil, "string": "true", "1": 1, "array": []bool{true}, "object": map[string]bool{"true": true}} {
		f.Set(func(s *oidctest.Settings) { s.Person.Claims["email_verified"] = value })
		if claims, err := f.signIn(t, attempt()); err != nil || claims.EmailVerified || claims.Email != "ada@acme.example" {
			t.Errorf("%s: %+v, %v", name, claims, err)
		}
	}
	f.Set(func(s *oidctest.Settings) {
		s.Person.Claims = map[string]any{"email": "ada@acme.example", "Email_Verified": true}
	})
	if claims, err := f.signIn(t, attempt()); err != nil || claims.EmailVerified {
		t.Errorf("absent: %+v, %v", claims, err)
	}
}

func TestAuthenticationAgain(t *testing.T) {
	f := newFlow(t)
	a := attempt()
	a.Reauthenticate, a.ACRValues, a.LoginHint = true, []string{"phr", "mfa"}, "ada+b@acme.example"
	f.Set(func(s *oidctest.Settings) {
		s.Token = func(token *oidctest.Token) { token.Claims["acr"], token.Claims["amr"] = "phr", []string{"pwd", "otp"} }
	})
	claims, err := f.signIn(t, a)
	if err != nil || !claims.AuthTime.Equal(f.now) || claims.ACR != "phr" || len(claims.AMR) != 2 || claims.AMR[1] != "otp" {
		t.Errorf("%+v, %v", claims, err)
	}
	if q := f.Last(oidctest.PathAuthorization); q.Get("max_age") != "0" || q.Get("acr_values") != "phr mfa" || q.Get("login_hint") != "ada+b@acme.example" {
		t.Errorf("%v", q)
	}
	for _, test := range []struct {
		ago  time.Duration
		want string
	}{
		{5 * time.Minute, "accepted"}, {5*time.Minute + time.Second, oidc.ReasonAuthTime}, {-time.Minute, "accepted"}, {-61 * time.Second, oidc.ReasonAuthTime}, {24 * time.Hour, oidc.ReasonAuthTime},
	} {
		f.Set(func(s *oidctest.Settings) {
			s.Token = func(token *oidctest.Token) { token.Claims["auth_time"] = f.now.Add(-test.ago).Unix() }
		})
		if _, err := f.signIn(t, a); reason(err) != test.want {
			t.Errorf("%s ago: %s, want %s", test.ago, reason(err), test.want)
		}
	}
	for name, change := range map[string]func(map[string]any){
		"missing": func(c map[string]any) { delete(c, "auth_time") },
		"null":    func(c map[string]any) { c["auth_time"] = nil },
		"string":  func(c map[string]any) { c["auth_time"] = "now" },
		"digits":  func(c map[string]any) { c["auth_time"] = strconv.FormatInt(f.now.Unix(), 10) },
		"array":   func(c map[string]any) { c["auth_time"] = []int64{f.now.Unix()} },
	} {
		f.Set(func(s *oidctest.Settings) { s.Token = func(token *oidctest.Token) { change(token.Claims) } })
		if _, err := f.signIn(t, a); reason(err) != oidc.ReasonAuthTime {
			t.Errorf("%s: %s", name, reason(err))
		}
		if _, err := f.signIn(t, attempt()); err != nil {
			t.Errorf("%s, not requested: %v", name, err)
		}
	}
}

package oidc

import (
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
)

// FuzzClaims checks claims whose signature is valid. Accepted claims have the values of the attempt.
func FuzzClaims(f *testing.F) {
	for _, text := range []string{
		`{"iss":"https://a.example","sub":"1","aud":"rolecall","exp":2000000000,"iat":1000000000,"nonce":"n"}`,
		`{"iss":"https://a.example","sub":"1","aud":["rolecall"],"azp":"rolecall","exp":2e9,"iat":1e9,"nbf":1e9,"nonce":"n","auth_time":1699999999,"amr":["pwd"],"acr":"1","email":"a@b","email_verified":true}`,
		`{"iss":"https://a.example","aud":[],"at_hash":"x"}`, `[]`, `null`, `{"aud":{}}`,
	} {
		f.Add(text)
	}
	p := Provider{Issuer: "https://a.example", ClientID: "rolecall"}
	now := time.Unix(1_700_000_000, 0)
	f.Fuzz(func(t *testing.T, text string) {
		token := &idToken{token: &oidc.IDToken{}}
		if json.Unmarshal([]byte(text), token) != nil {
			return
		}
		claims, err := token.check(p, Attempt{Nonce: "n", Reauthenticate: true}, "access", now)
		if err != nil {
			return
		}
		if token.Issuer != p.Issuer || token.Nonce != "n" || claims.Subject == "" || len(claims.Subject) > 255 || *token.Expiry < 1_699_999_940 || claims.AuthTime.Before(now.Add(-freshFor)) {
			t.Errorf("%s is accepted: %+v", text, claims)
		}
	})
}

// FuzzKeys parses keys. Keys that are used are public keys for signatures.
func FuzzKeys(f *testing.F) {
	for _, text := range []string{
		`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		`{"keys":[{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","use":"enc"}]}`,
		`{"keys":[{"kty":"oct","k":"AAAA"},{"kty":"RSA","n":"AA","e":"AQAB"},{},1,null]}`, `{"keys":null}`, `{}`, `[]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := parseKeys([]byte(text))
		if err != nil {
			return
		}
		for _, key := range set.keys {
			if !key.IsPublic() || !key.Valid() || key.Use == "enc" {
				t.Errorf("%s: %+v is used", text, key)
			}
		}
		set.find(jose.Header{})
	})
}

package oidctest

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"
)

// WrongToken is a way in which an ID token can be wrong. Change makes it so.
type WrongToken struct {
	Name   string
	Reason string // why it must be refused
	Change func(t *Token)
}

// WrongTokens are ID tokens that must be refused. The provider sends one of them if Settings.Token is its Change.
var WrongTokens = []WrongToken{
	{"another iss", "issuer", claim("iss", "https://other.example")},
	{"iss with a slash at the end", "issuer", func(t *Token) { t.Claims["iss"] = t.Claims["iss"].(string) + "/" }},
	{"iss in capital letters", "issuer", func(t *Token) { t.Claims["iss"] = strings.ToUpper(t.Claims["iss"].(string)) }},
	{"iss without its scheme", "issuer", func(t *Token) { t.Claims["iss"] = strings.TrimPrefix(t.Claims["iss"].(string), "https://") }},
	{"no iss", "issuer", without("iss")},
	{"iss is an array", "token", func(t *Token) { t.Claims["iss"] = []any{t.Claims["iss"]} }},

	{"another aud", "audience", claim("aud", "other")},
	{"no aud", "audience", without("aud")},
	{"empty aud", "audience", claim("aud", []string{})},
	{"aud is null", "audience", claim("aud", nil)},
	{"aud begins with the client", "audience", claim("aud", ClientID+"-2")},
	{"another aud after the client", "audience", claim("aud", []string{ClientID, "other"})},
	{"another aud before the client", "audience", claim("aud", []string{"other", ClientID})},
	{"another aud after the client, with azp", "audience", claims(map[string]any{"aud": []string{ClientID, "other"}, "azp": ClientID})},
	{"aud is a number", "token", claim("aud", 7)},
	{"aud is an array of arrays", "token", claim("aud", [][]string{{ClientID}})},
	{"aud has another name", "audience", func(t *Token) { delete(t.Claims, "aud"); t.Claims["Aud"] = ClientID }},
	{"another aud first, twice", "token", payload(func(text string) string { return `{"aud":"other",` + text[1:] })},
	{"another aud last, twice", "token", payload(func(text string) string { return text[:len(text)-1] + `,"aud":"other"}` })},

	{"another azp", "authorized-party", claim("azp", "other")},
	{"empty azp", "authorized-party", claim("azp", "")},
	{"azp is an array", "token", claim("azp", []string{ClientID})},

	{"no nonce", "nonce", without("nonce")},
	{"another nonce", "nonce", claim("nonce", "the nonce of another attempt")},
	{"empty nonce", "nonce", claim("nonce", "")},
	{"the beginning of the nonce", "nonce", func(t *Token) { t.Claims["nonce"] = t.Claims["nonce"].(string)[:8] }},
	{"nonce is an array", "token", func(t *Token) { t.Claims["nonce"] = []any{t.Claims["nonce"]} }},

	{"exp two minutes ago", "expired", shifted("exp", -2*time.Minute)},
	{"no exp", "expired", without("exp")},
	{"exp is null", "token", claim("exp", nil)},
	{"exp is zero", "expired", claim("exp", 0)},
	{"exp is negative", "expired", claim("exp", -1e300)},
	{"exp is a string", "token", claim("exp", "4102444800")},
	{"iat in two minutes", "issued-in-the-future", shifted("iat", 2*time.Minute)},
	{"no iat", "issued-in-the-future", without("iat")},
	{"iat in milliseconds", "issued-in-the-future", func(t *Token) { t.Claims["iat"] = t.Claims["iat"].(int64) * 1000 }},
	{"nbf in two minutes", "issued-in-the-future", shifted("nbf", 2*time.Minute)},
	{"nbf is a string", "token", claim("nbf", "0")},

	{"no sub", "subject", without("sub")},
	{"empty sub", "subject", claim("sub", "")},
	{"sub of 256 characters", "subject", claim("sub", strings.Repeat("a", 256))},
	{"sub with other letters", "subject", claim("sub", "adà")},
	{"sub with a line end", "subject", claim("sub", "ada\n")},
	{"sub with a zero byte", "subject", claim("sub", "ada\x00")},
	{"sub is a number", "token", claim("sub", 7)},

	{"another at_hash", "access-token", claim("at_hash", "77QmUPtjPfzWtF2AnpK9RQ")},
	{"empty at_hash", "access-token", claim("at_hash", "")},
	{"at_hash is a number", "token", claim("at_hash", 7)},

	{"alg none without a signature", "algorithm", unsigned("none")},
	{"alg None without a signature", "algorithm", unsigned("None")},
	{"no alg", "algorithm", unsigned("")},
	{"alg none with a signature", "algorithm", header(map[string]any{"alg": "none"})},
	{"HS256 with the public key as PEM", "algorithm", func(t *Token) { t.Algorithm, t.Key = "HS256", t.publicPEM() }},
	{"HS256 with the public key as JWK", "algorithm", func(t *Token) { t.Algorithm, t.Key = "HS256", t.publicJWK() }},
	{"HS256 with the client secret", "algorithm", func(t *Token) { t.Algorithm, t.Key = "HS256", []byte(ClientSecret+"          ") }},
	{"RS384 in the header of a token with RS256", "signature", header(map[string]any{"alg": "RS384", "kid": "first-RS256"})},
	{"an algorithm of another kind of key", "key", header(map[string]any{"alg": "RS256", "kid": "first-ES256"})},

	{"signed with another key", "signature", func(t *Token) { t.Key = otherKey().rsa }},
	{"no signature", "signature", func(t *Token) { t.Change = func(c string) string { return c[:strings.LastIndex(c, ".")+1] } }},
	{"a changed signature", "signature", func(t *Token) { t.Change = func(c string) string { return c[:len(c)-8] + "AAAAAAAA" } }},
	{"claims changed after the signature", "signature", changedClaims},
	{"unknown kid", "key", func(t *Token) { t.KeyID = "unknown" }},
	{"signed with a key in the header", "key", func(t *Token) {
		t.Key, t.KeyID, t.Header["jwk"] = otherKey().rsa, "other-RS256", otherKey().public()[0]
	}},
	{"signed with a key whose address is in the header", "key", func(t *Token) {
		t.Key, t.KeyID, t.Header["jku"] = otherKey().rsa, "other-RS256", "https://other.example/keys"
	}},
	{"an unknown critical header", "signature", func(t *Token) { t.Header["crit"], t.Header["x"] = []string{"x"}, 1 }},

	{"not a token", "token", func(t *Token) { t.Change = func(string) string { return "token" } }},
	{"two parts", "token", func(t *Token) { t.Change = func(c string) string { return c[:strings.LastIndex(c, ".")] } }},
	{"five parts", "token", func(t *Token) { t.Change = func(c string) string { return c + ".AAAA.AAAA" } }},
	{"two tokens", "token", func(t *Token) { t.Change = func(c string) string { return c + c } }},
	{"the JSON serialization", "token", func(t *Token) { t.Change = asJSON }},
	{"claims are an array", "token", payload(func(text string) string { return "[" + text + "]" })},
	{"claims are null", "issuer", payload(func(string) string { return "null" })},
	{"claims are not JSON", "token", payload(func(text string) string { return text[1:] })},
	{"claims with text after them", "token", payload(func(text string) string { return text + "{}" })},
	{"claims that are not UTF-8", "token", payload(func(text string) string { return `{"x":"` + "\xff" + `",` + text[1:] })},
	{"claims of 10,000 arrays", "token", payload(func(text string) string {
		return `{"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "," + text[1:]
	})},
	{"claims from another place", "token", claims(map[string]any{"_claim_names": map[string]string{"email": "missing"}})},
}

func claim(name string, value any) func(*Token) { return func(t *Token) { t.Claims[name] = value } }

func claims(values map[string]any) func(*Token) {
	return func(t *Token) {
		for name, value := range values {
			t.Claims[name] = value
		}
	}
}

func without(name string) func(*Token) { return func(t *Token) { delete(t.Claims, name) } }

// shifted sets a claim to a time relative to the time of the token.
func shifted(name string, by time.Duration) func(*Token) {
	return func(t *Token) { t.Claims[name] = t.Claims["iat"].(int64) + int64(by/time.Second) }
}

// payload changes the JSON of the claims.
func payload(change func(text string) string) func(*Token) {
	return func(t *Token) {
		text, err := json.Marshal(t.Claims)
		if err != nil {
			panic(err)
		}
		t.Payload = change(string(text))
	}
}

// header replaces the header after the token was signed.
func header(values map[string]any) func(*Token) {
	return func(t *Token) {
		t.Change = func(compact string) string {
			_, rest, _ := strings.Cut(compact, ".")
			return encode(values) + "." + rest
		}
	}
}

// unsigned removes the signature, and names another algorithm.
func unsigned(algorithm string) func(*Token) {
	return func(t *Token) {
		t.Change = func(compact string) string {
			return encode(map[string]any{"alg": algorithm, "kid": t.KeyID}) + "." + strings.Split(compact, ".")[1] + "."
		}
	}
}

func changedClaims(t *Token) {
	t.Change = func(compact string) string {
		parts := strings.Split(compact, ".")
		t.Claims["sub"] = "mallory"
		return parts[0] + "." + encode(t.Claims) + "." + parts[2]
	}
}

func asJSON(compact string) string {
	parts := strings.Split(compact, ".")
	text, err := json.Marshal(map[string]string{"protected": parts[0], "payload": parts[1], "signature": parts[2]})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// publicPEM returns the public RSA key as PEM.
func (t *Token) publicPEM() []byte {
	der, err := x509.MarshalPKIXPublicKey(t.keys.rsa.Public())
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// publicJWK returns the public RSA key as JSON.
func (t *Token) publicJWK() []byte {
	text, err := json.Marshal(t.keys.public()[0])
	if err != nil {
		panic(err)
	}
	return text
}

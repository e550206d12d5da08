package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// skew is by how much the clock of a provider may differ.
	skew = time.Minute

	// freshFor is the maximum age of the user's authentication at the provider, if Attempt.Reauthenticate requested a new
	// one.
	freshFor = 5 * time.Minute

	// maxSubject is the maximum length of a subject (OpenID Connect Core 1.0, section 2).
	maxSubject = 255
)

// idToken is an ID token with a valid signature. Its claims are not checked yet.
type idToken struct {
	token   *oidc.IDToken
	payload []byte // JSON

	Issuer    string         `json:"iss"`
	Subject   string         `json:"sub"`
	Audience  jsontext.Value `json:"aud"` // a string or an array of strings
	Party     *string        `json:"azp"`
	Expiry    *float64       `json:"exp"`
	IssuedAt  *float64       `json:"iat"`
	NotBefore *float64       `json:"nbf"`
	Nonce     string         `json:"nonce"`
	Hash      *string        `json:"at_hash"`

	// Claims that do not decide whether the token is valid. With another type, they count as absent.
	Email         jsontext.Value `json:"email"`
	EmailVerified jsontext.Value `json:"email_verified"`
	Name          jsontext.Value `json:"name"`
	ACR           jsontext.Value `json:"acr"`
	AMR           jsontext.Value `json:"amr"`
	AuthTime      jsontext.Value `json:"auth_time"` // decides if the provider was to authenticate the user again
}

// verify verifies the signature of an ID token, or of a response of the userinfo endpoint, with one of the accepted
// algorithms, and parses it.
func (c *Client) verify(ctx context.Context, d *document, raw string, accepted []string) (*idToken, error) {
	signed, err := parse(raw, accepted)
	if err != nil {
		return nil, err
	}
	keys := &signature{client: c, document: d, signed: signed}
	token, err := oidc.NewVerifier(d.Issuer, keys, &oidc.Config{
		SupportedSigningAlgs: accepted,
		SkipIssuerCheck:      true, SkipClientIDCheck: true, SkipExpiryCheck: true, // check does it, and returns the reason
	}).Verify(ctx, raw)
	if keys.err != nil {
		return nil, keys.err
	}
	if err != nil {
		return nil, refused(ReasonToken)
	}
	t := &idToken{token: token, payload: keys.payload}
	if err := json.Unmarshal(keys.payload, t); err != nil {
		return nil, refused(ReasonToken)
	}
	return t, nil
}

// list returns the list in the claim with the name. The name "" is no claim.
func (t *idToken) list(name string) List {
	var claims map[string]jsontext.Value
	if name == "" || json.Unmarshal(t.payload, &claims) != nil {
		return List{}
	}
	var elsewhere map[string]jsontext.Value
	if value := claims["_claim_names"]; value.Kind() == '{' && json.Unmarshal(value, &elsewhere) == nil && elsewhere[name] != nil {
		return List{State: ListOmitted}
	}
	switch value := claims[name]; value.Kind() {
	case 0, 'n': // absent, null
		return List{}
	case '"':
		one, ok := text(value)
		return listOf([]string{one}, ok)
	case '[':
		var all []jsontext.Value
		ok := json.Unmarshal(value, &all) == nil
		values := make([]string, len(all))
		for i := range all {
			one, isText := text(all[i])
			values[i], ok = one, ok && isText
		}
		return listOf(values, ok)
	}
	return List{State: ListInvalid}
}

// listOf returns the list with the values, if ok is true, or an invalid one.
func listOf(values []string, ok bool) List {
	if !ok {
		return List{State: ListInvalid}
	}
	return List{ListStated, values}
}

// parse parses a token in the compact serialization. Others are refused.
func parse(raw string, accepted []string) (*jose.JSONWebSignature, error) {
	var allowed []jose.SignatureAlgorithm
	for _, a := range accepted {
		allowed = append(allowed, jose.SignatureAlgorithm(a))
	}
	signed, err := jose.ParseSignedCompact(raw, allowed)
	var algorithm *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &algorithm):
		return nil, refused(ReasonAlgorithm)
	case err != nil || len(signed.Signatures) != 1:
		return nil, refused(ReasonToken)
	}
	return signed, nil
}

// signature verifies one signature with the keys of a provider, for the verifier of the library. It keeps
// the payload and the error, because the library returns only its text.
type signature struct {
	client   *Client
	document *document
	signed   *jose.JSONWebSignature
	payload  []byte
	err      error
}

// VerifySignature returns the payload of the token.
func (s *signature) VerifySignature(ctx context.Context, _ string) ([]byte, error) {
	s.payload, s.err = s.verify(ctx)
	return s.payload, s.err
}

// verify uses the cached keys. If none of them has signed the token, it fetches the keys again, unless that
// has just happened: the provider may have a new key.
func (s *signature) verify(ctx context.Context) ([]byte, error) {
	keys, err := s.client.keys.get(ctx, s.document.Keys, keysFresh, s.client.fetchKeys)
	if err != nil {
		return nil, err
	}
	payload, wrong := keys.verify(s.signed)
	if wrong != nil {
		newer, err := s.client.keys.get(ctx, s.document.Keys, keysPause, s.client.fetchKeys)
		if err != nil {
			return nil, err
		}
		payload, wrong = newer.verify(s.signed)
	}
	switch {
	case errors.Is(wrong, errKey):
		return nil, refused(ReasonKey)
	case wrong != nil:
		return nil, refused(ReasonSignature)
	}
	return payload, nil
}

// check checks the claims (OpenID Connect Core 1.0, section 3.1.3.7) and returns them.
func (t *idToken) check(p Provider, a Attempt, accessToken string, now time.Time) (Claims, error) {
	audience, ok := t.audience()
	switch {
	case !ok:
		return Claims{}, refused(ReasonToken)
	case t.Issuer != p.Issuer:
		return Claims{}, refused(ReasonIssuer)
	case !onlyFor(audience, p.ClientID):
		return Claims{}, refused(ReasonAudience)
	case t.Party != nil && *t.Party != p.ClientID:
		return Claims{}, refused(ReasonParty)
	case t.Expiry == nil || *t.Expiry <= seconds(now.Add(-skew)):
		return Claims{}, refused(ReasonExpired)
	case t.IssuedAt == nil || *t.IssuedAt > seconds(now.Add(skew)) || t.NotBefore != nil && *t.NotBefore > seconds(now.Add(skew)):
		return Claims{}, refused(ReasonTime)
	case a.Nonce == "" || subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(a.Nonce)) != 1:
		return Claims{}, refused(ReasonNonce)
	case !isSubject(t.Subject):
		return Claims{}, refused(ReasonSubject)
	case t.Hash != nil && t.token.VerifyAccessToken(accessToken) != nil:
		return Claims{}, refused(ReasonAccessToken)
	case a.Reauthenticate && !t.authenticatedAgain(now):
		return Claims{}, refused(ReasonAuthTime)
	}
	claims := t.claims()
	claims.List = t.list(a.List)
	return claims, nil
}

// audience returns the audiences, and false if they have another type than a string or an array of strings.
func (t *idToken) audience() (all []string, ok bool) {
	if t.Audience.Kind() == '"' {
		one, ok := text(t.Audience)
		return []string{one}, ok
	}
	return all, t.Audience == nil || json.Unmarshal(t.Audience, &all) == nil
}

// onlyFor reports whether the client is the only audience: no other one is trusted.
func onlyFor(audience []string, client string) bool {
	for _, a := range audience {
		if a != client {
			return false
		}
	}
	return len(audience) > 0
}

// isSubject reports whether the subject has 1 to 255 visible characters of ASCII, or spaces.
func isSubject(subject string) bool {
	return subject != "" && len(subject) <= maxSubject && strings.IndexFunc(subject, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// authenticatedAgain reports whether the provider has just authenticated the user.
func (t *idToken) authenticatedAgain(now time.Time) bool {
	at, ok := number(t.AuthTime)
	return ok && at >= seconds(now.Add(-freshFor)) && at <= seconds(now.Add(skew))
}

func (t *idToken) claims() Claims {
	c := Claims{Subject: t.Subject, EmailVerified: string(t.EmailVerified) == "true", VerificationStated: t.EmailVerified != nil}
	c.Email, _ = text(t.Email)
	c.Name, _ = text(t.Name)
	c.ACR, _ = text(t.ACR)
	if at, ok := number(t.AuthTime); ok && at > 0 && at < seconds(latest) {
		c.AuthTime = time.Unix(int64(at), 0).UTC()
	}
	var methods []string
	if t.AMR != nil && json.Unmarshal(t.AMR, &methods) == nil {
		c.AMR = methods
	}
	return c
}

// latest is the last time that a claim can state.
var latest = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// text returns the string in a JSON value, and false if the value is another one.
func text(value jsontext.Value) (s string, ok bool) {
	ok = value.Kind() == '"' && json.Unmarshal(value, &s) == nil
	return s, ok
}

// number returns the number in a JSON value, and false if the value is another one.
func number(value jsontext.Value) (n float64, ok bool) {
	ok = value.Kind() == '0' && json.Unmarshal(value, &n) == nil
	return n, ok
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

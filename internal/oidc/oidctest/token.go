package oidctest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"maps"
	"sync"

	"github.com/go-jose/go-jose/v4"
)

// Algorithms are the algorithms with which the provider can sign.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// key is a key of each kind. Their IDs begin with name.
type key struct {
	name string
	rsa  *rsa.PrivateKey
	ec   map[string]*ecdsa.PrivateKey // by algorithm
	ed   ed25519.PrivateKey
}

// firstKey and otherKey return keys that all providers of a process share, because creating them is slow.
var (
	firstKey = sync.OnceValue(func() key { return newKey("first") })
	otherKey = sync.OnceValue(func() key { return newKey("other") })
)

func newKey(name string) key {
	k := key{name: name, ec: map[string]*ecdsa.PrivateKey{}}
	var err error
	if k.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		panic(err)
	}
	for algorithm, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		if k.ec[algorithm], err = ecdsa.GenerateKey(curve, rand.Reader); err != nil {
			panic(err)
		}
	}
	if _, k.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		panic(err)
	}
	return k
}

// public returns the public keys as JSON Web Keys.
func (k key) public() []any {
	keys := []any{
		jose.JSONWebKey{Key: k.rsa.Public(), KeyID: k.name + "-RS256", Use: "sig"},
		jose.JSONWebKey{Key: k.ed.Public(), KeyID: k.name + "-EdDSA", Use: "sig", Algorithm: "EdDSA"},
	}
	for algorithm, private := range k.ec {
		keys = append(keys, jose.JSONWebKey{Key: private.Public(), KeyID: k.name + "-" + algorithm, Use: "sig", Algorithm: algorithm})
	}
	return keys
}

// forAlgorithm returns the private key for an algorithm, and its ID.
func (k key) forAlgorithm(algorithm string) (private any, id string) {
	switch {
	case algorithm == "EdDSA":
		return k.ed, k.name + "-EdDSA"
	case k.ec[algorithm] != nil:
		return k.ec[algorithm], k.name + "-" + algorithm
	}
	return k.rsa, k.name + "-RS256"
}

// RotateKeys makes the provider sign with other keys. It publishes only these.
func (p *Provider) RotateKeys() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = []key{otherKey()}
}

// AddKeys makes the provider publish other keys too, and sign with them.
func (p *Provider) AddKeys() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = []key{firstKey(), otherKey()}
}

// Token is an ID token before it is signed.
type Token struct {
	Algorithm string
	KeyID     string // empty: without kid
	Header    map[string]any
	Claims    map[string]any
	Payload   string // replaces the claims
	Key       any    // replaces the key of the algorithm

	// Change changes the signed token.
	Change func(compact string) string

	// AccessToken is the access token of the response.
	AccessToken string

	keys key
}

// newToken returns a valid token of the authorization, with the changes of the test.
func (p *Provider) newToken(a *authorization, accessToken string) *Token {
	now := p.now()
	t := p.unsigned(map[string]any{
		"iss": p.Issuer, "sub": p.settings.Person.Subject, "aud": ClientID, "nonce": a.nonce, "iat": now.Unix(), "exp": now.Unix() + 300,
	})
	t.AccessToken = accessToken
	if a.reauthorize {
		t.Claims["auth_time"] = now.Unix()
	}
	maps.Copy(t.Claims, p.settings.Person.Claims)
	if p.settings.Token != nil {
		p.settings.Token(t)
	}
	return t
}

// unsigned returns a token with the claims, which the last key signs with RS256.
func (p *Provider) unsigned(claims map[string]any) *Token {
	t := &Token{Algorithm: "RS256", keys: p.keys[len(p.keys)-1], Header: map[string]any{}, Claims: claims}
	_, t.KeyID = t.keys.forAlgorithm(t.Algorithm)
	return t
}

// Use signs the token with the algorithm, and the key of the provider for it.
func (t *Token) Use(algorithm string) {
	t.Algorithm = algorithm
	_, t.KeyID = t.keys.forAlgorithm(algorithm)
}

// SignWithRetiredKey signs the token with the key from before RotateKeys.
func (t *Token) SignWithRetiredKey() { t.Key, t.KeyID = firstKey().forAlgorithm(t.Algorithm) }

// HashAccessToken adds the claim at_hash.
func (t *Token) HashAccessToken() {
	var sum []byte
	switch t.Algorithm {
	case "RS256", "PS256", "ES256":
		s := sha256.Sum256([]byte(t.AccessToken))
		sum = s[:]
	case "RS384", "PS384", "ES384":
		s := sha512.Sum384([]byte(t.AccessToken))
		sum = s[:]
	default:
		s := sha512.Sum512([]byte(t.AccessToken))
		sum = s[:]
	}
	t.Claims["at_hash"] = base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}

// compact returns the signed token.
func (t *Token) compact() (string, error) {
	payload := []byte(t.Payload)
	if t.Payload == "" {
		var err error
		if payload, err = json.Marshal(t.Claims); err != nil {
			return "", err
		}
	}
	private := t.Key
	if private == nil {
		private, _ = t.keys.forAlgorithm(t.Algorithm)
	}
	options := &jose.SignerOptions{}
	if t.KeyID != "" {
		options.WithHeader("kid", t.KeyID)
	}
	for name, value := range t.Header {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(t.Algorithm), Key: private}, options)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	compact, err := signed.CompactSerialize()
	if err != nil || t.Change == nil {
		return compact, err
	}
	return t.Change(compact), nil
}

package oidc

import (
	"context"
	"crypto/rsa"
	"errors"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxKeys is the maximum number of keys of a provider. The others are ignored.
	maxKeys = 100

	// minRSA and maxRSA limit the size of RSA keys, in bits.
	minRSA, maxRSA = 2048, 8192
)

// keySet are the keys of a provider with which it can sign ID tokens.
type keySet struct {
	keys []jose.JSONWebKey
}

// keyBytes is about the size of a key without its texts. The modulus of the longest RSA key has 1 KiB.
const keyBytes = 1500

// size returns about how many bytes of memory the keys use.
func (s *keySet) size() int {
	size := keyBytes * len(s.keys)
	for i := range s.keys {
		key := &s.keys[i]
		size += len(key.KeyID) + len(key.Algorithm) + len(key.Use)
	}
	return size
}

// fetchKeys fetches the keys.
func (c *Client) fetchKeys(ctx context.Context, url string) (*keySet, error) {
	body, err := fetch(ctx, c.fetches, url)
	if err != nil {
		return nil, unavailable("the keys", err)
	}
	return parseKeys(body)
}

// parseKeys parses the keys. It leaves out keys that cannot be used.
func parseKeys(body []byte) (*keySet, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, unavailable("the keys", errDocument)
	}
	s := &keySet{}
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if len(s.keys) < maxKeys && key.UnmarshalJSON(text) == nil && usable(&key) {
			// The other members of a key are not used, and have any size.
			s.keys = append(s.keys, jose.JSONWebKey{Key: key.Key, KeyID: key.KeyID, Algorithm: key.Algorithm, Use: key.Use})
		}
	}
	return s, nil
}

// usable reports whether the key is a public key for signatures.
func usable(key *jose.JSONWebKey) bool {
	if !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
		return false
	}
	if k, ok := key.Key.(*rsa.PublicKey); ok {
		return k.N.BitLen() >= minRSA && k.N.BitLen() <= maxRSA
	}
	return true
}

// find returns the keys that the header of a signature can mean. Without the ID of a key, the set must
// have exactly one key (OpenID Connect Core 1.0, section 10.1).
func (s *keySet) find(header jose.Header) (keys []jose.JSONWebKey) {
	for _, key := range s.keys {
		if (key.KeyID == header.KeyID || header.KeyID == "") && (key.Algorithm == "" || key.Algorithm == header.Algorithm) {
			keys = append(keys, key)
		}
	}
	if header.KeyID == "" && len(keys) > 1 {
		return nil
	}
	return keys
}

var (
	errKey       = errors.New("the key is not known")
	errSignature = errors.New("the signature is wrong")
)

// verify returns the payload of the signed object, or errKey or errSignature.
func (s *keySet) verify(signed *jose.JSONWebSignature) ([]byte, error) {
	keys := s.find(signed.Signatures[0].Header)
	if len(keys) == 0 {
		return nil, errKey
	}
	for _, key := range keys {
		if payload, err := signed.Verify(key.Key); err == nil {
			return payload, nil
		}
	}
	return nil, errSignature
}

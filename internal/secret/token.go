package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

const tokenBytes = 32

// text is how tokens and sealed texts are written. It is strict, so that each
// has exactly one form.
var text = base64.RawURLEncoding.Strict()

// Token is a bearer token: 256 random bits as 43 base64url characters, for a
// program between a prefix and a checksum. Whoever knows it is whom it was given
// to; only its hash is stored.
type Token string

// NewToken returns a new random token.
func NewToken() Token { return Token(text.EncodeToString(NewKey())) }

// ParseToken returns the token that s is, or false if s does not have the shape
// of one.
func ParseToken(s string) (Token, bool) {
	var buffer [tokenBytes + 1]byte
	if len(s) != text.EncodedLen(tokenBytes) {
		return "", false
	}
	n, err := text.Decode(buffer[:], []byte(s))
	return Token(s), err == nil && n == tokenBytes
}

// Hash returns the SHA-256 of the token, the form in which it is stored. A slow
// hash would add nothing: there is nothing to guess in 256 random bits.
func (t Token) Hash() []byte {
	sum := sha256.Sum256([]byte(t))
	return sum[:]
}

// Seal returns the successor so that only the bearer of t can read it.
func (t Token) Seal(successor Token) []byte {
	return seal(derive([]byte(t), successorPurpose), []byte(successor), nil)
}

// Open returns what Seal of the same token sealed, or ErrSealed.
func (t Token) Open(sealed []byte) (Token, error) {
	successor, err := open(derive([]byte(t), successorPurpose), sealed, nil)
	return Token(successor), err
}

const successorPurpose = "session successor"

// NewKey returns 32 random bytes, fit for NewKeys.
func NewKey() []byte {
	key := make([]byte, tokenBytes)
	_, _ = rand.Read(key) // never fails: it ends the process instead
	return key
}

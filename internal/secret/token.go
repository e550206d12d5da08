package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

const tokenBytes = 32

// text is the encoding of tokens and sealed texts. The decoder is strict, so that each
// token or text has exactly one form.
var text = base64.RawURLEncoding.Strict()

// Token is a bearer token: 256 random bits as 43 base64url characters. A token for a program
// also has a prefix and a checksum. Knowledge of the token is the only proof of identity, so
// only its hash is stored.
type Token string

// NewToken returns a new random token.
func NewToken() Token { return Token(text.EncodeToString(NewKey())) }

// ParseToken returns s as a token, or false if s does not have the shape of a token.
func ParseToken(s string) (Token, bool) {
	var buffer [tokenBytes + 1]byte
	if len(s) != text.EncodedLen(tokenBytes) {
		return "", false
	}
	n, err := text.Decode(buffer[:], []byte(s))
	return Token(s), err == nil && n == tokenBytes
}

// Hash returns the SHA-256 of the token, the form in which it is stored. A slow hash is not
// necessary, because 256 random bits cannot be guessed.
func (t Token) Hash() []byte {
	sum := sha256.Sum256([]byte(t))
	return sum[:]
}

// Seal encrypts the successor with a key derived from t. Only a bearer of t can read it.
func (t Token) Seal(successor Token) []byte {
	return seal(derive([]byte(t), successorPurpose), []byte(successor), nil)
}

// Open returns the successor that Seal of the same token has sealed, or ErrSealed.
func (t Token) Open(sealed []byte) (Token, error) {
	successor, err := open(derive([]byte(t), successorPurpose), sealed, nil)
	return Token(successor), err
}

const successorPurpose = "session successor"

// NewKey returns 32 random bytes for NewKeys.
func NewKey() []byte {
	key := make([]byte, tokenBytes)
	_, _ = rand.Read(key) // never fails: it ends the process instead
	return key
}

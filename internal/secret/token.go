package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

const tokenBytes = 32

// text is the encoding of tokens and encrypted texts. The decoder is strict, so that only
// one text decodes to the same bytes.
var text = base64.RawURLEncoding.Strict()

// Token is a bearer token: 256 random bits as 43 base64url characters. A token for a
// program also has a prefix and a checksum. Everybody who knows the token can use it, so
// the store contains only its hash.
type Token string

// NewToken returns a new random token.
func NewToken() Token { return Token(text.EncodeToString(NewKey())) }

// ParseToken returns s as a token. It returns false if s does not have the length and the
// encoding of a token.
func ParseToken(s string) (Token, bool) {
	var buffer [tokenBytes + 1]byte
	if len(s) != text.EncodedLen(tokenBytes) {
		return "", false
	}
	n, err := text.Decode(buffer[:], []byte(s))
	return Token(s), err == nil && n == tokenBytes
}

// bearerPrefix begins the token of a session that clients send in the Authorization header. Other
// session tokens are in a cookie. The hash includes the prefix, so neither is accepted in place
// of the other.
const bearerPrefix = "rs_"

// ForHeader returns the token in the form for the Authorization header.
func (t Token) ForHeader() Token { return bearerPrefix + t }

// IsForHeader reports whether the token has the form that ForHeader returns. The length matters, because
// one of 262,144 other tokens begins with the prefix by chance.
func (t Token) IsForHeader() bool {
	return len(t) == len(bearerPrefix)+text.EncodedLen(tokenBytes) && strings.HasPrefix(string(t), bearerPrefix)
}

// NextSession returns a new session token in the form of t.
func (t Token) NextSession() Token {
	if t.IsForHeader() {
		return NewToken().ForHeader()
	}
	return NewToken()
}

// ParseHeaderSession returns s as a session token for the Authorization header. It returns false if
// s does not have the form that ForHeader returns.
func ParseHeaderSession(s string) (Token, bool) {
	rest, found := strings.CutPrefix(s, bearerPrefix)
	if _, ok := ParseToken(rest); !found || !ok {
		return "", false
	}
	return Token(s), true
}

// Hash returns the SHA-256 of the token. The store contains only this hash. A slow hash
// is not necessary, because 256 random bits cannot be guessed.
func (t Token) Hash() []byte {
	sum := sha256.Sum256([]byte(t))
	return sum[:]
}

// Seal encrypts the token successor with a key that is derived from t. So the store can
// keep the result, and only a client that has t can decrypt it.
func (t Token) Seal(successor Token) []byte {
	return seal(derive([]byte(t), successorPurpose), []byte(successor), nil)
}

// Open decrypts the successor that t.Seal has encrypted. It returns ErrSealed if another
// token encrypted it.
func (t Token) Open(sealed []byte) (Token, error) {
	successor, err := open(derive([]byte(t), successorPurpose), sealed, nil)
	return Token(successor), err
}

const successorPurpose = "session successor"

// NewKey returns 32 random bytes, for example as a key for NewKeys.
func NewKey() []byte {
	key := make([]byte, tokenBytes)
	_, _ = rand.Read(key) // never fails: it ends the process instead
	return key
}

package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"unicode"
)

// RecoveryCode is a code that a user enters in place of a lost second factor. It works
// once. A code has 128 random bits as 26 digits of Crockford's base32, in groups that can
// be read aloud. A fast hash is enough to store it, because 128 random bits cannot be
// guessed.
type RecoveryCode string

// RecoveryCodes is the number of codes that NewRecoveryCodes returns.
const RecoveryCodes = 10

const (
	recoveryBytes      = 16
	olderRecoveryBytes = 10 // length of codes from earlier versions of Rolecall, which are still accepted
	recoveryGroup      = 4  // digits
)

// recoveryText is Crockford's base32 in lower case. It has no i, l, o and u.
var recoveryText = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewRecoveryCodes returns RecoveryCodes new random codes.
func NewRecoveryCodes() []RecoveryCode {
	codes := make([]RecoveryCode, RecoveryCodes)
	for i := range codes {
		raw := make([]byte, recoveryBytes)
		_, _ = rand.Read(raw) // never fails: it ends the process instead
		codes[i] = recoveryCodeOf(raw)
	}
	return codes
}

func recoveryCodeOf(raw []byte) RecoveryCode {
	var groups []string
	for group := range slices.Chunk([]byte(recoveryText.EncodeToString(raw)), recoveryGroup) {
		groups = append(groups, string(group))
	}
	return RecoveryCode(strings.Join(groups, "-"))
}

// asCrockford returns the digit in place of a letter that looks like this digit, and the ASCII digit in place of one
// of another script. It returns -1, which removes the character, for spaces and for dashes of every kind. It
// returns other characters unchanged. The argument must be in lower case.
func asCrockford(r rune) rune {
	switch {
	case unicode.IsSpace(r) || unicode.Is(unicode.Pd, r):
		return -1
	case r == 'i' || r == 'l':
		return '1'
	case r == 'o':
		return '0'
	}
	return asTyped(r)
}

// ParseRecoveryCode returns the code that a user has typed as s. It accepts upper case
// and lower case, with any spaces and dashes. It returns false if s does not have the
// length and the characters of a code.
func ParseRecoveryCode(s string) (RecoveryCode, bool) {
	const longest = 128
	if len(s) > longest {
		return "", false
	}
	digits := strings.Map(asCrockford, strings.ToLower(s))
	raw, err := recoveryText.DecodeString(digits)
	if err != nil || len(raw) != recoveryBytes && len(raw) != olderRecoveryBytes || recoveryText.EncodeToString(raw) != digits {
		return "", false // the comparison with digits rejects a code whose last digit has an unused bit set
	}
	return recoveryCodeOf(raw), true
}

// Hash returns the SHA-256 of the code. The store contains only this hash.
func (c RecoveryCode) Hash() []byte {
	sum := sha256.Sum256([]byte(c))
	return sum[:]
}

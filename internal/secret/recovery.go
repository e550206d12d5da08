package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"unicode"
)

// RecoveryCode replaces a lost second factor at one sign-in. It is 128 random bits as 26
// digits of Crockford's base32, in groups that can be read aloud. With this entropy, a
// fast hash is enough to store it.
type RecoveryCode string

// RecoveryCodes is the number of codes that a user gets at once.
const RecoveryCodes = 10

const (
	recoveryBytes      = 16
	olderRecoveryBytes = 10 // length of codes from earlier versions, which still work
	recoveryGroup      = 4  // digits
)

// recoveryText is Crockford's base32 in lower case. It has no i, l, o and u.
var recoveryText = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewRecoveryCodes returns new random codes.
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

// asCrockford replaces letters that look like a digit by the digit, and drops spaces and
// dashes of every kind.
func asCrockford(r rune) rune {
	switch {
	case unicode.IsSpace(r) || unicode.Is(unicode.Pd, r):
		return -1
	case r == 'i' || r == 'l':
		return '1'
	case r == 'o':
		return '0'
	}
	return r
}

// ParseRecoveryCode returns the code that a user has typed. Case and grouping do not
// matter. It returns false if s does not have the shape of a code.
func ParseRecoveryCode(s string) (RecoveryCode, bool) {
	const longest = 128
	if len(s) > longest {
		return "", false
	}
	digits := strings.Map(asCrockford, strings.ToLower(s))
	raw, err := recoveryText.DecodeString(digits)
	if err != nil || len(raw) != recoveryBytes && len(raw) != olderRecoveryBytes || recoveryText.EncodeToString(raw) != digits {
		return "", false // the comparison rejects a last digit in which unused bits are set
	}
	return recoveryCodeOf(raw), true
}

// Hash returns the SHA-256 of the code, the form in which it is stored.
func (c RecoveryCode) Hash() []byte {
	sum := sha256.Sum256([]byte(c))
	return sum[:]
}

package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"unicode"
)

// RecoveryCode signs somebody in once who has lost their second factor: 128 random
// bits as 26 of Crockford's digits, in groups that can be read aloud. As there is
// that much to guess, a fast hash is enough to store it by.
type RecoveryCode string

// RecoveryCodes is how many somebody gets at once.
const RecoveryCodes = 10

const (
	recoveryBytes      = 16
	olderRecoveryBytes = 10 // of codes that were made by earlier versions and still work
	recoveryGroup      = 4  // digits
)

// recoveryText has no letter that is taken for a digit, and no u.
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

// asCrockford returns the digit that people write for what they see, and drops spaces
// and dashes of every kind.
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

// ParseRecoveryCode returns the code that somebody wrote, in any case and grouped
// in any way, or false if it does not have the shape of one.
func ParseRecoveryCode(s string) (RecoveryCode, bool) {
	const longest = 128
	if len(s) > longest {
		return "", false
	}
	digits := strings.Map(asCrockford, strings.ToLower(s))
	raw, err := recoveryText.DecodeString(digits)
	if err != nil || len(raw) != recoveryBytes && len(raw) != olderRecoveryBytes || recoveryText.EncodeToString(raw) != digits {
		return "", false // the last digit may have bits too many
	}
	return recoveryCodeOf(raw), true
}

// Hash returns the SHA-256 of the code, the form in which it is stored.
func (c RecoveryCode) Hash() []byte {
	sum := sha256.Sum256([]byte(c))
	return sum[:]
}

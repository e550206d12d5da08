package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// RecoveryCode signs somebody in once who has lost their second factor: 80 random
// bits as 16 of Crockford's digits, in groups that can be read aloud. As there is
// that much to guess, a fast hash is enough to store it by.
type RecoveryCode string

// RecoveryCodes is how many somebody gets at once.
const RecoveryCodes = 10

const recoveryBytes = 10

// recoveryText has no letter that is taken for a digit, and no u.
var recoveryText = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewRecoveryCodes returns new random codes.
func NewRecoveryCodes() []RecoveryCode {
	codes := make([]RecoveryCode, RecoveryCodes)
	for i := range codes {
		raw := make([]byte, recoveryBytes)
		_, _ = rand.Read(raw) // never fails: it ends the process instead
		codes[i] = RecoveryCode(grouped(recoveryText.EncodeToString(raw)))
	}
	return codes
}

func grouped(digits string) string {
	return strings.Join([]string{digits[:4], digits[4:8], digits[8:12], digits[12:]}, "-")
}

// asCrockford reads what people write for what they see.
var asCrockford = strings.NewReplacer("-", "", " ", "", "i", "1", "l", "1", "o", "0")

// ParseRecoveryCode returns the code that somebody wrote, in any case and grouped
// in any way, or false if it does not have the shape of one.
func ParseRecoveryCode(s string) (RecoveryCode, bool) {
	const longest = 64
	if len(s) > longest {
		return "", false
	}
	digits := asCrockford.Replace(strings.ToLower(s))
	if raw, err := recoveryText.DecodeString(digits); err != nil || len(raw) != recoveryBytes || recoveryText.EncodeToString(raw) != digits {
		return "", false // the decoder skips line ends
	}
	return RecoveryCode(grouped(digits)), true
}

// Hash returns the SHA-256 of the code, the form in which it is stored.
func (c RecoveryCode) Hash() []byte {
	sum := sha256.Sum256([]byte(c))
	return sum[:]
}

package rolecall

import (
	"strings"
	"time"
)

// EmailChangeLifetime is how long a new address can be confirmed.
const EmailChangeLifetime = 24 * time.Hour

// EmailChange says that a user is to have another address, once somebody who reads
// the mail there confirms it. A newer one replaces it. It does not say which
// address, nor whether that is another user's, for then nobody is asked.
type EmailChange struct {
	UserID    UserID `json:"userId"`
	ExpiresAt Time   `json:"expiresAt"`
}

// MaskEmail returns the first character and the domain of an address, such as
// a***@example.com. Its owner recognizes it, and nobody else learns it.
func MaskEmail(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at < 0 {
		return "***"
	}
	for _, first := range email[:at] {
		return string(first) + "***" + email[at:]
	}
	return "***" + email[at:]
}

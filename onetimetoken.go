package rolecall

import (
	"strings"
	"time"
)

// OneTimeToken is what a secret that is good once stands for. The secret is never
// part of it.
type OneTimeToken struct {
	Purpose   TokenPurpose
	UserID    UserID // zero for a decoy, which stands for nobody
	Data      string // what the purpose needs
	CreatedAt Time
	ExpiresAt Time
	Origin
}

// Live reports whether the token can be used at the moment.
func (t *OneTimeToken) Live(now Time) bool { return now < t.ExpiresAt }

// Origin names the credential of the request that sent a link. A link is void once
// that credential is revoked.
type Origin struct {
	Credential  AnyID         // a session or an API token; zero: neither
	OperatorKey OperatorKeyID // zero: none
}

// TokenPurpose is what a one-time token is good for, and for nothing else.
type TokenPurpose string

// The purposes of one-time tokens.
const (
	TokenPasswordReset TokenPurpose = "password-reset"
	TokenEmailChange   TokenPurpose = "email-change" // Data: the new address
	TokenSignIn        TokenPurpose = "sign-in"      // the right password was given; the second factor is not yet
	TokenPasskey       TokenPurpose = "passkey"      // a ceremony with a passkey; Data: its session
)

// InvitationKept is how long an invitation is kept that is over, so that it can be
// told why somebody never came in.
const InvitationKept = 30 * 24 * time.Hour

// Invitation lets whoever bears its token set the user's password and sign in,
// once. A newer one replaces it. The token is a secret and never part of it.
type Invitation struct {
	UserID    UserID `json:"userId"`
	CreatedBy UserID `json:"-"` // zero: an operator
	CreatedAt Time   `json:"createdAt,omitzero"`
	ExpiresAt Time   `json:"expiresAt"`
	Origin    `json:"-"`
}

// Live reports whether the invitation can be accepted at the moment.
func (i *Invitation) Live(now Time) bool { return now < i.ExpiresAt }

// Invited is an invitation that can be accepted, with its user.
type Invited struct {
	Invitation
	User User
}

// InvitationQuery selects invitations, in the order in which their users were made.
type InvitationQuery struct {
	Within Reach // of the users
	Now    Time  // those that are over by then are left out
	After  *Position
	Limit  int
}

// PasswordReset says that a user was mailed a link by which they can set a new
// password, once. A newer one replaces it.
type PasswordReset struct {
	UserID    UserID `json:"userId"`
	ExpiresAt Time   `json:"expiresAt"`
}

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

package rolecall

import (
	"strings"
	"time"
)

// OneTimeToken is the stored data of a single-use token, without the secret.
type OneTimeToken struct {
	Purpose   TokenPurpose
	UserID    UserID // zero: a dummy token that belongs to no user
	Data      string // depends on the purpose
	CreatedAt Time
	ExpiresAt Time
	Origin
}

// Live reports whether the token is unexpired at the time now.
func (t *OneTimeToken) Live(now Time) bool { return now < t.ExpiresAt }

// Origin is the credential of the request that sent a link. When this credential is
// revoked, the link becomes invalid.
type Origin struct {
	Credential  AnyID         // id of a session or of an API token; zero: the request had neither
	OperatorKey OperatorKeyID // zero: the request had no operator key
}

// TokenPurpose is the only operation for which a one-time token can be used.
type TokenPurpose string

// The purposes of one-time tokens.
const (
	TokenPasswordReset TokenPurpose = "password-reset"
	TokenEmailChange   TokenPurpose = "email-change" // Data: the new address
	TokenSignIn        TokenPurpose = "sign-in"      // the password was verified and the second factor is missing
	TokenPasskey       TokenPurpose = "passkey"      // a WebAuthn challenge that was used
)

// InvitationKept is how long an expired invitation is kept, to show why a user did
// not join.
const InvitationKept = 30 * 24 * time.Hour

// Invitation is an invitation of a user. With its token, the user can once set a password
// and sign in. A newer invitation replaces it. The struct does not contain the secret of
// the token.
type Invitation struct {
	UserID    UserID `json:"userId"`
	CreatedBy UserID `json:"-"` // zero: an operator
	CreatedAt Time   `json:"createdAt,omitzero"`
	ExpiresAt Time   `json:"expiresAt"`
	Origin    `json:"-"`
}

// Live reports whether the invitation is unexpired at the time now.
func (i *Invitation) Live(now Time) bool { return now < i.ExpiresAt }

// Invited is an unexpired invitation with its user.
type Invited struct {
	Invitation
	User User
}

// InvitationQuery selects invitations, in the order in which their users were
// created.
type InvitationQuery struct {
	Within Reach // of the users
	Now    Time  // expired invitations are left out
	After  *Position
	Limit  int
}

// PasswordReset is a link for a new password that was mailed to a user. The link can be
// used once. A newer link replaces it.
type PasswordReset struct {
	UserID    UserID `json:"userId"`
	ExpiresAt Time   `json:"expiresAt"`
}

// EmailChangeLifetime is how long a new address can be confirmed.
const EmailChangeLifetime = 24 * time.Hour

// EmailChange is a requested change of a user's address, which a link in a mail to the
// new address confirms. A newer request replaces it. EmailChange does not contain the new
// address and does not show whether another user has this address. If another user has
// it, no link is mailed.
type EmailChange struct {
	UserID    UserID `json:"userId"`
	ExpiresAt Time   `json:"expiresAt"`
}

// MaskEmail returns the first character and the domain of an address, such as
// a***@example.com. The user recognizes the masked address, and other readers do not
// learn the address.
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

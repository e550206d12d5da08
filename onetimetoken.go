package rolecall

import (
	"strings"
	"time"
)

// OneTimeToken is the stored data of a token that can be used once. It does not contain the
// secret.
type OneTimeToken struct {
	Purpose   TokenPurpose
	UserID    UserID // zero: a dummy token that belongs to no user
	Data      string // see the constants of TokenPurpose
	CreatedAt Time
	ExpiresAt Time
	Origin
}

// Live reports whether the token is unexpired at the time now.
func (t *OneTimeToken) Live(now Time) bool { return now < t.ExpiresAt }

// Origin identifies the credential of the request that created a link. When this
// credential is revoked, the link becomes invalid.
type Origin struct {
	Credential  AnyID         // id of a session or of an API token; zero: the request had neither
	OperatorKey OperatorKeyID // zero: the request had no operator key
}

// TokenPurpose is the operation for which a one-time token can be used. The token works for
// no other operation.
type TokenPurpose string

// The purposes of one-time tokens.
const (
	TokenPasswordReset TokenPurpose = "password-reset" // Data: the address of the user, and the service account that got the link
	TokenEmailChange   TokenPurpose = "email-change"   // Data: the new address
	TokenSignIn        TokenPurpose = "sign-in"        // the user has sent the correct password, and must now send a second factor
	TokenPasskey       TokenPurpose = "passkey"        // a WebAuthn challenge that was used
	TokenOIDCAttempt   TokenPurpose = "oidc-attempt"   // a sign-in with an identity provider whose response was used
	TokenOIDCCode      TokenPurpose = "oidc-code"      // the user signed in with an identity provider, and the app must now exchange the code for a session
)

// InvitationKept is how long an expired invitation is stored. Administrators can then see
// why a user did not join.
const InvitationKept = 30 * 24 * time.Hour

// Invitation lets a user set a first password and sign in. The user gets the token by mail,
// or a program gets it in a response. It can be used once. A newer invitation of the same user replaces it.
// The struct does not contain the token.
type Invitation struct {
	UserID    UserID `json:"userId"`
	CreatedBy UserID `json:"-"` // zero: an operator
	CreatedAt Time   `json:"createdAt,omitzero"`
	ExpiresAt Time   `json:"expiresAt"`
	Origin    `json:"-"`
}

// Live reports whether the invitation is unexpired at the time now.
func (i *Invitation) Live(now Time) bool { return now < i.ExpiresAt }

// Delivery says how the token of an invitation or a password reset reaches the user.
type Delivery string

// The kinds of delivery.
const (
	DeliverByMail     Delivery = ""
	DeliverInResponse Delivery = "return" // the caller gets the token, and no mail is sent
)

// Invited is an unexpired invitation with its user.
type Invited struct {
	Invitation
	User User
}

// InvitationQuery selects unexpired invitations, in the order in which their users were
// created.
type InvitationQuery struct {
	Within Reach // only invitations of users in this reach
	Now    Time  // invitations that are expired at this time are left out
	After  *Position
	Limit  int
}

// PasswordReset is a link with which a user can set a new password once. A newer
// link for the same user replaces it.
type PasswordReset struct {
	UserID    UserID `json:"userId"`
	ExpiresAt Time   `json:"expiresAt"`
}

// EmailChangeLifetime is how long the user can confirm a new address.
const EmailChangeLifetime = 24 * time.Hour

// EmailChange is a requested change of a user's address. A link in a mail to the new
// address confirms the change. A newer request for the same user replaces the change. If
// another user has the address already, no mail is sent. So that the caller does not learn
// that, EmailChange is the same in both cases, and does not contain the address.
type EmailChange struct {
	UserID    UserID `json:"userId"`
	ExpiresAt Time   `json:"expiresAt"`
}

// MaskEmail returns only the first character and the domain of an address, such as
// a***@example.com. The user can recognize the address, and other readers of a message do
// not learn it.
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

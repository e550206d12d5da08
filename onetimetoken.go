package rolecall

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

package rolecall

// Passkey is a key pair that an authenticator keeps for a user, of which Rolecall
// has the public half (WebAuthn). It is a second factor, and a way to sign in
// without a password.
type Passkey struct {
	ID         []byte // what the authenticator calls it
	UserID     UserID
	Name       string // what the user calls it
	Credential []byte // the public key, the counter and the flags, as internal/passkey writes them
	CreatedAt  Time
	LastUsedAt Time // Never if it was not used since it was made
}

// The bounds of a passkey's name, and how many a user can have.
const (
	PasskeyNameMin = 1
	PasskeyNameMax = 100
	PasskeysMax    = 20
)

package rolecall

// Factors are the second factors of a user.
type Factors struct {
	TOTP          TOTP
	Passkeys      []Passkey // in the order of creation
	RecoveryCodes int       // number of unused codes
}

// TOTP is the state of a user's time-based one-time codes (RFC 6238).
type TOTP struct {
	Sealed      []byte // the secret, encrypted with the keys of the instance; nil if TOTP is not enrolled
	Pending     []byte // a new secret, encrypted, that the user has not confirmed with a code yet; nil if no secret waits
	ConfirmedAt Time
	LastStep    int64 // the newest time step of RFC 6238 whose code was accepted; a code of an older step is rejected
}

// Passkey is the stored part of a passkey, with the public key. The user's authenticator
// keeps the private key. A passkey is a second factor. It is also a way to sign in without
// a password.
type Passkey struct {
	ID         []byte `json:"-"` // the WebAuthn credential id
	UserID     UserID `json:"-"`
	Name       string `json:"name"` // chosen by the user
	Credential []byte `json:"-"`    // public key, counter and flags, encoded by internal/passkey
	CreatedAt  Time   `json:"createdAt"`
	LastUsedAt Time   `json:"-"` // zero: never
}

// The maximum length of a passkey's name, in code points, and the maximum number of
// passkeys per user.
const (
	PasskeyNameMax = 100
	PasskeysMax    = 20
)

// FactorMethod is a kind of second factor.
type FactorMethod string

// The kinds of second factors.
const (
	FactorTOTP         FactorMethod = "totp"
	FactorPasskey      FactorMethod = "passkey"
	FactorRecoveryCode FactorMethod = "recovery-code"
)

// Methods returns the second factors that the user can use. Recovery codes need another
// factor: if the user has neither TOTP nor a passkey, Methods returns nil.
func (f *Factors) Methods() (methods []FactorMethod) {
	if f.TOTP.Sealed != nil {
		methods = append(methods, FactorTOTP)
	}
	if len(f.Passkeys) > 0 {
		methods = append(methods, FactorPasskey)
	}
	if methods != nil && f.RecoveryCodes > 0 {
		methods = append(methods, FactorRecoveryCode)
	}
	return methods
}

package rolecall

// SignInSummary summarizes the stored credentials and sessions of a user. It reads
// at most MaxScan rows of each kind.
type SignInSummary struct {
	LastLoginAt Time // zero: never
	Sessions    int  // number of live sessions
	NewestAt    Time // start of the newest live session; zero: no live session
	HasPassword bool
	Invited     Invitation // zero: not invited; can be expired
	HasTOTP     bool
	Passkeys    int

	RecoveryCodes int
	Tokens        int // number of unexpired API tokens

	PasswordAttempts, FactorAttempts int // failed attempts in the current windows
}

// SignInDetails are the data of a user's sign-ins that a list of users can include.
type SignInDetails struct {
	User        UserID
	LastLoginAt Time // zero: never
	TOTP        int  // 1 if the user has an authenticator app, otherwise 0
	Passkeys    int  // at most 100 are counted
}

// RoleNamesMax is the maximum number of roles of a user that a list of users includes.
const RoleNamesMax = 10

// Bucket is one counter of failed sign-ins and its limit.
type Bucket struct {
	Key    []byte // keyed hash of the counted thing, such as an account or a source
	Limit  int
	Window Seconds
	Full   *Error // error for attempts above the limit; nil: ErrTooManyAttempts with the time to wait
}

// ID returns the id that caches use for the bucket: the start of its key.
func (b Bucket) ID() (id AnyID) {
	copy(id[:], b.Key)
	return id
}

// Attempts is the state of a bucket after an attempt was counted.
type Attempts struct {
	Count  int
	EndsAt Time // end of the window
}

// Counted identifies a counted attempt: one bucket in one window. A refund uses it to
// subtract the attempt.
type Counted struct {
	Key    []byte `json:"key"`
	EndsAt Time   `json:"endsAt"` // end of the window
}

// Factors are the second factors of a user.
type Factors struct {
	TOTP          TOTP
	Passkeys      []Passkey // in the order of creation
	RecoveryCodes int       // number of unused codes
}

// TOTP is the state of a user's time-based one-time codes (RFC 6238).
type TOTP struct {
	Sealed      []byte // the secret, encrypted with the keys of the instance; nil if TOTP is not enrolled
	Pending     []byte // a new secret that the user has not confirmed by a code yet, encrypted; nil if there is no such secret
	ConfirmedAt Time
	LastStep    int64 // the newest time step whose code was accepted
}

// Passkey is the public half of a WebAuthn key pair. The authenticator of the user
// keeps the private half. A passkey is a second factor, and also a way to sign in
// without a password.
type Passkey struct {
	ID         []byte `json:"-"` // the WebAuthn credential id
	UserID     UserID `json:"-"`
	Name       string `json:"name"` // chosen by the user
	Credential []byte `json:"-"`    // public key, counter and flags, encoded by internal/passkey
	CreatedAt  Time   `json:"createdAt"`
	LastUsedAt Time   `json:"-"` // zero: never
}

// The maximum length of a passkey's name and the maximum number of passkeys of a
// user.
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

// Methods returns the second factors that the user can use, or nil if the user has none.
// Recovery codes are included only if the user has another factor.
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

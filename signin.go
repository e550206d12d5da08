package rolecall

// SignInSummary is what is stored of how a user signs in, counted. It looks at no
// more than MaxScan rows of a kind.
type SignInSummary struct {
	LastLoginAt Time // zero: never
	Sessions    int  // live ones
	NewestAt    Time // of the sessions; zero: there is none
	HasPassword bool
	Invited     Invitation // zero: there is none; it may be over
	HasTOTP     bool
	Passkeys    int

	RecoveryCodes int
	Tokens        int // API tokens that are not over

	PasswordAttempts, FactorAttempts int // what the buckets counted in their windows
}

// Bucket is one counter of failed sign-ins and its limit.
type Bucket struct {
	Key    []byte // keyed hash of what is counted
	Limit  int
	Window Seconds
	Full   *Error // of an attempt past the limit; nil: ErrTooManyAttempts with the time to wait
}

// ID returns the id by which caches know the bucket: the start of its key.
func (b Bucket) ID() (id AnyID) {
	copy(id[:], b.Key)
	return id
}

// Attempts is the state of a bucket after an attempt was counted.
type Attempts struct {
	Count  int
	EndsAt Time // of the window
}

// Counted is one bucket in which an attempt was counted, in one window. It is all that
// may be refunded for the attempt.
type Counted struct {
	Key    []byte `json:"key"`
	EndsAt Time   `json:"endsAt"` // of the window
}

// Factors are what a user can show beside the password.
type Factors struct {
	TOTP          TOTP
	Passkeys      []Passkey // in the order in which they were made
	RecoveryCodes int       // that are left
}

// TOTP is what makes a user's one-time codes by time (RFC 6238).
type TOTP struct {
	Sealed      []byte // the secret under the keys of the instance; nil if there is none
	Pending     []byte // one that takes its place once a code of it was shown; nil if there is none
	ConfirmedAt Time
	LastStep    int64 // the newest of which a code was taken
}

// Passkey is a key pair that an authenticator keeps for a user, and of which
// Rolecall has the public half (WebAuthn). It is a second factor, and a way to sign
// in without a password.
type Passkey struct {
	ID         []byte `json:"-"` // what the authenticator calls it
	UserID     UserID `json:"-"`
	Name       string `json:"name"` // what the user calls it
	Credential []byte `json:"-"`    // the public key, the counter and the flags, as internal/passkey writes them
	CreatedAt  Time   `json:"createdAt"`
	LastUsedAt Time   `json:"-"` // zero: never
}

// The bounds of a passkey's name, and of how many passkeys a user has.
const (
	PasskeyNameMax = 100
	PasskeysMax    = 20
)

// FactorMethod is a way to show a second factor.
type FactorMethod string

// The methods.
const (
	FactorTOTP         FactorMethod = "totp"
	FactorPasskey      FactorMethod = "passkey"
	FactorRecoveryCode FactorMethod = "recovery-code"
)

// Methods returns how the user can show a second factor, nil if there is none:
// recovery codes stand for a factor and are none themselves.
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

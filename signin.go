package rolecall

import "time"

// SignInSummary summarizes the stored credentials and sessions of a user. Its counts stop
// at MaxScan rows of each kind.
type SignInSummary struct {
	LastLoginAt Time // zero: never
	Sessions    int  // number of unexpired sessions
	NewestAt    Time // start of the newest unexpired session; zero: no such session
	HasPassword bool
	Invited     Invitation // can be expired; zero: the user has no invitation
	HasTOTP     bool
	Passkeys    int

	RecoveryCodes int
	Tokens        int // number of unexpired API tokens

	PasswordAttempts, FactorAttempts int // failed attempts that the rate limits count now
}

// SignInDetails are the data about a user's sign-in that a list of users can include.
type SignInDetails struct {
	User        UserID
	LastLoginAt Time // zero: never
	TOTP        int  // 1 if the user has an authenticator app, otherwise 0
	Passkeys    int  // at most 100 are counted
}

// RoleNamesMax is the maximum number of roles per user in a list of users.
const RoleNamesMax = 10

// Bucket is a counter of failed attempts, such as sign-ins from one address, with its limit
// per time window.
type Bucket struct {
	Key    []byte // keyed hash of the account or address whose attempts are counted
	Limit  int
	Window Seconds
	Full   *Error // error after the limit is reached; nil: ErrTooManyAttempts with the time to wait
}

// ID returns the first 16 bytes of the key. Caches use them as the id of the bucket.
func (b Bucket) ID() (id AnyID) {
	copy(id[:], b.Key)
	return id
}

// Attempts is the state of a bucket: the number of attempts in its current time window, and
// the end of the window.
type Attempts struct {
	Count  int
	EndsAt Time // end of the window
}

// Counted identifies an attempt that was counted in one window of a bucket. It is needed to
// subtract the attempt from the count later.
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

// TouchInterval is the minimum time between two writes of LastUsedAt of the same session,
// API token or operator key. Without it, each request would cause a write.
const TouchInterval = time.Minute

// TouchInterval returns the minimum time between two writes of LastUsedAt of a session. It
// is at most a tenth of the idle lifetime, so that a session in use does not end.
func (s TenantSettings) TouchInterval() time.Duration {
	return min(TouchInterval, s.IdleLifetime()/10)
}

// Session is a user's sign-in in one browser or program. The struct does not contain the
// secret of the session token.
type Session struct {
	ID              SessionID
	UserID          UserID
	AuthenticatedAt Time
	LastUsedAt      Time
	ExpiresAt       Time // the end of the maximum lifetime, set at sign-in; EndsAt can be earlier
	Source          string
	Client          string // description of the browser or program
	ConfirmedAt     Time   // time of the last re-authentication; zero: the user has not re-authenticated
	SecondFactor    bool   // a second factor was verified

	// Identity and Connection are set if the user signed in with an identity provider.
	Identity   IdentityID
	Connection ConnectionID
}

// ConfirmedSince returns the time of the last sign-in or re-authentication.
func (s *Session) ConfirmedSince() Time { return max(s.AuthenticatedAt, s.ConfirmedAt) }

// EndsAt returns the time at which the session ends even if it is in use. The argument
// settings is the result of TenantSettings.For for the session's user. If a second factor
// is required of this user and the tenant has not set a lifetime, a shorter default
// applies. It also applies to sessions that began before the second factor was required.
func (s *Session) EndsAt(settings TenantSettings) Time {
	if settings.SessionAbsolute == nil && settings.RequireFactor() {
		return min(s.ExpiresAt, s.AuthenticatedAt.Add(GuardedSessionAbsolute))
	}
	return s.ExpiresAt
}

// IdleExpiresAt returns the time at which the session ends if it is not used again. The
// argument settings is as in EndsAt.
func (s *Session) IdleExpiresAt(settings TenantSettings) Time {
	return min(s.LastUsedAt.Add(settings.IdleLifetime()), s.EndsAt(settings))
}

// Live reports whether the session is unexpired at the time now. The argument settings is
// as in EndsAt.
func (s *Session) Live(now Time, settings TenantSettings) bool {
	return now < s.IdleExpiresAt(settings)
}

// SessionState is a session with one of its tokens, its user, and the user's assignments.
type SessionState struct {
	Session     Session
	Generation  int64 // generation of the newest token that a client has sent
	User        User
	Assignments []Assignment
	Token       SessionToken
}

// SessionToken is one token of a session. Each refresh of the session creates a new token,
// whose Generation is one higher.
type SessionToken struct {
	Hash       []byte
	Generation int64
	RetiredAt  Time   // when the next token was first used; Never: not yet
	Sealed     []byte // the next token, encrypted with a key derived from this token; nil: no next token
}

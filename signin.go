package rolecall

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

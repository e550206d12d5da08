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

package rolecall

import "time"

// The limits of the summary of a tenant.
const (
	SummaryDays     = 30                  // days for which events are counted
	SummaryDayMax   = 1_000               // maximum number of events of one day that are counted
	SummaryCountMax = 1_000               // maximum number of invitations that are counted
	SummaryItems    = 10                  // maximum number of roles, and of tokens, that are listed because they expire soon
	SummarySoon     = 14 * 24 * time.Hour // what expires within this time expires soon
	SummaryRecent   = 24 * time.Hour      // failed sign-ins within this time are counted
)

// FactorCoverage says how many active users have a second factor. If Exact is false, the
// tenant may have more users than were counted.
type FactorCoverage struct {
	Users     int // active users
	Protected int // active users with an authenticator app or a passkey
	Exact     bool
}

// FailedSignIn is the data of an event that records one or more failed sign-ins.
type FailedSignIn struct {
	Reason string // the cause, and the number of sign-ins if they are several
	Source string
}

// ExpiringRole is an assignment that expires within SummarySoon.
type ExpiringRole struct {
	Holder    Holder
	RoleID    RoleID
	RoleName  string
	ExpiresAt Time
}

// Day is one day in a time zone. From is its first moment, and To is the first moment of
// the next day.
type Day struct{ From, To Time }

package rolecall

import "time"

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

// SessionState is a session with one of its tokens, its user, and the user's assignments and groups.
type SessionState struct {
	Session     Session
	Generation  int64 // generation of the newest token that a client has sent
	User        User
	Assignments []Assignment
	Groups      []GroupName // of the user
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

// SessionQuery selects the unexpired sessions of a user, newest first.
type SessionQuery struct {
	User     UserID
	Settings TenantSettings // result of TenantSettings.For for the user; has the lifetimes of sessions
	Now      Time
	After    *Position
	Limit    int
}

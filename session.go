package rolecall

import "time"

// TouchInterval is the minimum time between two writes of the last use of a session
// or token.
const TouchInterval = time.Minute

// Session is one sign-in. The secret of its token is not part of it.
type Session struct {
	ID              SessionID
	UserID          UserID
	AuthenticatedAt Time
	LastUsedAt      Time
	ExpiresAt       Time // the absolute expiry that was set at sign-in; see EndsAt
	Source          string
	Client          string // description of the browser or program
	ConfirmedAt     Time   // the last re-authentication; zero: never
	SecondFactor    bool   // a second factor was given
}

// ConfirmedSince returns the time of the last sign-in or re-authentication.
func (s *Session) ConfirmedSince() Time { return max(s.AuthenticatedAt, s.ConfirmedAt) }

// EndsAt returns the time at which the session ends even if it is used. Callers pass
// the settings that apply to the user of the session (see TenantSettings.For). If a
// second factor is required, the default is shorter, also for sessions that began
// before it was required.
func (s *Session) EndsAt(settings TenantSettings) Time {
	if settings.SessionAbsolute == nil && settings.RequireFactor() {
		return min(s.ExpiresAt, s.AuthenticatedAt.Add(GuardedSessionAbsolute))
	}
	return s.ExpiresAt
}

// IdleExpiresAt returns the time at which the session ends if it is not used again.
func (s *Session) IdleExpiresAt(settings TenantSettings) Time {
	return min(s.LastUsedAt.Add(settings.IdleLifetime()), s.EndsAt(settings))
}

// Live reports whether the session is unexpired at the time now.
func (s *Session) Live(now Time, settings TenantSettings) bool {
	return now < s.IdleExpiresAt(settings)
}

// SessionState is the token of a request with its session and user.
type SessionState struct {
	Session     Session
	Generation  int64 // the newest token generation that a client has sent
	User        User
	Assignments []Assignment
	Token       SessionToken
}

// SessionToken is one generation of a session's token. Each refresh adds a
// generation.
type SessionToken struct {
	Hash       []byte
	Generation int64
	RetiredAt  Time   // when its successor was first used, or Never
	Sealed     []byte // the successor, encrypted with a key derived from this token; nil without a successor
}

package rolecall

import "time"

// TouchInterval is the minimum time between two writes of the last use of a session
// or token.
const TouchInterval = time.Minute

// Session is the session that a sign-in creates. The struct does not contain the secret
// of the session token.
type Session struct {
	ID              SessionID
	UserID          UserID
	AuthenticatedAt Time
	LastUsedAt      Time
	ExpiresAt       Time // the absolute expiry that was set at sign-in; see EndsAt
	Source          string
	Client          string // description of the browser or program
	ConfirmedAt     Time   // time of the last re-authentication; zero: the user has not re-authenticated
	SecondFactor    bool   // a second factor was verified
}

// ConfirmedSince returns the time of the last sign-in or re-authentication.
func (s *Session) ConfirmedSince() Time { return max(s.AuthenticatedAt, s.ConfirmedAt) }

// EndsAt returns the time at which the session ends even if it is in use. Callers pass
// the settings that apply to the user of the session (see TenantSettings.For). If a
// second factor is required, the default lifetime is shorter, also for sessions that
// began before the requirement.
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

// SessionState is a session token with its session, the user, and the user's assignments.
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

package rolecall

import "time"

// TouchInterval is how often at most the last use of a session or a token is
// written.
const TouchInterval = time.Minute

// Session is one sign-in. Its bearer token is a secret and never part of it.
type Session struct {
	ID              SessionID
	UserID          UserID
	AuthenticatedAt Time
	LastUsedAt      Time
	ExpiresAt       Time // the absolute end as it was at the sign-in; see EndsAt
	Source          string
	Client          string // the client in words
	ConfirmedAt     Time   // the last confirmation after the sign-in; zero: none
	SecondFactor    bool   // a second factor was given
}

// ConfirmedSince returns when the person last showed to be the one who signed in.
func (s *Session) ConfirmedSince() Time { return max(s.AuthenticatedAt, s.ConfirmedAt) }

// EndsAt returns when the session ends, whatever the use. The settings are those for
// its user: the shorter default of a required second factor also holds for sessions
// that began before it was required.
func (s *Session) EndsAt(settings TenantSettings) Time {
	if settings.SessionAbsolute == nil && settings.RequireFactor() {
		return min(s.ExpiresAt, s.AuthenticatedAt.Add(GuardedSessionAbsolute))
	}
	return s.ExpiresAt
}

// IdleExpiresAt returns when the session ends if it is not used.
func (s *Session) IdleExpiresAt(settings TenantSettings) Time {
	return min(s.LastUsedAt.Add(settings.IdleLifetime()), s.EndsAt(settings))
}

// Live reports whether the session counts at the moment.
func (s *Session) Live(now Time, settings TenantSettings) bool {
	return now < s.IdleExpiresAt(settings)
}

// SessionState is what a presented token resolves to.
type SessionState struct {
	Session     Session
	Generation  int64 // the newest generation of tokens that was presented
	User        User
	Assignments []Assignment
	Token       SessionToken
}

// SessionToken is one generation of a session's bearer token.
type SessionToken struct {
	Hash       []byte
	Generation int64
	RetiredAt  Time   // when its successor was first presented, or Never
	Sealed     []byte // the successor, sealed under a key derived from this token; nil if there is none
}

package rolecall

import "time"

// Tenant is one customer: the unit of isolation that x-tenant-schema names. The
// zero Tenant is what an unknown name resolves to; it holds nothing.
type Tenant struct {
	ID          TenantID
	Name        string // never changes
	DisplayName string
	Status      TenantStatus
	Settings    TenantSettings
	CreatedAt   Time
	UpdatedAt   Time
	Version     int64
}

// TenantStatus says whether a tenant is served.
type TenantStatus string

// The states of a tenant.
const (
	TenantActive    TenantStatus = "active"
	TenantSuspended TenantStatus = "suspended"
)

// TenantSettings are what a tenant may differ in. A zero member means the
// default, so that an empty document is a valid one.
type TenantSettings struct {
	SessionIdle     Seconds  `json:"sessionIdleSeconds,omitempty"`
	SessionAbsolute Seconds  `json:"sessionAbsoluteSeconds,omitempty"`
	RefreshGrace    *Seconds `json:"refreshGraceSeconds,omitempty"`
	IdempotencyKept Seconds  `json:"idempotencyKeptSeconds,omitempty"`
}

// Seconds is a length of time in whole seconds.
type Seconds int64

// The defaults of the settings.
const (
	DefaultSessionIdle     = 12 * time.Hour
	DefaultSessionAbsolute = 7 * 24 * time.Hour
	DefaultRefreshGrace    = 10 * time.Second
	DefaultIdempotencyKept = 24 * time.Hour
)

func (s Seconds) or(standard time.Duration) time.Duration {
	if s == 0 {
		return standard
	}
	return time.Duration(s) * time.Second
}

// IdleLifetime returns how long a session lives without a request.
func (s TenantSettings) IdleLifetime() time.Duration { return s.SessionIdle.or(DefaultSessionIdle) }

// AbsoluteLifetime returns how long a session lives at most.
func (s TenantSettings) AbsoluteLifetime() time.Duration {
	return s.SessionAbsolute.or(DefaultSessionAbsolute)
}

// Grace returns how long the old token works on after its successor was used.
func (s TenantSettings) Grace() time.Duration {
	if s.RefreshGrace == nil {
		return DefaultRefreshGrace
	}
	return time.Duration(*s.RefreshGrace) * time.Second
}

// KeyLifetime returns how long an idempotency key is kept.
func (s TenantSettings) KeyLifetime() time.Duration {
	return s.IdempotencyKept.or(DefaultIdempotencyKept)
}

// IsTenantName reports whether name has the form of a tenant's name:
// ^[a-z0-9][a-z0-9_-]{0,62}$.
func IsTenantName(name string) bool {
	if len(name) == 0 || len(name) > 63 || name[0] == '-' || name[0] == '_' {
		return false
	}
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

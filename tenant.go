package rolecall

import (
	"fmt"
	"slices"
	"time"
)

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

// TenantSettings are what a tenant may differ in. A nil member means the default,
// so that an empty document is a valid one.
type TenantSettings struct {
	SessionIdle     *Seconds `json:"sessionIdleSeconds,omitempty"`
	SessionAbsolute *Seconds `json:"sessionAbsoluteSeconds,omitempty"`
	RefreshGrace    *Seconds `json:"refreshGraceSeconds,omitempty"`
	IdempotencyKept *Seconds `json:"idempotencyKeptSeconds,omitempty"`
	EventsKept      *Seconds `json:"eventsKeptSeconds,omitempty"`

	Reauthentication *Seconds         `json:"reauthenticationSeconds,omitempty"`
	Invitation       *Seconds         `json:"invitationSeconds,omitempty"`
	PasswordReset    *Seconds         `json:"passwordResetSeconds,omitempty"`
	PasswordMin      *int             `json:"passwordMinimum,omitempty"`
	SessionsMax      *int             `json:"sessionsPerUser,omitempty"`
	SecondFactor     SecondFactorRule `json:"secondFactor,omitzero"`
	MailSender       *string          `json:"mailSenderName,omitempty"`
}

// SecondFactorRule says of whom a tenant demands a second factor. The zero rule
// demands it of nobody.
type SecondFactorRule struct {
	Required SecondFactorScope `json:"required,omitempty"`
	Roles    []RoleID          `json:"roles,omitempty"` // for SecondFactorOfRoles
}

// SecondFactorScope is of whom a second factor is demanded.
type SecondFactorScope string

// The scopes of the rule.
const (
	SecondFactorOfNobody SecondFactorScope = "none"
	SecondFactorOfAll    SecondFactorScope = "all"
	SecondFactorOfRoles  SecondFactorScope = "roles"
)

// Demands reports whether the rule demands a second factor of somebody with the
// assignments at the moment.
func (r SecondFactorRule) Demands(assignments []Assignment, now Time) bool {
	switch r.Required {
	case SecondFactorOfAll:
		return true
	case SecondFactorOfRoles:
		return slices.ContainsFunc(assignments, func(a Assignment) bool { return a.Live(now) && slices.Contains(r.Roles, a.Role.ID) })
	}
	return false
}

// Seconds is a length of time in whole seconds.
type Seconds int64

// The defaults of the settings.
const (
	DefaultSessionIdle     = 12 * time.Hour
	DefaultSessionAbsolute = 7 * 24 * time.Hour
	DefaultRefreshGrace    = 10 * time.Second
	DefaultIdempotencyKept = 24 * time.Hour
	DefaultEventsKept      = 400 * 24 * time.Hour

	DefaultReauthentication = 15 * time.Minute
	DefaultInvitation       = 72 * time.Hour
	DefaultPasswordReset    = time.Hour
	DefaultPasswordMin      = 15
	DefaultSessionsMax      = 100
)

func orDefault(s *Seconds, standard time.Duration) time.Duration {
	if s == nil {
		return standard
	}
	return time.Duration(*s) * time.Second
}

func equalSeconds(a, b *Seconds) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// IdleLifetime returns how long a session lives without a request.
func (s TenantSettings) IdleLifetime() time.Duration {
	return orDefault(s.SessionIdle, DefaultSessionIdle)
}

// AbsoluteLifetime returns how long a session lives at most.
func (s TenantSettings) AbsoluteLifetime() time.Duration {
	return orDefault(s.SessionAbsolute, DefaultSessionAbsolute)
}

// Grace returns how long the old token works on after its successor was used.
func (s TenantSettings) Grace() time.Duration { return orDefault(s.RefreshGrace, DefaultRefreshGrace) }

// KeyLifetime returns how long an idempotency key is kept.
func (s TenantSettings) KeyLifetime() time.Duration {
	return orDefault(s.IdempotencyKept, DefaultIdempotencyKept)
}

// EventLifetime returns how long an event is kept.
func (s TenantSettings) EventLifetime() time.Duration {
	return orDefault(s.EventsKept, DefaultEventsKept)
}

// ReauthenticationAge returns how old a sign-in or confirmation may be for what
// needs a recent one; zero: any.
func (s TenantSettings) ReauthenticationAge() time.Duration {
	return orDefault(s.Reauthentication, DefaultReauthentication)
}

// InvitationLifetime returns how long an invitation can be accepted.
func (s TenantSettings) InvitationLifetime() time.Duration {
	return orDefault(s.Invitation, DefaultInvitation)
}

// PasswordResetLifetime returns how long the link of a password reset works.
func (s TenantSettings) PasswordResetLifetime() time.Duration {
	return orDefault(s.PasswordReset, DefaultPasswordReset)
}

// PasswordMinimum returns how many code points a new password has at least.
func (s TenantSettings) PasswordMinimum() int {
	if s.PasswordMin == nil {
		return DefaultPasswordMin
	}
	return *s.PasswordMin
}

// SessionsPerUser returns how many sessions a user has at most at once.
func (s TenantSettings) SessionsPerUser() int {
	if s.SessionsMax == nil {
		return DefaultSessionsMax
	}
	return *s.SessionsMax
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

// setting is one of the settings: its JSON name, its bounds, and where it is.
type setting struct {
	name     string
	min, max Seconds
	of       func(*TenantSettings) **Seconds // nil there: the default
	standard time.Duration
}

var settings = []setting{
	{"sessionIdleSeconds", 60, 30 * 86400, func(s *TenantSettings) **Seconds { return &s.SessionIdle }, DefaultSessionIdle},
	{"sessionAbsoluteSeconds", 300, 90 * 86400, func(s *TenantSettings) **Seconds { return &s.SessionAbsolute }, DefaultSessionAbsolute},
	{"refreshGraceSeconds", 0, 300, func(s *TenantSettings) **Seconds { return &s.RefreshGrace }, DefaultRefreshGrace},
	{"idempotencyKeptSeconds", 86400, 30 * 86400, func(s *TenantSettings) **Seconds { return &s.IdempotencyKept }, DefaultIdempotencyKept},
	{"eventsKeptSeconds", 86400, 10 * 366 * 86400, func(s *TenantSettings) **Seconds { return &s.EventsKept }, DefaultEventsKept},
}

// SettingNames returns the JSON names of the settings.
func SettingNames() []string {
	var names []string
	for _, s := range settings {
		names = append(names, s.name)
	}
	return names
}

func settingNamed(name string) *setting {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return &settings[i]
}

// Effective returns the value in force of the setting of that JSON name, zero if
// there is none.
func (s TenantSettings) Effective(name string) Seconds {
	setting := settingNamed(name)
	if setting == nil {
		return 0
	}
	return Seconds(orDefault(*setting.of(&s), setting.standard) / time.Second)
}

// TenantPatch is a change of a tenant: absent members stay; null sets the default
// again (RFC 7396).
type TenantPatch struct {
	DisplayName Optional[string]
	Settings    map[string]*Seconds // by JSON name
}

// Check returns what is wrong with the patch, nil if nothing is.
func (p *TenantPatch) Check() Faults {
	var faults Faults
	if p.DisplayName.Set {
		faults.Text("/displayName", p.DisplayName.Value, 1, UserNameMax)
	}
	for _, s := range settings {
		if value := p.Settings[s.name]; value != nil && (*value < s.min || *value > s.max) {
			faults.Add("/settings/"+s.name, "range", fmt.Sprintf("must be from %d to %d", s.min, s.max))
		}
	}
	return faults
}

// Apply returns the tenant as the patch makes it and the names of the members
// that changed. The patch must have passed Check.
func (p *TenantPatch) Apply(t Tenant, now Time) (Tenant, []string) {
	var changed []string
	if p.DisplayName.Set && p.DisplayName.Value != t.DisplayName {
		t.DisplayName, changed = p.DisplayName.Value, append(changed, "displayName")
	}
	before := t.Settings
	for _, s := range settings {
		if value, named := p.Settings[s.name]; named {
			*s.of(&t.Settings) = value
		}
	}
	if slices.ContainsFunc(settings, func(s setting) bool { return !equalSeconds(*s.of(&before), *s.of(&t.Settings)) }) {
		changed = append(changed, "settings")
	}
	if changed != nil {
		t.UpdatedAt = max(now, t.UpdatedAt+1)
		t.Version++
	}
	return t, changed
}

package rolecall

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// TenantSettings are the settings of one tenant. If a member is nil, the default applies,
// so an empty JSON object is valid.
type TenantSettings struct {
	SessionIdle     *Seconds `json:"sessionIdleSeconds,omitempty"`
	SessionAbsolute *Seconds `json:"sessionAbsoluteSeconds,omitempty"`
	RefreshGrace    *Seconds `json:"refreshGraceSeconds,omitempty"`
	IdempotencyKept *Seconds `json:"idempotencyKeptSeconds,omitempty"`
	EventsKept      *Seconds `json:"eventsKeptSeconds,omitempty"`

	Reauthentication *Seconds         `json:"reauthenticationSeconds,omitempty"`
	Invitation       *Seconds         `json:"invitationSeconds,omitempty"`
	PasswordReset    *Seconds         `json:"passwordResetSeconds,omitempty"`
	PasswordMin      *int64           `json:"passwordMinimum,omitempty"`
	SessionsMax      *int64           `json:"sessionsPerUser,omitempty"`
	NameMin          *int64           `json:"nameMinimum,omitempty"`
	SecondFactor     SecondFactorRule `json:"secondFactor,omitzero"`
	PasswordSignIn   PasswordScope    `json:"passwordSignIn,omitempty"` // empty: PasswordsOfAll
	MailSender       *string          `json:"mailSenderName,omitempty"`
	BrandColor       *string          `json:"brandColor,omitempty"` // #rrggbb, in lower case

	EventsAtLeast time.Duration `json:"-"` // minimum of EventsKept for changes, and for tenants without a value; the store sets it

	ofGuarded bool // set by For; true: the settings are for a user who needs a second factor
}

// Seconds is a duration in whole seconds.
type Seconds = int64

// SecondFactorRule says which users need a second factor. With the zero rule, no user needs
// one.
type SecondFactorRule struct {
	Required SecondFactorScope `json:"required,omitempty"`
	Roles    []RoleID          `json:"roles,omitempty"` // for SecondFactorOfRoles: users with one of these roles; sorted, without duplicates
}

// SecondFactorScope selects the users who need a second factor. The empty scope means the
// same as SecondFactorOfNobody.
type SecondFactorScope string

// The scopes of the rule.
const (
	SecondFactorOfNobody SecondFactorScope = "none"
	SecondFactorOfAll    SecondFactorScope = "all"
	SecondFactorOfRoles  SecondFactorScope = "roles"
)

// PasswordScope says which users can begin a session without a connection to an identity provider: with a
// password, with a passkey alone, or with a mailed link. The empty scope means the same as PasswordsOfAll.
type PasswordScope string

// The values of the setting passwordSignIn.
const (
	PasswordsOfAll    PasswordScope = "all"
	PasswordsOfOwners PasswordScope = "owners"
)

// AllowsPassword reports whether a user can begin a session without a connection. The argument owner says
// whether the user is an owner of the tenant.
func (s TenantSettings) AllowsPassword(owner bool) bool {
	return owner || s.PasswordSignIn != PasswordsOfOwners
}

// PasswordScope returns PasswordSignIn, or PasswordsOfAll if it is empty.
func (s TenantSettings) PasswordScope() PasswordScope {
	if s.PasswordSignIn == "" {
		return PasswordsOfAll
	}
	return s.PasswordSignIn
}

// Scope returns Required, or SecondFactorOfNobody if Required is empty.
func (r SecondFactorRule) Scope() SecondFactorScope {
	if r.Required == "" {
		return SecondFactorOfNobody
	}
	return r.Required
}

// Demands reports whether the rule requires a second factor of a user with these
// assignments at the time now.
func (r SecondFactorRule) Demands(assignments []Assignment, now Time) bool {
	switch r.Required {
	case SecondFactorOfAll:
		return true
	case SecondFactorOfRoles:
		return slices.ContainsFunc(assignments, func(a Assignment) bool { return a.Live(now) && r.Names(a.Role.ID) })
	}
	return false
}

// Names reports whether the rule requires a second factor of the users with the role.
func (r SecondFactorRule) Names(role RoleID) bool {
	return r.Required == SecondFactorOfRoles && slices.Contains(r.Roles, role)
}

// The defaults of the settings. The constants with Guarded in the name apply to users who
// need a second factor (NIST SP 800-63B-4, 2.2.3).
const (
	DefaultSessionIdle     = 12 * time.Hour
	GuardedSessionIdle     = time.Hour
	DefaultSessionAbsolute = 7 * 24 * time.Hour
	GuardedSessionAbsolute = 24 * time.Hour
	DefaultRefreshGrace    = 10 * time.Second
	DefaultIdempotencyKept = 24 * time.Hour
	DefaultEventsKept      = 400 * 24 * time.Hour

	DefaultReauthentication = 15 * time.Minute
	DefaultInvitation       = 72 * time.Hour
	DefaultPasswordReset    = time.Hour
	DefaultPasswordMin      = 15
	DefaultSessionsMax      = 100
	DefaultNameMin          = 3
)

// SecondFactorRolesMax is the maximum number of roles of a SecondFactorRule.
const SecondFactorRolesMax = 100

// PasswordLeast is the smallest minimum length of passwords that a tenant can set, in code
// points.
const PasswordLeast = 8

// NameLeast is the smallest minimum length of names that a tenant can set, in code points.
const NameLeast = 1

func orDefault(s *Seconds, byDefault time.Duration) time.Duration {
	if s == nil {
		return byDefault
	}
	return time.Duration(*s) * time.Second
}

// For returns the settings for a user with these assignments at the time now. If the tenant
// requires a second factor of this user, the default lifetimes of sessions are shorter.
func (s TenantSettings) For(assignments []Assignment, now Time) TenantSettings {
	s.ofGuarded = s.SecondFactor.Demands(assignments, now)
	return s
}

// RequireFactor reports whether the settings require a second factor of all users. For
// settings that For returned for a user, it reports whether that user needs one.
func (s TenantSettings) RequireFactor() bool {
	return s.ofGuarded || s.SecondFactor.Required == SecondFactorOfAll
}

// guarded returns the duration guarded if the settings require a second factor, and
// byDefault otherwise.
func (s TenantSettings) guarded(byDefault, guarded time.Duration) time.Duration {
	if s.RequireFactor() {
		return guarded
	}
	return byDefault
}

// IdleLifetime returns how long a session lives without a request. If the tenant has not
// set it, it is at most AbsoluteLifetime.
func (s TenantSettings) IdleLifetime() time.Duration {
	return orDefault(s.SessionIdle, min(s.guarded(DefaultSessionIdle, GuardedSessionIdle), s.AbsoluteLifetime()))
}

// AbsoluteLifetime returns the maximum lifetime of a session.
func (s TenantSettings) AbsoluteLifetime() time.Duration {
	return orDefault(s.SessionAbsolute, s.guarded(DefaultSessionAbsolute, GuardedSessionAbsolute))
}

// SessionsSince returns two bounds with which the store finds unexpired sessions: an
// unexpired session was last used after the time used, and began after the time began. If
// began is zero, there is no second bound.
func (s TenantSettings) SessionsSince(now Time) (used, began Time) {
	if used = now.Add(-s.IdleLifetime()); s.SessionAbsolute == nil && s.RequireFactor() {
		began = now.Add(-GuardedSessionAbsolute)
	}
	return used, began
}

// Grace returns how long the old token of a session still works after its next token was
// first used.
func (s TenantSettings) Grace() time.Duration { return orDefault(s.RefreshGrace, DefaultRefreshGrace) }

// KeyLifetime returns how long an idempotency key is stored.
func (s TenantSettings) KeyLifetime() time.Duration {
	return orDefault(s.IdempotencyKept, DefaultIdempotencyKept)
}

// EventLifetime returns how long an event is stored. It can be less than EventsAtLeast if the tenant set it
// before the operators raised the minimum.
func (s TenantSettings) EventLifetime() time.Duration {
	return orDefault(s.EventsKept, max(DefaultEventsKept, s.EventsAtLeast))
}

// ReauthenticationAge returns the maximum age of the last sign-in or re-authentication for
// operations that need step-up. Zero means that the age is not limited.
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

// PasswordMinimum returns the minimum length of a new password, in code points.
func (s TenantSettings) PasswordMinimum() int {
	if s.PasswordMin == nil {
		return DefaultPasswordMin
	}
	return int(*s.PasswordMin)
}

// SessionsPerUser returns the maximum number of sessions that a user can have at the
// same time.
func (s TenantSettings) SessionsPerUser() int {
	if s.SessionsMax == nil {
		return DefaultSessionsMax
	}
	return int(*s.SessionsMax)
}

// NameMinimum returns the minimum length of the names of users, departments, roles and
// service accounts, in code points.
func (s TenantSettings) NameMinimum() int {
	if s.NameMin == nil {
		return DefaultNameMin
	}
	return int(*s.NameMin)
}

// Equal reports whether all settings are equal as they are stored. A setting that is set to
// the value of its default is not equal to a setting that is not set.
func (s TenantSettings) Equal(other TenantSettings) bool {
	for _, n := range NumberSettings {
		if !equalOptional(*n.stored(&s), *n.stored(&other)) {
			return false
		}
	}
	for _, t := range TextSettings {
		if !equalOptional(t.Stored(&s), t.Stored(&other)) {
			return false
		}
	}
	return s.PasswordSignIn == other.PasswordSignIn && s.SecondFactor.Required == other.SecondFactor.Required &&
		slices.Equal(s.SecondFactor.Roles, other.SecondFactor.Roles)
}

func equalOptional[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// NumberSetting describes a setting that is a whole number. If the name ends with Seconds,
// the unit is seconds.
type NumberSetting struct {
	Name     string // in JSON
	About    string // description
	Min, Max int64
	InForce  func(TenantSettings) int64    // returns the set value, or the default
	stored   func(*TenantSettings) **int64 // returns the address of the member; the member is nil if the setting is not set
}

// Default returns the value for a tenant that has not set this setting.
func (n NumberSetting) Default() int64 { return n.InForce(TenantSettings{}) }

// allows reports whether the value is within the bounds.
func (n NumberSetting) allows(value int64) bool { return n.Min <= value && value <= n.Max }

func inSeconds(of func(TenantSettings) time.Duration) func(TenantSettings) int64 {
	return func(s TenantSettings) int64 { return int64(of(s) / time.Second) }
}

func counted(of func(TenantSettings) int) func(TenantSettings) int64 {
	return func(s TenantSettings) int64 { return int64(of(s)) }
}

// The JSON names of settings that checkTogether compares with other settings.
const (
	sessionIdle     = "sessionIdleSeconds"
	sessionAbsolute = "sessionAbsoluteSeconds"
	passwordMinimum = "passwordMinimum"
	eventsKept      = "eventsKeptSeconds"
)

// NumberSettings are all settings that are whole numbers, in the order in which the
// API and the console show them.
var NumberSettings = []NumberSetting{
	{sessionIdle, "Idle timeout of sessions. At most sessionAbsoluteSeconds. The default is an hour for users who need a second factor.",
		60, 30 * 86400, inSeconds(TenantSettings.IdleLifetime), func(s *TenantSettings) **int64 { return &s.SessionIdle }},
	{sessionAbsolute, "Maximum session length. The default is a day for users who need a second factor.",
		300, 90 * 86400, inSeconds(TenantSettings.AbsoluteLifetime), func(s *TenantSettings) **int64 { return &s.SessionAbsolute }},
	{"refreshGraceSeconds", "How long the old token of a session works after the new one is first used.",
		0, 300, inSeconds(TenantSettings.Grace), func(s *TenantSettings) **int64 { return &s.RefreshGrace }},
	{"idempotencyKeptSeconds", "How long an idempotency key is kept. Keys are not kept longer than events.",
		86400, 30 * 86400, inSeconds(TenantSettings.KeyLifetime), func(s *TenantSettings) **int64 { return &s.IdempotencyKept }},
	{eventsKept, "How long an event is kept. The operators of the instance can set a minimum.",
		86400, 10 * 366 * 86400, inSeconds(TenantSettings.EventLifetime), func(s *TenantSettings) **int64 { return &s.EventsKept }},
	{"reauthenticationSeconds", "Maximum age of the sign-in or re-authentication for operations that need step-up. 0 means no maximum.",
		0, 86400, inSeconds(TenantSettings.ReauthenticationAge), func(s *TenantSettings) **int64 { return &s.Reauthentication }},
	{"invitationSeconds", "How long an invitation can be accepted.",
		300, 30 * 86400, inSeconds(TenantSettings.InvitationLifetime), func(s *TenantSettings) **int64 { return &s.Invitation }},
	{"passwordResetSeconds", "How long the link of a password reset works.",
		300, 86400, inSeconds(TenantSettings.PasswordResetLifetime), func(s *TenantSettings) **int64 { return &s.PasswordReset }},
	{passwordMinimum, "Minimum length of a new password, in characters. Values below 15 are allowed only if all users need a second factor (NIST SP 800-63B-4).",
		PasswordLeast, 64, counted(TenantSettings.PasswordMinimum), func(s *TenantSettings) **int64 { return &s.PasswordMin }},
	{"sessionsPerUser", "Maximum number of sessions of a user at the same time. Another sign-in ends the oldest session.",
		1, 1000, counted(TenantSettings.SessionsPerUser), func(s *TenantSettings) **int64 { return &s.SessionsMax }},
	{"nameMinimum", "Minimum length of the names of users, departments, roles and service accounts, in characters. Names that are shorter when it is raised stay.",
		NameLeast, DefaultNameMin, counted(TenantSettings.NameMinimum), func(s *TenantSettings) **int64 { return &s.NameMin }},
}

// TextSetting describes a setting that is a text. A tenant that has not set it has no value.
type TextSetting struct {
	Name      string // in JSON
	About     string // description
	LengthMax int    // in code points, if isValid is nil; such a value must have a visible character
	Pattern   string // the regular expression of ECMA-262 that describes isValid in the OpenAPI document
	isValid   func(string) bool
	wanted    string // the detail of the error if isValid returns false
	normalize func(string) string
	stored    func(*TenantSettings) **string
}

// Stored returns the value, or nil if the setting is not set.
func (t TextSetting) Stored(s *TenantSettings) *string { return *t.stored(s) }

// TextSettings are all settings that are texts, in the order in which the API shows them.
var TextSettings = []TextSetting{
	{Name: "mailSenderName", About: "The sender name of the tenant's mail. Null for the displayName.",
		LengthMax: 100, normalize: TrimName, stored: func(s *TenantSettings) **string { return &s.MailSender }},
	{Name: "brandColor", About: "The color of the pages where users sign in, accept an invitation, or follow another mailed link, in the form #rrggbb. Null for the color of the console.",
		Pattern: "^#[0-9A-Fa-f]{6}$", isValid: IsColor, wanted: "must be a color in the form #rrggbb, such as #1f6feb", normalize: strings.ToLower, stored: func(s *TenantSettings) **string { return &s.BrandColor }},
}

// check adds an error if the value is invalid.
func (t TextSetting) check(faults *FieldErrors, value string) {
	switch {
	case t.isValid == nil:
		faults.Name(settingPointer(t.Name), value, 1, t.LengthMax)
	case !t.isValid(value):
		faults.Add(settingPointer(t.Name), "format", t.wanted)
	}
}

// SettingsPatch changes settings. Absent members keep their values. The value null restores
// the default (RFC 7396). SecondFactor and Passwords have no null, because their defaults restrict
// nothing.
type SettingsPatch struct {
	Numbers      map[string]*int64  // by the JSON name of the setting; nil: restore the default
	Texts        map[string]*string // by the JSON name of the setting; nil: remove the value
	SecondFactor SecondFactorPatch
	Passwords    Optional[string] // the setting passwordSignIn
}

// SecondFactorPatch changes a SecondFactorRule. If the scope after the change is not
// SecondFactorOfRoles, the rule has no roles.
type SecondFactorPatch struct {
	Required Optional[string]
	Roles    Optional[[]string] // role ids
}

// check adds an error for each invalid member. It does not check combinations of members,
// which checkTogether does.
func (p *SettingsPatch) check(faults *FieldErrors) {
	for _, n := range NumberSettings {
		if value := p.Numbers[n.Name]; value != nil && !n.allows(*value) {
			faults.Add(settingPointer(n.Name), "range", fmt.Sprintf("must be from %d to %d", n.Min, n.Max))
		}
	}
	scopes := []SecondFactorScope{SecondFactorOfNobody, SecondFactorOfAll, SecondFactorOfRoles}
	if required := p.SecondFactor.Required; required.Set && !slices.Contains(scopes, SecondFactorScope(required.Value)) {
		faults.Add(factorPointer, "format", `must be "none", "all" or "roles"`)
	}
	if len(p.SecondFactor.Roles.Value) > SecondFactorRolesMax {
		faults.Add(factorRolesPointer, "too-many", fmt.Sprintf("must have at most %d roles", SecondFactorRolesMax))
	}
	for i, text := range p.SecondFactor.Roles.Value {
		if _, err := ParseID[Role](text); err != nil {
			faults.Add(fmt.Sprintf("%s/%d", factorRolesPointer, i), "format", "must be a UUID")
		}
	}
	if scope := p.Passwords; scope.Set && scope.Value != string(PasswordsOfAll) && scope.Value != string(PasswordsOfOwners) {
		faults.Add(settingPointer("passwordSignIn"), "format", `must be "all" or "owners"`)
	}
	for _, t := range TextSettings {
		if value := p.Texts[t.Name]; value != nil {
			t.check(faults, *value)
		}
	}
}

// IsColor reports whether the text is a color in the form #rrggbb, in lower or upper case.
func IsColor(text string) bool {
	if len(text) != len("#rrggbb") || text[0] != '#' {
		return false
	}
	_, err := hex.DecodeString(text[1:])
	return err == nil
}

const (
	factorPointer      = "/settings/secondFactor/required"
	factorRolesPointer = "/settings/secondFactor/roles"
)

func settingPointer(name string) string { return "/settings/" + name }

// checkTogether adds errors for invalid combinations of members, as they would be after the
// patch is applied to old. The error of a conflict is at a member that the patch sets. It
// is left out if this member already has an error.
func (p *SettingsPatch) checkTogether(faults *FieldErrors, old TenantSettings) {
	s := p.withinBounds().apply(old)
	conflict := func(detail string, pointers ...string) {
		i := slices.IndexFunc(pointers, p.names)
		if i >= 0 && !slices.ContainsFunc(*faults, func(f FieldError) bool { return f.Pointer == pointers[i] }) {
			faults.Add(pointers[i], "conflict", detail)
		}
	}
	if s.SessionIdle != nil && s.IdleLifetime() > s.AbsoluteLifetime() {
		conflict(fmt.Sprintf("conflicts with another setting: sessionIdleSeconds must be at most sessionAbsoluteSeconds, which would be %d", inSeconds(TenantSettings.AbsoluteLifetime)(s)),
			settingPointer(sessionIdle), settingPointer(sessionAbsolute), factorPointer)
	}
	if s.PasswordMinimum() < DefaultPasswordMin && s.SecondFactor.Required != SecondFactorOfAll {
		conflict(fmt.Sprintf("conflicts with another setting: passwordMinimum must be at least %d unless all users need a second factor", DefaultPasswordMin),
			settingPointer(passwordMinimum), factorPointer)
	}
	if kept := p.withinBounds().Numbers[eventsKept]; kept != nil && time.Duration(*kept)*time.Second < s.EventsAtLeast {
		faults.Add(settingPointer(eventsKept), "range", fmt.Sprintf("must be at least %d, the minimum that the operators of this instance have set", int64(s.EventsAtLeast/time.Second)))
	}
	switch named := p.SecondFactor.Roles.Value; {
	case s.SecondFactor.Required != SecondFactorOfRoles && len(named) > 0:
		conflict("conflicts with another setting: roles must be empty unless required is roles", factorRolesPointer)
	case s.SecondFactor.Required == SecondFactorOfRoles && len(s.SecondFactor.Roles) == 0 && len(named) == 0 && (p.names(factorPointer) || p.names(factorRolesPointer)):
		faults.Add(factorRolesPointer, "required", "must name at least one role if required is roles")
	}
}

// names reports whether the patch sets the setting at the JSON Pointer.
func (p *SettingsPatch) names(pointer string) bool {
	switch pointer {
	case factorPointer:
		return p.SecondFactor.Required.Set
	case factorRolesPointer:
		return p.SecondFactor.Roles.Set
	}
	_, named := p.Numbers[pointer[len("/settings/"):]]
	return named
}

// withinBounds returns a copy of the patch without the numbers that are less than their
// minimum or greater than their maximum.
func (p *SettingsPatch) withinBounds() *SettingsPatch {
	bounded := *p
	bounded.Numbers = maps.Clone(p.Numbers)
	for _, n := range NumberSettings {
		if value := bounded.Numbers[n.Name]; value != nil && !n.allows(*value) {
			delete(bounded.Numbers, n.Name)
		}
	}
	return &bounded
}

// apply returns the settings s with the changes of the patch.
func (p *SettingsPatch) apply(s TenantSettings) TenantSettings {
	for _, n := range NumberSettings {
		if value, named := p.Numbers[n.Name]; named {
			*n.stored(&s) = value
		}
	}
	s.SecondFactor = p.SecondFactor.apply(s.SecondFactor)
	if p.Passwords.Set {
		s.PasswordSignIn = ""
		if PasswordScope(p.Passwords.Value) == PasswordsOfOwners {
			s.PasswordSignIn = PasswordsOfOwners
		}
	}
	for _, t := range TextSettings {
		if value, named := p.Texts[t.Name]; named {
			if value != nil {
				value = new(t.normalize(*value))
			}
			*t.stored(&s) = value
		}
	}
	return s
}

func (p *SecondFactorPatch) apply(r SecondFactorRule) SecondFactorRule {
	if p.Required.Set {
		r.Required = ""
		if scope := SecondFactorScope(p.Required.Value); scope != SecondFactorOfNobody {
			r.Required = scope
		}
	}
	if p.Roles.Set {
		r.Roles = p.RoleIDs()
	}
	if r.Required != SecondFactorOfRoles {
		r.Roles = nil
	}
	return r
}

// RoleIDs returns the ids of the roles in the patch, sorted and without duplicates. It
// omits texts that are not ids.
func (p *SecondFactorPatch) RoleIDs() []RoleID {
	var ids []RoleID
	for _, text := range p.Roles.Value {
		if id, err := ParseID[Role](text); err == nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b RoleID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// CheckRoles adds an error for each role of the patch that does not exist. The argument
// roles has those roles of the patch that exist in the tenant.
func (p *SecondFactorPatch) CheckRoles(faults *FieldErrors, roles []Role) {
	for i, text := range p.Roles.Value {
		if id, err := ParseID[Role](text); err == nil && !slices.ContainsFunc(roles, func(r Role) bool { return r.ID == id }) {
			faults.Add(fmt.Sprintf("%s/%d", factorRolesPointer, i), "unknown-role", "is not a role of this tenant")
		}
	}
}

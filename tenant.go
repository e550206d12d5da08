package rolecall

import (
	"hash/fnv"
	"time"
)

// Tenant is one customer and the unit of isolation. The request header x-tenant-schema
// contains its name. An unknown name resolves to the zero Tenant, which has no data.
type Tenant struct {
	ID          TenantID
	Name        string // never changes
	DisplayName string
	Status      TenantStatus
	Settings    TenantSettings
	CreatedAt   Time
	UpdatedAt   Time
	PurgeAt     Time // end of the time in which a deleted tenant can be restored; otherwise zero
	Version     int64
}

// TenantNameID returns the id that caches use for a tenant name, whether or not the
// tenant exists. Two names can have the same id.
func TenantNameID(name string) (id AnyID) {
	h := fnv.New128a()
	h.Write([]byte(name))
	h.Sum(id[:0])
	return id
}

// TenantStatus is the state of a tenant.
type TenantStatus string

// The states of a tenant.
const (
	TenantActive    TenantStatus = "active"
	TenantSuspended TenantStatus = "suspended"
	TenantDeleted   TenantStatus = "deleted" // can still be restored
)

// TenantRestorable is how long a deleted tenant can be restored. After that, its
// data is removed.
const TenantRestorable = 24 * time.Hour

// TenantQuery selects tenants, sorted by name.
type TenantQuery struct {
	Among  []string     // only these names, a small number; nil: all
	Status TenantStatus // empty: active and suspended
	Now    Time         // for TenantDeleted
	After  string       // name of the last tenant of the previous page
	Limit  int
}

// TenantDraft describes a tenant to create and its first owner.
type TenantDraft struct {
	Name        string
	DisplayName *string // nil: same as Name
	Owner       UserDraft
}

// Check validates the draft. It returns nil if the draft is valid.
func (d *TenantDraft) Check() FieldErrors {
	var faults FieldErrors
	if !IsTenantName(d.Name) {
		faults.Add("/name", "format", tenantNameFormat)
	}
	if d.DisplayName != nil {
		faults.Text("/displayName", *d.DisplayName, 1, UserNameMax)
	}
	for _, fault := range d.Owner.Check() {
		fault.Pointer = "/owner" + fault.Pointer
		faults = append(faults, fault)
	}
	return faults
}

// Tenant returns the draft as an active tenant with a new id.
func (d *TenantDraft) Tenant(now Time) Tenant {
	t := Tenant{ID: NewID[Tenant](now), Name: d.Name, DisplayName: d.Name, Status: TenantActive, CreatedAt: now, UpdatedAt: now, Version: 1}
	if d.DisplayName != nil {
		t.DisplayName = *d.DisplayName
	}
	return t
}

// tenantNameFormat describes what IsTenantName accepts.
const tenantNameFormat = "must have 1 to 63 characters of a to z, 0 to 9, - and _, and begin with a letter or digit"

// IsTenantName reports whether name matches ^[a-z0-9][a-z0-9_-]{0,62}$.
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

// TenantPatch changes a tenant. Absent members keep their values; null restores the
// default (RFC 7396).
type TenantPatch struct {
	DisplayName Optional[string]
	Settings    SettingsPatch
}

// Check validates each member of the patch without looking at the other ones. It
// returns nil if they are valid.
func (p *TenantPatch) Check() FieldErrors {
	var faults FieldErrors
	if p.DisplayName.Set {
		faults.Text("/displayName", p.DisplayName.Value, 1, UserNameMax)
	}
	p.Settings.check(&faults)
	return faults
}

// CheckOn validates the patch like Check. It also validates the combination of the patch
// with the stored settings.
func (p *TenantPatch) CheckOn(old TenantSettings) FieldErrors {
	faults := p.Check()
	p.Settings.checkTogether(&faults, old)
	return faults
}

// Apply returns the patched tenant and the names of the members that changed. The
// patch must have passed CheckOn.
func (p *TenantPatch) Apply(t Tenant, now Time) (Tenant, []string) {
	var changed []string
	if p.DisplayName.Set && p.DisplayName.Value != t.DisplayName {
		t.DisplayName, changed = p.DisplayName.Value, append(changed, "displayName")
	}
	before := t.Settings
	if t.Settings = p.Settings.apply(before); !t.Settings.Equal(before) {
		changed = append(changed, "settings")
	}
	if changed != nil {
		t.UpdatedAt = max(now, t.UpdatedAt+1)
		t.Version++
	}
	return t, changed
}

// Limits of a summary of a tenant.
const (
	SummaryDays     = 30                  // days of activity
	SummaryDayMax   = 1_000               // events of one day that are counted
	SummaryCountMax = 1_000               // invitations that are counted
	SummaryItems    = 10                  // roles and tokens that expire soon
	SummarySoon     = 14 * 24 * time.Hour // what expires within this time expires soon
	SummaryRecent   = 24 * time.Hour      // failed sign-ins within this time are counted
)

// FactorCoverage is how many active users have a second factor.
type FactorCoverage struct {
	Users     int // active users
	Protected int // active users with an authenticator app or a passkey
	Exact     bool
}

// FailedSignIn is an event of failed sign-ins.
type FailedSignIn struct {
	Reason string // the cause, and how many times
	Source string
}

// ExpiringRole is an assignment that expires soon.
type ExpiringRole struct {
	Holder    Holder
	RoleID    RoleID
	RoleName  string
	ExpiresAt Time
}

// Day is a period of about 24 hours, from its first moment to the first moment of the next day.
type Day struct{ From, To Time }

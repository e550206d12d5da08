package rolecall

import (
	"hash/fnv"
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
	PurgeAt     Time // of a deleted tenant: until when it can be restored; else zero
	Version     int64
}

// TenantNameID returns the id by which caches know a tenant's name, also if no tenant has
// it. Two names can have the same id.
func TenantNameID(name string) (id AnyID) {
	h := fnv.New128a()
	h.Write([]byte(name))
	h.Sum(id[:0])
	return id
}

// TenantStatus says whether a tenant is served.
type TenantStatus string

// The states of a tenant.
const (
	TenantActive    TenantStatus = "active"
	TenantSuspended TenantStatus = "suspended"
	TenantDeleted   TenantStatus = "deleted" // can still be restored
)

// TenantRestorable is how long a deleted tenant can be restored. Then its data is
// removed.
const TenantRestorable = 24 * time.Hour

// TenantQuery says which tenants are wanted, by name.
type TenantQuery struct {
	Among  []string     // only these names, of which there are few; nil: all
	Status TenantStatus // only these; empty: all that are not deleted
	Now    Time         // for TenantDeleted
	After  string       // a name
	Limit  int
}

// TenantDraft is what an operator says of a new tenant and its first owner.
type TenantDraft struct {
	Name        string
	DisplayName *string // nil: the name
	Owner       UserDraft
}

// Check returns what is wrong with the draft, nil if nothing is.
func (d *TenantDraft) Check() Faults {
	var faults Faults
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

// Tenant returns the tenant that the draft describes.
func (d *TenantDraft) Tenant(now Time) Tenant {
	t := Tenant{ID: NewID[Tenant](now), Name: d.Name, DisplayName: d.Name, Status: TenantActive, CreatedAt: now, UpdatedAt: now, Version: 1}
	if d.DisplayName != nil {
		t.DisplayName = *d.DisplayName
	}
	return t
}

// tenantNameFormat says what IsTenantName asks for.
const tenantNameFormat = "must be 1 to 63 of a to z, 0 to 9, - and _, and begin with a letter or digit"

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

// TenantPatch is a change of a tenant: what it does not name stays; null sets the
// default again (RFC 7396).
type TenantPatch struct {
	DisplayName Optional[string]
	Settings    SettingsPatch
}

// Check returns what is wrong with the members of the patch, each by itself, nil if
// nothing is.
func (p *TenantPatch) Check() Faults {
	var faults Faults
	if p.DisplayName.Set {
		faults.Text("/displayName", p.DisplayName.Value, 1, UserNameMax)
	}
	p.Settings.check(&faults)
	return faults
}

// CheckOn returns what Check does, and what in the patch does not fit together with
// the settings that it is for.
func (p *TenantPatch) CheckOn(old TenantSettings) Faults {
	faults := p.Check()
	p.Settings.checkTogether(&faults, old)
	return faults
}

// Apply returns the tenant as the patch makes it and the names of the members
// that changed. The patch must have passed CheckOn.
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

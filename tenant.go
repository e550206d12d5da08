package rolecall

import (
	"hash/fnv"
	"time"
)

// Tenant is one customer, whose data no other tenant can access. Requests name the tenant
// in the header x-tenant-schema. A name that no tenant has stands for the zero Tenant,
// which has no data.
type Tenant struct {
	ID          TenantID
	Name        string // never changes
	DisplayName string
	Status      TenantStatus
	Settings    TenantSettings
	Logo        *Logo // nil: the tenant has no logo
	CreatedAt   Time
	UpdatedAt   Time
	PurgeAt     Time // until then, a deleted tenant can be restored; zero: the tenant is not deleted
	Version     int64
}

// TenantNameID returns the id under which caches record changes of a tenant with the name,
// even if no tenant has this name. It is a hash, so two names can have the same id.
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

// TenantRestorable is how long a deleted tenant can be restored. After that, its data is
// deleted.
const TenantRestorable = 24 * time.Hour

// TenantQuery selects tenants, sorted by name.
type TenantQuery struct {
	Among  []string     // only tenants with these names, at most 100; nil: all names
	Status TenantStatus // empty: active and suspended
	Now    Time         // with TenantDeleted: only tenants that can still be restored at this time
	After  string       // name of the last tenant of the previous page
	Limit  int
}

// OperatorsTenant has the events of the operators' log in place of a tenant. No stored tenant has this
// id, because ids begin with their creation time.
var OperatorsTenant = TenantID{15: 2}

// TenantDraft describes a tenant to create and its first owner.
type TenantDraft struct {
	Name        string
	DisplayName *string // nil: the display name is Name
	Owner       UserDraft
	Delivery    Delivery // of the owner's invitation
	NameMin     int      // the setting nameMinimum; 0: the default
}

// Check validates the draft. It returns nil if the draft is valid.
func (d *TenantDraft) Check() FieldErrors {
	var faults FieldErrors
	if !IsTenantName(d.Name) {
		faults.Add("/name", "format", tenantNameFormat)
	}
	if d.DisplayName != nil {
		faults.Name("/displayName", *d.DisplayName, 1, UserNameMax)
	}
	for _, fault := range d.Owner.Check(d.settings().NameMinimum()) {
		fault.Pointer = "/owner" + fault.Pointer
		faults = append(faults, fault)
	}
	return faults
}

// Tenant returns a new active tenant with the values of the draft.
func (d *TenantDraft) Tenant(now Time) Tenant {
	t := Tenant{
		ID: NewID[Tenant](now), Name: d.Name, DisplayName: d.Name, Status: TenantActive, Settings: d.settings(),
		CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if d.DisplayName != nil {
		t.DisplayName = TrimName(*d.DisplayName)
	}
	return t
}

// settings returns the settings of the new tenant.
func (d *TenantDraft) settings() (s TenantSettings) {
	if minimum := int64(d.NameMin); minimum != 0 && minimum != DefaultNameMin {
		s.NameMin = &minimum
	}
	return s
}

// tenantNameFormat is the detail of the error for a name that IsTenantName rejects.
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

// TenantPatch changes a tenant. Absent members keep their values. The value null restores
// the default of a setting (RFC 7396).
type TenantPatch struct {
	DisplayName Optional[string]
	Settings    SettingsPatch
}

// Check validates each member of the patch alone. It returns nil if all are valid.
func (p *TenantPatch) Check() FieldErrors {
	var faults FieldErrors
	if p.DisplayName.Set {
		faults.Name("/displayName", p.DisplayName.Value, 1, UserNameMax)
	}
	p.Settings.check(&faults)
	return faults
}

// CheckOn returns the field errors of Check, and those of combinations of settings that
// would be invalid after the patch is applied to the stored settings old.
func (p *TenantPatch) CheckOn(old TenantSettings) FieldErrors {
	faults := p.Check()
	p.Settings.checkTogether(&faults, old)
	return faults
}

// Apply returns the tenant with the changes of the patch, and the names of the members
// whose values changed. If no value changed, the names are nil. The patch must have passed
// CheckOn.
func (p *TenantPatch) Apply(t Tenant, now Time) (Tenant, []string) {
	var changed []string
	if name := TrimName(p.DisplayName.Value); p.DisplayName.Set && name != t.DisplayName {
		t.DisplayName, changed = name, append(changed, "displayName")
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

package rolecall

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"image"
	_ "image/jpeg" // so that image.DecodeConfig reads JPEG
	_ "image/png"
	"slices"
	"time"

	_ "golang.org/x/image/webp"
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

// Logo describes the image that the pages before the sign-in show. LogoFile has the image.
type Logo struct {
	MediaType string `json:"mediaType"`
	Width     int    `json:"width"`  // pixels
	Height    int    `json:"height"` // pixels
	Size      int    `json:"size"`   // bytes
	Hash      string `json:"hash"`   // of the content
	UpdatedAt Time   `json:"updatedAt"`
}

// LogoFile is an image that is stored as it was uploaded.
type LogoFile struct {
	MediaType string
	Content   []byte
}

// The limits of a logo.
const (
	LogoSizeMax = 32 << 10 // bytes
	LogoSideMin = 16       // pixels
	LogoSideMax = 1024     // pixels
)

// LogoMediaTypes are the media types that a logo can have. SVG is not one of them, because
// it can contain scripts.
var LogoMediaTypes = []string{"image/png", "image/jpeg", "image/webp"}

// Logo returns the description of the image, or its field errors. hash is a hash of the
// content. Logo reads the beginning and the end of the image, but decodes no pixels.
func (f *LogoFile) Logo(hash string, now Time) (Logo, FieldErrors) {
	var faults FieldErrors
	if len(f.Content) > LogoSizeMax {
		faults.Add("", "length", fmt.Sprintf("must have at most %d bytes", LogoSizeMax))
		return Logo{}, faults
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(f.Content))
	switch {
	case err != nil || !slices.Contains(LogoMediaTypes, "image/"+format) || !isWholeImage(f.Content, format):
		faults.Add("", "format", "must be a complete image in the format PNG, JPEG or WebP")
	case "image/"+format != f.MediaType:
		faults.Add("", "type", "must be an image of the declared media type")
	case min(config.Width, config.Height) < LogoSideMin || max(config.Width, config.Height) > LogoSideMax:
		faults.Add("", "range", fmt.Sprintf("must be an image with a width and a height from %d to %d pixels", LogoSideMin, LogoSideMax))
	}
	return Logo{f.MediaType, config.Width, config.Height, len(f.Content), hash, now}, faults
}

// isWholeImage reports whether the image ends as its format requires. Otherwise a part of
// it is missing.
func isWholeImage(content []byte, format string) bool {
	switch format {
	case "png":
		return bytes.HasSuffix(content, []byte("\x00\x00\x00\x00IEND\xae\x42\x60\x82"))
	case "jpeg":
		return bytes.HasSuffix(content, []byte{0xff, 0xd9})
	}
	return uint64(binary.LittleEndian.Uint32(content[4:8]))+8 == uint64(len(content)) // WebP is a RIFF file, which begins with its length
}

// WithLogo returns the tenant with another logo, or without a logo if it is nil.
func (t Tenant) WithLogo(logo *Logo, now Time) Tenant {
	t.Logo, t.UpdatedAt = logo, max(now, t.UpdatedAt+1)
	t.Version++
	return t
}

// The limits of the summary of a tenant.
const (
	SummaryDays     = 30                  // days for which events are counted
	SummaryDayMax   = 1_000               // maximum number of events of one day that are counted
	SummaryCountMax = 1_000               // maximum number of invitations that are counted
	SummaryItems    = 10                  // maximum number of roles, and of tokens, that are listed because they expire soon
	SummarySoon     = 14 * 24 * time.Hour // what expires within this time expires soon
	SummaryRecent   = 24 * time.Hour      // failed sign-ins within this time are counted
)

// FactorCoverage says how many active users have a second factor. If Exact is false, the
// tenant may have more users than were counted.
type FactorCoverage struct {
	Users     int // active users
	Protected int // active users with an authenticator app or a passkey
	Exact     bool
}

// FailedSignIn is the data of an event that records one or more failed sign-ins.
type FailedSignIn struct {
	Reason string // the cause, and the number of sign-ins if they are several
	Source string
}

// ExpiringRole is an assignment that expires within SummarySoon.
type ExpiringRole struct {
	Holder    Holder
	RoleID    RoleID
	RoleName  string
	ExpiresAt Time
}

// Day is one day in a time zone. From is its first moment, and To is the first moment of
// the next day.
type Day struct{ From, To Time }

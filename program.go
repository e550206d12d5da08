package rolecall

import (
	"fmt"
	"slices"
	"time"
)

// The limits of an API token. Every token has an expiry, so that a forgotten token becomes
// invalid.
const (
	APITokenNameMin        = 3
	APITokenNameMax        = 100
	APITokenPermissionsMax = RolePermissionsMax
	APITokenLifetimeMax    = 366 * 24 * time.Hour
	APITokensMax           = 100 // per holder, including tokens that expired in the last 30 days
)

// APIToken lets a program act for a user or for a service account. A request with the
// token has the permissions that both the token and its holder have at the time of the
// request. The struct does not contain the secret.
type APIToken struct {
	ID               APITokenID       `json:"id"`
	UserID           UserID           `json:"userId,omitzero"`           // the holder; zero if the holder is a service account
	ServiceAccountID ServiceAccountID `json:"serviceAccountId,omitzero"` // the holder; zero if the holder is a user
	Name             string           `json:"name"`
	Permissions      []Permission     `json:"permissions"`        // sorted by text, each once
	CreatedBy        UserID           `json:"createdBy,omitzero"` // zero: created by an operator
	CreatedAt        Time             `json:"createdAt"`
	ExpiresAt        Time             `json:"expiresAt"`
	LastUsedAt       Time             `json:"-"` // zero: the token was never used
}

// Live reports whether the token is valid at the time now.
func (t *APIToken) Live(now Time) bool { return now < t.ExpiresAt }

// Covers reports whether a permission of the token covers the permission asked. Even if it
// does, a request succeeds only if the holder of the token also has the permission.
func (t *APIToken) Covers(asked Permission) bool {
	return slices.ContainsFunc(t.Permissions, func(p Permission) bool { return p.Covers(asked) })
}

// APITokenState is an API token with its holder and the holder's assignments. If the holder
// is a service account, Holder is a User with only the account's id, name and status.
type APITokenState struct {
	Token       APIToken
	Holder      User
	Guarded     bool // the holder has a second factor; false for service accounts
	Assignments []Assignment
}

// APITokenDraft describes an API token to create.
type APITokenDraft struct {
	Name        string   `json:"name" required:"true" minLength:"3" maxLength:"100" doc:"Name of the token, for example its purpose."`
	Permissions []string `json:"permissions" required:"true" minItems:"1" maxItems:"256" format:"permission" doc:"The permissions of the token. The user or service account of the token must have each permission or be able to assign it. If the user or service account loses a permission later, the token loses it too."`
	ExpiresAt   Time     `json:"expiresAt" required:"true" doc:"When the token expires: in the future, and at most 366 days from now."`
}

// Check validates the draft without its holder. It returns nil if the draft is valid.
func (d *APITokenDraft) Check(now Time) FieldErrors {
	var faults FieldErrors
	faults.Name("/name", d.Name, APITokenNameMin, APITokenNameMax)
	if len(d.Permissions) == 0 {
		faults.Add("/permissions", "too-few", "must have at least one permission")
	}
	parsePermissions(&faults, "/permissions", d.Permissions)
	switch {
	case d.ExpiresAt <= now:
		faults.Add("/expiresAt", "past", "must be in the future")
	case d.ExpiresAt > now.Add(APITokenLifetimeMax):
		faults.Add("/expiresAt", "range", "must be at most 366 days from now")
	}
	return faults
}

// CheckHolder checks that the holder of the token has each permission of the draft or may
// assign it. The argument assignments has the holder's assignments. The draft must have
// passed Check. CheckHolder returns nil if the draft is valid.
func (d *APITokenDraft) CheckHolder(assignments []Assignment, now Time) FieldErrors {
	var faults FieldErrors
	for i, text := range d.Permissions {
		asked, err := ParsePermission(text)
		covers := func(p Permission) bool { return p.Covers(asked) }
		if err != nil || !slices.ContainsFunc(assignments, func(a Assignment) bool {
			return a.Live(now) && (slices.ContainsFunc(a.Role.Permissions, covers) || slices.ContainsFunc(a.Role.Grants, covers))
		}) {
			faults.Add(fmt.Sprintf("/permissions/%d", i), "not-held", "is not a permission that the holder of the token has or may assign")
		}
	}
	return faults
}

// APIToken returns a new token with the values of the draft. The token has a new id and no
// holder. The draft must have passed Check.
func (d *APITokenDraft) APIToken(now Time) APIToken {
	var none FieldErrors
	return APIToken{
		ID: NewID[APIToken](now), Name: TrimName(d.Name), Permissions: parsePermissions(&none, "", d.Permissions),
		CreatedAt: now, ExpiresAt: d.ExpiresAt,
	}
}

// ServiceAccountsMax is the maximum number of service accounts in a tenant.
const ServiceAccountsMax = 1000

// ServiceAccount is the account of a program in one tenant. A service account can hold
// roles like a user. It does not count as the owner that each tenant must have. Its name
// and description have the same limits as those of a role.
type ServiceAccount struct {
	ID          ServiceAccountID     `json:"id" doc:"ID of the service account."`
	Name        string               `json:"name" doc:"Name of the service account."`
	Description string               `json:"description" doc:"Description of the service account."`
	Status      ServiceAccountStatus `json:"status" doc:"active or suspended. Later versions may add values."`
	CreatedAt   Time                 `json:"createdAt" doc:"When the service account was created."`
	UpdatedAt   Time                 `json:"updatedAt" doc:"When the service account was changed last."`
	Version     int64                `json:"-"` // increases with every change; the store rejects an update of an older version
}

// ServiceAccountStatus says whether the tokens of a service account work. Later versions
// may add values, which clients must accept.
type ServiceAccountStatus string

// The states of a service account.
const (
	ServiceAccountActive    ServiceAccountStatus = "active"
	ServiceAccountSuspended ServiceAccountStatus = "suspended"
)

// NameKey returns the key of the account's name. It is the sort key of service accounts,
// and is unique in a tenant.
func (a *ServiceAccount) NameKey() string { return sortedKey(a.Name) }

// ServiceAccountDraft describes a service account to create.
type ServiceAccountDraft struct {
	Name        string `json:"name" required:"true" minLength:"1" maxLength:"128" doc:"Name of the service account, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant."`
	Description string `json:"description" nullable:"true" minLength:"0" maxLength:"1024" doc:"Description of the service account."`
}

// Check validates the draft. The name must have at least nameMinimum characters. Check returns
// nil if the draft is valid.
func (d *ServiceAccountDraft) Check(nameMinimum int) FieldErrors {
	var faults FieldErrors
	checkNaming(&faults, nameMinimum, Some(d.Name), Some(d.Description))
	return faults
}

// ServiceAccount returns a new service account with the values of the draft. The draft must
// have passed Check.
func (d *ServiceAccountDraft) ServiceAccount(now Time) ServiceAccount {
	return ServiceAccount{
		ID: NewID[ServiceAccount](now), Name: TrimName(d.Name), Description: d.Description, Status: ServiceAccountActive,
		CreatedAt: now, UpdatedAt: now, Version: 1,
	}
}

// ServiceAccountPatch changes a service account. Absent members keep their values
// (RFC 7396).
type ServiceAccountPatch struct {
	Name        Optional[string] `json:"name" minLength:"1" maxLength:"128" doc:"Name of the service account, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant."`
	Description Optional[string] `json:"description" nullable:"true" minLength:"0" maxLength:"1024" doc:"Description of the service account."`
}

// Check validates the patch. The name must have at least nameMinimum characters. Check returns
// nil if the patch is valid.
func (p *ServiceAccountPatch) Check(nameMinimum int) FieldErrors {
	var faults FieldErrors
	checkNaming(&faults, nameMinimum, p.Name, p.Description)
	return faults
}

// Apply returns the account with the changes of the patch, and the names of the members
// whose values changed. If no value changed, the names are nil. The patch must have passed
// Check.
func (p *ServiceAccountPatch) Apply(a ServiceAccount, now Time) (ServiceAccount, []string) {
	var changed []string
	if name := TrimName(p.Name.Value); p.Name.Set && name != a.Name {
		a.Name, changed = name, append(changed, "name")
	}
	if p.Description.Set && p.Description.Value != a.Description {
		a.Description, changed = p.Description.Value, append(changed, "description")
	}
	if changed != nil {
		a = a.touched(now)
	}
	return a, changed
}

// WithStatus returns a copy of the account with the status, the next Version, and an
// UpdatedAt for a change at the time now.
func (a ServiceAccount) WithStatus(status ServiceAccountStatus, now Time) ServiceAccount {
	a.Status = status
	return a.touched(now)
}

func (a ServiceAccount) touched(now Time) ServiceAccount {
	a.UpdatedAt = max(now, a.UpdatedAt+1)
	a.Version++
	return a
}

// Holder is a user or a service account. Both can hold roles and API tokens.
type Holder struct {
	ID        AnyID
	IsAccount bool // whether the holder is a service account
}

// HolderOf returns the user or service account with the id as a Holder.
func HolderOf[T User | ServiceAccount](id ID[T]) Holder {
	_, isAccount := any(id).(ServiceAccountID)
	return Holder{AnyID(id), isAccount}
}

// UserID returns the id of the user. It is zero for a service account.
func (h Holder) UserID() UserID {
	if h.IsAccount {
		return UserID{}
	}
	return UserID(h.ID)
}

// ServiceAccountID returns the id of the service account. It is zero for a user.
func (h Holder) ServiceAccountID() ServiceAccountID {
	if h.IsAccount {
		return ServiceAccountID(h.ID)
	}
	return ServiceAccountID{}
}

package rolecall

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

// ServiceAccountQuery selects and sorts service accounts.
type ServiceAccountQuery struct {
	Words  []string // each must be the beginning of a word of the name
	ByName bool     // sort by name; otherwise by id, which is the order of creation
	Desc   bool
	After  *Position
	Limit  int
	Count  bool
}

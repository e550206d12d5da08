package rolecall

// ServiceAccountsMax is how many service accounts a tenant can have.
const ServiceAccountsMax = 1000

// ServiceAccount is a program of one tenant. It holds roles as a user does and
// counts for no owner. Its name and description have the bounds of a role's.
type ServiceAccount struct {
	ID          ServiceAccountID     `json:"id" doc:"ID of the service account."`
	Name        string               `json:"name" doc:"Name of the service account."`
	Description string               `json:"description" doc:"What the service account is for."`
	Status      ServiceAccountStatus `json:"status" doc:"active or suspended. More may come."`
	CreatedAt   Time                 `json:"createdAt" doc:"When the service account was created."`
	UpdatedAt   Time                 `json:"updatedAt" doc:"When the service account was changed last."`
	Version     int64                `json:"-"` // counts changes; the condition of every update
}

// ServiceAccountStatus says whether a service account's tokens work. The set is
// open: clients must expect more.
type ServiceAccountStatus string

// The states of a service account.
const (
	ServiceAccountActive    ServiceAccountStatus = "active"
	ServiceAccountSuspended ServiceAccountStatus = "suspended"
)

// NameKey returns the key by which the names of service accounts are sorted and
// unique.
func (a *ServiceAccount) NameKey() string { return Fold(a.Name) }

// ServiceAccountDraft is what a creator says of a new service account.
type ServiceAccountDraft struct {
	Name        string `json:"name" required:"true" minLength:"3" maxLength:"128" doc:"Name of the service account, unique in the tenant."`
	Description string `json:"description" nullable:"true" minLength:"0" maxLength:"1024" doc:"What the service account is for."`
}

// Check returns what is wrong with the draft, nil if nothing is.
func (d *ServiceAccountDraft) Check() Faults {
	var faults Faults
	checkNaming(&faults, Some(d.Name), Some(d.Description))
	return faults
}

// ServiceAccount returns the account that the draft describes, which must have
// passed Check.
func (d *ServiceAccountDraft) ServiceAccount(now Time) ServiceAccount {
	return ServiceAccount{
		ID: NewID[ServiceAccount](now), Name: d.Name, Description: d.Description, Status: ServiceAccountActive,
		CreatedAt: now, UpdatedAt: now, Version: 1,
	}
}

// ServiceAccountPatch is a change of a service account: absent members stay
// (RFC 7396).
type ServiceAccountPatch struct {
	Name        Optional[string] `json:"name" minLength:"3" maxLength:"128" doc:"Name of the service account, unique in the tenant."`
	Description Optional[string] `json:"description" nullable:"true" minLength:"0" maxLength:"1024" doc:"What the service account is for."`
}

// Check returns what is wrong with the patch, nil if nothing is.
func (p *ServiceAccountPatch) Check() Faults {
	var faults Faults
	checkNaming(&faults, p.Name, p.Description)
	return faults
}

// Apply returns the account as the patch makes it and the names of the members
// whose values changed. The patch must have passed Check.
func (p *ServiceAccountPatch) Apply(a ServiceAccount, now Time) (ServiceAccount, []string) {
	var changed []string
	if p.Name.Set && p.Name.Value != a.Name {
		a.Name, changed = p.Name.Value, append(changed, "name")
	}
	if p.Description.Set && p.Description.Value != a.Description {
		a.Description, changed = p.Description.Value, append(changed, "description")
	}
	if changed != nil {
		a = a.touched(now)
	}
	return a, changed
}

// WithStatus returns the account in the status.
func (a ServiceAccount) WithStatus(status ServiceAccountStatus, now Time) ServiceAccount {
	a.Status = status
	return a.touched(now)
}

func (a ServiceAccount) touched(now Time) ServiceAccount {
	a.UpdatedAt = max(now, a.UpdatedAt+1)
	a.Version++
	return a
}

// Holder is a user or a service account: both hold roles and API tokens.
type Holder struct {
	ID        AnyID
	IsAccount bool // a service account
}

// HolderOf returns the user or the service account with the id.
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

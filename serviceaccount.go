package rolecall

// ServiceAccount is a program of one tenant. It holds roles as a user does and
// counts for no owner.
type ServiceAccount struct {
	ID          ServiceAccountID     `json:"id"`
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Status      ServiceAccountStatus `json:"status"`
	CreatedAt   Time                 `json:"createdAt"`
	UpdatedAt   Time                 `json:"updatedAt"`
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

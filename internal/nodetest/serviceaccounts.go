package nodetest

import (
	"github.com/rolecall/rolecall"
)

// NewAccount creates a service account with the role.
func (f *Fixture) NewAccount(name string, role rolecall.RoleID) rolecall.ServiceAccount {
	f.Helper()
	created, err := f.Directory.CreateServiceAccount(f.Context(), f.Owner, NewKey(), rolecall.ServiceAccountDraft{Name: name})
	f.OK(err)
	f.AssignToAccount(created.Value.ID, role)
	return created.Value
}

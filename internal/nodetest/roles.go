package nodetest

import (
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/store"
)

// Roles returns a list of assignments.
func Roles(holds ...Held) []Held { return holds }

// InsertRole writes a role to the store, without authorization and events.
func (f *Fixture) InsertRole(r Held) rolecall.Role {
	f.Helper()
	role := r.Role(f)
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertRole(role)
		return nil
	}))
	return role
}

// Assignments that the tests give.
var (
	Approver  = Holding("shop/invoices:approve") // one permission
	Shop      = Holding("shop/*:*")              // all permissions of a service
	Auditor   = Holding("events:read")           // a permission of Rolecall itself
	Appointer = Granting("shop/*:*")             // may grant the role of approvers without having it
	Nothing   = Held{}                           // a role without permissions
)

// NewRole creates a role as the owner.
func (f *Fixture) NewRole(name string, permissions ...string) rolecall.Role {
	f.Helper()
	created, err := f.Directory.CreateRole(f.Context(), f.Owner, NewKey(), rolecall.RoleDraft{Name: name, Permissions: permissions})
	f.OK(err)
	return created.Value
}

// Assign assigns a role to a user as the owner.
func (f *Fixture) Assign(user rolecall.UserID, role rolecall.RoleID, draft rolecall.AssignmentDraft) {
	f.Helper()
	_, _, err := f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(user), role, draft)
	f.OK(err)
}

// OwnerRole returns the ID of the role that owners have.
func (f *Fixture) OwnerRole() rolecall.RoleID {
	f.Helper()
	page, err := f.Directory.Roles(f.Context(), f.Owner, directory.RoleListing{Key: rolecall.OwnerKey, Limit: 1})
	f.OK(err)
	return page.Items[0].ID
}

// SetPermissions changes the permissions of a role as the owner.
func (f *Fixture) SetPermissions(role rolecall.RoleID, permissions ...string) {
	f.Helper()
	f.OK(ErrorOf(f.Directory.UpdateRole(f.Context(), f.Owner, role, rolecall.RolePatch{Permissions: rolecall.Some(permissions)}, nil)))
}

// AssignToAccount assigns a role in the whole tenant to a service account as the owner.
func (f *Fixture) AssignToAccount(id rolecall.ServiceAccountID, role rolecall.RoleID) {
	f.Helper()
	f.OK(ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(id), role, rolecall.AssignmentDraft{})))
}

// Held is an assignment of a role with these permissions and grants.
type Held struct {
	Permissions, Grants []string
	Departments         []string      // nil: the whole tenant
	Until               rolecall.Time // zero: no expiry
}

// Holding returns an assignment of a role with the permissions, in the whole tenant and without expiry.
func Holding(permissions ...string) Held { return Held{Permissions: permissions} }

// Granting returns an assignment of a role that only lets its holders grant the permissions.
func Granting(grants ...string) Held { return Held{Grants: grants} }

// Within returns the assignment restricted to the departments.
func (h Held) Within(departments ...string) Held {
	h.Departments = departments
	return h
}

// To returns the assignment with this expiry.
func (h Held) To(until rolecall.Time) Held {
	h.Until = until
	return h
}

// expiry returns the time at which the assignment expires.
func (h Held) expiry() rolecall.Time {
	if h.Until == 0 {
		return rolecall.Never
	}
	return h.Until
}

// Draft returns the assignment as a draft.
func (h Held) Draft() rolecall.AssignmentDraft {
	draft := rolecall.AssignmentDraft{Departments: h.Departments}
	if h.Until != 0 {
		draft.ExpiresAt = &h.Until
	}
	return draft
}

// Role returns a role with the permissions and the grants, and with a unique name.
func (h Held) Role(t testing.TB) rolecall.Role {
	draft := rolecall.RoleDraft{Name: fmt.Sprintf("Role %d", Serial.Add(1)), Permissions: h.Permissions, Grants: h.Grants}
	role, faults := draft.Role(Start, rolecall.DefaultNameMin)
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	return role
}

// Assignment returns the assignment of the role to the user.
func (h Held) Assignment(t testing.TB, id rolecall.UserID) rolecall.Assignment {
	draft := h.Draft()
	return rolecall.Assignment{Holder: rolecall.HolderOf(id), Role: h.Role(t), Reach: draft.Reach(), ExpiresAt: h.expiry(), GrantedAt: Start}
}

package node_test

import (
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/store"
)

// storeRoles stores n roles without permissions.
func (f *fixture) storeRoles(n int) []rolecall.Role {
	f.Helper()
	roles := make([]rolecall.Role, n)
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		for i := range roles {
			roles[i] = held{}.role(f)
			tx.InsertRole(roles[i])
		}
		return nil
	}))
	return roles
}

func TestRolesPerTenantAreLimited(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		stored, err := f.Directory.Roles(f.Context(), f.owner, directory.RoleListing{Limit: 1, Count: true})
		f.ok(err)
		roles := f.storeRoles(rolecall.RolesMax - 1 - stored.Total.Count)
		create := func(i int) error {
			return errorOf(f.Directory.CreateRole(f.Context(), f.owner, newKey(), rolecall.RoleDraft{Name: fmt.Sprintf("Created %d", i)}))
		}
		f.ok(create(1))
		f.is(create(2), rolecall.ErrLimitReached)
		f.ok(f.Directory.DeleteRole(f.Context(), f.owner, roles[0].ID, false, nil))
		f.ok(create(2))
	})
}

func TestAssignmentsOfAHolderAreLimited(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		roles := f.storeRoles(rolecall.AssignmentsMax + 4)
		account, err := f.Directory.CreateServiceAccount(f.Context(), f.owner, newKey(), rolecall.ServiceAccountDraft{Name: "Account"})
		f.ok(err)
		user := f.member("ada")
		for what, h := range map[string]rolecall.Holder{"a user": rolecall.HolderOf(user.ID), "a service account": rolecall.HolderOf(account.Value.ID)} {
			store := func(roles []rolecall.Role) {
				f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
					for i, role := range roles {
						until := rolecall.Never
						if i%2 == 0 {
							until = start // expired assignments count too
						}
						tx.UpsertAssignment(rolecall.Assignment{Holder: h, Role: role, Reach: rolecall.Everywhere(), ExpiresAt: until, GrantedAt: start})
					}
					return nil
				}))
			}
			assign := func(role rolecall.Role) error {
				return errorOf3(f.Directory.AssignRole(f.Context(), f.owner, h, role.ID, rolecall.AssignmentDraft{}))
			}
			store(roles[:rolecall.AssignmentsMax-1])
			next := roles[rolecall.AssignmentsMax-1:]
			f.ok(assign(next[0]))
			f.is(assign(next[1]), rolecall.ErrLimitReached)
			f.ok(assign(next[0])) // it replaces the assignment
			f.ok(assign(roles[0]))

			another := roles[len(roles)-1]
			store(roles[:len(roles)-1]) // three above the limit
			live, expired, err := f.Directory.Assignments(f.Context(), f.owner, h)
			f.ok(err)
			if len(live)+len(expired) != rolecall.AssignmentsMax+3 {
				t.Errorf("%s over the limit has %d assignments", what, len(live)+len(expired))
			}
			for _, role := range roles[:4] {
				f.is(assign(another), rolecall.ErrLimitReached)
				f.ok(f.Directory.UnassignRole(f.Context(), f.owner, h, role.ID))
			}
			f.ok(assign(another))
		}
	})
}

func TestAnOwnerIsNotAddedAboveTheLimitOfAssignments(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user := f.member("ada")
		roles := f.storeRoles(rolecall.AssignmentsMax)
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			for _, role := range roles {
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start})
			}
			return nil
		}))
		f.is(f.Directory.AddOwner(f.Context(), f.tenant.Name, user.Email), rolecall.ErrLimitReached)
		f.ok(f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(user.ID), roles[0].ID))
		f.ok(f.Directory.AddOwner(f.Context(), f.tenant.Name, user.Email))
	})
}

func TestDepartmentsOfAHolderAreLimited(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		roles := f.storeRoles(rolecall.HolderReachMax/rolecall.ReachDepartmentsMax + 1)
		account, err := f.Directory.CreateServiceAccount(f.Context(), f.owner, newKey(), rolecall.ServiceAccountDraft{Name: "Account"})
		f.ok(err)
		for _, h := range []rolecall.Holder{rolecall.HolderOf(f.member("ada").ID), rolecall.HolderOf(account.Value.ID)} {
			assign := func(role rolecall.Role, n int) error {
				var draft rolecall.AssignmentDraft
				for i := range n {
					draft.Departments = append(draft.Departments, fmt.Sprint("Department ", i))
				}
				return errorOf3(f.Directory.AssignRole(f.Context(), f.owner, h, role.ID, draft))
			}
			last := roles[len(roles)-1]
			for _, role := range roles[:len(roles)-1] {
				f.ok(assign(role, rolecall.ReachDepartmentsMax))
			}
			f.is(assign(last, 1), rolecall.ErrLimitReached)
			f.ok(assign(last, 0)) // the whole tenant
			f.is(assign(last, 1), rolecall.ErrLimitReached)
			f.ok(assign(roles[0], rolecall.ReachDepartmentsMax)) // replaces an assignment
			f.ok(assign(roles[0], rolecall.ReachDepartmentsMax-1))
			f.ok(assign(last, 1))
			f.is(assign(roles[0], rolecall.ReachDepartmentsMax), rolecall.ErrLimitReached)
		}
	})
}

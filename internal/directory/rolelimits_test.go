package directory_test

import (
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// storeRoles stores n roles without permissions.
func storeRoles(f *nodetest.Fixture, n int) []rolecall.Role {
	f.Helper()
	roles := make([]rolecall.Role, n)
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		for i := range roles {
			roles[i] = nodetest.Held{}.Role(f)
			tx.InsertRole(roles[i])
		}
		return nil
	}))
	return roles
}

func TestRolesPerTenantAreLimited(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		stored, err := f.Directory.Roles(f.Context(), f.Owner, directory.RoleListing{Limit: 1, Count: true})
		f.OK(err)
		roles := storeRoles(f, rolecall.RolesMax-1-stored.Total.Count)
		create := func(i int) error {
			return nodetest.ErrorOf(f.Directory.CreateRole(f.Context(), f.Owner, nodetest.NewKey(), rolecall.RoleDraft{Name: fmt.Sprintf("Created %d", i)}))
		}
		f.OK(create(1))
		f.Is(create(2), rolecall.ErrLimitReached)
		f.OK(f.Directory.DeleteRole(f.Context(), f.Owner, roles[0].ID, false, nil))
		f.OK(create(2))
	})
}

func TestAssignmentsOfAHolderAreLimited(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		roles := storeRoles(f, rolecall.AssignmentsMax+4)
		account, err := f.Directory.CreateServiceAccount(f.Context(), f.Owner, nodetest.NewKey(), rolecall.ServiceAccountDraft{Name: "Account"})
		f.OK(err)
		user := f.NewMember("ada")
		for what, h := range map[string]rolecall.Holder{"a user": rolecall.HolderOf(user.ID), "a service account": rolecall.HolderOf(account.Value.ID)} {
			store := func(roles []rolecall.Role) {
				f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
					for i, role := range roles {
						until := rolecall.Never
						if i%2 == 0 {
							until = nodetest.Start // expired assignments count too
						}
						tx.UpsertAssignment(rolecall.Assignment{Holder: h, Role: role, Reach: rolecall.Everywhere(), ExpiresAt: until, GrantedAt: nodetest.Start})
					}
					return nil
				}))
			}
			assign := func(role rolecall.Role) error {
				return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, h, role.ID, rolecall.AssignmentDraft{}))
			}
			store(roles[:rolecall.AssignmentsMax-1])
			next := roles[rolecall.AssignmentsMax-1:]
			f.OK(assign(next[0]))
			f.Is(assign(next[1]), rolecall.ErrLimitReached)
			f.OK(assign(next[0])) // it replaces the assignment
			f.OK(assign(roles[0]))

			another := roles[len(roles)-1]
			store(roles[:len(roles)-1]) // three above the limit
			live, expired, err := f.Directory.Assignments(f.Context(), f.Owner, h)
			f.OK(err)
			if len(live)+len(expired) != rolecall.AssignmentsMax+3 {
				t.Errorf("%s over the limit has %d assignments", what, len(live)+len(expired))
			}
			for _, role := range roles[:4] {
				f.Is(assign(another), rolecall.ErrLimitReached)
				f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, h, role.ID))
			}
			f.OK(assign(another))
		}
	})
}

func TestAnOwnerIsNotAddedAboveTheLimitOfAssignments(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := f.NewMember("ada")
		roles := storeRoles(f, rolecall.AssignmentsMax)
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for _, role := range roles {
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: nodetest.Start})
			}
			return nil
		}))
		f.Is(f.Directory.AddOwner(f.Context(), f.Tenant.Name, user.Email), rolecall.ErrLimitReached)
		f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(user.ID), roles[0].ID))
		f.OK(f.Directory.AddOwner(f.Context(), f.Tenant.Name, user.Email))
	})
}

func TestDepartmentsOfAHolderAreLimited(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		roles := storeRoles(f, rolecall.HolderReachMax/rolecall.ReachDepartmentsMax+1)
		account, err := f.Directory.CreateServiceAccount(f.Context(), f.Owner, nodetest.NewKey(), rolecall.ServiceAccountDraft{Name: "Account"})
		f.OK(err)
		for _, h := range []rolecall.Holder{rolecall.HolderOf(f.NewMember("ada").ID), rolecall.HolderOf(account.Value.ID)} {
			assign := func(role rolecall.Role, n int) error {
				var draft rolecall.AssignmentDraft
				for i := range n {
					draft.Departments = append(draft.Departments, fmt.Sprint("Department ", i))
				}
				return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, h, role.ID, draft))
			}
			last := roles[len(roles)-1]
			for _, role := range roles[:len(roles)-1] {
				f.OK(assign(role, rolecall.ReachDepartmentsMax))
			}
			f.Is(assign(last, 1), rolecall.ErrLimitReached)
			f.OK(assign(last, 0)) // the whole tenant
			f.Is(assign(last, 1), rolecall.ErrLimitReached)
			f.OK(assign(roles[0], rolecall.ReachDepartmentsMax)) // replaces an assignment
			f.OK(assign(roles[0], rolecall.ReachDepartmentsMax-1))
			f.OK(assign(last, 1))
			f.Is(assign(roles[0], rolecall.ReachDepartmentsMax), rolecall.ErrLimitReached)
		}
	})
}

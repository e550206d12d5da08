package directory_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// acts are all actions that can remove an owner.
var acts = map[string]func(*nodetest.Fixture, access.Caller, rolecall.UserID, rolecall.RoleID) error{
	"take the role": func(f *nodetest.Fixture, c access.Caller, id rolecall.UserID, role rolecall.RoleID) error {
		return f.Directory.UnassignRole(f.Context(), c, rolecall.HolderOf(id), role)
	},
	"give it a reach": func(f *nodetest.Fixture, c access.Caller, id rolecall.UserID, role rolecall.RoleID) error {
		return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(id), role, rolecall.AssignmentDraft{Departments: []string{"Sales"}}))
	},
	"give it an end": func(f *nodetest.Fixture, c access.Caller, id rolecall.UserID, role rolecall.RoleID) error {
		end := nodetest.Start.Add(nodetest.Day)
		return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(id), role, rolecall.AssignmentDraft{ExpiresAt: &end}))
	},
	"suspend": func(f *nodetest.Fixture, c access.Caller, id rolecall.UserID, _ rolecall.RoleID) error {
		return nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), c, id, ""))
	},
	"delete": func(f *nodetest.Fixture, c access.Caller, id rolecall.UserID, _ rolecall.RoleID) error {
		return f.Directory.DeleteUser(f.Context(), c, id, nil)
	},
}

func TestTheLastOwnerCannotBeRemoved(t *testing.T) {
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
				role := f.OwnerRole()
				f.Is(act(f, f.Owner, f.Owner.User.ID, role), rolecall.ErrLastOwner)
				pending := f.NewUser("pending")
				f.Assign(pending.ID, role, rolecall.AssignmentDraft{})
				scoped, brief := f.NewMember("scoped"), f.NewMember("brief")
				end := nodetest.Start.Add(nodetest.Day)
				f.Assign(scoped.ID, role, rolecall.AssignmentDraft{Departments: []string{"Sales"}})
				f.Assign(brief.ID, role, rolecall.AssignmentDraft{ExpiresAt: &end})
				f.Is(act(f, f.Owner, f.Owner.User.ID, role), rolecall.ErrLastOwner)
				f.OK(act(f, f.Owner, pending.ID, role))
				second := f.NewMember("second")
				f.Assign(second.ID, role, rolecall.AssignmentDraft{})
				f.OK(act(f, f.Owner, second.ID, role))
				f.Is(act(f, f.Owner, f.Owner.User.ID, role), rolecall.ErrLastOwner)
			})
		})
	}
}

// TestTwoOwnersCannotRemoveEachOther lets two owners act on each other concurrently, 200
// times. For every pair of actions, exactly one succeeds.
func TestTwoOwnersCannotRemoveEachOther(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		role := f.Owner.Assignments[0].Role
		for range 8 {
			for first, one := range acts {
				for second, other := range acts {
					rival := newRival(f, role)
					var failures [2]error
					var running sync.WaitGroup
					running.Go(func() { failures[0] = one(f, f.Owner, rival.User.ID, role.ID) })
					running.Go(func() { failures[1] = other(f, rival, f.Owner.User.ID, role.ID) })
					running.Wait()
					won := 0
					for _, err := range failures {
						switch {
						case err == nil:
							won++
						case !errors.Is(err, rolecall.ErrLastOwner):
							t.Errorf("%s against %s: %v", first, second, err)
						}
					}
					if left := owners(f); won != 1 || left != 1 {
						t.Fatalf("%s against %s: %d succeeded, and %d owners are left", first, second, won, left)
					}
					if failures[1] == nil {
						f.Owner = rival
					}
				}
			}
		}
	})
}

// newRival returns another owner.
func newRival(f *nodetest.Fixture, role rolecall.Role) access.Caller {
	f.Helper()
	user, _ := f.Person("")
	a := rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: nodetest.Start}
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.UpsertAssignment(a)
		return nil
	}))
	return f.CallerAs(user, []rolecall.Assignment{a})
}

// owners counts permanent, unrestricted owners, at most two.
func owners(f *nodetest.Fixture) (n int) {
	f.Helper()
	f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
		n, err = tx.Owners()
		return err
	}))
	return n
}

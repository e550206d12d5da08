package node_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/store"
)

// acts are all actions that can remove an owner.
var acts = map[string]func(*fixture, access.Caller, rolecall.UserID, rolecall.RoleID) error{
	"take the role": func(f *fixture, c access.Caller, id rolecall.UserID, role rolecall.RoleID) error {
		return f.Directory.UnassignRole(f.Context(), c, rolecall.HolderOf(id), role)
	},
	"give it a reach": func(f *fixture, c access.Caller, id rolecall.UserID, role rolecall.RoleID) error {
		return errorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(id), role, rolecall.AssignmentDraft{Departments: []string{"Sales"}}))
	},
	"give it an end": func(f *fixture, c access.Caller, id rolecall.UserID, role rolecall.RoleID) error {
		end := start.Add(aDay)
		return errorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(id), role, rolecall.AssignmentDraft{ExpiresAt: &end}))
	},
	"suspend": func(f *fixture, c access.Caller, id rolecall.UserID, _ rolecall.RoleID) error {
		return errorOf(f.Directory.SuspendUser(f.Context(), c, id, ""))
	},
	"delete": func(f *fixture, c access.Caller, id rolecall.UserID, _ rolecall.RoleID) error {
		return f.Directory.DeleteUser(f.Context(), c, id, nil)
	},
}

func TestTheLastOwnerCannotBeRemoved(t *testing.T) {
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(f *fixture) {
				role := f.ownerRole()
				f.is(act(f, f.owner, f.owner.User.ID, role), rolecall.ErrLastOwner)
				pending := f.user("pending")
				f.assign(pending.ID, role, rolecall.AssignmentDraft{})
				scoped, brief := f.member("scoped"), f.member("brief")
				end := start.Add(aDay)
				f.assign(scoped.ID, role, rolecall.AssignmentDraft{Departments: []string{"Sales"}})
				f.assign(brief.ID, role, rolecall.AssignmentDraft{ExpiresAt: &end})
				f.is(act(f, f.owner, f.owner.User.ID, role), rolecall.ErrLastOwner)
				f.ok(act(f, f.owner, pending.ID, role))
				second := f.member("second")
				f.assign(second.ID, role, rolecall.AssignmentDraft{})
				f.ok(act(f, f.owner, second.ID, role))
				f.is(act(f, f.owner, f.owner.User.ID, role), rolecall.ErrLastOwner)
			})
		})
	}
}

// TestTwoOwnersCannotRemoveEachOther lets two owners act on each other concurrently, 200
// times. For every pair of actions, exactly one succeeds.
func TestTwoOwnersCannotRemoveEachOther(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		role := f.owner.Assignments[0].Role
		for range 8 {
			for first, one := range acts {
				for second, other := range acts {
					rival := f.rival(role)
					var failures [2]error
					var running sync.WaitGroup
					running.Go(func() { failures[0] = one(f, f.owner, rival.User.ID, role.ID) })
					running.Go(func() { failures[1] = other(f, rival, f.owner.User.ID, role.ID) })
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
					if left := f.owners(); won != 1 || left != 1 {
						t.Fatalf("%s against %s: %d succeeded, and %d owners are left", first, second, won, left)
					}
					if failures[1] == nil {
						f.owner = rival
					}
				}
			}
		}
	})
}

// rival returns another owner.
func (f *fixture) rival(role rolecall.Role) access.Caller {
	f.Helper()
	user, _ := f.person("")
	a := rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		tx.UpsertAssignment(a)
		return nil
	}))
	return f.callBy(user, []rolecall.Assignment{a})
}

// owners counts permanent, unrestricted owners, at most two.
func (f *fixture) owners() (n int) {
	f.Helper()
	f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
		n, err = tx.Owners()
		return err
	}))
	return n
}

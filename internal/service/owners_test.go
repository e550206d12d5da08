package service_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

// acts are all that can take an owner away.
var acts = map[string]func(*fixture, service.Call, rolecall.UserID, rolecall.RoleID) error{
	"take the role": func(f *fixture, c service.Call, id rolecall.UserID, role rolecall.RoleID) error {
		return f.service.UnassignRole(f.Context(), c, id, role)
	},
	"give it a reach": func(f *fixture, c service.Call, id rolecall.UserID, role rolecall.RoleID) error {
		return errorOf3(f.service.AssignRole(f.Context(), c, id, role, rolecall.AssignmentDraft{Departments: []string{"Sales"}}))
	},
	"give it an end": func(f *fixture, c service.Call, id rolecall.UserID, role rolecall.RoleID) error {
		end := start.Add(aDay)
		return errorOf3(f.service.AssignRole(f.Context(), c, id, role, rolecall.AssignmentDraft{ExpiresAt: &end}))
	},
	"suspend": func(f *fixture, c service.Call, id rolecall.UserID, _ rolecall.RoleID) error {
		return errorOf(f.service.SuspendUser(f.Context(), c, id, ""))
	},
	"delete": func(f *fixture, c service.Call, id rolecall.UserID, _ rolecall.RoleID) error {
		return f.service.DeleteUser(f.Context(), c, id, nil)
	},
}

func TestTheLastOwnerStays(t *testing.T) {
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

// TestTwoOwnersRemoveEachOther lets two owners act on each other at the same
// moment: one succeeds, by whatever act.
func TestTwoOwnersRemoveEachOther(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role, round := f.ownerRole(), 0
		for first, one := range acts {
			for second, other := range acts {
				round++
				name := fmt.Sprintf("owner-%d", round)
				f.member(name)
				f.assign(f.signIn(name).Principal.User.ID, role, rolecall.AssignmentDraft{})
				rival := f.call(f.signIn(name))
				var failures [2]error
				var running sync.WaitGroup
				running.Go(func() { failures[0] = one(f, f.owner, rival.User.ID, role) })
				running.Go(func() { failures[1] = other(f, rival, f.owner.User.ID, role) })
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
				if won != 1 {
					t.Fatalf("%s against %s: %d succeeded", first, second, won)
				}
				if failures[1] == nil {
					f.owner = rival
				}
			}
		}
	})
}

package directory_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// TestARoleIsNotDeletedDuringItsAssignment deletes a role without force while it is
// assigned to a user. One of the two requests is rejected, so that no acknowledged
// assignment is lost.
func TestARoleIsNotDeletedDuringItsAssignment(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, peer := f.NewUser("ada"), f.NewNode()
		for range 60 {
			role := f.InsertRole(nodetest.Approver)
			var deleted, assigned error
			var running sync.WaitGroup
			running.Go(func() { deleted = f.Directory.DeleteRole(f.Context(), f.Owner, role.ID, false, nil) })
			running.Go(func() {
				assigned = nodetest.ErrorOf3(peer.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(ada.ID), role.ID, rolecall.AssignmentDraft{}))
			})
			running.Wait()
			first := deleted == nil && errors.Is(assigned, rolecall.ErrNotFound)
			second := assigned == nil && errors.Is(deleted, rolecall.ErrRoleInUse)
			if !first && !second {
				t.Errorf("deleted: %v; assigned: %v", deleted, assigned)
			}
		}
	})
}

// newHolders creates users with the role. The first assignment has expired.
func newHolders(f *nodetest.Fixture, role rolecall.Role, n int) (ids []rolecall.UserID) {
	f.Helper()
	var users []rolecall.User
	var assignments []rolecall.Assignment
	for i := range n {
		draft := rolecall.UserDraft{Email: fmt.Sprintf("holder-%d@example.com", nodetest.Serial.Add(1)), Name: "A Holder"}
		user, expires := draft.User(nodetest.Start), rolecall.Never
		if i == 0 {
			expires = nodetest.Start
		}
		users, ids = append(users, user), append(ids, user.ID)
		assignments = append(assignments, rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: rolecall.Within("Sales"), ExpiresAt: expires, GrantedAt: nodetest.Start})
	}
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertUsers(users)
		tx.InsertAssignments(assignments)
		return nil
	}))
	return ids
}

// Owners alone may change the rule for second factors, and more people may delete roles.
func TestARoleThatDemandsASecondFactorIsNotDeleted(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.InsertRole(nodetest.Holding("shop/a:b"))
		remove := func(force bool) error {
			return f.Directory.DeleteRole(f.Context(), f.Owner, role.ID, force, nil)
		}
		f.SetSettings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: []rolecall.RoleID{role.ID}}})
		f.Is(remove(false), rolecall.ErrRoleDemandsFactor)
		f.Is(remove(true), rolecall.ErrRoleDemandsFactor)
		f.SetSettings(rolecall.TenantSettings{})
		f.OK(remove(false))
	})
}

// TestARoleIsNotDeletedWhileTheRuleNamesIt changes the rule for second factors to a role while the role is deleted.
func TestARoleIsNotDeletedWhileTheRuleNamesIt(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		peer := f.NewNode()
		for range 30 {
			role := f.InsertRole(nodetest.Approver)
			patch := rolecall.TenantPatch{Settings: rolecall.SettingsPatch{SecondFactor: rolecall.SecondFactorPatch{
				Required: rolecall.Some(string(rolecall.SecondFactorOfRoles)), Roles: rolecall.Some([]string{role.ID.String()}),
			}}}
			var deleted, named error
			var running sync.WaitGroup
			running.Go(func() { deleted = f.Directory.DeleteRole(f.Context(), f.Owner, role.ID, false, nil) })
			running.Go(func() { _, named = peer.Directory.UpdateTenant(f.Context(), f.Owner, patch, nil) })
			running.Wait()
			if (deleted == nil) == (named == nil) {
				t.Errorf("deleted: %v; named: %v", deleted, named)
			}
		}
	})
}

func TestEveryHolderOfADeletedRoleGetsAnEvent(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		role := f.InsertRole(nodetest.Holding("shop/a:b"))
		holders := newHolders(f, role, 1300)
		f.Is(f.Directory.DeleteRole(f.Context(), f.Owner, role.ID, false, nil), rolecall.ErrRoleInUse)
		removals := func(do func()) (n int) {
			for _, asked := range f.DB.During(do) {
				if asked == "removal of holders" {
					n++
				}
			}
			return n
		}
		if n := removals(func() { f.OK(f.Directory.DeleteRole(f.Context(), f.Owner, role.ID, true, nil)) }); n != 1 {
			t.Errorf("the deletion removed %d batches of holders", n)
		}
		if n := removals(func() { finishDeletions(f) }); n != 2 {
			t.Errorf("the rest took %d batches of holders", n)
		}
		for i, id := range holders {
			if got := f.EventTypes(id); len(assignmentsOf(f, id)) != 0 || i > 0 && !slices.Equal(got, []rolecall.EventType{rolecall.EventRoleUnassigned}) || i == 0 && len(got) != 0 {
				t.Fatalf("holder %d: the events are %v", i, got)
			}
		}
		event := f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(holders[1])})[0]
		if before, after := f.Shown(event); before != "departments roleId" || after != "" || event.Reason != "role deleted" || event.Actor.ID != f.Owner.User.ID || !slices.Equal(event.Members, []string{"roles"}) {
			t.Errorf("the event is %+v, %q, %q", event, before, after)
		}
		deleted := f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(role.ID)})
		if len(deleted) != 1 || deleted[0].Type != rolecall.EventRoleDeleted {
			t.Errorf("the events of the role are %+v", deleted)
		}
	})
}

// finishDeletions runs the background work until the tenant has no hidden role.
func finishDeletions(f *nodetest.Fixture) {
	f.Helper()
	ctx, stop := context.WithCancel(f.Context())
	done := make(chan error)
	go func() { done <- f.Node.Run(ctx) }()
	f.Eventually(func() bool {
		// On the database itself, because f.db would record it.
		err := store.New(f.DB.Database, nil).View(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			_, _, err := tx.HiddenRole()
			return err
		})
		if err != nil {
			f.Is(err, rolecall.ErrNotFound)
		}
		return err != nil
	})
	stop()
	f.OK(<-done)
}

func TestADeletedRoleWithManyHoldersHasNoEffectAtOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.InsertRole(nodetest.Holding("shop/a:b"))
		holders := newHolders(f, role, 1300)
		last := holders[1299] // the first batch does not include it
		account := f.NewAccount("Import", role.ID)
		token := f.NewAccountToken(account.ID, "shop/a:b")
		f.OK(nodetest.ErrorOf(f.AuthenticateToken(f.Node, token)))
		f.OK(f.Directory.DeleteRole(f.Context(), f.Owner, role.ID, true, nil))
		f.Is(nodetest.ErrorOf(f.Directory.Role(f.Context(), f.Owner, role.ID)), rolecall.ErrNotFound)
		f.Is(f.Directory.DeleteRole(f.Context(), f.Owner, role.ID, true, nil), rolecall.ErrNotFound)
		if p, err := f.AuthenticateToken(f.Node, token); err != nil || len(p.Assignments) != 0 {
			t.Errorf("the account still holds %v, %v", p.Assignments, err)
		}
		if held := assignmentsOf(f, last); len(held) != 0 {
			t.Errorf("a user still holds %v", held)
		}
		f.Is(nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(last), role.ID, rolecall.AssignmentDraft{})), rolecall.ErrNotFound)
		again := f.NewRole(role.Name)
		finishDeletions(f)
		f.OK(nodetest.ErrorOf(f.Directory.Role(f.Context(), f.Owner, again.ID)))
		if got := f.EventTypes(last); !slices.Equal(got, []rolecall.EventType{rolecall.EventRoleUnassigned}) {
			t.Errorf("the events are %v", got)
		}
	})
}

func TestARestoredUserDoesNotHoldADeletedRole(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.InsertRole(nodetest.Holding("shop/a:b"))
		holders := newHolders(f, role, 1300)
		before, after := holders[1298], holders[1299]
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, before, nil))
		f.OK(f.Directory.DeleteRole(f.Context(), f.Owner, role.ID, true, nil))
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, after, nil))
		for id, missing := range map[rolecall.UserID][]rolecall.RoleID{before: {role.ID}, after: nil} {
			restored, err := f.Directory.RestoreUser(f.Context(), f.Owner, id)
			f.OK(err)
			if held := assignmentsOf(f, id); len(held) != 0 || !slices.Equal(restored.RolesNotRestored, missing) {
				t.Errorf("the user holds %v, without %v", held, restored.RolesNotRestored)
			}
		}
		f.OK(f.Node.Purge(f.Context()))
	})
}

func TestAnInterruptedRoleDeletionIsFinishedByThePurge(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.InsertRole(nodetest.Holding("shop/a:b"))
		holders := newHolders(f, role, 1300)
		told := func() (n int) {
			for _, id := range holders {
				n += len(f.EventTypes(id))
			}
			return n
		}
		peer := node.New(&dying{f.DB, 2}, access.Options{Clock: f.Clock.Now, Keys: f.Keys, Logger: slog.New(slog.DiscardHandler)})
		f.OK(peer.Directory.DeleteRole(f.Context(), f.Owner, role.ID, true, nil))
		if n := told(); n != 499 {
			t.Errorf("after the answer %d have an event", n)
		}
		f.Is(peer.Purge(f.Context()), nodetest.ErrBroken)
		f.OK(f.Node.Purge(f.Context()))
		if n := told(); n != 1299 {
			t.Errorf("after all %d have an event", n)
		}
		deletion := f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(role.ID)})[0]
		event := f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(holders[1299])})[0]
		if event.Actor != deletion.Actor || event.RequestID != deletion.RequestID || event.SessionID != deletion.SessionID || event.Source != deletion.Source {
			t.Errorf("the event is %+v after %+v", event, deletion)
		}
		if asked := f.DB.During(func() { f.OK(f.Node.Purge(f.Context())) }); len(asked) > 10 {
			t.Errorf("with nothing to do the store was asked %q", asked)
		}
	})
}

func TestEveryServiceAccountWithADeletedRoleGetsAnEvent(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.InsertRole(nodetest.Holding("shop/a:b"))
		live, over := f.NewAccount("Import", role.ID), f.NewAccount("Export", role.ID)
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(over.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: nodetest.Start, GrantedAt: nodetest.Start})
			return nil
		}))
		token := f.NewAccountToken(live.ID, "shop/a:b")
		f.OK(nodetest.ErrorOf(f.AuthenticateToken(f.Node, token)))
		f.OK(f.Directory.DeleteRole(f.Context(), f.Owner, role.ID, true, nil))
		if p, err := f.AuthenticateToken(f.Node, token); err != nil || len(p.Assignments) != 0 {
			t.Errorf("the account still holds %v, %v", p.Assignments, err)
		}
		lost := func(id rolecall.ServiceAccountID) []rolecall.Event {
			return f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(id), Type: string(rolecall.EventRoleUnassigned)})
		}
		if events := lost(live.ID); len(events) != 1 || events[0].Subject.Type != rolecall.SubjectServiceAccount || events[0].Reason != "role deleted" {
			t.Errorf("the events are %+v", events)
		}
		if events := lost(over.ID); len(events) != 0 {
			t.Errorf("of an assignment that was over tell %+v", events)
		}
	})
}

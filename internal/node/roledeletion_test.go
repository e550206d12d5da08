package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/store"
)

// holders creates users with the role. The first assignment has expired.
func (f *fixture) holders(role rolecall.Role, n int) (ids []rolecall.UserID) {
	f.Helper()
	var users []rolecall.User
	var assignments []rolecall.Assignment
	for i := range n {
		draft := rolecall.UserDraft{Email: fmt.Sprintf("holder-%d@example.com", serial.Add(1)), Name: "A Holder"}
		user, expires := draft.User(start), rolecall.Never
		if i == 0 {
			expires = start
		}
		users, ids = append(users, user), append(ids, user.ID)
		assignments = append(assignments, rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: rolecall.Within("Sales"), ExpiresAt: expires, GrantedAt: start})
	}
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		tx.InsertUsers(users)
		tx.InsertAssignments(assignments)
		return nil
	}))
	return ids
}

// Owners alone may change the rule for second factors, and more people may delete roles.
func TestARoleThatDemandsASecondFactorIsNotDeleted(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.insertRole(holding("shop/a:b"))
		remove := func(force bool) error {
			return f.Directory.DeleteRole(f.Context(), f.owner, role.ID, force, nil)
		}
		f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: []rolecall.RoleID{role.ID}}})
		f.is(remove(false), rolecall.ErrRoleDemandsFactor)
		f.is(remove(true), rolecall.ErrRoleDemandsFactor)
		f.settings(rolecall.TenantSettings{})
		f.ok(remove(false))
	})
}

// TestARoleIsNotDeletedWhileTheRuleNamesIt changes the rule for second factors to a role while the role is deleted.
func TestARoleIsNotDeletedWhileTheRuleNamesIt(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		peer := f.node()
		for range 30 {
			role := f.insertRole(approver)
			patch := rolecall.TenantPatch{Settings: rolecall.SettingsPatch{SecondFactor: rolecall.SecondFactorPatch{
				Required: rolecall.Some(string(rolecall.SecondFactorOfRoles)), Roles: rolecall.Some([]string{role.ID.String()}),
			}}}
			var deleted, named error
			var running sync.WaitGroup
			running.Go(func() { deleted = f.Directory.DeleteRole(f.Context(), f.owner, role.ID, false, nil) })
			running.Go(func() { _, named = peer.Directory.UpdateTenant(f.Context(), f.owner, patch, nil) })
			running.Wait()
			if (deleted == nil) == (named == nil) {
				t.Errorf("deleted: %v; named: %v", deleted, named)
			}
		}
	})
}

func TestEveryHolderOfADeletedRoleGetsAnEvent(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		role := f.insertRole(holding("shop/a:b"))
		holders := f.holders(role, 1300)
		f.is(f.Directory.DeleteRole(f.Context(), f.owner, role.ID, false, nil), rolecall.ErrRoleInUse)
		removals := func(do func()) (n int) {
			for _, asked := range f.db.during(do) {
				if asked == "removal of holders" {
					n++
				}
			}
			return n
		}
		if n := removals(func() { f.ok(f.Directory.DeleteRole(f.Context(), f.owner, role.ID, true, nil)) }); n != 1 {
			t.Errorf("the deletion removed %d batches of holders", n)
		}
		if n := removals(func() { f.finishDeletions() }); n != 2 {
			t.Errorf("the rest took %d batches of holders", n)
		}
		for i, id := range holders {
			if got := f.eventTypes(id); len(f.assignments(id)) != 0 || i > 0 && !slices.Equal(got, []rolecall.EventType{rolecall.EventRoleUnassigned}) || i == 0 && len(got) != 0 {
				t.Fatalf("holder %d: the events are %v", i, got)
			}
		}
		event := f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(holders[1])})[0]
		if before, after := f.shown(event); before != "departments roleId" || after != "" || event.Reason != "role deleted" || event.Actor.ID != f.owner.User.ID || !slices.Equal(event.Members, []string{"roles"}) {
			t.Errorf("the event is %+v, %q, %q", event, before, after)
		}
		deleted := f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(role.ID)})
		if len(deleted) != 1 || deleted[0].Type != rolecall.EventRoleDeleted {
			t.Errorf("the events of the role are %+v", deleted)
		}
	})
}

// finishDeletions runs the background work until the tenant has no hidden role.
func (f *fixture) finishDeletions() {
	f.Helper()
	ctx, stop := context.WithCancel(f.Context())
	done := make(chan error)
	go func() { done <- f.Node.Run(ctx) }()
	f.eventually(func() bool {
		// On the database itself, because f.db would record it.
		err := store.New(f.db.Database, nil).View(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			_, _, err := tx.HiddenRole()
			return err
		})
		if err != nil {
			f.is(err, rolecall.ErrNotFound)
		}
		return err != nil
	})
	stop()
	f.ok(<-done)
}

func TestADeletedRoleWithManyHoldersHasNoEffectAtOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.insertRole(holding("shop/a:b"))
		holders := f.holders(role, 1300)
		last := holders[1299] // the first batch does not include it
		account := f.account("Import", role.ID)
		token := f.accountToken(account.ID, "shop/a:b")
		f.ok(errorOf(f.bears(f.Node, token)))
		f.ok(f.Directory.DeleteRole(f.Context(), f.owner, role.ID, true, nil))
		f.is(errorOf(f.Directory.Role(f.Context(), f.owner, role.ID)), rolecall.ErrNotFound)
		f.is(f.Directory.DeleteRole(f.Context(), f.owner, role.ID, true, nil), rolecall.ErrNotFound)
		if p, err := f.bears(f.Node, token); err != nil || len(p.Assignments) != 0 {
			t.Errorf("the account still holds %v, %v", p.Assignments, err)
		}
		if held := f.assignments(last); len(held) != 0 {
			t.Errorf("a user still holds %v", held)
		}
		f.is(errorOf3(f.Directory.AssignRole(f.Context(), f.owner, rolecall.HolderOf(last), role.ID, rolecall.AssignmentDraft{})), rolecall.ErrNotFound)
		again := f.role(role.Name)
		f.finishDeletions()
		f.ok(errorOf(f.Directory.Role(f.Context(), f.owner, again.ID)))
		if got := f.eventTypes(last); !slices.Equal(got, []rolecall.EventType{rolecall.EventRoleUnassigned}) {
			t.Errorf("the events are %v", got)
		}
	})
}

func TestARestoredUserDoesNotHoldADeletedRole(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.insertRole(holding("shop/a:b"))
		holders := f.holders(role, 1300)
		before, after := holders[1298], holders[1299]
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, before, nil))
		f.ok(f.Directory.DeleteRole(f.Context(), f.owner, role.ID, true, nil))
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, after, nil))
		for id, missing := range map[rolecall.UserID][]rolecall.RoleID{before: {role.ID}, after: nil} {
			restored, err := f.Directory.RestoreUser(f.Context(), f.owner, id)
			f.ok(err)
			if held := f.assignments(id); len(held) != 0 || !slices.Equal(restored.RolesNotRestored, missing) {
				t.Errorf("the user holds %v, without %v", held, restored.RolesNotRestored)
			}
		}
		f.ok(f.Node.Purge(f.Context()))
	})
}

func TestAnInterruptedRoleDeletionIsFinishedByThePurge(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.insertRole(holding("shop/a:b"))
		holders := f.holders(role, 1300)
		told := func() (n int) {
			for _, id := range holders {
				n += len(f.eventTypes(id))
			}
			return n
		}
		peer := node.New(&dying{f.db, 2}, access.Options{Clock: f.clock.Now, Keys: f.keys, Logger: slog.New(slog.DiscardHandler)})
		f.ok(peer.Directory.DeleteRole(f.Context(), f.owner, role.ID, true, nil))
		if n := told(); n != 499 {
			t.Errorf("after the answer %d have an event", n)
		}
		f.is(peer.Purge(f.Context()), errBroken)
		f.ok(f.Node.Purge(f.Context()))
		if n := told(); n != 1299 {
			t.Errorf("after all %d have an event", n)
		}
		deletion := f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(role.ID)})[0]
		event := f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(holders[1299])})[0]
		if event.Actor != deletion.Actor || event.RequestID != deletion.RequestID || event.SessionID != deletion.SessionID || event.Source != deletion.Source {
			t.Errorf("the event is %+v after %+v", event, deletion)
		}
		if asked := f.db.during(func() { f.ok(f.Node.Purge(f.Context())) }); len(asked) > 10 {
			t.Errorf("with nothing to do the store was asked %q", asked)
		}
	})
}

func TestEveryServiceAccountWithADeletedRoleGetsAnEvent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.insertRole(holding("shop/a:b"))
		live, over := f.account("Import", role.ID), f.account("Export", role.ID)
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(over.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: start, GrantedAt: start})
			return nil
		}))
		token := f.accountToken(live.ID, "shop/a:b")
		f.ok(errorOf(f.bears(f.Node, token)))
		f.ok(f.Directory.DeleteRole(f.Context(), f.owner, role.ID, true, nil))
		if p, err := f.bears(f.Node, token); err != nil || len(p.Assignments) != 0 {
			t.Errorf("the account still holds %v, %v", p.Assignments, err)
		}
		lost := func(id rolecall.ServiceAccountID) []rolecall.Event {
			return f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(id), Type: string(rolecall.EventRoleUnassigned)})
		}
		if events := lost(live.ID); len(events) != 1 || events[0].Subject.Type != rolecall.SubjectServiceAccount || events[0].Reason != "role deleted" {
			t.Errorf("the events are %+v", events)
		}
		if events := lost(over.ID); len(events) != 0 {
			t.Errorf("of an assignment that was over tell %+v", events)
		}
	})
}

package node_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/store"
)

// holders makes people who hold the role, the first until a moment that is over.
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

func TestEverybodyFromWhomADeletedRoleIsTakenHasAnEvent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.insertRole(holding("shop/a:b"))
		holders := f.holders(role, 1300)
		f.is(f.Directory.DeleteRole(f.Context(), f.owner, role.ID, false, nil), rolecall.ErrRoleInUse)
		updates := 0
		for _, asked := range f.db.during(func() { f.ok(f.Directory.DeleteRole(f.Context(), f.owner, role.ID, true, nil)) }) {
			if asked == "update" {
				updates++
			}
		}
		if updates != 3 {
			t.Errorf("it took %d steps", updates)
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

func TestADeletionOfARoleThatWasCutShortCanBeRepeated(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.insertRole(holding("shop/a:b"))
		holders := f.holders(role, 1300)
		peer := node.New(&dying{f.db, 1}, access.Options{Clock: f.clock.Now, Keys: f.keys, Logger: slog.New(slog.DiscardHandler)})
		f.is(peer.Directory.DeleteRole(f.Context(), f.owner, role.ID, true, nil), errBroken)
		if got, err := f.Directory.Role(f.Context(), f.owner, role.ID); err != nil || got.Version != role.Version {
			t.Errorf("the role is %+v, %v", got, err)
		}
		told := func() (n int) {
			for _, id := range holders {
				n += len(f.eventTypes(id))
			}
			return n
		}
		if n := told(); n != 499 {
			t.Errorf("after the first step %d have lost the role", n)
		}
		f.ok(f.Directory.DeleteRole(f.Context(), f.owner, role.ID, true, nil))
		if n := told(); n != 1299 {
			t.Errorf("after all %d have an event", n)
		}
	})
}

func TestAServiceAccountFromWhichADeletedRoleIsTakenHasAnEvent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.insertRole(holding("shop/a:b"))
		live, over := f.account("Import", role.ID), f.account("Export", role.ID)
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.PutAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(over.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: start, GrantedAt: start})
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

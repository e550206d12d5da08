package node_test

import (
	"reflect"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
)

func TestNamesAreReturnedToCallersWhoMayReadThem(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		sales, _ := f.person("Sales")
		ops, _ := f.person("Ops")
		gone, _ := f.person("Sales")
		f.remove(gone.ID)
		role := f.role("Support", "shop/a:b")
		account := f.account("Import", role.ID)
		lostRole := f.role("Night shift", "shop/a:b")
		lostAccount := f.account("Export", role.ID)
		f.ok(f.Directory.DeleteRole(f.Context(), f.owner, lostRole.ID, false, nil))
		f.ok(f.Directory.DeleteServiceAccount(f.Context(), f.owner, lostAccount.ID, nil))
		erased, _ := f.person("Sales")
		f.ok(f.Directory.EraseUser(f.Context(), f.owner, erased.ID, ""))
		ids := []rolecall.AnyID{
			rolecall.AnyID(sales.ID), rolecall.AnyID(ops.ID), rolecall.AnyID(gone.ID), rolecall.AnyID(role.ID), rolecall.AnyID(account.ID),
			rolecall.AnyID(lostRole.ID), rolecall.AnyID(lostAccount.ID), rolecall.AnyID(erased.ID), rolecall.NewID[any](start),
		}
		person, nameless := directory.Named{Name: "A Person"}, directory.Named{}
		deleted := directory.Named{Name: "A Person", Deleted: true}
		for _, c := range []struct {
			what  string
			holds []held
			want  []directory.Named // nil if the caller may not know of them
			known []int             // indexes of the ids that the caller may know of
		}{
			{"nothing", nil, nil, nil},
			{"events", hold(holding("events:read")), nil, nil},
			{"names", hold(holding("users.name:read")), []directory.Named{person, person}, []int{0, 1}},
			{"names in Sales", hold(holding("users.name:read").within("Sales")), []directory.Named{person}, []int{0}},
			{"addresses", hold(holding("users.email:read")), []directory.Named{nameless, nameless}, []int{0, 1}},
			{"addresses, and names in Sales", hold(holding("users.email:read"), holding("users.name:read").within("Sales")), []directory.Named{person, nameless}, []int{0, 1}},
			{"the deleted", hold(holding("users:restore")), []directory.Named{{Deleted: true}}, []int{2}},
			{"the deleted and names", hold(holding("users:restore", "users.name:read").within("Sales")), []directory.Named{person, deleted}, []int{0, 2}},
			{"the deleted elsewhere", hold(holding("users:restore").within("Ops"), holding("users.name:read")), []directory.Named{person, person}, []int{0, 1}},
			{"roles in Ops", hold(holding("roles:read").within("Ops")), []directory.Named{{Name: "Support"}}, []int{3}},
			{"roles and events", hold(holding("roles:read", "events:read")), []directory.Named{{Name: "Support"}, {Name: "Night shift", Deleted: true}}, []int{3, 5}},
			{"programs and events", hold(holding("service-accounts:read", "events:read")), []directory.Named{{Name: "Import", Program: true}, {Name: "Export", Program: true, Deleted: true}}, []int{4, 6}},
			{"programs", hold(holding("service-accounts:read")), []directory.Named{{Name: "Import", Program: true}}, []int{4}},
		} {
			want := map[rolecall.AnyID]directory.Named{}
			for i, at := range c.known {
				want[ids[at]] = c.want[i]
			}
			got, err := f.Directory.Names(f.Context(), f.caller(c.holds...), ids)
			f.ok(err)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("who reads %s: %v, want %v", c.what, got, want)
			}
		}
		self, assignments := f.person("Sales")
		got, err := f.Directory.Names(f.Context(), f.callBy(self, assignments), []rolecall.AnyID{rolecall.AnyID(self.ID)})
		f.ok(err)
		if got[rolecall.AnyID(self.ID)] != person {
			t.Errorf("oneself: %v", got)
		}
		f.clock.advance(30 * aDay)
		got, err = f.Directory.Names(f.Context(), f.owner, ids)
		f.ok(err)
		if _, known := got[rolecall.AnyID(gone.ID)]; known || len(got) != 6 {
			t.Errorf("after 30 days: %v", got)
		}
	})
}

func TestDeletedUsersAreVisibleToCallersWhoMayRestoreThem(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, assignments := f.person("Sales", holding("shop/a:b"))
		restores := f.caller(holding("users:restore").within("Sales"))
		read := func(c access.Caller) error { return errorOf(f.Directory.DeletedUser(f.Context(), c, user.ID)) }
		f.is(read(restores), rolecall.ErrNotFound)
		f.remove(user.ID)
		f.is(read(f.caller(holding("users:restore").within("Ops"))), rolecall.ErrNotFound)
		f.is(read(f.caller(holding("users:read", "users:delete", "users:erase"))), rolecall.ErrPermissionDenied)
		tombstone, err := f.Directory.DeletedUser(f.Context(), restores, user.ID)
		f.ok(err)
		if tombstone.User.Email != user.Email || tombstone.User.Status != rolecall.UserActive || tombstone.DeletedAt != start || tombstone.Assignments[0].Role.ID != assignments[0].Role.ID {
			t.Errorf("%+v", tombstone)
		}
		f.clock.advance(30 * aDay)
		f.is(read(restores), rolecall.ErrNotFound)
	})
}

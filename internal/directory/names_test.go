package directory_test

import (
	"reflect"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
)

func TestNamesAreReturnedToCallersWhoMayReadThem(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		sales, _ := f.Person("Sales")
		ops, _ := f.Person("Ops")
		gone, _ := f.Person("Sales")
		f.DeleteUser(gone.ID)
		role := f.NewRole("Support", "shop/a:b")
		account := f.NewAccount("Import", role.ID)
		lostRole := f.NewRole("Night shift", "shop/a:b")
		lostAccount := f.NewAccount("Export", role.ID)
		f.OK(f.Directory.DeleteRole(f.Context(), f.Owner, lostRole.ID, false, nil))
		f.OK(f.Directory.DeleteServiceAccount(f.Context(), f.Owner, lostAccount.ID, nil))
		erased, _ := f.Person("Sales")
		f.OK(f.Directory.EraseUser(f.Context(), f.Owner, erased.ID, ""))
		ids := []rolecall.AnyID{
			rolecall.AnyID(sales.ID), rolecall.AnyID(ops.ID), rolecall.AnyID(gone.ID), rolecall.AnyID(role.ID), rolecall.AnyID(account.ID),
			rolecall.AnyID(lostRole.ID), rolecall.AnyID(lostAccount.ID), rolecall.AnyID(erased.ID), rolecall.NewID[any](nodetest.Start),
		}
		person, nameless := directory.Named{Name: "A Person"}, directory.Named{}
		deleted := directory.Named{Name: "A Person", Deleted: true}
		for _, c := range []struct {
			what  string
			holds []nodetest.Held
			want  []directory.Named // nil if the caller may not know of them
			known []int             // indexes of the ids that the caller may know of
		}{
			{"nothing", nil, nil, nil},
			{"events", nodetest.Roles(nodetest.Holding("events:read")), nil, nil},
			{"names", nodetest.Roles(nodetest.Holding("users.name:read")), []directory.Named{person, person}, []int{0, 1}},
			{"names in Sales", nodetest.Roles(nodetest.Holding("users.name:read").Within("Sales")), []directory.Named{person}, []int{0}},
			{"addresses", nodetest.Roles(nodetest.Holding("users.email:read")), []directory.Named{nameless, nameless}, []int{0, 1}},
			{"addresses, and names in Sales", nodetest.Roles(nodetest.Holding("users.email:read"), nodetest.Holding("users.name:read").Within("Sales")), []directory.Named{person, nameless}, []int{0, 1}},
			{"the deleted", nodetest.Roles(nodetest.Holding("users:restore")), []directory.Named{{Deleted: true}}, []int{2}},
			{"the deleted and names", nodetest.Roles(nodetest.Holding("users:restore", "users.name:read").Within("Sales")), []directory.Named{person, deleted}, []int{0, 2}},
			{"the deleted elsewhere", nodetest.Roles(nodetest.Holding("users:restore").Within("Ops"), nodetest.Holding("users.name:read")), []directory.Named{person, person}, []int{0, 1}},
			{"roles in Ops", nodetest.Roles(nodetest.Holding("roles:read").Within("Ops")), []directory.Named{{Name: "Support"}}, []int{3}},
			{"roles and events", nodetest.Roles(nodetest.Holding("roles:read", "events:read")), []directory.Named{{Name: "Support"}, {Name: "Night shift", Deleted: true}}, []int{3, 5}},
			{"programs and events", nodetest.Roles(nodetest.Holding("service-accounts:read", "events:read")), []directory.Named{{Name: "Import", Program: true}, {Name: "Export", Program: true, Deleted: true}}, []int{4, 6}},
			{"programs", nodetest.Roles(nodetest.Holding("service-accounts:read")), []directory.Named{{Name: "Import", Program: true}}, []int{4}},
		} {
			want := map[rolecall.AnyID]directory.Named{}
			for i, at := range c.known {
				want[ids[at]] = c.want[i]
			}
			got, err := f.Directory.Names(f.Context(), f.CallerWith(c.holds...), ids)
			f.OK(err)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("who reads %s: %v, want %v", c.what, got, want)
			}
		}
		self, assignments := f.Person("Sales")
		got, err := f.Directory.Names(f.Context(), f.CallerAs(self, assignments), []rolecall.AnyID{rolecall.AnyID(self.ID)})
		f.OK(err)
		if got[rolecall.AnyID(self.ID)] != person {
			t.Errorf("oneself: %v", got)
		}
		f.Clock.Advance(30 * nodetest.Day)
		got, err = f.Directory.Names(f.Context(), f.Owner, ids)
		f.OK(err)
		if _, known := got[rolecall.AnyID(gone.ID)]; known || len(got) != 6 {
			t.Errorf("after 30 days: %v", got)
		}
	})
}

func TestDeletedUsersAreVisibleToCallersWhoMayRestoreThem(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, assignments := f.Person("Sales", nodetest.Holding("shop/a:b"))
		restores := f.CallerWith(nodetest.Holding("users:restore").Within("Sales"))
		read := func(c access.Caller) error { return nodetest.ErrorOf(f.Directory.DeletedUser(f.Context(), c, user.ID)) }
		f.Is(read(restores), rolecall.ErrNotFound)
		f.DeleteUser(user.ID)
		f.Is(read(f.CallerWith(nodetest.Holding("users:restore").Within("Ops"))), rolecall.ErrNotFound)
		f.Is(read(f.CallerWith(nodetest.Holding("users:read", "users:delete", "users:erase"))), rolecall.ErrPermissionDenied)
		tombstone, err := f.Directory.DeletedUser(f.Context(), restores, user.ID)
		f.OK(err)
		if tombstone.User.Email != user.Email || tombstone.User.Status != rolecall.UserActive || tombstone.DeletedAt != nodetest.Start || tombstone.Assignments[0].Role.ID != assignments[0].Role.ID {
			t.Errorf("%+v", tombstone)
		}
		f.Clock.Advance(30 * nodetest.Day)
		f.Is(read(restores), rolecall.ErrNotFound)
	})
}

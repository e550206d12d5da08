package storetest

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var serviceAccountCases = []testCase{
	{"A service account reads back in every member", func(f *fixture) {
		want := aServiceAccount("Nächtlicher Import")
		want.Description, want.Status, want.UpdatedAt, want.Version = "Brings \"people\", 100 %", rolecall.ServiceAccountSuspended, start+1, 3
		f.write(func(tx *store.Tx) { tx.InsertServiceAccount(want) })
		same(f, f.serviceAccount(want.ID), want)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.ServiceAccount, error) {
			return tx.ServiceAccountByID(aServiceAccount("None").ID)
		})
		f.is(err, rolecall.ErrNotFound)
	}},
	{"A read of many service accounts returns the existing ones", func(f *fixture) {
		a := f.newServiceAccount("Import")
		f.newServiceAccount("Export")
		asked := []rolecall.ServiceAccountID{aServiceAccount("None").ID, a.ID}
		same(f, read(f, func(tx *store.Tx) ([]rolecall.ServiceAccount, error) { return tx.ServiceAccountsByID(asked) }), []rolecall.ServiceAccount{a})
	}},
	{"The folded name of a service account is unique per tenant", func(f *fixture) {
		insert := func(f *fixture, name string) error {
			return f.tryWrite(func(tx *store.Tx) { tx.InsertServiceAccount(aServiceAccount(name)) })
		}
		f.is(insert(f, "Käufer"), nil)
		f.is(insert(f, "KAUFER"), rolecall.ErrAccountNameTaken)
		f.is(insert(f, "Kauferin"), nil)
		f.is(insert(f.in(f.newTenant("other")), "Käufer"), nil)
	}},
	{"A change replaces name, description and status, unless it is stale", func(f *fixture) {
		old, taken := f.newServiceAccount("Import"), f.newServiceAccount("Export")
		changed := old
		changed.Name, changed.Description, changed.Status = "Nightly import", "", rolecall.ServiceAccountSuspended
		changed.UpdatedAt, changed.Version = start+1, old.Version+1
		alter := func(old, changed rolecall.ServiceAccount) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateServiceAccount(old, changed) })
		}
		same(f, alter(old, changed), true)
		same(f, f.serviceAccount(old.ID), changed)
		same(f, alter(old, old), false)
		same(f, f.serviceAccount(old.ID), changed)
		same(f, f.serviceAccountNames(rolecall.ServiceAccountQuery{Words: []string{"night", "imp"}}), []string{"Nightly import"})
		late := changed
		late.Name, late.Version = taken.Name, changed.Version+1
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			_, err := tx.UpdateServiceAccount(changed, late)
			return err
		}), rolecall.ErrAccountNameTaken)
	}},
	{"Deleting a service account deletes its assignments and tokens", func(f *fixture) {
		a, stays, role := f.newServiceAccount("Import"), f.newServiceAccount("Export"), f.newRole("Support")
		kept := f.assignToAccount(stays, role)
		f.assignToAccount(a, role)
		gone, live := f.newAPIToken(tokenOfAccount(a)), f.newAPIToken(tokenOfAccount(stays))
		remove := func(a rolecall.ServiceAccount) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteServiceAccount(a) })
		}
		stale := a
		stale.Version++
		same(f, remove(stale), false)
		same(f, remove(a), true)
		same(f, remove(a), false)
		f.is(f.tryAPIToken(gone), rolecall.ErrNotFound)
		same(f, len(f.serviceAccountRoles(a.ID)), 0)
		f.is(f.tryAPIToken(live), nil)
		same(f, f.serviceAccountRoles(stays.ID), []rolecall.Assignment{kept})
	}},
	{"Pages of service accounts are complete and in order", func(f *fixture) {
		for i := range 12 {
			f.newServiceAccount(fmt.Sprintf("Tâche %c", 'A'+(i*7)%12))
		}
		pagesInOrder(f, 12, func(byName, desc bool, limit int) []rolecall.ServiceAccount {
			return f.serviceAccounts(rolecall.ServiceAccountQuery{ByName: byName, Desc: desc, Limit: limit})
		}, func(a *rolecall.ServiceAccount) ([16]byte, string) { return a.ID, a.NameKey() })
		page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.ServiceAccount], error) {
			return tx.ServiceAccounts(rolecall.ServiceAccountQuery{Words: []string{"tache"}, Limit: 1, Count: true})
		})
		same(f, page.Total, &rolecall.Total{Count: 12, Exact: true})
	}},
	{"A role of a service account reads back in every member, and is replaced", func(f *fixture) {
		account, role, granter := f.newServiceAccount("Import"), f.newRole("Support"), f.newUser("Grace Hopper")
		a := f.assignToAccount(account, role)
		same(f, f.serviceAccountRoles(account.ID), []rolecall.Assignment{a})
		a.Reach, a.ExpiresAt, a.GrantedBy, a.GrantedAt = rolecall.Within("Sales"), start+1, granter.ID, start+2
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
		same(f, f.serviceAccountRoles(account.ID), []rolecall.Assignment{a})
		same(f, read(f, func(tx *store.Tx) (rolecall.Assignment, error) { return tx.Assignment(a.Holder, role.ID) }), a)
		same(f, len(f.assignments(rolecall.UserID(account.ID))), 0)
	}},
	{"A role of a deleted service account, and a deleted role, are not found", func(f *fixture) {
		account, role := f.newServiceAccount("Import"), f.newRole("Support")
		for _, a := range []rolecall.Assignment{
			{Holder: rolecall.HolderOf(aServiceAccount("None").ID), Role: role}, {Holder: rolecall.HolderOf(account.ID), Role: aRole("None")},
			{Holder: rolecall.HolderOf(rolecall.ServiceAccountID(f.newUser("Ada Lovelace").ID)), Role: role},
		} {
			a.Reach, a.ExpiresAt, a.GrantedAt = rolecall.Everywhere(), rolecall.Never, start
			f.is(f.tryWrite(func(tx *store.Tx) { tx.UpsertAssignment(a) }), rolecall.ErrNotFound)
			_, err := tryRead(f, func(tx *store.Tx) (rolecall.Assignment, error) {
				return tx.Assignment(a.Holder, a.Role.ID)
			})
			f.is(err, rolecall.ErrNotFound)
		}
	}},
	{"A role that a service account holds is in use, and deleting the role deletes the assignment", func(f *fixture) {
		account, role := f.newServiceAccount("Import"), f.newRole("Support")
		inUse := func(now rolecall.Time) bool {
			return read(f, func(tx *store.Tx) (bool, error) { return tx.RoleInUse(role.ID, now) })
		}
		same(f, inUse(start), false)
		a := f.assignToAccount(account, role)
		same(f, inUse(start), true)
		a.ExpiresAt = start + hour
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
		same(f, inUse(start+hour-1), true)
		same(f, inUse(start+hour), false)
		same(f, f.deleteRole(role), true)
		same(f, len(f.serviceAccountRoles(account.ID)), 0)
	}},
	{"Removing a role from a service account reports whether it had the role", func(f *fixture) {
		account, role := f.newServiceAccount("Import"), f.newRole("Support")
		f.assignToAccount(account, role)
		take := func() bool {
			return change(f, func(tx *store.Tx) (bool, error) {
				return tx.DeleteAssignment(rolecall.HolderOf(account.ID), role.ID, start)
			})
		}
		same(f, take(), true)
		same(f, take(), false)
	}},
	{"A service account is not an owner with any role", func(f *fixture) {
		f.assignToAccount(f.newServiceAccount("Import"), f.owner())
		same(f, f.owners(), 0)
	}},
}

// aServiceAccount returns a service account that is not stored yet.
func aServiceAccount(name string) rolecall.ServiceAccount {
	draft := rolecall.ServiceAccountDraft{Name: name, Description: "A program."}
	return draft.ServiceAccount(start)
}

// newServiceAccount writes a service account.
func (f *fixture) newServiceAccount(name string) rolecall.ServiceAccount {
	f.Helper()
	a := aServiceAccount(name)
	f.write(func(tx *store.Tx) { tx.InsertServiceAccount(a) })
	return a
}

// assignToAccount gives the service account the role in the whole tenant and without
// expiry.
func (f *fixture) assignToAccount(account rolecall.ServiceAccount, r rolecall.Role) rolecall.Assignment {
	f.Helper()
	a := rolecall.Assignment{Holder: rolecall.HolderOf(account.ID), Role: r, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
	f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
	return a
}

func (f *fixture) serviceAccount(id rolecall.ServiceAccountID) rolecall.ServiceAccount {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.ServiceAccount, error) { return tx.ServiceAccountByID(id) })
}

func (f *fixture) serviceAccountRoles(id rolecall.ServiceAccountID) []rolecall.Assignment {
	f.Helper()
	return f.assignmentsOf(rolecall.HolderOf(id))
}

// serviceAccounts returns all service accounts of the query, page by page.
func (f *fixture) serviceAccounts(q rolecall.ServiceAccountQuery) []rolecall.ServiceAccount {
	f.Helper()
	return everyPage(f, q.Limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.ServiceAccount], error) {
		q.After = after
		return tx.ServiceAccounts(q)
	}, nil)
}

// serviceAccountNames returns the names of the service accounts of the query.
func (f *fixture) serviceAccountNames(q rolecall.ServiceAccountQuery) []string {
	f.Helper()
	q.Limit = 2
	names := []string{}
	for _, a := range f.serviceAccounts(q) {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names
}

package storetest

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var roleCases = []testCase{
	{"A role reads back in every member", func(f *fixture) {
		full := aRole("Käufer & Co")
		full.Key, full.Description, full.System = ptr("buyer"), "Buys: \"things\", 100 %", true
		full.Permissions = []rolecall.Permission{{Application: "shop", Resource: "orders", Action: "create"}, rolecall.UsersRead}
		full.Grants = []rolecall.Permission{rolecall.AllApplications}
		full.CreatedAt, full.UpdatedAt, full.Version = start, start+1, 3
		bare := aRole("Bare")
		bare.Description, bare.Permissions = "", []rolecall.Permission{}
		f.write(func(tx *store.Tx) {
			tx.InsertRole(full)
			tx.InsertRole(bare)
		})
		for _, want := range []rolecall.Role{full, bare} {
			same(f, f.roleByID(want.ID), want)
		}
		same(f, read(f, func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByKey("buyer") }), full)
	}},
	{"A role that is not there is not found", func(f *fixture) {
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByID(aRole("None").ID) })
		f.is(err, rolecall.ErrNotFound)
		_, err = tryRead(f, func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByKey("none") })
		f.is(err, rolecall.ErrNotFound)
	}},
	{"Of many roles those that are there are read at once", func(f *fixture) {
		var ids, there []rolecall.RoleID
		for i := range 600 {
			r := aRole(fmt.Sprintf("Role %d", i))
			ids = append(ids, r.ID)
			if i%3 == 0 {
				f.write(func(tx *store.Tx) { tx.InsertRole(r) })
				there = append(there, r.ID)
			}
		}
		var found []rolecall.RoleID
		for _, r := range read(f, func(tx *store.Tx) ([]rolecall.Role, error) { return tx.RolesByID(ids) }) {
			same(f, r, f.roleByID(r.ID))
			found = append(found, r.ID)
		}
		slices.SortFunc(found, func(a, b rolecall.RoleID) int { return bytes.Compare(a[:], b[:]) })
		same(f, found, there)
		same(f, len(read(f, func(tx *store.Tx) ([]rolecall.Role, error) { return tx.RolesByID(nil) })), 0)
	}},
	{"A name is unique per tenant by folding", func(f *fixture) {
		insert := func(f *fixture, name string) error {
			return f.tryWrite(func(tx *store.Tx) { tx.InsertRole(aRole(name)) })
		}
		f.is(insert(f, "Käufer"), nil)
		f.is(insert(f, "KAUFER"), rolecall.ErrRoleNameTaken)
		f.is(insert(f, "ka\u0308ufer"), rolecall.ErrRoleNameTaken)
		f.is(insert(f, "Kauferin"), nil)
		f.is(insert(f.in(f.newTenant("other")), "Käufer"), nil)
	}},
	{"A key is unique per tenant, and many roles have none", func(f *fixture) {
		insert := func(f *fixture, name string, key *string) error {
			r := aRole(name)
			r.Key = key
			return f.tryWrite(func(tx *store.Tx) { tx.InsertRole(r) })
		}
		f.is(insert(f, "First", ptr("buyer")), nil)
		f.is(insert(f, "Second", ptr("buyer")), rolecall.ErrRoleKeyTaken)
		f.is(insert(f, "Third", nil), nil)
		f.is(insert(f, "Fourth", nil), nil)
		f.is(insert(f.in(f.newTenant("other")), "First", ptr("buyer")), nil)
	}},
	{"A change replaces name, description, permissions and grants", func(f *fixture) {
		old := f.newRole("Support")
		changed := old
		changed.Name, changed.Description, changed.UpdatedAt, changed.Version = "Help desk", "", start+1, old.Version+1
		changed.Permissions, changed.Grants = []rolecall.Permission{rolecall.RolesRead}, []rolecall.Permission{rolecall.UsersRead}
		same(f, f.changeRole(old, changed), true)
		same(f, f.roleByID(old.ID), changed)
		same(f, f.roleNames(rolecall.RoleQuery{Words: []string{"support"}}), []string{})
		same(f, f.roleNames(rolecall.RoleQuery{Words: []string{"desk", "h"}}), []string{"Help desk"})
	}},
	{"A stale change is refused", func(f *fixture) {
		old := f.newRole("Support")
		changed := old
		changed.Name, changed.Version = "Help desk", old.Version+1
		same(f, f.changeRole(old, changed), true)
		late := old
		late.Name, late.Version = "Too late", old.Version+1
		same(f, f.changeRole(old, late), false)
		same(f, f.roleByID(old.ID), changed)
	}},
	{"A change to a taken name is refused", func(f *fixture) {
		f.newRole("Support")
		old := f.newRole("Help desk")
		changed := old
		changed.Name, changed.Version = "SUPPORT", old.Version+1
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			_, err := tx.UpdateRole(old, changed)
			return err
		}), rolecall.ErrRoleNameTaken)
	}},
	{"A deleted role takes its assignments along", func(f *fixture) {
		role, stays, u := f.newRole("Support"), f.newRole("Help desk"), f.newUser("Ada Lovelace")
		f.assign(u, role)
		f.assign(u, stays)
		stale := role
		stale.Version++
		same(f, f.deleteRole(stale), false)
		same(f, f.deleteRole(role), true)
		same(f, f.deleteRole(role), false)
		left := f.assignments(u.ID)
		same(f, len(left), 1)
		same(f, left[0].Role, stays)
	}},
	{"Pages of roles are complete and in order", func(f *fixture) {
		for i := range 20 {
			f.newRole(fmt.Sprintf("Rôle %c", 'A'+(i*7)%20))
		}
		pagesInOrder(f, 20+len(rolecall.BuiltInRoles(start)), func(byName, desc bool, limit int) []rolecall.Role {
			return f.roles(rolecall.RoleQuery{ByName: byName, Desc: desc, Limit: limit})
		}, func(r *rolecall.Role) ([16]byte, string) { return r.ID, r.NameKey() })
	}},
	{"Roles are found by key and by the beginnings of words", func(f *fixture) {
		f.newRole("Support Agent")
		f.newRole("Agent Smith")
		same(f, f.roleNames(rolecall.RoleQuery{Key: "owner"}), []string{"Owner"})
		same(f, f.roleNames(rolecall.RoleQuery{Key: "unknown"}), []string{})
		same(f, f.roleNames(rolecall.RoleQuery{Words: []string{"age"}}), []string{"Agent Smith", "Support Agent"})
		same(f, f.roleNames(rolecall.RoleQuery{Words: []string{"age", "sup"}}), []string{"Support Agent"})
		same(f, f.roleNames(rolecall.RoleQuery{Words: []string{"gent"}}), []string{})
	}},
	{"A total of roles is exact", func(f *fixture) {
		f.newRole("Support Agent")
		page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Role], error) {
			return tx.Roles(rolecall.RoleQuery{Limit: 1, Count: true})
		})
		same(f, page.Total, &rolecall.Total{Count: 1 + len(rolecall.BuiltInRoles(start)), Exact: true})
	}},
}

func (f *fixture) roleByID(id rolecall.RoleID) rolecall.Role {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByID(id) })
}

func (f *fixture) changeRole(old, changed rolecall.Role) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateRole(old, changed) })
}

func (f *fixture) deleteRole(r rolecall.Role) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteRole(r) })
}

// roles returns all roles of the query, page by page.
func (f *fixture) roles(q rolecall.RoleQuery) []rolecall.Role {
	f.Helper()
	return everyPage(f, q.Limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.Role], error) {
		q.After = after
		return tx.Roles(q)
	}, nil)
}

// roleNames returns the names of the roles of the query, sorted.
func (f *fixture) roleNames(q rolecall.RoleQuery) []string {
	f.Helper()
	q.Limit = 2
	names := []string{}
	for _, r := range f.roles(q) {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

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
	{"An unknown role is not found", func(f *fixture) {
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByID(aRole("None").ID) })
		f.is(err, rolecall.ErrNotFound)
		_, err = tryRead(f, func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByKey("none") })
		f.is(err, rolecall.ErrNotFound)
	}},
	{"A read of many roles returns the existing ones", func(f *fixture) {
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
	{"The name of a role is unique per tenant", func(f *fixture) {
		insert := func(f *fixture, name string) error {
			return f.tryWrite(func(tx *store.Tx) { tx.InsertRole(aRole(name)) })
		}
		f.is(insert(f, "Käufer"), nil)
		f.is(insert(f, "KÄUFER"), rolecall.ErrRoleNameTaken)
		f.is(insert(f, "ka\u0308ufer"), rolecall.ErrRoleNameTaken)
		f.is(insert(f, "Kä\u200Bufer"), rolecall.ErrRoleNameTaken)
		f.is(insert(f, " Käufer "), rolecall.ErrRoleNameTaken)
		f.is(insert(f, "Kaufer"), nil)
		f.is(insert(f, "カード事業部"), nil)
		f.is(insert(f, "ガード事業部"), nil)
		f.is(insert(f, "ΠΩΛΉΣΕΙΣ"), nil)
		f.is(insert(f, "Πωλήσεις"), rolecall.ErrRoleNameTaken)
		f.is(insert(f, "Straße"), nil)
		f.is(insert(f, "STRASSE"), rolecall.ErrRoleNameTaken)
		f.is(insert(f, strings.Repeat("ﷺ", 128)), nil)
		f.is(insert(f, strings.Repeat("ﷺ", 127)+"ﷻ"), nil)
		f.is(insert(f, strings.Repeat("ﷺ", 128)), rolecall.ErrRoleNameTaken)
		f.is(insert(f, "Kauferin"), nil)
		f.is(insert(f.in(f.newTenant("other")), "Käufer"), nil)
	}},
	{"The key of a role is unique per tenant, and many roles can have no key", func(f *fixture) {
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
		f.assign(f.newUser("Ada Lovelace"), old)
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
	{"Deleting a role deletes its assignments", func(f *fixture) {
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
	{"A hidden role and its assignments are not found", hiddenRole},
	{"A hidden role has the event of its deletion until the event is purged", func(f *fixture) {
		role, by := f.newRole("Support"), f.newUser("Ada Lovelace")
		deletion := anEventAt(by.ID, start)
		deletion.Type, deletion.Subject = rolecall.EventRoleDeleted, rolecall.About(role.ID)
		f.is(f.hiddenRole(), rolecall.ErrNotFound)
		f.write(func(tx *store.Tx) { tx.InsertEvent(deletion) })
		same(f, f.hideRole(role, deletion.ID), true)
		id, found := f.mustHiddenRole()
		same(f, id, role.ID)
		same(f, found, rolecall.Event{
			ID: deletion.ID, Type: deletion.Type, Actor: deletion.Actor, RequestID: deletion.RequestID, SessionID: deletion.SessionID, Source: deletion.Source,
		})
		f.purge(start, deletion.OccurredAt.Add(time.Second), 100)
		id, found = f.mustHiddenRole()
		same(f, id, role.ID)
		same(f, found, rolecall.Event{ID: deletion.ID})
		f.in(f.newTenant("other")).write(func(tx *store.Tx) { tx.DeleteHiddenRole(role.ID) })
		f.mustHiddenRole()
		f.write(func(tx *store.Tx) { tx.DeleteHiddenRole(role.ID) })
		f.is(f.hiddenRole(), rolecall.ErrNotFound)
	}},
	{"DeleteHiddenRole deletes only hidden roles", func(f *fixture) {
		role := f.newRole("Support")
		f.write(func(tx *store.Tx) { tx.DeleteHiddenRole(role.ID) })
		same(f, f.roleByID(role.ID), role)
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

func hiddenRole(f *fixture) {
	key := "support"
	role := aRole("Support")
	role.Key = &key
	f.write(func(tx *store.Tx) { tx.InsertRole(role) })
	u, account := f.newUser("Ada Lovelace"), f.newServiceAccount("Import")
	f.assign(u, role)
	f.assignToAccount(account, role)
	stays := f.newRole("Help desk")
	f.assign(u, stays)
	_, token := f.signIn(u, start)
	stale := role
	stale.Version++
	same(f, f.hideRole(stale, rolecall.NewID[rolecall.Event](start)), false)
	same(f, f.hideRole(role, rolecall.NewID[rolecall.Event](start)), true)
	same(f, f.hideRole(role, rolecall.NewID[rolecall.Event](start)), false)

	changed := role
	changed.Version++
	same(f, f.changeRole(role, changed), false)
	same(f, f.deleteRole(role), false)
	for _, find := range []func(*store.Tx) (rolecall.Role, error){
		func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByID(role.ID) },
		func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByKey(key) },
	} {
		_, err := tryRead(f, find)
		f.is(err, rolecall.ErrNotFound)
	}
	for _, h := range []rolecall.Holder{rolecall.HolderOf(u.ID), rolecall.HolderOf(account.ID)} {
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Assignment, error) { return tx.Assignment(h, role.ID) })
		f.is(err, rolecall.ErrNotFound)
	}
	same(f, len(read(f, func(tx *store.Tx) ([]rolecall.Role, error) { return tx.RolesByID([]rolecall.RoleID{role.ID}) })), 0)
	for _, q := range []rolecall.RoleQuery{{}, {ByName: true}, {Key: key}, {Words: []string{"support"}}} {
		same(f, slices.Contains(f.roleNames(q), "Support"), false)
	}
	same(f, read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Role], error) {
		return tx.Roles(rolecall.RoleQuery{Limit: 1, Count: true})
	}).Total, &rolecall.Total{Count: 1 + len(rolecall.BuiltInRoles(start)), Exact: true})
	held := f.assignments(u.ID)
	same(f, len(held), 1)
	same(f, held[0].Role, stays)
	same(f, len(f.assignmentsOf(rolecall.HolderOf(account.ID))), 0)
	same(f, len(f.session(token).Assignments), 1)
	for _, sort := range []rolecall.UserSort{rolecall.SortByID, rolecall.SortByName} {
		q := everyone()
		q.Role, q.Sort, q.Now, q.Count = role.ID, sort, start, true
		page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.User], error) { return tx.Users(q) })
		same(f, len(page.Items), 0)
		same(f, page.Total, &rolecall.Total{Exact: true})
	}
	again := aRole("Support")
	again.Key = &key
	f.write(func(tx *store.Tx) { tx.InsertRole(again) })
	same(f, f.roleByID(again.ID), again)

	taken := change(f, func(tx *store.Tx) ([]rolecall.Assignment, error) {
		return tx.DeleteAssignments(role.ID, start+minute, 10)
	})
	same(f, len(taken), 1)
	same(f, taken[0].Holder, rolecall.HolderOf(u.ID))
}

func (f *fixture) hideRole(r rolecall.Role, deletion rolecall.EventID) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.HideRole(r, deletion) })
}

// hiddenRole returns the error of HiddenRole.
func (f *fixture) hiddenRole() error {
	f.Helper()
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.RoleID, error) {
		id, _, err := tx.HiddenRole()
		return id, err
	})
	return err
}

// mustHiddenRole returns the result of HiddenRole.
func (f *fixture) mustHiddenRole() (id rolecall.RoleID, deletion rolecall.Event) {
	f.Helper()
	read(f, func(tx *store.Tx) (_ bool, err error) {
		id, deletion, err = tx.HiddenRole()
		return true, err
	})
	return id, deletion
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

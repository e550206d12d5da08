package storetest

import (
	"bytes"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var assignmentCases = []testCase{
	{"Assignments of a role are deleted up to the limit, and no others", func(f *fixture) {
		users, role, other := f.crowd(7), f.newRole("Support"), f.newRole("Sales")
		ofUsers, ofAccounts := map[rolecall.Holder]rolecall.Assignment{}, map[rolecall.Holder]rolecall.Assignment{}
		for i, u := range users {
			a := rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: role, Reach: rolecall.Within("Ops"), ExpiresAt: start + rolecall.Time(i), GrantedBy: users[0].ID, GrantedAt: start}
			f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
			f.assign(u, other)
			ofUsers[a.Holder] = a
			account := f.newServiceAccount(fmt.Sprintf("Import %d", i))
			a.Holder = rolecall.HolderOf(account.ID)
			f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
			f.assignToAccount(account, other)
			ofAccounts[a.Holder] = a
		}
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.HideRole(role, rolecall.NewID[rolecall.Event](start)) }), true)
		for _, kind := range []struct {
			held map[rolecall.Holder]rolecall.Assignment
			take func(*store.Tx, rolecall.RoleID, int) ([]rolecall.Assignment, error)
		}{
			{ofUsers, func(tx *store.Tx, role rolecall.RoleID, limit int) ([]rolecall.Assignment, error) {
				return tx.DeleteAssignments(role, start+minute, limit)
			}},
			{ofAccounts, (*store.Tx).DeleteServiceAccountRoles},
		} {
			for _, want := range []int{3, 3, 1, 0} {
				taken := change(f, func(tx *store.Tx) ([]rolecall.Assignment, error) { return kind.take(tx, role.ID, 3) })
				same(f, len(taken), want)
				for _, a := range taken {
					want := kind.held[a.Holder]
					want.Role = rolecall.Role{ID: role.ID}
					same(f, a, want)
					same(f, len(f.assignmentsOf(a.Holder)), 1)
					delete(kind.held, a.Holder)
				}
			}
			same(f, len(kind.held), 0)
		}
	}},
	{"An assignment reads back in every member", func(f *fixture) {
		u, granter := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		scoped := rolecall.Assignment{
			Holder: rolecall.HolderOf(u.ID), Role: f.newRole("Support"), Reach: rolecall.Within("Sales", "Forschung & Entwicklung"),
			ExpiresAt: start + hour, GrantedBy: granter.ID, GrantedAt: start + 1,
		}
		plain := rolecall.Assignment{
			Holder: rolecall.HolderOf(u.ID), Role: f.newRole("Help desk"), Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start,
		}
		f.write(func(tx *store.Tx) {
			tx.UpsertAssignment(scoped)
			tx.UpsertAssignment(plain)
		})
		for _, want := range []rolecall.Assignment{scoped, plain} {
			same(f, f.assignment(u.ID, want.Role.ID), want)
		}
	}},
	{"Assignments are sorted by role ID and include expired ones", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		var want []rolecall.Assignment
		for i, name := range []string{"One", "Two", "Three", "Four"} {
			want = append(want, rolecall.Assignment{
				Holder: rolecall.HolderOf(u.ID), Role: f.newRole(name), Reach: rolecall.Everywhere(), ExpiresAt: start + rolecall.Time(i), GrantedAt: start,
			})
		}
		f.write(func(tx *store.Tx) {
			for _, a := range slices.Backward(want) {
				tx.UpsertAssignment(a)
			}
		})
		slices.SortFunc(want, func(a, b rolecall.Assignment) int { return bytes.Compare(a.Role.ID[:], b.Role.ID[:]) })
		same(f, f.assignments(u.ID), want)
		same(f, len(f.assignments(f.newUser("Grace Hopper").ID)), 0)
	}},
	{"Writing an assignment again replaces it", func(f *fixture) {
		u, role, granter := f.newUser("Ada Lovelace"), f.newRole("Support"), f.newUser("Grace Hopper")
		a := f.assign(u, role)
		a.Reach, a.ExpiresAt, a.GrantedBy, a.GrantedAt = rolecall.Within("Sales"), start+1, granter.ID, start+2
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
		same(f, f.assignments(u.ID), []rolecall.Assignment{a})
	}},
	{"An assignment of a deleted user or role is not found", func(f *fixture) {
		u, role := f.newUser("Ada Lovelace"), f.newRole("Support")
		for _, a := range []rolecall.Assignment{
			{Holder: rolecall.HolderOf(aUser("Nobody").ID), Role: role}, {Holder: rolecall.HolderOf(u.ID), Role: aRole("None")},
		} {
			a.Reach, a.ExpiresAt, a.GrantedAt = rolecall.Everywhere(), rolecall.Never, start
			f.is(f.tryWrite(func(tx *store.Tx) { tx.UpsertAssignment(a) }), rolecall.ErrNotFound)
			_, err := tryRead(f, func(tx *store.Tx) (rolecall.Assignment, error) { return tx.Assignment(a.Holder, a.Role.ID) })
			f.is(err, rolecall.ErrNotFound)
		}
	}},
	{"Assignments written in bulk are like those written one by one", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), aUser("Grace Hopper")
		var all []rolecall.Assignment
		for i := range 300 { // more than one statement takes
			role := f.newRole(fmt.Sprintf("Role %d", i))
			a := rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: role, Reach: rolecall.Within("Sales"), ExpiresAt: start + 1, GrantedBy: u.ID, GrantedAt: start}
			f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
			a.Holder = rolecall.HolderOf(other.ID)
			all = append(all, a)
		}
		f.write(func(tx *store.Tx) {
			tx.InsertUser(other)
			tx.InsertAssignments(all)
		})
		same(f, f.assignments(other.ID), all)
		for i := range all {
			all[i].Holder = rolecall.HolderOf(u.ID)
		}
		same(f, f.assignments(u.ID), all)
		all[7].Holder = rolecall.HolderOf(aUser("Nobody").ID)
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertAssignments(all[7:8]) }), rolecall.ErrNotFound)
	}},
	{"Deleting an assignment reports whether it existed", func(f *fixture) {
		u, role := f.newUser("Ada Lovelace"), f.newRole("Support")
		f.assign(u, role)
		same(f, f.unassign(u, role), true)
		same(f, f.unassign(u, role), false)
		same(f, len(f.assignments(u.ID)), 0)
	}},
	{"A role is in use while a user holds it", func(f *fixture) {
		u, role := f.newUser("Ada Lovelace"), f.newRole("Support")
		inUse := func(now rolecall.Time) bool {
			return read(f, func(tx *store.Tx) (bool, error) { return tx.RoleInUse(role.ID, now) })
		}
		same(f, inUse(start), false)
		a := f.assign(u, role)
		same(f, inUse(start), true)
		a.ExpiresAt = start + hour
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
		same(f, inUse(start+hour-1), true)
		same(f, inUse(start+hour), false)
	}},
	{"A role with more assignments than a statement may read counts as used", func(f *fixture) {
		role := f.newRole("Support")
		inUse := func() bool {
			return read(f, func(tx *store.Tx) (bool, error) { return tx.RoleInUse(role.ID, start) })
		}
		hold := func(users []rolecall.User) {
			var over []rolecall.Assignment
			for _, u := range users {
				over = append(over, rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: start, GrantedAt: start})
			}
			f.write(func(tx *store.Tx) {
				tx.InsertUsers(users)
				tx.InsertAssignments(over)
			})
		}
		users := make([]rolecall.User, rolecall.MaxScan+1)
		for i := range users {
			users[i] = aUser("Ada Lovelace")
		}
		for chunk := range slices.Chunk(users[:rolecall.MaxScan], 500) {
			hold(chunk)
		}
		same(f, inUse(), false)
		hold(users[rolecall.MaxScan:])
		same(f, inUse(), true)
	}},
	{"Only active users with an unrestricted, permanent owner role count as owners", ownersCount},
	{"The count of owners stops at two", func(f *fixture) {
		for range 4 {
			f.assign(f.newUser("Ada Lovelace"), f.owner())
		}
		same(f, f.owners(), 2)
	}},
	{"If two owners are removed concurrently, one stays", func(f *fixture) {
		owner := f.owner()
		for range 10 {
			first, second := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
			f.assign(first, owner)
			f.assign(second, owner)
			f.oneWins(parallel(2, func(i int) error {
				return f.leave([]rolecall.User{first, second}[i], owner)
			}), errRefused)
			same(f, f.owners(), 1)
			f.deleteUser(first)
			f.deleteUser(second)
		}
	}},
}

// leave removes the owner role from the user, but returns an error if no other owner would
// remain.
func (f *fixture) leave(u rolecall.User, owner rolecall.Role) error {
	return f.tryUpdate(func(tx *store.Tx) error {
		tx.LockOwners()
		if _, err := tx.DeleteAssignment(rolecall.HolderOf(u.ID), owner.ID, start+minute); err != nil {
			return err
		}
		owners, err := tx.Owners()
		if err == nil && owners == 0 {
			return errRefused
		}
		return err
	})
}

func ownersCount(f *fixture) {
	owner := f.owner()
	same(f, f.owners(), 0)
	f.assign(f.newUser("Grace Hopper"), f.newRole("Support"))
	same(f, f.owners(), 0)
	for _, change := range []func(*rolecall.User, *rolecall.Assignment){
		func(u *rolecall.User, _ *rolecall.Assignment) { u.Status = rolecall.UserSuspended },
		func(u *rolecall.User, _ *rolecall.Assignment) { u.Status = rolecall.UserPending },
		func(_ *rolecall.User, a *rolecall.Assignment) { a.ExpiresAt = start + 1000*day },
		func(_ *rolecall.User, a *rolecall.Assignment) { a.Reach = rolecall.Within("Sales") },
	} {
		u := aUser("Ada Lovelace")
		a := rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: owner, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
		change(&u, &a)
		f.write(func(tx *store.Tx) {
			tx.InsertUser(u)
			tx.UpsertAssignment(a)
		})
		same(f, f.owners(), 0)
	}
	first, second := f.newUser("Ada Byron"), f.newUser("Grace Murray")
	f.assign(second, owner)
	same(f, f.owners(), 1)
	f.assign(first, owner)
	oldest := func(limit int) []rolecall.User {
		return read(f, func(tx *store.Tx) ([]rolecall.User, error) { return tx.OldestOwners(limit) })
	}
	same(f, oldest(5), []rolecall.User{first, second})
	same(f, oldest(1), []rolecall.User{first})
	same(f, len(read(f.in(f.newTenant("other")), func(tx *store.Tx) ([]rolecall.User, error) { return tx.OldestOwners(5) })), 0)
}

func (f *fixture) assignments(id rolecall.UserID) []rolecall.Assignment {
	f.Helper()
	return f.assignmentsOf(rolecall.HolderOf(id))
}

func (f *fixture) assignmentsOf(h rolecall.Holder) []rolecall.Assignment {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.Assignment, error) { return tx.Assignments(h) })
}

func (f *fixture) assignment(user rolecall.UserID, role rolecall.RoleID) rolecall.Assignment {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Assignment, error) { return tx.Assignment(rolecall.HolderOf(user), role) })
}

func (f *fixture) unassign(u rolecall.User, r rolecall.Role) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) {
		return tx.DeleteAssignment(rolecall.HolderOf(u.ID), r.ID, start+minute)
	})
}

func (f *fixture) owners() int {
	f.Helper()
	return read(f, func(tx *store.Tx) (int, error) { return tx.Owners() })
}

// deletesAny reports whether a deletion of assignments has deleted at least one.
func deletesAny(taken []rolecall.Assignment, err error) (bool, error) { return len(taken) > 0, err }

var accessCases = []testCase{
	{"Roles are found by a permission that they give, also by wildcards", rolesGiving},
	{"Those with a permission agree with a naive filter", accessAgreesWithModel},
	{"Pages are complete for many holders and many roles", accessOfMany},
	{"A hidden role gives no permissions", func(f *fixture) {
		role, u, account := f.newRole("Support"), f.newUser("Ada Lovelace"), f.newServiceAccount("Import")
		f.assign(u, role)
		f.assignToAccount(account, role)
		q := access(rolecall.UsersRead)
		same(f, ids(f.usersWithAccess(q, nil)), []rolecall.UserID{u.ID})
		same(f, len(f.accountsWithAccess(q)), 1)
		same(f, f.hideRole(role, rolecall.NewID[rolecall.Event](start)), true)
		same(f, len(f.usersWithAccess(q, nil)), 0)
		same(f, len(f.accountsWithAccess(q)), 0)
		same(f, len(f.accessAssignments(q, u.ID)), 0)
	}},
	{"The assignments that give a permission have what covers it, and end at the size of a page", func(f *fixture) {
		role := aRole("Support")
		role.Permissions, role.Grants = permissions("users:read", "users:*", "users:invite"), permissions("users:read")
		f.write(func(tx *store.Tx) { tx.InsertRole(role) })
		var users []rolecall.UserID
		var wide []string
		for i := range rolecall.ReachDepartmentsMax {
			wide = append(wide, fmt.Sprintf("%0*d", rolecall.DepartmentMax, i))
		}
		for range 50 {
			u := f.newUser("Ada Lovelace")
			users = append(users, u.ID)
			f.write(func(tx *store.Tx) {
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: role, Reach: rolecall.Within(wide...), ExpiresAt: rolecall.Never, GrantedAt: start})
			})
		}
		for rest := users; len(rest) > 0; {
			var full bool
			all := read(f, func(tx *store.Tx) (all []rolecall.Assignment, err error) {
				all, full, err = tx.AccessAssignments(access(rolecall.UsersRead), rest)
				return all, err
			})
			size := 0
			for i, a := range all {
				size += a.Size()
				same(f, rolecall.UserID(a.Holder.ID), rest[i])
				same(f, a.Role, rolecall.Role{ID: role.ID, Name: role.Name, Key: role.Key, Permissions: permissions("users:*", "users:read")})
			}
			if full != (len(all) < len(rest)) || size > rolecall.MaxPageBytes || len(all) == 0 {
				f.Fatalf("%d of %d assignments have %d bytes; full is %v", len(all), len(rest), size, full)
			}
			rest = rest[len(all):]
		}
	}},
	{"A tenant finds no holders of permissions in another tenant", func(f *fixture) {
		role, u, account := f.newRole("Support"), f.newUser("Ada Lovelace"), f.newServiceAccount("Import")
		f.assign(u, role)
		f.assignToAccount(account, role)
		other, q := f.in(f.newTenant("other")), access(rolecall.UsersRead)
		same(f, len(other.usersWithAccess(q, nil)), 0)
		same(f, len(other.accountsWithAccess(q)), 0)
		same(f, len(other.accessAssignments(q, u.ID)), 0)
		same(f, len(read(other, func(tx *store.Tx) ([]rolecall.Assignment, error) {
			all, _, err := tx.AccountAccessAssignments(q, []rolecall.ServiceAccountID{account.ID})
			return all, err
		})), 0)
	}},
}

// access returns a query for all users and service accounts with the permission.
func access(p rolecall.Permission) rolecall.AccessQuery {
	return rolecall.AccessQuery{Permission: p, Within: rolecall.Everywhere(), Now: start, Limit: rolecall.MaxLimit}
}

func permissions(texts ...string) []rolecall.Permission {
	list := make([]rolecall.Permission, len(texts))
	for i, text := range texts {
		if err := list[i].UnmarshalText([]byte(text)); err != nil {
			panic(err)
		}
	}
	return list
}

func rolesGiving(f *fixture) {
	for i, text := range []string{"users:erase", "users:*", "*:erase", "users.*:erase", "*:*", "users.email:erase", "*/*:*", "shop/in_voices:reOpen", "shop/inxvoices:reOpen", "shop/in_voices:reopen", "shop/*.total:reOpen", "*/in_voices.total:reOpen"} {
		r := aRole(fmt.Sprintf("Role %d", i))
		r.Permissions = permissions("events:read", text)
		r.Grants = permissions("*:*", "*/*:*")
		f.write(func(tx *store.Tx) { tx.InsertRole(r) })
	}
	for _, p := range permissions("users:erase", "users.email:erase", "shop/in_voices:reOpen", "shop/in_voices.total:reOpen", "sh_p/invoices:read") {
		q := rolecall.RoleQuery{Permission: &p, Limit: 3}
		var want []string
		for _, r := range f.roles(rolecall.RoleQuery{Limit: rolecall.MaxLimit}) {
			if len(r.Covering(p)) > 0 {
				want = append(want, r.Name)
			}
		}
		slices.Sort(want)
		same(f, f.roleNames(q), want)
	}
}

func accessAgreesWithModel(f *fixture) {
	pool := permissions("users:read", "users:*", "*:read", "users.email:read", "*:*", "tenant:update", "shop/*:*", "shop/a_b:read", "*/*:*")
	asked := permissions("users:read", "users.email:read", "tenant:update", "roles:read", "shop/a_b:read", "shop/axb:read")
	reaches := []rolecall.Reach{rolecall.Everywhere(), rolecall.Within("Sales"), rolecall.Within("Research", "Ops")}
	ends := []rolecall.Time{rolecall.Never, start, start + 1, start - 1}
	round := 0
	rapid.Check(f.T, func(t *rapid.T) {
		round++
		f := f.in(f.newTenant(fmt.Sprintf("access-%d", round)))
		roles := make([]rolecall.Role, rapid.IntRange(1, 5).Draw(t, "roles"))
		for i := range roles {
			roles[i] = aRole(fmt.Sprintf("Role %d", i))
			roles[i].Permissions = rolecall.NormalPermissions(rapid.SliceOfN(rapid.SampledFrom(pool), 0, 3).Draw(t, "permissions"))
		}
		var given []rolecall.Assignment
		assign := func(h rolecall.Holder) {
			for _, r := range roles {
				if rapid.Bool().Draw(t, "has") {
					given = append(given, rolecall.Assignment{
						Holder: h, Role: r, GrantedAt: start,
						Reach: rapid.SampledFrom(reaches).Draw(t, "reach"), ExpiresAt: rapid.SampledFrom(ends).Draw(t, "end"),
					})
				}
			}
		}
		users := make([]rolecall.User, rapid.IntRange(0, 12).Draw(t, "users"))
		for i := range users {
			users[i] = aUser("Ada Lovelace")
			if d := rapid.SampledFrom(departments).Draw(t, "department"); d != "" {
				users[i].Department = &d
			}
			assign(rolecall.HolderOf(users[i].ID))
		}
		accounts := []rolecall.ServiceAccount{aServiceAccount("Import"), aServiceAccount("Export")}
		for i := range accounts {
			assign(rolecall.HolderOf(accounts[i].ID))
		}
		f.write(func(tx *store.Tx) {
			for _, r := range roles {
				tx.InsertRole(r)
			}
			for _, u := range users {
				tx.InsertUser(u)
			}
			for _, a := range accounts {
				tx.InsertServiceAccount(a)
			}
			for _, a := range given {
				tx.UpsertAssignment(a)
			}
		})
		q := access(rapid.SampledFrom(asked).Draw(t, "asked"))
		q.Within, q.Limit = rapid.SampledFrom(reaches).Draw(t, "within"), rapid.IntRange(1, 4).Draw(t, "limit")
		f.comparesAccess(t, q, users, accounts, given)
	})
}

// comparesAccess fails the case unless the lists of q have exactly the right holders: those
// that have the permission of q by one of the given assignments.
func (f *fixture) comparesAccess(t *rapid.T, q rolecall.AccessQuery, users []rolecall.User, accounts []rolecall.ServiceAccount, given []rolecall.Assignment) {
	giving := map[rolecall.AnyID][]rolecall.RoleID{}
	for _, a := range given {
		scoped := !q.Permission.Own() || q.Permission.BoundByReach()
		if a.Live(q.Now) && len(a.Role.Covering(q.Permission)) > 0 && (scoped || a.Reach.IsEverywhere()) {
			giving[a.Holder.ID] = append(giving[a.Holder.ID], a.Role.ID)
		}
	}
	var want []rolecall.UserID
	for _, u := range users {
		if q.Within.Includes(u.Department) && giving[rolecall.AnyID(u.ID)] != nil {
			want = append(want, u.ID)
		}
	}
	got := ids(f.usersWithAccess(q, nil))
	if !slices.Equal(got, want) {
		t.Fatalf("%+v: got users %v, want %v", q, got, want)
	}
	var programs, wanted []rolecall.ServiceAccountID
	for _, a := range accounts {
		if giving[rolecall.AnyID(a.ID)] != nil {
			wanted = append(wanted, a.ID)
		}
	}
	for _, a := range f.accountsWithAccess(q) {
		programs = append(programs, a.ID)
	}
	if !slices.Equal(programs, wanted) {
		t.Fatalf("%+v: got service accounts %v, want %v", q, programs, wanted)
	}
	found := f.accessAssignments(q, want...)
	found = append(found, read(f, func(tx *store.Tx) ([]rolecall.Assignment, error) {
		all, _, err := tx.AccountAccessAssignments(q, wanted)
		return all, err
	})...)
	by := map[rolecall.AnyID][]rolecall.RoleID{}
	for _, a := range found {
		by[a.Holder.ID] = append(by[a.Holder.ID], a.Role.ID)
	}
	for id, roles := range by {
		slices.SortFunc(roles, func(a, b rolecall.RoleID) int { return bytes.Compare(a[:], b[:]) })
		if !slices.Equal(roles, giving[id]) {
			t.Fatalf("%+v: %v has it by %v, want %v", q, id, roles, giving[id])
		}
	}
	if len(by) != len(want)+len(wanted) {
		t.Fatalf("%+v: assignments of %d holders, want %d", q, len(by), len(want)+len(wanted))
	}
}

// accessOfMany lists the holders of a permission in two cases: if a role has more holders
// than a statement may read, and if more roles have the permission than a statement may
// list.
func accessOfMany(f *fixture) {
	common, rare := f.newRole("Common"), aRole("Rare")
	rare.Permissions = permissions("shop/*:*")
	const count = rolecall.MaxScan + 300
	users := make([]rolecall.User, count)
	assignments := make([]rolecall.Assignment, count)
	var few []rolecall.UserID
	for i := range users {
		users[i] = aUser("Common Name")
		assignments[i] = rolecall.Assignment{Holder: rolecall.HolderOf(users[i].ID), Role: common, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
		if i == 0 || i == count-1 || i == rolecall.MaxScan {
			a := assignments[i]
			a.Role = rare
			assignments = append(assignments, a)
			few = append(few, users[i].ID)
		}
	}
	f.write(func(tx *store.Tx) {
		tx.InsertRole(rare)
		tx.InsertUsers(users)
		tx.InsertAssignments(assignments)
	})
	same(f, ids(f.usersWithAccess(access(rolecall.UsersRead), nil)), ids(users))
	pages, q := 1, access(permissions("shop/a:b")[0])
	same(f, ids(f.usersWithAccess(q, func() { pages++ })), few)
	same(f, pages, 1)
	f.write(func(tx *store.Tx) {
		for i := range rolecall.MaxLimit {
			r := aRole(fmt.Sprintf("Shop %d", i))
			r.Permissions = rare.Permissions
			tx.InsertRole(r)
		}
	})
	same(f, ids(f.usersWithAccess(q, func() { pages++ })), few)
	if pages < 2 {
		f.Error("all users were read for one page, want bounded pages")
	}
}

// usersWithAccess returns all users of the query, page by page.
func (f *fixture) usersWithAccess(q rolecall.AccessQuery, between func()) []rolecall.User {
	f.Helper()
	return everyPage(f, q.Limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.User], error) {
		q.After = after
		return tx.UsersWithAccess(q)
	}, between)
}

// accountsWithAccess returns all service accounts of the query, page by page.
func (f *fixture) accountsWithAccess(q rolecall.AccessQuery) []rolecall.ServiceAccount {
	f.Helper()
	return everyPage(f, q.Limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.ServiceAccount], error) {
		q.After = after
		return tx.ServiceAccountsWithAccess(q)
	}, nil)
}

func (f *fixture) accessAssignments(q rolecall.AccessQuery, users ...rolecall.UserID) []rolecall.Assignment {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.Assignment, error) {
		all, full, err := tx.AccessAssignments(q, users)
		if full {
			f.Errorf("%d assignments fill a page", len(all))
		}
		return all, err
	})
}

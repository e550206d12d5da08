package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var groupCases = []testCase{
	{"A group reads back in every member", func(f *fixture) {
		full := aGroup("Käufer & Co")
		full.Description, full.ExternalID, full.CreatedAt, full.UpdatedAt, full.Version = "Buys: \"things\", 100 %", ptr("G-1"), start, start+1, 3
		bare := aGroup("Bare")
		f.write(func(tx *store.Tx) {
			tx.InsertGroup(full)
			tx.InsertGroup(bare)
		})
		same(f, f.group(full.ID), full)
		same(f, f.group(bare.ID), bare)
		same(f, len(read(f, func(tx *store.Tx) ([]rolecall.Group, error) {
			return tx.GroupsByID([]rolecall.GroupID{full.ID, bare.ID, aGroup("None").ID})
		})), 2)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Group, error) { return tx.GroupByID(aGroup("None").ID) })
		f.is(err, rolecall.ErrNotFound)
	}},
	{"The name and the external ID of a group are unique per tenant", func(f *fixture) {
		insert := func(f *fixture, name string, externalID *string) error {
			g := aGroup(name)
			g.ExternalID = externalID
			return f.tryWrite(func(tx *store.Tx) { tx.InsertGroup(g) })
		}
		f.is(insert(f, "Käufer", ptr("1")), nil)
		f.is(insert(f, "KÄUFER", nil), rolecall.ErrGroupNameTaken)
		f.is(insert(f, "Sales", ptr("1")), rolecall.ErrGroupExternalIDTaken)
		f.is(insert(f, "Sales", nil), nil)
		f.is(insert(f, "Support", nil), nil)
		f.is(insert(f.in(f.newTenant("other")), "Käufer", ptr("1")), nil)
	}},
	{"A change replaces name, description and external ID, and a stale one is refused", func(f *fixture) {
		old := f.newGroup("Support")
		changed := old
		changed.Name, changed.Description, changed.ExternalID, changed.UpdatedAt, changed.Version = "Help desk", "Answers", ptr("7"), start+1, old.Version+1
		same(f, f.changeGroup(old, changed), true)
		same(f, f.group(old.ID), changed)
		same(f, f.changeGroup(old, changed), false)
		same(f, f.groupNames(rolecall.GroupQuery{Words: []string{"support"}}), []string{})
		same(f, f.groupNames(rolecall.GroupQuery{Words: []string{"desk", "h"}}), []string{"Help desk"})
		same(f, f.groupNames(rolecall.GroupQuery{ExternalID: "7"}), []string{"Help desk"})
	}},
	{"Groups are listed by creation and by name, in pages", func(f *fixture) {
		for _, name := range []string{"Bravo", "Charlie", "Alpha"} {
			f.newGroup(name)
		}
		f.hideGroup(f.newGroup("Hidden"))
		same(f, f.groupNames(rolecall.GroupQuery{}), []string{"Bravo", "Charlie", "Alpha"})
		same(f, f.groupNames(rolecall.GroupQuery{ByName: true}), []string{"Alpha", "Bravo", "Charlie"})
		same(f, f.groupNames(rolecall.GroupQuery{ByName: true, Desc: true}), []string{"Charlie", "Bravo", "Alpha"})
	}},
	{"A user is in a group once, and leaves it", func(f *fixture) {
		u, g, other := f.newUser("Ada Lovelace"), f.newGroup("Support"), f.newGroup("Sales")
		m := rolecall.Membership{Group: nameOf(g), User: u.ID, AddedBy: u.ID, AddedAt: start}
		same(f, f.join(m), true)
		same(f, f.join(m), false)
		second := rolecall.Membership{Group: nameOf(other), User: u.ID, AddedAt: start + 1}
		same(f, f.join(second), true)
		same(f, f.memberships(u.ID), []rolecall.Membership{m, second})
		same(f, read(f, func(tx *store.Tx) (rolecall.Membership, error) { return tx.Membership(u.ID, g.ID) }), m)
		same(f, f.leaveGroup(u, g, start+hour), true)
		same(f, f.leaveGroup(u, g, start+hour), false)
		same(f, f.memberships(u.ID), []rolecall.Membership{second})
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Membership, error) { return tx.Membership(u.ID, g.ID) })
		f.is(err, rolecall.ErrNotFound)
	}},
	{"The groups of a source are found by name and by external id, with those of a user", groupsOfSources},
	{"Only users and groups that exist can be joined", func(f *fixture) {
		u, g := f.newUser("Ada Lovelace"), f.newGroup("Support")
		for _, m := range []rolecall.Membership{{Group: nameOf(g), User: aUser("None").ID}, {Group: nameOf(aGroup("None")), User: u.ID}} {
			f.is(f.tryUpdate(func(tx *store.Tx) error {
				_, err := tx.AddMember(m)
				return err
			}), rolecall.ErrNotFound)
		}
		role := f.newRole("Agent")
		f.is(f.tryWrite(func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(aGroup("None"), role)) }), rolecall.ErrNotFound)
	}},
	{"A user has the roles of the own groups, one item for each way", throughGroups},
	{"Lists by role, by group and by permission include members of groups", listsThroughGroups},
	{"A session and a token have the groups without roles too", func(f *fixture) {
		u, g := f.newUser("Ada Lovelace"), f.newGroup("Support")
		f.join(rolecall.Membership{Group: nameOf(g), User: u.ID, AddedAt: start})
		_, hash := f.signIn(u, start)
		state := read(f, func(tx *store.Tx) (rolecall.SessionState, error) { return tx.SessionWithRoles(hash, rolecall.MaxScan) })
		same(f, state.Groups, []rolecall.GroupName{nameOf(g)})
		same(f, len(state.Assignments), 0)
	}},
	{"The roles that a user had through groups at a time are known", historyOfGroups},
	{"A hidden group gives no roles, and its members are deleted step by step", func(f *fixture) {
		users, g, role := f.crowd(5), f.newGroup("Support"), f.newRole("Agent")
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(g, role)) })
		for _, u := range users {
			f.join(rolecall.Membership{Group: nameOf(g), User: u.ID, AddedAt: start})
		}
		_, _, err := f.hiddenGroup()
		f.is(err, rolecall.ErrNotFound)
		event := rolecall.NewID[rolecall.Event](start)
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.HideGroup(g, event, start+hour) }), true)
		name, deletion, err := f.hiddenGroup()
		f.is(err, nil)
		same(f, name, nameOf(g))
		same(f, deletion.ID, event)
		same(f, len(f.assignments(users[0].ID)), 0)
		same(f, len(f.memberships(users[0].ID)), 0)
		same(f, len(f.assignmentsAt(users[0].ID, start+minute)), 1)
		f.newGroup("Support")
		for _, want := range []int{3, 2, 0} {
			deleted := change(f, func(tx *store.Tx) ([]rolecall.Membership, error) { return tx.DeleteMembers(name, start+hour, 3) })
			same(f, len(deleted), want)
		}
		f.write(func(tx *store.Tx) { tx.DeleteHiddenGroup(g.ID) })
		_, _, err = f.hiddenGroup()
		f.is(err, rolecall.ErrNotFound)
		same(f, len(f.assignmentsAt(users[0].ID, start+minute)), 1)
	}},
	{"Deleting a user ends the memberships, and the tombstone has the groups", func(f *fixture) {
		u, g, role, own := f.newUser("Ada Lovelace"), f.newGroup("Support"), f.newRole("Agent"), f.newRole("Own")
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(g, role)) })
		f.join(rolecall.Membership{Group: nameOf(g), User: u.ID, AddedAt: start})
		f.assign(u, own)
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteUser(u, start+hour) }), true)
		stone := read(f, func(tx *store.Tx) (rolecall.Tombstone, error) { return tx.Tombstone(u.ID, start) })
		same(f, stone.Groups, []rolecall.GroupID{g.ID})
		same(f, len(stone.Assignments), 1)
		same(f, stone.Assignments[0].Role.ID, own.ID)
		same(f, len(f.assignmentsAt(u.ID, start+minute)), 2)
		f.write(func(tx *store.Tx) {
			tx.InsertUser(u)
			tx.InsertMemberships([]rolecall.Membership{{Group: nameOf(g), User: u.ID, AddedAt: start + 2*hour}})
		})
		same(f, len(f.assignments(u.ID)), 1)
	}},
	{"The groups lose a role together", func(f *fixture) {
		role, u := f.newRole("Agent"), f.newUser("Ada Lovelace")
		for i := range 3 {
			g := f.newGroup(fmt.Sprintf("Group %d", i))
			f.write(func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(g, role)) })
			f.join(rolecall.Membership{Group: nameOf(g), User: u.ID, AddedAt: start})
		}
		same(f, read(f, (*store.Tx).CountGroupRoles), 3)
		same(f, read(f, func(tx *store.Tx) (bool, error) { return tx.RoleInUse(role.ID, start) }), true)
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.HideRole(role, rolecall.NewID[rolecall.Event](start)) }), true)
		deleted := change(f, func(tx *store.Tx) ([]rolecall.Assignment, error) { return tx.DeleteGroupRoles(role.ID, start+hour) })
		same(f, len(deleted), 3)
		same(f, deleted[0].Holder.Kind, rolecall.HolderGroup)
		same(f, read(f, (*store.Tx).CountGroupRoles), 0)
		same(f, len(f.assignments(u.ID)), 0)
		same(f, read(f, func(tx *store.Tx) (bool, error) { return tx.HadHolders(role.ID) }), true)
	}},
	{"Past memberships and roles of groups are purged", func(f *fixture) {
		u, g, role := f.newUser("Ada Lovelace"), f.newGroup("Support"), f.newRole("Agent")
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(g, role)) })
		f.join(rolecall.Membership{Group: nameOf(g), User: u.ID, AddedAt: start})
		same(f, f.leaveGroup(u, g, start+hour), true)
		same(f, change(f, func(tx *store.Tx) (bool, error) {
			return tx.DeleteAssignment(rolecall.HolderOf(g.ID), role.ID, start+hour)
		}), true)
		purge := func(before rolecall.Time) int {
			return change(f, func(tx *store.Tx) (int, error) { return tx.PurgeExpired(start+hour, before, 100) })
		}
		same(f, purge(start+hour), 0)
		same(f, len(f.assignmentsAt(u.ID, start+minute)), 1)
		same(f, purge(start+2*hour), 2)
		same(f, len(f.assignmentsAt(u.ID, start+minute)), 0)
	}},
}

// throughGroups compares what each reader of assignments returns.
func throughGroups(f *fixture) {
	u, stranger := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
	first, second := f.newGroup("Support"), f.newGroup("Sales")
	role, other := f.newRole("Agent"), f.newRole("Seller")
	direct := f.assign(u, role)
	f.assign(stranger, other)
	want := []rolecall.Assignment{direct}
	for _, a := range []rolecall.Assignment{ofGroup(first, role), ofGroup(second, role), ofGroup(second, other)} {
		a.Reach, a.ExpiresAt, a.GrantedBy = rolecall.Within("Ops"), start+hour, stranger.ID
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
		same(f, slices.ContainsFunc(f.assignmentsOf(a.Holder), func(b rolecall.Assignment) bool { return b.Role.ID == a.Role.ID && b.Through == rolecall.GroupName{} }), true)
		g := map[rolecall.AnyID]rolecall.Group{rolecall.AnyID(first.ID): first, rolecall.AnyID(second.ID): second}[a.Holder.ID]
		a.Holder, a.Through = rolecall.HolderOf(u.ID), nameOf(g)
		want = append(want, a)
	}
	for _, g := range []rolecall.Group{second, first} {
		f.join(rolecall.Membership{Group: nameOf(g), User: u.ID, AddedAt: start})
	}
	same(f, f.assignments(u.ID), want)
	same(f, read(f, func(tx *store.Tx) ([]rolecall.Assignment, error) { return tx.DirectAssignments(u.ID) }), want[:1])
	same(f, len(f.assignments(stranger.ID)), 1)
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.Assignment, error) {
		return tx.Assignment(rolecall.HolderOf(u.ID), other.ID)
	})
	f.is(err, rolecall.ErrNotFound)

	groups := []rolecall.GroupName{nameOf(first), nameOf(second)}
	_, hash := f.signIn(u, start)
	session := read(f, func(tx *store.Tx) (rolecall.SessionState, error) { return tx.SessionWithRoles(hash, rolecall.MaxScan) })
	same(f, session.Assignments, want)
	same(f, session.Groups, groups)
	same(f, session.User.Metadata, u.Metadata)
	tokenHash := aHash()
	token := tokenOfUser(u)
	f.write(func(tx *store.Tx) { tx.InsertAPIToken(token, tokenHash) })
	state := read(f, func(tx *store.Tx) (rolecall.APITokenState, error) {
		return tx.APITokenByHash(tokenHash, rolecall.MaxScan)
	})
	same(f, state.Assignments, want)
	same(f, state.Groups, groups)
	same(f, state.Token.Permissions, token.Permissions)

	names := read(f, func(tx *store.Tx) (map[rolecall.UserID][]rolecall.Role, error) {
		return tx.RoleNames([]rolecall.UserID{u.ID, stranger.ID}, start)
	})
	same(f, names, map[rolecall.UserID][]rolecall.Role{
		u.ID:        {{ID: role.ID, Name: role.Name}, {ID: other.ID, Name: other.Name}},
		stranger.ID: {{ID: other.ID, Name: other.Name}},
	})
}

// listsThroughGroups compares the lists of users with a role, in a group, and with a permission.
func listsThroughGroups(f *fixture) {
	users, g, role := f.crowd(12), f.newGroup("Support"), f.newRole("Agent")
	expiring := f.newRole("Expired")
	f.write(func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(g, role)) })
	old := ofGroup(g, expiring)
	old.ExpiresAt = start
	f.write(func(tx *store.Tx) { tx.UpsertAssignment(old) })
	var direct, members, all []rolecall.UserID
	for i, u := range users {
		if i%3 == 0 {
			f.assign(u, role)
			direct = append(direct, u.ID)
		}
		if i%2 == 0 {
			f.join(rolecall.Membership{Group: nameOf(g), User: u.ID, AddedAt: start})
			members = append(members, u.ID)
		}
		if i%3 == 0 || i%2 == 0 {
			all = append(all, u.ID)
		}
	}
	q := everyone()
	q.Now, q.Limit, q.Role = start, 2, role.ID
	same(f, ids(f.readAll(q, nil)), all)
	q.Direct = true
	same(f, ids(f.readAll(q, nil)), direct)
	q.Direct, q.Role = false, expiring.ID
	same(f, len(f.readAll(q, nil)), 0)
	q.Role, q.Group, q.Count = rolecall.RoleID{}, g.ID, true
	same(f, ids(f.readAll(q, nil)), members)
	same(f, read(f, func(tx *store.Tx) (rolecall.Page[rolecall.User], error) { return tx.Users(q) }).Total, &rolecall.Total{Count: len(members), Exact: true})
	q.Sort = rolecall.SortByName
	same(f, len(f.readAll(q, nil)), len(members))
	q.Group = aGroup("None").ID
	same(f, len(f.readAll(q, nil)), 0)

	may := access(rolecall.UsersRead)
	may.Limit = 2
	same(f, ids(f.usersWithAccess(may, nil)), all)
	ways := f.accessAssignments(may, users[0].ID, users[2].ID)
	same(f, len(ways), 3)
	same(f, []rolecall.GroupName{ways[0].Through, ways[1].Through, ways[2].Through}, []rolecall.GroupName{{}, nameOf(g), nameOf(g)})
	f.hideGroup(g)
	same(f, ids(f.usersWithAccess(may, nil)), direct)
}

// historyOfGroups reads the assignments at times before and after each change.
func historyOfGroups(f *fixture) {
	u, g, role := f.newUser("Ada Lovelace"), f.newGroup("Support"), f.newRole("Agent")
	at := func(minutes rolecall.Time) rolecall.Time { return start + minutes*minute }
	held := func(when rolecall.Time) (ways []string) {
		for _, a := range f.assignmentsAt(u.ID, when) {
			ways = append(ways, a.Role.Name+" through "+a.Through.Name)
		}
		q := everyone()
		q.Role, q.HeldAt = role.ID, when
		same(f, len(f.readAll(q, nil)), len(ways))
		q.Direct = true
		same(f, len(f.readAll(q, nil)), 0)
		return ways
	}
	give := ofGroup(g, role)
	give.GrantedAt = at(10)
	f.write(func(tx *store.Tx) { tx.UpsertAssignment(give) })
	f.join(rolecall.Membership{Group: nameOf(g), User: u.ID, AddedAt: at(20)})
	yes := []string{"Agent through Support"}
	same(f, held(at(15)), nil)
	same(f, held(at(20)), yes)
	same(f, f.leaveGroup(u, g, at(30)), true)
	same(f, held(at(25)), yes)
	same(f, held(at(30)), nil)
	f.join(rolecall.Membership{Group: nameOf(g), User: u.ID, AddedAt: at(40)})
	same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteAssignment(rolecall.HolderOf(g.ID), role.ID, at(50)) }), true)
	same(f, held(at(25)), yes)
	same(f, held(at(45)), yes)
	same(f, held(at(50)), nil)
	same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteRole(role) }), true)
	f.hideGroup(g)
	f.update(func(tx *store.Tx) error {
		name, _, err := tx.HiddenGroup()
		if err == nil {
			_, err = tx.DeleteMembers(name, at(60), 10)
			tx.DeleteHiddenGroup(g.ID)
		}
		return err
	})
	same(f, held(at(25)), yes)
	same(f, held(at(45)), yes)
	same(f, held(at(55)), nil)
}

func aGroup(name string) rolecall.Group {
	return rolecall.Group{ID: rolecall.NewID[rolecall.Group](start), Name: name, CreatedAt: start, UpdatedAt: start, Version: 1}
}

func nameOf(g rolecall.Group) rolecall.GroupName { return rolecall.GroupName{ID: g.ID, Name: g.Name} }

func ofGroup(g rolecall.Group, role rolecall.Role) rolecall.Assignment {
	return rolecall.Assignment{Holder: rolecall.HolderOf(g.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
}

func (f *fixture) newGroup(name string) rolecall.Group {
	f.Helper()
	g := aGroup(name)
	f.write(func(tx *store.Tx) { tx.InsertGroup(g) })
	return g
}

func (f *fixture) group(id rolecall.GroupID) rolecall.Group {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Group, error) { return tx.GroupByID(id) })
}

func (f *fixture) changeGroup(old, changed rolecall.Group) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateGroup(old, changed) })
}

func (f *fixture) hideGroup(g rolecall.Group) {
	f.Helper()
	same(f, change(f, func(tx *store.Tx) (bool, error) {
		return tx.HideGroup(g, rolecall.NewID[rolecall.Event](start), start+hour)
	}), true)
}

func (f *fixture) hiddenGroup() (name rolecall.GroupName, deletion rolecall.Event, err error) {
	name, err = tryRead(f, func(tx *store.Tx) (g rolecall.GroupName, err error) {
		g, deletion, err = tx.HiddenGroup()
		return g, err
	})
	return name, deletion, err
}

// groupNames returns the names of all groups that q selects, read in pages of two.
func (f *fixture) groupNames(q rolecall.GroupQuery) []string {
	f.Helper()
	names := []string{}
	for _, g := range everyPage(f, 2, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.Group], error) {
		q.After, q.Limit = after, 2
		return tx.Groups(q)
	}, nil) {
		names = append(names, g.Name)
	}
	return names
}

func (f *fixture) join(m rolecall.Membership) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.AddMember(m) })
}

func (f *fixture) leaveGroup(u rolecall.User, g rolecall.Group, at rolecall.Time) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.RemoveMember(u.ID, g.ID, at) })
}

func (f *fixture) memberships(user rolecall.UserID) []rolecall.Membership {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.Membership, error) { return tx.Memberships(user) })
}

func (f *fixture) assignmentsAt(user rolecall.UserID, at rolecall.Time) []rolecall.Assignment {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.Assignment, error) { return tx.AssignmentsAt(user, at) })
}

// groupsOfSources joins and leaves groups of two sources that have the same names.
func groupsOfSources(f *fixture) {
	u := f.newUser("Ada Lovelace")
	ours, other := rolecall.SourceOf(rolecall.NewID[rolecall.Connection](start)), rolecall.SourceOf(rolecall.NewID[rolecall.Connection](start))
	var groups []rolecall.Group
	for i, source := range []rolecall.MemberSource{ours, ours, ours, other, {}} {
		g := aGroup([]string{"Engineers", "Sales", "Support", "Engineers", "Engineers"}[i])
		g.Source, g.ExternalID = source, ptr(fmt.Sprint(i%3))
		f.write(func(tx *store.Tx) { tx.InsertGroup(g) })
		groups = append(groups, g)
	}
	find := func(source rolecall.MemberSource, by rolecall.GroupMatch, values ...string) (joined, named []rolecall.Group) {
		joined = read(f, func(tx *store.Tx) (_ []rolecall.Group, err error) {
			joined, named, err = tx.GroupsOfSource(source, u.ID, by, values)
			return joined, err
		})
		byID := func(a, b rolecall.Group) int { return strings.Compare(a.ID.String(), b.ID.String()) }
		slices.SortFunc(joined, byID)
		slices.SortFunc(named, byID)
		return joined, named
	}
	joined, named := find(ours, rolecall.MatchName, "engineers", "support", "unknown")
	same(f, len(joined), 0)
	same(f, named, []rolecall.Group{groups[0], groups[2]})
	f.write(func(tx *store.Tx) {
		tx.JoinGroups([]rolecall.Membership{
			{Group: nameOf(groups[1]), User: u.ID, AddedAt: start}, {Group: nameOf(groups[2]), User: u.ID, AddedAt: start}, {Group: nameOf(groups[3]), User: u.ID, AddedAt: start},
		})
	})
	role := f.newRole("Agent")
	f.write(func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(groups[1], role)) })
	same(f, len(f.assignments(u.ID)), 1)
	joined, named = find(ours, rolecall.MatchExternalID, "2")
	same(f, joined, []rolecall.Group{groups[1], groups[2]})
	same(f, named, []rolecall.Group{groups[2]})
	joined, named = find(rolecall.MemberSource{}, rolecall.MatchName, "engineers")
	same(f, len(joined), 0)
	same(f, named, []rolecall.Group{groups[4]})
	f.write(func(tx *store.Tx) {
		tx.LeaveGroups(u.ID, []rolecall.GroupID{groups[0].ID, groups[1].ID, groups[2].ID}, start+hour)
	})
	joined, named = find(ours, rolecall.MatchName)
	same(f, len(joined)+len(named), 0)
	same(f, len(f.memberships(u.ID)), 1)
	same(f, len(f.assignments(u.ID)), 0)
	same(f, len(f.assignmentsAt(u.ID, start+minute)), 1)
}

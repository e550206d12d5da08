package directory_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// newGroup creates a group as the owner, and gives it the roles.
func newGroup(f *nodetest.Fixture, holds ...nodetest.Held) rolecall.Group {
	f.Helper()
	created, err := f.Directory.CreateGroup(f.Context(), f.Owner, nodetest.NewKey(), rolecall.GroupDraft{Name: fmt.Sprintf("Group %d", nodetest.Serial.Add(1))})
	f.OK(err)
	for _, h := range holds {
		giveGroup(f, created.Value.ID, h)
	}
	return created.Value
}

// giveGroup writes an assignment of a role to the group to the store. It can have expired.
func giveGroup(f *nodetest.Fixture, group rolecall.GroupID, h nodetest.Held) rolecall.Role {
	f.Helper()
	draft := h.Draft()
	a := rolecall.Assignment{
		Holder: rolecall.HolderOf(group), Role: f.InsertRole(h), Reach: draft.Reach(), ExpiresAt: draft.Expiry(), GrantedAt: nodetest.Start,
	}
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.UpsertAssignment(a)
		return nil
	}))
	return a.Role
}

func join(f *nodetest.Fixture, group rolecall.GroupID, user rolecall.UserID) {
	f.Helper()
	f.OK(f.Directory.AddMember(f.Context(), f.Owner, group, user))
}

func person(f *nodetest.Fixture) rolecall.User {
	user, _ := f.Person("")
	return user
}

// member creates a user who is in a group with the roles.
func member(f *nodetest.Fixture, holds ...nodetest.Held) rolecall.User {
	f.Helper()
	user := person(f)
	join(f, newGroup(f, holds...).ID, user.ID)
	return user
}

func addMember(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		return f.Directory.AddMember(f.Context(), c, newGroup(f, holds...).ID, person(f).ID)
	}
}

func joinSelf(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		return f.Directory.AddMember(f.Context(), c, newGroup(f, holds...).ID, c.User.ID)
	}
}

func removeMember(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user, group := person(f), newGroup(f, holds...)
		join(f, group.ID, user.ID)
		return f.Directory.RemoveMember(f.Context(), c, group.ID, user.ID)
	}
}

func giveToGroup(h nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(newGroup(f).ID), f.InsertRole(h).ID, h.Draft()))
	}
}

func giveToOwnGroup(h nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		group := newGroup(f)
		join(f, group.ID, c.User.ID)
		return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(group.ID), f.InsertRole(h).ID, h.Draft()))
	}
}

func takeFromGroup(h nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		group := newGroup(f)
		return f.Directory.UnassignRole(f.Context(), c, rolecall.HolderOf(group.ID), giveGroup(f, group.ID, h).ID)
	}
}

// editRoleOfOwnGroup adds permissions to a role that the caller has through a group.
func editRoleOfOwnGroup(h nodetest.Held, more ...string) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		group := newGroup(f)
		role := giveGroup(f, group.ID, h)
		join(f, group.ID, c.User.ID)
		return nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), c, role.ID, rolecall.RolePatch{Permissions: rolecall.Some(slices.Concat(h.Permissions, more))}, nil))
	}
}

func deleteGroup(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		return f.Directory.DeleteGroup(f.Context(), c, newGroup(f, holds...).ID, true, nil)
	}
}

func inviteMember(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		return nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), c, nodetest.NewKey(), member(f, holds...).ID))
	}
}

func suspendMember(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		return nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), c, member(f, holds...).ID, ""))
	}
}

// eraseMember erases a deleted user who was in a group with the roles.
func eraseMember(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user := member(f, holds...)
		f.DeleteUser(user.ID)
		return f.Directory.EraseUser(f.Context(), c, user.ID, "")
	}
}

var ceilingOfGroups = []ceilingCase{
	{"add to a group without roles", nodetest.Roles(), addMember(), false},
	{"add to a group whose permissions the caller has", nodetest.Roles(nodetest.Approver), addMember(nodetest.Approver), false},
	{"add to a group whose permissions the caller can delegate", nodetest.Roles(nodetest.Appointer), addMember(nodetest.Approver), false},
	{"add to a group with one role that the caller cannot assign", nodetest.Roles(nodetest.Approver), addMember(nodetest.Approver, nodetest.Auditor), true},
	{"add to a group with an expired role that the caller cannot assign", nodetest.Roles(nodetest.Approver), addMember(nodetest.Approver, nodetest.Auditor.To(nodetest.Start)), false},
	{"add to a group with permissions in Sales that the caller has there", nodetest.Roles(nodetest.Approver.Within("Sales")), addMember(nodetest.Approver.Within("Sales")), false},
	{"add to a group with permissions everywhere that the caller has in Sales", nodetest.Roles(nodetest.Approver.Within("Sales")), addMember(nodetest.Approver), true},
	{"add to a group for longer than the caller has the permissions", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), addMember(nodetest.Approver), true},
	{"join a group whose permissions the caller has", nodetest.Roles(nodetest.Approver), joinSelf(nodetest.Approver), false},
	{"join a group whose permissions the caller can only delegate", nodetest.Roles(nodetest.Appointer), joinSelf(nodetest.Approver), true},

	{"remove from a group whose permissions the caller can delegate", nodetest.Roles(nodetest.Appointer), removeMember(nodetest.Approver), false},
	{"remove from a group whose permissions the caller lacks", nodetest.Roles(nodetest.Approver), removeMember(nodetest.Auditor), true},

	{"give a group permissions that the caller has", nodetest.Roles(nodetest.Approver), giveToGroup(nodetest.Approver), false},
	{"give a group permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), giveToGroup(nodetest.Approver), false},
	{"give a group permissions that the caller lacks", nodetest.Roles(nodetest.Auditor), giveToGroup(nodetest.Approver), true},
	{"give the own group permissions that the caller has", nodetest.Roles(nodetest.Approver), giveToOwnGroup(nodetest.Approver), false},
	{"give the own group everywhere permissions that the caller has in Sales", nodetest.Roles(nodetest.Approver.Within("Sales"), nodetest.Appointer), giveToOwnGroup(nodetest.Approver), true},
	{"give the own group permissions for longer than the caller has them", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow), nodetest.Appointer), giveToOwnGroup(nodetest.Approver), true},
	{"give the own group permissions that the caller can only delegate", nodetest.Roles(nodetest.Appointer), giveToOwnGroup(nodetest.Approver), true},
	{"take from a group permissions that the caller has", nodetest.Roles(nodetest.Approver), takeFromGroup(nodetest.Approver), false},
	{"take from a group permissions that the caller lacks", nodetest.Roles(nodetest.Approver), takeFromGroup(nodetest.Auditor), true},

	{"add to a role of the own group permissions that the caller has", nodetest.Roles(nodetest.Approver, nodetest.Auditor), editRoleOfOwnGroup(nodetest.Auditor, "shop/invoices:approve"), false},
	{"add to a role of the own group permissions that the caller can only delegate", nodetest.Roles(nodetest.Appointer, nodetest.Auditor), editRoleOfOwnGroup(nodetest.Auditor, "shop/invoices:approve"), true},

	{"delete a group whose permissions the caller has", nodetest.Roles(nodetest.Approver), deleteGroup(nodetest.Approver), false},
	{"delete a group whose permissions the caller lacks", nodetest.Roles(nodetest.Approver), deleteGroup(nodetest.Approver, nodetest.Auditor), true},

	{"invite a user who has permissions through a group that the caller has", nodetest.Roles(nodetest.Approver), inviteMember(nodetest.Approver), false},
	{"invite a user who has permissions through a group that the caller lacks", nodetest.Roles(nodetest.Approver), inviteMember(nodetest.Auditor), true},
	{"erase a deleted user who had permissions of Rolecall through a group that the caller lacks", nodetest.Roles(nodetest.Approver), eraseMember(nodetest.Auditor), true},
	{"erase a deleted user who had permissions of Rolecall through a group that the caller has", nodetest.Roles(nodetest.Auditor), eraseMember(nodetest.Auditor), false},
	{"suspend a user who has permissions of Rolecall through a group that the caller lacks", nodetest.Roles(nodetest.Approver), suspendMember(nodetest.Auditor), true},
}

// The ways in which a member can gain or lose a permission through a group, on a session that is in the cache.
func TestMembersHaveTheRolesOfTheirGroups(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role, group := f.NewRole("Approver", "shop/invoices:approve"), newGroup(f)
		user := f.NewMember("ada")
		token := f.LogIn("ada").Token
		may := func(want bool) {
			t.Helper()
			p, err := f.Authenticate(f.Node, token)
			f.OK(err)
			if got := p.Holds(role.Permissions[0], nil); got != want {
				t.Errorf("may approve is %v", got)
			}
		}
		ofGroup := rolecall.HolderOf(group.ID)
		give := func() {
			f.OK(nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, ofGroup, role.ID, rolecall.AssignmentDraft{})))
		}
		may(false)
		join(f, group.ID, user.ID)
		may(false)
		give()
		may(true)
		f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, ofGroup, role.ID))
		may(false)
		give()
		may(true)
		f.OK(f.Directory.RemoveMember(f.Context(), f.Owner, group.ID, user.ID))
		may(false)
		join(f, group.ID, user.ID)
		may(true)
		f.SetPermissions(role.ID, "shop/invoices:read")
		may(false)
		f.SetPermissions(role.ID, "shop/invoices:approve")
		may(true)
		f.Is(f.Directory.DeleteGroup(f.Context(), f.Owner, group.ID, false, nil), rolecall.ErrGroupHasRoles)
		f.OK(f.Directory.DeleteGroup(f.Context(), f.Owner, group.ID, true, nil))
		may(false)
	})
}

// A caller who may assign roles in one department adds users of others to groups without roles only.
func TestMembersOfGroupsWithRolesNeedRolesAssign(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c := f.CallerWith(nodetest.Holding("users:*", "groups:*", "shop/invoices:approve"), nodetest.Holding("roles:assign").Within("Sales"))
		plain, approvers := newGroup(f), newGroup(f, nodetest.Approver)
		inside, _ := f.Person("Sales")
		outside, _ := f.Person("Support")
		f.OK(f.Directory.AddMember(f.Context(), c, plain.ID, outside.ID))
		f.OK(f.Directory.AddMember(f.Context(), c, approvers.ID, inside.ID))
		f.Is(f.Directory.AddMember(f.Context(), c, approvers.ID, outside.ID), rolecall.ErrPermissionDenied)
		join(f, approvers.ID, outside.ID)
		f.Is(f.Directory.RemoveMember(f.Context(), c, approvers.ID, outside.ID), rolecall.ErrPermissionDenied)
		f.DeleteUser(outside.ID)
		restored, err := f.Directory.RestoreUser(f.Context(), c, outside.ID)
		f.OK(err)
		if want := []rolecall.GroupID{approvers.ID}; !slices.Equal(restored.GroupsNotRestored, want) {
			t.Errorf("not restored: %v, want %v", restored.GroupsNotRestored, want)
		}
	})
}

func TestADeletedGroupKeepsItsNameInTheLog(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		group := newGroup(f, nodetest.Approver)
		f.OK(f.Directory.DeleteGroup(f.Context(), f.Owner, group.ID, true, nil))
		names, err := f.Directory.Names(f.Context(), f.Owner, []rolecall.AnyID{rolecall.AnyID(group.ID)})
		f.OK(err)
		if got, want := names[rolecall.AnyID(group.ID)], (directory.Named{Name: group.Name, Deleted: true}); got != want {
			t.Errorf("the name is %+v, not %+v", got, want)
		}
	})
}

func TestOwnerIsNotGivenToAGroup(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.Is(nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(newGroup(f).ID), f.OwnerRole(), rolecall.AssignmentDraft{})), rolecall.ErrOwnerNeedsUser)
	})
}

// A group with more members than one transaction removes loses its roles at once, and each member gets an event, although
// two processes remove the members at the same time.
func TestALargeGroupIsDeletedInSteps(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		const members = 2*access.BatchSize + 20
		group := newGroup(f, nodetest.Approver)
		var users []rolecall.User
		var memberships []rolecall.Membership
		for range members {
			draft := rolecall.UserDraft{Email: fmt.Sprintf("member-%d@example.com", nodetest.Serial.Add(1)), Name: "A Member"}
			user := draft.User(nodetest.Start)
			users = append(users, user)
			memberships = append(memberships, rolecall.Membership{Group: rolecall.GroupName{ID: group.ID}, User: user.ID, AddedAt: nodetest.Start})
		}
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.InsertUsers(users)
			tx.InsertMemberships(memberships)
			return nil
		}))
		f.Clock.Advance(time.Minute)
		f.OK(f.Directory.DeleteGroup(f.Context(), f.Owner, group.ID, true, nil))
		_, err := f.Directory.Group(f.Context(), f.Owner, group.ID)
		f.Is(err, rolecall.ErrNotFound)
		last := users[members-1].ID
		held, _, err := f.Directory.Assignments(f.Context(), f.Owner, rolecall.HolderOf(last))
		f.OK(err)
		if len(held) > 0 {
			t.Errorf("a member has %d roles of the deleted group", len(held))
		}
		if ended := f.InParallel(2, func(int) error {
			for more := access.BatchSize; more > 0; {
				if err := f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
					more, err = f.Directory.ContinueDeletions(tx)
					return err
				}); err != nil {
					return err
				}
			}
			return nil
		}); ended[nil] != 2 {
			t.Errorf("the deletion ended with %v", ended)
		}
		removed := 0
		for after := (*rolecall.Position)(nil); ; {
			page, err := f.Directory.Events(f.Context(), f.Owner, directory.EventListing{Type: string(rolecall.EventMemberRemoved), After: after, Limit: rolecall.MaxLimit})
			f.OK(err)
			removed += len(page.Items)
			if after = page.Next; after == nil {
				break
			}
		}
		if removed != members {
			t.Errorf("%d events of members, not %d", removed, members)
		}
	})
}

func TestGroupsAreLimited(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := person(f)
		groups := make([]rolecall.Group, rolecall.GroupsMax)
		roles := storeRoles(f, rolecall.GroupRolesMax+1)
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for i := range groups {
				draft := rolecall.GroupDraft{Name: fmt.Sprintf("Stored %d", i)}
				groups[i] = draft.Group(nodetest.Start)
				tx.InsertGroup(groups[i])
			}
			for _, role := range roles[:rolecall.GroupRolesMax] {
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(groups[0].ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: nodetest.Start})
			}
			return nil
		}))
		f.Is(nodetest.ErrorOf(f.Directory.CreateGroup(f.Context(), f.Owner, nodetest.NewKey(), rolecall.GroupDraft{Name: "One more"})), rolecall.ErrLimitReached)
		for _, g := range groups[1 : 1+rolecall.GroupsOfUserMax] {
			join(f, g.ID, user.ID)
		}
		f.Is(f.Directory.AddMember(f.Context(), f.Owner, groups[rolecall.GroupsOfUserMax+1].ID, user.ID), rolecall.ErrLimitReached)
		join(f, groups[1].ID, user.ID) // a member already
		assign := func(role rolecall.Role, departments int) error {
			var names []string
			for i := range departments {
				names = append(names, fmt.Sprintf("Department %d", i))
			}
			return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(groups[0].ID), role.ID, rolecall.AssignmentDraft{Departments: names}))
		}
		f.OK(assign(roles[0], rolecall.GroupReachMax))
		f.Is(assign(roles[0], rolecall.GroupReachMax+1), rolecall.ErrLimitReached)
		f.Is(assign(roles[rolecall.GroupRolesMax], 1), rolecall.ErrLimitReached)
	})
}

// A page of assignments continues after each of several ways in which a user has a role.
func TestPagesOfAssignmentsContinueBetweenWays(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, role := person(f), f.NewRole("Approver", "shop/invoices:approve")
		end := nodetest.Tomorrow
		f.Assign(user.ID, role.ID, rolecall.AssignmentDraft{})
		for i := range 4 {
			group, draft := newGroup(f), rolecall.AssignmentDraft{}
			if i%2 == 1 {
				draft.ExpiresAt = &end
			}
			f.OK(nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(group.ID), role.ID, draft)))
			join(f, group.ID, user.ID)
		}
		f.Clock.Advance(25 * time.Hour)
		f.Owner.Principal = f.LogIn("owner").Principal
		live, expired, err := f.Directory.Assignments(f.Context(), f.Owner, rolecall.HolderOf(user.ID))
		f.OK(err)
		want, got := slices.Concat(live, expired), []rolecall.Assignment(nil)
		if len(live) != 3 || len(expired) != 2 {
			t.Fatalf("%d live and %d expired", len(live), len(expired))
		}
		for after := (*rolecall.Position)(nil); ; {
			page, err := f.Directory.AssignmentPage(f.Context(), f.Owner, rolecall.HolderOf(user.ID), directory.AssignmentListing{IncludeExpired: true, After: after, Limit: 1})
			f.OK(err)
			got = append(got, page.Items...)
			if after = page.Next; after == nil {
				break
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d assignments, not %d", len(got), len(want))
		}
		for i := range want {
			if got[i].Through != want[i].Through {
				t.Errorf("%d: through %q, not %q", i, got[i].Through.Name, want[i].Through.Name)
			}
		}
	})
}

func TestARestoredUserIsInTheGroupsThatTheCallerMayGive(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		caller := f.CallerWith(nodetest.Holding("users:*", "groups:*", "roles:*", "shop/invoices:approve"))
		user := person(f)
		mine, above, gone := newGroup(f, nodetest.Approver), newGroup(f, nodetest.Auditor), newGroup(f)
		for _, g := range []rolecall.Group{mine, above, gone} {
			join(f, g.ID, user.ID)
		}
		f.DeleteUser(user.ID)
		f.OK(f.Directory.DeleteGroup(f.Context(), f.Owner, gone.ID, false, nil))
		restored, err := f.Directory.RestoreUser(f.Context(), caller, user.ID)
		f.OK(err)
		if want := []rolecall.GroupID{above.ID, gone.ID}; !slices.Equal(restored.GroupsNotRestored, want) || !restored.GroupsReadable {
			t.Errorf("not restored: %v, want %v", restored.GroupsNotRestored, want)
		}
		page, err := f.Directory.UserGroups(f.Context(), f.Owner, user.ID, nil, 10)
		f.OK(err)
		if len(page.Items) != 1 || page.Items[0].Group.ID != mine.ID {
			t.Errorf("the user is in %v", page.Items)
		}
	})
}

// aSource stores a connection, which can be the source of groups.
func aSource(f *nodetest.Fixture) rolecall.MemberSource {
	f.Helper()
	draft := rolecall.ConnectionDraft{Name: "Acme SSO", Issuer: "https://login.acme.example", ClientID: "rolecall"}
	connection := draft.Connection(nodetest.Start)
	connection.Secret = []byte("sealed")
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertConnection(connection)
		return nil
	}))
	return rolecall.SourceOf(connection.ID)
}

func TestOnlyCallersWhoConfigureConnectionsCreateGroupsWithASource(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		source := aSource(f)
		create := func(c access.Caller, source rolecall.MemberSource) error {
			draft := rolecall.GroupDraft{Name: fmt.Sprintf("Group %d", nodetest.Serial.Add(1)), Source: source}
			created, err := f.Directory.CreateGroup(f.Context(), c, nodetest.NewKey(), draft)
			if err == nil && created.Value.Source != source {
				f.Errorf("the group is %+v", created.Value)
			}
			return err
		}
		creator := f.CallerWith(nodetest.Holding("groups:*"))
		f.OK(create(creator, rolecall.MemberSource{}))
		f.Is(create(creator, source), rolecall.ErrPermissionDenied)
		f.OK(create(f.CallerWith(nodetest.Holding("*:*", "*/*:*")), source))
		f.OK(create(f.Owner, source))
		f.Is(create(f.CallerByToken(f.NewUserToken(f.Owner, "groups:create")), source), rolecall.ErrSessionRequired)
		for _, unknown := range []rolecall.MemberSource{
			rolecall.SourceOf(rolecall.NewID[rolecall.Connection](nodetest.Start)), rolecall.SourceOf(rolecall.NewID[rolecall.Directory](nodetest.Start)),
			{Type: "directory", ID: source.ID}, {Type: "person", ID: source.ID},
		} {
			f.Is(create(f.Owner, unknown), rolecall.ErrValidation)
		}
	})
}

func TestAGroupWithASourceKeepsOnlyRolesAndDescriptionToItself(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		source, user, role := aSource(f), person(f), f.NewRole("Reader", "users:read")
		created, err := f.Directory.CreateGroup(f.Context(), f.Owner, nodetest.NewKey(), rolecall.GroupDraft{Name: "Engineers", Source: source})
		f.OK(err)
		id := created.Value.ID
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.JoinGroups([]rolecall.Membership{{Group: rolecall.GroupName{ID: id}, User: user.ID, AddedAt: nodetest.Start}})
			return nil
		}))
		update := func(patch rolecall.GroupPatch) error {
			return nodetest.ErrorOf(f.Directory.UpdateGroup(f.Context(), f.Owner, id, patch, nil))
		}
		f.Is(update(rolecall.GroupPatch{Name: rolecall.Some("Others")}), rolecall.ErrManagedByDirectory)
		f.Is(update(rolecall.GroupPatch{Description: rolecall.Some("Build"), ExternalID: rolecall.Some(new("1"))}), rolecall.ErrManagedByDirectory)
		f.OK(update(rolecall.GroupPatch{Description: rolecall.Some("Build"), Name: rolecall.Some("Engineers")}))
		f.Is(f.Directory.AddMember(f.Context(), f.Owner, id, person(f).ID), rolecall.ErrManagedByDirectory)
		f.Is(f.Directory.RemoveMember(f.Context(), f.Owner, id, user.ID), rolecall.ErrManagedByDirectory)
		f.OK(nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(id), role.ID, rolecall.AssignmentDraft{})))
		f.Is(f.Directory.DeleteGroup(f.Context(), f.Owner, id, true, nil), rolecall.ErrManagedByDirectory)
		f.DeleteUser(user.ID)
		restored, err := f.Directory.RestoreUser(f.Context(), f.Owner, user.ID)
		f.OK(err)
		if !slices.Equal(restored.GroupsNotRestored, []rolecall.GroupID{id}) {
			t.Errorf("not restored: %v", restored.GroupsNotRestored)
		}
	})
}

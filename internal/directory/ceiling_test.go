package directory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
)

// act is an action that a caller tries.
type act func(f *nodetest.Fixture, c access.Caller) error

// ceilingCase is an action of a caller who has the permissions for this kind of action and
// the assignments in holds. The action must be rejected if it gives or takes more than
// these assignments allow.
type ceilingCase struct {
	what   string
	holds  []nodetest.Held
	act    act
	barred bool
}

// manager is a role with the permissions that the tested actions require.
var manager = nodetest.Holding("users:*", "roles:*", "groups:*", "service-accounts:*")

func createRole(r nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		role := r.Role(f)
		draft := rolecall.RoleDraft{Name: role.Name, Permissions: r.Permissions, Grants: r.Grants}
		return nodetest.ErrorOf(f.Directory.CreateRole(f.Context(), c, nodetest.NewKey(), draft))
	}
}

func editRole(before, after nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		patch := rolecall.RolePatch{Permissions: rolecall.Some(after.Permissions), Grants: rolecall.Some(after.Grants)}
		return nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), c, f.InsertRole(before).ID, patch, nil))
	}
}

// editOwn adds permissions to the caller's first role.
func editOwn(more ...string) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		role, permissions := c.Assignments[0].Role, more
		for _, p := range role.Permissions {
			permissions = append(permissions, p.String())
		}
		return nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), c, role.ID, rolecall.RolePatch{Permissions: rolecall.Some(permissions)}, nil))
	}
}

func renameRole(r nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		role := f.InsertRole(r)
		return nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), c, role.ID, rolecall.RolePatch{Name: rolecall.Some(role.Name + " renamed")}, nil))
	}
}

func deleteRole(r nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		_, assignments := f.Person("", r)
		return f.Directory.DeleteRole(f.Context(), c, assignments[0].Role.ID, true, nil)
	}
}

// assign gives another user the role.
func assign(r nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user, _ := f.Person("Sales")
		return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(user.ID), f.InsertRole(r).ID, r.Draft()))
	}
}

// assignSelf gives the caller the role.
func assignSelf(r nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(c.User.ID), f.InsertRole(r).ID, r.Draft()))
	}
}

// keepLonger replaces the caller's first assignment.
func keepLonger(draft rolecall.AssignmentDraft) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(c.User.ID), c.Assignments[0].Role.ID, draft))
	}
}

// replace changes another user's assignment of a role.
func replace(before, after nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user, assignments := f.Person("Sales", before)
		return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(user.ID), assignments[0].Role.ID, after.Draft()))
	}
}

// unassign removes the role from another user.
func unassign(r nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user, assignments := f.Person("Sales", r)
		return f.Directory.UnassignRole(f.Context(), c, rolecall.HolderOf(user.ID), assignments[0].Role.ID)
	}
}

// invite invites a user who has the roles.
func invite(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user, _ := f.Person("Sales", holds...)
		return nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), c, nodetest.NewKey(), user.ID))
	}
}

func suspend(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user, _ := f.Person("Sales", holds...)
		return nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), c, user.ID, ""))
	}
}

// resume resumes a suspended user who has the roles.
func resume(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user, _ := f.Person("Sales", holds...)
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, user.ID, "")))
		resumed, err := f.Directory.ResumeUser(f.Context(), c, user.ID, "")
		if now, readErr := f.Directory.User(f.Context(), f.Owner, user.ID); readErr != nil || (now.Status == rolecall.UserSuspended) != (err != nil) || err == nil && now.Status != resumed.Status {
			f.Errorf("after %v the user is %s, %v", err, now.Status, readErr)
		}
		return err
	}
}

// resumeAccount resumes a suspended service account that has the roles.
func resumeAccount(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		created, err := f.Directory.CreateServiceAccount(f.Context(), f.Owner, nodetest.NewKey(), rolecall.ServiceAccountDraft{Name: nodetest.NewKey().Text})
		f.OK(err)
		id := created.Value.ID
		for _, h := range holds {
			f.OK(nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(id), f.InsertRole(h).ID, h.Draft())))
		}
		f.OK(nodetest.ErrorOf(f.Directory.SuspendServiceAccount(f.Context(), f.Owner, id, "")))
		err = nodetest.ErrorOf(f.Directory.ResumeServiceAccount(f.Context(), c, id, ""))
		if now, readErr := f.Directory.ServiceAccount(f.Context(), f.Owner, id); readErr != nil || (now.Status == rolecall.ServiceAccountSuspended) != (err != nil) {
			f.Errorf("after %v the service account is %s, %v", err, now.Status, readErr)
		}
		return err
	}
}

// withdraw creates a user with the roles. The owner invites the user, and then the caller
// withdraws the invitation.
func withdraw(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user, _ := f.Person("Sales", holds...)
		f.OK(nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), f.Owner, nodetest.NewKey(), user.ID)))
		return f.Directory.WithdrawInvitation(f.Context(), c, user.ID)
	}
}

func remove(holds ...nodetest.Held) act {
	return func(f *nodetest.Fixture, c access.Caller) error {
		user, _ := f.Person("Sales", holds...)
		return f.Directory.DeleteUser(f.Context(), c, user.ID, nil)
	}
}

var ceilingOfRoles = []ceilingCase{
	{"create a role of nothing", nodetest.Roles(), createRole(nodetest.Nothing), false},
	{"create a role with permissions that the caller has", nodetest.Roles(nodetest.Approver), createRole(nodetest.Approver), false},
	{"create a role with some of the permissions that the caller has", nodetest.Roles(nodetest.Shop), createRole(nodetest.Approver), false},
	{"create a role with permissions that the caller lacks", nodetest.Roles(nodetest.Auditor), createRole(nodetest.Approver), true},
	{"create a role with more permissions than the caller has", nodetest.Roles(nodetest.Approver), createRole(nodetest.Shop), true},
	{"create a role with permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), createRole(nodetest.Approver), false},
	{"create a role that delegates permissions that the caller has", nodetest.Roles(nodetest.Shop), createRole(nodetest.Granting("shop/invoices:approve")), false},
	{"create a role that delegates permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), createRole(nodetest.Appointer), false},
	{"create a role that delegates permissions that the caller lacks", nodetest.Roles(nodetest.Approver), createRole(nodetest.Appointer), true},
	{"create a role with what two roles give together", nodetest.Roles(nodetest.Approver, nodetest.Auditor), createRole(nodetest.Holding("shop/invoices:approve", "events:read")), false},
	{"create a role with permissions that the caller has by one role and can delegate by another", nodetest.Roles(nodetest.Appointer, nodetest.Auditor), createRole(nodetest.Holding("shop/invoices:approve", "events:read")), false},
	{"create a role with one member of a permission that the caller has in full", nodetest.Roles(), createRole(nodetest.Holding("users.email:read")), false},
	{"create a role of applications with all of Rolecall's own", nodetest.Roles(nodetest.Holding("*:*")), createRole(nodetest.Approver), true},
	{"create a role of Rolecall's own with all applications", nodetest.Roles(nodetest.Holding("*/*:*")), createRole(nodetest.Auditor), true},
	{"create a role with permissions that the caller has in a department", nodetest.Roles(nodetest.Approver.Within("Sales")), createRole(nodetest.Approver), true},
	{"create a role with permissions that the caller has until tomorrow", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), createRole(nodetest.Approver), true},

	{"edit a role from and to permissions that the caller has", nodetest.Roles(nodetest.Approver, nodetest.Auditor), editRole(nodetest.Approver, nodetest.Auditor), false},
	{"edit a role from permissions that the caller lacks", nodetest.Roles(nodetest.Auditor), editRole(nodetest.Approver, nodetest.Auditor), true},
	{"edit a role to permissions that the caller lacks", nodetest.Roles(nodetest.Approver), editRole(nodetest.Approver, nodetest.Auditor), true},
	{"edit a role to nothing from permissions that the caller lacks", nodetest.Roles(), editRole(nodetest.Approver, nodetest.Nothing), true},
	{"edit a role so that it delegates permissions that the caller lacks", nodetest.Roles(nodetest.Approver), editRole(nodetest.Approver, nodetest.Appointer), true},
	{"edit a role that delegates permissions that the caller lacks", nodetest.Roles(nodetest.Approver), editRole(nodetest.Appointer, nodetest.Approver), true},
	{"edit a role by permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), editRole(nodetest.Approver, nodetest.Shop), false},
	{"add to an own role permissions that the caller has", nodetest.Roles(nodetest.Approver, nodetest.Auditor), editOwn("events:read"), false},
	{"add to an own role permissions that the caller can only delegate", nodetest.Roles(nodetest.Auditor, nodetest.Appointer), editOwn("shop/invoices:approve"), true},
	{"add to an own role permissions that the caller has for a shorter time", nodetest.Roles(nodetest.Auditor, nodetest.Shop.To(nodetest.Tomorrow)), editOwn("shop/invoices:approve"), true},
	{"rename a role with permissions that the caller has", nodetest.Roles(nodetest.Approver), renameRole(nodetest.Approver), false},
	{"rename a role with permissions that the caller lacks", nodetest.Roles(), renameRole(nodetest.Approver), true},

	{"delete a role with permissions that the caller has", nodetest.Roles(nodetest.Approver), deleteRole(nodetest.Approver), false},
	{"delete a role with permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), deleteRole(nodetest.Approver), false},
	{"delete a role with permissions that the caller lacks", nodetest.Roles(nodetest.Auditor), deleteRole(nodetest.Approver), true},
	{"delete a role that delegates permissions that the caller lacks", nodetest.Roles(nodetest.Approver), deleteRole(nodetest.Appointer), true},
}

var ceilingOfAssignments = []ceilingCase{
	{"assign permissions that the caller has", nodetest.Roles(nodetest.Approver), assign(nodetest.Approver), false},
	{"assign permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), assign(nodetest.Approver), false},
	{"assign permissions that the caller lacks", nodetest.Roles(nodetest.Auditor), assign(nodetest.Approver), true},
	{"assign a role of nothing", nodetest.Roles(), assign(nodetest.Nothing), false},
	{"assign permissions that the caller has in Sales, in Sales", nodetest.Roles(nodetest.Approver.Within("Sales", "Ops")), assign(nodetest.Approver.Within("sALES")), false},
	{"assign permissions that the caller has in Sales, in Sáles", nodetest.Roles(nodetest.Approver.Within("Sales", "Ops")), assign(nodetest.Approver.Within("Sáles")), true},
	{"assign permissions that the caller has in Sales, in Sales and Research", nodetest.Roles(nodetest.Approver.Within("Sales")), assign(nodetest.Approver.Within("Sales", "Research")), true},
	{"assign permissions that the caller has in Sales, everywhere", nodetest.Roles(nodetest.Approver.Within("Sales")), assign(nodetest.Approver), true},
	{"assign in two departments permissions that the caller has in each", nodetest.Roles(nodetest.Approver.Within("Sales"), nodetest.Approver.Within("Research")), assign(nodetest.Approver.Within("Sales", "Research")), false},
	{"assign in two departments permissions that the caller has in one and can delegate in the other", nodetest.Roles(nodetest.Approver.Within("Sales"), nodetest.Appointer.Within("Research")), assign(nodetest.Approver.Within("Sales", "Research")), false},
	{"assign permissions that the caller has until tomorrow, until then", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), assign(nodetest.Approver.To(nodetest.Tomorrow)), false},
	{"assign permissions that the caller has until tomorrow, a moment longer", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), assign(nodetest.Approver.To(nodetest.Tomorrow + 1)), true},
	{"assign permissions that the caller has until tomorrow, without end", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), assign(nodetest.Approver), true},
	{"assign permissions that the caller can delegate until tomorrow, without end", nodetest.Roles(nodetest.Appointer.To(nodetest.Tomorrow)), assign(nodetest.Approver), true},
	{"assign without end, in Sales, permissions that the caller has in Sales without end", nodetest.Roles(nodetest.Approver.Within("Sales"), nodetest.Approver.To(nodetest.Tomorrow)), assign(nodetest.Approver.Within("Sales")), false},
	{"assign until tomorrow, everywhere, permissions that the caller has until tomorrow, everywhere", nodetest.Roles(nodetest.Approver.Within("Sales"), nodetest.Approver.To(nodetest.Tomorrow)), assign(nodetest.Approver.To(nodetest.Tomorrow)), false},
	{"assign without end, everywhere, permissions that the caller has either in Sales or until tomorrow", nodetest.Roles(nodetest.Approver.Within("Sales"), nodetest.Approver.To(nodetest.Tomorrow)), assign(nodetest.Approver), true},
	{"assign expired permissions of the caller", nodetest.Roles(nodetest.Approver.To(nodetest.Start)), assign(nodetest.Approver.To(nodetest.Tomorrow)), true},

	{"assign to oneself permissions that the caller has", nodetest.Roles(nodetest.Approver), assignSelf(nodetest.Approver), false},
	{"assign oneself a role of nothing", nodetest.Roles(), assignSelf(nodetest.Nothing), false},
	{"assign to oneself permissions that the caller can only delegate", nodetest.Roles(nodetest.Appointer), assignSelf(nodetest.Approver), true},
	{"assign to oneself permissions that the caller has and can delegate", nodetest.Roles(nodetest.Shop), assignSelf(nodetest.Held{Permissions: nodetest.Shop.Permissions, Grants: nodetest.Shop.Grants}), false},
	{"assign to oneself a role that delegates permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), assignSelf(nodetest.Appointer), false},
	{"assign to oneself a role that delegates permissions that the caller lacks", nodetest.Roles(nodetest.Approver), assignSelf(nodetest.Appointer), true},
	{"assign to oneself everywhere permissions that the caller has in Sales", nodetest.Roles(nodetest.Approver.Within("Sales")), assignSelf(nodetest.Approver), true},
	{"keep a role longer than until tomorrow", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), keepLonger(rolecall.AssignmentDraft{}), true},
	{"keep everywhere a role that the caller has in Sales", nodetest.Roles(nodetest.Approver.Within("Sales")), keepLonger(rolecall.AssignmentDraft{}), true},
	{"keep a role shorter", nodetest.Roles(nodetest.Approver.To(nodetest.NextWeek)), keepLonger(nodetest.Nothing.To(nodetest.Tomorrow).Draft()), false},

	{"unassign permissions that the caller has", nodetest.Roles(nodetest.Approver), unassign(nodetest.Approver), false},
	{"unassign permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), unassign(nodetest.Approver), false},
	{"unassign permissions that the caller lacks", nodetest.Roles(nodetest.Auditor), unassign(nodetest.Approver), true},
	{"unassign a role that delegates permissions that the caller lacks", nodetest.Roles(nodetest.Approver), unassign(nodetest.Appointer), true},
	{"unassign in Sales permissions that the caller has there", nodetest.Roles(nodetest.Approver.Within("Sales")), unassign(nodetest.Approver.Within("Sales")), false},
	{"unassign everywhere permissions that the caller has in Sales", nodetest.Roles(nodetest.Approver.Within("Sales")), unassign(nodetest.Approver), true},
	{"unassign permissions that the caller has until tomorrow", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), unassign(nodetest.Approver), false},

	{"replace permissions that the caller has", nodetest.Roles(nodetest.Approver), replace(nodetest.Approver, nodetest.Approver.Within("Sales")), false},
	{"replace permissions that the caller lacks", nodetest.Roles(nodetest.Auditor), replace(nodetest.Approver, nodetest.Approver.Within("Sales")), true},
	{"replace in Sales permissions that the caller has there", nodetest.Roles(nodetest.Approver.Within("Sales")), replace(nodetest.Approver.Within("Sales"), nodetest.Approver.Within("Sales").To(nodetest.Tomorrow)), false},
	{"replace everywhere by Sales, where the caller has the role", nodetest.Roles(nodetest.Approver.Within("Sales")), replace(nodetest.Approver, nodetest.Approver.Within("Sales")), true},
	{"replace Sales, where the caller has the role, by everywhere", nodetest.Roles(nodetest.Approver.Within("Sales")), replace(nodetest.Approver.Within("Sales"), nodetest.Approver), true},
	{"replace everywhere, which is over, by Sales", nodetest.Roles(nodetest.Approver.Within("Sales")), replace(nodetest.Approver.To(nodetest.Start), nodetest.Approver.Within("Sales")), false},
}

var ceilingOfUsers = []ceilingCase{
	{"invite somebody without a role", nodetest.Roles(), invite(), false},
	{"invite a user who has permissions that the caller has", nodetest.Roles(nodetest.Approver), invite(nodetest.Approver), false},
	{"invite a user who has permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), invite(nodetest.Approver), false},
	{"invite a user who has permissions that the caller lacks", nodetest.Roles(nodetest.Auditor), invite(nodetest.Approver), true},
	{"invite a user who has one more permission", nodetest.Roles(nodetest.Approver), invite(nodetest.Approver, nodetest.Auditor), true},
	{"invite a user who can delegate permissions that the caller lacks", nodetest.Roles(nodetest.Approver), invite(nodetest.Appointer), true},
	{"invite a user who had permissions that the caller lacks", nodetest.Roles(), invite(nodetest.Approver.To(nodetest.Start)), false},
	{"invite a user who has in Sales permissions that the caller has there", nodetest.Roles(nodetest.Approver.Within("Sales")), invite(nodetest.Approver.Within("Sales")), false},
	{"invite a user who has everywhere permissions that the caller has in Sales", nodetest.Roles(nodetest.Approver.Within("Sales")), invite(nodetest.Approver), true},
	{"invite a user who has for a shorter time the permissions that the caller has until tomorrow", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), invite(nodetest.Approver.To(nodetest.Tomorrow)), false},
	{"invite a user who has for longer the permissions that the caller has until tomorrow", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), invite(nodetest.Approver.To(nodetest.NextWeek)), true},

	{"suspend somebody without a role", nodetest.Roles(), suspend(), false},
	{"suspend a user who has permissions that the caller has", nodetest.Roles(nodetest.Auditor), suspend(nodetest.Auditor), false},
	{"suspend a user who has a permission of Rolecall that the caller lacks", nodetest.Roles(nodetest.Approver), suspend(nodetest.Auditor), true},
	{"suspend a user who has a permission of an application that the caller lacks", nodetest.Roles(), suspend(nodetest.Approver), false},
	{"suspend a user who can delegate permissions that the caller lacks", nodetest.Roles(), suspend(nodetest.Granting("events:read", "shop/*:*")), false},
	{"suspend a user who has permissions that the caller can only delegate", nodetest.Roles(nodetest.Granting("events:read")), suspend(nodetest.Auditor), true},
	{"suspend a user who had permissions that the caller lacks", nodetest.Roles(), suspend(nodetest.Auditor.To(nodetest.Start)), false},
	{"suspend a user who has in Sales permissions that the caller has there", nodetest.Roles(nodetest.Holding("sessions:revoke").Within("Sales")), suspend(nodetest.Holding("sessions:revoke").Within("Sales")), false},
	{"suspend a user who has everywhere permissions that the caller has in Sales", nodetest.Roles(nodetest.Holding("sessions:revoke").Within("Sales")), suspend(nodetest.Holding("sessions:revoke")), true},
	{"suspend a user who has in Sales what counts for nothing there", nodetest.Roles(), suspend(nodetest.Auditor.Within("Sales")), false},
	{"suspend a user who has for longer the permissions that the caller has until tomorrow", nodetest.Roles(nodetest.Auditor.To(nodetest.Tomorrow)), suspend(nodetest.Auditor), false},
	{"suspend a user who has everything of Rolecall", nodetest.Roles(nodetest.Auditor), suspend(nodetest.Holding("*:*")), true},
	{"suspend a user who has everything of Rolecall, by a caller who has the same", nodetest.Roles(nodetest.Holding("*:*")), suspend(nodetest.Holding("*:*")), false},

	{"resume somebody without a role", nodetest.Roles(), resume(), false},
	{"resume a holder of permissions that the caller has", nodetest.Roles(nodetest.Auditor), resume(nodetest.Auditor), false},
	{"resume a holder of a permission of Rolecall that the caller lacks", nodetest.Roles(nodetest.Approver), resume(nodetest.Auditor), true},
	{"resume a holder of a permission of an application that the caller lacks", nodetest.Roles(), resume(nodetest.Approver), true},
	{"resume a holder of permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), resume(nodetest.Approver), false},
	{"resume a holder of a permission of Rolecall that the caller can only delegate", nodetest.Roles(nodetest.Granting("events:read")), resume(nodetest.Auditor), true},
	{"resume a user who can delegate permissions that the caller lacks", nodetest.Roles(nodetest.Approver), resume(nodetest.Appointer), true},
	{"resume a user whose role with permissions that the caller lacks has ended", nodetest.Roles(), resume(nodetest.Auditor.To(nodetest.Start)), false},
	{"resume a holder in Sales of permissions that the caller has there", nodetest.Roles(nodetest.Approver.Within("Sales")), resume(nodetest.Approver.Within("Sales")), false},
	{"resume a holder everywhere of permissions that the caller has in Sales", nodetest.Roles(nodetest.Approver.Within("Sales")), resume(nodetest.Approver), true},
	{"resume a holder until next week of permissions that the caller has until tomorrow", nodetest.Roles(nodetest.Approver.To(nodetest.Tomorrow)), resume(nodetest.Approver.To(nodetest.NextWeek)), true},
	{"resume a holder of everything of Rolecall", nodetest.Roles(nodetest.Auditor), resume(nodetest.Holding("*:*")), true},
	{"resume a holder of everything of Rolecall, which the caller has too", nodetest.Roles(nodetest.Holding("*:*")), resume(nodetest.Holding("*:*")), false},

	{"withdraw the invitation of somebody without a role", nodetest.Roles(), withdraw(), false},
	{"withdraw the invitation of a holder of a permission of Rolecall that the caller lacks", nodetest.Roles(nodetest.Approver), withdraw(nodetest.Auditor), true},
	{"withdraw the invitation of a holder of a permission of an application that the caller lacks", nodetest.Roles(), withdraw(nodetest.Approver), false},

	{"delete somebody without a role", nodetest.Roles(), remove(), false},
	{"delete a user who has a permission of Rolecall that the caller lacks", nodetest.Roles(nodetest.Approver), remove(nodetest.Auditor), true},
	{"delete a user who has a permission of an application that the caller lacks", nodetest.Roles(), remove(nodetest.Approver), false},
	{"delete a user who has everywhere permissions that the caller has in Sales", nodetest.Roles(nodetest.Holding("sessions:revoke").Within("Sales")), remove(nodetest.Holding("sessions:revoke")), true},
}

var ceilingOfAccounts = []ceilingCase{
	{"resume a service account without a role", nodetest.Roles(), resumeAccount(), false},
	{"resume a service account that has permissions that the caller has", nodetest.Roles(nodetest.Auditor), resumeAccount(nodetest.Auditor), false},
	{"resume a service account that has a permission of Rolecall that the caller lacks", nodetest.Roles(), resumeAccount(nodetest.Auditor), true},
	{"resume a service account that has a permission of an application that the caller lacks", nodetest.Roles(), resumeAccount(nodetest.Approver), true},
	{"resume a service account that has permissions that the caller can delegate", nodetest.Roles(nodetest.Appointer), resumeAccount(nodetest.Approver), false},
	{"resume a service account that has Rolecall's own permissions that the caller can only delegate", nodetest.Roles(nodetest.Granting("events:read")), resumeAccount(nodetest.Auditor), true},
	{"resume a service account that has for longer the permissions that the caller has until tomorrow", nodetest.Roles(nodetest.Auditor.To(nodetest.Tomorrow)), resumeAccount(nodetest.Auditor), true},
}

func TestCallersCannotExceedTheirPermissions(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for _, cases := range [][]ceilingCase{ceilingOfRoles, ceilingOfAssignments, ceilingOfUsers, ceilingOfAccounts, ceilingOfGroups} {
			for _, c := range cases {
				err := c.act(f, f.CallerWith(append(c.holds, manager)...))
				if c.barred && !errors.Is(err, rolecall.ErrBeyondOwnPermissions) || !c.barred && err != nil {
					t.Errorf("%s: %v", c.what, err)
				}
			}
		}
	})
}

// Callers who may grant a role without holding it can give it to others, but not to
// themselves.
func TestGrantableRolesAgreeWithAssignRole(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		deleter := nodetest.Holding("users:delete").Role(f)
		other, _ := f.Person("")
		for name, c := range map[string]struct {
			holds         []nodetest.Held
			others, their string // departments for which callers may give the role to others and to themselves; "*": everywhere
		}{
			"grants":              {nodetest.Roles(nodetest.Granting("users:delete")), "*", ""},
			"holds":               {nodetest.Roles(nodetest.Holding("users:delete")), "*", "*"},
			"holds less far":      {nodetest.Roles(nodetest.Granting("users:delete"), nodetest.Holding("users:delete").Within("Sales")), "*", "Sales"},
			"grants less far":     {nodetest.Roles(nodetest.Granting("users:delete").Within("Sales", "Legal")), "Legal Sales", ""},
			"grants for too long": {nodetest.Roles(nodetest.Granting("users:delete").To(nodetest.Tomorrow)), "", ""},
		} {
			caller := f.CallerWith(c.holds...)
			for user, wanted := range map[rolecall.UserID]string{other.ID: c.others, caller.User.ID: c.their} {
				reach := authz.AssignableReach(caller.Principal, rolecall.HolderOf(user), &deleter, nodetest.NextWeek)
				got := strings.Join(reach.Departments(), " ")
				if reach.IsEverywhere() {
					got = "*"
				}
				if got != wanted {
					t.Errorf("%s: can be given in %q, not %q", name, got, wanted)
				}
				give := func(in rolecall.Reach) error {
					return authz.RequireAssignable(caller.Principal, &rolecall.Assignment{Holder: rolecall.HolderOf(user), Role: deleter, Reach: in, ExpiresAt: nodetest.NextWeek})
				}
				if err := give(reach); err != nil {
					t.Errorf("%s: not given as far as it can be: %v", name, err)
				}
				if err := give(rolecall.Everywhere()); (err == nil) != reach.IsEverywhere() {
					t.Errorf("%s: given everywhere: %v", name, err)
				}
			}
		}
	})
}

func TestAnAdministratorCannotActOnTheOwner(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		page, err := f.Directory.Roles(f.Context(), f.Owner, directory.RoleListing{Limit: 10})
		f.OK(err)
		roles := map[string]rolecall.Role{}
		for _, role := range page.Items {
			roles[*role.Key] = role
		}
		user, _ := f.Person("")
		f.Assign(user.ID, roles["administrator"].ID, rolecall.AssignmentDraft{})
		assignments, _, err := f.Directory.Assignments(f.Context(), f.Owner, rolecall.HolderOf(user.ID))
		f.OK(err)
		administrator := f.CallerAs(user, assignments)
		other, _ := f.Person("")
		clerk, _ := f.Person("", nodetest.Approver)
		owner := f.Owner.User.ID
		for _, c := range []struct {
			what   string
			err    error
			barred bool
		}{
			{"suspends an owner", nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), administrator, owner, "")), true},
			{"resumes an owner", nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), administrator, owner, "")), true},
			{"deletes an owner", f.Directory.DeleteUser(f.Context(), administrator, owner, nil), true},
			{"invites an owner", nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), administrator, nodetest.NewKey(), owner)), true},
			{"makes an owner", nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), administrator, rolecall.HolderOf(other.ID), roles["owner"].ID, rolecall.AssignmentDraft{})), true},
			{"becomes an owner", nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), administrator, rolecall.HolderOf(user.ID), roles["owner"].ID, rolecall.AssignmentDraft{})), true},
			{"unmakes an owner", f.Directory.UnassignRole(f.Context(), administrator, rolecall.HolderOf(owner), roles["owner"].ID), true},
			{"makes an administrator", nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), administrator, rolecall.HolderOf(other.ID), roles["administrator"].ID, rolecall.AssignmentDraft{})), false},
			{"invites a clerk of the shop", nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), administrator, nodetest.NewKey(), clerk.ID)), false},
			{"becomes a clerk of the shop", assignSelf(nodetest.Approver)(f, administrator), true},
			{"makes a clerk of the shop", assign(nodetest.Approver)(f, administrator), false},
		} {
			if c.barred && !errors.Is(c.err, rolecall.ErrBeyondOwnPermissions) || !c.barred && c.err != nil {
				t.Errorf("an administrator %s: %v", c.what, c.err)
			}
		}
	})
}

package node_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/store"
)

// act is an action that a caller tries.
type act func(f *fixture, c access.Caller) error

// ceilingCase is an action of a caller who has the permissions for this kind of action and
// the assignments in holds. The action must be rejected if it gives or takes more than
// these assignments allow.
type ceilingCase struct {
	what   string
	holds  []held
	act    act
	barred bool
}

const (
	tomorrow = start + rolecall.Time(24*time.Hour/time.Microsecond)
	nextWeek = start + rolecall.Time(7*24*time.Hour/time.Microsecond)
)

// manager is a role with the permissions that the tested actions require.
var manager = holding("users:*", "roles:*", "service-accounts:*")

func hold(holds ...held) []held { return holds }

func createRole(r held) act {
	return func(f *fixture, c access.Caller) error {
		role := r.role(f)
		draft := rolecall.RoleDraft{Name: role.Name, Permissions: r.permissions, Grants: r.grants}
		return errorOf(f.Directory.CreateRole(f.Context(), c, newKey(), draft))
	}
}

func (f *fixture) insertRole(r held) rolecall.Role {
	f.Helper()
	role := r.role(f)
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		tx.InsertRole(role)
		return nil
	}))
	return role
}

func editRole(before, after held) act {
	return func(f *fixture, c access.Caller) error {
		patch := rolecall.RolePatch{Permissions: rolecall.Some(after.permissions), Grants: rolecall.Some(after.grants)}
		return errorOf(f.Directory.UpdateRole(f.Context(), c, f.insertRole(before).ID, patch, nil))
	}
}

// editOwn adds permissions to the caller's first role.
func editOwn(more ...string) act {
	return func(f *fixture, c access.Caller) error {
		role, permissions := c.Assignments[0].Role, more
		for _, p := range role.Permissions {
			permissions = append(permissions, p.String())
		}
		return errorOf(f.Directory.UpdateRole(f.Context(), c, role.ID, rolecall.RolePatch{Permissions: rolecall.Some(permissions)}, nil))
	}
}

func renameRole(r held) act {
	return func(f *fixture, c access.Caller) error {
		role := f.insertRole(r)
		return errorOf(f.Directory.UpdateRole(f.Context(), c, role.ID, rolecall.RolePatch{Name: rolecall.Some(role.Name + " renamed")}, nil))
	}
}

func deleteRole(r held) act {
	return func(f *fixture, c access.Caller) error {
		_, assignments := f.person("", r)
		return f.Directory.DeleteRole(f.Context(), c, assignments[0].Role.ID, true, nil)
	}
}

// assign gives another user the role.
func assign(r held) act {
	return func(f *fixture, c access.Caller) error {
		user, _ := f.person("Sales")
		return errorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(user.ID), f.insertRole(r).ID, r.draft()))
	}
}

// assignSelf gives the caller the role.
func assignSelf(r held) act {
	return func(f *fixture, c access.Caller) error {
		return errorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(c.User.ID), f.insertRole(r).ID, r.draft()))
	}
}

// keepLonger replaces the caller's first assignment.
func keepLonger(draft rolecall.AssignmentDraft) act {
	return func(f *fixture, c access.Caller) error {
		return errorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(c.User.ID), c.Assignments[0].Role.ID, draft))
	}
}

// replace changes another user's assignment of a role.
func replace(before, after held) act {
	return func(f *fixture, c access.Caller) error {
		user, assignments := f.person("Sales", before)
		return errorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(user.ID), assignments[0].Role.ID, after.draft()))
	}
}

// unassign removes the role from another user.
func unassign(r held) act {
	return func(f *fixture, c access.Caller) error {
		user, assignments := f.person("Sales", r)
		return f.Directory.UnassignRole(f.Context(), c, rolecall.HolderOf(user.ID), assignments[0].Role.ID)
	}
}

// invite invites a user who has the roles.
func invite(holds ...held) act {
	return func(f *fixture, c access.Caller) error {
		user, _ := f.person("Sales", holds...)
		return errorOf(f.Directory.InviteUser(f.Context(), c, newKey(), user.ID))
	}
}

func suspend(holds ...held) act {
	return func(f *fixture, c access.Caller) error {
		user, _ := f.person("Sales", holds...)
		return errorOf(f.Directory.SuspendUser(f.Context(), c, user.ID, ""))
	}
}

// resume resumes a suspended user who has the roles.
func resume(holds ...held) act {
	return func(f *fixture, c access.Caller) error {
		user, _ := f.person("Sales", holds...)
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, user.ID, "")))
		resumed, err := f.Directory.ResumeUser(f.Context(), c, user.ID, "")
		if now, readErr := f.Directory.User(f.Context(), f.owner, user.ID); readErr != nil || (now.Status == rolecall.UserSuspended) != (err != nil) || err == nil && now.Status != resumed.Status {
			f.Errorf("after %v the user is %s, %v", err, now.Status, readErr)
		}
		return err
	}
}

// resumeAccount resumes a suspended service account that has the roles.
func resumeAccount(holds ...held) act {
	return func(f *fixture, c access.Caller) error {
		created, err := f.Directory.CreateServiceAccount(f.Context(), f.owner, newKey(), rolecall.ServiceAccountDraft{Name: newKey().Text})
		f.ok(err)
		id := created.Value.ID
		for _, h := range holds {
			f.ok(errorOf3(f.Directory.AssignRole(f.Context(), f.owner, rolecall.HolderOf(id), f.insertRole(h).ID, h.draft())))
		}
		f.ok(errorOf(f.Directory.SuspendServiceAccount(f.Context(), f.owner, id, "")))
		err = errorOf(f.Directory.ResumeServiceAccount(f.Context(), c, id, ""))
		if now, readErr := f.Directory.ServiceAccount(f.Context(), f.owner, id); readErr != nil || (now.Status == rolecall.ServiceAccountSuspended) != (err != nil) {
			f.Errorf("after %v the service account is %s, %v", err, now.Status, readErr)
		}
		return err
	}
}

// withdraw creates a user with the roles. The owner invites the user, and then the caller
// withdraws the invitation.
func withdraw(holds ...held) act {
	return func(f *fixture, c access.Caller) error {
		user, _ := f.person("Sales", holds...)
		f.ok(errorOf(f.Directory.InviteUser(f.Context(), f.owner, newKey(), user.ID)))
		return f.Directory.WithdrawInvitation(f.Context(), c, user.ID)
	}
}

func remove(holds ...held) act {
	return func(f *fixture, c access.Caller) error {
		user, _ := f.person("Sales", holds...)
		return f.Directory.DeleteUser(f.Context(), c, user.ID, nil)
	}
}

var (
	approver  = holding("shop/invoices:approve")
	shop      = holding("shop/*:*")
	auditor   = holding("events:read")
	appointer = granting("shop/*:*") // may grant the role of approvers without having it
	nothing   = held{}
)

var ceilingOfRoles = []ceilingCase{
	{"create a role of nothing", hold(), createRole(nothing), false},
	{"create a role with permissions that the caller has", hold(approver), createRole(approver), false},
	{"create a role with some of the permissions that the caller has", hold(shop), createRole(approver), false},
	{"create a role with permissions that the caller lacks", hold(auditor), createRole(approver), true},
	{"create a role with more permissions than the caller has", hold(approver), createRole(shop), true},
	{"create a role with permissions that the caller can delegate", hold(appointer), createRole(approver), false},
	{"create a role that delegates permissions that the caller has", hold(shop), createRole(granting("shop/invoices:approve")), false},
	{"create a role that delegates permissions that the caller can delegate", hold(appointer), createRole(appointer), false},
	{"create a role that delegates permissions that the caller lacks", hold(approver), createRole(appointer), true},
	{"create a role with what two roles give together", hold(approver, auditor), createRole(holding("shop/invoices:approve", "events:read")), false},
	{"create a role with permissions that the caller has by one role and can delegate by another", hold(appointer, auditor), createRole(holding("shop/invoices:approve", "events:read")), false},
	{"create a role with one member of a permission that the caller has in full", hold(), createRole(holding("users.email:read")), false},
	{"create a role of applications with all of Rolecall's own", hold(holding("*:*")), createRole(approver), true},
	{"create a role of Rolecall's own with all applications", hold(holding("*/*:*")), createRole(auditor), true},
	{"create a role with permissions that the caller has in a department", hold(approver.within("Sales")), createRole(approver), true},
	{"create a role with permissions that the caller has until tomorrow", hold(approver.to(tomorrow)), createRole(approver), true},

	{"edit a role from and to permissions that the caller has", hold(approver, auditor), editRole(approver, auditor), false},
	{"edit a role from permissions that the caller lacks", hold(auditor), editRole(approver, auditor), true},
	{"edit a role to permissions that the caller lacks", hold(approver), editRole(approver, auditor), true},
	{"edit a role to nothing from permissions that the caller lacks", hold(), editRole(approver, nothing), true},
	{"edit a role so that it delegates permissions that the caller lacks", hold(approver), editRole(approver, appointer), true},
	{"edit a role that delegates permissions that the caller lacks", hold(approver), editRole(appointer, approver), true},
	{"edit a role by permissions that the caller can delegate", hold(appointer), editRole(approver, shop), false},
	{"add to an own role permissions that the caller has", hold(approver, auditor), editOwn("events:read"), false},
	{"add to an own role permissions that the caller can only delegate", hold(auditor, appointer), editOwn("shop/invoices:approve"), true},
	{"add to an own role permissions that the caller has for a shorter time", hold(auditor, shop.to(tomorrow)), editOwn("shop/invoices:approve"), true},
	{"rename a role with permissions that the caller has", hold(approver), renameRole(approver), false},
	{"rename a role with permissions that the caller lacks", hold(), renameRole(approver), true},

	{"delete a role with permissions that the caller has", hold(approver), deleteRole(approver), false},
	{"delete a role with permissions that the caller can delegate", hold(appointer), deleteRole(approver), false},
	{"delete a role with permissions that the caller lacks", hold(auditor), deleteRole(approver), true},
	{"delete a role that delegates permissions that the caller lacks", hold(approver), deleteRole(appointer), true},
}

var ceilingOfAssignments = []ceilingCase{
	{"assign permissions that the caller has", hold(approver), assign(approver), false},
	{"assign permissions that the caller can delegate", hold(appointer), assign(approver), false},
	{"assign permissions that the caller lacks", hold(auditor), assign(approver), true},
	{"assign a role of nothing", hold(), assign(nothing), false},
	{"assign permissions that the caller has in Sales, in Sales", hold(approver.within("Sales", "Ops")), assign(approver.within("sALES")), false},
	{"assign permissions that the caller has in Sales, in Sáles", hold(approver.within("Sales", "Ops")), assign(approver.within("Sáles")), true},
	{"assign permissions that the caller has in Sales, in Sales and Research", hold(approver.within("Sales")), assign(approver.within("Sales", "Research")), true},
	{"assign permissions that the caller has in Sales, everywhere", hold(approver.within("Sales")), assign(approver), true},
	{"assign in two departments permissions that the caller has in each", hold(approver.within("Sales"), approver.within("Research")), assign(approver.within("Sales", "Research")), false},
	{"assign in two departments permissions that the caller has in one and can delegate in the other", hold(approver.within("Sales"), appointer.within("Research")), assign(approver.within("Sales", "Research")), false},
	{"assign permissions that the caller has until tomorrow, until then", hold(approver.to(tomorrow)), assign(approver.to(tomorrow)), false},
	{"assign permissions that the caller has until tomorrow, a moment longer", hold(approver.to(tomorrow)), assign(approver.to(tomorrow + 1)), true},
	{"assign permissions that the caller has until tomorrow, without end", hold(approver.to(tomorrow)), assign(approver), true},
	{"assign permissions that the caller can delegate until tomorrow, without end", hold(appointer.to(tomorrow)), assign(approver), true},
	{"assign without end, in Sales, permissions that the caller has in Sales without end", hold(approver.within("Sales"), approver.to(tomorrow)), assign(approver.within("Sales")), false},
	{"assign until tomorrow, everywhere, permissions that the caller has until tomorrow, everywhere", hold(approver.within("Sales"), approver.to(tomorrow)), assign(approver.to(tomorrow)), false},
	{"assign without end, everywhere, permissions that the caller has either in Sales or until tomorrow", hold(approver.within("Sales"), approver.to(tomorrow)), assign(approver), true},
	{"assign expired permissions of the caller", hold(approver.to(start)), assign(approver.to(tomorrow)), true},

	{"assign to oneself permissions that the caller has", hold(approver), assignSelf(approver), false},
	{"assign oneself a role of nothing", hold(), assignSelf(nothing), false},
	{"assign to oneself permissions that the caller can only delegate", hold(appointer), assignSelf(approver), true},
	{"assign to oneself permissions that the caller has and can delegate", hold(shop), assignSelf(held{permissions: shop.permissions, grants: shop.grants}), false},
	{"assign to oneself a role that delegates permissions that the caller can delegate", hold(appointer), assignSelf(appointer), false},
	{"assign to oneself a role that delegates permissions that the caller lacks", hold(approver), assignSelf(appointer), true},
	{"assign to oneself everywhere permissions that the caller has in Sales", hold(approver.within("Sales")), assignSelf(approver), true},
	{"keep a role longer than until tomorrow", hold(approver.to(tomorrow)), keepLonger(rolecall.AssignmentDraft{}), true},
	{"keep everywhere a role that the caller has in Sales", hold(approver.within("Sales")), keepLonger(rolecall.AssignmentDraft{}), true},
	{"keep a role shorter", hold(approver.to(nextWeek)), keepLonger(nothing.to(tomorrow).draft()), false},

	{"unassign permissions that the caller has", hold(approver), unassign(approver), false},
	{"unassign permissions that the caller can delegate", hold(appointer), unassign(approver), false},
	{"unassign permissions that the caller lacks", hold(auditor), unassign(approver), true},
	{"unassign a role that delegates permissions that the caller lacks", hold(approver), unassign(appointer), true},
	{"unassign in Sales permissions that the caller has there", hold(approver.within("Sales")), unassign(approver.within("Sales")), false},
	{"unassign everywhere permissions that the caller has in Sales", hold(approver.within("Sales")), unassign(approver), true},
	{"unassign permissions that the caller has until tomorrow", hold(approver.to(tomorrow)), unassign(approver), false},

	{"replace permissions that the caller has", hold(approver), replace(approver, approver.within("Sales")), false},
	{"replace permissions that the caller lacks", hold(auditor), replace(approver, approver.within("Sales")), true},
	{"replace in Sales permissions that the caller has there", hold(approver.within("Sales")), replace(approver.within("Sales"), approver.within("Sales").to(tomorrow)), false},
	{"replace everywhere by Sales, where the caller has the role", hold(approver.within("Sales")), replace(approver, approver.within("Sales")), true},
	{"replace Sales, where the caller has the role, by everywhere", hold(approver.within("Sales")), replace(approver.within("Sales"), approver), true},
	{"replace everywhere, which is over, by Sales", hold(approver.within("Sales")), replace(approver.to(start), approver.within("Sales")), false},
}

var ceilingOfUsers = []ceilingCase{
	{"invite somebody without a role", hold(), invite(), false},
	{"invite a user who has permissions that the caller has", hold(approver), invite(approver), false},
	{"invite a user who has permissions that the caller can delegate", hold(appointer), invite(approver), false},
	{"invite a user who has permissions that the caller lacks", hold(auditor), invite(approver), true},
	{"invite a user who has one more permission", hold(approver), invite(approver, auditor), true},
	{"invite a user who can delegate permissions that the caller lacks", hold(approver), invite(appointer), true},
	{"invite a user who had permissions that the caller lacks", hold(), invite(approver.to(start)), false},
	{"invite a user who has in Sales permissions that the caller has there", hold(approver.within("Sales")), invite(approver.within("Sales")), false},
	{"invite a user who has everywhere permissions that the caller has in Sales", hold(approver.within("Sales")), invite(approver), true},
	{"invite a user who has for a shorter time the permissions that the caller has until tomorrow", hold(approver.to(tomorrow)), invite(approver.to(tomorrow)), false},
	{"invite a user who has for longer the permissions that the caller has until tomorrow", hold(approver.to(tomorrow)), invite(approver.to(nextWeek)), true},

	{"suspend somebody without a role", hold(), suspend(), false},
	{"suspend a user who has permissions that the caller has", hold(auditor), suspend(auditor), false},
	{"suspend a user who has a permission of Rolecall that the caller lacks", hold(approver), suspend(auditor), true},
	{"suspend a user who has a permission of an application that the caller lacks", hold(), suspend(approver), false},
	{"suspend a user who can delegate permissions that the caller lacks", hold(), suspend(granting("events:read", "shop/*:*")), false},
	{"suspend a user who has permissions that the caller can only delegate", hold(granting("events:read")), suspend(auditor), true},
	{"suspend a user who had permissions that the caller lacks", hold(), suspend(auditor.to(start)), false},
	{"suspend a user who has in Sales permissions that the caller has there", hold(holding("sessions:revoke").within("Sales")), suspend(holding("sessions:revoke").within("Sales")), false},
	{"suspend a user who has everywhere permissions that the caller has in Sales", hold(holding("sessions:revoke").within("Sales")), suspend(holding("sessions:revoke")), true},
	{"suspend a user who has in Sales what counts for nothing there", hold(), suspend(auditor.within("Sales")), false},
	{"suspend a user who has for longer the permissions that the caller has until tomorrow", hold(auditor.to(tomorrow)), suspend(auditor), false},
	{"suspend a user who has everything of Rolecall", hold(auditor), suspend(holding("*:*")), true},
	{"suspend a user who has everything of Rolecall, by a caller who has the same", hold(holding("*:*")), suspend(holding("*:*")), false},

	{"resume somebody without a role", hold(), resume(), false},
	{"resume a holder of permissions that the caller has", hold(auditor), resume(auditor), false},
	{"resume a holder of a permission of Rolecall that the caller lacks", hold(approver), resume(auditor), true},
	{"resume a holder of a permission of an application that the caller lacks", hold(), resume(approver), true},
	{"resume a holder of permissions that the caller can delegate", hold(appointer), resume(approver), false},
	{"resume a holder of a permission of Rolecall that the caller can only delegate", hold(granting("events:read")), resume(auditor), true},
	{"resume a user who can delegate permissions that the caller lacks", hold(approver), resume(appointer), true},
	{"resume a user whose role with permissions that the caller lacks has ended", hold(), resume(auditor.to(start)), false},
	{"resume a holder in Sales of permissions that the caller has there", hold(approver.within("Sales")), resume(approver.within("Sales")), false},
	{"resume a holder everywhere of permissions that the caller has in Sales", hold(approver.within("Sales")), resume(approver), true},
	{"resume a holder until next week of permissions that the caller has until tomorrow", hold(approver.to(tomorrow)), resume(approver.to(nextWeek)), true},
	{"resume a holder of everything of Rolecall", hold(auditor), resume(holding("*:*")), true},
	{"resume a holder of everything of Rolecall, which the caller has too", hold(holding("*:*")), resume(holding("*:*")), false},

	{"withdraw the invitation of somebody without a role", hold(), withdraw(), false},
	{"withdraw the invitation of a holder of a permission of Rolecall that the caller lacks", hold(approver), withdraw(auditor), true},
	{"withdraw the invitation of a holder of a permission of an application that the caller lacks", hold(), withdraw(approver), false},

	{"delete somebody without a role", hold(), remove(), false},
	{"delete a user who has a permission of Rolecall that the caller lacks", hold(approver), remove(auditor), true},
	{"delete a user who has a permission of an application that the caller lacks", hold(), remove(approver), false},
	{"delete a user who has everywhere permissions that the caller has in Sales", hold(holding("sessions:revoke").within("Sales")), remove(holding("sessions:revoke")), true},
}

var ceilingOfAccounts = []ceilingCase{
	{"resume a service account without a role", hold(), resumeAccount(), false},
	{"resume a service account that has permissions that the caller has", hold(auditor), resumeAccount(auditor), false},
	{"resume a service account that has a permission of Rolecall that the caller lacks", hold(), resumeAccount(auditor), true},
	{"resume a service account that has a permission of an application that the caller lacks", hold(), resumeAccount(approver), true},
	{"resume a service account that has permissions that the caller can delegate", hold(appointer), resumeAccount(approver), false},
	{"resume a service account that has Rolecall's own permissions that the caller can only delegate", hold(granting("events:read")), resumeAccount(auditor), true},
	{"resume a service account that has for longer the permissions that the caller has until tomorrow", hold(auditor.to(tomorrow)), resumeAccount(auditor), true},
}

func TestCallersCannotExceedTheirPermissions(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for _, cases := range [][]ceilingCase{ceilingOfRoles, ceilingOfAssignments, ceilingOfUsers, ceilingOfAccounts} {
			for _, c := range cases {
				err := c.act(f, f.caller(append(c.holds, manager)...))
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
	onEachStore(t, func(f *fixture) {
		deleter := holding("users:delete").role(f)
		other, _ := f.person("")
		for name, c := range map[string]struct {
			holds         []held
			others, their string // departments for which callers may give the role to others and to themselves; "*": everywhere
		}{
			"grants":              {hold(granting("users:delete")), "*", ""},
			"holds":               {hold(holding("users:delete")), "*", "*"},
			"holds less far":      {hold(granting("users:delete"), holding("users:delete").within("Sales")), "*", "Sales"},
			"grants less far":     {hold(granting("users:delete").within("Sales", "Legal")), "Legal Sales", ""},
			"grants for too long": {hold(granting("users:delete").to(tomorrow)), "", ""},
		} {
			caller := f.caller(c.holds...)
			for user, wanted := range map[rolecall.UserID]string{other.ID: c.others, caller.User.ID: c.their} {
				reach := authz.AssignableReach(caller.Principal, rolecall.HolderOf(user), &deleter, nextWeek)
				got := strings.Join(reach.Departments(), " ")
				if reach.IsEverywhere() {
					got = "*"
				}
				if got != wanted {
					t.Errorf("%s: can be given in %q, not %q", name, got, wanted)
				}
				give := func(in rolecall.Reach) error {
					return authz.RequireAssignable(caller.Principal, &rolecall.Assignment{Holder: rolecall.HolderOf(user), Role: deleter, Reach: in, ExpiresAt: nextWeek})
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
	onEachStore(t, func(f *fixture) {
		page, err := f.Directory.Roles(f.Context(), f.owner, directory.RoleListing{Limit: 10})
		f.ok(err)
		roles := map[string]rolecall.Role{}
		for _, role := range page.Items {
			roles[*role.Key] = role
		}
		user, _ := f.person("")
		f.assign(user.ID, roles["administrator"].ID, rolecall.AssignmentDraft{})
		assignments, _, err := f.Directory.Assignments(f.Context(), f.owner, rolecall.HolderOf(user.ID))
		f.ok(err)
		administrator := f.callBy(user, assignments)
		other, _ := f.person("")
		clerk, _ := f.person("", approver)
		owner := f.owner.User.ID
		for _, c := range []struct {
			what   string
			err    error
			barred bool
		}{
			{"suspends an owner", errorOf(f.Directory.SuspendUser(f.Context(), administrator, owner, "")), true},
			{"resumes an owner", errorOf(f.Directory.ResumeUser(f.Context(), administrator, owner, "")), true},
			{"deletes an owner", f.Directory.DeleteUser(f.Context(), administrator, owner, nil), true},
			{"invites an owner", errorOf(f.Directory.InviteUser(f.Context(), administrator, newKey(), owner)), true},
			{"makes an owner", errorOf3(f.Directory.AssignRole(f.Context(), administrator, rolecall.HolderOf(other.ID), roles["owner"].ID, rolecall.AssignmentDraft{})), true},
			{"becomes an owner", errorOf3(f.Directory.AssignRole(f.Context(), administrator, rolecall.HolderOf(user.ID), roles["owner"].ID, rolecall.AssignmentDraft{})), true},
			{"unmakes an owner", f.Directory.UnassignRole(f.Context(), administrator, rolecall.HolderOf(owner), roles["owner"].ID), true},
			{"makes an administrator", errorOf3(f.Directory.AssignRole(f.Context(), administrator, rolecall.HolderOf(other.ID), roles["administrator"].ID, rolecall.AssignmentDraft{})), false},
			{"invites a clerk of the shop", errorOf(f.Directory.InviteUser(f.Context(), administrator, newKey(), clerk.ID)), false},
			{"becomes a clerk of the shop", assignSelf(approver)(f, administrator), true},
			{"makes a clerk of the shop", assign(approver)(f, administrator), false},
		} {
			if c.barred && !errors.Is(c.err, rolecall.ErrBeyondOwnPermissions) || !c.barred && c.err != nil {
				t.Errorf("an administrator %s: %v", c.what, c.err)
			}
		}
	})
}

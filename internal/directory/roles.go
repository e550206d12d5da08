package directory

import (
	"context"
	"errors"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/store"
)

// RoleListing selects and sorts roles. A member with its zero value does not filter.
type RoleListing struct {
	Key        string
	Words      []string             // rolecall.Words of the search text
	Permission *rolecall.Permission // only roles with a permission that covers this one
	ByName     bool
	Desc       bool
	After      *rolecall.Position
	Limit      int
	Count      bool
}

// Roles returns a page of the roles that l selects. Roles can fail with
// ErrPermissionDenied.
func (s *Service) Roles(ctx context.Context, c access.Caller, l RoleListing) (page rolecall.Page[rolecall.Role], err error) {
	if err := authz.ReadRoles.Authorize(c.Principal); err != nil {
		return page, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Page[rolecall.Role], error) { return tx.Roles(rolecall.RoleQuery(l)) })
}

// Role returns the role with the id. Role can fail with ErrNotFound or ErrPermissionDenied.
func (s *Service) Role(ctx context.Context, c access.Caller, id rolecall.RoleID) (role rolecall.Role, err error) {
	if err := authz.ReadRoles.Authorize(c.Principal); err != nil {
		return role, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Role, error) { return tx.RoleByID(id) })
}

// RoleUsers returns a page of the users who hold the role, or who held it at l.HeldAt. It returns
// ErrNotFound if the role does not exist and no user held it, ErrMalformed or ErrHistoryExpired if
// l.HeldAt is in the future or not recorded, and the errors of Users.
func (s *Service) RoleUsers(ctx context.Context, c access.Caller, id rolecall.RoleID, l UserListing) (UserPage, error) {
	if err := authz.ListRoleUsers.Authorize(c.Principal); err != nil {
		return UserPage{}, err
	}
	if id.IsZero() {
		return UserPage{}, rolecall.ErrNotFound
	}
	if l.HeldAt != 0 {
		if err := s.access.View(ctx, c, func(tx *store.Tx) error { return s.checkRecorded(tx, c, l.HeldAt) }); err != nil {
			return UserPage{}, err
		}
	}
	l.Role = id
	page, err := s.Users(ctx, c, l)
	if err == nil && len(page.Items) == 0 { // the role is unknown, or no user on this page matches
		if _, err = s.Role(ctx, c, id); errors.Is(err, rolecall.ErrNotFound) && l.HeldAt != 0 {
			err = s.access.View(ctx, c, func(tx *store.Tx) error { return hadHolders(tx, id) })
		}
	}
	return page, err
}

// hadHolders returns ErrNotFound if no past assignment of the role is recorded.
func hadHolders(tx *store.Tx, id rolecall.RoleID) error {
	if had, err := tx.HadHolders(id); err != nil || had {
		return err
	}
	return rolecall.ErrNotFound
}

// errTooManyRoles is the error for a role above the limit of a tenant.
var errTooManyRoles = rolecall.ErrLimitReached.With("This tenant has the maximum number of roles, 10,000. Delete one first.")

// CreateRole creates a role, once for each idempotency key. The caller must be able to
// assign the new role. CreateRole can fail with ErrPermissionDenied, ErrValidation,
// ErrBeyondOwnPermissions, ErrLimitReached, ErrRoleNameTaken, ErrRoleKeyTaken, ErrKeyReused,
// ErrKeyInProgress or ErrTooManyKeys.
func (s *Service) CreateRole(ctx context.Context, c access.Caller, key idempotency.Key, draft rolecall.RoleDraft) (created idempotency.Created[rolecall.Role], err error) {
	if err := authz.CreateRole.Authorize(c.Principal); err != nil {
		return created, err
	}
	role, faults := draft.Role(s.now(), c.Tenant.Settings.NameMinimum())
	if err := faults.Err(); err != nil {
		return created, err
	}
	if err := authz.RequireGrantable(c.Principal, &role, rolecall.Everywhere(), rolecall.Never); err != nil {
		return created, err
	}
	return access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.Role]{
		Operation: "createRole", ID: rolecall.AnyID(role.ID), Value: role,
		Event: s.access.Event(c, rolecall.EventRoleCreated, rolecall.About(role.ID)),
		Insert: func(tx *store.Tx) error {
			tx.LockOwners()
			stored, err := tx.Roles(rolecall.RoleQuery{Limit: 1, Count: true})
			if err != nil {
				return err
			}
			if stored.Total.Count >= rolecall.RolesMax {
				return errTooManyRoles
			}
			tx.InsertRole(role)
			return nil
		},
		OnlyID: func(id rolecall.AnyID) rolecall.Role { return rolecall.Role{ID: rolecall.RoleID(id)} },
	})
}

// UpdateRole applies the patch to the stored role. After a concurrent change, it applies
// the patch to the new version. The caller must be able to assign the role as it is before
// and after the change. UpdateRole can fail with ErrPermissionDenied, ErrValidation,
// ErrNotFound, ErrBeyondOwnPermissions, ErrPreconditionFailed, ErrSystemRole or
// ErrRoleNameTaken.
func (s *Service) UpdateRole(ctx context.Context, c access.Caller, id rolecall.RoleID, patch rolecall.RolePatch, match Match[rolecall.Role]) (role rolecall.Role, err error) {
	if err := authz.UpdateRole.Authorize(c.Principal); err != nil {
		return role, err
	}
	if err := patch.Check(c.Tenant.Settings.NameMinimum()).Err(); err != nil {
		return role, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		tx.LockOwners()
		old, err := changeableRole(tx, c, id, match)
		if err != nil {
			return nil, err
		}
		changed, members := patch.Apply(old, s.now())
		if role = changed; members == nil {
			return nil, nil
		}
		if err := authz.RequireGrantable(c.Principal, &changed, rolecall.Everywhere(), rolecall.Never); err != nil {
			return nil, err
		}
		if err := giveSelf(tx, c, &old, &changed); err != nil {
			return nil, err
		}
		if err := store.CheckVersion(tx.UpdateRole(old, changed)); err != nil {
			return nil, err
		}
		return changeEvent(s, c, rolecall.EventRoleUpdated, rolecall.About(id), &old, &changed, members)
	})
	if err != nil {
		return rolecall.Role{}, err
	}
	return role, nil
}

// DeleteRole deletes the role. If users, service accounts or groups hold the role, DeleteRole
// returns ErrRoleInUse, unless force is true. With force, it also removes all assignments
// of the role, and writes an event for each unexpired one. A role that access.BatchSize or
// more users or service accounts hold disappears with its permissions at once, and a
// background task removes the remaining assignments. If the tenant requires a second factor
// of the users with the role, DeleteRole returns ErrRoleDemandsFactor, because only owners
// may change this rule. DeleteRole can also fail with ErrPermissionDenied, ErrNotFound,
// ErrBeyondOwnPermissions, ErrPreconditionFailed or ErrSystemRole.
func (s *Service) DeleteRole(ctx context.Context, c access.Caller, id rolecall.RoleID, force bool, match Match[rolecall.Role]) error {
	if err := authz.DeleteRole.Authorize(c.Principal); err != nil {
		return err
	}
	var more bool
	err := s.access.Mutate(ctx, c, func(tx *store.Tx) (event *rolecall.Event, err error) {
		event, more, err = s.deleteRole(tx, c, id, force, match)
		return event, err
	})
	if err == nil && more {
		s.access.Unfinished(c.Tenant.ID)
	}
	return err
}

// deleteRole deletes the role in the transaction. It returns the event of the deletion. The
// result more is true if assignments of the role can remain.
func (s *Service) deleteRole(tx *store.Tx, c access.Caller, id rolecall.RoleID, force bool, match Match[rolecall.Role]) (event *rolecall.Event, more bool, err error) {
	tx.LockOwners()
	old, err := changeableRole(tx, c, id, match)
	if err != nil {
		return nil, false, err
	}
	if tenant, err := tx.TenantByID(c.Tenant.ID); err != nil {
		return nil, false, err
	} else if tenant.Settings.SecondFactor.Names(id) {
		return nil, false, rolecall.ErrRoleDemandsFactor
	}
	if !force {
		if used, err := tx.RoleInUse(id, s.now()); err != nil {
			return nil, false, err
		} else if used {
			return nil, false, rolecall.ErrRoleInUse
		}
	}
	cause := s.access.Event(c, rolecall.EventRoleDeleted, rolecall.About(id))
	if more, err = s.unassignHolders(tx, cause, old.ID, s.now()); err != nil {
		return nil, false, err
	}
	if event, err = changeEvent(s, c, rolecall.EventRoleDeleted, rolecall.About(id), &old, nil, nil); err != nil {
		return nil, false, err
	}
	if more {
		return event, true, store.CheckVersion(tx.HideRole(old, event.ID))
	}
	return event, false, store.CheckVersion(tx.DeleteRole(old))
}

// ContinueDeletions continues the deletions of roles, groups and directories that are not finished. It
// returns 0 if the tenant has none. Otherwise, it returns access.BatchSize or more, and the caller calls it again.
func (s *Service) ContinueDeletions(tx *store.Tx) (int, error) {
	if unfinished, err := hasDeletions(tx); err != nil || !unfinished {
		return 0, err
	}
	tx.LockOwners() // two processes that remove the same rows would both find too few, and end the deletion too early
	ofRole, err := s.continueRoleDeletion(tx)
	if err != nil {
		return 0, err
	}
	ofGroup, err := s.continueGroupDeletion(tx)
	if err != nil {
		return 0, err
	}
	ofDirectory, err := continueDirectoryDeletion(tx)
	return ofRole + ofGroup + ofDirectory, err
}

// hasDeletions reports whether the deletion of a role, a group or a directory is not finished.
func hasDeletions(tx *store.Tx) (bool, error) {
	_, _, err := tx.HiddenRole()
	if there, err := access.Found(err); there || err != nil {
		return there, err
	}
	_, _, err = tx.HiddenGroup()
	if there, err := access.Found(err); there || err != nil {
		return there, err
	}
	_, err = tx.HiddenDirectory()
	return access.Found(err)
}

// continueRoleDeletion continues the deletion of a role that DeleteRole has not finished.
// It removes up to access.BatchSize assignments to users and as many assignments to service
// accounts. continueRoleDeletion returns 0 if the tenant has no such role. Otherwise, it
// returns access.BatchSize, and the caller calls it again.
func (s *Service) continueRoleDeletion(tx *store.Tx) (int, error) {
	role, deletion, err := tx.HiddenRole()
	if there, err := access.Found(err); !there {
		return 0, err
	}
	more, err := s.unassignHolders(tx, &deletion, role, deletion.ID.CreatedAt())
	if err == nil && !more {
		tx.DeleteHiddenRole(role)
	}
	return access.BatchSize, err // not 0, because assignments of this or another role can remain
}

// unassignHolders removes up to access.BatchSize assignments of the role to users, as many to
// service accounts, and all to groups, which end at the time. The result more is true if assignments can remain. For each
// unexpired assignment, unassignHolders writes an event with the actor and the request of
// cause. It writes no events if cause has no type, because cause was purged from the store.
func (s *Service) unassignHolders(tx *store.Tx, cause *rolecall.Event, role rolecall.RoleID, at rolecall.Time) (more bool, err error) {
	users, err := tx.DeleteAssignments(role, at, access.BatchSize)
	if err != nil {
		return false, err
	}
	accounts, err := tx.DeleteServiceAccountRoles(role, access.BatchSize)
	if err != nil {
		return false, err
	}
	groups, err := tx.DeleteGroupRoles(role, at)
	if err != nil {
		return false, err
	}
	now := s.now()
	for _, a := range slices.Concat(users, accounts, groups) {
		if !a.Live(now) || cause.Type == "" {
			continue
		}
		if err := unassignedEvent(tx, cause, now, &a, "role deleted"); err != nil {
			return false, err
		}
	}
	return len(users) >= access.BatchSize || len(accounts) >= access.BatchSize, nil
}

// unassignedEvent writes the event that the assignment ended because of the deletion cause.
func unassignedEvent(tx *store.Tx, cause *rolecall.Event, now rolecall.Time, a *rolecall.Assignment, reason string) error {
	event := *cause
	event.ID, event.OccurredAt = rolecall.NewID[rolecall.Event](now), now
	event.Type, event.Subject, event.Reason = rolecall.EventRoleUnassigned, a.Holder.Subject(), reason
	if err := access.SetAssignments(&event, a, nil); err != nil {
		return err
	}
	tx.InsertEvent(event)
	return nil
}

// changeableRole returns the role with the id if the caller may change it. It returns
// ErrNotFound, ErrBeyondOwnPermissions, ErrPreconditionFailed if match is false, and
// ErrSystemRole.
func changeableRole(tx *store.Tx, c access.Caller, id rolecall.RoleID, match Match[rolecall.Role]) (rolecall.Role, error) {
	role, err := tx.RoleByID(id)
	if err != nil {
		return role, err
	}
	if err := authz.RequireGrantable(c.Principal, &role, rolecall.Everywhere(), rolecall.Never); err != nil {
		return role, err
	}
	if err := match.Check(&role); err != nil {
		return role, err
	}
	if role.System {
		return role, rolecall.ErrSystemRole
	}
	return role, nil
}

// giveSelf prevents callers from adding permissions to themselves by changing a role that
// they hold, directly or through a group. It returns ErrBeyondOwnPermissions if the caller holds the role and the change
// adds a permission that the caller does not hold. Here it is not enough that the caller
// may assign the permission to others.
func giveSelf(tx *store.Tx, c access.Caller, old, changed *rolecall.Role) error {
	self := rolecall.HolderOf(c.User.ID)
	if c.Kind == authz.PrincipalServiceAccount {
		self.Kind = rolecall.HolderAccount
	}
	held, err := tx.Assignments(self)
	if err != nil {
		return err
	}
	for i := range held {
		if held[i].Role.ID != old.ID {
			continue
		}
		if err := authz.RequireRoleChange(c.Principal, &held[i], old, changed); err != nil {
			return err
		}
	}
	return nil
}

package directory

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// DeletedListing selects a page of deleted users.
type DeletedListing struct {
	After *rolecall.Position
	Limit int
}

// DeletedUsers returns a page of the deleted users that the caller may restore, the most
// recently deleted first. Their status is rolecall.UserDeleted. DeletedUsers can fail with
// ErrPermissionDenied.
func (s *Service) DeletedUsers(ctx context.Context, c access.Caller, l DeletedListing) (page rolecall.Page[rolecall.Tombstone], err error) {
	if err := authz.ListDeletedUsers.Authorize(c.Principal); err != nil {
		return page, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) (err error) {
		page, err = tx.Tombstones(rolecall.TombstoneQuery{
			Within: c.Reach(rolecall.UsersRestore), Since: s.restorable(), After: l.After, Limit: l.Limit,
		})
		return err
	})
	for i := range page.Items {
		page.Items[i].User.Status = rolecall.UserDeleted
	}
	return page, err
}

// DeletedUser returns the deleted user with the id if the caller may restore the user. The
// status is the one that the user had before the deletion. DeletedUser can fail with
// ErrNotFound or ErrPermissionDenied.
func (s *Service) DeletedUser(ctx context.Context, c access.Caller, id rolecall.UserID) (tombstone rolecall.Tombstone, err error) {
	if err := authz.ListDeletedUsers.AuthorizeFor(c.Principal, id); err != nil {
		return tombstone, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		found, err := tx.Tombstone(id, s.restorable())
		if err != nil {
			return err
		}
		if !c.Reach(rolecall.UsersRestore).Includes(found.User.Department) {
			return rolecall.ErrNotFound
		}
		tombstone = found
		return nil
	})
	return tombstone, err
}

// restorable returns the time since which users must have been deleted to be restorable.
// Users who were deleted before this time cannot be restored.
func (s *Service) restorable() rolecall.Time { return s.now().Add(-rolecall.TombstoneLifetime) }

// Restored is a restored user.
type Restored struct {
	User             rolecall.User
	RolesNotRestored []rolecall.RoleID // the user's unexpired roles at the deletion that the caller may not assign, or that do not exist
	RolesReadable    bool

	GroupsNotRestored []rolecall.GroupID // the user's groups at the deletion that the caller may not add the user to, that have a source, or that do not exist
	GroupsReadable    bool
}

// RestoreUser restores a user who was deleted less than 30 days ago, with those of the user's roles that the caller may
// assign, and in those of the user's groups that the caller may add the user to. A user who was active becomes pending,
// because the password was deleted. RestoreUser can fail with ErrNotFound, ErrPermissionDenied, ErrEmailTaken or
// ErrExternalIDTaken.
func (s *Service) RestoreUser(ctx context.Context, c access.Caller, id rolecall.UserID) (restored Restored, err error) {
	if err := authz.RestoreUser.AuthorizeFor(c.Principal, id); err != nil {
		return restored, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		tx.LockOwners()
		tombstone, err := tx.DeleteTombstone(id, s.restorable())
		if err != nil {
			return nil, err
		}
		user := tombstone.Restored(s.now())
		if !c.Reach(rolecall.UsersRestore).Includes(user.Department) {
			return nil, rolecall.ErrNotFound
		}
		back, missing, err := s.returning(tx, c, &user, tombstone.Assignments)
		if err != nil {
			return nil, err
		}
		memberships, left, err := s.rejoining(tx, c, &user, tombstone.Groups)
		if err != nil {
			return nil, err
		}
		tx.InsertUser(user)
		tx.InsertAssignments(back)
		tx.StartAssignments(user.ID, s.now())
		tx.InsertMemberships(memberships)
		restored = Restored{
			User: user, RolesNotRestored: missing, RolesReadable: c.Reach(rolecall.RolesRead).Includes(user.Department),
			GroupsNotRestored: left, GroupsReadable: authz.ReadGroups.Authorize(c.Principal) == nil,
		}
		return s.restoredEvent(c, &user, back, missing, memberships, left)
	})
	if err != nil {
		return Restored{}, err
	}
	return restored, nil
}

// returning splits the unexpired assignments of a deleted user in two. The result back has
// the assignments that the caller may make now. The result missing has the roles of the
// other assignments. The transaction must have called LockOwners.
func (s *Service) returning(tx *store.Tx, c access.Caller, user *rolecall.User, assignments []rolecall.Assignment) (back []rolecall.Assignment, missing []rolecall.RoleID, err error) {
	now := s.now()
	live := slices.DeleteFunc(assignments, func(a rolecall.Assignment) bool { return !a.Live(now) })
	roles, err := rolesOf(tx, live)
	mayAssign := c.RequirePermission(rolecall.RolesAssign, user.Department) == nil
	for _, a := range live {
		id := a.Role.ID
		role, there := roles[id]
		if a.Role = role; there && mayAssign && authz.RequireAssignable(c.Principal, &a) == nil {
			back = append(back, a)
		} else {
			missing = append(missing, id)
		}
	}
	return back, missing, err
}

// rejoining splits the groups of a deleted user in two. The result back has the memberships that the caller may make
// now. The result left has the other groups. The transaction must have called LockOwners.
func (s *Service) rejoining(tx *store.Tx, c access.Caller, user *rolecall.User, groups []rolecall.GroupID) (back []rolecall.Membership, left []rolecall.GroupID, err error) {
	stored, err := tx.GroupsByID(groups)
	if err != nil {
		return nil, nil, err
	}
	now := s.now()
	for _, id := range groups {
		i := slices.IndexFunc(stored, func(g rolecall.Group) bool { return g.ID == id })
		if i < 0 || requireUnfilled(&stored[i]) != nil {
			left = append(left, id)
			continue
		}
		held, err := s.liveAssignments(tx, rolecall.HolderOf(id))
		if err != nil {
			return nil, nil, err
		}
		may := authz.AddMember.AuthorizeUser(c.Principal, user, nil, now) == nil &&
			(len(held) == 0 || c.RequirePermission(rolecall.RolesAssign, user.Department) == nil) && requireMember(c, held, user.ID) == nil
		if !may {
			left = append(left, id)
			continue
		}
		back = append(back, rolecall.Membership{Group: rolecall.GroupName{ID: id, Name: stored[i].Name}, User: user.ID, AddedBy: c.Grantor(), AddedAt: now})
	}
	return back, left, nil
}

// rolesOf returns the stored roles of the assignments, by role id. Deleted roles are
// missing.
func rolesOf(tx *store.Tx, assignments []rolecall.Assignment) (map[rolecall.RoleID]rolecall.Role, error) {
	ids := make([]rolecall.RoleID, len(assignments))
	for i := range assignments {
		ids[i] = assignments[i].Role.ID
	}
	roles, err := tx.RolesByID(ids)
	byID := make(map[rolecall.RoleID]rolecall.Role, len(roles))
	for _, role := range roles {
		byID[role.ID] = role
	}
	return byID, err
}

func (s *Service) restoredEvent(c access.Caller, user *rolecall.User, back []rolecall.Assignment, missing []rolecall.RoleID, memberships []rolecall.Membership, left []rolecall.GroupID) (*rolecall.Event, error) {
	value := struct {
		rolecall.User
		Roles            []rolecall.RoleID `json:"roles"`
		RolesNotRestored []rolecall.RoleID `json:"rolesNotRestored,omitempty"`

		Groups            []rolecall.GroupID `json:"groups,omitempty"`
		GroupsNotRestored []rolecall.GroupID `json:"groupsNotRestored,omitempty"`
	}{User: *user, Roles: []rolecall.RoleID{}, RolesNotRestored: missing, GroupsNotRestored: left}
	for _, a := range back {
		value.Roles = append(value.Roles, a.Role.ID)
	}
	for _, m := range memberships {
		value.Groups = append(value.Groups, m.Group.ID)
	}
	after, err := json.Marshal(value)
	event := s.access.Event(c, rolecall.EventUserRestored, rolecall.About(user.ID))
	event.Values = &rolecall.EventValues{After: after}
	return event, err
}

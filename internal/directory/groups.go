package directory

import (
	"bytes"
	"context"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/store"
)

// Groups returns a page of the groups that q selects. Groups can fail with ErrPermissionDenied.
func (s *Service) Groups(ctx context.Context, c access.Caller, q rolecall.GroupQuery) (page rolecall.Page[rolecall.Group], err error) {
	if err := authz.ReadGroups.Authorize(c.Principal); err != nil {
		return page, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Page[rolecall.Group], error) { return tx.Groups(q) })
}

// Group returns the group with the id. Group can fail with ErrNotFound or ErrPermissionDenied.
func (s *Service) Group(ctx context.Context, c access.Caller, id rolecall.GroupID) (group rolecall.Group, err error) {
	if err := authz.ReadGroups.Authorize(c.Principal); err != nil {
		return group, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Group, error) { return tx.GroupByID(id) })
}

// GroupUsers returns a page of the members of the group. It returns ErrNotFound if the group does not exist, and the
// errors of Users.
func (s *Service) GroupUsers(ctx context.Context, c access.Caller, id rolecall.GroupID, l UserListing) (UserPage, error) {
	if err := authz.ListGroupUsers.Authorize(c.Principal); err != nil {
		return UserPage{}, err
	}
	if id.IsZero() {
		return UserPage{}, rolecall.ErrNotFound
	}
	l.Group = id
	page, err := s.Users(ctx, c, l)
	if err == nil && len(page.Items) == 0 { // the group is unknown, or no user on this page matches
		_, err = s.Group(ctx, c, id)
	}
	return page, err
}

// UserGroups returns a page of the memberships of the user, sorted by the id of the group. UserGroups can fail with
// ErrNotFound or ErrPermissionDenied.
func (s *Service) UserGroups(ctx context.Context, c access.Caller, id rolecall.UserID, after *rolecall.Position, limit int) (page rolecall.Page[rolecall.Membership], err error) {
	if err := authz.ReadUserGroups.AuthorizeFor(c.Principal, id); err != nil {
		return page, err
	}
	all, err := access.Read(ctx, s.access, c, func(tx *store.Tx) ([]rolecall.Membership, error) {
		if _, _, err := s.access.AuthorizedUser(tx, c, authz.ReadUserGroups, id); err != nil {
			return nil, err
		}
		return tx.Memberships(id)
	})
	if err != nil {
		return page, err
	}
	if after != nil {
		all = from(all, func(m rolecall.Membership) bool { return bytes.Compare(m.Group.ID[:], after.ID[:]) > 0 })
	}
	if page.Items = all; len(all) > limit {
		page.Items, page.Next = all[:limit], &rolecall.Position{ID: rolecall.AnyID(all[limit-1].Group.ID)}
	}
	return page, nil
}

// errTooManyGroups is the error for a group above the limit of a tenant.
var errTooManyGroups = rolecall.ErrLimitReached.With("This tenant has the maximum number of groups, 2,000. Delete one first.")

// CreateGroup creates a group without members and roles, once for each idempotency key. With a source, the caller must
// be allowed to configure connections. CreateGroup can fail with ErrPermissionDenied, ErrSessionRequired,
// ErrValidation, ErrLimitReached, ErrGroupNameTaken, ErrGroupExternalIDTaken, ErrKeyReused, ErrKeyInProgress or
// ErrTooManyKeys.
func (s *Service) CreateGroup(ctx context.Context, c access.Caller, key idempotency.Key, draft rolecall.GroupDraft) (created idempotency.Created[rolecall.Group], err error) {
	policy := authz.CreateGroup
	if draft.Source != (rolecall.MemberSource{}) {
		policy = authz.CreateFilledGroup
	}
	if err := policy.Authorize(c.Principal); err != nil {
		return created, err
	}
	if err := draft.Check(c.Tenant.Settings.NameMinimum()).Err(); err != nil {
		return created, err
	}
	group := draft.Group(s.now())
	return access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.Group]{
		Operation: "createGroup", ID: rolecall.AnyID(group.ID), Value: group,
		Event: s.access.Event(c, rolecall.EventGroupCreated, rolecall.About(group.ID)),
		Insert: func(tx *store.Tx) error {
			tx.LockOwners()
			stored, err := tx.Groups(rolecall.GroupQuery{Limit: 1, Count: true})
			if err != nil {
				return err
			}
			if stored.Total.Count >= rolecall.GroupsMax {
				return errTooManyGroups
			}
			if err := requireSource(tx, group.Source); err != nil {
				return err
			}
			tx.InsertGroup(group)
			return nil
		},
		OnlyID: func(id rolecall.AnyID) rolecall.Group { return rolecall.Group{ID: rolecall.GroupID(id)} },
	})
}

// requireSource returns ErrValidation if the source of a group does not exist.
func requireSource(tx *store.Tx, source rolecall.MemberSource) (err error) {
	switch source.Type {
	case rolecall.SourceDirectory:
		_, err = tx.Directory(rolecall.DirectoryID(source.ID))
	case rolecall.SourceConnection:
		_, err = tx.Connection(rolecall.ConnectionID(source.ID))
	}
	if there, err := access.Found(err); there || err != nil {
		return err
	}
	var faults rolecall.FieldErrors
	faults.Add("/source/id", "unknown", "must be the ID of a directory or a connection of this tenant")
	return faults.Err()
}

// requireUnfilled returns ErrManagedByDirectory if the group has a source, which alone may change the name, the
// external id and the members, and delete the group.
func requireUnfilled(g *rolecall.Group) error {
	if g.Source != (rolecall.MemberSource{}) {
		return rolecall.ErrManagedByDirectory
	}
	return nil
}

// UpdateGroup applies the patch to the stored group. After a concurrent change, it applies the patch to the new
// version. UpdateGroup can fail with ErrPermissionDenied, ErrValidation, ErrNotFound, ErrPreconditionFailed,
// ErrManagedByDirectory, ErrGroupNameTaken or ErrGroupExternalIDTaken.
func (s *Service) UpdateGroup(ctx context.Context, c access.Caller, id rolecall.GroupID, patch rolecall.GroupPatch, match Match[rolecall.Group]) (group rolecall.Group, err error) {
	if err := authz.UpdateGroup.Authorize(c.Principal); err != nil {
		return group, err
	}
	if err := patch.Check(c.Tenant.Settings.NameMinimum()).Err(); err != nil {
		return group, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := tx.GroupByID(id)
		if err != nil {
			return nil, err
		}
		if err := match.Check(&old); err != nil {
			return nil, err
		}
		changed, members := patch.Apply(old, s.now())
		if group = changed; members == nil {
			return nil, nil
		}
		if !slices.Equal(members, []string{"description"}) {
			if err := requireUnfilled(&old); err != nil {
				return nil, err
			}
		}
		if err := store.CheckVersion(tx.UpdateGroup(old, changed)); err != nil {
			return nil, err
		}
		return changeEvent(s, c, rolecall.EventGroupUpdated, rolecall.About(id), &old, &changed, members)
	})
	if err != nil {
		return rolecall.Group{}, err
	}
	return group, nil
}

// DeleteGroup deletes the group. If the group has unexpired roles, DeleteGroup returns ErrGroupHasRoles, unless force
// is true, and the caller must be able to assign these roles. The group disappears with its roles at once. If it has
// access.BatchSize or more members, a background task removes the remaining ones. DeleteGroup can also fail with
// ErrPermissionDenied, ErrNotFound, ErrBeyondOwnPermissions, ErrPreconditionFailed or ErrManagedByDirectory.
func (s *Service) DeleteGroup(ctx context.Context, c access.Caller, id rolecall.GroupID, force bool, match Match[rolecall.Group]) error {
	if err := authz.DeleteGroup.Authorize(c.Principal); err != nil {
		return err
	}
	var more bool
	err := s.access.Mutate(ctx, c, func(tx *store.Tx) (event *rolecall.Event, err error) {
		event, more, err = s.deleteGroup(tx, c, id, force, match)
		return event, err
	})
	if err == nil && more {
		s.access.Unfinished(c.Tenant.ID)
	}
	return err
}

// deleteGroup deletes the group in the transaction. It returns the event of the deletion. The result more is true if
// members can remain.
func (s *Service) deleteGroup(tx *store.Tx, c access.Caller, id rolecall.GroupID, force bool, match Match[rolecall.Group]) (event *rolecall.Event, more bool, err error) {
	tx.LockOwners()
	group, err := tx.GroupByID(id)
	if err != nil {
		return nil, false, err
	}
	held, err := s.liveAssignments(tx, rolecall.HolderOf(id))
	if err != nil {
		return nil, false, err
	}
	now := s.now()
	for i := range held {
		if c.Kind == authz.PrincipalDirectory { // only holders of all permissions can configure it
			break
		}
		if err := authz.RequireGrantable(c.Principal, &held[i].Role, held[i].Reach, now); err != nil {
			return nil, false, err
		}
	}
	if err := match.Check(&group); err != nil {
		return nil, false, err
	}
	if c.Kind != authz.PrincipalDirectory {
		if err := requireUnfilled(&group); err != nil {
			return nil, false, err
		}
	}
	if len(held) > 0 && !force {
		return nil, false, rolecall.ErrGroupHasRoles
	}
	cause := s.access.Event(c, rolecall.EventGroupDeleted, rolecall.About(id))
	for i := range held {
		if err := unassignedEvent(tx, cause, now, &held[i], groupDeleted); err != nil {
			return nil, false, err
		}
	}
	if event, err = changeEvent(s, c, rolecall.EventGroupDeleted, rolecall.About(id), &group, nil, nil); err != nil { // after those above: store.Deletions reads the newest event about the group
		return nil, false, err
	}
	if err := store.CheckVersion(tx.HideGroup(group, event.ID, now)); err != nil {
		return nil, false, err
	}
	more, err = s.removeMembers(tx, event, rolecall.GroupName{ID: id, Name: group.Name}, now)
	if err == nil && !more {
		tx.DeleteHiddenGroup(id)
	}
	return event, more, err
}

// groupDeleted is the reason in the events of roles and members that a deleted group has lost.
const groupDeleted = "group deleted"

// continueGroupDeletion continues the deletion of a group that DeleteGroup has not finished. It removes up to
// access.BatchSize members. continueGroupDeletion returns 0 if the tenant has no such group. Otherwise, it returns
// access.BatchSize, and the caller calls it again.
func (s *Service) continueGroupDeletion(tx *store.Tx) (int, error) {
	group, deletion, err := tx.HiddenGroup()
	if there, err := access.Found(err); !there {
		return 0, err
	}
	more, err := s.removeMembers(tx, &deletion, group, deletion.ID.CreatedAt())
	if err == nil && !more {
		tx.DeleteHiddenGroup(group.ID)
	}
	return access.BatchSize, err // not 0, because members of this or another group can remain
}

// removeMembers removes up to access.BatchSize members of a hidden group, whose memberships end at the time. The result
// more is true if members can remain. For each member, removeMembers writes an event with the actor and the request of
// cause. It writes no events if cause has no type, because cause was purged from the store.
func (s *Service) removeMembers(tx *store.Tx, cause *rolecall.Event, group rolecall.GroupName, at rolecall.Time) (more bool, err error) {
	members, err := tx.DeleteMembers(group, at, access.BatchSize)
	if err != nil {
		return false, err
	}
	for _, m := range members {
		if cause.Type == "" {
			break
		}
		event := *cause
		event.ID, event.OccurredAt = rolecall.NewID[rolecall.Event](s.now()), s.now()
		event.Type, event.Subject, event.Reason = rolecall.EventMemberRemoved, rolecall.About(m.User), groupDeleted
		if err := access.SetMembership(&event, &m.Group, nil); err != nil {
			return false, err
		}
		tx.InsertEvent(event)
	}
	return len(members) >= access.BatchSize, nil
}

// errTooManyGroupsOfUser is the error for a membership above the limit of a user.
var errTooManyGroupsOfUser = rolecall.ErrLimitReached.With("This user is in the maximum number of groups, 200. Remove the user from one first.")

// AddMember adds the user to the group. If the user is a member already, it changes nothing. If the group has roles,
// the caller must be able to assign each of them to the user as the group has it. AddMember can fail with
// ErrPermissionDenied, ErrBeyondOwnPermissions, ErrManagedByDirectory or ErrLimitReached. It returns ErrNotFound if the
// group or the user does not exist, or if the user is not visible to the caller.
func (s *Service) AddMember(ctx context.Context, c access.Caller, group rolecall.GroupID, user rolecall.UserID) error {
	if err := authz.AddMember.AuthorizeFor(c.Principal, user); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		g, held, err := s.changeableMembership(tx, c, authz.AddMember, group, user)
		if err != nil {
			return nil, err
		}
		if err := requireMember(c, held, user); err != nil {
			return nil, err
		}
		if err := requireUnfilled(&g); err != nil {
			return nil, err
		}
		memberships, err := tx.Memberships(user)
		if err != nil {
			return nil, err
		}
		isMember := slices.ContainsFunc(memberships, func(m rolecall.Membership) bool { return m.Group.ID == group })
		if !isMember && len(memberships) >= rolecall.GroupsOfUserMax {
			return nil, errTooManyGroupsOfUser
		}
		name := rolecall.GroupName{ID: g.ID, Name: g.Name}
		if added, err := tx.AddMember(rolecall.Membership{Group: name, User: user, AddedBy: c.Grantor(), AddedAt: s.now()}); err != nil || !added {
			return nil, err
		}
		event := s.access.Event(c, rolecall.EventMemberAdded, rolecall.About(user))
		return event, access.SetMembership(event, nil, &name)
	})
}

// RemoveMember removes the user from the group. If the group has roles, the caller must be able to remove each of them
// from the user. RemoveMember can fail with ErrPermissionDenied, ErrBeyondOwnPermissions or ErrManagedByDirectory. It
// returns ErrNotFound if the group or the user does not exist, if the user is not visible to the caller, or if the user
// is not a member.
func (s *Service) RemoveMember(ctx context.Context, c access.Caller, group rolecall.GroupID, user rolecall.UserID) error {
	if err := authz.RemoveMember.AuthorizeFor(c.Principal, user); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		g, held, err := s.changeableMembership(tx, c, authz.RemoveMember, group, user)
		if err != nil {
			return nil, err
		}
		for i := range held {
			if err := authz.RequireGrantable(c.Principal, &held[i].Role, held[i].Reach, s.now()); err != nil {
				return nil, err
			}
		}
		if err := requireUnfilled(&g); err != nil {
			return nil, err
		}
		if removed, err := tx.RemoveMember(user, group, s.now()); err != nil {
			return nil, err
		} else if !removed {
			return nil, rolecall.ErrNotFound
		}
		event := s.access.Event(c, rolecall.EventMemberRemoved, rolecall.About(user))
		return event, access.SetMembership(event, &rolecall.GroupName{ID: g.ID, Name: g.Name}, nil)
	})
}

// changeableMembership returns the group with its unexpired assignments, if the policy allows the caller to change the
// memberships of the user. If the group has roles, the caller also needs the permission to assign roles to the user. It
// calls LockOwners, so that the roles of the group do not change concurrently.
func (s *Service) changeableMembership(tx *store.Tx, c access.Caller, policy *authz.Policy, group rolecall.GroupID, user rolecall.UserID) (rolecall.Group, []rolecall.Assignment, error) {
	tx.LockOwners()
	g, err := tx.GroupByID(group)
	if err != nil {
		return g, nil, err
	}
	u, _, err := s.access.AuthorizedUser(tx, c, policy, user)
	if err != nil {
		return g, nil, err
	}
	held, err := s.liveAssignments(tx, rolecall.HolderOf(group))
	if err == nil && len(held) > 0 {
		err = c.RequirePermission(rolecall.RolesAssign, u.Department)
	}
	return g, held, err
}

// requireMember returns ErrBeyondOwnPermissions if the caller could not make one of the assignments of a group to the
// user.
func requireMember(c access.Caller, ofGroup []rolecall.Assignment, user rolecall.UserID) error {
	for _, a := range ofGroup {
		a.Holder = rolecall.HolderOf(user)
		if err := authz.RequireAssignable(c.Principal, &a); err != nil {
			return err
		}
	}
	return nil
}

// liveAssignments returns the unexpired assignments of the holder.
func (s *Service) liveAssignments(tx *store.Tx, h rolecall.Holder) ([]rolecall.Assignment, error) {
	live, _, err := s.assignments(tx, h)
	return live, err
}

// errTooManyGroupRoles is the error for an assignment to a group above the limit of a tenant.
var errTooManyGroupRoles = rolecall.ErrLimitReached.With("The groups of this tenant have the maximum number of roles together, 500, including the expired ones. Remove one first.")

// errTooManyGroupDepartments is the error for a reach of an assignment to a group above the limit.
var errTooManyGroupDepartments = rolecall.ErrLimitReached.With("A role of a group can name at most 20 departments. Name fewer departments, or none for the whole tenant.")

// replacedOfGroup does for a group what replaced does for other holders.
func replacedOfGroup(tx *store.Tx, a *rolecall.Assignment) (old rolecall.Assignment, was bool, err error) {
	old, err = tx.Assignment(a.Holder, a.Role.ID)
	if was, err = access.Found(err); err != nil {
		return old, was, err
	}
	if a.Reach.Count() > rolecall.GroupReachMax {
		return old, was, errTooManyGroupDepartments
	}
	if !was {
		n, err := tx.CountGroupRoles()
		if err == nil && n >= rolecall.GroupRolesMax {
			err = errTooManyGroupRoles
		}
		return old, was, err
	}
	return old, was, nil
}

// requireGroupAssignable returns ErrOwnerNeedsUser if the role of the assignment to a group is Owner. If the caller is
// a member of the group, it returns ErrBeyondOwnPermissions unless the caller could make the assignment to themselves.
func requireGroupAssignable(tx *store.Tx, c access.Caller, a *rolecall.Assignment) error {
	if a.Role.Key != nil && *a.Role.Key == rolecall.OwnerKey {
		return rolecall.ErrOwnerNeedsUser
	}
	if c.Kind != authz.PrincipalUser {
		return nil
	}
	_, err := tx.Membership(c.User.ID, a.Holder.GroupID())
	if isMember, err := access.Found(err); !isMember {
		return err
	}
	return requireMember(c, []rolecall.Assignment{*a}, c.User.ID)
}

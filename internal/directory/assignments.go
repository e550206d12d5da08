package directory

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// UserRoles returns the user's live assignments by role id, and the expired ones, the
// last expired first; or ErrNotFound, ErrPermissionDenied.
func (s *Service) UserRoles(ctx context.Context, c access.Caller, id rolecall.UserID) (live, expired []rolecall.Assignment, err error) {
	if err := authz.ReadUserRoles.AuthorizeFor(c.Principal, id); err != nil {
		return nil, nil, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if _, _, err := s.access.AuthorizedUser(tx, c, authz.ReadUserRoles, id); err != nil {
			return err
		}
		live, expired, err = s.assignments(tx, id)
		return err
	})
	return live, expired, err
}

// assignments returns what UserRoles does.
func (s *Service) assignments(tx *store.Tx, id rolecall.UserID) (live, expired []rolecall.Assignment, err error) {
	all, err := tx.Assignments(id)
	live, expired = s.split(all)
	return live, expired, err
}

// split returns the assignments that count now, in their order, and the expired ones,
// the last expired first.
func (s *Service) split(assignments []rolecall.Assignment) (live, expired []rolecall.Assignment) {
	now := s.now()
	for _, a := range assignments {
		if a.Live(now) {
			live = append(live, a)
		} else {
			expired = append(expired, a)
		}
	}
	slices.SortStableFunc(expired, func(a, b rolecall.Assignment) int { return cmp.Compare(b.ExpiresAt, a.ExpiresAt) })
	return live, expired
}

// AssignRole gives the user the role, or replaces the assignment; created says
// which. It returns ErrNotFound for a user or role that is not there,
// ErrPermissionDenied, ErrBeyondOwnPermissions, and ErrLastOwner if a reach or an
// end would leave the tenant without an owner.
func (s *Service) AssignRole(ctx context.Context, c access.Caller, userID rolecall.UserID, roleID rolecall.RoleID, draft rolecall.AssignmentDraft) (a rolecall.Assignment, created bool, err error) {
	if err := authz.AssignRole.AuthorizeFor(c.Principal, userID); err != nil {
		return a, false, err
	}
	if err := draft.Check(s.now()).Err(); err != nil {
		return a, false, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (event *rolecall.Event, err error) {
		tx.LockOwners()
		user, role, err := s.assignable(tx, c, authz.AssignRole, userID, roleID)
		if err != nil {
			return nil, err
		}
		a, created, event, err = s.assign(c, ofUser(tx, &user), role, draft)
		return event, err
	})
	return a, created, err
}

// UnassignRole takes the role from the user. It returns what AssignRole does.
func (s *Service) UnassignRole(ctx context.Context, c access.Caller, userID rolecall.UserID, roleID rolecall.RoleID) error {
	if err := authz.UnassignRole.AuthorizeFor(c.Principal, userID); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		tx.LockOwners()
		user, role, err := s.assignable(tx, c, authz.UnassignRole, userID, roleID)
		if err != nil {
			return nil, err
		}
		return s.unassign(c, ofUser(tx, &user), role)
	})
}

// holder is who holds roles, inside of a transaction in which the owners are locked.
type holder struct {
	id     rolecall.UserID // also of a service account
	about  rolecall.Subject
	read   func(rolecall.RoleID) (rolecall.Assignment, error)
	put    func(rolecall.Assignment)
	remove func(rolecall.RoleID) (bool, error)
	spare  func(rolecall.Assignment) error // why the assignment cannot be missed; nil: it can
}

func ofUser(tx *store.Tx, user *rolecall.User) holder {
	return holder{
		id: user.ID, about: audit.AboutUser(user.ID), put: tx.PutAssignment,
		read:   func(role rolecall.RoleID) (rolecall.Assignment, error) { return tx.Assignment(user.ID, role) },
		remove: func(role rolecall.RoleID) (bool, error) { return tx.DeleteAssignment(user.ID, role) },
		spare:  func(a rolecall.Assignment) error { return keepOwner(tx, user, []rolecall.Assignment{a}) },
	}
}

func ofAccount(tx *store.Tx, id rolecall.ServiceAccountID) holder {
	return holder{
		id: rolecall.UserID(id), about: audit.AboutServiceAccount(id), put: tx.PutServiceAccountRole,
		read:   func(role rolecall.RoleID) (rolecall.Assignment, error) { return tx.ServiceAccountRole(id, role) },
		remove: func(role rolecall.RoleID) (bool, error) { return tx.DeleteServiceAccountRole(id, role) },
		spare:  func(rolecall.Assignment) error { return nil }, // it counts for no owner
	}
}

// assign gives the holder the role, or replaces the assignment; created says which. It
// returns the event of it.
func (s *Service) assign(c access.Caller, h holder, role rolecall.Role, draft rolecall.AssignmentDraft) (a rolecall.Assignment, created bool, event *rolecall.Event, err error) {
	now := s.now()
	a = rolecall.Assignment{
		UserID: h.id, Role: role, Reach: draft.Reach(), ExpiresAt: draft.Expiry(),
		GrantedBy: c.Grantor(), GrantedAt: now,
	}
	if err := authz.RequireAssignable(c.Principal, &a); err != nil {
		return a, false, nil, err
	}
	old, err := h.read(role.ID)
	was, err := access.Found(err)
	if err != nil {
		return a, false, nil, err
	}
	before := &old
	if created = !was || !old.Live(now); created {
		before = nil
	} else if err := authz.RequireGrantable(c.Principal, &role, old.Reach, now); err != nil {
		return a, false, nil, err
	} else if authz.IsFullOwner(&old) && !authz.IsFullOwner(&a) {
		if err := h.spare(old); err != nil {
			return a, false, nil, err
		}
	}
	h.put(a)
	event, err = s.assignmentEvent(c, rolecall.EventRoleAssigned, h.about, before, &a)
	return a, created, event, err
}

// unassign takes the role from the holder, and returns the event of it, or
// ErrNotFound.
func (s *Service) unassign(c access.Caller, h holder, role rolecall.Role) (*rolecall.Event, error) {
	old, err := h.read(role.ID)
	if err != nil {
		return nil, err
	}
	if err := authz.RequireGrantable(c.Principal, &role, old.Reach, s.now()); err != nil {
		return nil, err
	}
	if err := h.spare(old); err != nil {
		return nil, err
	}
	if ok, err := h.remove(role.ID); err != nil {
		return nil, err
	} else if !ok {
		return nil, rolecall.ErrNotFound
	}
	return s.assignmentEvent(c, rolecall.EventRoleUnassigned, h.about, &old, nil)
}

// assignable returns the user and the role if the caller may change who holds
// roles among the user's department.
func (s *Service) assignable(tx *store.Tx, c access.Caller, policy *authz.Policy, userID rolecall.UserID, roleID rolecall.RoleID) (rolecall.User, rolecall.Role, error) {
	user, err := access.VisibleUser(tx, c, userID)
	if err != nil {
		return user, rolecall.Role{}, err
	}
	role, err := tx.RoleByID(roleID)
	if err == nil {
		err = policy.AuthorizeUser(c.Principal, &user, nil, s.now())
	}
	return user, role, err
}

// assignmentEvent returns the event of a change of what roles the subject holds;
// before and after are nil where there is none.
func (s *Service) assignmentEvent(c access.Caller, kind rolecall.EventType, about rolecall.Subject, before, after *rolecall.Assignment) (*rolecall.Event, error) {
	event := s.access.Event(c, kind, about)
	event.Members, event.Values = []string{"roles"}, &rolecall.EventValues{}
	var err error
	if before != nil {
		if event.Values.Before, err = assignmentValue(before); err != nil {
			return nil, err
		}
	}
	if after != nil {
		event.Values.After, err = assignmentValue(after)
	}
	return event, err
}

func assignmentValue(a *rolecall.Assignment) ([]byte, error) {
	value := struct {
		RoleID      rolecall.RoleID `json:"roleId"`
		Departments []string        `json:"departments,omitempty"`
		ExpiresAt   *rolecall.Time  `json:"expiresAt,omitempty"`
	}{RoleID: a.Role.ID, Departments: a.Reach.Departments()}
	if a.ExpiresAt != rolecall.Never {
		value.ExpiresAt = &a.ExpiresAt
	}
	return json.Marshal(value)
}

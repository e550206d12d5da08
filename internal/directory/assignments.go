package directory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// Assignments returns the holder's assignments in two lists: the unexpired ones, sorted by
// the id of their role, and the expired ones, the most recently expired first. Assignments
// can fail with ErrNotFound or ErrPermissionDenied.
func (s *Service) Assignments(ctx context.Context, c access.Caller, h rolecall.Holder) (live, expired []rolecall.Assignment, err error) {
	policy := policyFor(h, authz.ReadUserRoles, authz.ReadServiceAccounts, authz.ReadGroups)
	if err := policy.AuthorizeFor(c.Principal, h.UserID()); err != nil {
		return nil, nil, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if err := s.authorizeHolder(tx, c, policy, h); err != nil {
			return err
		}
		live, expired, err = s.assignments(tx, h)
		return err
	})
	return live, expired, err
}

// assignments returns the same lists as Assignments, without authorizing a caller.
func (s *Service) assignments(tx *store.Tx, h rolecall.Holder) (live, expired []rolecall.Assignment, err error) {
	all, err := tx.Assignments(h)
	now := s.now()
	for _, a := range all {
		if a.Live(now) {
			live = append(live, a)
		} else {
			expired = append(expired, a)
		}
	}
	slices.SortStableFunc(expired, func(a, b rolecall.Assignment) int { return cmp.Compare(b.ExpiresAt, a.ExpiresAt) })
	return live, expired, err
}

// AssignmentsAt returns the assignments that the user had at the time and that had not expired. If a
// role was deleted since then, only its id, key and name are set. AssignmentsAt can fail with
// ErrNotFound or ErrPermissionDenied. It returns ErrMalformed if the time is in the future, and
// ErrHistoryExpired if its assignments are not recorded.
func (s *Service) AssignmentsAt(ctx context.Context, c access.Caller, id rolecall.UserID, at rolecall.Time) (held []rolecall.Assignment, err error) {
	if err := authz.ReadUserRoles.AuthorizeFor(c.Principal, id); err != nil {
		return nil, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if err := s.authorizeHolder(tx, c, authz.ReadUserRoles, rolecall.HolderOf(id)); err != nil {
			return err
		}
		if err := s.checkRecorded(tx, c, at); err != nil {
			return err
		}
		held, err = tx.AssignmentsAt(id, at)
		return err
	})
	return held, err
}

// checkRecorded returns ErrMalformed if the time is in the future, and ErrHistoryExpired if the
// assignments of the time are not recorded. They are kept as long as events.
func (s *Service) checkRecorded(tx *store.Tx, c access.Caller, at rolecall.Time) error {
	now := s.now()
	if at > now {
		return rolecall.ErrMalformed.WithFieldErrors(rolecall.FieldError{Parameter: "at", Code: "future", Detail: "must not be in the future"})
	}
	began, err := tx.AssignmentHistoryBegin()
	if err != nil {
		return err
	}
	if at < max(began, now.Add(-c.Tenant.Settings.EventLifetime())) {
		return rolecall.ErrHistoryExpired
	}
	return nil
}

// AssignRole assigns the role to the holder, or replaces the holder's assignment of this
// role. The result created is true if the holder had no unexpired assignment of the role.
// AssignRole can fail with ErrValidation, ErrPermissionDenied, ErrBeyondOwnPermissions, ErrLimitReached or
// ErrOwnerNeedsUser.
// It returns ErrNotFound if the holder or the role does not exist. It returns ErrLastOwner
// if the new assignment has a reach or an expiry, and the tenant would be left without an
// owner.
func (s *Service) AssignRole(ctx context.Context, c access.Caller, h rolecall.Holder, roleID rolecall.RoleID, draft rolecall.AssignmentDraft) (a rolecall.Assignment, created bool, err error) {
	policy := policyFor(h, authz.AssignRole, authz.AssignServiceAccountRole, authz.AssignGroupRole)
	if err := policy.AuthorizeFor(c.Principal, h.UserID()); err != nil {
		return a, false, err
	}
	if err := draft.Check(s.now()).Err(); err != nil {
		return a, false, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (event *rolecall.Event, err error) {
		role, err := s.assignable(tx, c, policy, h, roleID)
		if err != nil {
			return nil, err
		}
		a, created, event, err = s.assign(tx, c, h, role, draft)
		return event, err
	})
	return a, created, err
}

// UnassignRole removes the holder's assignment of the role. It returns ErrNotFound if the
// holder, the role or the assignment does not exist. UnassignRole can also fail with
// ErrPermissionDenied or ErrBeyondOwnPermissions. It returns ErrLastOwner if the tenant
// would be left without an owner.
func (s *Service) UnassignRole(ctx context.Context, c access.Caller, h rolecall.Holder, roleID rolecall.RoleID) error {
	policy := policyFor(h, authz.UnassignRole, authz.UnassignServiceAccountRole, authz.UnassignGroupRole)
	if err := policy.AuthorizeFor(c.Principal, h.UserID()); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		role, err := s.assignable(tx, c, policy, h, roleID)
		if err != nil {
			return nil, err
		}
		return s.unassign(tx, c, h, role)
	})
}

// unassign removes the holder's assignment of the role. It returns the event of the change,
// or ErrNotFound if the holder does not have the role. It writes nothing if it returns an
// error.
func (s *Service) unassign(tx *store.Tx, c access.Caller, h rolecall.Holder, role rolecall.Role) (*rolecall.Event, error) {
	old, err := tx.Assignment(h, role.ID)
	if err != nil {
		return nil, err
	}
	if err := authz.RequireGrantable(c.Principal, &role, old.Reach, s.now()); err != nil {
		return nil, err
	}
	if err := checkLastOwnerAssignment(tx, h, &old); err != nil {
		return nil, err
	}
	if ok, err := tx.DeleteAssignment(h, role.ID, s.now()); err != nil {
		return nil, err
	} else if !ok {
		return nil, rolecall.ErrNotFound
	}
	return s.assignmentEvent(c, rolecall.EventRoleUnassigned, h.Subject(), &old, nil)
}

// assignable returns the role with the id if the policy allows the caller to change the
// assignments of the holder. It also calls LockOwners, so that the check for the last owner
// is safe from concurrent changes.
func (s *Service) assignable(tx *store.Tx, c access.Caller, policy *authz.Policy, h rolecall.Holder, id rolecall.RoleID) (rolecall.Role, error) {
	tx.LockOwners()
	role, err := tx.RoleByID(id)
	if err != nil {
		return role, err
	}
	return role, s.authorizeHolder(tx, c, policy, h)
}

// checkLastOwnerAssignment returns ErrLastOwner if the tenant would have no owner without
// the assignment a of the holder. Service accounts and groups do not count as owners.
func checkLastOwnerAssignment(tx *store.Tx, h rolecall.Holder, a *rolecall.Assignment) error {
	if h.Kind != rolecall.HolderUser || !authz.IsFullOwner(a) {
		return nil
	}
	user, err := tx.UserByID(h.UserID())
	if err != nil {
		return err
	}
	return checkLastOwner(tx, &user, []rolecall.Assignment{*a})
}

// assign assigns the role to the holder, or replaces the holder's assignment of this role.
// It returns the new assignment, whether the holder had no unexpired assignment before, and
// the event of the change. It writes nothing if it returns an error.
func (s *Service) assign(tx *store.Tx, c access.Caller, h rolecall.Holder, role rolecall.Role, draft rolecall.AssignmentDraft) (a rolecall.Assignment, created bool, event *rolecall.Event, err error) {
	now := s.now()
	a = rolecall.Assignment{
		Holder: h, Role: role, Reach: draft.Reach(), ExpiresAt: draft.Expiry(),
		GrantedBy: c.Grantor(), GrantedAt: now,
	}
	if err := authz.RequireAssignable(c.Principal, &a); err != nil {
		return a, false, nil, err
	}
	find := replaced
	if h.Kind == rolecall.HolderGroup {
		if err := requireGroupAssignable(tx, c, &a); err != nil {
			return a, false, nil, err
		}
		find = replacedOfGroup
	}
	old, was, err := find(tx, &a)
	if err != nil {
		return a, false, nil, err
	}
	before := &old
	if created = !was || !old.Live(now); created {
		before = nil
	} else if err := authz.RequireGrantable(c.Principal, &role, old.Reach, now); err != nil {
		return a, false, nil, err
	} else if authz.IsFullOwner(&old) && !authz.IsFullOwner(&a) {
		if err := checkLastOwnerAssignment(tx, h, &old); err != nil {
			return a, false, nil, err
		}
	}
	tx.UpsertAssignment(a)
	event, err = s.assignmentEvent(c, rolecall.EventRoleAssigned, h.Subject(), before, &a)
	return a, created, event, err
}

// errTooManyAssignments is the error for an assignment above the limit of a holder.
var errTooManyAssignments = rolecall.ErrLimitReached.With("This account has the maximum number of assignments, 200, including the expired ones. Remove one first.")

// errTooManyDepartments is the error for an assignment with which a holder would have too many departments.
var errTooManyDepartments = rolecall.ErrLimitReached.With("All assignments of this account together would name more than 1,000 departments. Name fewer departments, or none for the whole tenant.")

// replaced returns the assignment that the new assignment a replaces, and whether it exists. It returns
// ErrLimitReached if the holder would have more assignments, or more departments in them, than allowed. The caller
// must have called LockOwners.
func replaced(tx *store.Tx, a *rolecall.Assignment) (old rolecall.Assignment, was bool, err error) {
	old, err = tx.Assignment(a.Holder, a.Role.ID)
	if was, err = access.Found(err); err != nil || was && a.Reach.Count() <= old.Reach.Count() {
		return old, was, err
	}
	n, departments, err := tx.CountAssignments(a.Holder)
	switch {
	case err != nil:
	case !was && n >= rolecall.AssignmentsMax:
		err = errTooManyAssignments
	case a.Reach.Count() > 0 && departments-old.Reach.Count()+a.Reach.Count() > rolecall.HolderReachMax:
		err = errTooManyDepartments
	}
	return old, was, err
}

// assignmentEvent returns the event of a change of the subject's roles. The argument before
// is nil for a new assignment, and after is nil for a removed one.
func (s *Service) assignmentEvent(c access.Caller, kind rolecall.EventType, about rolecall.Subject, before, after *rolecall.Assignment) (*rolecall.Event, error) {
	event := s.access.Event(c, kind, about)
	return event, access.SetAssignments(event, before, after)
}

// policyFor returns the policy for the kind of the holder.
func policyFor(h rolecall.Holder, ofUser, ofAccount, ofGroup *authz.Policy) *authz.Policy {
	return [...]*authz.Policy{rolecall.HolderUser: ofUser, rolecall.HolderAccount: ofAccount, rolecall.HolderGroup: ofGroup}[h.Kind]
}

// authorizeHolder checks whether the policy allows the caller to perform the operation on
// the holder. It returns ErrNotFound if the holder does not exist or is not visible to the
// caller.
func (s *Service) authorizeHolder(tx *store.Tx, c access.Caller, policy *authz.Policy, h rolecall.Holder) (err error) {
	switch h.Kind {
	case rolecall.HolderAccount:
		_, _, err = s.authorizedAccount(tx, c, policy, h.ServiceAccountID())
	case rolecall.HolderGroup:
		if _, err = tx.GroupByID(h.GroupID()); err == nil {
			err = policy.Authorize(c.Principal)
		}
	default:
		_, _, err = s.access.AuthorizedUser(tx, c, policy, h.UserID())
	}
	return err
}

// AssignmentListing selects assignments of a holder.
type AssignmentListing struct {
	At             rolecall.Time // if set: the assignments that a user had at this time
	IncludeExpired bool          // without At: the expired assignments too, after the others
	After          *rolecall.Position
	Limit          int
}

// AssignmentPage returns a page of the assignments that l selects. Unexpired assignments, and those of
// an earlier time, are sorted by the id of their role. Of the expired ones, the most recently expired
// comes first. The errors are those of Assignments and AssignmentsAt.
func (s *Service) AssignmentPage(ctx context.Context, c access.Caller, h rolecall.Holder, l AssignmentListing) (page rolecall.Page[rolecall.Assignment], err error) {
	var held, expired []rolecall.Assignment
	if l.At != 0 {
		held, err = s.AssignmentsAt(ctx, c, h.UserID(), l.At)
	} else {
		held, expired, err = s.Assignments(ctx, c, h)
	}
	if err != nil {
		return page, err
	}
	if !l.IncludeExpired {
		expired = nil
	}
	if l.After != nil {
		held, expired = assignmentsAfter(held, expired, *l.After)
	}
	return pageOf(slices.Concat(held, expired), len(held), l.Limit), nil
}

// assignmentsAfter returns the assignments after the position. The key of a position has the expiry of an expired
// assignment, a slash, and the id of the group through which a user has the role.
func assignmentsAfter(held, expired []rolecall.Assignment, at rolecall.Position) (heldAfter, expiredAfter []rolecall.Assignment) {
	expiry, group, _ := strings.Cut(at.Key, "/")
	compare := func(a rolecall.Assignment) int {
		return cmp.Or(bytes.Compare(a.Role.ID[:], at.ID[:]), cmp.Compare(throughText(&a), group))
	}
	if expiry == "" {
		return from(held, func(a rolecall.Assignment) bool { return compare(a) > 0 }), expired
	}
	return nil, from(expired, func(a rolecall.Assignment) bool {
		return cmp.Or(cmp.Compare(expiry, a.ExpiresAt.String()), compare(a)) > 0
	})
}

// throughText returns the id of the group through which a user has the role, or an empty text.
func throughText(a *rolecall.Assignment) string {
	if a.Through.ID.IsZero() {
		return ""
	}
	return a.Through.ID.String()
}

// from returns the part of the sorted list that begins with the first element for which after is true.
func from[T any](list []T, after func(T) bool) []T {
	for i := range list {
		if after(list[i]) {
			return list[i:]
		}
	}
	return nil
}

// pageOf returns the first page of the list. The assignments from the index expired on are expired. The
// page ends after limit assignments, or before the assignment with which it would have more than
// MaxPageBytes bytes.
func pageOf(list []rolecall.Assignment, expired, limit int) rolecall.Page[rolecall.Assignment] {
	size := 0
	for i := range list {
		if size += list[i].Size(); i > 0 && (i == limit || size > rolecall.MaxPageBytes) {
			last := &list[i-1]
			next := rolecall.Position{ID: rolecall.AnyID(last.Role.ID)}
			if i > expired {
				next.Key = last.ExpiresAt.String()
			}
			if group := throughText(last); group != "" || next.Key != "" {
				next.Key += "/" + group
			}
			return rolecall.Page[rolecall.Assignment]{Items: list[:i], Next: &next}
		}
	}
	return rolecall.Page[rolecall.Assignment]{Items: list}
}

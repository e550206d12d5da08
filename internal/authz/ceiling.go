package authz

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
)

// RequireGrantable returns ErrBeyondOwnPermissions if the principal may not assign the
// role. To assign it, the principal must hold each permission and each grant of the role,
// or be able to grant it. The principal must hold it for all users in the reach within, and
// at least until the given time.
func RequireGrantable(p *Principal, role *rolecall.Role, within rolecall.Reach, until rolecall.Time) error {
	return requireCovers(p, slices.Concat(role.Permissions, role.Grants), within, until, true)
}

// RequireAssignable returns ErrBeyondOwnPermissions if the principal may not make the
// assignment. If the assignment is to the principal itself, being able to grant the
// permissions of the role is not enough: the principal must already hold them.
func RequireAssignable(p *Principal, a *rolecall.Assignment) error {
	if a.Holder.ID == rolecall.AnyID(p.User.ID) {
		if err := requireCovers(p, a.Role.Permissions, a.Reach, a.ExpiresAt, false); err != nil {
			return err
		}
	}
	return RequireGrantable(p, &a.Role, a.Reach, a.ExpiresAt)
}

// AssignableReach returns the widest reach with which the principal may assign the role to
// the holder, with an expiry at the given time. RequireAssignable accepts an assignment
// with this reach.
func AssignableReach(p *Principal, h rolecall.Holder, role *rolecall.Role, until rolecall.Time) rolecall.Reach {
	reach := p.CoveredReach(slices.Concat(role.Permissions, role.Grants), until, true)
	if h.ID == rolecall.AnyID(p.User.ID) {
		reach = reach.Intersect(p.CoveredReach(role.Permissions, until, false))
	}
	return reach
}

// RequireRoleChange checks a change of a role that the principal itself has. The argument
// own is the principal's assignment of the role. RequireRoleChange returns
// ErrBeyondOwnPermissions if the change adds a permission that the principal does not hold
// already.
func RequireRoleChange(p *Principal, own *rolecall.Assignment, old, changed *rolecall.Role) error {
	added := slices.DeleteFunc(slices.Clone(changed.Permissions), func(permission rolecall.Permission) bool {
		return slices.Contains(old.Permissions, permission)
	})
	return requireCovers(p, added, own.Reach, own.ExpiresAt, false)
}

// requireCovers returns ErrBeyondOwnPermissions if MissingFor, with the same arguments,
// returns a missing permission. The detail of the error names this permission.
func requireCovers(p *Principal, permissions []rolecall.Permission, within rolecall.Reach, until rolecall.Time, grants bool) error {
	if missing, ok := p.MissingFor(permissions, within, until, grants); ok {
		need := fmt.Sprintf("You need the permission %s in the whole tenant.", missing)
		if _, lacks := p.MissingFor([]rolecall.Permission{missing}, within, 0, grants); !lacks {
			need = fmt.Sprintf("Your permission %s expires too early for this.", missing)
		} else if !within.IsEverywhere() {
			need = fmt.Sprintf("You need the permission %s for all departments of the assignment.", missing)
		}
		return rolecall.ErrBeyondOwnPermissions.With("You cannot grant or remove permissions that you do not have. If a user has more permissions than you, you cannot change how this user signs in. " + need)
	}
	return nil
}

// RequireOutranks returns ErrBeyondOwnPermissions if one of the assignments gives one of
// Rolecall's own permissions that the principal does not hold for the same users.
// Permissions of applications and expired assignments do not count.
func RequireOutranks(p *Principal, assignments []rolecall.Assignment, now rolecall.Time) error {
	for _, a := range assignments {
		if !a.Live(now) {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(a.Role.Permissions), func(permission rolecall.Permission) bool {
			return !permission.Own() || !a.Reach.IsEverywhere() && !permission.CountsWithin()
		})
		if err := requireCovers(p, own, a.Reach, now, false); err != nil {
			return err
		}
	}
	return nil
}

// RequireTakeOver returns ErrBeyondOwnPermissions unless the principal could make all of
// the unexpired assignments. Operations that let the principal take over an account, such
// as sending a password reset, need this check: otherwise the principal could get more
// permissions through the account.
func RequireTakeOver(p *Principal, assignments []rolecall.Assignment, now rolecall.Time) error {
	for _, a := range assignments {
		if !a.Live(now) {
			continue
		}
		if err := RequireGrantable(p, &a.Role, a.Reach, a.ExpiresAt); err != nil {
			return err
		}
	}
	return nil
}

// IsFullOwner reports whether the assignment gives the role Owner without an expiry and for
// the whole tenant. Each tenant must always have one active user with such an assignment.
func IsFullOwner(a *rolecall.Assignment) bool {
	return a.Role.Key != nil && *a.Role.Key == rolecall.OwnerKey && a.ExpiresAt == rolecall.Never && a.Reach.IsEverywhere()
}

// CountsAsOwner reports whether the user is active and IsFullOwner is true for one of the
// user's assignments.
func CountsAsOwner(u *rolecall.User, assignments []rolecall.Assignment) bool {
	return u.Status == rolecall.UserActive && slices.ContainsFunc(assignments, func(a rolecall.Assignment) bool { return IsFullOwner(&a) })
}

package authz

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
)

// RequireGrantable returns ErrBeyondOwnPermissions unless what the principal holds,
// together with the grants of the principal's roles, covers all that the role gives
// within the reach until the moment.
func RequireGrantable(p *Principal, role *rolecall.Role, within rolecall.Reach, until rolecall.Time) error {
	return requireCovers(p, slices.Concat(role.Permissions, role.Grants), within, until, true)
}

// RequireAssignable returns ErrBeyondOwnPermissions if the principal may not make the
// assignment. Nobody gives themselves what they do not hold already.
func RequireAssignable(p *Principal, a *rolecall.Assignment) error {
	if a.Holder.ID == rolecall.AnyID(p.User.ID) {
		if err := requireCovers(p, a.Role.Permissions, a.Reach, a.ExpiresAt, false); err != nil {
			return err
		}
	}
	return RequireGrantable(p, &a.Role, a.Reach, a.ExpiresAt)
}

// AssignableReach returns the widest reach of an assignment of the role to the holder until
// the moment that RequireAssignable accepts.
func AssignableReach(p *Principal, h rolecall.Holder, role *rolecall.Role, until rolecall.Time) rolecall.Reach {
	reach := p.CoveredReach(slices.Concat(role.Permissions, role.Grants), until, true)
	if h.ID == rolecall.AnyID(p.User.ID) {
		reach = reach.Intersect(p.CoveredReach(role.Permissions, until, false))
	}
	return reach
}

// RequireRoleChange returns ErrBeyondOwnPermissions if the principal, who has the role by
// the assignment, does not hold already what the change adds to it.
func RequireRoleChange(p *Principal, own *rolecall.Assignment, old, changed *rolecall.Role) error {
	added := slices.DeleteFunc(slices.Clone(changed.Permissions), func(permission rolecall.Permission) bool {
		return slices.Contains(old.Permissions, permission)
	})
	return requireCovers(p, added, own.Reach, own.ExpiresAt, false)
}

// requireCovers returns ErrBeyondOwnPermissions, naming the first permission that the
// principal lacks, if there is one.
func requireCovers(p *Principal, permissions []rolecall.Permission, within rolecall.Reach, until rolecall.Time, grants bool) error {
	if missing, ok := p.MissingFor(permissions, within, until, grants); ok {
		return rolecall.ErrBeyondOwnPermissions.With(fmt.Sprintf("This would give, take or take over more than you hold yourself: it needs %s, as far and as long.", missing))
	}
	return nil
}

// RequireOutranks returns ErrBeyondOwnPermissions if somebody with the assignments holds
// one of Rolecall's own permissions that the principal does not.
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

// RequireTakeOver returns ErrBeyondOwnPermissions unless the principal could grant all of
// the assignments. A principal who takes over an account can do what the account can do.
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

// IsFullOwner reports whether the assignment gives the owner role permanently and without
// a restriction to departments. A tenant always keeps one active user with such an
// assignment.
func IsFullOwner(a *rolecall.Assignment) bool {
	return a.Role.Key != nil && *a.Role.Key == rolecall.OwnerKey && a.ExpiresAt == rolecall.Never && a.Reach.IsEverywhere()
}

// CountsAsOwner reports whether the user counts as an owner of the tenant by one of the
// assignments.
func CountsAsOwner(u *rolecall.User, assignments []rolecall.Assignment) bool {
	return u.Status == rolecall.UserActive && slices.ContainsFunc(assignments, func(a rolecall.Assignment) bool { return IsFullOwner(&a) })
}

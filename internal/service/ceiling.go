package service

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// MayHandOn returns ErrBeyondOwnPermissions unless what the caller holds,
// together with the grants of the caller's roles, covers all that the role gives
// within the reach until the moment.
func (c Call) MayHandOn(role *rolecall.Role, within rolecall.Reach, until rolecall.Time) error {
	return c.covers(slices.Concat(role.Permissions, role.Grants), within, until, true)
}

// MayGive returns ErrBeyondOwnPermissions if the assignment is beyond what the
// caller may hand on. Nobody gives themselves what they do not hold already.
func (c Call) MayGive(a *rolecall.Assignment) error {
	if a.UserID == c.User.ID {
		if err := c.covers(a.Role.Permissions, a.Reach, a.ExpiresAt, false); err != nil {
			return err
		}
	}
	return c.MayHandOn(&a.Role, a.Reach, a.ExpiresAt)
}

// GivesWithin returns the widest reach of an assignment of the role until the moment
// that MayGive lets the user have.
func (c Call) GivesWithin(user rolecall.UserID, role *rolecall.Role, until rolecall.Time) rolecall.Reach {
	reach := c.CoveredReach(slices.Concat(role.Permissions, role.Grants), until, true)
	if user == c.User.ID {
		reach = reach.Intersect(c.CoveredReach(role.Permissions, until, false))
	}
	return reach
}

// covers returns ErrBeyondOwnPermissions, naming the first permission that is
// missing, if there is one.
func (c Call) covers(permissions []rolecall.Permission, within rolecall.Reach, until rolecall.Time, grants bool) error {
	if missing, ok := c.MissingFor(permissions, within, until, grants); ok {
		return rolecall.ErrBeyondOwnPermissions.With(fmt.Sprintf("This would give, take or take over more than you hold yourself: it needs %s, as far and as long.", missing))
	}
	return nil
}

// notAbove returns ErrBeyondOwnPermissions if somebody with the assignments holds
// one of Rolecall's own permissions that the caller does not.
func (s *Service) notAbove(c Call, assignments []rolecall.Assignment) error {
	now := s.now()
	for _, a := range assignments {
		if !a.Live(now) {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(a.Role.Permissions), func(p rolecall.Permission) bool {
			return !p.Own() || !a.Reach.IsEverywhere() && !p.CountsWithin()
		})
		if err := c.covers(own, a.Reach, now, false); err != nil {
			return err
		}
	}
	return nil
}

// isFullOwner reports whether the assignment makes its holder one of those of
// whom a tenant always keeps one.
func isFullOwner(a rolecall.Assignment) bool {
	return a.Role.Key != nil && *a.Role.Key == rolecall.OwnerKey && a.ExpiresAt == rolecall.Never && a.Reach.IsEverywhere()
}

// keepsOwner returns ErrLastOwner if the tenant would be left without an owner
// when the user lost the assignments. The owners must be locked.
func keepsOwner(tx *store.Tx, user *rolecall.User, assignments []rolecall.Assignment) error {
	if user.Status != rolecall.UserActive || !slices.ContainsFunc(assignments, isFullOwner) {
		return nil
	}
	n, err := tx.Owners()
	if err == nil && n <= 1 {
		err = rolecall.ErrLastOwner
	}
	return err
}

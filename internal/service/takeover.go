package service

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// seizable returns the user, whose account the caller may take over by the
// permission. It returns ErrNotFound, ErrPermissionDenied,
// ErrBeyondOwnPermissions and ErrUserSuspended.
func (s *Service) seizable(tx *store.Tx, c Call, id rolecall.UserID, permission rolecall.Permission) (rolecall.User, error) {
	user, err := seenUser(tx, c, id)
	if err != nil {
		return user, err
	}
	if err := c.reaches(permission, &user); err != nil {
		return user, err
	}
	if user.Status == rolecall.UserSuspended {
		return user, rolecall.ErrUserSuspended
	}
	assignments, err := tx.Assignments(id)
	if err != nil {
		return user, err
	}
	return user, mayTakeOver(c, assignments, s.now())
}

// mayTakeOver returns ErrBeyondOwnPermissions unless the caller covers all that
// somebody with the assignments holds.
func mayTakeOver(c Call, assignments []rolecall.Assignment, now rolecall.Time) error {
	for _, a := range assignments {
		if !a.Live(now) {
			continue
		}
		if err := c.MayHandOn(&a.Role, a.Reach, a.ExpiresAt); err != nil {
			return err
		}
	}
	return nil
}

// mayStill reports whether the user or service account by whose hand somebody can get
// into the user's account may do that now: the user may hold much by now, and whoever
// handed it out nothing. An operator, who has no id here, may.
func (s *Service) mayStill(tx *store.Tx, tenant rolecall.Tenant, by, id rolecall.UserID, permission rolecall.Permission) (bool, error) {
	if by.IsZero() {
		return true, nil
	}
	giver, err := s.giver(tx, tenant, by)
	if err == nil {
		_, err = s.seizable(tx, Call{Principal: giver}, id, permission)
	}
	if kind := rolecall.KindOf(err); kind == rolecall.NotFound || kind == rolecall.Forbidden {
		return false, nil
	}
	return err == nil, err
}

// giver returns the active user, or service account, as what they hold now, or
// ErrNotFound.
func (s *Service) giver(tx *store.Tx, tenant rolecall.Tenant, id rolecall.UserID) (*authz.Principal, error) {
	user, err := tx.UserByID(id)
	if ok, err := found(err); err != nil {
		return nil, err
	} else if !ok {
		return s.givingAccount(tx, tenant, rolecall.ServiceAccountID(id))
	}
	if user.Status != rolecall.UserActive {
		return nil, rolecall.ErrNotFound
	}
	assignments, err := tx.Assignments(id)
	return authz.NewPrincipal(tenant, user, rolecall.Session{}, assignments, s.now()), err
}

func (s *Service) givingAccount(tx *store.Tx, tenant rolecall.Tenant, id rolecall.ServiceAccountID) (*authz.Principal, error) {
	account, err := tx.ServiceAccountByID(id)
	if err != nil {
		return nil, err
	}
	if account.Status != rolecall.ServiceAccountActive {
		return nil, rolecall.ErrNotFound
	}
	roles, err := tx.ServiceAccountRoles(id)
	return authz.NewPrincipal(tenant, rolecall.User{ID: rolecall.UserID(id)}, rolecall.Session{}, roles, s.now()), err
}

package signin

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/store"
)

// errUserChanged is the error of a command if another request changes the user while the
// command runs.
var errUserChanged = rolecall.ErrPreconditionFailed.With("The user was changed at the same time. Run the command again.")

// SetPassword sets the password of the user with the email address, ends the user's
// sessions, and revokes the user's API tokens. A pending user becomes active. SetPassword
// can fail with ErrNotFound, ErrValidation or ErrBusy. If another request changes the user
// at the same time, it returns ErrPreconditionFailed.
func (s *Service) SetPassword(ctx context.Context, tenantName, email, password string) error {
	tenant, err := s.access.TenantNamed(ctx, tenantName)
	if err != nil {
		return err
	}
	var user rolecall.User
	err = s.store.View(ctx, tenant.ID, func(tx *store.Tx) (err error) {
		user, _, err = tx.UserByEmail(rolecall.EmailKey(email))
		return err
	})
	if ok, err := access.Found(err); err != nil {
		return err
	} else if !ok {
		return access.ErrNoSuchAddress
	}
	if err := s.access.CheckNewPassword("/password", password, &user, &tenant); err != nil {
		return err
	}
	hash, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return err
	}
	return s.access.OnUser(ctx, tenantName, email, func(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		if user.Status == rolecall.UserPending {
			changed := user
			changed.Status = rolecall.UserActive
			changed.Stamp(s.now())
			if ok, err := tx.UpdateUser(user, changed); err != nil {
				return nil, err
			} else if !ok {
				return nil, errUserChanged
			}
		}
		event := s.access.OperatorEvent(rolecall.EventPasswordChanged, audit.AboutUser(user.ID))
		return event, s.setPassword(tx, tenant.ID, &user, hash, event, access.Browser{})
	})
}

// ResetFactorsOf is ResetFactors for an operator, who names the user by the email address.
// It can fail with ErrNotFound.
func (s *Service) ResetFactorsOf(ctx context.Context, tenantName, email string) error {
	return s.access.OnUser(ctx, tenantName, email, func(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		return s.resetFactors(tx, tenant.ID, &user, s.access.OperatorEvent(rolecall.EventFactorsReset, audit.AboutUser(user.ID)))
	})
}

// SetEmail changes the user's email address to newEmail and ends all sessions of the user.
// It notifies the old address, unless the two addresses differ only in spelling. SetEmail
// can fail with ErrNotFound, ErrValidation or ErrEmailTaken. If another request changes the
// user at the same time, it returns ErrPreconditionFailed.
func (s *Service) SetEmail(ctx context.Context, tenantName, email, newEmail string) error {
	if err := checkEmail(newEmail); err != nil {
		return err
	}
	return s.access.OnUser(ctx, tenantName, email, func(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		changed := user
		changed.Email = newEmail
		if user.Differences(changed) == 0 {
			return nil, nil
		}
		changed.Stamp(s.now())
		if ok, err := tx.UpdateUser(user, changed); err != nil {
			return nil, err
		} else if !ok {
			return nil, errUserChanged
		}
		event, err := s.access.UserEvent(access.Command, rolecall.EventUserUpdated, &user, &changed)
		if err != nil {
			return nil, err
		}
		return event, s.emailChanged(tx, tenant.ID, &user, &changed, rolecall.SessionID{}, event, access.Browser{})
	})
}

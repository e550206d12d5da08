package signin

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// AcceptInvitation sets the user's password, ends their other sessions, revokes their API
// tokens, and signs them in. A pending user becomes active. A token works once. If the
// user needs a second factor, AcceptInvitation sets the password, creates no session, and
// returns a challenge. It returns ErrPasswordsOff if the tenant allows this user only
// connections to identity providers. The invitation then stays valid. AcceptInvitation can
// also fail with ErrInvitationInvalid, ErrUserSuspended, ErrTenantSuspended or ErrBusy, or
// with ErrValidation if the password is not acceptable.
func (s *Service) AcceptInvitation(ctx context.Context, a access.Anonymous, token secret.Token, password string) (SignIn, error) {
	var user rolecall.User
	var allowed bool
	err := s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) (err error) {
		if user, err = s.invited(tx, a.Tenant, token); err != nil {
			return err
		}
		allowed, err = s.allowsPassword(tx, &a.Tenant, user.ID)
		return err
	})
	switch {
	case err != nil:
		return SignIn{}, err
	case a.Tenant.Status == rolecall.TenantSuspended:
		return SignIn{}, rolecall.ErrTenantSuspended
	case !allowed:
		return SignIn{}, rolecall.ErrPasswordsOff
	}
	if err := s.access.CheckNewPassword("/password", password, &user, &a.Tenant); err != nil {
		return SignIn{}, err
	}
	hash, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return SignIn{}, err
	}
	return s.startSession(ctx, &a, entry{user: user.ID, password: hash, prepare: func(tx *store.Tx) (rolecall.User, error) {
		user, err := s.invited(tx, a.Tenant, token)
		if err != nil {
			return user, err
		}
		if ok, err := tx.DeleteInvitation(token.Hash()); err != nil {
			return user, err
		} else if !ok {
			return user, rolecall.ErrInvitationInvalid
		}
		before := user
		c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: user})
		if user.Status == rolecall.UserPending {
			if _, err := s.access.ChangeStatus(tx, c, &user, rolecall.UserActive, ""); err != nil {
				return user, err
			}
		}
		if err := admit(tx, user.ID); err != nil {
			return user, err
		}
		event := s.access.Event(c, rolecall.EventInvitationUsed, rolecall.About(user.ID))
		tx.InsertEvent(*event)
		return user, s.setPassword(tx, a.Tenant.ID, &before, hash, event, a.Browser())
	}})
}

// invited returns the user of the invitation with this token. It returns
// ErrInvitationInvalid if the token is unknown or expired, or if the user who created the
// invitation is no longer allowed to invite this user. It returns ErrUserSuspended if the
// invited user is suspended.
func (s *Service) invited(tx *store.Tx, tenant rolecall.Tenant, token secret.Token) (rolecall.User, error) {
	invitation, err := tx.InvitationByToken(token.Hash())
	if ok, err := access.Found(err); err != nil {
		return rolecall.User{}, err
	} else if !ok || !invitation.Live(s.now()) {
		return rolecall.User{}, rolecall.ErrInvitationInvalid
	}
	user, err := tx.UserByID(invitation.UserID)
	if err != nil {
		return user, err
	}
	if user.Status == rolecall.UserSuspended {
		return user, rolecall.ErrUserSuspended
	}
	may, err := s.access.IsStillAuthorized(tx, tenant, authz.InviteUser, invitation.CreatedBy, user.ID)
	if err == nil && !may {
		err = rolecall.ErrInvitationInvalid
	}
	return user, err
}

package service

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// Invitation is an invitation with its token, which is shown once.
type Invitation struct {
	rolecall.Invitation
	Token secret.Token
}

// InviteUser makes an invitation for the user, in place of an older one, once for
// each idempotency key; a replay is without the token. As whoever bears it takes
// the account over, the caller must cover all that the user holds. It returns
// ErrNotFound, ErrPermissionDenied, ErrBeyondOwnPermissions, ErrUserSuspended,
// and the errors of keys.
func (s *Service) InviteUser(ctx context.Context, c Call, key Key, id rolecall.UserID) (created Created[Invitation], err error) {
	if err := NeedInviteUsers(c.Principal, id); err != nil {
		return created, err
	}
	err = s.view(ctx, c, func(tx Tx) error {
		_, err := s.seizable(tx, c, id, rolecall.UsersInvite)
		return err
	})
	if err != nil {
		return created, err
	}
	now, token := s.now(), secret.NewToken()
	invitation := rolecall.Invitation{UserID: id, CreatedBy: c.Giver(), CreatedAt: now, ExpiresAt: now.Add(c.Tenant.Settings.InvitationLifetime())}
	first, err := s.create(ctx, c, key, creation{
		operation: "inviteUser", location: "/users/" + id.String() + "/invitations", id: rolecall.AnyID(id), value: invitation,
		event: s.event(c, rolecall.EventUserInvited, aboutUser(id)),
		insert: func(tx Tx) error {
			tx.PutInvitation(invitation, token.Hash())
			return nil
		},
	})
	if err != nil {
		return created, err
	}
	replay, err := recreated(first, invitation, func(id rolecall.AnyID) rolecall.Invitation {
		return rolecall.Invitation{UserID: rolecall.UserID(id)}
	})
	created = Created[Invitation]{Value: Invitation{Invitation: replay.Value}, Replayed: replay.Replayed, Erased: replay.Erased}
	if !created.Replayed {
		created.Value.Token = token
	}
	return created, err
}

// mayTakeOver returns ErrBeyondOwnPermissions unless the caller covers all that
// somebody with the assignments holds.
func mayTakeOver(c Call, assignments []rolecall.Assignment, now rolecall.Time) error {
	for _, a := range assignments {
		if !a.Live(now) {
			continue
		}
		if err := c.mayHandOn(&a.Role, a.Reach, a.ExpiresAt); err != nil {
			return err
		}
	}
	return nil
}

// AcceptInvitation sets the user's password, ends their other sessions and signs
// them in, once for each token; a pending user becomes active. It returns
// ErrInvitationInvalid, ErrValidation for the password, ErrUserSuspended,
// ErrTenantSuspended and ErrBusy; and, with the password set, what Login does where
// a second factor is needed.
func (s *Service) AcceptInvitation(ctx context.Context, a Attempt, token secret.Token, password string) (SignIn, error) {
	var user rolecall.User
	err := s.store.View(ctx, a.Tenant.ID, func(tx Tx) (err error) {
		user, err = s.invited(tx, token)
		return err
	})
	switch {
	case err != nil:
		return SignIn{}, err
	case a.Tenant.Status == rolecall.TenantSuspended:
		return SignIn{}, rolecall.ErrTenantSuspended
	}
	if err := checkNewPassword("/password", password, &user, &a.Tenant); err != nil {
		return SignIn{}, err
	}
	hash, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return SignIn{}, err
	}
	return s.startSession(ctx, &a, entry{user: user.ID, prepare: func(tx Tx) (rolecall.User, error) {
		user, err := s.invited(tx, token)
		if err != nil {
			return user, err
		}
		if ok, err := tx.DeleteInvitation(token.Hash()); err != nil {
			return user, err
		} else if !ok {
			return user, rolecall.ErrInvitationInvalid
		}
		now := s.now()
		c := a.call(&rolecall.Principal{Tenant: a.Tenant, User: user})
		if user.Status == rolecall.UserPending {
			if event, err := s.changeStatus(tx, c, &user, rolecall.UserActive, ""); err != nil {
				return user, err
			} else if event == nil {
				return user, rolecall.ErrUnavailable
			}
		}
		if err := admit(tx, user.ID); err != nil {
			return user, err
		}
		tx.SetPassword(user.ID, hash, now)
		event := s.event(c, rolecall.EventInvitationUsed, aboutUser(user.ID))
		tx.InsertEvent(*event)
		return user, s.passwordChanged(tx, a.Tenant.ID, &user, rolecall.SessionID{}, event)
	}})
}

// invited returns the user whose unexpired invitation the token is.
func (s *Service) invited(tx Tx, token secret.Token) (rolecall.User, error) {
	invitation, err := tx.InvitationByToken(token.Hash())
	if ok, err := found(err); err != nil {
		return rolecall.User{}, err
	} else if !ok || invitation.ExpiresAt <= s.now() {
		return rolecall.User{}, rolecall.ErrInvitationInvalid
	}
	user, err := tx.UserByID(invitation.UserID)
	if err == nil && user.Status == rolecall.UserSuspended {
		err = rolecall.ErrUserSuspended
	}
	return user, err
}

// ChangePassword replaces the caller's own password and ends all other sessions
// of theirs. A wrong current password is a failed sign-in, counted by itself. It
// returns ErrValidation, ErrTooManyAttempts and ErrBusy.
func (s *Service) ChangePassword(ctx context.Context, c Call, current, password string) error {
	if err := checkNewPassword("/newPassword", password, &c.User, &c.Tenant); err != nil {
		return err
	}
	buckets := s.ownBuckets(&c.User)
	if err := s.countAttempt(ctx, buckets); err != nil {
		return err
	}
	var hash string
	err := s.view(ctx, c, func(tx Tx) (err error) {
		hash, err = tx.PasswordHash(c.User.ID)
		return err
	})
	if err != nil {
		return err
	}
	if ok, _, err := s.verify(ctx, buckets, hash, current); err != nil {
		return err
	} else if !ok {
		s.tally(c.Tenant.ID, rolecall.EventSignInFailed, c.Actor(), c.User.ID, "wrong current password", c.Source)
		return wrongCurrent()
	}
	changed, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return err
	}
	return s.mutate(ctx, c, func(tx Tx) (*rolecall.Event, error) {
		if ok, err := tx.ReplacePassword(c.User.ID, hash, changed, s.now()); err != nil {
			return nil, err
		} else if !ok { // another change came first
			return nil, wrongCurrent()
		}
		tx.ForgiveAttempt(buckets)
		event := s.event(c, rolecall.EventPasswordChanged, aboutUser(c.User.ID))
		return event, s.passwordChanged(tx, c.Tenant.ID, &c.User, c.Session.ID, event)
	})
}

func wrongCurrent() error {
	return rolecall.Faults{{Pointer: "/currentPassword", Code: "wrong", Detail: "is not your current password"}}.Err()
}

// checkNewPassword returns ErrValidation at pointer if the password is too easy
// to guess for the user.
func checkNewPassword(pointer, password string, u *rolecall.User, t *rolecall.Tenant) error {
	var faults rolecall.Faults
	code, detail := secret.CheckPassword(password, t.Settings.PasswordMinimum(), u.Email, u.Name, t.Name, t.DisplayName)
	faults.Add(pointer, code, detail)
	return faults.Err()
}

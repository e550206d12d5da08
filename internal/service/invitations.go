package service

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// InviteUser makes an invitation for the user, in place of an older one, and has it
// mailed, once for each idempotency key. As whoever bears its token takes the
// account over, the caller must cover all that the user holds. It returns
// ErrNotFound, ErrPermissionDenied, ErrBeyondOwnPermissions, ErrUserSuspended,
// ErrTooManyMails, and the errors of keys.
func (s *Service) InviteUser(ctx context.Context, c Call, key idempotency.Key, id rolecall.UserID) (created idempotency.Created[rolecall.Invitation], err error) {
	if err := authz.InviteUser.AuthorizeFor(c.Principal, id); err != nil {
		return created, err
	}
	err = s.view(ctx, c, func(tx *store.Tx) error {
		_, _, err := s.authorizedUser(tx, c, authz.InviteUser, id)
		return err
	})
	if err != nil {
		return created, err
	}
	invitation := s.newInvitation(c, id)
	first, err := s.create(ctx, c, key, idempotency.Creation{
		Operation: "inviteUser", Location: "/users/" + id.String() + "/invitations", ID: rolecall.AnyID(id), Value: invitation,
		Event: s.event(c, rolecall.EventUserInvited, audit.AboutUser(id)),
		Insert: func(tx *store.Tx) error {
			if err := s.requestLink(tx, c); err != nil {
				return err
			}
			token := secret.NewToken()
			tx.PutInvitation(invitation, token.Hash())
			user, err := tx.UserByID(id) // a change of the address either is seen here or withdraws the invitation
			if err != nil {
				return err
			}
			return s.mailInvitation(tx, c.Tenant.ID, &user, token, invitation.ExpiresAt)
		},
	})
	if err != nil {
		return created, err
	}
	return idempotency.Recreated(first, invitation, func(id rolecall.AnyID) rolecall.Invitation {
		return rolecall.Invitation{UserID: rolecall.UserID(id)}
	})
}

func (s *Service) newInvitation(c Call, user rolecall.UserID) rolecall.Invitation {
	now := s.now()
	return rolecall.Invitation{UserID: user, CreatedBy: c.Grantor(), CreatedAt: now, ExpiresAt: now.Add(c.Tenant.Settings.InvitationLifetime()), Origin: c.Origin()}
}

// mailInvitation writes the mail that alone bears the token of an invitation.
func (s *Service) mailInvitation(tx *store.Tx, tenant rolecall.TenantID, user *rolecall.User, token secret.Token, until rolecall.Time) error {
	return s.outbox.Put(tx, tenant, rolecall.Mail{
		Kind: rolecall.MailInvitation, To: user.Email, Name: user.Name, UserID: user.ID, Token: string(token), ExpiresAt: until,
	})
}

// InvitationListing is what a caller asks of a list of invitations.
type InvitationListing struct {
	After *rolecall.Position
	Limit int
}

// Invitations returns a page of the invitations that can be accepted, of users whom
// the caller may invite. It returns ErrPermissionDenied.
func (s *Service) Invitations(ctx context.Context, c Call, l InvitationListing) (page rolecall.Page[rolecall.Invited], err error) {
	if err := authz.ListInvitations.Authorize(c.Principal); err != nil {
		return page, err
	}
	err = s.view(ctx, c, func(tx *store.Tx) (err error) {
		page, err = tx.Invitations(rolecall.InvitationQuery{Within: c.Reach(rolecall.UsersInvite), Now: s.now(), After: l.After, Limit: l.Limit})
		return err
	})
	return page, err
}

// WithdrawInvitation makes the invitation that the user has, if any, one that
// cannot be accepted. It returns ErrNotFound, ErrPermissionDenied and
// ErrBeyondOwnPermissions.
func (s *Service) WithdrawInvitation(ctx context.Context, c Call, id rolecall.UserID) error {
	if err := authz.WithdrawInvitation.AuthorizeFor(c.Principal, id); err != nil {
		return err
	}
	return s.mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if _, _, err := s.authorizedUser(tx, c, authz.WithdrawInvitation, id); err != nil {
			return nil, err
		}
		if ok, err := tx.DeleteInvitationOf(id); !ok {
			return nil, err
		}
		return s.event(c, rolecall.EventInvitationWithdrawn, audit.AboutUser(id)), nil
	})
}

// AcceptInvitation sets the user's password, ends their other sessions and API tokens,
// and signs them in, once for each token; a pending user becomes active. It returns
// ErrInvitationInvalid, ErrValidation for the password, ErrUserSuspended,
// ErrTenantSuspended and ErrBusy; and, with the password set, what Login does where
// a second factor is needed.
func (s *Service) AcceptInvitation(ctx context.Context, a Attempt, token secret.Token, password string) (SignIn, error) {
	var user rolecall.User
	err := s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) (err error) {
		user, err = s.invited(tx, a.Tenant, token)
		return err
	})
	switch {
	case err != nil:
		return SignIn{}, err
	case a.Tenant.Status == rolecall.TenantSuspended:
		return SignIn{}, rolecall.ErrTenantSuspended
	}
	if err := s.checkNewPassword("/password", password, &user, &a.Tenant); err != nil {
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
		c := a.call(&authz.Principal{Tenant: a.Tenant, User: user})
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
		event := s.event(c, rolecall.EventInvitationUsed, audit.AboutUser(user.ID))
		tx.InsertEvent(*event)
		return user, s.setPassword(tx, a.Tenant.ID, &before, hash, event)
	}})
}

// invited returns the user whose unexpired invitation the token is. Whoever made it
// must still be allowed to.
func (s *Service) invited(tx *store.Tx, tenant rolecall.Tenant, token secret.Token) (rolecall.User, error) {
	invitation, err := tx.InvitationByToken(token.Hash())
	if ok, err := found(err); err != nil {
		return rolecall.User{}, err
	} else if !ok || invitation.ExpiresAt <= s.now() {
		return rolecall.User{}, rolecall.ErrInvitationInvalid
	}
	user, err := tx.UserByID(invitation.UserID)
	if err != nil {
		return user, err
	}
	if user.Status == rolecall.UserSuspended {
		return user, rolecall.ErrUserSuspended
	}
	may, err := s.mayStill(tx, tenant, authz.InviteUser, invitation.CreatedBy, user.ID)
	if err == nil && !may {
		err = rolecall.ErrInvitationInvalid
	}
	return user, err
}

// ChangePassword replaces the caller's own password and ends all other sessions
// of theirs. It returns what makes the browser known again, as the marks of the old
// password count no more, or else ErrValidation, ErrTooManyAttempts and ErrBusy.
func (s *Service) ChangePassword(ctx context.Context, c Call, current, password string) (device string, err error) {
	if err := s.checkNewPassword("/newPassword", password, &c.User, &c.Tenant); err != nil {
		return "", err
	}
	hash, counted, err := s.ownPassword(ctx, c, "/currentPassword", current)
	if err != nil {
		return "", err
	}
	changed, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return "", err
	}
	err = s.mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if ok, err := tx.ReplacePassword(c.User.ID, hash, changed, s.now()); err != nil {
			return nil, err
		} else if !ok { // another change came first
			return nil, wrongOwn("/currentPassword")
		}
		tx.ForgiveAttempt(counted)
		event := s.event(c, rolecall.EventPasswordChanged, audit.AboutUser(c.User.ID))
		if err := shut(tx, c.User.ID, c.Session.ID, event, passwordChanged); err != nil {
			return nil, err
		}
		return event, s.notify(tx, c.Tenant.ID, &c.User, "the password was changed")
	})
	if err != nil {
		return "", err
	}
	return s.newDevice(c.Tenant.ID, c.User.Email, changed), nil
}

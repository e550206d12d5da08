package service

import (
	"context"

	"github.com/rolecall/rolecall"
)

// passwordChanged ends what got into the user's account before, and tells the user.
func (s *Service) passwordChanged(tx Tx, tenant rolecall.TenantID, user *rolecall.User, except rolecall.SessionID, event *rolecall.Event) error {
	if err := shut(tx, user.ID, except, event, "password changed"); err != nil {
		return err
	}
	return s.notify(tx, tenant, user, "the password was changed")
}

// emailChanged ends what got into the user's account before, and tells whoever
// reads the mail of the old address.
func (s *Service) emailChanged(tx Tx, tenant rolecall.TenantID, old *rolecall.User, except rolecall.SessionID, event *rolecall.Event) error {
	if err := shut(tx, old.ID, except, event, "e-mail changed"); err != nil {
		return err
	}
	return s.mail(tx, tenant, rolecall.Mail{
		Kind: rolecall.MailEmailChanged, To: old.Email, Name: old.Name, UserID: old.ID,
	})
}

// shut ends all by which somebody could get into the user's account without the
// credentials that are right from now on: the sessions but one, which may be zero,
// the invitation, and every token that is good once.
func shut(tx Tx, user rolecall.UserID, except rolecall.SessionID, event *rolecall.Event, reason string) error {
	tx.DeleteAllOneTimeTokens(user)
	if _, err := tx.DeleteInvitationOf(user); err != nil {
		return err
	}
	return endSessions(tx, user, except, event, reason)
}

// ownPassword returns the hash of the caller's password if it is the one given. A
// wrong one is a failed sign-in, counted by itself: ErrValidation at pointer. It
// returns ErrTooManyAttempts and ErrBusy too.
func (s *Service) ownPassword(ctx context.Context, c Call, buckets []rolecall.Bucket, pointer, password string) (hash string, err error) {
	if err := s.countAttempt(ctx, buckets); err != nil {
		return "", err
	}
	err = s.view(ctx, c, func(tx Tx) (err error) {
		hash, err = tx.PasswordHash(c.User.ID)
		return err
	})
	if err != nil {
		return "", err
	}
	if ok, _, err := s.verify(ctx, buckets, hash, password); err != nil {
		return "", err
	} else if !ok {
		s.tally(c.Tenant.ID, rolecall.EventSignInFailed, c.Actor(), c.User.ID, "wrong current password", c.Source)
		return "", wrongOwn(pointer)
	}
	return hash, nil
}

func wrongOwn(pointer string) error {
	return rolecall.Faults{{Pointer: pointer, Code: "wrong", Detail: "is not your current password"}}.Err()
}

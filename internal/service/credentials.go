package service

import "github.com/rolecall/rolecall"

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

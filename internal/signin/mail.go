package signin

import (
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// CheckLink returns nil if the link of the mail is still valid, or if the mail is a
// notice to an existing user.
func (s *Service) CheckLink(tx *store.Tx, tenant rolecall.Tenant, m *rolecall.Mail) (err error) {
	switch token := secret.Token(m.Token); m.Kind {
	case rolecall.MailInvitation:
		_, err = s.invited(tx, tenant, token)
	case rolecall.MailPasswordReset:
		_, err = s.resetting(tx, token)
	case rolecall.MailEmailChange:
		_, _, err = s.changing(tx, tenant, token)
	default:
		_, err = tx.UserByID(m.UserID)
	}
	return err
}

// sessionNotices is the maximum number of session notices of one kind that a user gets
// per hour, so that a caller with stolen credentials cannot flood the mailbox.
const sessionNotices = 3

// notifyOfSession mails the user about the session, up to sessionNotices per hour.
func (s *Service) notifyOfSession(tx *store.Tx, tenant rolecall.TenantID, user *rolecall.User, kind rolecall.MailKind, session *rolecall.Session) error {
	bucket := s.limiter.Bucket("mail", sessionNotices, time.Hour, string(kind), user.ID.String())
	counted, err := tx.CountAttempt([]rolecall.Bucket{bucket}, s.now())
	if err != nil || counted[0].Count > bucket.Limit {
		return err
	}
	return s.outbox.Enqueue(tx, tenant, rolecall.Mail{Kind: kind, To: user.Email, Name: user.Name, UserID: user.ID, Client: session.Client, Source: session.Source})
}

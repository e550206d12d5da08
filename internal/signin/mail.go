package signin

import (
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// CheckLink checks a mail shortly before it is sent. If the mail contains a link,
// CheckLink returns the error that a use of the link would return now. If the mail is a
// notice, CheckLink returns ErrNotFound if the user does not exist.
func (s *Service) CheckLink(tx *store.Tx, tenant rolecall.Tenant, m *rolecall.Mail) (err error) {
	switch token := secret.Token(m.Token); m.Kind {
	case rolecall.MailInvitation:
		_, err = s.invited(tx, tenant, token)
	case rolecall.MailPasswordReset:
		_, err = s.resetting(tx, tenant, token)
	case rolecall.MailEmailChange:
		_, _, err = s.changing(tx, tenant, token)
	default:
		_, err = tx.UserByID(m.UserID)
	}
	return err
}

// sessionNotices is the maximum number of mails of one kind per hour that notify a user
// about sessions. Without this limit, an attacker with stolen credentials could flood the
// mailbox.
const sessionNotices = 3

// notifyOfSession mails the user a notice about the session. It sends nothing if the user
// has received sessionNotices mails of this kind within the hour.
func (s *Service) notifyOfSession(tx *store.Tx, tenant rolecall.TenantID, user *rolecall.User, kind rolecall.MailKind, session *rolecall.Session) error {
	bucket := s.limiter.Bucket("mail", sessionNotices, time.Hour, string(kind), user.ID.String())
	counted, err := tx.CountAttempt([]rolecall.Bucket{bucket}, s.now())
	if err != nil || counted[0].Count > bucket.Limit {
		return err
	}
	return s.outbox.Enqueue(tx, tenant, rolecall.Mail{Kind: kind, To: user.Email, Name: user.Name, UserID: user.ID, Client: session.Client, Source: session.Source})
}

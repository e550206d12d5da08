package service

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// mail has the mail sent once the Update is committed, and only then. Whom it is for
// and what it says is stored under the keys of the instance. A mail that does not
// say until when is tried for a day.
func (s *Service) mail(tx *store.Tx, tenant rolecall.TenantID, m rolecall.Mail) error {
	now := s.now()
	if m.ExpiresAt == 0 {
		m.ExpiresAt = now.Add(rolecall.NoticeLifetime)
	}
	if s.divertMail != nil {
		s.divertMail(m)
		return nil
	}
	plain, err := json.Marshal(m)
	if err != nil {
		return err
	}
	id := rolecall.NewID[rolecall.Mail](now)
	tx.InsertMail(rolecall.OutboxMail{
		ID: id, TenantID: tenant, UserID: m.UserID, Sealed: []byte(s.keys.Seal(mailPurpose, plain, mailBelongs(tenant, id))),
		DueAt: now, CreatedAt: now, ExpiresAt: m.ExpiresAt,
	})
	return nil
}

// notify tells the user that something by which they sign in was changed: what is
// what happened, such as "the password was changed".
func (s *Service) notify(tx *store.Tx, tenant rolecall.TenantID, user *rolecall.User, what string) error {
	return s.mail(tx, tenant, rolecall.Mail{Kind: rolecall.MailCredentialsChanged, To: user.Email, Name: user.Name, UserID: user.ID, What: what})
}

// sessionNotices is how many mails of one kind about sessions a user gets in an hour at
// most, so that nobody who has a credential of theirs fills the mailbox.
const sessionNotices = 3

// notifyOfSession mails the user about the session, unless they got enough mails of the
// kind.
func (s *Service) notifyOfSession(tx *store.Tx, tenant rolecall.TenantID, user *rolecall.User, kind rolecall.MailKind, session *rolecall.Session) error {
	bucket := s.limiter.Bucket("mail", sessionNotices, time.Hour, string(kind), user.ID.String())
	counted, err := tx.CountAttempt([]rolecall.Bucket{bucket}, s.now())
	if err != nil || counted[0].Count > bucket.Limit {
		return err
	}
	return s.mail(tx, tenant, rolecall.Mail{Kind: kind, To: user.Email, Name: user.Name, UserID: user.ID, Client: session.Client, Source: session.Source})
}

// OpenMail returns the mail that was sealed under the keys, or secret.ErrSealed if its
// key is gone.
func OpenMail(keys *secret.Keys, o rolecall.OutboxMail) (rolecall.Mail, error) {
	m := rolecall.Mail{ID: o.ID, CreatedAt: o.CreatedAt}
	plain, err := keys.Open(mailPurpose, string(o.Sealed), mailBelongs(o.TenantID, o.ID))
	if err == nil {
		err = json.Unmarshal(plain, &m)
	}
	return m, err
}

const mailPurpose = "mail"

// mailBelongs is what ties a sealed mail to its row.
func mailBelongs(tenant rolecall.TenantID, id rolecall.MailID) []byte {
	return append(tenant[:], id[:]...)
}

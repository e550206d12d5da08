package service

import (
	"encoding/json"

	"github.com/rolecall/rolecall"
)

// mail has the mail sent once the Update is committed, and only then. Whom it is for
// and what it says is stored under the keys of the instance.
func (s *Service) mail(tx Tx, tenant rolecall.TenantID, m rolecall.Mail) error {
	plain, err := json.Marshal(m)
	if err != nil {
		return err
	}
	now := s.now()
	id := rolecall.NewID[rolecall.Mail](now)
	tx.InsertMail(rolecall.OutboxMail{
		ID: id, TenantID: tenant, UserID: m.UserID, Sealed: []byte(s.keys.Seal("mail", plain, mailBelongs(tenant, id))),
		DueAt: now, CreatedAt: now, ExpiresAt: m.ExpiresAt,
	})
	return nil
}

// mailBelongs is what ties a sealed mail to its row.
func mailBelongs(tenant rolecall.TenantID, id rolecall.MailID) []byte {
	return append(tenant[:], id[:]...)
}

// notify tells the user that something by which they sign in was changed: what is
// its name in a sentence, such as "password".
func (s *Service) notify(tx Tx, tenant rolecall.TenantID, user *rolecall.User, what string) error {
	return s.mail(tx, tenant, rolecall.Mail{Kind: rolecall.MailCredentialsChanged, To: user.Email, Name: user.Name, UserID: user.ID, What: what})
}

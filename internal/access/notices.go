package access

import (
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// noticesMax is the maximum number of notices of one kind to a user in an hour. Without a limit, one account could
// fill the outbox, which all tenants share. After it, one notice says that no more follow until the hour ends.
const noticesMax = 10

// sessionNoticesMax is noticesMax for sign-ins and sessions. Without it, an attacker with stolen credentials could
// flood the mailbox.
const sessionNoticesMax = 3

// repeated has what happens repeatedly when the limit of a kind is reached, as a part of a sentence in the last notice.
var repeated = map[rolecall.MailKind]string{
	rolecall.MailEmailChanged:         "a changed email address",
	rolecall.MailEmailChangeRequested: "requests for a new email address",
	rolecall.MailCredentialsChanged:   "changes of your sign-in settings",
	rolecall.MailNewBrowser:           "sign-ins from unknown browsers",
	rolecall.MailTokenReused:          "sessions that were ended",
	rolecall.MailWebhookDisabled:      "webhooks that were disabled",
	rolecall.MailEventsKept:           "a shorter retention of events",
	rolecall.MailDirectory:            "directories",
}

// ownersMailed is the maximum number of owners who get a notice about their tenant.
const ownersMailed = 100

// SendNotice stores the notice, unless its user has reached the limit for its kind.
func (s *Service) SendNotice(tx *store.Tx, tenant rolecall.TenantID, notice rolecall.Mail) error {
	return s.sendNotices(tx, tenant, []rolecall.Mail{notice})
}

// NotifyOwners stores the notice once for each active owner of the tenant, but for at most ownersMailed of them, those
// who became users first. It sets the recipient.
func (s *Service) NotifyOwners(tx *store.Tx, tenant rolecall.TenantID, notice rolecall.Mail) error {
	owners, err := tx.OldestOwners(ownersMailed)
	if err != nil || len(owners) == 0 {
		return err
	}
	notices := make([]rolecall.Mail, len(owners))
	for i, owner := range owners {
		notice.To, notice.Name, notice.UserID = owner.Email, owner.Name, owner.ID
		notices[i] = notice
	}
	return s.sendNotices(tx, tenant, notices)
}

// sendNotices stores the notices, which are for different users. The first notice over the limit of its user
// and kind is replaced by one of the kind MailNoticesPaused. Later ones of that hour are not stored.
func (s *Service) sendNotices(tx *store.Tx, tenant rolecall.TenantID, notices []rolecall.Mail) error {
	buckets := make([]rolecall.Bucket, len(notices))
	for i := range notices {
		m, limit := &notices[i], noticesMax
		if m.Kind == rolecall.MailNewBrowser || m.Kind == rolecall.MailTokenReused {
			limit = sessionNoticesMax
		}
		buckets[i] = s.Limiter.Bucket("mail", limit, time.Hour, string(m.Kind), m.UserID.String())
	}
	counted, err := tx.CountAttempt(buckets, s.Now())
	if err != nil {
		return err
	}
	for i, m := range notices {
		switch over := counted[i].Count - buckets[i].Limit; {
		case over > 1:
			continue
		case over == 1:
			m.Kind, m.What = rolecall.MailNoticesPaused, repeated[m.Kind]
		}
		if err := s.Outbox.Enqueue(tx, tenant, m); err != nil {
			return err
		}
	}
	return nil
}

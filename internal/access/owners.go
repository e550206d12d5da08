package access

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// MailOwners stores the mail once for each active owner of the tenant, for up to limit of them. It sets the
// recipient.
func (s *Service) MailOwners(tx *store.Tx, tenant rolecall.TenantID, mail rolecall.Mail, limit int) error {
	role, err := tx.RoleByKey(rolecall.OwnerKey)
	if found, err := Found(err); !found {
		return err
	}
	q := rolecall.UserQuery{Role: role.ID, Status: rolecall.UserActive, Within: rolecall.Everywhere(), Now: s.Now(), Limit: rolecall.MaxLimit}
	for mailed := 0; ; {
		owners, err := tx.Users(q)
		if err != nil {
			return err
		}
		for i := range owners.Items {
			owner := &owners.Items[i]
			assignments, err := tx.Assignments(rolecall.HolderOf(owner.ID))
			switch {
			case err != nil:
				return err
			case !authz.CountsAsOwner(owner, assignments):
				continue
			case mailed == limit:
				return nil
			}
			mail.To, mail.Name, mail.UserID = owner.Email, owner.Name, owner.ID
			if err := s.Outbox.Enqueue(tx, tenant, mail); err != nil {
				return err
			}
			mailed++
		}
		if q.After = owners.Next; q.After == nil {
			return nil
		}
	}
}

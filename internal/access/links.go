package access

import (
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// RequestLink prepares an Update that mails a link to another user. It must be the first
// call in the Update, so that concurrent Updates lock the rows in the same order. It
// returns ErrTooManyMails above the limit of the tenant, and the errors of
// LockCredential.
func (s *Service) RequestLink(tx *store.Tx, c Caller) error {
	if err := LockCredential(tx, c); err != nil {
		return err
	}
	bucket := s.Limiter.Bucket("mails to others", s.Limiter.Limits.TenantMails, time.Hour, c.Tenant.ID.String())
	return s.Limiter.CountIn(tx, bucket, rolecall.ErrTooManyMails)
}

// VoidLinks voids the links that were requested with one of the sessions or API
// tokens.
func VoidLinks[T any](tx *store.Tx, revoked ...rolecall.ID[T]) {
	credentials := make([]rolecall.AnyID, len(revoked))
	for i, id := range revoked {
		credentials[i] = rolecall.AnyID(id)
	}
	tx.DeleteLinks(credentials...)
}

// LockCredential locks the session or API token of the caller until the end of the
// Update. Without the lock, a link could outlive a concurrent revocation. It returns
// ErrUnauthenticated if the credential was revoked already.
func LockCredential(tx *store.Tx, c Caller) error {
	held, err := true, error(nil)
	switch {
	case c.Token != nil:
		held, err = tx.LockAPIToken(c.Token.ID)
	case !c.Session.ID.IsZero():
		held, err = tx.LockSession(c.Session.ID)
	}
	if err == nil && !held {
		err = rolecall.ErrUnauthenticated
	}
	return err
}

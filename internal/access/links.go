package access

import (
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// RequestLink must be the first call in each Update that mails a link to another user. It
// locks the caller's credential before any other row, so that concurrent Updates lock rows
// in the same order. It returns ErrTooManyMails if the tenant has reached its limit of
// mails, and ErrUnauthenticated if the credential was revoked.
func (s *Service) RequestLink(tx *store.Tx, c Caller) error {
	if err := LockCredential(tx, c); err != nil {
		return err
	}
	bucket := s.Limiter.Bucket("mails to others", s.Limiter.Limits.TenantMails, time.Hour, c.Tenant.ID.String())
	return s.Limiter.CountIn(tx, bucket, rolecall.ErrTooManyMails)
}

// VoidLinks deletes the mailed links that were requested with one of the revoked sessions
// or API tokens.
func VoidLinks[T any](tx *store.Tx, revoked ...rolecall.ID[T]) {
	credentials := make([]rolecall.AnyID, len(revoked))
	for i, id := range revoked {
		credentials[i] = rolecall.AnyID(id)
	}
	tx.DeleteLinks(credentials...)
}

// LockCredential locks the session or API token of the caller until the end of the
// transaction. Without this lock, a link could be stored while its credential is revoked,
// and remain valid. LockCredential returns ErrUnauthenticated if the credential was
// revoked already.
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

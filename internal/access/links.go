package access

import (
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// RequestLink counts a mail with a link that the caller sends to another user. It must be
// the first call in the Update that sends the mail. It locks the session or token of the
// caller before any other row, so that concurrent Updates lock rows in the same order.
// RequestLink returns ErrTooManyMails if the tenant has reached its limit of mails per
// hour, and ErrUnauthenticated if the session or token was revoked.
func (s *Service) RequestLink(tx *store.Tx, c Caller) error {
	if err := LockCredential(tx, c); err != nil {
		return err
	}
	bucket := s.Limiter.Bucket("mails to others", s.Limiter.Limits.TenantMails, time.Hour, c.Tenant.ID.String())
	return s.Limiter.CountIn(tx, bucket, rolecall.ErrTooManyMails)
}

// RequestDelivery is RequestLink for a mailed link. For a link in a response, it only locks the
// credential of the caller.
func (s *Service) RequestDelivery(tx *store.Tx, c Caller, by rolecall.Delivery) error {
	if by == rolecall.DeliverInResponse {
		return LockCredential(tx, c)
	}
	return s.RequestLink(tx, c)
}

// VoidLinks deletes the links that were requested with the revoked sessions or API
// tokens.
func VoidLinks[T any](tx *store.Tx, revoked ...rolecall.ID[T]) {
	credentials := make([]rolecall.AnyID, len(revoked))
	for i, id := range revoked {
		credentials[i] = rolecall.AnyID(id)
	}
	tx.DeleteLinks(credentials...)
}

// LockCredential locks the session or API token of the caller until the end of the
// transaction. Without this lock, the transaction could store a link while another one
// revokes the session or token. The link would then remain valid. LockCredential returns
// ErrUnauthenticated if the session or token was already revoked.
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

package signin

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// passwordChanged is the reason in the events of sessions and API tokens that end because
// the password was changed.
const passwordChanged = "password changed"

// setPassword sets the password of a user who did not enter the old one: after a mailed
// link, or by an operator. An attacker may know the old password, so setPassword also
// ends the user's sessions and makes the mailed links and API tokens of the user invalid.
// The argument before is the user before the change. If this user is pending, the
// password is the first one, and setPassword sends no notice.
func (s *Service) setPassword(tx *store.Tx, tenant rolecall.TenantID, before *rolecall.User, hash string, event *rolecall.Event, from access.Browser) error {
	tx.SetPassword(before.ID, hash, s.now())
	if err := access.RevokeAccess(tx, before.ID, rolecall.SessionID{}, event, passwordChanged); err != nil {
		return err
	}
	revoked, err := tx.DeleteUserAPITokens(before.ID, s.now())
	if err != nil {
		return err
	}
	if err := recordRevoked(tx, before.ID, revoked, event, passwordChanged); err != nil {
		return err
	}
	switch {
	case before.Status == rolecall.UserPending:
		return nil
	case len(revoked) > 0:
		return s.access.Notify(tx, tenant, before, "the password was changed, and all API tokens were revoked", from)
	}
	return s.access.Notify(tx, tenant, before, "the password was changed", from)
}

// recordRevoked writes an event for each API token of the user that was revoked. Each
// event is a copy of like with another type, the values of the token, and the reason.
// recordRevoked also makes the mailed links invalid that were requested with these
// tokens.
func recordRevoked(tx *store.Tx, user rolecall.UserID, revoked []rolecall.APIToken, like *rolecall.Event, reason string) error {
	for _, token := range revoked {
		access.VoidLinks(tx, token.ID)
		before, err := json.Marshal(access.TokenValue{Token: token})
		if err != nil {
			return err
		}
		event := *like
		event.ID = rolecall.NewID[rolecall.Event](like.OccurredAt)
		event.Type, event.Subject, event.Members, event.Reason = rolecall.EventTokenRevoked, rolecall.About(user), []string{"tokens"}, reason
		event.Values = &rolecall.EventValues{Before: before}
		tx.InsertEvent(event)
	}
	return nil
}

// emailChanged calls access.RevokeAccess after the user's address was changed from that of old
// to that of changed. It also notifies the old address, unless the two addresses differ
// only in spelling, such as in case.
func (s *Service) emailChanged(tx *store.Tx, tenant rolecall.TenantID, old, changed *rolecall.User, except rolecall.SessionID, event *rolecall.Event, from access.Browser) error {
	if err := access.RevokeAccess(tx, old.ID, except, event, "e-mail changed"); err != nil || rolecall.EmailKey(old.Email) == rolecall.EmailKey(changed.Email) {
		return err
	}
	return s.access.SendNotice(tx, tenant, rolecall.Mail{
		Kind: rolecall.MailEmailChanged, To: old.Email, Name: old.Name, UserID: old.ID, Client: from.Client, Source: from.Source,
	})
}

// ownPassword verifies the password of the caller. It returns the stored hash, and the
// counters of this attempt. If the password is wrong, it records a failed sign-in and
// returns ErrValidation with a field error at the JSON Pointer pointer. ownPassword can
// also fail with ErrTooManyAttempts or ErrBusy.
func (s *Service) ownPassword(ctx context.Context, c access.Caller, pointer, password string) (hash string, counted []rolecall.Counted, err error) {
	if counted, err = s.limiter.Count(ctx, s.ownBuckets(&c.User)); err != nil {
		return "", nil, err
	}
	hash, err = access.Read(ctx, s.access, c, func(tx *store.Tx) (string, error) { return tx.PasswordHash(c.User.ID) })
	if err != nil {
		return "", nil, err
	}
	if ok, _, err := s.verify(ctx, counted, hash, password); err != nil {
		return "", nil, err
	} else if !ok {
		s.refusals.Count(c.Tenant.ID, rolecall.EventSignInFailed, c.Actor(), c.User.ID, "wrong current password", c.Source)
		return "", nil, wrongOwn(pointer)
	}
	return hash, counted, nil
}

func wrongOwn(pointer string) error {
	return rolecall.FieldErrors{{Pointer: pointer, Code: "wrong", Detail: "is not your current password"}}.Err()
}

// ChangePassword changes the caller's password and ends their other sessions. It returns a
// new known-device token, because the change makes all earlier known-device tokens of the
// user invalid. ChangePassword can fail with ErrValidation, ErrTooManyAttempts or ErrBusy.
func (s *Service) ChangePassword(ctx context.Context, c access.Caller, current, password string) (device string, err error) {
	if err := s.access.CheckNewPassword("/newPassword", password, &c.User, &c.Tenant); err != nil {
		return "", err
	}
	hash, counted, err := s.ownPassword(ctx, c, "/currentPassword", current)
	if err != nil {
		return "", err
	}
	changed, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return "", err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if ok, err := tx.ReplacePassword(c.User.ID, hash, changed, s.now()); err != nil {
			return nil, err
		} else if !ok { // another change came first
			return nil, wrongOwn("/currentPassword")
		}
		tx.ForgiveAttempt(counted)
		event := s.access.Event(c, rolecall.EventPasswordChanged, rolecall.About(c.User.ID))
		if err := access.RevokeAccess(tx, c.User.ID, c.Session.ID, event, passwordChanged); err != nil {
			return nil, err
		}
		return event, s.access.Notify(tx, c.Tenant.ID, &c.User, "the password was changed", c.Browser())
	})
	if err != nil {
		return "", err
	}
	return s.newDevice(c.Tenant.ID, c.User.Email, changed), nil
}

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

// notifyOfSession mails the user a notice about the session.
func (s *Service) notifyOfSession(tx *store.Tx, tenant rolecall.TenantID, user *rolecall.User, kind rolecall.MailKind, session *rolecall.Session) error {
	return s.access.SendNotice(tx, tenant, rolecall.Mail{Kind: kind, To: user.Email, Name: user.Name, UserID: user.ID, Client: session.Client, Source: session.Source})
}

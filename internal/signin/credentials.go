package signin

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/store"
)

// passwordChanged is the reason in the events of sessions and API tokens that end
// with a change of the password.
const passwordChanged = "password changed"

// setPassword sets a password without a verification of the old one: by a mailed link or
// by an operator. An attacker may be signed in, so setPassword also ends the user's
// sessions, links and API tokens. A pending user gets no notice, because this is the
// user's first password. The argument before is the user before the change.
func (s *Service) setPassword(tx *store.Tx, tenant rolecall.TenantID, before *rolecall.User, hash string, event *rolecall.Event, from access.Browser) error {
	tx.SetPassword(before.ID, hash, s.now())
	if err := revokeAccess(tx, before.ID, rolecall.SessionID{}, event, passwordChanged); err != nil {
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

// recordRevoked writes an event for each revoked API token of the user, as a copy of like
// with another type, the values of the token and the reason. It also voids the links that
// were requested with the tokens.
func recordRevoked(tx *store.Tx, user rolecall.UserID, revoked []rolecall.APIToken, like *rolecall.Event, reason string) error {
	for _, token := range revoked {
		access.VoidLinks(tx, token.ID)
		before, err := json.Marshal(audit.TokenValue{Token: token})
		if err != nil {
			return err
		}
		event := *like
		event.ID = rolecall.NewID[rolecall.Event](like.OccurredAt)
		event.Type, event.Subject, event.Members, event.Reason = rolecall.EventTokenRevoked, audit.AboutUser(user), []string{"tokens"}, reason
		event.Values = &rolecall.EventValues{Before: before}
		tx.InsertEvent(event)
	}
	return nil
}

// emailChanged revokes the earlier access to the user's account. It also notifies
// the old address, unless both addresses are equal but for their spelling.
func (s *Service) emailChanged(tx *store.Tx, tenant rolecall.TenantID, old, changed *rolecall.User, except rolecall.SessionID, event *rolecall.Event, from access.Browser) error {
	if err := revokeAccess(tx, old.ID, except, event, "e-mail changed"); err != nil || rolecall.EmailKey(old.Email) == rolecall.EmailKey(changed.Email) {
		return err
	}
	return s.outbox.Enqueue(tx, tenant, rolecall.Mail{
		Kind: rolecall.MailEmailChanged, To: old.Email, Name: old.Name, UserID: old.ID, Client: from.Client, Source: from.Source,
	})
}

// revokeAccess revokes the access to the user's account that does not need the new
// credentials. It ends all sessions except the session with the id except, which may be
// zero. It deletes the invitation and all one-time tokens.
func revokeAccess(tx *store.Tx, user rolecall.UserID, except rolecall.SessionID, event *rolecall.Event, reason string) error {
	tx.DeleteAllOneTimeTokens(user)
	if _, err := tx.DeleteInvitationOf(user); err != nil {
		return err
	}
	return access.EndSessions(tx, user, except, event, reason)
}

// ownPassword verifies the caller's password. It returns the stored hash and the
// counted attempt. For a wrong password it records a failed sign-in and returns
// ErrValidation at pointer. It also returns ErrTooManyAttempts and ErrBusy.
func (s *Service) ownPassword(ctx context.Context, c access.Caller, pointer, password string) (hash string, counted []rolecall.Counted, err error) {
	if counted, err = s.limiter.Count(ctx, s.ownBuckets(&c.User)); err != nil {
		return "", nil, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) (err error) {
		hash, err = tx.PasswordHash(c.User.ID)
		return err
	})
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

// ChangePassword changes the caller's password and ends their other sessions. It returns
// a new known-device token, because tokens that were issued under the old password become
// invalid. It returns ErrValidation, ErrTooManyAttempts and ErrBusy.
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
		event := s.access.Event(c, rolecall.EventPasswordChanged, audit.AboutUser(c.User.ID))
		if err := revokeAccess(tx, c.User.ID, c.Session.ID, event, passwordChanged); err != nil {
			return nil, err
		}
		return event, s.access.Notify(tx, c.Tenant.ID, &c.User, "the password was changed", c.Browser())
	})
	if err != nil {
		return "", err
	}
	return s.newDevice(c.Tenant.ID, c.User.Email, changed), nil
}

package service

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// passwordChanged is why sessions and API tokens ended.
const passwordChanged = "password changed"

// setPassword gives the user, as they were before, a password without having been
// shown the old one: by a link or by an operator, and perhaps because somebody else
// was in. So what speaks for the user ends too. Whoever has no way in yet is not told:
// they come in by it.
func (s *Service) setPassword(tx *store.Tx, tenant rolecall.TenantID, before *rolecall.User, hash string, event *rolecall.Event) error {
	tx.SetPassword(before.ID, hash, s.now())
	if err := shut(tx, before.ID, rolecall.SessionID{}, event, passwordChanged); err != nil {
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
		return s.notify(tx, tenant, before, "the password was changed, and all API tokens were revoked")
	}
	return s.notify(tx, tenant, before, "the password was changed")
}

// recordRevoked writes an event for each API token of the user that was revoked, like
// the given one but for what it says, and makes the links void that were requested
// with it.
func recordRevoked(tx *store.Tx, user rolecall.UserID, revoked []rolecall.APIToken, like *rolecall.Event, reason string) error {
	for _, token := range revoked {
		voidLinks(tx, token.ID)
		before, err := json.Marshal(audit.TokenValue{token})
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

// emailChanged ends what got into the user's account before, and tells whoever
// reads the mail of the old address, unless the new one is the same in other letters.
func (s *Service) emailChanged(tx *store.Tx, tenant rolecall.TenantID, old, changed *rolecall.User, except rolecall.SessionID, event *rolecall.Event) error {
	if err := shut(tx, old.ID, except, event, "e-mail changed"); err != nil || rolecall.EmailKey(old.Email) == rolecall.EmailKey(changed.Email) {
		return err
	}
	return s.outbox.Put(tx, tenant, rolecall.Mail{
		Kind: rolecall.MailEmailChanged, To: old.Email, Name: old.Name, UserID: old.ID,
	})
}

// shut ends all by which somebody could get into the user's account without the
// credentials that are right from now on: the sessions but one, which may be zero,
// the invitation, and every token that is good once.
func shut(tx *store.Tx, user rolecall.UserID, except rolecall.SessionID, event *rolecall.Event, reason string) error {
	tx.DeleteAllOneTimeTokens(user)
	if _, err := tx.DeleteInvitationOf(user); err != nil {
		return err
	}
	return endSessions(tx, user, except, event, reason)
}

// ownPassword returns the hash of the caller's password if it is the one given, and
// what was counted. A wrong one is a failed sign-in, counted by itself: ErrValidation
// at pointer. It returns ErrTooManyAttempts and ErrBusy too.
func (s *Service) ownPassword(ctx context.Context, c Call, pointer, password string) (hash string, counted []rolecall.Counted, err error) {
	if counted, err = s.limiter.Count(ctx, s.ownBuckets(&c.User)); err != nil {
		return "", nil, err
	}
	err = s.view(ctx, c, func(tx *store.Tx) (err error) {
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
	return rolecall.Faults{{Pointer: pointer, Code: "wrong", Detail: "is not your current password"}}.Err()
}

// checkNewPassword returns ErrValidation at pointer if the password is too easy to
// guess for the user, or was leaked. It reads a file: no transaction may wait for it.
func (s *Service) checkNewPassword(pointer, password string, u *rolecall.User, t *rolecall.Tenant) error {
	faults, err := s.passwordFaults(pointer, password, u, t)
	if err != nil {
		return err
	}
	return faults.Err()
}

// passwordFaults is checkNewPassword for a caller that has other field errors too.
func (s *Service) passwordFaults(pointer, password string, u *rolecall.User, t *rolecall.Tenant) (faults rolecall.Faults, err error) {
	code, detail := secret.CheckPassword(password, t.Settings.PasswordMinimum(), s.forbidden, u.Email, u.Name, t.Name, t.DisplayName)
	if code == "" {
		breached, err := s.breached.Has(password)
		if err != nil {
			return nil, err
		}
		if breached {
			code, detail = "breached", "must not be a password that was leaked elsewhere; choose one that you have never used"
		}
	}
	faults.Add(pointer, code, detail)
	return faults, nil
}

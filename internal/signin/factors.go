package signin

import (
	"context"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const totpPurpose = "totp"

// totpBelongs returns the associated data for the encryption of a TOTP secret. With it,
// the secret can be decrypted only for this tenant and this user.
func totpBelongs(tenant rolecall.TenantID, user rolecall.UserID) []byte {
	return append(tenant[:], user[:]...)
}

// OwnFactors are the second factors of the caller.
type OwnFactors struct {
	rolecall.Factors
	Demanded bool // the tenant requires that the caller has a second factor
}

// Factors returns the caller's second factors.
func (s *Service) Factors(ctx context.Context, c access.Caller) (own OwnFactors, err error) {
	own.Demanded = c.Tenant.Settings.SecondFactor.Demands(c.Assignments, s.now())
	own.Factors, err = access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Factors, error) { return tx.Factors(c.User.ID) })
	return own, err
}

// TOTPSecret is a new secret for an authenticator app. The user sees it only once.
type TOTPSecret struct {
	Secret string // in base32
	URI    string // an otpauth URI, for a QR code
}

// BeginTOTP creates a pending TOTP secret for the caller and returns it. The current
// secret stays in use until ConfirmTOTP receives a code that the app has computed from
// the new secret.
func (s *Service) BeginTOTP(ctx context.Context, c access.Caller) (TOTPSecret, error) {
	made := secret.NewTOTP()
	sealed := s.keys.Seal(totpPurpose, made, totpBelongs(c.Tenant.ID, c.User.ID))
	err := s.store.Update(ctx, c.Tenant.ID, func(tx *store.Tx) error {
		tx.UpsertPendingTOTP(c.User.ID, []byte(sealed))
		return nil
	})
	return TOTPSecret{made.Base32(), made.URI(c.Tenant.DisplayName, c.User.Email)}, err
}

// ConfirmTOTP activates the pending secret if the code is correct, and ends the caller's
// other sessions. If the caller has no recovery codes, ConfirmTOTP creates recovery codes
// and returns them. It returns ErrValidation for a wrong code, and ErrTooManyAttempts.
func (s *Service) ConfirmTOTP(ctx context.Context, c access.Caller, code string) (codes []secret.RecoveryCode, err error) {
	counted, err := s.limiter.Count(ctx, s.ownFactorBuckets(&c.User))
	if err != nil {
		return nil, err
	}
	own, err := s.Factors(ctx, c)
	if err != nil {
		return nil, err
	}
	if own.TOTP.Pending == nil {
		return nil, wrongOwnCode()
	}
	step, err := s.step(c, own.TOTP.Pending, code, 0)
	if err != nil {
		return nil, asOwn(err)
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		now, err := s.ownFactors(tx, c)
		if err != nil {
			return nil, err
		}
		if err := orWrong(tx.ConfirmTOTP(c.User.ID, own.TOTP.Pending, step, s.now())); err != nil {
			return nil, asOwn(err)
		}
		tx.ForgiveAttempt(counted)
		event := s.factorEvent(c, rolecall.EventFactorAdded, rolecall.FactorTOTP)
		codes, err = s.factorAdded(tx, c, event, now.RecoveryCodes)
		return event, err
	})
	return codes, err
}

// wrongOwnCode returns the error for a wrong code from a signed-in user. The status is
// not 401, because clients interpret a 401 as the end of the session.
func wrongOwnCode() error {
	return rolecall.FieldErrors{{Pointer: "/code", Code: "wrong", Detail: "must be the current code of an authenticator app that you have started to add"}}.Err()
}

func asOwn(err error) error {
	if rolecall.ErrWrongCode.Is(err) {
		return wrongOwnCode()
	}
	return err
}

// ownFactors returns the caller's second factors, and locks the caller's row until the
// end of the transaction. It returns ErrUnauthenticated if the caller was deleted or is
// not active.
func (s *Service) ownFactors(tx *store.Tx, c access.Caller) (rolecall.Factors, error) {
	if active, err := tx.LockActiveUser(c.User.ID); err != nil {
		return rolecall.Factors{}, err
	} else if !active {
		return rolecall.Factors{}, rolecall.ErrUnauthenticated
	}
	return tx.Factors(c.User.ID)
}

// factorEvent returns an event about one of the caller's factors.
func (s *Service) factorEvent(c access.Caller, kind rolecall.EventType, method rolecall.FactorMethod) *rolecall.Event {
	event := s.access.Event(c, kind, rolecall.About(c.User.ID))
	event.Members = []string{string(method)}
	return event
}

// factorChanged ends the caller's other sessions after a factor was added or removed, and
// notifies the caller by mail. The argument event is the event of the change.
func (s *Service) factorChanged(tx *store.Tx, c access.Caller, event *rolecall.Event) error {
	what := map[rolecall.EventType]string{rolecall.EventFactorAdded: "added", rolecall.EventFactorRemoved: "removed"}[event.Type]
	if err := access.EndSessions(tx, c.User.ID, c.Session.ID, event, "second factor "+what); err != nil {
		return err
	}
	name := map[string]string{string(rolecall.FactorTOTP): "an authenticator app", string(rolecall.FactorPasskey): "a passkey"}[event.Members[0]]
	return s.access.Notify(tx, c.Tenant.ID, &c.User, name+" was "+what, c.Browser())
}

// factorAdded calls factorChanged after a factor was added. The argument left is the
// number of unused recovery codes of the caller. If left is zero, factorAdded creates new
// recovery codes and returns them.
func (s *Service) factorAdded(tx *store.Tx, c access.Caller, event *rolecall.Event, left int) ([]secret.RecoveryCode, error) {
	err := s.factorChanged(tx, c, event)
	if err != nil || left > 0 {
		return nil, err
	}
	return s.giveRecoveryCodes(tx, c), nil
}

func (s *Service) giveRecoveryCodes(tx *store.Tx, c access.Caller) []secret.RecoveryCode {
	codes := secret.NewRecoveryCodes()
	hashes := make([][]byte, len(codes))
	for i, code := range codes {
		hashes[i] = code.Hash()
	}
	tx.ReplaceRecoveryCodes(c.User.ID, hashes)
	return codes
}

// MakeRecoveryCodes replaces the caller's recovery codes, ends their other sessions, and
// returns the new codes. It returns ErrNoSecondFactor if the caller has no second factor.
func (s *Service) MakeRecoveryCodes(ctx context.Context, c access.Caller) (codes []secret.RecoveryCode, err error) {
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		own, err := s.ownFactors(tx, c)
		if err != nil {
			return nil, err
		}
		if own.Methods() == nil {
			return nil, rolecall.ErrNoSecondFactor
		}
		codes = s.giveRecoveryCodes(tx, c)
		event := s.access.Event(c, rolecall.EventRecoveryMade, rolecall.About(c.User.ID))
		if err := access.EndSessions(tx, c.User.ID, c.Session.ID, event, "new recovery codes made"); err != nil {
			return nil, err
		}
		return event, s.access.Notify(tx, c.Tenant.ID, &c.User, "new recovery codes were created", c.Browser())
	})
	return codes, err
}

// RemoveTOTP removes the caller's authenticator app. It returns ErrNotFound if the caller
// has no app, and ErrFactorDemanded if the caller would have no second factor and the
// tenant requires one.
func (s *Service) RemoveTOTP(ctx context.Context, c access.Caller) error {
	return s.removeFactor(ctx, c, rolecall.FactorTOTP, func(tx *store.Tx, own *rolecall.Factors) (bool, error) {
		had := own.TOTP.Sealed != nil
		own.TOTP = rolecall.TOTP{}
		tx.DeleteTOTP(c.User.ID)
		return had, nil
	})
}

// RemovePasskey removes the passkey with the id. It returns ErrNotFound if the caller has
// no such passkey, and ErrFactorDemanded as RemoveTOTP does.
func (s *Service) RemovePasskey(ctx context.Context, c access.Caller, id []byte) error {
	return s.removeFactor(ctx, c, rolecall.FactorPasskey, func(tx *store.Tx, own *rolecall.Factors) (bool, error) {
		own.Passkeys = slices.DeleteFunc(own.Passkeys, func(key rolecall.Passkey) bool { return string(key.ID) == string(id) })
		return tx.DeletePasskey(c.User.ID, id)
	})
}

// removeFactor removes a factor of the caller. If it was the last factor, removeFactor
// also deletes the recovery codes. The function remove must delete the factor from the
// store and from own, and report whether the factor existed.
func (s *Service) removeFactor(ctx context.Context, c access.Caller, method rolecall.FactorMethod, remove func(tx *store.Tx, own *rolecall.Factors) (bool, error)) error {
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		own, err := s.ownFactors(tx, c)
		if err != nil {
			return nil, err
		}
		if had, err := remove(tx, &own); err != nil {
			return nil, err
		} else if !had {
			return nil, rolecall.ErrNotFound
		}
		if own.Methods() == nil {
			if settings, err := s.settingsOf(tx, &c.Tenant, c.User.ID); err != nil {
				return nil, err
			} else if settings.RequireFactor() {
				return nil, rolecall.ErrFactorDemanded
			}
			tx.ReplaceRecoveryCodes(c.User.ID, nil)
		}
		event := s.factorEvent(c, rolecall.EventFactorRemoved, method)
		return event, s.factorChanged(tx, c, event)
	})
}

// ResetFactors removes all second factors of a user who has lost them, ends the user's
// sessions, and notifies the user. Afterwards, the password alone is enough to sign in. So
// the caller must hold all permissions of this user. ResetFactors can fail with
// ErrNotFound, ErrPermissionDenied or ErrBeyondOwnPermissions. If callers reset their own
// factors, it can also return ErrFactorDemanded and ErrSessionRequired.
func (s *Service) ResetFactors(ctx context.Context, c access.Caller, id rolecall.UserID) error {
	if err := authz.ResetFactors.AuthorizeFor(c.Principal, id); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		tx.LockOwners()
		user, _, err := s.access.AuthorizedUser(tx, c, authz.ResetFactors, id)
		if err != nil {
			return nil, err
		}
		return s.resetFactors(tx, c.Tenant.ID, &user, s.access.Event(c, rolecall.EventFactorsReset, rolecall.About(id)))
	})
}

// resetFactors removes all second factors of the user, ends the user's sessions, and notifies
// the user. It returns the event, or nil if the user has no factors.
func (s *Service) resetFactors(tx *store.Tx, tenant rolecall.TenantID, user *rolecall.User, event *rolecall.Event) (*rolecall.Event, error) {
	if factors, err := tx.Factors(user.ID); err != nil || factors.Methods() == nil {
		return nil, err
	}
	tx.DeleteFactors(user.ID)
	if err := access.EndSessions(tx, user.ID, rolecall.SessionID{}, event, "second factors reset"); err != nil {
		return nil, err
	}
	return event, s.access.Notify(tx, tenant, user, "all second factors were removed by an administrator", access.Browser{})
}

// ownFactorBuckets returns the counter of the codes and passkeys that a signed-in user
// sends. Only requests of the signed-in user increase this counter.
func (s *Service) ownFactorBuckets(u *rolecall.User) []rolecall.Bucket {
	return []rolecall.Bucket{s.limiter.Bucket("own factors", s.limiter.Limits.AccountAndSource, 15*time.Minute, u.ID.String())}
}

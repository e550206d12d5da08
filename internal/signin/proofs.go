package signin

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Proof is the second factor in a request. At most one member is set. If no member is
// set, the request has no second factor.
type Proof struct {
	Code         string // from an authenticator app
	RecoveryCode string
	Passkey      []byte // the JSON document of a PublicKeyCredential
}

// consume marks a verified proof as used. It runs in the transaction of the operation
// that requires the proof. It returns ErrWrongCode if the proof was used already. If the
// proof enrolls the user's first second factor, consume returns new recovery codes.
type consume func(tx *store.Tx) ([]secret.RecoveryCode, error)

// verifyProof verifies that the proof is a second factor of the user. A passkey must have
// signed the challenge. Call the returned function to mark the proof as used. verifyProof
// returns ErrWrongCode if the proof is wrong.
func (s *Service) verifyProof(c access.Caller, q *pendingSignIn, p Proof, challenge secret.Token) (consume, error) {
	switch {
	case p.Passkey != nil:
		return s.verifyPasskey(c, q, p.Passkey, challenge)
	case p.RecoveryCode != "":
		return s.verifyRecoveryCode(c, q, p.RecoveryCode)
	case q.factors.TOTP.Sealed == nil:
		return nil, rolecall.ErrWrongCode
	}
	stored := q.factors.TOTP
	step, err := s.step(c, stored.Sealed, p.Code, stored.LastStep)
	return func(tx *store.Tx) ([]secret.RecoveryCode, error) {
		renewed := s.keys.Renew(totpPurpose, string(stored.Sealed), totpBelongs(c.Tenant.ID, c.User.ID))
		return nil, orWrong(tx.UseTOTP(c.User.ID, stored.Sealed, []byte(renewed), step))
	}, err
}

// errCodeUnverifiable is the error for a code of an authenticator app whose instance key is missing. Its code is
// that of a wrong one, so that clients show the other methods.
var errCodeUnverifiable = rolecall.ErrWrongCode.With("Codes of this app cannot be verified now. Use a recovery code or a passkey.")

// step returns the time step to which the code belongs. It returns errCodeUnverifiable if the
// secret cannot be decrypted, and ErrWrongCode if the secret gives another code, or if the time step is
// not later than last.
func (s *Service) step(c access.Caller, sealed []byte, code string, last int64) (step int64, err error) {
	app, ok := s.openTOTP(c.Tenant.ID, c.User.ID, sealed)
	if !ok {
		return 0, errCodeUnverifiable
	}
	if step, ok = app.Step(code, s.now(), last); !ok {
		err = rolecall.ErrWrongCode
	}
	return step, err
}

// openTOTP decrypts the user's TOTP secret. It returns false if the instance no longer
// has the key that encrypted the secret.
func (s *Service) openTOTP(tenant rolecall.TenantID, user rolecall.UserID, sealed []byte) (secret.TOTP, bool) {
	raw, err := s.keys.Open(totpPurpose, string(sealed), totpBelongs(tenant, user))
	if err != nil {
		s.log.Warn("cannot decrypt the secret of an authenticator app: its instance key is missing", "user", user)
	}
	return raw, err == nil
}

func (s *Service) verifyRecoveryCode(c access.Caller, q *pendingSignIn, text string) (consume, error) {
	code, ok := secret.ParseRecoveryCode(text)
	if !ok || q.factors.Methods() == nil {
		return nil, rolecall.ErrWrongCode
	}
	return func(tx *store.Tx) ([]secret.RecoveryCode, error) {
		if err := orWrong(tx.UseRecoveryCode(c.User.ID, code.Hash())); err != nil {
			return nil, err
		}
		tx.InsertEvent(*s.access.Event(c, rolecall.EventRecoveryUsed, rolecall.About(c.User.ID)))
		return nil, s.access.Notify(tx, c.Tenant.ID, &c.User, "a recovery code was used", c.Browser())
	}, nil
}

func (s *Service) verifyPasskey(c access.Caller, q *pendingSignIn, document []byte, challenge secret.Token) (consume, error) {
	response, ok := passkey.ReadResponse(document)
	if !ok {
		return nil, rolecall.ErrWrongCode
	}
	old, used, err := s.assertedPasskey(q.webauthnUser(&c.Tenant), response, challenge, rolecall.ErrWrongCode, false)
	return func(tx *store.Tx) ([]secret.RecoveryCode, error) {
		return nil, orWrong(tx.UsePasskey(old, used))
	}, err
}

// assertedPasskey returns the passkey of the user that signed the challenge. The result
// old is the stored passkey, and used is the passkey with the updated signature counter
// and time of last use. If passwordless is true, the authenticator must have verified the
// user. assertedPasskey returns the error invalid if the response is not valid. If the response is valid, but a passkey
// of the user must no longer be accepted, the error is a proofRefusal of it.
func (s *Service) assertedPasskey(user *passkey.User, response passkey.Response, challenge secret.Token, invalid *rolecall.Error, passwordless bool) (old, used rolecall.Passkey, err error) {
	if s.passkeys == nil {
		return old, used, invalid
	}
	used, err = s.passkeys.Verify(response, challenge, user, passwordless)
	if errors.Is(err, passkey.ErrRefused) {
		s.log.Info("passkey refused", "user", user.User.ID, "why", err)
		switch {
		case errors.Is(err, passkey.ErrCounter):
			return old, used, &proofRefusal{invalid.With("The counter of this passkey went back, so there may be a copy of it. " + anotherFactor), "passkey-counter"}
		case errors.Is(err, passkey.ErrBackup):
			return old, used, &proofRefusal{invalid.With("This passkey can now be synced to other devices, or no longer can, unlike when it was added. " + anotherFactor), "passkey-backup"}
		}
		return old, used, invalid
	}
	used.LastUsedAt = s.now()
	for _, old = range user.Passkeys {
		if string(old.ID) == string(used.ID) {
			break
		}
	}
	return old, used, err
}

// anotherFactor is what users can do whose passkey is refused for good.
const anotherFactor = "Sign in in another way. Then delete the passkey, and add it again."

// proofRefusal is an error with the reason for the event.
type proofRefusal struct {
	problem *rolecall.Error
	reason  string
}

// Error returns the text of the problem.
func (r *proofRefusal) Error() string { return r.problem.Error() }

// Unwrap returns the problem.
func (r *proofRefusal) Unwrap() error { return r.problem }

// reasonOf returns the reason for the event of a refused proof. It returns the code of the problem if the error has no
// reason.
func reasonOf(err error, problem *rolecall.Error) string {
	if refusal, ok := errors.AsType[*proofRefusal](err); ok {
		return refusal.reason
	}
	return problem.Code
}

// errWrongNewCode is ErrWrongCode for an authenticator app that the user is enrolling.
var errWrongNewCode = rolecall.ErrWrongCode.With("This is not the current code of the authenticator app that you are adding. Enter the code that the app shows now.")

// verifyNewFactor verifies the proof of a user who enrolls a first second factor: a code
// from the pending TOTP secret, or a new passkey. Call the returned function to enroll
// the factor.
func (s *Service) verifyNewFactor(c access.Caller, q *pendingSignIn, p Proof, challenge secret.Token) (consume, error) {
	var add func(*store.Tx) error
	method := rolecall.FactorTOTP
	switch {
	case p.Passkey != nil:
		method = rolecall.FactorPasskey
		response, ok := passkey.ReadResponse(p.Passkey)
		if !ok {
			return nil, rolecall.ErrWrongCode
		}
		key, err := s.registeredPasskey(q.webauthnUser(&c.Tenant), response, challenge)
		if err != nil {
			return nil, err
		}
		key.Name = defaultPasskeyName
		add = func(tx *store.Tx) error { tx.InsertPasskey(key); return nil }
	case p.RecoveryCode != "" || q.factors.TOTP.Pending == nil:
		return nil, rolecall.ErrWrongCode
	default:
		pending := q.factors.TOTP.Pending
		step, err := s.step(c, pending, p.Code, 0)
		if err != nil {
			return nil, errWrongNewCode
		}
		add = func(tx *store.Tx) error { return orWrong(tx.ConfirmTOTP(c.User.ID, pending, step, s.now())) }
	}
	return func(tx *store.Tx) ([]secret.RecoveryCode, error) {
		now, err := tx.Factors(c.User.ID)
		if err == nil && now.Methods() != nil { // another sign-in enrolled a factor at the same time
			err = rolecall.ErrChallengeInvalid
		}
		if err == nil {
			err = add(tx)
		}
		if err != nil {
			return nil, err
		}
		event := s.factorEvent(c, rolecall.EventFactorAdded, method)
		tx.InsertEvent(*event)
		return s.factorAdded(tx, c, event, now.RecoveryCodes)
	}, nil
}

// registeredPasskey returns the new passkey from a response to the challenge. It returns
// ErrWrongCode if the response is not valid.
func (s *Service) registeredPasskey(user *passkey.User, response passkey.Response, challenge secret.Token) (rolecall.Passkey, error) {
	if s.passkeys == nil {
		return rolecall.Passkey{}, rolecall.ErrWrongCode
	}
	key, err := s.passkeys.Create(response, challenge, user)
	if errors.Is(err, passkey.ErrRefused) {
		s.log.Info("passkey refused", "user", user.User.ID, "why", err)
		err = rolecall.ErrWrongCode
	}
	key.CreatedAt = s.now()
	return key, err
}

// orWrong returns ErrWrongCode if ok is false and err is nil. Callers use it for a code
// or passkey that was used before, which is treated like a wrong one.
func orWrong(ok bool, err error) error {
	if err == nil && !ok {
		err = rolecall.ErrWrongCode
	}
	return err
}

var errProofRequired = rolecall.ErrSecondFactorRequired.With("The password is correct, but your second factor is also required. Send it together with the password.")

// FactorChallenge returns a challenge for the second factor of a signed-in user. It
// returns nil if the user has no second factor.
func (s *Service) FactorChallenge(ctx context.Context, c access.Caller) (*Challenge, error) {
	own, err := s.Factors(ctx, c)
	if err != nil || own.Methods() == nil {
		return nil, err
	}
	challenge, err := s.challengeOf(&pendingSignIn{user: c.User, factors: own.Factors}, &c.Tenant, s.challenge(passkeyProof, c))
	challenge.Problem = errProofRequired
	return challenge, err
}

// verifyOwnFactor verifies the second factor of a signed-in user. It counts the attempt
// separately from the attempts of sign-ins. Call the returned function to mark the proof as
// used. verifyOwnFactor can fail with ErrWrongCode or ErrTooManyAttempts.
func (s *Service) verifyOwnFactor(ctx context.Context, c access.Caller, p Proof) (consume func(*store.Tx) error, err error) {
	counted, err := s.limiter.Count(ctx, s.ownFactorBuckets(&c.User))
	if err != nil {
		return nil, err
	}
	own, err := s.Factors(ctx, c)
	if err != nil {
		return nil, err
	}
	var challenge secret.Token
	if response, ok := passkey.ReadResponse(p.Passkey); ok && s.isChallenge(passkeyProof, c, response.Challenge) {
		challenge = response.Challenge
	}
	use, err := s.verifyProof(c, &pendingSignIn{user: c.User, factors: own.Factors}, p, challenge)
	if err != nil {
		return nil, err
	}
	return func(tx *store.Tx) error {
		if challenge != "" {
			if err := orWrong(s.consumeChallenge(tx, challenge)); err != nil {
				return err
			}
		}
		_, err := use(tx)
		tx.ForgiveAttempt(counted)
		return err
	}, nil
}

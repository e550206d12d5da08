package signin

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Proof is what somebody shows as a second factor: one of the members.
type Proof struct {
	Code         string // of an authenticator app
	RecoveryCode string
	Passkey      []byte // the JSON document of a PublicKeyCredential
}

// take uses a proof up, in the transaction of what it is good for. It returns
// ErrWrongCode if it was used up before, and the recovery codes that come with a
// first factor.
type take func(tx *store.Tx) ([]secret.RecoveryCode, error)

// judge returns what uses the proof up, or ErrWrongCode if it is none of the user
// that is asked. A passkey must have signed the challenge.
func (s *Service) judge(c access.Caller, q *question, p Proof, challenge secret.Token) (take, error) {
	switch {
	case p.Passkey != nil:
		return s.judgePasskey(c, q, p.Passkey, challenge)
	case p.RecoveryCode != "":
		return s.judgeRecoveryCode(c, q, p.RecoveryCode)
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

// step returns the step of the code, or ErrWrongCode if it is none of the sealed
// secret that is later than the last.
func (s *Service) step(c access.Caller, sealed []byte, code string, last int64) (step int64, err error) {
	app, ok := s.openTOTP(c.Tenant.ID, c.User.ID, sealed)
	if ok {
		step, ok = app.Step(code, s.now(), last)
	}
	if !ok {
		err = rolecall.ErrWrongCode
	}
	return step, err
}

// openTOTP returns the user's secret, or false if the key that sealed it was taken
// out of the instance.
func (s *Service) openTOTP(tenant rolecall.TenantID, user rolecall.UserID, sealed []byte) (secret.TOTP, bool) {
	raw, err := s.keys.Open(totpPurpose, string(sealed), totpBelongs(tenant, user))
	if err != nil {
		s.log.Warn("the secret of an authenticator app is sealed under a key that is not there", "user", user)
	}
	return raw, err == nil
}

func (s *Service) judgeRecoveryCode(c access.Caller, q *question, text string) (take, error) {
	code, ok := secret.ParseRecoveryCode(text)
	if !ok || q.factors.Methods() == nil {
		return nil, rolecall.ErrWrongCode
	}
	return func(tx *store.Tx) ([]secret.RecoveryCode, error) {
		if err := orWrong(tx.UseRecoveryCode(c.User.ID, code.Hash())); err != nil {
			return nil, err
		}
		tx.InsertEvent(*s.access.Event(c, rolecall.EventRecoveryUsed, audit.AboutUser(c.User.ID)))
		return nil, s.access.Notify(tx, c.Tenant.ID, &c.User, "a recovery code was used")
	}, nil
}

func (s *Service) judgePasskey(c access.Caller, q *question, document []byte, challenge secret.Token) (take, error) {
	response, ok := passkey.ReadResponse(document)
	if !ok {
		return nil, rolecall.ErrWrongCode
	}
	old, used, err := s.signed(q.owner(&c.Tenant), response, challenge, false)
	return func(tx *store.Tx) ([]secret.RecoveryCode, error) {
		return nil, orWrong(tx.UsePasskey(old, used))
	}, err
}

// signed returns the passkey of the owner that signed the challenge, as it was and
// as it is then, or ErrWrongCode.
func (s *Service) signed(owner *passkey.Owner, response passkey.Response, challenge secret.Token, alone bool) (old, used rolecall.Passkey, err error) {
	if s.passkeys == nil {
		return old, used, rolecall.ErrWrongCode
	}
	used, err = s.passkeys.Verify(response, challenge, owner, alone)
	if errors.Is(err, passkey.ErrRefused) {
		s.log.Info("passkey refused", "user", owner.User.ID, "why", err)
		return old, used, rolecall.ErrWrongCode
	}
	used.LastUsedAt = s.now()
	for _, old = range owner.Passkeys {
		if string(old.ID) == string(used.ID) {
			break
		}
	}
	return old, used, err
}

// judgeNew is judge for somebody without a factor, whose proof makes one: by a code
// of the secret that is pending, or by a new passkey.
func (s *Service) judgeNew(c access.Caller, q *question, p Proof, challenge secret.Token) (take, error) {
	var add func(*store.Tx) error
	method := rolecall.FactorTOTP
	switch {
	case p.Passkey != nil:
		method = rolecall.FactorPasskey
		response, ok := passkey.ReadResponse(p.Passkey)
		if !ok {
			return nil, rolecall.ErrWrongCode
		}
		key, err := s.created(q.owner(&c.Tenant), response, challenge)
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
			return nil, err
		}
		add = func(tx *store.Tx) error { return orWrong(tx.ConfirmTOTP(c.User.ID, pending, step, s.now())) }
	}
	return func(tx *store.Tx) ([]secret.RecoveryCode, error) {
		now, err := tx.Factors(c.User.ID)
		if err == nil && now.Methods() != nil { // another sign-in was first
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

// created returns the passkey that the response to the challenge brings, or
// ErrWrongCode.
func (s *Service) created(owner *passkey.Owner, response passkey.Response, challenge secret.Token) (rolecall.Passkey, error) {
	if s.passkeys == nil {
		return rolecall.Passkey{}, rolecall.ErrWrongCode
	}
	key, err := s.passkeys.Create(response, challenge, owner)
	if errors.Is(err, passkey.ErrRefused) {
		s.log.Info("passkey refused", "user", owner.User.ID, "why", err)
		err = rolecall.ErrWrongCode
	}
	key.CreatedAt = s.now()
	return key, err
}

// orWrong turns what was not there to be used into ErrWrongCode.
func orWrong(ok bool, err error) error {
	if err == nil && !ok {
		err = rolecall.ErrWrongCode
	}
	return err
}

var errProofRequired = rolecall.ErrSecondFactorRequired.With("The password is right, and your second factor is needed too. Show it beside the password.")

// AskAgain returns what asks somebody who is signed in for their second factor
// again, nil if they have none.
func (s *Service) AskAgain(ctx context.Context, c access.Caller) (*Challenge, error) {
	own, err := s.Factors(ctx, c)
	if err != nil || own.Methods() == nil {
		return nil, err
	}
	challenge, err := s.challengeOf(&question{user: c.User, factors: own.Factors}, &c.Tenant, s.challenge(passkeyProof, c))
	challenge.Problem = errProofRequired
	return challenge, err
}

// shownAgain returns what uses up the second factor that somebody who is signed in
// shows again, counted by itself. It returns ErrWrongCode and ErrTooManyAttempts.
func (s *Service) shownAgain(ctx context.Context, c access.Caller, p Proof) (take func(*store.Tx) error, err error) {
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
	use, err := s.judge(c, &question{user: c.User, factors: own.Factors}, p, challenge)
	if err != nil {
		return nil, err
	}
	return func(tx *store.Tx) error {
		if challenge != "" {
			if err := orWrong(s.spend(tx, challenge)); err != nil {
				return err
			}
		}
		_, err := use(tx)
		tx.ForgiveAttempt(counted)
		return err
	}, nil
}

package signin

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Reauthenticate verifies again the password of the user of the session, and the second
// factor if the user has one. It returns the session with a new token, the successor of
// the presented session token. The old token stops working as after a Refresh. If the
// user has a second factor and the request has only the password, Reauthenticate returns
// a challenge. It returns ErrValidation if the password or second factor is wrong, and
// ErrTooManyAttempts, ErrBusy and ErrUnauthenticated.
func (s *Service) Reauthenticate(ctx context.Context, c access.Caller, presented []secret.Token, password string, p Proof) (SignIn, error) {
	hash, counted, err := s.ownPassword(ctx, c, "/password", password)
	if err != nil {
		return SignIn{}, err
	}
	consume, challenge, err := s.ownProof(ctx, c, p)
	if err != nil || challenge != nil {
		return SignIn{Challenge: challenge}, s.ownFailure(c, p, err)
	}
	in, err := s.confirmSession(ctx, c, presented, func(tx *store.Tx) error {
		if ok, err := tx.ReplacePassword(c.User.ID, hash, hash, s.now()); err != nil {
			return err
		} else if !ok { // the password was changed at the same time
			return wrongOwn("/password")
		}
		tx.ForgiveAttempt(counted)
		return consume(tx)
	})
	return in, s.ownFailure(c, p, err)
}

// HasPassword reports whether the caller has a password, with which Reauthenticate can succeed.
func (s *Service) HasPassword(ctx context.Context, c access.Caller) (has bool, err error) {
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		hash, err := tx.PasswordHash(c.User.ID)
		has = hash != ""
		return err
	})
	return has, err
}

// confirmSession records that the user of the session has re-authenticated, and replaces the token of the
// session. The function prove runs in the same transaction. It consumes the proofs.
func (s *Service) confirmSession(ctx context.Context, c access.Caller, presented []secret.Token, prove func(*store.Tx) error) (SignIn, error) {
	_, token, err := s.session(ctx, c.Tenant, presented)
	if err != nil {
		return SignIn{}, err
	}
	confirmed := *c.Principal
	session := &confirmed.Session
	session.ConfirmedAt = s.now()
	in := SignIn{Principal: &confirmed}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (_ *rolecall.Event, err error) {
		if err := prove(tx); err != nil {
			return nil, err
		}
		if ok, err := tx.ConfirmSession(session.ID, session.ConfirmedAt); err != nil {
			return nil, err
		} else if !ok { // the session was ended at the same time
			return nil, rolecall.ErrUnauthenticated
		}
		if in.Token, err = successor(tx, token); err != nil {
			return nil, err
		}
		return s.access.Event(c, rolecall.EventSessionConfirmed, rolecall.About(c.User.ID)), nil
	})
	return in, err
}

// ownProof verifies the second factor of the caller. Call the returned function to mark
// the proof as used. If the caller has a second factor and the request has no proof,
// ownProof returns a challenge.
func (s *Service) ownProof(ctx context.Context, c access.Caller, p Proof) (consume func(*store.Tx) error, challenge *Challenge, err error) {
	if p.pointer() != "" {
		consume, err = s.verifyOwnFactor(ctx, c, p)
		return consume, nil, err
	}
	challenge, err = s.FactorChallenge(ctx, c)
	return func(*store.Tx) error { return nil }, challenge, err
}

// ownFailure returns ErrValidation in place of ErrWrongCode, and other errors unchanged.
// The caller is signed in, and clients interpret a 401 as the end of the session.
func (s *Service) ownFailure(c access.Caller, p Proof, err error) error {
	if !errors.Is(err, rolecall.ErrWrongCode) {
		return err
	}
	s.refusals.Count(c.Tenant.ID, rolecall.EventSignInFailed, c.Actor(), c.User.ID, reasonOf(err, rolecall.ErrWrongCode), c.Source)
	detail := "does not match any of your second factors, or was used before"
	if refusal, ok := errors.AsType[*proofRefusal](err); ok {
		detail = "was not accepted. " + refusal.problem.Detail
	}
	return rolecall.FieldErrors{{Pointer: p.pointer(), Code: "wrong", Detail: detail}}.Err()
}

// pointer returns the JSON Pointer of the proof in the request body. It returns "" if the
// request has no proof.
func (p *Proof) pointer() string {
	switch {
	case p.Code != "":
		return "/code"
	case p.RecoveryCode != "":
		return "/recoveryCode"
	case p.Passkey != nil:
		return "/passkey"
	}
	return ""
}

package signin

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Confirm writes that the person who asks has just shown to be the one who signed in:
// by the password, and by the second factor of somebody who has one. It returns the
// confirmed session with the successor of its token, which is one of those presented;
// the old token ends as after a Refresh. For the password alone of somebody who has a
// second factor, the outcome is a challenge. Confirm returns ErrValidation for what is
// wrong, ErrTooManyAttempts, ErrBusy and ErrUnauthenticated.
func (s *Service) Confirm(ctx context.Context, c access.Caller, presented []secret.Token, password string, p Proof) (SignIn, error) {
	hash, counted, err := s.ownPassword(ctx, c, "/password", password)
	if err != nil {
		return SignIn{}, err
	}
	take, challenge, err := s.ownProof(ctx, c, p)
	if err != nil || challenge != nil {
		return SignIn{Challenge: challenge}, s.ownFailure(c, p, err)
	}
	_, token, err := s.session(ctx, c.Tenant, presented)
	if err != nil {
		return SignIn{}, err
	}
	confirmed := *c.Principal
	session := &confirmed.Session
	session.ConfirmedAt = s.now()
	in := SignIn{Principal: &confirmed}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (_ *rolecall.Event, err error) {
		if ok, err := tx.ReplacePassword(c.User.ID, hash, hash, s.now()); err != nil {
			return nil, err
		} else if !ok { // it was changed meanwhile
			return nil, wrongOwn("/password")
		}
		if err := take(tx); err != nil {
			return nil, err
		}
		if ok, err := tx.ConfirmSession(session.ID, session.ConfirmedAt); err != nil {
			return nil, err
		} else if !ok { // it was ended meanwhile
			return nil, rolecall.ErrUnauthenticated
		}
		if in.Token, err = successor(tx, token); err != nil {
			return nil, err
		}
		tx.ForgiveAttempt(counted)
		return s.access.Event(c, rolecall.EventSessionConfirmed, audit.AboutUser(c.User.ID)), nil
	})
	return in, s.ownFailure(c, p, err)
}

// ownProof returns what uses up the second factor that the caller shows. If they show
// none and have one, it returns a challenge.
func (s *Service) ownProof(ctx context.Context, c access.Caller, p Proof) (take func(*store.Tx) error, challenge *Challenge, err error) {
	if p.pointer() != "" {
		take, err = s.shownAgain(ctx, c, p)
		return take, nil, err
	}
	challenge, err = s.AskAgain(ctx, c)
	return func(*store.Tx) error { return nil }, challenge, err
}

// ownFailure turns a wrong second factor of somebody who is signed in into
// ErrValidation: it must not look as if they were not.
func (s *Service) ownFailure(c access.Caller, p Proof, err error) error {
	if !errors.Is(err, rolecall.ErrWrongCode) {
		return err
	}
	s.refusals.Count(c.Tenant.ID, rolecall.EventSignInFailed, c.Actor(), c.User.ID, rolecall.ErrWrongCode.Code, c.Source)
	return rolecall.Faults{{Pointer: p.pointer(), Code: "wrong", Detail: "is not a second factor of yours, or was used before"}}.Err()
}

// pointer returns where a body has the proof, empty if there is none.
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

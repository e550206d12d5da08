package signin

import (
	"context"
	"errors"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// SignIn is the outcome of a sign-in: a session with the token that bears it, or a
// challenge.
type SignIn struct {
	Principal *authz.Principal
	Token     secret.Token
	Device    string // for the device cookie; empty where there is none to set

	RecoveryCodes []secret.RecoveryCode // of somebody who has got a second factor by it; nil: none

	Challenge *Challenge // nil: there is a session; otherwise the other members are empty
}

// Login makes a session for the user with that address and password, and ends
// those that came with the request. An unknown tenant, an unknown address, a user
// without a password and a wrong password are the same ErrWrongCredentials after
// the same work. It returns ErrTooManyAttempts before any hash is spent, ErrBusy
// if too many hashes are under way, and for right credentials only ErrUserSuspended and
// ErrTenantSuspended. Where a second factor is needed, the outcome is a challenge for
// CompleteSignIn.
func (s *Service) Login(ctx context.Context, a access.Anonymous, email, password string) (SignIn, error) {
	device := s.device(&a, email)
	counted, err := s.limiter.Count(ctx, s.buckets(&a, email, device))
	if err != nil {
		return SignIn{}, err
	}
	var user rolecall.User
	var hash string
	err = s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) (err error) {
		user, hash, err = tx.UserByEmail(rolecall.EmailKey(email))
		return err
	})
	if _, err := access.Found(err); err != nil {
		return SignIn{}, err
	}
	if device != nil && device.isStale(hash) {
		device = nil
		if counted, err = s.limiter.Count(ctx, s.buckets(&a, email, nil)); err != nil {
			return SignIn{}, err
		}
	}
	ok, outdated, err := s.verify(ctx, counted, hash, password)
	switch {
	case err != nil:
		return SignIn{}, err
	case !ok:
		s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, audit.Anonymous, user.ID, rolecall.ErrWrongCredentials.Code, a.Source)
		return SignIn{}, rolecall.ErrWrongCredentials
	case a.Tenant.Status == rolecall.TenantSuspended:
		return SignIn{}, rolecall.ErrTenantSuspended
	case user.Status != rolecall.UserActive:
		return SignIn{}, rolecall.ErrUserSuspended
	}
	current := hash
	if outdated {
		if current, err = s.passwords.Hash(ctx, password); err != nil {
			return SignIn{}, err
		}
	}
	return s.startSession(ctx, &a, entry{user: user.ID, password: current, counted: counted, isNewBrowser: device == nil, prepare: func(tx *store.Tx) (rolecall.User, error) {
		if err := admit(tx, user.ID); err != nil {
			return user, err
		}
		if ok, err := tx.ReplacePassword(user.ID, hash, current, s.now()); err != nil {
			return user, err
		} else if !ok { // it was changed while the hash waited for its turn
			return user, rolecall.ErrWrongCredentials
		}
		return user, nil
	}})
}

// admit returns nil if the user may sign in now, and holds that until the session
// is written: what ends a user's sessions comes either before it or finds it.
func admit(tx *store.Tx, id rolecall.UserID) error {
	if active, err := tx.LockActiveUser(id); active || err != nil {
		return err
	}
	if _, err := tx.UserByID(id); err == nil {
		return rolecall.ErrUserSuspended
	} else if _, err := access.Found(err); err != nil {
		return err
	}
	return rolecall.ErrWrongCredentials // deleted meanwhile
}

// entry is somebody about to be let in.
type entry struct {
	user         rolecall.UserID
	password     string             // the stored hash, for which the browser becomes known
	counted      []rolecall.Counted // the attempt, which a session has forgiven
	secondFactor bool               // was shown
	isNewBrowser bool               // it has no known-device token of the account, so the user gets a mail
	// prepare runs in the transaction of the session, admits the user and returns
	// them as they are then.
	prepare func(*store.Tx) (rolecall.User, error)
}

// startSession writes a new session of the user, in one transaction with what the
// entry prepares, with the end of the sessions presented and with that of the oldest
// of too many: nobody else signs the user in before that is over. The browser is a
// known one from now on. Where a second factor is needed and was not shown, it commits
// what was prepared and returns a challenge.
func (s *Service) startSession(ctx context.Context, a *access.Anonymous, e entry) (SignIn, error) {
	now := s.now()
	session := rolecall.Session{
		ID: rolecall.NewID[rolecall.Session](now), UserID: e.user, SecondFactor: e.secondFactor,
		AuthenticatedAt: now, LastUsedAt: now, Source: a.Source, Client: a.Client,
	}
	token := secret.NewToken()
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: rolecall.User{ID: e.user}, Session: session})
	var email string
	var question *question
	err := s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		user, err := e.prepare(tx)
		if err != nil {
			return nil, err
		}
		email = user.Email
		settings, err := s.settingsOf(tx, &a.Tenant, user.ID)
		if err != nil {
			return nil, err
		}
		session.ExpiresAt = now.Add(settings.AbsoluteLifetime())
		if !e.secondFactor {
			if question, err = s.ask(tx, settings, &user, token, e.counted); question != nil || err != nil {
				return nil, err
			}
		}
		for _, presented := range a.Presented {
			if err := s.endSession(tx, a, presented, "replaced by a new sign-in"); err != nil {
				return nil, err
			}
		}
		if e.isNewBrowser {
			if err := s.mailNewBrowser(tx, &a.Tenant, &user, &session); err != nil {
				return nil, err
			}
		}
		tx.ForgiveAttempt(e.counted)
		event := s.access.Event(c, rolecall.EventSignedIn, audit.AboutUser(e.user))
		ended, err := tx.DeleteOldestSessions(e.user, settings.SessionsPerUser()-1, settings, now)
		if err != nil {
			return nil, err
		}
		tx.DeleteOwnEmailChanges(e.user, ended...)
		access.RecordEnded(tx, e.user, ended, event, "too many sessions")
		tx.InsertSession(session, token.Hash())
		return event, nil
	})
	if err != nil {
		return SignIn{}, err
	}
	if question != nil {
		challenge, err := s.challengeOf(question, &a.Tenant, token)
		return SignIn{Challenge: challenge}, err
	}
	live, err := s.lookUp(ctx, a.Tenant, token)
	if ok, err := access.Found(err); err != nil {
		return SignIn{}, err
	} else if !ok { // it was ended at once
		return SignIn{}, rolecall.ErrUnauthenticated
	}
	return SignIn{Principal: live.principal, Token: token, Device: s.newDevice(a.Tenant.ID, email, e.password)}, nil
}

// mailNewBrowser tells the user about a sign-in from a new browser. The first sign-in
// of an account is from a new browser always, so it is not worth a mail.
func (s *Service) mailNewBrowser(tx *store.Tx, tenant *rolecall.Tenant, user *rolecall.User, session *rolecall.Session) error {
	last, err := tx.LastLogin(user.ID)
	if err != nil || last == 0 {
		return err
	}
	return s.notifyOfSession(tx, tenant.ID, user, rolecall.MailNewBrowser, session)
}

// endSession ends the session of the token, if there is one in the tenant. A change of
// the user's own address that was requested in it becomes void.
func (s *Service) endSession(tx *store.Tx, a *access.Anonymous, token secret.Token, reason string) error {
	state, err := tx.SessionByToken(token.Hash())
	if ok, err := access.Found(err); !ok {
		return err
	}
	if ok, err := tx.DeleteSession(state.Session.ID); !ok {
		return err
	}
	tx.DeleteOwnEmailChanges(state.User.ID, state.Session.ID)
	event := s.access.Event(a.Caller(&authz.Principal{Tenant: a.Tenant, User: state.User, Session: state.Session}), rolecall.EventSessionEnded, audit.AboutUser(state.User.ID))
	event.Reason = reason
	tx.InsertEvent(*event)
	return nil
}

// Refresh answers the successor of the session's token. Until the successor is
// first presented, every refresh by the old token answers the same one, so that
// neither a lost answer nor parallel requests sign anybody out.
func (s *Service) Refresh(ctx context.Context, a access.Anonymous) (SignIn, error) {
	e, token, err := s.session(ctx, a.Tenant, a.Presented)
	if err != nil {
		return SignIn{}, err
	}
	if a.Tenant.Status == rolecall.TenantSuspended {
		return SignIn{}, rolecall.ErrTenantSuspended
	}
	s.touch(ctx, e)
	in := SignIn{Principal: e.principal}
	err = s.store.Update(ctx, a.Tenant.ID, func(tx *store.Tx) (err error) {
		in.Token, err = successor(tx, token)
		return err
	})
	return in, err
}

// successor returns the successor of the session's token: the sealed one if there is
// one already, else a new one. It returns ErrUnauthenticated if the session has ended.
func successor(tx *store.Tx, token secret.Token) (secret.Token, error) {
	for range access.MaxRetries {
		state, err := tx.SessionByToken(token.Hash())
		if ok, err := access.Found(err); err != nil {
			return "", err
		} else if !ok {
			return "", rolecall.ErrUnauthenticated
		}
		if state.Token.Sealed != nil {
			return token.Open(state.Token.Sealed)
		}
		next := secret.NewToken()
		ok, err := tx.SealSuccessor(state.Session.ID, state.Token, next.Hash(), token.Seal(next))
		if ok || err != nil {
			return next, err
		}
	}
	return "", rolecall.ErrUnavailable
}

// Logout ends the sessions of the tokens. Tokens that are unknown, expired or of
// another tenant are no error.
func (s *Service) Logout(ctx context.Context, a access.Anonymous) error {
	if len(a.Presented) == 0 {
		return nil
	}
	known, err := s.known(ctx, &a)
	if err != nil || len(known) == 0 {
		return err
	}
	return s.store.Update(ctx, a.Tenant.ID, func(tx *store.Tx) error {
		for _, token := range known {
			if err := s.endSession(tx, &a, token, "signed out"); err != nil {
				return err
			}
		}
		return nil
	})
}

// known returns those of the presented tokens that the store knows, so that
// unknown ones write nothing.
func (s *Service) known(ctx context.Context, a *access.Anonymous) (known []secret.Token, err error) {
	err = s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) error {
		for _, token := range a.Presented {
			_, err := tx.SessionByToken(token.Hash())
			if ok, err := access.Found(err); err != nil {
				return err
			} else if ok {
				known = append(known, token)
			}
		}
		return nil
	})
	return known, err
}

// buckets returns the counters of an attempt: of the device, if it is one by which
// the account signed in before, so that an attack on the account never stops its
// owner; else, for a nil device, of the account and the source.
func (s *Service) buckets(a *access.Anonymous, email string, device *deviceMark) []rolecall.Bucket {
	if device != nil {
		return []rolecall.Bucket{s.limiter.Bucket("device", s.limiter.Limits.AccountAndSource, 15*time.Minute, device.ID.String())}
	}
	return s.limiter.SignIn(a.TenantName, rolecall.EmailKey(email), a.Source)
}

// ownBuckets returns the counter of the user's tries to name their own password.
// It is one that only they can fill: an attack on the account does not keep its
// owner from changing the password.
func (s *Service) ownBuckets(u *rolecall.User) []rolecall.Bucket {
	return []rolecall.Bucket{s.limiter.Bucket("own password", s.limiter.Limits.AccountAndSource, 15*time.Minute, u.ID.String())}
}

// verify is Passwords.Verify for an attempt that was counted. One that was not
// evaluated, because too many hashes are under way, counts no more.
func (s *Service) verify(ctx context.Context, counted []rolecall.Counted, hash, password string) (ok, outdated bool, err error) {
	ok, outdated, err = s.passwords.Verify(ctx, hash, password)
	if errors.Is(err, rolecall.ErrBusy) {
		ctx, cancel := access.Outliving(ctx)
		defer cancel()
		err = errors.Join(err, s.limiter.Uncount(ctx, counted))
	}
	return ok, outdated, err
}

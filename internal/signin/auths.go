package signin

import (
	"context"
	"errors"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// SignIn is the result of a sign-in. It contains either a session with its token, or a
// challenge for the second factor.
type SignIn struct {
	Principal *authz.Principal
	Token     secret.Token
	Device    string // new value of the device cookie; empty: leave the cookie unchanged

	RecoveryCodes []secret.RecoveryCode // new codes, if this sign-in enrolled the user's first second factor; otherwise nil

	Challenge *Challenge // nil: a session was created; not nil: the other members are empty
}

// Login verifies the email address and the password, and creates a session. It ends the
// sessions whose tokens the request contains. If the user needs a second factor, Login
// creates no session and returns a challenge for CompleteSignIn.
//
// Login returns ErrWrongCredentials if the tenant or the address is unknown, if the user
// has no password, if the password is wrong, or if the tenant does not allow passwords for
// this user. All these cases do the same work, so that the response time does not reveal
// which one occurred. Login returns ErrTooManyAttempts before it computes a hash, and ErrBusy if too many hashes are being computed. It
// returns ErrUserSuspended and ErrTenantSuspended only if the password is correct.
func (s *Service) Login(ctx context.Context, a access.Anonymous, email, password string) (SignIn, error) {
	device := s.device(&a, email)
	counted, err := s.limiter.Count(ctx, s.buckets(&a, email, device))
	if err != nil {
		return SignIn{}, s.noteThrottled(ctx, &a, email, err)
	}
	var user rolecall.User
	var hash string
	var allowed bool
	err = s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) (err error) {
		user, hash, err = tx.UserByEmail(email)
		if _, err := access.Found(err); err != nil {
			return err
		}
		allowed, err = s.allowsPassword(tx, &a.Tenant, user.ID)
		return err
	})
	if err != nil {
		return SignIn{}, err
	}
	if device != nil && device.isStale(hash) {
		device = nil
		if counted, err = s.limiter.Count(ctx, s.buckets(&a, email, nil)); err != nil {
			return SignIn{}, s.noteThrottled(ctx, &a, email, err)
		}
	}
	ok, outdated, err := s.verify(ctx, counted, hash, password)
	switch {
	case err != nil:
		return SignIn{}, err
	case !ok:
		s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, access.AnonymousActor, user.ID, rolecall.ErrWrongCredentials.Code, a.Source)
		return SignIn{}, rolecall.ErrWrongCredentials
	case !allowed:
		s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, access.AnonymousActor, user.ID, rolecall.ErrPasswordsOff.Code, a.Source)
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
		} else if !ok { // the password was changed while the hash was computed
			return user, rolecall.ErrWrongCredentials
		}
		return user, nil
	}})
}

// noteThrottled returns the error of a limiter. If a limit refused the sign-in, noteThrottled counts it for
// an event: one per account, source and minute. It reads the user, if one has the address, only once in this
// time.
func (s *Service) noteThrottled(ctx context.Context, a *access.Anonymous, email string, refused error) error {
	if !errors.Is(refused, rolecall.ErrTooManyAttempts) || !s.refusals.IsFirstThrottled(a.Tenant.ID, rolecall.EmailKey(email), a.Source) {
		return refused
	}
	var user rolecall.User
	err := s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) (err error) {
		user, _, err = tx.UserByEmail(email)
		_, err = access.Found(err)
		return err
	})
	if err != nil {
		s.log.WarnContext(ctx, "cannot record a sign-in that a limit refused", "error", err)
		return refused
	}
	s.refusals.CountThrottled(a.Tenant.ID, user.ID, a.Source)
	return refused
}

// allowsPassword reports whether the user can begin a session without a connection to an
// identity provider. For an unknown user, with the zero ID, it does the same work.
func (s *Service) allowsPassword(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.UserID) (bool, error) {
	if tenant.Settings.AllowsPassword(false) {
		return true, nil
	}
	assignments, err := tx.Assignments(rolecall.HolderOf(user))
	return tenant.Settings.AllowsPassword(authz.IsOwner(assignments, s.now())), err
}

// admit returns nil if the user exists and is active. Otherwise, it returns
// ErrUserSuspended or, for a deleted user, ErrWrongCredentials. It locks the user until
// the end of the transaction, which also writes the new session. Without the lock, an
// operation that ends all sessions of the user could miss the new session.
func admit(tx *store.Tx, id rolecall.UserID) error {
	if active, err := tx.LockActiveUser(id); active || err != nil {
		return err
	}
	if _, err := tx.UserByID(id); err == nil {
		return rolecall.ErrUserSuspended
	} else if _, err := access.Found(err); err != nil {
		return err
	}
	return rolecall.ErrWrongCredentials // deleted at the same time
}

// entry is the input of startSession: the authenticated user and the data of the sign-in.
type entry struct {
	user         rolecall.UserID
	password     string             // hash of the stored password; the known-device token is valid only for this hash
	counted      []rolecall.Counted // counters of this attempt; a new session clears the first and subtracts one from the others
	secondFactor bool               // a second factor was verified
	identity     signInIdentity
	isNewBrowser bool // the browser sent no known-device token of the account, so startSession notifies the user by mail
	// prepare runs in the transaction that writes the session. It must lock the user with
	// admit. It returns the user as stored.
	prepare func(*store.Tx) (rolecall.User, error)
}

// startSession creates a session for the user and a known-device token for the browser.
// In one transaction, it runs e.prepare, ends the sessions of the same kind whose tokens the
// request contains, and inserts the new session. If the user would then have more sessions than
// the tenant allows, startSession also ends the oldest ones. If the user needs a second
// factor and e.secondFactor is false, startSession creates no session. It then commits
// the changes of e.prepare and returns a challenge.
func (s *Service) startSession(ctx context.Context, a *access.Anonymous, e entry) (SignIn, error) {
	now := s.now()
	session := rolecall.Session{
		ID: rolecall.NewID[rolecall.Session](now), UserID: e.user, SecondFactor: e.secondFactor,
		AuthenticatedAt: now, LastUsedAt: now, Source: a.Source, Client: a.Client, Identity: e.identity.Identity, Connection: e.identity.Connection,
	}
	challenge := secret.NewToken()
	token := challenge
	if a.ForHeader {
		token = token.ForHeader()
	}
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: rolecall.User{ID: e.user}, Session: session})
	var email string
	var pending *pendingSignIn
	err := s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		user, err := e.prepare(tx)
		if err != nil {
			return nil, err
		}
		email = user.Email
		if !e.identity.Identity.IsZero() {
			if err := lockIdentity(tx, e.identity.Identity); err != nil {
				return nil, err
			}
		}
		settings, err := s.settingsOf(tx, &a.Tenant, user.ID)
		if err != nil {
			return nil, err
		}
		session.ExpiresAt = now.Add(settings.AbsoluteLifetime())
		if !e.secondFactor {
			if pending, err = s.createChallenge(tx, settings, &user, challenge, challengeData{Counted: e.counted, ForHeader: a.ForHeader, signInIdentity: e.identity}); pending != nil || err != nil {
				return nil, err
			}
		}
		for _, presented := range a.Presented {
			if presented.IsForHeader() != a.ForHeader {
				continue
			}
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
		event := s.access.Event(c, rolecall.EventSignedIn, rolecall.About(e.user))
		if event.Values, err = e.identity.values(); err != nil {
			return nil, err
		}
		ended, err := tx.DeleteOldestSessions(e.user, settings.SessionsPerUser()-1, settings, now)
		if err != nil {
			return nil, err
		}
		tx.DeleteOwnEmailChanges(e.user, ended...)
		access.RecordEnded(tx, e.user, ended, event, "too many sessions")
		tx.InsertSession(session, token.Hash())
		if e.identity.IDToken != "" {
			tx.InsertIDToken(session.ID, e.identity.IDToken)
		}
		return event, nil
	})
	if err != nil {
		return SignIn{}, err
	}
	if pending != nil {
		unsolved, err := s.challengeOf(pending, &a.Tenant, challenge)
		return SignIn{Challenge: unsolved}, err
	}
	live, err := s.lookUp(ctx, a.Tenant, token)
	if ok, err := access.Found(err); err != nil {
		return SignIn{}, err
	} else if !ok { // another request ended it
		return SignIn{}, rolecall.ErrUnauthenticated
	}
	return SignIn{Principal: live.principal, Token: token, Device: s.newDevice(a.Tenant.ID, email, e.password)}, nil
}

// mailNewBrowser notifies the user by mail of a sign-in from a new browser. It sends no
// mail for the first sign-in of an account, because that sign-in is always from a new
// browser.
func (s *Service) mailNewBrowser(tx *store.Tx, tenant *rolecall.Tenant, user *rolecall.User, session *rolecall.Session) error {
	last, err := tx.LastLogin(user.ID)
	if err != nil || last == 0 {
		return err
	}
	return s.notifyOfSession(tx, tenant.ID, user, rolecall.MailNewBrowser, session)
}

// endSession ends the session of the token. It does nothing if the tenant has no session
// with this token. If the user requested a change of the user's own address in this
// session, the confirmation link of the change becomes invalid.
func (s *Service) endSession(tx *store.Tx, a *access.Anonymous, token secret.Token, reason string) error {
	state, err := tx.SessionByToken(token.Hash())
	if ok, err := access.Found(err); !ok {
		return err
	}
	if ok, err := tx.DeleteSession(state.Session.ID); !ok {
		return err
	}
	tx.DeleteOwnEmailChanges(state.User.ID, state.Session.ID)
	event := s.access.Event(a.Caller(&authz.Principal{Tenant: a.Tenant, User: state.User, Session: state.Session}), rolecall.EventSessionEnded, rolecall.About(state.User.ID))
	event.Reason = reason
	tx.InsertEvent(*event)
	return nil
}

// Refresh returns the session with a new token, the successor of the presented token.
// Until the successor is used for the first time, each Refresh with the old token returns
// the same successor. So a lost response or parallel requests do not sign the user out.
// Refresh returns the errors of Authenticate.
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

// successor returns the successor of the session token. If the store contains no
// successor yet, it creates one. It returns ErrUnauthenticated if the session has ended, and
// store.ErrStale if another request has created the successor or ended the session since.
func successor(tx *store.Tx, token secret.Token) (secret.Token, error) {
	state, err := tx.SessionByToken(token.Hash())
	if ok, err := access.Found(err); err != nil {
		return "", err
	} else if !ok {
		return "", rolecall.ErrUnauthenticated
	}
	if state.Token.Sealed != nil {
		return token.Open(state.Token.Sealed)
	}
	next := token.NextSession()
	return next, store.CheckVersion(tx.SealSuccessor(state.Session.ID, state.Token, next.Hash(), token.Seal(next)))
}

// Logout ends the sessions of the tokens. It ignores tokens that are unknown,
// expired or of another tenant.
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

// known returns the tokens of the request that belong to a stored session. Logout calls
// it first, so that a request that has only unknown tokens causes no write.
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

// buckets returns the counters of a sign-in attempt. If device is nil, the attempt is
// counted by account and by source. An attempt from a known device has a separate
// counter, so that an attack on the account does not lock out its user.
func (s *Service) buckets(a *access.Anonymous, email string, device *deviceToken) []rolecall.Bucket {
	if device != nil {
		return []rolecall.Bucket{s.limiter.Bucket("device", s.limiter.Limits.AccountAndSource, 15*time.Minute, device.ID.String())}
	}
	return s.limiter.SignIn(a.TenantName, rolecall.EmailKey(email), a.Source)
}

// ownBuckets returns the counter of the attempts in which a signed-in user enters their
// own password. Only requests of the signed-in user increase this counter. So an attack
// on the account from outside does not keep the user from changing the password.
func (s *Service) ownBuckets(u *rolecall.User) []rolecall.Bucket {
	return []rolecall.Bucket{s.limiter.Bucket("own password", s.limiter.Limits.AccountAndSource, 15*time.Minute, u.ID.String())}
}

// verify calls Passwords.Verify for an attempt that was counted. If Passwords.Verify
// returns ErrBusy, the password was not verified, and verify subtracts the attempt from
// its counters.
func (s *Service) verify(ctx context.Context, counted []rolecall.Counted, hash, password string) (ok, outdated bool, err error) {
	ok, outdated, err = s.passwords.Verify(ctx, hash, password)
	if errors.Is(err, rolecall.ErrBusy) {
		ctx, cancel := access.Detached(ctx)
		defer cancel()
		err = errors.Join(err, s.limiter.Uncount(ctx, counted))
	}
	return ok, outdated, err
}

package signin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// challengeLifetime is how long a challenge is valid.
	challengeLifetime = 5 * time.Minute

	// challengeTries is the maximum number of attempts to solve one challenge.
	challengeTries = 5
)

// Challenge is the request for a second factor, after the password of a sign-in was
// verified.
type Challenge struct {
	Problem   *rolecall.Error         // the error with which the API reports the challenge: ErrSecondFactorRequired or ErrEnrolmentRequired
	Token     string                  // secret that the client must send with the second factor
	Methods   []rolecall.FactorMethod // the accepted methods
	PublicKey []byte                  // PublicKeyCredentialRequestOptionsJSON of WebAuthn; nil: the user cannot use a passkey
}

// pendingSignIn is a sign-in that waits for the second factor. The user has entered the
// right password.
type pendingSignIn struct {
	user    rolecall.User
	factors rolecall.Factors
	hash    string // hash of the password that was verified
	challengeData
}

// challengeData is the part of a challenge that is stored as JSON.
type challengeData struct {
	Enrol   bool               `json:"enrol,omitempty"`   // the user has no second factor, and the tenant requires one
	Counted []rolecall.Counted `json:"counted,omitempty"` // counters of the password attempt, for entry.counted

	ForHeader bool `json:"forHeader,omitempty"` // see access.Anonymous

	signInIdentity
}

// createChallenge stores a challenge for the user under the hash of the token. It returns
// nil if the user needs no second factor. Each change of the password deletes the
// challenge. The argument stored has the data of the attempt to store.
func (s *Service) createChallenge(tx *store.Tx, settings rolecall.TenantSettings, user *rolecall.User, token secret.Token, stored challengeData) (*pendingSignIn, error) {
	factors, err := tx.Factors(user.ID)
	if err != nil {
		return nil, err
	}
	stored.Enrol = factors.Methods() == nil
	q := pendingSignIn{user: *user, factors: factors, challengeData: stored}
	if q.Enrol && !settings.RequireFactor() {
		return nil, nil
	}
	data, err := json.Marshal(q.challengeData)
	if err != nil {
		return nil, err
	}
	now := s.now()
	tx.InsertOneTimeToken(rolecall.OneTimeToken{
		Purpose: rolecall.TokenSignIn, UserID: user.ID, Data: string(data), CreatedAt: now, ExpiresAt: now.Add(challengeLifetime),
	}, token.Hash())
	return &q, nil
}

// settingsOf returns the settings of the tenant as they apply to the user. If the tenant
// requires a second factor only for some roles, they depend on the user's assignments.
func (s *Service) settingsOf(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.UserID) (rolecall.TenantSettings, error) {
	if tenant.Settings.SecondFactor.Required != rolecall.SecondFactorOfRoles {
		return tenant.Settings, nil
	}
	assignments, err := tx.Assignments(rolecall.HolderOf(user))
	return tenant.Settings.For(assignments, s.now()), err
}

// challengeOf returns the challenge in the form that the client receives. It leaves out
// methods that this instance can no longer verify, because the operator has removed the
// domain of passkeys or the key that encrypted the TOTP secret.
func (s *Service) challengeOf(q *pendingSignIn, tenant *rolecall.Tenant, token secret.Token) (challenge *Challenge, err error) {
	if q.Enrol {
		challenge = &Challenge{Problem: rolecall.ErrEnrolmentRequired, Token: string(token), Methods: []rolecall.FactorMethod{rolecall.FactorTOTP}}
		if s.passkeys != nil {
			challenge.Methods = append(challenge.Methods, rolecall.FactorPasskey)
		}
		return challenge, nil
	}
	challenge = &Challenge{Problem: rolecall.ErrSecondFactorRequired, Token: string(token)}
	for _, method := range q.factors.Methods() {
		usable := true
		switch method {
		case rolecall.FactorTOTP:
			_, usable = s.openTOTP(tenant.ID, q.user.ID, q.factors.TOTP.Sealed)
		case rolecall.FactorPasskey:
			if usable = s.passkeys != nil; usable {
				challenge.PublicKey, err = s.passkeys.RequestOptions(token, q.webauthnUser(tenant))
			}
		}
		if usable {
			challenge.Methods = append(challenge.Methods, method)
		}
	}
	return challenge, err
}

func (q *pendingSignIn) webauthnUser(tenant *rolecall.Tenant) *passkey.User {
	return &passkey.User{User: &q.user, Tenant: tenant.DisplayName, Passkeys: q.factors.Passkeys}
}

// loadChallenge loads the challenge with the token. It returns ErrChallengeInvalid if the
// challenge is unknown, expired or used, or if the user has added the first or removed the
// last second factor since. It also returns ErrChallengeInvalid if the tenant no longer
// allows the user to sign in with a password. loadChallenge can also fail with ErrTenantSuspended or
// ErrUserSuspended.
func (s *Service) loadChallenge(ctx context.Context, a *access.Anonymous, token secret.Token) (q pendingSignIn, err error) {
	var stored rolecall.OneTimeToken
	var allowed bool
	err = s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) error {
		if stored, err = tx.OneTimeToken(token.Hash(), rolecall.TokenSignIn); err != nil {
			return err
		}
		if q.user, err = tx.UserByID(stored.UserID); err != nil {
			return err
		}
		if q.hash, err = tx.PasswordHash(stored.UserID); err != nil {
			return err
		}
		if q.factors, err = tx.Factors(stored.UserID); err != nil {
			return err
		}
		allowed, err = s.allowsPassword(tx, &a.Tenant, stored.UserID)
		return err
	})
	if err == nil && json.Unmarshal([]byte(stored.Data), &q.challengeData) != nil { // an older program wrote it
		err = rolecall.ErrNotFound
	}
	switch ok, err := access.Found(err); {
	case err != nil:
		return q, err
	case !ok, !stored.Live(s.now()), q.Enrol != (q.factors.Methods() == nil):
		return q, rolecall.ErrChallengeInvalid
	case !allowed && q.Identity.IsZero(): // the sign-in began with a password
		s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, access.AnonymousActor, q.user.ID, rolecall.ErrPasswordsOff.Code, a.Source)
		return q, rolecall.ErrChallengeInvalid
	case a.Tenant.Status == rolecall.TenantSuspended:
		return q, rolecall.ErrTenantSuspended
	case q.user.Status != rolecall.UserActive:
		return q, rolecall.ErrUserSuspended
	}
	return q, nil
}

// CompleteSignIn finishes a sign-in after the password was verified. The proof is a second
// factor of the user. If the user has none, the proof is the first code of a new
// authenticator app, or a new passkey, and CompleteSignIn enrolls it. CompleteSignIn can
// fail with ErrChallengeInvalid, ErrWrongCode, ErrTooManyAttempts, ErrUserSuspended or
// ErrTenantSuspended.
func (s *Service) CompleteSignIn(ctx context.Context, a access.Anonymous, challenge secret.Token, p Proof) (SignIn, error) {
	q, err := s.loadChallenge(ctx, &a, challenge)
	if err != nil {
		return SignIn{}, err
	}
	a.ForHeader = q.ForHeader
	device := s.currentDevice(&a, q.user.Email, q.hash)
	counted, err := s.limiter.Count(ctx, s.challengeBuckets(&q.user, device, challenge))
	if err != nil {
		return SignIn{}, s.noteThrottled(ctx, &a, q.user.Email, err)
	}
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: q.user})
	judge := s.verifyProof
	if q.Enrol {
		judge = s.verifyNewFactor
	}
	take, err := judge(c, &q, p, challenge)
	var codes []secret.RecoveryCode
	var in SignIn
	if err == nil {
		in, err = s.startSession(ctx, &a, entry{user: q.user.ID, password: q.hash, counted: slices.Concat(q.Counted, counted), secondFactor: true, identity: q.signInIdentity, isNewBrowser: device == nil, prepare: func(tx *store.Tx) (_ rolecall.User, err error) {
			if err := answered(tx, &q, challenge); err != nil {
				return q.user, err
			}
			codes, err = take(tx)
			return q.user, err
		}})
	}
	if errors.Is(err, rolecall.ErrWrongCredentials) { // the identity was deleted since
		err = rolecall.ErrChallengeInvalid
	}
	if errors.Is(err, rolecall.ErrWrongCode) {
		s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, access.AnonymousActor, q.user.ID, reasonOf(err, rolecall.ErrWrongCode), a.Source)
	}
	in.RecoveryCodes = codes
	return in, err
}

// answered deletes the token of the challenge, so that the challenge works once. It locks
// the user until the end of the transaction, which also writes the session.
func answered(tx *store.Tx, q *pendingSignIn, token secret.Token) error {
	if err := admit(tx, q.user.ID); errors.Is(err, rolecall.ErrWrongCredentials) {
		return rolecall.ErrChallengeInvalid
	} else if err != nil {
		return err
	}
	ok, err := tx.DeleteOneTimeToken(token.Hash())
	if err == nil && !ok {
		err = rolecall.ErrChallengeInvalid
	}
	return err
}

// challengeBuckets returns the counters of an attempt to solve a challenge: one for the
// challenge and one for the account. The counter of the account includes all challenges
// and sources, so that an attacker who knows the password cannot guess codes without
// limit. Attempts from known devices of the account have a separate counter, so that
// guesses from elsewhere do not lock out the user.
func (s *Service) challengeBuckets(user *rolecall.User, device *deviceToken, challenge secret.Token) []rolecall.Bucket {
	own := s.limiter.Bucket("challenge", challengeTries, challengeLifetime, string(challenge))
	own.Full = rolecall.ErrChallengeInvalid
	if device != nil {
		return []rolecall.Bucket{own, s.limiter.Bucket("second factor of known devices", s.limiter.Limits.AccountAndSource, 15*time.Minute, user.ID.String())}
	}
	return []rolecall.Bucket{own, s.limiter.SecondFactor(user.ID)}
}

// Enrolment is the data with which a user enrolls their first second factor.
type Enrolment struct {
	TOTPSecret
	PublicKey []byte // options for navigator.credentials.create, as JSON; nil: passkeys are unavailable
}

// BeginEnrolment returns the data to enroll a second factor during a sign-in, after the
// password was verified. The client then sends the first code or the new passkey to
// CompleteSignIn. BeginEnrolment can fail with ErrChallengeInvalid, ErrUserSuspended or
// ErrTenantSuspended.
func (s *Service) BeginEnrolment(ctx context.Context, a access.Anonymous, challenge secret.Token) (e Enrolment, err error) {
	q, err := s.loadChallenge(ctx, &a, challenge)
	if err == nil && !q.Enrol {
		err = rolecall.ErrChallengeInvalid
	}
	if err != nil {
		return e, err
	}
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: q.user})
	if e.TOTPSecret, err = s.BeginTOTP(ctx, c); err != nil {
		if _, err := access.Found(err); err == nil { // deleted at the same time
			return e, rolecall.ErrChallengeInvalid
		}
		return e, err
	}
	if s.passkeys != nil {
		e.PublicKey, err = s.passkeys.CreationOptions(challenge, q.webauthnUser(&a.Tenant))
	}
	return e, err
}

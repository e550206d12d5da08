package signin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// challengeLifetime is how long a second factor may take.
	challengeLifetime = 5 * time.Minute

	// challengeTries is how often one challenge is answered at most.
	challengeTries = 5
)

// Challenge is what a sign-in waits for after the right password.
type Challenge struct {
	Problem   *rolecall.Error         // how the API reports it: ErrSecondFactorRequired or ErrEnrolmentRequired
	Token     string                  // comes with the answer; a secret of who gave the password
	Methods   []rolecall.FactorMethod // by which it can be answered
	PublicKey []byte                  // what asks for a passkey: PublicKeyCredentialRequestOptionsJSON; nil for no passkey
}

// question is what somebody who gave the right password still has to answer.
type question struct {
	user    rolecall.User
	factors rolecall.Factors
	hash    string // of the password that was given
	asked
}

// asked is what the token of a question stores.
type asked struct {
	Enrol   bool               `json:"enrol,omitempty"`   // there is nothing to show yet, and the tenant demands it
	Counted []rolecall.Counted `json:"counted,omitempty"` // the attempt at the password, which a session has forgiven
}

// ask writes the question that the user has to answer, under the token, which every
// change of the password withdraws; nil if there is none. counted is the attempt at the
// password.
func (s *Service) ask(tx *store.Tx, settings rolecall.TenantSettings, user *rolecall.User, token secret.Token, counted []rolecall.Counted) (*question, error) {
	factors, err := tx.Factors(user.ID)
	if err != nil {
		return nil, err
	}
	q := question{user: *user, factors: factors, asked: asked{factors.Methods() == nil, counted}}
	if q.Enrol && !settings.RequireFactor() {
		return nil, nil
	}
	data, err := json.Marshal(q.asked)
	if err != nil {
		return nil, err
	}
	now := s.now()
	tx.InsertOneTimeToken(rolecall.OneTimeToken{
		Purpose: rolecall.TokenSignIn, UserID: user.ID, Data: string(data), CreatedAt: now, ExpiresAt: now.Add(challengeLifetime),
	}, token.Hash())
	return &q, nil
}

// settingsOf returns the tenant's settings as they hold for the user.
func (s *Service) settingsOf(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.UserID) (rolecall.TenantSettings, error) {
	if tenant.Settings.SecondFactor.Required != rolecall.SecondFactorOfRoles {
		return tenant.Settings, nil
	}
	assignments, err := tx.Assignments(rolecall.HolderOf(user))
	return tenant.Settings.For(assignments, s.now()), err
}

// challengeOf returns how the question can be answered: not by what the operator has
// taken away, the domain of passkeys or the key that sealed the secret of an app.
func (s *Service) challengeOf(q *question, tenant *rolecall.Tenant, token secret.Token) (challenge *Challenge, err error) {
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
				challenge.PublicKey, err = s.passkeys.RequestOptions(token, q.owner(tenant))
			}
		}
		if usable {
			challenge.Methods = append(challenge.Methods, method)
		}
	}
	return challenge, err
}

func (q *question) owner(tenant *rolecall.Tenant) *passkey.Owner {
	return &passkey.Owner{User: &q.user, Tenant: tenant.DisplayName, Passkeys: q.factors.Passkeys}
}

// open returns the question that the token stands for, or ErrChallengeInvalid if it
// is over, answered, or void because of what has happened to the user meanwhile. It
// returns ErrTenantSuspended and ErrUserSuspended too.
func (s *Service) open(ctx context.Context, a *access.Anonymous, token secret.Token) (q question, err error) {
	var stored rolecall.OneTimeToken
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
		q.factors, err = tx.Factors(stored.UserID)
		return err
	})
	if err == nil && json.Unmarshal([]byte(stored.Data), &q.asked) != nil { // an older program wrote it
		err = rolecall.ErrNotFound
	}
	switch ok, err := access.Found(err); {
	case err != nil:
		return q, err
	case !ok, !stored.Live(s.now()), q.Enrol != (q.factors.Methods() == nil):
		return q, rolecall.ErrChallengeInvalid
	case a.Tenant.Status == rolecall.TenantSuspended:
		return q, rolecall.ErrTenantSuspended
	case q.user.Status != rolecall.UserActive:
		return q, rolecall.ErrUserSuspended
	}
	return q, nil
}

// CompleteSignIn signs in who has given the right password before, and now answers
// the challenge of that: by a second factor, or by the first code or passkey of one
// that they enrol. It returns ErrChallengeInvalid, ErrWrongCode, ErrTooManyAttempts,
// ErrUserSuspended and ErrTenantSuspended.
func (s *Service) CompleteSignIn(ctx context.Context, a access.Anonymous, challenge secret.Token, p Proof) (SignIn, error) {
	q, err := s.open(ctx, &a, challenge)
	if err != nil {
		return SignIn{}, err
	}
	device := s.currentDevice(&a, q.user.Email, q.hash)
	counted, err := s.limiter.Count(ctx, s.challengeBuckets(&q.user, device, challenge))
	if err != nil {
		return SignIn{}, err
	}
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: q.user})
	judge := s.judge
	if q.Enrol {
		judge = s.judgeNew
	}
	take, err := judge(c, &q, p, challenge)
	var codes []secret.RecoveryCode
	var in SignIn
	if err == nil {
		in, err = s.startSession(ctx, &a, entry{user: q.user.ID, password: q.hash, counted: slices.Concat(q.Counted, counted), secondFactor: true, isNewBrowser: device == nil, prepare: func(tx *store.Tx) (_ rolecall.User, err error) {
			if err := answered(tx, &q, challenge); err != nil {
				return q.user, err
			}
			codes, err = take(tx)
			return q.user, err
		}})
	}
	if errors.Is(err, rolecall.ErrWrongCode) {
		s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, audit.Anonymous, q.user.ID, rolecall.ErrWrongCode.Code, a.Source)
	}
	in.RecoveryCodes = codes
	return in, err
}

// answered uses the token of the question up, and holds the state of the user as it
// is until the session is written.
func answered(tx *store.Tx, q *question, token secret.Token) error {
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

// challengeBuckets returns the counters of answers: of the challenge, and of the
// account wherever they come from, so that nobody who knows the password guesses
// codes in peace. The known browsers of the account share a counter of their own, so
// that guesses from elsewhere do not lock its owner out.
func (s *Service) challengeBuckets(user *rolecall.User, device *deviceMark, challenge secret.Token) []rolecall.Bucket {
	own := s.limiter.Bucket("challenge", challengeTries, challengeLifetime, string(challenge))
	own.Full = rolecall.ErrChallengeInvalid
	if device != nil {
		return []rolecall.Bucket{own, s.limiter.Bucket("second factor of known devices", s.limiter.Limits.AccountAndSource, 15*time.Minute, user.ID.String())}
	}
	return []rolecall.Bucket{own, s.limiter.SecondFactor(user.ID)}
}

// Enrolment is what somebody who has no second factor yet can make one of.
type Enrolment struct {
	TOTPSecret
	PublicKey []byte // what navigator.credentials.create takes, in JSON; nil if there are no passkeys here
}

// BeginEnrolment gives who has given the right password, and is asked for a second
// factor that they do not have, what to make one of; CompleteSignIn ends it. It
// returns ErrChallengeInvalid, ErrUserSuspended and ErrTenantSuspended.
func (s *Service) BeginEnrolment(ctx context.Context, a access.Anonymous, challenge secret.Token) (e Enrolment, err error) {
	q, err := s.open(ctx, &a, challenge)
	if err == nil && !q.Enrol {
		err = rolecall.ErrChallengeInvalid
	}
	if err != nil {
		return e, err
	}
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: q.user})
	if e.TOTPSecret, err = s.BeginTOTP(ctx, c); err != nil {
		if _, err := access.Found(err); err == nil { // deleted meanwhile
			return e, rolecall.ErrChallengeInvalid
		}
		return e, err
	}
	if s.passkeys != nil {
		e.PublicKey, err = s.passkeys.CreationOptions(challenge, q.owner(&a.Tenant))
	}
	return e, err
}

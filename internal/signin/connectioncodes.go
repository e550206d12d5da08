package signin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// codeLifetime is how long an application can exchange a code for a session.
	codeLifetime = time.Minute

	// ownCodeLifetime is how long a signed-in user can use a code. The user can have to enter a second factor,
	// or to re-authenticate first.
	ownCodeLifetime = 5 * time.Minute
)

// codeContent is the stored content of a code.
type codeContent struct {
	Purpose       Purpose            `json:"purpose"`
	CodeChallenge string             `json:"codeChallenge,omitempty"` // of PKCE; can be empty for PurposeConfirm and PurposeLink
	Trusted       bool               `json:"trusted,omitempty"`       // the provider has proved a second factor
	Identity      *rolecall.Identity `json:"identity"`
	IDToken       string             `json:"idToken,omitempty"` // encrypted; only for PurposeSignIn
}

// issueCode stores a code for the user. For PurposeConfirm and PurposeLink, it works only in the session in
// which the attempt began.
func (s *Service) issueCode(ctx context.Context, a *access.Anonymous, p *authenticated, user rolecall.UserID, identity rolecall.Identity) (secret.Token, error) {
	now := s.now()
	if p.Purpose == PurposeLink {
		identity = p.newIdentity(now, user)
	}
	content := codeContent{Purpose: p.Purpose, CodeChallenge: p.CodeChallenge, Trusted: p.trusted(), Identity: &identity}
	lifetime := ownCodeLifetime
	if p.Purpose == PurposeSignIn {
		lifetime, content.IDToken = codeLifetime, p.idToken
	}
	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	code := secret.NewToken()
	err = s.store.Update(ctx, a.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertOneTimeToken(rolecall.OneTimeToken{
			Purpose: rolecall.TokenOIDCCode, UserID: user, Data: string(data), CreatedAt: now, ExpiresAt: now.Add(lifetime),
			Origin: rolecall.Origin{Credential: rolecall.AnyID(p.Session)},
		}, code.Hash())
		return nil
	})
	return code, err
}

// loadCode returns the stored code. It returns ErrCodeInvalid if the code is unknown, expired or used, if it
// has another purpose, or if the verifier is not the one of its challenge. A wrong verifier uses the code
// up, because the sender is not the application that began the sign-in.
func (s *Service) loadCode(ctx context.Context, tenant *rolecall.Tenant, code secret.Token, verifier string, purpose Purpose) (token rolecall.OneTimeToken, content codeContent, err error) {
	token, err = store.Read(ctx, s.store, tenant.ID, func(tx *store.Tx) (rolecall.OneTimeToken, error) {
		return tx.OneTimeToken(code.Hash(), rolecall.TokenOIDCCode)
	})
	if err == nil && json.Unmarshal([]byte(token.Data), &content) != nil { // an older program wrote it
		err = rolecall.ErrNotFound
	}
	if ok, err := access.Found(err); err != nil {
		return token, content, err
	} else if !ok || !token.Live(s.now()) || content.Purpose != purpose {
		return token, content, rolecall.ErrCodeInvalid
	}
	if content.CodeChallenge == "" && purpose != PurposeSignIn || CodeChallenge(secret.Token(verifier)) == content.CodeChallenge {
		return token, content, nil
	}
	err = s.store.Update(ctx, tenant.ID, func(tx *store.Tx) error { return useCode(tx, code) })
	return token, content, errors.Join(err, rolecall.ErrCodeInvalid)
}

// CodeChallenge returns the challenge of the verifier (PKCE S256).
func CodeChallenge(verifier secret.Token) string {
	return base64.RawURLEncoding.EncodeToString(verifier.Hash())
}

// useCode uses the code up. It returns ErrCodeInvalid if it was used before.
func useCode(tx *store.Tx, code secret.Token) error {
	ok, err := tx.DeleteOneTimeToken(code.Hash())
	if err == nil && !ok {
		err = rolecall.ErrCodeInvalid
	}
	return err
}

// ExchangeCode exchanges the code of a sign-in for a session. Only the application that began the sign-in has
// the verifier, so a code that another browser brings starts no session. If the user needs a second factor,
// ExchangeCode returns a challenge. It returns ErrCodeInvalid, ErrUserSuspended, ErrTenantSuspended and
// ErrTooManyAttempts.
func (s *Service) ExchangeCode(ctx context.Context, a access.Anonymous, code secret.Token, verifier string) (in SignIn, err error) {
	err = s.limited(ctx, &a, func() error {
		in, err = s.exchangeCode(ctx, a, code, verifier)
		return err
	})
	return in, err
}

func (s *Service) exchangeCode(ctx context.Context, a access.Anonymous, code secret.Token, verifier string) (SignIn, error) {
	token, content, err := s.loadCode(ctx, &a.Tenant, code, verifier, PurposeSignIn)
	if err != nil {
		if errors.Is(err, rolecall.ErrCodeInvalid) {
			s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, access.AnonymousActor, token.UserID, rolecall.ErrCodeInvalid.Code, a.Source)
		}
		return SignIn{}, err
	}
	user, err := store.Read(ctx, s.store, a.Tenant.ID, func(tx *store.Tx) (rolecall.User, error) { return tx.UserByID(token.UserID) })
	switch ok, err := access.Found(err); {
	case err != nil:
		return SignIn{}, err
	case !ok:
		return SignIn{}, rolecall.ErrCodeInvalid
	case a.Tenant.Status == rolecall.TenantSuspended:
		return SignIn{}, rolecall.ErrTenantSuspended
	case user.Status != rolecall.UserActive:
		return SignIn{}, rolecall.ErrUserSuspended
	}
	in, err := s.signInByIdentity(ctx, &a, &user, signInIdentity{content.Identity.ID, content.Identity.ConnectionID, content.IDToken}, content.Trusted, func(tx *store.Tx) error { return useCode(tx, code) })
	if errors.Is(err, rolecall.ErrWrongCredentials) { // the user or the identity was deleted at the same time
		err = rolecall.ErrCodeInvalid
	}
	return in, err
}

// ownCode is loadCode for a code that a signed-in user sends. It also returns the counters of the attempt.
func (s *Service) ownCode(ctx context.Context, c access.Caller, code secret.Token, verifier string, purpose Purpose) (codeContent, []rolecall.Counted, error) {
	counted, err := s.limiter.Count(ctx, s.ownBuckets(&c.User))
	if err != nil {
		return codeContent{}, nil, err
	}
	token, content, err := s.loadCode(ctx, &c.Tenant, code, verifier, purpose)
	if err == nil && (token.UserID != c.User.ID || token.Credential != rolecall.AnyID(c.Session.ID)) {
		err = rolecall.ErrCodeInvalid
	}
	return content, counted, asOwnCode(purpose, err)
}

// asOwnCode returns ErrValidation in place of ErrCodeInvalid and ErrWrongCredentials, because clients interpret
// a 401 as the end of the session.
func asOwnCode(purpose Purpose, err error) error {
	if !errors.Is(err, rolecall.ErrCodeInvalid) && !errors.Is(err, rolecall.ErrWrongCredentials) {
		return err
	}
	pointer := "/code"
	if purpose == PurposeConfirm {
		pointer = "/connectionCode"
	}
	return rolecall.FieldErrors{{Pointer: pointer, Code: "wrong", Detail: "is unknown, used or expired, or belongs to another session or purpose. Start again with POST /auths/oidc/start"}}.Err()
}

var errConnectionProofRequired = rolecall.ErrSecondFactorRequired.With("Your identity provider has confirmed who you are, but your second factor is also required. Send it together with the code.")

// ReauthenticateByCode is like Reauthenticate, but the code of an attempt with PurposeConfirm replaces the
// password. If the provider has proved a second factor, none is required. The code stays valid if the result
// is a challenge.
func (s *Service) ReauthenticateByCode(ctx context.Context, c access.Caller, presented []secret.Token, code secret.Token, verifier string, p Proof) (SignIn, error) {
	content, counted, err := s.ownCode(ctx, c, code, verifier, PurposeConfirm)
	if err != nil {
		return SignIn{}, err
	}
	consume := func(*store.Tx) error { return nil }
	if !content.Trusted {
		var challenge *Challenge
		if consume, challenge, err = s.ownProof(ctx, c, p); challenge != nil {
			challenge.Problem = errConnectionProofRequired
		}
		if err != nil || challenge != nil {
			return SignIn{Challenge: challenge}, s.ownFailure(c, p, err)
		}
	}
	in, err := s.confirmSession(ctx, c, presented, func(tx *store.Tx) error {
		if err := lockIdentity(tx, content.Identity.ID); err != nil {
			return err
		}
		if err := useCode(tx, code); err != nil {
			return err
		}
		tx.ForgiveAttempt(counted)
		return consume(tx)
	})
	return in, s.ownFailure(c, p, asOwnCode(PurposeConfirm, err))
}

// LinkIdentity adds the identity of an attempt with PurposeLink to the caller, who can then sign in with it.
// It returns ErrValidation, ErrIdentityTaken, ErrTooManyIdentities and ErrTooManyAttempts.
func (s *Service) LinkIdentity(ctx context.Context, c access.Caller, code secret.Token, verifier string) (identity rolecall.Identity, err error) {
	if err := authz.LinkOwnIdentity.Authorize(c.Principal); err != nil {
		return identity, err
	}
	content, counted, err := s.ownCode(ctx, c, code, verifier, PurposeLink)
	if err != nil {
		return identity, err
	}
	err = s.store.Update(ctx, c.Tenant.ID, func(tx *store.Tx) error {
		if active, err := tx.LockActiveUser(c.User.ID); err != nil {
			return err
		} else if !active {
			return rolecall.ErrUnauthenticated
		}
		if err := useCode(tx, code); err != nil {
			return err
		}
		tx.ForgiveAttempt(counted)
		identity, err = s.insertIdentity(tx, c, *content.Identity, false)
		return err
	})
	if errors.Is(err, rolecall.ErrNotFound) { // the connection was deleted
		err = rolecall.ErrCodeInvalid
	}
	return identity, asOwnCode(PurposeLink, err)
}

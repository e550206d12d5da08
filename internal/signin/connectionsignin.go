package signin

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Refusal is the error of an attempt that the provider or Rolecall refuses. The browser returns to the
// application with its code. The reason is only in the event.
type Refusal struct {
	Code   string
	reason string
	user   rolecall.UserID // zero: unknown
}

// Error returns the code and the reason.
func (r *Refusal) Error() string { return r.Code + ": " + r.reason }

// The codes of refusals. The third code is that of ErrConnectionUnavailable.
const (
	CodeRefused         = "sign-in-refused"
	CodeIdentityUnknown = "identity-unknown"
)

func refuse(reason string) error { return &Refusal{Code: CodeRefused, reason: reason} }

func refuseUser(user rolecall.UserID, reason string) error {
	return &Refusal{Code: CodeRefused, reason: reason, user: user}
}

func unknownIdentity(reason string) error {
	return &Refusal{Code: CodeIdentityUnknown, reason: reason}
}

// authenticated is what the provider has stated about the person of an attempt.
type authenticated struct {
	*Attempt
	connection rolecall.Connection
	provider   oidc.Provider
	claims     oidc.Claims
	idToken    string // encrypted, for the sign-out at the provider; can be empty

	claim       string // the name of the claim with the groups of the person; empty: no claim was read
	claimFailed bool   // the userinfo endpoint, which could have the claim, did not state it because of an error
}

// trusted reports whether the provider has proved a second factor.
func (p *authenticated) trusted() bool { return p.connection.Proves(p.claims.ACR, p.claims.AMR) }

// CompleteAttempt gets the claims of the person from the provider, with the query of the callback, and
// completes the attempt. It uses the attempt up. It returns a code for ExchangeCode, ReauthenticateByCode or
// LinkIdentity, which depends on the purpose. It starts no session, because the URL of the attempt can come
// from another person, whose account the browser would then use. CompleteAttempt returns
// ErrAttemptInvalid if the attempt was used before, ErrConnectionUnavailable, ErrTooManyAttempts, or a
// Refusal. While it waits for the provider, the request holds no slot: leave frees it, and enter takes a
// new one.
func (s *Service) CompleteAttempt(ctx context.Context, a access.Anonymous, attempt *Attempt, address string, callback url.Values, leave func(), enter func() error) (code secret.Token, err error) {
	if a.Tenant.ID.IsZero() {
		return "", rolecall.ErrAttemptInvalid
	}
	err = s.limited(ctx, &a, func() error {
		code, err = s.completeAttempt(ctx, a, attempt, address, callback, leave, enter)
		return err
	})
	return code, err
}

func (s *Service) completeAttempt(ctx context.Context, a access.Anonymous, attempt *Attempt, address string, callback url.Values, leave func(), enter func() error) (secret.Token, error) {
	if err := s.consumeAttempt(ctx, a.Tenant.ID, attempt); err != nil {
		return "", err
	}
	p := &authenticated{Attempt: attempt}
	err := s.redeem(ctx, &a, p, address, callback, leave)
	if err == nil {
		err = enter()
	}
	if err == nil {
		err = s.addUserInfo(ctx, &a, p, leave, enter)
	}
	var code secret.Token
	if err == nil {
		code, err = s.complete(ctx, &a, p)
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		reason := "connection " + attempt.Connection.String() + ": " + refusal.reason
		s.refusals.Count(a.Tenant.ID, rolecall.EventSignInFailed, access.AnonymousActor, refusal.user, reason, a.Source)
	}
	return code, err
}

// redeem gets the claims from the provider.
func (s *Service) redeem(ctx context.Context, a *access.Anonymous, p *authenticated, address string, callback url.Values, leave func()) error {
	connection, provider, err := s.connection(ctx, &a.Tenant, p.Connection)
	if ok, err := access.Found(err); err != nil {
		return err
	} else if !ok {
		return refuse("the connection was deleted")
	}
	p.connection = connection
	p.provider = provider
	leave()
	call, end, err := s.BeginProviderCall(ctx, a.Tenant.ID)
	if err != nil {
		return err
	}
	defer end()
	attempt := p.attempt(&connection, p.state, address)
	p.claim = attempt.List
	p.claims, err = s.access.OIDC.Redeem(call, provider, attempt, callback)
	if err != nil {
		return s.providerError(provider.Issuer, err)
	}
	p.idToken = s.sealIDToken(a.Tenant.ID, &connection, &p.claims)
	return nil
}

// providerError returns the error of this package for one of a call of package oidc.
func (s *Service) providerError(issuer string, err error) error {
	if refused, ok := errors.AsType[*oidc.RefusedError](err); ok {
		return refuse(refused.Reason)
	}
	return s.unreachable(issuer, err)
}

// addUserInfo gets missing claims from the userinfo endpoint of the provider: the address of a person whose identity is
// not linked yet, and the groups. Without the groups, the sign-in goes on, so that a broken endpoint does not
// lock users out.
func (s *Service) addUserInfo(ctx context.Context, a *access.Anonymous, p *authenticated, leave func(), enter func() error) error {
	needsAddress, err := s.needsAddress(ctx, a, p)
	if err != nil {
		return err
	}
	needsGroups := p.claims.HasMoreLists()
	if !needsAddress && !needsGroups {
		return nil
	}
	leave()
	call, end, err := s.BeginProviderCall(ctx, a.Tenant.ID)
	if err == nil {
		if err = s.access.OIDC.AddUserInfo(call, p.provider, &p.claims); err != nil {
			err = s.providerError(p.provider.Issuer, err)
		}
		end()
	}
	if err != nil {
		if needsAddress && p.Purpose != PurposeLink {
			return err
		}
		p.claimFailed = needsGroups
		s.log.WarnContext(ctx, "a sign-in goes on without the claims of the userinfo endpoint", "connection", p.Connection, "error", err)
	}
	return enter()
}

// needsAddress reports whether the userinfo endpoint can state the address of a person whose identity is not linked yet.
func (s *Service) needsAddress(ctx context.Context, a *access.Anonymous, p *authenticated) (bool, error) {
	if !p.claims.HasMore() || p.Purpose == PurposeConfirm {
		return false, nil
	}
	err := s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) error {
		_, err := tx.Identity(p.connection.Issuer, p.claims.Subject)
		return err
	})
	known, err := access.Found(err)
	return !known && err == nil, err
}

// complete completes the attempt after the provider has authenticated the person.
func (s *Service) complete(ctx context.Context, a *access.Anonymous, p *authenticated) (secret.Token, error) {
	if a.Tenant.Status == rolecall.TenantSuspended {
		return "", refuse("the tenant is suspended")
	}
	switch p.Purpose {
	case PurposeConfirm:
		return s.completeConfirm(ctx, a, p)
	case PurposeLink:
		return s.issueCode(ctx, a, p, p.User, rolecall.Identity{})
	}
	user, identity, err := s.identify(ctx, a, p)
	switch {
	case err != nil:
		return "", err
	case user.Status != rolecall.UserActive:
		return "", refuseUser(user.ID, "the user is suspended")
	}
	return s.issueCode(ctx, a, p, user.ID, identity)
}

// signInByIdentity creates a session for the user of the identity, or a challenge for the second factor.
// The argument trusted is true if the provider has proved a second factor. The function consume runs in the
// transaction of the session.
func (s *Service) signInByIdentity(ctx context.Context, a *access.Anonymous, user *rolecall.User, identity signInIdentity, trusted bool, consume func(*store.Tx) error) (SignIn, error) {
	hash, err := store.Read(ctx, s.store, a.Tenant.ID, func(tx *store.Tx) (string, error) { return tx.PasswordHash(user.ID) })
	if err != nil {
		return SignIn{}, err
	}
	isNewBrowser := s.currentDevice(a, user.Email, hash) == nil
	return s.startSession(ctx, a, entry{
		user: user.ID, password: hash, secondFactor: trusted, isNewBrowser: isNewBrowser, identity: identity,
		prepare: func(tx *store.Tx) (rolecall.User, error) {
			if err := admit(tx, user.ID); err != nil {
				return *user, err
			}
			return *user, consume(tx)
		},
	})
}

// signInIdentity is the identity with which a user signs in. It is zero for other sign-ins.
type signInIdentity struct {
	Identity   rolecall.IdentityID   `json:"identity,omitzero"`
	Connection rolecall.ConnectionID `json:"connection,omitzero"`
	IDToken    string                `json:"idToken,omitempty"` // encrypted, for the sign-out at the provider
}

// lockIdentity prevents that the identity is deleted until the end of the transaction. It returns
// ErrWrongCredentials if it was deleted.
func lockIdentity(tx *store.Tx, id rolecall.IdentityID) error {
	ok, err := tx.LockIdentity(id)
	if err == nil && !ok {
		err = rolecall.ErrWrongCredentials
	}
	return err
}

// values returns the values of the event of the sign-in.
func (i signInIdentity) values() (*rolecall.EventValues, error) {
	if i.Identity.IsZero() {
		return nil, nil
	}
	return after(struct {
		ConnectionID rolecall.ConnectionID `json:"connectionId"`
		IdentityID   rolecall.IdentityID   `json:"identityId"`
	}{i.Connection, i.Identity})
}

// clockSkew is the maximum difference between the clocks of Rolecall and of a provider.
const clockSkew = time.Minute

// completeConfirm issues the code with which the user of the session re-authenticates. The person must be the
// user of the session, and must have signed in at the provider after the attempt began.
func (s *Service) completeConfirm(ctx context.Context, a *access.Anonymous, p *authenticated) (secret.Token, error) {
	identity, err := store.Read(ctx, s.store, a.Tenant.ID, func(tx *store.Tx) (rolecall.Identity, error) {
		return tx.Identity(p.connection.Issuer, p.claims.Subject)
	})
	begun := p.ExpiresAt.Add(-AttemptLifetime)
	switch ok, err := access.Found(err); {
	case err != nil:
		return "", err
	case !ok:
		return "", &Refusal{Code: CodeIdentityUnknown, reason: "the identity is not linked", user: p.User}
	case identity.UserID != p.User:
		return "", refuseUser(p.User, "the identity is of another user")
	case p.claims.AuthTime.IsZero() || rolecall.TimeOf(p.claims.AuthTime) < begun.Add(-clockSkew):
		return "", refuseUser(p.User, oidc.ReasonAuthTime)
	}
	return s.issueCode(ctx, a, p, identity.UserID, identity)
}

const (
	idTokenPurpose = "id-token" // purpose of the encryption of ID tokens

	// maxIDToken is the maximum length of an ID token that is kept. Entra refuses a sign-out whose query has
	// more than about 2,000 characters.
	maxIDToken = 1536
)

// sealIDToken encrypts the ID token for the session that begins with it. It returns "" if the provider cannot
// sign users out, or if the token is too long for the URL of a sign-out.
func (s *Service) sealIDToken(tenant rolecall.TenantID, connection *rolecall.Connection, claims *oidc.Claims) string {
	if len(claims.IDToken) > maxIDToken || !claims.EndsSessions {
		return ""
	}
	return s.keys.Seal(idTokenPurpose, []byte(claims.IDToken), idTokenBelongs(tenant, connection))
}

// openIDToken returns the ID token, or "" if the session has none, or one that cannot be decrypted.
func (s *Service) openIDToken(tenant rolecall.TenantID, connection *rolecall.Connection, sealed string) string {
	token, err := s.keys.Open(idTokenPurpose, sealed, idTokenBelongs(tenant, connection))
	if err != nil {
		return ""
	}
	return string(token)
}

// idTokenBelongs returns the associated data of an encrypted ID token. It has the client ID, because a provider
// refuses the ID token of another client.
func idTokenBelongs(tenant rolecall.TenantID, connection *rolecall.Connection) []byte {
	return append(append(tenant[:], connection.ID[:]...), connection.ClientID...)
}

// LogoutAtProvider is like Logout. It also returns the URL at which the browser can sign out at the identity
// provider with which the session began. The provider then returns the browser to returnTo, which the caller
// has checked. The URL is empty if the session did not begin with a provider, or if the provider has no such
// URL or cannot be reached: the session has ended in any case. LogoutAtProvider calls leave before it waits for
// the provider.
func (s *Service) LogoutAtProvider(ctx context.Context, a access.Anonymous, returnTo string, leave func()) (string, error) {
	id, sealed, err := s.connectionOfSession(ctx, &a)
	if err != nil {
		return "", err
	}
	if err := s.Logout(ctx, a); err != nil || id.IsZero() { // before everything that can fail
		return "", err
	}
	connection, err := store.Read(ctx, s.store, a.Tenant.ID, func(tx *store.Tx) (rolecall.Connection, error) { return tx.Connection(id) })
	if found, err := access.Found(err); !found {
		if err != nil {
			s.log.WarnContext(ctx, "cannot read the connection of a session that was signed out", "connection", id, "error", err)
		}
		return "", nil
	}
	leave()
	call, end, err := s.BeginProviderCall(ctx, a.Tenant.ID)
	if err != nil { // too many calls run
		return "", nil
	}
	defer end()
	// The client secret is not needed, so a secret that cannot be decrypted has no effect.
	provider := oidc.Provider{Issuer: connection.Issuer, ClientID: connection.ClientID}
	address, err := s.access.OIDC.SignOutURL(call, provider, s.openIDToken(a.Tenant.ID, &connection, sealed), returnTo)
	if err != nil {
		s.log.WarnContext(ctx, "OpenID provider unavailable", "issuer", connection.Issuer, "error", err)
		return "", nil
	}
	return address, nil
}

// connectionOfSession returns the connection with which one of the presented sessions began, if possible a live
// one, and the encrypted ID token of this session if it is live and has one. The connection is zero if none
// began with one.
func (s *Service) connectionOfSession(ctx context.Context, a *access.Anonymous) (id rolecall.ConnectionID, idToken string, err error) {
	if len(a.Presented) == 0 {
		return id, "", nil
	}
	for _, token := range a.Presented {
		e, err := s.lookUp(ctx, a.Tenant, token)
		if ok, err := access.Found(err); err != nil {
			return id, "", err
		} else if !ok || e.principal.Session.Connection.IsZero() {
			continue
		}
		now, session := s.now(), &e.principal.Session
		if !access.AcceptsSession(e.principal, now) || isReused(&e.token, &a.Tenant, now) {
			if id.IsZero() {
				id = session.Connection
			}
			continue // the token can be stolen, and an ID token has personal data
		}
		id = session.Connection
		idToken, err = store.Read(ctx, s.store, a.Tenant.ID, func(tx *store.Tx) (string, error) { return tx.IDToken(session.ID) })
		if _, err := access.Found(err); err != nil {
			return id, "", err
		}
	}
	return id, idToken, nil
}

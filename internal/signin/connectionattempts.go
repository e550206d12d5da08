package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// ticketLifetime is how long the browser can open the URL of a started sign-in.
	ticketLifetime = 2 * time.Minute

	// AttemptLifetime is how long a user has for the sign-in at the provider.
	AttemptLifetime = 10 * time.Minute
)

// Purpose is the aim of a sign-in through a connection.
type Purpose string

// The purposes.
const (
	PurposeSignIn  Purpose = "sign-in"
	PurposeConfirm Purpose = "confirm" // re-authenticates the user of the session
	PurposeLink    Purpose = "link"    // adds the identity to the user of the session
)

// ConnectionStart is a request to sign in through a connection.
type ConnectionStart struct {
	Connection    rolecall.ConnectionID
	ReturnTo      string // the caller has checked it: a registered address, or a page of the console
	Purpose       Purpose
	CodeChallenge string       // of PKCE; can be empty for PurposeConfirm and PurposeLink
	LoginHint     string       // the address that the user has typed, for the page of the provider; can be empty
	Invitation    secret.Token // of the link that the user has opened; can be empty
}

// ticket is the content of the URL of a started sign-in, which the browser opens. It is encrypted.
type ticket struct {
	Tenant        string                `json:"tenant"` // name
	Connection    rolecall.ConnectionID `json:"connection"`
	ReturnTo      string                `json:"returnTo"`
	Purpose       Purpose               `json:"purpose"`
	CodeChallenge string                `json:"codeChallenge,omitempty"`
	LoginHint     string                `json:"loginHint,omitempty"`
	Invitation    secret.Token          `json:"invitation,omitempty"`
	User          rolecall.UserID       `json:"user,omitzero"`    // for PurposeConfirm and PurposeLink
	Session       rolecall.SessionID    `json:"session,omitzero"` // for PurposeConfirm and PurposeLink
	ExpiresAt     rolecall.Time         `json:"expiresAt"`
}

const ticketPurpose = "connection ticket"

// attemptContent is the content of the cookie of an attempt. It is encrypted.
type attemptContent struct {
	ticket
	State    []byte `json:"state"` // digest
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE at the provider
}

const attemptPurpose = "connection attempt"

// StartConnection begins a sign-in through a connection. It returns the ticket for BeginAttempt, which
// the browser opens. It returns ErrNotFound if the tenant has no such connection. For PurposeConfirm and
// PurposeLink, it returns the errors of Authenticate. It returns ErrConnectionUnavailable if the provider
// cannot be reached. StartConnection calls leave before it waits for the provider.
func (s *Service) StartConnection(ctx context.Context, a access.Anonymous, start ConnectionStart, leave func()) (string, error) {
	t := ticket{
		Tenant: a.TenantName, Connection: start.Connection, ReturnTo: start.ReturnTo, Purpose: start.Purpose,
		CodeChallenge: start.CodeChallenge, LoginHint: start.LoginHint, Invitation: start.Invitation, ExpiresAt: s.now().Add(ticketLifetime),
	}
	if start.Purpose != PurposeSignIn {
		e, _, err := s.session(ctx, a.Tenant, a.Presented)
		if err != nil {
			return "", err
		}
		t.User, t.Session = e.principal.User.ID, e.principal.Session.ID
	}
	_, provider, err := s.connection(ctx, &a.Tenant, start.Connection)
	if err != nil {
		return "", err
	}
	leave()
	// The provider's metadata stays in the cache, so BeginAttempt seldom waits for it.
	if _, err := s.authorizationURL(ctx, a.Tenant.ID, provider, oidc.Attempt{}); err != nil {
		return "", err
	}
	content, err := json.Marshal(t)
	return s.keys.Seal(ticketPurpose, content, nil), err
}

// limited counts an attempt of the source to sign in through a connection, and calls fn. If fn succeeds,
// or if the provider or the service is unavailable, the attempt is not counted, so that the limit does
// not affect a company behind one address. limited returns ErrTooManyAttempts and the error of fn.
func (s *Service) limited(ctx context.Context, a *access.Anonymous, fn func() error) error {
	counted, err := s.limiter.Count(ctx, []rolecall.Bucket{s.limiter.Bucket("connections", s.limiter.Limits.Source, 10*time.Minute, ratelimit.NetworkOf(a.Source))})
	if err != nil {
		return err
	}
	err = fn()
	if err == nil || rolecall.KindOf(err) == rolecall.Unavailable {
		ctx, cancel := access.Detached(ctx)
		defer cancel()
		if err := s.limiter.Uncount(ctx, counted); err != nil { // only the limit is lower than it should be
			s.log.WarnContext(ctx, "cannot uncount a sign-in attempt", "error", err)
		}
	}
	return err
}

// connection returns the connection and its provider. It returns ErrNotFound if the tenant has no such
// connection. If a previous key of the instance has encrypted the client secret, connection encrypts it again,
// so that this key can be removed later.
func (s *Service) connection(ctx context.Context, tenant *rolecall.Tenant, id rolecall.ConnectionID) (rolecall.Connection, oidc.Provider, error) {
	c, err := store.Read(ctx, s.store, tenant.ID, func(tx *store.Tx) (rolecall.Connection, error) { return tx.Connection(id) })
	if err != nil {
		return c, oidc.Provider{}, err
	}
	clientSecret, err := s.ConnectionSecret(tenant.ID, &c)
	if err != nil {
		return c, oidc.Provider{}, err
	}
	if renewed := s.renewConnectionSecret(tenant.ID, &c); !bytes.Equal(renewed, c.Secret) {
		err = s.store.Update(ctx, tenant.ID, func(tx *store.Tx) error {
			tx.RenewConnectionSecret(id, c.Secret, renewed)
			return nil
		})
	}
	return c, oidc.Provider{Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: clientSecret}, err
}

// authorizationURL is Client.AuthorizationURL with the errors of this package.
func (s *Service) authorizationURL(ctx context.Context, tenant rolecall.TenantID, p oidc.Provider, a oidc.Attempt) (string, error) {
	call, end, err := s.BeginProviderCall(ctx, tenant)
	if err != nil {
		return "", err
	}
	defer end()
	address, err := s.access.OIDC.AuthorizationURL(call, p, a)
	if err != nil {
		return "", s.unreachable(p.Issuer, err)
	}
	return address, nil
}

// unreachable logs why the provider cannot be reached, and returns ErrConnectionUnavailable.
func (s *Service) unreachable(issuer string, err error) error {
	s.log.Warn("OpenID provider unavailable", "issuer", issuer, "error", err)
	return rolecall.ErrConnectionUnavailable
}

// BegunAttempt is an attempt to sign in at a provider.
type BegunAttempt struct {
	ID     rolecall.AnyID // names the cookie
	Cookie string         // the content of the cookie, encrypted
	URL    string         // the page of the provider
}

// Ticket returns the name of the tenant of a ticket, and where its browser returns. It returns ErrAttemptInvalid if
// the ticket is not valid or has expired. Where the browser returns is also known if it has expired.
func (s *Service) Ticket(sealed string) (tenant, returnTo string, err error) {
	t, err := s.openTicket(sealed)
	return t.Tenant, t.ReturnTo, err
}

func (s *Service) openTicket(sealed string) (t ticket, err error) {
	content, err := s.keys.Open(ticketPurpose, sealed, nil)
	if err != nil || json.Unmarshal(content, &t) != nil {
		return ticket{}, rolecall.ErrAttemptInvalid
	}
	if s.now() >= t.ExpiresAt {
		return t, rolecall.ErrAttemptInvalid
	}
	return t, nil
}

// CallbacksPath is the path of a redirect URI up to the ID of its connection. Each connection has its own, so that a
// provider never sends the browser with a code for one connection to another one.
const CallbacksPath = "/auths/oidc/callback/"

// BeginAttempt begins an attempt at the provider of the ticket. The provider returns the browser to
// CallbacksPath at the address of Rolecall. BeginAttempt returns ErrAttemptInvalid if the ticket is not valid or the connection was
// deleted, and ErrConnectionUnavailable as StartConnection does.
func (s *Service) BeginAttempt(ctx context.Context, a access.Anonymous, sealed, address string, leave func()) (begun BegunAttempt, err error) {
	t, err := s.openTicket(sealed)
	if err != nil {
		return begun, err
	}
	c, provider, err := s.connection(ctx, &a.Tenant, t.Connection)
	if ok, err := access.Found(err); err != nil {
		return begun, err
	} else if !ok {
		return begun, rolecall.ErrAttemptInvalid
	}
	now := s.now()
	begun.ID = rolecall.NewID[any](now)
	state := begun.ID.String() + "." + string(secret.NewToken())
	t.ExpiresAt = now.Add(AttemptLifetime)
	content := attemptContent{ticket: t, State: secret.Digest([]byte(state)), Nonce: string(secret.NewToken()), Verifier: string(secret.NewToken())}
	text, err := json.Marshal(content)
	if err != nil {
		return begun, err
	}
	begun.Cookie = s.keys.Seal(attemptPurpose, text, begun.ID[:])
	leave()
	begun.URL, err = s.authorizationURL(ctx, a.Tenant.ID, provider, content.attempt(&c, state, address))
	return begun, err
}

// attempt returns the attempt as package oidc needs it.
func (a *attemptContent) attempt(c *rolecall.Connection, state, address string) oidc.Attempt {
	attempt := oidc.Attempt{
		RedirectURI: address + CallbacksPath + c.ID.String(), State: state, Nonce: a.Nonce, Verifier: a.Verifier, LoginHint: a.LoginHint, Reauthenticate: a.Purpose == PurposeConfirm,
	}
	if c.SecondFactor == rolecall.FactorTrust {
		attempt.ACRValues = c.ACRValues
	}
	if c.Groups != nil && a.Purpose == PurposeSignIn {
		attempt.Scopes, attempt.List = c.Groups.Scopes, c.Groups.Claim
	}
	return attempt
}

// Attempt is an attempt whose browser has come back from the provider.
type Attempt struct {
	attemptContent
	state string
}

// AttemptID returns the id of the attempt to which a state belongs, or false if the state has another
// form.
func AttemptID(state string) (rolecall.AnyID, bool) {
	const id = 36
	if len(state) <= id || state[id] != '.' {
		return rolecall.AnyID{}, false
	}
	parsed, err := rolecall.ParseID[any](state[:id])
	return parsed, err == nil
}

// OpenAttempt returns the attempt of the cookie. It returns ErrAttemptInvalid unless the cookie belongs
// to the state and is unexpired, and the browser has come to the redirect URI of the attempt's connection. If the
// cookie can be read, it returns the attempt also with the error, because the attempt knows where the browser
// returns.
func (s *Service) OpenAttempt(cookie, state string, connection rolecall.ConnectionID) (*Attempt, error) {
	id, ok := AttemptID(state)
	a := &Attempt{state: state}
	content, err := s.keys.Open(attemptPurpose, cookie, id[:])
	if !ok || err != nil || json.Unmarshal(content, &a.attemptContent) != nil {
		return nil, rolecall.ErrAttemptInvalid
	}
	if s.now() >= a.ExpiresAt || !bytes.Equal(a.State, secret.Digest([]byte(state))) || a.Connection != connection {
		return a, rolecall.ErrAttemptInvalid
	}
	return a, nil
}

// consumeAttempt marks the state as used. It returns ErrAttemptInvalid if it was used before.
func (s *Service) consumeAttempt(ctx context.Context, tenant rolecall.TenantID, a *Attempt) error {
	return s.store.Update(ctx, tenant, func(tx *store.Tx) error {
		fresh, err := tx.ConsumeOneTimeToken(rolecall.OneTimeToken{
			Purpose: rolecall.TokenOIDCAttempt, CreatedAt: s.now(), ExpiresAt: a.ExpiresAt,
		}, a.State)
		if err == nil && !fresh {
			err = rolecall.ErrAttemptInvalid
		}
		return err
	})
}

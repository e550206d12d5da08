// Package oidc signs users in with OpenID providers: the authorization code flow with PKCE, and the
// checks of OpenID Connect Core 1.0 and RFC 9700. It stores nothing, and returns no token of a provider except
// the ID token. Its callers create the state, nonce and verifier of an attempt, compare the state, and use each
// attempt once.
package oidc

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/rolecall/rolecall/internal/outbound"
)

const (
	// Timeout is the time limit of a call of the Client, with all of its requests.
	Timeout = 10 * time.Second

	// documentBytes and tokenBytes limit the sizes of responses: the metadata and the keys of a provider,
	// and the responses of its endpoints of tokens and of users.
	documentBytes = 1 << 20
	tokenBytes    = 256 << 10
)

// Provider is a provider, and the client that is registered there for Rolecall.
type Provider struct {
	Issuer       string
	ClientID     string
	ClientSecret string
}

// Options are the settings of a Client.
type Options struct {
	// Networks are private networks in which providers can be reached.
	Networks []netip.Prefix

	// Roots are the authorities that certificates are checked with. Nil: those of the system.
	Roots *x509.CertPool

	// Resolver resolves names. Nil: the resolver of the system.
	Resolver *net.Resolver

	// Now is the clock. Nil: time.Now.
	Now func() time.Time

	// Timeout is the time limit of a call. Zero: the constant Timeout.
	Timeout time.Duration
}

// Client talks to providers. It caches their metadata and keys, and is safe for concurrent use.
type Client struct {
	networks  []netip.Prefix
	now       func() time.Time
	timeout   time.Duration
	fetches   *http.Client // for metadata and keys
	tokens    *http.Client // for the endpoints of tokens and of users
	documents *cache[*document]
	keys      *cache[*keySet]
}

// New returns a Client.
func New(o Options) *Client {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Timeout == 0 {
		o.Timeout = Timeout
	}
	out := outbound.New(outbound.Options{Allowed: o.Networks, Roots: o.Roots, Resolver: o.Resolver, Timeout: o.Timeout})
	return &Client{
		networks: o.Networks, now: o.Now, timeout: o.Timeout, fetches: out.HTTP(documentBytes), tokens: out.HTTP(tokenBytes),
		documents: newCache[*document](o.Now, o.Timeout), keys: newCache[*keySet](o.Now, o.Timeout),
	}
}

// ErrUnavailable is the error if the provider cannot be reached, responds with an error that is not about
// the attempt, or has metadata with problems. Its text has the cause, for logs.
var ErrUnavailable = errors.New("OpenID provider unavailable")

// RefusedError is the error of an attempt that is refused.
type RefusedError struct {
	Reason string // one of the constants Reason…
}

// Error returns the text for logs.
func (e *RefusedError) Error() string { return "sign-in refused: " + e.Reason }

// The reasons why attempts are refused. Events contain them, so they do not change.
const (
	ReasonCallback    = "callback"             // the callback has neither one code nor one error
	ReasonResponder   = "response-issuer"      // the parameter iss of the callback is missing, or names another provider
	ReasonDenied      = "access-denied"        // the user or the provider has denied the sign-in
	ReasonProvider    = "provider-error"       // the provider reported another error
	ReasonCode        = "code"                 // the provider does not accept the code
	ReasonClient      = "client"               // the provider does not accept the client ID or the secret
	ReasonResponse    = "token-response"       // the response of the token endpoint has no token in the required form
	ReasonToken       = "token"                // the ID token has not the required form
	ReasonAlgorithm   = "algorithm"            // the ID token is signed with an algorithm that is not allowed
	ReasonKey         = "key"                  // the provider does not publish the key of the ID token
	ReasonSignature   = "signature"            // the signature of the ID token is wrong
	ReasonIssuer      = "issuer"               // the ID token is of another issuer
	ReasonAudience    = "audience"             // the ID token is not for this client alone
	ReasonParty       = "authorized-party"     // the ID token was issued to another client
	ReasonExpired     = "expired"              // the ID token has expired
	ReasonTime        = "issued-in-the-future" // the ID token is not valid yet
	ReasonNonce       = "nonce"                // the ID token is of another attempt
	ReasonSubject     = "subject"              // the subject is missing, too long, or has other characters than visible ASCII
	ReasonAccessToken = "access-token"         // the access token is not the one of the ID token
	ReasonUserInfo    = "user-info"            // the response of the userinfo endpoint is about another user

	// ReasonUserInfoResponse means that the userinfo endpoint refuses the access token, or that its response is
	// neither a JSON object nor a token that the provider has signed for this client.
	ReasonUserInfoResponse = "user-info-response"

	ReasonAuthTime = "authentication-time" // the user was not authenticated again
)

func refused(reason string) error { return &RefusedError{Reason: reason} }

// Attempt is one attempt to sign in. AuthorizationURL and Redeem need the same values.
type Attempt struct {
	RedirectURI string
	State       string
	Nonce       string
	Verifier    string // of PKCE
	LoginHint   string // the address that the user has typed; can be empty

	// Reauthenticate requests that the provider authenticates the user again. Redeem then requires that
	// this happened in the last minutes (freshFor).
	Reauthenticate bool

	// Scopes are requested in addition to openid, email and profile.
	Scopes []string

	// List is the name of the claim for Claims.List. Empty: no claim.
	List string

	// ACRValues are the authentication context classes to request, in the order of preference. The caller
	// checks those of the Claims.
	ACRValues []string
}

// Claims are what the provider states about the user.
type Claims struct {
	Subject string

	// Email and Name are empty if the provider does not state them. Nothing in them is checked.
	Email string
	Name  string

	// EmailVerified is true only if the claim is the JSON boolean true. VerificationStated is false if the
	// provider did not send the claim.
	EmailVerified, VerificationStated bool

	AuthTime time.Time // zero: not stated
	ACR      string
	AMR      []string

	List List // of the claim Attempt.List

	IDToken      string // the ID token as the provider sent it
	EndsSessions bool   // the provider has a URL for signing out

	userInfo *userInfo // nil: AddUserInfo has nothing to add
}

// List is what the provider states in a claim that is a text or a list of texts.
type List struct {
	State  ListState
	Values []string // as the provider sent them; a text is one value
}

// ListState says whether a List has the values of its claim.
type ListState int

// The values of ListState.
const (
	ListAbsent  ListState = iota // the provider did not send the claim, or sent null
	ListStated                   // Values has the values
	ListOmitted                  // the provider sent a reference to the values instead (OpenID Connect Core 1.0, section 5.6.2)
	ListInvalid                  // the claim has another type
)

// AuthorizationURL returns the URL of the provider to which the browser is redirected. It returns
// ErrUnavailable.
func (c *Client) AuthorizationURL(ctx context.Context, p Provider, a Attempt) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	d, err := c.document(ctx, p.Issuer, documentFresh)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if a.LoginHint != "" {
		options = append(options, oauth2.SetAuthURLParam("login_hint", a.LoginHint))
	}
	if a.Reauthenticate {
		options = append(options, oauth2.SetAuthURLParam("max_age", "0"))
	}
	if len(a.ACRValues) > 0 {
		options = append(options, oauth2.SetAuthURLParam("acr_values", strings.Join(a.ACRValues, " ")))
	}
	return d.config(p, a).AuthCodeURL(a.State, options...), nil
}

// SignOutURL returns the URL of the provider at which the browser signs out there, and then returns to
// returnTo (OpenID Connect RP-Initiated Logout 1.0). The argument hint is the ID token of the sign-in. Without
// it, some providers ask the user to confirm, and some refuse. The URL is empty if the provider has none. It
// returns ErrUnavailable.
func (c *Client) SignOutURL(ctx context.Context, p Provider, hint, returnTo string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	d, err := c.document(ctx, p.Issuer, documentFresh)
	if err != nil || d.EndSession == "" {
		return "", err
	}
	u, err := url.Parse(d.EndSession)
	if err != nil {
		return "", unavailable("metadata", err)
	}
	query := u.Query()
	query.Set("client_id", p.ClientID)
	if hint != "" {
		query.Set("id_token_hint", hint)
	}
	query.Set("post_logout_redirect_uri", returnTo)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// scopes returns the scopes to request.
func scopes(more []string) []string {
	all := []string{"openid", "email", "profile"}
	for _, scope := range more {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// config returns the settings of the OAuth library.
func (d *document) config(p Provider, a Attempt) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: a.RedirectURI, Scopes: scopes(a.Scopes),
		Endpoint: oauth2.Endpoint{AuthURL: d.Authorization, TokenURL: d.Token, AuthStyle: d.authStyle()},
	}
}

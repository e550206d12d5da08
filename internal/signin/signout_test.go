package signin_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// storedIDToken returns the encrypted ID token of the session, or "".
func storedIDToken(f *nodetest.Fixture, id rolecall.SessionID) (sealed string) {
	f.Helper()
	err := f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
		sealed, err = tx.IDToken(id)
		return err
	})
	if !errors.Is(err, rolecall.ErrNotFound) {
		f.OK(err)
	}
	return sealed
}

// hint signs out, and returns the ID token in the URL of the provider.
func hint(p *nodetest.Provided, tokens ...secret.Token) string {
	p.Helper()
	address, err := p.SignIn.LogoutAtProvider(p.Context(), p.Attempt(tokens...), returnTo, noOp)
	p.OK(err)
	u, err := url.Parse(address)
	if p.OK(err); u.Path != oidctest.PathEndSession || u.Query().Get("post_logout_redirect_uri") != returnTo {
		p.Errorf("the URL is %q", address)
	}
	hint := u.Query().Get("id_token_hint")
	if hint != "" {
		p.Provider.Authorize(p, address) // accepts only its last ID token
	}
	return hint
}

func TestASignOutHasTheIDTokenOfTheSession(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		p.Identity(f.NewMember("ada").ID, "ada")
		bob, app, _ := f.Protected("bob")
		p.Identity(bob.ID, "bob")
		f.Clock.Advance(time.Minute)
		for name, signIn := range map[string]func() signin.SignIn{
			"cookie": func() signin.SignIn {
				person(p, "ada", nil)
				done, err := signInWith(p, signin.ConnectionStart{})
				f.OK(err)
				return done
			},
			"second factor": func() signin.SignIn {
				person(p, "bob", nil)
				done, err := signInWith(p, signin.ConnectionStart{})
				f.OK(err)
				in, err := f.SignIn.CompleteSignIn(t.Context(), f.Attempt(), secret.Token(done.Challenge.Token), signin.Proof{Code: app.Next()})
				f.OK(err)
				return in
			},
			"header": func() signin.SignIn {
				person(p, "ada", nil)
				in, err := f.SignIn.ExchangeCode(t.Context(), forHeader(f.Attempt()), codeFor(p), verifier)
				f.OK(err)
				return in
			},
		} {
			in := signIn()
			if sealed := storedIDToken(f, in.Principal.Session.ID); sealed == "" || strings.Contains(sealed, ".") {
				t.Errorf("%s: the stored ID token is %q", name, sealed)
			}
			if hint(p, in.Token) == "" {
				t.Errorf("%s: the URL has no ID token", name)
			}
		}
		withPassword, err := f.SignIn.Login(t.Context(), f.Attempt(), nodetest.Address("ada"), nodetest.Password)
		if f.OK(err); storedIDToken(f, withPassword.Principal.Session.ID) != "" {
			t.Error("a session of a password has an ID token")
		}
	})
}

func TestASignOutWithoutAUsableIDTokenHasNone(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		p.Identity(f.NewMember("ada").ID, "ada")
		person(p, "ada", nil)
		signIn := func() (token secret.Token, session rolecall.SessionID) {
			t.Helper()
			done, err := signInWith(p, signin.ConnectionStart{})
			f.OK(err)
			return done.Token, done.Principal.Session.ID
		}
		without := func(what string, token secret.Token) {
			t.Helper()
			if hint(p, token) != "" {
				t.Errorf("%s: the URL has an ID token", what)
			}
		}

		replaced, _ := signIn()
		next, err := f.SignIn.Refresh(t.Context(), f.Attempt(replaced))
		f.OK(err)
		f.OK(nodetest.ErrorOf(f.SignIn.Authenticate(t.Context(), f.Tenant, []secret.Token{next.Token}, false))) // retires the first one
		f.Clock.Advance(f.Tenant.Settings.Grace())
		without("a token that was replaced", replaced)

		expired, _ := signIn()
		f.Clock.Advance(f.Tenant.Settings.AbsoluteLifetime())
		without("a session that has expired", expired)
		for _, tokens := range [][]secret.Token{{expired, ""}, {"", expired}} {
			live, _ := signIn()
			i := slices.Index(tokens, "")
			if tokens[i] = live; hint(p, tokens...) == "" {
				t.Errorf("of a live session, the URL has no ID token: it is token %d", i)
			}
		}

		person(p, "ada", map[string]any{"groups": strings.Repeat("g", 1000)})
		long, session := signIn()
		if storedIDToken(f, session) != "" {
			t.Error("an ID token that is too long is stored")
		}
		without("an ID token that is too long", long)

		person(p, "ada", nil)
		of, _ := signIn()
		changed := p.Connection
		changed.ClientID, changed.Version = "another client", p.Connection.Version+1
		f.OK(f.Store.Update(t.Context(), f.Tenant.ID, func(tx *store.Tx) error { return nodetest.ErrorOf(tx.UpdateConnection(p.Connection, changed)) }))
		without("an ID token of another client", of)
		back := p.Connection
		back.Version = changed.Version + 1
		f.OK(f.Store.Update(t.Context(), f.Tenant.ID, func(tx *store.Tx) error { return nodetest.ErrorOf(tx.UpdateConnection(changed, back)) }))

		sealed, _ := signIn()
		options := f.Options()
		options.Keys, options.OIDC = secret.NewKeys(secret.NewKey()), f.Access.OIDC // as after the instance key was removed
		f.Node = node.New(f.DB, options)
		without("an ID token that cannot be decrypted", sealed)
	})
}

func TestASignInEncryptsTheClientSecretWithTheCurrentKey(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		p.Identity(f.NewMember("ada").ID, "ada")
		person(p, "ada", nil)
		old, current := secret.NewKey(), secret.NewKey()
		stored := func() rolecall.Connection {
			var c rolecall.Connection
			f.OK(f.Store.View(t.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
				c, err = tx.Connection(p.Connection.ID)
				return err
			}))
			return c
		}
		use := func(keys ...[]byte) {
			options := f.Options()
			options.Keys, options.OIDC = secret.NewKeys(keys[0], keys[1:]...), f.Access.OIDC
			f.Node = node.New(f.DB, options)
		}
		use(old)
		before := stored()
		f.OK(f.Store.Update(t.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.RenewConnectionSecret(p.Connection.ID, before.Secret, f.SignIn.SealConnectionSecret(f.Tenant.ID, p.Connection.ID, oidctest.ClientSecret))
			return nil
		}))
		use(current, old)
		f.OK(nodetest.ErrorOf(signInWith(p, signin.ConnectionStart{})))
		use(current)
		f.OK(nodetest.ErrorOf(signInWith(p, signin.ConnectionStart{})))
		if version := stored().Version; version != before.Version {
			t.Errorf("the version is %d, not %d", version, before.Version)
		}
	})
}

func TestNoIDTokenIsKeptForAProviderThatEndsNoSessions(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		p.Identity(f.NewMember("ada").ID, "ada")
		person(p, "ada", nil)
		p.Provider.Set(func(s *oidctest.Settings) {
			s.Metadata = func(metadata map[string]any) { delete(metadata, "end_session_endpoint") }
		})
		done, err := signInWith(p, signin.ConnectionStart{})
		if f.OK(err); storedIDToken(f, done.Principal.Session.ID) != "" {
			t.Error("the ID token is stored")
		}
	})
}

func TestASignOutNeedsNoClientSecret(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		p := provideFor(f, ada.ID)
		done, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		withoutKey := p.Connection // as after its instance key was removed
		withoutKey.Secret, withoutKey.Version = []byte(secret.NewKeys(secret.NewKey()).Seal("connection", []byte(oidctest.ClientSecret), nil)), p.Connection.Version+1
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error { return nodetest.ErrorOf(tx.UpdateConnection(p.Connection, withoutKey)) }))
		_, err = f.SignIn.ConnectionSecret(f.Tenant.ID, &withoutKey)
		f.Is(err, secret.ErrSealed)
		address, err := f.SignIn.LogoutAtProvider(f.Context(), f.Attempt(done.Token), returnTo, noOp)
		if f.OK(err); !strings.HasPrefix(address, p.Provider.Issuer+oidctest.PathEndSession+"?") {
			f.Errorf("the URL is %q", address)
		}
		f.Is(nodetest.ErrorOf(f.SignIn.Authenticate(f.Context(), f.Tenant, []secret.Token{done.Token}, false)), rolecall.ErrUnauthenticated)
	})
}

package node_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// storedIDToken returns the encrypted ID token of the session, or "".
func (f *fixture) storedIDToken(id rolecall.SessionID) (sealed string) {
	f.Helper()
	err := f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
		sealed, err = tx.IDToken(id)
		return err
	})
	if !errors.Is(err, rolecall.ErrNotFound) {
		f.ok(err)
	}
	return sealed
}

// hint signs out, and returns the ID token in the URL of the provider.
func (p *provided) hint(tokens ...secret.Token) string {
	p.Helper()
	address, err := p.SignIn.LogoutAtProvider(p.Context(), p.attempt(tokens...), returnTo, noOp)
	p.ok(err)
	u, err := url.Parse(address)
	if p.ok(err); u.Path != oidctest.PathEndSession || u.Query().Get("post_logout_redirect_uri") != returnTo {
		p.Errorf("the URL is %q", address)
	}
	hint := u.Query().Get("id_token_hint")
	if hint != "" {
		p.provider.Authorize(p, address) // accepts only its last ID token
	}
	return hint
}

func TestASignOutHasTheIDTokenOfTheSession(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		p.identity(f.member("ada").ID, "ada")
		bob, app, _ := f.protected("bob")
		p.identity(bob.ID, "bob")
		f.clock.advance(time.Minute)
		for name, signIn := range map[string]func() signin.SignIn{
			"cookie": func() signin.SignIn {
				p.person("ada", nil)
				done, err := p.signInWith(signin.ConnectionStart{})
				f.ok(err)
				return done
			},
			"second factor": func() signin.SignIn {
				p.person("bob", nil)
				done, err := p.signInWith(signin.ConnectionStart{})
				f.ok(err)
				in, err := f.SignIn.CompleteSignIn(t.Context(), f.attempt(), secret.Token(done.Challenge.Token), signin.Proof{Code: app.next()})
				f.ok(err)
				return in
			},
			"header": func() signin.SignIn {
				p.person("ada", nil)
				in, err := f.SignIn.ExchangeCode(t.Context(), forHeader(f.attempt()), p.codeFor(), verifier)
				f.ok(err)
				return in
			},
		} {
			in := signIn()
			if sealed := f.storedIDToken(in.Principal.Session.ID); sealed == "" || strings.Contains(sealed, ".") {
				t.Errorf("%s: the stored ID token is %q", name, sealed)
			}
			if p.hint(in.Token) == "" {
				t.Errorf("%s: the URL has no ID token", name)
			}
		}
		withPassword, err := f.SignIn.Login(t.Context(), f.attempt(), address("ada"), password)
		if f.ok(err); f.storedIDToken(withPassword.Principal.Session.ID) != "" {
			t.Error("a session of a password has an ID token")
		}
	})
}

func TestASignOutWithoutAUsableIDTokenHasNone(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		p.identity(f.member("ada").ID, "ada")
		p.person("ada", nil)
		signIn := func() (token secret.Token, session rolecall.SessionID) {
			t.Helper()
			done, err := p.signInWith(signin.ConnectionStart{})
			f.ok(err)
			return done.Token, done.Principal.Session.ID
		}
		without := func(what string, token secret.Token) {
			t.Helper()
			if p.hint(token) != "" {
				t.Errorf("%s: the URL has an ID token", what)
			}
		}

		replaced, _ := signIn()
		next, err := f.SignIn.Refresh(t.Context(), f.attempt(replaced))
		f.ok(err)
		f.ok(errorOf(f.SignIn.Authenticate(t.Context(), f.tenant, []secret.Token{next.Token}, false))) // retires the first one
		f.clock.advance(f.tenant.Settings.Grace())
		without("a token that was replaced", replaced)

		expired, _ := signIn()
		f.clock.advance(f.tenant.Settings.AbsoluteLifetime())
		without("a session that has expired", expired)
		for _, tokens := range [][]secret.Token{{expired, ""}, {"", expired}} {
			live, _ := signIn()
			i := slices.Index(tokens, "")
			if tokens[i] = live; p.hint(tokens...) == "" {
				t.Errorf("of a live session, the URL has no ID token: it is token %d", i)
			}
		}

		p.person("ada", map[string]any{"groups": strings.Repeat("g", 1000)})
		long, session := signIn()
		if f.storedIDToken(session) != "" {
			t.Error("an ID token that is too long is stored")
		}
		without("an ID token that is too long", long)

		p.person("ada", nil)
		of, _ := signIn()
		changed := p.connection
		changed.ClientID, changed.Version = "another client", p.connection.Version+1
		f.ok(f.store.Update(t.Context(), f.tenant.ID, func(tx *store.Tx) error { return errorOf(tx.UpdateConnection(p.connection, changed)) }))
		without("an ID token of another client", of)
		back := p.connection
		back.Version = changed.Version + 1
		f.ok(f.store.Update(t.Context(), f.tenant.ID, func(tx *store.Tx) error { return errorOf(tx.UpdateConnection(changed, back)) }))

		sealed, _ := signIn()
		options := f.options()
		options.Keys, options.OIDC = secret.NewKeys(secret.NewKey()), f.Access.OIDC // as after the instance key was removed
		f.Node = node.New(f.db, options)
		without("an ID token that cannot be decrypted", sealed)
	})
}

func TestASignInEncryptsTheClientSecretWithTheCurrentKey(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		p.identity(f.member("ada").ID, "ada")
		p.person("ada", nil)
		old, current := secret.NewKey(), secret.NewKey()
		stored := func() rolecall.Connection {
			var c rolecall.Connection
			f.ok(f.store.View(t.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
				c, err = tx.Connection(p.connection.ID)
				return err
			}))
			return c
		}
		use := func(keys ...[]byte) {
			options := f.options()
			options.Keys, options.OIDC = secret.NewKeys(keys[0], keys[1:]...), f.Access.OIDC
			f.Node = node.New(f.db, options)
		}
		use(old)
		before := stored()
		f.ok(f.store.Update(t.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.RenewConnectionSecret(p.connection.ID, before.Secret, f.SignIn.SealConnectionSecret(f.tenant.ID, p.connection.ID, oidctest.ClientSecret))
			return nil
		}))
		use(current, old)
		f.ok(errorOf(p.signInWith(signin.ConnectionStart{})))
		use(current)
		f.ok(errorOf(p.signInWith(signin.ConnectionStart{})))
		if version := stored().Version; version != before.Version {
			t.Errorf("the version is %d, not %d", version, before.Version)
		}
	})
}

func TestNoIDTokenIsKeptForAProviderThatEndsNoSessions(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		p.identity(f.member("ada").ID, "ada")
		p.person("ada", nil)
		p.provider.Set(func(s *oidctest.Settings) {
			s.Metadata = func(metadata map[string]any) { delete(metadata, "end_session_endpoint") }
		})
		done, err := p.signInWith(signin.ConnectionStart{})
		if f.ok(err); f.storedIDToken(done.Principal.Session.ID) != "" {
			t.Error("the ID token is stored")
		}
	})
}

func TestASignOutNeedsNoClientSecret(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		p := provideFor(f, ada.ID)
		done, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		withoutKey := p.connection // as after its instance key was removed
		withoutKey.Secret, withoutKey.Version = []byte(secret.NewKeys(secret.NewKey()).Seal("connection", []byte(oidctest.ClientSecret), nil)), p.connection.Version+1
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error { return errorOf(tx.UpdateConnection(p.connection, withoutKey)) }))
		_, err = f.SignIn.ConnectionSecret(f.tenant.ID, &withoutKey)
		f.is(err, secret.ErrSealed)
		address, err := f.SignIn.LogoutAtProvider(f.Context(), f.attempt(done.Token), returnTo, noOp)
		if f.ok(err); !strings.HasPrefix(address, p.provider.Issuer+oidctest.PathEndSession+"?") {
			f.Errorf("the URL is %q", address)
		}
		f.is(errorOf(f.SignIn.Authenticate(f.Context(), f.tenant, []secret.Token{done.Token}, false)), rolecall.ErrUnauthenticated)
	})
}

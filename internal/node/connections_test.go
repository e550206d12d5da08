package node_test

import (
	"encoding/base64"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	returnTo = "https://app.example.com/signed-in"
	verifier = "a-verifier-of-the-application-with-43-letters"
)

// provided is a fixture with an identity provider and a connection to it.
type provided struct {
	*fixture
	provider   *oidctest.Provider
	connection rolecall.Connection
}

// provide starts a provider and stores a connection, after the change.
func provide(f *fixture, change func(*rolecall.Connection)) *provided {
	f.Helper()
	p := &provided{fixture: f, provider: oidctest.Start(f)}
	p.provider.SetClock(func() time.Time { return f.clock.Now().Std() })
	options := f.options()
	options.OIDC = oidc.New(oidc.Options{
		Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: p.provider.Roots(), Now: func() time.Time { return f.clock.Now().Std() },
	})
	f.Node = node.New(f.db, options)
	now := f.clock.Now()
	p.connection = rolecall.Connection{
		ID: rolecall.NewID[rolecall.Connection](now), Name: "Acme SSO", Issuer: p.provider.Issuer, ClientID: oidctest.ClientID, Domains: []string{},
		Linking: rolecall.LinkInvited, SecondFactor: rolecall.FactorRequire, ACRValues: []string{}, AMRValues: []string{},
		CreatedAt: now, UpdatedAt: now, Version: 1, ProvisionedBy: f.owner.User.ID,
	}
	p.connection.Secret = []byte(f.keys.Seal("connection", []byte(oidctest.ClientSecret), append(f.tenant.ID[:], p.connection.ID[:]...)))
	if change != nil {
		change(&p.connection)
	}
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		tx.InsertConnection(p.connection)
		return nil
	}))
	return p
}

// provideFor starts a provider at which the user has an identity, and signs in.
func provideFor(f *fixture, user rolecall.UserID) *provided {
	f.Helper()
	p := provide(f, func(c *rolecall.Connection) { c.Name = "Connection of " + user.String() })
	p.identity(user, "subject")
	p.person("subject", nil)
	return p
}

// person sets the person who signs in at the provider.
func (p *provided) person(subject string, claims map[string]any) {
	p.provider.Set(func(s *oidctest.Settings) { s.Person = oidctest.Person{Subject: subject, Claims: claims} })
}

// verified are the claims of a person with a verified address.
func verified(email string) map[string]any {
	return map[string]any{"email": email, "email_verified": true, "name": "Ada Lovelace"}
}

func noOp() {}

func nothingFailed() error { return nil }

// begin begins an attempt, and returns its cookie and the query with which the provider sends the browser back.
func (p *provided) begin(a access.Anonymous, start signin.ConnectionStart) (cookie string, query url.Values) {
	p.Helper()
	start.Connection, start.ReturnTo = p.connection.ID, returnTo
	if start.Purpose == "" {
		start.Purpose = signin.PurposeSignIn
	}
	if start.Purpose == signin.PurposeSignIn {
		start.CodeChallenge = challengeOf(verifier)
	}
	ticket, err := p.SignIn.StartConnection(p.Context(), a, start, noOp)
	p.ok(err)
	begun, err := p.SignIn.BeginAttempt(p.Context(), p.attempt(), ticket, origin, noOp)
	p.ok(err)
	return begun.Cookie, p.provider.Authorize(p, begun.URL).Query()
}

// complete completes an attempt in a browser with the cookie, and returns the code.
func (p *provided) complete(a access.Anonymous, cookie string, query url.Values) (secret.Token, error) {
	p.Helper()
	attempt, err := p.SignIn.OpenAttempt(cookie, query.Get("state"), p.connection.ID)
	if err != nil {
		return "", err
	}
	return p.SignIn.CompleteAttempt(p.Context(), a, attempt, origin, query, noOp, nothingFailed)
}

// signInWith signs the person in for a session in a cookie.
func (p *provided) signInWith(start signin.ConnectionStart) (signin.SignIn, error) {
	p.Helper()
	cookie, query := p.begin(p.attempt(), start)
	code, err := p.complete(p.attempt(), cookie, query)
	if err != nil {
		return signin.SignIn{}, err
	}
	return p.SignIn.ExchangeCode(p.Context(), p.attempt(), code, verifier)
}

// forHeader returns the attempt for a session in the Authorization header.
func forHeader(a access.Anonymous) access.Anonymous {
	a.ForHeader = true
	return a
}

// codeFor returns the code of a sign-in.
func (p *provided) codeFor() secret.Token {
	p.Helper()
	cookie, query := p.begin(p.attempt(), signin.ConnectionStart{})
	code, err := p.complete(p.attempt(), cookie, query)
	p.ok(err)
	return code
}

func challengeOf(verifier string) string {
	return base64.RawURLEncoding.EncodeToString(secret.Token(verifier).Hash())
}

// refused fails the test unless the error is a refusal with the code, and the reason is in an event.
func (p *provided) refused(err error, code, reason string) {
	p.Helper()
	refusal, ok := errors.AsType[*signin.Refusal](err)
	if !ok || refusal.Code != code {
		p.Errorf("the error is %v, not a refusal %s", err, code)
		return
	}
	p.ok(p.Access.Refusals.Flush(p.Context()))
	var events rolecall.Page[rolecall.Event]
	p.ok(p.store.View(p.Context(), p.tenant.ID, func(tx *store.Tx) (err error) {
		events, err = tx.Events(rolecall.EventQuery{Type: rolecall.EventSignInFailed, Limit: 100})
		return err
	}))
	want := "connection " + p.connection.ID.String() + ": " + reason
	if !slices.ContainsFunc(events.Items, func(e rolecall.Event) bool { return strings.HasPrefix(e.Reason, want) }) {
		p.Errorf("no event has the reason %q: %v", want, events.Items)
	}
}

// identity links a new identity to the user.
func (p *provided) identity(user rolecall.UserID, subject string) rolecall.Identity {
	p.Helper()
	identity := rolecall.Identity{
		ID: rolecall.NewID[rolecall.Identity](p.clock.Now()), UserID: user, ConnectionID: p.connection.ID,
		Issuer: p.connection.Issuer, Subject: subject, CreatedAt: p.clock.Now(),
	}
	p.ok(p.store.Update(p.Context(), p.tenant.ID, func(tx *store.Tx) error {
		tx.InsertIdentity(identity)
		return nil
	}))
	return identity
}

func TestAnIdentitySignsItsUserIn(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		ada := f.member("ada")
		p.identity(ada.ID, "subject-1")
		p.person("subject-1", verified("someone.else@example.com"))
		done, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		if done.Principal == nil || done.Principal.User.ID != ada.ID || done.Principal.Session.Connection != p.connection.ID || done.Device == "" {
			t.Fatalf("%+v", done)
		}
		if done.Principal.User.Email != address("ada") {
			t.Errorf("the address became %s", done.Principal.User.Email)
		}
		f.ok(f.store.View(t.Context(), f.tenant.ID, func(tx *store.Tx) error {
			identity, err := tx.Identity(p.connection.Issuer, "subject-1")
			if identity.Email != "someone.else@example.com" || identity.LastUsedAt != f.clock.Now() {
				t.Errorf("the identity is %+v", identity)
			}
			return err
		}))
		f.ok(errorOf(f.Directory.SuspendUser(t.Context(), f.owner, ada.ID, "")))
		_, err = p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeRefused, "the user is suspended")
		p.person("subject-2", verified(address("ada")))
		_, err = p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeRefused, "the user is suspended")
	})
}

func TestAnIdentityIsLinkedToAnInvitedUser(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		ada := f.user("ada")
		p.person("ada-1", verified(address("ada")))
		_, err := p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeIdentityUnknown, "the user with the address has no invitation")
		token := f.invite(ada.ID)
		for name, claims := range map[string]map[string]any{
			"absent":          {"email": address("ada")},
			"string":          {"email": address("ada"), "email_verified": "true"},
			"false":           {"email": address("ada"), "email_verified": false},
			"number":          {"email": address("ada"), "email_verified": 1},
			"another address": verified("other@example.com"),
			"no address":      {"email_verified": true},
		} {
			p.person("ada-1", claims)
			_, err := p.signInWith(signin.ConnectionStart{})
			if refusal, ok := errors.AsType[*signin.Refusal](err); !ok || refusal.Code != signin.CodeIdentityUnknown {
				t.Errorf("email_verified %s: %v", name, err)
			}
		}
		p.person("ada-1", verified(strings.ToUpper(address("ada"))))
		done, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		if done.Principal.User.ID != ada.ID || done.Principal.User.Status != rolecall.UserActive {
			t.Errorf("who is signed in is %+v", done.Principal.User)
		}
		f.is(errorOf(f.accept(token, password)), rolecall.ErrInvitationInvalid)
		want := []rolecall.EventType{rolecall.EventSignedIn, rolecall.EventIdentityLinked, rolecall.EventInvitationUsed, rolecall.EventUserInvited, rolecall.EventSignInFailed, rolecall.EventUserCreated}
		if got := f.eventTypes(ada.ID); !slices.Equal(got, want) {
			t.Errorf("the events are %v", got)
		}
		f.clock.advance(time.Hour)
		p.person("ada-1", map[string]any{}) // the identity needs no address
		done, err = p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		if done.Principal.User.ID != ada.ID {
			t.Errorf("who is signed in is %+v", done.Principal.User)
		}
	})
}

func TestAnInvitationLinkNeedsItsAddressButNotVerified(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		ada := f.user("ada")
		token := f.invite(ada.ID)
		p.person("mallory", map[string]any{"email": "mallory@example.com"})
		_, err := p.signInWith(signin.ConnectionStart{Invitation: token})
		p.refused(err, signin.CodeIdentityUnknown, "the invitation is for another address")
		p.person("ada-1", map[string]any{"email": address("ada")})
		_, err = p.signInWith(signin.ConnectionStart{Invitation: secret.NewToken()})
		p.refused(err, signin.CodeIdentityUnknown, "the invitation is not valid")
		done, err := p.signInWith(signin.ConnectionStart{Invitation: token})
		f.ok(err)
		if done.Principal.User.ID != ada.ID {
			t.Errorf("who is signed in is %+v", done.Principal.User)
		}
		p.person("ada-2", map[string]any{"email": address("ada")})
		_, err = p.signInWith(signin.ConnectionStart{Invitation: token})
		p.refused(err, signin.CodeIdentityUnknown, "the invitation is not valid")
	})
}

func TestAVerifiedAddressLinksUsersExceptOwners(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, func(c *rolecall.Connection) { c.Linking = rolecall.LinkVerifiedEmail })
		ada, bob := f.member("ada"), f.user("bob")
		p.person("ada-1", map[string]any{"email": address("ada"), "email_verified": "true"})
		_, err := p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeIdentityUnknown, "no user has the identity")
		p.person("ada-1", verified(address("ada")))
		f.expectMailed(func() {
			done, err := p.signInWith(signin.ConnectionStart{})
			f.ok(err)
			if done.Principal.User.ID != ada.ID {
				t.Errorf("who is signed in is %+v", done.Principal.User)
			}
		}, "credentials-changed ada")
		p.person("bob-1", verified(address("bob")))
		done, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		if done.Principal.User.ID != bob.ID || done.Principal.User.Status != rolecall.UserActive {
			t.Errorf("who is signed in is %+v", done.Principal.User)
		}
		p.person("owner-1", verified(address("owner")))
		_, err = p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeIdentityUnknown, "the user with the address is an owner")
		carol := f.member("carol") // a limited owner is an owner too
		until := f.clock.Now().Add(time.Hour)
		f.assign(carol.ID, f.ownerRole(), rolecall.AssignmentDraft{ExpiresAt: &until})
		p.person("carol-1", verified(address("carol")))
		_, err = p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeIdentityUnknown, "the user with the address is an owner")
	})
}

func TestAProviderStatesAddressesOfItsDomainsOnly(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, func(c *rolecall.Connection) {
			c.Linking, c.Domains, c.Provisioning = rolecall.LinkVerifiedEmail, []string{"acme.example"}, &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{}}
		})
		f.member("ada")
		p.person("ada-1", verified(address("ada"))) // in example.com
		_, err := p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeIdentityUnknown, "the address is in no domain of the connection")
		unverified := func(subject string) {
			for _, verified := range []any{false, "true", 1, nil} {
				p.person(subject, map[string]any{"email": "bob@acme.example", "email_verified": verified})
				_, err = p.signInWith(signin.ConnectionStart{})
				p.refused(err, signin.CodeIdentityUnknown, "the provider has not verified the address")
			}
		}
		unverified("bob-1")
		p.person("bob-1", map[string]any{"email": "bob@acme.example"})
		done, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		bob := done.Principal.User
		if bob.Email != "bob@acme.example" || bob.Name != "bob@acme.example" {
			t.Errorf("the new user is %+v", bob)
		}
		unverified("bob-2")
		p.person("bob-2", map[string]any{"email": "bob@acme.example"})
		if done, err = p.signInWith(signin.ConnectionStart{}); err != nil || done.Principal.User.ID != bob.ID {
			t.Errorf("the linked user is %+v (error %v)", done.Principal, err)
		}
	})
}

func TestASignInCreatesAUserUnderTheCeiling(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		maker := f.member("maker")
		f.assign(maker.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		role := f.role("Clerk", "users:read")
		department := "Sales"
		p := provide(f, func(c *rolecall.Connection) {
			c.Provisioning, c.ProvisionedBy = &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{role.ID}, Department: &department}, maker.ID
		})
		p.person("new-1", map[string]any{"email": "new@example.com", "name": "Nora New"})
		_, err := p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeIdentityUnknown, "the provider has not verified the address")
		p.person("new-1", verified("new@example.com"))
		done, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		user := done.Principal.User
		if user.Email != "new@example.com" || user.Status != rolecall.UserActive || *user.Department != department || len(done.Principal.Assignments) != 1 || done.Principal.Assignments[0].Role.ID != role.ID {
			t.Errorf("the new user is %+v with %v", user, done.Principal.Assignments)
		}
		want := []rolecall.EventType{rolecall.EventSignedIn, rolecall.EventIdentityLinked, rolecall.EventRoleAssigned, rolecall.EventUserCreated}
		if got := f.eventTypes(user.ID); !slices.Equal(got, want) {
			t.Errorf("the events are %v", got)
		}
		p.person("squatter", map[string]any{"email": "new@example.com"})
		_, err = p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeIdentityUnknown, "the provider has not verified the address")
		p.person("nobody", map[string]any{"email": "not an address", "email_verified": true})
		_, err = p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeRefused, "the provider states no valid address")

		p.person("late-1", verified("late@example.com"))
		f.ok(f.Directory.UnassignRole(t.Context(), f.owner, rolecall.HolderOf(maker.ID), f.ownerRole()))
		_, err = p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeRefused, "the person who set the provisioning can no longer create users")
		f.assign(maker.ID, f.role("Creator", "users:create").ID, rolecall.AssignmentDraft{})
		_, err = p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeRefused, "the person who set the provisioning can no longer assign its roles")
		f.ok(errorOf(f.Directory.SuspendUser(t.Context(), f.owner, maker.ID, "")))
		_, err = p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeRefused, "the person who set the provisioning is suspended or deleted")
		f.is(errorOf(f.SignIn.Login(t.Context(), f.attempt(), "late@example.com", password)), rolecall.ErrWrongCredentials)
	})
}

func TestAnAttemptWorksOnceAndOnlyWithItsCookie(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		p.identity(f.member("ada").ID, "ada-1")
		p.person("ada-1", nil)
		cookie, query := p.begin(f.attempt(), signin.ConnectionStart{})
		other, swapped := p.begin(f.attempt(), signin.ConnectionStart{}) // a second tab
		f.is(errorOf(p.complete(f.attempt(), cookie, swapped)), rolecall.ErrAttemptInvalid)
		f.is(errorOf(p.complete(f.attempt(), other, query)), rolecall.ErrAttemptInvalid)
		f.is(errorOf(p.complete(f.attempt(), "", query)), rolecall.ErrAttemptInvalid)
		forged := url.Values{"state": {query.Get("state")[:37] + string(secret.NewToken())}, "code": query["code"], "iss": query["iss"]}
		f.is(errorOf(p.complete(f.attempt(), cookie, forged)), rolecall.ErrAttemptInvalid)
		f.ok(errorOf(p.complete(f.attempt(), cookie, query)))
		f.is(errorOf(p.complete(f.attempt(), cookie, query)), rolecall.ErrAttemptInvalid)
		f.ok(errorOf(p.complete(f.attempt(), other, swapped)))

		cookie, query = p.begin(f.attempt(), signin.ConnectionStart{})
		query.Set("error", "access_denied")
		query.Del("code")
		_, err := p.complete(f.attempt(), cookie, query)
		p.refused(err, signin.CodeRefused, oidc.ReasonDenied)
		f.is(errorOf(p.complete(f.attempt(), cookie, query)), rolecall.ErrAttemptInvalid) // also used up by a refusal

		cookie, query = p.begin(f.attempt(), signin.ConnectionStart{})
		f.clock.advance(signin.AttemptLifetime)
		f.is(errorOf(p.complete(f.attempt(), cookie, query)), rolecall.ErrAttemptInvalid)
	})
}

func TestACodeIsExchangedOnceWithItsVerifier(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		ada := f.member("ada")
		p.identity(ada.ID, "ada-1")
		p.person("ada-1", nil)
		exchange := func(code secret.Token, verifier string) error {
			return errorOf(f.SignIn.ExchangeCode(t.Context(), forHeader(f.attempt()), code, verifier))
		}
		code := p.codeFor()
		in, err := f.SignIn.ExchangeCode(t.Context(), forHeader(f.attempt()), code, verifier)
		f.ok(err)
		if !in.Token.IsForHeader() || in.Principal.User.ID != ada.ID || in.Principal.Session.Connection != p.connection.ID {
			t.Errorf("%+v", in)
		}
		f.is(exchange(code, verifier), rolecall.ErrCodeInvalid)
		code = p.codeFor()
		f.is(exchange(code, "another "+verifier), rolecall.ErrCodeInvalid)
		f.is(exchange(code, verifier), rolecall.ErrCodeInvalid) // the wrong verifier has used it up
		code = p.codeFor()
		there := forHeader(f.attempt())
		there.Tenant = f.newTenant("other")
		f.is(errorOf(f.SignIn.ExchangeCode(t.Context(), there, code, verifier)), rolecall.ErrCodeInvalid)
		f.clock.advance(time.Minute)
		f.is(exchange(code, verifier), rolecall.ErrCodeInvalid)
		code = p.codeFor()
		f.ok(errorOf(f.Directory.SuspendUser(t.Context(), f.owner, ada.ID, "")))
		if err := exchange(code, verifier); err == nil {
			t.Error("the user is suspended")
		}
		code = p.codeAfter(func() { f.ok(errorOf(f.Directory.ResumeUser(t.Context(), f.owner, ada.ID, ""))) })
		counts := f.inParallel(5, func(int) error { return exchange(code, verifier) })
		if counts[nil] != 1 {
			t.Errorf("the outcomes are %v", counts)
		}
	})
}

// The URL of an attempt can come from another person. So the browser that completes the attempt gets no session, keeps
// the one that it has, and cannot use the code.
func TestACodeStartsASessionOnlyWhereTheSignInBegan(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		ada := f.member("ada")
		f.member("bob")
		bob := f.signIn("bob")
		p.identity(ada.ID, "ada-1")
		p.person("ada-1", nil)
		for name, a := range map[string]access.Anonymous{"cookie": f.attempt(), "header": forHeader(f.attempt())} {
			cookie, query := p.begin(a, signin.ConnectionStart{})
			code, err := p.complete(f.attempt(bob.Token), cookie, query)
			f.ok(err)
			in, err := f.SignIn.ExchangeCode(t.Context(), a, code, verifier)
			f.ok(err)
			if in.Token.IsForHeader() != a.ForHeader || in.Principal.User.ID != ada.ID {
				t.Errorf("%s: %+v", name, in)
			}
		}
		f.is(errorOf(f.SignIn.ExchangeCode(t.Context(), f.attempt(bob.Token), p.codeFor(), string(secret.NewToken()))), rolecall.ErrCodeInvalid)
		f.ok(errorOf(f.authenticate(f.Node, bob.Token)))
	})
}

func (p *provided) codeAfter(fn func()) secret.Token {
	p.Helper()
	fn()
	return p.codeFor()
}

func TestATrustedProviderProvesTheSecondFactor(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, func(c *rolecall.Connection) {
			c.SecondFactor, c.ACRValues, c.AMRValues = rolecall.FactorTrust, []string{"urn:mfa"}, []string{"mfa"}
		})
		ada, app, _ := f.protected("ada")
		p.identity(ada.ID, "ada-1")
		for name, claims := range map[string]map[string]any{"none": nil, "another acr": {"acr": "urn:password"}, "another amr": {"amr": []string{"pwd"}}} {
			p.person("ada-1", claims)
			done, err := p.signInWith(signin.ConnectionStart{})
			f.ok(err)
			if done.Challenge == nil || done.Principal != nil {
				t.Errorf("%s: %+v", name, done)
			}
		}
		p.person("ada-1", nil)
		done, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		f.clock.advance(time.Minute)
		in, err := f.SignIn.CompleteSignIn(t.Context(), f.attempt(), secret.Token(done.Challenge.Token), signin.Proof{Code: app.next()})
		f.ok(err)
		if in.Principal.Session.Connection != p.connection.ID || !in.Principal.Session.SecondFactor {
			t.Errorf("the session is %+v", in.Principal.Session)
		}
		for name, claims := range map[string]map[string]any{"acr": {"acr": "urn:mfa"}, "amr": {"amr": []string{"pwd", "mfa"}}} {
			p.person("ada-1", claims)
			done, err := p.signInWith(signin.ConnectionStart{})
			f.ok(err)
			if done.Principal == nil || !done.Principal.Session.SecondFactor {
				t.Errorf("%s: %+v", name, done)
			}
		}
	})
}

func TestASlowProviderHoldsNoTransaction(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		p.identity(f.member("ada").ID, "ada-1")
		p.person("ada-1", nil)
		cookie, query := p.begin(f.attempt(), signin.ConnectionStart{})
		attempt, err := p.SignIn.OpenAttempt(cookie, query.Get("state"), p.connection.ID)
		f.ok(err)
		var steps []string
		_, err = p.SignIn.CompleteAttempt(t.Context(), f.attempt(), attempt, origin, query, func() {
			steps = append(steps, "leave")
			f.ok(errorOf(f.SignIn.Login(t.Context(), f.attempt(), address("ada"), password))) // a write while the provider answers
		}, func() error { steps = append(steps, "enter"); return nil })
		f.ok(err)
		if !slices.Equal(steps, []string{"leave", "enter"}) {
			t.Errorf("the steps are %v", steps)
		}
		p.provider.Stop()
		cookie, query = "", nil
		_, err = p.SignIn.StartConnection(t.Context(), f.attempt(), signin.ConnectionStart{Connection: rolecall.NewID[rolecall.Connection](1), Purpose: signin.PurposeSignIn}, noOp)
		f.is(err, rolecall.ErrNotFound)
	})
}

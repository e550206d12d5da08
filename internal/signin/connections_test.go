package signin_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

func TestASignInAddsNoIdentityAboveTheLimit(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, func(c *rolecall.Connection) { c.Linking = rolecall.LinkVerifiedEmail })
		ada := f.NewMember("ada")
		for i := range rolecall.IdentitiesMax {
			p.Identity(ada.ID, fmt.Sprint("ada-", i))
		}
		person(p, "one-more", verified(nodetest.Address("ada")))
		_, err := signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeIdentityUnknown, "the user has the maximum number of identities")
	})
}

func TestAProvisionedUserGetsNoMailOfTheirOwnIdentity(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, func(c *rolecall.Connection) { c.Provisioning = &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{}} })
		person(p, "new", verified(nodetest.Address("new")))
		f.ExpectMailed(func() { f.OK(nodetest.ErrorOf(signInWith(p, signin.ConnectionStart{}))) })
	})
}

func TestTestsOfAConnectionAreRecorded(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		newest := func() rolecall.Event {
			var events rolecall.Page[rolecall.Event]
			f.OK(f.Store.View(t.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
				events, err = tx.Events(rolecall.EventQuery{Subject: rolecall.AnyID(p.Connection.ID), Limit: 1})
				return err
			}))
			return events.Items[0]
		}
		m, err := f.SignIn.TestConnection(t.Context(), f.Owner, p.Connection.ID)
		f.OK(err)
		if e := newest(); !m.Passed() || m.Keys == 0 || e.Type != rolecall.EventConnectionTested || e.Reason != "passed" || e.Actor != f.Owner.Actor() {
			t.Errorf("%+v, and the event is %+v", m, e)
		}
		f.Clock.Advance(time.Second)
		p.Provider.Set(func(s *oidctest.Settings) {
			s.Metadata = func(m map[string]any) { m["issuer"] = "https://another.example" }
		})
		m, err = f.SignIn.TestConnection(t.Context(), f.Owner, p.Connection.ID)
		f.OK(err)
		if e := newest(); m.Passed() || len(m.Problems) != 1 || e.Reason != "failed" {
			t.Errorf("%+v, and the event is %+v", m, e)
		}
	})
}

func TestDeletingAConnectionWithIdentitiesNeedsForce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		ada := f.NewMember("ada")
		p.Identity(ada.ID, "ada")
		p.Identity(f.NewMember("bob").ID, "bob")
		person(p, "ada", nil)
		done, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		withPassword := f.LogIn("ada")
		remove := func(force bool) error {
			return f.SignIn.DeleteConnection(t.Context(), f.Owner, p.Connection.ID, force, nil)
		}
		f.Is(remove(false), rolecall.ErrConnectionInUse)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, done.Token)))
		cookie, query := begin(p, f.Attempt(), signin.ConnectionStart{})
		f.OK(remove(true))
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, done.Token)), rolecall.ErrUnauthenticated)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, withPassword.Token)))
		f.Is(remove(true), rolecall.ErrNotFound)
		_, err = complete(p, f.Attempt(), cookie, query)
		refused(p, err, signin.CodeRefused, "the connection was deleted")
		all, err := f.SignIn.Identities(t.Context(), f.Owner, ada.ID)
		f.OK(err)
		if len(all) != 0 {
			t.Errorf("the identities %v are left", all)
		}
		f.OK(f.Store.View(t.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			events, err := tx.Events(rolecall.EventQuery{Type: rolecall.EventConnectionDeleted, Limit: 1})
			f.OK(err)
			if after := string(events.Items[0].Values.After); !strings.Contains(after, `"identities":2`) || !strings.Contains(after, `"sessions":1`) {
				t.Errorf("the event has %s", after)
			}
			return nil
		}))
	})
}

func TestProvisioningIsCheckedWhenItIsSet(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.NewRole("Clerk", "users:read")
		p := nodetest.Provide(f, func(c *rolecall.Connection) {
			c.Provisioning = &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{role.ID}}
		})
		f.OK(f.Directory.DeleteRole(t.Context(), f.Owner, role.ID, true, nil))
		patch := func(patch rolecall.ConnectionPatch) error {
			return nodetest.ErrorOf(f.SignIn.UpdateConnection(t.Context(), f.Owner, p.Connection.ID, patch, nil))
		}
		f.OK(patch(rolecall.ConnectionPatch{Name: rolecall.Some("Renamed")})) // the deleted role does not matter
		f.Is(patch(rolecall.ConnectionPatch{Provisioning: rolecall.Some(&rolecall.Provisioning{RoleIDs: []rolecall.RoleID{role.ID}, Department: new("Sales")})}), rolecall.ErrValidation)
		f.OK(patch(rolecall.ConnectionPatch{Provisioning: rolecall.Some[*rolecall.Provisioning](nil)}))
	})
}

func TestAConnectionCompletesItsChallengeUnderPasswordsOfOwners(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		ada, app, _ := f.Protected("ada")
		p.Identity(ada.ID, "ada")
		person(p, "ada", nil)
		f.SetSettings(rolecall.TenantSettings{PasswordSignIn: rolecall.PasswordsOfOwners})
		done, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		if done.Challenge == nil {
			t.Fatalf("no second factor is required: %+v", done)
		}
		f.Clock.Advance(time.Minute)
		in, err := f.SignIn.CompleteSignIn(t.Context(), f.Attempt(), secret.Token(done.Challenge.Token), signin.Proof{Code: app.Next()})
		f.OK(err)
		if in.Principal.User.ID != ada.ID || in.Principal.Session.Connection != p.Connection.ID {
			t.Errorf("the session is %+v", in.Principal.Session)
		}
	})
}

// The connections of this test create no users, so only the rights of their author are checked. All callers have the
// permissions for connections.
func TestOnlyCallersWithAllPermissionsCreateConnections(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		everything := nodetest.Holding("*:*", "*/*:*")
		for what, c := range map[string]struct {
			holds []nodetest.Held
			want  error
		}{
			"only connections":         {nil, rolecall.ErrPermissionDenied},
			"only Rolecall":            {nodetest.Roles(nodetest.Holding("*:*")), rolecall.ErrPermissionDenied},
			"only applications":        {nodetest.Roles(nodetest.Holding("*/*:*")), rolecall.ErrPermissionDenied},
			"only granting everything": {nodetest.Roles(nodetest.Granting("*:*", "*/*:*")), rolecall.ErrPermissionDenied},
			"in a department":          {nodetest.Roles(everything.Within("Sales")), rolecall.ErrPermissionDenied},
			"until a time":             {nodetest.Roles(everything.To(nodetest.NextWeek)), rolecall.ErrPermissionDenied},
			"everything":               {nodetest.Roles(everything), nil},
		} {
			draft := rolecall.ConnectionDraft{Name: what, Issuer: "https://login.acme.example", ClientID: "rolecall", ClientSecret: "secret"}
			caller := f.CallerWith(append(c.holds, nodetest.Holding("connections:*"))...)
			created, err := f.SignIn.CreateConnection(f.Context(), caller, nodetest.NewKey(), draft)
			if !errors.Is(err, c.want) {
				f.Errorf("%s: %v, want %v", what, err, c.want)
			}
			if err == nil {
				f.OK(f.SignIn.DeleteConnection(f.Context(), f.Owner, created.Value.ID, false, nil))
			}
		}
	})
}

const (
	returnTo = "https://app.example.com/signed-in"
	verifier = "a-verifier-of-the-application-with-43-letters"
)

// provideFor starts a provider at which the user has an identity, and signs in.
func provideFor(f *nodetest.Fixture, user rolecall.UserID) *nodetest.Provided {
	f.Helper()
	p := nodetest.Provide(f, func(c *rolecall.Connection) { c.Name = "Connection of " + user.String() })
	p.Identity(user, "subject")
	person(p, "subject", nil)
	return p
}

// person sets the person who signs in at the provider.
func person(p *nodetest.Provided, subject string, claims map[string]any) {
	p.Provider.Set(func(s *oidctest.Settings) { s.Person = oidctest.Person{Subject: subject, Claims: claims} })
}

// verified are the claims of a person with a verified address.
func verified(email string) map[string]any {
	return map[string]any{"email": email, "email_verified": true, "name": "Ada Lovelace"}
}

func noOp() {}

func nothingFailed() error { return nil }

// begin begins an attempt, and returns its cookie and the query with which the provider sends the browser back.
func begin(p *nodetest.Provided, a access.Anonymous, start signin.ConnectionStart) (cookie string, query url.Values) {
	p.Helper()
	start.Connection, start.ReturnTo = p.Connection.ID, returnTo
	if start.Purpose == "" {
		start.Purpose = signin.PurposeSignIn
	}
	if start.Purpose == signin.PurposeSignIn {
		start.CodeChallenge = challengeOf(verifier)
	}
	ticket, err := p.SignIn.StartConnection(p.Context(), a, start, noOp)
	p.OK(err)
	begun, err := p.SignIn.BeginAttempt(p.Context(), p.Attempt(), ticket, nodetest.Origin, noOp)
	p.OK(err)
	return begun.Cookie, p.Provider.Authorize(p, begun.URL).Query()
}

// complete completes an attempt in a browser with the cookie, and returns the code.
func complete(p *nodetest.Provided, a access.Anonymous, cookie string, query url.Values) (secret.Token, error) {
	p.Helper()
	attempt, err := p.SignIn.OpenAttempt(cookie, query.Get("state"), p.Connection.ID)
	if err != nil {
		return "", err
	}
	return p.SignIn.CompleteAttempt(p.Context(), a, attempt, nodetest.Origin, query, noOp, nothingFailed)
}

// signInWith signs the person in for a session in a cookie.
func signInWith(p *nodetest.Provided, start signin.ConnectionStart) (signin.SignIn, error) {
	p.Helper()
	cookie, query := begin(p, p.Attempt(), start)
	code, err := complete(p, p.Attempt(), cookie, query)
	if err != nil {
		return signin.SignIn{}, err
	}
	return p.SignIn.ExchangeCode(p.Context(), p.Attempt(), code, verifier)
}

// forHeader returns the attempt for a session in the Authorization header.
func forHeader(a access.Anonymous) access.Anonymous {
	a.ForHeader = true
	return a
}

// codeFor returns the code of a sign-in.
func codeFor(p *nodetest.Provided) secret.Token {
	p.Helper()
	cookie, query := begin(p, p.Attempt(), signin.ConnectionStart{})
	code, err := complete(p, p.Attempt(), cookie, query)
	p.OK(err)
	return code
}

func challengeOf(verifier string) string {
	return base64.RawURLEncoding.EncodeToString(secret.Token(verifier).Hash())
}

// refused fails the test unless the error is a refusal with the code, and the reason is in an event.
func refused(p *nodetest.Provided, err error, code, reason string) {
	p.Helper()
	refusal, ok := errors.AsType[*signin.Refusal](err)
	if !ok || refusal.Code != code {
		p.Errorf("the error is %v, not a refusal %s", err, code)
		return
	}
	p.OK(p.Access.Refusals.Flush(p.Context()))
	var events rolecall.Page[rolecall.Event]
	p.OK(p.Store.View(p.Context(), p.Tenant.ID, func(tx *store.Tx) (err error) {
		events, err = tx.Events(rolecall.EventQuery{Type: rolecall.EventSignInFailed, Limit: 100})
		return err
	}))
	want := "connection " + p.Connection.ID.String() + ": " + reason
	if !slices.ContainsFunc(events.Items, func(e rolecall.Event) bool { return strings.HasPrefix(e.Reason, want) }) {
		p.Errorf("no event has the reason %q: %v", want, events.Items)
	}
}

func TestAnIdentitySignsItsUserIn(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		ada := f.NewMember("ada")
		p.Identity(ada.ID, "subject-1")
		person(p, "subject-1", verified("someone.else@example.com"))
		done, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		if done.Principal == nil || done.Principal.User.ID != ada.ID || done.Principal.Session.Connection != p.Connection.ID || done.Device == "" {
			t.Fatalf("%+v", done)
		}
		if done.Principal.User.Email != nodetest.Address("ada") {
			t.Errorf("the address became %s", done.Principal.User.Email)
		}
		f.OK(f.Store.View(t.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			identity, err := tx.Identity(p.Connection.Issuer, "subject-1")
			if identity.Email != "someone.else@example.com" || identity.LastUsedAt != f.Clock.Now() {
				t.Errorf("the identity is %+v", identity)
			}
			return err
		}))
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(t.Context(), f.Owner, ada.ID, "")))
		_, err = signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeRefused, "the user is suspended")
		person(p, "subject-2", verified(nodetest.Address("ada")))
		_, err = signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeRefused, "the user is suspended")
	})
}

func TestAnIdentityIsLinkedToAnInvitedUser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		ada := f.NewUser("ada")
		person(p, "ada-1", verified(nodetest.Address("ada")))
		_, err := signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeIdentityUnknown, "the user with the address has no invitation")
		token := f.Invite(ada.ID)
		for name, claims := range map[string]map[string]any{
			"absent":          {"email": nodetest.Address("ada")},
			"string":          {"email": nodetest.Address("ada"), "email_verified": "true"},
			"false":           {"email": nodetest.Address("ada"), "email_verified": false},
			"number":          {"email": nodetest.Address("ada"), "email_verified": 1},
			"another address": verified("other@example.com"),
			"no address":      {"email_verified": true},
		} {
			person(p, "ada-1", claims)
			_, err := signInWith(p, signin.ConnectionStart{})
			if refusal, ok := errors.AsType[*signin.Refusal](err); !ok || refusal.Code != signin.CodeIdentityUnknown {
				t.Errorf("email_verified %s: %v", name, err)
			}
		}
		person(p, "ada-1", verified(strings.ToUpper(nodetest.Address("ada"))))
		done, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		if done.Principal.User.ID != ada.ID || done.Principal.User.Status != rolecall.UserActive {
			t.Errorf("who is signed in is %+v", done.Principal.User)
		}
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password)), rolecall.ErrInvitationInvalid)
		want := []rolecall.EventType{rolecall.EventSignedIn, rolecall.EventIdentityLinked, rolecall.EventInvitationUsed, rolecall.EventUserInvited, rolecall.EventSignInFailed, rolecall.EventUserCreated}
		if got := f.EventTypes(ada.ID); !slices.Equal(got, want) {
			t.Errorf("the events are %v", got)
		}
		f.Clock.Advance(time.Hour)
		person(p, "ada-1", map[string]any{}) // the identity needs no address
		done, err = signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		if done.Principal.User.ID != ada.ID {
			t.Errorf("who is signed in is %+v", done.Principal.User)
		}
	})
}

func TestAnInvitationLinkNeedsItsAddressButNotVerified(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		ada := f.NewUser("ada")
		token := f.Invite(ada.ID)
		person(p, "mallory", map[string]any{"email": "mallory@example.com"})
		_, err := signInWith(p, signin.ConnectionStart{Invitation: token})
		refused(p, err, signin.CodeIdentityUnknown, "the invitation is for another address")
		person(p, "ada-1", map[string]any{"email": nodetest.Address("ada")})
		_, err = signInWith(p, signin.ConnectionStart{Invitation: secret.NewToken()})
		refused(p, err, signin.CodeIdentityUnknown, "the invitation is not valid")
		done, err := signInWith(p, signin.ConnectionStart{Invitation: token})
		f.OK(err)
		if done.Principal.User.ID != ada.ID {
			t.Errorf("who is signed in is %+v", done.Principal.User)
		}
		person(p, "ada-2", map[string]any{"email": nodetest.Address("ada")})
		_, err = signInWith(p, signin.ConnectionStart{Invitation: token})
		refused(p, err, signin.CodeIdentityUnknown, "the invitation is not valid")
	})
}

func TestAVerifiedAddressLinksUsersExceptOwners(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, func(c *rolecall.Connection) { c.Linking = rolecall.LinkVerifiedEmail })
		ada, bob := f.NewMember("ada"), f.NewUser("bob")
		person(p, "ada-1", map[string]any{"email": nodetest.Address("ada"), "email_verified": "true"})
		_, err := signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeIdentityUnknown, "no user has the identity")
		person(p, "ada-1", verified(nodetest.Address("ada")))
		f.ExpectMailed(func() {
			done, err := signInWith(p, signin.ConnectionStart{})
			f.OK(err)
			if done.Principal.User.ID != ada.ID {
				t.Errorf("who is signed in is %+v", done.Principal.User)
			}
		}, "credentials-changed ada")
		person(p, "bob-1", verified(nodetest.Address("bob")))
		done, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		if done.Principal.User.ID != bob.ID || done.Principal.User.Status != rolecall.UserActive {
			t.Errorf("who is signed in is %+v", done.Principal.User)
		}
		person(p, "owner-1", verified(nodetest.Address("owner")))
		_, err = signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeIdentityUnknown, "the user with the address is an owner")
		carol := f.NewMember("carol") // a limited owner is an owner too
		until := f.Clock.Now().Add(time.Hour)
		f.Assign(carol.ID, f.OwnerRole(), rolecall.AssignmentDraft{ExpiresAt: &until})
		person(p, "carol-1", verified(nodetest.Address("carol")))
		_, err = signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeIdentityUnknown, "the user with the address is an owner")
	})
}

func TestAProviderStatesAddressesOfItsDomainsOnly(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, func(c *rolecall.Connection) {
			c.Linking, c.Domains, c.Provisioning = rolecall.LinkVerifiedEmail, []string{"acme.example"}, &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{}}
		})
		f.NewMember("ada")
		person(p, "ada-1", verified(nodetest.Address("ada"))) // in example.com
		_, err := signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeIdentityUnknown, "the address is in no domain of the connection")
		unverified := func(subject string) {
			for _, verified := range []any{false, "true", 1, nil} {
				person(p, subject, map[string]any{"email": "bob@acme.example", "email_verified": verified})
				_, err = signInWith(p, signin.ConnectionStart{})
				refused(p, err, signin.CodeIdentityUnknown, "the provider has not verified the address")
			}
		}
		unverified("bob-1")
		person(p, "bob-1", map[string]any{"email": "bob@acme.example"})
		done, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		bob := done.Principal.User
		if bob.Email != "bob@acme.example" || bob.Name != "bob@acme.example" {
			t.Errorf("the new user is %+v", bob)
		}
		unverified("bob-2")
		person(p, "bob-2", map[string]any{"email": "bob@acme.example"})
		if done, err = signInWith(p, signin.ConnectionStart{}); err != nil || done.Principal.User.ID != bob.ID {
			t.Errorf("the linked user is %+v (error %v)", done.Principal, err)
		}
	})
}

func TestASignInCreatesAUserUnderTheCeiling(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		maker := f.NewMember("maker")
		f.Assign(maker.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		role := f.NewRole("Clerk", "users:read")
		department := "Sales"
		p := nodetest.Provide(f, func(c *rolecall.Connection) {
			c.Provisioning, c.ProvisionedBy = &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{role.ID}, Department: &department}, maker.ID
		})
		person(p, "new-1", map[string]any{"email": "new@example.com", "name": "Nora New"})
		_, err := signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeIdentityUnknown, "the provider has not verified the address")
		person(p, "new-1", verified("new@example.com"))
		done, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		user := done.Principal.User
		if user.Email != "new@example.com" || user.Status != rolecall.UserActive || *user.Department != department || len(done.Principal.Assignments) != 1 || done.Principal.Assignments[0].Role.ID != role.ID {
			t.Errorf("the new user is %+v with %v", user, done.Principal.Assignments)
		}
		want := []rolecall.EventType{rolecall.EventSignedIn, rolecall.EventIdentityLinked, rolecall.EventRoleAssigned, rolecall.EventUserCreated}
		if got := f.EventTypes(user.ID); !slices.Equal(got, want) {
			t.Errorf("the events are %v", got)
		}
		person(p, "squatter", map[string]any{"email": "new@example.com"})
		_, err = signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeIdentityUnknown, "the provider has not verified the address")
		person(p, "nobody", map[string]any{"email": "not an address", "email_verified": true})
		_, err = signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeRefused, "the provider states no valid address")

		person(p, "late-1", verified("late@example.com"))
		f.OK(f.Directory.UnassignRole(t.Context(), f.Owner, rolecall.HolderOf(maker.ID), f.OwnerRole()))
		_, err = signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeRefused, "the person who set the provisioning can no longer create users")
		f.Assign(maker.ID, f.NewRole("Creator", "users:create").ID, rolecall.AssignmentDraft{})
		_, err = signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeRefused, "the person who set the provisioning can no longer assign its roles")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(t.Context(), f.Owner, maker.ID, "")))
		_, err = signInWith(p, signin.ConnectionStart{})
		refused(p, err, signin.CodeRefused, "the person who set the provisioning is suspended or deleted")
		f.Is(nodetest.ErrorOf(f.SignIn.Login(t.Context(), f.Attempt(), "late@example.com", nodetest.Password)), rolecall.ErrWrongCredentials)
	})
}

func TestAnAttemptWorksOnceAndOnlyWithItsCookie(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		p.Identity(f.NewMember("ada").ID, "ada-1")
		person(p, "ada-1", nil)
		cookie, query := begin(p, f.Attempt(), signin.ConnectionStart{})
		other, swapped := begin(p, f.Attempt(), signin.ConnectionStart{}) // a second tab
		f.Is(nodetest.ErrorOf(complete(p, f.Attempt(), cookie, swapped)), rolecall.ErrAttemptInvalid)
		f.Is(nodetest.ErrorOf(complete(p, f.Attempt(), other, query)), rolecall.ErrAttemptInvalid)
		f.Is(nodetest.ErrorOf(complete(p, f.Attempt(), "", query)), rolecall.ErrAttemptInvalid)
		forged := url.Values{"state": {query.Get("state")[:37] + string(secret.NewToken())}, "code": query["code"], "iss": query["iss"]}
		f.Is(nodetest.ErrorOf(complete(p, f.Attempt(), cookie, forged)), rolecall.ErrAttemptInvalid)
		f.OK(nodetest.ErrorOf(complete(p, f.Attempt(), cookie, query)))
		f.Is(nodetest.ErrorOf(complete(p, f.Attempt(), cookie, query)), rolecall.ErrAttemptInvalid)
		f.OK(nodetest.ErrorOf(complete(p, f.Attempt(), other, swapped)))

		cookie, query = begin(p, f.Attempt(), signin.ConnectionStart{})
		query.Set("error", "access_denied")
		query.Del("code")
		_, err := complete(p, f.Attempt(), cookie, query)
		refused(p, err, signin.CodeRefused, oidc.ReasonDenied)
		f.Is(nodetest.ErrorOf(complete(p, f.Attempt(), cookie, query)), rolecall.ErrAttemptInvalid) // also used up by a refusal

		cookie, query = begin(p, f.Attempt(), signin.ConnectionStart{})
		f.Clock.Advance(signin.AttemptLifetime)
		f.Is(nodetest.ErrorOf(complete(p, f.Attempt(), cookie, query)), rolecall.ErrAttemptInvalid)
	})
}

func TestACodeIsExchangedOnceWithItsVerifier(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		ada := f.NewMember("ada")
		p.Identity(ada.ID, "ada-1")
		person(p, "ada-1", nil)
		exchange := func(code secret.Token, verifier string) error {
			return nodetest.ErrorOf(f.SignIn.ExchangeCode(t.Context(), forHeader(f.Attempt()), code, verifier))
		}
		code := codeFor(p)
		in, err := f.SignIn.ExchangeCode(t.Context(), forHeader(f.Attempt()), code, verifier)
		f.OK(err)
		if !in.Token.IsForHeader() || in.Principal.User.ID != ada.ID || in.Principal.Session.Connection != p.Connection.ID {
			t.Errorf("%+v", in)
		}
		f.Is(exchange(code, verifier), rolecall.ErrCodeInvalid)
		code = codeFor(p)
		f.Is(exchange(code, "another "+verifier), rolecall.ErrCodeInvalid)
		f.Is(exchange(code, verifier), rolecall.ErrCodeInvalid) // the wrong verifier has used it up
		code = codeFor(p)
		there := forHeader(f.Attempt())
		there.Tenant = f.NewTenant("other")
		f.Is(nodetest.ErrorOf(f.SignIn.ExchangeCode(t.Context(), there, code, verifier)), rolecall.ErrCodeInvalid)
		f.Clock.Advance(time.Minute)
		f.Is(exchange(code, verifier), rolecall.ErrCodeInvalid)
		code = codeFor(p)
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(t.Context(), f.Owner, ada.ID, "")))
		if err := exchange(code, verifier); err == nil {
			t.Error("the user is suspended")
		}
		code = codeAfter(p, func() { f.OK(nodetest.ErrorOf(f.Directory.ResumeUser(t.Context(), f.Owner, ada.ID, ""))) })
		counts := f.InParallel(5, func(int) error { return exchange(code, verifier) })
		if counts[nil] != 1 {
			t.Errorf("the outcomes are %v", counts)
		}
	})
}

// The URL of an attempt can come from another person. So the browser that completes the attempt gets no session, keeps
// the one that it has, and cannot use the code.
func TestACodeStartsASessionOnlyWhereTheSignInBegan(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		ada := f.NewMember("ada")
		f.NewMember("bob")
		bob := f.LogIn("bob")
		p.Identity(ada.ID, "ada-1")
		person(p, "ada-1", nil)
		for name, a := range map[string]access.Anonymous{"cookie": f.Attempt(), "header": forHeader(f.Attempt())} {
			cookie, query := begin(p, a, signin.ConnectionStart{})
			code, err := complete(p, f.Attempt(bob.Token), cookie, query)
			f.OK(err)
			in, err := f.SignIn.ExchangeCode(t.Context(), a, code, verifier)
			f.OK(err)
			if in.Token.IsForHeader() != a.ForHeader || in.Principal.User.ID != ada.ID {
				t.Errorf("%s: %+v", name, in)
			}
		}
		f.Is(nodetest.ErrorOf(f.SignIn.ExchangeCode(t.Context(), f.Attempt(bob.Token), codeFor(p), string(secret.NewToken()))), rolecall.ErrCodeInvalid)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, bob.Token)))
	})
}

func codeAfter(p *nodetest.Provided, fn func()) secret.Token {
	p.Helper()
	fn()
	return codeFor(p)
}

func TestATrustedProviderProvesTheSecondFactor(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, func(c *rolecall.Connection) {
			c.SecondFactor, c.ACRValues, c.AMRValues = rolecall.FactorTrust, []string{"urn:mfa"}, []string{"mfa"}
		})
		ada, app, _ := f.Protected("ada")
		p.Identity(ada.ID, "ada-1")
		for name, claims := range map[string]map[string]any{"none": nil, "another acr": {"acr": "urn:password"}, "another amr": {"amr": []string{"pwd"}}} {
			person(p, "ada-1", claims)
			done, err := signInWith(p, signin.ConnectionStart{})
			f.OK(err)
			if done.Challenge == nil || done.Principal != nil {
				t.Errorf("%s: %+v", name, done)
			}
		}
		person(p, "ada-1", nil)
		done, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
		f.Clock.Advance(time.Minute)
		in, err := f.SignIn.CompleteSignIn(t.Context(), f.Attempt(), secret.Token(done.Challenge.Token), signin.Proof{Code: app.Next()})
		f.OK(err)
		if in.Principal.Session.Connection != p.Connection.ID || !in.Principal.Session.SecondFactor {
			t.Errorf("the session is %+v", in.Principal.Session)
		}
		for name, claims := range map[string]map[string]any{"acr": {"acr": "urn:mfa"}, "amr": {"amr": []string{"pwd", "mfa"}}} {
			person(p, "ada-1", claims)
			done, err := signInWith(p, signin.ConnectionStart{})
			f.OK(err)
			if done.Principal == nil || !done.Principal.Session.SecondFactor {
				t.Errorf("%s: %+v", name, done)
			}
		}
	})
}

func TestASlowProviderHoldsNoTransaction(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		p.Identity(f.NewMember("ada").ID, "ada-1")
		person(p, "ada-1", nil)
		cookie, query := begin(p, f.Attempt(), signin.ConnectionStart{})
		attempt, err := p.SignIn.OpenAttempt(cookie, query.Get("state"), p.Connection.ID)
		f.OK(err)
		var steps []string
		_, err = p.SignIn.CompleteAttempt(t.Context(), f.Attempt(), attempt, nodetest.Origin, query, func() {
			steps = append(steps, "leave")
			f.OK(nodetest.ErrorOf(f.SignIn.Login(t.Context(), f.Attempt(), nodetest.Address("ada"), nodetest.Password))) // a write while the provider answers
		}, func() error { steps = append(steps, "enter"); return nil })
		f.OK(err)
		if !slices.Equal(steps, []string{"leave", "enter"}) {
			t.Errorf("the steps are %v", steps)
		}
		p.Provider.Stop()
		cookie, query = "", nil
		_, err = p.SignIn.StartConnection(t.Context(), f.Attempt(), signin.ConnectionStart{Connection: rolecall.NewID[rolecall.Connection](1), Purpose: signin.PurposeSignIn}, noOp)
		f.Is(err, rolecall.ErrNotFound)
	})
}

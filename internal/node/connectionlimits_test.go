package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// ownCodeOf returns the code of an attempt with the purpose in the session of the sign-in.
func (p *provided) ownCodeOf(in signin.SignIn, purpose signin.Purpose) secret.Token {
	p.Helper()
	cookie, query := p.begin(p.attempt(in.Token), signin.ConnectionStart{Purpose: purpose})
	code, err := p.complete(p.attempt(in.Token), cookie, query)
	p.ok(err)
	return code
}

func TestCodesOfAProviderThatWorkAreNotCounted(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		p := provide(f, nil)
		ada := f.member("ada")
		p.identity(ada.ID, "ada")
		in := f.signIn("ada")
		p.person("ada", nil)
		for range 12 { // without links in between, which clear the same counter
			confirmed, err := f.SignIn.ReauthenticateByCode(t.Context(), f.call(in), []secret.Token{in.Token}, p.ownCodeOf(in, signin.PurposeConfirm), "", signin.Proof{})
			f.ok(err)
			in.Token = confirmed.Token
		}
		for i := range 12 {
			p.person(fmt.Sprint("ada-", i), nil)
			f.ok(errorOf(f.SignIn.LinkIdentity(t.Context(), f.call(in), p.ownCodeOf(in, signin.PurposeLink), "")))
		}
		for range 10 {
			f.is(errorOf(f.SignIn.LinkIdentity(t.Context(), f.call(in), secret.NewToken(), "")), rolecall.ErrValidation)
		}
		f.is(errorOf(f.SignIn.LinkIdentity(t.Context(), f.call(in), secret.NewToken(), "")), rolecall.ErrTooManyAttempts)
	})
}

func TestAnUnavailableProviderIsNoFailedAttempt(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{Source: 3}, func(f *fixture) {
		p := provide(f, nil)
		p.identity(f.member("ada").ID, "ada")
		p.person("ada", nil)
		f.ok(errorOf(p.signInWith(signin.ConnectionStart{}))) // the metadata is now in the cache
		type begun struct {
			cookie string
			query  map[string][]string
		}
		var attempts []begun
		for range 5 {
			cookie, query := p.begin(f.attempt(), signin.ConnectionStart{})
			attempts = append(attempts, begun{cookie, query})
		}
		p.provider.Stop()
		for _, a := range attempts {
			f.is(errorOf(p.complete(f.attempt(), a.cookie, a.query)), rolecall.ErrConnectionUnavailable)
		}
	})
}

func TestProviderCallsAreSharedBetweenTenants(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		p.person("ada", nil)
		var calls []context.Context
		var ends []func()
		begin := func(tenant rolecall.TenantID) error {
			call, end, err := f.SignIn.BeginProviderCall(t.Context(), tenant)
			if err == nil {
				calls, ends = append(calls, call), append(ends, end)
			}
			return err
		}
		for i := range 256 { // eight tenants with slow providers
			f.ok(begin(rolecall.TenantID{1: byte(i % 8), 15: 9}))
		}
		f.is(begin(rolecall.TenantID{15: 9}), rolecall.ErrConnectionUnavailable)
		start := signin.ConnectionStart{Connection: p.connection.ID, ReturnTo: returnTo, Purpose: signin.PurposeSignIn}
		f.ok(errorOf(f.SignIn.StartConnection(t.Context(), f.attempt(), start, noOp)))
		f.ok(begin(f.tenant.ID))
		canceled := 0
		for _, call := range calls {
			if call.Err() != nil {
				canceled++
			}
		}
		if canceled != 1 { // the sign-in has made room for the last call
			t.Errorf("%d calls of the other tenants were canceled", canceled)
		}
		f.ok(errorOf(f.SignIn.TestConnection(t.Context(), f.owner, p.connection.ID)))
		for _, end := range ends {
			end()
		}
		for range 256 {
			f.ok(begin(f.tenant.ID))
		}
		f.is(errorOf(f.SignIn.TestConnection(t.Context(), f.owner, p.connection.ID)), rolecall.ErrConnectionUnavailable)
		f.is(errorOf(f.SignIn.StartConnection(t.Context(), f.attempt(), start, noOp)), rolecall.ErrConnectionUnavailable)
		for _, end := range ends {
			end()
		}
	})
}

func TestASignInAddsNoIdentityAboveTheLimit(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, func(c *rolecall.Connection) { c.Linking = rolecall.LinkVerifiedEmail })
		ada := f.member("ada")
		for i := range rolecall.IdentitiesMax {
			p.identity(ada.ID, fmt.Sprint("ada-", i))
		}
		p.person("one-more", verified(address("ada")))
		_, err := p.signInWith(signin.ConnectionStart{})
		p.refused(err, signin.CodeIdentityUnknown, "the user has the maximum number of identities")
	})
}

func TestAProvisionedUserGetsNoMailOfTheirOwnIdentity(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, func(c *rolecall.Connection) { c.Provisioning = &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{}} })
		p.person("new", verified(address("new")))
		f.expectMailed(func() { f.ok(errorOf(p.signInWith(signin.ConnectionStart{}))) })
	})
}

func TestTestsOfAConnectionAreRecorded(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		newest := func() rolecall.Event {
			var events rolecall.Page[rolecall.Event]
			f.ok(f.store.View(t.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
				events, err = tx.Events(rolecall.EventQuery{Subject: rolecall.AnyID(p.connection.ID), Limit: 1})
				return err
			}))
			return events.Items[0]
		}
		m, err := f.SignIn.TestConnection(t.Context(), f.owner, p.connection.ID)
		f.ok(err)
		if e := newest(); !m.Passed() || m.Keys == 0 || e.Type != rolecall.EventConnectionTested || e.Reason != "passed" || e.Actor != f.owner.Actor() {
			t.Errorf("%+v, and the event is %+v", m, e)
		}
		f.clock.advance(time.Second)
		p.provider.Set(func(s *oidctest.Settings) {
			s.Metadata = func(m map[string]any) { m["issuer"] = "https://another.example" }
		})
		m, err = f.SignIn.TestConnection(t.Context(), f.owner, p.connection.ID)
		f.ok(err)
		if e := newest(); m.Passed() || len(m.Problems) != 1 || e.Reason != "failed" {
			t.Errorf("%+v, and the event is %+v", m, e)
		}
	})
}

func TestDeletingAConnectionWithIdentitiesNeedsForce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		ada := f.member("ada")
		p.identity(ada.ID, "ada")
		p.identity(f.member("bob").ID, "bob")
		p.person("ada", nil)
		done, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		withPassword := f.signIn("ada")
		remove := func(force bool) error {
			return f.SignIn.DeleteConnection(t.Context(), f.owner, p.connection.ID, force, nil)
		}
		f.is(remove(false), rolecall.ErrConnectionInUse)
		f.ok(errorOf(f.authenticate(f.Node, done.Token)))
		cookie, query := p.begin(f.attempt(), signin.ConnectionStart{})
		f.ok(remove(true))
		f.is(errorOf(f.authenticate(f.Node, done.Token)), rolecall.ErrUnauthenticated)
		f.ok(errorOf(f.authenticate(f.Node, withPassword.Token)))
		f.is(remove(true), rolecall.ErrNotFound)
		_, err = p.complete(f.attempt(), cookie, query)
		p.refused(err, signin.CodeRefused, "the connection was deleted")
		all, err := f.SignIn.Identities(t.Context(), f.owner, ada.ID)
		f.ok(err)
		if len(all) != 0 {
			t.Errorf("the identities %v are left", all)
		}
		f.ok(f.store.View(t.Context(), f.tenant.ID, func(tx *store.Tx) error {
			events, err := tx.Events(rolecall.EventQuery{Type: rolecall.EventConnectionDeleted, Limit: 1})
			f.ok(err)
			if after := string(events.Items[0].Values.After); !strings.Contains(after, `"identities":2`) || !strings.Contains(after, `"sessions":1`) {
				t.Errorf("the event has %s", after)
			}
			return nil
		}))
	})
}

func TestProvisioningIsCheckedWhenItIsSet(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.role("Clerk", "users:read")
		p := provide(f, func(c *rolecall.Connection) {
			c.Provisioning = &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{role.ID}}
		})
		f.ok(f.Directory.DeleteRole(t.Context(), f.owner, role.ID, true, nil))
		patch := func(patch rolecall.ConnectionPatch) error {
			return errorOf(f.SignIn.UpdateConnection(t.Context(), f.owner, p.connection.ID, patch, nil))
		}
		f.ok(patch(rolecall.ConnectionPatch{Name: rolecall.Some("Renamed")})) // the deleted role does not matter
		f.is(patch(rolecall.ConnectionPatch{Provisioning: rolecall.Some(&rolecall.Provisioning{RoleIDs: []rolecall.RoleID{role.ID}, Department: new("Sales")})}), rolecall.ErrValidation)
		f.ok(patch(rolecall.ConnectionPatch{Provisioning: rolecall.Some[*rolecall.Provisioning](nil)}))
	})
}

func TestAConnectionCompletesItsChallengeUnderPasswordsOfOwners(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, nil)
		ada, app, _ := f.protected("ada")
		p.identity(ada.ID, "ada")
		p.person("ada", nil)
		f.settings(rolecall.TenantSettings{PasswordSignIn: rolecall.PasswordsOfOwners})
		done, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		if done.Challenge == nil {
			t.Fatalf("no second factor is required: %+v", done)
		}
		f.clock.advance(time.Minute)
		in, err := f.SignIn.CompleteSignIn(t.Context(), f.attempt(), secret.Token(done.Challenge.Token), signin.Proof{Code: app.next()})
		f.ok(err)
		if in.Principal.User.ID != ada.ID || in.Principal.Session.Connection != p.connection.ID {
			t.Errorf("the session is %+v", in.Principal.Session)
		}
	})
}

// The connections of this test create no users, so only the rights of their author are checked. All callers have the
// permissions for connections.
func TestOnlyCallersWithAllPermissionsCreateConnections(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		everything := holding("*:*", "*/*:*")
		for what, c := range map[string]struct {
			holds []held
			want  error
		}{
			"only connections":         {nil, rolecall.ErrPermissionDenied},
			"only Rolecall":            {hold(holding("*:*")), rolecall.ErrPermissionDenied},
			"only applications":        {hold(holding("*/*:*")), rolecall.ErrPermissionDenied},
			"only granting everything": {hold(granting("*:*", "*/*:*")), rolecall.ErrPermissionDenied},
			"in a department":          {hold(everything.within("Sales")), rolecall.ErrPermissionDenied},
			"until a time":             {hold(everything.to(nextWeek)), rolecall.ErrPermissionDenied},
			"everything":               {hold(everything), nil},
		} {
			draft := rolecall.ConnectionDraft{Name: what, Issuer: "https://login.acme.example", ClientID: "rolecall", ClientSecret: "secret"}
			caller := f.caller(append(c.holds, holding("connections:*"))...)
			created, err := f.SignIn.CreateConnection(f.Context(), caller, newKey(), draft)
			if !errors.Is(err, c.want) {
				f.Errorf("%s: %v, want %v", what, err, c.want)
			}
			if err == nil {
				f.ok(f.SignIn.DeleteConnection(f.Context(), f.owner, created.Value.ID, false, nil))
			}
		}
	})
}

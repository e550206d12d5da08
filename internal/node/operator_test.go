package node_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
)

func TestCreateTenantIsAtomic(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		owner := rolecall.UserDraft{Email: address("owner"), Name: "Olga Owner"}
		for _, c := range []struct {
			name, password string
			owner          rolecall.UserDraft
			faults         []string
		}{
			{"Upper", "too short", rolecall.UserDraft{Email: "none", Name: "ab"}, []string{"/name", "/owner/email", "/owner/name", "/password"}},
			{"-hyphen", password, owner, []string{"/name"}},
			{strings.Repeat("t", 64), password, owner, []string{"/name"}},
			{"new", "14 characters!", owner, []string{"/password"}},
			{"new", strings.Repeat("p", 1025), owner, []string{"/password"}},
			{"new", "OWNER@EXAMPLE.COM", owner, []string{"/password"}},
		} {
			_, _, err := f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: c.name, Owner: c.owner}, c.password)
			f.is(err, rolecall.ErrValidation)
			var pointers []string
			if e, ok := errors.AsType[*rolecall.Error](err); ok {
				for _, fault := range e.FieldErrors {
					pointers = append(pointers, fault.Pointer)
				}
			}
			if slices.Sort(pointers); !slices.Equal(pointers, c.faults) {
				t.Errorf("%s: the faults are at %q, not %q", c.name, pointers, c.faults)
			}
		}
		f.is(errorOf3(f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: "acme", Owner: owner}, password)), rolecall.ErrTenantExists)
		if roles, err := f.Directory.Roles(f.Context(), f.owner, directory.RoleListing{Limit: 10}); err != nil || len(roles.Items) != 3 {
			t.Errorf("after a refused one there are %d roles, %v", len(roles.Items), err)
		}
		display := "New Tenant"
		tenant, user, err := f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: "new", DisplayName: &display, Owner: owner}, "𝒫𝒶𝓈𝓈𝓅𝒽𝓇𝒶𝓈𝑒 𝑜𝒻 𝓌𝒾𝒹𝑒")
		f.ok(err)
		if tenant.Name != "new" || tenant.DisplayName != "New Tenant" || user.Status != rolecall.UserActive {
			t.Errorf("made %v, %v", tenant, user)
		}
		f.tenant = tenant
		if got := f.eventTypes(user.ID); !slices.Equal(got, []rolecall.EventType{rolecall.EventRoleAssigned, rolecall.EventUserCreated}) {
			t.Errorf("of the owner tell %v", got)
		}
	})
}

func TestTenantsAreListedByName(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.newTenant("zeta")
		f.newTenant("beta")
		var names []string
		for after := ""; ; {
			page, err := f.Directory.Tenants(f.Context(), "", after, 2)
			f.ok(err)
			if len(page) == 0 {
				break
			}
			for _, tenant := range page {
				names = append(names, tenant.Name)
			}
			after = names[len(names)-1]
		}
		if !slices.Equal(names, []string{"acme", "beta", "zeta"}) {
			t.Errorf("the tenants are %q", names)
		}
	})
}

func TestAddOwnerRestoresAccess(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user := f.member("rescuer")
		f.ok(f.Directory.AddOwner(f.Context(), "acme", "RESCUER@example.com"))
		f.ok(f.Directory.AddOwner(f.Context(), "acme", address("rescuer")))
		f.ok(f.Directory.UnassignRole(f.Context(), f.call(f.signIn("rescuer")), rolecall.HolderOf(f.owner.User.ID), f.ownerRole()))
		if got := f.eventTypes(user.ID)[:3]; !slices.Contains(got, rolecall.EventRoleAssigned) {
			t.Errorf("the newest events are %v", got)
		}
	})
}

func TestSetPasswordActivatesTheUserAndEndsEverySession(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		pending := f.user("ada")
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)
		f.ok(f.SignIn.SetPassword(f.Context(), "acme", address("ada"), password))
		token := f.signIn("ada").Token
		f.ok(f.SignIn.SetPassword(f.Context(), "acme", address("ada"), "another "+password))
		f.is(errorOf(f.authenticate(f.node(), token)), rolecall.ErrUnauthenticated)
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)
		f.ok(f.guess("192.0.2.7", "ada", "another "+password))
		want := []rolecall.EventType{rolecall.EventSignedIn, rolecall.EventSessionEnded, rolecall.EventPasswordChanged, rolecall.EventSignedIn, rolecall.EventPasswordChanged, rolecall.EventUserCreated}
		if got := f.eventTypes(pending.ID); !slices.Equal(got, want) {
			t.Errorf("the events are %v", got)
		}
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, pending.ID, "")))
		f.ok(f.SignIn.SetPassword(f.Context(), "acme", address("ada"), password))
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrUserSuspended)
	})
}

func TestLongPasswordsAreComparedCompletely(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.user("ada")
		for _, c := range []struct{ stored, given string }{
			{strings.Repeat("p", 72) + " and more than bcrypt reads: a", strings.Repeat("p", 72) + " and more than bcrypt reads: b"},
			{strings.Repeat("long word ", 102) + "last", strings.Repeat("long word ", 102) + "lasT"},
			{"a password with a blank at its end ", "a password with a blank at its end"},
		} {
			f.ok(f.SignIn.SetPassword(f.Context(), "acme", address("ada"), c.stored))
			f.is(f.guess("192.0.2.7", "ada", c.given), rolecall.ErrWrongCredentials)
			f.ok(f.guess("192.0.2.7", "ada", c.stored))
		}
		f.ok(f.SignIn.SetPassword(f.Context(), "acme", address("ada"), "composed caf\u00e9 password"))
		f.ok(f.guess("192.0.2.7", "ada", "composed cafe\u0301 password"))
	})
}

func TestOperatorsCanChangeAnAddress(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		f.user("bob")
		f.is(f.SignIn.SetEmail(f.Context(), "acme", address("ada"), address("bob")), rolecall.ErrEmailTaken)
		f.is(f.SignIn.SetEmail(f.Context(), "acme", address("ada"), "none"), rolecall.ErrValidation)
		f.ok(f.SignIn.SetEmail(f.Context(), "acme", address("ada"), address("lovelace")))
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)
		f.ok(f.guess("192.0.2.7", "lovelace", password))
	})
}

func TestCommandsNameMissingObjects(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ctx := f.Context()
		for name, err := range map[string]error{
			"suspend": errorOf(f.Directory.SuspendTenant(ctx, access.Command, "none", "")), "resume": errorOf(f.Directory.ResumeTenant(ctx, access.Command, "none", "")), "delete": f.Directory.DeleteTenant(ctx, access.Command, "none", nil),
			"restore":   errorOf(f.Directory.RestoreTenant(ctx, access.Command, "none", "")),
			"add owner": f.Directory.AddOwner(ctx, "none", address("owner")), "add nobody": f.Directory.AddOwner(ctx, "acme", address("none")),
			"password": f.SignIn.SetPassword(ctx, "none", address("owner"), password), "password of nobody": f.SignIn.SetPassword(ctx, "acme", address("none"), password),
			"address": f.SignIn.SetEmail(ctx, "none", address("owner"), address("new")), "address of nobody": f.SignIn.SetEmail(ctx, "acme", address("none"), address("new")),
		} {
			if !errors.Is(err, rolecall.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestASuspendedTenantIsReportedToItsUsersOnly(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		token := f.signIn("owner").Token
		f.ok(errorOf(f.Directory.SuspendTenant(f.Context(), access.Command, "acme", "")))
		f.ok(errorOf(f.Directory.SuspendTenant(f.Context(), access.Command, "acme", "")))
		f.clock.advance(aSecond)
		var err error
		f.tenant, err = f.Directory.Tenant(f.Context(), "acme")
		f.ok(err)
		f.is(errorOf(f.authenticate(f.Node, token)), rolecall.ErrTenantSuspended)
		f.is(errorOf(f.authenticate(f.Node, secret.NewToken())), rolecall.ErrUnauthenticated)
		f.is(errorOf(f.SignIn.Refresh(f.Context(), f.attempt(token))), rolecall.ErrTenantSuspended)
		f.is(f.guess("192.0.2.7", "owner", password), rolecall.ErrTenantSuspended)
		f.is(f.guess("192.0.2.7", "owner", "wrong"), rolecall.ErrWrongCredentials)
		f.ok(f.SignIn.Logout(f.Context(), f.attempt(token)))
		f.ok(errorOf(f.Directory.ResumeTenant(f.Context(), access.Command, "acme", "")))
		f.tenant.Status = rolecall.TenantActive
		f.ok(f.guess("192.0.2.7", "owner", password))
	})
}

package directory_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

func TestCreateTenantIsAtomic(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		owner := rolecall.UserDraft{Email: nodetest.Address("owner"), Name: "Olga Owner"}
		for _, c := range []struct {
			name, password string
			owner          rolecall.UserDraft
			faults         []string
		}{
			{"Upper", "too short", rolecall.UserDraft{Email: "none", Name: "ab"}, []string{"/name", "/owner/email", "/owner/name", "/password"}},
			{"-hyphen", nodetest.Password, owner, []string{"/name"}},
			{strings.Repeat("t", 64), nodetest.Password, owner, []string{"/name"}},
			{"new", "14 characters!", owner, []string{"/password"}},
			{"new", strings.Repeat("p", 1025), owner, []string{"/password"}},
			{"new", "OWNER@EXAMPLE.COM", owner, []string{"/password"}},
		} {
			_, _, err := f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: c.name, Owner: c.owner}, c.password)
			f.Is(err, rolecall.ErrValidation)
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
		f.Is(nodetest.ErrorOf3(f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: "acme", Owner: owner}, nodetest.Password)), rolecall.ErrTenantExists)
		if roles, err := f.Directory.Roles(f.Context(), f.Owner, directory.RoleListing{Limit: 10}); err != nil || len(roles.Items) != 3 {
			t.Errorf("after a refused one there are %d roles, %v", len(roles.Items), err)
		}
		display := "New Tenant"
		tenant, user, err := f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: "new", DisplayName: &display, Owner: owner}, "𝒫𝒶𝓈𝓈𝓅𝒽𝓇𝒶𝓈𝑒 𝑜𝒻 𝓌𝒾𝒹𝑒")
		f.OK(err)
		if tenant.Name != "new" || tenant.DisplayName != "New Tenant" || user.Status != rolecall.UserActive {
			t.Errorf("made %v, %v", tenant, user)
		}
		f.Tenant = tenant
		if got := f.EventTypes(user.ID); !slices.Equal(got, []rolecall.EventType{rolecall.EventRoleAssigned, rolecall.EventUserCreated}) {
			t.Errorf("of the owner tell %v", got)
		}
	})
}

func TestTenantsAreListedByName(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewTenant("zeta")
		f.NewTenant("beta")
		var names []string
		for after := ""; ; {
			page, err := f.Directory.Tenants(f.Context(), "", after, 2)
			f.OK(err)
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := f.NewMember("rescuer")
		f.OK(f.Directory.AddOwner(f.Context(), "acme", "RESCUER@example.com"))
		f.OK(f.Directory.AddOwner(f.Context(), "acme", nodetest.Address("rescuer")))
		f.OK(f.Directory.UnassignRole(f.Context(), f.CallerOf(f.LogIn("rescuer")), rolecall.HolderOf(f.Owner.User.ID), f.OwnerRole()))
		if got := f.EventTypes(user.ID)[:3]; !slices.Contains(got, rolecall.EventRoleAssigned) {
			t.Errorf("the newest events are %v", got)
		}
	})
}

func TestCommandsNameMissingObjects(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ctx := f.Context()
		for name, err := range map[string]error{
			"suspend": nodetest.ErrorOf(f.Directory.SuspendTenant(ctx, access.Command, "none", "")), "resume": nodetest.ErrorOf(f.Directory.ResumeTenant(ctx, access.Command, "none", "")), "delete": f.Directory.DeleteTenant(ctx, access.Command, "none", nil),
			"restore":   nodetest.ErrorOf(f.Directory.RestoreTenant(ctx, access.Command, "none", "")),
			"add owner": f.Directory.AddOwner(ctx, "none", nodetest.Address("owner")), "add nobody": f.Directory.AddOwner(ctx, "acme", nodetest.Address("none")),
			"password": f.SignIn.SetPassword(ctx, "none", nodetest.Address("owner"), nodetest.Password), "password of nobody": f.SignIn.SetPassword(ctx, "acme", nodetest.Address("none"), nodetest.Password),
			"address": f.SignIn.SetEmail(ctx, "none", nodetest.Address("owner"), nodetest.Address("new")), "address of nobody": f.SignIn.SetEmail(ctx, "acme", nodetest.Address("none"), nodetest.Address("new")),
		} {
			if !errors.Is(err, rolecall.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestTheOperatorsLogOutlivesTenants(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		operator := f.NewOperator("Sign-ups")
		tenant := f.NewTenant("short-lived")
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, tenant.Name, nil))
		before, err := f.Directory.OperatorCheckpoint(f.Context(), operator, "https://id.example.com")
		f.OK(err)
		f.Clock.Advance(rolecall.TenantRestorable + access.SettleTime + time.Second)
		f.OK(f.Node.Purge(f.Context()))
		f.Clock.Advance(20 * 365 * nodetest.Day)
		f.OK(f.Node.Purge(f.Context()))
		f.OK(f.Store.View(f.Context(), tenant.ID, func(tx *store.Tx) error {
			page, err := tx.Events(rolecall.EventQuery{Limit: 1})
			if len(page.Items) > 0 {
				f.Error("the tenant was not purged")
			}
			return err
		}))
		page, err := f.Directory.OperatorEvents(f.Context(), operator, directory.EventListing{Subject: rolecall.AnyID(tenant.ID), Limit: 9})
		f.OK(err)
		if len(page.Items) != 2 || page.Items[0].Type != rolecall.EventTenantDeleted || page.Items[1].Type != rolecall.EventTenantCreated ||
			string(page.Items[0].Values.Before) != `{"name":"short-lived","displayName":"short-lived"}` {
			f.Fatalf("the events are %+v", page.Items)
		}
		report, err := f.Access.AuditLog.Verify(f.Context(), auditlog.Verification{Notes: [][]byte{[]byte(before.Note)}})
		if err != nil || len(report.Problems) > 0 || report.Log.Size < 4 || report.Log.Removed != 0 {
			f.Errorf("the log is %+v, %v", report, err)
		}
		if _, _, err := f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: f.Tenant.Name, Owner: rolecall.UserDraft{Email: nodetest.Address("owner"), Name: "Olga Owner"}}, nodetest.Password); err == nil {
			f.Error("a name was used twice")
		}
		if all := f.OperatorEvents(operator); len(all) != int(report.Log.Size) {
			f.Errorf("after a failed creation, the log has %v", all)
		}
	})
}

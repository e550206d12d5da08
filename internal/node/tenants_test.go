package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/secret"
)

// servedBy waits until the node serves the tenant of the fixture. If served is false, it
// waits until the node does not.
func (f *fixture) servedBy(node *node.Node, served bool) {
	f.Helper()
	f.eventually(func() bool {
		tenant, err := node.Directory.Tenant(f.Context(), f.tenant.Name)
		if err == nil && served && !tenant.ID.IsZero() {
			f.tenant = tenant
		}
		return err == nil && served != tenant.ID.IsZero()
	})
}

// After its deletion, a tenant is unknown to every caller on every node within a second.
// A restore makes all its data available again, on every node within a second.
func TestADeletedTenantIsRestoredAsItWas(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.member("ada")
		f.assign(ada.ID, f.role("Support", "users:read").ID, rolecall.AssignmentDraft{})
		account := f.account("Nightly import", f.role("Import", "users:create").ID)
		session, bearer := f.signIn("ada").Token, f.accountToken(account.ID, "users:create").Secret
		invited := f.invite(f.user("eve").ID)
		held, events := f.assignments(ada.ID), f.eventTypes(ada.ID)
		other := f.watchingNode()
		living := f.tenant
		works := func(node *node.Node, wanted error) {
			f.Helper()
			f.is(errorOf(f.authenticate(node, session)), wanted)
			f.is(errorOf(node.SignIn.AuthenticateBearer(f.Context(), f.tenant, string(bearer), "192.0.2.1")), wanted)
		}
		works(f.Node, nil)
		works(other, nil)

		operator := f.operates("Support desk", f.tenant.Name)
		f.ok(f.Directory.DeleteTenant(f.Context(), operator, f.tenant.Name, nil))
		f.servedBy(f.Node, false)
		f.servedBy(other, false)
		f.tenant = rolecall.Tenant{}
		works(f.Node, rolecall.ErrUnauthenticated)
		works(other, rolecall.ErrUnauthenticated)
		f.is(f.guess("192.0.2.7", "ada", password), rolecall.ErrWrongCredentials)

		f.clock.advance(aSecond)
		f.tenant = living
		f.servedBy(f.Node, false)
		restored, err := f.Directory.RestoreTenant(f.Context(), operator, f.tenant.Name, "deleted by mistake")
		f.ok(err)
		if restored.Status != rolecall.TenantActive || restored.PurgeAt != 0 || restored.Name != living.Name || restored.UpdatedAt != f.clock.Now() || restored.Version <= living.Version {
			t.Errorf("restored is %+v", restored)
		}
		again, err := f.Directory.RestoreTenant(f.Context(), operator, f.tenant.Name, "a repeat")
		if f.ok(err); again.Version != restored.Version {
			t.Errorf("a repeat restores %+v", again)
		}
		f.servedBy(f.Node, true)
		f.clock.advance(aSecond) // another node can cache for this time that the tenant is unknown
		f.servedBy(other, true)
		works(f.Node, nil)
		works(other, nil)
		f.ok(f.guess("192.0.2.7", "ada", password))
		if got := f.assignments(ada.ID); !slices.EqualFunc(got, held, func(a, b rolecall.Assignment) bool { return a.Role.ID == b.Role.ID && a.GrantedAt == b.GrantedAt }) {
			t.Errorf("ada holds %+v, not %+v", got, held)
		}
		if got := f.eventTypes(ada.ID); !slices.Equal(got[len(got)-len(events):], events) {
			t.Errorf("of ada tell %v, not %v", got, events)
		}
		f.ok(errorOf(f.accept(invited, anotherPassword)))
		f.owner = f.call(f.signIn("owner"))
		happened := f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(f.tenant.ID), Limit: 10})
		if len(happened) < 2 || happened[0].Type != rolecall.EventTenantRestored || happened[0].Reason != "deleted by mistake" || happened[1].Type != rolecall.EventTenantDeleted ||
			happened[0].Actor != operator.Actor() || happened[1].Actor != operator.Actor() {
			t.Errorf("of the tenant tell %+v", happened)
		}
	})
}

func TestASuspendedTenantIsRestoredSuspended(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.ok(errorOf(f.Directory.SuspendTenant(f.Context(), access.Command, f.tenant.Name, "")))
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, f.tenant.Name, nil))
		restored, err := f.Directory.RestoreTenant(f.Context(), access.Command, f.tenant.Name, "")
		if f.ok(err); restored.Status != rolecall.TenantSuspended {
			t.Errorf("it is %s", restored.Status)
		}
	})
}

func TestATenantCanBeRestoredForADay(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		restore := func() error {
			return errorOf(f.Directory.RestoreTenant(f.Context(), access.Command, f.tenant.Name, ""))
		}
		operator := f.operates("Support desk")
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, f.tenant.Name, nil))
		f.clock.advance(aDay - time.Microsecond)
		f.ok(f.Node.Purge(f.Context()))
		f.ok(restore())
		f.ok(f.guess("192.0.2.7", "owner", password))
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, f.tenant.Name, nil))
		deleted, err := f.Directory.OperatedTenant(f.Context(), operator, f.tenant.Name)
		if f.ok(err); deleted.Status != rolecall.TenantDeleted || deleted.PurgeAt != f.clock.Now().Add(aDay) || deleted.UpdatedAt != f.clock.Now() {
			t.Errorf("deleted it is %+v", deleted)
		}
		f.clock.advance(aDay)
		for range 3 { // before, during and after the purge
			f.is(restore(), rolecall.ErrNotFound)
			f.is(errorOf(f.Directory.OperatedTenant(f.Context(), operator, f.tenant.Name)), rolecall.ErrNotFound)
			f.is(f.Directory.DeleteTenant(f.Context(), access.Command, f.tenant.Name, nil), rolecall.ErrNotFound)
			f.clock.advance(time.Minute)
			f.ok(f.Node.Purge(f.Context()))
		}
	})
}

// An operator who may delete a tenant may restore it. For others, it does not exist.
func TestAnOperatorKeyRestoresItsTenantsOnly(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		own, other := f.operates("Own", f.tenant.Name), f.operates("Other", f.newTenant("other").Name)
		f.ok(f.Directory.DeleteTenant(f.Context(), own, f.tenant.Name, nil))
		_, foreign := f.Directory.RestoreTenant(f.Context(), other, f.tenant.Name, "")
		_, unknown := f.Directory.RestoreTenant(f.Context(), other, "unknown", "")
		if f.is(foreign, rolecall.ErrNotFound); foreign.Error() != unknown.Error() {
			t.Errorf("a foreign tenant is told from an unknown one: %v, %v", foreign, unknown)
		}
		f.is(errorOf(f.Directory.OperatedTenant(f.Context(), other, f.tenant.Name)), rolecall.ErrNotFound)
		listed := func(c access.Caller) (names []string) {
			page, err := f.Directory.OperatedTenants(f.Context(), c, rolecall.TenantDeleted, "", 10)
			f.ok(err)
			for _, tenant := range page.Items {
				names = append(names, tenant.Name)
			}
			return names
		}
		if got, foreign := listed(own), listed(other); !slices.Equal(got, []string{f.tenant.Name}) || foreign != nil {
			t.Errorf("listed are %q, and for another key %q", got, foreign)
		}
		f.ok(errorOf(f.Directory.RestoreTenant(f.Context(), own, f.tenant.Name, "")))
	})
}

// Mail waits while its tenant is deleted. It is sent after a restore, and deleted by a
// purge.
func TestMailWaitsWhileItsTenantIsDeleted(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		token := f.invite(f.user("ada").ID)
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, f.tenant.Name, nil))
		server := mailtest.Start(f, mailtest.Options{})
		node, stop := f.sender(server)
		f.eventually(func() bool { return f.dueIn() == 30*time.Second })
		stop()
		if got := node.Access.Outbox.Counts(); got != (outbox.Counts{}) || len(server.Messages()) != 0 {
			t.Errorf("counted were %+v, %d came", got, len(server.Messages()))
		}
		f.ok(errorOf(f.Directory.RestoreTenant(f.Context(), access.Command, f.tenant.Name, "")))
		f.clock.advance(30 * time.Second)
		_, stop = f.sender(server)
		f.eventually(func() bool { return f.waiting() == 0 })
		stop()
		if got := server.Messages(); len(got) != 1 || secret.Token(got[0].Token()) != token {
			t.Errorf("came: %+v", got)
		}
		f.invite(f.user("eve").ID)
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, f.tenant.Name, nil))
		f.clock.advance(aDay + time.Minute)
		f.ok(f.Node.Purge(f.Context()))
		if n := f.waiting(); n != 0 {
			t.Errorf("%d mails of a purged tenant wait", n)
		}
	})
}

package directory_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/secret"
)

func TestAnUnknownTenantIsCachedAndFoundByTheNextRequestOrElsewhereWithinASecond(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		other := f.NewWatchingNode()
		f.OK(nodetest.ErrorOf(other.Directory.Tenant(f.Context(), "later")))
		tenant, err := f.Directory.Tenant(f.Context(), "later")
		if f.OK(err); !tenant.ID.IsZero() {
			t.Fatalf("there is a tenant %v", tenant)
		}
		asked := f.DB.During(func() { f.OK(nodetest.ErrorOf(f.Directory.Tenant(f.Context(), "later"))) })
		if len(asked) != 0 {
			t.Errorf("an unknown tenant was looked up again: %q", asked)
		}
		f.NewTenant("later")
		if tenant, err = f.Directory.Tenant(f.Context(), "later"); err != nil || tenant.Name != "later" {
			t.Errorf("the tenant is %v, %v", tenant, err)
		}
		f.Clock.Advance(nodetest.CacheTime)
		if tenant, err = other.Directory.Tenant(f.Context(), "later"); err != nil || tenant.Name != "later" {
			t.Errorf("on another node the tenant is %v, %v", tenant, err)
		}
	})
}

func TestAReplayedTenantHasNoSecretAndNoDeletedUser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		c, key := f.NewOperator("Sign-ups"), nodetest.NewKey()
		draft := rolecall.TenantDraft{Name: "customer", Owner: rolecall.UserDraft{Email: nodetest.Address("customer"), Name: "Carla Customer"}}
		found := func() directory.CreatedTenant {
			created, err := f.Directory.CreateTenant(f.Context(), c, key, draft)
			f.OK(err)
			return created.Value
		}
		first, again := found(), found()
		if first.Token == "" || again.Token != "" {
			t.Errorf("the tokens are %q and %q", first.Token, again.Token)
		}
		if again.Tenant.ID != first.Tenant.ID || again.Owner.Email != first.Owner.Email || again.Invitation.ExpiresAt != first.Invitation.ExpiresAt {
			t.Errorf("the replay is %+v, not %+v", again, first)
		}
		if mails := f.Mails(); len(mails) != 1 || mails[0].Kind != rolecall.MailInvitation || mails[0].To != nodetest.Address("customer") || mails[0].Token != string(first.Token) {
			t.Errorf("the mails are %+v", mails)
		}
		inside := c
		inside.Principal = authz.NewOperatorPrincipal(first.Tenant, c.Operator, f.Clock.Now())
		second, err := f.Directory.CreateUser(f.Context(), inside, nodetest.NewKey(), rolecall.UserDraft{Email: nodetest.Address("second"), Name: "Second Owner"})
		f.OK(err)
		f.OK(f.SignIn.SetPassword(f.Context(), "customer", nodetest.Address("second"), nodetest.Password))
		f.OK(f.Directory.AddOwner(f.Context(), "customer", nodetest.Address("second")))
		f.OK(f.Directory.DeleteUser(f.Context(), inside, first.Owner.ID, nil))
		if gone := found(); gone.Owner.ID != first.Owner.ID || gone.Owner.Email+gone.Owner.Name != "" || second.Value.ID == gone.Owner.ID {
			t.Errorf("the replay shows %+v", gone.Owner)
		}
		f.Is(nodetest.ErrorOf(f.Directory.CreateTenant(f.Context(), f.NewOperator("Some", "customer"), nodetest.NewKey(), draft)), rolecall.ErrPermissionDenied)
		f.Clock.Advance(25 * time.Hour)
		f.OK(f.Node.Purge(f.Context()))
		f.Is(nodetest.ErrorOf(f.Directory.CreateTenant(f.Context(), c, key, draft)), rolecall.ErrTenantExists)
	})
}

// servedBy waits until the node serves the tenant of the fixture. If served is false, it
// waits until the node does not.
func servedBy(f *nodetest.Fixture, node *node.Node, served bool) {
	f.Helper()
	f.Eventually(func() bool {
		tenant, err := node.Directory.Tenant(f.Context(), f.Tenant.Name)
		if err == nil && served && !tenant.ID.IsZero() {
			f.Tenant = tenant
		}
		return err == nil && served != tenant.ID.IsZero()
	})
}

// After its deletion, a tenant is unknown to every caller on every node within a second.
// A restore makes all its data available again, on every node within a second.
func TestADeletedTenantIsRestoredAsItWas(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewMember("ada")
		f.Assign(ada.ID, f.NewRole("Support", "users:read").ID, rolecall.AssignmentDraft{})
		account := f.NewAccount("Nightly import", f.NewRole("Import", "users:create").ID)
		session, bearer := f.LogIn("ada").Token, f.NewAccountToken(account.ID, "users:create").Secret
		invited := f.Invite(f.NewUser("eve").ID)
		held, events := assignmentsOf(f, ada.ID), f.EventTypes(ada.ID)
		other := f.NewWatchingNode()
		living := f.Tenant
		works := func(node *node.Node, wanted error) {
			f.Helper()
			f.Is(nodetest.ErrorOf(f.Authenticate(node, session)), wanted)
			f.Is(nodetest.ErrorOf(node.SignIn.AuthenticateBearer(f.Context(), f.Tenant, string(bearer), "192.0.2.1")), wanted)
		}
		works(f.Node, nil)
		works(other, nil)

		operator := f.NewOperator("Support desk", f.Tenant.Name)
		f.OK(f.Directory.DeleteTenant(f.Context(), operator, f.Tenant.Name, nil))
		servedBy(f, f.Node, false)
		servedBy(f, other, false)
		f.Tenant = rolecall.Tenant{}
		works(f.Node, rolecall.ErrUnauthenticated)
		works(other, rolecall.ErrUnauthenticated)
		f.Is(f.Guess("192.0.2.7", "ada", nodetest.Password), rolecall.ErrWrongCredentials)

		f.Clock.Advance(nodetest.CacheTime)
		f.Tenant = living
		servedBy(f, f.Node, false)
		restored, err := f.Directory.RestoreTenant(f.Context(), operator, f.Tenant.Name, "deleted by mistake")
		f.OK(err)
		if restored.Status != rolecall.TenantActive || restored.PurgeAt != 0 || restored.Name != living.Name || restored.UpdatedAt != f.Clock.Now() || restored.Version <= living.Version {
			t.Errorf("restored is %+v", restored)
		}
		again, err := f.Directory.RestoreTenant(f.Context(), operator, f.Tenant.Name, "a repeat")
		if f.OK(err); again.Version != restored.Version {
			t.Errorf("a repeat restores %+v", again)
		}
		servedBy(f, f.Node, true)
		f.Clock.Advance(nodetest.CacheTime) // another node can cache for this time that the tenant is unknown
		servedBy(f, other, true)
		works(f.Node, nil)
		works(other, nil)
		f.OK(f.Guess("192.0.2.7", "ada", nodetest.Password))
		if got := assignmentsOf(f, ada.ID); !slices.EqualFunc(got, held, func(a, b rolecall.Assignment) bool { return a.Role.ID == b.Role.ID && a.GrantedAt == b.GrantedAt }) {
			t.Errorf("ada holds %+v, not %+v", got, held)
		}
		if got := f.EventTypes(ada.ID); !slices.Equal(got[len(got)-len(events):], events) {
			t.Errorf("of ada tell %v, not %v", got, events)
		}
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(invited, nodetest.AnotherPassword)))
		f.Owner = f.CallerOf(f.LogIn("owner"))
		happened := f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(f.Tenant.ID), Limit: 10})
		if len(happened) < 2 || happened[0].Type != rolecall.EventTenantRestored || happened[0].Reason != "deleted by mistake" || happened[1].Type != rolecall.EventTenantDeleted ||
			happened[0].Actor != operator.Actor() || happened[1].Actor != operator.Actor() {
			t.Errorf("of the tenant tell %+v", happened)
		}
	})
}

func TestASuspendedTenantIsRestoredSuspended(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.OK(nodetest.ErrorOf(f.Directory.SuspendTenant(f.Context(), access.Command, f.Tenant.Name, "")))
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, f.Tenant.Name, nil))
		restored, err := f.Directory.RestoreTenant(f.Context(), access.Command, f.Tenant.Name, "")
		if f.OK(err); restored.Status != rolecall.TenantSuspended {
			t.Errorf("it is %s", restored.Status)
		}
	})
}

func TestATenantCanBeRestoredForADay(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		restore := func() error {
			return nodetest.ErrorOf(f.Directory.RestoreTenant(f.Context(), access.Command, f.Tenant.Name, ""))
		}
		operator := f.NewOperator("Support desk")
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, f.Tenant.Name, nil))
		f.Clock.Advance(nodetest.Day - time.Microsecond)
		f.OK(f.Node.Purge(f.Context()))
		f.OK(restore())
		f.OK(f.Guess("192.0.2.7", "owner", nodetest.Password))
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, f.Tenant.Name, nil))
		deleted, err := f.Directory.OperatedTenant(f.Context(), operator, f.Tenant.Name)
		if f.OK(err); deleted.Status != rolecall.TenantDeleted || deleted.PurgeAt != f.Clock.Now().Add(nodetest.Day) || deleted.UpdatedAt != f.Clock.Now() {
			t.Errorf("deleted it is %+v", deleted)
		}
		f.Clock.Advance(nodetest.Day)
		for range 3 { // before, during and after the purge
			f.Is(restore(), rolecall.ErrNotFound)
			f.Is(nodetest.ErrorOf(f.Directory.OperatedTenant(f.Context(), operator, f.Tenant.Name)), rolecall.ErrNotFound)
			f.Is(f.Directory.DeleteTenant(f.Context(), access.Command, f.Tenant.Name, nil), rolecall.ErrNotFound)
			f.Clock.Advance(time.Minute)
			f.OK(f.Node.Purge(f.Context()))
		}
	})
}

// An operator who may delete a tenant may restore it. For others, it does not exist.
func TestAnOperatorKeyRestoresItsTenantsOnly(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		own, other := f.NewOperator("Own", f.Tenant.Name), f.NewOperator("Other", f.NewTenant("other").Name)
		f.OK(f.Directory.DeleteTenant(f.Context(), own, f.Tenant.Name, nil))
		_, foreign := f.Directory.RestoreTenant(f.Context(), other, f.Tenant.Name, "")
		_, unknown := f.Directory.RestoreTenant(f.Context(), other, "unknown", "")
		if f.Is(foreign, rolecall.ErrNotFound); foreign.Error() != unknown.Error() {
			t.Errorf("a foreign tenant is told from an unknown one: %v, %v", foreign, unknown)
		}
		f.Is(nodetest.ErrorOf(f.Directory.OperatedTenant(f.Context(), other, f.Tenant.Name)), rolecall.ErrNotFound)
		listed := func(c access.Caller) (names []string) {
			page, err := f.Directory.OperatedTenants(f.Context(), c, rolecall.TenantDeleted, "", 10)
			f.OK(err)
			for _, tenant := range page.Items {
				names = append(names, tenant.Name)
			}
			return names
		}
		if got, foreign := listed(own), listed(other); !slices.Equal(got, []string{f.Tenant.Name}) || foreign != nil {
			t.Errorf("listed are %q, and for another key %q", got, foreign)
		}
		f.OK(nodetest.ErrorOf(f.Directory.RestoreTenant(f.Context(), own, f.Tenant.Name, "")))
	})
}

// Mail waits while its tenant is deleted. It is sent after a restore, and deleted by a
// purge.
func TestMailWaitsWhileItsTenantIsDeleted(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		token := f.Invite(f.NewUser("ada").ID)
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, f.Tenant.Name, nil))
		server := mailtest.Start(f, mailtest.Options{})
		node, stop := f.NewSender(server)
		f.Eventually(func() bool { return f.DueIn() == 30*time.Second })
		stop()
		if got := node.Access.Outbox.Counts(); got != (outbox.Counts{}) || len(server.Messages()) != 0 {
			t.Errorf("counted were %+v, %d came", got, len(server.Messages()))
		}
		f.OK(nodetest.ErrorOf(f.Directory.RestoreTenant(f.Context(), access.Command, f.Tenant.Name, "")))
		f.Clock.Advance(30 * time.Second)
		_, stop = f.NewSender(server)
		f.Eventually(func() bool { return f.WaitingMails() == 0 })
		stop()
		if got := server.Messages(); len(got) != 1 || secret.Token(got[0].Token()) != token {
			t.Errorf("came: %+v", got)
		}
		f.Invite(f.NewUser("eve").ID)
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, f.Tenant.Name, nil))
		f.Clock.Advance(nodetest.Day + time.Minute)
		f.OK(f.Node.Purge(f.Context()))
		if n := f.WaitingMails(); n != 0 {
			t.Errorf("%d mails of a purged tenant wait", n)
		}
	})
}

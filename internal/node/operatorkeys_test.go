package node_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// operatorKey creates an operator key that expires after an hour. Without names of
// tenants, the key is valid for all tenants.
func (f *fixture) operatorKey(name string, tenants ...string) (rolecall.OperatorKey, secret.Token) {
	f.Helper()
	key, token, err := f.Directory.CreateOperatorKey(f.Context(), rolecall.OperatorKeyDraft{Name: name, Tenants: tenants, Lifetime: time.Hour})
	f.ok(err)
	return key, token
}

// operator returns a request with the key in the fixture's tenant.
func (f *fixture) operator(node *node.Node, token secret.Token) (access.Caller, error) {
	p, err := node.SignIn.AuthenticateBearer(f.Context(), f.tenant, string(token), "192.0.2.1")
	return access.Caller{Principal: p, RequestID: "request", Source: "192.0.2.1"}, err
}

// operatorInside returns a request with a new operator key in the fixture's tenant.
func (f *fixture) operatorInside() access.Caller {
	f.Helper()
	_, key := f.operatorKey("Provisioning")
	c, err := f.operator(f.Node, key)
	f.ok(err)
	return c
}

// operates returns a request about tenants with a new operator key.
func (f *fixture) operates(name string, tenants ...string) access.Caller {
	f.Helper()
	_, token := f.operatorKey(name, tenants...)
	p, err := f.SignIn.AuthenticateOperator(f.Context(), string(token), "192.0.2.1")
	f.ok(err)
	return access.Caller{Principal: p, RequestID: "request", Source: "192.0.2.1"}
}

func TestAnOperatorActsInATenantWithoutBeingAUser(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		key, token := f.operatorKey("Sign-ups")
		c, err := f.operator(f.Node, token)
		f.ok(err)
		role, err := f.Directory.CreateRole(f.Context(), c, newKey(), rolecall.RoleDraft{Name: "Made", Permissions: []string{"*:*", "shop/*:*"}})
		f.ok(err)
		user := f.user("ada")
		a, _, err := f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(user.ID), role.Value.ID, rolecall.AssignmentDraft{})
		f.ok(err)
		if !a.GrantedBy.IsZero() {
			t.Errorf("granted by %s", a.GrantedBy)
		}
		f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			events, err := tx.Events(rolecall.EventQuery{Actor: rolecall.AnyID(key.ID), Limit: 10})
			want := rolecall.Actor{Type: rolecall.ActorOperator, ID: rolecall.UserID(key.ID), Via: "http"}
			for _, e := range events.Items {
				if e.Actor != want || e.RequestID != "request" || e.Source != "192.0.2.1" {
					t.Errorf("%s is by %+v", e.Type, e.Actor)
				}
			}
			if len(events.Items) != 2 {
				t.Errorf("%d events of the operator", len(events.Items))
			}
			return err
		}))
		f.is(errorOf(f.Directory.User(f.Context(), c, rolecall.UserID(key.ID))), rolecall.ErrNotFound)
	})
}

// flipped returns the key with a different last character.
func flipped(token secret.Token) secret.Token {
	last := len(token) - 1
	if token[last] == '0' {
		return token[:last] + "1"
	}
	return token[:last] + "0"
}

func TestAnOperatorKeyIsValidForItsTenantsUntilItEnds(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		other := f.newTenant("other")
		acme := f.tenant
		_, all := f.operatorKey("All")
		_, some := f.operatorKey("Some", "acme")
		for _, tenant := range []rolecall.Tenant{acme, other, {}} {
			f.tenant = tenant
			for token, known := range map[secret.Token]bool{
				all: !tenant.ID.IsZero(), some: tenant.ID == acme.ID, secret.NewOperatorKey(): false, flipped(all): false, "rco_": false, "": false,
			} {
				var want error
				if !known {
					want = rolecall.ErrUnauthenticated
				}
				f.is(errorOf(f.operator(f.Node, token)), want)
			}
		}
		f.tenant = acme
		f.tenant.Status = rolecall.TenantSuspended
		f.ok(errorOf(f.operator(f.Node, some)))
		f.clock.advance(time.Hour - time.Microsecond)
		f.ok(errorOf(f.operator(f.Node, some)))
		f.clock.advance(time.Microsecond)
		f.is(errorOf(f.operator(f.Node, some)), rolecall.ErrUnauthenticated)
		f.is(errorOf(f.SignIn.AuthenticateOperator(f.Context(), string(all), "192.0.2.1")), rolecall.ErrUnauthenticated)
	})
}

func TestAnOperatorKeyIsReadOnceAndItsUseWrittenOnceAMinute(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, token := f.operatorKey("Sign-ups")
		node := f.watchingNode()
		lastUse := func() rolecall.Time {
			keys, err := node.Directory.OperatorKeys(f.Context(), rolecall.OperatorKeyID{}, 10)
			f.ok(err)
			return keys[0].LastUsedAt
		}
		f.ok(errorOf(f.operator(node, token)))
		if lastUse() != start {
			t.Errorf("last used at %v", lastUse())
		}
		for range 3 {
			f.ok(errorOf(f.operator(f.Node, token)))
			asked := f.db.during(func() { f.ok(errorOf(f.operator(f.Node, token))) })
			if len(asked) != 0 {
				t.Errorf("a known key asks %q", asked)
			}
		}
		f.clock.advance(rolecall.TouchInterval)
		f.ok(errorOf(f.operator(f.Node, token)))
		if lastUse() != start.Add(rolecall.TouchInterval) {
			t.Errorf("last used at %v", lastUse())
		}
	})
}

func TestARevokedOperatorKeyEndsOnEveryNode(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		key, token := f.operatorKey("Sign-ups")
		unwatched, watching := f.node(), f.watchingNode()
		for _, node := range []*node.Node{f.Node, unwatched, watching} {
			f.ok(errorOf(f.operator(node, token)))
			if operated, err := node.SignIn.Operated(f.Context()); !operated || err != nil {
				t.Errorf("operated is %v, %v", operated, err)
			}
		}
		f.ok(f.Directory.RevokeOperatorKey(f.Context(), key.ID))
		f.is(f.Directory.RevokeOperatorKey(f.Context(), key.ID), rolecall.ErrNotFound)
		f.is(errorOf(f.operator(f.Node, token)), rolecall.ErrUnauthenticated)
		f.eventually(func() bool { _, err := f.operator(watching, token); return err != nil })
		f.clock.advance(aSecond)
		f.is(errorOf(f.operator(unwatched, token)), rolecall.ErrUnauthenticated)
		for _, node := range []*node.Node{f.Node, unwatched, watching} {
			if operated, err := node.SignIn.Operated(f.Context()); operated || err != nil {
				t.Errorf("without a key operated is %v, %v", operated, err)
			}
		}
		f.operatorKey("Next")
		f.clock.advance(aSecond)
		if operated, err := unwatched.SignIn.Operated(f.Context()); !operated || err != nil {
			t.Errorf("with a new key operated is %v, %v", operated, err)
		}
	})
}

func TestUnknownKeysAreLimitedPerSource(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{Source: 3}, func(f *fixture) {
		_, known := f.operatorKey("Known")
		_, unknownHere := f.operatorKey("Unknown here")
		f.ok(errorOf(f.operator(f.Node, known)))
		for i := range 5 {
			want := rolecall.ErrUnauthenticated
			if i >= 3 {
				want = rolecall.ErrTooManyAttempts
			}
			f.is(errorOf(f.operator(f.Node, secret.NewOperatorKey())), want)
		}
		for name, refused := range map[string]func() error{
			"of this node":   func() error { return errorOf(f.operator(f.Node, secret.NewOperatorKey())) },
			"a key not seen": func() error { return errorOf(f.operator(f.Node, unknownHere)) },
		} {
			asked := f.db.during(func() { f.is(refused(), rolecall.ErrTooManyAttempts) })
			if len(asked) != 0 {
				t.Errorf("%s: asks %q", name, asked)
			}
		}
		f.ok(errorOf(f.operator(f.Node, known)))
		f.ok(errorOf(f.SignIn.AuthenticateBearer(f.Context(), f.tenant, string(unknownHere), "198.51.100.7")))
		asked := f.db.during(func() { f.is(errorOf(f.operator(f.node(), secret.NewOperatorKey())), rolecall.ErrTooManyAttempts) })
		if want := []string{"view", "operator key by token", "update", "count in 1 buckets"}; !slices.Equal(asked, want) {
			t.Errorf("another node asks %q, not %q", asked, want)
		}
		asked = f.db.during(func() {
			for range 100 {
				f.is(errorOf(f.SignIn.AuthenticateBearer(f.Context(), f.tenant, fmt.Sprintf("rco_%049d", 0), "192.0.2.9")), rolecall.ErrUnauthenticated)
			}
		})
		if len(asked) != 0 {
			t.Errorf("what is no key asks %q", asked)
		}
		f.clock.advance(10 * time.Minute)
		f.ok(errorOf(f.operator(f.Node, unknownHere)))
	})
}

func TestAReplayedTenantHasNoSecretAndNoDeletedUser(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		c, key := f.operates("Sign-ups"), newKey()
		draft := rolecall.TenantDraft{Name: "customer", Owner: rolecall.UserDraft{Email: address("customer"), Name: "Carla Customer"}}
		found := func() directory.CreatedTenant {
			created, err := f.Directory.CreateTenant(f.Context(), c, key, draft)
			f.ok(err)
			return created.Value
		}
		first, again := found(), found()
		if first.Token == "" || again.Token != "" {
			t.Errorf("the tokens are %q and %q", first.Token, again.Token)
		}
		if again.Tenant.ID != first.Tenant.ID || again.Owner.Email != first.Owner.Email || again.Invitation.ExpiresAt != first.Invitation.ExpiresAt {
			t.Errorf("the replay is %+v, not %+v", again, first)
		}
		if mails := f.mails(); len(mails) != 1 || mails[0].Kind != rolecall.MailInvitation || mails[0].To != address("customer") || mails[0].Token != string(first.Token) {
			t.Errorf("the mails are %+v", mails)
		}
		inside := c
		inside.Principal = authz.NewOperatorPrincipal(first.Tenant, c.Operator, f.clock.Now())
		second, err := f.Directory.CreateUser(f.Context(), inside, newKey(), rolecall.UserDraft{Email: address("second"), Name: "Second Owner"})
		f.ok(err)
		f.ok(f.SignIn.SetPassword(f.Context(), "customer", address("second"), password))
		f.ok(f.Directory.AddOwner(f.Context(), "customer", address("second")))
		f.ok(f.Directory.DeleteUser(f.Context(), inside, first.Owner.ID, nil))
		if gone := found(); gone.Owner.ID != first.Owner.ID || gone.Owner.Email+gone.Owner.Name != "" || second.Value.ID == gone.Owner.ID {
			t.Errorf("the replay shows %+v", gone.Owner)
		}
		f.is(errorOf(f.Directory.CreateTenant(f.Context(), f.operates("Some", "customer"), newKey(), draft)), rolecall.ErrPermissionDenied)
		f.clock.advance(25 * time.Hour)
		f.ok(f.Node.Purge(f.Context()))
		f.is(errorOf(f.Directory.CreateTenant(f.Context(), c, key, draft)), rolecall.ErrTenantExists)
	})
}

// operatorEvents returns the types of the newest events of the operators' log, the newest first.
func (f *fixture) operatorEvents(c access.Caller) (types []rolecall.EventType) {
	f.Helper()
	page, err := f.Directory.OperatorEvents(f.Context(), c, directory.EventListing{Limit: 200})
	f.ok(err)
	for _, e := range page.Items {
		types = append(types, e.Type)
	}
	return types
}

func TestTheOperatorsLogOutlivesTenants(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		operator := f.operates("Sign-ups")
		tenant := f.newTenant("short-lived")
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, tenant.Name, nil))
		before, err := f.Directory.OperatorCheckpoint(f.Context(), operator, "https://id.example.com")
		f.ok(err)
		f.clock.advance(rolecall.TenantRestorable + access.SettleTime + time.Second)
		f.ok(f.Node.Purge(f.Context()))
		f.clock.advance(20 * 365 * aDay)
		f.ok(f.Node.Purge(f.Context()))
		f.ok(f.store.View(f.Context(), tenant.ID, func(tx *store.Tx) error {
			page, err := tx.Events(rolecall.EventQuery{Limit: 1})
			if len(page.Items) > 0 {
				f.Error("the tenant was not purged")
			}
			return err
		}))
		page, err := f.Directory.OperatorEvents(f.Context(), operator, directory.EventListing{Subject: rolecall.AnyID(tenant.ID), Limit: 9})
		f.ok(err)
		if len(page.Items) != 2 || page.Items[0].Type != rolecall.EventTenantDeleted || page.Items[1].Type != rolecall.EventTenantCreated ||
			string(page.Items[0].Values.Before) != `{"name":"short-lived","displayName":"short-lived"}` {
			f.Fatalf("the events are %+v", page.Items)
		}
		report, err := f.Access.AuditLog.Verify(f.Context(), auditlog.Verification{Notes: [][]byte{[]byte(before.Note)}})
		if err != nil || len(report.Problems) > 0 || report.Log.Size < 4 || report.Log.Removed != 0 {
			f.Errorf("the log is %+v, %v", report, err)
		}
		if _, _, err := f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: f.tenant.Name, Owner: rolecall.UserDraft{Email: address("owner"), Name: "Olga Owner"}}, password); err == nil {
			f.Error("a name was used twice")
		}
		if all := f.operatorEvents(operator); len(all) != int(report.Log.Size) {
			f.Errorf("after a failed creation, the log has %v", all)
		}
	})
}

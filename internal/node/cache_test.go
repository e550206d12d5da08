package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
)

// aSecond is the longest time for which a node may use cached data after another process
// has changed the data.
const aSecond = time.Second

func TestChangesApplyAtOnceAndOnOtherNodesWithinASecond(t *testing.T) {
	can := func(permission rolecall.Permission) func(*authz.Principal) bool {
		return func(p *authz.Principal) bool { return p != nil && p.Reach(permission).IsEverywhere() }
	}
	read, create := can(rolecall.UsersRead), can(rolecall.UsersCreate)
	signedIn := func(p *authz.Principal) bool { return p != nil }
	named := func(name string) func(*authz.Principal) bool {
		return func(p *authz.Principal) bool { return p != nil && p.User.Name == name }
	}
	for _, c := range []struct {
		what   string
		holds  func(*authz.Principal) bool // the principal of a user with a role that allows users:read
		after  bool
		change func(*fixture, rolecall.User, rolecall.Role, secret.Token)
	}{
		{"a role is given", create, true, func(f *fixture, u rolecall.User, _ rolecall.Role, _ secret.Token) {
			f.assign(u.ID, f.role("Creator", "users:create").ID, rolecall.AssignmentDraft{})
		}},
		{"a role is taken", read, false, func(f *fixture, u rolecall.User, r rolecall.Role, _ secret.Token) {
			f.ok(f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(u.ID), r.ID))
		}},
		{"an assignment is replaced", read, false, func(f *fixture, u rolecall.User, r rolecall.Role, _ secret.Token) {
			f.assign(u.ID, r.ID, rolecall.AssignmentDraft{Departments: []string{"Sales"}})
		}},
		{"a role gets less", read, false, func(f *fixture, _ rolecall.User, r rolecall.Role, _ secret.Token) {
			f.ok(errorOf(f.Directory.UpdateRole(f.Context(), f.owner, r.ID, rolecall.RolePatch{Permissions: rolecall.Some([]string{})}, nil)))
		}},
		{"a role gets more", create, true, func(f *fixture, _ rolecall.User, r rolecall.Role, _ secret.Token) {
			f.ok(errorOf(f.Directory.UpdateRole(f.Context(), f.owner, r.ID, rolecall.RolePatch{Permissions: rolecall.Some([]string{"users:*"})}, nil)))
		}},
		{"a role is deleted", read, false, func(f *fixture, _ rolecall.User, r rolecall.Role, _ secret.Token) {
			f.ok(f.Directory.DeleteRole(f.Context(), f.owner, r.ID, true, nil))
		}},
		{"the user is suspended", signedIn, false, func(f *fixture, u rolecall.User, _ rolecall.Role, _ secret.Token) {
			f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, u.ID, "")))
		}},
		{"the user is deleted", signedIn, false, func(f *fixture, u rolecall.User, _ rolecall.Role, _ secret.Token) {
			f.ok(f.Directory.DeleteUser(f.Context(), f.owner, u.ID, nil))
		}},
		{"the user is renamed", named("Renamed"), true, func(f *fixture, u rolecall.User, _ rolecall.Role, _ secret.Token) {
			f.ok(errorOf(f.Directory.UpdateUser(f.Context(), f.owner, u.ID, rolecall.UserPatch{Name: rolecall.Some("Renamed")}, nil)))
		}},
		{"the session is ended", signedIn, false, func(f *fixture, _ rolecall.User, _ rolecall.Role, token secret.Token) {
			f.ok(f.SignIn.Logout(f.Context(), f.attempt(token)))
		}},
		{"a sign-in replaces it", signedIn, false, func(f *fixture, _ rolecall.User, _ rolecall.Role, token secret.Token) {
			f.ok(errorOf(f.SignIn.Login(f.Context(), f.attempt(token), address("ada"), password)))
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			onEachStore(t, func(f *fixture) {
				user, role := f.member("ada"), f.role("Reader", "users:read")
				f.assign(user.ID, role.ID, rolecall.AssignmentDraft{})
				token, far, watching := f.signIn("ada").Token, f.node(), f.watchingNode()
				for _, node := range []*node.Node{f.Node, far, watching} {
					if p, err := f.authenticate(node, token); err != nil || c.holds(p) == c.after {
						t.Fatalf("before: %v, %v", p, err)
					}
				}
				c.change(f, user, role, token)
				if p, _ := f.authenticate(f.Node, token); c.holds(p) != c.after {
					t.Error("the next request does not see it")
				}
				f.eventually(func() bool { // the clock stands still, so only an invalidation can expire the cache
					p, _ := f.authenticate(watching, token)
					return c.holds(p) == c.after
				})
				f.clock.advance(aSecond)
				if p, _ := f.authenticate(far, token); c.holds(p) != c.after {
					t.Error("after a second another node does not see it")
				}
			})
		})
	}
}

func TestChangesByTheCommandLineAreSeenWithinASecond(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		token, command := f.signIn("ada").Token, f.node()
		f.ok(errorOf(f.authenticate(f.Node, token)))
		f.ok(command.SignIn.SetPassword(f.Context(), f.tenant.Name, address("ada"), "another "+password))
		f.clock.advance(aSecond)
		f.is(errorOf(f.authenticate(f.Node, token)), rolecall.ErrUnauthenticated)

		f.ok(errorOf(f.Directory.Tenant(f.Context(), f.tenant.Name)))
		watching := f.watchingNode()
		f.ok(errorOf(watching.Directory.Tenant(f.Context(), f.tenant.Name)))
		f.ok(errorOf(command.Directory.SuspendTenant(f.Context(), access.Command, f.tenant.Name, "")))
		f.eventually(func() bool {
			tenant, err := watching.Directory.Tenant(f.Context(), f.tenant.Name)
			return err == nil && tenant.Status == rolecall.TenantSuspended
		})
		f.clock.advance(aSecond)
		tenant, err := f.Directory.Tenant(f.Context(), f.tenant.Name)
		f.ok(err)
		if tenant.Status != rolecall.TenantSuspended {
			t.Errorf("the tenant is %s", tenant.Status)
		}
		f.ok(command.Directory.DeleteTenant(f.Context(), access.Command, f.tenant.Name, nil))
		f.clock.advance(aSecond)
		if tenant, err = f.Directory.Tenant(f.Context(), f.tenant.Name); err != nil || !tenant.ID.IsZero() {
			t.Errorf("the tenant is %v, %v", tenant, err)
		}
	})
}

func TestAnUnknownTenantIsCachedAndFoundByTheNextRequestOrElsewhereWithinASecond(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		other := f.watchingNode()
		f.ok(errorOf(other.Directory.Tenant(f.Context(), "later")))
		tenant, err := f.Directory.Tenant(f.Context(), "later")
		if f.ok(err); !tenant.ID.IsZero() {
			t.Fatalf("there is a tenant %v", tenant)
		}
		asked := f.db.during(func() { f.ok(errorOf(f.Directory.Tenant(f.Context(), "later"))) })
		if len(asked) != 0 {
			t.Errorf("an unknown tenant was looked up again: %q", asked)
		}
		f.newTenant("later")
		if tenant, err = f.Directory.Tenant(f.Context(), "later"); err != nil || tenant.Name != "later" {
			t.Errorf("the tenant is %v, %v", tenant, err)
		}
		f.clock.advance(aSecond)
		if tenant, err = other.Directory.Tenant(f.Context(), "later"); err != nil || tenant.Name != "later" {
			t.Errorf("on another node the tenant is %v, %v", tenant, err)
		}
	})
}

func TestAnAssignmentExpiresInTheCache(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, role := f.member("ada"), f.role("Reader", "users:read")
		end := f.clock.Now().Add(500 * time.Millisecond)
		f.assign(user.ID, role.ID, rolecall.AssignmentDraft{ExpiresAt: &end})
		token := f.signIn("ada").Token
		for _, at := range []struct {
			moment rolecall.Time
			holds  bool
		}{{end - 1, true}, {end, false}} {
			f.clock.until(at.moment)
			p, err := f.authenticate(f.Node, token)
			f.ok(err)
			if got := !p.Reach(rolecall.UsersRead).IsNowhere(); got != at.holds || (len(p.Assignments) == 1) != at.holds {
				t.Errorf("at %v the role holds: %v", at.moment, got)
			}
		}
	})
}

func TestACachedSessionNeedsNoQuery(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		token := f.signIn("owner").Token
		f.ok(errorOf(f.authenticate(f.Node, token)))
		asked := f.db.during(func() {
			for range 100 {
				f.ok(errorOf(f.authenticate(f.Node, token)))
			}
		})
		if len(asked) != 0 {
			t.Errorf("the store was asked %q", asked)
		}
	})
}

func TestOneTenantsTokenIsUnknownToAnother(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		token := f.signIn("owner").Token
		f.ok(errorOf(f.authenticate(f.Node, token)))
		other := f.newTenant("other")
		_, err := f.SignIn.Authenticate(f.Context(), other, []secret.Token{token}, true)
		f.is(err, rolecall.ErrUnauthenticated)
		_, err = f.SignIn.Authenticate(f.Context(), rolecall.Tenant{}, []secret.Token{token}, true)
		f.is(err, rolecall.ErrUnauthenticated)
		f.ok(f.SignIn.Logout(f.Context(), access.Anonymous{Tenant: other, TenantName: "other", Presented: []secret.Token{token}}))
		f.ok(errorOf(f.authenticate(f.Node, token)))
		if got := f.eventTypes(f.owner.User.ID); slices.Contains(got, rolecall.EventSessionEnded) {
			t.Errorf("a logout in another tenant ended a session: %v", got)
		}
	})
}

package node_test

import (
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
)

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
		change func(*nodetest.Fixture, rolecall.User, rolecall.Role, secret.Token)
	}{
		{"a role is given", create, true, func(f *nodetest.Fixture, u rolecall.User, _ rolecall.Role, _ secret.Token) {
			f.Assign(u.ID, f.NewRole("Creator", "users:create").ID, rolecall.AssignmentDraft{})
		}},
		{"a role is taken", read, false, func(f *nodetest.Fixture, u rolecall.User, r rolecall.Role, _ secret.Token) {
			f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(u.ID), r.ID))
		}},
		{"an assignment is replaced", read, false, func(f *nodetest.Fixture, u rolecall.User, r rolecall.Role, _ secret.Token) {
			f.Assign(u.ID, r.ID, rolecall.AssignmentDraft{Departments: []string{"Sales"}})
		}},
		{"a role gets less", read, false, func(f *nodetest.Fixture, _ rolecall.User, r rolecall.Role, _ secret.Token) {
			f.OK(nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), f.Owner, r.ID, rolecall.RolePatch{Permissions: rolecall.Some([]string{})}, nil)))
		}},
		{"a role gets more", create, true, func(f *nodetest.Fixture, _ rolecall.User, r rolecall.Role, _ secret.Token) {
			f.OK(nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), f.Owner, r.ID, rolecall.RolePatch{Permissions: rolecall.Some([]string{"users:*"})}, nil)))
		}},
		{"a role is deleted", read, false, func(f *nodetest.Fixture, _ rolecall.User, r rolecall.Role, _ secret.Token) {
			f.OK(f.Directory.DeleteRole(f.Context(), f.Owner, r.ID, true, nil))
		}},
		{"the user is suspended", signedIn, false, func(f *nodetest.Fixture, u rolecall.User, _ rolecall.Role, _ secret.Token) {
			f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, u.ID, "")))
		}},
		{"the user is deleted", signedIn, false, func(f *nodetest.Fixture, u rolecall.User, _ rolecall.Role, _ secret.Token) {
			f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, u.ID, nil))
		}},
		{"the user is renamed", named("Renamed"), true, func(f *nodetest.Fixture, u rolecall.User, _ rolecall.Role, _ secret.Token) {
			f.OK(nodetest.ErrorOf(f.Directory.UpdateUser(f.Context(), f.Owner, u.ID, rolecall.UserPatch{Name: rolecall.Some("Renamed")}, nil)))
		}},
		{"the session is ended", signedIn, false, func(f *nodetest.Fixture, _ rolecall.User, _ rolecall.Role, token secret.Token) {
			f.OK(f.SignIn.Logout(f.Context(), f.Attempt(token)))
		}},
		{"a sign-in replaces it", signedIn, false, func(f *nodetest.Fixture, _ rolecall.User, _ rolecall.Role, token secret.Token) {
			f.OK(nodetest.ErrorOf(f.SignIn.Login(f.Context(), f.Attempt(token), nodetest.Address("ada"), nodetest.Password)))
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
				user, role := f.NewMember("ada"), f.NewRole("Reader", "users:read")
				f.Assign(user.ID, role.ID, rolecall.AssignmentDraft{})
				token, far, watching := f.LogIn("ada").Token, f.NewNode(), f.NewWatchingNode()
				for _, node := range []*node.Node{f.Node, far, watching} {
					if p, err := f.Authenticate(node, token); err != nil || c.holds(p) == c.after {
						t.Fatalf("before: %v, %v", p, err)
					}
				}
				c.change(f, user, role, token)
				if p, _ := f.Authenticate(f.Node, token); c.holds(p) != c.after {
					t.Error("the next request does not see it")
				}
				f.Eventually(func() bool { // the clock stands still, so only an invalidation can expire the cache
					p, _ := f.Authenticate(watching, token)
					return c.holds(p) == c.after
				})
				f.Clock.Advance(nodetest.CacheTime)
				if p, _ := f.Authenticate(far, token); c.holds(p) != c.after {
					t.Error("after a second another node does not see it")
				}
			})
		})
	}
}

func TestChangesByTheCommandLineAreSeenWithinASecond(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		token, command := f.LogIn("ada").Token, f.NewNode()
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, token)))
		f.OK(command.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address("ada"), "another "+nodetest.Password))
		f.Clock.Advance(nodetest.CacheTime)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, token)), rolecall.ErrUnauthenticated)

		f.OK(nodetest.ErrorOf(f.Directory.Tenant(f.Context(), f.Tenant.Name)))
		watching := f.NewWatchingNode()
		f.OK(nodetest.ErrorOf(watching.Directory.Tenant(f.Context(), f.Tenant.Name)))
		f.OK(nodetest.ErrorOf(command.Directory.SuspendTenant(f.Context(), access.Command, f.Tenant.Name, "")))
		f.Eventually(func() bool {
			tenant, err := watching.Directory.Tenant(f.Context(), f.Tenant.Name)
			return err == nil && tenant.Status == rolecall.TenantSuspended
		})
		f.Clock.Advance(nodetest.CacheTime)
		tenant, err := f.Directory.Tenant(f.Context(), f.Tenant.Name)
		f.OK(err)
		if tenant.Status != rolecall.TenantSuspended {
			t.Errorf("the tenant is %s", tenant.Status)
		}
		f.OK(command.Directory.DeleteTenant(f.Context(), access.Command, f.Tenant.Name, nil))
		f.Clock.Advance(nodetest.CacheTime)
		if tenant, err = f.Directory.Tenant(f.Context(), f.Tenant.Name); err != nil || !tenant.ID.IsZero() {
			t.Errorf("the tenant is %v, %v", tenant, err)
		}
	})
}

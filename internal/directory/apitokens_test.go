package directory_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
)

func TestATokenCannotActOnItsUsersOwnAccount(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		member := f.NewMember("programmer")
		role := f.NewRole("Shop", "shop/a:b", "service-accounts:update")
		f.Assign(member.ID, role.ID, rolecall.AssignmentDraft{})
		account := f.NewAccount("Import", role.ID)
		c := f.CallerByToken(f.NewUserToken(f.CallerOf(f.LogIn("programmer")), "shop/a:b", "service-accounts:update"))
		denied := []error{
			nodetest.ErrorOf(f.Directory.UpdateUser(f.Context(), c, member.ID, rolecall.UserPatch{Name: rolecall.Some("Renamed")}, nil)),
			nodetest.ErrorOf3(f.Directory.Assignments(f.Context(), c, rolecall.HolderOf(member.ID))),
			nodetest.ErrorOf(f.Directory.UserEvents(f.Context(), c, member.ID, directory.EventListing{Limit: 1})),
			nodetest.ErrorOf(f.Directory.Tokens(f.Context(), c, rolecall.HolderOf(member.ID), nil, 1)),
			f.Directory.RevokeToken(f.Context(), c, rolecall.HolderOf(member.ID), c.Token.ID),
		}
		for _, err := range denied {
			f.Is(err, rolecall.ErrPermissionDenied)
		}
		_, err := f.Directory.CreateToken(f.Context(), c, nodetest.NewKey(), rolecall.HolderOf(account.ID), f.TokenDraft("shop/a:b"))
		f.Is(err, rolecall.ErrSessionRequired)
		user, err := f.Directory.User(f.Context(), c, member.ID)
		f.OK(err)
		if c.ReadableMembers(&user) != rolecall.AllUserMembers {
			t.Error("a token does not read the record of its user")
		}
		o, err := f.Directory.Overview(f.Context(), c, member.ID)
		f.OK(err)
		if o.AssignmentsReadable || o.SessionsReadable || o.EventsReadable || !o.SignInReadable {
			t.Errorf("the overview shows a token %+v", o)
		}
	})
}

// A request with a token cannot exceed the permissions of the token, even if the holder
// could do more. This also applies to assigning and creating roles, and to revoking
// access.
func TestATokenCannotGrantMoreThanItHolds(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		account := f.NewAccount("Sync", f.OwnerRole())
		reader, writer, shop := f.NewRole("Reader", "users:read"), f.NewRole("Writer", "users:update"), f.NewRole("Shop", "shop/a:b")
		c := f.CallerByToken(f.NewAccountToken(account.ID, "users:read", "users:suspend", "roles:assign", "roles:create", "roles:update", "service-accounts:update", "shop/*:*"))
		target := f.NewMember("target")
		give := func(role rolecall.RoleID) error {
			return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(target.ID), role, rolecall.AssignmentDraft{}))
		}
		f.OK(give(reader.ID))
		f.OK(give(shop.ID))
		f.Is(give(writer.ID), rolecall.ErrBeyondOwnPermissions)
		f.Is(nodetest.ErrorOf(f.Directory.CreateRole(f.Context(), c, nodetest.NewKey(), rolecall.RoleDraft{Name: "More", Permissions: []string{"users:*"}})), rolecall.ErrBeyondOwnPermissions)
		f.Assign(target.ID, writer.ID, rolecall.AssignmentDraft{})
		f.Is(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), c, target.ID, "")), rolecall.ErrBeyondOwnPermissions)

		// This also protects the account itself and others with its role.
		f.Is(nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(account.ID), writer.ID, rolecall.AssignmentDraft{})), rolecall.ErrBeyondOwnPermissions)
		f.Is(nodetest.ErrorOf(f.Directory.SuspendServiceAccount(f.Context(), c, account.ID, "")), rolecall.ErrBeyondOwnPermissions)
		f.Is(f.Directory.UnassignRole(f.Context(), c, rolecall.HolderOf(account.ID), f.OwnerRole()), rolecall.ErrBeyondOwnPermissions)
		f.AssignToAccount(account.ID, reader.ID)
		f.Is(nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), c, reader.ID, rolecall.RolePatch{Permissions: rolecall.Some([]string{"users:read", "users:delete"})}, nil)), rolecall.ErrBeyondOwnPermissions)
	})
}

// Users cannot use the grants of their roles to gain permissions. This test checks the
// same for service accounts.
func TestAServiceAccountCannotGrantItselfMore(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		created, err := f.Directory.CreateRole(f.Context(), f.Owner, nodetest.NewKey(), rolecall.RoleDraft{
			Name: "Hands on", Permissions: []string{"roles:update", "service-accounts:update"}, Grants: []string{"shop/*:*", "roles:update", "service-accounts:update"},
		})
		f.OK(err)
		shop := f.NewRole("Shop", "shop/a:b")
		account := f.NewAccount("Sync", created.Value.ID)
		other := f.NewAccount("Other", shop.ID)
		c := f.CallerByToken(f.NewAccountToken(account.ID, "roles:update", "service-accounts:update", "shop/*:*"))
		assign := func(id rolecall.ServiceAccountID) error {
			return nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(id), shop.ID, rolecall.AssignmentDraft{}))
		}
		f.OK(assign(other.ID))
		f.Is(assign(account.ID), rolecall.ErrBeyondOwnPermissions)
		change := rolecall.RolePatch{Permissions: rolecall.Some([]string{"shop/a:b"})}
		f.OK(nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), c, shop.ID, change, nil)))
		f.AssignToAccount(account.ID, shop.ID)
		change.Permissions.Value = []string{"shop/a:b", "shop/c:d"}
		f.Is(nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), c, shop.ID, change, nil)), rolecall.ErrBeyondOwnPermissions)
	})
}

func TestCreatingAServiceAccountTokenNeedsItsPermissions(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		account := f.NewAccount("Sync", f.OwnerRole())
		create := func(c access.Caller, id rolecall.ServiceAccountID, permissions ...string) error {
			return nodetest.ErrorOf(f.Directory.CreateToken(f.Context(), c, nodetest.NewKey(), rolecall.HolderOf(id), f.TokenDraft(permissions...)))
		}
		below := f.CallerWith(nodetest.Holding("service-accounts:*"), nodetest.Holding("shop/*:*"))
		f.Is(create(below, account.ID, "shop/a:b"), rolecall.ErrBeyondOwnPermissions)
		weak := f.NewAccount("Shop", f.NewRole("Shop", "shop/a:*").ID)
		f.OK(create(below, weak.ID, "shop/a:b"))
		f.Is(create(below, weak.ID, "shop/c:d"), rolecall.ErrValidation)
		f.Is(create(below, rolecall.NewID[rolecall.ServiceAccount](nodetest.Start), "shop/a:b"), rolecall.ErrNotFound)
		f.Is(f.Directory.DeleteServiceAccount(f.Context(), below, account.ID, nil), rolecall.ErrBeyondOwnPermissions)
		f.Is(nodetest.ErrorOf(f.Directory.SuspendServiceAccount(f.Context(), below, account.ID, "")), rolecall.ErrBeyondOwnPermissions)
		f.OK(f.Directory.DeleteServiceAccount(f.Context(), below, weak.ID, nil))
	})
}

func TestEventsOfPrograms(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		account := f.NewAccount("Sync", f.OwnerRole())
		token := f.NewAccountToken(account.ID, "users:create")
		c := f.CallerByToken(token)
		made, err := f.Directory.CreateUser(f.Context(), c, nodetest.NewKey(), rolecall.UserDraft{Email: nodetest.Address("ada"), Name: "Ada Lovelace"})
		f.OK(err)
		f.Access.Refused(c, rolecall.UserID{}, "listUsers", "permission-denied")
		f.OK(f.Access.Refusals.Flush(f.Context()))
		want := rolecall.Actor{Type: rolecall.ActorServiceAccount, ID: rolecall.UserID(account.ID), Via: "token", Token: token.ID}
		for _, listing := range []directory.EventListing{{Subject: rolecall.AnyID(made.Value.ID)}, {Type: string(rolecall.EventRefused)}} {
			if events := f.Events(f.Owner, listing); len(events) != 1 || events[0].Actor != want {
				t.Errorf("%+v, want one by %+v", events, want)
			}
		}
		f.OK(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(account.ID), token.ID))
		about := directory.EventListing{Subject: rolecall.AnyID(account.ID)}
		var types []rolecall.EventType
		for _, e := range f.Events(f.Owner, about) {
			if types = append(types, e.Type); e.Values == nil || e.Subject.Type != rolecall.SubjectServiceAccount {
				t.Errorf("%+v", e)
			}
		}
		if want := []rolecall.EventType{rolecall.EventTokenRevoked, rolecall.EventTokenCreated, rolecall.EventRoleAssigned, rolecall.EventServiceAccountCreated}; !slices.Equal(types, want) {
			t.Errorf("%v, want %v", types, want)
		}
		for _, e := range f.Events(f.CallerWith(nodetest.Holding("events:read"), nodetest.Holding("tenant:read"), nodetest.Holding("users:read")), about) {
			if before, after := f.Shown(e); before+after != "" {
				t.Errorf("%s shows %q and %q to a caller who may not read service accounts", e.Type, before, after)
			}
		}
	})
}

func TestConcurrentEqualRequestsCreateOneToken(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		account := f.NewAccount("Sync", f.OwnerRole())
		nodes, key, draft := []*node.Node{f.Node, f.NewNode()}, nodetest.NewKey(), f.TokenDraft("users:read")
		var mu sync.Mutex
		var secrets []secret.Token
		var running sync.WaitGroup
		for i := range 50 {
			running.Go(func() {
				created, err := nodes[i%2].Directory.CreateToken(f.Context(), f.Owner, key, rolecall.HolderOf(account.ID), draft)
				if err != nil || created.Replayed == (created.Value.Secret != "") {
					t.Errorf("%+v, %v", created, err)
				}
				if mu.Lock(); created.Value.Secret != "" {
					secrets = append(secrets, created.Value.Secret)
				}
				mu.Unlock()
			})
		}
		running.Wait()
		page, err := f.Directory.Tokens(f.Context(), f.Owner, rolecall.HolderOf(account.ID), nil, 10)
		f.OK(err)
		if len(secrets) != 1 || len(page.Items) != 1 {
			t.Errorf("%d secrets and %d tokens of one key", len(secrets), len(page.Items))
		}
	})
}

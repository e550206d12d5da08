package node_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// account creates a service account with the role.
func (f *fixture) account(name string, role rolecall.RoleID) rolecall.ServiceAccount {
	f.Helper()
	created, err := f.Directory.CreateServiceAccount(f.Context(), f.owner, newKey(), rolecall.ServiceAccountDraft{Name: name})
	f.ok(err)
	f.assignToAccount(created.Value.ID, role)
	return created.Value
}

func (f *fixture) assignToAccount(id rolecall.ServiceAccountID, role rolecall.RoleID) {
	f.Helper()
	f.ok(errorOf3(f.Directory.AssignRole(f.Context(), f.owner, rolecall.HolderOf(id), role, rolecall.AssignmentDraft{})))
}

// tokenDraft returns a draft of a token with the permissions. The token expires after a
// day.
func (f *fixture) tokenDraft(permissions ...string) rolecall.APITokenDraft {
	return rolecall.APITokenDraft{Name: "Nightly", Permissions: permissions, ExpiresAt: f.clock.Now().Add(24 * time.Hour)}
}

func (f *fixture) accountToken(id rolecall.ServiceAccountID, permissions ...string) directory.APIToken {
	f.Helper()
	created, err := f.Directory.CreateToken(f.Context(), f.owner, newKey(), rolecall.HolderOf(id), f.tokenDraft(permissions...))
	f.ok(err)
	return created.Value
}

// userToken creates an API token of the caller.
func (f *fixture) userToken(c access.Caller, permissions ...string) directory.APIToken {
	f.Helper()
	created, err := f.Directory.CreateToken(f.Context(), c, newKey(), rolecall.HolderOf(c.User.ID), f.tokenDraft(permissions...))
	f.ok(err)
	return created.Value
}

// bears returns the principal for an API token on a node.
func (f *fixture) bears(node *node.Node, token directory.APIToken) (*authz.Principal, error) {
	return node.SignIn.AuthenticateBearer(f.Context(), f.tenant, string(token.Secret), "192.0.2.1")
}

// programs creates a role that allows its holders to read users, a user and a service
// account with this role, and an API token of each.
func (f *fixture) programs() (role rolecall.Role, member rolecall.User, account rolecall.ServiceAccount, tokens []directory.APIToken) {
	f.Helper()
	role, member = f.role("Reader", "users:read"), f.member("programmer")
	f.assign(member.ID, role.ID, rolecall.AssignmentDraft{})
	account = f.account("Import", role.ID)
	return role, member, account, []directory.APIToken{
		f.userToken(f.call(f.signIn("programmer")), "users:read"), f.accountToken(account.ID, "users:read"),
	}
}

func TestATokenIsCachedUntilItsHolderChanges(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role, member, account, tokens := f.programs()
		reads := func(token directory.APIToken) bool {
			p, err := f.bears(f.Node, token)
			f.ok(err)
			return p.Reach(rolecall.UsersRead).IsEverywhere()
		}
		taken := []func() error{
			func() error {
				return f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(member.ID), role.ID)
			},
			func() error {
				return f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(account.ID), role.ID)
			},
		}
		for i, token := range tokens {
			if !reads(token) { // also updates the last use
				t.Error("the token does not do what it is for")
			}
			reads(token)
			if asked := f.db.during(func() { reads(token) }); len(asked) != 0 {
				t.Errorf("a token that was just used is looked up: %v", asked)
			}
			f.ok(taken[i]())
			if reads(token) {
				t.Error("the token does what its holder may not do any more")
			}
		}
		f.assign(member.ID, role.ID, rolecall.AssignmentDraft{})
		f.assignToAccount(account.ID, role.ID)
		f.ok(errorOf(f.Directory.UpdateRole(f.Context(), f.owner, role.ID, rolecall.RolePatch{Permissions: rolecall.Some([]string{"users.name:read"})}, nil)))
		for _, token := range tokens {
			p, err := f.bears(f.Node, token)
			f.ok(err)
			if p.Reads(rolecall.MemberName).IsNowhere() || !p.Reads(rolecall.MemberEmail).IsNowhere() {
				t.Error("the token is not narrowed with the role of its holder")
			}
		}
	})
}

func TestATokenOfAUserWithoutARequiredFactorIsRefused(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role, member, account, tokens := f.programs()
		far, demanding := f.watchingNode(), f.role("Demanding")
		demand := func(roles ...rolecall.RoleID) {
			f.settings(rolecall.TenantSettings{SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfRoles, Roles: roles}})
		}
		becomes := func(what string, wanted error) {
			t.Helper()
			for i, wanted := range []error{wanted, nil} { // service accounts have no second factors
				if _, err := f.bears(f.Node, tokens[i]); !errors.Is(err, wanted) {
					t.Errorf("%s: %v", what, err)
				}
				f.eventually(func() bool {
					_, err := f.bears(far, tokens[i])
					return errors.Is(err, wanted)
				})
			}
		}
		becomes("nothing is demanded", nil)
		demand(role.ID)
		becomes("a factor is demanded", rolecall.ErrUnauthenticated)
		demand(demanding.ID)
		becomes("it is demanded of others", nil)
		f.assign(member.ID, demanding.ID, rolecall.AssignmentDraft{})
		f.assignToAccount(account.ID, demanding.ID)
		becomes("the user is one of those now", rolecall.ErrUnauthenticated)

		f.ok(f.SignIn.EndUserSessions(f.Context(), f.owner, member.ID)) // so that the announcement does not come from ending them
		challenge := secret.Token(f.challenge(f.attempt(), "programmer", rolecall.ErrEnrolmentRequired).Token)
		e, err := f.SignIn.BeginEnrolment(f.Context(), f.attempt(), challenge)
		f.ok(err)
		becomes("the user has begun to enrol", rolecall.ErrUnauthenticated)
		f.ok(errorOf(f.answer(challenge, signin.Proof{Code: f.appOf(e.TOTPSecret).code()})))
		becomes("the user has an app", nil)
		f.ok(f.SignIn.EndUserSessions(f.Context(), f.owner, member.ID))
		becomes("nobody is signed in", nil)
		f.ok(f.SignIn.ResetFactors(f.Context(), f.owner, member.ID))
		becomes("it was reset", rolecall.ErrUnauthenticated)

		challenge = secret.Token(f.challenge(f.attempt(), "programmer", rolecall.ErrEnrolmentRequired).Token)
		e, err = f.SignIn.BeginEnrolment(f.Context(), f.attempt(), challenge)
		f.ok(err)
		f.ok(errorOf(f.answer(challenge, signin.Proof{Passkey: passkeytest.New(origin).Create(t, e.PublicKey)})))
		becomes("the user has a passkey", nil)
	})
}

func TestATokenCannotRemoveFactorsOfItsUser(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, _, _ := f.protected("ada")
		p, err := f.bears(f.Node, f.userToken(f.owner, "*:*", "*/*:*"))
		f.ok(err)
		f.enrol(f.owner)
		program := access.Caller{Principal: p}
		f.is(f.SignIn.ResetFactors(f.Context(), program, f.owner.User.ID), rolecall.ErrSessionRequired)
		f.ok(f.SignIn.ResetFactors(f.Context(), program, ada.ID)) // as the user of the token could
		own, err := f.SignIn.Factors(f.Context(), f.owner)
		f.ok(err)
		if own.Methods() == nil {
			t.Error("the factors are gone")
		}
	})
}

func TestATokenEndsWithItsHolderOrItself(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, member, account, tokens := f.programs()
		ofUser, ofAccount := tokens[0], tokens[1]
		nothing := func(what string, token directory.APIToken) {
			t.Helper()
			for _, node := range []*node.Node{f.Node, f.node()} {
				if _, err := f.bears(node, token); !errors.Is(err, rolecall.ErrUnauthenticated) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		works := func(token directory.APIToken) {
			t.Helper()
			f.ok(errorOf(f.bears(f.Node, token)))
		}
		works(ofUser)
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, member.ID, "")))
		nothing("a suspended user", ofUser)
		f.ok(errorOf(f.Directory.ResumeUser(f.Context(), f.owner, member.ID, "")))
		works(ofUser)
		works(ofAccount)
		f.ok(errorOf(f.Directory.SuspendServiceAccount(f.Context(), f.owner, account.ID, "holiday")))
		nothing("a suspended service account", ofAccount)
		f.ok(errorOf(f.Directory.ResumeServiceAccount(f.Context(), f.owner, account.ID, "")))
		works(ofAccount)

		revoked := f.accountToken(account.ID, "users:read")
		works(revoked)
		f.ok(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(account.ID), revoked.ID))
		nothing("a revoked token", revoked)
		works(ofAccount)
		f.is(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(account.ID), ofUser.ID), rolecall.ErrNotFound)
		f.is(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(member.ID), ofAccount.ID), rolecall.ErrNotFound)

		f.clock.until(ofUser.ExpiresAt - 1)
		works(ofUser)
		f.clock.until(ofUser.ExpiresAt)
		nothing("a token that has ended", ofUser)
		f.clock.until(start)
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, member.ID, nil))
		nothing("a deleted user", ofUser)
		f.ok(f.Directory.DeleteServiceAccount(f.Context(), f.owner, account.ID, nil))
		nothing("a deleted service account", ofAccount)
	})
}

func TestAMalformedTokenIsRefusedWithoutALookup(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, _, _, tokens := f.programs()
		text := string(tokens[0].Secret)
		other := "A"
		if text[10:11] == other {
			other = "B"
		}
		for what, bearer := range map[string]string{
			"nothing": "", "a word": "rc_", "a session": string(f.signIn("owner").Token), "an operator's key": string(secret.NewOperatorKey()),
			"one with a slip": text[:10] + other + text[11:], "one with a blank": " " + text,
		} {
			asked := f.db.during(func() {
				if _, err := f.SignIn.AuthenticateBearer(f.Context(), f.tenant, bearer, "192.0.2.1"); !errors.Is(err, rolecall.ErrUnauthenticated) {
					t.Errorf("%s: %v", what, err)
				}
			})
			if what != "an operator's key" && len(asked) != 0 {
				t.Errorf("%s: asked %v", what, asked)
			}
		}
	})
}

func TestATokenIsValidInItsTenantOnly(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, _, _, tokens := f.programs()
		other := f.newTenant("other")
		for _, tenant := range []rolecall.Tenant{other, {}} {
			_, err := f.SignIn.AuthenticateBearer(f.Context(), tenant, string(tokens[0].Secret), "192.0.2.1")
			f.is(err, rolecall.ErrUnauthenticated)
		}
		f.ok(errorOf(f.Directory.SuspendTenant(f.Context(), access.Command, f.tenant.Name, "")))
		suspended, err := f.Directory.Tenant(f.Context(), f.tenant.Name)
		f.ok(err)
		_, err = f.SignIn.AuthenticateBearer(f.Context(), suspended, string(tokens[0].Secret), "192.0.2.1")
		f.is(err, rolecall.ErrTenantSuspended)
		_, err = f.SignIn.AuthenticateBearer(f.Context(), suspended, string(secret.NewAPIToken()), "192.0.2.1")
		f.is(err, rolecall.ErrUnauthenticated)
	})
}

func TestTheLastUseOfATokenIsWrittenAtMostOnceAMinute(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, member, _, tokens := f.programs()
		asked := f.db.during(func() {
			for range 60 {
				f.ok(errorOf(f.bears(f.Node, tokens[0])))
				f.clock.advance(2 * time.Second)
			}
		})
		if touched := len(slices.DeleteFunc(asked, func(what string) bool { return what != "touch of a token" })); touched != 2 {
			t.Errorf("in two minutes it was written %d times", touched)
		}
		page, err := f.Directory.Tokens(f.Context(), f.owner, rolecall.HolderOf(member.ID), nil, 10)
		f.ok(err)
		if got := page.Items[0].LastUsedAt; got < start.Add(time.Minute) || got > start.Add(2*time.Minute) {
			t.Errorf("the last use was %v", got)
		}
	})
}

func TestAStoreErrorIsNotAMissingToken(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, _, _, tokens := f.programs()
		fresh := f.node()
		f.db.fail(rolecall.ErrUnavailable)
		_, err := f.bears(fresh, tokens[0])
		f.is(err, rolecall.ErrUnavailable)
		f.db.fail(nil)
	})
}

func TestATokenRevokedDuringFiftyUsesIsRefusedAfterwards(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, member, _, tokens := f.programs()
		token := tokens[0]
		watching := f.watchingNode()
		var running sync.WaitGroup
		for i := range 50 {
			node := []*node.Node{f.Node, watching}[i%2]
			running.Go(func() {
				if i == 25 {
					f.is(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(member.ID), token.ID), nil)
				} else if _, err := f.bears(node, token); err != nil && !errors.Is(err, rolecall.ErrUnauthenticated) {
					t.Error(err)
				}
			})
		}
		running.Wait()
		_, err := f.bears(f.Node, token)
		f.is(err, rolecall.ErrUnauthenticated)
		f.eventually(func() bool {
			_, err := f.bears(watching, token)
			return errors.Is(err, rolecall.ErrUnauthenticated)
		})
		f.is(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(member.ID), token.ID), rolecall.ErrNotFound)
	})
}

// ofProgram returns a request that is authenticated with the API token.
func (f *fixture) ofProgram(token directory.APIToken) access.Caller {
	f.Helper()
	p, err := f.bears(f.Node, token)
	f.ok(err)
	return access.Caller{Principal: p, RequestID: "request", Source: "192.0.2.1"}
}

func TestATokenCannotActOnItsUsersOwnAccount(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		member := f.member("programmer")
		role := f.role("Shop", "shop/a:b", "service-accounts:update")
		f.assign(member.ID, role.ID, rolecall.AssignmentDraft{})
		account := f.account("Import", role.ID)
		c := f.ofProgram(f.userToken(f.call(f.signIn("programmer")), "shop/a:b", "service-accounts:update"))
		denied := []error{
			errorOf(f.Directory.UpdateUser(f.Context(), c, member.ID, rolecall.UserPatch{Name: rolecall.Some("Renamed")}, nil)),
			errorOf3(f.Directory.Assignments(f.Context(), c, rolecall.HolderOf(member.ID))),
			errorOf(f.Directory.UserEvents(f.Context(), c, member.ID, directory.EventListing{Limit: 1})),
			errorOf(f.Directory.Tokens(f.Context(), c, rolecall.HolderOf(member.ID), nil, 1)),
			f.Directory.RevokeToken(f.Context(), c, rolecall.HolderOf(member.ID), c.Token.ID),
		}
		for _, err := range denied {
			f.is(err, rolecall.ErrPermissionDenied)
		}
		_, err := f.Directory.CreateToken(f.Context(), c, newKey(), rolecall.HolderOf(account.ID), f.tokenDraft("shop/a:b"))
		f.is(err, rolecall.ErrSessionRequired)
		user, err := f.Directory.User(f.Context(), c, member.ID)
		f.ok(err)
		if c.ReadableMembers(&user) != rolecall.AllUserMembers {
			t.Error("a token does not read the record of its user")
		}
		o, err := f.Directory.Overview(f.Context(), c, member.ID)
		f.ok(err)
		if o.AssignmentsReadable || o.SessionsReadable || o.EventsReadable || !o.SignInReadable {
			t.Errorf("the overview shows a token %+v", o)
		}
	})
}

// A request with a token cannot exceed the permissions of the token, even if the holder
// could do more. This also applies to assigning and creating roles, and to revoking
// access.
func TestATokenCannotGrantMoreThanItHolds(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		account := f.account("Sync", f.ownerRole())
		reader, writer, shop := f.role("Reader", "users:read"), f.role("Writer", "users:update"), f.role("Shop", "shop/a:b")
		c := f.ofProgram(f.accountToken(account.ID, "users:read", "users:suspend", "roles:assign", "roles:create", "roles:update", "service-accounts:update", "shop/*:*"))
		target := f.member("target")
		give := func(role rolecall.RoleID) error {
			return errorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(target.ID), role, rolecall.AssignmentDraft{}))
		}
		f.ok(give(reader.ID))
		f.ok(give(shop.ID))
		f.is(give(writer.ID), rolecall.ErrBeyondOwnPermissions)
		f.is(errorOf(f.Directory.CreateRole(f.Context(), c, newKey(), rolecall.RoleDraft{Name: "More", Permissions: []string{"users:*"}})), rolecall.ErrBeyondOwnPermissions)
		f.assign(target.ID, writer.ID, rolecall.AssignmentDraft{})
		f.is(errorOf(f.Directory.SuspendUser(f.Context(), c, target.ID, "")), rolecall.ErrBeyondOwnPermissions)

		// This also protects the account itself and others with its role.
		f.is(errorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(account.ID), writer.ID, rolecall.AssignmentDraft{})), rolecall.ErrBeyondOwnPermissions)
		f.is(errorOf(f.Directory.SuspendServiceAccount(f.Context(), c, account.ID, "")), rolecall.ErrBeyondOwnPermissions)
		f.is(f.Directory.UnassignRole(f.Context(), c, rolecall.HolderOf(account.ID), f.ownerRole()), rolecall.ErrBeyondOwnPermissions)
		f.assignToAccount(account.ID, reader.ID)
		f.is(errorOf(f.Directory.UpdateRole(f.Context(), c, reader.ID, rolecall.RolePatch{Permissions: rolecall.Some([]string{"users:read", "users:delete"})}, nil)), rolecall.ErrBeyondOwnPermissions)
	})
}

// Users cannot use the grants of their roles to gain permissions. This test checks the
// same for service accounts.
func TestAServiceAccountCannotGrantItselfMore(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		created, err := f.Directory.CreateRole(f.Context(), f.owner, newKey(), rolecall.RoleDraft{
			Name: "Hands on", Permissions: []string{"roles:update", "service-accounts:update"}, Grants: []string{"shop/*:*", "roles:update", "service-accounts:update"},
		})
		f.ok(err)
		shop := f.role("Shop", "shop/a:b")
		account := f.account("Sync", created.Value.ID)
		other := f.account("Other", shop.ID)
		c := f.ofProgram(f.accountToken(account.ID, "roles:update", "service-accounts:update", "shop/*:*"))
		assign := func(id rolecall.ServiceAccountID) error {
			return errorOf3(f.Directory.AssignRole(f.Context(), c, rolecall.HolderOf(id), shop.ID, rolecall.AssignmentDraft{}))
		}
		f.ok(assign(other.ID))
		f.is(assign(account.ID), rolecall.ErrBeyondOwnPermissions)
		change := rolecall.RolePatch{Permissions: rolecall.Some([]string{"shop/a:b"})}
		f.ok(errorOf(f.Directory.UpdateRole(f.Context(), c, shop.ID, change, nil)))
		f.assignToAccount(account.ID, shop.ID)
		change.Permissions.Value = []string{"shop/a:b", "shop/c:d"}
		f.is(errorOf(f.Directory.UpdateRole(f.Context(), c, shop.ID, change, nil)), rolecall.ErrBeyondOwnPermissions)
	})
}

func TestCreatingAServiceAccountTokenNeedsItsPermissions(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		account := f.account("Sync", f.ownerRole())
		create := func(c access.Caller, id rolecall.ServiceAccountID, permissions ...string) error {
			return errorOf(f.Directory.CreateToken(f.Context(), c, newKey(), rolecall.HolderOf(id), f.tokenDraft(permissions...)))
		}
		below := f.caller(holding("service-accounts:*"), holding("shop/*:*"))
		f.is(create(below, account.ID, "shop/a:b"), rolecall.ErrBeyondOwnPermissions)
		weak := f.account("Shop", f.role("Shop", "shop/a:*").ID)
		f.ok(create(below, weak.ID, "shop/a:b"))
		f.is(create(below, weak.ID, "shop/c:d"), rolecall.ErrValidation)
		f.is(create(below, rolecall.NewID[rolecall.ServiceAccount](start), "shop/a:b"), rolecall.ErrNotFound)
		f.is(f.Directory.DeleteServiceAccount(f.Context(), below, account.ID, nil), rolecall.ErrBeyondOwnPermissions)
		f.is(errorOf(f.Directory.SuspendServiceAccount(f.Context(), below, account.ID, "")), rolecall.ErrBeyondOwnPermissions)
		f.ok(f.Directory.DeleteServiceAccount(f.Context(), below, weak.ID, nil))
	})
}

func TestEventsOfPrograms(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		account := f.account("Sync", f.ownerRole())
		token := f.accountToken(account.ID, "users:create")
		c := f.ofProgram(token)
		made, err := f.Directory.CreateUser(f.Context(), c, newKey(), rolecall.UserDraft{Email: address("ada"), Name: "Ada Lovelace"})
		f.ok(err)
		f.Access.Refused(c, rolecall.UserID{}, "listUsers", "permission-denied")
		f.ok(f.Access.Refusals.Flush(f.Context()))
		want := rolecall.Actor{Type: rolecall.ActorServiceAccount, ID: rolecall.UserID(account.ID), Via: "token", Token: token.ID}
		for _, listing := range []directory.EventListing{{Subject: rolecall.AnyID(made.Value.ID)}, {Type: string(rolecall.EventRefused)}} {
			if events := f.events(f.owner, listing); len(events) != 1 || events[0].Actor != want {
				t.Errorf("%+v, want one by %+v", events, want)
			}
		}
		f.ok(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(account.ID), token.ID))
		about := directory.EventListing{Subject: rolecall.AnyID(account.ID)}
		var types []rolecall.EventType
		for _, e := range f.events(f.owner, about) {
			if types = append(types, e.Type); e.Values == nil || e.Subject.Type != rolecall.SubjectServiceAccount {
				t.Errorf("%+v", e)
			}
		}
		if want := []rolecall.EventType{rolecall.EventTokenRevoked, rolecall.EventTokenCreated, rolecall.EventRoleAssigned, rolecall.EventServiceAccountCreated}; !slices.Equal(types, want) {
			t.Errorf("%v, want %v", types, want)
		}
		for _, e := range f.events(f.caller(holding("events:read"), holding("tenant:read"), holding("users:read")), about) {
			if before, after := f.shown(e); before+after != "" {
				t.Errorf("%s shows %q %q to who may not read service accounts", e.Type, before, after)
			}
		}
	})
}

func TestConcurrentEqualRequestsCreateOneToken(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		account := f.account("Sync", f.ownerRole())
		nodes, key, draft := []*node.Node{f.Node, f.node()}, newKey(), f.tokenDraft("users:read")
		var mu sync.Mutex
		var secrets []secret.Token
		var running sync.WaitGroup
		for i := range 50 {
			running.Go(func() {
				created, err := nodes[i%2].Directory.CreateToken(f.Context(), f.owner, key, rolecall.HolderOf(account.ID), draft)
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
		page, err := f.Directory.Tokens(f.Context(), f.owner, rolecall.HolderOf(account.ID), nil, 10)
		f.ok(err)
		if len(secrets) != 1 || len(page.Items) != 1 {
			t.Errorf("%d secrets and %d tokens of one key", len(secrets), len(page.Items))
		}
	})
}

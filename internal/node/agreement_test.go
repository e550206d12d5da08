package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// rehearsal is a database that rolls back every update, so that every action can be
// tried on the same state.
type rehearsal struct{ store.Database }

var errTakenBack = errors.New("taken back")

// Update runs fn, rolls back its writes, and returns errTakenBack.
func (r rehearsal) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	return r.Database.Update(ctx, tenant, func(q store.Querier) error {
		if err := fn(q); err != nil {
			return err
		}
		return errTakenBack
	})
}

// randomUser is a random user of a random tenant, with the assignments of the user.
type randomUser struct {
	user        rolecall.User
	assignments []rolecall.Assignment
}

// randomUsers returns a generator of a user with any stored status and up to four assignments.
func randomUsers(f *nodetest.Fixture) *rapid.Generator[randomUser] {
	var texts []string
	for _, p := range rolecall.OwnPermissions() {
		texts = append(texts, p.String())
	}
	for range 4 { // patterns that allow many actions
		texts = append(texts, "users:*", "users.*:read", "*:read", "*:*", "roles:*", "shop/invoices:approve", "*/*:*")
	}
	permissions := rapid.SliceOfN(rapid.SampledFrom(texts), 0, 4)
	reaches := rapid.SampledFrom([][]string{nil, nil, {"Sales"}, {"Research"}, {"sales", "research"}})
	ends := rapid.SampledFrom([]rolecall.Time{0, 0, 0, nodetest.Tomorrow, nodetest.Start})
	departments := rapid.SampledFrom([]string{"", "Sales", "Research", "SALES"})
	states := rapid.SampledFrom([]rolecall.UserStatus{rolecall.UserActive, rolecall.UserActive, rolecall.UserPending, rolecall.UserSuspended})
	return rapid.Custom(func(t *rapid.T) randomUser {
		draft := rolecall.UserDraft{Email: nodetest.NewKey().Text + "@example.com", Name: "Some Body"}
		if department := departments.Draw(t, "department"); department != "" {
			draft.Department = &department
		}
		p := randomUser{user: draft.User(nodetest.Start)}
		p.user.Status = states.Draw(t, "status")
		for range rapid.IntRange(0, 4).Draw(t, "roles") {
			h := nodetest.Held{Permissions: permissions.Draw(t, "permissions"), Grants: permissions.Draw(t, "grants"), Departments: reaches.Draw(t, "reach"), Until: ends.Draw(t, "end")}
			p.assignments = append(p.assignments, h.Assignment(f, p.user.ID))
		}
		return p
	})
}

// triedActions are the actions that an overview of a user can allow. Each has the
// permission that it needs and the service method that does it.
var triedActions = []struct {
	action     string
	permission rolecall.Permission
	applies    func(*rolecall.User) bool
	own        bool // every user may do it to themselves
	try        func(*node.Node, context.Context, access.Caller, *rolecall.User, rolecall.RoleID) error
}{
	{"delete", rolecall.UsersDelete, always, false, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return s.Directory.DeleteUser(ctx, c, u.ID, nil)
	}},
	{"erase", rolecall.UsersErase, always, false, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return s.Directory.EraseUser(ctx, c, u.ID, "")
	}},
	{"resetFactors", rolecall.UsersFactors, always, false, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return s.SignIn.ResetFactors(ctx, c, u.ID)
	}},
	{"revokeSessions", rolecall.SessionsRevoke, always, true, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return s.SignIn.EndUserSessions(ctx, c, u.ID)
	}},
	{"suspend", rolecall.UsersSuspend, isNotSuspended, false, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return nodetest.ErrorOf(s.Directory.SuspendUser(ctx, c, u.ID, ""))
	}},
	{"resume", rolecall.UsersSuspend, isSuspended, false, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return nodetest.ErrorOf(s.Directory.ResumeUser(ctx, c, u.ID, ""))
	}},
	{"invite", rolecall.UsersInvite, always, false, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return nodetest.ErrorOf(s.Directory.InviteUser(ctx, c, nodetest.NewKey(), u.ID))
	}},
	{"withdrawInvitation", rolecall.UsersInvite, always, false, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return s.Directory.WithdrawInvitation(ctx, c, u.ID)
	}},
	{"sendPasswordReset", rolecall.UsersInvite, always, false, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return nodetest.ErrorOf(s.SignIn.SendPasswordReset(ctx, c, nodetest.NewKey(), u.ID))
	}},
	{"changeEmail", rolecall.UsersEmail, always, true, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, _ rolecall.RoleID) error {
		return nodetest.ErrorOf(s.SignIn.RequestEmailChange(ctx, c, nodetest.NewKey(), u.ID, nodetest.Address(fmt.Sprintf("new-%d", nodetest.Serial.Add(1)))))
	}},
	{"assignRole", rolecall.RolesAssign, always, false, func(s *node.Node, ctx context.Context, c access.Caller, u *rolecall.User, role rolecall.RoleID) error {
		return nodetest.ErrorOf3(s.Directory.AssignRole(ctx, c, rolecall.HolderOf(u.ID), role, rolecall.AssignmentDraft{}))
	}},
}

func always(*rolecall.User) bool { return true }

func isSuspended(u *rolecall.User) bool { return u.Status == rolecall.UserSuspended }

func isNotSuspended(u *rolecall.User) bool { return !isSuspended(u) }

// patches returns one patch for each member of the user. The patch changes only this
// member.
func patches(u *rolecall.User) map[rolecall.UserMember]rolecall.UserPatch {
	return map[rolecall.UserMember]rolecall.UserPatch{
		rolecall.MemberName:       {Name: rolecall.Some("Somebody Else")},
		rolecall.MemberDepartment: {Department: rolecall.Some(u.Department)}, // unchanged, because the target department has other rules
		rolecall.MemberExternalID: {ExternalID: rolecall.Some(&u.Email)},
		rolecall.MemberMetadata:   {Metadata: rolecall.Some(map[string]*string{"key": &u.Email})},
	}
}

// For random users, TestAllowedActionsAgreeWithTheServiceMethods compares three things:
// the allowed actions of an overview, the answers of permission checks, and the results of
// the service methods.
func TestAllowedActionsAgreeWithTheServiceMethods(t *testing.T) {
	db, _ := nodetest.OnSQLite(t)
	f := &nodetest.Fixture{T: t, Clock: &nodetest.Clock{}, DB: &nodetest.Recorded{Database: db}, Keys: secret.NewKeys(secret.NewKey())}
	f.Store = store.New(f.DB, nil)
	f.Clock.Until(nodetest.Start)
	f.Node = f.NewNode()
	f.Tenant = f.NewTenant("acme")
	empty := f.InsertRole(nodetest.Nothing)
	rehearsed := node.New(rehearsal{f.DB}, access.Options{Clock: f.Clock.Now, Passwords: f.Hashes, Keys: f.Keys, Logger: slog.New(slog.DiscardHandler)})
	people := rapid.SliceOfN(randomUsers(f), 6, 6)

	rapid.Check(t, func(t *rapid.T) {
		all := people.Draw(t, "people")
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for _, p := range all {
				tx.InsertUser(p.user)
				for _, a := range p.assignments {
					tx.InsertRole(a.Role)
					tx.UpsertAssignment(a)
				}
			}
			return nil
		}))
		for _, caller := range all[:4] {
			c := f.CallerAs(caller.user, caller.assignments)
			checksAgreeWithGrants(t, c)
			for i := range all {
				agree(t, f.Context(), rehearsed, c, &all[i].user, empty.ID)
			}
		}
	})
}

// agree fails the test unless the caller can do exactly the actions to the user that an
// overview and checks allow.
func agree(t *rapid.T, ctx context.Context, s *node.Node, c access.Caller, u *rolecall.User, role rolecall.RoleID) {
	o, err := s.Directory.Overview(ctx, c, u.ID)
	seen := err == nil
	if !seen && !errors.Is(err, rolecall.ErrNotFound) && !errors.Is(err, rolecall.ErrPermissionDenied) {
		t.Fatal(err)
	}
	for _, a := range triedActions {
		if !a.applies(u) {
			continue
		}
		err := a.try(s, ctx, c, u, role)
		allowed, checked := errors.Is(err, errTakenBack), a.own && u.ID == c.User.ID || c.RequirePermission(a.permission, u.Department) == nil
		barred := errors.Is(err, rolecall.ErrBeyondOwnPermissions) || errors.Is(err, rolecall.ErrUserSuspended) || errors.Is(err, rolecall.ErrUserPending)
		switch denied := errors.Is(err, rolecall.ErrPermissionDenied) || errors.Is(err, rolecall.ErrNotFound); {
		case allowed != slices.Contains(o.AllowedActions, a.action):
			t.Errorf("%s: allowed are %q, and the verb returns %v", a.action, o.AllowedActions, err)
		case seen && checked != (allowed || barred), !seen && !denied, !checked && !denied:
			t.Errorf("%s: the check says %v, and the verb returns %v", a.action, checked, err)
		}
	}
	updatable := false
	for member, patch := range patches(u) {
		_, err := s.Directory.UpdateUser(ctx, c, u.ID, patch, nil)
		allowed := err == nil || errors.Is(err, errTakenBack)
		own := member == rolecall.MemberName && u.ID == c.User.ID
		if checked := c.RequirePermission(member.Update(), u.Department) == nil; allowed != (checked || own) {
			t.Errorf("update %s: the check says %v, and the verb returns %v", member, checked, err)
		}
		updatable = updatable || allowed
	}
	if updatable != slices.Contains(o.AllowedActions, "update") {
		t.Errorf("update: allowed are %q", o.AllowedActions)
	}
}

// checksAgreeWithGrants fails the test unless permission checks agree with the permissions
// in the caller's session.
func checksAgreeWithGrants(t *rapid.T, c access.Caller) {
	everywhere, scoped := c.Scopes()
	for _, p := range append(rolecall.OwnPermissions(), rolecall.Permission{Application: "shop", Resource: "invoices", Action: "approve"}) {
		ofUsers := !p.Own() || p.Resource == "users" || p.Resource == "sessions" || p.Resource == "identities" || p == rolecall.RolesAssign || p == rolecall.RolesRead || p == rolecall.GroupsMembers
		for _, department := range []*string{nil, new("Sales"), new("Research"), new("Nowhere")} {
			listed := slices.ContainsFunc(everywhere, func(q rolecall.Permission) bool { return q.Covers(p) }) ||
				ofUsers && slices.ContainsFunc(scoped, func(s authz.Scope) bool {
					return s.Reach.Includes(department) && slices.ContainsFunc(s.Permissions, func(q rolecall.Permission) bool { return q.Covers(p) })
				})
			if checked := c.RequirePermission(p, department) == nil; checked != listed {
				t.Errorf("%s: the check says %v, and the session %v", p, checked, listed)
			}
		}
	}
}

package demo

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

// The demo must have at least one example of each kind of data that the console shows.
func TestTheDemoHasDataOfEachKind(t *testing.T) {
	db, options := open(t)
	if err := Seed(t.Context(), db, options); err != nil {
		t.Fatal(err)
	}
	seen, err := countShown(t.Context(), db, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{
		"active", "pending", "suspended", "invited", "invitation-expired", "too-many-attempts", "factor", "deleted", "program", "suspended program",
		"session", "two sessions", "role in a department", "role that ends within a week", "role by a lead", "event by staff", "event of today", "reason",
	} {
		if seen[what] == 0 {
			t.Errorf("the demo has no %s", what)
		}
	}
	if seen["event to come"] > 0 {
		t.Errorf("%d events of the demo are yet to come", seen["event to come"])
	}
}

// open returns an empty database, and options for services that use it.
func open(t *testing.T) (*sqlite.Database, access.Options) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "rolecall.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, access.Options{
		Passwords: secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 8, Threads: 1}, 1, 0), Keys: secret.NewKeys(secret.NewKey()),
	}
}

func TestTheDemoRefusesADatabaseOfOthers(t *testing.T) {
	s, options := open(t)
	if _, _, err := node.New(s, options).Directory.CreateTenantWithPassword(t.Context(), rolecall.TenantDraft{Name: "acme", Owner: rolecall.UserDraft{Email: "ada@example.com", Name: "Ada Lovelace"}}, "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), s, options, "http://127.0.0.1:8080", "mail"); err == nil || !strings.Contains(err.Error(), "other tenants") {
		t.Errorf("got %v, want a refusal", err)
	}
	tenants, err := node.New(s, options).Directory.Tenants(t.Context(), "", "", 10)
	if err != nil || len(tenants) != 1 {
		t.Errorf("the tenants are %v, %v", tenants, err)
	}
}

func TestTheDemoMailsNothingBeforeARequest(t *testing.T) {
	s, options := open(t)
	for range 2 { // the second call finds the users, and sets a new password
		if _, err := Prepare(t.Context(), s, options, "http://127.0.0.1:8080", "mail"); err != nil {
			t.Fatal(err)
		}
		if n, err := node.New(s, options).Access.Outbox.Waiting(t.Context()); err != nil || n != 0 {
			t.Errorf("%d mails wait, %v", n, err)
		}
	}
}

// countShown counts the objects that the owner of the demo can list, by the kinds that
// TestTheDemoHasDataOfEachKind names.
func countShown(ctx context.Context, db store.Database, options access.Options) (map[string]int, error) {
	seen := map[string]int{}
	s := node.New(db, options)
	tenant, err := s.Directory.Tenant(ctx, Tenant)
	if err != nil {
		return nil, err
	}
	call, users, err := usersOf(ctx, db, tenant)
	if err != nil {
		return nil, err
	}
	for _, user := range users {
		o, err := s.Directory.Overview(ctx, call, user.ID)
		if err != nil {
			return nil, err
		}
		seen[string(user.Status)]++
		for _, reason := range o.SignIn.Reasons {
			seen[reason.Code]++
		}
		count := func(what string, is bool) {
			if is {
				seen[what]++
			}
		}
		count("invited", o.Invitation.ExpiresAt > s.Access.Now())
		count("factor", o.Factors.TOTP)
		count("session", o.Sessions.Count > 0)
		count("two sessions", o.Sessions.Count > 1)
		for _, a := range o.Assignments {
			count("role in a department", !a.Reach.IsEverywhere())
			count("role that ends within a week", a.ExpiresAt < s.Access.Now().Add(7*day))
			count("role by a lead", a.GrantedBy != call.User.ID)
		}
		for _, e := range o.RecentEvents {
			count("event by staff", e.Actor.Type == rolecall.ActorUser && e.Actor.ID != call.User.ID && e.Actor.ID != user.ID)
			count("event of today", e.OccurredAt > s.Access.Now().Add(-day))
			count("reason", e.Reason != "" && e.Type == rolecall.EventUserSuspended)
			count("event to come", e.OccurredAt > s.Access.Now())
		}
	}
	deleted, err := s.Directory.DeletedUsers(ctx, call, directory.DeletedListing{Limit: rolecall.MaxLimit})
	if err != nil {
		return nil, err
	}
	seen["deleted"] = len(deleted.Items)
	programs, err := s.Directory.ServiceAccounts(ctx, call, rolecall.ServiceAccountQuery{Limit: rolecall.MaxLimit})
	for _, program := range programs.Items {
		seen["program"]++
		if program.Status == rolecall.ServiceAccountSuspended {
			seen["suspended program"]++
		}
	}
	return seen, err
}

// usersOf returns the users of the demo, and the owner of the demo as a caller.
func usersOf(ctx context.Context, db store.Database, tenant rolecall.Tenant) (call access.Caller, users []rolecall.User, err error) {
	err = store.New(db, nil).View(ctx, tenant.ID, func(tx *store.Tx) error {
		owner, _, err := tx.UserByEmail(Email)
		if err != nil {
			return err
		}
		assignments, err := tx.Assignments(rolecall.HolderOf(owner.ID))
		if err != nil {
			return err
		}
		call.Principal = authz.NewPrincipal(tenant, owner, rolecall.Session{}, assignments, rolecall.TimeOf(time.Now()))
		var after *rolecall.Position
		for {
			page, err := tx.Users(rolecall.UserQuery{Within: rolecall.Everywhere(), Limit: rolecall.MaxLimit, After: after})
			if err != nil {
				return err
			}
			users = append(users, page.Items...)
			if after = page.Next; after == nil {
				return nil
			}
		}
	})
	return call, users, err
}

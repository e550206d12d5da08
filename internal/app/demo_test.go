package app

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/store"
)

// The demo has something of all that the console shows.
func TestTheDemoShowsWhatThereIs(t *testing.T) {
	p := &program{globals: globals{Database: filepath.Join(t.TempDir(), "rolecall.db")}, stdout: io.Discard, stderr: io.Discard}
	if err := (&migrateCommand{}).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := p.opened(t.Context(), func(db store.Database, options service.Options) error {
		if err := seedDemo(t.Context(), db, options); err != nil {
			return err
		}
		seen, err := lookAtDemo(t.Context(), db, options)
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
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// lookAtDemo counts what the owner sees.
func lookAtDemo(ctx context.Context, db store.Database, options service.Options) (map[string]int, error) {
	seen := map[string]int{}
	s := service.New(db, options)
	tenant, err := s.Tenant(ctx, demoTenant)
	if err != nil {
		return nil, err
	}
	call, users, err := demoUsers(ctx, db, tenant)
	if err != nil {
		return nil, err
	}
	for _, user := range users {
		o, err := s.Overview(ctx, call, user.ID)
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
		count("invited", o.Invitation.ExpiresAt > s.Now())
		count("factor", o.Factors.TOTP)
		count("session", o.Sessions.Count > 0)
		count("two sessions", o.Sessions.Count > 1)
		for _, a := range o.Assignments {
			count("role in a department", !a.Reach.IsEverywhere())
			count("role that ends within a week", a.ExpiresAt < s.Now().Add(7*day))
			count("role by a lead", a.GrantedBy != call.User.ID)
		}
		for _, e := range o.RecentEvents {
			count("event by staff", e.Actor.Type == rolecall.ActorUser && e.Actor.ID != call.User.ID && e.Actor.ID != user.ID)
			count("event of today", e.OccurredAt > s.Now().Add(-day))
			count("reason", e.Reason != "" && e.Type == rolecall.EventUserSuspended)
			count("event to come", e.OccurredAt > s.Now())
		}
	}
	deleted, err := s.DeletedUsers(ctx, call, service.DeletedListing{Limit: rolecall.MaxLimit})
	if err != nil {
		return nil, err
	}
	seen["deleted"] = len(deleted.Items)
	programs, err := s.ServiceAccounts(ctx, call, rolecall.ServiceAccountQuery{Limit: rolecall.MaxLimit})
	for _, program := range programs.Items {
		seen["program"]++
		if program.Status == rolecall.ServiceAccountSuspended {
			seen["suspended program"]++
		}
	}
	return seen, err
}

// demoUsers returns the users of the demo, and a call of its owner.
func demoUsers(ctx context.Context, db store.Database, tenant rolecall.Tenant) (call service.Call, users []rolecall.User, err error) {
	err = store.New(db, nil).View(ctx, tenant.ID, func(tx *store.Tx) error {
		owner, _, err := tx.UserByEmail(rolecall.EmailKey(demoEmail))
		if err != nil {
			return err
		}
		assignments, err := tx.Assignments(owner.ID)
		if err != nil {
			return err
		}
		call.Principal = rolecall.NewPrincipal(tenant, owner, rolecall.Session{}, assignments, now())
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

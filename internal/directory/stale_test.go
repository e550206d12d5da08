package directory_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// staleDatabase is a Database in which the next writes to one version of a row find another version.
type staleDatabase struct {
	store.Database
	stale int // how many
}

// Update passes the statements of fn on.
func (d *staleDatabase) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	return d.Database.Update(ctx, tenant, func(q store.Querier) error { return fn(staleQuerier{q, d}) })
}

type staleQuerier struct {
	store.Querier
	db *staleDatabase
}

// Query replaces the version, which is the last argument.
func (q staleQuerier) Query(query string, args []any, each func(scan func(dest ...any) error) error) (int, error) {
	if q.db.stale > 0 && strings.Contains(query, " and version = $") {
		q.db.stale--
		args = slices.Clone(args)
		args[len(args)-1] = args[len(args)-1].(int64) + 1
	}
	return q.Querier.Query(query, args, each)
}

func TestAChangeOfAStaleRowIsRepeated(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		db := &staleDatabase{Database: f.DB}
		d := node.New(db, f.Options()).Directory
		ctx, c := f.Context(), f.Owner
		ada, eve, role := f.NewUser("ada"), f.NewUser("eve"), f.NewRole("Clerk", "users:read")
		account, unused := f.NewAccount("robot", role.ID), f.NewRole("Unused", "users:read")
		for _, change := range []struct {
			name string
			do   func() error
		}{
			{"UpdateUser", func() error {
				return nodetest.ErrorOf(d.UpdateUser(ctx, c, ada.ID, rolecall.UserPatch{Name: rolecall.Some("Renamed")}, nil))
			}},
			{"SuspendUser", func() error { return nodetest.ErrorOf(d.SuspendUser(ctx, c, ada.ID, "")) }},
			{"ResumeUser", func() error { return nodetest.ErrorOf(d.ResumeUser(ctx, c, ada.ID, "")) }},
			{"DeleteUser", func() error { return d.DeleteUser(ctx, c, ada.ID, nil) }},
			{"EraseUser", func() error { return d.EraseUser(ctx, c, eve.ID, "") }},
			{"UpdateRole", func() error {
				return nodetest.ErrorOf(d.UpdateRole(ctx, c, role.ID, rolecall.RolePatch{Name: rolecall.Some("Renamed")}, nil))
			}},
			{"DeleteRole", func() error { return d.DeleteRole(ctx, c, unused.ID, false, nil) }},
			{"UpdateServiceAccount", func() error {
				return nodetest.ErrorOf(d.UpdateServiceAccount(ctx, c, account.ID, rolecall.ServiceAccountPatch{Name: rolecall.Some("Renamed")}, nil))
			}},
			{"SuspendServiceAccount", func() error { return nodetest.ErrorOf(d.SuspendServiceAccount(ctx, c, account.ID, "")) }},
			{"DeleteServiceAccount", func() error { return d.DeleteServiceAccount(ctx, c, account.ID, nil) }},
			{"UpdateTenant", func() error {
				return nodetest.ErrorOf(d.UpdateTenant(ctx, c, rolecall.TenantPatch{DisplayName: rolecall.Some("Renamed")}, nil))
			}},
		} {
			db.stale = 1_000
			if f.Is(change.do(), rolecall.ErrUnavailable); db.stale != 900 {
				f.Errorf("%s of a row that is always stale was tried %d times, want 100", change.name, 1_000-db.stale)
			}
			db.stale = 2
			if f.Is(change.do(), nil); db.stale != 0 {
				f.Errorf("%s has not repeated the write of a stale row", change.name)
			}
		}
	})
}

package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// migrateTo makes the schema as it was after the migration of that number.
func migrateTo(t *testing.T, url string, version int64) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	files, err := postgres.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}

// Whoever was deleted before tombstones had ids and departments is listed by those
// who may restore everybody, and comes back.
func TestWhoWasDeletedBeforeAnUpgradeComesBack(t *testing.T) {
	url := pgtest.URL(t)
	migrateTo(t, url, 1)
	tenant, user := rolecall.NewID[rolecall.Tenant](now), aUser("ada@example.com")
	content := fmt.Sprintf(`{"user":{"id":"%s","email":"ada@example.com","name":"Ada","department":"Sales","metadata":{},"status":"active",
		"createdAt":"2026-01-01T00:00:00.000000Z","updatedAt":"2026-01-01T00:00:00.000000Z"},"assignments":null}`, user.ID)
	run(t, connect(t, url), "begin", "select set_config('rolecall.tenant', '"+tenant.String()+"', true)",
		fmt.Sprintf("insert into tombstones values ('%s', '%s', %d, '%s')", tenant, user.ID, now, content), "commit")
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s := open(t, url, postgres.Options{})
	listed := func(within rolecall.Reach) (page rolecall.Page[rolecall.Tombstone]) {
		t.Helper()
		if err := store.New(s, nil).View(t.Context(), tenant, func(tx *store.Tx) (err error) {
			page, err = tx.Tombstones(rolecall.TombstoneQuery{Within: within, Limit: 10})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return page
	}
	if page := listed(rolecall.Everywhere()); len(page.Items) != 1 || page.Items[0].User.ID != user.ID || page.Items[0].User.Email != "ada@example.com" {
		t.Errorf("listed are %+v", page.Items)
	}
	if page := listed(rolecall.Within("Sales")); len(page.Items) != 0 {
		t.Errorf("listed within a department are %+v", page.Items)
	}
	if err := store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
		taken, err := tx.TakeTombstone(user.ID, 0)
		tx.InsertUser(taken.Restored(now))
		return err
	}); err != nil || !has(t, s, tenant, user.ID) {
		t.Errorf("they did not come back: %v", err)
	}
}

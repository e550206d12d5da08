package sqlitetest

import (
	"os"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestADatabaseIsUsedAgainWithoutRows(t *testing.T) {
	var paths []string
	for range 2 {
		t.Run("", func(t *testing.T) {
			database, path := Opened(t)
			paths = append(paths, path)
			s, now := store.New(database, nil), rolecall.Time(1_800_000_000_000_000)
			tenant := rolecall.Tenant{ID: rolecall.NewID[rolecall.Tenant](now), Name: "acme", Status: rolecall.TenantActive, CreatedAt: now, UpdatedAt: now, Version: 1}
			user := rolecall.User{ID: rolecall.NewID[rolecall.User](now), Name: "Ada", Email: "ada@example.com", Status: rolecall.UserActive, CreatedAt: now, UpdatedAt: now, Version: 1}
			err := s.Update(t.Context(), tenant.ID, func(tx *store.Tx) error {
				tx.InsertTenant(tenant) // fails if the name is taken
				tx.InsertUser(user)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	if paths[0] != paths[1] {
		t.Error("the database is not used again")
	}
}

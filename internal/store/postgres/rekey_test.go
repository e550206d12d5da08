package postgres_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

// aMigratedStore is a database whose migration 20 can be undone, with those after it, and applied again.
type aMigratedStore struct {
	*store.Store
	tenant rolecall.TenantID
	exec   func(statements ...string)
	again  func() // applies the migration again
	quote  func(id rolecall.AnyID) string
}

func (s *aMigratedStore) update(t *testing.T, fn func(tx *store.Tx)) error {
	t.Helper()
	return s.Update(t.Context(), s.tenant, func(tx *store.Tx) error { fn(tx); return nil })
}

func onBothStores(t *testing.T, test func(t *testing.T, s *aMigratedStore)) {
	acme := rolecall.Tenant{ID: rolecall.NewID[rolecall.Tenant](now), Name: "acme", DisplayName: "Acme", Status: rolecall.TenantActive, CreatedAt: now, UpdatedAt: now, Version: 1}
	begin := func(t *testing.T, s *aMigratedStore) {
		t.Helper()
		s.tenant = acme.ID
		if err := s.update(t, func(tx *store.Tx) { tx.InsertTenant(acme) }); err != nil {
			t.Fatal(err)
		}
		test(t, s)
	}
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Migrated(t)
		conn := connect(t, url)
		run(t, conn, fmt.Sprintf("set rolecall.tenant = '%s'", acme.ID))
		begin(t, &aMigratedStore{
			Store: store.New(open(t, url, postgres.Options{}), nil),
			exec:  func(statements ...string) { t.Helper(); run(t, conn, statements...) },
			quote: func(id rolecall.AnyID) string { return "'" + id.String() + "'" },
			again: func() {
				if err := postgres.Migrate(t.Context(), url); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rolecall.db")
		reopened := func() *sqlite.Database {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		first := reopened()
		t.Cleanup(func() {
			if err := first.Close(); err != nil {
				t.Error(err)
			}
		})
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		begin(t, &aMigratedStore{
			Store: store.New(first, nil),
			exec: func(statements ...string) {
				t.Helper()
				for _, statement := range statements {
					if _, err := db.ExecContext(t.Context(), statement); err != nil {
						t.Fatalf("%s: %v", statement, err)
					}
				}
			},
			quote: func(id rolecall.AnyID) string { return fmt.Sprintf("x'%x'", id[:]) },
			again: func() {
				if err := reopened().Close(); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// logged returns the log of do.
func logged(t *testing.T, do func()) string {
	t.Helper()
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	do()
	return log.String()
}

const undone = "drop table group_members; drop table group_roles; drop table groups; drop table past_group_members; drop table past_group_roles; drop table directory_requests; drop table directory_tokens; drop table directory_users; drop table directories; alter table users drop column managed_by; alter table connections drop column groups; drop index outbox_turn; delete from compatibility where migration >= 20; delete from migrations where version_id >= 20"

// Before the migration, marks did not count. Rows whose names were different are then one name, and the other way around.
func TestTheMigrationComputesKeysOfNames(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *aMigratedStore) {
		role := func(name string) rolecall.Role {
			return rolecall.Role{ID: rolecall.NewID[rolecall.Role](now), Name: name, CreatedAt: now, UpdatedAt: now, Version: 1}
		}
		user := func(name, department string) rolecall.User {
			id := rolecall.NewID[rolecall.User](now)
			return rolecall.User{ID: id, Email: id.String() + "@example.com", Name: name, Department: &department, Status: rolecall.UserActive, CreatedAt: now, UpdatedAt: now, Version: 1}
		}
		card, guard, edition := user("Ada", "カード事業部"), user("Bea", "ガード事業部"), user("Cid", "Édition")
		straße, strasse, last := role("Straße"), role("Strasse 2"), role("Strasse 3")
		account := rolecall.ServiceAccount{ID: rolecall.NewID[rolecall.ServiceAccount](now), Name: "Πωλήσεις", Status: rolecall.ServiceAccountActive, CreatedAt: now, UpdatedAt: now, Version: 1}
		second := account
		second.ID, second.Name = rolecall.NewID[rolecall.ServiceAccount](now), "ΠΩΛΉΣΕΙΣ 2"
		narrow := rolecall.Assignment{Holder: rolecall.HolderOf(card.ID), Role: straße, Reach: rolecall.Within("カード事業部"), ExpiresAt: rolecall.Never, GrantedAt: now}
		unicode, ascii, alone := user("Dan", "Ops"), user("Eve", "Ops"), user("Fay", "Ops")
		if err := s.update(t, func(tx *store.Tx) {
			for _, u := range []rolecall.User{card, guard, edition, unicode, ascii, alone} {
				tx.InsertUser(u)
			}
			for _, r := range []rolecall.Role{straße, strasse, last} {
				tx.InsertRole(r)
			}
			tx.InsertServiceAccount(account)
			tx.InsertServiceAccount(second)
			tx.UpsertAssignment(narrow)
		}); err != nil {
			t.Fatal(err)
		}
		rename := func(table string, id [16]byte, name, key string) string {
			return fmt.Sprintf("update %s set name = '%s', name_key = '%s' where tenant_id = %s and id = %s", table, name, key, s.quote(rolecall.AnyID(s.tenant)), s.quote(id))
		}
		s.exec(strings.Split(undone, "; ")...)
		s.exec("update users set department_key = 'カード事業部' where department_key = 'ガード事業部'", "update users set department_key = 'edition' where department_key = 'édition'",
			rename("roles", straße.ID, "Straße", "straße"), rename("roles", strasse.ID, "STRASSE", "strasse"), rename("roles", last.ID, "stra\u200Bsse", "stra\u200Bsse"),
			rename("service_accounts", account.ID, account.Name, "πωλησεις"), rename("service_accounts", second.ID, "ΠΩΛΉΣΕΙΣ", "πωλησεισ"))
		address := func(u *rolecall.User, email, key string) {
			u.Email = email
			s.exec(fmt.Sprintf("update users set email = '%s', email_key = '%s' where tenant_id = %s and id = %s", email, key, s.quote(rolecall.AnyID(s.tenant)), s.quote(rolecall.AnyID(u.ID))))
		}
		address(&unicode, "Ada@Bücher.example", "ada@bücher.example")
		address(&ascii, "ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example")
		address(&alone, "fay@bücher.example", "fay@bücher.example")
		log := logged(t, s.again)
		if !strings.Contains(log, "loses_users_of=[ガード事業部]") || !strings.Contains(log, card.ID.String()) || strings.Count(log, "\n") != 1 {
			t.Errorf("the migration logged:\n%s\nwant one reach that loses the users of ガード事業部", log)
		}
		found := func(department string) (ids []rolecall.UserID) {
			t.Helper()
			key := rolecall.TextKey(department)
			if err := s.View(t.Context(), s.tenant, func(tx *store.Tx) error {
				page, err := tx.Users(rolecall.UserQuery{Within: rolecall.Everywhere(), Department: &key, Limit: 10})
				for _, u := range page.Items {
					ids = append(ids, u.ID)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return ids
		}
		for department, id := range map[string]rolecall.UserID{"カード事業部": card.ID, "ガード事業部": guard.ID, "ÉDITION": edition.ID} {
			if ids := found(department); len(ids) != 1 || ids[0] != id {
				t.Errorf("%s has %v, want %v", department, ids, id)
			}
		}
		straße.Name, strasse.Name, last.Name, second.Name = "Straße", "STRASSE", "stra\u200Bsse", "ΠΩΛΉΣΕΙΣ"
		taken := func(what string, want error, fn func(tx *store.Tx) error) {
			t.Helper()
			if err := s.Update(t.Context(), s.tenant, fn); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", what, err, want)
			}
		}
		insert := func(tx *store.Tx) error { tx.InsertRole(role("strasse")); return nil }
		taken("a fourth role of the name", rolecall.ErrRoleNameTaken, insert)
		taken("another account of the name", rolecall.ErrAccountNameTaken, func(tx *store.Tx) error {
			third := account
			third.ID, third.Name = rolecall.NewID[rolecall.ServiceAccount](now), "πωλήσεισ"
			tx.InsertServiceAccount(third)
			return nil
		})
		changed := strasse
		changed.Description, changed.Version = "Roads", 2
		taken("another description", nil, func(tx *store.Tx) error {
			ok, err := tx.UpdateRole(strasse, changed)
			if !ok {
				t.Error("the role did not change")
			}
			return err
		})
		renamed := changed
		renamed.Name, renamed.Version = "strasse", 3
		taken("another spelling", rolecall.ErrRoleNameTaken, func(tx *store.Tx) error { _, err := tx.UpdateRole(changed, renamed); return err })
		for _, r := range []rolecall.Role{straße, changed} {
			taken("a deletion", nil, func(tx *store.Tx) error { _, err := tx.DeleteRole(r); return err })
			taken("a name that another role still has", rolecall.ErrRoleNameTaken, insert)
		}
		away := last
		away.Name, away.Version = "Roads", 2
		taken("a new name", nil, func(tx *store.Tx) error { _, err := tx.UpdateRole(last, away); return err })
		taken("a free name", nil, insert)
		renamedAccount := second
		renamedAccount.Name, renamedAccount.Version = "Sales import", 2
		taken("a new name of an account", nil, func(tx *store.Tx) error { _, err := tx.UpdateServiceAccount(second, renamedAccount); return err })
		byAddress := func(email string, want rolecall.UserID) {
			t.Helper()
			if err := s.View(t.Context(), s.tenant, func(tx *store.Tx) error {
				u, _, err := tx.UserByEmail(email)
				if u.ID != want {
					t.Errorf("%s is the address of %s, want %s", email, u.ID, want)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		third := user("Gus", "Ops")
		third.Email = "ADA@bücher.example"
		insertThird := func(tx *store.Tx) error { tx.InsertUser(third); return nil }
		byAddress("ada@BÜCHER.example", unicode.ID)
		byAddress("ada@xn--bcher-kva.example", ascii.ID)
		byAddress("fay@xn--bcher-kva.example", alone.ID)
		byAddress("fay@bücher.example", alone.ID)
		if err := s.View(t.Context(), s.tenant, func(tx *store.Tx) error {
			page, err := tx.Users(rolecall.UserQuery{Within: rolecall.Everywhere(), EmailKey: rolecall.EmailKey(third.Email), Limit: 10})
			if len(page.Items) != 2 {
				t.Errorf("%d users have the address, want both", len(page.Items))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		taken("the address", rolecall.ErrEmailTaken, insertThird)
		named := unicode
		named.Name, named.Version = "Dana", 2
		taken("another name", nil, func(tx *store.Tx) error { _, err := tx.UpdateUser(unicode, named); return err })
		byAddress("ada@bücher.example", unicode.ID)
		taken("a deletion", nil, func(tx *store.Tx) error { _, err := tx.DeleteUser(ascii, now); return err })
		byAddress("ada@xn--bcher-kva.example", unicode.ID)
		taken("the address of the user who stayed", rolecall.ErrEmailTaken, insertThird)
		taken("a deletion", nil, func(tx *store.Tx) error { _, err := tx.DeleteUser(named, now); return err })
		taken("a free address", nil, insertThird)
		s.exec(strings.Split(undone, "; ")...)
		if log := logged(t, s.again); log != "" {
			t.Errorf("the migration of current keys logged:\n%s", log)
		}
	})
}

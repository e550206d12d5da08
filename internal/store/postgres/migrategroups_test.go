package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// withoutDirectories goes back to the schema before migration 23.
const withoutDirectories = "drop table directory_requests; drop table directory_tokens; drop table directory_users; drop table directories; " +
	"alter table users drop column managed_by; alter table connections drop column groups; " +
	"drop index groups_name; drop index groups_source_name; drop index groups_external_id; alter table groups drop column source; " +
	"create unique index groups_name on groups (tenant_id, name_key); " +
	"create unique index groups_external_id on groups (tenant_id, external_id) where external_id is not null; " +
	"delete from compatibility where migration >= 23; delete from migrations where version_id >= 23"

func TestGroupsOfAnOlderProgramHaveNoSource(t *testing.T) {
	onBothStores(t, func(t *testing.T, s *aMigratedStore) {
		group := func(name, externalID string, source rolecall.MemberSource) rolecall.Group {
			return rolecall.Group{ID: rolecall.NewID[rolecall.Group](now), Name: name, ExternalID: &externalID, Source: source, CreatedAt: now, UpdatedAt: now, Version: 1}
		}
		insert := func(g rolecall.Group) error {
			return s.update(t, func(tx *store.Tx) { tx.InsertGroup(g) })
		}
		draft := rolecall.UserDraft{Email: "ada@example.com", Name: "Ada Lovelace"}
		user := draft.User(now)
		old := group("Support", "1", rolecall.MemberSource{})
		if err := errors.Join(insert(old), s.update(t, func(tx *store.Tx) { tx.InsertUser(user) })); err != nil {
			t.Fatal(err)
		}
		s.exec(strings.Split(withoutDirectories, "; ")...)
		s.again()
		if err := s.View(t.Context(), s.tenant, func(tx *store.Tx) error {
			got, err := tx.GroupByID(old.ID)
			if err == nil && (got.Source != rolecall.MemberSource{} || got.Name != old.Name || *got.ExternalID != "1") {
				t.Errorf("the group is %+v", got)
			}
			u, userErr := tx.UserByID(user.ID)
			if u.ManagedBy != nil {
				t.Errorf("%v manages the user", u.ManagedBy)
			}
			return errors.Join(err, userErr)
		}); err != nil {
			t.Fatal(err)
		}
		if err := insert(group("SUPPORT", "2", rolecall.MemberSource{})); !errors.Is(err, rolecall.ErrGroupNameTaken) {
			t.Errorf("the name again: got %v", err)
		}
		if err := insert(group("Sales", "1", rolecall.MemberSource{})); !errors.Is(err, rolecall.ErrGroupExternalIDTaken) {
			t.Errorf("the external id again: got %v", err)
		}
		if err := insert(group("Support", "1", rolecall.SourceOf(rolecall.NewID[rolecall.Directory](now)))); err != nil {
			t.Errorf("the same group from a directory: got %v", err)
		}
	})
}

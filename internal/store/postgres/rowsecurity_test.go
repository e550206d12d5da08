package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

func TestWithoutASettingThereAreNoRows(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, url, postgres.Options{})
	tenant := newTenant(t, s, "acme")
	write(t, s, tenant, func(tx *store.Tx) { tx.InsertUser(aUser("ada@example.com")) })

	conn := connect(t, url)
	count := func() (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "select count(*) from users").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 0 {
		t.Errorf("the owner of the table sees %d rows before the setting was ever made", n)
	}
	run(t, conn, "begin", "select set_config('rolecall.tenant', '"+tenant.String()+"', true)")
	if n := count(); n != 1 {
		t.Errorf("the tenant sees %d rows, want its own", n)
	}
	run(t, conn, "commit")
	if n := count(); n != 0 {
		t.Errorf("%d rows are visible after the transaction, where the setting is ''", n)
	}
	if _, err := conn.Exec(t.Context(), "insert into tenant_guards (tenant_id, n) values ($1, 1)", tenant.String()); err == nil {
		t.Error("a row was written without a tenant")
	}
}

func TestRowSecurityProtectsAgainstAWrongPredicate(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, url, postgres.Options{})
	acme, other := newTenant(t, s, "acme"), newTenant(t, s, "other")
	write(t, s, acme, func(tx *store.Tx) { tx.InsertUser(aUser("ada@example.com")) })

	conn := connect(t, url)
	run(t, conn, "begin", "select set_config('rolecall.tenant', '"+other.String()+"', true)")
	for _, statement := range []string{
		"select id from users",
		"select id from users where tenant_id = '" + acme.String() + "'",
		"update users set name = 'x' where true",
		"delete from users where true",
		"delete from user_words where tenant_id = '" + acme.String() + "'",
	} {
		tag, err := conn.Exec(t.Context(), statement)
		if err != nil || tag.RowsAffected() != 0 {
			t.Errorf("%s: reached %d rows of another tenant (error %v)", statement, tag.RowsAffected(), err)
		}
	}
	if _, err := conn.Exec(t.Context(), "insert into tenant_guards (tenant_id, n) values ('"+acme.String()+"', 1)"); err == nil {
		t.Error("a row was written into another tenant")
	}
}

func TestTheSearchForAnAddressShowsOnlyUsersWithIt(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, url, postgres.Options{})
	for _, name := range []string{"acme", "other"} {
		tenant := newTenant(t, s, name)
		write(t, s, tenant, func(tx *store.Tx) {
			tx.InsertUsers([]rolecall.User{aUser("ada@example.com"), aUser("eve@example.com"), aUser("")})
		})
	}
	conn := connect(t, url)
	run(t, conn, "begin", "select set_config('rolecall.tenant', '', true), set_config('rolecall.address', 'ada@example.com', true)")
	for statement, want := range map[string]int64{
		"select id from users": 2,
		"select id from users where email_key = 'ada@example.com'": 2,
		"select id from users where email_key = 'eve@example.com'": 0,
		"select word from user_words":                              0,
		"update users set name = 'x' where true":                   0,
		"delete from users where true":                             0,
	} {
		if tag, err := conn.Exec(t.Context(), statement); err != nil || tag.RowsAffected() != want {
			t.Errorf("%s: %d rows, not %d (error %v)", statement, tag.RowsAffected(), want, err)
		}
	}
	run(t, conn, "commit")
	if tag, err := conn.Exec(t.Context(), "select id from users"); err != nil || tag.RowsAffected() != 0 {
		t.Errorf("%d rows are visible after the transaction (error %v)", tag.RowsAffected(), err)
	}
}

// The order of texts must not depend on the locale of the database.
func TestIndexedTextsCompareByBytes(t *testing.T) {
	conn := connect(t, pgtest.Migrated(t))
	rows, err := conn.Query(t.Context(), `
		select distinct a.attrelid::regclass || '.' || a.attname from pg_index i
		join pg_class c on c.oid = i.indrelid and c.relnamespace = 'public'::regnamespace
		join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
		where a.attcollation not in (0, 'pg_catalog."C"'::regcollation)`)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if len(columns) > 0 {
		t.Errorf("indexed columns that are not collate \"C\": %q", columns)
	}
}

func TestOpenRefusesWhatDisablesIsolation(t *testing.T) {
	url := pgtest.Migrated(t)
	admin := pgtest.Admin(t, url)
	refused := func(url, sentence string) {
		t.Helper()
		s, err := postgres.Open(t.Context(), url, postgres.Options{})
		if err == nil {
			s.Close()
			t.Fatalf("opened, want an error with %q", sentence)
		}
		if !strings.Contains(err.Error(), sentence) {
			t.Errorf("got %q, want %q in it", err, sentence)
		}
	}
	refused(admin, "is a superuser or has BYPASSRLS")
	open(t, admin, postgres.Options{AllowSuperuser: true})

	owner := connect(t, url)
	run(t, owner, "alter table passwords no force row level security")
	refused(url, "not enabled and forced on passwords")
	run(t, owner, "alter table passwords force row level security", "alter table events disable row level security")
	refused(url, "not enabled and forced on events")
	run(t, owner, "alter table events enable row level security", "drop policy tenant_isolation on roles")
	refused(url, "not enabled and forced on roles")
	url = pgtest.Migrated(t)
	run(t, connect(t, url), "create policy convenience on users using (true)")
	refused(url, "not enabled and forced on users")
}

func TestOpenRefusesARoleThatCanBecomeASuperuser(t *testing.T) {
	url := pgtest.Migrated(t)
	admin := connect(t, pgtest.Admin(t, url))
	name := "rolecall_member_" + strings.ReplaceAll(rolecall.NewID[any](now).String(), "-", "_")
	run(t, admin, "create role "+name+" login password 'member'", "create role "+name+"_exempt bypassrls", "grant "+name+"_exempt to "+name)
	defer run(t, admin, "drop role "+name, "drop role "+name+"_exempt")
	_, err := postgres.Open(t.Context(), strings.ReplaceAll(url, "rolecall_test:rolecall_test@", name+":member@"), postgres.Options{})
	if err == nil || !strings.Contains(err.Error(), `can become "`+name+`_exempt"`) {
		t.Errorf("got %v, want a refusal that names the role", err)
	}
}

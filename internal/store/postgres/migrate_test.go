package postgres_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

// The number of the newest migration must be right, because this program
// does not serve a schema without that migration.
func TestTheNewestMigrationIsKnown(t *testing.T) {
	var newest int64
	err := connect(t, pgtest.Migrated(t)).QueryRow(t.Context(), "select max(version_id) from migrations").Scan(&newest)
	if err != nil || newest != postgres.NewestMigration {
		t.Errorf("the newest migration is %d (error %v), and the program needs %d", newest, err, postgres.NewestMigration)
	}
}

// A program can serve a schema with newer migrations if the table compatibility says so.
func TestOpenRejectsAnUnsupportedSchema(t *testing.T) {
	url := pgtest.URL(t)
	refused := func(sentence string) {
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
	refused("run: rolecall migrate")
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s := open(t, url, postgres.Options{})
	conn := connect(t, url)
	var oldest int
	if err := conn.QueryRow(t.Context(), "select max(oldest) from compatibility").Scan(&oldest); err != nil {
		t.Fatal(err)
	}
	newer := func() {
		t.Helper()
		refused("install a newer Rolecall")
		if err := s.Ready(t.Context()); err == nil {
			t.Error("a store is ready on a schema that does not serve it")
		}
		if err := postgres.Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), "install a newer Rolecall") {
			t.Errorf("migrate: got %v, want a refusal", err)
		}
	}
	run(t, conn, "insert into migrations (version_id, is_applied) values (999, true)")
	newer()
	run(t, conn, "insert into compatibility (migration, oldest) values (999, 999)")
	newer()
	run(t, conn, fmt.Sprintf("update compatibility set oldest = %d where migration = 999", oldest))
	if err := errors.Join(s.Ready(t.Context()), postgres.Migrate(t.Context(), url)); err != nil {
		t.Errorf("beside a newer schema that serves it: %v", err)
	}
	open(t, url, postgres.Options{})
	run(t, conn, "update migrations set version_id = 0")
	refused("run: rolecall migrate")
}

func TestEveryMigrationNamesCompatiblePrograms(t *testing.T) {
	conn := connect(t, pgtest.Migrated(t))
	rows, err := conn.Query(t.Context(), `select coalesce(m.version_id, c.migration)
		from (select version_id from migrations where version_id > 0) m full join compatibility c on c.migration = m.version_id
		where m.version_id is null or c.migration is null or c.oldest > c.migration`)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(wrong) > 0 {
		t.Errorf("migrations %v have no row in compatibility, or a wrong one (error %v)", wrong, err)
	}
	same := "select migration || ' serves ' || oldest from compatibility"
	rows, err = conn.Query(t.Context(), same+" order by migration")
	if err != nil {
		t.Fatal(err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if here := sqliteStrings(t, migratedSQLite(t), same+" order by migration"); err != nil || !slices.Equal(there, here) {
		t.Errorf("PostgreSQL says %q, SQLite %q (error %v)", there, here, err)
	}
}

// An older program stored a copy of the created resource in each idempotency key.
func TestKeysOfAnOlderProgramNameTheirEvent(t *testing.T) {
	url := pgtest.URL(t)
	files, err := postgres.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	older, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := older.UpTo(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	tenant, user, token := rolecall.NewID[rolecall.Tenant](now), rolecall.NewID[rolecall.User](now), rolecall.NewID[any](now)
	conn := connect(t, url)
	run(t, conn, fmt.Sprintf(`insert into tenants (id, name, display_name, status, settings, created_at, updated_at, version) values ('%s', 'acme', '', 'active', '{}', 1, 1, 1)`, tenant),
		fmt.Sprintf("set rolecall.tenant = '%s'", tenant))
	key := rolecall.IdempotencyKey{UserID: user, Operation: "createUser", Fingerprint: []byte{}, ResourceID: rolecall.AnyID(user), EventID: rolecall.NewID[rolecall.Event](now)}
	other := rolecall.IdempotencyKey{UserID: user, Operation: "createToken", Fingerprint: []byte{}, ResourceID: rolecall.AnyID(token)}
	run(t, conn, fmt.Sprintf(`insert into events (tenant_id, id, type, occurred_at, actor_type, actor_via, subject_type, subject_id, members, request_id, source, reason, after)
		values ('%[1]s', '%[2]s', 'user.created', 1, 'user', 'session', 'user', '%[3]s', '[]', '', '', '', '{"name":"Ada"}'),
			('%[1]s', '%[4]s', 'user.updated', 1, 'user', 'session', 'user', '%[3]s', '[]', '', '', '', '{}')`, tenant, key.EventID, user, rolecall.NewID[rolecall.Event](now)))
	for _, k := range []rolecall.IdempotencyKey{key, other} {
		run(t, conn, fmt.Sprintf(`insert into idempotency_keys (tenant_id, user_id, operation, hash, fingerprint, expires_at, status, location, resource_id, resource)
			values ('%s', '%s', '%s', '', '', 0, 0, '', '%s', '{"name":"Ada"}')`, tenant, user, k.Operation, k.ResourceID))
	}
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	var copies int
	if err := conn.QueryRow(t.Context(), "select count(resource) from idempotency_keys").Scan(&copies); err != nil || copies != 1 {
		t.Errorf("%d keys have a copy (error %v), want one", copies, err)
	}
	s := open(t, url, postgres.Options{})
	for _, k := range []rolecall.IdempotencyKey{key, other} {
		k.Hash, k.Resource = []byte{}, []byte(`{"name":"Ada"}`)
		var got rolecall.IdempotencyKey
		err := store.New(s, nil).View(t.Context(), tenant, func(tx *store.Tx) (err error) {
			got, err = tx.Key(k)
			return err
		})
		if err != nil || !reflect.DeepEqual(got, k) {
			t.Errorf("got %+v (error %v), want %+v", got, err, k)
		}
	}
}

func TestManyNodesMigrateAtOnce(t *testing.T) {
	url := pgtest.URL(t) + "&pool_max_conns=3"
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := postgres.Migrate(t.Context(), url); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if err := open(t, url, postgres.Options{}).Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheSchemaCanHaveAnotherName(t *testing.T) {
	url := pgtest.URL(t)
	run(t, connect(t, url), "create schema people")
	url += "&search_path=people"
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s := open(t, url, postgres.Options{})
	newTenant(t, s, "acme")
	var schema string
	if err := connect(t, url).QueryRow(t.Context(), "select relnamespace::regnamespace::text from pg_class where oid = 'users'::regclass").Scan(&schema); err != nil || schema != "people" {
		t.Errorf("users is in schema %q (error %v), want people", schema, err)
	}
}

func TestARoleThatOwnsNothingServes(t *testing.T) {
	url := pgtest.Migrated(t)
	admin := connect(t, pgtest.Admin(t, url))
	name := "rolecall_node_" + strings.ReplaceAll(rolecall.NewID[any](now).String(), "-", "_")
	run(t, admin, "create role "+name+" login password 'node'")
	defer run(t, admin, "drop owned by "+name, "drop role "+name)
	nodeURL := strings.Replace(url, "rolecall_test:rolecall_test@", name+":node@", 1)
	if _, err := postgres.Open(t.Context(), nodeURL, postgres.Options{}); err == nil || !strings.Contains(err.Error(), "migrate --grant-to "+name) {
		t.Errorf("without privileges: %v", err)
	}
	if err := postgres.Grant(t.Context(), url, name); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), nodeURL); err != nil {
		t.Errorf("with nothing to migrate: %v", err)
	}
	s := open(t, nodeURL, postgres.Options{})
	defer s.Close()
	tenant := newTenant(t, s, "acme")
	user := aUser("ada@example.com")
	write(t, s, tenant, func(tx *store.Tx) { tx.InsertUser(user) })
	if !has(t, s, tenant, user.ID) || has(t, s, newTenant(t, s, "other"), user.ID) {
		t.Error("the granted role does not see exactly its tenant's rows")
	}
	write(t, s, tenant, func(tx *store.Tx) {
		tx.InsertEvent(rolecall.Event{ID: rolecall.NewID[rolecall.Event](now), Type: rolecall.EventUserCreated, OccurredAt: now, Members: []string{}, Subject: rolecall.About(user.ID)})
	})
	write(t, s, tenant, func(tx *store.Tx) {
		if n, err := tx.NumberEvents(now); n != 1 || err != nil {
			t.Errorf("the granted role numbered %d events: %v", n, err)
		}
	})
	write(t, s, rolecall.TenantID{}, func(tx *store.Tx) {
		if n, err := tx.GivePlaces(now); n != 1 || err != nil {
			t.Errorf("the granted role gave places to %d batches: %v", n, err)
		}
	})
	if _, err := connect(t, nodeURL).Exec(t.Context(), "alter table users no force row level security"); err == nil {
		t.Error("the granted role changed a table")
	}
	if err := postgres.Grant(t.Context(), url, "nobody\"; drop table users; --"); err == nil {
		t.Error("granted to a role that does not exist")
	}
}

// Both databases have the same tables, columns and named indexes. Only PostgreSQL names
// the primary keys. The tables event_queue and feed_news are different, because SQLite has no
// sequences: it counts only in an integer that is the whole key.
func TestBothSchemasAgree(t *testing.T) {
	conn := connect(t, pgtest.Migrated(t))
	collect := func(query string) []string {
		t.Helper()
		rows, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	db := migratedSQLite(t)
	compare := func(what, postgresQuery, sqliteQuery string) {
		t.Helper()
		there, here := collect(postgresQuery), sqliteStrings(t, db, sqliteQuery)
		ofQueue := func(line string) bool {
			return strings.HasPrefix(line, "event_queue") || strings.HasPrefix(line, "feed_news")
		}
		there, here = slices.DeleteFunc(there, ofQueue), slices.DeleteFunc(here, ofQueue)
		slices.Sort(there)
		slices.Sort(here)
		if !slices.Equal(there, here) || len(here) == 0 {
			t.Errorf("%s differ:\nPostgreSQL %q\nSQLite     %q", what, there, here)
		}
	}
	compare("columns",
		`select table_name || '.' || column_name || case is_nullable when 'NO' then ' not null' else '' end
			from information_schema.columns where table_schema = 'public' and table_name <> 'migrations'`,
		`select m.name || '.' || c.name || case when c."notnull" then ' not null' else '' end
			from sqlite_schema m join pragma_table_info(m.name) c
			where m.type = 'table' and m.name not like 'sqlite%' and m.name <> 'migrations'`)
	compare("indexes",
		`select i.indexrelid::regclass || case when indisunique then ' unique (' else ' (' end || (
				select string_agg(a.attname, ',' order by k.n) from unnest(i.indkey::int[]) with ordinality k(attnum, n)
				join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum) || ')'
			from pg_index i join pg_class c on c.oid = i.indrelid
			where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and not i.indisprimary`,
		`select l.name || case when l."unique" then ' unique (' else ' (' end || (
				select group_concat(x.name, ',') from pragma_index_info(l.name) x) || ')'
			from sqlite_schema m join pragma_index_list(m.name) l
			where m.type = 'table' and l.origin = 'c'`)
	compare("primary keys",
		`select i.indrelid::regclass || ' (' || (
				select string_agg(a.attname, ',' order by k.n) from unnest(i.indkey::int[]) with ordinality k(attnum, n)
				join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum and k.n <= i.indnkeyatts) || ')'
			from pg_index i join pg_class c on c.oid = i.indrelid
			where c.relnamespace = 'public'::regnamespace and i.indisprimary and c.relname <> 'migrations'`,
		`select m.name || ' (' || (
				select group_concat(name, ',') from (select c.name from pragma_table_info(m.name) c where c.pk > 0 order by c.pk)) || ')'
			from sqlite_schema m where m.type = 'table' and m.name not like 'sqlite%' and m.name <> 'migrations'`)
}

func migratedSQLite(t *testing.T) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rolecall.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func sqliteStrings(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestOlderProgramsFindNoTenantInAKeyWithScopes(t *testing.T) {
	url := pgtest.Migrated(t)
	s := store.New(open(t, url, postgres.Options{}), nil)
	err := s.Update(t.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
		for name, tenants := range map[string][]string{"all tenants": nil, "one tenant": {"acme"}} {
			for _, scopes := range [][]rolecall.OperatorScope{nil, {rolecall.ScopeChanges}} {
				draft := rolecall.OperatorKeyDraft{Name: fmt.Sprint(name, scopes), Tenants: tenants, Scopes: scopes, Lifetime: time.Hour}
				tx.InsertOperatorKey(draft.OperatorKey(now), []byte(draft.Name))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := connect(t, url).Query(t.Context(), "select name || ': ' || coalesce(tenants, 'all') from operator_keys order by name")
	if err != nil {
		t.Fatal(err)
	}
	read, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{`all tenants[]: all`, `all tenants[changes]: []`, `one tenant[]: ["acme"]`, `one tenant[changes]: []`}; err != nil || !slices.Equal(read, want) {
		t.Errorf("an older program reads %q (error %v), want %q", read, err, want)
	}
}

// Operators learn which migrations are missing, how long each took, and whether older programs can still run.
func TestMigrationsAreReported(t *testing.T) {
	url := pgtest.URL(t)
	files, err := postgres.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	older, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := older.UpTo(t.Context(), 17); err != nil {
		t.Fatal(err)
	}
	_, err = postgres.Open(t.Context(), url, postgres.Options{})
	old, ok := errors.AsType[*store.OldSchemaError](err)
	if !ok || old.Stored != 17 || int64(len(old.Pending)) != postgres.NewestMigration-17 || !errors.Is(err, store.ErrOldSchema) {
		t.Fatalf("an older schema: %v, %+v", err, old)
	}
	var applied []store.Migration
	if err := postgres.MigrateAndReport(t.Context(), url, func(m []store.Migration) { applied = m }); err != nil {
		t.Fatal(err)
	}
	if len(applied) != len(old.Pending) || applied[0].Name != "0018_id_tokens" || !applied[0].ServesOlder() {
		t.Fatalf("applied were %+v", applied)
	}
	for i := range applied {
		if applied[i].Took <= 0 || applied[i].Number != old.Pending[i].Number {
			t.Errorf("%+v, want %+v with a duration", applied[i], old.Pending[i])
		}
	}
}

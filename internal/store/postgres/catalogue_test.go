package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// sharedTables are the tables that belong to the whole instance. Row-level security must
// protect every other table.
var sharedTables = []string{"attempts", "compatibility", "feed_news", "feed_of_tenants", "feed_places", "instance_key_fingerprints", "instance_keys", "job_queue", "migrations", "operator_keys", "operator_requests", "outbox", "tenants", "webhook_cursors", "webhook_queues"}

// ofCatalogue begins a query over the tables of the schema. The column tenant of the
// query is the number of the column tenant_id of a table, or null if the table has no
// such column.
const ofCatalogue = `with tables as (
	select c.oid, c.relname::text as name, c.relrowsecurity, c.relforcerowsecurity, c.relacl, c.relowner,
		a.attnum as tenant, a.attnotnull, a.atttypid
	from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
	where c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace) `

// isolation is the condition of the row-level security policies, as the server prints it.
const isolation = `(tenant_id = (NULLIF(current_setting('rolecall.tenant'::text, true), ''::text))::uuid)`

// catalogueRules are the rules of a schema that isolates tenants. The query offenders
// selects the objects that break the rule. Its parameters are sharedTables and isolation.
// The statement breach breaks the rule, and the test checks that the query then finds an
// offender.
var catalogueRules = []struct{ rule, offenders, breach string }{
	{
		"a table without tenant_id is on the list of those that are shared",
		`select name from tables where tenant is null and name <> all ($1)`,
		`create table notes (id uuid primary key)`,
	}, {
		"every shared table exists and has no tenant_id",
		`select shared from unnest($1::text[]) shared where not exists (select from tables where name = shared and tenant is null)`,
		`alter table attempts add tenant_id uuid`,
	}, {
		"tenant_id is a uuid and never null",
		`select name from tables where tenant is not null and not (attnotnull and atttypid = 'uuid'::regtype)`,
		`create table notes (tenant_id uuid)`,
	}, {
		"row-level security is enabled on every table of a tenant",
		`select name from tables where tenant is not null and not relrowsecurity`,
		`alter table events disable row level security`,
	}, {
		"row-level security is forced, so that it applies to the owner of the table",
		`select name from tables where tenant is not null and not relforcerowsecurity`,
		`alter table passwords no force row level security`,
	}, {
		"each table has one policy, for all commands and all roles, that allows only rows of the tenant in the setting",
		`select name from tables where tenant is not null and not exists (select from pg_policy where polrelid = tables.oid
			and polname = 'tenant_isolation' and polpermissive and polcmd = '*' and polroles = '{0}'
			and pg_get_expr(polqual, polrelid) = $2 and pg_get_expr(polwithcheck, polrelid) = $2)`,
		`alter policy tenant_isolation on roles with check (true)`,
	}, {
		"no table has a second policy, which would allow more rows, except users, whose rows with the address in the setting can be selected",
		`select name from tables where exists (select from pg_policy where polrelid = tables.oid and polname <> 'tenant_isolation' and not (
			tables.name = 'users' and polname = 'address_search' and polcmd = 'r' and polroles = '{0}'
			and pg_get_expr(polqual, polrelid) = '(email_key = NULLIF(current_setting(''rolecall.address''::text, true), ''''::text))'))`,
		`create policy convenience on users using (true)`,
	}, {
		"the policy for the search of addresses shows only those with the address in the setting",
		`select name from tables where exists (select from pg_policy where polrelid = tables.oid and polname = 'address_search'
			and pg_get_expr(polqual, polrelid) <> '(email_key = NULLIF(current_setting(''rolecall.address''::text, true), ''''::text))')`,
		`alter policy address_search on users using (true)`,
	}, {
		"each unique index begins with tenant_id, because a violation would reveal rows of another tenant",
		`select indexrelid::regclass::text from pg_index join tables on tables.oid = indrelid
		where (indisunique or indisexclusion) and indkey[0] <> tenant`,
		`create unique index users_name_globally on users (name_key)`,
	}, {
		"each foreign key includes tenant_id, because its check ignores policies",
		`select conname::text from pg_constraint join tables on tables.oid = conrelid left join tables target on target.oid = confrelid
		where contype = 'f' and (conkey[1] is distinct from tables.tenant
			or target.name <> 'tenants' and confkey[1] is distinct from target.tenant)`,
		`alter table tombstones add foreign key (user_id) references tenants (id)`,
	}, {
		"the schema has only tables, indexes, sequences and objects of extensions: no views, which read as their owner",
		`select relname::text from pg_class where relnamespace = current_schema()::regnamespace and relkind not in ('r', 'p', 'i', 'I', 'S')
		and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')`,
		`create view everybody as select * from users`,
	}, {
		"the schema has no functions, which could act as their owner",
		`select proname::text from pg_proc where pronamespace = current_schema()::regnamespace`,
		`create function everybody() returns bigint language sql security definer as 'select count(*) from users'`,
	}, {
		"the schema has no triggers and no rules",
		`select tgname::text from pg_trigger join tables on tables.oid = tgrelid where not tgisinternal
		union all select rulename::text from pg_rewrite join tables on tables.oid = ev_class`,
		`create rule silence as on delete to events do instead nothing`,
	}, {
		"roles that do not own a table may only read and write rows, because TRUNCATE and REFERENCES ignore policies",
		`select name from tables, aclexplode(relacl) where grantee <> relowner
			and (grantee = 0 or privilege_type not in ('SELECT', 'INSERT', 'UPDATE', 'DELETE') or is_grantable)`,
		`grant truncate on users to public`,
	}, {
		"no role has privileges on single columns",
		`select attrelid::regclass::text from pg_attribute join tables on tables.oid = attrelid where attacl is not null`,
		`grant references (id) on users to public`,
	}, {
		"the serving role cannot bypass policies, and cannot become a role that bypasses them",
		`select rolname::text from pg_roles where (rolsuper or rolbypassrls) and pg_has_role(current_user, oid, 'member')`,
		`reset role`,
	},
}

// TestTheCatalogueIsolatesTenants checks the rules in a migrated database, as its owner
// and after a Grant to another role.
func TestTheCatalogueIsolatesTenants(t *testing.T) {
	url := pgtest.Migrated(t)
	conn := connect(t, pgtest.Admin(t, url)) // as a superuser, which can run the breach of every rule
	server := "rolecall_server_" + strings.ReplaceAll(rolecall.NewID[any](now).String(), "-", "_")
	run(t, conn, "create role "+server)
	defer run(t, conn, "drop owned by "+server, "drop role "+server)
	if err := postgres.Grant(t.Context(), url, server); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"rolecall_test", server} {
		run(t, conn, "set role "+role)
		for _, r := range catalogueRules {
			if names := offendersOf(t, conn, r.offenders); len(names) > 0 {
				t.Errorf("as %s: %s: broken by %q", role, r.rule, names)
			}
		}
	}
	for _, r := range catalogueRules {
		run(t, conn, "set role rolecall_test", "begin", r.breach)
		if names := offendersOf(t, conn, r.offenders); len(names) == 0 {
			t.Errorf("%s: not seen to be broken by %q", r.rule, r.breach)
		}
		run(t, conn, "rollback")
	}
	run(t, conn, "reset role")
}

// offendersOf returns the names of the objects that the query selects because they break a
// rule.
func offendersOf(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), ofCatalogue+query+" and $1::text[] is not null and $2::text is not null", sharedTables, isolation)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// tenantTables returns, for each table with the data of tenants, a statement that inserts
// a row of the tenant. The values depend only on the types of the columns.
func tenantTables(t *testing.T, conn *pgx.Conn, tenant rolecall.TenantID) map[string]string {
	t.Helper()
	rows, err := conn.Query(t.Context(), ofCatalogue+`
		select name, string_agg(quote_ident(attname), ', ' order by attnum), string_agg(case
			when attname = 'tenant_id' then quote_literal($1)
			else case a.atttypid::regtype::text when 'uuid' then 'gen_random_uuid()' when 'bigint' then '1' when 'text' then '''x''' when 'bytea' then '''\x01''' end
			end, ', ' order by attnum)
		from tables join pg_attribute a on attrelid = tables.oid and attnum > 0 and not attisdropped where tenant is not null group by name`, tenant.String())
	if err != nil {
		t.Fatal(err)
	}
	inserts := map[string]string{}
	var name, columns, values string
	if _, err := pgx.ForEachRow(rows, []any{&name, &columns, &values}, func() error {
		inserts[name] = fmt.Sprintf("insert into %s (%s) values (%s)", name, columns, values)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(inserts) < 10 {
		t.Fatalf("found only %d tables of tenants", len(inserts))
	}
	return inserts
}

// TestEveryTableFailsClosed inserts rows of two tenants into every table. Then it reads
// and writes as the owner of the tables, with each possible setting of the tenant.
func TestEveryTableFailsClosed(t *testing.T) {
	url := pgtest.Migrated(t)
	acme, other := rolecall.NewID[rolecall.Tenant](now), rolecall.NewID[rolecall.Tenant](now)
	admin, owner := connect(t, pgtest.Admin(t, url)), connect(t, url)
	run(t, admin, "set session_replication_role = replica") // disables the checks of references
	foreign := tenantTables(t, admin, other)
	for table, insert := range tenantTables(t, admin, acme) {
		run(t, admin, insert, foreign[table])
	}
	for _, state := range []struct {
		name, setting string
		rows          int64
	}{
		{"never set", "", 0},
		{"empty", "select set_config('rolecall.tenant', '', true)", 0},
		{"another tenant's", "select set_config('rolecall.tenant', '" + rolecall.NewID[any](now).String() + "', true)", 0},
		{"the tenant's", "select set_config('rolecall.tenant', '" + acme.String() + "', true)", 1},
	} {
		t.Run(state.name, func(t *testing.T) {
			for table, insert := range foreign {
				for _, statement := range []string{"select from " + table, "update " + table + " set tenant_id = tenant_id", "delete from " + table} {
					if n, err := attempt(t, owner, state.setting, statement); err != nil || n != state.rows {
						t.Errorf("%s: %d rows, want %d (%v)", statement, n, state.rows, err)
					}
				}
				if _, err := attempt(t, owner, state.setting, insert); err == nil || !strings.Contains(err.Error(), "row-level security") {
					t.Errorf("%s: %v, want a refusal", insert, err)
				}
				move := "update " + table + " set tenant_id = '" + other.String() + "'"
				if _, err := attempt(t, owner, state.setting, move); (err == nil) != (state.rows == 0) {
					t.Errorf("%s: %v", move, err)
				}
			}
		})
	}
	for table := range foreign {
		if _, err := attempt(t, owner, "select set_config('rolecall.tenant', 'acme', true)", "select from "+table); err == nil {
			t.Errorf("%s can be read with a setting that is no id", table)
		}
		if _, err := attempt(t, owner, "set local row_security = off", "select from "+table); err == nil || !strings.Contains(err.Error(), "row-level security") {
			t.Errorf("%s with row_security off: %v, want a refusal", table, err)
		}
	}
}

// attempt runs setting and then statement in a transaction, rolls it back, and returns the
// number of rows that the statement affected.
func attempt(t *testing.T, conn *pgx.Conn, setting, statement string) (rows int64, err error) {
	t.Helper()
	run(t, conn, "begin", setting)
	defer run(t, conn, "rollback")
	tag, err := conn.Exec(t.Context(), statement)
	return tag.RowsAffected(), err
}

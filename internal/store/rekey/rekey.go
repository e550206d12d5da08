// Package rekey is the part of migration 20 that SQL cannot express: it computes the keys of names again. Both stores
// call it with the transaction of their migration.
package rekey

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// Version is the number of the migration.
const Version = 20

// Migration describes the migration. Programs that do not know it cannot serve the schema.
var Migration = store.Migration{Number: Version, Name: "0020_keys_of_names", Oldest: Version}

// Dialect has the differences between the databases.
type Dialect struct {
	SetTenant func(tenant rolecall.TenantID) []string // returns the statements that make the rows of the tenant visible
	ID        func(id rolecall.AnyID) any             // returns the id as an argument of a statement
}

// rowsAtOnce is the number of users that are read at once.
const rowsAtOnce = 1000

// run is one run of the migration.
type run struct {
	Dialect
	ctx context.Context
	tx  *sql.Tx
}

// tenantRun is the part of a run for one tenant.
type tenantRun struct {
	run
	tenant      rolecall.TenantID
	departments map[string]bool // the spellings of the departments of users
}

// Keys computes the keys of names in all tenants, and logs each reach that gains or loses users by the new keys. Of
// names that have the same key now, that of the oldest row has the key itself. The others have the key with
// rolecall.Duplicate.
func Keys(ctx context.Context, tx *sql.Tx, dialect Dialect) error {
	r := run{dialect, ctx, tx}
	var tenants []tenantRow
	if err := r.query("select id, name from tenants", nil, into(&tenants, func(t *tenantRow) []any { return []any{&t.id, &t.name} })); err != nil {
		return err
	}
	for _, tenant := range tenants {
		for _, statement := range dialect.SetTenant(tenant.id) {
			if err := r.exec(statement); err != nil {
				return err
			}
		}
		t := tenantRun{r, tenant.id, map[string]bool{}}
		if err := t.keys(tenant.name); err != nil {
			return fmt.Errorf("tenant %s: %w", tenant.name, err)
		}
	}
	return r.exec(fmt.Sprintf("insert into compatibility (migration, oldest) values (%[1]d, %[1]d)", Version))
}

type tenantRow struct {
	id   rolecall.TenantID
	name string
}

func (t *tenantRun) keys(name string) error {
	if err := t.users(); err != nil {
		return err
	}
	if err := t.tombstones(); err != nil {
		return err
	}
	for _, table := range []struct {
		name, condition string
		searched        bool
		key             func(name string) string
	}{
		{"roles", " and deletion is null", true, func(name string) string { return (&rolecall.Role{Name: name}).NameKey() }},
		{"service_accounts", "", true, func(name string) string { return (&rolecall.ServiceAccount{Name: name}).NameKey() }},
		{"connections", "", false, func(name string) string { return (&rolecall.Connection{Name: name}).NameKey() }},
	} {
		rows, err := t.names(table.name, table.condition, table.key)
		if err != nil {
			return err
		}
		for i := 0; table.searched && i < len(rows); i++ {
			if err := t.exec("update "+table.name+" set words = $1 where tenant_id = $2 and id = $3",
				store.NameWords(rows[i].name), t.id(t.tenant), t.id(rows[i].id)); err != nil {
				return err
			}
		}
	}
	return t.reaches(name)
}

type userRow struct {
	rolecall.User
	emailKey      string
	nameKey       string
	departmentKey *string
	words         string
}

func (t *tenantRun) users() error {
	last := rolecall.UserID{15: 1} // smaller than the id of every user
	for {
		var rows []userRow
		err := t.query(fmt.Sprintf(`select id, email, email_key, name, name_key, department, department_key, words
			from users where tenant_id = $1 and id > $2 order by id limit %d`, rowsAtOnce), []any{t.id(t.tenant), t.id(last)},
			into(&rows, func(u *userRow) []any {
				return []any{&u.ID, &u.Email, &u.emailKey, &u.Name, &u.nameKey, &u.Department, &u.departmentKey, &u.words}
			}))
		if err != nil {
			return err
		}
		for i := range rows {
			if err := t.user(&rows[i]); err != nil {
				return err
			}
		}
		if len(rows) < rowsAtOnce {
			return nil
		}
		last = rows[len(rows)-1].ID
	}
}

func (t *tenantRun) user(u *userRow) error {
	if u.Department != nil {
		t.departments[*u.Department] = true
	}
	words := store.WordsOf(&u.User)
	nameKey, departmentKey := u.NameKey(), u.DepartmentKey()
	if err := t.email(u); err != nil {
		return err
	}
	if nameKey == u.nameKey && equal(departmentKey, u.departmentKey) && words.Text() == u.words {
		return nil
	}
	err := t.exec("update users set name_key = $1, department_key = $2, words = $3 where tenant_id = $4 and id = $5",
		nameKey, departmentKey, words.Text(), t.id(t.tenant), t.id(u.ID))
	if err != nil || words.Text() == u.words {
		return err
	}
	for _, word := range store.WordsIn(u.words).Rows() {
		if err := t.exec("delete from user_words where tenant_id = $1 and word = $2 and user_id = $3", t.id(t.tenant), word, t.id(u.ID)); err != nil {
			return err
		}
	}
	rows := words.Rows()
	for _, word := range rows {
		if err := t.exec("insert into user_words (tenant_id, word, user_id, beginnings) values ($1, $2, $3, $4)",
			t.id(t.tenant), word, t.id(u.ID), rows.Beginnings()); err != nil {
			return err
		}
	}
	return nil
}

// email computes the key of the user's address.
func (t *tenantRun) email(u *userRow) error {
	key := u.EmailKey()
	if key == u.emailKey {
		return nil
	}
	var holders []rolecall.UserID
	err := t.query("select id from users where tenant_id = $1 and email_key = $2 and id <> $3", []any{t.id(t.tenant), key, t.id(u.ID)},
		into(&holders, func(id *rolecall.UserID) []any { return []any{id} }))
	if err != nil {
		return err
	}
	if len(holders) > 0 {
		key = rolecall.DuplicateEmailKey(u.Email)
	}
	return t.exec("update users set email_key = $1 where tenant_id = $2 and id = $3", key, t.id(t.tenant), t.id(u.ID))
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

type tombstoneRow struct {
	user       rolecall.UserID
	department string
}

func (t *tenantRun) tombstones() error {
	var rows []tombstoneRow
	err := t.query("select user_id, department from tombstones where tenant_id = $1 and department is not null", []any{t.id(t.tenant)},
		into(&rows, func(r *tombstoneRow) []any { return []any{&r.user, &r.department} }))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := t.exec("update tombstones set department_key = $1 where tenant_id = $2 and user_id = $3",
			rolecall.TextKey(row.department), t.id(t.tenant), t.id(row.user)); err != nil {
			return err
		}
	}
	return nil
}

type nameRow struct {
	id                rolecall.AnyID
	name, stored, key string
}

// names computes the unique keys of the names in a table, and returns the rows.
func (t *tenantRun) names(table, condition string, keyOf func(string) string) (rows []nameRow, err error) {
	err = t.query("select id, name, name_key from "+table+" where tenant_id = $1"+condition+" order by id", []any{t.id(t.tenant)},
		into(&rows, func(r *nameRow) []any { return []any{&r.id, &r.name, &r.stored} }))
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	var changed []nameRow
	for _, row := range rows {
		row.key = keyOf(row.name)
		if taken[row.key] {
			row.key = rolecall.Duplicate(row.key, row.id)
		}
		taken[row.key] = true
		if row.key != row.stored {
			changed = append(changed, row)
		}
	}
	update := "update " + table + " set name_key = $1 where tenant_id = $2 and id = $3"
	for _, row := range changed { // otherwise, a new key could equal the old key of another row
		if err := t.exec(update, rolecall.Duplicate("", row.id), t.id(t.tenant), t.id(row.id)); err != nil {
			return nil, err
		}
	}
	for _, row := range changed {
		if err := t.exec(update, row.key, t.id(t.tenant), t.id(row.id)); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (d Dialect) id(id [16]byte) any { return d.ID(rolecall.AnyID(id)) }

func (r run) exec(statement string, args ...any) error {
	_, err := r.tx.ExecContext(r.ctx, statement, args...)
	return err
}

func (r run) query(statement string, args []any, each func(scan func(dest ...any) error) error) error {
	rows, err := r.tx.QueryContext(r.ctx, statement, args...)
	if err != nil {
		return err
	}
	for rows.Next() && err == nil {
		err = each(rows.Scan)
	}
	if closed := rows.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = rows.Err()
	}
	return err
}

func into[T any](items *[]T, dest func(*T) []any) func(scan func(dest ...any) error) error {
	return func(scan func(dest ...any) error) error {
		var item T
		err := scan(dest(&item)...)
		*items = append(*items, item)
		return err
	}
}

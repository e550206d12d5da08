package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// reports is a test that only records its failures.
type reports struct {
	testing.TB
	texts []string
}

// Errorf records the failure.
func (r *reports) Errorf(format string, args ...any) {
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

// has reports whether a failure contains the text.
func (r *reports) has(text string) bool {
	return slices.ContainsFunc(r.texts, func(failure string) bool { return strings.Contains(failure, text) })
}

// RunChecks tests the checks of the suite itself, on an empty, migrated database. Caches must find a change of each kind
// of cached data, and Isolated statements without a condition for the tenant. The database must have no row security,
// so that RowSecured finds every read.
func RunChecks(t *testing.T, db store.Database) {
	r := &reports{TB: t}
	caches := NewCaches(r, db)
	f := &fixture{T: t, database: db, store: caches.store()}
	f.tenant = f.newTenant("acme")
	contents := f.fill()
	key, bucket := anOperatorKey(), aBucket(60)
	f.putOperatorKey(key)
	f.in(rolecall.TenantID{}).attempt(start, bucket)
	if len(r.texts) > 0 {
		t.Fatalf("the tenant was filled: %q", r.texts)
	}
	for _, change := range []struct {
		table, statement string
		args             []any
	}{
		{"tenants", `update tenants set display_name = 'Other' where id = $1`, []any{f.tenant}},
		{"users", `update users set name = 'Other' where tenant_id = $1 and id = $2`, []any{f.tenant, contents.users[0].ID}},
		{"service_accounts", `update service_accounts set status = 'suspended' where tenant_id = $1 and id = $2`, []any{f.tenant, contents.accounts[0].ID}},
		{"session_tokens", `update sessions set confirmed_at = confirmed_at + 1 where tenant_id = $1 and id = $2`, []any{f.tenant, contents.sessions[0].ID}},
		{"api_tokens", `update api_tokens set expires_at = expires_at + 1 where tenant_id = $1 and id = $2`, []any{f.tenant, contents.tokenIDs[0]}},
		{"operator_keys", `update operator_keys set name = 'Other' where id = $1`, []any{key.ID}},
		{"attempts", `delete from attempts where bucket = $1`, []any{bucket.Key}},
	} {
		r.texts = nil
		err := caches.Update(t.Context(), f.tenant, func(q store.Querier) error {
			q.Exec(change.statement, change.args...)
			return nil
		})
		caches.ended()
		if err != nil || !r.has("what nodes cache of "+change.table+" ") {
			t.Errorf("a change of %s is not found: %q, %v", change.table, r.texts, err)
		}
	}
	for name, scan := range map[string]bool{"reads": true, "counts": false} {
		r.texts = nil
		err := Isolated(r, db).View(t.Context(), f.tenant, func(q store.Querier) error {
			_, err := q.Query(`select name from users where $1 is not null and id = $2`, []any{f.tenant, contents.users[0].ID}, func(row func(...any) error) error {
				if scan {
					return row(new(string))
				}
				return nil
			})
			return err
		})
		if err != nil || !r.has("another tenant ") {
			t.Errorf("a statement that %s users of all tenants is not found: %q, %v", name, r.texts, err)
		}
	}
	r.texts = nil
	f.store = store.New(RowSecured(r, db), nil)
	if f.hasUser(contents.users[0].ID); !r.has("another tenant ") {
		t.Errorf("a read without row security is not found: %q", r.texts)
	}
}

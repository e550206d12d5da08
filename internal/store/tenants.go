package store

import (
	"time"

	"github.com/rolecall/rolecall"
)

// keptDeleted is how long the name of a deleted tenant stays taken.
const keptDeleted = 30 * 24 * time.Hour

const (
	tenantColumns = `id, name, display_name, status, settings, created_at, updated_at, version`

	selectTenantByName = `select ` + tenantColumns + ` from tenants
		where name = $1 and status <> 'deleted' and status <> 'purged'`

	selectTenantByID = `select ` + tenantColumns + ` from tenants
		where id = $1 and status <> 'deleted' and status <> 'purged'`

	selectTenants = `select ` + tenantColumns + ` from tenants
		where name > $1 and status <> 'deleted' and status <> 'purged' order by name limit $2`

	// forgetTenant frees the name of a tenant that was deleted long ago.
	forgetTenant = `delete from tenants where name = $1 and status = 'purged' and updated_at <= $2`

	insertTenant = `insert into tenants (id, name, display_name, status, settings, created_at, updated_at, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`

	insertGuard = `insert into tenant_guards (tenant_id, n) values ($1, 0)`

	updateTenant = `update tenants set display_name = $1, status = $2, settings = $3, updated_at = $4, version = $5
		where id = $6 and version = $7 returning version`

	deleteTenant = `update tenants set status = 'deleted', updated_at = $1, version = version + 1
		where id = $2 and version = $3 and status <> 'deleted' and status <> 'purged' returning version`

	selectDeletedTenants = `select id from tenants where status = 'deleted' and updated_at <= $1 order by updated_at limit $2`
)

func tenantDest(t *rolecall.Tenant) []any {
	return []any{&t.ID, &t.Name, &t.DisplayName, &t.Status, asJSON(&t.Settings), &t.CreatedAt, &t.UpdatedAt, &t.Version}
}

// TenantByName returns the tenant, or ErrNotFound.
func (t *Tx) TenantByName(name string) (tenant rolecall.Tenant, err error) {
	err = t.row(selectTenantByName, []any{name}, tenantDest(&tenant)...)
	return tenant, err
}

// TenantByID returns the tenant, or ErrNotFound.
func (t *Tx) TenantByID(id rolecall.TenantID) (tenant rolecall.Tenant, err error) {
	err = t.row(selectTenantByID, []any{id}, tenantDest(&tenant)...)
	return tenant, err
}

// Tenants returns up to limit tenants by name, after the given one.
func (t *Tx) Tenants(after string, limit int) ([]rolecall.Tenant, error) {
	var tenants []rolecall.Tenant
	err := t.q.Query(selectTenants, []any{after, limit}, into(&tenants, tenantDest))
	return tenants, err
}

// TenantsAmong is Tenants for those of the names alone, of which there are few.
func (t *Tx) TenantsAmong(names []string, after string, limit int) ([]rolecall.Tenant, error) {
	var b builder
	b.write("select "+tenantColumns+" from tenants where name > ? and status <> 'deleted' and status <> 'purged'", after)
	b.all([]condition{oneOf("name", names)})
	b.write(" order by name")
	b.limit(limit)
	var tenants []rolecall.Tenant
	err := b.query(t.q, into(&tenants, tenantDest))
	return tenants, err
}

// InsertTenant writes a new tenant, in a transaction of that tenant. Update
// returns ErrTenantExists, also if the name was freed less than 30 days ago.
func (t *Tx) InsertTenant(tenant rolecall.Tenant) {
	t.q.Exec(forgetTenant, tenant.Name, tenant.CreatedAt.Add(-keptDeleted))
	t.q.Exec(insertTenant, tenant.ID, tenant.Name, tenant.DisplayName, string(tenant.Status), asJSON(&tenant.Settings),
		tenant.CreatedAt, tenant.UpdatedAt, tenant.Version)
	t.q.Exec(insertGuard, tenant.ID)
}

// UpdateTenant replaces old by changed if old's version is still the stored one,
// and reports whether it was.
func (t *Tx) UpdateTenant(old, changed rolecall.Tenant) (bool, error) {
	return t.changed(updateTenant, changed.DisplayName, string(changed.Status), asJSON(&changed.Settings),
		changed.UpdatedAt, changed.Version, old.ID, old.Version)
}

// DeleteTenant makes the tenant unknown at once and keeps its name from being used
// for 30 days, if the version is still the stored one; it reports whether it was.
func (t *Tx) DeleteTenant(tenant rolecall.Tenant, at rolecall.Time) (bool, error) {
	return t.changed(deleteTenant, at, tenant.ID, tenant.Version)
}

// DeletedTenants returns up to limit tenants that were deleted before the moment
// and still hold rows, the first deleted first.
func (t *Tx) DeletedTenants(before rolecall.Time, limit int) ([]rolecall.TenantID, error) {
	var ids []rolecall.TenantID
	err := t.q.Query(selectDeletedTenants, []any{before, limit}, into(&ids, itself))
	return ids, err
}

package store

import (
	"time"

	"github.com/rolecall/rolecall"
)

// keptDeleted is how long the name of a deleted tenant is reserved after the deletion.
const keptDeleted = 30 * 24 * time.Hour

// The table of tenants belongs to the whole instance, so these statements do not depend on
// the tenant of the transaction.
const (
	tenantColumns = `id, name, display_name, status, settings, logo, created_at, updated_at, version`

	selectTenantByName = `select ` + tenantColumns + ` from tenants
		where name = $1 and status <> 'deleted' and status <> 'purged'`

	selectTenantByID = `select ` + tenantColumns + ` from tenants
		where id = $1 and status <> 'deleted' and status <> 'purged'`

	// For a deleted tenant, the column updated_at contains the time of its purge.
	selectDeletedTenant = `select ` + tenantColumns + ` from tenants
		where name = $1 and status = 'deleted' and restores_to is not null and updated_at > $2`

	// forgetTenant deletes the row of a purged tenant, so that a new tenant can use the
	// name. The row must be old enough.
	forgetTenant = `delete from tenants where name = $1 and status = 'purged' and updated_at <= $2`

	insertTenant = `insert into tenants (id, name, display_name, status, settings, created_at, updated_at, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`

	insertGuard = `insert into tenant_guards (tenant_id, n) values ($1, 0)`

	updateTenant = `update tenants set display_name = $1, status = $2, settings = $3, updated_at = $4, version = $5
		where id = $6 and version = $7 returning version`

	updateLogo = `update tenants set logo = $1, updated_at = $2, version = $3
		where id = $4 and version = $5 and status <> 'deleted' and status <> 'purged' returning version`

	upsertLogoFile = `insert into tenant_logos (tenant_id, media_type, content) values ($1, $2, $3)
		on conflict (tenant_id) do update set media_type = excluded.media_type, content = excluded.content`

	deleteLogoFile = `delete from tenant_logos where tenant_id = $1`

	selectLogoFile = `select media_type, content from tenant_logos where tenant_id = $1`

	deleteTenant = `update tenants set status = 'deleted', restores_to = status, updated_at = $1, version = version + 1
		where id = $2 and version = $3 and status <> 'deleted' and status <> 'purged' returning version`

	restoreTenant = `update tenants set status = restores_to, restores_to = null, updated_at = $1, version = version + 1
		where id = $2 and version = $3 and status = 'deleted' and restores_to is not null and updated_at > $1 returning version`

	selectTenantsToPurge = `select id from tenants where status = 'deleted' and updated_at <= $1 order by updated_at limit $2`
)

func (t *Tx) tenantDest(tenant *rolecall.Tenant) []any {
	tenant.Settings.EventsAtLeast = t.eventsAtLeast
	return []any{&tenant.ID, &tenant.Name, &tenant.DisplayName, &tenant.Status, asJSON(&tenant.Settings), asJSON(&tenant.Logo),
		&tenant.CreatedAt, &tenant.UpdatedAt, &tenant.Version}
}

// TenantByName returns the tenant with this name, or ErrNotFound. Deleted tenants are not
// found.
func (t *Tx) TenantByName(name string) (tenant rolecall.Tenant, err error) {
	err = t.row(selectTenantByName, []any{name}, t.tenantDest(&tenant)...)
	return tenant, err
}

// TenantByID returns the tenant with this id, or ErrNotFound. Deleted tenants are not
// found.
func (t *Tx) TenantByID(id rolecall.TenantID) (tenant rolecall.Tenant, err error) {
	err = t.row(selectTenantByID, []any{id}, t.tenantDest(&tenant)...)
	return tenant, err
}

// TenantNames returns the names of the tenants with the ids, of which there are at most 250. It includes
// deleted tenants.
func (t *Tx) TenantNames(ids []rolecall.TenantID) (map[rolecall.TenantID]string, error) {
	names := map[rolecall.TenantID]string{}
	if len(ids) == 0 {
		return names, nil
	}
	var b builder
	among := oneOf("id", ids)
	b.write("select id, name from tenants where "+among.sql, among.args...)
	_, err := b.query(t.q, func(scan func(dest ...any) error) error {
		var id rolecall.TenantID
		var name string
		err := scan(&id, &name)
		names[id] = name
		return err
	})
	return names, err
}

// TenantsByID returns the tenants with the ids, of which there are at most 250, in no particular order.
// Deleted tenants are not found.
func (t *Tx) TenantsByID(ids []rolecall.TenantID) (tenants []rolecall.Tenant, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var b builder
	among := oneOf("id", ids)
	b.write("select "+tenantColumns+" from tenants where status <> 'deleted' and status <> 'purged' and "+among.sql, among.args...)
	_, err = b.query(t.q, into(&tenants, t.tenantDest))
	return tenants, err
}

// Tenants returns the tenants that q selects, sorted by name.
func (t *Tx) Tenants(q rolecall.TenantQuery) ([]rolecall.Tenant, error) {
	var b builder
	b.write("select "+tenantColumns+" from tenants where name > ?", q.After)
	switch q.Status {
	case "":
		b.write(" and status <> 'deleted' and status <> 'purged'")
	case rolecall.TenantDeleted:
		b.write(" and status = 'deleted' and restores_to is not null and updated_at > ?", q.Now)
	default:
		b.write(" and status = ?", string(q.Status))
	}
	if q.Among != nil {
		b.all([]condition{oneOf("name", q.Among)})
	}
	b.write(" order by name")
	b.limit(q.Limit)
	var tenants []rolecall.Tenant
	_, err := b.query(t.q, into(&tenants, t.tenantDest))
	for i := range tenants {
		setPurge(&tenants[i])
	}
	return tenants, err
}

// DeletedTenant returns the deleted tenant with this name. It returns ErrNotFound if there
// is no such tenant, or if the tenant cannot be restored any more at now.
func (t *Tx) DeletedTenant(name string, now rolecall.Time) (tenant rolecall.Tenant, err error) {
	err = t.row(selectDeletedTenant, []any{name, now}, t.tenantDest(&tenant)...)
	setPurge(&tenant)
	return tenant, err
}

// setPurge sets PurgeAt and UpdatedAt of a deleted tenant. The column updated_at of such a
// tenant contains the time of the purge.
func setPurge(t *rolecall.Tenant) {
	if t.Status == rolecall.TenantDeleted {
		t.PurgeAt, t.UpdatedAt = t.UpdatedAt, t.UpdatedAt.Add(-rolecall.TenantRestorable)
	}
}

// InsertTenant inserts a tenant. The transaction must be one of that tenant. Update
// returns ErrTenantExists if another tenant has the name. A deleted tenant has its name
// until 30 days after the deletion, and at least until it is purged.
func (t *Tx) InsertTenant(tenant rolecall.Tenant) {
	t.q.Exec(forgetTenant, tenant.Name, tenant.CreatedAt.Add(rolecall.TenantRestorable-keptDeleted))
	t.q.Exec(insertTenant, tenant.ID, tenant.Name, tenant.DisplayName, string(tenant.Status), asJSON(&tenant.Settings),
		tenant.CreatedAt, tenant.UpdatedAt, tenant.Version)
	t.q.Exec(insertGuard, tenant.ID)
	t.invalidateHere(rolecall.TenantNameID(tenant.Name))
}

// UpdateTenant stores changed in place of old. It returns false if the stored version is
// not old.Version, or if the tenant does not exist.
func (t *Tx) UpdateTenant(old, changed rolecall.Tenant) (bool, error) {
	ok, err := t.changed(updateTenant, changed.DisplayName, string(changed.Status), asJSON(&changed.Settings),
		changed.UpdatedAt, changed.Version, old.ID, old.Version)
	return t.invalidateIf(ok, err, old.ID)
}

// UpdateLogo stores the logo of changed in place of that of old, with the file. If file is
// nil, it deletes the file. It returns false if the stored version is not old.Version, or
// if the tenant does not exist. The transaction must be one of that tenant.
func (t *Tx) UpdateLogo(old, changed rolecall.Tenant, file *rolecall.LogoFile) (bool, error) {
	ok, err := t.changed(updateLogo, asJSON(&changed.Logo), changed.UpdatedAt, changed.Version, old.ID, old.Version)
	switch {
	case !ok || err != nil:
		return ok, err
	case file == nil:
		t.q.Exec(deleteLogoFile, t.tenant)
	default:
		t.q.Exec(upsertLogoFile, t.tenant, file.MediaType, file.Content)
	}
	return t.invalidateIf(ok, err, old.ID)
}

// LogoFile returns the file of the tenant's logo. It returns ErrNotFound if the tenant has
// no logo.
func (t *Tx) LogoFile() (file rolecall.LogoFile, err error) {
	err = t.row(selectLogoFile, []any{t.tenant}, &file.MediaType, &file.Content)
	return file, err
}

// DeleteTenant hides the tenant immediately and schedules its purge. The name of the
// tenant is reserved for 30 days. DeleteTenant returns false if the stored version is not
// tenant.Version, or if the tenant is already deleted.
func (t *Tx) DeleteTenant(tenant rolecall.Tenant, purgeAt rolecall.Time) (bool, error) {
	ok, err := t.changed(deleteTenant, purgeAt, tenant.ID, tenant.Version)
	return t.invalidateIf(ok, err, tenant.ID)
}

// RestoreTenant restores the deleted tenant with the status that it had before the
// deletion. It returns false if the stored version is not tenant.Version, if the tenant is
// not deleted, or if its purge is due.
func (t *Tx) RestoreTenant(tenant rolecall.Tenant, at rolecall.Time) (bool, error) {
	ok, err := t.changed(restoreTenant, at, tenant.ID, tenant.Version)
	if ok {
		t.invalidateHere(rolecall.TenantNameID(tenant.Name))
	}
	return t.invalidateIf(ok, err, tenant.ID)
}

// TenantsToPurge returns up to limit deleted tenants that still have rows and whose purge
// was due at or before the given time. They are sorted by the time at which the purge was
// due.
func (t *Tx) TenantsToPurge(before rolecall.Time, limit int) ([]rolecall.TenantID, error) {
	var ids []rolecall.TenantID
	_, err := t.q.Query(selectTenantsToPurge, []any{before, limit}, into(&ids, oneColumn))
	return ids, err
}

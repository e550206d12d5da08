package store

import (
	"time"

	"github.com/rolecall/rolecall"
)

// keptDeleted is how long the name of a deleted tenant stays taken.
const keptDeleted = 30 * 24 * time.Hour

// keptExpired is how long an API token that is over is still listed: whoever wonders
// why a program has stopped finds it there.
const keptExpired = 30 * 24 * time.Hour

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

	finishPurge = `update tenants set status = 'purged' where id = $1 and status = 'deleted'`
)

// purgeExpired removes what has expired: up to $3 rows older than $2.
const (
	purgeKeys = `delete from idempotency_keys where tenant_id = $1 and (user_id, operation, hash) in (
			select user_id, operation, hash from idempotency_keys where tenant_id = $1 and expires_at <= $2 limit $3)
		returning hash`

	purgeSessions = `delete from sessions where tenant_id = $1 and id in (
			select id from sessions where tenant_id = $1 and expires_at <= $2 limit $3)
		returning id`

	purgeInvitations = `delete from invitations where tenant_id = $1 and user_id in (
			select user_id from invitations where tenant_id = $1 and expires_at <= $2 limit $3)
		returning user_id`

	purgeOneTimeTokens = `delete from one_time_tokens where tenant_id = $1 and hash in (
			select hash from one_time_tokens where tenant_id = $1 and expires_at <= $2 limit $3)
		returning hash`

	purgeOldAPITokens = `delete from api_tokens where tenant_id = $1 and id in (
			select id from api_tokens where tenant_id = $1 and expires_at <= $2 limit $3)
		returning id`

	purgeOldEvents = `delete from events where tenant_id = $1 and id in (
			select id from events where tenant_id = $1 and id < $2 order by id limit $3)
		returning id`

	purgeTombstones = `delete from tombstones where tenant_id = $1 and user_id in (
			select user_id from tombstones where tenant_id = $1 and deleted_at <= $2 limit $3)
		returning user_id`
)

// The statements that empty a deleted tenant, up to $2 rows each.
const (
	purgeEvents = `delete from events where tenant_id = $1 and id in (
			select id from events where tenant_id = $1 limit $2) returning id`

	purgeAllKeys = `delete from idempotency_keys where tenant_id = $1 and (user_id, operation, hash) in (
			select user_id, operation, hash from idempotency_keys where tenant_id = $1 limit $2) returning hash`

	purgeTokens = `delete from session_tokens where tenant_id = $1 and hash in (
			select hash from session_tokens where tenant_id = $1 limit $2) returning hash`

	purgeAllSessions = `delete from sessions where tenant_id = $1 and id in (
			select id from sessions where tenant_id = $1 limit $2) returning id`

	purgeAssignments = `delete from assignments where tenant_id = $1 and (user_id, role_id) in (
			select user_id, role_id from assignments where tenant_id = $1 limit $2) returning user_id`

	purgeAllInvitations = `delete from invitations where tenant_id = $1 and user_id in (
			select user_id from invitations where tenant_id = $1 limit $2) returning user_id`

	purgeAllOneTimeTokens = `delete from one_time_tokens where tenant_id = $1 and hash in (
			select hash from one_time_tokens where tenant_id = $1 limit $2) returning hash`

	purgeRecoveryCodes = `delete from recovery_codes where tenant_id = $1 and (user_id, hash) in (
			select user_id, hash from recovery_codes where tenant_id = $1 limit $2) returning hash`

	purgeTOTP = `delete from totp where tenant_id = $1 and user_id in (
			select user_id from totp where tenant_id = $1 limit $2) returning user_id`

	purgePasskeys = `delete from passkeys where tenant_id = $1 and id in (
			select id from passkeys where tenant_id = $1 limit $2) returning id`

	purgeAPITokens = `delete from api_tokens where tenant_id = $1 and id in (
			select id from api_tokens where tenant_id = $1 limit $2) returning id`

	purgeServiceAccountRoles = `delete from service_account_roles where tenant_id = $1 and (service_account_id, role_id) in (
			select service_account_id, role_id from service_account_roles where tenant_id = $1 limit $2) returning role_id`

	purgeServiceAccounts = `delete from service_accounts where tenant_id = $1 and id in (
			select id from service_accounts where tenant_id = $1 limit $2) returning id`

	purgeOutbox = `delete from outbox where id in (
			select id from outbox where tenant = $1 limit $2) returning id`

	purgePasswords = `delete from passwords where tenant_id = $1 and user_id in (
			select user_id from passwords where tenant_id = $1 limit $2) returning user_id`

	purgeWords = `delete from user_words where tenant_id = $1 and (word, user_id) in (
			select word, user_id from user_words where tenant_id = $1 limit $2) returning user_id`

	purgeUsers = `delete from users where tenant_id = $1 and id in (
			select id from users where tenant_id = $1 limit $2) returning id`

	purgeRoles = `delete from roles where tenant_id = $1 and id in (
			select id from roles where tenant_id = $1 limit $2) returning id`

	purgeAllTombstones = `delete from tombstones where tenant_id = $1 and user_id in (
			select user_id from tombstones where tenant_id = $1 limit $2) returning user_id`

	purgeAllErasures = `delete from erasures where tenant_id = $1 and user_id in (
			select user_id from erasures where tenant_id = $1 limit $2) returning user_id`

	purgeGuard = `delete from tenant_guards where tenant_id = $1 and tenant_id in (
			select tenant_id from tenant_guards where tenant_id = $1 limit $2) returning n`
)

// purges are in an order that leaves nothing for a cascade.
var purges = []string{purgeEvents, purgeAllKeys, purgeTokens, purgeAllSessions, purgeAssignments,
	purgeAllInvitations, purgeAllOneTimeTokens, purgeRecoveryCodes, purgeTOTP, purgePasskeys, purgeAPITokens,
	purgeServiceAccountRoles, purgeServiceAccounts, purgeOutbox, purgePasswords, purgeWords, purgeUsers, purgeRoles, purgeAllTombstones, purgeAllErasures, purgeGuard}

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
	err := t.q.Query(selectTenants, []any{after, limit}, func(scan func(dest ...any) error) error {
		var tenant rolecall.Tenant
		err := scan(tenantDest(&tenant)...)
		tenants = append(tenants, tenant)
		return err
	})
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
	err := b.query(t.q, func(scan func(dest ...any) error) error {
		var tenant rolecall.Tenant
		err := scan(tenantDest(&tenant)...)
		tenants = append(tenants, tenant)
		return err
	})
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
	err := t.q.Query(selectDeletedTenants, []any{before, limit}, func(scan func(dest ...any) error) error {
		var id rolecall.TenantID
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// PurgeExpired removes up to limit each of the tenant's idempotency keys, sessions
// and invitations that have expired, of its API tokens that ended and its tombstones
// that were made more than 30 days ago, and of its events that are older than the
// given moment, and goes on with erasures that are due. It returns how many rows it
// took: at least limit if there may be more.
func (t *Tx) PurgeExpired(now, eventsBefore rolecall.Time, limit int) (int, error) {
	total := 0
	for _, purge := range []struct {
		query  string
		before any
	}{
		{purgeKeys, now}, {purgeSessions, now}, {purgeInvitations, now.Add(-rolecall.InvitationKept)}, {purgeOneTimeTokens, now},
		{purgeOldAPITokens, now.Add(-keptExpired)},
		{purgeOldEvents, rolecall.FirstID[rolecall.Event](eventsBefore)},
	} {
		n, err := t.returned(purge.query, t.tenant, purge.before, limit)
		if err != nil {
			return total, err
		}
		total += n
	}
	for _, purge := range []func(rolecall.Time, int) (int, error){t.purgeTombstones, t.purgeErasures} {
		n, err := purge(now, limit)
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// purgeTombstones removes old tombstones. Of each person nothing is left in a while.
func (t *Tx) purgeTombstones(now rolecall.Time, limit int) (int, error) {
	var gone []rolecall.UserID
	err := t.q.Query(purgeTombstones, []any{t.tenant, now.Add(-rolecall.TombstoneLifetime), limit}, func(scan func(dest ...any) error) error {
		var id rolecall.UserID
		err := scan(&id)
		gone = append(gone, id)
		return err
	})
	insertRows(t, insertErasures, gone, func(b *builder, id rolecall.UserID) { b.write("($1, ?, ?)", id, now) })
	return len(gone), err
}

// PurgeTenant removes up to limit rows of the transaction's tenant, which was
// deleted, and reports whether none are left.
func (t *Tx) PurgeTenant(limit int) (bool, error) {
	for _, purge := range purges {
		n, err := t.returned(purge, t.tenant, limit)
		if err != nil {
			return false, err
		}
		if limit -= n; limit == 0 {
			return false, nil
		}
	}
	t.q.Exec(finishPurge, t.tenant)
	return true, nil
}

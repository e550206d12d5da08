package store

import (
	"strconv"
	"time"

	"github.com/rolecall/rolecall"
)

// keptDeleted is how long the name of a deleted tenant cannot be used again.
const keptDeleted = 30 * 24 * time.Hour

// The table of tenants belongs to no tenant, so these statements do not depend on the
// tenant of the transaction.
const (
	tenantColumns = `id, name, display_name, status, settings, created_at, updated_at, version`

	selectTenantByName = `select ` + tenantColumns + ` from tenants
		where name = $1 and status <> 'deleted' and status <> 'purged'`

	selectTenantByID = `select ` + tenantColumns + ` from tenants
		where id = $1 and status <> 'deleted' and status <> 'purged'`

	// The updated_at of a deleted tenant is the time at which it is purged.
	selectDeletedTenant = `select ` + tenantColumns + ` from tenants
		where name = $1 and status = 'deleted' and restores_to is not null and updated_at > $2`

	// forgetTenant frees the name of a tenant that was deleted long ago.
	forgetTenant = `delete from tenants where name = $1 and status = 'purged' and updated_at <= $2`

	insertTenant = `insert into tenants (id, name, display_name, status, settings, created_at, updated_at, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`

	insertGuard = `insert into tenant_guards (tenant_id, n) values ($1, 0)`

	updateTenant = `update tenants set display_name = $1, status = $2, settings = $3, updated_at = $4, version = $5
		where id = $6 and version = $7 returning version`

	deleteTenant = `update tenants set status = 'deleted', restores_to = status, updated_at = $1, version = version + 1
		where id = $2 and version = $3 and status <> 'deleted' and status <> 'purged' returning version`

	restoreTenant = `update tenants set status = restores_to, restores_to = null, updated_at = $1, version = version + 1
		where id = $2 and version = $3 and status = 'deleted' and restores_to is not null and updated_at > $1 returning version`

	selectTenantsToPurge = `select id from tenants where status = 'deleted' and updated_at <= $1 order by updated_at limit $2`
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
	_, err := b.query(t.q, into(&tenants, tenantDest))
	for i := range tenants {
		setPurge(&tenants[i])
	}
	return tenants, err
}

// DeletedTenant returns the deleted tenant with this name if it can still be
// restored, or ErrNotFound.
func (t *Tx) DeletedTenant(name string, now rolecall.Time) (tenant rolecall.Tenant, err error) {
	err = t.row(selectDeletedTenant, []any{name, now}, tenantDest(&tenant)...)
	setPurge(&tenant)
	return tenant, err
}

// setPurge sets PurgeAt and UpdatedAt of a deleted tenant. The column updated_at of a
// deleted tenant contains the time of the purge.
func setPurge(t *rolecall.Tenant) {
	if t.Status == rolecall.TenantDeleted {
		t.PurgeAt, t.UpdatedAt = t.UpdatedAt, t.UpdatedAt.Add(-rolecall.TenantRestorable)
	}
}

// InsertTenant inserts a tenant, in a transaction of that tenant. Update returns
// ErrTenantExists if the name is in use or belonged to a tenant that was deleted less
// than 30 days ago.
func (t *Tx) InsertTenant(tenant rolecall.Tenant) {
	t.q.Exec(forgetTenant, tenant.Name, tenant.CreatedAt.Add(rolecall.TenantRestorable-keptDeleted))
	t.q.Exec(insertTenant, tenant.ID, tenant.Name, tenant.DisplayName, string(tenant.Status), asJSON(&tenant.Settings),
		tenant.CreatedAt, tenant.UpdatedAt, tenant.Version)
	t.q.Exec(insertGuard, tenant.ID)
	t.invalidateHere(rolecall.TenantNameID(tenant.Name))
}

// UpdateTenant replaces old with changed. It reports false if the stored version
// differs from that of old.
func (t *Tx) UpdateTenant(old, changed rolecall.Tenant) (bool, error) {
	ok, err := t.changed(updateTenant, changed.DisplayName, string(changed.Status), asJSON(&changed.Settings),
		changed.UpdatedAt, changed.Version, old.ID, old.Version)
	return t.invalidateIf(ok, err, old.ID)
}

// DeleteTenant hides the tenant immediately and schedules its purge. Its name cannot
// be used for 30 days. It reports false if the stored version differs from that of tenant.
func (t *Tx) DeleteTenant(tenant rolecall.Tenant, purgeAt rolecall.Time) (bool, error) {
	ok, err := t.changed(deleteTenant, purgeAt, tenant.ID, tenant.Version)
	return t.invalidateIf(ok, err, tenant.ID)
}

// RestoreTenant restores the deleted tenant with its former status. It reports false
// if the stored version differs from that of tenant, or if the purge is due.
func (t *Tx) RestoreTenant(tenant rolecall.Tenant, at rolecall.Time) (bool, error) {
	ok, err := t.changed(restoreTenant, at, tenant.ID, tenant.Version)
	if ok {
		t.invalidateHere(rolecall.TenantNameID(tenant.Name))
	}
	return t.invalidateIf(ok, err, tenant.ID)
}

// TenantsToPurge returns up to limit deleted tenants that were due to be purged before
// the given time and still have rows, sorted by that time.
func (t *Tx) TenantsToPurge(before rolecall.Time, limit int) ([]rolecall.TenantID, error) {
	var ids []rolecall.TenantID
	_, err := t.q.Query(selectTenantsToPurge, []any{before, limit}, into(&ids, itself))
	return ids, err
}

// The statements of a summary. Each reads a bounded number of rows.
const (
	countInvitations = `select count(*) from (
			select 1 from invitations where tenant_id = $1 and expires_at > $2 and ` + keyNotRevoked + ` limit 1001) i`

	countFactors = `select count(*), count(case when status = 'active' then 1 end), count(case when status = 'active' and guarded = 1 then 1 end)
		from (select r.status, ` + guarded + ` as guarded from users r where r.tenant_id = $1 order by r.id limit 5000) u`

	// An event of another type has a null reason.
	selectFailedSignIns = `select case when type = $1 then reason end, case when type = $1 then source end from events
		where tenant_id = $2 and id >= $3 order by id desc limit 5000`

	countEvents = `(select count(*) from (select 1 from events where tenant_id = $1 and id >= ? and id < ? limit 1000) d)`

	selectExpiringRoles = `select a.user_id, o.id, o.name, a.expires_at
		from (select user_id, role_id, expires_at from assignments
			where tenant_id = $1 and expires_at > $2 and expires_at <= $3 and expires_at < 9223372036854775807
			order by expires_at limit 100) a
		join roles o on o.tenant_id = $1 and o.id = a.role_id and o.deletion is null
		order by a.expires_at, a.user_id, o.id limit 11`

	selectExpiringAccountRoles = `select a.service_account_id, o.id, o.name, a.expires_at
		from (select service_account_id, role_id, expires_at from service_account_roles
			where tenant_id = $1 and expires_at > $2 and expires_at <= $3 and expires_at < 9223372036854775807
			order by expires_at limit 100) a
		join roles o on o.tenant_id = $1 and o.id = a.role_id and o.deletion is null
		order by a.expires_at, a.service_account_id, o.id limit 11`

	selectExpiringTokens = `select ` + apiTokenColumns + ` from api_tokens r
		where r.tenant_id = $1 and r.expires_at > $2 and r.expires_at <= $3 order by r.expires_at limit 100`
)

// CountInvitations counts the invitations that can be accepted, up to SummaryCountMax.
func (t *Tx) CountInvitations(now rolecall.Time) (total rolecall.Total, err error) {
	err = t.row(countInvitations, []any{t.tenant, now}, &total.Count)
	total.Exact = total.Count <= rolecall.SummaryCountMax
	total.Count = min(total.Count, rolecall.SummaryCountMax)
	return total, err
}

// FactorCoverage counts the active users with and without a second factor, among the first MaxScan
// users by id.
func (t *Tx) FactorCoverage() (c rolecall.FactorCoverage, err error) {
	read := 0
	err = t.row(countFactors, []any{t.tenant}, &read, &c.Users, &c.Protected)
	c.Exact = read < rolecall.MaxScan
	return c, err
}

// FailedSignIns returns the events of failed sign-ins since a time, newest first. It reads at most
// MaxScan events of all types. It reports whether it has read all of them.
func (t *Tx) FailedSignIns(since rolecall.Time) (failed []rolecall.FailedSignIn, exact bool, err error) {
	read, err := t.q.Query(selectFailedSignIns, []any{string(rolecall.EventSignInFailed), t.tenant, rolecall.FirstID[rolecall.Event](since)}, func(scan func(dest ...any) error) error {
		var reason, source *string
		err := scan(&reason, &source)
		if err == nil && reason != nil {
			failed = append(failed, rolecall.FailedSignIn{Reason: *reason, Source: *source})
		}
		return err
	})
	return failed, read < rolecall.MaxScan, err
}

// EventsOfDays returns the number of events of each day, at most SummaryDayMax.
func (t *Tx) EventsOfDays(days []rolecall.Day) ([]int, error) {
	found := map[int]int{}
	b := newBuilder(t.tenant)
	for i, day := range days {
		if i > 0 {
			b.write(" union all ")
		}
		b.write("select "+strconv.Itoa(i)+", "+countEvents, rolecall.FirstID[rolecall.Event](day.From), rolecall.FirstID[rolecall.Event](day.To))
	}
	_, err := b.query(t.q, func(scan func(dest ...any) error) error {
		var i, n int
		err := scan(&i, &n)
		found[i] = n
		return err
	})
	counts := make([]int, len(days))
	for i := range counts {
		counts[i] = found[i]
	}
	return counts, err
}

// ExpiringRoles returns assignments to users, or to service accounts, that expire after one time and
// not after the other, the first to expire first. It returns at most SummaryItems+1 of them.
func (t *Tx) ExpiringRoles(accounts bool, after, until rolecall.Time) (list []rolecall.ExpiringRole, err error) {
	statement := selectExpiringRoles
	if accounts {
		statement = selectExpiringAccountRoles
	}
	_, err = t.q.Query(statement, []any{t.tenant, after, until}, into(&list, func(r *rolecall.ExpiringRole) []any {
		r.Holder.IsAccount = accounts
		return []any{&r.Holder.ID, &r.RoleID, &r.RoleName, &r.ExpiresAt}
	}))
	return list, err
}

// ExpiringTokens returns API tokens that expire after one time and not after the other, the first to
// expire first. It returns at most 100 of them.
func (t *Tx) ExpiringTokens(after, until rolecall.Time) (list []rolecall.APIToken, err error) {
	_, err = t.q.Query(selectExpiringTokens, []any{t.tenant, after, until}, into(&list, apiTokenDest))
	return list, err
}

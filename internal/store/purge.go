package store

import (
	"time"

	"github.com/rolecall/rolecall"
)

// keptExpired is how long an API token that is over is still listed: whoever wonders
// why a program has stopped finds it there.
const keptExpired = 30 * 24 * time.Hour

// The statements that remove what is over: up to $3 rows older than $2.
var (
	purgeKeys          = purge("idempotency_keys", "user_id, operation, hash", "expires_at <= $2")
	purgeSessions      = purge("sessions", "id", "expires_at <= $2")
	purgeInvitations   = purge("invitations", "user_id", "expires_at <= $2")
	purgeOneTimeTokens = purge("one_time_tokens", "hash", "expires_at <= $2")
	purgeAPITokens     = purge("api_tokens", "id", "expires_at <= $2")
	purgeEvents        = purge("events", "id", "id < $2 order by id")
	purgeTombstones    = purge("tombstones", "user_id", "deleted_at <= $2")
)

// emptyings empty a deleted tenant, up to $2 rows each, in an order that leaves
// nothing for a cascade.
var emptyings = []string{
	empty("events", "id"), empty("idempotency_keys", "user_id, operation, hash"),
	empty("session_tokens", "hash"), empty("sessions", "id"), empty("assignments", "user_id, role_id"),
	empty("invitations", "user_id"), empty("one_time_tokens", "hash"),
	empty("recovery_codes", "user_id, hash"), empty("totp", "user_id"), empty("passkeys", "id"), empty("api_tokens", "id"),
	empty("service_account_roles", "service_account_id, role_id"), empty("service_accounts", "id"), emptyOutbox,
	empty("passwords", "user_id"), empty("user_words", "word, user_id"), empty("users", "id"), empty("roles", "id"),
	empty("tombstones", "user_id"), empty("erasures", "user_id"), empty("tenant_guards", "tenant_id"),
}

const (
	emptyOutbox = `delete from outbox where id in (select id from outbox where tenant = $1 limit $2) returning id`

	beginPurge = `update tenants set restores_to = null where id = $1 and status = 'deleted' and updated_at <= $2 returning id`

	finishPurge = `update tenants set status = 'purged' where id = $1 and status = 'deleted'`
)

// purge returns the statement that removes up to $3 of a tenant's rows for which the
// condition on $2 holds. The key tells the rows of a tenant apart.
func purge(table, key, condition string) string {
	return "delete from " + table + " where tenant_id = $1 and (" + key + ") in (select " + key + " from " + table +
		" where tenant_id = $1 and " + condition + " limit $3) returning " + key
}

// empty is purge for any up to $2 of a tenant's rows.
func empty(table, key string) string {
	return "delete from " + table + " where tenant_id = $1 and (" + key + ") in (select " + key + " from " + table +
		" where tenant_id = $1 limit $2) returning " + key
}

// PurgeExpired deletes up to limit each of the tenant's expired idempotency keys,
// sessions, invitations and one-time tokens, of the API tokens that ended and the
// tombstones that are older than 30 days, and of the events before eventsBefore. It
// continues erasures that are due. It returns the number of rows that it changed,
// which is at least limit if there can be more.
func (t *Tx) PurgeExpired(now, eventsBefore rolecall.Time, limit int) (total int, err error) {
	for _, over := range []struct {
		statement string
		before    any
	}{
		{purgeKeys, now}, {purgeSessions, now}, {purgeInvitations, now.Add(-rolecall.InvitationKept)}, {purgeOneTimeTokens, now},
		{purgeAPITokens, now.Add(-keptExpired)}, {purgeEvents, rolecall.FirstID[rolecall.Event](eventsBefore)},
	} {
		n, err := t.returned(over.statement, t.tenant, over.before, limit)
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
	_, err := t.q.Query(purgeTombstones, []any{t.tenant, now.Add(-rolecall.TombstoneLifetime), limit}, into(&gone, itself))
	insertRows(t, insertErasures, gone, func(b *builder, id rolecall.UserID) { b.write("($1, ?, ?)", id, now) })
	return len(gone), err
}

// BeginPurge reports whether the tenant is deleted and was due to be purged before
// the given time. If so, it can no longer be restored.
func (t *Tx) BeginPurge(before rolecall.Time) (bool, error) {
	return t.changed(beginPurge, t.tenant, before)
}

// PurgeTenant deletes up to limit rows of the tenant, whose purge has begun, and
// reports whether none are left.
func (t *Tx) PurgeTenant(limit int) (bool, error) {
	for _, statement := range emptyings {
		n, err := t.returned(statement, t.tenant, limit)
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

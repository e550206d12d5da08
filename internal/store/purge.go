package store

import (
	"errors"

	"time"

	"github.com/rolecall/rolecall"
)

// keptExpired is how long an expired API token is kept in lists, so that users can find
// out why a program has stopped working.
const keptExpired = 30 * 24 * time.Hour

// These statements delete up to $3 expired rows of one table. The parameter $2 is a time
// or an event id. Rows up to it have expired.
var (
	purgeKeys          = purge("idempotency_keys", "user_id, operation, hash", "expires_at <= $2")
	purgeSessions      = purge("sessions", "id", "expires_at <= $2")
	purgeInvitations   = purge("invitations", "user_id", "expires_at <= $2")
	purgeOneTimeTokens = purge("one_time_tokens", "hash", "expires_at <= $2")
	purgeAPITokens     = purge("api_tokens", "id", "expires_at <= $2")
	purgeDirTokens     = purge("directory_tokens", "id", "expires_at <= $2")
	purgeAssignments   = purge("past_assignments", "user_id, role_id, started_at", "ended_at < $2")
	purgeMembers       = purge("past_group_members", "user_id, group_id, added_at", "ended_at < $2")
	purgeGroupRoles    = purge("past_group_roles", "group_id, role_id, granted_at", "ended_at < $2")
	purgeTombstones    = purge("tombstones", "user_id", "deleted_at <= $2")
	purgeJobResults    = purge("job_results", "job_id, user_id", "recorded_at <= $2")
	purgeJobs          = purge("jobs", "id", "ended_at > 0 and ended_at <= $2")
)

// emptyings are the statements that delete the rows of a deleted tenant. Each deletes up
// to $2 rows. In this order, no deletion cascades to another table.
var emptyings = []string{
	empty("event_queue", "n"), empty("changes", "number"), empty("feeds", "tenant_id"), empty("tiles", "level, n"), empty("logs", "tenant_id"), empty("events", "id"), empty("idempotency_keys", "user_id, operation, hash"),
	empty("session_tokens", "hash"), empty("id_tokens", "session_id"), empty("sessions", "id"), empty("assignments", "user_id, role_id"),
	empty("past_assignments", "user_id, role_id, started_at"),
	empty("group_members", "user_id, group_id"), empty("group_roles", "group_id, role_id"), empty("groups", "id"),
	empty("past_group_members", "user_id, group_id, added_at"), empty("past_group_roles", "group_id, role_id, granted_at"),
	empty("invitations", "user_id"), empty("one_time_tokens", "hash"),
	empty("recovery_codes", "user_id, hash"), empty("totp", "user_id"), empty("passkeys", "id"), empty("api_tokens", "id"),
	empty("directory_requests", "directory_id, n"), empty("directory_tokens", "id"), empty("directory_users", "user_id"), empty("directories", "id"),
	empty("identities", "id"), empty("connections", "id"),
	emptyWebhookCursors, empty("webhook_deliveries", "webhook_id, slot"), empty("webhooks", "id"),
	emptyJobQueue, empty("job_results", "job_id, user_id"), empty("jobs", "id"),
	empty("service_account_roles", "service_account_id, role_id"), empty("service_accounts", "id"), emptyOutbox,
	empty("passwords", "user_id"), empty("user_words", "word, user_id"), empty("users", "id"), empty("roles", "id"),
	empty("tombstones", "user_id"), empty("erasures", "user_id"), empty("tenant_logos", "tenant_id"),
	empty("tenant_guards", "tenant_id"),
}

const (
	emptyOutbox = `delete from outbox where id in (select id from outbox where tenant = $1 limit $2) returning id`

	emptyWebhookCursors = `delete from webhook_cursors where (webhook_id, part) in (select webhook_id, part from webhook_cursors where tenant = $1 limit $2) returning part`

	emptyJobQueue = `delete from job_queue where id in (select id from job_queue where tenant = $1 limit $2) returning id`

	beginPurge = `update tenants set restores_to = null where id = $1 and status = 'deleted' and updated_at <= $2 returning id`

	finishPurge = `update tenants set status = 'purged' where id = $1 and status = 'deleted'`

	// selectOldestChanges returns the oldest numbers, and when their events occurred: 0 if the event was
	// deleted.
	selectOldestChanges = `select c.number, coalesce(e.occurred_at, 0) from (
			select number, event_id from changes where tenant_id = $1 and number <= $2 order by number limit $3) c
		left join events e on e.tenant_id = $1 and e.id = c.event_id order by c.number`

	deleteEvents = `delete from events where tenant_id = $1
		and id in (select event_id from changes where tenant_id = $1 and number <= $2) returning id`

	deleteChanges = `delete from changes where tenant_id = $1 and number <= $2 returning number`
)

// purge returns the statement that deletes up to $3 rows of the tenant that meet the
// condition, which can use $2. The columns in key identify a row within the tenant.
func purge(table, key, condition string) string {
	return "delete from " + table + " where tenant_id = $1 and (" + key + ") in (select " + key + " from " + table +
		" where tenant_id = $1 and " + condition + " limit $3) returning " + key
}

// empty returns the statement that deletes up to $2 rows of a tenant.
func empty(table, key string) string {
	return "delete from " + table + " where tenant_id = $1 and (" + key + ") in (select " + key + " from " + table +
		" where tenant_id = $1 limit $2) returning " + key
}

// PurgeExpired deletes expired rows of the tenant: idempotency keys, sessions and one-time
// tokens at their expiry, invitations and API tokens 30 days later, tombstones 30 days
// after the deletion of the user, jobs that ended more than JobLifetime ago, and events,
// past assignments and past memberships before eventsBefore. It also continues the erasures that are due.
//
// PurgeExpired deletes up to limit rows of each kind. It returns the number of rows that
// it changed. If the number is less than limit, no expired rows are left.
func (t *Tx) PurgeExpired(now, eventsBefore rolecall.Time, limit int) (total int, err error) {
	for _, over := range []struct {
		statement string
		before    any
	}{
		{purgeKeys, now}, {purgeSessions, now}, {purgeInvitations, now.Add(-rolecall.InvitationKept)}, {purgeOneTimeTokens, now},
		{purgeAPITokens, now.Add(-keptExpired)}, {purgeDirTokens, now.Add(-keptExpired)}, {purgeAssignments, eventsBefore}, {purgeMembers, eventsBefore}, {purgeGroupRoles, eventsBefore},
		{purgeJobResults, now.Add(-rolecall.JobLifetime)}, {purgeJobs, now.Add(-rolecall.JobLifetime)},
	} {
		n, err := t.countRows(over.statement, t.tenant, over.before, limit)
		if err != nil {
			return total, err
		}
		total += n
	}
	purgeEvents := func(now rolecall.Time, limit int) (int, error) {
		return t.purgeEvents(eventsBefore, now, limit)
	}
	for _, purge := range []func(rolecall.Time, int) (int, error){purgeEvents, t.purgeTombstones, t.purgeErasures} {
		n, err := purge(now, limit)
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// purgeEvents deletes up to limit events that occurred before the given time, in the order of their numbers. So the log
// has no gaps, and an event can stay until an earlier one of another clock is old enough. purgeEvents
// first gives numbers to events without one, and adds their leaves to the Merkle log. A follower that
// has not read a deleted event gets ErrChangesExpired. purgeEvents keeps the leaf of the last deleted
// event, which proves how old the deleted events were.
func (t *Tx) purgeEvents(before, now rolecall.Time, limit int) (int, error) {
	if numbered, err := t.numberRest(now); err != nil || numbered == NumbersAtOnce { // there may be more, which the next call numbers
		return numbered, err
	}
	if built, err := t.BuildLog(now); err != nil || built == LeavesAtOnce {
		return built, err
	}
	log, err := t.Log()
	if err != nil {
		return 0, err
	}
	var last int64
	var open bool // a younger event was read
	_, err = t.q.Query(selectOldestChanges, []any{t.tenant, log.Size, limit}, func(scan func(dest ...any) error) error {
		var number int64
		var at rolecall.Time
		err := scan(&number, &at)
		if open = open || at >= before; !open {
			last = number
		}
		return err
	})
	if err != nil || last == 0 {
		return 0, err
	}
	leaf, err := t.storedLeaf(last)
	if err != nil {
		return 0, err
	}
	deleted, err := t.countRows(deleteEvents, t.tenant, last)
	if err != nil {
		return 0, err
	}
	t.q.Exec(updateRemoved, last, leaf, t.tenant)
	cleaned, err := t.countRows(deleteChanges, t.tenant, last)
	if err != nil {
		return 0, err
	}
	return max(deleted, cleaned), t.beginAfter(last, now)
}

// storedLeaf returns the leaf of the event with the number. It returns nil if the event is malformed or does not
// exist, because a person has changed or deleted it in the database.
func (t *Tx) storedLeaf(number int64) ([]byte, error) {
	events, err := t.LoggedEvents(number-1, number)
	if errors.Is(err, rolecall.ErrUnavailable) || err != nil && len(events) == 0 {
		return nil, err
	}
	if err != nil || len(events) == 0 || events[0].Event == nil || events[0].Salts == nil {
		return nil, nil
	}
	return events[0].Event.Leaf(events[0].Salts), nil
}

// restoreEnded is the reason of the event of an erasure without a request.
const restoreEnded = "the time to restore the user has ended"

// purgeTombstones deletes up to limit expired tombstones, records the erasure of their users as
// events, and schedules the erasure of their data.
func (t *Tx) purgeTombstones(now rolecall.Time, limit int) (int, error) {
	var deleted []rolecall.UserID
	_, err := t.q.Query(purgeTombstones, []any{t.tenant, now.Add(-rolecall.TombstoneLifetime), limit}, into(&deleted, oneColumn))
	for _, id := range deleted {
		t.InsertEvent(rolecall.Event{
			ID: rolecall.NewID[rolecall.Event](now), Type: rolecall.EventUserErased, OccurredAt: now, Reason: restoreEnded,
			Actor:   rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "expiry"},
			Subject: rolecall.About(id),
		})
	}
	insertRows(t, insertErasures, deleted, func(b *builder, id rolecall.UserID) { b.write("($1, ?, ?)", id, now) })
	return len(deleted), err
}

// BeginPurge begins the purge of a deleted tenant whose purge was due at or before the
// given time. After this, the tenant cannot be restored. BeginPurge returns false if the
// tenant is not deleted or its purge was not due.
func (t *Tx) BeginPurge(before rolecall.Time) (bool, error) {
	return t.changed(beginPurge, t.tenant, before)
}

// PurgeTenant deletes up to limit rows of a tenant whose purge has begun. It returns true
// when no rows are left.
func (t *Tx) PurgeTenant(now rolecall.Time, limit int) (bool, error) {
	feed, err := t.Feed(0)
	if err != nil {
		return false, err
	}
	if feed.Last > 0 { // its events end in the feed of all tenants
		numbered, err := t.numberRest(now)
		if err != nil || numbered == NumbersAtOnce {
			return false, err
		}
		if err := t.beginAfter(feed.Last+int64(numbered), now); err != nil {
			return false, err
		}
	}
	for _, statement := range emptyings {
		n, err := t.countRows(statement, t.tenant, limit)
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

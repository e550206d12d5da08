package store

import (
	"fmt"
	"time"

	"github.com/rolecall/rolecall"
)

const (
	webhookColumns = `r.id, r.url, r.types, r.service_account_id, r.ignore_actors, r.enabled, r.disabled_reason, r.secret, r.old_secret, r.old_until,
			r.created_at, r.updated_at, r.version`

	selectWebhook = `select ` + webhookColumns + ` from webhooks r where r.tenant_id = $1 and r.id = $2`

	insertWebhook = `insert into webhooks (tenant_id, id, url, types, service_account_id, ignore_actors, enabled, disabled_reason, secret, old_secret,
			old_until, created_at, updated_at, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

	updateWebhook = `update webhooks set url = $1, types = $2, service_account_id = $3, ignore_actors = $4, enabled = $5, disabled_reason = $6,
			secret = $7, old_secret = $8, old_until = $9, updated_at = $10, version = $11
		where tenant_id = $12 and id = $13 and version = $14 returning version`

	deleteWebhook = `delete from webhooks where tenant_id = $1 and id = $2 and version = $3 returning version`

	countWebhook = `update feeds set webhooks = webhooks + $1 where tenant_id = $2`

	deleteDeliveries = `delete from webhook_deliveries where tenant_id = $1 and webhook_id = $2`

	upsertDelivery = `insert into webhook_deliveries (tenant_id, webhook_id, slot, id, item_id, type, attempt, status, duration_us, error)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		on conflict (tenant_id, webhook_id, slot) do update set id = excluded.id, item_id = excluded.item_id, type = excluded.type,
			attempt = excluded.attempt, status = excluded.status, duration_us = excluded.duration_us, error = excluded.error`

	cursorColumns = `webhook_id, tenant, part, queue, number, until_number, from_time, to_time, lease, attempts, failing_since, blocked, item_id, slot`

	selectCursors = `select ` + cursorColumns + ` from webhook_cursors where webhook_id = $1 and part < 4 order by part`

	insertCursor = `insert into webhook_cursors (webhook_id, tenant, part, queue, number, until_number, from_time, to_time, item_id, state, due_at,
			changed, lease, attempts, failing_since, blocked, slot)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0, 0, 0, 0, 0)
		on conflict (webhook_id, part) do update set number = excluded.number, until_number = excluded.until_number, from_time = excluded.from_time,
			to_time = excluded.to_time, item_id = excluded.item_id, state = excluded.state, due_at = excluded.due_at,
			lease = webhook_cursors.lease + 1, attempts = 0, failing_since = 0, blocked = 0`

	deleteCursors = `delete from webhook_cursors where webhook_id = $1`

	// wakeCursors is run for each batch of new numbers of a tenant with webhooks. It changes only rows that
	// no claim changes, so that the two do not wait for each other.
	wakeCursors = `update webhook_cursors set due_at = $1 where tenant = $2 and state = 1 and due_at > $1`

	// changeCursors makes the parts due after a change of their webhook. The claims in progress end first.
	changeCursors = `update webhook_cursors set changed = 1, queue = $1, due_at = case when state = 2 then due_at else $2 end,
			state = case when state = 2 then 2 else 0 end
		where webhook_id = $3 and part < 8`

	// resumeCursors continues the parts that were parked.
	resumeCursors = `update webhook_cursors set state = 0, changed = 0, queue = $1, due_at = $2, lease = lease + 1, attempts = 0, failing_since = 0
		where webhook_id = $3 and part < 8`

	parkCursors = `update webhook_cursors set state = 3, due_at = $1, lease = lease + 1 where webhook_id = $2 and part < 8`

	// retryCursors makes those parts due that wait because of failures.
	retryCursors = `update webhook_cursors set due_at = $1 where webhook_id = $2 and state = 0 and attempts > 0 and due_at > $1`

	promoteCursors = `update webhook_cursors set queue = 0 where webhook_id = $1 and queue = 1 and attempts = 0 and state in (1, 2)`

	skipBlocked = `update webhook_cursors set number = blocked, attempts = 0, failing_since = 0, blocked = 0, lease = lease + 1, changed = 0,
			state = case when state = 3 then 3 else 0 end, due_at = case when state = 3 then due_at else $1 end
		where webhook_id = $2 and part < 8 and blocked > number returning item_id`

	skipAll = `update webhook_cursors set number = $1, attempts = 0, failing_since = 0, blocked = 0, lease = lease + 1, changed = 0,
			state = case when state = 3 then 3 else 0 end, due_at = case when state = 3 then due_at else $2 end
		where webhook_id = $3 and part < 4`

	skipReplay = `update webhook_cursors set state = 3, due_at = $1, number = until_number, blocked = 0, lease = lease + 1
		where webhook_id = $2 and part >= 4 and part < 8`

	// lockQueue makes other claims wait. Otherwise, two of them could lock the same rows in different orders.
	lockQueue = `update webhook_queues set queue = queue where queue = $1 returning queue`

	selectDueCursor = `select 1 from webhook_cursors where queue = $1 and due_at <= $2 limit 1`

	settleCursor = `update webhook_cursors set queue = $1, number = $2, attempts = $3, failing_since = $4, blocked = $5, item_id = $6, slot = $7,
			due_at = case when changed = 1 then cast($8 as bigint) else cast($9 as bigint) end,
			state = case when changed = 1 then 0 else cast($10 as bigint) end
		where webhook_id = $11 and part = $12 and lease = $13 and state = 2 returning lease`

	selectFollower = `select 1 from webhook_cursors where tenant = $1 and state <> 3 limit 1`

	countParked = `select count(*) from (select 1 from webhook_cursors where part = 0 and state = 3 limit $1) c`
)

func webhookDest(w *rolecall.Webhook) []any {
	return []any{&w.ID, &w.URL, asJSON(&w.Types), &w.ServiceAccountID, asJSON(&w.IgnoreActors), (*flag)(&w.Enabled), &w.DisabledReason,
		&w.Secret.Sealed, &w.Secret.Old, &w.Secret.OldUntil, &w.CreatedAt, &w.UpdatedAt, &w.Version}
}

// LockFeed returns the last number of the feed, and the number of webhooks. Until the end of the
// transaction, no number is given, and the number of webhooks does not change.
func (t *Tx) LockFeed() (last int64, webhooks int, err error) {
	last, _, webhooks, err = t.lockFeed()
	return last, webhooks, err
}

// lockFeed is LockFeed. It also returns the last number that was published to the feed of all tenants.
func (t *Tx) lockFeed() (last, published int64, webhooks int, err error) {
	err = t.row(lockFeed, []any{t.tenant}, &last, &published, &webhooks)
	return last, published, webhooks, err
}

// Webhooks returns a page of the webhooks of the tenant, the oldest first.
func (t *Tx) Webhooks(after *rolecall.Position, limit int) (rolecall.Page[rolecall.Webhook], error) {
	l := &listing[rolecall.Webhook]{
		tx: t, table: "webhooks", columns: webhookColumns, dest: webhookDest,
		id:    func(w *rolecall.Webhook) rolecall.AnyID { return rolecall.AnyID(w.ID) },
		after: after, limit: limit, indexScan: source{table: "webhooks", id: "id"},
	}
	return l.page(nil)
}

// Webhook returns the webhook with the id, or ErrNotFound.
func (t *Tx) Webhook(id rolecall.WebhookID) (w rolecall.Webhook, err error) {
	err = t.row(selectWebhook, []any{t.tenant, id}, webhookDest(&w)...)
	return w, err
}

// InsertWebhook inserts a webhook whose first item has the position after last. Call LockFeed first, and for
// a webhook of operators also LockPlaces.
func (t *Tx) InsertWebhook(w rolecall.Webhook, last int64) {
	t.q.Exec(insertWebhook, t.tenant, w.ID, w.URL, asJSON(&w.Types), w.ServiceAccountID, asJSON(&w.IgnoreActors), flag(w.Enabled), w.DisabledReason,
		w.Secret.Sealed, w.Secret.Old, w.Secret.OldUntil, w.CreatedAt, w.UpdatedAt, w.Version)
	t.q.Exec(countWebhook, 1, t.tenant)
	state, due := rolecall.WebhookDue, w.CreatedAt
	if !w.Enabled {
		state, due = rolecall.WebhookParked, rolecall.Never
	}
	for part := range rolecall.WebhookPartitions {
		t.insertCursor(rolecall.WebhookCursor{WebhookID: w.ID, Part: part, Queue: rolecall.QueueNew, Number: last}, state, due)
	}
}

func (t *Tx) insertCursor(c rolecall.WebhookCursor, state rolecall.WebhookState, due rolecall.Time) {
	t.q.Exec(insertCursor, c.WebhookID, t.tenant, c.Part, int(c.Queue), c.Number, c.Until, c.From, c.To, c.Item, int(state), due)
	t.webhooksDue()
}

// UpdateWebhook stores changed in place of old. If it sends items, they are due now. UpdateWebhook
// returns false if the stored version is not old.Version, or if the webhook does not exist.
func (t *Tx) UpdateWebhook(old, changed rolecall.Webhook, now rolecall.Time) (bool, error) {
	ok, err := t.updateVersioned(updateWebhook, old.ID, old.Version, changed.URL, asJSON(&changed.Types), changed.ServiceAccountID,
		asJSON(&changed.IgnoreActors), flag(changed.Enabled), changed.DisabledReason, changed.Secret.Sealed, changed.Secret.Old,
		changed.Secret.OldUntil, changed.UpdatedAt, changed.Version)
	if err != nil || !ok {
		return ok, err
	}
	switch {
	case !changed.Enabled:
		t.q.Exec(parkCursors, rolecall.Never, old.ID)
	case old.Enabled:
		t.q.Exec(changeCursors, int(rolecall.QueueNew), now, old.ID)
	default:
		t.q.Exec(resumeCursors, int(rolecall.QueueNew), now, old.ID)
	}
	t.webhooksDue()
	return true, nil
}

// DeleteWebhook deletes the webhook with its deliveries. It returns false if the stored version is not
// w.Version, or if the webhook does not exist.
func (t *Tx) DeleteWebhook(w rolecall.Webhook) (bool, error) {
	ok, err := t.updateVersioned(deleteWebhook, w.ID, w.Version)
	if err == nil && ok {
		t.q.Exec(countWebhook, -1, t.tenant)
		t.q.Exec(deleteDeliveries, t.tenant, w.ID)
		t.q.Exec(deleteCursors, w.ID)
	}
	return ok, err
}

// TestWebhook lets the webhook send a test with the id.
func (t *Tx) TestWebhook(id rolecall.WebhookID, test rolecall.EventID, now rolecall.Time) {
	t.insertCursor(rolecall.WebhookCursor{WebhookID: id, Part: rolecall.WebhookTestPart, Queue: rolecall.QueueNew, Until: -1, Item: test}, rolecall.WebhookDue, now)
}

// ReplayWebhook lets the webhook send the items between two numbers again, of events between two times.
// It ends an earlier replay.
func (t *Tx) ReplayWebhook(w *rolecall.Webhook, after, until int64, from, to, now rolecall.Time) {
	state, due := rolecall.WebhookDue, now
	if !w.Enabled {
		state, due = rolecall.WebhookParked, rolecall.Never
	}
	for part := range rolecall.WebhookPartitions {
		t.insertCursor(rolecall.WebhookCursor{
			WebhookID: w.ID, Part: rolecall.WebhookReplayPart + part, Queue: rolecall.QueueNew, Number: after, Until: until, From: from, To: to,
		}, state, due)
	}
}

// SkipBlocked lets the webhook continue after the items that it could not deliver, and returns their ids.
func (t *Tx) SkipBlocked(id rolecall.WebhookID, now rolecall.Time) (skipped []rolecall.EventID, err error) {
	_, err = t.q.Query(skipBlocked, []any{now, id}, into(&skipped, oneColumn))
	t.webhooksDue()
	return skipped, err
}

// SkipAll lets the webhook continue after the number, and ends a replay.
func (t *Tx) SkipAll(id rolecall.WebhookID, last int64, now rolecall.Time) {
	t.q.Exec(skipAll, last, now, id)
	t.q.Exec(skipReplay, rolecall.Never, id)
	t.webhooksDue()
}

// IsWebhookDue reports whether a part of a webhook of any tenant is due in the queue.
func (t *Tx) IsWebhookDue(queue rolecall.WebhookQueue, now rolecall.Time) (bool, error) {
	n, err := t.countRows(selectDueCursor, int(queue), now)
	return n > 0, err
}

// ClaimWebhooks claims the parts of webhooks of all tenants that have been due for the longest time,
// those of at most n places. Parts of a webhook with the same place are claimed together. They are
// not due again before until.
func (t *Tx) ClaimWebhooks(queue rolecall.WebhookQueue, now, until rolecall.Time, n int) (claimed []rolecall.WebhookCursor, err error) {
	if _, err := t.changed(lockQueue, int(queue)); err != nil {
		return nil, err
	}
	b := &builder{}
	b.write("update webhook_cursors set state = 2, changed = 0, lease = lease + 1, due_at = ? where (webhook_id, number, until_number) in ("+
		"select webhook_id, number, until_number from (select webhook_id, number, until_number, due_at from webhook_cursors where queue = ? and due_at <= ? order by due_at", until, int(queue), now)
	b.limit(rolecall.WebhookPartitions * n)
	b.write(") d group by webhook_id, number, until_number order by min(due_at)")
	b.limit(n)
	b.write(") and queue = $2 and due_at <= $3 returning " + cursorColumns)
	_, err = b.query(t.q, into(&claimed, cursorDest))
	return claimed, err
}

func cursorDest(c *rolecall.WebhookCursor) []any {
	return []any{&c.WebhookID, &c.TenantID, &c.Part, (*int)(&c.Queue), &c.Number, &c.Until, &c.From, &c.To, &c.Lease, &c.Attempts, &c.FailingSince, &c.Blocked, &c.Item, &c.Slot}
}

// SettleWebhook stores the progress of a claimed part, and ends the claim. If the webhook was changed in
// the meantime, the part is due now. A part becomes idle only under LockFeed, and one of a webhook of
// operators only under LockPlaces. SettleWebhook does nothing and returns false if the claim has ended, or
// if the webhook was disabled or deleted in the meantime.
func (t *Tx) SettleWebhook(c *rolecall.WebhookCursor, state rolecall.WebhookState, now, due rolecall.Time) (bool, error) {
	return t.changed(settleCursor, int(c.Queue), c.Number, c.Attempts, c.FailingSince, c.Blocked, c.Item, c.Slot, now, due, int(state), c.WebhookID, c.Part, c.Lease)
}

// PromoteWebhook moves those parts of the webhook without an attempt to the fast queue.
func (t *Tx) PromoteWebhook(id rolecall.WebhookID) { t.q.Exec(promoteCursors, id) }

// RetryWebhook makes those parts of the webhook due that wait because of failures.
func (t *Tx) RetryWebhook(id rolecall.WebhookID, now rolecall.Time) {
	t.q.Exec(retryCursors, now, id)
	t.webhooksDue()
}

// WebhookCursors returns the parts of the webhook that follow the feed.
func (t *Tx) WebhookCursors(id rolecall.WebhookID) (parts []rolecall.WebhookCursor, err error) {
	_, err = t.q.Query(selectCursors, []any{id}, into(&parts, cursorDest))
	return parts, err
}

// DropWebhook removes the places of a webhook that does not exist.
func (t *Tx) DropWebhook(id rolecall.WebhookID) { t.q.Exec(deleteCursors, id) }

// IsFollowed reports whether an enabled webhook of operators follows the feed of all tenants.
func (t *Tx) IsFollowed() (bool, error) {
	n, err := t.countRows(selectFollower, rolecall.OperatorsTenant)
	return n > 0, err
}

// CountDisabledWebhooks returns the number of disabled webhooks of all tenants, at most limit.
func (t *Tx) CountDisabledWebhooks(limit int) (n int, err error) {
	err = t.row(countParked, []any{limit}, &n)
	return n, err
}

// UpsertDelivery stores an attempt in its slot.
func (t *Tx) UpsertDelivery(id rolecall.WebhookID, d rolecall.WebhookDelivery) {
	t.q.Exec(upsertDelivery, t.tenant, id, d.Slot, d.ID, d.Item, string(d.Type), d.Attempt, d.Status, d.Duration.Microseconds(), d.Error)
}

// WebhookDeliveries returns a page of the attempts that q selects, the newest first. The number of
// stored attempts of a webhook is limited.
func (t *Tx) WebhookDeliveries(q rolecall.WebhookDeliveryQuery) (rolecall.Page[rolecall.WebhookDelivery], error) {
	b := newBuilder(t.tenant)
	b.write("select r.id, r.slot, r.item_id, r.type, r.attempt, r.status, r.duration_us, r.error from webhook_deliveries r where r.tenant_id = $1 and r.webhook_id = ?", q.Webhook)
	switch q.Result {
	case "delivered":
		b.write(" and r.error = ''")
	case "failed":
		b.write(" and r.error <> ''")
	}
	if q.After != nil {
		b.write(" and r.id < ?", q.After.ID)
	}
	b.write(" order by r.id desc")
	b.limit(q.Limit + 1)
	var all []rolecall.WebhookDelivery
	_, err := b.query(t.q, into(&all, func(d *rolecall.WebhookDelivery) []any {
		return []any{&d.ID, &d.Slot, &d.Item, (*string)(&d.Type), &d.Attempt, &d.Status, (*microseconds)(&d.Duration), &d.Error}
	}))
	page := rolecall.Page[rolecall.WebhookDelivery]{Items: all}
	if err == nil && len(all) > q.Limit {
		page.Items = all[:q.Limit]
		page.Next = &rolecall.Position{ID: rolecall.AnyID(page.Items[q.Limit-1].ID)}
	}
	return page, err
}

// microseconds is a duration that is stored as a number of microseconds.
type microseconds time.Duration

// Scan reads the number (sql.Scanner).
func (m *microseconds) Scan(src any) error {
	n, ok := src.(int64)
	if !ok {
		return fmt.Errorf("store: cannot read a duration from %T", src)
	}
	*m = microseconds(time.Duration(n) * time.Microsecond)
	return nil
}

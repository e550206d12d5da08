package store

import "github.com/rolecall/rolecall"

const (
	insertKey = `insert into idempotency_keys (tenant_id, user_id, operation, hash, fingerprint, expires_at, status, location,
			resource_id, resource)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

	selectKey = `select user_id, operation, hash, fingerprint, expires_at, status, location, resource_id, resource
		from idempotency_keys where tenant_id = $1 and user_id = $2 and operation = $3 and hash = $4`

	deleteKey = `delete from idempotency_keys
		where tenant_id = $1 and user_id = $2 and operation = $3 and hash = $4 and expires_at <= $5`

	countKeys = `select count(*) from (
			select 1 from idempotency_keys where tenant_id = $1 and user_id = $2 limit $3) keys`

	eraseResource = `update idempotency_keys set resource = null where tenant_id = $1 and resource_id = $2`
)

// InsertKey claims the key. It must be the first write of its Update, which
// returns rolecall.ErrKeyClaimed if the key is taken.
func (t *Tx) InsertKey(k rolecall.IdempotencyKey) {
	t.q.Exec(insertKey, t.tenant, k.UserID, k.Operation, k.Hash, k.Fingerprint, k.ExpiresAt, k.Status, k.Location,
		k.ResourceID, textOf(k.Resource))
}

// Key returns what is stored for the scope and hash of k, or ErrNotFound.
func (t *Tx) Key(k rolecall.IdempotencyKey) (stored rolecall.IdempotencyKey, err error) {
	err = t.row(selectKey, []any{t.tenant, k.UserID, k.Operation, k.Hash},
		&stored.UserID, &stored.Operation, &stored.Hash, &stored.Fingerprint, &stored.ExpiresAt, &stored.Status,
		&stored.Location, &stored.ResourceID, &stored.Resource)
	return stored, err
}

// DeleteKey removes the key if it expired before the moment.
func (t *Tx) DeleteKey(k rolecall.IdempotencyKey, now rolecall.Time) {
	t.q.Exec(deleteKey, t.tenant, k.UserID, k.Operation, k.Hash, now)
}

// CountKeys returns how many keys of the user are stored, counting no further
// than the limit.
func (t *Tx) CountKeys(user rolecall.UserID, limit int) (n int, err error) {
	err = t.row(countKeys, []any{t.tenant, user, limit}, &n)
	return n, err
}

// EraseResource takes the stored resource out of every key that made it.
func (t *Tx) EraseResource(id rolecall.AnyID) { t.q.Exec(eraseResource, t.tenant, id) }

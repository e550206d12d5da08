package store

import "github.com/rolecall/rolecall"

// The columns status and location have constants. Programs that were built before read them, and they cannot be null.
const (
	insertKey = `insert into idempotency_keys (tenant_id, user_id, operation, hash, fingerprint, expires_at, status, location,
			resource_id, event_id)
		values ($1, $2, $3, $4, $5, $6, 201, '', $7, $8)`

	// The event of the creation contains the created resource. A key of an older program
	// contains the resource itself. The resource is null if it is a user who was deleted
	// since.
	selectKey = `select k.user_id, k.event_id, k.operation, k.hash, k.fingerprint, k.expires_at, k.resource_id,
			case when t.user_id is null then coalesce(k.resource, e.after) end
		from idempotency_keys k
			left join events e on e.tenant_id = k.tenant_id and e.id = k.event_id
			left join tombstones t on t.tenant_id = k.tenant_id and t.user_id = k.resource_id
		where k.tenant_id = $1 and k.user_id = $2 and k.operation = $3 and k.hash = $4`

	deleteKey = `delete from idempotency_keys
		where tenant_id = $1 and user_id = $2 and operation = $3 and hash = $4 and expires_at <= $5`

	countKeys = `select count(*) from (
			select 1 from idempotency_keys where tenant_id = $1 and user_id = $2 limit $3) keys`

	insertRequest = `insert into operator_requests (key_id, operation, hash, fingerprint, expires_at, status, location,
			resource_id, resource)
		values ($1, $2, $3, $4, $5, 201, '', $6, $7)`

	selectRequest = `select key_id, operation, hash, fingerprint, expires_at, resource_id, resource
		from operator_requests where key_id = $1 and operation = $2 and hash = $3`

	deleteRequest = `delete from operator_requests where key_id = $1 and operation = $2 and hash = $3 and expires_at <= $4`

	countRequests = `select count(*) from (select 1 from operator_requests where key_id = $1 limit $2) requests`

	purgeRequests = `delete from operator_requests where (key_id, operation, hash) in (
			select key_id, operation, hash from operator_requests where expires_at <= $1 limit $2)
		returning hash`
)

// InsertKey inserts the idempotency key, which claims it for this Update. It must be the
// first write of the Update. Update returns ErrKeyClaimed if the key already exists. A key
// of an operator belongs to no tenant and is stored together with the created resource.
// Any other key refers to the event of the creation, which contains the resource.
func (t *Tx) InsertKey(k rolecall.IdempotencyKey) {
	if !k.Operator.IsZero() {
		t.q.Exec(insertRequest, k.Operator, k.Operation, k.Hash, k.Fingerprint, k.ExpiresAt, k.ResourceID, textOf(k.Resource))
		return
	}
	t.q.Exec(insertKey, t.tenant, k.UserID, k.Operation, k.Hash, k.Fingerprint, k.ExpiresAt, k.ResourceID, k.EventID)
}

// Key returns the stored key with the hash and the operation of k and with the same user
// or operator, or ErrNotFound.
func (t *Tx) Key(k rolecall.IdempotencyKey) (stored rolecall.IdempotencyKey, err error) {
	rest := []any{&stored.Operation, &stored.Hash, &stored.Fingerprint, &stored.ExpiresAt, &stored.ResourceID, &stored.Resource}
	if !k.Operator.IsZero() {
		err = t.row(selectRequest, []any{k.Operator, k.Operation, k.Hash}, append([]any{&stored.Operator}, rest...)...)
		return stored, err
	}
	err = t.row(selectKey, []any{t.tenant, k.UserID, k.Operation, k.Hash}, append([]any{&stored.UserID, &stored.EventID}, rest...)...)
	return stored, err
}

// DeleteKey deletes the key if it has expired at now.
func (t *Tx) DeleteKey(k rolecall.IdempotencyKey, now rolecall.Time) {
	if !k.Operator.IsZero() {
		t.q.Exec(deleteRequest, k.Operator, k.Operation, k.Hash, now)
		return
	}
	t.q.Exec(deleteKey, t.tenant, k.UserID, k.Operation, k.Hash, now)
}

// CountKeys returns the number of stored keys of the user or operator of k. It stops
// counting at limit.
func (t *Tx) CountKeys(k rolecall.IdempotencyKey, limit int) (n int, err error) {
	if !k.Operator.IsZero() {
		err = t.row(countRequests, []any{k.Operator, limit}, &n)
		return n, err
	}
	err = t.row(countKeys, []any{t.tenant, k.UserID, limit}, &n)
	return n, err
}

// PurgeRequests deletes up to limit idempotency keys of operators that have expired at
// now. It returns the number of deleted keys.
func (t *Tx) PurgeRequests(now rolecall.Time, limit int) (int, error) {
	return t.countRows(purgeRequests, now, limit)
}

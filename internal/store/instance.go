package store

import (
	"bytes"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
)

const (
	selectInstanceKeys = `select secret from instance_keys order by id desc`

	insertInstanceKey = `insert into instance_keys (id, secret, created_at) values ($1, $2, $3)`

	selectKeyFingerprints = `select fingerprint from instance_key_fingerprints order by fingerprint`

	insertKeyFingerprint = `insert into instance_key_fingerprints (fingerprint) values ($1) on conflict (fingerprint) do nothing`

	deleteAttempts = `delete from attempts where bucket = $1 and ends_at = $2`

	probeWrites = `insert into attempts (bucket, n, ends_at) values ($1, 1, 0) on conflict (bucket) do update set n = 1 - attempts.n`

	clearAttempts = `delete from attempts where bucket = $1`

	forgiveAttempt = `update attempts set n = n - 1 where bucket = $1 and ends_at = $2 and n > 0`

	purgeAttempts = `delete from attempts where bucket in (
			select bucket from attempts where ends_at <= $1 limit $2)
		returning n`
)

// InstanceKeys returns the secret keys of the instance. The first one is the current key.
func (t *Tx) InstanceKeys() ([][]byte, error) {
	var keys [][]byte
	_, err := t.q.Query(selectInstanceKeys, nil, into(&keys, oneColumn))
	return keys, err
}

// InsertInstanceKey inserts a secret key of the instance. The key becomes the current one
// if at is later than the creation times of all others. Each creation time must be unique,
// because it is also the id of the key.
func (t *Tx) InsertInstanceKey(key []byte, at rolecall.Time) {
	t.q.Exec(insertInstanceKey, at, key, at)
}

// KeyFingerprints returns the fingerprints of all keys that the instance has used.
func (t *Tx) KeyFingerprints() ([][]byte, error) {
	var fingerprints [][]byte
	_, err := t.q.Query(selectKeyFingerprints, nil, into(&fingerprints, oneColumn))
	return fingerprints, err
}

// InsertKeyFingerprint records that the instance has used the key with the fingerprint.
func (t *Tx) InsertKeyFingerprint(fingerprint []byte) { t.q.Exec(insertKeyFingerprint, fingerprint) }

// CountAttempt adds one to the counter of each bucket, and returns the states of the
// buckets in the same order. If the window of a bucket has ended, CountAttempt starts a
// new window with the count 1. No two buckets may have the same key.
func (t *Tx) CountAttempt(buckets []rolecall.Bucket, now rolecall.Time) ([]rolecall.Attempts, error) {
	sorted := bucketsByKey(buckets)
	var b builder
	b.write("insert into attempts (bucket, n, ends_at) values ")
	for i, bucket := range sorted {
		if i > 0 {
			b.write(", ")
		}
		b.write("(?, 1, ?)", bucket.Key, now.Add(time.Duration(bucket.Window)*time.Second))
	}
	b.write(" on conflict (bucket) do update set n = case when attempts.ends_at <= ? then 1 else attempts.n + 1 end,", now)
	b.write(" ends_at = case when attempts.ends_at <= ? then excluded.ends_at else attempts.ends_at end", now)
	b.write(" returning bucket, n, ends_at")
	return t.attemptStates(&b, buckets)
}

// ClearAttempts deletes the counters of the buckets.
func (t *Tx) ClearAttempts(buckets []rolecall.Bucket) {
	for _, bucket := range bucketsByKey(buckets) {
		t.q.Exec(clearAttempts, bucket.Key)
		t.invalidate(bucket.ID())
	}
}

// bucketsByKey returns the buckets sorted by key, for the same reason as byKey.
func bucketsByKey(buckets []rolecall.Bucket) []rolecall.Bucket {
	return slices.SortedFunc(slices.Values(buckets), func(a, b rolecall.Bucket) int { return bytes.Compare(a.Key, b.Key) })
}

// byKey returns the counted buckets sorted by key. All methods that count or clear
// attempts change the rows in this order, so that two of them cannot deadlock.
func byKey(counted []rolecall.Counted) []rolecall.Counted {
	return slices.SortedFunc(slices.Values(counted), func(a, b rolecall.Counted) int { return bytes.Compare(a.Key, b.Key) })
}

// UncountAttempt subtracts one from the counter of each bucket. It skips buckets that have
// started a new window since the attempt was counted.
func (t *Tx) UncountAttempt(counted []rolecall.Counted) {
	for _, c := range byKey(counted) {
		t.q.Exec(forgiveAttempt, c.Key, c.EndsAt)
	}
}

// ForgiveAttempt deletes the counter of counted[0], and subtracts one from the counters of
// the other buckets. It skips buckets that have started a new window since the attempt was
// counted.
func (t *Tx) ForgiveAttempt(counted []rolecall.Counted) {
	for _, c := range byKey(counted) {
		if bytes.Equal(c.Key, counted[0].Key) {
			t.q.Exec(deleteAttempts, c.Key, c.EndsAt)
		} else {
			t.q.Exec(forgiveAttempt, c.Key, c.EndsAt)
		}
	}
}

// Attempts returns the states of the buckets, in the order of buckets. The state of a
// bucket is zero if nothing was counted or its window has ended.
func (t *Tx) Attempts(buckets []rolecall.Bucket, now rolecall.Time) ([]rolecall.Attempts, error) {
	var b builder
	b.write("select bucket, n, ends_at from attempts where ends_at > ? and bucket in (", now)
	for i, bucket := range buckets {
		if i > 0 {
			b.write(", ")
		}
		b.write("?", bucket.Key)
	}
	b.write(")")
	return t.attemptStates(&b, buckets)
}

// attemptStates runs a statement that returns the key, the count and the end of the window
// of buckets. It returns the states in the order of buckets.
func (t *Tx) attemptStates(b *builder, buckets []rolecall.Bucket) ([]rolecall.Attempts, error) {
	states := make([]rolecall.Attempts, len(buckets))
	_, err := b.query(t.q, func(scan func(dest ...any) error) error {
		var key []byte
		var state rolecall.Attempts
		err := scan(&key, &state.Count, &state.EndsAt)
		if i := slices.IndexFunc(buckets, func(b rolecall.Bucket) bool { return bytes.Equal(b.Key, key) }); i >= 0 {
			states[i] = state
		}
		return err
	})
	return states, err
}

// writeProbe is the bucket of ProbeWrites. Other buckets are hashes, which are longer.
var writeProbe = []byte("write probe")

// ProbeWrites writes a row, to find out whether the database accepts writes. PurgeAttempts deletes it.
func (t *Tx) ProbeWrites() { t.q.Exec(probeWrites, writeProbe) }

// PurgeAttempts deletes up to limit buckets whose window has ended, and returns the
// number of deleted buckets.
func (t *Tx) PurgeAttempts(now rolecall.Time, limit int) (int, error) {
	return t.countRows(purgeAttempts, now, limit)
}

const (
	// The column tenants of a key with scopes is an empty list, so that older programs, which do not
	// know scopes, do not accept the key for any tenant.
	operatorKeyColumns = `id, name, case when scopes is null then tenants else limited_to end, scopes, created_at, expires_at, last_used_at`

	insertOperatorKey = `insert into operator_keys (id, hash, name, tenants, limited_to, scopes, created_at, expires_at, last_used_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	selectOperatorKey = `select ` + operatorKeyColumns + ` from operator_keys where hash = $1`

	selectOperatorKeyByID = `select ` + operatorKeyColumns + ` from operator_keys where id = $1`

	selectOperatorKeys = `select ` + operatorKeyColumns + ` from operator_keys where id > $1 order by id limit $2`

	touchOperatorKey = `update operator_keys set last_used_at = $1 where id = $2 and last_used_at <= $3`

	deleteOperatorKey = `delete from operator_keys where id = $1 returning id`
)

// InsertOperatorKey inserts an operator key with the hash of its token.
func (t *Tx) InsertOperatorKey(k rolecall.OperatorKey, hash []byte) {
	tenants, limitedTo := k.Tenants, []string(nil)
	if k.Scopes != nil {
		tenants, limitedTo = []string{}, k.Tenants
	}
	t.q.Exec(insertOperatorKey, k.ID, hash, k.Name, listOrNull[string]{&tenants}, listOrNull[string]{&limitedTo}, listOrNull[rolecall.OperatorScope]{&k.Scopes},
		k.CreatedAt, k.ExpiresAt, k.LastUsedAt)
}

// OperatorKeyByToken returns the operator key whose token has this hash, or ErrNotFound.
// The key can be expired.
func (t *Tx) OperatorKeyByToken(hash []byte) (k rolecall.OperatorKey, err error) {
	err = t.row(selectOperatorKey, []any{hash}, operatorKeyDest(&k)...)
	return k, err
}

// OperatorKeyByID returns the operator key, or ErrNotFound. The key can be expired.
func (t *Tx) OperatorKeyByID(id rolecall.OperatorKeyID) (k rolecall.OperatorKey, err error) {
	err = t.row(selectOperatorKeyByID, []any{id}, operatorKeyDest(&k)...)
	return k, err
}

// OperatorKeys returns up to limit operator keys whose ids are greater than after, sorted
// by id. If after is zero, it returns the first keys.
func (t *Tx) OperatorKeys(after rolecall.OperatorKeyID, limit int) ([]rolecall.OperatorKey, error) {
	if after.IsZero() { // a zero id is stored as NULL, and no id is greater than NULL
		after = rolecall.OperatorKeyID{15: 1}
	}
	var keys []rolecall.OperatorKey
	_, err := t.q.Query(selectOperatorKeys, []any{after, limit}, into(&keys, operatorKeyDest))
	return keys, err
}

// TouchOperatorKey stores at as the time of the key's last use. It writes nothing if the
// stored time is less than TouchInterval before at.
func (t *Tx) TouchOperatorKey(id rolecall.OperatorKeyID, at rolecall.Time) {
	t.q.Exec(touchOperatorKey, at, id, at.Add(-rolecall.TouchInterval))
	t.invalidateHere(id)
}

// DeleteOperatorKey deletes the key and reports whether it existed.
func (t *Tx) DeleteOperatorKey(id rolecall.OperatorKeyID) (bool, error) {
	ok, err := t.changed(deleteOperatorKey, id)
	return t.invalidateIf(ok, err, id)
}

func operatorKeyDest(k *rolecall.OperatorKey) []any {
	return []any{&k.ID, &k.Name, listOrNull[string]{&k.Tenants}, listOrNull[rolecall.OperatorScope]{&k.Scopes}, &k.CreatedAt, &k.ExpiresAt, &k.LastUsedAt}
}

// listOrNull stores a list as a JSON array, and a nil list as NULL.
type listOrNull[T ~string] struct{ list *[]T }

// Value returns the JSON text or nil (driver.Valuer).
func (l listOrNull[T]) Value() (driver.Value, error) {
	if *l.list == nil {
		return nil, nil
	}
	return asJSON(l.list).Value()
}

// Scan reads the JSON text or NULL (sql.Scanner).
func (l listOrNull[T]) Scan(src any) error {
	if src == nil {
		*l.list = nil
		return nil
	}
	return asJSON(l.list).Scan(src)
}

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

package store

import (
	"database/sql/driver"

	"github.com/rolecall/rolecall"
)

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

package store

import "github.com/rolecall/rolecall"

const (
	selectInstanceKeys = `select secret from instance_keys order by id desc`

	insertInstanceKey = `insert into instance_keys (id, secret, created_at) values ($1, $2, $3)`

	selectKeyFingerprints = `select fingerprint from instance_key_fingerprints order by fingerprint`

	insertKeyFingerprint = `insert into instance_key_fingerprints (fingerprint) values ($1) on conflict (fingerprint) do nothing`
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

package store

import (
	"bytes"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
)

const (
	selectInstanceKeys = `select secret from instance_keys order by id desc`

	insertInstanceKey = `insert into instance_keys (id, secret, created_at) values ($1, $2, $3)`

	deleteAttempts = `delete from attempts where bucket = $1`

	forgiveAttempt = `update attempts set n = n - 1 where bucket = $1 and n > 0`

	purgeAttempts = `delete from attempts where bucket in (
			select bucket from attempts where ends_at <= $1 limit $2)
		returning n`
)

// InstanceKeys returns the secrets of the instance, the current one first.
func (t *Tx) InstanceKeys() ([][]byte, error) {
	var keys [][]byte
	err := t.q.Query(selectInstanceKeys, nil, into(&keys, itself))
	return keys, err
}

// InsertInstanceKey makes a secret the current one. Keys are in order of their
// moment, of which each has its own.
func (t *Tx) InsertInstanceKey(key []byte, at rolecall.Time) {
	t.q.Exec(insertInstanceKey, at, key, at)
}

// CountAttempt adds one to each bucket, starting anew where the window is over,
// and returns their states in the same order. The buckets differ.
func (t *Tx) CountAttempt(buckets []rolecall.Bucket, now rolecall.Time) ([]rolecall.Attempts, error) {
	sorted := byKey(buckets)
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

	states := make([]rolecall.Attempts, len(buckets))
	err := b.query(t.q, func(scan func(dest ...any) error) error {
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

// byKey returns the buckets in the order in which their rows are locked, so that
// two sign-ins cannot wait for each other.
func byKey(buckets []rolecall.Bucket) []rolecall.Bucket {
	return slices.SortedFunc(slices.Values(buckets), func(a, b rolecall.Bucket) int { return bytes.Compare(a.Key, b.Key) })
}

// UncountAttempt takes one from each bucket.
func (t *Tx) UncountAttempt(buckets []rolecall.Bucket) {
	for _, bucket := range byKey(buckets) {
		t.q.Exec(forgiveAttempt, bucket.Key)
	}
}

// ForgiveAttempt clears the first bucket and takes one from each other.
func (t *Tx) ForgiveAttempt(buckets []rolecall.Bucket) {
	for _, bucket := range byKey(buckets) {
		if bytes.Equal(bucket.Key, buckets[0].Key) {
			t.q.Exec(deleteAttempts, bucket.Key)
		} else {
			t.q.Exec(forgiveAttempt, bucket.Key)
		}
	}
}

// PurgeAttempts removes up to limit buckets whose window is over, and returns how
// many it did.
func (t *Tx) PurgeAttempts(now rolecall.Time, limit int) (int, error) {
	return t.returned(purgeAttempts, now, limit)
}

package store

import (
	"bytes"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
)

const (
	deleteAttempts = `delete from attempts where bucket = $1 and ends_at = $2`

	probeWrites = `insert into attempts (bucket, n, ends_at) values ($1, 1, 0) on conflict (bucket) do update set n = 1 - attempts.n`

	clearAttempts = `delete from attempts where bucket = $1`

	forgiveAttempt = `update attempts set n = n - 1 where bucket = $1 and ends_at = $2 and n > 0`

	purgeAttempts = `delete from attempts where bucket in (
			select bucket from attempts where ends_at <= $1 limit $2)
		returning n`
)

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

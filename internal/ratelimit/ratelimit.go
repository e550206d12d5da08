// Package ratelimit counts attempts in the buckets of the store and rejects those
// above a limit. It has the limits, the keys of the buckets, and a cache of full
// buckets. It may import the store, the keys of the instance and invalidation.
package ratelimit

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Limits are the maximum numbers of failed sign-ins, reset requests and mailed
// links. A zero member means the default.
type Limits struct {
	AccountAndSource int // failed sign-ins per account and source in 15 minutes: 10
	Account          int // failed sign-ins per account from unknown devices in an hour: 100
	Source           int // failed sign-ins per source in 10 minutes: 100
	AccountResets    int // reset requests per account in an hour: 3
	SourceResets     int // reset requests per source in 10 minutes: 30
	TenantMails      int // links that callers mail to other users, per tenant in an hour: 1,000
}

func (l Limits) orDefaults() Limits {
	or := func(limit, byDefault int) int {
		if limit == 0 {
			return byDefault
		}
		return limit
	}
	return Limits{
		or(l.AccountAndSource, 10), or(l.Account, 100), or(l.Source, 100),
		or(l.AccountResets, 3), or(l.SourceResets, 30), or(l.TenantMails, 1000),
	}
}

// Limiter counts attempts. It is safe for concurrent use.
type Limiter struct {
	Limits       Limits
	store        *store.Store
	keys         *secret.Keys
	invalidation *invalidation.Table
	now          func() rolecall.Time
	// full caches the full buckets and the times until which they are full. Attempts on a
	// full bucket write no rows, so the limits also bound the growth of the table of
	// attempts.
	full *otter.Cache[string, fullBucket]
}

type fullBucket struct {
	until rolecall.Time
	stamp invalidation.Stamp
}

// New returns a Limiter. Bucket keys are hashed with the keys of the instance.
func New(s *store.Store, keys *secret.Keys, t *invalidation.Table, now func() rolecall.Time, limits Limits) *Limiter {
	return &Limiter{
		Limits: limits.orDefaults(), store: s, keys: keys, invalidation: t, now: now,
		full: otter.Must(&otter.Options[string, fullBucket]{MaximumSize: 50_000}),
	}
}

// Bucket returns the counter that is identified by the purpose and the parts.
func (l *Limiter) Bucket(purpose string, limit int, window time.Duration, parts ...string) rolecall.Bucket {
	return rolecall.Bucket{Key: l.keys.MAC(purpose, parts...), Limit: limit, Window: rolecall.Seconds(window / time.Second)}
}

// Count counts an attempt before it is evaluated, so that parallel attempts cannot
// exceed the limit. Above a limit, it returns the error of the first full bucket. It
// does not count such an attempt in any bucket, because otherwise one source could
// use up the account's limit for all sources. It returns the counted buckets.
func (l *Limiter) Count(ctx context.Context, buckets []rolecall.Bucket) (counted []rolecall.Counted, err error) {
	waits := make([]time.Duration, len(buckets))
	for i, bucket := range buckets {
		waits[i] = l.wait(bucket)
	}
	if err := refusal(buckets, waits); err != nil {
		return nil, err
	}
	stamp := l.invalidation.Stamp()
	var refused error
	err = l.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		states, err := tx.CountAttempt(buckets, l.now())
		if err != nil {
			return err
		}
		counted = nil
		clear(waits)
		for i, attempts := range states {
			counted = append(counted, rolecall.Counted{Key: buckets[i].Key, EndsAt: attempts.EndsAt})
			if attempts.Count > buckets[i].Limit {
				waits[i] = max(attempts.EndsAt.Sub(l.now()), time.Second)
				l.full.Set(string(buckets[i].Key), fullBucket{attempts.EndsAt, stamp})
			}
		}
		if refused = refusal(buckets, waits); refused != nil {
			tx.UncountAttempt(counted)
		}
		return nil
	})
	if err == nil {
		err = refused
	}
	return counted, err
}

// refusal returns the error of the first full bucket, or nil. Each element of waits is
// the time for which the bucket at the same index stays full. If the Full member of the
// bucket is nil, refusal returns ErrTooManyAttempts with the longest of these times.
func refusal(buckets []rolecall.Bucket, waits []time.Duration) error {
	longest := slices.Max(waits)
	if longest <= 0 {
		return nil
	}
	first := slices.IndexFunc(waits, func(wait time.Duration) bool { return wait > 0 })
	if full := buckets[first].Full; full != nil {
		return full
	}
	return rolecall.ErrTooManyAttempts.After(longest)
}

// Uncount refunds an attempt that was counted and not evaluated.
func (l *Limiter) Uncount(ctx context.Context, counted []rolecall.Counted) error {
	return l.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		tx.UncountAttempt(counted)
		return nil
	})
}

// CountIn counts an attempt in the bucket within the transaction. Above the limit of the
// bucket, it returns the error full with the time to wait. The error rolls the
// transaction back, so refused attempts are not counted.
func (l *Limiter) CountIn(tx *store.Tx, bucket rolecall.Bucket, full *rolecall.Error) error {
	counted, err := tx.CountAttempt([]rolecall.Bucket{bucket}, l.now())
	if err == nil && counted[0].Count > bucket.Limit {
		err = full.After(max(counted[0].EndsAt.Sub(l.now()), time.Second))
	}
	return err
}

// Wait returns how long one of the buckets stays full, according to the cache of
// this process.
func (l *Limiter) Wait(buckets []rolecall.Bucket) time.Duration {
	var wait time.Duration
	for _, bucket := range buckets {
		wait = max(wait, l.wait(bucket))
	}
	return wait
}

func (l *Limiter) wait(bucket rolecall.Bucket) time.Duration {
	full, ok := l.full.GetIfPresent(string(bucket.Key))
	if !ok || l.invalidation.IsInvalidated(full.stamp, bucket.ID()) {
		return 0
	}
	return full.until.Sub(l.now())
}

// NetworkOf returns the source under which an address is counted: an IPv4 address,
// or the /64 of an IPv6 address, because one customer usually gets a /64.
func NetworkOf(source string) string {
	address, err := netip.ParseAddr(source)
	if err != nil {
		return source
	}
	if address = address.Unmap(); address.Is4() {
		return address.String()
	}
	prefix, err := address.Prefix(64)
	if err != nil {
		return source
	}
	return prefix.String()
}

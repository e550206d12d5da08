// Package ratelimit counts attempts, such as sign-ins, and refuses attempts above a
// limit. The store keeps one counter, called bucket, for each account, source and so on.
// This package has the limits, the keys of the buckets, and a cache of full buckets. It
// may import packages store, secret and invalidation.
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

// Limits are the maximum numbers of failed sign-ins, requests for password resets, and
// mailed links. A zero member means the default, which is the last number in the comment
// of the member.
type Limits struct {
	AccountAndSource int // failed sign-ins per account and source in 15 minutes, and similar attempts per user or known device: 10
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

// Limiter counts attempts and refuses them above the limits. It is safe for concurrent
// use.
type Limiter struct {
	Limits       Limits
	store        *store.Store
	keys         *secret.Keys
	invalidation *invalidation.Table
	now          func() rolecall.Time
	// full caches the buckets that have reached their limits, with the times at which
	// their windows end. An attempt on such a bucket is refused without a write. So the
	// limits also bound the growth of the table of attempts.
	full *otter.Cache[string, fullBucket]
}

type fullBucket struct {
	until rolecall.Time
	stamp invalidation.Stamp
}

// New returns a Limiter. It derives the keys of buckets with the keys of the instance, so
// that the store contains no addresses in clear text. The cache of full buckets uses t,
// and now returns the current time.
func New(s *store.Store, keys *secret.Keys, t *invalidation.Table, now func() rolecall.Time, limits Limits) *Limiter {
	return &Limiter{
		Limits: limits.orDefaults(), store: s, keys: keys, invalidation: t, now: now,
		full: otter.Must(&otter.Options[string, fullBucket]{MaximumSize: 50_000}),
	}
}

// Bucket returns the bucket with the purpose and the parts. It allows limit attempts in
// each window. Buckets with a different purpose or different parts have separate
// counters.
func (l *Limiter) Bucket(purpose string, limit int, window time.Duration, parts ...string) rolecall.Bucket {
	return rolecall.Bucket{Key: l.keys.MAC(purpose, parts...), Limit: limit, Window: rolecall.Seconds(window / time.Second)}
}

// Count adds one to each bucket and returns the counted buckets. Call it before the
// attempt is evaluated, so that parallel attempts cannot exceed the limit. If a bucket is
// full, Count returns the error that refusal selects, and no bucket counts the attempt.
// Otherwise, one source could use up the limit of an account, and so lock out all other
// sources.
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

// refusal returns nil if no bucket is full. Otherwise, it returns the member Full of the
// first full bucket. If this member is nil, refusal returns ErrTooManyAttempts with the
// longest time for which one of the buckets stays full. Each element of waits is the time
// for which the bucket at the same index stays full.
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

// Uncount subtracts an attempt that was counted, but was not evaluated.
func (l *Limiter) Uncount(ctx context.Context, counted []rolecall.Counted) error {
	return l.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		tx.UncountAttempt(counted)
		return nil
	})
}

// CountIn adds one to the bucket in the transaction tx. Above the limit of the bucket, it
// returns the error full with the time to wait. The caller must return this error from
// the transaction. The transaction is then rolled back, so a refused attempt is not
// counted.
func (l *Limiter) CountIn(tx *store.Tx, bucket rolecall.Bucket, full *rolecall.Error) error {
	counted, err := tx.CountAttempt([]rolecall.Bucket{bucket}, l.now())
	if err == nil && counted[0].Count > bucket.Limit {
		err = full.After(max(counted[0].EndsAt.Sub(l.now()), time.Second))
	}
	return err
}

// Wait returns the longest time for which one of the buckets stays full, or 0 if no
// bucket is full. It knows only the full buckets in the cache of this process.
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

// NetworkOf returns the network under which a client address is counted as a source. For
// an IPv4 address, this is the address. For an IPv6 address, it is the /64 prefix,
// because one customer usually gets a whole /64. NetworkOf returns other texts unchanged.
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

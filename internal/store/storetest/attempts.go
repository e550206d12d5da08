package storetest

import (
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

var attemptCases = []testCase{
	{"Attempts count up in every bucket, in the order asked", func(f *fixture) {
		one, other := aBucket(60), aBucket(3600)
		same(f, f.attempt(start, one), []rolecall.Attempts{{Count: 1, EndsAt: start + minute}})
		same(f, f.attempt(start+second, other, one), []rolecall.Attempts{
			{Count: 1, EndsAt: start + second + hour}, {Count: 2, EndsAt: start + minute},
		})
	}},
	{"A window that is over starts anew", func(f *fixture) {
		b := aBucket(60)
		f.attempt(start, b)
		same(f, f.attempt(start+minute-1, b)[0].Count, 2)
		same(f, f.attempt(start+minute, b), []rolecall.Attempts{{Count: 1, EndsAt: start + 2*minute}})
	}},
	{"Concurrent attempts are counted exactly, whatever the order of buckets", func(f *fixture) {
		buckets := []rolecall.Bucket{aBucket(60), aBucket(60), aBucket(60)}
		const attempts = 40
		for _, err := range parallel(attempts, func(i int) error {
			turned := slices.Clone(buckets)
			if i%2 == 0 {
				slices.Reverse(turned)
			}
			return f.tryUpdate(func(tx service.Tx) error {
				_, err := tx.CountAttempt(turned, start)
				return err
			})
		}) {
			f.is(err, nil)
		}
		for _, state := range f.attempt(start, buckets...) {
			same(f, state.Count, attempts+1)
		}
	}},
	{"Forgiving clears the first bucket and takes one from the others", func(f *fixture) {
		own, account, source := aBucket(60), aBucket(60), aBucket(60)
		for range 3 {
			f.attempt(start, own, account, source)
		}
		f.write(func(tx service.Tx) { tx.ForgiveAttempt([]rolecall.Bucket{own, account, source}) })
		got := f.attempt(start, own, account, source)
		same(f, []int{got[0].Count, got[1].Count, got[2].Count}, []int{1, 3, 3})
	}},
	{"Uncounting takes one from each bucket", func(f *fixture) {
		own, account := aBucket(60), aBucket(60)
		for range 3 {
			f.attempt(start, own, account)
		}
		f.write(func(tx service.Tx) { tx.UncountAttempt([]rolecall.Bucket{own, account}) })
		got := f.attempt(start, own, account)
		same(f, []int{got[0].Count, got[1].Count}, []int{3, 3})
	}},
	{"Forgiving what was never counted does not go below nothing", func(f *fixture) {
		own, account := aBucket(60), aBucket(60)
		f.write(func(tx service.Tx) { tx.ForgiveAttempt([]rolecall.Bucket{own, account}) })
		f.attempt(start, account)
		f.write(func(tx service.Tx) { tx.ForgiveAttempt([]rolecall.Bucket{own, account}) })
		f.write(func(tx service.Tx) { tx.ForgiveAttempt([]rolecall.Bucket{own, account}) })
		same(f, f.attempt(start, account)[0].Count, 1)
	}},
	{"Buckets whose window is over are purged, up to the limit", func(f *fixture) {
		for range 5 {
			f.attempt(start, aBucket(60))
		}
		lasting := aBucket(3600)
		f.attempt(start, lasting)
		purge := func(limit int) int {
			return change(f, func(tx service.Tx) (int, error) { return tx.PurgeAttempts(start+2*minute, limit) })
		}
		for _, want := range []int{3, 2, 0} {
			same(f, purge(3), want)
		}
		same(f, f.attempt(start, lasting)[0].Count, 2)
	}},
	{"Attempts belong to no tenant", func(f *fixture) {
		b := aBucket(60)
		f.attempt(start, b)
		same(f, f.in(rolecall.TenantID{}).attempt(start, b)[0].Count, 2)
		same(f, f.in(f.newTenant("other")).attempt(start, b)[0].Count, 3)
	}},
}

func aBucket(window rolecall.Seconds) rolecall.Bucket {
	return rolecall.Bucket{Key: aHash(), Limit: 10, Window: window}
}

func (f *fixture) attempt(now rolecall.Time, buckets ...rolecall.Bucket) []rolecall.Attempts {
	f.Helper()
	return change(f, func(tx service.Tx) ([]rolecall.Attempts, error) { return tx.CountAttempt(buckets, now) })
}

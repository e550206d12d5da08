package web

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestLargeSessionsAreSharedBetweenTenants fills LargeLimiter with the requests of one tenant, and then sends a
// request of another tenant.
func TestLargeSessionsAreSharedBetweenTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &Site{limiters: newLimiters(nil)}
		results := make(chan error, 1000)
		enter := func(tenant string) {
			q := &Request{Tenant: tenant, site: site, deadline: deadline{Context: t.Context(), at: time.Now().Add(time.Minute)}}
			defer q.end()
			err := q.Enter(LargeLimiter)
			results <- err
			if err == nil {
				time.Sleep(50 * time.Millisecond) // of the clock of the bubble
				q.Leave()
			}
		}
		expect := func(want error) {
			t.Helper()
			if err := <-results; !errors.Is(err, want) {
				t.Errorf("a request got %v, want %v", err, want)
			}
		}
		const requests = 100
		for range requests {
			go enter("flooding")
			synctest.Wait()
		}
		cores := runtime.GOMAXPROCS(0)
		places := (1 + largeQueue) * cores
		for range cores {
			expect(nil)
		}
		for range requests - places {
			expect(errOverloaded)
		}
		go enter("other")
		synctest.Wait()
		expect(errOverloaded) // the newest request of the flooding tenant
		for range places - cores {
			expect(nil)
		}
		time.Sleep(time.Minute)
		if l := site.limiters[LargeLimiter]; l.Active() != 0 {
			t.Errorf("%d requests are in the limiter", l.Active())
		}
	})
}

package httpapi

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
)

func TestReadinessIsCheckedAFewTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks atomic.Int32
		var state error
		r := newReadiness(func(context.Context) error {
			checks.Add(1)
			time.Sleep(50 * time.Millisecond)
			return state
		})
		flood := func(want error) {
			t.Helper()
			var all sync.WaitGroup
			for range 1000 {
				all.Go(func() {
					if err := r.result(t.Context()); err != want {
						t.Errorf("it answers %v, want %v", err, want)
					}
				})
			}
			all.Wait()
		}
		for range 10 {
			flood(nil)
			time.Sleep(100 * time.Millisecond)
		}
		if n := checks.Load(); n > 5 {
			t.Errorf("10,000 requests in a second made %d checks", n)
		}
		for _, now := range []error{rolecall.ErrUnavailable, nil} {
			state = now
			time.Sleep(readyFor)
			flood(now)
		}
	})
}

func TestAClientWhoLeavesDoesNotFailReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReadiness(func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
				return nil
			}
		})
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, leave)
		if err := r.result(left); err != nil {
			t.Errorf("it answers %v", err)
		}
		r.check = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		time.Sleep(readyFor)
		begun := time.Now()
		if err := r.result(t.Context()); err == nil || time.Since(begun) != readyWithin {
			t.Errorf("a store that hangs makes it answer %v after %v", err, time.Since(begun))
		}
	})
}

func TestAFloodOfReadinessReachesTheStoreSeldom(t *testing.T) {
	s := newTestServer(t)
	var checks atomic.Int32
	check := s.edge.readiness.check
	s.edge.readiness.check = func(ctx context.Context) error {
		checks.Add(1)
		return check(ctx)
	}
	begun := time.Now()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 50 {
				if r := s.request("GET", "/readyz", ""); r.StatusCode != http.StatusOK {
					t.Errorf("%d %s", r.StatusCode, r.body)
				}
			}
		})
	}
	all.Wait()
	if n, most := checks.Load(), int32(time.Since(begun)/readyFor)+1; n > most {
		t.Errorf("800 requests made %d checks, want at most %d", n, most)
	}
}

// A database that is read-only still answers checks of sessions, so only for=writes reports it.
func TestReadinessForWrites(t *testing.T) {
	s := newTestServer(t)
	ask := func(path string) reply {
		t.Helper()
		s.edge.writes.checked = time.Time{}
		return s.request("GET", path, "")
	}
	if r := ask("/readyz?for=writes"); r.StatusCode != http.StatusOK {
		t.Errorf("a database that works: %d %s", r.StatusCode, r.body)
	}
	check := s.edge.writes.check
	s.edge.writes.check = func(context.Context) error { return rolecall.ErrUnavailable }
	expectProblem(t, ask("/readyz?for=writes"), 503, "unavailable")
	if r := ask("/readyz"); r.StatusCode != http.StatusOK {
		t.Errorf("without a purpose: %d %s", r.StatusCode, r.body)
	}
	s.edge.writes.check = check
	if r := ask("/readyz?for=writes"); r.StatusCode != http.StatusOK {
		t.Errorf("after the failure: %d %s", r.StatusCode, r.body)
	}
	expectProblem(t, ask("/readyz?for=reads"), 400, "malformed-request")
}

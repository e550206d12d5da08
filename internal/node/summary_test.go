package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/ratelimit"
)

func TestTheSummaryShowsBlockedSourcesUntilTheirLimitEnds(t *testing.T) {
	onEachStoreLimited(t, ratelimit.Limits{Source: 3}, func(f *fixture) {
		f.member("ada")
		summary := func() directory.Summary {
			t.Helper()
			s, err := f.Directory.Summary(f.Context(), f.owner, time.UTC)
			f.ok(err)
			return s
		}
		for range 2 {
			f.is(f.guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.is(f.guess("2001:db8::1", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.ok(f.Access.Refusals.Flush(f.Context()))
		if s := summary(); s.SignIns.Count != 3 || !s.SignIns.Exact || s.SignIns.Blocked != nil {
			t.Errorf("before the limit: %+v", s.SignIns)
		}
		for range 2 {
			f.is(f.guess("2001:db8::2", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.ok(f.Access.Refusals.Flush(f.Context()))
		want := []directory.BlockedSource{{Source: "2001:db8::/64", Until: f.clock.Now().Add(10 * time.Minute)}}
		if s := summary(); s.SignIns.Count != 5 || !slices.Equal(s.SignIns.Blocked, want) {
			t.Errorf("at the limit: %+v, want %+v", s.SignIns, want)
		}
		f.clock.advance(10 * time.Minute)
		if s := summary(); s.SignIns.Count != 5 || s.SignIns.Blocked != nil {
			t.Errorf("after the limit: %+v", s.SignIns)
		}
	})
}

package directory_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/ratelimit"
)

func TestTheSummaryShowsBlockedSourcesUntilTheirLimitEnds(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{Source: 3}, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		summary := func() directory.Summary {
			t.Helper()
			s, err := f.Directory.Summary(f.Context(), f.Owner, time.UTC)
			f.OK(err)
			return s
		}
		for range 2 {
			f.Is(f.Guess("192.0.2.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.Is(f.Guess("2001:db8::1", "ada", "wrong"), rolecall.ErrWrongCredentials)
		f.OK(f.Access.Refusals.Flush(f.Context()))
		if s := summary(); s.SignIns.Count != 3 || !s.SignIns.Exact || s.SignIns.Blocked != nil {
			t.Errorf("before the limit: %+v", s.SignIns)
		}
		for range 2 {
			f.Is(f.Guess("2001:db8::2", "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		f.OK(f.Access.Refusals.Flush(f.Context()))
		want := []directory.BlockedSource{{Source: "2001:db8::/64", Until: f.Clock.Now().Add(10 * time.Minute)}}
		if s := summary(); s.SignIns.Count != 5 || !slices.Equal(s.SignIns.Blocked, want) {
			t.Errorf("at the limit: %+v, want %+v", s.SignIns, want)
		}
		f.Clock.Advance(10 * time.Minute)
		if s := summary(); s.SignIns.Count != 5 || s.SignIns.Blocked != nil {
			t.Errorf("after the limit: %+v", s.SignIns)
		}
	})
}

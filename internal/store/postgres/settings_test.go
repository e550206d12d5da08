package postgres_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// A session of its own keeps the planner's settings; one that a pooler lends to
// others is given back as it was.
func TestPlannerIsKeptToIndexes(t *testing.T) {
	t.Run("direct", func(t *testing.T) {
		seqScans(t, open(t, pgtest.Migrated(t), postgres.Options{}), "off")
	})
	t.Run("behind PgBouncer", func(t *testing.T) {
		through := pgtest.Bouncer(t)
		seqScans(t, open(t, through(pgtest.Migrated(t))+"?default_query_exec_mode=exec", postgres.Options{}), "on")
	})
}

// seqScans fails the test unless a View keeps from reading whole tables, and
// sessions at rest are set as wanted.
func seqScans(t *testing.T, s *postgres.Store, wantAtRest string) {
	t.Helper()
	inView, err := s.SeqScanInView(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	atRest, err := s.SeqScanAtRest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if inView != "off" || atRest != wantAtRest {
		t.Errorf("sequential scans are %s in a View and %s at rest, want off and %s", inView, atRest, wantAtRest)
	}
}

package postgres_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// A session that no pooler shares keeps the settings. A session that a pooler shares has
// its own settings again after each transaction.
func TestSessionsAreSet(t *testing.T) {
	const planner, orphans, clients = "enable_seqscan", "idle_in_transaction_session_timeout", "client_connection_check_interval"
	t.Run("direct", func(t *testing.T) {
		s := open(t, pgtest.Migrated(t), postgres.Options{})
		isSet(t, s, planner, "off", "off")
		isSet(t, s, orphans, "10s", "10s")
		isSet(t, s, clients, "1s", "1s")
	})
	t.Run("behind PgBouncer", func(t *testing.T) {
		through := pgtest.Bouncer(t)
		s := open(t, through(pgtest.Migrated(t))+"?default_query_exec_mode=exec", postgres.Options{})
		isSet(t, s, planner, "off", "on")
		isSet(t, s, orphans, "10s", "0")
		isSet(t, s, clients, "1s", "0")
	})
}

// isSet fails the test unless the setting has the wanted values: in a View, and outside of
// a transaction.
func isSet(t *testing.T, s *postgres.Database, name, wantInView, wantAtRest string) {
	t.Helper()
	inView, err := s.SettingInView(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	atRest, err := s.SettingAtRest(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if inView != wantInView || atRest != wantAtRest {
		t.Errorf("%s is %s in a View and %s at rest, want %s and %s", name, inView, atRest, wantInView, wantAtRest)
	}
}

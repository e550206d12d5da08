package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// told is a Watcher that sends the received ids and lags to channels.
type told struct {
	changed chan rolecall.AnyID
	feeds   chan rolecall.TenantID
	current chan time.Duration
}

// Changed sends the tenant to the channel.
func (w told) Changed(tenant rolecall.TenantID) { w.feeds <- tenant }

// Invalidate sends the id to the channel.
func (w told) Invalidate(id rolecall.AnyID) { w.changed <- id }

// CaughtUp sends the lag to the channel, unless the channel is full.
func (w told) CaughtUp(lag time.Duration) {
	select {
	case w.current <- lag:
	default:
	}
}

// watch watches the store until the test ends. It returns after the watch has started. The
// returned channel receives the error of the watch.
func watch(t *testing.T, s *postgres.Database) (told, <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w, ended := told{make(chan rolecall.AnyID, 100), make(chan rolecall.TenantID, 100), make(chan time.Duration, 1)}, make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- s.Watch(ctx, w)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if id := await(t, w.changed); !id.IsZero() {
		t.Errorf("a watch began with a change of %v, not of everything", id)
	}
	if tenant := await(t, w.feeds); !tenant.IsZero() {
		t.Errorf("a watch began with changes of %v, not of all tenants", tenant)
	}
	await(t, w.current)
	return w, ended
}

func await[T any](t *testing.T, channel <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-channel:
	case <-time.After(patience.Limit):
		t.Fatal("nothing is told")
	}
	return value
}

func announce(t *testing.T, s *postgres.Database, tenant rolecall.TenantID, ids ...rolecall.AnyID) {
	t.Helper()
	if err := s.Update(t.Context(), tenant, func(q store.Querier) error {
		for _, id := range ids {
			q.Announce(id)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestEveryWatchReceivesCommittedChanges(t *testing.T) {
	url := pgtest.Migrated(t)
	s, other := open(t, url, postgres.Options{}), open(t, url+"&default_query_exec_mode=exec", postgres.Options{})
	tenant := newTenant(t, s, "acme")
	watches := make([]told, 3)
	for i, from := range []*postgres.Database{s, other, other} {
		watches[i], _ = watch(t, from)
	}
	first, second, last := rolecall.NewID[any](now), rolecall.NewID[any](now), rolecall.NewID[any](now)
	announce(t, s, tenant, first, second)
	if err := other.Update(t.Context(), tenant, func(q store.Querier) error {
		q.Announce(rolecall.NewID[any](now))
		return rolecall.ErrPreconditionFailed
	}); !errors.Is(err, rolecall.ErrPreconditionFailed) {
		t.Fatal(err)
	}
	announce(t, other, tenant, last)
	if err := other.Update(t.Context(), tenant, func(q store.Querier) error {
		q.AnnounceChanges(tenant)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i, w := range watches {
		for _, want := range []rolecall.AnyID{first, second, last} { // and not the id that was rolled back
			if got := await(t, w.changed); got != want {
				t.Errorf("watch %d is told of %v, want %v", i, got, want)
			}
		}
		if got := await(t, w.feeds); got != tenant {
			t.Errorf("watch %d is told of changes of %v, want %v", i, got, tenant)
		}
		<-w.current
		if lag := await(t, w.current); lag < 0 {
			t.Errorf("watch %d is %v late", i, lag)
		}
	}
}

func TestAWatchEndsWithItsConnection(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, url, postgres.Options{})
	_, ended := watch(t, s)
	run(t, connect(t, pgtest.Admin(t, url)),
		"select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'rolecall listener'")
	if err := await(t, ended); err == nil || !strings.Contains(err.Error(), "terminating connection") {
		t.Errorf("the watch ended with %v", err)
	}
	watch(t, s)
}

func TestAWatchEndsQuietlyWithItsContext(t *testing.T) {
	s := open(t, pgtest.Migrated(t), postgres.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Watch(ctx, told{make(chan rolecall.AnyID, 1), make(chan rolecall.TenantID, 1), make(chan time.Duration, 1)}); err != nil {
		t.Error(err)
	}
}

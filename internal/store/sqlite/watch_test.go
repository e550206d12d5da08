package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/store"
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

// CaughtUp sends the lag to the channel.
func (w told) CaughtUp(lag time.Duration) { w.current <- lag }

func TestAWatchReceivesChangesOfOtherProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rolecall.db")
	var stores [2]*Database
	for i := range stores {
		s, err := Open(t.Context(), path, Options{Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		stores[i] = s
	}
	tenant := newTenant(t, stores[0])
	ctx, cancel := context.WithCancel(t.Context())
	w, ended := told{make(chan rolecall.AnyID, 1), make(chan rolecall.TenantID, 1), make(chan time.Duration)}, make(chan error, 1)
	go func() { ended <- stores[0].Watch(ctx, w) }()
	look := func() (changed bool) {
		t.Helper()
		select {
		case <-w.current:
		case <-time.After(patience.Limit):
			t.Fatal("nobody looks at the file")
		}
		select {
		case id := <-w.changed:
			if !id.IsZero() {
				t.Errorf("told of a change of %v, want everything", id)
			}
			if tenant := <-w.feeds; !tenant.IsZero() {
				t.Errorf("told of changes of %v, want all tenants", tenant)
			}
			return true
		default:
			return false
		}
	}
	write := func(s *Database) {
		t.Helper()
		if err := store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
			tx.InsertUser(newUser("Ada"))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	told := func() bool { // the first check may have begun before the write
		first, second := look(), look()
		return first || second
	}
	if !look() {
		t.Error("a watch did not begin with a change of everything")
	}
	for range 3 {
		write(stores[0])
		if told() {
			t.Error("told of a change of one's own")
		}
		write(stores[1])
		if !told() {
			t.Error("not told of the change of another process")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAWatchEndsWithItsStore(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "rolecall.db"), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	w, ended := told{make(chan rolecall.AnyID, 1), make(chan rolecall.TenantID, 1), make(chan time.Duration)}, make(chan error, 1)
	go func() { ended <- s.Watch(t.Context(), w) }()
	<-w.current
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-w.current:
		case err := <-ended:
			if rolecall.KindOf(err) != rolecall.Unavailable {
				t.Errorf("the watch ended with %v", err)
			}
			return
		}
	}
}

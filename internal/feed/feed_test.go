package feed

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/outage"
	"github.com/rolecall/rolecall/internal/sqlitetest"
	"github.com/rolecall/rolecall/internal/store"
)

func TestMain(m *testing.M) { os.Exit(sqlitetest.Main(m)) }

const start rolecall.Time = 1_800_000_000_000_000

// broken is a database whose transactions fail while down is true.
type broken struct {
	store.Database
	down    atomic.Bool
	failing sync.Map // the errors of tenants whose transactions fail
}

var errDown = errors.New("the database is down")

// Update fails while the database is down.
func (b *broken) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	if b.down.Load() {
		return errDown
	}
	if err, ok := b.failing.Load(tenant); ok {
		return err.(error)
	}
	return b.Database.Update(ctx, tenant, fn)
}

// fixture is a feed on a SQLite file.
type fixture struct {
	*testing.T
	db     *broken
	store  *store.Store
	feed   *Feed
	clock  atomic.Int64
	tenant rolecall.TenantID
	logged strings.Builder

	numbered func() // if not nil, is called when events got numbers
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db, _ := sqlitetest.Opened(t)
	f := &fixture{T: t, db: &broken{Database: db}, tenant: rolecall.NewID[rolecall.Tenant](start)}
	f.clock.Store(int64(start))
	f.store = store.New(f.db, func(e store.Effects) {
		if e.Recorded {
			f.feed.Recorded(e.Tenant)
		}
		if e.Numbered {
			f.feed.Changed(e.Tenant)
			if f.numbered != nil {
				f.numbered()
			}
		}
	})
	log := slog.New(slog.NewTextHandler(&f.logged, nil))
	f.feed = New(f.store, func() rolecall.Time { return rolecall.Time(f.clock.Load()) }, log, outage.New(log))
	return f
}

// record inserts events of the type, and returns their ids.
func (f *fixture) record(kind rolecall.EventType, n int) (ids []rolecall.EventID) {
	f.Helper()
	if err := f.store.Update(f.Context(), f.tenant, func(tx *store.Tx) error {
		for range n {
			e := rolecall.Event{
				ID: rolecall.NewID[rolecall.Event](start), Type: kind, OccurredAt: start, Members: []string{},
				Actor: rolecall.Actor{Type: rolecall.ActorOperator, Via: "command"}, Subject: rolecall.Subject{Type: rolecall.SubjectRole, ID: rolecall.NewID[any](start)},
			}
			tx.InsertEvent(e)
			ids = append(ids, e.ID)
		}
		return nil
	}); err != nil {
		f.Fatal(err)
	}
	return ids
}

func (f *fixture) read(q Query) (Page, []rolecall.EventID) {
	f.Helper()
	page, err := f.feed.Read(f.Context(), f.tenant, q)
	if err != nil {
		f.Fatal(err)
	}
	var ids []rolecall.EventID
	for _, c := range page.Changes {
		ids = append(ids, c.ID)
	}
	return page, ids
}

// in returns the fixture for another tenant, whose events are numbered by the same feed.
func (f *fixture) in(tenant rolecall.TenantID) *fixture {
	return &fixture{T: f.T, db: f.db, store: f.store, feed: f.feed, tenant: tenant}
}

// unnumbered reports whether the tenant has events without a number.
func (f *fixture) unnumbered() bool {
	f.Helper()
	err := f.store.View(f.Context(), f.tenant, func(tx *store.Tx) error {
		_, err := tx.Unnumbered()
		return err
	})
	if err != nil && !errors.Is(err, rolecall.ErrNotFound) {
		f.Fatal(err)
	}
	return err == nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestWaitingReadersAreWokenWhenEventsHaveNumbers(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.feed.Run(ctx)
	}()
	changed, stop := f.feed.Wait(f.tenant)
	other, stopOther := f.feed.Wait(rolecall.NewID[rolecall.Tenant](start))
	defer stopOther()
	ids := f.record(rolecall.EventRoleCreated, 1)
	<-changed
	stop()
	if _, got := f.read(Query{Limit: 10}); !slices.Equal(got, ids) {
		t.Errorf("read %v, want %v", got, ids)
	}
	if isClosed(other) {
		t.Error("a reader of another tenant was woken")
	}
	f.feed.Changed(rolecall.TenantID{})
	<-other
	cancel()
	<-done
	f.feed.mu.Lock()
	defer f.feed.mu.Unlock()
	if len(f.feed.waiting) != 0 || len(f.feed.fresh.due) != 0 || len(f.feed.fresh.order) != 0 {
		t.Errorf("left are %v %v %v", f.feed.waiting, f.feed.fresh.due, f.feed.fresh.order)
	}
}

func TestReadersOfAllTenantsAreWokenByEachTenant(t *testing.T) {
	f := newFixture(t)
	for _, tenant := range []rolecall.TenantID{f.tenant, rolecall.NewID[rolecall.Tenant](start), {}} {
		changed, stop := f.feed.WaitForTenants()
		f.feed.Changed(tenant)
		if !isClosed(changed) {
			t.Errorf("a change of %v does not wake the readers of all tenants", tenant)
		}
		stop()
	}
	if len(f.feed.waiting) != 0 {
		t.Errorf("left are %v", f.feed.waiting)
	}
}

func TestAWaitThatEndsLeavesNothing(t *testing.T) {
	f := newFixture(t)
	_, stop := f.feed.Wait(f.tenant)
	changed, stopAnother := f.feed.Wait(f.tenant)
	stop()
	f.feed.Changed(f.tenant)
	if !isClosed(changed) {
		t.Error("the end of a wait ends another one")
	}
	again, stopAgain := f.feed.Wait(f.tenant)
	stopAnother()
	if f.feed.Changed(f.tenant); !isClosed(again) {
		t.Error("the end of a wait that was woken ends a later one")
	}
	stopAgain()
	if len(f.feed.waiting) != 0 {
		t.Errorf("left are %v", f.feed.waiting)
	}
}

func TestTheLagIsTheAgeOfTheOldestEventWithoutANumber(t *testing.T) {
	f := newFixture(t)
	lag := func(want time.Duration) {
		t.Helper()
		if got := f.feed.Lag(); got != want {
			t.Errorf("the lag is %v, want %v", got, want)
		}
	}
	lag(0)
	f.record(rolecall.EventRoleCreated, 1)
	f.clock.Add(int64(3 * time.Second / time.Microsecond))
	f.record(rolecall.EventRoleCreated, 1)
	lag(3 * time.Second)
	f.db.down.Store(true)
	if err := f.feed.round(t.Context(), f.feed.fresh); !errors.Is(err, errDown) {
		t.Errorf("the round ended with %v", err)
	}
	f.clock.Add(int64(time.Second / time.Microsecond))
	lag(4 * time.Second)
	f.db.down.Store(false)
	if err := f.feed.round(t.Context(), f.feed.failing); err != nil {
		t.Error(err)
	}
	lag(0)
	if err := f.store.View(t.Context(), f.tenant, func(tx *store.Tx) error {
		_, err := tx.Unnumbered()
		return err
	}); !errors.Is(err, rolecall.ErrNotFound) {
		t.Errorf("after the round that succeeds, events have no number: %v", err)
	}
	if page, ids := f.read(Query{Limit: 10}); len(ids) != 2 || !page.UpToDate {
		t.Errorf("read %v", ids)
	}
	f.record(rolecall.EventRoleCreated, 1)
	f.clock.Add(int64(-time.Hour / time.Microsecond))
	lag(0)
}

// TestARoundEndsAlthoughEventsContinue records an event whenever some got numbers.
func TestARoundEndsAlthoughEventsContinue(t *testing.T) {
	f := newFixture(t)
	batches := 0
	f.numbered = func() {
		if batches++; batches < 5 {
			f.record(rolecall.EventRoleCreated, 1)
		}
	}
	f.record(rolecall.EventRoleCreated, 1)
	for want := 1; want <= 5; want++ {
		if err := f.feed.round(t.Context(), f.feed.fresh); err != nil {
			t.Fatal(err)
		}
		if batches != want {
			t.Fatalf("after %d rounds, %d batches have numbers", want, batches)
		}
	}
	if f.feed.Lag() != 0 || len(f.feed.fresh.order) != 0 {
		t.Errorf("left are %v with the lag %v", f.feed.fresh.order, f.feed.Lag())
	}
}

func TestPagesOfAType(t *testing.T) {
	f := newFixture(t)
	rare := f.record(rolecall.EventRoleDeleted, 1)
	for range 11 { // more than one page scans
		f.record(rolecall.EventRoleCreated, store.NumbersAtOnce)
	}
	rare = append(rare, f.record(rolecall.EventRoleDeleted, 2)...)
	if page, _ := f.read(Query{Limit: 10}); page.UpToDate {
		t.Error("a page is up to date although only a part of the events have numbers")
	}
	if err := f.feed.round(t.Context(), f.feed.fresh); err != nil {
		t.Fatal(err)
	}
	var got []rolecall.EventID
	q := Query{Type: rolecall.EventRoleDeleted, Limit: 2}
	pages := 0
	for upToDate := false; !upToDate; pages++ {
		page, ids := f.read(q)
		got, q.After, upToDate = append(got, ids...), &page.Next, page.UpToDate
	}
	if !slices.Equal(got, rare) || pages != 2 {
		t.Errorf("read %v in %d pages, want %v", got, pages, rare)
	}
	end, err := f.feed.End(t.Context(), f.tenant)
	if err != nil || end.Next != *q.After || !end.UpToDate {
		t.Errorf("the end is %+v, not %+v (%v)", end.Next, *q.After, err)
	}
}

func TestTheWaitForAnotherReaderEndsWithTheContext(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		busy turn
		call func(context.Context) error
	}{
		"places":  {f.feed.placing, func(ctx context.Context) error { _, err := f.feed.GivePlaces(ctx); return err }},
		"numbers": {f.feed.fresh.round, f.feed.Flush},
	} {
		if err := c.busy.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		gaveUp := errors.New("gave up")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gaveUp)
		if err := c.call(ctx); !errors.Is(err, gaveUp) {
			t.Errorf("%s: %v", name, err)
		}
		c.busy.leave()
		if err := c.call(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestATenantThatFailsStopsNoOther(t *testing.T) {
	for _, failure := range []error{errors.New("broken"), rolecall.ErrUnavailable.Because(errors.New("locked"))} {
		f := newFixture(t)
		other := f.in(rolecall.NewID[rolecall.Tenant](start))
		f.record(rolecall.EventRoleCreated, 1)
		other.record(rolecall.EventRoleCreated, 1)
		f.db.failing.Store(f.tenant, failure)
		if err := f.feed.round(t.Context(), f.feed.fresh); !errors.Is(err, failure) {
			t.Errorf("the round ended with %v, want %v", err, failure)
		}
		if other.unnumbered() {
			t.Errorf("%v in one tenant keeps events of another from being numbered", failure)
		}
		for range 3 { // new events of the tenant do not delay the others again
			f.feed.Recorded(f.tenant)
			if err := f.feed.round(t.Context(), f.feed.fresh); err != nil {
				t.Error(err)
			}
			if err := f.feed.round(t.Context(), f.feed.failing); !errors.Is(err, failure) {
				t.Errorf("a retry ended with %v, want %v", err, failure)
			}
		}
		if got := f.logged.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "tenant="+f.tenant.String()) {
			t.Errorf("during one outage, the log has\n%s", got)
		}
		f.db.failing.Delete(f.tenant)
		if err := f.feed.round(t.Context(), f.feed.failing); err != nil || f.unnumbered() || f.feed.Lag() != 0 {
			t.Errorf("after the outage: %v, with the lag %v", err, f.feed.Lag())
		}
	}
}

func TestEventsOfAFailingTenantGetNumbersLater(t *testing.T) {
	f := newFixture(t)
	f.record(rolecall.EventRoleCreated, 1)
	f.db.failing.Store(f.tenant, errDown)
	changed, stop := f.feed.Wait(f.tenant)
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() { f.feed.Run(ctx) })
	other := f.in(rolecall.NewID[rolecall.Tenant](start))
	otherChanged, stopOther := f.feed.Wait(other.tenant)
	defer stopOther()
	other.record(rolecall.EventRoleCreated, 1)
	<-otherChanged
	f.db.failing.Delete(f.tenant)
	<-changed
	cancel()
	runs.Wait()
	if f.feed.Lag() != 0 {
		t.Errorf("the lag is %v", f.feed.Lag())
	}
}

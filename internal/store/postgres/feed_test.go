package postgres_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// TestAnOpenTransactionComesLaterInTheFeed queues an event in a transaction that stays open. Other
// events get numbers in the meantime, and the event gets the next number after the commit.
func TestAnOpenTransactionComesLaterInTheFeed(t *testing.T) {
	s := open(t, pgtest.Migrated(t), postgres.Options{})
	tenant := newTenant(t, s, "acme")
	event := func() rolecall.Event {
		return rolecall.Event{
			ID: rolecall.NewID[rolecall.Event](now), Type: rolecall.EventRoleUpdated, OccurredAt: now, Members: []string{},
			Actor: rolecall.Actor{Type: rolecall.ActorOperator, Via: "command"}, Subject: rolecall.Subject{Type: rolecall.SubjectRole, ID: rolecall.NewID[any](now)},
		}
	}
	held, others := event(), []rolecall.Event{event(), event()}
	queued, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Update(t.Context(), tenant, func(q store.Querier) error {
			store.NewTx(q, tenant).InsertEvent(held)
			q.Exec("insert into event_queue (tenant_id, event_id) values ($1, $2)", tenant, held.ID)
			_, err := q.Query("select 1", nil, func(func(dest ...any) error) error { return nil })
			close(queued)
			<-release
			return err
		})
	}()
	await(t, queued)
	number := func(want int) {
		t.Helper()
		write(t, s, tenant, func(tx *store.Tx) {
			if n, err := tx.NumberEvents(now); err != nil || n != want {
				t.Errorf("%d events got a number, want %d (%v)", n, want, err)
			}
		})
	}
	for _, e := range others {
		write(t, s, tenant, func(tx *store.Tx) { tx.InsertEvent(e) })
	}
	number(2)
	close(release)
	if err := await(t, ended); err != nil {
		t.Fatal(err)
	}
	number(1)
	var ids []rolecall.EventID
	if err := store.New(s, nil).View(t.Context(), tenant, func(tx *store.Tx) error {
		changes, _, err := tx.Changes(rolecall.ChangeQuery{To: 10, Limit: 10, Room: rolecall.MaxPageBytes})
		for _, c := range changes {
			ids = append(ids, c.ID)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []rolecall.EventID{others[0].ID, others[1].ID, held.ID}; !slices.Equal(ids, want) {
		t.Errorf("the feed has %v, want %v", ids, want)
	}
}

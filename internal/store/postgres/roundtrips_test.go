package postgres_test

import (
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// Some round trips do not happen each time: a new connection prepares each statement, and
// a connection that was idle for a second is pinged first. So the test runs each operation
// a few times, and checks the smallest number of round trips.
func TestRoundTripsPerOperation(t *testing.T) { onServers(t, countRoundTrips) }

func countRoundTrips(t *testing.T, url string) {
	var net wire
	s := open(t, url+"&pool_max_conns=1", postgres.Options{Dial: net.dial})
	tenant := newTenant(t, s, "acme")
	user := aUser("ada@example.com")
	write(t, s, tenant, func(tx *store.Tx) { tx.InsertUser(user) })
	view := func(fn func(*store.Tx) error) error { return store.New(s, nil).View(t.Context(), tenant, fn) }
	update := func(fn func(*store.Tx) error) error { return store.New(s, nil).Update(t.Context(), tenant, fn) }

	for _, operation := range []struct {
		name string
		want int64
		run  func() error
	}{
		{"read a user", 1, func() error {
			return view(func(tx *store.Tx) error {
				_, err := tx.UserByID(user.ID)
				return err
			})
		}},
		{"resolve a session", 1, func() error {
			return view(func(tx *store.Tx) error {
				if _, err := tx.SessionWithRoles([]byte("unknown"), 1000); rolecall.KindOf(err) != rolecall.NotFound {
					return err
				}
				return nil
			})
		}},
		{"create a user with its key and event", 1, func() error {
			return update(func(tx *store.Tx) error {
				u := aUser(rolecall.NewID[any](now).String() + "@example.com")
				tx.InsertKey(rolecall.IdempotencyKey{UserID: u.ID, Operation: "createUser", Hash: u.ID[:], Fingerprint: []byte{}, ResourceID: rolecall.AnyID(u.ID)})
				tx.InsertUser(u)
				tx.InsertEvent(created(u))
				return nil
			})
		}},
		{"change a user", 3, func() error {
			return update(func(tx *store.Tx) error {
				old, err := tx.UserByID(user.ID)
				if err != nil {
					return err
				}
				changed := old
				changed.Version++
				if _, err := tx.UpdateUser(old, changed); err != nil {
					return err
				}
				tx.InsertEvent(created(changed))
				return nil
			})
		}},
		{"an update that writes nothing", 0, func() error {
			return update(func(*store.Tx) error { return nil })
		}},
	} {
		least := int64(1000)
		for range 5 {
			least = min(least, net.during(func() {
				if err := operation.run(); err != nil {
					t.Fatalf("%s: %v", operation.name, err)
				}
			}))
		}
		if least != operation.want {
			t.Errorf("%s: %d round trips, want %d", operation.name, least, operation.want)
		}
	}
}

func created(u rolecall.User) rolecall.Event {
	return rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](now), Type: rolecall.EventUserCreated, OccurredAt: now,
		Actor:   rolecall.Actor{Type: rolecall.ActorOperator},
		Subject: rolecall.About(u.ID),
	}
}

package postgres_test

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// PostgreSQL detects a deadlock after a second and makes one transaction fail. Update then
// runs its function again. So the test checks that each function runs only once.
func TestRefreshesAndASignOutAtOnceDoNotDeadlock(t *testing.T) {
	s := open(t, pgtest.Reused(t), postgres.Options{})
	tenant := newTenant(t, s, "acme")
	user := aUser("ada@example.com")
	write(t, s, tenant, func(tx *store.Tx) { tx.InsertUser(user) })
	for range 20 {
		session := rolecall.Session{ID: rolecall.NewID[rolecall.Session](now), UserID: user.ID, AuthenticatedAt: now, LastUsedAt: now, ExpiresAt: rolecall.Never}
		token := rolecall.SessionToken{Hash: random(), Generation: 1}
		write(t, s, tenant, func(tx *store.Tx) { tx.InsertSession(session, token.Hash) })

		changes := []func(*store.Tx) error{func(tx *store.Tx) error {
			_, err := tx.DeleteSession(session.ID)
			return err
		}}
		for range 4 {
			changes = append(changes, func(tx *store.Tx) error {
				_, err := tx.SealSuccessor(session.ID, token, random(), []byte("sealed"))
				return err
			})
		}
		var runs atomic.Int32
		var running sync.WaitGroup
		for _, change := range changes {
			running.Go(func() {
				err := store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
					runs.Add(1)
					return change(tx)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		if int(runs.Load()) != len(changes) {
			t.Fatalf("%d changes ran %d times", len(changes), runs.Load())
		}
	}
}

// random returns the hash of an unused token.
func random() []byte {
	hash := make([]byte, 32)
	rand.Read(hash)
	return hash
}

package sqlite

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// clients makes a parallel benchmark run in 32 goroutines.
func clients(b *testing.B) { b.SetParallelism(32 / runtime.GOMAXPROCS(0)) }

// filled returns a store with a tenant of 10,000 users.
func filled(b *testing.B) (*store.Store, rolecall.TenantID, []rolecall.UserID) {
	b.Helper()
	db := openNew(b)
	s, tenant := store.New(db, nil), newTenant(b, db)
	ids := make([]rolecall.UserID, 0, 10_000)
	if err := s.Update(b.Context(), tenant, func(tx *store.Tx) error {
		ids = ids[:0]
		for range 10_000 {
			u := newUser("Ada Lovelace")
			ids = append(ids, u.ID)
			tx.InsertUser(u)
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	return s, tenant, ids
}

func report(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s") }

// BenchmarkCreate writes the same rows as the service for a new user: idempotency key,
// user, search words and event.
func BenchmarkCreate(b *testing.B) {
	db := openNew(b)
	s, tenant := store.New(db, nil), newTenant(b, db)
	clients(b)
	b.ReportAllocs()
	var turn atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			u := newUser("Ada Lovelace")
			u.Email = fmt.Sprintf("ada.lovelace.%d@example.com", turn.Add(1))
			if err := s.Update(b.Context(), tenant, func(tx *store.Tx) error {
				tx.InsertKey(rolecall.IdempotencyKey{UserID: u.ID, Operation: "create", Hash: u.ID[:], Fingerprint: u.ID[:], ResourceID: rolecall.AnyID(u.ID)})
				tx.InsertUser(u)
				tx.InsertEvent(rolecall.Event{ID: rolecall.NewID[rolecall.Event](now), Subject: rolecall.Subject{ID: rolecall.AnyID(u.ID)}})
				return nil
			}); err != nil {
				b.Error(err)
			}
		}
	})
	report(b)
}

func BenchmarkRead(b *testing.B) {
	s, tenant, ids := filled(b)
	clients(b)
	b.ReportAllocs()
	b.ResetTimer()
	var turn atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := ids[turn.Add(1)%int64(len(ids))]
			if err := s.View(b.Context(), tenant, func(tx *store.Tx) error {
				_, err := tx.UserByID(id)
				return err
			}); err != nil {
				b.Error(err)
			}
		}
	})
	report(b)
}

func BenchmarkList(b *testing.B) {
	s, tenant, _ := filled(b)
	for name, q := range map[string]rolecall.UserQuery{
		"first page": {},
		"by name":    {Sort: rolecall.SortByName},
		"filtered":   {Status: rolecall.UserActive},
		"nobody":     {Status: rolecall.UserPending},
		"word":       {Words: []string{"lov"}},
	} {
		b.Run(name, func(b *testing.B) {
			q.Within, q.NameWords, q.EmailWords, q.Limit = rolecall.Everywhere(), rolecall.Everywhere(), rolecall.Everywhere(), 50
			clients(b)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := s.View(b.Context(), tenant, func(tx *store.Tx) error {
						_, err := tx.Users(q)
						return err
					}); err != nil {
						b.Error(err)
					}
				}
			})
			report(b)
		})
	}
}

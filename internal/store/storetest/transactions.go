package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var transactionCases = []testCase{
	{"A new store is ready", func(f *fixture) {
		f.is(f.store.Ready(f.Context()), nil)
	}},
	{"The connection of a read is counted while it is in use", func(f *fixture) {
		var during store.Connections
		f.is(f.database.View(f.Context(), f.tenant, func(q store.Querier) error {
			_, err := q.Query("select count(*) from tenants where name = $1", []any{"acme"}, func(scan func(...any) error) error {
				during = f.store.Connections()
				return scan(new(int))
			})
			return err
		}), nil)
		after := f.store.Connections()
		if during.InUse < 1 || during.InUse > during.Max || after.InUse != 0 || after.Max != during.Max {
			f.Errorf("during a read: %+v, after it: %+v", during, after)
		}
	}},
	{"An error from the closure comes back as it is and nothing is written", func(f *fixture) {
		u := aUser("Ada Lovelace")
		err := f.tryUpdate(func(tx *store.Tx) error {
			tx.InsertUser(u)
			return errRefused
		})
		if err != errRefused {
			f.Fatalf("got %v, want the closure's own error", err)
		}
		if f.hasUser(u.ID) {
			f.Error("the refused update left its user")
		}
	}},
	{"After a stale write, the closure runs again, and its first writes are undone", func(f *fixture) {
		first, second := aUser("Ada Lovelace"), aUser("Grace Hopper")
		tries := 0
		f.update(func(tx *store.Tx) error {
			if tries++; tries == 1 {
				tx.InsertUser(first)
				return store.CheckVersion(tx.UpdateUser(second, second))
			}
			tx.InsertUser(second)
			return nil
		})
		same(f, tries, 2)
		same(f, f.hasUser(first.ID), false)
		same(f, f.hasUser(second.ID), true)
	}},
	{"A write that is always stale is given up", func(f *fixture) {
		u := aUser("Ada Lovelace")
		f.is(f.tryUpdate(func(tx *store.Tx) error { return store.CheckVersion(tx.UpdateUser(u, u)) }), rolecall.ErrUnavailable)
	}},
	{"An error after a read also undoes what was written before it", func(f *fixture) {
		u := aUser("Ada Lovelace")
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			tx.InsertUser(u)
			if _, err := tx.UserByID(u.ID); err != nil {
				return err
			}
			return errRefused
		}), errRefused)
		if f.hasUser(u.ID) {
			f.Error("the refused update left its user")
		}
	}},
	{"An error from a view comes back as it is", func(f *fixture) {
		err := f.store.View(f.Context(), f.tenant, func(*store.Tx) error { return errRefused })
		if err != errRefused {
			f.Fatalf("got %v, want the closure's own error", err)
		}
	}},
	{"An update reads its own writes", func(f *fixture) {
		u := aUser("Ada Lovelace")
		f.update(func(tx *store.Tx) error {
			tx.InsertUser(u)
			got, err := tx.UserByID(u.ID)
			if err == nil {
				same(f, got, u)
			}
			return err
		})
	}},
	{"An update without any statement succeeds", func(f *fixture) {
		f.is(f.tryUpdate(func(*store.Tx) error { return nil }), nil)
	}},
	{"A violation fails the whole update", func(f *fixture) {
		taken, other := f.newUser("Ada Lovelace"), aUser("Grace Hopper")
		double := aUser("Ada Byron")
		double.Email = taken.Email
		f.is(f.tryWrite(func(tx *store.Tx) {
			tx.InsertUser(other)
			tx.InsertUser(double)
		}), rolecall.ErrEmailTaken)
		if f.hasUser(other.ID) {
			f.Error("the failed update left its first user")
		}
	}},
	{"An update that reads after a violation returns the violation", func(f *fixture) {
		taken := f.newUser("Ada Lovelace")
		double := aUser("Ada Byron")
		double.Email = taken.Email
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			tx.InsertUser(double)
			_, err := tx.UserByID(taken.ID)
			return err
		}), rolecall.ErrEmailTaken)
	}},
	{"A violation that the closure ignores still fails the update", func(f *fixture) {
		taken, other := f.newUser("Ada Lovelace"), aUser("Grace Hopper")
		double := aUser("Ada Byron")
		double.Email = taken.Email
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			tx.InsertUser(double)
			_, _ = tx.UserByID(taken.ID)
			tx.InsertUser(other)
			return nil
		}), rolecall.ErrEmailTaken)
		if f.hasUser(other.ID) {
			f.Error("the failed update left its second user")
		}
	}},
	{"The store works on after many violations", func(f *fixture) {
		taken := f.newUser("Ada Lovelace")
		for range 50 {
			double := aUser("Ada Byron")
			double.Email = taken.Email
			f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertUser(double) }), rolecall.ErrEmailTaken)
		}
		if !f.hasUser(taken.ID) || !f.hasUser(f.newUser("Grace Hopper").ID) {
			f.Error("users are missing after violations")
		}
	}},
	{"A panic rolls the update back and reaches the caller", func(f *fixture) {
		u := aUser("Ada Lovelace")
		func() {
			defer func() {
				if got := recover(); got != "stop" {
					f.Errorf("recovered %v, want the closure's panic", got)
				}
			}()
			_ = f.tryUpdate(func(tx *store.Tx) error {
				tx.InsertUser(u)
				if _, err := tx.UserByID(u.ID); err != nil {
					return err
				}
				panic("stop")
			})
			f.Error("the panic did not arrive")
		}()
		if f.hasUser(u.ID) {
			f.Error("the panicking update left its user")
		}
		f.newUser("Grace Hopper")
	}},
	{"A panic of one update does not affect concurrent ones", func(f *fixture) {
		users := make([]rolecall.User, 20)
		results := parallel(len(users), func(i int) (err error) {
			defer func() {
				if got := recover(); got != nil {
					err = errRefused
				}
			}()
			users[i] = aUser("Ada Lovelace")
			return f.tryWrite(func(tx *store.Tx) {
				tx.InsertUser(users[i])
				if i%4 == 0 {
					panic("stop")
				}
			})
		})
		for i, err := range results {
			if stored := f.hasUser(users[i].ID); stored != (err == nil) || stored == (i%4 == 0) {
				f.Errorf("update %d: error %v, stored %v", i, err, stored)
			}
		}
	}},
	{"An update with a canceled context has no effect", func(f *fixture) {
		u := aUser("Ada Lovelace")
		err := f.store.Update(cancelled(f.T), f.tenant, func(tx *store.Tx) error {
			tx.InsertUser(u)
			return nil
		})
		f.is(err, context.Canceled)
		if f.hasUser(u.ID) {
			f.Error("the cancelled update left its user")
		}
	}},
	{"A context that ends during an update leaves all of its writes or none", wholeUnderCancellation},
	{"One of many concurrent inserts of an address wins", func(f *fixture) {
		f.oneWins(parallel(20, func(int) error {
			u := aUser("Ada Lovelace")
			u.Email = "ada@example.com"
			return f.tryWrite(func(tx *store.Tx) { tx.InsertUser(u) })
		}), rolecall.ErrEmailTaken)
		same(f, len(f.readAll(everyone(), nil)), 1)
	}},
	{"One of many concurrent changes of the same version succeeds", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		f.oneWins(parallel(20, func(i int) error {
			changed := u
			changed.Name, changed.Version = fmt.Sprintf("Ada %d", i), u.Version+1
			return f.tryUpdate(func(tx *store.Tx) error {
				done, err := tx.UpdateUser(u, changed)
				if err == nil && !done {
					return errRefused
				}
				return err
			})
		}), errRefused)
	}},
	{"Many concurrent changes of one row need at most two attempts each on average", func(f *fixture) {
		u, tries := f.newUser("Ada Lovelace"), atomic.Int64{}
		const changes = 50
		for _, err := range parallel(changes, func(int) error {
			return f.tryUpdate(func(tx *store.Tx) error {
				tries.Add(1)
				old, err := tx.UserByID(u.ID)
				if err != nil {
					return err
				}
				changed := old
				changed.Version++
				return store.CheckVersion(tx.UpdateUser(old, changed))
			})
		}) {
			f.is(err, nil)
		}
		got := read(f, func(tx *store.Tx) (rolecall.User, error) { return tx.UserByID(u.ID) })
		same(f, got.Version, u.Version+changes)
		if tries.Load() > 2*changes {
			f.Errorf("%d changes needed %d attempts", changes, tries.Load())
		}
	}},
	{"Concurrent read-then-write of one row loses no change", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		const writers, rounds = 8, 5
		for _, err := range parallel(writers, func(int) error { return f.countUp(u.ID, rounds) }) {
			f.is(err, nil)
		}
		got := read(f, func(tx *store.Tx) (rolecall.User, error) { return tx.UserByID(u.ID) })
		same(f, got.Version, u.Version+writers*rounds)
	}},
}

// countUp increments the version of the user rounds times. If another update changes the
// user at the same time, it reads the user again.
func (f *fixture) countUp(id rolecall.UserID, rounds int) error {
	for done := 0; done < rounds; {
		err := f.tryUpdate(func(tx *store.Tx) error {
			old, err := tx.UserByID(id)
			if err != nil {
				return err
			}
			changed := old
			changed.Version++
			if ok, err := tx.UpdateUser(old, changed); err != nil || !ok {
				return errors.Join(err, errRefused)
			}
			return nil
		})
		switch {
		case err == nil:
			done++
		case !errors.Is(err, errRefused):
			return err
		}
	}
	return nil
}

func wholeUnderCancellation(f *fixture) {
	type pair struct{ first, second rolecall.User }
	pairs := make([]pair, 100)
	results := parallel(len(pairs), func(i int) error {
		pairs[i] = pair{aUser("Ada Lovelace"), aUser("Grace Hopper")}
		ctx, cancel := context.WithTimeout(f.Context(), rand.N(20*time.Millisecond))
		defer cancel()
		return f.store.Update(ctx, f.tenant, func(tx *store.Tx) error {
			tx.InsertUser(pairs[i].first)
			if _, err := tx.UserByID(pairs[i].first.ID); err != nil {
				return err
			}
			tx.InsertUser(pairs[i].second)
			return nil
		})
	})
	for i, err := range results {
		first, second := f.hasUser(pairs[i].first.ID), f.hasUser(pairs[i].second.ID)
		if first != second {
			f.Errorf("update %d is half there (error %v)", i, err)
		}
		if err == nil && !first {
			f.Errorf("update %d was reported as committed and is not there", i)
		}
	}
}

// followsManyWriters has writers that change the same few users, two processes that number events, and
// a follower. Each event has the version that its change gave the user. The follower must read each
// event once, and the versions of each user in their order.
func followsManyWriters(f *fixture) {
	const writers, rounds = 6, 25
	subjects := []rolecall.User{f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")}
	var writing, numbering sync.WaitGroup
	var written atomic.Int64
	for w := range writers {
		writing.Go(func() {
			for round := range rounds {
				if err := f.bump(subjects[(w+round)%len(subjects)].ID); err != nil {
					f.Errorf("writer %d: %v", w, err)
					return
				}
				written.Add(1)
			}
		})
	}
	done := make(chan struct{})
	for range 2 {
		numbering.Go(func() {
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true // and once more
				default:
				}
				if err := f.tryUpdate(func(tx *store.Tx) error { _, err := tx.NumberEvents(start); return err }); err != nil {
					f.Errorf("numbering: %v", err)
				}
			}
		})
	}
	followed := make(chan map[rolecall.AnyID][]int64, 1)
	stop := make(chan struct{})
	go func() { followed <- f.follow(stop) }()
	writing.Wait()
	close(done)
	numbering.Wait()
	close(stop)
	versions := <-followed
	total := 0
	for id, seen := range versions {
		total += len(seen)
		for i, version := range seen {
			if version != int64(i)+2 { // a new user has version 1
				f.Errorf("user %v: the follower read the versions %v", id, seen)
				break
			}
		}
	}
	if total != int(written.Load()) || total != writers*rounds {
		f.Errorf("the follower read %d events; %d were written", total, written.Load())
	}
}

// bump increases the version of the user, and records the new version in an event.
func (f *fixture) bump(id rolecall.UserID) error {
	return f.tryUpdate(func(tx *store.Tx) error {
		if ok, err := tx.LockActiveUser(id); err != nil || !ok {
			return errors.Join(err, errRefused)
		}
		u, err := tx.UserByID(id)
		if err != nil {
			return err
		}
		changed := u
		changed.Version++
		if ok, err := tx.UpdateUser(u, changed); err != nil || !ok {
			return errors.Join(err, errRefused)
		}
		e := anEvent(id)
		e.Reason = strconv.FormatInt(changed.Version, 10)
		tx.InsertEvent(e)
		return nil
	})
}

// follow reads the feed until stop is closed, and then to its end. It returns the reasons of the
// events as numbers, by subject. It fails the case if the numbers have a gap.
func (f *fixture) follow(stop <-chan struct{}) map[rolecall.AnyID][]int64 {
	seen := map[rolecall.AnyID][]int64{}
	for after, last := int64(0), false; ; {
		ended := last
		select {
		case <-stop:
			last = true
		default:
		}
		state, err := tryRead(f, func(tx *store.Tx) (rolecall.Feed, error) { return tx.Feed(after) })
		if err != nil {
			f.Errorf("follower: %v", err)
			return seen
		}
		page, err := tryRead(f, func(tx *store.Tx) ([]rolecall.Change, error) {
			page, _, err := tx.Changes(rolecall.ChangeQuery{After: after, To: state.Last, Limit: 7, Room: rolecall.MaxPageBytes})
			return page, err
		})
		if err != nil {
			f.Errorf("follower: %v", err)
			return seen
		}
		for _, c := range page {
			if after++; c.Number != after {
				f.Errorf("number %d follows %d", c.Number, after-1)
				return seen
			}
			version, err := strconv.ParseInt(c.Reason, 10, 64)
			if err != nil {
				f.Error(err)
			}
			seen[c.Subject.ID] = append(seen[c.Subject.ID], version)
		}
		if ended && len(page) == 0 {
			return seen
		}
	}
}

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var tombstoneCases = []testCase{
	{"The tombstone of a deleted user has every member, and the assignments with their grantors", func(f *fixture) {
		full := aUser("Ada Lovelace, née Byron 🦉")
		full.Department, full.ExternalID = ptr("Forschung & Entwicklung"), ptr("HR-0001")
		full.Metadata = rolecall.NewMetadata(map[string]string{"quote\"\\": "línea ☃"})
		full.Status, full.Version, full.UpdatedAt = rolecall.UserSuspended, 7, start+1
		f.write(func(tx *store.Tx) { tx.InsertUser(full) })
		everywhere := f.assign(full, f.newRole("Support"))
		within := rolecall.Assignment{Holder: rolecall.HolderOf(full.ID), Role: f.newRole("Sales"), Reach: rolecall.Within("Sales", "Ops"),
			ExpiresAt: start + day, GrantedBy: f.newUser("Grace Hopper").ID, GrantedAt: start + 2}
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(within) })
		f.deleteAt(full, start+hour)

		taken := f.deleteTombstone(full.ID, start)
		same(f, taken.User, full)
		same(f, taken.DeletedAt, start+hour)
		everywhere.Role, within.Role = rolecall.Role{ID: everywhere.Role.ID}, rolecall.Role{ID: within.Role.ID}
		same(f, taken.Assignments, []rolecall.Assignment{everywhere, within})
	}},
	{"A tombstone is deleted once, and only if the user was deleted after the given time", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		f.is(f.tryDeleteTombstone(u.ID, 0), rolecall.ErrNotFound)
		f.deleteAt(u, start+hour)
		f.is(f.tryDeleteTombstone(u.ID, start+hour), rolecall.ErrNotFound)
		f.oneWins(parallel(20, func(int) error { return f.tryDeleteTombstone(u.ID, start+hour-1) }), rolecall.ErrNotFound)
		f.is(f.tryDeleteTombstone(u.ID, 0), rolecall.ErrNotFound)
	}},
	{"Reading tombstones by many ids returns those of users who were deleted after the given time", func(f *fixture) {
		stays, early, late := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper"), f.newUser("Alan Turing")
		f.deleteAt(early, start+hour)
		f.deleteAt(late, start+2*hour)
		of := func(since rolecall.Time, ids ...rolecall.UserID) []rolecall.Tombstone {
			return read(f, func(tx *store.Tx) ([]rolecall.Tombstone, error) { return tx.TombstonesByUser(ids, since) })
		}
		found := of(start+hour, stays.ID, early.ID, late.ID)
		same(f, len(found), 1)
		same(f, found[0].User, late)
		same(f, found[0].DeletedAt, start+2*hour)
		same(f, len(of(0, stays.ID, early.ID, late.ID)), 2)
		same(f, len(of(0)), 0)
	}},
	{"Lists have the largest deleted user without the assignments", func(f *fixture) {
		u, metadata := aUser("Ada Lovelace"), map[string]string{}
		u.Name, u.Department, u.ExternalID = strings.Repeat(`"`, rolecall.UserNameMax), ptr(strings.Repeat(`\`, rolecall.DepartmentMax)), ptr(strings.Repeat(`"`, rolecall.ExternalIDMax))
		for i := range rolecall.MetadataPairs {
			metadata[fmt.Sprintf("%0*d", rolecall.MetadataKeyMax, i)] = strings.Repeat(`"`, rolecall.MetadataMax)
		}
		u.Metadata, u.Version = rolecall.NewMetadata(metadata), 7
		f.write(func(tx *store.Tx) { tx.InsertUser(u) })
		role := f.assign(u, f.newRole("Support")).Role.ID
		f.deleteAt(u, start)
		page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Tombstone], error) {
			return tx.Tombstones(rolecall.TombstoneQuery{Within: rolecall.Everywhere(), Limit: 10})
		})
		found := read(f, func(tx *store.Tx) ([]rolecall.Tombstone, error) {
			return tx.TombstonesByUser([]rolecall.UserID{u.ID}, 0)
		})
		for _, list := range [][]rolecall.Tombstone{page.Items, found} {
			same(f, len(list), 1)
			same(f, list[0].User, u)
			same(f, len(list[0].Assignments), 0)
		}
		one := read(f, func(tx *store.Tx) (rolecall.Tombstone, error) { return tx.Tombstone(u.ID, 0) })
		same(f, one.User, u)
		same(f, one.Assignments[0].Role.ID, role)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Tombstone, error) { return tx.Tombstone(u.ID, start) })
		f.is(err, rolecall.ErrNotFound)
	}},
	{"A failed update doesn't consume a tombstone", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		f.deleteAt(u, start)
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			if _, err := tx.DeleteTombstone(u.ID, 0); err != nil {
				return err
			}
			return errRefused
		}), errRefused)
		f.is(f.tryDeleteTombstone(u.ID, 0), nil)
	}},
	{"A restored user is found by search, and can be deleted again", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		for range 3 {
			f.deleteAt(u, start)
			same(f, f.found(withWords("lovelace")), []string{})
			taken := f.deleteTombstone(u.ID, 0)
			u = taken.Restored(start + minute)
			f.write(func(tx *store.Tx) { tx.InsertUser(u) })
			same(f, f.userByID(u.ID), u)
			same(f, f.found(withWords("lovelace")), []string{"Ada Lovelace"})
		}
		same(f, u.Version, 4)
	}},
	{"A user is not restored if the address or the external id is in use", func(f *fixture) {
		for _, change := range []struct {
			take func(*rolecall.User, rolecall.User)
			want error
		}{
			{func(u *rolecall.User, of rolecall.User) { u.Email = of.Email }, rolecall.ErrEmailTaken},
			{func(u *rolecall.User, of rolecall.User) { u.ExternalID = of.ExternalID }, rolecall.ErrExternalIDTaken},
		} {
			u := aUser("Ada Lovelace")
			u.ExternalID = ptr(u.Email)
			f.write(func(tx *store.Tx) { tx.InsertUser(u) })
			f.deleteAt(u, start)
			next := aUser("Grace Hopper")
			change.take(&next, u)
			f.write(func(tx *store.Tx) { tx.InsertUser(next) })
			f.is(f.tryUpdate(func(tx *store.Tx) error {
				taken, err := tx.DeleteTombstone(u.ID, 0)
				tx.InsertUser(taken.Restored(start))
				return err
			}), change.want)
			f.is(f.tryDeleteTombstone(u.ID, 0), nil)
		}
	}},
	{"Deleted users are listed, the last deleted first, page by page", func(f *fixture) {
		users := f.crowd(12)
		var deleted []rolecall.UserID
		for i, n := range []int{3, 0, 11, 5, 7, 1} {
			f.deleteAt(users[n], start+rolecall.Time(i)*second)
			deleted = append(deleted, users[n].ID)
		}
		slices.Reverse(deleted)
		for _, limit := range []int{1, 2, 5, 6, 200} {
			same(f, f.tombstones(rolecall.TombstoneQuery{Within: rolecall.Everywhere(), Limit: limit}), deleted)
		}
		same(f, f.tombstones(rolecall.TombstoneQuery{Within: rolecall.Everywhere(), Since: start + 3*second, Limit: 10}), deleted[:2])
		same(f, len(f.tombstones(rolecall.TombstoneQuery{Within: rolecall.Nowhere(), Limit: 10})), 0)
		same(f, len(f.in(f.newTenant("other")).tombstones(rolecall.TombstoneQuery{Within: rolecall.Everywhere(), Limit: 10})), 0)
	}},
	{"Deleted users are listed by the department that they had", func(f *fixture) {
		deleted := map[string]rolecall.UserID{}
		for _, department := range []string{"Sales", "SALES", "Ops", ""} {
			u := aUser("Ada Lovelace")
			if department != "" {
				u.Department = &department
			}
			f.write(func(tx *store.Tx) { tx.InsertUser(u) })
			f.deleteAt(u, start)
			deleted[department] = u.ID
		}
		within := func(departments ...string) []rolecall.UserID {
			return f.tombstones(rolecall.TombstoneQuery{Within: rolecall.Within(departments...), Limit: 1})
		}
		same(f, within("sales"), []rolecall.UserID{deleted["SALES"], deleted["Sales"]})
		same(f, within("Ops", "Legal"), []rolecall.UserID{deleted["Ops"]})
		same(f, len(within("Legal")), 0)
	}},
	{"A page reads a bounded number of deleted users, and an empty page does not end the list", func(f *fixture) {
		rare := aUser("Ada Lovelace")
		rare.Department = ptr("Legal")
		f.write(func(tx *store.Tx) { tx.InsertUser(rare) })
		f.deleteAt(rare, start)
		f.insertTombstones(rolecall.MaxScan+10, start+second)
		q := rolecall.TombstoneQuery{Within: rolecall.Within("Legal"), Limit: 10}
		first := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Tombstone], error) { return tx.Tombstones(q) })
		if len(first.Items) != 0 || first.Next == nil {
			f.Fatalf("the first page has %d items and goes on at %v", len(first.Items), first.Next)
		}
		same(f, f.tombstones(q), []rolecall.UserID{rare.ID})
	}},
}

func (f *fixture) deleteAt(u rolecall.User, at rolecall.Time) {
	f.Helper()
	same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteUser(u, at) }), true)
}

// insertTombstones inserts the tombstones of n users that never existed, because
// deleting n users takes seconds.
func (f *fixture) insertTombstones(n int, at rolecall.Time) {
	f.Helper()
	f.is(f.database.Update(f.Context(), f.tenant, func(q store.Querier) error {
		for range n {
			q.Exec("insert into tombstones (tenant_id, user_id, id, deleted_at, content) values ($1, $2, $3, $4, '{\"user\":{},\"version\":1,\"assignments\":[]}')",
				f.tenant, rolecall.NewID[rolecall.User](at), rolecall.NewID[rolecall.Tombstone](at), at)
		}
		return nil
	}), nil)
}

func (f *fixture) deleteTombstone(id rolecall.UserID, since rolecall.Time) rolecall.Tombstone {
	f.Helper()
	return change(f, func(tx *store.Tx) (rolecall.Tombstone, error) { return tx.DeleteTombstone(id, since) })
}

func (f *fixture) tryDeleteTombstone(id rolecall.UserID, since rolecall.Time) error {
	return f.tryUpdate(func(tx *store.Tx) error {
		_, err := tx.DeleteTombstone(id, since)
		return err
	})
}

// deletesTombstone reports whether it deleted a tombstone.
func deletesTombstone(tx *store.Tx, id rolecall.UserID) (bool, error) {
	_, err := tx.DeleteTombstone(id, 0)
	if errors.Is(err, rolecall.ErrNotFound) {
		return false, nil
	}
	return true, err
}

// tombstones returns the users in a list of the query, in its order.
func (f *fixture) tombstones(q rolecall.TombstoneQuery) (found []rolecall.UserID) {
	f.Helper()
	for _, t := range everyPage(f, q.Limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.Tombstone], error) {
		q.After = after
		return tx.Tombstones(q)
	}, nil) {
		found = append(found, t.User.ID)
	}
	return found
}

var erasureCases = []testCase{
	{"The data of an erased user in events is removed in steps, and the events stay", func(f *fixture) {
		gone, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		var events, erased []rolecall.Event
		for i := range 7 {
			e := anEventAt(gone.ID, start.Add(time.Duration(i)*time.Millisecond))
			e.Values = &rolecall.EventValues{Before: []byte(`{"name":"A"}`), After: []byte(`{"name":"B"}`)}
			e.Reason, e.Source, e.Members, e.Actor = "on leave", "192.0.2.1", []string{"name"}, rolecall.Actor{Type: rolecall.ActorUser, ID: stays.ID, Via: "http"}
			bare := e
			bare.Values, bare.Reason = nil, ""
			switch i {
			case 1: // the user is the actor
				e.Actor.ID, bare.Actor.ID, bare.Source = gone.ID, gone.ID, ""
			case 2: // the actor is unknown
				e.Actor.ID, bare.Actor.ID, bare.Source = rolecall.UserID{}, rolecall.UserID{}, ""
			}
			events, erased = append([]rolecall.Event{e}, events...), append([]rolecall.Event{bare}, erased...)
		}
		other := anEvent(stays.ID)
		other.Reason, other.Values = "on leave", &rolecall.EventValues{After: []byte(`{"name":"B"}`)}
		f.write(func(tx *store.Tx) {
			tx.InsertEvent(other)
			for _, e := range events {
				tx.InsertEvent(e)
			}
		})
		same(f, f.eventsAbout(gone.ID, 10), events)
		var after rolecall.EventID
		for _, want := range []int{3, 3, 1, 0} {
			var taken int
			f.update(func(tx *store.Tx) (err error) {
				after, taken, err = tx.EraseTraces(gone.ID, after, 3)
				return err
			})
			same(f, taken, want)
		}
		same(f, f.eventsAbout(gone.ID, 10), erased)
		same(f, f.eventsAbout(stays.ID, 10), []rolecall.Event{other})
	}},
	{"The sources of events that an erased user caused are removed in steps, and those of other actors stay", func(f *fixture) {
		gone, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		var acts []rolecall.Event
		for i := range 7 {
			e := anEventAt(stays.ID, start.Add(time.Duration(i)*time.Millisecond))
			e.Actor, e.Source, e.Reason = rolecall.Actor{Type: rolecall.ActorUser, ID: gone.ID, Via: "http"}, "192.0.2.1", "on leave"
			if i == 3 {
				e.Actor.ID = stays.ID
			}
			acts = append([]rolecall.Event{e}, acts...)
		}
		other := f.in(f.newTenant("other"))
		elsewhere := anEventAt(stays.ID, start)
		elsewhere.Actor, elsewhere.Source = rolecall.Actor{Type: rolecall.ActorUser, ID: gone.ID, Via: "http"}, "192.0.2.1"
		other.write(func(tx *store.Tx) { tx.InsertEvent(elsewhere) })
		f.write(func(tx *store.Tx) {
			for _, e := range acts {
				tx.InsertEvent(e)
			}
		})
		for _, want := range []int{4, 2, 0} {
			same(f, change(f, func(tx *store.Tx) (int, error) {
				_, taken, err := tx.EraseTraces(gone.ID, rolecall.EventID{}, 4)
				return taken, err
			}), want)
		}
		for i := range acts {
			if acts[i].Actor.ID == gone.ID {
				acts[i].Source = ""
			}
		}
		same(f, f.eventsAbout(stays.ID, 10), acts)
		same(f, other.eventsAbout(stays.ID, 10), []rolecall.Event{elsewhere})
	}},
	{"An erasure deletes the stored results about the user, and the user's keys, tokens and mails", func(f *fixture) {
		gone, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		about := f.aKey()
		about.UserID, about.ResourceID = stays.ID, rolecall.AnyID(gone.ID)
		theirs, other := f.aKey(), f.aKey()
		theirs.UserID, other.UserID = gone.ID, stays.ID
		token, otherToken := aHash(), aHash()
		theirMail, otherMail := aMail(start), aMail(start)
		theirMail.UserID, otherMail.UserID = gone.ID, stays.ID
		f.write(func(tx *store.Tx) {
			tx.InsertMail(theirMail)
			tx.InsertMail(otherMail)
			tx.InsertOneTimeToken(rolecall.OneTimeToken{Purpose: rolecall.TokenEmailChange, UserID: gone.ID, Data: "ada@example.org", CreatedAt: start, ExpiresAt: start + day}, token)
			tx.InsertOneTimeToken(rolecall.OneTimeToken{Purpose: rolecall.TokenEmailChange, UserID: stays.ID, CreatedAt: start, ExpiresAt: start + day}, otherToken)
		})
		f.insertKey(about)
		f.insertKey(theirs)
		f.insertKey(other)
		same(f, f.eraseTraces(gone), 2)
		same(f, f.claim(start, start+minute).ID, otherMail.ID)
		f.is(f.tryClaim(start), rolecall.ErrNotFound)
		bare := about
		bare.Resource = nil
		same(f, f.key(about), bare)
		same(f, f.key(other), other)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.IdempotencyKey, error) { return tx.Key(theirs) })
		f.is(err, rolecall.ErrNotFound)
		for hash, want := range map[string]error{string(token): rolecall.ErrNotFound, string(otherToken): nil} {
			_, err := tryRead(f, func(tx *store.Tx) (rolecall.OneTimeToken, error) {
				return tx.OneTimeToken([]byte(hash), rolecall.TokenEmailChange)
			})
			f.is(err, want)
		}
	}},
	{"A purge erases deleted users when it is due, once, and in bounded steps", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		f.write(func(tx *store.Tx) {
			for i := range 7 {
				e := anEventAt(u.ID, start.Add(time.Duration(i)*time.Millisecond))
				e.Reason = "on leave"
				tx.InsertEvent(e)
			}
			tx.InsertErasure(u.ID, start+minute)
		})
		same(f, f.purge(start+minute-1, 0, 3), 0)
		other := f.in(f.newTenant("other"))
		same(f, other.purge(start+minute, 0, 3), 0)
		for _, want := range []int{4, 4, 2, 0} {
			same(f, f.purge(start+minute, 0, 3), want)
		}
		for _, e := range f.eventsAbout(u.ID, 10) {
			same(f, e.Reason, "")
		}
	}},
	{"Purging many deleted users deletes no more than the limit at once", func(f *fixture) {
		for range 5 {
			u := f.newUser("Ada Lovelace")
			f.write(func(tx *store.Tx) {
				tx.InsertEvent(anEvent(u.ID))
				tx.InsertEvent(anEvent(u.ID))
				tx.InsertErasure(u.ID, start)
			})
		}
		for _, want := range []int{6, 6, 3, 0} {
			same(f, f.purge(start, 0, 4), want)
		}
	}},
}

func (f *fixture) eraseTraces(u rolecall.User) int {
	f.Helper()
	return change(f, func(tx *store.Tx) (int, error) {
		_, taken, err := tx.EraseTraces(u.ID, rolecall.EventID{}, 100)
		return taken, err
	})
}

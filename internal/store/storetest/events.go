package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var eventCases = []testCase{
	{"An event reads back in every member", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		full := anEvent(u.ID)
		full.Actor = rolecall.Actor{Type: rolecall.ActorUser, ID: u.ID, Via: "token", Token: rolecall.NewID[rolecall.APIToken](start)}
		full.Members, full.Reason = []string{"name", "department"}, "asked by \"Ada\""
		full.SessionID = rolecall.NewID[rolecall.Session](start)
		full.Values = &rolecall.EventValues{Before: []byte(`{"name":"Ada"}`), After: []byte(`{"name":"Zoë"}`)}
		created := anEvent(u.ID)
		created.Values = &rolecall.EventValues{After: []byte(`{"name":"Ada"}`)}
		bare := anEvent(u.ID)
		f.write(func(tx *store.Tx) {
			tx.InsertEvent(full)
			tx.InsertEvent(created)
			tx.InsertEvent(bare)
		})
		same(f, f.eventsAbout(u.ID, 10), []rolecall.Event{bare, created, full})
	}},
	{"Events about a subject are listed newest first, up to the limit", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		var newestFirst []rolecall.Event
		for range 5 {
			e := anEvent(u.ID)
			newestFirst = append([]rolecall.Event{e}, newestFirst...)
			f.write(func(tx *store.Tx) {
				tx.InsertEvent(e)
				tx.InsertEvent(anEvent(other.ID))
			})
		}
		same(f, f.eventsAbout(u.ID, 3), newestFirst[:3])
		same(f, f.eventsAbout(u.ID, 10), newestFirst)
		same(f, len(f.eventsAbout(aUser("Nobody").ID, 10)), 0)
	}},
	{"The deletions of roles, groups and service accounts are found by their IDs", func(f *fixture) {
		created := aDeletion(rolecall.EventRoleCreated, rolecall.SubjectRole, `{"name":"Old"}`)
		role := aDeletion(rolecall.EventRoleDeleted, rolecall.SubjectRole, `{"name":"Support"}`)
		role.Subject = created.Subject
		account := aDeletion(rolecall.EventServiceAccountDeleted, rolecall.SubjectServiceAccount, `{"name":"Import"}`)
		group := aDeletion(rolecall.EventGroupDeleted, rolecall.SubjectGroup, `{"name":"Support"}`)
		user := aDeletion(rolecall.EventUserDeleted, rolecall.SubjectUser, `{"name":"Ada Lovelace"}`)
		changed := aDeletion(rolecall.EventRoleUpdated, rolecall.SubjectRole, `{"name":"Kept"}`)
		f.write(func(tx *store.Tx) {
			for _, e := range []rolecall.Event{created, role, account, group, user, changed} {
				tx.InsertEvent(e)
			}
		})
		found := f.deletions(role.Subject.ID, account.Subject.ID, group.Subject.ID, user.Subject.ID, changed.Subject.ID, rolecall.NewID[any](start))
		slices.SortFunc(found, func(a, b store.Deletion) int { return strings.Compare(string(a.Subject.Type), string(b.Subject.Type)) })
		same(f, found, []store.Deletion{{Subject: group.Subject, Before: group.Values.Before}, {Subject: role.Subject, Before: role.Values.Before}, {Subject: account.Subject, Before: account.Values.Before}})
		same(f, len(f.deletions()), 0)
	}},
	{"A failed update writes no event", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			tx.InsertEvent(anEvent(u.ID))
			return errRefused
		}), errRefused)
		same(f, len(f.eventsAbout(u.ID, 10)), 0)
	}},
}

// aDeletion returns an event of the kind about a new object. before is the object.
func aDeletion(kind rolecall.EventType, about rolecall.SubjectType, before string) rolecall.Event {
	e := anEvent(rolecall.NewID[rolecall.User](start))
	e.Type, e.Subject.Type = kind, about
	e.Values = &rolecall.EventValues{Before: []byte(before)}
	return e
}

func (f *fixture) deletions(ids ...rolecall.AnyID) []store.Deletion {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]store.Deletion, error) { return tx.Deletions(ids) })
}

// anEvent returns an event about the user that is not stored yet.
func anEvent(about rolecall.UserID) rolecall.Event {
	return rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](start), Type: rolecall.EventUserUpdated, OccurredAt: start,
		Actor:   rolecall.Actor{Type: rolecall.ActorOperator, Via: "command"},
		Subject: rolecall.About(about),
		Members: []string{}, RequestID: "request-1", Source: "192.0.2.1",
	}
}

func (f *fixture) eventsAbout(id rolecall.UserID, limit int) []rolecall.Event {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.Event, error) {
		page, err := tx.Events(rolecall.EventQuery{Subject: rolecall.AnyID(id), Limit: limit})
		return page.Items, err
	})
}

var eventListCases = []testCase{
	{"A time range of events is exact to the microsecond, with its start and without its end", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		var events []rolecall.Event
		for i := range rolecall.Time(5) { // times around the end of a millisecond, the resolution of the ids
			events = append(events, anEventAt(u.ID, start-start%1000+998+i))
		}
		f.write(func(tx *store.Tx) {
			for _, e := range events {
				tx.InsertEvent(e)
			}
		})
		all := rolecall.EventQuery{Limit: 10}
		for i, e := range events {
			from, before := all, all
			from.From, before.To = e.OccurredAt, e.OccurredAt
			same(f, len(f.events(from)), len(events)-i)
			same(f, len(f.events(before)), i)
			between := from
			between.To = e.OccurredAt + 1
			same(f, eventIDs(f.events(between)), eventIDs(events[i:i+1]))
		}
	}},
	{"Pages of every query of events agree with a naive filter", eventsAgreeWithModel},
	{"A page reads a limited number of events, and only the last page has no next one", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		rare := anEventAt(u.ID, start)
		rare.Type = rolecall.EventUserDeleted
		f.write(func(tx *store.Tx) {
			tx.InsertEvent(rare)
			for i := range rolecall.Time(rolecall.MaxScan + 10) {
				tx.InsertEvent(anEventAt(u.ID, start.Add(time.Millisecond)+i)) // within one millisecond, ids need not be in order
			}
		})
		q := rolecall.EventQuery{Type: rolecall.EventUserDeleted, Limit: 10}
		first := f.eventPage(q)
		if len(first.Items) != 0 || first.Next == nil {
			f.Fatalf("the first page has %d items and goes on at %v", len(first.Items), first.Next)
		}
		same(f, eventIDs(f.events(q)), eventIDs([]rolecall.Event{rare}))
		q.To = start + 2 // the range has no ids, so no rows are read
		same(f, eventIDs(f.eventPage(q).Items), eventIDs([]rolecall.Event{rare}))
	}},
	{"An event shows the department that its subject has now, or had when they were deleted", func(f *fixture) {
		u := aUser("Ada Lovelace")
		u.Department = ptr("Sales")
		role := f.newRole("Support")
		about := anEvent(u.ID)
		aboutRole := anEvent(rolecall.UserID(role.ID))
		aboutRole.Subject.Type = rolecall.SubjectRole
		f.write(func(tx *store.Tx) {
			tx.InsertUser(u)
			tx.InsertEvent(about)
			tx.InsertEvent(aboutRole)
		})
		same(f, f.eventsAbout(u.ID, 1)[0].SubjectDepartment, ptr("Sales"))
		same(f, f.eventsAbout(rolecall.UserID(role.ID), 1)[0].SubjectDepartment, nil)
		moved := u
		moved.Department, moved.Version = ptr("Research"), u.Version+1
		same(f, f.changeUser(u, moved), true)
		same(f, f.eventsAbout(u.ID, 1)[0].SubjectDepartment, ptr("Research"))
		same(f, f.eventsAbout(u.ID, 1)[0].SubjectDeleted, false)
		same(f, f.deleteUser(moved), true)
		same(f, f.eventsAbout(u.ID, 1)[0].SubjectDepartment, ptr("Research"))
		same(f, f.eventsAbout(u.ID, 1)[0].SubjectDeleted, true)
		f.deleteTombstone(u.ID, 0)
		same(f, f.eventsAbout(u.ID, 1)[0].SubjectDepartment, nil)
	}},
	{"Purging removes events that are older, with their values, up to the limit", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		var newest rolecall.Event
		for i := range rolecall.Time(5) {
			newest = anEventAt(u.ID, start+i*day)
			newest.Values = &rolecall.EventValues{After: []byte(`{"name":"Ada"}`)}
			f.write(func(tx *store.Tx) { tx.InsertEvent(newest) })
		}
		for _, want := range []int{3, 1, 0} {
			same(f, f.purge(0, start+4*day, 3), want)
		}
		same(f, f.eventsAbout(u.ID, 10), []rolecall.Event{newest})
	}},
	{"Purging a tombstone removes personal data from events and keeps the events", func(f *fixture) {
		gone, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		for _, u := range []rolecall.User{gone, stays} {
			e := anEvent(u.ID)
			e.Values = &rolecall.EventValues{Before: []byte(`{"name":"A"}`), After: []byte(`{"name":"B"}`)}
			f.write(func(tx *store.Tx) { tx.InsertEvent(e) })
		}
		same(f, f.deleteUser(gone), true)
		same(f, f.purge(start+30*day-1, 0, 10), 0)
		same(f, f.eventsAbout(gone.ID, 1)[0].Values.Before, []byte(`{"name":"A"}`))
		same(f, f.purge(start+30*day, 0, 10), 4) // the tombstone, the event, the event of the erasure and the erasure
		same(f, f.eventsAbout(gone.ID, 1)[0].Type, rolecall.EventUserErased)
		same(f, f.eventsAbout(gone.ID, 2)[1].Values, nil)
		same(f, f.eventsAbout(stays.ID, 1)[0].Values.Before, []byte(`{"name":"A"}`))
	}},
}

// eventsAgreeWithModel compares lists of random queries over random events with the model.
func eventsAgreeWithModel(f *fixture) {
	users := []rolecall.User{f.newUser("Ada Lovelace"), f.newUser("Grace Hopper"), f.newUser("Alan Turing")}
	anyone := rapid.Custom(func(t *rapid.T) rolecall.AnyID {
		return rolecall.AnyID(rapid.SampledFrom(users).Draw(t, "user").ID)
	})
	types := rapid.SampledFrom([]rolecall.EventType{rolecall.EventUserCreated, rolecall.EventUserUpdated, rolecall.EventSignedIn})
	moments := rapid.Custom(func(t *rapid.T) rolecall.Time { return start + rolecall.Time(rapid.IntRange(0, 5000).Draw(t, "µs")) })
	round := 0

	rapid.Check(f.T, func(t *rapid.T) {
		round++
		f := f.in(f.newTenant(fmt.Sprintf("model-%d", round)))
		events := make([]rolecall.Event, rapid.IntRange(0, 25).Draw(t, "events"))
		for i := range events {
			e := anEventAt(rolecall.UserID(anyone.Draw(t, "subject")), moments.Draw(t, "occurred at"))
			e.Type = types.Draw(t, "type")
			if rapid.Bool().Draw(t, "by a user") {
				e.Actor = rolecall.Actor{Type: rolecall.ActorUser, ID: rolecall.UserID(anyone.Draw(t, "actor")), Via: "http"}
			}
			events[i] = e
		}
		f.write(func(tx *store.Tx) {
			for _, e := range events {
				tx.InsertEvent(e)
			}
		})
		q := rolecall.EventQuery{Limit: rapid.SampledFrom([]int{1, 2, 5, 200}).Draw(t, "limit")}
		if rapid.Bool().Draw(t, "by type") {
			q.Type = types.Draw(t, "wanted type")
		}
		if rapid.Bool().Draw(t, "by actor") {
			q.Actor = anyone.Draw(t, "wanted actor")
		}
		if rapid.Bool().Draw(t, "by subject") {
			q.Subject = anyone.Draw(t, "wanted subject")
		}
		if rapid.Bool().Draw(t, "by moment") {
			q.From, q.To = moments.Draw(t, "from"), moments.Draw(t, "to")
		}
		if got, want := eventIDs(f.events(q)), eventIDs(expectedEvents(events, q)); !slices.Equal(got, want) {
			t.Fatalf("query %+v\ngot  %v\nwant %v", q, got, want)
		}
	})
}

// expectedEvents returns the events that a list of q must contain, computed without an
// index.
func expectedEvents(events []rolecall.Event, q rolecall.EventQuery) []rolecall.Event {
	var matching []rolecall.Event
	for _, e := range events {
		if (q.Type == "" || e.Type == q.Type) &&
			(q.Actor.IsZero() || rolecall.AnyID(e.Actor.ID) == q.Actor) &&
			(q.Subject.IsZero() || e.Subject.ID == q.Subject) &&
			(q.From == 0 || e.OccurredAt >= q.From) && (q.To == 0 || e.OccurredAt < q.To) {
			matching = append(matching, e)
		}
	}
	slices.SortFunc(matching, func(a, b rolecall.Event) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	return matching
}

// anEventAt returns an event about the user at this time. Its id has the same millisecond.
func anEventAt(about rolecall.UserID, at rolecall.Time) rolecall.Event {
	e := anEvent(about)
	e.OccurredAt = at
	first := rolecall.FirstID[rolecall.Event](at)
	copy(e.ID[:6], first[:6])
	return e
}

// events returns all events of the query, page by page.
func (f *fixture) events(q rolecall.EventQuery) []rolecall.Event {
	f.Helper()
	return everyPage(f, q.Limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.Event], error) {
		q.After = after
		return tx.Events(q)
	}, nil)
}

func (f *fixture) eventPage(q rolecall.EventQuery) rolecall.Page[rolecall.Event] {
	f.Helper()
	page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Event], error) { return tx.Events(q) })
	if len(page.Items) > q.Limit {
		f.Fatalf("a page of %d items, want at most %d", len(page.Items), q.Limit)
	}
	return page
}

func eventIDs(events []rolecall.Event) []rolecall.EventID {
	ids := []rolecall.EventID{}
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

var changeCases = []testCase{
	{"Events get the numbers 1, 2, 3 of their tenant, in the order of their transactions", func(f *fixture) {
		other := f.in(f.newTenant("other"))
		var ids, others []rolecall.EventID
		for range 3 {
			ids = append(ids, f.record(anEvent(f.newUser("Ada Lovelace").ID)))
			others = append(others, other.record(anEvent(other.newUser("Grace Hopper").ID)))
		}
		same(f, f.feed(0), rolecall.Feed{First: 1})
		same(f, f.number(), 3)
		same(f, f.feed(2), rolecall.Feed{First: 1, Last: 3, At: ids[1]})
		same(f, f.changes(rolecall.ChangeQuery{To: 3, Limit: 10}), numbered(1, ids...))
		same(f, other.feed(0), rolecall.Feed{First: 1})
		same(f, other.number(), 3)
		same(f, other.changes(rolecall.ChangeQuery{To: 3, Limit: 10}), numbered(1, others...))
		last := f.record(anEvent(f.newUser("Alan Turing").ID))
		same(f, f.number(), 1)
		same(f, f.changes(rolecall.ChangeQuery{After: 2, To: 4, Limit: 10}), numbered(3, ids[2], last))
		same(f, f.feed(4), rolecall.Feed{First: 1, Last: 4, At: last})
	}},
	{"An event gets only one number, and none if its transaction failed", func(f *fixture) {
		id := f.record(anEvent(f.newUser("Ada Lovelace").ID))
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			tx.InsertEvent(anEvent(aUser("Nobody").ID))
			return errRefused
		}), errRefused)
		same(f, f.number(), 1)
		same(f, f.number(), 0)
		same(f, f.changes(rolecall.ChangeQuery{To: 10, Limit: 10}), numbered(1, id))
	}},
	{"The events of a transaction are numbered in the order of their ids", func(f *fixture) {
		u := aUser("Ada Lovelace")
		created, invited, other := anEvent(u.ID), anEvent(u.ID), anEvent(aUser("Grace Hopper").ID)
		f.write(func(tx *store.Tx) {
			for _, e := range []rolecall.Event{invited, other, created} {
				tx.InsertEvent(e)
			}
		})
		same(f, f.number(), 3)
		same(f, f.changes(rolecall.ChangeQuery{To: 10, Limit: 10}), numbered(1, created.ID, invited.ID, other.ID))
	}},
	{"An update tells which tenant has events to number, and which has new changes", func(f *fixture) {
		var told []store.Effects
		s := store.New(f.database, func(e store.Effects) { told = append(told, e) })
		for _, fn := range []func(tx *store.Tx) error{
			func(tx *store.Tx) error { tx.InsertEvent(anEvent(aUser("Ada Lovelace").ID)); return nil },
			func(tx *store.Tx) error { _, err := tx.NumberEvents(start); return err },
			func(tx *store.Tx) error { _, err := tx.NumberEvents(start); return err },
		} {
			f.is(s.Update(f.Context(), f.tenant, fn), nil)
		}
		same(f, told, []store.Effects{{Tenant: f.tenant, Recorded: true}, {Tenant: f.tenant, Numbered: true}, {Tenant: f.tenant}})
	}},
	{"The oldest event without a number is known", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		unnumbered := func(tx *store.Tx) (rolecall.Time, error) { return tx.Unnumbered() }
		_, err := tryRead(f, unnumbered)
		f.is(err, rolecall.ErrNotFound)
		f.record(anEventAt(u.ID, start+hour))
		f.record(anEventAt(u.ID, start+2*hour))
		same(f, read(f, unnumbered), start+hour)
		f.beforeTheFeed(anEventAt(u.ID, start))
		same(f, read(f, unnumbered), start)
		f.number()
		_, err = tryRead(f, unnumbered)
		f.is(err, rolecall.ErrNotFound)
	}},
	{"Events of older programs get numbers, after those from before the feed, and in the order of their transactions", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		first := f.older(anEventAt(u.ID, start+hour)) // its id is newer than that of the others
		second := f.record(anEventAt(u.ID, start))
		third := f.older(anEventAt(u.ID, start))
		before, earlier := anEventAt(u.ID, start+2*hour), anEventAt(u.ID, start-hour)
		f.beforeTheFeed(before, earlier)
		same(f, f.number(), 5)
		same(f, f.changes(rolecall.ChangeQuery{To: 10, Limit: 10}), numbered(1, earlier.ID, before.ID, first, second, third))
		same(f, f.number(), 0)
	}},
	{"Many events get their numbers in batches", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		var ids []rolecall.EventID
		var old []rolecall.Event
		f.write(func(tx *store.Tx) {
			for i := range 2*store.NumbersAtOnce + 1 {
				e := anEventAt(u.ID, start+rolecall.Time(i)*second)
				ids = append(ids, e.ID)
				if i <= store.NumbersAtOnce {
					old = append(old, e)
				} else {
					tx.InsertEvent(e)
				}
			}
		})
		f.beforeTheFeed(old...)
		same(f, []int{f.number(), f.number(), f.number(), f.number()}, []int{store.NumbersAtOnce, store.NumbersAtOnce, 1, 0})
		same(f, f.changes(rolecall.ChangeQuery{To: int64(len(ids)), Limit: len(ids)}), numbered(1, ids...))
	}},
	{"A page of changes is selected by range and type, and has whole events", func(f *fixture) {
		u := aUser("Ada Lovelace")
		u.Department = ptr("Sales")
		f.write(func(tx *store.Tx) { tx.InsertUser(u) })
		all := []rolecall.Event{anEvent(u.ID), anEvent(u.ID), anEvent(u.ID), anEvent(u.ID)}
		for i := range all {
			all[i].Values = &rolecall.EventValues{After: []byte(`{"name":"Ada"}`)}
			if i%2 == 1 {
				all[i].Type = rolecall.EventUserDeleted
			}
			f.record(all[i])
			all[i].SubjectDepartment = u.Department
		}
		f.number()
		get := f.changesOf
		change := func(number int64) rolecall.Change { return rolecall.Change{Number: number, Event: all[number-1]} }
		same(f, get(rolecall.ChangeQuery{After: 1, To: 3, Limit: 10}), []rolecall.Change{change(2), change(3)})
		same(f, get(rolecall.ChangeQuery{To: 4, Limit: 1}), []rolecall.Change{change(1)})
		same(f, get(rolecall.ChangeQuery{To: 4, Type: rolecall.EventUserDeleted, Limit: 10}), []rolecall.Change{change(2), change(4)})
		same(f, get(rolecall.ChangeQuery{After: 2, To: 3, Type: rolecall.EventUserDeleted, Limit: 10}), []rolecall.Change{})
	}},
	{"A purge deletes old events in the order of their numbers, and the feed begins after them", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		var ids []rolecall.EventID
		for _, at := range []rolecall.Time{start, start + second, start + day, start + 2*second, start + 2*day} {
			ids = append(ids, f.record(anEventAt(u.ID, at)))
		}
		same(f, f.purge(start, start+second, 10), 1)
		same(f, f.feed(2), rolecall.Feed{First: 2, Last: 5, At: ids[1]})
		same(f, f.changes(rolecall.ChangeQuery{To: 5, Limit: 10}), numbered(2, ids[1:]...))
		same(f, f.purge(start, start+hour, 1), 1)
		same(f, f.feed(3), rolecall.Feed{First: 3, Last: 5, At: ids[2]})
		same(f, f.purge(start, start+hour, 10), 0) // the fourth is after the third, which is younger
		same(f, f.purge(start, start+day+second, 10), 2)
		same(f, f.feed(5), rolecall.Feed{First: 5, Last: 5, At: ids[4]})
		same(f, len(f.events(rolecall.EventQuery{Limit: 10})), 1)
		same(f, f.purge(start, start+3*day, 10), 1)
		same(f, f.feed(5), rolecall.Feed{First: 6, Last: 5})
		next := f.record(anEventAt(u.ID, start+4*day))
		same(f, f.number(), 1)
		same(f, f.changes(rolecall.ChangeQuery{After: 5, To: 6, Limit: 10}), numbered(6, next))
	}},
	{"Changes end before the one for which there is no room, and with at least one", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		var size int
		for range 5 {
			e := anEventAt(u.ID, start)
			e.Values = &rolecall.EventValues{After: []byte(`{"name":"` + strings.Repeat("x", 10_000) + `"}`)}
			f.record(e)
			size = (&rolecall.Change{Event: e}).Size()
		}
		f.number()
		for _, c := range []struct {
			room, want int
			full       bool
		}{{5 * size, 5, false}, {5*size - 1, 4, true}, {2 * size, 2, true}, {1, 1, true}} {
			q := rolecall.ChangeQuery{To: 5, Limit: 5, Room: c.room}
			same(f, read(f, func(tx *store.Tx) (bool, error) {
				all, full, err := tx.Changes(q)
				same(f, len(all), c.want)
				return full, err
			}), c.full)
		}
	}},
	{"Numbers follow the causes of events while many write, number and read", followsManyWriters},
}

// record inserts the event in its own transaction, and returns its id.
func (f *fixture) record(e rolecall.Event) rolecall.EventID {
	f.Helper()
	f.write(func(tx *store.Tx) { tx.InsertEvent(e) })
	return e.ID
}

// older inserts the event as a program does that does not know the feed.
func (f *fixture) older(e rolecall.Event) rolecall.EventID {
	f.Helper()
	f.is(f.database.Update(f.Context(), f.tenant, func(q store.Querier) error {
		q.Exec(`insert into events (tenant_id, id, type, occurred_at, actor_type, actor_via, subject_type, subject_id, members, request_id, source, reason)
			values ($1, $2, $3, $4, 'operator', 'command', 'user', $5, '[]', '', '', '')`, f.tenant, e.ID, string(e.Type), e.OccurredAt, e.Subject.ID)
		return nil
	}), nil)
	return e.ID
}

// beforeTheFeed inserts the events as they are after the migration that created the feed.
func (f *fixture) beforeTheFeed(events ...rolecall.Event) {
	f.Helper()
	f.is(f.database.Update(f.Context(), f.tenant, func(q store.Querier) error {
		for _, e := range events {
			q.Exec(`insert into events (tenant_id, id, type, occurred_at, actor_type, actor_via, subject_type, subject_id, members, request_id, source, reason, arrival)
				values ($1, $2, $3, $4, 'operator', 'command', 'user', $5, '[]', '', '', '', null)`, f.tenant, e.ID, string(e.Type), e.OccurredAt, e.Subject.ID)
			q.Exec("update events set arrival = 0 where tenant_id = $1 and id = $2", f.tenant, e.ID)
		}
		return nil
	}), nil)
}

// number calls NumberEvents once.
func (f *fixture) number() int {
	f.Helper()
	return change(f, func(tx *store.Tx) (int, error) { return tx.NumberEvents(start) })
}

func (f *fixture) feed(at int64) rolecall.Feed {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Feed, error) { return tx.Feed(at) })
}

// numberedEvent is the number and the id of a change.
type numberedEvent struct {
	number int64
	id     rolecall.EventID
}

// numbered gives the ids consecutive numbers.
func numbered(first int64, ids ...rolecall.EventID) []numberedEvent {
	var all []numberedEvent
	for i, id := range ids {
		all = append(all, numberedEvent{first + int64(i), id})
	}
	return all
}

// changesOf returns the changes of the query, for which there is room.
func (f *fixture) changesOf(q rolecall.ChangeQuery) []rolecall.Change {
	f.Helper()
	q.Room = rolecall.MaxPageBytes
	return read(f, func(tx *store.Tx) ([]rolecall.Change, error) {
		all, full, err := tx.Changes(q)
		if full {
			f.Errorf("%d changes fill the room", len(all))
		}
		return all, err
	})
}

func (f *fixture) changes(q rolecall.ChangeQuery) []numberedEvent {
	f.Helper()
	var all []numberedEvent
	for _, c := range f.changesOf(q) {
		all = append(all, numberedEvent{c.Number, c.ID})
	}
	return all
}

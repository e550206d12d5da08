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
	{"The deletions of roles and service accounts are found by their IDs", func(f *fixture) {
		created := aDeletion(rolecall.EventRoleCreated, rolecall.SubjectRole, `{"name":"Old"}`)
		role := aDeletion(rolecall.EventRoleDeleted, rolecall.SubjectRole, `{"name":"Support"}`)
		role.Subject = created.Subject
		account := aDeletion(rolecall.EventServiceAccountDeleted, rolecall.SubjectServiceAccount, `{"name":"Import"}`)
		user := aDeletion(rolecall.EventUserDeleted, rolecall.SubjectUser, `{"name":"Ada Lovelace"}`)
		changed := aDeletion(rolecall.EventRoleUpdated, rolecall.SubjectRole, `{"name":"Kept"}`)
		f.write(func(tx *store.Tx) {
			for _, e := range []rolecall.Event{created, role, account, user, changed} {
				tx.InsertEvent(e)
			}
		})
		found := f.deletions(role.Subject.ID, account.Subject.ID, user.Subject.ID, changed.Subject.ID, rolecall.NewID[any](start))
		slices.SortFunc(found, func(a, b store.Deletion) int { return strings.Compare(string(a.Subject.Type), string(b.Subject.Type)) })
		same(f, found, []store.Deletion{{Subject: role.Subject, Before: role.Values.Before}, {Subject: account.Subject, Before: account.Values.Before}})
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
		Subject: rolecall.Subject{Type: rolecall.SubjectUser, ID: rolecall.AnyID(about)},
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
		same(f, f.purge(start+30*day, 0, 10), 3) // the tombstone, the event and the erasure
		same(f, f.eventsAbout(gone.ID, 1)[0].Values, nil)
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

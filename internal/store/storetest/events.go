package storetest

import (
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
	{"Events about a subject come newest first, up to the limit", func(f *fixture) {
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
	{"An event of a failed update is not there", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			tx.InsertEvent(anEvent(u.ID))
			return errRefused
		}), errRefused)
		same(f, len(f.eventsAbout(u.ID, 10)), 0)
	}},
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

package storetest

import (
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var erasureCases = []testCase{
	{"What events say of who is erased goes in steps, and the events stay", func(f *fixture) {
		gone, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		var events, erased []rolecall.Event
		for i := range 7 {
			e := anEventAt(gone.ID, start.Add(time.Duration(i)*time.Millisecond))
			e.Values = &rolecall.EventValues{Before: []byte(`{"name":"A"}`), After: []byte(`{"name":"B"}`)}
			e.Reason, e.Source, e.Members, e.Actor = "on leave", "192.0.2.1", []string{"name"}, rolecall.Actor{Type: rolecall.ActorUser, ID: stays.ID, Via: "http"}
			bare := e
			bare.Values, bare.Reason = nil, ""
			switch i {
			case 1: // their own act
				e.Actor.ID, bare.Actor.ID, bare.Source = gone.ID, gone.ID, ""
			case 2: // nobody knows whose
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
	{"Where who is erased acted on others from goes in steps too, and where others acted from stays", func(f *fixture) {
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
	{"With who is erased go the answers about them, their keys, tokens and mails", func(f *fixture) {
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
			tx.InsertKey(about)
			tx.InsertKey(theirs)
			tx.InsertKey(other)
			tx.InsertOneTimeToken(rolecall.OneTimeToken{Purpose: rolecall.TokenEmailChange, UserID: gone.ID, Data: "ada@example.org", CreatedAt: start, ExpiresAt: start + day}, token)
			tx.InsertOneTimeToken(rolecall.OneTimeToken{Purpose: rolecall.TokenEmailChange, UserID: stays.ID, CreatedAt: start, ExpiresAt: start + day}, otherToken)
		})
		same(f, f.eraseTraces(gone), 1)
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
	{"Purging erases from when it is due, in bounded steps, and is done once", func(f *fixture) {
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
	{"Purging many who are gone takes no more than the limit at once", func(f *fixture) {
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

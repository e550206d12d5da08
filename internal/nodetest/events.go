package nodetest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/store"
)

// Shown returns the names of the members in the values of the event, before and after the
// change.
func (f *Fixture) Shown(e rolecall.Event) (before, after string) {
	f.Helper()
	names := func(object []byte) string {
		if object == nil {
			return ""
		}
		var members map[string]any
		f.OK(json.Unmarshal(object, &members))
		return strings.Join(slices.Sorted(maps.Keys(members)), " ")
	}
	if e.Values == nil {
		return "", ""
	}
	return names(e.Values.Before), names(e.Values.After)
}

// checkEvents fails the test if an event differs from its description in docs/events.md.
func (f *Fixture) checkEvents() {
	f.Helper()
	q := rolecall.EventQuery{Limit: rolecall.MaxLimit}
	for {
		var page rolecall.Page[rolecall.Event]
		f.OK(store.New(f.DB.Database, nil).View(f.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
			page, err = tx.Events(q)
			return err
		}))
		for _, e := range page.Items {
			f.CheckEvent(&e)
		}
		if q.After = page.Next; q.After == nil {
			return
		}
	}
}

// CheckEvent fails the test if the event differs from its description in docs/events.md.
func (f *Fixture) CheckEvent(e *rolecall.Event) {
	f.Helper()
	all := rolecall.EventDescriptions()
	i := slices.IndexFunc(all, func(d rolecall.EventDescription) bool { return d.Type == e.Type })
	if i < 0 {
		f.Errorf("%s has no description", e.Type)
		return
	}
	d := all[i]
	if !slices.Contains(d.Subjects, e.Subject.Type) {
		f.Errorf("%s is about a %s", e.Type, e.Subject.Type)
	}
	for _, member := range e.Members {
		if !slices.Contains(d.Members, member) {
			f.Errorf("%s names the member %s", e.Type, member)
		}
	}
	if e.Reason != "" && d.Reason == "" {
		f.Errorf("%s has the reason %q", e.Type, e.Reason)
	}
	if e.Values != nil && (e.Values.Before != nil && d.Before == "" || e.Values.After != nil && d.After == "") {
		f.Errorf("%s has the values %s, %s", e.Type, e.Values.Before, e.Values.After)
	}
}

// EventTypes returns the types of the events about a user, newest first.
func (f *Fixture) EventTypes(id rolecall.UserID) (types []rolecall.EventType) {
	f.Helper()
	f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		events, err := tx.Events(rolecall.EventQuery{Subject: rolecall.AnyID(id), Limit: 100})
		for _, e := range events.Items {
			types = append(types, e.Type)
		}
		return err
	}))
	return types
}

// OperatorEvents returns the types of the newest events of the operators' log, the newest first.
func (f *Fixture) OperatorEvents(c access.Caller) (types []rolecall.EventType) {
	f.Helper()
	page, err := f.Directory.OperatorEvents(f.Context(), c, directory.EventListing{Limit: 200})
	f.OK(err)
	for _, e := range page.Items {
		types = append(types, e.Type)
	}
	return types
}

// Events returns the newest events of the listing that the caller may see.
func (f *Fixture) Events(c access.Caller, l directory.EventListing) []rolecall.Event {
	f.Helper()
	l.Limit = rolecall.MaxLimit
	page, err := f.Directory.Events(f.Context(), c, l)
	f.OK(err)
	return page.Items
}

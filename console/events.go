package console

import (
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) eventPages() []page {
	return []page{
		{path: "/{tenant}/events", operation: "EventsController_listEvents", query: eventsQuery, show: c.showEvents},
		{path: "/{tenant}/users/{id}/events", operation: "UsersController_listUserEvents", query: userEventsQuery, show: c.showUserEvents},
	}
}

// eventParameters are those of the lists of events, as userParameters are of users.
// The person is one whose acts are looked for by name.
var eventParameters = []string{"type", "actor", "subject", "from", "to"}

const (
	eventPerson = "person"
	peopleShown = 8
)

// eventsView is what the pages of events show.
type eventsView struct {
	frame
	pageLinks
	user   *rolecall.User // whose history it is; nil of the whole tenant
	page   rolecall.Page[rolecall.Event]
	names  names
	people []rolecall.User // who is called as the address asks
	more   bool            // people
}

func (c *console) showEvents(v *pageContext) error {
	list := eventsView{}
	switch words := rolecall.Words(v.request.URL.Query().Get(eventPerson)); {
	case v.faults != nil:
	case len(words) > 0 && mayFindPeople(v):
		found, err := c.directory.Users(v.ctx, v.call, directory.UserListing{Words: words[:min(len(words), 8)], Limit: peopleShown})
		if err != nil {
			return err
		}
		list.people, list.more = found.Items, found.Next != nil
	default:
		page, err := c.directory.Events(v.ctx, v.call, v.eventListing())
		if err != nil {
			return err
		}
		list.page = page
	}
	return c.showEventList(v, list, "Events", "Events")
}

func (c *console) showUserEvents(v *pageContext) (err error) {
	list := eventsView{}
	if v.faults == nil {
		if list.page, err = c.directory.UserEvents(v.ctx, v.call, v.userID, v.eventListing()); err != nil {
			return err
		}
	}
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	list.user = &user
	return c.showEventList(v, list, "Changes", "Users")
}

// showEventList shows the list with the names of who is in it.
func (c *console) showEventList(v *pageContext, list eventsView, title, here string) (err error) {
	listing := v.eventListing()
	if list.names, err = c.namesIn(v, list.page.Items, listing.Actor, listing.Subject); err != nil {
		return err
	}
	return c.show(v, title, here, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(append(slices.Clone(eventParameters), eventPerson), list.page.Next)
		return eventsPage(list)
	})
}

// mayFindPeople reports whether the caller may look for somebody by name or address.
func mayFindPeople(v *pageContext) bool {
	c := v.call
	return !c.Reads(rolecall.MemberName).IsNowhere() || !c.Reads(rolecall.MemberEmail).IsNowhere()
}

// isFiltered reports whether the list shows only some events.
func (l eventsView) isFiltered() bool {
	return slices.ContainsFunc(eventParameters, func(name string) bool { return l.asked(name) != "" })
}

// isLookingFor reports whether the page shows people to choose from instead of events.
func (l eventsView) isLookingFor() bool {
	return len(rolecall.Words(l.asked(eventPerson))) > 0 && l.faults == nil && mayFindPeople(l.pageContext)
}

// day returns what the field of a day shows of a moment.
func day(t rolecall.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().Format(time.DateOnly)
}

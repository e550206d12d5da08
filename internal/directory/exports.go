package directory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// ExportUsers returns a table of all users that Users lists for l. It ignores After, Limit
// and Count of l. The first column is the id. Each other column is a member that the caller
// may read for at least one user. A cell is empty if the caller may not read this member of
// this user. ExportUsers returns the errors of Users.
func (s *Service) ExportUsers(ctx context.Context, c access.Caller, l UserListing) (*rolecall.Table, error) {
	return s.exportUsers(ctx, c, l, rolecall.EventUsersExported, rolecall.About(c.Tenant.ID), func(ctx context.Context, l UserListing) (UserPage, error) {
		return s.Users(ctx, c, l)
	})
}

// ExportRoleUsers is like ExportUsers, for the users that RoleUsers lists. It returns the
// errors of RoleUsers.
func (s *Service) ExportRoleUsers(ctx context.Context, c access.Caller, id rolecall.RoleID, l UserListing) (*rolecall.Table, error) {
	return s.exportUsers(ctx, c, l, rolecall.EventRoleUsersExported, rolecall.About(id), func(ctx context.Context, l UserListing) (UserPage, error) {
		return s.RoleUsers(ctx, c, id, l)
	})
}

// exportUsers returns a table of the users that the function list returns. It reads the
// first page immediately. If list returns an error, exportUsers returns this error and no
// event is recorded.
func (s *Service) exportUsers(ctx context.Context, c access.Caller, l UserListing, kind rolecall.EventType, subject rolecall.Subject, list func(context.Context, UserListing) (UserPage, error)) (*rolecall.Table, error) {
	l.After, l.Limit, l.Count = nil, rolecall.MaxLimit, false
	page, err := list(ctx, l)
	if err != nil {
		return nil, err
	}
	members := columnsOf(c.Principal)
	table := &rolecall.Table{Name: "users", Columns: append([]string{"id"}, members.Names()...)}
	table.Record = func() error { return s.recordExport(ctx, c, kind, subject, l.filters()) }
	isFirst := true
	table.Next = func(ctx context.Context) ([][]string, bool, error) {
		if !isFirst {
			if page, err = list(ctx, l); err != nil {
				return nil, false, err
			}
		}
		isFirst, l.After = false, page.Next
		rows := make([][]string, len(page.Items))
		for i := range page.Items {
			rows[i] = userRow(c.Principal, &page.Items[i], members)
		}
		return rows, page.Next != nil, nil
	}
	return table, nil
}

// columnsOf returns the members that the principal may read for at least some users.
func columnsOf(p *authz.Principal) (members rolecall.UserMembers) {
	for m := range rolecall.AllUserMembers.All() {
		if !p.Reads(m).IsNowhere() {
			members |= rolecall.SetOf(m)
		}
	}
	return members
}

func userRow(p *authz.Principal, u *rolecall.User, members rolecall.UserMembers) []string {
	row := []string{u.ID.String()}
	readable := p.ReadableListMembers(u)
	for m := range members.All() {
		cell := ""
		if readable.Has(m) {
			cell = orEmpty(m.Text(u))
		}
		row = append(row, cell)
	}
	return row
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// eventColumns are the column names of exported events. Except the last two, they are the names of the
// members of an event in the API.
var eventColumns = []string{
	"id", "type", "occurredAt", "actor.type", "actor.id", "actor.via", "actor.tokenId", "subject.type", "subject.id",
	"members", "requestId", "sessionId", "source", "reason", "before", "after", "actor.name", "subject.name",
}

// ExportEvents returns a table of all events that Events lists for l. It ignores After and
// Limit of l. ExportEvents can fail with ErrPermissionDenied.
func (s *Service) ExportEvents(ctx context.Context, c access.Caller, l EventListing) (*rolecall.Table, error) {
	if err := authz.ReadEvents.Authorize(c.Principal); err != nil {
		return nil, err
	}
	l.After, l.Limit = nil, rolecall.MaxLimit
	filters := l.filters()
	record := func() error {
		return s.recordExport(ctx, c, rolecall.EventEventsExported, rolecall.About(c.Tenant.ID), filters)
	}
	next := func(ctx context.Context) ([][]string, bool, error) {
		page, err := s.Events(ctx, c, l)
		if err != nil {
			return nil, false, err
		}
		l.After = page.Next
		named, err := s.Names(ctx, c, idsOfEvents(page.Items))
		rows := make([][]string, len(page.Items))
		for i := range page.Items {
			rows[i] = eventRow(&page.Items[i], named)
		}
		return rows, page.Next != nil, err
	}
	return &rolecall.Table{Name: "events", Columns: eventColumns, Record: record, Next: next}, nil
}

// idsOfEvents returns the ids of the actors and the subjects of the events, without duplicates.
func idsOfEvents(events []rolecall.Event) (ids []rolecall.AnyID) {
	for i := range events {
		ids = append(ids, rolecall.AnyID(events[i].Actor.ID), events[i].Subject.ID)
	}
	slices.SortFunc(ids, func(a, b rolecall.AnyID) int { return bytes.Compare(a[:], b[:]) })
	return slices.DeleteFunc(slices.Compact(ids), func(id rolecall.AnyID) bool { return id.IsZero() })
}

func eventRow(e *rolecall.Event, named map[rolecall.AnyID]Named) []string {
	var before, after string
	if e.Values != nil {
		before, after = string(e.Values.Before), string(e.Values.After)
	}
	return []string{
		e.ID.String(), string(e.Type), e.OccurredAt.String(), string(e.Actor.Type), idCell(e.Actor.ID), e.Actor.Via, idCell(e.Actor.Token),
		string(e.Subject.Type), idCell(e.Subject.ID), strings.Join(e.Members, " "), e.RequestID, idCell(e.SessionID), e.Source, e.Reason, before, after,
		named[rolecall.AnyID(e.Actor.ID)].Name, named[e.Subject.ID].Name,
	}
}

// idCell returns the text of the id, or an empty text for the zero id.
func idCell[T any](id rolecall.ID[T]) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// exportFilter is a filter of an export, in the form in which the event of the export
// records it.
type exportFilter struct {
	name  string
	value string // empty if the filter is not set
	// personal is true if the value can be personal data. The event then has only the name
	// of the filter, because the value would remain after the user is erased.
	personal bool
}

func (l *UserListing) filters() []exportFilter {
	direct := ""
	if l.Direct {
		direct = "true"
	}
	filters := []exportFilter{{"q", strings.Join(l.Words, " "), true}, {"email", l.Email, true}}
	for m, text := range l.TextFilter.All() {
		filters = append(filters, exportFilter{m.String(), text, true})
	}
	return append(filters, []exportFilter{
		{"department", cmp.Or(l.Department, strings.Join(l.Departments, ", ")), false}, {"status", l.Status, false}, {"role", idCell(l.Role), false},
		{"group", idCell(l.Group), false}, {"direct", direct, false},
	}...)
}

func (l *EventListing) filters() []exportFilter {
	timeCell := func(t rolecall.Time) string {
		if t == 0 {
			return ""
		}
		return t.String()
	}
	return []exportFilter{
		{"type", l.Type, false}, {"actor", idCell(l.Actor), false}, {"subject", idCell(l.Subject), false},
		{"from", timeCell(l.From), false}, {"to", timeCell(l.To), false},
	}
}

// recordExport stores the event of an export, with the names of the filters that are set,
// and the values that are not personal data.
func (s *Service) recordExport(ctx context.Context, c access.Caller, kind rolecall.EventType, subject rolecall.Subject, filters []exportFilter) error {
	filters = slices.DeleteFunc(filters, func(f exportFilter) bool { return f.value == "" })
	names, values := []string{}, map[string]string{}
	for _, f := range filters {
		names = append(names, f.name)
		if !f.personal {
			values[f.name] = f.value
		}
	}
	event := s.access.Event(c, kind, subject)
	event.Members = names
	if len(values) > 0 {
		after, err := json.Marshal(values)
		if err != nil {
			return err
		}
		event.Values = &rolecall.EventValues{After: after}
	}
	return s.access.Mutate(ctx, c, func(*store.Tx) (*rolecall.Event, error) { return event, nil })
}

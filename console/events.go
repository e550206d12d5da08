package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/web"
)

func (c *console) eventPages() []page {
	return []page{
		{path: "/{tenant}/events", operation: "EventsController_listEvents", query: eventsQuery, show: c.showEvents},
		{path: "/{tenant}/users/{id}/events", operation: "UsersController_listUserEvents", query: userEventsQuery, show: c.showUserEvents},
	}
}

// eventParameters are the query parameters that links to lists of events keep. The
// parameter eventPerson is not one of them: it searches for a user, whose events the reader
// can then list.
var eventParameters = []string{"type", "actor", "subject", "from", "to", fieldTimeZone}

const (
	eventPerson = "person"
	peopleShown = 8
)

// eventsView is the data of the pages that list events.
type eventsView struct {
	frame
	pageLinks
	user   *rolecall.User // the subject of the events; nil on the page of all events
	page   rolecall.Page[rolecall.Event]
	names  names
	people []rolecall.User // the users that the search for a person found
	more   bool            // the search found more users than people has
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
	return c.showEventList(v, list, msg(eventsSection), eventsSection)
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
	return c.showEventList(v, list, msg("events.of-user-page"), usersSection)
}

// showEventList shows the list with the names of its users.
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

// mayFindPeople reports whether the caller may search users by name or address.
func mayFindPeople(v *pageContext) bool {
	c := v.call
	return !c.Reads(rolecall.MemberName).IsNowhere() || !c.Reads(rolecall.MemberEmail).IsNowhere()
}

func (l eventsView) isFiltered() bool {
	return slices.ContainsFunc(eventParameters, func(name string) bool { return l.asked(name) != "" })
}

// isLookingFor reports whether the page shows the users that a search has found, instead of
// events.
func (l eventsView) isLookingFor() bool {
	return len(rolecall.Words(l.asked(eventPerson))) > 0 && l.faults == nil && mayFindPeople(l.pageContext)
}

// eventTopics maps the topics of events to the message keys of their names.
var eventTopics = map[rolecall.EventTopic]string{
	rolecall.EventTopicUsers:       usersSection,
	rolecall.EventTopicRoles:       rolesSection,
	rolecall.EventTopicGroups:      groupsSection,
	rolecall.EventTopicSignIn:      "user.sign-in",
	rolecall.EventTopicConnections: "nav.connections",
	rolecall.EventTopicDirectories: "nav.directories",
	rolecall.EventTopicPrograms:    "events.programs",
	rolecall.EventTopicWebhooks:    "nav.webhooks",
	rolecall.EventTopicTenant:      "settings.tenant",
}

// eventKind has the event types of a topic, for the filter for types.
type eventKind struct {
	name  string // the message key of the topic's name
	types []rolecall.EventType
}

// eventKinds are the topics that the log of a tenant can have.
var eventKinds = func() (kinds []eventKind) {
	for _, d := range rolecall.EventDescriptions() {
		name := eventTopics[d.Topic]
		switch last := len(kinds) - 1; {
		case name == "":
		case last >= 0 && kinds[last].name == name:
			kinds[last].types = append(kinds[last].types, d.Type)
		default:
			kinds = append(kinds, eventKind{name, []rolecall.EventType{d.Type}})
		}
	}
	return kinds
}()

// eventPrefix and an event type form the message key of the type's name.
const eventPrefix = "event."

// eventName returns the name of the event type in words.
func eventName(t rolecall.EventType) string {
	if key := eventPrefix + string(t); hasMessage(key) {
		return msg(key)
	}
	return string(t)
}

// viaPrefix begins the message keys that name how a request was made. The usual way has no
// message.
const viaPrefix = "events.via-"

// difference is a member that an event changed, with the values before and after as text.
// If the caller may not read the values, withheld is true, and needed is the permission
// that would show them.
type difference struct {
	member         string
	before, after  string   // empty if the member has no value
	removed, added []string // for a list: the items that only the old value has, and those that only the new value has
	withheld       bool
	needed         rolecall.Permission // zero if no permission shows the values to other users
}

// differences returns the members that the event changed. If the event created or deleted
// an object, these are all members of the object.
func differences(f frame, e *rolecall.Event, named names) (list []difference) {
	if e.Values == nil {
		return nil
	}
	before, after := membersOf(e.Values.Before), membersOf(e.Values.After)
	if isAssignment(e) {
		addLimits(before)
		addLimits(after)
	}
	if before["groupName"] != nil || after["groupName"] != nil { // the name says more than the id
		delete(before, "groupId")
		delete(after, "groupId")
	}
	both := maps.Clone(before)
	maps.Copy(both, after)
	for _, member := range slices.Sorted(maps.Keys(both)) {
		d := difference{member: memberLabel(member), before: valueText(f, member, before[member], named), after: valueText(f, member, after[member], named)}
		if d.before == d.after {
			continue
		}
		was, wasList := before[member].([]any)
		is, isList := after[member].([]any)
		if wasList && isList {
			d = difference{member: d.member, removed: itemsOnlyIn(f, member, was, is, named), added: itemsOnlyIn(f, member, is, was, named)}
		}
		list = append(list, d)
	}
	for _, member := range slices.Sorted(maps.Keys(e.Values.Withheld)) {
		list = append(list, difference{member: memberLabel(member), withheld: true, needed: e.Values.Withheld[member]})
	}
	return list
}

// itemsOnlyIn returns the items of list that other does not have, as text.
func itemsOnlyIn(f frame, member string, list, other []any, named names) (items []string) {
	for _, item := range list {
		if !slices.Contains(other, item) {
			items = append(items, valueText(f, member, item, named))
		}
	}
	return items
}

// isAssignment reports whether the event assigned or removed a role.
func isAssignment(e *rolecall.Event) bool {
	return e.Type == rolecall.EventRoleAssigned || e.Type == rolecall.EventRoleUnassigned
}

// addLimits adds words for the whole tenant and for no expiry, because the values of an
// event leave out the departments and the expiry of an unlimited assignment.
func addLimits(assignment map[string]any) {
	if assignment["roleId"] == nil {
		return
	}
	for member, words := range map[string]string{"departments": msg("reach.everywhere"), "expiresAt": msg("user.never")} {
		if assignment[member] == nil {
			assignment[member] = words
		}
	}
}

// assignmentLimits returns the departments and the expiry of the assignment that the event
// created. Each is zero if the assignment is not limited, if the event created no
// assignment, or if the caller may not read the limit.
func assignmentLimits(e *rolecall.Event) (where string, end rolecall.Time) {
	if e.Values == nil || e.Type != rolecall.EventRoleAssigned {
		return "", 0
	}
	assignment := membersOf(e.Values.After)
	if departments, ok := assignment["departments"].([]any); ok {
		var names []string
		for _, name := range departments {
			text, _ := name.(string)
			names = append(names, text)
		}
		where = msg("events.in", "Departments", listed(names))
	}
	if text, ok := assignment["expiresAt"].(string); !ok || end.UnmarshalText([]byte(text)) != nil {
		return where, 0
	}
	return where, end
}

// membersOf returns the members of a JSON object by name. The name of a nested member is
// its path, with dots.
func membersOf(object []byte) map[string]any {
	members := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) == nil {
		flatten(members, "", value)
	}
	return members
}

func flatten(members map[string]any, path string, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		members[path] = value
		return
	}
	for name, value := range object {
		flatten(members, strings.TrimPrefix(path+"."+name, "."), value)
	}
}

// valueText returns the value of the member as text. It shows a name instead of an id if
// the caller may read the name.
func valueText(f frame, member string, value any, named names) string {
	switch value := value.(type) {
	case string:
		var moment rolecall.Time
		switch id, err := rolecall.ParseID[any](value); {
		case idMembers[member] && err == nil && named[id].Name != "":
			return named[id].Name
		case roleMembers[member] && err == nil:
			return msg("value.missing-role", "Role", f.missingRole(), "ID", value)
		case groupMembers[member] && err == nil:
			return msg("value.missing-group", "Group", f.missingGroup(), "ID", value)
		case timeMembers[member] && moment.UnmarshalText([]byte(value)) == nil:
			return f.exact(moment)
		}
		return value
	case bool:
		return map[bool]string{true: msg("value.yes"), false: msg("value.no")}[value]
	case json.Number:
		return value.String()
	case []any:
		var texts []string
		for _, item := range value {
			texts = append(texts, valueText(f, member, item, named))
		}
		return strings.Join(texts, ", ")
	}
	return ""
}

// roleMembers are the members whose value is a role id or a list of role ids, and groupMembers
// those with ids of groups. idMembers are all members with ids, and timeMembers those with timestamps.
var (
	roleMembers  = map[string]bool{"roleId": true, "roles": true, "rolesNotRestored": true, "settings.secondFactor.roles": true}
	groupMembers = map[string]bool{"groupId": true, "groups": true, "groupsNotRestored": true}
	idMembers    = map[string]bool{
		"roleId": true, "roles": true, "rolesNotRestored": true, "settings.secondFactor.roles": true,
		"groupId": true, "groups": true, "groupsNotRestored": true,
		"token.userId": true, "token.serviceAccountId": true, "token.createdBy": true,
	}
	timeMembers = map[string]bool{"createdAt": true, "updatedAt": true, "expiresAt": true, "token.createdAt": true, "token.expiresAt": true, "passkey.createdAt": true}
)

// memberLabel returns the display name of the member.
func memberLabel(member string) string {
	top, below, within := strings.Cut(member, ".")
	key, ok := valueLabels[top]
	if m, known := rolecall.UserMemberNamed(top); known {
		key, ok = memberPrefix+m.String(), true
	}
	switch {
	case !ok:
		return member
	case within:
		return msg("value.within", "Label", msg(key), "Field", below)
	}
	return msg(key)
}

// valueLabels has the message keys of the labels of members in events. Members of users
// have their own labels.
var valueLabels = map[string]string{
	"id": "list.identifier", "roleId": "users.role", "departments": "assignment.departments", "expiresAt": "list.expires", "roles": "nav.roles", "rolesNotRestored": "value.roles-not-restored",
	"groupId": "groups.group", "groupName": "groups.group", "groups": "nav.groups", "groupsNotRestored": "value.groups-not-restored",
	"token": "value.token", "passkey": "value.passkey", "totp": "factor.app", "tokens": "user.api-tokens", "recovery": "account.recovery-codes",
	"permissions": "tokens.permissions", "grants": "roles.grants", "description": "list.purpose", "key": "metadata.key", "system": "roles.built-in",
	"displayName": "settings.display-name", "settings": "nav.settings",
	"matching": "directories.matching", "deprovisioning": "directories.deprovisioning", "paused": "directories.status-paused",
}

// refusalParts matches the reason of an event about refused requests or failed sign-ins.
// The groups are the id of the operation, the code of the problem and the number of
// requests.
var refusalParts = regexp.MustCompile(`^(?:(\w+): )?([a-z]+(?:-[a-z]+)*)(?:, (\d+) times)?$`)

// refusalWords translates the reason of an event about refused requests or failed sign-ins
// into words. It returns other reasons unchanged.
func (f frame) refusalWords(reason string) string {
	parts := refusalParts.FindStringSubmatch(reason)
	if parts == nil {
		return reason
	}
	words := web.TitleOf(parts[2])
	if summary := f.console.policies[parts[1]].Summary; summary != "" {
		words = msg("events.refusal", "Operation", summary, "Problem", words)
	}
	if count, err := strconv.Atoi(parts[3]); err == nil {
		words = msg("events.repeated", "What", words, "Count", count)
	}
	return words
}

// isRefusal reports whether the reason of the event comes from the program. Otherwise a
// user has typed the reason.
func isRefusal(e *rolecall.Event) bool {
	return e.Type == rolecall.EventRefused || e.Type == rolecall.EventSignInFailed
}

// changedWords names the members that the event changed. It leaves out members that the
// name of the event already implies.
func changedWords(e *rolecall.Event) string {
	var words []string
	for _, member := range e.Members {
		if member != "roles" && member != "groups" && member != "tokens" && member != "status" {
			words = append(words, memberLabel(member))
		}
	}
	return listed(words)
}

// idsWithin returns the ids in the values of the event.
func idsWithin(e *rolecall.Event) (ids []rolecall.AnyID) {
	if e.Values == nil {
		return nil
	}
	for _, object := range [][]byte{e.Values.Before, e.Values.After} {
		values := membersOf(object)
		for member := range idMembers {
			list, ok := values[member].([]any)
			if !ok {
				list = []any{values[member]}
			}
			for _, item := range list {
				text, _ := item.(string)
				if id, err := rolecall.ParseID[any](text); err == nil {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}

// roleOf returns the id of the role that the event assigned or removed. It returns zero for
// other events, and if the caller may not read which role it was.
func roleOf(e *rolecall.Event) (id rolecall.AnyID) {
	if e.Values == nil {
		return id
	}
	for _, object := range [][]byte{e.Values.Before, e.Values.After} {
		if text, ok := membersOf(object)["roleId"].(string); ok {
			id, _ = rolecall.ParseID[any](text)
		}
	}
	return id
}

// groupInEvent returns the id of the group that the event is about. If the event is about a membership, it also returns
// the name. Both are empty for other events, and if the caller may not read which group it was.
func groupInEvent(e *rolecall.Event) (id rolecall.AnyID, name string) {
	if e.Subject.Type == rolecall.SubjectGroup {
		return e.Subject.ID, ""
	}
	if e.Values == nil {
		return id, ""
	}
	for _, object := range [][]byte{e.Values.Before, e.Values.After} {
		members := membersOf(object)
		if text, ok := members["groupId"].(string); ok {
			id, _ = rolecall.ParseID[any](text)
			name, _ = members["groupName"].(string)
		}
	}
	return id, name
}

// history has the newest events about an object, for the page of the object.
type history struct {
	events []rolecall.Event
	names  names
	all    string // the address of the list of all events about the object
}

// historyOf returns the newest events about the object with the id, or of the tenant if the
// id is zero. If kind is not empty, they are the events of this type only. historyOf returns nil if the caller may not read
// events.
func (c *console) historyOf(v *pageContext, subject rolecall.AnyID, kind rolecall.EventType) (*history, error) {
	if authz.ReadEvents.Authorize(v.call.Principal) != nil {
		return nil, nil
	}
	limit := recentEvents
	if subject == (rolecall.AnyID{}) && kind == "" {
		limit *= 5 // Home shows one event of each job
	}
	recent, err := c.directory.Events(v.ctx, v.call, directory.EventListing{Subject: subject, Type: string(kind), Limit: limit})
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	if subject != (rolecall.AnyID{}) {
		query.Set("subject", subject.String())
	}
	if kind != "" {
		query.Set("type", string(kind))
	}
	h := &history{events: recent.Items, all: v.path("/events")}
	if len(query) > 0 {
		h.all += "?" + query.Encode()
	}
	h.names, err = c.namesIn(v, recent.Items)
	return h, err
}

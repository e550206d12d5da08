package authz

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

// RedactEvents removes from the events the data that the principal may not read.
func RedactEvents(p *Principal, events []rolecall.Event) error {
	for i := range events {
		redactOrigin(p, &events[i])
		if err := redactValues(p, &events[i]); err != nil {
			return err
		}
	}
	return nil
}

// RedactChanges removes from the events the source addresses, the sessions, and the values that the
// principal may not read.
func RedactChanges(p *Principal, changes []rolecall.Change) error {
	for i := range changes {
		e := &changes[i].Event
		e.Source, e.SessionID = "", rolecall.SessionID{}
		if err := redactValues(p, e); err != nil {
			return err
		}
	}
	return nil
}

// ValueRights describes which values of events the principal may read. Two principals with the same
// description may read the same values.
func ValueRights(p *Principal) []byte {
	var b []byte
	add := func(r rolecall.Reach) {
		b = strconv.AppendBool(b, r.IsEverywhere())
		for _, key := range r.DepartmentKeys() {
			b = append(strconv.AppendQuote(b, key), ',')
		}
		b = append(b, ';')
	}
	for m := range rolecall.UserMemberCount {
		add(p.Reads(m))
	}
	for _, permission := range []rolecall.Permission{rolecall.UsersRestore, rolecall.RolesRead, rolecall.GroupsRead, rolecall.SessionsRead, rolecall.ServiceAccountsRead, rolecall.WebhooksRead, rolecall.ConnectionsRead, rolecall.IdentitiesRead, rolecall.TenantRead} {
		add(p.Reach(permission))
	}
	if p.Kind == PrincipalUser { // users may read more about themselves
		b = append(b, p.User.ID[:]...)
		b = strconv.AppendBool(b, p.Interactive())
	}
	return b
}

// redactOrigin removes the client address, the session and the API token from an event, so
// that users do not learn where other users sign in. Three kinds of events keep them: all
// events if the principal may read the events of the tenant, events that the principal
// caused, and events of anonymous actors, such as a failed sign-in to the principal's
// account.
func redactOrigin(p *Principal, e *rolecall.Event) {
	if e.Actor.Type == rolecall.ActorAnonymous || e.Actor.ID == p.User.ID || p.Reach(rolecall.EventsRead).IsEverywhere() {
		return
	}
	e.Source, e.Actor.Token = "", rolecall.APITokenID{}
	if e.Type != rolecall.EventSessionEnded { // this event keeps SessionID, which is the id of the session that ended
		e.SessionID = rolecall.SessionID{}
	}
}

// redactValues removes from the event the values that the principal may not read. For each
// removed value, it sets an entry in Withheld: the permission that allows reading the
// value.
func redactValues(p *Principal, e *rolecall.Event) (err error) {
	if e.Values == nil {
		return nil
	}
	needed := valuePermissions(p, e)
	var withheld map[string]rolecall.Permission
	readable := func(member string) bool {
		permission, held := needed(member)
		if !held {
			if withheld == nil {
				withheld = map[string]rolecall.Permission{}
			}
			withheld[member] = permission
		}
		return held
	}
	if e.Values.Before, err = keepMembers(e.Values.Before, readable); err != nil {
		return err
	}
	e.Values.After, err = keepMembers(e.Values.After, readable)
	e.Values.Withheld = withheld
	return err
}

// valuePermissions returns a function that decides, for each member of the event's values,
// whether the principal may read the member (held). The function also returns the
// permission that allows reading the member (needed). This permission is zero if no
// permission allows it.
func valuePermissions(p *Principal, e *rolecall.Event) func(member string) (needed rolecall.Permission, held bool) {
	always := func(permission rolecall.Permission, held bool) func(string) (rolecall.Permission, bool) {
		return func(string) (rolecall.Permission, bool) { return permission, held }
	}
	switch e.Subject.Type {
	case rolecall.SubjectUser:
		subject := rolecall.User{ID: rolecall.UserID(e.Subject.ID), Department: e.SubjectDepartment}
		if e.SubjectDeleted && !p.Reach(rolecall.UsersRestore).Includes(subject.Department) {
			return always(rolecall.UsersRestore, false)
		}
		return userValuePermissions(p, &subject)
	case rolecall.SubjectRole:
		return always(rolecall.RolesRead, !p.Reach(rolecall.RolesRead).IsNowhere())
	case rolecall.SubjectGroup:
		if assigns := e.Type == rolecall.EventRoleAssigned || e.Type == rolecall.EventRoleUnassigned; assigns && p.Reach(rolecall.RolesRead).IsNowhere() {
			return always(rolecall.RolesRead, false)
		}
		return always(rolecall.GroupsRead, p.Reach(rolecall.GroupsRead).IsEverywhere())
	case rolecall.SubjectServiceAccount:
		return always(rolecall.ServiceAccountsRead, p.Reach(rolecall.ServiceAccountsRead).IsEverywhere())
	case rolecall.SubjectWebhook:
		return always(rolecall.WebhooksRead, p.Reach(rolecall.WebhooksRead).IsEverywhere())
	case rolecall.SubjectConnection, rolecall.SubjectDirectory:
		return always(rolecall.ConnectionsRead, p.Reach(rolecall.ConnectionsRead).IsEverywhere())
	}
	return always(rolecall.TenantRead, p.Reach(rolecall.TenantRead).IsEverywhere())
}

// userValuePermissions is valuePermissions for events about the user subject.
func userValuePermissions(p *Principal, subject *rolecall.User) func(member string) (needed rolecall.Permission, held bool) {
	self, readable := p.IsSelf(subject.ID), p.ReadableMembers(subject)
	return func(member string) (rolecall.Permission, bool) {
		m, ok := rolecall.UserMemberNamed(member)
		switch {
		case member == "id" || member == "delivery":
			return rolecall.Permission{}, true
		case ok:
			return m.Read(), readable.Has(m)
		case assignmentMembers[member]:
			return rolecall.RolesRead, self || p.Reach(rolecall.RolesRead).Includes(subject.Department)
		case groupMembers[member]:
			return rolecall.GroupsRead, self || p.Reach(rolecall.GroupsRead).IsEverywhere()
		case identityMembers[member]:
			return rolecall.IdentitiesRead, self || p.Reach(rolecall.IdentitiesRead).Includes(subject.Department)
		case member == "token":
			return rolecall.SessionsRead, self || p.Reach(rolecall.SessionsRead).Includes(subject.Department)
		}
		return rolecall.Permission{}, self && member == "passkey"
	}
}

// assignmentMembers are the members of event values that describe assignments. To read
// those of another user, a caller needs roles:read for the user.
var assignmentMembers = map[string]bool{"roleId": true, "departments": true, "expiresAt": true, "roles": true, "rolesNotRestored": true}

// groupMembers are the members of event values that describe memberships. To read those of another user, a caller needs
// groups:read in the whole tenant.
var groupMembers = map[string]bool{"groupId": true, "groupName": true, "groups": true, "groupsNotRestored": true}

// identityMembers are the members of event values about identities. To read those of another user, a caller needs
// identities:read for the user.
var identityMembers = map[string]bool{"identity": true, "identityId": true, "connectionId": true}

// keepMembers returns the JSON object with only the members for which readable returns
// true. It returns nil if the object is nil, or if it would have no members.
func keepMembers(object []byte, readable func(member string) bool) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true)) // it does not copy a Buffer
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	kept := append(make([]byte, 0, len(object)), '{')
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		begin := len(kept)
		kept = append(append(kept, name...), ':')
		text, err := jsontext.AppendUnquote(nil, name)
		if err != nil {
			return nil, err
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if !readable(string(text)) {
			kept = kept[:begin]
			continue
		}
		kept = append(append(kept, value...), ',')
	}
	if _, err := d.ReadToken(); err != nil || len(kept) == 1 {
		return nil, err
	}
	kept[len(kept)-1] = '}'
	return kept, nil
}

package authz

import (
	"encoding/json"

	"github.com/rolecall/rolecall"
)

// RedactEvents removes from the events all data that the principal may not read.
func RedactEvents(p *Principal, events []rolecall.Event) error {
	for i := range events {
		redactOrigin(p, &events[i])
		if err := redactValues(p, &events[i]); err != nil {
			return err
		}
	}
	return nil
}

// redactOrigin removes the address, the session and the API token from events of other
// actors, unless the principal may read all events. It keeps them in the principal's own
// events and in anonymous ones, such as a failed sign-in to the principal's account.
func redactOrigin(p *Principal, e *rolecall.Event) {
	if e.Actor.Type == rolecall.ActorAnonymous || e.Actor.ID == p.User.ID || p.Reach(rolecall.EventsRead).IsEverywhere() {
		return
	}
	e.Source, e.Actor.Token = "", rolecall.APITokenID{}
	if e.Type != rolecall.EventSessionEnded { // in this event, the session is the one that ended, and is kept
		e.SessionID = rolecall.SessionID{}
	}
}

// redactValues removes from the event all values that the principal may not read. For
// each of them, it records the permission that allows reading it.
func redactValues(p *Principal, e *rolecall.Event) (err error) {
	if e.Values == nil {
		return nil
	}
	needed, withheld := valuePermissions(p, e), map[string]rolecall.Permission{}
	readable := func(member string) bool {
		permission, held := needed(member)
		if !held {
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

// valuePermissions returns a function that returns the permission to read a member of the
// event's values, and whether the principal holds it. The permission is zero if no
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
	case rolecall.SubjectServiceAccount:
		return always(rolecall.ServiceAccountsRead, p.Reach(rolecall.ServiceAccountsRead).IsEverywhere())
	}
	return always(rolecall.TenantRead, p.Reach(rolecall.TenantRead).IsEverywhere())
}

// userValuePermissions is like valuePermissions, for events about a user.
func userValuePermissions(p *Principal, subject *rolecall.User) func(member string) (needed rolecall.Permission, held bool) {
	self, readable := p.IsSelf(subject.ID), p.ReadableMembers(subject)
	return func(member string) (rolecall.Permission, bool) {
		m, ok := rolecall.UserMemberNamed(member)
		switch {
		case member == "id":
			return rolecall.Permission{}, true
		case ok:
			return m.Read(), readable.Has(m)
		case assignmentMembers[member]:
			return rolecall.RolesRead, self || p.Reach(rolecall.RolesRead).Includes(subject.Department)
		case member == "token":
			return rolecall.SessionsRead, self || p.Reach(rolecall.SessionsRead).Includes(subject.Department)
		}
		return rolecall.Permission{}, self && member == "passkey"
	}
}

// assignmentMembers are the members of values that are about assignments.
var assignmentMembers = map[string]bool{"roleId": true, "departments": true, "expiresAt": true, "roles": true, "rolesNotRestored": true}

// keepMembers returns the JSON object with only the readable members. It returns nil
// for nil.
func keepMembers(object []byte, readable func(member string) bool) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	for member := range members {
		if !readable(member) {
			delete(members, member)
		}
	}
	if len(members) == 0 {
		return nil, nil
	}
	return json.Marshal(members)
}

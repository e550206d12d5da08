package authz

import (
	"encoding/json"

	"github.com/rolecall/rolecall"
)

// RedactEvents removes from the events what the principal may not read.
func RedactEvents(p *Principal, events []rolecall.Event) error {
	for i := range events {
		redactOrigin(p, &events[i])
		if err := redactValues(p, &events[i]); err != nil {
			return err
		}
	}
	return nil
}

// redactOrigin removes from what somebody else did the address, the session and the API
// token that they used, unless the caller may read all events. Everybody sees these of
// their own acts, and of acts by nobody known, such as a failed sign-in to their account.
func redactOrigin(p *Principal, e *rolecall.Event) {
	if e.Actor.Type == rolecall.ActorAnonymous || e.Actor.ID == p.User.ID || p.Reach(rolecall.EventsRead).IsEverywhere() {
		return
	}
	e.Source, e.Actor.Token = "", rolecall.APITokenID{}
	if e.Type != rolecall.EventSessionEnded { // which names the session that ended
		e.SessionID = rolecall.SessionID{}
	}
}

// redactValues removes from the event's values what the caller may not read, and notes
// what would show it.
func redactValues(p *Principal, e *rolecall.Event) (err error) {
	if e.Values == nil {
		return nil
	}
	needed, withheld := valueNeeds(p, e), map[string]rolecall.Permission{}
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

// valueNeeds returns what shows a member of the event's values, zero if no permission
// does, and whether the caller has it.
func valueNeeds(p *Principal, e *rolecall.Event) func(member string) (needed rolecall.Permission, held bool) {
	always := func(permission rolecall.Permission, held bool) func(string) (rolecall.Permission, bool) {
		return func(string) (rolecall.Permission, bool) { return permission, held }
	}
	switch e.Subject.Type {
	case rolecall.SubjectUser:
		subject := rolecall.User{ID: rolecall.UserID(e.Subject.ID), Department: e.SubjectDepartment}
		if e.SubjectDeleted && !p.Reach(rolecall.UsersRestore).Includes(subject.Department) {
			return always(rolecall.UsersRestore, false)
		}
		return userValueNeeds(p, &subject)
	case rolecall.SubjectRole:
		return always(rolecall.RolesRead, !p.Reach(rolecall.RolesRead).IsNowhere())
	case rolecall.SubjectServiceAccount:
		return always(rolecall.ServiceAccountsRead, p.Reach(rolecall.ServiceAccountsRead).IsEverywhere())
	}
	return always(rolecall.TenantRead, p.Reach(rolecall.TenantRead).IsEverywhere())
}

// userValueNeeds is valueNeeds of what happened to a user.
func userValueNeeds(p *Principal, subject *rolecall.User) func(member string) (needed rolecall.Permission, held bool) {
	self, sight := p.IsSelf(subject.ID), p.Sight(subject)
	return func(member string) (rolecall.Permission, bool) {
		m, ok := rolecall.UserMemberNamed(member)
		switch {
		case member == "id":
			return rolecall.Permission{}, true
		case ok:
			return m.Read(), sight.Has(m)
		case assignmentMembers[member]:
			return rolecall.RolesRead, self || p.Reach(rolecall.RolesRead).Includes(subject.Department)
		case member == "token":
			return rolecall.SessionsRead, self || p.Reach(rolecall.SessionsRead).Includes(subject.Department)
		}
		return rolecall.Permission{}, self && member == "passkey"
	}
}

// assignmentMembers are the members of values that say who holds which role.
var assignmentMembers = map[string]bool{"roleId": true, "departments": true, "expiresAt": true, "roles": true, "rolesNotRestored": true}

// keepMembers returns the JSON object with the readable members only, nil for
// none.
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

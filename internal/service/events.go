package service

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// EventListing says which events are wanted. Empty members do not filter.
type EventListing struct {
	Type    string
	Actor   rolecall.AnyID
	Subject rolecall.AnyID
	From    rolecall.Time // not before
	To      rolecall.Time // before
	After   *rolecall.Position
	Limit   int
}

// Events returns a page of the tenant's events, newest first. Values before and
// after are shown as far as the caller may read those members now.
func (s *Service) Events(ctx context.Context, c Call, l EventListing) (rolecall.Page[rolecall.Event], error) {
	if err := authz.ReadEvents.Authorize(c.Principal); err != nil {
		return rolecall.Page[rolecall.Event]{}, err
	}
	return s.events(ctx, c, l)
}

// UserEvents returns a page of the events about the user, newest first, or
// ErrNotFound. Everybody may read those about themselves.
func (s *Service) UserEvents(ctx context.Context, c Call, id rolecall.UserID, l EventListing) (page rolecall.Page[rolecall.Event], err error) {
	if err := authz.ReadUserEvents.AuthorizeFor(c.Principal, id); err != nil {
		return page, err
	}
	if !c.IsSelf(id) {
		err := s.view(ctx, c, func(tx *store.Tx) error {
			_, err := seenUser(tx, c, id)
			return err
		})
		if err != nil {
			return page, err
		}
	}
	l.Subject = rolecall.AnyID(id)
	return s.events(ctx, c, l)
}

func (s *Service) events(ctx context.Context, c Call, l EventListing) (page rolecall.Page[rolecall.Event], err error) {
	err = s.view(ctx, c, func(tx *store.Tx) (err error) {
		page, err = tx.Events(rolecall.EventQuery{
			Type: rolecall.EventType(l.Type), Actor: l.Actor, Subject: l.Subject, From: l.From, To: l.To, After: l.After, Limit: l.Limit,
		})
		return err
	})
	if err != nil {
		return page, err
	}
	return page, redactEvents(c, page.Items)
}

// redactEvents removes from the events what the caller may not read.
func redactEvents(c Call, events []rolecall.Event) error {
	for i := range events {
		redactOrigin(c, &events[i])
		if err := showValues(c, &events[i]); err != nil {
			return err
		}
	}
	return nil
}

// redactOrigin removes from what somebody else did the address, the session and the API
// token that they used, unless the caller may read all events. Everybody sees these of
// their own acts, and of acts by nobody known, such as a failed sign-in to their account.
func redactOrigin(c Call, e *rolecall.Event) {
	if e.Actor.Type == rolecall.ActorAnonymous || e.Actor.ID == c.User.ID || c.Reach(rolecall.EventsRead).IsEverywhere() {
		return
	}
	e.Source, e.Actor.Token = "", rolecall.APITokenID{}
	if e.Type != rolecall.EventSessionEnded { // which names the session that ended
		e.SessionID = rolecall.SessionID{}
	}
}

// showValues takes out of the event's values what the caller may not read, and notes
// what would show it.
func showValues(c Call, e *rolecall.Event) (err error) {
	if e.Values == nil {
		return nil
	}
	needed, withheld := valueNeeds(c, e), map[string]rolecall.Permission{}
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
func valueNeeds(c Call, e *rolecall.Event) func(member string) (needed rolecall.Permission, held bool) {
	always := func(permission rolecall.Permission, held bool) func(string) (rolecall.Permission, bool) {
		return func(string) (rolecall.Permission, bool) { return permission, held }
	}
	switch e.Subject.Type {
	case rolecall.SubjectUser:
		subject := rolecall.User{ID: rolecall.UserID(e.Subject.ID), Department: e.SubjectDepartment}
		if e.SubjectDeleted && !c.Reach(rolecall.UsersRestore).Includes(subject.Department) {
			return always(rolecall.UsersRestore, false)
		}
		return userValueNeeds(c, &subject)
	case rolecall.SubjectRole:
		return always(rolecall.RolesRead, !c.Reach(rolecall.RolesRead).IsNowhere())
	case rolecall.SubjectServiceAccount:
		return always(rolecall.ServiceAccountsRead, c.Reach(rolecall.ServiceAccountsRead).IsEverywhere())
	}
	return always(rolecall.TenantRead, c.Reach(rolecall.TenantRead).IsEverywhere())
}

// userValueNeeds is valueNeeds of what happened to a user.
func userValueNeeds(c Call, subject *rolecall.User) func(member string) (needed rolecall.Permission, held bool) {
	self, sight := c.IsSelf(subject.ID), c.Sight(subject)
	return func(member string) (rolecall.Permission, bool) {
		m, ok := rolecall.UserMemberNamed(member)
		switch {
		case member == "id":
			return rolecall.Permission{}, true
		case ok:
			return m.Read(), sight.Has(m)
		case assignmentMembers[member]:
			return rolecall.RolesRead, self || c.Reach(rolecall.RolesRead).Includes(subject.Department)
		case member == "token":
			return rolecall.SessionsRead, self || c.Reach(rolecall.SessionsRead).Includes(subject.Department)
		}
		return rolecall.Permission{}, self && member == "passkey"
	}
}

// valuesOf are the values of what changed.
func valuesOf(before, after any) (*rolecall.EventValues, error) {
	was, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(after)
	return &rolecall.EventValues{Before: was, After: is}, err
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

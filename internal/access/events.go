package access

import (
	"encoding/json"

	"github.com/rolecall/rolecall"
)

// AnonymousActor is the actor of requests without a session or token.
var AnonymousActor = rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "http"}

// EventValues returns event values with before and after as JSON objects.
func EventValues(before, after any) (*rolecall.EventValues, error) {
	was, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(after)
	return &rolecall.EventValues{Before: was, After: is}, err
}

// TokenValue is the form of an API token in events and in the stored responses of
// idempotency keys.
type TokenValue struct {
	Token rolecall.APIToken `json:"token"`
}

// SetAssignments sets the changed members of the event, and their values before and after
// the change. The argument before is nil for a new assignment, and after is nil for a
// removed one.
func SetAssignments(event *rolecall.Event, before, after *rolecall.Assignment) (err error) {
	event.Members, event.Values = []string{"roles"}, &rolecall.EventValues{}
	if before != nil {
		if event.Values.Before, err = assignmentValue(before); err != nil {
			return err
		}
	}
	if after != nil {
		event.Values.After, err = assignmentValue(after)
	}
	return err
}

func assignmentValue(a *rolecall.Assignment) ([]byte, error) {
	value := struct {
		RoleID      rolecall.RoleID `json:"roleId"`
		Departments []string        `json:"departments,omitempty"`
		ExpiresAt   *rolecall.Time  `json:"expiresAt,omitempty"`
	}{RoleID: a.Role.ID, Departments: a.Reach.Departments()}
	if a.ExpiresAt != rolecall.Never {
		value.ExpiresAt = &a.ExpiresAt
	}
	return json.Marshal(value)
}

// SetMembership sets the values of an event of a membership. The argument before is nil for a new membership, and after
// is nil for one that has ended.
func SetMembership(event *rolecall.Event, before, after *rolecall.GroupName) (err error) {
	value := func(g *rolecall.GroupName) ([]byte, error) {
		if g == nil {
			return nil, nil
		}
		return json.Marshal(struct {
			ID   rolecall.GroupID `json:"groupId"`
			Name string           `json:"groupName"`
		}{g.ID, g.Name})
	}
	event.Members, event.Values = []string{"groups"}, &rolecall.EventValues{}
	if event.Values.Before, err = value(before); err != nil {
		return err
	}
	event.Values.After, err = value(after)
	return err
}

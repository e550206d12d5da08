// Package audit builds the subjects and values of events. It also has a counter that
// combines many refused requests into few events. It may import the store.
package audit

import (
	"encoding/json"

	"github.com/rolecall/rolecall"
)

// Anonymous is the actor of requests without a session or token.
var Anonymous = rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "http"}

// AboutUser returns the user as the subject of an event.
func AboutUser(id rolecall.UserID) rolecall.Subject {
	return rolecall.Subject{Type: rolecall.SubjectUser, ID: rolecall.AnyID(id)}
}

// AboutRole returns the role as the subject of an event.
func AboutRole(id rolecall.RoleID) rolecall.Subject {
	return rolecall.Subject{Type: rolecall.SubjectRole, ID: rolecall.AnyID(id)}
}

// AboutServiceAccount returns the service account as the subject of an event.
func AboutServiceAccount(id rolecall.ServiceAccountID) rolecall.Subject {
	return rolecall.Subject{Type: rolecall.SubjectServiceAccount, ID: rolecall.AnyID(id)}
}

// AboutHolder returns the user or the service account as the subject of an event.
func AboutHolder(h rolecall.Holder) rolecall.Subject {
	if h.IsAccount {
		return AboutServiceAccount(h.ServiceAccountID())
	}
	return AboutUser(h.UserID())
}

// AboutWebhook returns the webhook with the id as the subject of an event.
func AboutWebhook(id rolecall.WebhookID) rolecall.Subject {
	return rolecall.Subject{Type: rolecall.SubjectWebhook, ID: rolecall.AnyID(id)}
}

// AboutConnection returns the connection with the id as the subject of an event.
func AboutConnection(id rolecall.ConnectionID) rolecall.Subject {
	return rolecall.Subject{Type: rolecall.SubjectConnection, ID: rolecall.AnyID(id)}
}

// AboutTenant returns the tenant as the subject of an event.
func AboutTenant(id rolecall.TenantID) rolecall.Subject {
	return rolecall.Subject{Type: rolecall.SubjectTenant, ID: rolecall.AnyID(id)}
}

// AboutOperatorKey returns the operator key as the subject of an event.
func AboutOperatorKey(id rolecall.OperatorKeyID) rolecall.Subject {
	return rolecall.Subject{Type: rolecall.SubjectOperatorKey, ID: rolecall.AnyID(id)}
}

// Values returns event values with before and after as JSON objects.
func Values(before, after any) (*rolecall.EventValues, error) {
	was, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(after)
	return &rolecall.EventValues{Before: was, After: is}, err
}

// IdentityValue is the form of an identity in events.
type IdentityValue struct {
	Identity rolecall.Identity `json:"identity"`
}

// TokenValue is the form of an API token in events and in the stored responses of
// idempotency keys.
type TokenValue struct {
	Token rolecall.APIToken `json:"token"`
}

// SetAssignments sets the changed members of the event, and their values before and after
// the change. The argument before
// is nil for a new assignment, and after is nil for a removed one.
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

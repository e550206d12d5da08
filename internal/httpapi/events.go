package httpapi

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/wire"
)

// eventFilters are the filters of every list of events.
type eventFilters struct {
	Type  eventTypeValue `query:"type" doc:"Only events of this type, such as user.updated. Later versions may add types."`
	Actor rolecall.AnyID `query:"actor" doc:"Only events that this principal caused."`
	From  rolecall.Time  `query:"from" doc:"Only events at this timestamp or later."`
	To    rolecall.Time  `query:"to" doc:"Only events before this timestamp."`
}

// listing converts the filters to the argument of the service methods.
func (r *eventFilters) listing(subject rolecall.AnyID) directory.EventListing {
	return directory.EventListing{Type: string(r.Type), Actor: r.Actor, Subject: subject, From: r.From, To: r.To}
}

// eventFilterRequest is a request for a page of a list of events.
type eventFilterRequest struct {
	operation.PageRequest
	eventFilters
}

// eventTypeValue is a query parameter with a known type of event.
type eventTypeValue string

// Known returns the known types of events.
func (eventTypeValue) Known() (types []string, otherwise string) {
	for _, d := range rolecall.EventDescriptions() {
		types = append(types, string(d.Type))
	}
	return types, "must be a known type of event, such as user.updated; /docs/events lists all types"
}

// listing converts the filters and the page to the argument of the service methods.
func (r *eventFilterRequest) listing(subject rolecall.AnyID) directory.EventListing {
	l := r.eventFilters.listing(subject)
	l.After, l.Limit = r.After.At, r.Limit.OrDefault()
	return l
}

type listEventsRequest struct {
	eventFilterRequest
	Subject rolecall.AnyID `query:"subject" doc:"Only events about this user, role, service account or tenant."`
}

func (s *Server) listEvents(ctx context.Context, c access.Caller, in *listEventsRequest) (operation.Response[operation.Page[eventBody]], error) {
	page, err := s.directory.Events(ctx, c, in.listing(in.Subject))
	return operation.NewPage(&page, newEventBody), err
}

type listUserEventsRequest struct {
	userPath
	eventFilterRequest
}

func (s *Server) listUserEvents(ctx context.Context, c access.Caller, in *listUserEventsRequest) (operation.Response[operation.Page[eventBody]], error) {
	page, err := s.directory.UserEvents(ctx, c, in.ID, in.listing(rolecall.AnyID{}))
	return operation.NewPage(&page, newEventBody), err
}

// eventBody is an event with the values that the caller may read.
type eventBody struct {
	ID         rolecall.EventID   `json:"id" doc:"ID of the event. IDs are not in the order of commits."`
	Type       rolecall.EventType `json:"type" doc:"Type of the event: one of the values of the query parameter type. Later versions may add values. /docs/events describes each type."`
	OccurredAt rolecall.Time      `json:"occurredAt" doc:"When it happened."`
	Actor      eventActor         `json:"actor" doc:"Who caused the event."`
	Subject    eventSubject       `json:"subject" doc:"What the event is about."`
	Members    []string           `json:"members" doc:"Names of the members that changed."`
	RequestID  optionalText       `json:"requestId" nullable:"true" doc:"ID of the request."`
	SessionID  rolecall.SessionID `json:"sessionId" nullable:"true" doc:"ID of the session of the request. In the event session.ended, ID of the session that ended. In other events, it is also null if another user, service account or operator caused the event, unless the caller may read all events."`
	Source     optionalText       `json:"source" nullable:"true" doc:"IP address of the client. It is also null if another user, service account or operator caused the event, unless the caller may read all events."`
	Reason     optionalText       `json:"reason" nullable:"true" doc:"The reason for the change or for the refusal."`
	Before     jsontext.Value     `json:"before,omitzero" doc:"The changed members before the change. Members that the caller may not read are absent. For an assignment: roleId, departments (absent for the whole tenant) and expiresAt (absent if it does not expire)."`
	After      jsontext.Value     `json:"after,omitzero" doc:"The changed members after the change, as in before."`
}

type eventActor struct {
	Type  rolecall.ActorType  `json:"type" doc:"Kind of principal: user, service_account, operator or anonymous. Later versions may add values."`
	ID    rolecall.UserID     `json:"id" nullable:"true" doc:"ID of the principal. Null for commands and for anonymous callers."`
	Via   string              `json:"via" doc:"How the request came in: http, token, command or mail. Later versions may add values."`
	Token rolecall.APITokenID `json:"tokenId" nullable:"true" doc:"ID of the API token of the request. It is also null if another user, service account or operator caused the event, unless the caller may read all events."`
}

type eventSubject struct {
	Type rolecall.SubjectType `json:"type" doc:"Kind of subject, such as user, role or tenant. Later versions may add values."`
	ID   rolecall.AnyID       `json:"id" doc:"ID of the subject."`
}

func newEventBody(e *rolecall.Event) eventBody {
	body := eventBody{
		ID: e.ID, Type: e.Type, OccurredAt: e.OccurredAt,
		Actor:   eventActor{e.Actor.Type, e.Actor.ID, e.Actor.Via, e.Actor.Token},
		Subject: eventSubject{e.Subject.Type, e.Subject.ID},
		Members: e.Members, RequestID: optionalText(e.RequestID), SessionID: e.SessionID,
		Source: optionalText(e.Source), Reason: optionalText(e.Reason),
	}
	if e.Values != nil {
		body.Before, body.After = e.Values.Before, e.Values.After
	}
	return body
}

// optionalText is a text. If it is empty, its JSON is null.
type optionalText string

// AppendJSON appends the text, or null if it is empty.
func (t optionalText) AppendJSON(b []byte) []byte {
	if t == "" {
		return append(b, "null"...)
	}
	return wire.AppendText(b, t)
}

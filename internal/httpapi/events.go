package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

// eventFilterRequest are the filters of every list of events.
type eventFilterRequest struct {
	pageRequest
	Type  eventTypeValue `query:"type" doc:"Only events of this type, such as user.updated. Later versions add types."`
	Actor rolecall.AnyID `query:"actor" doc:"Only events that this principal caused."`
	From  rolecall.Time  `query:"from" doc:"Only events at this timestamp or later."`
	To    rolecall.Time  `query:"to" doc:"Only events before this timestamp."`
}

// listing returns the list that the filters describe.
func (r *eventFilterRequest) listing(subject rolecall.AnyID) service.EventListing {
	return service.EventListing{
		Type: string(r.Type), Actor: r.Actor, Subject: subject, From: r.From, To: r.To,
		After: r.After.after, Limit: r.Limit.orDefault(),
	}
}

type listEventsRequest struct {
	eventFilterRequest
	Subject rolecall.AnyID `query:"subject" doc:"Only events about this user, role, service account or tenant."`
}

func (s *Server) listEvents(ctx context.Context, c service.Call, in *listEventsRequest) (Response[pageBody[eventBody]], error) {
	page, err := s.service.Events(ctx, c, in.listing(in.Subject))
	return newPage(&page, newEventBody), err
}

type listUserEventsRequest struct {
	userPath
	eventFilterRequest
}

func (s *Server) listUserEvents(ctx context.Context, c service.Call, in *listUserEventsRequest) (Response[pageBody[eventBody]], error) {
	page, err := s.service.UserEvents(ctx, c, in.ID, in.listing(rolecall.AnyID{}))
	return newPage(&page, newEventBody), err
}

// eventBody is an event with its values as far as the caller may read them.
type eventBody struct{ event *rolecall.Event }

func newEventBody(e *rolecall.Event) eventBody { return eventBody{e} }

// AppendJSON appends the event.
func (b eventBody) AppendJSON(out []byte) []byte { return appendEvent(out, b.event) }

// appendEvent appends the event with its values as far as they may be shown.
func appendEvent(b []byte, e *rolecall.Event) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, e.ID)
	b = append(b, `,"type":`...)
	b = appendText(b, e.Type)
	b = append(b, `,"occurredAt":`...)
	b = appendTime(b, e.OccurredAt)
	b = append(b, `,"actor":{"type":`...)
	b = appendText(b, e.Actor.Type)
	b = append(b, `,"id":`...)
	b = appendIDOrNull(b, e.Actor.ID)
	b = append(b, `,"via":`...)
	b = appendText(b, e.Actor.Via)
	b = append(b, `,"tokenId":`...)
	b = appendIDOrNull(b, e.Actor.Token)
	b = append(b, `},"subject":{"type":`...)
	b = appendText(b, e.Subject.Type)
	b = append(b, `,"id":`...)
	b = appendID(b, e.Subject.ID)
	b = append(b, `},"members":`...)
	b = appendList(b, e.Members, appendTextItem)
	b = append(b, `,"requestId":`...)
	b = appendNonEmpty(b, e.RequestID)
	b = append(b, `,"sessionId":`...)
	b = appendIDOrNull(b, e.SessionID)
	b = append(b, `,"source":`...)
	b = appendNonEmpty(b, e.Source)
	b = append(b, `,"reason":`...)
	b = appendNonEmpty(b, e.Reason)
	if e.Values != nil {
		b = appendValue(b, `,"before":`, e.Values.Before)
		b = appendValue(b, `,"after":`, e.Values.After)
	}
	return append(b, '}')
}

// appendValue appends a JSON object under its name, nothing if there is none.
func appendValue(b []byte, name string, object []byte) []byte {
	if object == nil {
		return b
	}
	return append(append(b, name...), object...)
}

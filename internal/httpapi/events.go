package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

func listEvents(x *exchange) error {
	page, err := x.server.service.Events(x.ctx, x.call, x.eventListing())
	return x.eventPage(&page, err)
}

func listUserEvents(x *exchange) error {
	page, err := x.server.service.UserEvents(x.ctx, x.call, x.in.user, x.eventListing())
	return x.eventPage(&page, err)
}

func (x *exchange) eventListing() service.EventListing {
	in := &x.in
	return service.EventListing{
		Type: in.eventType, Actor: in.actor, Subject: in.subject, From: in.from, To: in.to, After: in.after, Limit: in.limit,
	}
}

func (x *exchange) eventPage(page *rolecall.Page[rolecall.Event], err error) error {
	if err != nil {
		return err
	}
	x.out = append(appendPage(x, x.out, page, appendEvent), '}')
	return x.json(http.StatusOK)
}

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

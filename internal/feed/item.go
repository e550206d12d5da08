package feed

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/wire"
)

// Item is an event as a CloudEvent.
type Item struct {
	SpecVersion string             `json:"specversion" doc:"1.0, the version of CloudEvents."`
	ID          rolecall.EventID   `json:"id" doc:"ID of the event, as in GET /events."`
	Source      string             `json:"source" doc:"The public URL of the service, and the tenant. Together with id, it identifies the event everywhere."`
	Type        rolecall.EventType `json:"type" doc:"Type of the event, as in GET /events. Later versions may add values."`
	Time        rolecall.Time      `json:"time" doc:"When it happened. Times can be out of order."`
	Subject     string             `json:"subject" doc:"Kind of subject and its ID, such as user/019d83e6-1ef1-7004-a1b2-3c4d5e6f7a44."`
	ContentType string             `json:"datacontenttype" doc:"application/json, the format of data."`
	Data        ItemData           `json:"data" doc:"The change."`
}

// ItemData is the content of an item.
type ItemData struct {
	Tenant    string            `json:"tenant" doc:"Name of the tenant."`
	Subject   ItemSubject       `json:"subject" doc:"What the event is about."`
	Members   []string          `json:"members" doc:"Names of the members that changed."`
	Actor     ItemActor         `json:"actor" doc:"Who caused the event."`
	RequestID wire.OptionalText `json:"requestId" nullable:"true" doc:"ID of the request."`
	Reason    wire.OptionalText `json:"reason" nullable:"true" doc:"The reason for the change or for the refusal."`
	ExpiresAt rolecall.Time     `json:"expiresAt" nullable:"true" doc:"When the assigned role expires. No event follows when it expires. It is null if it does not expire, in other events, and if the caller may not read assignments."`
	Before    jsontext.Value    `json:"before,omitzero" doc:"The changed members before the change, as in GET /events."`
	After     jsontext.Value    `json:"after,omitzero" doc:"The changed members after the change, as in GET /events."`
}

// ItemSubject is what an event is about.
type ItemSubject struct {
	Type rolecall.SubjectType `json:"type" doc:"Kind of subject, such as user, role or tenant. Later versions may add values."`
	ID   rolecall.AnyID       `json:"id" doc:"ID of the subject."`
}

// ItemActor is who caused an event.
type ItemActor struct {
	Type  rolecall.ActorType  `json:"type" doc:"Kind of principal: user, service_account, operator, anonymous or directory. Later versions may add values."`
	ID    rolecall.UserID     `json:"id" nullable:"true" doc:"ID of the principal. Null for commands and for anonymous callers."`
	Via   string              `json:"via" doc:"How the request came in: http, token, command, mail or scim. Later versions may add values."`
	Token rolecall.APITokenID `json:"tokenId" nullable:"true" doc:"ID of the API token of the request."`
}

// SourceOf returns the source of the items of a tenant. The argument public is the public URL of the
// service without a trailing slash.
func SourceOf(public, tenant string) string { return public + "/tenants/" + tenant }

// SourceOfOperators returns the source of items that belong to no tenant.
func SourceOfOperators(public string) string { return public + "/operators" }

// NewItem returns the item of an event. The event has only values that the reader may read.
func NewItem(e *rolecall.Event, source, tenant string) Item {
	item := Item{
		SpecVersion: "1.0", ID: e.ID, Source: source, Type: e.Type, Time: e.OccurredAt, ContentType: "application/json",
		Subject: string(e.Subject.Type) + "/" + e.Subject.ID.String(),
		Data: ItemData{
			Tenant: tenant, Subject: ItemSubject(e.Subject), Members: e.Members, Actor: ItemActor(e.Actor),
			RequestID: wire.OptionalText(e.RequestID), Reason: wire.OptionalText(e.Reason),
		},
	}
	if e.Values != nil {
		item.Data.Before, item.Data.After = e.Values.Before, e.Values.After
		if e.Type == rolecall.EventRoleAssigned {
			item.Data.ExpiresAt = expiryIn(e.Values.After)
		}
	}
	return item
}

// expiryIn returns the expiresAt of an assignment in JSON, or zero if it has none.
func expiryIn(assignment []byte) rolecall.Time {
	var expiry struct {
		ExpiresAt rolecall.Time `json:"expiresAt"`
	}
	if len(assignment) == 0 || json.Unmarshal(assignment, &expiry) != nil {
		return 0
	}
	return expiry.ExpiresAt
}

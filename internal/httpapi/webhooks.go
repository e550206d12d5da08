package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/webhooks"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) webhookOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/webhooks", ID: "WebhooksController_listWebhooks", Summary: "List webhooks",
			Description: "Lists the webhooks of the tenant, the oldest first.",
			Policy:      authz.ReadWebhooks,
			Answers:     operation.Answers{{http.StatusOK, "A page of webhooks.", []string{"Link"}}},
			Handler:     operation.JSON(s.listWebhooks),
		},
		{
			Method: http.MethodPost, Path: "/webhooks", ID: "WebhooksController_createWebhook", Summary: "Create a webhook",
			Description: "Creates a webhook, which sends the items of GET /changes to a URL. The first item is the event webhook.created about it. Each request has the headers of Standard Webhooks, with a signature. The secret is returned only once. A tenant can have 20 webhooks.",
			Policy:      authz.CreateWebhook,
			Answers:     operation.Answers{{http.StatusCreated, "The new webhook with its secret.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrSessionRequired, rolecall.ErrBeyondOwnPermissions, rolecall.ErrTooManyWebhooks},
			Handler:     operation.JSON(s.createWebhook),
		},
		{
			Method: http.MethodGet, Path: "/webhooks/{id}", ID: "WebhooksController_getWebhook", Summary: "Get a webhook",
			Description: "Returns the webhook, without its secret.",
			Policy:      authz.ReadWebhooks,
			Answers:     operation.Answers{{http.StatusOK, "The webhook.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getWebhook),
		},
		{
			Method: http.MethodPatch, Path: "/webhooks/{id}", ID: "WebhooksController_updateWebhook", Summary: "Update a webhook",
			Description: "Changes the members that are in the body. Items that could not be delivered are sent again at once. A webhook that is enabled again continues with the first item that was not delivered.",
			Policy:      authz.UpdateWebhook,
			Answers:     operation.Answers{{http.StatusOK, "The changed webhook.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrSessionRequired, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(s.updateWebhook),
		},
		{
			Method: http.MethodDelete, Path: "/webhooks/{id}", ID: "WebhooksController_deleteWebhook", Summary: "Delete a webhook",
			Description: "Deletes the webhook with its deliveries.",
			Policy:      authz.DeleteWebhook,
			Answers:     operation.Answers{{http.StatusNoContent, "The webhook was deleted.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.deleteWebhook),
		},
		{
			Method: http.MethodPost, Path: "/webhooks/{id}/rotate-secret", ID: "WebhooksController_rotateSecret", Summary: "Rotate the secret of a webhook",
			Description: "Gives the webhook a new secret, which is returned only once. For 24 hours, each request has two signatures: one with the new and one with the old secret.",
			Policy:      authz.UpdateWebhook,
			Answers:     operation.Answers{{http.StatusOK, "The webhook with its new secret.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrSessionRequired, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(s.rotateSecret),
		},
		{
			Method: http.MethodPost, Path: "/webhooks/{id}/test", ID: "WebhooksController_testWebhook", Summary: "Test a webhook",
			Description: "Sends one item of the type webhook.test, also if the webhook is disabled. The result is in the list of deliveries. A failed test is not repeated.",
			Policy:      authz.OperateWebhook,
			Answers:     operation.Answers{{http.StatusOK, "The test will be sent.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.testWebhook),
		},
		{
			Method: http.MethodPost, Path: "/webhooks/{id}/replay", ID: "WebhooksController_replayWebhook", Summary: "Send earlier items of a webhook again",
			Description: "Sends the items of a time again, as far as their events are kept. The items have the same IDs as before, and the values that the service account may read now. New items are sent at the same time. A replay ends an earlier one.",
			Policy:      authz.OperateWebhook,
			Answers:     operation.Answers{{http.StatusNoContent, "The items will be sent.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.replayWebhook),
		},
		{
			Method: http.MethodPost, Path: "/webhooks/{id}/skip", ID: "WebhooksController_skipItems", Summary: "Skip items of a webhook",
			Description: "Continues after the items that fail: of each part of the webhook, the first item that could not be delivered is not sent again. With all, no item of an event until now is sent, and a replay ends.",
			Policy:      authz.OperateWebhook,
			Answers:     operation.Answers{{http.StatusNoContent, "The items will not be sent.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.skipItems),
		},
		{
			Method: http.MethodGet, Path: "/webhooks/{id}/deliveries", ID: "WebhooksController_listDeliveries", Summary: "List the deliveries of a webhook",
			Description: "Lists the attempts to send items, the newest first. The subject of an event decides to which of four parts its item belongs. Of each part, of its replays, and of the tests, the last 128 attempts are kept, without the content of requests and responses.",
			Policy:      authz.ReadWebhooks,
			Answers:     operation.Answers{{http.StatusOK, "A page of attempts.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.listDeliveries),
		},
	}
}

// Types of package rolecall in the OpenAPI document.
var (
	_ = operation.PathID[rolecall.WebhookID]("ID of the webhook.", "019d83e6-1ef1-7005-8d3c-6b5a4f3e2d1c")
	_ = operation.Component[rolecall.WebhookDraft]("CreateWebhook", "A new webhook.")
	_ = operation.Component[rolecall.WebhookPatch]("UpdateWebhook", "A merge patch (RFC 7396). Absent members do not change.")
	_ = operation.ComponentOrID[rolecall.Webhook]("Webhook", "A webhook without its secret. Callers without webhooks:read get the ID only.")
)

type listWebhooksRequest struct{ operation.PageRequest }

func (s *Server) listWebhooks(ctx context.Context, c access.Caller, in *listWebhooksRequest) (operation.Response[operation.Page[webhookBody]], error) {
	page, err := s.webhooks.Webhooks(ctx, c, in.After.At, in.Limit.OrDefault())
	return operation.NewPage(&page, func(w *rolecall.Webhook) webhookBody { return webhookBody{w, true} }), err
}

type createWebhookRequest struct {
	operation.IdempotencyHeader
	Body rolecall.WebhookDraft
}

func (s *Server) createWebhook(ctx context.Context, c access.Caller, in *createWebhookRequest) (operation.Response[newWebhookBody], error) {
	created, err := s.webhooks.CreateWebhook(ctx, c, in.Key, in.Body)
	response := newWebhookResponse(c, &created.Value)
	response.Location, response.Replayed = "/webhooks/"+created.Value.ID.String(), created.Replayed
	return response, err
}

func (s *Server) getWebhook(ctx context.Context, c access.Caller, in *getRequest[rolecall.Webhook]) (operation.Response[webhookBody], error) {
	w, err := s.webhooks.Webhook(ctx, c, in.ID)
	return operation.Response[webhookBody]{Body: webhookBody{&w, true}}, err
}

type updateWebhookRequest struct {
	idPath[rolecall.Webhook]
	operation.IfMatchHeader
	Body rolecall.WebhookPatch
}

func (s *Server) updateWebhook(ctx context.Context, c access.Caller, in *updateWebhookRequest) (operation.Response[webhookBody], error) {
	w, err := s.webhooks.UpdateWebhook(ctx, c, in.ID, in.Body, match(in.IfMatch, webhookTag(c)))
	return operation.Response[webhookBody]{Body: webhookBody{&w, readsWebhooks(c)}}, err
}

func (s *Server) deleteWebhook(ctx context.Context, c access.Caller, in *deleteRequest[rolecall.Webhook]) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.webhooks.DeleteWebhook(ctx, c, in.ID, match(in.IfMatch, webhookTag(c)))
}

type rotateSecretRequest struct {
	idPath[rolecall.Webhook]
	operation.IfMatchHeader
}

func (s *Server) rotateSecret(ctx context.Context, c access.Caller, in *rotateSecretRequest) (operation.Response[newWebhookBody], error) {
	w, err := s.webhooks.RotateSecret(ctx, c, in.ID, match(in.IfMatch, webhookTag(c)))
	return newWebhookResponse(c, &w), err
}

type webhookRequest struct{ idPath[rolecall.Webhook] }

func (s *Server) testWebhook(ctx context.Context, c access.Caller, in *webhookRequest) (operation.Response[webhookTest], error) {
	item, err := s.webhooks.TestWebhook(ctx, c, in.ID)
	return operation.Response[webhookTest]{Body: webhookTest{item}}, err
}

// webhookTest is a test that will be sent.
type webhookTest struct {
	ItemID rolecall.EventID `json:"itemId" doc:"ID of the item of the test."`
}

var _ = operation.Component[webhookTest]("WebhookTestItem", "A test that will be sent.")

type replayWebhookRequest struct {
	idPath[rolecall.Webhook]
	Body replayBody
}

type replayBody struct {
	From rolecall.Time `json:"from" required:"true" doc:"Send items of events at this time or later."`
	To   rolecall.Time `json:"to" required:"true" doc:"Send items of events before this time."`
}

var _ = operation.Component[replayBody]("Replay", "The time whose items are sent again.")

func (s *Server) replayWebhook(ctx context.Context, c access.Caller, in *replayWebhookRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.webhooks.ReplayWebhook(ctx, c, in.ID, webhooks.Replay(in.Body))
}

type skipItemsRequest struct {
	idPath[rolecall.Webhook]
	Body skipBody `optional:"true"`
}

type skipBody struct {
	All rolecall.Optional[bool] `json:"all" doc:"Whether to skip all items of events until now. The default is false."`
}

var _ = operation.Component[skipBody]("SkipItems", "Which items are skipped.")

func (s *Server) skipItems(ctx context.Context, c access.Caller, in *skipItemsRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.webhooks.SkipItems(ctx, c, in.ID, in.Body.All.Value)
}

type listDeliveriesRequest struct {
	idPath[rolecall.Webhook]
	operation.PageRequest
	Result string `query:"result" enum:"delivered,failed" doc:"Only attempts with this result."`
}

func (s *Server) listDeliveries(ctx context.Context, c access.Caller, in *listDeliveriesRequest) (operation.Response[operation.Page[webhookDelivery]], error) {
	page, err := s.webhooks.Deliveries(ctx, c, rolecall.WebhookDeliveryQuery{Webhook: in.ID, Result: in.Result, After: in.After.At, Limit: in.Limit.OrDefault()})
	return operation.NewPage(&page, newWebhookDelivery), err
}

// webhookDelivery is an attempt to send an item.
type webhookDelivery struct {
	ID         rolecall.WebhookDeliveryID `json:"id" doc:"ID of the attempt."`
	ItemID     rolecall.EventID           `json:"itemId" doc:"ID of the item: the header webhook-id, and the ID of the event."`
	Type       rolecall.EventType         `json:"type" doc:"Type of the event, or webhook.test. Later versions may add values."`
	Attempt    int                        `json:"attempt" doc:"The number of the attempt for this item, beginning with 1."`
	At         rolecall.Time              `json:"at" doc:"When the attempt ended, to the millisecond."`
	Delivered  bool                       `json:"delivered" doc:"Whether the endpoint answered with a status from 200 to 299."`
	Status     *int                       `json:"status" nullable:"true" doc:"The status of the answer. Null without an answer."`
	DurationMS int64                      `json:"durationMs" doc:"How long the attempt took, in milliseconds."`
	Error      optionalText               `json:"error" nullable:"true" doc:"Why the attempt failed: status, redirect, timeout, address-refused, name-unresolved, tls, connection, permission-denied (the service account lacks changes:read), service-account-suspended or secret-unreadable. Null if it was delivered. Later versions may add values."`
}

var _ = operation.Component[webhookDelivery]("WebhookDelivery", "An attempt to send an item.")
var _ = operation.Component[operation.Page[webhookDelivery]]("WebhookDeliveryPage", "A page of attempts.")

func newWebhookDelivery(d *rolecall.WebhookDelivery) webhookDelivery {
	body := webhookDelivery{
		ID: d.ID, ItemID: d.Item, Type: d.Type, Attempt: d.Attempt, At: d.ID.CreatedAt(), Delivered: d.Error == "",
		DurationMS: d.Duration.Milliseconds(), Error: optionalText(d.Error),
	}
	if d.Status != 0 {
		body.Status = &d.Status
	}
	return body
}

// readsWebhooks reports whether the caller may read webhooks. Other callers get only the ids.
func readsWebhooks(c access.Caller) bool {
	return c.Principal != nil && c.Reach(rolecall.WebhooksRead).IsEverywhere()
}

const webhookMembers = "url, types, serviceAccountId, ignoreActors, enabled, disabledReason, createdAt, updatedAt"

var (
	webhookEncoder    = wire.NewEncoder[rolecall.Webhook]()
	webhookID0        = webhookEncoder.Fields("id")
	newWebhookEncoder = wire.NewEncoder[shownNewWebhook]()
	newWebhookID0     = newWebhookEncoder.Fields("id", "secret", "secretWithheld")
)

// webhookBody is a webhook without its secret. If the caller may not read the webhook, its JSON has
// only the id.
type webhookBody struct {
	webhook  *rolecall.Webhook
	readable bool
}

var _ = operation.Component[operation.Page[webhookBody]]("WebhookPage", "A page of webhooks.")
var _ = operation.SameSchema[webhookBody, rolecall.Webhook]()

// AppendJSON appends the members that the caller may read.
func (b webhookBody) AppendJSON(out []byte) []byte {
	if !b.readable {
		return webhookEncoder.AppendFields(out, b.webhook, webhookID0)
	}
	return webhookEncoder.Append(out, b.webhook)
}

// HiddenMembers returns the members that the caller may not read.
func (b webhookBody) HiddenMembers() string {
	if b.readable {
		return ""
	}
	return webhookMembers
}

// HasTag reports whether the response has an ETag.
func (b webhookBody) HasTag() bool { return b.readable }

// webhookTag returns a function that computes the ETag of a webhook from the members that the caller
// may read.
func webhookTag(c access.Caller) func(*rolecall.Webhook) string {
	readable := readsWebhooks(c)
	return func(w *rolecall.Webhook) string { return secret.ETag(webhookBody{w, readable}.AppendJSON(nil)) }
}

// shownNewWebhook is a webhook with its secret. Only the first response has the secret. The response to
// a repeated request has secretWithheld instead.
type shownNewWebhook struct {
	rolecall.Webhook
	SecretWithheld bool   `json:"secretWithheld,omitzero" doc:"True if the request was a repeat, and the secret is therefore not shown again. Absent otherwise."`
	Secret         string `json:"secret,omitzero" doc:"The secret that signs the requests, in the form whsec_ and Base64."`
}

var _ = operation.ComponentOrID[shownNewWebhook]("CreatedWebhook", "A webhook with its secret. The secret is returned only once: the answer to a repeated request has secretWithheld instead. Callers without webhooks:read get the ID and the secret only.")

// newWebhookBody is a shownNewWebhook. If the caller may not read the webhook, its JSON has only the id
// and the secret.
type newWebhookBody struct {
	webhook  *shownNewWebhook
	readable bool
}

var _ = operation.SameSchema[newWebhookBody, shownNewWebhook]()

func newWebhookResponse(c access.Caller, w *webhooks.Webhook) operation.Response[newWebhookBody] {
	shown := &shownNewWebhook{w.Webhook, w.Secret == "", w.Secret}
	body := newWebhookBody{shown, readsWebhooks(c) && w.CreatedAt != 0}
	response := operation.Response[newWebhookBody]{Body: body}
	if body.readable {
		response.Tag = webhookTag(c)(&shown.Webhook)
	}
	return response
}

// AppendJSON appends the members that the caller may read.
func (b newWebhookBody) AppendJSON(out []byte) []byte {
	if !b.readable {
		return newWebhookEncoder.AppendFields(out, b.webhook, newWebhookID0)
	}
	return newWebhookEncoder.Append(out, b.webhook)
}

// HiddenMembers returns the members that the caller may not read.
func (b newWebhookBody) HiddenMembers() string {
	if b.readable {
		return ""
	}
	return webhookMembers
}

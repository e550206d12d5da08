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

func (s *Server) operatorWebhookOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/operator/webhooks", ID: "OperatorController_listWebhooks", Summary: "List the webhooks of operators",
			Description: "Lists the webhooks of the operators of the instance, the oldest first.",
			Policy:      authz.ReadOperatorWebhooks,
			Answers:     operation.Answers{{http.StatusOK, "A page of webhooks.", []string{"Link"}}},
			Handler:     operation.JSON(s.listOperatorWebhooks),
		},
		{
			Method: http.MethodPost, Path: "/operator/webhooks", ID: "OperatorController_createWebhook", Summary: "Create a webhook of operators",
			Description: "Creates a webhook, which sends the items of GET /operator/changes, those of all tenants with all values, to a URL. Each request has the headers of Standard Webhooks, with a signature. The secret is returned only once. The webhook does not depend on the key that created it. The instance can have 20 webhooks of operators.",
			Policy:      authz.CreateOperatorWebhook,
			Answers:     operation.Answers{{http.StatusCreated, "The new webhook with its secret.", []string{"Location", "ETag", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrPermissionDenied, rolecall.ErrTooManyWebhooks},
			Handler:     operation.JSON(s.createOperatorWebhook),
		},
		{
			Method: http.MethodGet, Path: "/operator/webhooks/{id}", ID: "OperatorController_getWebhook", Summary: "Get a webhook of operators",
			Description: "Returns the webhook, without its secret.",
			Policy:      authz.ReadOperatorWebhooks,
			Answers:     operation.Answers{{http.StatusOK, "The webhook.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getOperatorWebhook),
		},
		{
			Method: http.MethodPatch, Path: "/operator/webhooks/{id}", ID: "OperatorController_updateWebhook", Summary: "Update a webhook of operators",
			Description: "Changes the members that are in the body. Items that could not be delivered are sent again at once. A webhook that is enabled again continues with the first item that was not delivered.",
			Policy:      authz.UpdateOperatorWebhook,
			Answers:     operation.Answers{{http.StatusOK, "The changed webhook.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.updateOperatorWebhook),
		},
		{
			Method: http.MethodDelete, Path: "/operator/webhooks/{id}", ID: "OperatorController_deleteWebhook", Summary: "Delete a webhook of operators",
			Description: "Deletes the webhook with its deliveries.",
			Policy:      authz.DeleteOperatorWebhook,
			Answers:     operation.Answers{{http.StatusNoContent, "The webhook was deleted.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.deleteOperatorWebhook),
		},
		{
			Method: http.MethodPost, Path: "/operator/webhooks/{id}/rotate-secret", ID: "OperatorController_rotateSecret", Summary: "Rotate the secret of a webhook of operators",
			Description: "Gives the webhook a new secret, which is returned only once. For 24 hours, each request has two signatures: one with the new and one with the old secret.",
			Policy:      authz.UpdateOperatorWebhook,
			Answers:     operation.Answers{{http.StatusOK, "The webhook with its new secret.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.rotateOperatorSecret),
		},
		{
			Method: http.MethodPost, Path: "/operator/webhooks/{id}/test", ID: "OperatorController_testWebhook", Summary: "Test a webhook of operators",
			Description: "Sends one item of the type webhook.test, also if the webhook is disabled. Its tenant is an empty text. The result is in the list of deliveries. A failed test is not repeated.",
			Policy:      authz.OperateOperatorWebhook,
			Answers:     operation.Answers{{http.StatusOK, "The test will be sent.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.testOperatorWebhook),
		},
		{
			Method: http.MethodPost, Path: "/operator/webhooks/{id}/replay", ID: "OperatorController_replayWebhook", Summary: "Send earlier items of a webhook of operators again",
			Description: "Sends the items of a time again, as far as their events are kept and no event after them was deleted. The items have the same IDs as before. New items are sent at the same time. A replay ends an earlier one.",
			Policy:      authz.OperateOperatorWebhook,
			Answers:     operation.Answers{{http.StatusNoContent, "The items will be sent.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.replayOperatorWebhook),
		},
		{
			Method: http.MethodPost, Path: "/operator/webhooks/{id}/skip", ID: "OperatorController_skipItems", Summary: "Skip items of a webhook of operators",
			Description: "Continues after the items that fail: of each part of the webhook, the first item that could not be delivered is not sent again. With all, no item of an event that is in the change feed of all tenants now is sent, and a replay ends.",
			Policy:      authz.OperateOperatorWebhook,
			Answers:     operation.Answers{{http.StatusNoContent, "The items will not be sent.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.skipOperatorItems),
		},
		{
			Method: http.MethodGet, Path: "/operator/webhooks/{id}/deliveries", ID: "OperatorController_listDeliveries", Summary: "List the deliveries of a webhook of operators",
			Description: "Lists the attempts to send items, the newest first, as GET /webhooks/{id}/deliveries does for a webhook of a tenant.",
			Policy:      authz.ReadOperatorWebhooks,
			Answers:     operation.Answers{{http.StatusOK, "A page of attempts.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.listOperatorDeliveries),
		},
	}
}

// operatorWebhookDraft describes a webhook of operators to create.
type operatorWebhookDraft struct {
	URL          string                  `json:"url" required:"true" minLength:"1" maxLength:"2048" pattern:"^[Hh][Tt][Tt][Pp][Ss]://[!\"$-\\[\\]-~]+$" doc:"Where to send the items. It must begin with https:// and have a host on the internet, or in a network of --operator-webhook-networks."`
	Types        []rolecall.EventType    `json:"types" minItems:"1" maxItems:"100" pattern:"^([a-z_]+\\.[a-z_]+|\\*)$" doc:"The types of events to send, such as user.updated, or only * for all types, the default. /docs/events lists all types."`
	IgnoreActors []rolecall.AnyID        `json:"ignoreActors" maxItems:"100" doc:"Do not send events that these users, service accounts or operator keys caused. Empty for no exceptions."`
	Enabled      rolecall.Optional[bool] `json:"enabled" doc:"Whether to send items. The default is true."`
}

var _ = operation.Component[operatorWebhookDraft]("CreateOperatorWebhook", "A new webhook of operators.")

func (d *operatorWebhookDraft) draft() rolecall.WebhookDraft {
	return rolecall.WebhookDraft{URL: d.URL, Types: d.Types, IgnoreActors: d.IgnoreActors, Enabled: d.Enabled}
}

// Check returns the field errors of the draft.
func (d *operatorWebhookDraft) Check() rolecall.FieldErrors {
	draft := d.draft()
	return draft.Check()
}

// operatorWebhookPatch changes a webhook of operators.
type operatorWebhookPatch struct {
	URL          rolecall.Optional[string]               `json:"url" minLength:"1" maxLength:"2048" pattern:"^[Hh][Tt][Tt][Pp][Ss]://[!\"$-\\[\\]-~]+$" doc:"Where to send the items. It must begin with https:// and have a host on the internet, or in a network of --operator-webhook-networks."`
	Types        rolecall.Optional[[]rolecall.EventType] `json:"types" minItems:"1" maxItems:"100" pattern:"^([a-z_]+\\.[a-z_]+|\\*)$" doc:"The types of events to send, or only * for all types."`
	IgnoreActors rolecall.Optional[[]rolecall.AnyID]     `json:"ignoreActors" maxItems:"100" doc:"Do not send events that these users, service accounts or operator keys caused. Empty for no exceptions."`
	Enabled      rolecall.Optional[bool]                 `json:"enabled" doc:"Whether to send items. A webhook that is enabled again continues with the first item that was not delivered."`
}

var _ = operation.Component[operatorWebhookPatch]("UpdateOperatorWebhook", "A merge patch (RFC 7396). Absent members do not change.")

func (p *operatorWebhookPatch) patch() rolecall.WebhookPatch {
	return rolecall.WebhookPatch{URL: p.URL, Types: p.Types, IgnoreActors: p.IgnoreActors, Enabled: p.Enabled}
}

// Check returns the field errors of the patch.
func (p *operatorWebhookPatch) Check() rolecall.FieldErrors {
	patch := p.patch()
	return patch.Check()
}

// operatorWebhook is a webhook of operators without its secret.
type operatorWebhook struct {
	ID             rolecall.WebhookID   `json:"id" doc:"ID of the webhook."`
	URL            string               `json:"url" doc:"Where the items are sent. It begins with https://."`
	Types          []rolecall.EventType `json:"types" doc:"The types of events that are sent, or only * for all types."`
	IgnoreActors   []rolecall.AnyID     `json:"ignoreActors" doc:"Events that these users, service accounts or operator keys caused are not sent."`
	Enabled        bool                 `json:"enabled" doc:"Whether items are sent."`
	DisabledReason *string              `json:"disabledReason" doc:"Why Rolecall disabled the webhook: status-410 (the answer of the endpoint) or failing (an item has failed for three days). Null otherwise. Later versions may add values."`
	CreatedAt      rolecall.Time        `json:"createdAt" doc:"When the webhook was created."`
	UpdatedAt      rolecall.Time        `json:"updatedAt" doc:"When the webhook was changed last."`
}

var _ = operation.Component[operatorWebhook]("OperatorWebhook", "A webhook of operators without its secret.")
var _ = operation.Component[operation.Page[operatorWebhook]]("OperatorWebhookPage", "A page of webhooks of operators.")

// HasTag reports that the response has an ETag.
func (operatorWebhook) HasTag() bool { return true }

// newOperatorWebhook is a webhook of operators with its secret. Only the first response has the secret.
type newOperatorWebhook struct {
	operatorWebhook
	SecretWithheld bool   `json:"secretWithheld,omitzero" doc:"True if the request was a repeat, and the secret is therefore not shown again. Absent otherwise."`
	Secret         string `json:"secret,omitzero" doc:"The secret that signs the requests, in the form whsec_ and Base64."`
}

var _ = operation.Component[newOperatorWebhook]("CreatedOperatorWebhook", "A webhook of operators with its secret. The secret is returned only once: the answer to a repeated request has secretWithheld instead.")

// HasTag reports that the response has not the ETag of this body, but that of the webhook without its secret.
func (newOperatorWebhook) HasTag() bool { return false }

func newOperatorWebhookBody(w *rolecall.Webhook) operatorWebhook {
	return operatorWebhook{w.ID, w.URL, w.Types, w.IgnoreActors, w.Enabled, w.DisabledReason, w.CreatedAt, w.UpdatedAt}
}

var operatorWebhookEncoder = wire.NewEncoder[operatorWebhook]()

// operatorWebhookTag returns the ETag of a webhook of operators.
func operatorWebhookTag(w *rolecall.Webhook) string {
	body := newOperatorWebhookBody(w)
	return secret.ETag(operatorWebhookEncoder.Append(nil, &body))
}

func newOperatorWebhookResponse(w *webhooks.Webhook) operation.Response[newOperatorWebhook] {
	return operation.Response[newOperatorWebhook]{
		Body: newOperatorWebhook{newOperatorWebhookBody(&w.Webhook), w.Secret == "", w.Secret}, Tag: operatorWebhookTag(&w.Webhook),
	}
}

func (s *Server) listOperatorWebhooks(ctx context.Context, c access.Caller, in *listWebhooksRequest) (operation.Response[operation.Page[operatorWebhook]], error) {
	page, err := s.webhooks.Webhooks(ctx, webhooks.ForOperators(c), in.After.At, in.Limit.OrDefault())
	return operation.NewPage(&page, newOperatorWebhookBody), err
}

type createOperatorWebhookRequest struct {
	operation.IdempotencyHeader
	Body operatorWebhookDraft
}

func (s *Server) createOperatorWebhook(ctx context.Context, c access.Caller, in *createOperatorWebhookRequest) (operation.Response[newOperatorWebhook], error) {
	c = webhooks.ForOperators(c)
	created, err := s.webhooks.CreateWebhook(ctx, c, in.Key, in.Body.draft())
	response := newOperatorWebhookResponse(&created.Value)
	response.Location, response.Replayed = "/operator/webhooks/"+created.Value.ID.String(), created.Replayed
	return response, err
}

func (s *Server) getOperatorWebhook(ctx context.Context, c access.Caller, in *getRequest[rolecall.Webhook]) (operation.Response[operatorWebhook], error) {
	w, err := s.webhooks.Webhook(ctx, webhooks.ForOperators(c), in.ID)
	return operation.Response[operatorWebhook]{Body: newOperatorWebhookBody(&w)}, err
}

type updateOperatorWebhookRequest struct {
	idPath[rolecall.Webhook]
	operation.IfMatchHeader
	Body operatorWebhookPatch
}

func (s *Server) updateOperatorWebhook(ctx context.Context, c access.Caller, in *updateOperatorWebhookRequest) (operation.Response[operatorWebhook], error) {
	w, err := s.webhooks.UpdateWebhook(ctx, webhooks.ForOperators(c), in.ID, in.Body.patch(), match(in.IfMatch, operatorWebhookTag))
	return operation.Response[operatorWebhook]{Body: newOperatorWebhookBody(&w)}, err
}

func (s *Server) deleteOperatorWebhook(ctx context.Context, c access.Caller, in *deleteRequest[rolecall.Webhook]) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.webhooks.DeleteWebhook(ctx, webhooks.ForOperators(c), in.ID, match(in.IfMatch, operatorWebhookTag))
}

func (s *Server) rotateOperatorSecret(ctx context.Context, c access.Caller, in *rotateSecretRequest) (operation.Response[newOperatorWebhook], error) {
	w, err := s.webhooks.RotateSecret(ctx, webhooks.ForOperators(c), in.ID, match(in.IfMatch, operatorWebhookTag))
	return newOperatorWebhookResponse(&w), err
}

func (s *Server) testOperatorWebhook(ctx context.Context, c access.Caller, in *webhookRequest) (operation.Response[webhookTest], error) {
	return s.testWebhook(ctx, webhooks.ForOperators(c), in)
}

func (s *Server) replayOperatorWebhook(ctx context.Context, c access.Caller, in *replayWebhookRequest) (operation.Response[operation.NoContent], error) {
	return s.replayWebhook(ctx, webhooks.ForOperators(c), in)
}

func (s *Server) skipOperatorItems(ctx context.Context, c access.Caller, in *skipItemsRequest) (operation.Response[operation.NoContent], error) {
	return s.skipItems(ctx, webhooks.ForOperators(c), in)
}

func (s *Server) listOperatorDeliveries(ctx context.Context, c access.Caller, in *listDeliveriesRequest) (operation.Response[operation.Page[webhookDelivery]], error) {
	return s.listDeliveries(ctx, webhooks.ForOperators(c), in)
}

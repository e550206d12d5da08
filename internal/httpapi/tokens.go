package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
)

func (s *Server) tokenOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/users/{id}/tokens", ID: "UsersController_listUserTokens", Summary: "List a user's API tokens",
			Description: "Lists the API tokens that act as the user, including those that expired in the last 30 days.",
			Policy:      authz.ReadUserTokens,
			Answers:     operation.Answers{{http.StatusOK, "A page of API tokens.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(holders[rolecall.User]{s}.listTokens),
		},
		{
			Method: http.MethodGet, Path: "/service-accounts/{id}/tokens", ID: "ServiceAccountsController_listServiceAccountTokens", Summary: "List a service account's API tokens",
			Description: "Lists the API tokens of the service account, including those that expired in the last 30 days.",
			Policy:      authz.ReadServiceAccounts,
			Answers:     operation.Answers{{http.StatusOK, "A page of API tokens.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(holders[rolecall.ServiceAccount]{s}.listTokens),
		},
		{
			Method: http.MethodPost, Path: "/users/{id}/tokens", ID: "UsersController_createUserToken", Summary: "Create an API token for yourself",
			Description: "Creates an API token that acts as the caller. The secret is returned only once.",
			Policy:      authz.CreateUserToken,
			Answers:     operation.Answers{{http.StatusCreated, "The new API token with its secret.", []string{"Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrTooManyTokens},
			Handler:     operation.JSON(holders[rolecall.User]{s}.createToken),
		},
		{
			Method: http.MethodPost, Path: "/service-accounts/{id}/tokens", ID: "ServiceAccountsController_createServiceAccountToken", Summary: "Create an API token for a service account",
			Description: "Creates an API token that acts as the service account. The secret is returned only once.",
			Policy:      authz.CreateServiceAccountToken,
			Answers:     operation.Answers{{http.StatusCreated, "The new API token with its secret.", []string{"Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrSessionRequired, rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrTooManyTokens},
			Handler:     operation.JSON(holders[rolecall.ServiceAccount]{s}.createToken),
		},
		{
			Method: http.MethodDelete, Path: "/users/{id}/tokens/{tokenId}", ID: "UsersController_revokeUserToken", Summary: "Revoke a user's API token",
			Description: "Revokes the API token. Links that were requested with it, such as invitations, become invalid.",
			Policy:      authz.RevokeUserToken,
			Answers:     operation.Answers{{http.StatusNoContent, "The API token was revoked.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(holders[rolecall.User]{s}.revokeToken),
		},
		{
			Method: http.MethodDelete, Path: "/service-accounts/{id}/tokens/{tokenId}", ID: "ServiceAccountsController_revokeServiceAccountToken", Summary: "Revoke a service account's API token",
			Description: "Revokes the API token. Links that were requested with it, such as invitations, become invalid.",
			Policy:      authz.RevokeServiceAccountToken,
			Answers:     operation.Answers{{http.StatusNoContent, "The API token was revoked.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(holders[rolecall.ServiceAccount]{s}.revokeToken),
		},
	}
}

// Types of package rolecall in the OpenAPI document.
var (
	_ = operation.Component[rolecall.APITokenDraft]("CreateAPIToken", "A new API token.")
)

type listTokensRequest[T holder] struct {
	idPath[T]
	operation.PageRequest
}

func (s holders[T]) listTokens(ctx context.Context, c access.Caller, in *listTokensRequest[T]) (operation.Response[operation.Page[tokenBody]], error) {
	page, err := s.directory.Tokens(ctx, c, rolecall.HolderOf(in.ID), in.After.At, in.Limit.OrDefault())
	return operation.NewPage(&page, newTokenBody), err
}

type createTokenRequest[T holder] struct {
	idPath[T]
	operation.IdempotencyHeader
	Body rolecall.APITokenDraft
}

func (s holders[T]) createToken(ctx context.Context, c access.Caller, in *createTokenRequest[T]) (operation.Response[newTokenBodyWithSecret], error) {
	created, err := s.directory.CreateToken(ctx, c, in.Key, rolecall.HolderOf(in.ID), in.Body)
	secret := created.Value.Secret
	return operation.Response[newTokenBodyWithSecret]{
		Body:     newTokenBodyWithSecret{newTokenBody(&created.Value.APIToken), secret == "", string(secret)},
		Replayed: created.Replayed,
	}, err
}

type revokeTokenRequest[T holder] struct {
	idPath[T]
	Token rolecall.APITokenID `path:"tokenId" example:"019d83e6-1ef1-7003-9f3e-2c4d6b8a0e33" doc:"ID of the API token."`
}

func (s holders[T]) revokeToken(ctx context.Context, c access.Caller, in *revokeTokenRequest[T]) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.RevokeToken(ctx, c, rolecall.HolderOf(in.ID), in.Token)
}

// tokenBody is an API token without its secret.
type tokenBody struct {
	ID          rolecall.APITokenID   `json:"id" doc:"ID of the token."`
	Name        string                `json:"name" doc:"Name of the token, for example its purpose."`
	Permissions []rolecall.Permission `json:"permissions" doc:"The permissions of the token. They are effective only while the user or service account of the token has them."`
	CreatedBy   rolecall.UserID       `json:"createdBy" nullable:"true" doc:"ID of the principal who created the token. Null for an operator."`
	CreatedAt   rolecall.Time         `json:"createdAt" doc:"When the token was created."`
	ExpiresAt   rolecall.Time         `json:"expiresAt" doc:"When the token expires."`
	LastUsedAt  rolecall.Time         `json:"lastUsedAt" nullable:"true" doc:"When the token was used last, to the minute. Null for never."`
}

var _ = operation.Component[tokenBody]("APIToken", "An API token without its secret.")
var _ = operation.Component[operation.Page[tokenBody]]("APITokenPage", "A page of API tokens.")

func newTokenBody(t *rolecall.APIToken) tokenBody {
	return tokenBody{t.ID, t.Name, t.Permissions, t.CreatedBy, t.CreatedAt, t.ExpiresAt, t.LastUsedAt}
}

// newTokenBodyWithSecret is a new API token with its secret. Only the first response has the
// secret. The response to a repeated request has secretWithheld instead.
type newTokenBodyWithSecret struct {
	tokenBody
	SecretWithheld bool   `json:"secretWithheld,omitzero" doc:"True if the request was a repeat, and the secret is therefore not shown again. Absent otherwise."`
	Token          string `json:"token,omitzero" doc:"The secret, to send as Authorization: Bearer rc_…."`
}

var _ = operation.Component[newTokenBodyWithSecret]("CreatedAPIToken", "A new API token. Its secret is returned only once: the answer to a repeated request has secretWithheld instead.")

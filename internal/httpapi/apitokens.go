package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/operation"
)

type listTokensRequest[T holder] struct {
	idPath[T]
	operation.PageRequest
}

func listTokens[T holder](s *Server, ctx context.Context, c access.Caller, in *listTokensRequest[T]) (operation.Response[operation.Page[tokenBody]], error) {
	page, err := s.directory.Tokens(ctx, c, rolecall.HolderOf(in.ID), in.After.At, in.Limit.OrDefault())
	return operation.NewPage(&page, newTokenBody), err
}

type createTokenRequest[T holder] struct {
	idPath[T]
	operation.IdempotencyHeader
	Body rolecall.APITokenDraft
}

func createToken[T holder](s *Server, ctx context.Context, c access.Caller, in *createTokenRequest[T]) (operation.Response[newTokenBodyWithSecret], error) {
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

func revokeToken[T holder](s *Server, ctx context.Context, c access.Caller, in *revokeTokenRequest[T]) (operation.Response[operation.NoContent], error) {
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

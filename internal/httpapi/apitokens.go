package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
)

type listUserTokensRequest struct {
	userPath
	pageRequest
}

func (s *Server) listUserTokens(ctx context.Context, c access.Caller, in *listUserTokensRequest) (Response[pageBody[tokenBody]], error) {
	page, err := s.directory.UserTokens(ctx, c, in.ID, in.After.after, in.Limit.orDefault())
	return newPage(&page, newTokenBody), err
}

type createUserTokenRequest struct {
	userPath
	idempotencyHeader
	Body rolecall.APITokenDraft
}

func (s *Server) createUserToken(ctx context.Context, c access.Caller, in *createUserTokenRequest) (Response[newTokenBodyWithSecret], error) {
	created, err := s.directory.CreateUserToken(ctx, c, in.Key, in.ID, in.Body)
	return createdToken(&created), err
}

type revokeUserTokenRequest struct {
	userPath
	tokenPath
}

func (s *Server) revokeUserToken(ctx context.Context, c access.Caller, in *revokeUserTokenRequest) (Response[NoContent], error) {
	return Response[NoContent]{}, s.directory.RevokeUserToken(ctx, c, in.ID, in.Token)
}

type listServiceAccountTokensRequest struct {
	serviceAccountPath
	pageRequest
}

func (s *Server) listServiceAccountTokens(ctx context.Context, c access.Caller, in *listServiceAccountTokensRequest) (Response[pageBody[tokenBody]], error) {
	page, err := s.directory.ServiceAccountTokens(ctx, c, in.ID, in.After.after, in.Limit.orDefault())
	return newPage(&page, newTokenBody), err
}

type createServiceAccountTokenRequest struct {
	serviceAccountPath
	idempotencyHeader
	Body rolecall.APITokenDraft
}

func (s *Server) createServiceAccountToken(ctx context.Context, c access.Caller, in *createServiceAccountTokenRequest) (Response[newTokenBodyWithSecret], error) {
	created, err := s.directory.CreateServiceAccountToken(ctx, c, in.Key, in.ID, in.Body)
	return createdToken(&created), err
}

type revokeServiceAccountTokenRequest struct {
	serviceAccountPath
	tokenPath
}

func (s *Server) revokeServiceAccountToken(ctx context.Context, c access.Caller, in *revokeServiceAccountTokenRequest) (Response[NoContent], error) {
	return Response[NoContent]{}, s.directory.RevokeServiceAccountToken(ctx, c, in.ID, in.Token)
}

// tokenBody is an API token without its secret.
type tokenBody struct {
	ID          rolecall.APITokenID   `json:"id" doc:"ID of the token."`
	Name        string                `json:"name" doc:"What the token is for."`
	Permissions []rolecall.Permission `json:"permissions" doc:"What the bearer may do at most."`
	CreatedBy   rolecall.UserID       `json:"createdBy" nullable:"true" doc:"ID of the principal who created the token. Null for an operator."`
	CreatedAt   rolecall.Time         `json:"createdAt" doc:"When the token was created."`
	ExpiresAt   rolecall.Time         `json:"expiresAt" doc:"When the token expires."`
	LastUsedAt  rolecall.Time         `json:"lastUsedAt" nullable:"true" doc:"When the token was used last, to the minute. Null for never."`
}

func newTokenBody(t *rolecall.APIToken) tokenBody {
	return tokenBody{t.ID, t.Name, t.Permissions, t.CreatedBy, t.CreatedAt, t.ExpiresAt, t.LastUsedAt}
}

// newTokenBodyWithSecret is a new API token. Its secret is shown once: a repeated request
// is answered with secretWithheld.
type newTokenBodyWithSecret struct {
	tokenBody
	SecretWithheld bool   `json:"secretWithheld,omitzero" doc:"True if the request was sent before, so that the secret is not shown again."`
	Token          string `json:"token,omitzero" doc:"The secret, which the program sends as Authorization: Bearer rc_…."`
}

func createdToken(created *idempotency.Created[directory.APIToken]) Response[newTokenBodyWithSecret] {
	secret := created.Value.Secret
	return Response[newTokenBodyWithSecret]{
		Body:     newTokenBodyWithSecret{newTokenBody(&created.Value.APIToken), secret == "", string(secret)},
		Replayed: created.Replayed,
	}
}

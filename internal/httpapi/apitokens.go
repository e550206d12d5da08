package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/service"
)

type listUserTokensRequest struct {
	userPath
	pageRequest
}

func (s *Server) listUserTokens(ctx context.Context, c service.Call, in *listUserTokensRequest) (Response[pageBody[tokenBody]], error) {
	page, err := s.service.UserTokens(ctx, c, in.ID, in.After.after, in.Limit.orDefault())
	return newPage(&page, newTokenBody), err
}

type createUserTokenRequest struct {
	userPath
	idempotencyHeader
	Body rolecall.APITokenDraft
}

func (s *Server) createUserToken(ctx context.Context, c service.Call, in *createUserTokenRequest) (Response[newTokenBodyWithSecret], error) {
	created, err := s.service.CreateUserToken(ctx, c, in.Key, in.ID, in.Body)
	return createdToken(&created), err
}

type revokeUserTokenRequest struct {
	userPath
	tokenPath
}

func (s *Server) revokeUserToken(ctx context.Context, c service.Call, in *revokeUserTokenRequest) (Response[NoContent], error) {
	return Response[NoContent]{}, s.service.RevokeUserToken(ctx, c, in.ID, in.Token)
}

type listServiceAccountTokensRequest struct {
	serviceAccountPath
	pageRequest
}

func (s *Server) listServiceAccountTokens(ctx context.Context, c service.Call, in *listServiceAccountTokensRequest) (Response[pageBody[tokenBody]], error) {
	page, err := s.service.ServiceAccountTokens(ctx, c, in.ID, in.After.after, in.Limit.orDefault())
	return newPage(&page, newTokenBody), err
}

type createServiceAccountTokenRequest struct {
	serviceAccountPath
	idempotencyHeader
	Body rolecall.APITokenDraft
}

func (s *Server) createServiceAccountToken(ctx context.Context, c service.Call, in *createServiceAccountTokenRequest) (Response[newTokenBodyWithSecret], error) {
	created, err := s.service.CreateServiceAccountToken(ctx, c, in.Key, in.ID, in.Body)
	return createdToken(&created), err
}

type revokeServiceAccountTokenRequest struct {
	serviceAccountPath
	tokenPath
}

func (s *Server) revokeServiceAccountToken(ctx context.Context, c service.Call, in *revokeServiceAccountTokenRequest) (Response[NoContent], error) {
	return Response[NoContent]{}, s.service.RevokeServiceAccountToken(ctx, c, in.ID, in.Token)
}

// tokenBody is an API token without its secret.
type tokenBody struct {
	ID          rolecall.APITokenID   `json:"id"`
	Name        string                `json:"name"`
	Permissions []rolecall.Permission `json:"permissions"`
	CreatedBy   rolecall.UserID       `json:"createdBy"`
	CreatedAt   rolecall.Time         `json:"createdAt"`
	ExpiresAt   rolecall.Time         `json:"expiresAt"`
	LastUsedAt  rolecall.Time         `json:"lastUsedAt"`
}

func newTokenBody(t *rolecall.APIToken) tokenBody {
	return tokenBody{t.ID, t.Name, t.Permissions, t.CreatedBy, t.CreatedAt, t.ExpiresAt, t.LastUsedAt}
}

// newTokenBodyWithSecret is a new API token. Its secret is shown once: a repeated request
// is answered with secretWithheld.
type newTokenBodyWithSecret struct {
	tokenBody
	SecretWithheld bool   `json:"secretWithheld,omitzero"`
	Token          string `json:"token,omitzero"`
}

func createdToken(created *idempotency.Created[service.APIToken]) Response[newTokenBodyWithSecret] {
	secret := created.Value.Secret
	return Response[newTokenBodyWithSecret]{
		Body:     newTokenBodyWithSecret{newTokenBody(&created.Value.APIToken), secret == "", string(secret)},
		Replayed: created.Replayed,
	}
}

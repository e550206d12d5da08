package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

type listServiceAccountsRequest struct {
	operation.PageRequest
	Sort   operation.Order  `query:"sort" order:"name,createdAt" doc:"The sort order. A leading - reverses it. The default is the creation time."`
	Search operation.Search `query:"q" doc:"Up to 8 words. Each must be the beginning of a word in the name."`
	operation.CountQuery
}

func (s *Server) listServiceAccounts(ctx context.Context, c access.Caller, in *listServiceAccountsRequest) (operation.Response[operation.CountedPage[serviceAccountBody]], error) {
	page, err := s.directory.ServiceAccounts(ctx, c, rolecall.ServiceAccountQuery{
		Words: in.Search, ByName: in.Sort.By == "name", Desc: in.Sort.Desc,
		After: in.After.At, Limit: in.Limit.OrDefault(), Count: in.Count,
	})
	return operation.NewCountedPage(&page, func(a *rolecall.ServiceAccount) serviceAccountBody { return serviceAccountBody{a, true} }), err
}

type createServiceAccountRequest struct {
	operation.IdempotencyHeader
	Body rolecall.ServiceAccountDraft
}

func (s *Server) createServiceAccount(ctx context.Context, c access.Caller, in *createServiceAccountRequest) (operation.Response[serviceAccountBody], error) {
	created, err := s.directory.CreateServiceAccount(ctx, c, in.Key, in.Body)
	response := serviceAccountResponse(c, &created.Value)
	response.Location, response.Replayed = "/service-accounts/"+created.Value.ID.String(), created.Replayed
	return response, err
}

func (s *Server) getServiceAccount(ctx context.Context, c access.Caller, in *getRequest[rolecall.ServiceAccount]) (operation.Response[serviceAccountBody], error) {
	account, err := s.directory.ServiceAccount(ctx, c, in.ID)
	return serviceAccountResponse(c, &account), err
}

type updateServiceAccountRequest struct {
	idPath[rolecall.ServiceAccount]
	operation.IfMatchHeader
	Body rolecall.ServiceAccountPatch
}

func (s *Server) updateServiceAccount(ctx context.Context, c access.Caller, in *updateServiceAccountRequest) (operation.Response[serviceAccountBody], error) {
	account, err := s.directory.UpdateServiceAccount(ctx, c, in.ID, in.Body, match(in.IfMatch, serviceAccountTag(c)))
	return serviceAccountResponse(c, &account), err
}

func (s *Server) deleteServiceAccount(ctx context.Context, c access.Caller, in *deleteRequest[rolecall.ServiceAccount]) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.DeleteServiceAccount(ctx, c, in.ID, match(in.IfMatch, serviceAccountTag(c)))
}

func (s *Server) suspendServiceAccount(ctx context.Context, c access.Caller, in *statusRequest[rolecall.ServiceAccount]) (operation.Response[serviceAccountBody], error) {
	account, err := s.directory.SuspendServiceAccount(ctx, c, in.ID, string(in.Body.Reason))
	return serviceAccountResponse(c, &account), err
}

func (s *Server) resumeServiceAccount(ctx context.Context, c access.Caller, in *statusRequest[rolecall.ServiceAccount]) (operation.Response[serviceAccountBody], error) {
	account, err := s.directory.ResumeServiceAccount(ctx, c, in.ID, string(in.Body.Reason))
	return serviceAccountResponse(c, &account), err
}

// readsServiceAccounts reports whether the caller may read service accounts. Other callers get only
// the ids.
func readsServiceAccounts(c access.Caller) bool {
	return c.Principal != nil && c.Reach(rolecall.ServiceAccountsRead).IsEverywhere()
}

var (
	serviceAccountEncoder = wire.NewEncoder[rolecall.ServiceAccount]()
	serviceAccountID0     = serviceAccountEncoder.Fields("id")
)

// serviceAccountBody is a service account. If the caller may not read the account, its JSON has
// only the id.
type serviceAccountBody struct {
	account  *rolecall.ServiceAccount
	readable bool
}

func serviceAccountResponse(c access.Caller, a *rolecall.ServiceAccount) operation.Response[serviceAccountBody] {
	return operation.Response[serviceAccountBody]{Body: serviceAccountBody{a, readsServiceAccounts(c) && a.CreatedAt != 0}}
}

// AppendJSON appends the members that the caller may read.
func (b serviceAccountBody) AppendJSON(out []byte) []byte {
	if !b.readable {
		return serviceAccountEncoder.AppendFields(out, b.account, serviceAccountID0)
	}
	return serviceAccountEncoder.Append(out, b.account)
}

func (b serviceAccountBody) HiddenMembers() string {
	if b.readable {
		return ""
	}
	return "name, description, status, createdAt, updatedAt"
}

func (b serviceAccountBody) HasTag() bool { return b.readable }

// serviceAccountTag returns a function that computes the ETag of a service account from the members
// that the caller may read.
func serviceAccountTag(c access.Caller) func(*rolecall.ServiceAccount) string {
	readable := readsServiceAccounts(c)
	return func(a *rolecall.ServiceAccount) string {
		return secret.ETag(serviceAccountBody{a, readable}.AppendJSON(nil))
	}
}

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

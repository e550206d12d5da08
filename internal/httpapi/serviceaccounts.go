package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) serviceAccountOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/service-accounts", ID: "ServiceAccountsController_listServiceAccounts", Summary: "List service accounts",
			Description: "Lists the service accounts of the tenant.",
			Policy:      authz.ReadServiceAccounts,
			Answers:     operation.Answers{{http.StatusOK, "A page of service accounts.", []string{"Link"}}},
			Handler:     operation.JSON(s.listServiceAccounts),
		},
		{
			Method: http.MethodPost, Path: "/service-accounts", ID: "ServiceAccountsController_createServiceAccount", Summary: "Create a service account",
			Description: "Creates a service account without roles and API tokens.",
			Policy:      authz.CreateServiceAccount,
			Answers:     operation.Answers{{http.StatusCreated, "The new service account. Callers without service-accounts:read get the ID only.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrAccountNameTaken, rolecall.ErrTooManyAccounts},
			Handler:     operation.JSON(s.createServiceAccount),
		},
		{
			Method: http.MethodGet, Path: "/service-accounts/{id}", ID: "ServiceAccountsController_getServiceAccount", Summary: "Get a service account",
			Description: "Returns the service account.",
			Policy:      authz.ReadServiceAccounts,
			Answers:     operation.Answers{{http.StatusOK, "The service account.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getServiceAccount),
		},
		{
			Method: http.MethodPatch, Path: "/service-accounts/{id}", ID: "ServiceAccountsController_updateServiceAccount", Summary: "Update a service account",
			Description: "Changes the members that are in the body.",
			Policy:      authz.UpdateServiceAccount,
			Answers:     operation.Answers{{http.StatusOK, "The changed service account. Callers without service-accounts:read get the ID only.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrAccountNameTaken},
			Handler:     operation.JSON(s.updateServiceAccount),
		},
		{
			Method: http.MethodDelete, Path: "/service-accounts/{id}", ID: "ServiceAccountsController_deleteServiceAccount", Summary: "Delete a service account",
			Description: "Deletes the service account with its API tokens and role assignments. It cannot be restored.",
			Policy:      authz.DeleteServiceAccount,
			Answers:     operation.Answers{{http.StatusNoContent, "The service account was deleted.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(s.deleteServiceAccount),
		},
		{
			Method: http.MethodPost, Path: "/service-accounts/{id}/suspend", ID: "ServiceAccountsController_suspendServiceAccount", Summary: "Suspend a service account",
			Description: "Refuses the API tokens of the service account until it is resumed.",
			Policy:      authz.SuspendServiceAccount,
			Answers:     operation.Answers{{http.StatusOK, "The suspended service account. Callers without service-accounts:read get the ID only.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(s.suspendServiceAccount),
		},
		{
			Method: http.MethodPost, Path: "/service-accounts/{id}/resume", ID: "ServiceAccountsController_resumeServiceAccount", Summary: "Resume a service account",
			Description: "Lets the API tokens of the service account work again.",
			Policy:      authz.ResumeServiceAccount,
			Answers:     operation.Answers{{http.StatusOK, "The resumed service account. Callers without service-accounts:read get the ID only.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(s.resumeServiceAccount),
		},
	}
}

// Types of package rolecall in the OpenAPI document.
var (
	_ = operation.PathID[rolecall.ServiceAccountID]("ID of the service account.", "019d83e6-1ef1-7002-b1aa-7d0b8e6f4c22")
	_ = operation.Component[rolecall.ServiceAccountDraft]("CreateServiceAccount", "A new service account. It has no roles at first.")
	_ = operation.Component[rolecall.ServiceAccountPatch]("UpdateServiceAccount", "A merge patch (RFC 7396). Absent members do not change. Null clears a member.")
	_ = operation.ComponentOrID[rolecall.ServiceAccount]("ServiceAccount", "A service account: a program of the tenant. Callers without service-accounts:read get the ID only.")
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

var _ = operation.Component[operation.CountedPage[serviceAccountBody]]("ServiceAccountPage", "A page of service accounts.")
var _ = operation.SameSchema[serviceAccountBody, rolecall.ServiceAccount]()

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

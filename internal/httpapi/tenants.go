package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/web"
)

func (s *Server) operatorOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/operator/tenants", ID: "OperatorController_listTenants", Summary: "List tenants",
			Description: "Lists the tenants that the operator key may access, sorted by name.",
			Policy:      authz.ReadTenants,
			Answers:     operation.Answers{{http.StatusOK, "A page of tenants.", []string{"Link"}}},
			Handler:     operation.JSON(s.listTenants),
		},
		{
			Method: http.MethodPost, Path: "/operator/tenants", ID: "OperatorController_createTenant", Summary: "Create a tenant",
			Description: "Creates a tenant with the built-in roles, and mails an invitation to its first owner, unless `delivery` is `return`. The answer also has the link of the invitation. It is returned only once.",
			Policy:      authz.CreateTenant,
			Answers:     operation.Answers{{http.StatusCreated, "The new tenant, its first owner and the invitation.", []string{"Location", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrPermissionDenied, rolecall.ErrTenantExists},
			Handler:     operation.JSON(s.createTenant),
		},
		{
			Method: http.MethodGet, Path: "/operator/tenants/{name}", ID: "OperatorController_getTenant", Summary: "Get a tenant",
			Description: "Returns the tenant with its settings, also while it is deleted and can be restored.",
			Policy:      authz.ReadTenants,
			Answers:     operation.Answers{{http.StatusOK, "The tenant.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getOperatedTenant),
		},
		{
			Method: http.MethodPatch, Path: "/operator/tenants/{name}", ID: "OperatorController_updateTenant", Summary: "Update a tenant",
			Description: "Changes the display name and the settings that are in the body.",
			Policy:      authz.ChangeTenant,
			Answers:     operation.Answers{{http.StatusOK, "The changed tenant.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.updateOperatedTenant),
		},
		{
			Method: http.MethodDelete, Path: "/operator/tenants/{name}", ID: "OperatorController_deleteTenant", Summary: "Delete a tenant",
			Description: "Makes the tenant unavailable at once. It can be restored for 24 hours. After that, its data is removed. Its name cannot be used again for 30 days.",
			Policy:      authz.DeleteTenant,
			Answers:     operation.Answers{{http.StatusNoContent, "The tenant was deleted.", nil}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.deleteTenant),
		},
		{
			Method: http.MethodPost, Path: "/operator/tenants/{name}/restore", ID: "OperatorController_restoreTenant", Summary: "Restore a tenant",
			Description: "Restores a tenant that was deleted in the last 24 hours, with its users, roles, sessions and API tokens. A tenant that is not deleted does not change.",
			Policy:      authz.ChangeTenant,
			Answers:     operation.Answers{{http.StatusOK, "The restored tenant.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.restoreTenant),
		},
		{
			Method: http.MethodPost, Path: "/operator/tenants/{name}/suspend", ID: "OperatorController_suspendTenant", Summary: "Suspend a tenant",
			Description: "Refuses all sign-ins, sessions and API tokens of the tenant until it is resumed. No data is deleted.",
			Policy:      authz.SuspendTenant,
			Answers:     operation.Answers{{http.StatusOK, "The suspended tenant.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.suspendTenant),
		},
		{
			Method: http.MethodPost, Path: "/operator/tenants/{name}/resume", ID: "OperatorController_resumeTenant", Summary: "Resume a tenant",
			Description: "Lets the users and API tokens of a suspended tenant work again.",
			Policy:      authz.ChangeTenant,
			Answers:     operation.Answers{{http.StatusOK, "The resumed tenant.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.resumeTenant),
		},
		{
			Method: http.MethodGet, Path: "/operator/users", ID: "OperatorController_findUsers", Summary: "Find the tenants of an email address",
			Description: "Lists the users with the email address in all tenants that the operator key may access, also users and tenants that are suspended. A page that asks for an address and then shows the tenants of its owner must not show them to others: mail them, or sign in first. An operator key can do 600 searches in a minute.",
			Policy:      authz.FindUsers,
			Answers:     operation.Answers{{http.StatusOK, "A page of users.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrTooManyAttempts},
			Handler:     operation.JSON(s.findUsers),
		},
	}
}

type findUsersRequest struct {
	operation.PageRequest
	Email string `query:"email" required:"true" minLength:"1" maxLength:"254" example:"ada@example.com" doc:"The email address. Upper and lower case are the same."`
}

// userInTenantBody is a user of a tenant with the address that was searched.
type userInTenantBody struct {
	Tenant       string                `json:"tenant" doc:"Name of the tenant."`
	DisplayName  string                `json:"displayName" doc:"Display name of the tenant."`
	TenantStatus rolecall.TenantStatus `json:"tenantStatus" doc:"Status of the tenant: active or suspended."`
	UserID       rolecall.UserID       `json:"userId" doc:"ID of the user."`
	UserStatus   rolecall.UserStatus   `json:"userStatus" doc:"Status of the user: pending, active or suspended."`
}

var _ = operation.Component[userInTenantBody]("UserInTenant", "A user with an email address that was searched in all tenants.")
var _ = operation.Component[operation.Page[userInTenantBody]]("UserInTenantPage", "A page of users in several tenants.")

func (s *Server) findUsers(ctx context.Context, c access.Caller, in *findUsersRequest) (operation.Response[operation.Page[userInTenantBody]], error) {
	var after rolecall.TenantID
	if in.After.At != nil {
		after = rolecall.TenantID(in.After.At.ID)
	}
	page, err := s.directory.UsersWithAddress(ctx, c, in.Email, after, in.Limit.OrDefault())
	return operation.NewPage(&page, func(u *rolecall.UserInTenant) userInTenantBody {
		return userInTenantBody{u.Tenant.Name, u.Tenant.DisplayName, u.Tenant.Status, u.UserID, u.Status}
	}), err
}

// servesOperators reports whether the listener of the request serves operators.
func (s *Server) servesOperators(r *http.Request) bool {
	return !s.apart || web.IsOperatorListener(r)
}

// isOperated reports whether the operator operations are served for the request. This requires that
// its listener serves operators and that an operator key exists. If the store fails, isOperated
// returns true, so that the operation reports the failure.
func (s *Server) isOperated(r *http.Request) bool {
	if !s.servesOperators(r) {
		return false
	}
	operated, err := s.signin.Operated(r.Context())
	return operated || err != nil
}

type listTenantsRequest struct {
	operation.PageRequest
	Status string `query:"status" enum:"active,suspended,deleted" doc:"Only tenants with this status. The value deleted lists the tenants that can be restored. Without this parameter, all tenants that are not deleted are listed."`
}

func (s *Server) listTenants(ctx context.Context, c access.Caller, in *listTenantsRequest) (operation.Response[operation.Page[tenantBody]], error) {
	after := ""
	if in.After.At != nil {
		after = in.After.At.Key
	}
	page, err := s.directory.OperatedTenants(ctx, c, rolecall.TenantStatus(in.Status), after, in.Limit.OrDefault())
	return operation.NewPage(&page, func(t *rolecall.Tenant) tenantBody { return newTenantBody(t, true) }), err
}

type createTenantRequest struct {
	operation.IdempotencyHeader
	Body tenantDraft
}

// tenantDraft is a new tenant and its first owner.
type tenantDraft struct {
	Name        string     `json:"name" required:"true" pattern:"^[a-z0-9][a-z0-9_-]{0,62}$" doc:"Name of the tenant. Requests send it in the header x-tenant-schema. It never changes."`
	DisplayName *string    `json:"displayName" minLength:"1" maxLength:"255" doc:"Display name of the tenant. Without it, the name is used. Null is the same as its absence."`
	Owner       ownerDraft `json:"owner" required:"true" doc:"The first owner, who is invited."`
	deliveryBody
}

var _ = operation.Component[tenantDraft]("CreateTenant", "A new tenant and its first owner, who is invited.")

// ownerDraft is the first owner of a tenant.
type ownerDraft struct {
	Email string `json:"email" required:"true" minLength:"3" maxLength:"254" format:"email" doc:"Email address."`
	Name  string `json:"name" required:"true" minLength:"1" maxLength:"255" doc:"Full name. It must have at least as many characters as the setting nameMinimum of new tenants."`
}

var _ = operation.Component[ownerDraft]("TenantOwner", "The first owner of a tenant.")

func (d *tenantDraft) draft() rolecall.TenantDraft {
	return rolecall.TenantDraft{Name: d.Name, DisplayName: d.DisplayName, Owner: rolecall.UserDraft{Email: d.Owner.Email, Name: d.Owner.Name}, Delivery: rolecall.Delivery(d.Delivery)}
}

// Check returns the field errors of the draft.
func (d *tenantDraft) Check() rolecall.FieldErrors {
	draft := d.draft()
	draft.NameMin = rolecall.NameLeast // CreateTenant knows the minimum of new tenants
	return draft.Check()
}

// createdTenant is a new tenant, its owner and the invitation of the owner. You can send the
// invitation link to the owner yourself. The response to a repeated
// request does not have the link.
type createdTenant struct {
	Tenant     tenantBody      `json:"tenant" doc:"The new tenant."`
	Owner      userBody        `json:"owner" doc:"The first owner."`
	Invitation ownerInvitation `json:"invitation" doc:"The invitation of the owner."`
}

var _ = operation.Component[createdTenant]("FoundedTenant", "A new tenant with its first owner and the invitation. The token and the link are returned only once: the answer to a repeated request has secretWithheld instead. If the owner was erased since then, owner has only the ID.")

// ownerInvitation is the invitation of the first owner.
type ownerInvitation struct {
	ExpiresAt      rolecall.Time `json:"expiresAt" doc:"When the invitation expires."`
	SecretWithheld bool          `json:"secretWithheld,omitzero" doc:"True if the request was a repeat, and the token and the link are therefore not shown again. Absent otherwise."`
	Token          string        `json:"token,omitzero" doc:"The token in the link."`
	Link           string        `json:"link,omitzero" doc:"The link that the owner opens to set a password."`
}

var _ = operation.Component[ownerInvitation]("OwnerInvitation", "The invitation of the first owner.")

func (s *Server) createTenant(ctx context.Context, c access.Caller, in *createTenantRequest) (operation.Response[createdTenant], error) {
	created, err := s.directory.CreateTenant(ctx, c, in.Key, in.Body.draft())
	if err != nil {
		return operation.Response[createdTenant]{}, err
	}
	value := &created.Value
	body := createdTenant{Tenant: newTenantBody(&value.Tenant, true), Owner: userBody{user: &value.Owner, readable: rolecall.AllUserMembers}}
	if created.Erased {
		body.Owner.readable = 0
	}
	body.Invitation.ExpiresAt = value.Invitation.ExpiresAt
	if created.Replayed {
		body.Invitation.SecretWithheld = true
	} else {
		body.Invitation.Token = string(value.Token)
		body.Invitation.Link = s.site.Links.Link(rolecall.MailInvitation, value.Tenant.Name, string(value.Token))
	}
	return operation.Response[createdTenant]{Body: body, Location: "/operator/tenants/" + value.Tenant.Name, Replayed: created.Replayed}, nil
}

// tenantPath is the path parameter with the name of a tenant.
type tenantPath struct {
	Name operation.TenantName `path:"name" example:"acme" doc:"Name of the tenant to read, change or delete."`
}

type getOperatedTenantRequest struct {
	tenantPath
	operation.IfNoneMatchHeader
}

func (s *Server) getOperatedTenant(ctx context.Context, c access.Caller, in *getOperatedTenantRequest) (operation.Response[tenantBody], error) {
	tenant, err := s.directory.OperatedTenant(ctx, c, string(in.Name))
	return operation.Response[tenantBody]{Body: newTenantBody(&tenant, true)}, err
}

type updateOperatedTenantRequest struct {
	tenantPath
	operation.IfMatchHeader
	Body tenantPatch
}

func (s *Server) updateOperatedTenant(ctx context.Context, c access.Caller, in *updateOperatedTenantRequest) (operation.Response[tenantBody], error) {
	tenant, err := s.directory.UpdateOperatedTenant(ctx, c, string(in.Name), in.Body.patch(), match(in.IfMatch, tenantTag))
	return operation.Response[tenantBody]{Body: newTenantBody(&tenant, true)}, err
}

type deleteTenantRequest struct {
	tenantPath
	IfMatch operation.IfMatch `header:"if-match" required:"428" doc:"Entity tags, or *. The tenant is deleted only if one of them is the current ETag. Otherwise the answer is 412. Without the header, it is 428."`
}

func (s *Server) deleteTenant(ctx context.Context, c access.Caller, in *deleteTenantRequest) (operation.Response[operation.NoContent], error) {
	if !in.IfMatch.Given {
		return operation.Response[operation.NoContent]{}, rolecall.ErrPreconditionRequired
	}
	return operation.Response[operation.NoContent]{}, s.directory.DeleteTenant(ctx, c, string(in.Name), match(in.IfMatch, tenantTag))
}

type tenantStatusRequest struct {
	tenantPath
	Body reasonBody `optional:"true"`
}

func (s *Server) restoreTenant(ctx context.Context, c access.Caller, in *tenantStatusRequest) (operation.Response[tenantBody], error) {
	tenant, err := s.directory.RestoreTenant(ctx, c, string(in.Name), string(in.Body.Reason))
	return operation.Response[tenantBody]{Body: newTenantBody(&tenant, true)}, err
}

func (s *Server) suspendTenant(ctx context.Context, c access.Caller, in *tenantStatusRequest) (operation.Response[tenantBody], error) {
	tenant, err := s.directory.SuspendTenant(ctx, c, string(in.Name), string(in.Body.Reason))
	return operation.Response[tenantBody]{Body: newTenantBody(&tenant, true)}, err
}

func (s *Server) resumeTenant(ctx context.Context, c access.Caller, in *tenantStatusRequest) (operation.Response[tenantBody], error) {
	tenant, err := s.directory.ResumeTenant(ctx, c, string(in.Name), string(in.Body.Reason))
	return operation.Response[tenantBody]{Body: newTenantBody(&tenant, true)}, err
}

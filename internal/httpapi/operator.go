package httpapi

import (
	"context"
	"encoding/binary"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

// operatorOperations are the operations for operators. Until an operator key exists, requests to
// their paths get 404.
var operatorOperations = slices.Concat(allTenantsOperations, operatorEventOperations, operatorWebhookOperations)

// allTenantsOperations are the operations on the tenants of the instance.
var allTenantsOperations = []*operation.Operation{
	{
		Method: http.MethodGet, Path: "/operator/tenants", ID: "OperatorController_listTenants", Summary: "List tenants",
		Description: "Lists the tenants that the operator key may access, sorted by name.",
		Policy:      authz.ReadTenants,
		Answers:     operation.Answers{{http.StatusOK, "A page of tenants.", []string{"Link"}}},
		Endpoint:    operation.Typed((*Server).listTenants),
	},
	{
		Method: http.MethodPost, Path: "/operator/tenants", ID: "OperatorController_createTenant", Summary: "Create a tenant",
		Description: "Creates a tenant with the built-in roles, and mails an invitation to its first owner, unless `delivery` is `return`. The answer also has the link of the invitation. It is returned only once.",
		Policy:      authz.CreateTenant,
		Answers:     operation.Answers{{http.StatusCreated, "The new tenant, its first owner and the invitation.", []string{"Location", "Idempotent-Replayed"}}},
		Problems:    problems{rolecall.ErrPermissionDenied, rolecall.ErrTenantExists},
		Endpoint:    operation.Typed((*Server).createTenant),
	},
	{
		Method: http.MethodGet, Path: "/operator/tenants/{name}", ID: "OperatorController_getTenant", Summary: "Get a tenant",
		Description: "Returns the tenant with its settings, also while it is deleted and can be restored.",
		Policy:      authz.ReadTenants,
		Answers:     operation.Answers{{http.StatusOK, "The tenant.", []string{"ETag"}}},
		Problems:    problems{rolecall.ErrNotFound},
		Endpoint:    operation.Typed((*Server).getOperatedTenant),
	},
	{
		Method: http.MethodPatch, Path: "/operator/tenants/{name}", ID: "OperatorController_updateTenant", Summary: "Update a tenant",
		Description: "Changes the display name and the settings that are in the body.",
		Policy:      authz.ChangeTenant,
		Answers:     operation.Answers{{http.StatusOK, "The changed tenant.", []string{"ETag"}}},
		Problems:    problems{rolecall.ErrNotFound},
		Endpoint:    operation.Typed((*Server).updateOperatedTenant),
	},
	{
		Method: http.MethodDelete, Path: "/operator/tenants/{name}", ID: "OperatorController_deleteTenant", Summary: "Delete a tenant",
		Description: "Makes the tenant unavailable at once. It can be restored for 24 hours. After that, its data is removed. Its name cannot be used again for 30 days.",
		Policy:      authz.DeleteTenant,
		Answers:     operation.Answers{{http.StatusNoContent, "The tenant was deleted.", nil}},
		Problems:    problems{rolecall.ErrNotFound},
		Endpoint:    operation.Typed((*Server).deleteTenant),
	},
	{
		Method: http.MethodPost, Path: "/operator/tenants/{name}/restore", ID: "OperatorController_restoreTenant", Summary: "Restore a tenant",
		Description: "Restores a tenant that was deleted in the last 24 hours, with its users, roles, sessions and API tokens. A tenant that is not deleted does not change.",
		Policy:      authz.ChangeTenant,
		Answers:     operation.Answers{{http.StatusOK, "The restored tenant.", []string{"ETag"}}},
		Problems:    problems{rolecall.ErrNotFound},
		Endpoint:    operation.Typed((*Server).restoreTenant),
	},
	{
		Method: http.MethodPost, Path: "/operator/tenants/{name}/suspend", ID: "OperatorController_suspendTenant", Summary: "Suspend a tenant",
		Description: "Refuses all sign-ins, sessions and API tokens of the tenant until it is resumed. No data is deleted.",
		Policy:      authz.SuspendTenant,
		Answers:     operation.Answers{{http.StatusOK, "The suspended tenant.", []string{"ETag"}}},
		Problems:    problems{rolecall.ErrNotFound},
		Endpoint:    operation.Typed((*Server).suspendTenant),
	},
	{
		Method: http.MethodPost, Path: "/operator/tenants/{name}/resume", ID: "OperatorController_resumeTenant", Summary: "Resume a tenant",
		Description: "Lets the users and API tokens of a suspended tenant work again.",
		Policy:      authz.ChangeTenant,
		Answers:     operation.Answers{{http.StatusOK, "The resumed tenant.", []string{"ETag"}}},
		Problems:    problems{rolecall.ErrNotFound},
		Endpoint:    operation.Typed((*Server).resumeTenant),
	},
	{
		Method: http.MethodGet, Path: "/operator/changes", ID: "OperatorController_listChanges", Summary: "Follow the changes of all tenants",
		Description: "Returns the events of all tenants that the operator key may access, in a fixed order, as GET /changes does for one tenant. The events of a tenant have the same order as there. No event ever appears at or before a cursor that was returned. The answer is 410 if an event after the cursor was deleted in any tenant, if the tenant of an event after the cursor was purged, or if the database has lost commits.",
		Policy:      authz.ReadTenantsChanges,
		Answers:     operation.Answers{{http.StatusOK, "The changes after the cursor.", nil}},
		Problems:    problems{rolecall.ErrChangesExpired, rolecall.ErrTooManyWaits},
		Endpoint:    operation.Typed((*Server).listTenantsChanges),
	},
	{
		Method: http.MethodGet, Path: "/operator/users", ID: "OperatorController_findUsers", Summary: "Find the tenants of an email address",
		Description: "Lists the users with the email address in all tenants that the operator key may access, also users and tenants that are suspended. A page that asks for an address and then shows the tenants of its owner must not show them to others: mail them, or sign in first. An operator key can do 600 searches in a minute.",
		Policy:      authz.FindUsers,
		Answers:     operation.Answers{{http.StatusOK, "A page of users.", []string{"Link"}}},
		Problems:    problems{rolecall.ErrTooManyAttempts},
		Endpoint:    operation.Typed((*Server).findUsers),
	},
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

type listTenantsChangesRequest struct {
	After changesCursor  `query:"after" doc:"The nextCursor of an earlier response. It is valid for the same type, and for keys for the same tenants. Without it, the changes begin with the oldest event after which no event of any tenant was deleted."`
	At    changesPlace   `query:"at" doc:"With now, the response has no changes, and the cursor after all changes until now."`
	Type  eventTypeValue `query:"type" doc:"Only events of this type, such as user.updated. Later versions may add types."`
	changesPage
}

func (s *Server) listTenantsChanges(ctx context.Context, c access.Caller, in *listTenantsChangesRequest) (response operation.Response[changesBody], err error) {
	q := feed.TenantsQuery{Type: rolecall.EventType(in.Type), Limit: in.Limit.OrDefault()}
	digest := tenantsChangesDigest(c, in)
	if in.After != "" {
		at, err := s.openFeedCursor(in.After, in.At, digest, 16)
		if err != nil {
			return response, err
		}
		place, number := binary.BigEndian.Uint64([]byte(at.Key[:8])), binary.BigEndian.Uint64([]byte(at.Key[8:]))
		q.After = &rolecall.TenantsMark{Place: int64(place), Number: int64(number), Mark: at.ID}
	}
	if in.At != "" {
		page, err := s.directory.TenantsChangesEnd(ctx, c)
		return s.tenantsChangesOf(digest, &page), err
	}
	changed := func(access.Caller) (<-chan struct{}, func()) { return s.directory.AwaitTenantsChanges() }
	err = in.await(c, changed, func(c access.Caller) (done bool, err error) {
		page, err := s.directory.TenantsChanges(ctx, c, q)
		if err != nil {
			return true, err
		}
		q.After = &page.Next
		response = s.tenantsChangesOf(digest, &page)
		return len(page.Changes) > 0 || !page.UpToDate, nil
	})
	return response, err
}

// tenantsChangesDigest identifies the changes of the tenants of an operator key with a type. A cursor is
// valid only for them.
func tenantsChangesDigest(c access.Caller, in *listTenantsChangesRequest) []byte {
	parts := [][]byte{[]byte("changes of tenants"), []byte(in.Type)}
	for _, name := range c.Operator.Tenants {
		parts = append(parts, []byte(name))
	}
	return secret.Digest(parts...)
}

// tenantsChangesOf returns the response with the page.
func (s *Server) tenantsChangesOf(digest []byte, page *feed.TenantsPage) operation.Response[changesBody] {
	key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(page.Next.Place)), uint64(page.Next.Number))
	next := rolecall.Position{ID: page.Next.Mark, Key: string(key)}
	body := changesBody{NextCursor: web.SealCursor(s.access.Keys, &next, digest), UpToDate: page.UpToDate, Items: []feed.Item{}}
	for i := range page.Changes {
		tenant := page.Tenants[i]
		body.Items = append(body.Items, feed.NewItem(&page.Changes[i].Event, feed.SourceOf(s.site.Public, tenant), tenant))
	}
	return operation.Response[changesBody]{Body: body}
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

// ownerDraft is the first owner of a tenant.
type ownerDraft struct {
	Email string `json:"email" required:"true" minLength:"3" maxLength:"254" format:"email" doc:"Email address."`
	Name  string `json:"name" required:"true" minLength:"1" maxLength:"255" doc:"Full name. It must have at least as many characters as the setting nameMinimum of new tenants."`
}

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

// ownerInvitation is the invitation of the first owner.
type ownerInvitation struct {
	ExpiresAt      rolecall.Time `json:"expiresAt" doc:"When the invitation expires."`
	SecretWithheld bool          `json:"secretWithheld,omitzero" doc:"True if the request was a repeat, and the token and the link are therefore not shown again. Absent otherwise."`
	Token          string        `json:"token,omitzero" doc:"The token in the link."`
	Link           string        `json:"link,omitzero" doc:"The link that the owner opens to set a password."`
}

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

// operatorEventOperations are the operations on the operators' log.
var operatorEventOperations = []*operation.Operation{
	{
		Method: http.MethodGet, Path: "/operator/events", ID: "OperatorController_listEvents", Summary: "List the events of the operators' log",
		Description: "Lists what operators have done in the whole instance, the newest first: operator keys that were created and revoked, tenants that were created, suspended, resumed, deleted and restored, and changes of the webhooks of operators. The events remain after the data of a tenant was removed.",
		Policy:      authz.ReadOperatorEvents,
		Answers:     operation.Answers{{http.StatusOK, "A page of events.", []string{"Link"}}},
		Endpoint:    operation.Typed((*Server).listOperatorEvents),
	},
	{
		Method: http.MethodGet, Path: "/operator/events/checkpoint", ID: "OperatorController_getCheckpoint", Summary: "Get a checkpoint of the operators' log",
		Description: "Returns the signed size and root of the Merkle log of the operators, as GET /events/checkpoint does for a tenant.",
		Policy:      authz.ReadOperatorEvents,
		Answers:     operation.Answers{{http.StatusOK, "The checkpoint.", nil}},
		Endpoint:    operation.Typed((*Server).getOperatorCheckpoint),
	},
	{
		Method: http.MethodGet, Path: "/operator/events/consistency", ID: "OperatorController_getConsistency", Summary: "Prove that the operators' log has only grown",
		Description: "Returns the proof that the operators' log begins with the events of an earlier checkpoint.",
		Policy:      authz.ReadOperatorEvents,
		Answers:     operation.Answers{{http.StatusOK, "The proof.", nil}},
		Problems:    problems{rolecall.ErrLogShorter},
		Endpoint:    operation.Typed((*Server).getOperatorConsistency),
	},
	{
		Method: http.MethodGet, Path: "/operator/events/{id}/proof", ID: "OperatorController_getEventProof", Summary: "Prove that an event is in the operators' log",
		Description: "Returns the proof that the event is in the operators' log, as GET /events/{id}/proof does for a tenant.",
		Policy:      authz.ReadOperatorEvents,
		Answers:     operation.Answers{{http.StatusOK, "The proof.", nil}},
		Problems:    problems{rolecall.ErrNotFound},
		Endpoint:    operation.Typed((*Server).getOperatorEventProof),
	},
}

type listOperatorEventsRequest struct {
	eventFilterRequest
	Subject rolecall.AnyID `query:"subject" doc:"Only events about this tenant, operator key or webhook."`
}

func (s *Server) listOperatorEvents(ctx context.Context, c access.Caller, in *listOperatorEventsRequest) (operation.Response[operation.Page[eventBody]], error) {
	page, err := s.directory.OperatorEvents(ctx, c, in.listing(in.Subject))
	return operation.NewPage(&page, newEventBody), err
}

func (s *Server) getOperatorCheckpoint(ctx context.Context, c access.Caller, _ *noRequest) (operation.Response[checkpointBody], error) {
	checkpoint, err := s.directory.OperatorCheckpoint(ctx, c, s.site.Public)
	return operation.Response[checkpointBody]{Body: newCheckpointBody(&checkpoint)}, err
}

func (s *Server) getOperatorEventProof(ctx context.Context, c access.Caller, in *eventProofRequest) (operation.Response[eventProofBody], error) {
	proof, err := s.directory.OperatorEventProof(ctx, c, s.site.Public, in.ID)
	if err != nil {
		return operation.Response[eventProofBody]{}, err
	}
	return operation.Response[eventProofBody]{Body: newEventProofBody(&proof)}, nil
}

func (s *Server) getOperatorConsistency(ctx context.Context, c access.Caller, in *consistencyRequest) (operation.Response[consistencyBody], error) {
	proof, err := s.directory.OperatorConsistency(ctx, c, s.site.Public, int64(in.From))
	return operation.Response[consistencyBody]{Body: newConsistencyBody(int64(in.From), &proof)}, err
}

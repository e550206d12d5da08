package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/web"
)

// operatorOperations is everything that is served to operators and is about
// tenants. None of it is there until there is a key.
var operatorOperations = []*operation{
	{
		method: http.MethodGet, path: "/operator/tenants", id: "OperatorController_listTenants", summary: "List the tenants that the key is for, by name",
		operator: true, need: service.NeedOperator, effect: effectNone, parameters: []*parameter{limit, cursor, filterTenantStatus},
		answers: []answer{{http.StatusOK, "TenantPage", "A page of tenants.", []string{"Link"}}},
		handle:  listTenants,
	},
	{
		method: http.MethodPost, path: "/operator/tenants", id: "OperatorController_createTenant", summary: "Create a tenant and invite its first owner",
		operator: true, need: service.NeedEveryTenant, effect: effectGrants, parameters: []*parameter{idempotencyKey}, body: &body{"CreateTenant", true},
		answers:  []answer{{http.StatusCreated, "FoundedTenant", "The new tenant; its first owner is invited by mail, and by the link, which is shown this once.", []string{"Location", "Idempotent-Replayed"}}},
		problems: problems{rolecall.ErrPermissionDenied, rolecall.ErrTenantExists},
		handle:   createTenant,
	},
	{
		method: http.MethodGet, path: "/operator/tenants/{name}", id: "OperatorController_getTenant", summary: "Read a tenant and its settings, also while it is deleted and can be restored",
		operator: true, need: service.NeedOperator, effect: effectNone, parameters: []*parameter{namedTenant, ifNoneMatch},
		answers:  []answer{{http.StatusOK, "Tenant", "The tenant.", []string{"ETag"}}},
		problems: problems{rolecall.ErrNotFound},
		handle:   getOperatedTenant,
	},
	{
		method: http.MethodPatch, path: "/operator/tenants/{name}", id: "OperatorController_updateTenant", summary: "Change a tenant's name to show and its settings",
		operator: true, need: service.NeedOperator, effect: effectGrants, parameters: []*parameter{namedTenant, ifMatch}, body: &body{"UpdateTenant", true},
		answers:  []answer{{http.StatusOK, "Tenant", "The changed tenant.", []string{"ETag"}}},
		problems: problems{rolecall.ErrNotFound},
		handle:   updateOperatedTenant,
	},
	{
		method: http.MethodDelete, path: "/operator/tenants/{name}", id: "OperatorController_deleteTenant", summary: "Delete a tenant at once; it can be restored for 24 hours, and its name stays unusable for 30 days",
		operator: true, need: service.NeedOperator, effect: effectRemoves, parameters: []*parameter{namedTenant, requiredIfMatch},
		answers:  []answer{{http.StatusNoContent, "", "The tenant is deleted. Nobody can use it, and nothing is removed for 24 hours.", nil}},
		problems: problems{rolecall.ErrNotFound},
		handle:   deleteTenant,
	},
	{
		method: http.MethodPost, path: "/operator/tenants/{name}/restore", id: "OperatorController_restoreTenant", summary: "Restore a tenant that was deleted in the last 24 hours",
		operator: true, need: service.NeedOperator, effect: effectGrants, parameters: []*parameter{namedTenant}, body: &body{"Reason", false},
		answers:  []answer{{http.StatusOK, "Tenant", "The tenant as it was before, with its users, roles, sessions and tokens. A tenant that is not deleted is answered unchanged.", []string{"ETag"}}},
		problems: problems{rolecall.ErrNotFound},
		handle:   restoreTenant,
	},
	{
		method: http.MethodPost, path: "/operator/tenants/{name}/suspend", id: "OperatorController_suspendTenant", summary: "Refuse a tenant's sessions and sign-ins until it is resumed",
		operator: true, need: service.NeedOperator, effect: effectEnds, parameters: []*parameter{namedTenant}, body: &body{"Reason", false},
		answers:  []answer{{http.StatusOK, "Tenant", "The suspended tenant.", []string{"ETag"}}},
		problems: problems{rolecall.ErrNotFound},
		handle:   suspendTenant,
	},
	{
		method: http.MethodPost, path: "/operator/tenants/{name}/resume", id: "OperatorController_resumeTenant", summary: "Serve a suspended tenant again",
		operator: true, need: service.NeedOperator, effect: effectGrants, parameters: []*parameter{namedTenant}, body: &body{"Reason", false},
		answers:  []answer{{http.StatusOK, "Tenant", "The resumed tenant.", []string{"ETag"}}},
		problems: problems{rolecall.ErrNotFound},
		handle:   resumeTenant,
	},
}

// operatorSchemas are what those read and answer.
func operatorSchemas() properties {
	return properties{
		"CreateTenant": request("A new tenant and its first owner, who is invited.", properties{
			"name":        described(tenantNameSchema(), "What x-tenant-schema sends; it never changes."),
			"displayName": described(nullable(text(1, rolecall.UserNameMax)), "The name for people; the name, if there is none."),
			"owner": request("", properties{
				"email": text(3, rolecall.EmailMax), "name": text(rolecall.UserNameMin, rolecall.UserNameMax),
			}, "email", "name"),
		}, "name", "owner"),
		"TenantPage": pageOf("A page of tenants.", "Tenant", nil),
		"FoundedTenant": object("A new tenant with its first owner and their invitation. Token and link are shown once; a repeated request is told that they were. An owner who is gone at a repetition has an id alone.", properties{
			"tenant": ref("Tenant"), "owner": ref("User"),
			"invitation": object("", properties{"expiresAt": moment(), "token": anyText(), "link": anyText(), "secretWithheld": truth()}, "expiresAt"),
		}, "tenant", "owner", "invitation"),
	}
}

// servesOperators reports whether operators are served where the request came in.
func (s *Server) servesOperators(r *http.Request) bool {
	return !s.apart || web.IsOperatorListener(r)
}

// isOperated reports whether the operators' paths are served: here, and because
// there is a key. Where the store cannot tell, they are: the next look into it says
// why they cannot be used.
func (s *Server) isOperated(r *http.Request) bool {
	if !s.servesOperators(r) {
		return false
	}
	operated, err := s.service.Operated(r.Context())
	return operated || err != nil
}

// stranger returns what somebody is told who did not say who they are.
func (x *exchange) stranger() error {
	if x.route.operator {
		return rolecall.ErrUnauthenticated.With("No live key of an operator came with the request, as Authorization: Bearer rco_….")
	}
	return rolecall.ErrUnauthenticated
}

func listTenants(x *exchange) error {
	after := ""
	if x.in.after != nil {
		after = x.in.after.Key
	}
	page, err := x.server.service.OperatedTenants(x.ctx, x.call, rolecall.TenantStatus(x.in.status), after, x.in.limit)
	if err != nil {
		return err
	}
	x.out = append(appendPage(x, x.out, &page, appendTenant), '}')
	return x.json(http.StatusOK)
}

func createTenant(x *exchange) error {
	draft, err := x.tenantDraft()
	if err != nil {
		return err
	}
	created, err := x.server.service.FoundTenant(x.ctx, x.call, x.key(), draft)
	if err != nil {
		return err
	}
	x.header["Location"] = []string{x.server.site.Base + "/operator/tenants/" + created.Value.Tenant.Name}
	if created.Replayed {
		x.header["Idempotent-Replayed"] = []string{"true"}
	}
	x.out = x.appendFounded(x.out, &created)
	return x.json(http.StatusCreated)
}

func (x *exchange) tenantDraft() (draft rolecall.TenantDraft, err error) {
	err = x.decode(
		member{"name", true, readString(&draft.Name)},
		member{"displayName", false, readNullable(&draft.DisplayName)},
		member{"owner", true, readObject(
			member{"email", true, readString(&draft.Owner.Email)},
			member{"name", true, readString(&draft.Owner.Name)},
		)},
	).err(draft.Check)
	return draft, err
}

// appendFounded appends the new tenant with its owner's invitation, whose link is
// shown once: it is the way in where mail is not set up.
func (x *exchange) appendFounded(b []byte, created *service.Created[service.Founded]) []byte {
	value := &created.Value
	sight := rolecall.AllUserMembers
	if created.Erased {
		sight = 0
	}
	b = append(b, `{"tenant":`...)
	b = appendTenant(b, &value.Tenant)
	b = append(b, `,"owner":`...)
	b = appendUser(b, &value.Owner, sight)
	b = append(b, `,"invitation":{"expiresAt":`...)
	b = appendTime(b, value.Invitation.ExpiresAt)
	if created.Replayed {
		return append(b, `,"secretWithheld":true}}`...)
	}
	b = append(b, `,"token":`...)
	b = appendText(b, value.Invitation.Token)
	b = append(b, `,"link":`...)
	b = appendText(b, x.server.site.Public+"/console/"+value.Tenant.Name+"/invitation#"+string(value.Invitation.Token))
	return append(b, "}}"...)
}

func getOperatedTenant(x *exchange) error {
	tenant, err := x.server.service.OperatedTenant(x.ctx, x.call, x.in.tenant)
	return x.operatedTenant(&tenant, err)
}

func updateOperatedTenant(x *exchange) error {
	patch, err := x.tenantPatch()
	if err != nil {
		return err
	}
	tenant, err := x.server.service.UpdateOperatedTenant(x.ctx, x.call, x.in.tenant, patch, x.matchTenant())
	return x.operatedTenant(&tenant, err)
}

func deleteTenant(x *exchange) error {
	if !x.in.ifMatch.given {
		return rolecall.ErrPreconditionRequired
	}
	if err := x.server.service.DeleteTenant(x.ctx, x.call, x.in.tenant, x.matchTenant()); err != nil {
		return err
	}
	return x.nothing()
}

func restoreTenant(x *exchange) error {
	reason, err := x.reason()
	if err != nil {
		return err
	}
	tenant, err := x.server.service.RestoreTenant(x.ctx, x.call, x.in.tenant, reason)
	return x.operatedTenant(&tenant, err)
}

func suspendTenant(x *exchange) error {
	reason, err := x.reason()
	if err != nil {
		return err
	}
	tenant, err := x.server.service.SuspendTenant(x.ctx, x.call, x.in.tenant, reason)
	return x.operatedTenant(&tenant, err)
}

func resumeTenant(x *exchange) error {
	reason, err := x.reason()
	if err != nil {
		return err
	}
	tenant, err := x.server.service.ResumeTenant(x.ctx, x.call, x.in.tenant, reason)
	return x.operatedTenant(&tenant, err)
}

// operatedTenant answers with the tenant, unless there is an error.
func (x *exchange) operatedTenant(t *rolecall.Tenant, err error) error {
	if err != nil {
		return err
	}
	x.out = appendTenant(x.out, t)
	return x.tagged(http.StatusOK)
}

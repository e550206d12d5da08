package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) assignmentOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/users/{id}/roles", ID: "UsersController_listUserRoles", Summary: "List a user's roles",
			Description: "Lists the user's role assignments that have not expired, with those through groups: one item for each way in which the user has a role. With includeExpired=true, expired ones are listed too. With at, the answer has the assignments of an earlier time.",
			Policy:      authz.ReadUserRoles,
			Answers:     operation.Answers{{http.StatusOK, "A page of role assignments.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrHistoryExpired},
			Handler:     operation.JSON(s.listUserRoles),
		},
		{
			Method: http.MethodGet, Path: "/service-accounts/{id}/roles", ID: "ServiceAccountsController_listServiceAccountRoles", Summary: "List a service account's roles",
			Description: "Lists the service account's role assignments that have not expired. With includeExpired=true, expired ones are listed too.",
			Policy:      authz.ReadServiceAccounts,
			Answers:     operation.Answers{{http.StatusOK, "A page of role assignments.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(holders[rolecall.ServiceAccount]{s}.listAssignments),
		},
		{
			Method: http.MethodPut, Path: "/users/{id}/roles/{roleId}", ID: "UsersController_assignRole", Summary: "Assign a role to a user",
			Description: "Assigns the role for the whole tenant or for some departments, with or without an expiry. It replaces an existing assignment of the role to the user.",
			Policy:      authz.AssignRole,
			Answers:     operation.Answers{{http.StatusOK, "The new assignment, which replaced an existing one.", nil}, {http.StatusCreated, "The new assignment.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLimitReached, rolecall.ErrLastOwner},
			Handler:     operation.JSON(holders[rolecall.User]{s}.assignRole),
		},
		{
			Method: http.MethodPut, Path: "/service-accounts/{id}/roles/{roleId}", ID: "ServiceAccountsController_assignServiceAccountRole", Summary: "Assign a role to a service account",
			Description: "Assigns the role for the whole tenant or for some departments, with or without an expiry. It replaces an existing assignment of the role to the service account.",
			Policy:      authz.AssignServiceAccountRole,
			Answers:     operation.Answers{{http.StatusOK, "The new assignment, which replaced an existing one.", nil}, {http.StatusCreated, "The new assignment.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLimitReached},
			Handler:     operation.JSON(holders[rolecall.ServiceAccount]{s}.assignRole),
		},
		{
			Method: http.MethodDelete, Path: "/users/{id}/roles/{roleId}", ID: "UsersController_unassignRole", Summary: "Remove a role from a user",
			Description: "Removes the role from the user. If the user has the role only through a group, the answer is 404.",
			Policy:      authz.UnassignRole,
			Answers:     operation.Answers{{http.StatusNoContent, "The role was removed from the user.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLastOwner},
			Handler:     operation.JSON(holders[rolecall.User]{s}.unassignRole),
		},
		{
			Method: http.MethodDelete, Path: "/service-accounts/{id}/roles/{roleId}", ID: "ServiceAccountsController_unassignServiceAccountRole", Summary: "Remove a role from a service account",
			Description: "Removes the role from the service account.",
			Policy:      authz.UnassignServiceAccountRole,
			Answers:     operation.Answers{{http.StatusNoContent, "The role was removed from the service account.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(holders[rolecall.ServiceAccount]{s}.unassignRole),
		},
	}
}

type listAssignmentsRequest[T holder] struct {
	idPath[T]
	operation.PageRequest
	IncludeExpired bool `query:"includeExpired" doc:"Whether to list expired assignments too. They come after the others, the most recently expired first."`
}

// listUserRolesRequest is like listAssignmentsRequest, for a user.
type listUserRolesRequest struct {
	listAssignmentsRequest[rolecall.User]
	At pastTime `query:"at" example:"2026-03-31T12:00:00Z" doc:"List the assignments that the user had at this time and that had not expired. It cannot be combined with includeExpired. If the role was deleted since then, the answer has its last name. Assignments are kept as long as events; for an earlier time, the answer is 410."`
}

// pastTime is the query parameter at. Its zero value means that the parameter is absent.
type pastTime rolecall.Time

var _ = operation.SchemaOf[pastTime](func(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
})

// SetParameter parses a timestamp. It replaces the start of 1970, which is the zero value, with the next
// microsecond.
func (p *pastTime) SetParameter(text string) (code, detail string) {
	if (*rolecall.Time)(p).UnmarshalText([]byte(text)) != nil {
		return "format", "must be a timestamp in RFC 3339, such as 2030-01-31T12:00:00Z"
	}
	*p = cmp.Or(*p, 1)
	return "", ""
}

func (s *Server) listUserRoles(ctx context.Context, c access.Caller, in *listUserRolesRequest) (operation.Response[operation.Page[assignmentBody]], error) {
	if in.At != 0 && in.IncludeExpired {
		return operation.Response[operation.Page[assignmentBody]]{}, rolecall.ErrMalformed.WithFieldErrors(
			rolecall.FieldError{Parameter: "includeExpired", Code: "conflict", Detail: "cannot be combined with at"})
	}
	return assignmentPage(s, ctx, c, &in.listAssignmentsRequest, in.At)
}

func (s holders[T]) listAssignments(ctx context.Context, c access.Caller, in *listAssignmentsRequest[T]) (operation.Response[operation.Page[assignmentBody]], error) {
	return assignmentPage(s.Server, ctx, c, in, 0)
}

// assignmentPage returns a page of the assignments of a holder, or of those at the time if it is set.
func assignmentPage[T holder](s *Server, ctx context.Context, c access.Caller, in *listAssignmentsRequest[T], at pastTime) (operation.Response[operation.Page[assignmentBody]], error) {
	page, err := s.directory.AssignmentPage(ctx, c, rolecall.HolderOf(in.ID), directory.AssignmentListing{
		At: rolecall.Time(at), IncludeExpired: in.IncludeExpired, After: in.After.At, Limit: in.Limit.OrDefault(),
	})
	return operation.NewPage(&page, newAssignmentBody), err
}

// assignedRolePath is the path parameter with the role of an assignment.
type assignedRolePath struct {
	Role rolecall.RoleID `path:"roleId" example:"019d83e6-1ef1-7001-8c02-5a1f0c5d3e11" doc:"ID of the role."`
}

type assignRoleRequest[T holder] struct {
	idPath[T]
	assignedRolePath
	Body assignmentDraft `optional:"true"`
}

// assignRole assigns the role. If the caller may not read roles, the role in the response has
// only its id.
func (s holders[T]) assignRole(ctx context.Context, c access.Caller, in *assignRoleRequest[T]) (operation.Response[assignmentBody], error) {
	a, created, err := s.directory.AssignRole(ctx, c, rolecall.HolderOf(in.ID), in.Role, in.Body.draft())
	if !readsRoles(c) {
		a.Role = rolecall.Role{ID: a.Role.ID}
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return operation.Response[assignmentBody]{Status: status, Body: newAssignmentBody(&a)}, err
}

type unassignRoleRequest[T holder] struct {
	idPath[T]
	assignedRolePath
}

func (s holders[T]) unassignRole(ctx context.Context, c access.Caller, in *unassignRoleRequest[T]) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.UnassignRole(ctx, c, rolecall.HolderOf(in.ID), in.Role)
}

// assignmentDraft describes a new assignment. An empty draft is an assignment for the whole
// tenant that does not expire.
type assignmentDraft struct {
	Reach     reachDraft                       `json:"reach" doc:"The reach of the assignment. Omit it for the whole tenant."`
	ExpiresAt rolecall.Optional[rolecall.Time] `json:"expiresAt" doc:"When the assignment expires, in the future. Omit it for never."`
}

var _ = operation.Component[assignmentDraft]("AssignRole", "The reach and expiry of the assignment. Without a body, it applies to the whole tenant and does not expire.")

func (d *assignmentDraft) draft() rolecall.AssignmentDraft {
	draft := rolecall.AssignmentDraft{Departments: d.Reach.Departments}
	if d.ExpiresAt.Set {
		draft.ExpiresAt = &d.ExpiresAt.Value
	}
	return draft
}

// Check returns the field errors of the draft.
func (d *assignmentDraft) Check(now rolecall.Time) rolecall.FieldErrors {
	draft := d.draft()
	return draft.Check(now)
}

// reachDraft limits an assignment to the users of some departments.
type reachDraft struct {
	Departments []string `json:"departments" required:"true" minItems:"1" maxItems:"100" minLength:"1" maxLength:"255" doc:"The names of the departments. Upper and lower case, invisible characters and the number of blanks do not matter."`
}

var _ = operation.Component[reachDraft]("Reach", "The departments in which the permissions of an assigned role apply.")

// assignmentBody is a role assignment of a user, service account or group.
type assignmentBody struct {
	Role      assignedRole    `json:"role" doc:"The role."`
	Through   throughBody     `json:"through" nullable:"true" doc:"The group through which the user has the role. Null if the role is assigned directly."`
	Reach     reachBody       `json:"reach" nullable:"true" doc:"The reach of the assignment. Null for the whole tenant."`
	ExpiresAt rolecall.Time   `json:"expiresAt" nullable:"true" doc:"When the assignment expires. Null for never."`
	GrantedBy rolecall.UserID `json:"grantedBy" nullable:"true" doc:"ID of the principal who assigned the role. Null for an operator."`
	GrantedAt rolecall.Time   `json:"grantedAt" doc:"When the role was assigned."`
}

var _ = operation.Component[assignmentBody]("Assignment", "The assignment of a role to a user, service account or group, with its reach and expiry.")
var _ = operation.Component[operation.Page[assignmentBody]]("AssignmentPage", "A page of the assignments of a user, service account or group.")

func newAssignmentBody(a *rolecall.Assignment) assignmentBody {
	return assignmentBody{assignedRole{&a.Role}, throughBody{a.Through}, reachBody{a.Reach}, a.ExpiresAt, a.GrantedBy, a.GrantedAt}
}

// throughBody is the group through which a user has a role. Its JSON is null for a role that is assigned directly.
type throughBody struct{ group rolecall.GroupName }

// wayBody is the schema of throughBody.
type wayBody struct {
	Group rolecall.GroupName `json:"group" doc:"The group."`
}

var _ = operation.Component[wayBody]("Through", "The way in which a user has a role that is not assigned directly.")
var _ = operation.SameSchema[throughBody, wayBody]()

var wayEncoder = wire.NewEncoder[wayBody]()

// AppendJSON appends an object with the group, or null.
func (t throughBody) AppendJSON(b []byte) []byte {
	if t.group.ID.IsZero() {
		return append(b, "null"...)
	}
	return wayEncoder.Append(b, &wayBody{t.group})
}

// assignedRole is the role of an assignment. It has only the id if the caller may not read the role.
type assignedRole struct{ role *rolecall.Role }

var _ = operation.SameSchema[assignedRole, roleName]()

// AppendJSON appends the id, the key and the name of the role, or only its id.
func (r assignedRole) AppendJSON(b []byte) []byte {
	if r.role.Name == "" {
		return roleBody{r.role, false}.AppendJSON(b)
	}
	name := newRoleName(r.role)
	return roleNameEncoder.Append(b, &name)
}

// reachBody is a reach. The JSON of the whole tenant is null.
type reachBody struct{ reach rolecall.Reach }

var _ = operation.SameSchema[reachBody, reachDraft]()

// AppendJSON appends an object with the departments, or null for the whole tenant.
func (r reachBody) AppendJSON(b []byte) []byte {
	if r.reach.IsEverywhere() {
		return append(b, "null"...)
	}
	b = append(b, `{"departments":[`...)
	for i, department := range r.reach.Departments() {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendText(b, department)
	}
	return append(b, "]}"...)
}

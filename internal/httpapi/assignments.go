package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/wire"
)

type listAssignmentsRequest[T holder] struct {
	idPath[T]
	IncludeExpired bool `query:"includeExpired" doc:"Whether to list expired assignments too. They come after the others, the most recently expired first."`
}

func listAssignments[T holder](s *Server, ctx context.Context, c access.Caller, in *listAssignmentsRequest[T]) (operation.Response[operation.Page[assignmentBody]], error) {
	live, expired, err := s.directory.Assignments(ctx, c, rolecall.HolderOf(in.ID))
	if in.IncludeExpired {
		live = append(live, expired...)
	}
	return operation.NewPage(&rolecall.Page[rolecall.Assignment]{Items: live}, newAssignmentBody), err
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
func assignRole[T holder](s *Server, ctx context.Context, c access.Caller, in *assignRoleRequest[T]) (operation.Response[assignmentBody], error) {
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

func unassignRole[T holder](s *Server, ctx context.Context, c access.Caller, in *unassignRoleRequest[T]) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.UnassignRole(ctx, c, rolecall.HolderOf(in.ID), in.Role)
}

// assignmentDraft describes a new assignment. An empty draft is an assignment for the whole
// tenant that does not expire.
type assignmentDraft struct {
	Reach     reachDraft     `json:"reach" doc:"The reach of the assignment. Null for the whole tenant."`
	ExpiresAt *rolecall.Time `json:"expiresAt" doc:"When the assignment expires, in the future. Null for never."`
}

// reachDraft limits an assignment to the users of some departments.
type reachDraft struct {
	Departments []string `json:"departments" required:"true" minItems:"1" maxItems:"100" minLength:"3" maxLength:"255" doc:"The names of the departments. Upper and lower case and accents do not matter."`
}

func (d *assignmentDraft) draft() rolecall.AssignmentDraft {
	return rolecall.AssignmentDraft{Departments: d.Reach.Departments, ExpiresAt: d.ExpiresAt}
}

// Check returns the field errors of the draft.
func (d *assignmentDraft) Check(now rolecall.Time) rolecall.FieldErrors {
	draft := d.draft()
	return draft.Check(now)
}

// assignmentBody is a role assignment of a user or service account.
type assignmentBody struct {
	Role      assignedRole    `json:"role" doc:"The role."`
	Reach     reachBody       `json:"reach" nullable:"true" doc:"The reach of the assignment. Null for the whole tenant."`
	ExpiresAt rolecall.Time   `json:"expiresAt" nullable:"true" doc:"When the assignment expires. Null for never."`
	GrantedBy rolecall.UserID `json:"grantedBy" nullable:"true" doc:"ID of the principal who assigned the role. Null for an operator."`
	GrantedAt rolecall.Time   `json:"grantedAt" doc:"When the role was assigned."`
}

func newAssignmentBody(a *rolecall.Assignment) assignmentBody {
	return assignmentBody{assignedRole{&a.Role}, reachBody{a.Reach}, a.ExpiresAt, a.GrantedBy, a.GrantedAt}
}

// assignedRole is the role of an assignment. It has only the id if the caller may not read the role.
type assignedRole struct{ role *rolecall.Role }

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

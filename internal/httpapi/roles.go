package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

type listRolesRequest struct {
	operation.PageRequest
	Sort   operation.Order  `query:"sort" order:"name,createdAt" doc:"The sort order. A leading - reverses it. The default is the creation time."`
	Search operation.Search `query:"q" doc:"Up to 8 words. Each must be the beginning of a word in the name."`
	Key    string           `query:"key" maxLength:"63" doc:"Only the role with this key."`

	Permission permissionValue `query:"permission" doc:"Only roles that give this permission, also by a wildcard. It has no wildcards, such as users:erase or shop/invoices:approve."`
	operation.CountQuery
}

func (s *Server) listRoles(ctx context.Context, c access.Caller, in *listRolesRequest) (operation.Response[operation.CountedPage[roleBody]], error) {
	page, err := s.directory.Roles(ctx, c, directory.RoleListing{
		Key: in.Key, Words: in.Search, Permission: in.Permission.orNil(), ByName: in.Sort.By == "name", Desc: in.Sort.Desc,
		After: in.After.At, Limit: in.Limit.OrDefault(), Count: in.Count,
	})
	return operation.NewCountedPage(&page, func(r *rolecall.Role) roleBody { return roleBody{r, true} }), err
}

type createRoleRequest struct {
	operation.IdempotencyHeader
	Body rolecall.RoleDraft
}

func (s *Server) createRole(ctx context.Context, c access.Caller, in *createRoleRequest) (operation.Response[roleBody], error) {
	created, err := s.directory.CreateRole(ctx, c, in.Key, in.Body)
	body := roleBody{&created.Value, err == nil && !created.Erased && readsRoles(c)}
	return operation.Response[roleBody]{Body: body, Location: "/roles/" + created.Value.ID.String(), Replayed: created.Replayed}, err
}

func (s *Server) getRole(ctx context.Context, c access.Caller, in *getRequest[rolecall.Role]) (operation.Response[roleBody], error) {
	role, err := s.directory.Role(ctx, c, in.ID)
	return operation.Response[roleBody]{Body: roleBody{&role, readsRoles(c)}}, err
}

type updateRoleBody struct {
	rolecall.RolePatch
	Key wire.Immutable `json:"key"`
}

type updateRoleRequest struct {
	rolePath
	operation.IfMatchHeader
	Body updateRoleBody
}

func (s *Server) updateRole(ctx context.Context, c access.Caller, in *updateRoleRequest) (operation.Response[roleBody], error) {
	role, err := s.directory.UpdateRole(ctx, c, in.ID, in.Body.RolePatch, match(in.IfMatch, roleTag(c)))
	return operation.Response[roleBody]{Body: roleBody{&role, readsRoles(c)}}, err
}

type deleteRoleRequest struct {
	rolePath
	operation.IfMatchHeader
	Force bool `query:"force" doc:"Whether to remove the role from all users and service accounts that have it."`
}

func (s *Server) deleteRole(ctx context.Context, c access.Caller, in *deleteRoleRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.DeleteRole(ctx, c, in.ID, in.Force, match(in.IfMatch, roleTag(c)))
}

type listRoleUsersRequest struct {
	rolePath
	userFilterRequest
	Status string   `query:"status" enum:"pending,active,suspended" doc:"Only users with this status."`
	At     pastTime `query:"at" example:"2026-03-31T12:00:00Z" doc:"List the users who had the role at this time. Users who were deleted since then are absent. The other filters and the permissions of the caller apply to the users as they are now. The role can be deleted. For a time whose assignments are not recorded, the answer is 410."`
}

func (s *Server) listRoleUsers(ctx context.Context, c access.Caller, in *listRoleUsersRequest) (operation.Response[userPage], error) {
	listing := in.listing(in.Status, rolecall.RoleID{})
	listing.HeldAt = rolecall.Time(in.At)
	page, err := s.directory.RoleUsers(ctx, c, in.ID, listing)
	return operation.Response[userPage]{Body: newUserPage(c, &page), Next: page.Next}, err
}

// readsRoles reports whether the caller may read roles. Callers without this permission get only the
// ids of roles.
func readsRoles(c access.Caller) bool {
	return c.Principal != nil && !c.Reach(rolecall.RolesRead).IsNowhere()
}

var (
	roleEncoder = wire.NewEncoder[rolecall.Role]()
	roleID0     = roleEncoder.Fields("id")
)

// roleBody is a role. If the caller may not read the role, its JSON has only the id.
type roleBody struct {
	role     *rolecall.Role
	readable bool
}

// AppendJSON appends the members that the caller may read.
func (b roleBody) AppendJSON(out []byte) []byte {
	if !b.readable {
		return roleEncoder.AppendFields(out, b.role, roleID0)
	}
	return roleEncoder.Append(out, b.role)
}

func (b roleBody) HiddenMembers() string {
	if b.readable {
		return ""
	}
	return "key, name, description, permissions, grants, system, createdAt, updatedAt"
}

func (b roleBody) HasTag() bool { return b.readable }

// roleTag returns a function that computes the ETag of a role from the members that the caller may
// read.
func roleTag(c access.Caller) func(*rolecall.Role) string {
	readable := readsRoles(c)
	return func(r *rolecall.Role) string { return secret.ETag(roleBody{r, readable}.AppendJSON(nil)) }
}

// roleName has the members that identify a role.
type roleName struct {
	ID   rolecall.RoleID `json:"id" doc:"ID of the role."`
	Key  *string         `json:"key" doc:"Stable name of the role for programs. Null without one."`
	Name string          `json:"name" doc:"Name of the role."`
}

func newRoleName(r *rolecall.Role) roleName { return roleName{r.ID, r.Key, r.Name} }

var roleNameEncoder = wire.NewEncoder[roleName]()

type listAccessRequest struct {
	operation.PageRequest
	Permission permissionValue `query:"permission" required:"true" example:"users:erase" doc:"The permission, without wildcards, such as users:erase or shop/invoices:approve."`
	Department string          `query:"department" maxLength:"255" doc:"Only those who have the permission for the users of this department, or in the whole tenant. Upper and lower case, invisible characters and the number of blanks do not matter."`
}

func (s *Server) listAccess(ctx context.Context, c access.Caller, in *listAccessRequest) (operation.Response[accessPage], error) {
	permission := rolecall.Permission(in.Permission)
	page, err := s.directory.Access(ctx, c, directory.AccessListing{
		Permission: permission, Department: in.Department, After: in.After.At, Limit: in.Limit.OrDefault(),
	})
	response := operation.NewPage(&page, func(a *directory.Access) accessBody { return newAccessBody(c, a, permission) })
	return operation.Response[accessPage]{Body: accessPage{response.Body}, Next: response.Next}, err
}

// accessBody is a user or a service account that has a permission.
type accessBody struct {
	User           *userBody           `json:"user" nullable:"true" doc:"The user who has the permission, with the members that the caller may read. Null for a service account."`
	ServiceAccount *serviceAccountBody `json:"serviceAccount" nullable:"true" doc:"The service account that has the permission. Null for a user."`
	Grants         []accessGrant       `json:"grants" doc:"The role assignments that give the permission."`
}

// accessGrant is an assignment that gives a permission.
type accessGrant struct {
	Role        roleName              `json:"role" doc:"The role."`
	Permissions []rolecall.Permission `json:"permissions" doc:"The permissions of the role that cover the permission of the request. They can have wildcards."`
	Reach       reachBody             `json:"reach" nullable:"true" doc:"The reach of the assignment. Null for the whole tenant."`
	ExpiresAt   rolecall.Time         `json:"expiresAt" nullable:"true" doc:"When the assignment expires. Null for never."`
}

func newAccessBody(c access.Caller, a *directory.Access, permission rolecall.Permission) accessBody {
	body := accessBody{Grants: operation.Bodies(a.Assignments, func(a *rolecall.Assignment) accessGrant {
		return accessGrant{newRoleName(&a.Role), a.Role.Covering(permission), reachBody{a.Reach}, a.ExpiresAt}
	})}
	if a.User != nil {
		body.User = &userBody{user: a.User, readable: c.ReadableListMembers(a.User)}
	} else {
		body.ServiceAccount = &serviceAccountBody{a.Account, true}
	}
	return body
}

// accessPage is a page of the users and service accounts that have a permission.
type accessPage struct{ operation.Page[accessBody] }

func (p *accessPage) HiddenMembers() string {
	readable := rolecall.AllUserMembers
	for _, item := range p.Items {
		if item.User != nil {
			readable &= item.User.readable
		}
	}
	return names(rolecall.AllUserMembers &^ readable)
}

// roleOperations are the operations on roles and on the permissions of roles.
var roleOperations = []*operation.Operation{
	{
		Method: http.MethodGet, Path: "/roles", ID: "RolesController_listRoles", Summary: "List roles",
		Description: "Lists the roles of the tenant.",
		Policy:      authz.ReadRoles,
		Answers:     operation.Answers{{http.StatusOK, "A page of roles.", []string{"Link"}}},
		Endpoint:    operation.Typed((*Server).listRoles),
	},
	{
		Method: http.MethodPost, Path: "/roles", ID: "RolesController_createRole", Summary: "Create a role",
		Description: "Creates a role with the permissions in the body.",
		Policy:      authz.CreateRole,
		Answers:     operation.Answers{{http.StatusCreated, "The new role. Callers without roles:read get the ID only.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
		Problems:    problems{rolecall.ErrBeyondOwnPermissions, rolecall.ErrLimitReached, rolecall.ErrRoleNameTaken, rolecall.ErrRoleKeyTaken},
		Endpoint:    operation.Typed((*Server).createRole),
	},
	{
		Method: http.MethodGet, Path: "/roles/{id}", ID: "RolesController_getRole", Summary: "Get a role",
		Description: "Returns the role with its permissions.",
		Policy:      authz.ReadRoles,
		Answers:     operation.Answers{{http.StatusOK, "The role.", []string{"ETag"}}},
		Problems:    problems{rolecall.ErrNotFound},
		Endpoint:    operation.Typed((*Server).getRole),
	},
	{
		Method: http.MethodPatch, Path: "/roles/{id}", ID: "RolesController_updateRole", Summary: "Update a role",
		Description: "Changes the members that are in the body. The change also applies to the users and service accounts that have the role.",
		Policy:      authz.UpdateRole,
		Answers:     operation.Answers{{http.StatusOK, "The changed role. Callers without roles:read get the ID only.", []string{"ETag", "Withheld-Fields"}}},
		Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrRoleNameTaken, rolecall.ErrSystemRole},
		Endpoint:    operation.Typed((*Server).updateRole),
	},
	{
		Method: http.MethodDelete, Path: "/roles/{id}", ID: "RolesController_deleteRole", Summary: "Delete a role",
		Description: "If users or service accounts have the role, the answer is 409. With force=true, the role is removed from all of them. If the setting secondFactor of the tenant names the role, the answer is 409, also with force=true.",
		Policy:      authz.DeleteRole,
		Answers:     operation.Answers{{http.StatusNoContent, "The role was deleted.", nil}},
		Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrRoleInUse, rolecall.ErrRoleDemandsFactor, rolecall.ErrSystemRole, rolecall.ErrLastOwner},
		Endpoint:    operation.Typed((*Server).deleteRole),
	},
	{
		Method: http.MethodGet, Path: "/roles/{id}/users", ID: "RolesController_listRoleUsers", Summary: "List the users with a role",
		Description: "Lists the users who have the role, as far as the caller may read them. With at, it lists the users who had the role at an earlier time.",
		Policy:      authz.ListRoleUsers,
		Answers:     operation.Answers{{http.StatusOK, "A page of users, with the members that the caller may read.", []string{"Link", "Withheld-Fields"}}},
		Problems:    problems{rolecall.ErrNotFound, rolecall.ErrFieldNotReadable, rolecall.ErrHistoryExpired},
		Endpoint:    operation.Typed((*Server).listRoleUsers),
	},
	{
		Method: http.MethodGet, Path: "/access", ID: "AccessController_listAccess", Summary: "List who has a permission",
		Description: "Lists the users and then the service accounts that have the permission through their roles, also by a wildcard, with the roles that give it. It includes pending and suspended ones. Expired assignments and deleted users are not listed. Of the users, it lists only those whose roles the caller may read. A page can be short or empty although nextCursor is not null.",
		Policy:      authz.ListAccess,
		Answers:     operation.Answers{{http.StatusOK, "A page of users and service accounts, with the members that the caller may read.", []string{"Link", "Withheld-Fields"}}},
		Endpoint:    operation.Typed((*Server).listAccess),
	},
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

func listAssignments[T holder](s *Server, ctx context.Context, c access.Caller, in *listAssignmentsRequest[T]) (operation.Response[operation.Page[assignmentBody]], error) {
	return assignmentPage(s, ctx, c, in, 0)
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
	Reach     reachDraft                       `json:"reach" doc:"The reach of the assignment. Omit it for the whole tenant."`
	ExpiresAt rolecall.Optional[rolecall.Time] `json:"expiresAt" doc:"When the assignment expires, in the future. Omit it for never."`
}

// reachDraft limits an assignment to the users of some departments.
type reachDraft struct {
	Departments []string `json:"departments" required:"true" minItems:"1" maxItems:"100" minLength:"1" maxLength:"255" doc:"The names of the departments. Upper and lower case, invisible characters and the number of blanks do not matter."`
}

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

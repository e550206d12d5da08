package httpapi

import (
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

func (s *Server) roleOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/roles", ID: "RolesController_listRoles", Summary: "List roles",
			Description: "Lists the roles of the tenant.",
			Policy:      authz.ReadRoles,
			Answers:     operation.Answers{{http.StatusOK, "A page of roles.", []string{"Link"}}},
			Handler:     operation.JSON(s.listRoles),
		},
		{
			Method: http.MethodPost, Path: "/roles", ID: "RolesController_createRole", Summary: "Create a role",
			Description: "Creates a role with the permissions in the body.",
			Policy:      authz.CreateRole,
			Answers:     operation.Answers{{http.StatusCreated, "The new role. Callers without roles:read get the ID only.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrBeyondOwnPermissions, rolecall.ErrLimitReached, rolecall.ErrRoleNameTaken, rolecall.ErrRoleKeyTaken},
			Handler:     operation.JSON(s.createRole),
		},
		{
			Method: http.MethodGet, Path: "/roles/{id}", ID: "RolesController_getRole", Summary: "Get a role",
			Description: "Returns the role with its permissions.",
			Policy:      authz.ReadRoles,
			Answers:     operation.Answers{{http.StatusOK, "The role.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getRole),
		},
		{
			Method: http.MethodPatch, Path: "/roles/{id}", ID: "RolesController_updateRole", Summary: "Update a role",
			Description: "Changes the members that are in the body. The change also applies to the users and service accounts that have the role.",
			Policy:      authz.UpdateRole,
			Answers:     operation.Answers{{http.StatusOK, "The changed role. Callers without roles:read get the ID only.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrRoleNameTaken, rolecall.ErrSystemRole},
			Handler:     operation.JSON(s.updateRole),
		},
		{
			Method: http.MethodDelete, Path: "/roles/{id}", ID: "RolesController_deleteRole", Summary: "Delete a role",
			Description: "If users, service accounts or groups have the role, the answer is 409. With force=true, the role is removed from all of them. If the setting secondFactor of the tenant names the role, the answer is 409, also with force=true.",
			Policy:      authz.DeleteRole,
			Answers:     operation.Answers{{http.StatusNoContent, "The role was deleted.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrRoleInUse, rolecall.ErrRoleDemandsFactor, rolecall.ErrSystemRole, rolecall.ErrLastOwner},
			Handler:     operation.JSON(s.deleteRole),
		},
		{
			Method: http.MethodGet, Path: "/roles/{id}/users", ID: "RolesController_listRoleUsers", Summary: "List the users with a role",
			Description: "Lists the users who have the role, directly or through a group, as far as the caller may read them. With at, it lists the users who had the role at an earlier time.",
			Policy:      authz.ListRoleUsers,
			Answers:     operation.Answers{{http.StatusOK, "A page of users, with the members that the caller may read.", []string{"Link", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrFieldNotReadable, rolecall.ErrHistoryExpired},
			Handler:     operation.JSON(s.listRoleUsers),
		},
	}
}

// Types of package rolecall in the OpenAPI document.
var (
	_ = operation.PathID[rolecall.RoleID]("ID of the role.", "019d83e6-1ef1-7001-8c02-5a1f0c5d3e11")
	_ = operation.Component[rolecall.RoleDraft]("CreateRole", "A new role.")
	_ = operation.ComponentOrID[rolecall.Role]("Role", "A named set of permissions. Callers without roles:read get the ID only.")
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

var _ = operation.Component[updateRoleBody]("UpdateRole", "A merge patch (RFC 7396). Absent members do not change. A list replaces the whole old list. Null clears a member.")

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
	Force bool `query:"force" doc:"Whether to remove the role from all users, service accounts and groups that have it."`
}

func (s *Server) deleteRole(ctx context.Context, c access.Caller, in *deleteRoleRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.DeleteRole(ctx, c, in.ID, in.Force, match(in.IfMatch, roleTag(c)))
}

type listRoleUsersRequest struct {
	rolePath
	userFilterRequest
	directQuery
	Status string   `query:"status" enum:"pending,active,suspended" doc:"Only users with this status."`
	At     pastTime `query:"at" example:"2026-03-31T12:00:00Z" doc:"List the users who had the role at this time. Users who were deleted since then are absent. The other filters and the permissions of the caller apply to the users as they are now. The role can be deleted. For a time whose assignments are not recorded, the answer is 410."`
}

// directQuery is the query parameter direct.
type directQuery struct {
	Direct bool `query:"direct" doc:"Whether to leave out the users who have the role only through a group."`
}

func (s *Server) listRoleUsers(ctx context.Context, c access.Caller, in *listRoleUsersRequest) (operation.Response[userPage], error) {
	listing := in.listing(in.Status, rolecall.RoleID{})
	listing.HeldAt, listing.Direct = rolecall.Time(in.At), in.Direct
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

var _ = operation.Component[operation.CountedPage[roleBody]]("RolePage", "A page of roles.")
var _ = operation.SameSchema[roleBody, rolecall.Role]()

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

var _ = operation.ComponentOrID[roleName]("RoleName", "The names of a role. Callers without roles:read get the ID only.")

func newRoleName(r *rolecall.Role) roleName { return roleName{r.ID, r.Key, r.Name} }

var roleNameEncoder = wire.NewEncoder[roleName]()

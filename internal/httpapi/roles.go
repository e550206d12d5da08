package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
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
	operation.CountQuery
}

func (s *Server) listRoles(ctx context.Context, c access.Caller, in *listRolesRequest) (operation.Response[operation.CountedPage[roleBody]], error) {
	page, err := s.directory.Roles(ctx, c, directory.RoleListing{
		Key: in.Key, Words: in.Search, ByName: in.Sort.By == "name", Desc: in.Sort.Desc,
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
	Status string `query:"status" enum:"pending,active,suspended" doc:"Only users with this status."`
}

func (s *Server) listRoleUsers(ctx context.Context, c access.Caller, in *listRoleUsersRequest) (operation.Response[userPage], error) {
	page, err := s.directory.RoleUsers(ctx, c, in.ID, in.listing(in.Status, rolecall.RoleID{}))
	return operation.Response[userPage]{Body: newUserPage(c, &page), Next: page.Next}, err
}

// readsRoles reports whether the caller may read roles. Other callers get only the ids.
func readsRoles(c access.Caller) bool {
	return c.Principal != nil && !c.Reach(rolecall.RolesRead).IsNowhere()
}

var (
	roleEncoder = wire.NewEncoder[rolecall.Role]()
	roleID0     = roleEncoder.Fields("id")
)

// roleBody is a role, or its id alone if the caller may not read it.
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

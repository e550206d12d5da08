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

func (s *Server) groupOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/groups", ID: "GroupsController_listGroups", Summary: "List groups",
			Description: "Lists the groups of the tenant.",
			Policy:      authz.ReadGroups,
			Answers:     operation.Answers{{http.StatusOK, "A page of groups.", []string{"Link"}}},
			Handler:     operation.JSON(s.listGroups),
		},
		{
			Method: http.MethodPost, Path: "/groups", ID: "GroupsController_createGroup", Summary: "Create a group",
			Description: "Creates a group without members and roles. With source, the directory or the connection fills it.",
			Policy:      authz.CreateGroup,
			Answers:     operation.Answers{{http.StatusCreated, "The new group. Callers without groups:read get the ID only.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrSessionRequired, rolecall.ErrLimitReached, rolecall.ErrGroupNameTaken, rolecall.ErrGroupExternalIDTaken},
			Handler:     operation.JSON(s.createGroup),
		},
		{
			Method: http.MethodGet, Path: "/groups/{id}", ID: "GroupsController_getGroup", Summary: "Get a group",
			Description: "Returns the group.",
			Policy:      authz.ReadGroups,
			Answers:     operation.Answers{{http.StatusOK, "The group.", []string{"ETag"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getGroup),
		},
		{
			Method: http.MethodPatch, Path: "/groups/{id}", ID: "GroupsController_updateGroup", Summary: "Update a group",
			Description: "Changes the members that are in the body. Of a group with a source, only the description can be changed.",
			Policy:      authz.UpdateGroup,
			Answers:     operation.Answers{{http.StatusOK, "The changed group. Callers without groups:read get the ID only.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrManagedByDirectory, rolecall.ErrGroupNameTaken, rolecall.ErrGroupExternalIDTaken},
			Handler:     operation.JSON(s.updateGroup),
		},
		{
			Method: http.MethodDelete, Path: "/groups/{id}", ID: "GroupsController_deleteGroup", Summary: "Delete a group",
			Description: "Deletes the group. Its members lose the roles that they have only through the group. If the group has roles, the answer is 409. With force=true, it is deleted with its roles. A group with a source cannot be deleted.",
			Policy:      authz.DeleteGroup,
			Answers:     operation.Answers{{http.StatusNoContent, "The group was deleted.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrManagedByDirectory, rolecall.ErrGroupHasRoles},
			Handler:     operation.JSON(s.deleteGroup),
		},
		{
			Method: http.MethodGet, Path: "/groups/{id}/users", ID: "GroupsController_listGroupUsers", Summary: "List the members of a group",
			Description: "Lists the users who are in the group, as far as the caller may read them.",
			Policy:      authz.ListGroupUsers,
			Answers:     operation.Answers{{http.StatusOK, "A page of users, with the members that the caller may read.", []string{"Link", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrFieldNotReadable},
			Handler:     operation.JSON(s.listGroupUsers),
		},
		{
			Method: http.MethodPut, Path: "/groups/{id}/users/{userId}", ID: "GroupsController_addGroupUser", Summary: "Add a user to a group",
			Description: "Adds the user to the group. The user then has the roles of the group. If the user is a member already, nothing changes. The members of a group with a source can be changed only at the identity provider.",
			Policy:      authz.AddMember,
			Answers:     operation.Answers{{http.StatusNoContent, "The user is a member of the group.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrManagedByDirectory, rolecall.ErrLimitReached},
			Handler:     operation.JSON(s.addGroupUser),
		},
		{
			Method: http.MethodDelete, Path: "/groups/{id}/users/{userId}", ID: "GroupsController_removeGroupUser", Summary: "Remove a user from a group",
			Description: "Removes the user from the group. The user loses the roles that the user has only through the group. The members of a group with a source can be changed only at the identity provider.",
			Policy:      authz.RemoveMember,
			Answers:     operation.Answers{{http.StatusNoContent, "The user was removed from the group.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrManagedByDirectory},
			Handler:     operation.JSON(s.removeGroupUser),
		},
		{
			Method: http.MethodGet, Path: "/users/{id}/groups", ID: "UsersController_listUserGroups", Summary: "List a user's groups",
			Description: "Lists the memberships of the user in groups.",
			Policy:      authz.ReadUserGroups,
			Answers:     operation.Answers{{http.StatusOK, "A page of memberships.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.listUserGroups),
		},
		{
			Method: http.MethodGet, Path: "/groups/{id}/roles", ID: "GroupsController_listGroupRoles", Summary: "List a group's roles",
			Description: "Lists the group's role assignments that have not expired. With includeExpired=true, expired ones are listed too.",
			Policy:      authz.ReadGroups,
			Answers:     operation.Answers{{http.StatusOK, "A page of role assignments.", []string{"Link"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(holders[rolecall.Group]{s}.listAssignments),
		},
		{
			Method: http.MethodPut, Path: "/groups/{id}/roles/{roleId}", ID: "GroupsController_assignGroupRole", Summary: "Assign a role to a group",
			Description: "Gives the role to all members of the group, for the whole tenant or for some departments, with or without an expiry. It replaces an existing assignment of the role to the group.",
			Policy:      authz.AssignGroupRole,
			Answers:     operation.Answers{{http.StatusOK, "The new assignment, which replaced an existing one.", nil}, {http.StatusCreated, "The new assignment.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLimitReached, rolecall.ErrOwnerNeedsUser},
			Handler:     operation.JSON(holders[rolecall.Group]{s}.assignRole),
		},
		{
			Method: http.MethodDelete, Path: "/groups/{id}/roles/{roleId}", ID: "GroupsController_unassignGroupRole", Summary: "Remove a role from a group",
			Description: "Removes the role from the group. Its members lose the role, unless they have it in another way.",
			Policy:      authz.UnassignGroupRole,
			Answers:     operation.Answers{{http.StatusNoContent, "The role was removed from the group.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(holders[rolecall.Group]{s}.unassignRole),
		},
	}
}

// Types of package rolecall in the OpenAPI document.
var (
	_ = operation.PathID[rolecall.GroupID]("ID of the group.", "019d83e6-1ef1-7003-9d14-3c5e7a9b1d33")
	_ = operation.Component[rolecall.GroupDraft]("CreateGroup", "A new group. It has no members and no roles at first.")
	_ = operation.Component[rolecall.GroupPatch]("UpdateGroup", "A merge patch (RFC 7396). Absent members do not change. Null clears a member.")
	_ = operation.ComponentOrID[rolecall.Group]("Group", "A set of users. The roles of the group apply to each of them. Callers without groups:read get the ID only.")
	_ = operation.Component[rolecall.GroupName]("GroupName", "The name of a group.")
	_ = operation.Component[rolecall.MemberSource]("MemberSource", "The directory or the connection that fills a group.")
	_ = operation.Component[rolecall.Membership]("Membership", "The membership of a user in a group.")
	_ = operation.Component[operation.Page[rolecall.Membership]]("MembershipPage", "A page of memberships.")
)

type listGroupsRequest struct {
	operation.PageRequest
	Sort       operation.Order  `query:"sort" order:"name,createdAt" doc:"The sort order. A leading - reverses it. The default is the creation time."`
	Search     operation.Search `query:"q" doc:"Up to 8 words. Each must be the beginning of a word in the name."`
	ExternalID string           `query:"externalId" maxLength:"255" doc:"Only the group with this external ID."`
	operation.CountQuery
}

func (s *Server) listGroups(ctx context.Context, c access.Caller, in *listGroupsRequest) (operation.Response[operation.CountedPage[groupBody]], error) {
	page, err := s.directory.Groups(ctx, c, rolecall.GroupQuery{
		Words: in.Search, ExternalID: in.ExternalID, ByName: in.Sort.By == "name", Desc: in.Sort.Desc,
		After: in.After.At, Limit: in.Limit.OrDefault(), Count: in.Count,
	})
	return operation.NewCountedPage(&page, func(g *rolecall.Group) groupBody { return groupBody{g, true} }), err
}

type createGroupRequest struct {
	operation.IdempotencyHeader
	Body rolecall.GroupDraft
}

func (s *Server) createGroup(ctx context.Context, c access.Caller, in *createGroupRequest) (operation.Response[groupBody], error) {
	created, err := s.directory.CreateGroup(ctx, c, in.Key, in.Body)
	body := groupBody{&created.Value, err == nil && !created.Erased && readsGroups(c)}
	return operation.Response[groupBody]{Body: body, Location: "/groups/" + created.Value.ID.String(), Replayed: created.Replayed}, err
}

func (s *Server) getGroup(ctx context.Context, c access.Caller, in *getRequest[rolecall.Group]) (operation.Response[groupBody], error) {
	group, err := s.directory.Group(ctx, c, in.ID)
	return operation.Response[groupBody]{Body: groupBody{&group, readsGroups(c)}}, err
}

type updateGroupRequest struct {
	groupPath
	operation.IfMatchHeader
	Body rolecall.GroupPatch
}

func (s *Server) updateGroup(ctx context.Context, c access.Caller, in *updateGroupRequest) (operation.Response[groupBody], error) {
	group, err := s.directory.UpdateGroup(ctx, c, in.ID, in.Body, match(in.IfMatch, groupTag(c)))
	return operation.Response[groupBody]{Body: groupBody{&group, readsGroups(c)}}, err
}

type deleteGroupRequest struct {
	groupPath
	operation.IfMatchHeader
	Force bool `query:"force" doc:"Whether to delete the group although it has roles."`
}

func (s *Server) deleteGroup(ctx context.Context, c access.Caller, in *deleteGroupRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.DeleteGroup(ctx, c, in.ID, in.Force, match(in.IfMatch, groupTag(c)))
}

type listGroupUsersRequest struct {
	groupPath
	userFilterRequest
	Status string `query:"status" enum:"pending,active,suspended" doc:"Only users with this status."`
}

func (s *Server) listGroupUsers(ctx context.Context, c access.Caller, in *listGroupUsersRequest) (operation.Response[userPage], error) {
	page, err := s.directory.GroupUsers(ctx, c, in.ID, in.listing(in.Status, rolecall.RoleID{}))
	return operation.Response[userPage]{Body: newUserPage(c, &page), Next: page.Next}, err
}

type groupUserRequest struct {
	groupPath
	User rolecall.UserID `path:"userId" example:"019d83e6-1ef1-7000-a2d4-9c1f3b5e7d20" doc:"ID of the user."`
}

func (s *Server) addGroupUser(ctx context.Context, c access.Caller, in *groupUserRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.AddMember(ctx, c, in.ID, in.User)
}

func (s *Server) removeGroupUser(ctx context.Context, c access.Caller, in *groupUserRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.RemoveMember(ctx, c, in.ID, in.User)
}

type listUserGroupsRequest struct {
	idPath[rolecall.User]
	operation.PageRequest
}

func (s *Server) listUserGroups(ctx context.Context, c access.Caller, in *listUserGroupsRequest) (operation.Response[operation.Page[rolecall.Membership]], error) {
	page, err := s.directory.UserGroups(ctx, c, in.ID, in.After.At, in.Limit.OrDefault())
	return operation.NewPage(&page, func(m *rolecall.Membership) rolecall.Membership { return *m }), err
}

// readsGroups reports whether the caller may read groups. Callers without this permission get only the ids of groups.
func readsGroups(c access.Caller) bool {
	return c.Principal != nil && c.Reach(rolecall.GroupsRead).IsEverywhere()
}

var (
	groupEncoder = wire.NewEncoder[rolecall.Group]()
	groupID0     = groupEncoder.Fields("id")
)

// groupBody is a group. If the caller may not read the group, its JSON has only the id.
type groupBody struct {
	group    *rolecall.Group
	readable bool
}

var _ = operation.Component[operation.CountedPage[groupBody]]("GroupPage", "A page of groups.")
var _ = operation.SameSchema[groupBody, rolecall.Group]()

// AppendJSON appends the members that the caller may read.
func (b groupBody) AppendJSON(out []byte) []byte {
	if !b.readable {
		return groupEncoder.AppendFields(out, b.group, groupID0)
	}
	return groupEncoder.Append(out, b.group)
}

func (b groupBody) HiddenMembers() string {
	if b.readable {
		return ""
	}
	return "name, description, externalId, source, createdAt, updatedAt"
}

func (b groupBody) HasTag() bool { return b.readable }

// groupTag returns a function that computes the ETag of a group from the members that the caller may read.
func groupTag(c access.Caller) func(*rolecall.Group) string {
	readable := readsGroups(c)
	return func(g *rolecall.Group) string { return secret.ETag(groupBody{g, readable}.AppendJSON(nil)) }
}

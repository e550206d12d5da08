package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

type problems = []*rolecall.Error

// operations is everything that is served to tenants.
var operations = []*operation{
	{
		method: http.MethodGet, path: "/users", id: "UsersController_listUsers", summary: "List users",
		need: service.NeedListUsers, parameters: append(userFilters[:len(userFilters):len(userFilters)], filterRole),
		answers:  []answer{{http.StatusOK, "UserPage", "A page of users, each as far as the caller may read it.", []string{"Link", "Withheld-Fields"}}},
		problems: problems{rolecall.ErrFieldNotReadable},
		handle:   listUsers,
	},
	{
		method: http.MethodPost, path: "/users", id: "UsersController_createUser", summary: "Create a user",
		need: service.NeedCreateUsers, parameters: []*parameter{idempotencyKey}, body: &body{"CreateUser", true},
		answers:  []answer{{http.StatusCreated, "User", "The new user as far as the caller may read it.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
		problems: problems{rolecall.ErrOutsideReach, rolecall.ErrEmailTaken, rolecall.ErrExternalIDTaken},
		handle:   createUser,
	},
	{
		method: http.MethodGet, path: "/users/{id}", id: "UsersController_getUser", summary: "Read a user",
		need: service.NeedReadUser, parameters: []*parameter{userID, ifNoneMatch},
		answers:  []answer{{http.StatusOK, "User", "The user as far as the caller may read it.", []string{"ETag", "Withheld-Fields"}}},
		problems: problems{rolecall.ErrNotFound},
		handle:   getUser,
	},
	{
		method: http.MethodPatch, path: "/users/{id}", id: "UsersController_updateUser", summary: "Change a user",
		need: service.NeedUpdateUser, parameters: []*parameter{userID, ifMatch}, body: &body{"UpdateUser", true},
		answers:  []answer{{http.StatusOK, "User", "The changed user as far as the caller may read it.", []string{"ETag", "Withheld-Fields"}}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrOutsideReach, rolecall.ErrExternalIDTaken},
		handle:   updateUser,
	},
	{
		method: http.MethodDelete, path: "/users/{id}", id: "UsersController_deleteUser", summary: "Delete a user",
		need: service.NeedDeleteUsers, parameters: []*parameter{userID, ifMatch},
		answers:  []answer{{http.StatusNoContent, "", "The user is gone, and so are their sessions.", nil}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLastOwner},
		handle:   deleteUser,
	},
	{
		method: http.MethodPost, path: "/users/{id}/suspend", id: "UsersController_suspendUser", summary: "Suspend a user and end their sessions",
		need: service.NeedSuspendUsers, parameters: []*parameter{userID}, body: &body{"Reason", false},
		answers:  []answer{{http.StatusOK, "User", "The suspended user as far as the caller may read it.", []string{"ETag", "Withheld-Fields"}}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLastOwner},
		handle:   suspendUser,
	},
	{
		method: http.MethodPost, path: "/users/{id}/resume", id: "UsersController_resumeUser", summary: "Resume a suspended user",
		need: service.NeedSuspendUsers, parameters: []*parameter{userID}, body: &body{"Reason", false},
		answers:  []answer{{http.StatusOK, "User", "The resumed user as far as the caller may read it.", []string{"ETag", "Withheld-Fields"}}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
		handle:   resumeUser,
	},
	{
		method: http.MethodPost, path: "/users/{id}/invitations", id: "UsersController_inviteUser", summary: "Invite a user to set a password and sign in",
		need: service.NeedInviteUsers, parameters: []*parameter{userID, idempotencyKey},
		answers:  []answer{{http.StatusCreated, "Invitation", "The invitation with its link, which is shown this once.", []string{"Idempotent-Replayed"}}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrUserSuspended},
		handle:   inviteUser,
	},
	{
		method: http.MethodPost, path: "/users/{id}/restore", id: "UsersController_restoreUser", summary: "Bring a deleted user back, within 30 days",
		need: service.NeedRestoreUsers, parameters: []*parameter{userID},
		answers:  []answer{{http.StatusOK, "RestoredUser", "The user as far as the caller may read it: pending, unless suspended.", []string{"Withheld-Fields"}}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrEmailTaken, rolecall.ErrExternalIDTaken},
		handle:   restoreUser,
	},
	{
		method: http.MethodPost, path: "/users/{id}/erase", id: "UsersController_eraseUser", summary: "Erase a user, living or deleted, for good",
		need: service.NeedEraseUsers, recent: true, parameters: []*parameter{userID},
		answers:  []answer{{http.StatusNoContent, "", "Nothing is known of the user any more; events say only that something happened, and when.", nil}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLastOwner},
		handle:   eraseUser,
	},
	{
		method: http.MethodGet, path: "/users/{id}/events", id: "UsersController_listUserEvents", summary: "List what was done to a user, newest first",
		need: service.NeedReadUserEvents, parameters: append([]*parameter{userID}, eventFilters...),
		answers:  []answer{{http.StatusOK, "EventPage", "A page of events.", []string{"Link"}}},
		problems: problems{rolecall.ErrNotFound},
		handle:   listUserEvents,
	},
	{
		method: http.MethodGet, path: "/users/{id}/overview", id: "UsersController_getUserOverview", summary: "Read what there is to know about a user at one glance",
		need: service.NeedReadUser, parameters: []*parameter{userID},
		answers:  []answer{{http.StatusOK, "Overview", "The overview, each part only if the caller may read it.", []string{"Withheld-Fields"}}},
		problems: problems{rolecall.ErrNotFound},
		handle:   getUserOverview,
	},
	{
		method: http.MethodGet, path: "/users/{id}/roles", id: "UsersController_listUserRoles", summary: "List the roles that a user holds",
		need: service.NeedReadUserRoles, parameters: []*parameter{userID},
		answers:  []answer{{http.StatusOK, "AssignmentPage", "All assignments of the user that are not over.", nil}},
		problems: problems{rolecall.ErrNotFound},
		handle:   listUserRoles,
	},
	{
		method: http.MethodPut, path: "/users/{id}/roles/{roleId}", id: "UsersController_assignRole", summary: "Give a user a role, or replace how they hold it",
		need: service.NeedAssignRoles, parameters: []*parameter{userID, assignedRoleID}, body: &body{"AssignRole", false},
		answers: []answer{
			{http.StatusOK, "Assignment", "The user held the role before; this is how they hold it now.", nil},
			{http.StatusCreated, "Assignment", "The user holds the role from now on.", nil},
		},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrOutsideReach, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLastOwner},
		handle:   assignRole,
	},
	{
		method: http.MethodDelete, path: "/users/{id}/roles/{roleId}", id: "UsersController_unassignRole", summary: "Take a role from a user",
		need: service.NeedAssignRoles, parameters: []*parameter{userID, assignedRoleID},
		answers:  []answer{{http.StatusNoContent, "", "The user does not hold the role any more.", nil}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrOutsideReach, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLastOwner},
		handle:   unassignRole,
	},
	{
		method: http.MethodGet, path: "/roles", id: "RolesController_listRoles", summary: "List roles",
		need: service.NeedReadRoles, parameters: []*parameter{limit, cursor, sortRoles, search, filterKey, count},
		answers: []answer{{http.StatusOK, "RolePage", "A page of roles.", []string{"Link"}}},
		handle:  listRoles,
	},
	{
		method: http.MethodPost, path: "/roles", id: "RolesController_createRole", summary: "Create a role",
		need: service.NeedCreateRoles, parameters: []*parameter{idempotencyKey}, body: &body{"CreateRole", true},
		answers:  []answer{{http.StatusCreated, "Role", "The new role as far as the caller may read it.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
		problems: problems{rolecall.ErrBeyondOwnPermissions, rolecall.ErrRoleNameTaken, rolecall.ErrRoleKeyTaken},
		handle:   createRole,
	},
	{
		method: http.MethodGet, path: "/roles/{id}", id: "RolesController_getRole", summary: "Read a role",
		need: service.NeedReadRoles, parameters: []*parameter{roleID, ifNoneMatch},
		answers:  []answer{{http.StatusOK, "Role", "The role.", []string{"ETag"}}},
		problems: problems{rolecall.ErrNotFound},
		handle:   getRole,
	},
	{
		method: http.MethodPatch, path: "/roles/{id}", id: "RolesController_updateRole", summary: "Change a role",
		need: service.NeedUpdateRoles, parameters: []*parameter{roleID, ifMatch}, body: &body{"UpdateRole", true},
		answers:  []answer{{http.StatusOK, "Role", "The changed role as far as the caller may read it.", []string{"ETag", "Withheld-Fields"}}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrRoleNameTaken, rolecall.ErrSystemRole},
		handle:   updateRole,
	},
	{
		method: http.MethodDelete, path: "/roles/{id}", id: "RolesController_deleteRole", summary: "Delete a role",
		need: service.NeedDeleteRoles, parameters: []*parameter{roleID, force, ifMatch},
		answers:  []answer{{http.StatusNoContent, "", "The role is gone.", nil}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrRoleInUse, rolecall.ErrSystemRole, rolecall.ErrLastOwner},
		handle:   deleteRole,
	},
	{
		method: http.MethodGet, path: "/roles/{id}/users", id: "RolesController_listRoleUsers", summary: "List the users who hold a role",
		need: service.NeedListRoleUsers, parameters: append([]*parameter{roleID}, userFilters...),
		answers:  []answer{{http.StatusOK, "UserPage", "A page of users, each as far as the caller may read it.", []string{"Link", "Withheld-Fields"}}},
		problems: problems{rolecall.ErrNotFound, rolecall.ErrFieldNotReadable},
		handle:   listRoleUsers,
	},
	{
		method: http.MethodGet, path: "/events", id: "EventsController_listEvents", summary: "List what happened in the tenant, newest first",
		need: service.NeedReadEvents, parameters: append(eventFilters[:len(eventFilters):len(eventFilters)], filterSubject),
		answers: []answer{{http.StatusOK, "EventPage", "A page of events.", []string{"Link"}}},
		handle:  listEvents,
	},
	{
		method: http.MethodGet, path: "/tenant", id: "TenantController_getTenant", summary: "Read the tenant and its settings",
		need: service.NeedReadTenant, parameters: []*parameter{ifNoneMatch},
		answers: []answer{{http.StatusOK, "Tenant", "The tenant.", []string{"ETag"}}},
		handle:  getTenant,
	},
	{
		method: http.MethodPatch, path: "/tenant", id: "TenantController_updateTenant", summary: "Change the tenant's name to show and its settings",
		need: service.NeedUpdateTenant, parameters: []*parameter{ifMatch}, body: &body{"UpdateTenant", true},
		answers: []answer{{http.StatusOK, "Tenant", "The changed tenant as far as the caller may read it.", []string{"ETag"}}},
		handle:  updateTenant,
	},
	{
		method: http.MethodPost, path: "/auths/login", id: "AuthsController_login", summary: "Sign in",
		lane:     passwordLane,
		body:     &body{"Login", true},
		answers:  []answer{{http.StatusOK, "SignIn", "Who is signed in; the session's token is in the cookie.", []string{"Set-Cookie"}}},
		problems: problems{rolecall.ErrWrongCredentials, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended, rolecall.ErrTooManyAttempts, rolecall.ErrBusy},
		handle:   login,
	},
	{
		method: http.MethodPost, path: "/auths/refresh", id: "AuthsController_refresh", summary: "Replace the session's token",
		lane:     sessionLane,
		answers:  []answer{{http.StatusOK, "SignIn", "The same session under a new token, which is in the cookie.", []string{"Set-Cookie"}}},
		problems: problems{rolecall.ErrUnauthenticated, rolecall.ErrAmbiguousSession, rolecall.ErrTenantSuspended},
		handle:   refresh,
	},
	{
		method: http.MethodPost, path: "/auths/logout", id: "AuthsController_logout", summary: "Sign out",
		lane:    sessionLane,
		answers: []answer{{http.StatusNoContent, "", "There is no session any more, whether or not there was one.", []string{"Set-Cookie"}}},
		handle:  logout,
	},
	{
		method: http.MethodGet, path: "/auths/session", id: "AuthsController_getSession", summary: "Read who is signed in, and what they hold",
		lane: sessionLane,
		need: service.NeedSession, parameters: []*parameter{touch},
		answers: []answer{{http.StatusOK, "CurrentSession", "The session, its user, and what the user holds.", nil}},
		handle:  getSession,
	},
	{
		method: http.MethodGet, path: "/auths/check", id: "AuthsController_check", summary: "Ask whether the caller holds a permission",
		lane: sessionLane,
		need: service.NeedSession, parameters: []*parameter{checkedPermission, checkedDepartment},
		answers: []answer{{http.StatusNoContent, "", "Yes: the headers say who, for a proxy to pass on.", []string{"X-Auth-User", "X-Auth-Tenant"}}},
		handle:  check,
	},
	{
		method: http.MethodPut, path: "/auths/password", id: "AuthsController_changePassword", summary: "Change one's own password and end all other sessions",
		lane: passwordLane,
		need: service.NeedSession, interactive: true, body: &body{"ChangePassword", true},
		answers:  []answer{{http.StatusNoContent, "", "The password is changed; all other sessions are over.", nil}},
		problems: problems{rolecall.ErrTooManyAttempts, rolecall.ErrBusy},
		handle:   changePassword,
	},
	{
		method: http.MethodPost, path: "/auths/invitations/accept", id: "AuthsController_acceptInvitation", summary: "Accept an invitation: set the password and sign in",
		lane:     passwordLane,
		body:     &body{"AcceptInvitation", true},
		answers:  []answer{{http.StatusOK, "SignIn", "Who is signed in; the session's token is in the cookie.", []string{"Set-Cookie"}}},
		problems: problems{rolecall.ErrInvitationInvalid, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended, rolecall.ErrBusy},
		handle:   acceptInvitation,
	},
}

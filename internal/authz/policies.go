package authz

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
)

// needsEverything is the requirement of configuresConnections.
const needsEverything = "all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused"

// The policies for users.
var (
	ListUsers  = &Policy{Effect: NoEffect, check: readsSomeMember, needs: "`users:read`, or `users.<member>:read` for at least one member"}
	ReadUser   = &Policy{Effect: NoEffect, check: seesUsersOrOwnRecord, needs: "any of the `users` permissions except `users:restore`. Users need no permission to read themselves, even with an API token"}
	CreateUser = &Policy{Effect: NoEffect, permission: rolecall.UsersCreate, needs: "`users:create`. If `invite` is true, it also needs `users:invite`"}
	UpdateUser = &Policy{Effect: NoEffect, self: true, check: updatesSomeMember, needs: "`users:update`, or `users.<member>:update` for each member in the body. With a session, users need no permission to change their own name"}

	DeleteUser         = &Policy{Effect: Removes, permission: rolecall.UsersDelete, outranks: true}
	EraseUser          = &Policy{Effect: Removes, permission: rolecall.UsersErase, outranks: true}
	RestoreUser        = &Policy{Effect: Grants, permission: rolecall.UsersRestore}
	ListDeletedUsers   = &Policy{Effect: NoEffect, permission: rolecall.UsersRestore}
	SuspendUser        = &Policy{Effect: Ends, permission: rolecall.UsersSuspend, outranks: true}
	ResumeUser         = &Policy{Effect: Grants, permission: rolecall.UsersSuspend, outranks: true, takesOver: true}
	InviteUser         = &Policy{Effect: NoEffect, permission: rolecall.UsersInvite, notSuspended: true, takesOver: true}
	WithdrawInvitation = &Policy{Effect: Ends, permission: rolecall.UsersInvite, outranks: true}
	ListInvitations    = &Policy{Effect: NoEffect, permission: rolecall.UsersInvite}
	SendPasswordReset  = &Policy{Effect: NoEffect, permission: rolecall.UsersInvite, notSuspended: true, takesOver: true, checkUser: hasPassword}
	ReturnLink         = &Policy{Effect: NoEffect, permission: rolecall.UsersLinks, extraCheck: isProgram, takesOver: true, checkUser: isNoOwner}
	ChangeEmail        = &Policy{Effect: Grants, permission: rolecall.UsersEmail, self: true, ownInSession: true, notSuspended: true, takesOver: true}
	ReadFactors        = &Policy{Effect: NoEffect, permission: rolecall.UsersFactors, self: true}
	ResetFactors       = &Policy{Effect: Removes, permission: rolecall.UsersFactors, ownInSession: true, takesOver: true, checkUser: keepsDemandedFactor}
	ReadUserEvents     = &Policy{Effect: NoEffect, permission: rolecall.EventsRead, tenantWide: true, self: true}
	ReadUserRoles      = &Policy{Effect: NoEffect, permission: rolecall.RolesRead, self: true}
	AssignRole         = &Policy{Effect: Grants, permission: rolecall.RolesAssign, grantsRole: true}
	UnassignRole       = &Policy{Effect: Removes, permission: rolecall.RolesAssign, grantsRole: true}
	ReadSessions       = &Policy{Effect: NoEffect, permission: rolecall.SessionsRead, self: true}
	EndSessions        = &Policy{Effect: Ends, permission: rolecall.SessionsRevoke, self: true, outranks: true}
	ReadUserTokens     = &Policy{Effect: NoEffect, permission: rolecall.SessionsRead, self: true}
	CreateUserToken    = &Policy{Effect: Grants, SessionOnly: true, check: isOwnToken, needs: "no permission, but users can create tokens only for themselves"}
	ReadIdentities     = &Policy{Effect: NoEffect, permission: rolecall.IdentitiesRead, self: true}
	DeleteIdentity     = &Policy{Effect: Removes, permission: rolecall.IdentitiesDelete, self: true, ownInSession: true, takesOver: true}
	RevokeUserToken    = &Policy{Effect: Ends, permission: rolecall.SessionsRevoke, self: true, outranks: true}
)

// The policies for jobs. For each user, a job also evaluates the policy of the change, such as
// SuspendUser.
var (
	StartSuspendJob  = &Policy{Effect: Ends, permission: rolecall.UsersSuspend, extraCheck: readsSomeMember, needs: "`users:suspend`, and a permission to read at least one member of users"}
	StartResumeJob   = &Policy{Effect: Grants, permission: rolecall.UsersSuspend, extraCheck: readsSomeMember, needs: "`users:suspend`, and a permission to read at least one member of users"}
	StartAssignJob   = &Policy{Effect: Grants, permission: rolecall.RolesAssign, extraCheck: readsSomeMember, grantsRole: true, needs: "`roles:assign`, and a permission to read at least one member of users"}
	StartUnassignJob = &Policy{Effect: Removes, permission: rolecall.RolesAssign, extraCheck: readsSomeMember, grantsRole: true, needs: "`roles:assign`, and a permission to read at least one member of users"}
	ReadJobs         = &Policy{Effect: NoEffect, anyone: true, needs: "no permission for jobs that the caller started, and `events:read` in the whole tenant for other jobs"}
	CancelJob        = &Policy{Effect: NoEffect, anyone: true, needs: "no permission for jobs that the caller started. For other jobs, it needs `events:read` and the permission of the change, both in the whole tenant"}
)

// The policies for roles, groups, service accounts, events and the tenant.
var (
	ReadRoles     = &Policy{Effect: NoEffect, permission: rolecall.RolesRead}
	CreateRole    = &Policy{Effect: Grants, permission: rolecall.RolesCreate, grantsRole: true}
	UpdateRole    = &Policy{Effect: Grants, permission: rolecall.RolesUpdate, grantsRole: true}
	DeleteRole    = &Policy{Effect: Removes, permission: rolecall.RolesDelete, grantsRole: true}
	ListRoleUsers = &Policy{Effect: NoEffect, permission: rolecall.RolesRead, extraCheck: readsSomeMember, needs: "`roles:read`, and a permission to read at least one member of users"}
	ListAccess    = &Policy{Effect: NoEffect, permission: rolecall.RolesRead, extraCheck: readsSomeMember, needs: "`roles:read`, and a permission to read at least one member of users. Service accounts are listed only to callers with `service-accounts:read` in the whole tenant"}

	ReadGroups        = &Policy{Effect: NoEffect, permission: rolecall.GroupsRead, tenantWide: true}
	ListGroupUsers    = &Policy{Effect: NoEffect, permission: rolecall.GroupsRead, tenantWide: true, extraCheck: readsSomeMember, needs: "`groups:read` in the whole tenant, and a permission to read at least one member of users"}
	ReadUserGroups    = &Policy{Effect: NoEffect, permission: rolecall.GroupsRead, tenantWide: true, self: true}
	CreateGroup       = &Policy{Effect: NoEffect, permission: rolecall.GroupsCreate, tenantWide: true, needs: "`groups:create` in the whole tenant. With `source`, it also needs " + needsEverything}
	CreateFilledGroup = &Policy{Effect: NoEffect, permission: rolecall.GroupsCreate, tenantWide: true, extraCheck: configuresConnections, needs: needsEverything} // with a source
	UpdateGroup       = &Policy{Effect: NoEffect, permission: rolecall.GroupsUpdate, tenantWide: true}
	DeleteGroup       = &Policy{Effect: Removes, permission: rolecall.GroupsDelete, tenantWide: true, needs: "`groups:delete` in the whole tenant. The caller must be able to assign every role of the group"}
	AddMember         = &Policy{Effect: Grants, permission: rolecall.GroupsMembers, needs: "`groups:members`. If the group has roles, it also needs `roles:assign`, and the caller must be able to assign every role of the group to the user"}
	RemoveMember      = &Policy{Effect: Removes, permission: rolecall.GroupsMembers, needs: "`groups:members`. If the group has roles, it also needs `roles:assign`, and the caller must be able to remove every role of the group from the user"}
	AssignGroupRole   = &Policy{Effect: Grants, permission: rolecall.RolesAssign, tenantWide: true, grantsRole: true}
	UnassignGroupRole = &Policy{Effect: Removes, permission: rolecall.RolesAssign, tenantWide: true, grantsRole: true}

	ReadServiceAccounts        = &Policy{Effect: NoEffect, permission: rolecall.ServiceAccountsRead, tenantWide: true}
	CreateServiceAccount       = &Policy{Effect: NoEffect, permission: rolecall.ServiceAccountsCreate, tenantWide: true}
	UpdateServiceAccount       = &Policy{Effect: NoEffect, permission: rolecall.ServiceAccountsUpdate, tenantWide: true}
	DeleteServiceAccount       = &Policy{Effect: Removes, permission: rolecall.ServiceAccountsDelete, tenantWide: true, outranks: true}
	SuspendServiceAccount      = &Policy{Effect: Ends, permission: rolecall.ServiceAccountsUpdate, tenantWide: true, outranks: true}
	ResumeServiceAccount       = &Policy{Effect: Grants, permission: rolecall.ServiceAccountsUpdate, tenantWide: true, outranks: true, takesOver: true}
	AssignServiceAccountRole   = &Policy{Effect: Grants, permission: rolecall.ServiceAccountsUpdate, tenantWide: true, grantsRole: true}
	UnassignServiceAccountRole = &Policy{Effect: Removes, permission: rolecall.ServiceAccountsUpdate, tenantWide: true, grantsRole: true}
	CreateServiceAccountToken  = &Policy{Effect: Grants, permission: rolecall.ServiceAccountsUpdate, tenantWide: true, extraCheck: isNotToken, takesOver: true, needs: "`service-accounts:update` in the whole tenant. API tokens are refused"}
	RevokeServiceAccountToken  = &Policy{Effect: Ends, permission: rolecall.ServiceAccountsUpdate, tenantWide: true, outranks: true}

	ReadWebhooks   = &Policy{Effect: NoEffect, permission: rolecall.WebhooksRead, tenantWide: true}
	CreateWebhook  = &Policy{Effect: Grants, permission: rolecall.WebhooksCreate, tenantWide: true, extraCheck: createsAccountTokens, takesOver: true, needs: "`webhooks:create` and `service-accounts:update` in the whole tenant. API tokens are refused"}
	UpdateWebhook  = &Policy{Effect: Grants, permission: rolecall.WebhooksUpdate, tenantWide: true, extraCheck: createsAccountTokens, takesOver: true, needs: "`webhooks:update` and `service-accounts:update` in the whole tenant. API tokens are refused"}
	OperateWebhook = &Policy{Effect: NoEffect, permission: rolecall.WebhooksUpdate, tenantWide: true}
	DeleteWebhook  = &Policy{Effect: Removes, permission: rolecall.WebhooksDelete, tenantWide: true}

	ReadConnections      = &Policy{Effect: NoEffect, permission: rolecall.ConnectionsRead, tenantWide: true}
	CreateConnection     = &Policy{Effect: Grants, permission: rolecall.ConnectionsCreate, tenantWide: true, extraCheck: configuresConnections, needs: needsEverything}
	UpdateConnection     = &Policy{Effect: Grants, permission: rolecall.ConnectionsUpdate, tenantWide: true, extraCheck: configuresConnections, needs: needsEverything}
	DeleteConnection     = &Policy{Effect: Removes, permission: rolecall.ConnectionsDelete, tenantWide: true, extraCheck: configuresConnections, needs: needsEverything}
	RevokeDirectoryToken = &Policy{Effect: Ends, permission: rolecall.ConnectionsUpdate, tenantWide: true, extraCheck: configuresConnections, needs: needsEverything}
	TestConnection       = &Policy{Effect: NoEffect, permission: rolecall.ConnectionsRead, tenantWide: true}

	ReadChanges  = &Policy{Effect: NoEffect, permission: rolecall.ChangesRead, tenantWide: true, scope: rolecall.ScopeChanges}
	ReadEvents   = &Policy{Effect: NoEffect, permission: rolecall.EventsRead, tenantWide: true}
	ReadSummary  = &Policy{Effect: NoEffect, check: readsSomeSummary, needs: "in the whole tenant one of: `users:invite`; `users:reset-factors` and `users.status:read`; `events:read`; `roles:read`; `sessions:read`; `service-accounts:read`. The response has only the parts that the caller may read"}
	ReadTenant   = &Policy{Effect: NoEffect, permission: rolecall.TenantRead, tenantWide: true}
	UpdateTenant = &Policy{Effect: Grants, permission: rolecall.TenantUpdate, tenantWide: true}
)

// The policies for the caller's own account, and for signing in.
var (
	ReadSession       = &Policy{Effect: NoEffect, anyone: true}
	CheckPermissions  = &Policy{Effect: NoEffect, anyone: true}
	Reauthenticate    = &Policy{Effect: Proves, SessionOnly: true, anyone: true}
	ChangeOwnPassword = &Policy{Effect: Proves, SessionOnly: true, anyone: true}
	ReadOwnFactors    = &Policy{Effect: NoEffect, SessionOnly: true, anyone: true}
	AddOwnFactor      = &Policy{Effect: Grants, SessionOnly: true, anyone: true}
	RemoveOwnFactor   = &Policy{Effect: Removes, SessionOnly: true, anyone: true}
	LinkOwnIdentity   = &Policy{Effect: Grants, SessionOnly: true, anyone: true}

	SignIn  = &Policy{Effect: Proves, Public: true} // with a password, a passkey, a code or a link
	SignOut = &Policy{Effect: Ends, Public: true}
	Anyone  = &Policy{Effect: NoEffect, Public: true} // for operations that do not change access, such as a refresh
)

// The policies for operators with a key.
var (
	ReadTenants   = &Policy{Effect: NoEffect, Operators: true, scope: rolecall.ScopeTenants, anyone: true}
	CreateTenant  = &Policy{Effect: Grants, Operators: true, scope: rolecall.ScopeTenants, check: isForEveryTenant, needs: "an operator key for all tenants"}
	ChangeTenant  = &Policy{Effect: Grants, Operators: true, scope: rolecall.ScopeTenants, anyone: true}
	SuspendTenant = &Policy{Effect: Ends, Operators: true, scope: rolecall.ScopeTenants, anyone: true}
	DeleteTenant  = &Policy{Effect: Removes, Operators: true, scope: rolecall.ScopeTenants, anyone: true}
)

// ReadOperatorEvents is the policy for the operators' log, which names all tenants and operator keys.
var ReadOperatorEvents = &Policy{Effect: NoEffect, Operators: true, check: isForEveryTenant, needs: "an operator key for all tenants"}

// ReadTenantsChanges is the policy for the change feed of all tenants.
var ReadTenantsChanges = &Policy{Effect: NoEffect, Operators: true, scope: rolecall.ScopeChanges, anyone: true}

// The policies for the webhooks of operators. They receive the changes of all tenants, so a key that is limited
// to some tenants is refused.
var (
	ReadOperatorWebhooks   = &Policy{Effect: NoEffect, Operators: true, scope: rolecall.ScopeChanges, check: isForEveryTenant, needs: "an operator key for all tenants"}
	OperateOperatorWebhook = &Policy{Effect: NoEffect, Operators: true, scope: rolecall.ScopeChanges, check: isForEveryTenant, needs: "an operator key for all tenants"}
	CreateOperatorWebhook  = &Policy{Effect: Grants, Operators: true, check: isForEveryTenant, needs: "an operator key for all tenants"}
	UpdateOperatorWebhook  = &Policy{Effect: Grants, Operators: true, check: isForEveryTenant, needs: "an operator key for all tenants"}
	DeleteOperatorWebhook  = &Policy{Effect: Removes, Operators: true, check: isForEveryTenant, needs: "an operator key for all tenants"}
)

// FindUsers is the policy for the search of the tenants of an email address.
var FindUsers = &Policy{Effect: NoEffect, Operators: true, scope: rolecall.ScopeLookup, anyone: true}

// action is an operation on a user or a service account that can be listed in
// allowedActions of the object. The name is its name there.
type action struct {
	name    string
	policy  *Policy
	applies func(suspended bool) bool // nil: always
}

func ifSuspended(suspended bool) bool    { return suspended }
func ifNotSuspended(suspended bool) bool { return !suspended }

// userActions are the entries that allowedActions of a user can have, in the order of the
// response. UserActions adds the entry update before them.
var userActions = []action{
	{"delete", DeleteUser, nil},
	{"suspend", SuspendUser, ifNotSuspended},
	{"resume", ResumeUser, ifSuspended},
	{"invite", InviteUser, nil},
	{"sendPasswordReset", SendPasswordReset, nil},
	{"changeEmail", ChangeEmail, nil},
	{"assignRole", AssignRole, nil},
	{"erase", EraseUser, nil},
	{"resetFactors", ResetFactors, nil},
	{"revokeSessions", EndSessions, nil},
	{"withdrawInvitation", WithdrawInvitation, nil},
}

var serviceAccountActions = []action{
	{"suspend", SuspendServiceAccount, ifNotSuspended},
	{"resume", ResumeServiceAccount, ifSuspended},
	{"delete", DeleteServiceAccount, nil},
}

// UserActions returns the names of the actions that the principal may perform on the user.
// The argument assignments has the user's assignments. A returned action can still fail,
// because the user is the last owner or was changed concurrently.
func UserActions(p *Principal, u *rolecall.User, assignments []rolecall.Assignment, now rolecall.Time) []string {
	actions := []string{}
	for m := range rolecall.AllUserMembers.All() {
		if m.Updatable() && AuthorizeMembersOf(p, u, rolecall.SetOf(m)) == nil {
			actions = append(actions, "update")
			break
		}
	}
	suspended := u.Status == rolecall.UserSuspended
	for _, a := range userActions {
		if (a.applies == nil || a.applies(suspended)) && a.policy.AuthorizeUser(p, u, assignments, now) == nil {
			actions = append(actions, a.name)
		}
	}
	return actions
}

// ServiceAccountActions returns the names of the actions that the principal may perform on
// the service account. The argument assignments has the account's assignments.
func ServiceAccountActions(p *Principal, account *rolecall.ServiceAccount, assignments []rolecall.Assignment, now rolecall.Time) []string {
	actions := []string{}
	suspended := account.Status == rolecall.ServiceAccountSuspended
	for _, a := range serviceAccountActions {
		if (a.applies == nil || a.applies(suspended)) && a.policy.AuthorizeAccount(p, assignments, now) == nil {
			actions = append(actions, a.name)
		}
	}
	return actions
}

// readsSomeMember returns ErrPermissionDenied if the principal may not read any member of
// any user.
func readsSomeMember(p *Principal, _ rolecall.UserID) error {
	for m := range rolecall.AllUserMembers.All() {
		if !p.Reads(m).IsNowhere() {
			return nil
		}
	}
	return denied(rolecall.UsersRead)
}

// updatesSomeMember returns ErrPermissionDenied if the principal may not change any member
// of any user.
func updatesSomeMember(p *Principal, _ rolecall.UserID) error {
	for m := range rolecall.AllUserMembers.All() {
		if !p.Updates(m).IsNowhere() {
			return nil
		}
	}
	return denied(rolecall.UsersUpdate)
}

// seesUsersOrOwnRecord returns ErrPermissionDenied if no user is visible to the principal.
// Users can always read themselves, also with an API token.
func seesUsersOrOwnRecord(p *Principal, subject rolecall.UserID) error {
	if subject != p.User.ID && p.Visible().IsNowhere() {
		return denied(rolecall.UsersRead)
	}
	return nil
}

// isOwnToken returns ErrPermissionDenied if the owner of the new token, the subject, is not
// the principal's own user.
func isOwnToken(p *Principal, subject rolecall.UserID) error {
	if subject != p.User.ID {
		return rolecall.ErrPermissionDenied.With("Users can create API tokens only for themselves. Use your own ID in the path.")
	}
	return nil
}

// isNotToken returns ErrSessionRequired if the principal has an API token.
func isNotToken(p *Principal, _ rolecall.UserID) error {
	if p.Token != nil {
		return rolecall.ErrSessionRequired.With("API tokens cannot create API tokens. Use an operator key or the session of a user.")
	}
	return nil
}

// createsAccountTokens returns ErrPermissionDenied or ErrSessionRequired if the principal may not create
// API tokens of service accounts. A webhook shows what its service account may read, as a token does.
func createsAccountTokens(p *Principal, _ rolecall.UserID) error {
	if !p.Reach(rolecall.ServiceAccountsUpdate).IsEverywhere() {
		return denied(rolecall.ServiceAccountsUpdate)
	}
	if p.Token != nil {
		return rolecall.ErrSessionRequired.With("API tokens cannot configure webhooks. Use an operator key or the session of a user.")
	}
	return nil
}

// configuresConnections returns ErrPermissionDenied or ErrSessionRequired if the principal may not configure
// connections to identity providers, or directories. A provider can sign in as any user, so the principal must hold all
// permissions, and as long as the connection exists.
func configuresConnections(p *Principal, _ rolecall.UserID) error {
	if p.Token != nil {
		return rolecall.ErrSessionRequired.With("API tokens cannot configure connections and directories. Use an operator key or the session of a user.")
	}
	if missing, ok := p.MissingFor([]rolecall.Permission{rolecall.AllOwn, rolecall.AllApplications}, rolecall.Everywhere(), rolecall.Never, false); ok {
		return rolecall.ErrPermissionDenied.With(fmt.Sprintf("A user who configures a connection or a directory can become any other user. So you need the permission %s in the whole tenant, without expiry.", missing))
	}
	return nil
}

// IsOwner reports whether one of the assignments gives the role Owner at the time now.
func IsOwner(assignments []rolecall.Assignment, now rolecall.Time) bool {
	return slices.ContainsFunc(assignments, func(a rolecall.Assignment) bool {
		return a.Live(now) && a.Role.Key != nil && *a.Role.Key == rolecall.OwnerKey
	})
}

// isProgram returns ErrPermissionDenied if the principal is a user, with a session or an API token.
func isProgram(p *Principal, _ rolecall.UserID) error {
	if p.Kind == PrincipalUser {
		return rolecall.ErrPermissionDenied.With("Users cannot get the link of an invitation or a password reset. Use an operator key or a service account, or let Rolecall mail the link.")
	}
	return nil
}

// isNoOwner returns ErrPermissionDenied if the user has the role Owner and the principal is not an
// operator.
func isNoOwner(p *Principal, _ *rolecall.User, assignments []rolecall.Assignment, now rolecall.Time) error {
	if p.Kind != PrincipalOperator && IsOwner(assignments, now) {
		return rolecall.ErrPermissionDenied.With("Only an operator key can get the link of an owner. Use one, or let Rolecall mail the link.")
	}
	return nil
}

// isForEveryTenant returns ErrPermissionDenied if the operator key is limited to some
// tenants.
func isForEveryTenant(p *Principal, _ rolecall.UserID) error {
	if p.Operator.Tenants != nil {
		return rolecall.ErrPermissionDenied.With("This operator key is limited to some tenants. This operation needs a key for all tenants.")
	}
	return nil
}

// hasPassword returns ErrUserPending if the user is pending and so has no password yet. It returns
// ErrPasswordsOff if the user cannot sign in with a password.
func hasPassword(p *Principal, u *rolecall.User, assignments []rolecall.Assignment, now rolecall.Time) error {
	switch {
	case u.Status == rolecall.UserPending:
		return rolecall.ErrUserPending
	case !p.Tenant.Settings.AllowsPassword(IsOwner(assignments, now)):
		return rolecall.ErrPasswordsOff
	}
	return nil
}

// keepsDemandedFactor returns ErrFactorDemanded if users try to remove all second factors
// of themselves, although the tenant requires a second factor of them.
func keepsDemandedFactor(p *Principal, u *rolecall.User, assignments []rolecall.Assignment, now rolecall.Time) error {
	if u.ID == p.User.ID && p.Tenant.Settings.SecondFactor.Demands(assignments, now) {
		return rolecall.ErrFactorDemanded.With("This tenant requires you to have a second factor, so you cannot remove all of yours. Remove them one by one, and keep one.")
	}
	return nil
}

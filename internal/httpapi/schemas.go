package httpapi

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/operation"
)

// types describes the Go types of bodies and parameters for the OpenAPI document, in addition to
// their struct tags. The types in Names become components of the document.
var types = &operation.Types{
	Names: map[reflect.Type]struct{ Name, About string }{
		// Requests.
		reflect.TypeFor[rolecall.UserDraft]():           {"CreateUser", "A new user."},
		reflect.TypeFor[updateUserBody]():               {"UpdateUser", "A merge patch (RFC 7396). Absent members do not change. Null clears a member."},
		reflect.TypeFor[reasonBody]():                   {"EventReason", "The reason to record with the event."},
		reflect.TypeFor[deliveryBody]():                 {"LinkDelivery", "How a link reaches the user. Without a body, Rolecall mails it."},
		reflect.TypeFor[rolecall.RoleDraft]():           {"CreateRole", "A new role."},
		reflect.TypeFor[updateRoleBody]():               {"UpdateRole", "A merge patch (RFC 7396). Absent members do not change. A list replaces the whole old list. Null clears a member."},
		reflect.TypeFor[assignmentDraft]():              {"AssignRole", "The reach and expiry of the assignment. Without a body, it applies to the whole tenant and does not expire."},
		reflect.TypeFor[reachDraft]():                   {"Reach", "The departments in which the permissions of an assigned role apply."},
		reflect.TypeFor[checkAllBody]():                 {"CheckPermissions", "The permissions to check."},
		reflect.TypeFor[permissionCheck]():              {"PermissionCheck", "A permission to check, for a department or in the whole tenant."},
		reflect.TypeFor[tenantPatch]():                  {"UpdateTenant", "A merge patch (RFC 7396). Absent members do not change."},
		reflect.TypeFor[settingsPatch]():                {"UpdateTenantSettings", "The settings to change. Absent settings do not change. Where null is allowed, it restores the default."},
		reflect.TypeFor[secondFactorPatch]():            {"UpdateSecondFactorRule", "Which users must have a second factor."},
		reflect.TypeFor[changePasswordBody]():           {"ChangePassword", "The current password and the new one."},
		reflect.TypeFor[acceptInvitationBody]():         {"AcceptInvitation", "The token of the invitation, and the password to set."},
		reflect.TypeFor[resetPasswordBody]():            {"ResetPassword", "The token of the link, and the password to set."},
		reflect.TypeFor[completeLoginBody]():            {"CompleteLogin", "The challenge, and exactly one of code, recoveryCode and passkey."},
		reflect.TypeFor[confirmBody]():                  {"Confirm", "The password, or the code of a sign-in with an identity provider. Users with a second factor also send one of code, recoveryCode and passkey."},
		reflect.TypeFor[startOIDCBody]():                {"StartOidc", "The connection, and where the browser returns."},
		reflect.TypeFor[signOutOIDCBody]():              {"SignOutOidc", "The request body of a sign-out, also at the identity provider."},
		reflect.TypeFor[exchangeCodeBody]():             {"ExchangeCode", "The code of the sign-in, and its verifier."},
		reflect.TypeFor[oidcCodeBody]():                 {"OidcCode", "The code of the sign-in, and its verifier."},
		reflect.TypeFor[beginEnrolmentBody]():           {"BeginEnrolment", "The challenge of the sign-in."},
		reflect.TypeFor[signInByPasskeyBody]():          {"SignInByPasskey", "The response of the authenticator."},
		reflect.TypeFor[confirmTOTPBody]():              {"ConfirmTotp", "A code of the authenticator app."},
		reflect.TypeFor[createPasskeyBody]():            {"CreatePasskey", "The response of the authenticator, and a name for the passkey."},
		reflect.TypeFor[updatePasskeyBody]():            {"UpdatePasskey", "The members to change."},
		reflect.TypeFor[changeEmailBody]():              {"ChangeEmail", "The token in the link."},
		reflect.TypeFor[emailBody]():                    {"EmailAddress", "An email address."},
		reflect.TypeFor[loginBody]():                    {"Login", "Email address and password."},
		reflect.TypeFor[rolecall.ServiceAccountDraft](): {"CreateServiceAccount", "A new service account. It has no roles at first."},
		reflect.TypeFor[rolecall.ServiceAccountPatch](): {"UpdateServiceAccount", "A merge patch (RFC 7396). Absent members do not change. Null clears a member."},
		reflect.TypeFor[rolecall.APITokenDraft]():       {"CreateAPIToken", "A new API token."},
		reflect.TypeFor[tenantDraft]():                  {"CreateTenant", "A new tenant and its first owner, who is invited."},
		reflect.TypeFor[ownerDraft]():                   {"TenantOwner", "The first owner of a tenant."},
		reflect.TypeFor[jobUsers]():                     {"JobUsers", "Selects the users of a job. Without members, it selects all users."},
		reflect.TypeFor[statusJob]():                    {"StartStatusJob", "The users to suspend or to resume."},
		reflect.TypeFor[assignJob]():                    {"StartAssignJob", "The users and the role to assign to them."},
		reflect.TypeFor[unassignJob]():                  {"StartUnassignJob", "The users and the role to remove from them."},

		// Responses.
		reflect.TypeFor[jobBody]():                                   {"Job", "A change of all users that match a filter, in the background."},
		reflect.TypeFor[jobFilterBody]():                             {"JobFilter", "The filter of a job, without the text of its search."},
		reflect.TypeFor[jobStarter]():                                {"JobStarter", "The principal who started a job."},
		reflect.TypeFor[jobResultBody]():                             {"JobResult", "The outcome of a job for one user."},
		reflect.TypeFor[operation.Page[jobBody]]():                   {"JobPage", "A page of jobs."},
		reflect.TypeFor[operation.Page[jobResultBody]]():             {"JobResultPage", "A page of results."},
		reflect.TypeFor[shownUser]():                                 {"User", "A user. Members that the caller may not read are absent."},
		reflect.TypeFor[userPage]():                                  {"UserPage", "A page of users."},
		reflect.TypeFor[restoredUser]():                              {"RestoredUser", "A user who was deleted and is restored. The user needs an invitation to sign in."},
		reflect.TypeFor[rolecall.Role]():                             {"Role", "A named set of permissions. Callers without roles:read get the ID only."},
		reflect.TypeFor[operation.CountedPage[roleBody]]():           {"RolePage", "A page of roles."},
		reflect.TypeFor[roleName]():                                  {"RoleName", "The names of a role. Callers without roles:read get the ID only."},
		reflect.TypeFor[assignmentBody]():                            {"Assignment", "The assignment of a role to a user or service account, with its reach and expiry."},
		reflect.TypeFor[operation.Page[assignmentBody]]():            {"AssignmentPage", "A page of the assignments of a user or service account."},
		reflect.TypeFor[overviewBody]():                              {"Overview", "A summary of a user. Parts that the caller may not read are absent."},
		reflect.TypeFor[grantBody]():                                 {"Grant", "A permission of a user, with its reach and the roles that give it."},
		reflect.TypeFor[accessPage]():                                {"AccessPage", "A page of users and service accounts that have a permission."},
		reflect.TypeFor[accessBody]():                                {"Access", "A user or service account that has a permission, and the role assignments that give it."},
		reflect.TypeFor[accessGrant]():                               {"AccessGrant", "A role assignment that gives a permission."},
		reflect.TypeFor[signInState]():                               {"SignInState", "Whether the user can sign in, and if not, why."},
		reflect.TypeFor[signInReason]():                              {"SignInReason", "A reason why sign-ins are refused."},
		reflect.TypeFor[pendingInvitation]():                         {"PendingInvitation", "An invitation that was not accepted."},
		reflect.TypeFor[sessionSummary]():                            {"SessionSummary", "The live sessions of a user."},
		reflect.TypeFor[tokenSummary]():                              {"TokenSummary", "The API tokens of a user."},
		reflect.TypeFor[factorSummary]():                             {"FactorSummary", "The second factors of a user."},
		reflect.TypeFor[includedFactors]():                           {"IncludedFactors", "The second factors of a user in a list."},
		reflect.TypeFor[eventBody]():                                 {"Event", "An event. To copy all events, poll with an overlap and skip the IDs that you have, as the guide on events shows."},
		reflect.TypeFor[eventActor]():                                {"EventActor", "Who caused an event."},
		reflect.TypeFor[eventSubject]():                              {"EventSubject", "The user, role or other object that an event is about."},
		reflect.TypeFor[operation.Page[eventBody]]():                 {"EventPage", "A page of events."},
		reflect.TypeFor[checkpointBody]():                            {"Checkpoint", "The signed state of the audit log of the tenant."},
		reflect.TypeFor[eventProofBody]():                            {"EventProof", "The proof that an event is in the audit log."},
		reflect.TypeFor[openedBody]():                                {"OpenedCommitment", "The data of an event to which its leaf commits."},
		reflect.TypeFor[consistencyBody]():                           {"ConsistencyProof", "The proof that the audit log begins with the events of an earlier checkpoint."},
		reflect.TypeFor[changesBody]():                               {"Changes", "A part of the change feed."},
		reflect.TypeFor[feed.Item]():                                 {"Change", "An event as a CloudEvent 1.0. The page on events describes each type."},
		reflect.TypeFor[feed.ItemData]():                             {"ChangeData", "The content of a change."},
		reflect.TypeFor[feed.ItemActor]():                            {"ChangeActor", "Who caused a change."},
		reflect.TypeFor[invitationBody]():                            {"Invitation", "An invitation to set a password and sign in. Only the mail to the user has the link."},
		reflect.TypeFor[openInvitation]():                            {"OpenInvitation", "An invitation that has not expired, with its user. The overview of the user shows whether it can be accepted."},
		reflect.TypeFor[invitationPage]():                            {"InvitationPage", "A page of invitations."},
		reflect.TypeFor[tenantBody]():                                {"Tenant", "A tenant. Callers without tenant:read get the ID only."},
		reflect.TypeFor[logoBody]():                                  {"Logo", "The logo of a tenant, without the image."},
		reflect.TypeFor[summaryBody]():                               {"TenantSummary", "A summary of the tenant. Parts that the caller may not read are absent."},
		reflect.TypeFor[boundedCount]():                              {"BoundedCount", "A number of things, counted up to a limit."},
		reflect.TypeFor[factorCoverage]():                            {"FactorCoverage", "How many active users have a second factor."},
		reflect.TypeFor[failedSignIns]():                             {"FailedSignIns", "The failed sign-ins of the last 24 hours."},
		reflect.TypeFor[blockedSource]():                             {"BlockedSource", "A network whose sign-ins are refused after too many failures."},
		reflect.TypeFor[expiringRoles]():                             {"ExpiringRoles", "Role assignments that expire soon."},
		reflect.TypeFor[expiringRole]():                              {"ExpiringRole", "A role assignment that expires soon."},
		reflect.TypeFor[expiringTokens]():                            {"ExpiringTokens", "API tokens that expire soon."},
		reflect.TypeFor[expiringToken]():                             {"ExpiringToken", "An API token that expires soon."},
		reflect.TypeFor[dayActivity]():                               {"DayActivity", "The number of events of a day."},
		reflect.TypeFor[settingsBody]():                              {"TenantSettings", "The effective settings of a tenant."},
		reflect.TypeFor[secondFactorRule]():                          {"SecondFactorRule", "Which users must have a second factor."},
		reflect.TypeFor[operation.Page[tenantBody]]():                {"TenantPage", "A page of tenants."},
		reflect.TypeFor[userInTenantBody]():                          {"UserInTenant", "A user with an email address that was searched in all tenants."},
		reflect.TypeFor[operation.Page[userInTenantBody]]():          {"UserInTenantPage", "A page of users in several tenants."},
		reflect.TypeFor[createdTenant]():                             {"FoundedTenant", "A new tenant with its first owner and the invitation. The token and the link are returned only once: the answer to a repeated request has secretWithheld instead. If the owner was erased since then, owner has only the ID."},
		reflect.TypeFor[ownerInvitation]():                           {"OwnerInvitation", "The invitation of the first owner."},
		reflect.TypeFor[passwordResetBody]():                         {"PasswordReset", "The mail with a link to set a new password."},
		reflect.TypeFor[emailChangeBody]():                           {"EmailChange", "The mail with a link to confirm a new address."},
		reflect.TypeFor[acceptedBody]():                              {"Accepted", "The effect of the request."},
		reflect.TypeFor[confirmedSession]():                          {"ConfirmedSession", "A session after a re-authentication."},
		reflect.TypeFor[sessionBody]():                               {"Session", "A session."},
		reflect.TypeFor[userSessionBody]():                           {"UserSession", "A live session of a user."},
		reflect.TypeFor[operation.Page[userSessionBody]]():           {"UserSessionPage", "A page of sessions."},
		reflect.TypeFor[startedOIDC]():                               {"StartedOidc", "A started sign-in with an identity provider."},
		reflect.TypeFor[signedOutOIDC]():                             {"SignedOutOidc", "The result of a sign-out."},
		reflect.TypeFor[signInBody]():                                {"SignIn", "The signed-in user and the session."},
		reflect.TypeFor[currentSession]():                            {"CurrentSession", "The caller, with roles and permissions."},
		reflect.TypeFor[currentTenant]():                             {"CurrentTenant", "The tenant of the request."},
		reflect.TypeFor[currentPrincipal]():                          {"CurrentPrincipal", "The caller."},
		reflect.TypeFor[scopedPermissions]():                         {"ScopedPermissions", "Permissions for the users of some departments."},
		reflect.TypeFor[checkResults]():                              {"CheckedPermissions", "The results of the checks, in the order of the checks in the request."},
		reflect.TypeFor[checkResult]():                               {"CheckResult", "The result of one check."},
		reflect.TypeFor[factorsBody]():                               {"Factors", "The caller's second factors."},
		reflect.TypeFor[confirmedBody]():                             {"AuthenticatorApp", "An authenticator app."},
		reflect.TypeFor[passkeyBody]():                               {"Passkey", "A passkey."},
		reflect.TypeFor[newPasskeyBody]():                            {"CreatedPasskey", "A new passkey. Recovery codes are returned only once: the answer to a repeated request has secretWithheld instead."},
		reflect.TypeFor[totpSecretBody]():                            {"TotpSecret", "A secret for an authenticator app."},
		reflect.TypeFor[enrolmentBody]():                             {"Enrolment", "Two ways to enroll a second factor: with a code of the secret, or with a passkey."},
		reflect.TypeFor[recoveryCodesBody]():                         {"CreatedRecoveryCodes", "Recovery codes. After the confirmation of an authenticator app, they are absent if the user has unused ones."},
		reflect.TypeFor[publicKeyBody]():                             {"PasskeyOptions", "Options for an authenticator."},
		reflect.TypeFor[tokenBody]():                                 {"APIToken", "An API token without its secret."},
		reflect.TypeFor[newTokenBodyWithSecret]():                    {"CreatedAPIToken", "A new API token. Its secret is returned only once: the answer to a repeated request has secretWithheld instead."},
		reflect.TypeFor[operation.Page[tokenBody]]():                 {"APITokenPage", "A page of API tokens."},
		reflect.TypeFor[operation.CountedPage[serviceAccountBody]](): {"ServiceAccountPage", "A page of service accounts."},
		reflect.TypeFor[rolecall.WebhookDraft]():                     {"CreateWebhook", "A new webhook."},
		reflect.TypeFor[rolecall.WebhookPatch]():                     {"UpdateWebhook", "A merge patch (RFC 7396). Absent members do not change."},
		reflect.TypeFor[rolecall.Webhook]():                          {"Webhook", "A webhook without its secret. Callers without webhooks:read get the ID only."},
		reflect.TypeFor[shownNewWebhook]():                           {"CreatedWebhook", "A webhook with its secret. The secret is returned only once: the answer to a repeated request has secretWithheld instead. Callers without webhooks:read get the ID and the secret only."},
		reflect.TypeFor[operation.Page[webhookBody]]():               {"WebhookPage", "A page of webhooks."},
		reflect.TypeFor[operatorWebhookDraft]():                      {"CreateOperatorWebhook", "A new webhook of operators."},
		reflect.TypeFor[operatorWebhookPatch]():                      {"UpdateOperatorWebhook", "A merge patch (RFC 7396). Absent members do not change."},
		reflect.TypeFor[operatorWebhook]():                           {"OperatorWebhook", "A webhook of operators without its secret."},
		reflect.TypeFor[newOperatorWebhook]():                        {"CreatedOperatorWebhook", "A webhook of operators with its secret. The secret is returned only once: the answer to a repeated request has secretWithheld instead."},
		reflect.TypeFor[operation.Page[operatorWebhook]]():           {"OperatorWebhookPage", "A page of webhooks of operators."},
		reflect.TypeFor[webhookTest]():                               {"WebhookTestItem", "A test that will be sent."},
		reflect.TypeFor[replayBody]():                                {"Replay", "The time whose items are sent again."},
		reflect.TypeFor[skipBody]():                                  {"SkipItems", "Which items are skipped."},
		reflect.TypeFor[webhookDelivery]():                           {"WebhookDelivery", "An attempt to send an item."},
		reflect.TypeFor[operation.Page[webhookDelivery]]():           {"WebhookDeliveryPage", "A page of attempts."},
		reflect.TypeFor[rolecall.ConnectionDraft]():                  {"CreateConnection", "A new connection to an identity provider."},
		reflect.TypeFor[rolecall.ConnectionPatch]():                  {"UpdateConnection", "A merge patch (RFC 7396). Absent members do not change."},
		reflect.TypeFor[rolecall.Connection]():                       {"Connection", "A connection to an identity provider, without its client secret."},
		reflect.TypeFor[rolecall.Provisioning]():                     {"Provisioning", "The access of users that a connection creates."},
		reflect.TypeFor[operation.Page[connectionBody]]():            {"ConnectionPage", "The connections of a tenant."},
		reflect.TypeFor[connectionReport]():                          {"ConnectionReport", "The result of a test of a connection."},
		reflect.TypeFor[offeredConnection]():                         {"OfferedConnection", "A connection with which users can sign in."},
		reflect.TypeFor[operation.Page[offeredConnection]]():         {"OfferedConnectionPage", "The connections with which users can sign in."},
		reflect.TypeFor[findConnectionBody]():                        {"FindConnection", "An email address."},
		reflect.TypeFor[foundConnection]():                           {"FoundConnection", "The connection of an email address."},
		reflect.TypeFor[identityBody]():                              {"Identity", "An account at an identity provider with which the user can sign in."},
		reflect.TypeFor[operation.Page[identityBody]]():              {"IdentityPage", "The identities of a user."},
		reflect.TypeFor[rolecall.ServiceAccount]():                   {"ServiceAccount", "A service account: a program of the tenant. Callers without service-accounts:read get the ID only."},
	},
	StandsFor: map[reflect.Type]reflect.Type{
		reflect.TypeFor[userBody]():           reflect.TypeFor[shownUser](),
		reflect.TypeFor[roleBody]():           reflect.TypeFor[rolecall.Role](),
		reflect.TypeFor[serviceAccountBody](): reflect.TypeFor[rolecall.ServiceAccount](),
		reflect.TypeFor[webhookBody]():        reflect.TypeFor[rolecall.Webhook](),
		reflect.TypeFor[newWebhookBody]():     reflect.TypeFor[shownNewWebhook](),
		reflect.TypeFor[connectionBody]():     reflect.TypeFor[rolecall.Connection](),
		reflect.TypeFor[assignedRole]():       reflect.TypeFor[roleName](),
		reflect.TypeFor[reachBody]():          reflect.TypeFor[reachDraft](),
		reflect.TypeFor[permissionChecks]():   reflect.TypeFor[[]permissionCheck](),
		reflect.TypeFor[credential]():         reflect.TypeFor[jsontext.Value](),
		reflect.TypeFor[jobFilter]():          reflect.TypeFor[jobUsers](),
		reflect.TypeFor[jobRole]():            reflect.TypeFor[rolecall.RoleID](),
	},
	OnlyID: map[reflect.Type]bool{
		reflect.TypeFor[shownUser]():               true,
		reflect.TypeFor[rolecall.Role]():           true,
		reflect.TypeFor[rolecall.ServiceAccount](): true,
		reflect.TypeFor[rolecall.Webhook]():        true,
		reflect.TypeFor[rolecall.Connection]():     true,
		reflect.TypeFor[shownNewWebhook]():         true,
		reflect.TypeFor[roleName]():                true,
		reflect.TypeFor[tenantBody]():              true,
	},
	Schemas: map[reflect.Type]func(s *operation.Schemas, about string) *huma.Schema{
		reflect.TypeFor[permissionValue](): permissionSchema,
		reflect.TypeFor[departmentText]():  departmentSchema,
		reflect.TypeFor[includeValue]():    includeSchema,
		reflect.TypeFor[timeZoneValue]():   timeZoneSchema,
		reflect.TypeFor[pastTime]():        pastTimeSchema,
		reflect.TypeFor[reasonText]():      reasonSchema,
		reflect.TypeFor[jobSearch]():       searchSchema,
		reflect.TypeFor[base64Text]():      base64Schema,
		reflect.TypeFor[passkeyIDValue]():  passkeyIDSchema,
		reflect.TypeFor[settingsBody]():    settingsSchema,
		reflect.TypeFor[settingsPatch]():   settingsPatchSchema,
		reflect.TypeFor[changesCursor]():   func(*operation.Schemas, string) *huma.Schema { return &huma.Schema{Type: "string", MinLength: new(1)} },
		reflect.TypeFor[logSize](): func(*operation.Schemas, string) *huma.Schema {
			return &huma.Schema{Type: "integer", Format: "int64", Minimum: new(1.0)}
		},
		reflect.TypeFor[waitSeconds](): func(*operation.Schemas, string) *huma.Schema {
			return &huma.Schema{Type: "integer", Minimum: new(0.0), Maximum: new(float64(longestWait)), Default: 0}
		},
	},
	PathIDs: map[reflect.Type]struct{ About, Example string }{
		reflect.TypeFor[rolecall.UserID]():           {"ID of the user.", "019d83e6-1ef1-7000-9b87-15029121b69d"},
		reflect.TypeFor[rolecall.EventID]():          {"ID of the event.", "019d83e6-1ef1-7003-9d1e-2b4c6d8e0f33"},
		reflect.TypeFor[rolecall.RoleID]():           {"ID of the role.", "019d83e6-1ef1-7001-8c02-5a1f0c5d3e11"},
		reflect.TypeFor[rolecall.ServiceAccountID](): {"ID of the service account.", "019d83e6-1ef1-7002-b1aa-7d0b8e6f4c22"},
		reflect.TypeFor[rolecall.WebhookID]():        {"ID of the webhook.", "019d83e6-1ef1-7005-8d3c-6b5a4f3e2d1c"},
		reflect.TypeFor[rolecall.ConnectionID]():     {"ID of the connection.", "019d83e6-1ef1-7006-8f6e-9d8c7b6a5f4e"},
	},
}

func permissionSchema(*operation.Schemas, string) *huma.Schema {
	return operation.Ref("SinglePermission")
}

func includeSchema(*operation.Schemas, string) *huma.Schema {
	const member = "(lastLoginAt|roles|factors)"
	return &huma.Schema{Type: "string", Pattern: "^" + member + "(," + member + ")*$"}
}

func timeZoneSchema(*operation.Schemas, string) *huma.Schema {
	return operation.Bounded(1, 64)
}

func pastTimeSchema(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

func departmentSchema(s *operation.Schemas, _ string) *huma.Schema {
	if !s.IsRequest {
		return operation.Text()
	}
	return operation.Bounded(1, rolecall.DepartmentMax)
}

func reasonSchema(*operation.Schemas, string) *huma.Schema {
	return operation.OrNull(operation.Bounded(0, reasonMax))
}

func searchSchema(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: "string", MinLength: new(1), MaxLength: new(operation.SearchLength)}
}

func base64Schema(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: "string", Pattern: "^[A-Za-z0-9_-]+$"}
}

func passkeyIDSchema(*operation.Schemas, string) *huma.Schema {
	return &huma.Schema{Type: "string", MinLength: new(1), MaxLength: new(passkeyIDLength), Pattern: passkeyIDPattern}
}

// settingsSchema returns the schema of the effective settings of a tenant.
func settingsSchema(s *operation.Schemas, about string) *huma.Schema {
	settings := s.Object(reflect.TypeFor[otherSettings](), about)
	for _, n := range rolecall.NumberSettings {
		settings.Properties[n.Name] = &huma.Schema{Type: "integer", Description: n.About}
		settings.Required = append(settings.Required, n.Name)
	}
	slices.Sort(settings.Required)
	return settings
}

// settingsPatchSchema returns the schema of a change of settings. Each number can be null. Their defaults
// are in the descriptions, because generated clients send the default of a schema for an absent member.
func settingsPatchSchema(s *operation.Schemas, about string) *huma.Schema {
	settings := s.Object(reflect.TypeFor[otherSettingsPatch](), about)
	for _, n := range rolecall.NumberSettings {
		settings.Properties[n.Name] = &huma.Schema{
			Type: "integer", Nullable: true, Description: fmt.Sprintf("%s Null for the default, %d.", n.About, n.Default()),
			Minimum: new(float64(n.Min)), Maximum: new(float64(n.Max)),
		}
	}
	return settings
}

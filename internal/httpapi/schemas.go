package httpapi

import (
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

type properties = map[string]*huma.Schema

func anyText() *huma.Schema { return &huma.Schema{Type: "string"} }

// text is a string of so many characters.
func text(minimum, maximum int) *huma.Schema {
	return &huma.Schema{Type: "string", MinLength: &minimum, MaxLength: &maximum}
}

func uuid() *huma.Schema { return &huma.Schema{Type: "string", Format: "uuid"} }

// byWhom is the id of a user or service account.
// ofOthers says when a member of an event is hidden.
const ofOthers = "Null also for an act of somebody else, unless the caller may read all events."

func byWhom() *huma.Schema { return described(nullable(uuid()), "Null is an operator.") }

func tenantNameSchema() *huma.Schema {
	return &huma.Schema{Type: "string", Pattern: "^[a-z0-9][a-z0-9_-]{0,62}$"}
}

func moment() *huma.Schema { return &huma.Schema{Type: "string", Format: "date-time"} }

func boolean(standard bool) *huma.Schema { return &huma.Schema{Type: "boolean", Default: standard} }

func truth() *huma.Schema { return &huma.Schema{Type: "boolean"} }

// integer is a whole number within bounds, with a default.
func integer(minimum, maximum float64, standard int) *huma.Schema {
	return &huma.Schema{Type: "integer", Minimum: &minimum, Maximum: &maximum, Default: standard}
}

func number() *huma.Schema {
	zero := 0.0
	return &huma.Schema{Type: "integer", Minimum: &zero}
}

func enum(values ...any) *huma.Schema { return &huma.Schema{Type: "string", Enum: values} }

func ref(name string) *huma.Schema { return &huma.Schema{Ref: "#/components/schemas/" + name} }

func nullable(s *huma.Schema) *huma.Schema {
	s.Nullable = true
	return s
}

// refOrNull is the named schema or null.
func refOrNull(name string) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{ref(name), {Type: "null"}}}
}

func described(s *huma.Schema, about string) *huma.Schema {
	s.Description = about
	return s
}

func list(of *huma.Schema) *huma.Schema { return &huma.Schema{Type: "array", Items: of} }

func listUpTo(most int, of *huma.Schema) *huma.Schema {
	return &huma.Schema{Type: "array", Items: of, MaxItems: &most}
}

func object(about string, members properties, required ...string) *huma.Schema {
	return &huma.Schema{Type: "object", Description: about, Properties: members, Required: required}
}

// request is an object that may hold nothing else.
func request(about string, members properties, required ...string) *huma.Schema {
	s := object(about, members, required...)
	s.AdditionalProperties = false
	return s
}

func pageOf(about, item string, more properties) *huma.Schema {
	s := object(about, properties{
		"items":      list(ref(item)),
		"nextCursor": described(nullable(anyText()), "Leads to the next page; only null ends the walk."),
	}, "items", "nextCursor")
	for name, schema := range more {
		s.Properties[name] = schema
	}
	return s
}

func pairsOf(value *huma.Schema) *huma.Schema {
	most := rolecall.MetadataPairs
	return &huma.Schema{Type: "object", MaxProperties: &most, AdditionalProperties: value}
}

func department() *huma.Schema {
	return nullable(text(rolecall.DepartmentMin, rolecall.DepartmentMax))
}

func permissions() *huma.Schema {
	return listUpTo(rolecall.RolePermissionsMax, &huma.Schema{Type: "string", MaxLength: new(rolecall.PermissionLength),
		Description: "[application/]resource[.field]:action; each part a name or *."})
}

func roleKey() *huma.Schema {
	return &huma.Schema{Type: "string", Nullable: true, Pattern: "^[a-z][a-z0-9-]{0,62}$", Description: "A stable handle for programs; it never changes."}
}

// newPassword is a password that is to be set. Its least length is a setting.
func newPassword() *huma.Schema {
	return described(text(rolecall.PasswordLeast, secret.PasswordMax), "At least as long as the tenant's passwordMinimum, and not easy to guess.")
}

// settingSchemas are the settings of a tenant; in a patch each may be null.
func settingSchemas(patch bool) properties {
	const sender, required, roles = "The name that mail of the tenant comes from; null: the tenant's displayName.", "Of whom a second factor is required: none, all, or the holders of roles.", "The roles whose holders must have a second factor."
	if !patch {
		members := properties{
			"secondFactor":   object("", properties{"required": described(anyText(), required), "roles": described(list(uuid()), roles)}, "required", "roles"),
			"mailSenderName": described(nullable(anyText()), sender),
		}
		for _, n := range rolecall.NumberSettings {
			members[n.Name] = &huma.Schema{Type: "integer", Description: n.About}
		}
		return members
	}
	scope := nullable(enum("none", "all", "roles", nil))
	scope.Default = "none"
	members := properties{
		"secondFactor": nullable(request("", properties{
			"required": described(scope, required),
			"roles":    described(nullable(listUpTo(rolecall.SecondFactorRolesMax, uuid())), roles+" They are kept only while roles are required."),
		})),
		"mailSenderName": described(nullable(text(1, rolecall.MailSenderMax)), sender),
	}
	for _, n := range rolecall.NumberSettings {
		members[n.Name] = described(nullable(integer(float64(n.Min), float64(n.Max), int(n.Default()))), n.About)
	}
	return members
}

// requestSchemas are the bodies that operations read.
func requestSchemas() properties {
	metadata := func(value *huma.Schema) *huma.Schema {
		s := pairsOf(value)
		s.Nullable = true
		return s
	}
	value := func() *huma.Schema { return text(0, rolecall.MetadataMax) }
	bodies := properties{
		"CreateUser": request("A new user.", properties{
			"email":      described(text(3, rolecall.EmailMax), "The address, unique in the tenant."),
			"name":       text(rolecall.UserNameMin, rolecall.UserNameMax),
			"department": department(),
			"externalId": described(nullable(text(1, rolecall.ExternalIDMax)), "The application's own id, unique in the tenant."),
			"metadata":   metadata(value()),
			"invite":     described(truth(), "Whether to invite the user at once, by mail; needs users:invite too."),
		}, "email", "name"),
		"UpdateUser": request("A merge patch (RFC 7396): absent members stay, null clears.", properties{
			"name":       text(rolecall.UserNameMin, rolecall.UserNameMax),
			"department": department(),
			"externalId": nullable(text(1, rolecall.ExternalIDMax)),
			"metadata":   metadata(nullable(value())),
		}),
		"Reason": request("Why the act is done, for the record.", properties{
			"reason": nullable(text(0, reasonMax)),
		}),
		"CreateRole": request("A new role.", properties{
			"key":         roleKey(),
			"name":        text(rolecall.RoleNameMin, rolecall.RoleNameMax),
			"description": nullable(text(0, rolecall.RoleDescriptionMax)),
			"permissions": nullable(permissions()),
			"grants":      described(nullable(permissions()), "What holders may hand on beyond what they hold."),
		}, "name"),
		"UpdateRole": request("A merge patch (RFC 7396): absent members stay, lists are replaced whole, null empties.", properties{
			"name":        text(rolecall.RoleNameMin, rolecall.RoleNameMax),
			"description": nullable(text(0, rolecall.RoleDescriptionMax)),
			"permissions": nullable(permissions()),
			"grants":      nullable(permissions()),
		}),
		"AssignRole": request("How the user holds the role; without a body everywhere and without end.", properties{
			"reach":     refOrNull("Reach"),
			"expiresAt": nullable(moment()),
		}),
		"CheckPermissions": request("The permissions to check.", properties{
			"checks": listUpTo(checksMax, request("", properties{
				"permission": described(text(1, rolecall.PermissionLength), "The permission to check, without wildcards, such as shop/invoices:approve."),
				"department": described(nullable(text(1, rolecall.DepartmentMax)), "The department for which to check it. Without it, the permission must hold in the whole tenant."),
			}, "permission")),
		}, "checks"),
		"Reach": described(request("", properties{
			"departments": listUpTo(rolecall.ReachDepartmentsMax, text(rolecall.DepartmentMin, rolecall.DepartmentMax)),
		}, "departments"), "Only the users of these departments."),
		"UpdateTenant": request("A merge patch (RFC 7396): absent members stay, null sets the default again.", properties{
			"displayName": text(1, rolecall.UserNameMax),
			"settings":    nullable(request("", settingSchemas(true))),
		}),
	}
	maps.Copy(bodies, credentialSchemas())
	return bodies
}

// credentialSchemas are the bodies by which somebody shows or sets what they sign in
// by.
func credentialSchemas() properties {
	return properties{
		"ChangePassword": request("The current password and the new one.", properties{
			"currentPassword": anyText(),
			"newPassword":     newPassword(),
		}, "currentPassword", "newPassword"),
		"AcceptInvitation": acceptance("The token of the invitation and the password to set."),
		"CompleteLogin": request("The challenge, and one of the other members.", properties{
			"challenge":    anyText(),
			"code":         described(anyText(), "Six digits of an authenticator app; of a new one too, to enrol it."),
			"recoveryCode": anyText(),
			"passkey":      credentialSchema(),
		}, "challenge"),
		"Confirm": request("The password; with it, of somebody who has a second factor, one of the other members.", properties{
			"password":     anyText(),
			"code":         described(anyText(), "Six digits of an authenticator app."),
			"recoveryCode": anyText(),
			"passkey":      credentialSchema(),
		}, "password"),
		"BeginEnrolment":  request("The challenge.", properties{"challenge": anyText()}, "challenge"),
		"SignInByPasskey": request("What the authenticator answered.", properties{"passkey": credentialSchema()}, "passkey"),
		"ConfirmTotp":     request("A code.", properties{"code": described(anyText(), "Six digits that the app shows.")}, "code"),
		"CreatePasskey": request("What the authenticator made.", properties{
			"name":    passkeyName(),
			"passkey": credentialSchema(),
		}, "name", "passkey"),
		"UpdatePasskey": request("What is to change.", properties{"name": passkeyName()}),
		"ResetPassword": acceptance("The token of the link and the password to set."),
		"ChangeEmail":   request("The token of the link.", properties{"token": anyText()}, "token"),
		"EmailAddress":  request("An address.", properties{"email": text(3, rolecall.EmailMax)}, "email"),
		"Login": request("Address and password.", properties{
			"email":    anyText(),
			"password": anyText(),
		}, "email", "password"),
	}
}

// machineSchemas are those of service accounts and API tokens.
func machineSchemas() properties {
	return properties{
		"CreateServiceAccount": request("A new service account. It holds no role yet.", properties{
			"name":        described(text(rolecall.RoleNameMin, rolecall.RoleNameMax), "Unique in the tenant."),
			"description": nullable(text(0, rolecall.RoleDescriptionMax)),
		}, "name"),
		"UpdateServiceAccount": request("A merge patch (RFC 7396): absent members stay, null empties.", properties{
			"name":        text(rolecall.RoleNameMin, rolecall.RoleNameMax),
			"description": nullable(text(0, rolecall.RoleDescriptionMax)),
		}),
		"CreateAPIToken": request("A new API token.", properties{
			"name":        described(text(rolecall.APITokenNameMin, rolecall.APITokenNameMax), "What it is for, for people."),
			"permissions": described(permissions(), "What its bearer may do at most. Each must be held by whom it speaks for, or be one that they may hand on; what they lose later, it loses too."),
			"expiresAt":   described(moment(), "When it ends: at most 366 days from now."),
		}, "name", "permissions", "expiresAt"),

		"ServiceAccount": object("A program of the tenant. Who may not read service accounts sees the id alone.", properties{
			"id": uuid(), "name": anyText(), "description": anyText(),
			"status": described(anyText(), "active or suspended; more may come."), "createdAt": moment(), "updatedAt": moment(),
		}, "id"),
		"ServiceAccountPage": pageOf("A page of service accounts.", "ServiceAccount", properties{"total": number(), "totalIsExact": truth()}),
		"APIToken":           apiTokenSchema("An API token, without the secret that bears it.", nil),
		"NewAPIToken": apiTokenSchema("An API token. Its secret is shown once; a repeated request is told that it was.", properties{
			"token": described(anyText(), "What the program sends: Authorization: Bearer rc_…"), "secretWithheld": truth(),
		}),
		"APITokenPage": pageOf("A page of API tokens.", "APIToken", nil),
	}
}

// apiTokenSchema is an API token with more members.
func apiTokenSchema(about string, more properties) *huma.Schema {
	members := properties{
		"id": uuid(), "name": anyText(), "permissions": list(anyText()),
		"createdBy": described(nullable(uuid()), "Null is an operator."), "createdAt": moment(), "expiresAt": moment(),
		"lastUsedAt": described(nullable(moment()), "To the minute; null is never."),
	}
	required := slices.Sorted(maps.Keys(members))
	maps.Copy(members, more)
	return object(about, members, required...)
}

// acceptance is a body by which a token sets a password.
func acceptance(about string) *huma.Schema {
	return request(about, properties{"token": anyText(), "password": newPassword()}, "token", "password")
}

// signInSchema says whether a user can sign in.
func signInSchema() *huma.Schema {
	return object("Whether the user can sign in, and if not, why.", properties{
		"canSignIn": described(truth(), "Whether there is no reason against it, also none that refuses some sign-ins only."),
		"reasons": list(object("", properties{"code": described(anyText(), "tenant-suspended, user-suspended, user-pending, invitation-void (whoever made it could not invite the user now), invitation-expired, no-password, second-factor-enrolment-required, second-factor-unusable (there are passkeys alone, and no domain for them) or too-many-attempts (some sign-ins are refused, as covers says, until that moment); more may come."), "operation": described(nullable(anyText()), "The operation that removes the obstacle; null if none does."),
			"until":  described(nullable(moment()), "When the obstacle ends by itself; null if it does not."),
			"covers": described(nullable(anyText()), "Of too-many-attempts, which sign-ins are refused: source (those from one address or network), unknown-browsers (those from browsers in which the user has not signed in) or second-factor (codes from such browsers); more may come. Null: all."),
			"source": described(nullable(anyText()), "The address or network of covers source; null for callers who may not read events.")}, "code", "operation", "until", "covers", "source")),
		"lastLoginAt": nullable(moment()),
	}, "canSignIn", "reasons", "lastLoginAt")
}

// answerSchemas are the documents that operations answer with.
func answerSchemas() properties {
	reach := func() *huma.Schema { return described(refOrNull("Reach"), "Null is the whole tenant.") }
	settings := settingSchemas(false)
	return properties{
		"User": object("A user. Members that the caller may not read are absent.", properties{
			"id": uuid(), "email": anyText(), "name": anyText(), "department": nullable(anyText()), "externalId": nullable(anyText()),
			"metadata": {Type: "object", AdditionalProperties: anyText()},
			"status":   described(anyText(), "pending, active or suspended; deleted in a list of those who can be restored; more may come."), "createdAt": moment(), "updatedAt": moment(),
			"deletedAt": described(moment(), "Only in a list of those who can be restored."),
		}, "id"),
		"RestoredUser": object("A user who was deleted and is back. They need an invitation to sign in.", properties{
			"user":             ref("User"),
			"rolesNotRestored": described(list(uuid()), "The roles that they held and do not hold again: the caller could not give them, or they are gone. Absent if the caller may not read the user's roles."),
		}, "user"),
		"UserPage": pageOf("A page of users.", "User", properties{
			"total": number(), "totalIsExact": truth(),
			"restrictedBy": described(list(anyText()), "The members whose rules made the list narrower than what the caller may know of."),
		}),
		"Role": object("A named set of permissions. Who may not read roles sees the id alone.", properties{
			"id": uuid(), "key": nullable(anyText()), "name": anyText(), "description": anyText(),
			"permissions": list(anyText()), "grants": list(anyText()),
			"system": described(truth(), "Comes with the tenant and cannot be changed."), "createdAt": moment(), "updatedAt": moment(),
		}, "id"),
		"RolePage": pageOf("A page of roles.", "Role", properties{"total": number(), "totalIsExact": truth()}),
		"RoleName": object("What names a role.", properties{"id": uuid(), "key": nullable(anyText()), "name": anyText()}, "id"),
		"Assignment": object("A role that a user holds: where, until when, and from whom.", properties{
			"role": ref("RoleName"), "reach": reach(), "expiresAt": nullable(moment()),
			"grantedBy": byWhom(), "grantedAt": moment(),
		}, "role", "reach", "expiresAt", "grantedBy", "grantedAt"),
		"AssignmentPage": pageOf("The assignments of a user.", "Assignment", nil),
		"Overview": object("A user at one glance. Parts that the caller may not read are absent.", properties{
			"user": ref("User"), "assignments": described(list(ref("Assignment")), "At most 100."), "assignmentCount": number(),
			"expiredAssignments": described(list(ref("Assignment")), "Assignments that have expired and count for nothing, the last expired first. At most 100."),
			"permissions":        list(object("", properties{"permission": anyText(), "reach": reach(), "roles": list(ref("RoleName"))}, "permission", "reach", "roles")),
			"signIn":             ref("SignInState"),
			"invitation":         described(&huma.Schema{OneOf: []*huma.Schema{object("", properties{"createdBy": byWhom(), "createdAt": moment(), "expiresAt": moment()}, "createdBy", "createdAt", "expiresAt"), {Type: "null"}}}, "The one that was made last and not accepted; it may be over or void, as the reasons say."),
			"sessions":           object("", properties{"count": number(), "newestAt": nullable(moment())}, "count", "newestAt"),
			"tokens":             described(object("", properties{"count": number()}, "count"), "API tokens of the user that are not over."),
			"factors":            described(object("", properties{"totp": truth(), "passkeys": number(), "recoveryCodesLeft": number()}, "totp", "passkeys", "recoveryCodesLeft"), "What the user can show beside the password. For the user, and for who may reset it."),
			"recentEvents":       list(ref("Event")),
			"allowedActions":     described(list(anyText()), "What this caller may do to this user: update, delete, suspend, resume, invite, sendPasswordReset, changeEmail, assignRole, erase, resetFactors, revokeSessions or withdrawInvitation; more may come."),
		}, "user", "allowedActions"),
		"SignInState": signInSchema(),
		"Event": object("What happened. Ids are not in the order of commits: to copy all events, poll with an overlap and skip the ids that you have, as the guide on events shows.", properties{
			"id": uuid(), "type": described(anyText(), "What happened: one of the values that the filter type takes; more may come. /docs/events says when each is written and what it holds."), "occurredAt": moment(),
			"actor":   object("", properties{"type": anyText(), "id": nullable(uuid()), "via": anyText(), "tokenId": described(nullable(uuid()), "The API token by which they acted. "+ofOthers)}, "type", "id", "via", "tokenId"),
			"subject": object("", properties{"type": anyText(), "id": uuid()}, "type", "id"),
			"members": list(anyText()), "requestId": nullable(anyText()), "sessionId": described(nullable(uuid()), "The session in which it was done, or that ended. "+ofOthers), "source": described(nullable(anyText()), "The address from which it was done. "+ofOthers), "reason": nullable(anyText()),
			"before": described(&huma.Schema{Type: "object"}, "The changed members before, as far as the caller may read them. Of an assignment: roleId, departments (absent: the whole tenant) and expiresAt (absent: no end)."),
			"after":  described(&huma.Schema{Type: "object"}, "The changed members after, as before."),
		}, "id", "type", "occurredAt", "actor", "subject", "members", "requestId", "sessionId", "source", "reason"),
		"EventPage": pageOf("A page of events.", "Event", nil),
		"Invitation": object("An invitation to set a password and sign in. The link goes to the user by mail, and to nobody else.", properties{
			"userId": uuid(), "createdAt": moment(), "expiresAt": moment(),
		}, "userId"),
		"OpenInvitation": object("An invitation that is not over, with its user as far as the caller may read them. The overview of the user says whether it can be accepted.", properties{
			"userId": uuid(), "createdAt": moment(), "expiresAt": moment(), "createdBy": byWhom(), "user": ref("User"),
		}, "userId", "createdAt", "expiresAt", "createdBy", "user"),
		"InvitationPage": pageOf("A page of invitations.", "OpenInvitation", nil),
		"Tenant": object("The tenant of the request. Who may not read it sees the id alone.", properties{
			"id": uuid(), "name": anyText(), "displayName": anyText(), "status": anyText(),
			"settings": object("What is in force.", settings, slices.Sorted(maps.Keys(settings))...), "createdAt": moment(), "updatedAt": moment(), "purgeAt": described(moment(), "Of a deleted tenant, which operators alone can read: until then it can be restored, and then its data is removed."),
		}, "id"),
		"Problem": object("An error (RFC 9457).", properties{
			"type": anyText(), "code": described(anyText(), "What programs switch on."), "title": anyText(), "status": {Type: "integer"}, "detail": anyText(),
			"instance": anyText(), "requestId": anyText(), "errors": described(list(ref("Fault")), "Everything that is wrong with the request, up to 100 errors."),
			"moreErrors": described(truth(), "There are more errors than the 100 that are listed. Absent otherwise."),
			"challenge":  described(anyText(), "Of a sign-in that waits for a second factor: comes with the answer, within five minutes."),
			"methods":    described(list(anyText()), "How it can be answered: totp, passkey, recovery-code; more may come."),
			"publicKey":  publicKey("For navigator.credentials.get, if one of the methods is passkey."),
		}, "type", "code", "title", "status", "detail", "instance", "requestId"),
		"Fault": object("One thing wrong with a request; exactly one of pointer, header and parameter says where.", properties{
			"pointer": described(anyText(), "JSON Pointer (RFC 6901) into the body."), "header": anyText(), "parameter": anyText(), "code": anyText(), "detail": anyText(),
		}, "code", "detail"),
	}
}

// linkSchemas are the answers to what has a link mailed.
func linkSchemas() properties {
	return properties{
		"PasswordReset": object("That a user was mailed a link to choose a new password.", properties{"userId": uuid(), "expiresAt": moment()}, "userId"),
		"EmailChange":   object("That a new address is asked.", properties{"userId": uuid(), "expiresAt": moment()}, "userId"),
		"Accepted":      object("What will come of the request, if anything does.", properties{"detail": anyText()}, "detail"),
	}
}

// sessionSchemas are those of sessions.
func sessionSchemas() properties {
	return properties{
		"Session": object("A session.", properties{
			"id": uuid(), "authenticatedAt": described(moment(), "When the person signed in."),
			"confirmedAt":  described(nullable(moment()), "When the person last confirmed to be the one who signed in."),
			"secondFactor": described(truth(), "A second factor was shown to sign in."), "idleExpiresAt": moment(), "expiresAt": moment(),
		}, "id", "authenticatedAt", "confirmedAt", "secondFactor", "idleExpiresAt", "expiresAt"),
		"UserSession": object("A live session of a user.", properties{
			"id": uuid(), "createdAt": described(moment(), "When the user signed in."), "lastUsedAt": described(moment(), "Of the last use, to about a minute."),
			"expiresAt": described(moment(), "When it ends, however it is used."), "address": described(nullable(anyText()), "Where the user signed in from."),
			"client":       described(nullable(anyText()), "What the user signed in with, such as Firefox on Linux, as that calls itself."),
			"secondFactor": described(truth(), "Whether a second factor was shown. One without lets nobody in as long as the tenant demands a factor of the user."),
			"current":      described(truth(), "It is the one of this request."),
		}, "id", "createdAt", "lastUsedAt", "expiresAt", "address", "client", "secondFactor", "current"),
		"UserSessionPage": pageOf("A page of sessions.", "UserSession", nil),
		"SignIn":          object("Who is signed in.", properties{"user": ref("User"), "session": ref("Session"), "recoveryCodes": recoveryCodes()}, "user", "session"),
		"CurrentSession": object("Who is asking, and what they hold.", properties{
			"tenant": object("", properties{"id": uuid(), "name": anyText()}, "id", "name"),
			"principal": object("Who acts. A token of a user speaks for that user.", properties{
				"type": described(anyText(), "user, service_account or operator; more may come."), "id": uuid(), "name": anyText(),
			}, "type", "id", "name"),
			"user": described(ref("User"), "Of a service account and of an operator the id and the name alone."), "roles": list(ref("RoleName")),
			"permissions":       described(list(anyText()), "What holds in the whole tenant. Entries can have wildcards: an owner holds */*:*, which covers shop/invoices:approve. To check a permission, use GET /auths/check or POST /auths/checks."),
			"scopedPermissions": list(object("What holds in some departments only. Entries can have wildcards.", properties{"permission": anyText(), "reach": ref("Reach")}, "permission", "reach")),
			"session":           described(refOrNull("Session"), "Null for a program."),
		}, "tenant", "principal", "user", "roles", "permissions", "scopedPermissions", "session"),
		"CheckedPermissions": object("The results of the checks, in their order.", properties{
			"results": list(object("", properties{
				"permission": anyText(), "department": nullable(anyText()),
				"allowed": described(truth(), "Whether the caller holds the permission: for that department, or in the whole tenant if the check names none."),
			}, "permission", "department", "allowed")),
		}, "results"),
	}
}

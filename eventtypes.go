package rolecall

import "slices"

// EventDescription says when events of a type are written, and what they hold.
type EventDescription struct {
	Type     EventType
	Subjects []SubjectType
	Written  string   // when: the end of a sentence
	Members  []string // those that its members can name
	Before   string   // what before holds; empty for nothing
	After    string   // what after holds; empty for nothing
	Reason   string   // what reason says; empty for nothing
}

// EventDescriptions returns a description of every type of events, in the order of
// docs/events.md.
func EventDescriptions() []EventDescription { return slices.Clone(eventDescriptions) }

var (
	ofUser        = []SubjectType{SubjectUser}
	ofRole        = []SubjectType{SubjectRole}
	ofTenant      = []SubjectType{SubjectTenant}
	ofAccount     = []SubjectType{SubjectServiceAccount}
	ofHolder      = []SubjectType{SubjectUser, SubjectServiceAccount}
	ofUserIfKnown = []SubjectType{SubjectUser, SubjectTenant}

	factorMembers = []string{string(FactorTOTP), string(FactorPasskey)}
)

var eventDescriptions = []EventDescription{
	{Type: EventUserCreated, Subjects: ofUser, Written: "a user was created", After: "the user"},
	{Type: EventUserUpdated, Subjects: ofUser, Written: "members of a user were changed; `email` when the new address was confirmed",
		Members: []string{"email", "name", "department", "externalId", "metadata"}, Before: "the changed members", After: "the changed members"},
	{Type: EventUserSuspended, Subjects: ofUser, Written: "a user was suspended", Members: []string{"status"}, Before: "`status`", After: "`status`", Reason: "what the caller gave"},
	{Type: EventUserResumed, Subjects: ofUser, Written: "a suspended user was resumed", Members: []string{"status"}, Before: "`status`", After: "`status`", Reason: "what the caller gave"},
	{Type: EventUserDeleted, Subjects: ofUser, Written: "a user was deleted", Before: "the user"},
	{Type: EventUserRestored, Subjects: ofUser, Written: "a deleted user was restored", After: "the user, and the ids of `roles` and `rolesNotRestored`"},
	{Type: EventUserErased, Subjects: ofUser, Written: "a user was erased"},
	{Type: EventUserInvited, Subjects: ofUser, Written: "a user was invited", After: "`createdAt`, `expiresAt`"},
	{Type: EventInvitationUsed, Subjects: ofUser, Written: "a user accepted an invitation and set a password"},
	{Type: EventInvitationWithdrawn, Subjects: ofUser, Written: "an invitation was withdrawn"},
	{Type: EventPasswordChanged, Subjects: ofUser, Written: "a user changed the password, or an operator set it"},
	{Type: EventResetRequested, Subjects: ofUserIfKnown, Written: "somebody asked for a link to choose a new password, or an administrator sent one",
		After: "`expiresAt`", Reason: "`mailed`, or why nothing was mailed; empty if an administrator sent it"},
	{Type: EventPasswordReset, Subjects: ofUser, Written: "a user set a new password by such a link"},
	{Type: EventEmailRequested, Subjects: ofUser, Written: "a change of a user's address was requested", After: "`expiresAt`"},
	{Type: EventFactorAdded, Subjects: ofUser, Written: "a user added a second factor", Members: factorMembers, After: "the passkey, for that user alone"},
	{Type: EventFactorRenamed, Subjects: ofUser, Written: "a user renamed a passkey", Members: []string{string(FactorPasskey)}, Before: "the passkey, for that user alone", After: "the same"},
	{Type: EventFactorRemoved, Subjects: ofUser, Written: "a user removed a second factor", Members: factorMembers},
	{Type: EventFactorsReset, Subjects: ofUser, Written: "all second factors of a user were removed by an administrator"},
	{Type: EventRecoveryMade, Subjects: ofUser, Written: "a user got new recovery codes"},
	{Type: EventRecoveryUsed, Subjects: ofUser, Written: "a user signed in or confirmed a sign-in by a recovery code"},

	{Type: EventRoleCreated, Subjects: ofRole, Written: "a role was created", After: "the role"},
	{Type: EventRoleUpdated, Subjects: ofRole, Written: "a role was changed", Members: []string{"name", "description", "permissions", "grants"}, Before: "the role", After: "the role"},
	{Type: EventRoleDeleted, Subjects: ofRole, Written: "a role was deleted", Before: "the role"},
	{Type: EventRoleAssigned, Subjects: ofHolder, Written: "a role was assigned, or an assignment was replaced", Members: []string{"roles"},
		Before: "`roleId`, `departments`, `expiresAt` of the assignment that was replaced", After: "`roleId`, `departments`, `expiresAt`"},
	{Type: EventRoleUnassigned, Subjects: ofHolder, Written: "a role was taken from its holder", Members: []string{"roles"},
		Before: "`roleId`, `departments`, `expiresAt`", Reason: "`role deleted`, if that is why"},

	{Type: EventSignedIn, Subjects: ofUser, Written: "a user signed in"},
	{Type: EventSignInFailed, Subjects: ofUserIfKnown, Written: "a sign-in or its confirmation failed; equal ones within a second are one event", Reason: "what was wrong, and how many times"},
	{Type: EventSessionConfirmed, Subjects: ofUser, Written: "a user confirmed to be the person who signed in"},
	{Type: EventSessionEnded, Subjects: ofUser, Written: "a session ended before it expired; `sessionId` is that session", Reason: "why"},
	{Type: EventTokenReused, Subjects: ofUser, Written: "a session was ended, as one of its retired tokens was used"},
	{Type: EventRefused, Subjects: ofUserIfKnown, Written: "a caller was refused an operation (403); equal ones within a second are one event", Reason: "the operation and the problem code, and how many times"},

	{Type: EventTokenCreated, Subjects: ofHolder, Written: "an API token was made", Members: []string{"tokens"}, After: "the token, without its secret"},
	{Type: EventTokenRevoked, Subjects: ofHolder, Written: "an API token was revoked", Members: []string{"tokens"}, Before: "the token, without its secret", Reason: "why, if nobody revoked it by itself"},
	{Type: EventServiceAccountCreated, Subjects: ofAccount, Written: "a service account was created", After: "the service account"},
	{Type: EventServiceAccountUpdated, Subjects: ofAccount, Written: "a service account was changed", Members: []string{"name", "description"}, Before: "the service account", After: "the service account"},
	{Type: EventServiceAccountSuspended, Subjects: ofAccount, Written: "a service account was suspended", Members: []string{"status"}, Before: "the service account", After: "the service account", Reason: "what the caller gave"},
	{Type: EventServiceAccountResumed, Subjects: ofAccount, Written: "a suspended service account was resumed", Members: []string{"status"}, Before: "the service account", After: "the service account", Reason: "what the caller gave"},
	{Type: EventServiceAccountDeleted, Subjects: ofAccount, Written: "a service account was deleted", Before: "the service account"},

	{Type: EventTenantCreated, Subjects: ofTenant, Written: "the tenant was created", After: "the tenant, and the owner's invitation, if a program created it"},
	{Type: EventTenantUpdated, Subjects: ofTenant, Written: "the tenant's name for people or its settings were changed", Members: []string{"displayName", "settings"}, Before: "`displayName`, `settings`", After: "`displayName`, `settings`"},
	{Type: EventTenantSuspended, Subjects: ofTenant, Written: "the tenant was suspended", Reason: "what the operator gave"},
	{Type: EventTenantResumed, Subjects: ofTenant, Written: "the suspended tenant was resumed", Reason: "what the operator gave"},
	{Type: EventTenantDeleted, Subjects: ofTenant, Written: "the tenant was deleted"},
	{Type: EventTenantRestored, Subjects: ofTenant, Written: "the deleted tenant was restored", Reason: "what the operator gave"},
	{Type: EventMailUndeliverable, Subjects: ofUserIfKnown, Written: "a mail was given up, as it could not be sent in its time", Reason: "what kind of mail it was"},
}

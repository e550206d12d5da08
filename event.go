package rolecall

import (
	"slices"
	"strings"
)

// Event is a record of an action in a tenant. A stored event never changes, except that the
// erasure of a user removes the user's data from it. The order of event ids can differ from
// the order of commits, so an event id cannot be the cursor of a change feed.
type Event struct {
	ID         EventID
	Type       EventType
	OccurredAt Time
	Actor      Actor
	Subject    Subject
	Members    []string // the JSON names of the members that changed
	RequestID  string
	SessionID  SessionID
	Source     string // IP address of the client
	Reason     string
	Values     *EventValues // nil: the event has no values, or they were erased with the user

	// SubjectDepartment is the department of the user that the event is about: the current
	// one, or the last one of a deleted user. It is nil if the user has no department, or
	// if the event is not about a user. It is loaded with the event, because it decides
	// which values the caller may read.
	SubjectDepartment *string
	SubjectDeleted    bool // the user that the event is about was deleted, and can be restored
}

// EventValues are the values of the changed members, as JSON objects. Before has the values
// before the change, and is nil if there are no old values. After has the values after the
// change, and is nil if there are no new values.
type EventValues struct {
	Before []byte
	After  []byte

	// Withheld has an entry for each member that was removed because the caller may not
	// read it. The entry maps the name of the member to the permission that allows reading
	// it. If no permission allows that, the permission is zero.
	Withheld map[string]Permission
}

// Change is an event with its number in the feed of its tenant.
type Change struct {
	Number int64
	Event
}

// Size returns about how many bytes the change has in a response.
func (c *Change) Size() int {
	const others = 900
	if c.Values == nil {
		return others
	}
	return others + len(c.Values.Before) + len(c.Values.After)
}

// Feed is the state of the change feed of a tenant. The feed gives the events of the tenant the
// numbers 1, 2, 3 and so on. A number is given after the transaction of its event was committed, so no
// event ever appears at or below Last. If a transaction has read or overwritten a change, its
// events have higher numbers than the event of this change.
type Feed struct {
	Last  int64 // the last number that was given; 0: none
	First int64 // the number of the oldest event that is kept; Last+1 if no event is kept
	At    EventID
}

// Log is the state of the Merkle log of a tenant. Its leaves are the events of the feed: the event with
// the number n has the index n-1.
type Log struct {
	Size       int64    // the number of leaves
	Root       [32]byte // the hash of the tree
	Removed    int64    // the events up to this number were deleted because of their age
	BuiltAt    Time
	SigningKey *string // encrypted; nil: no checkpoint was signed yet

	RemovedLeaf []byte // the leaf of the event with the number Removed; nil: unknown
}

// LoggedEvent is a stored event of the Merkle log, with the salts of its commitments.
type LoggedEvent struct {
	Number int64
	ID     EventID // the event of the number
	Event  *Event  // nil: the event does not exist
	Salts  *EventSalts
}

// FeedPosition is a place in the feed of a tenant: after the event with the number. Event is the
// id of this event, or zero if it is unknown.
type FeedPosition struct {
	Number int64
	Event  EventID
}

// FeedOfTenants is the state of the change feed of all tenants. The feed gives the numbers of the feeds
// of tenants the places 1, 2, 3 and so on. A place has consecutive numbers of one tenant. It is given
// after the transaction of its numbers was committed, so no number ever appears at or before Last.
type FeedOfTenants struct {
	Last  int64       // the last place that was given; 0: none
	Begin TenantsMark // the events after this position are kept
}

// FeedPlace is a place in the feed of all tenants.
type FeedPlace struct {
	Place       int64
	Tenant      TenantID
	First, Last int64 // numbers of the tenant
	Mark        AnyID // another place with the same value of Place, after a failover that has lost commits, has another mark
}

// PlaceNumbersMax is the maximum number of numbers of a place.
const PlaceNumbersMax = 1<<placeBits - 1

// placeBits is the number of bits of a position in the feed of all tenants that count the numbers of its
// place. The other bits have the place. They suffice for 1,000 places per second for 17 years.
const placeBits = 24

// PositionOf returns the position in the feed of all tenants after the number, which the place has. The
// positions of webhooks are single integers in the order of the feed.
func (p *FeedPlace) PositionOf(number int64) int64 { return p.Place<<placeBits + number - p.First + 1 }

// PositionBefore returns the position before all numbers of the place.
func PositionBefore(place int64) int64 { return place << placeBits }

// PlaceAt returns the place of a position, and how many of its numbers are before the position.
func PlaceAt(position int64) (place, passed int64) {
	return position >> placeBits, position & PlaceNumbersMax
}

// End returns the position after all places.
func (f *FeedOfTenants) End() int64 { return PositionBefore(f.Last + 1) }

// TenantsMark is a position in the feed of all tenants: after the number of the tenant that the place
// has. Mark is the mark of the place. The zero position is the beginning of the feed.
type TenantsMark struct {
	Place, Number int64
	Mark          AnyID
}

// Before reports whether the position is before the other one.
func (m TenantsMark) Before(other TenantsMark) bool {
	return m.Place < other.Place || m.Place == other.Place && m.Number < other.Number
}

// ChangeQuery selects the changes with numbers after After and up to To, at most MaxScan of them. If
// Type is empty, it selects events of all types. Room is the number of bytes for which there is room: the
// result ends before the change with which it would be larger, but has at least one. Without Room, it has
// one change.
type ChangeQuery struct {
	After, To int64
	Type      EventType
	Limit     int
	Room      int
}

// EventType is the kind of action that an event records, such as user.created.
type EventType string

// The types of events.
const (
	EventUserCreated     EventType = "user.created"
	EventUserUpdated     EventType = "user.updated"
	EventUserDeleted     EventType = "user.deleted"
	EventUserSuspended   EventType = "user.suspended"
	EventUserResumed     EventType = "user.resumed"
	EventUserRestored    EventType = "user.restored"
	EventUserErased      EventType = "user.erased"
	EventPasswordChanged EventType = "user.password_changed"
	EventUserInvited     EventType = "user.invited"
	EventInvitationUsed  EventType = "user.invitation_accepted"

	EventInvitationWithdrawn EventType = "user.invitation_withdrawn"

	EventFactorAdded      EventType = "user.factor_added"
	EventFactorRenamed    EventType = "user.factor_renamed"
	EventFactorRemoved    EventType = "user.factor_removed"
	EventFactorsReset     EventType = "user.factors_reset"
	EventRecoveryMade     EventType = "user.recovery_codes_made"
	EventRecoveryUsed     EventType = "user.recovery_code_used"
	EventResetRequested   EventType = "user.password_reset_requested"
	EventPasswordReset    EventType = "user.password_reset"
	EventEmailRequested   EventType = "user.email_change_requested"
	EventRoleCreated      EventType = "role.created"
	EventRoleUpdated      EventType = "role.updated"
	EventRoleDeleted      EventType = "role.deleted"
	EventRoleAssigned     EventType = "role.assigned"
	EventRoleUnassigned   EventType = "role.unassigned"
	EventGroupCreated     EventType = "group.created"
	EventGroupUpdated     EventType = "group.updated"
	EventGroupDeleted     EventType = "group.deleted"
	EventMemberAdded      EventType = "group.member_added"
	EventMemberRemoved    EventType = "group.member_removed"
	EventSignedIn         EventType = "session.started"
	EventSignInFailed     EventType = "session.sign_in_failed"
	EventSessionConfirmed EventType = "session.confirmed"
	EventSessionEnded     EventType = "session.ended"
	EventTokenReused      EventType = "session.token_reused"
	EventRefused          EventType = "request.refused"
	EventTenantCreated    EventType = "tenant.created"
	EventTenantUpdated    EventType = "tenant.updated"
	EventLogoChanged      EventType = "tenant.logo_changed"
	EventLogoRemoved      EventType = "tenant.logo_removed"
	EventTenantSuspended  EventType = "tenant.suspended"
	EventTenantResumed    EventType = "tenant.resumed"
	EventTenantDeleted    EventType = "tenant.deleted"
	EventTenantRestored   EventType = "tenant.restored"
	EventTokenCreated     EventType = "token.created"
	EventTokenRevoked     EventType = "token.revoked"

	EventServiceAccountCreated   EventType = "service_account.created"
	EventServiceAccountUpdated   EventType = "service_account.updated"
	EventServiceAccountDeleted   EventType = "service_account.deleted"
	EventServiceAccountSuspended EventType = "service_account.suspended"
	EventServiceAccountResumed   EventType = "service_account.resumed"

	EventWebhookCreated  EventType = "webhook.created"
	EventWebhookUpdated  EventType = "webhook.updated"
	EventWebhookDeleted  EventType = "webhook.deleted"
	EventWebhookDisabled EventType = "webhook.disabled"
	EventWebhookReplayed EventType = "webhook.replayed"
	EventWebhookSkipped  EventType = "webhook.skipped"
	EventSecretRotated   EventType = "webhook.secret_rotated"

	EventConnectionCreated EventType = "connection.created"
	EventConnectionUpdated EventType = "connection.updated"
	EventConnectionTested  EventType = "connection.tested"
	EventConnectionDeleted EventType = "connection.deleted"
	EventGroupsSkipped     EventType = "connection.groups_skipped"
	EventIdentityLinked    EventType = "user.identity_linked"
	EventIdentityUnlinked  EventType = "user.identity_unlinked"

	EventDirectoryCreated      EventType = "directory.created"
	EventDirectoryUpdated      EventType = "directory.updated"
	EventDirectoryDeleted      EventType = "directory.deleted"
	EventDirectoryTokenCreated EventType = "directory.token_created"
	EventDirectoryTokenRevoked EventType = "directory.token_revoked"

	EventMailUndeliverable EventType = "mail.undeliverable"

	EventUsersExported     EventType = "users.exported"
	EventRoleUsersExported EventType = "role.users_exported"
	EventEventsExported    EventType = "events.exported"

	EventOperatorKeyCreated EventType = "operator_key.created"
	EventOperatorKeyRevoked EventType = "operator_key.revoked"

	EventJobStarted  EventType = "job.started"
	EventJobCanceled EventType = "job.canceled"
	EventJobEnded    EventType = "job.ended"
)

// Actor is the user or program that caused an event.
type Actor struct {
	Type  ActorType
	ID    UserID     // for an operator, the id of the operator key; zero on the command line and for anonymous actors
	Via   string     // http, token, command, mail or scim
	Token APITokenID // the API token of the request; zero: the request had no API token
}

// ActorType is the kind of an actor.
type ActorType string

// The types of actors.
const (
	ActorUser           ActorType = "user"
	ActorServiceAccount ActorType = "service_account"
	ActorOperator       ActorType = "operator"
	ActorAnonymous      ActorType = "anonymous"
	ActorDirectory      ActorType = "directory"
)

// Subject is the object that an event is about. Type is the type of the object that ID
// identifies.
type Subject struct {
	Type SubjectType
	ID   AnyID
}

// About returns the object with the id as the subject of an event.
func About[T User | Role | Group | ServiceAccount | Webhook | Connection | Directory | Tenant | OperatorKey](id ID[T]) Subject {
	var kind SubjectType
	switch any(id).(type) {
	case UserID:
		kind = SubjectUser
	case RoleID:
		kind = SubjectRole
	case GroupID:
		kind = SubjectGroup
	case ServiceAccountID:
		kind = SubjectServiceAccount
	case WebhookID:
		kind = SubjectWebhook
	case ConnectionID:
		kind = SubjectConnection
	case DirectoryID:
		kind = SubjectDirectory
	case TenantID:
		kind = SubjectTenant
	case OperatorKeyID:
		kind = SubjectOperatorKey
	}
	return Subject{kind, AnyID(id)}
}

// SubjectType is the kind of a subject.
type SubjectType string

// The types of subjects.
const (
	SubjectUser    SubjectType = "user"
	SubjectRole    SubjectType = "role"
	SubjectGroup   SubjectType = "group"
	SubjectSession SubjectType = "session"
	SubjectTenant  SubjectType = "tenant"

	SubjectServiceAccount SubjectType = "service_account"
	SubjectWebhook        SubjectType = "webhook"
	SubjectConnection     SubjectType = "connection"
	SubjectDirectory      SubjectType = "directory"
	SubjectOperatorKey    SubjectType = "operator_key"
)

// EventTopic is what events are about. People look for an event in its topic.
type EventTopic string

// The topics of events.
const (
	EventTopicUsers       EventTopic = "users"
	EventTopicRoles       EventTopic = "roles"
	EventTopicGroups      EventTopic = "groups"
	EventTopicSignIn      EventTopic = "sign-in"
	EventTopicConnections EventTopic = "connections"
	EventTopicDirectories EventTopic = "directories"
	EventTopicPrograms    EventTopic = "programs"
	EventTopicWebhooks    EventTopic = "webhooks"
	EventTopicTenant      EventTopic = "tenant"
	EventTopicOperators   EventTopic = "operators" // only in the operators' log
)

// EventDescription documents an event type, for docs/events.md and the filters of the console.
type EventDescription struct {
	Type     EventType
	Topic    EventTopic
	Subjects []SubjectType
	Written  string   // when such an event is written, such as "a user was created"
	Members  []string // the values that Event.Members can have
	Before   string   // description of the old values; empty: such events have no old values
	After    string   // description of the new values; empty: such events have no new values
	Reason   string   // description of the reason; empty: such events have no reason
	// KeepsAccess states that such an event changes nothing that GET /auths/session answers for any session or token
	// that exists. What else its transaction changes, such as a session that it ends, has a separate event about the
	// same user, service account or tenant. Programs that keep permissions in memory can ignore it.
	KeepsAccess bool
}

// EventDescriptions returns the descriptions of all event types, in the order of
// docs/events.md.
func EventDescriptions() []EventDescription { return slices.Clone(eventDescriptions) }

var (
	ofUser        = []SubjectType{SubjectUser}
	ofRole        = []SubjectType{SubjectRole}
	ofTenant      = []SubjectType{SubjectTenant}
	ofAccount     = []SubjectType{SubjectServiceAccount}
	ofWebhook     = []SubjectType{SubjectWebhook}
	ofConnection  = []SubjectType{SubjectConnection}
	ofDirectory   = []SubjectType{SubjectDirectory}
	ofOperatorKey = []SubjectType{SubjectOperatorKey}
	ofHolder      = []SubjectType{SubjectUser, SubjectServiceAccount}
	ofGrantee     = []SubjectType{SubjectUser, SubjectServiceAccount, SubjectGroup}
	ofGroup       = []SubjectType{SubjectGroup}
	ofUserIfKnown = []SubjectType{SubjectUser, SubjectTenant}

	factorMembers = []string{string(FactorTOTP), string(FactorPasskey)}

	personalFilters = append([]string{"q", "email"}, FilterableTexts.Names()...)

	withoutPersonalFilters = "the filters of the export, without `" + strings.Join(personalFilters[:len(personalFilters)-1], "`, `") +
		"` and `" + personalFilters[len(personalFilters)-1] + "`, which can be personal data"
)

// eventDescriptions has the events of each topic in the order in which documents and the console list them.
var eventDescriptions = slices.Concat(
	about(EventTopicUsers,
		EventDescription{Type: EventUserCreated, KeepsAccess: true, Subjects: ofUser, Written: "a user was created", After: "the user"},
		EventDescription{Type: EventUserUpdated, Subjects: ofUser, Written: "a user was changed (for `email`: the new address was confirmed)",
			Members: (SetOf(MemberEmail, MemberManagedBy) | UpdatableMembers).Names(), Before: "the changed members", After: "the changed members",
			Reason: "why a directory changed the user, such as `taken over by the directory`"},
		EventDescription{Type: EventUserSuspended, Subjects: ofUser, Written: "a user was suspended", Members: []string{"status"}, Before: "`status`", After: "`status`", Reason: "the reason that the caller gave"},
		EventDescription{Type: EventUserResumed, Subjects: ofUser, Written: "a suspended user was resumed", Members: []string{"status"}, Before: "`status`", After: "`status`", Reason: "the reason that the caller gave"},
		EventDescription{Type: EventUserDeleted, Subjects: ofUser, Written: "a user was deleted", Before: "the user"},
		EventDescription{Type: EventUserRestored, Subjects: ofUser, Written: "a deleted user was restored", After: "the user, and the ids of `roles`, `rolesNotRestored`, `groups` and `groupsNotRestored`"},
		EventDescription{Type: EventUserErased, Subjects: ofUser, Written: "a user was erased, or the time to restore a deleted user has ended", Reason: "the reason that the caller gave, or `the time to restore the user has ended`"},
		EventDescription{Type: EventUserInvited, KeepsAccess: true, Subjects: ofUser, Written: "a user was invited", After: "`createdAt`, `expiresAt`"},
		EventDescription{Type: EventInvitationUsed, Subjects: ofUser, Written: "a user accepted an invitation, with a new password or with an identity provider"},
		EventDescription{Type: EventInvitationWithdrawn, KeepsAccess: true, Subjects: ofUser, Written: "an invitation was withdrawn"},
		EventDescription{Type: EventEmailRequested, KeepsAccess: true, Subjects: ofUser, Written: "a change of a user's address was requested", After: "`expiresAt`"},
	),
	about(EventTopicRoles,
		EventDescription{Type: EventRoleCreated, KeepsAccess: true, Subjects: ofRole, Written: "a role was created", After: "the role"},
		EventDescription{Type: EventRoleUpdated, Subjects: ofRole, Written: "a role was changed", Members: []string{"name", "description", "permissions", "grants"}, Before: "the role", After: "the role"},
		EventDescription{Type: EventRoleDeleted, Subjects: ofRole, Written: "a role was deleted", Before: "the role"},
		EventDescription{Type: EventRoleAssigned, Subjects: ofGrantee, Written: "a role was assigned, or an assignment was replaced", Members: []string{"roles"},
			Before: "`roleId`, `departments`, `expiresAt` of the assignment that was replaced", After: "`roleId`, `departments`, `expiresAt`"},
		EventDescription{Type: EventRoleUnassigned, Subjects: ofGrantee, Written: "a role was removed from a user, service account or group", Members: []string{"roles"},
			Before: "`roleId`, `departments`, `expiresAt`", Reason: "`role deleted` or `group deleted` if the role or the group was deleted"},
	),
	about(EventTopicGroups,
		EventDescription{Type: EventGroupCreated, KeepsAccess: true, Subjects: ofGroup, Written: "a group was created", After: "the group", Reason: "the claim of the connection that created the group at a sign-in"},
		EventDescription{Type: EventGroupUpdated, Subjects: ofGroup, Written: "a group was changed", Members: []string{"name", "description", "externalId", "source"}, Before: "the group", After: "the group", Reason: "`connection deleted` if the group lost its source with the connection"},
		EventDescription{Type: EventGroupDeleted, Subjects: ofGroup, Written: "a group was deleted", Before: "the group"},
		EventDescription{Type: EventMemberAdded, Subjects: ofUser, Written: "a user was added to a group", Members: []string{"groups"}, After: "`groupId`, `groupName`", Reason: "the claim of the connection that added the user at a sign-in"},
		EventDescription{Type: EventMemberRemoved, Subjects: ofUser, Written: "a user was removed from a group", Members: []string{"groups"}, Before: "`groupId`, `groupName`", Reason: "`group deleted` if the group was deleted, or the claim of the connection that removed the user at a sign-in"},
	),
	about(EventTopicSignIn,
		EventDescription{Type: EventSignedIn, KeepsAccess: true, Subjects: ofUser, Written: "a user signed in", After: "`connectionId`, `identityId`, if the user signed in with an identity provider"},
		EventDescription{Type: EventSignInFailed, KeepsAccess: true, Subjects: ofUserIfKnown, Written: "a sign-in or re-authentication failed (equal failures within a second are one event)", Reason: "the cause, and how many times"},
		EventDescription{Type: EventSessionConfirmed, Subjects: ofUser, Written: "a user re-authenticated"},
		EventDescription{Type: EventSessionEnded, Subjects: ofUser, Written: "a session ended before it expired (`sessionId` is its ID)", Reason: "why it ended"},
		EventDescription{Type: EventTokenReused, Subjects: ofUser, Written: "a session ended because one of its replaced tokens was used"},
		EventDescription{Type: EventPasswordChanged, Subjects: ofUser, Written: "a user changed the password, or an operator set it"},
		EventDescription{Type: EventResetRequested, KeepsAccess: true, Subjects: ofUserIfKnown, Written: "a password reset was requested, or an administrator sent a reset link",
			After: "`expiresAt`", Reason: "`mailed`, or why nothing was mailed; empty if an administrator sent it"},
		EventDescription{Type: EventPasswordReset, Subjects: ofUser, Written: "a user set a new password with a reset link"},
		EventDescription{Type: EventFactorAdded, Subjects: ofUser, Written: "a user added a second factor", Members: factorMembers, After: "the passkey, which only this user can read"},
		EventDescription{Type: EventFactorRenamed, Subjects: ofUser, Written: "a user renamed a passkey", Members: []string{string(FactorPasskey)}, Before: "the passkey, which only this user can read", After: "the passkey, which only this user can read"},
		EventDescription{Type: EventFactorRemoved, Subjects: ofUser, Written: "a user removed a second factor", Members: factorMembers},
		EventDescription{Type: EventFactorsReset, Subjects: ofUser, Written: "an administrator removed all second factors of a user"},
		EventDescription{Type: EventRecoveryMade, KeepsAccess: true, Subjects: ofUser, Written: "a user created new recovery codes"},
		EventDescription{Type: EventRecoveryUsed, KeepsAccess: true, Subjects: ofUser, Written: "a user signed in or re-authenticated with a recovery code"},
		EventDescription{Type: EventIdentityLinked, Subjects: ofUser, Written: "an identity at an identity provider was linked to a user. A pending user becomes active", After: "`identity`"},
		EventDescription{Type: EventIdentityUnlinked, Subjects: ofUser, Written: "an identity was removed from a user", Before: "`identity`"},
	),
	about(EventTopicConnections,
		EventDescription{Type: EventConnectionCreated, KeepsAccess: true, Subjects: ofConnection, Written: "a connection to an identity provider was created", After: "the connection, without its client secret"},
		EventDescription{Type: EventConnectionUpdated, Subjects: ofConnection, Written: "a connection was changed",
			Members: []string{"name", "clientId", "clientSecret", "domains", "linking", "provisioning", "secondFactor", "acrValues", "amrValues", "groups"}, Before: "the connection", After: "the connection"},
		EventDescription{Type: EventConnectionTested, KeepsAccess: true, Subjects: ofConnection, Written: "a connection was tested", Reason: "`passed` or `failed`"},
		EventDescription{Type: EventConnectionDeleted, Subjects: ofConnection, Written: "a connection was deleted, with the identities of users and the sessions that began with it. Its groups remain, without a source", Before: "the connection", After: "the numbers `identities` and `sessions` that were deleted"},
		EventDescription{Type: EventGroupsSkipped, KeepsAccess: true, Subjects: ofConnection, Written: "a user signed in, and the claim of the connection with the user's groups was not applied, or not in full",
			Reason: "`claim-absent`, `claim-unavailable`, `overage`, `invalid-claim`, `too-many-groups`, or `invalid-value` and `name-taken` if only some values were ignored"},
	),
	about(EventTopicDirectories,
		EventDescription{Type: EventDirectoryCreated, KeepsAccess: true, Subjects: ofDirectory, Written: "a directory was created", After: "the directory"},
		EventDescription{Type: EventDirectoryUpdated, KeepsAccess: true, Subjects: ofDirectory, Written: "a directory was changed, paused or resumed",
			Members: []string{"name", "matching", "deprovisioning", "paused"}, Before: "the directory", After: "the directory"},
		EventDescription{Type: EventDirectoryDeleted, KeepsAccess: true, Subjects: ofDirectory, Written: "a directory was deleted. Its users and groups remain, without a directory", Before: "the directory"},
		EventDescription{Type: EventDirectoryTokenCreated, KeepsAccess: true, Subjects: ofDirectory, Written: "a token of a directory was created", After: "the token, without its secret"},
		EventDescription{Type: EventDirectoryTokenRevoked, KeepsAccess: true, Subjects: ofDirectory, Written: "a token of a directory was revoked", Before: "the token, without its secret"},
	),
	about(EventTopicPrograms,
		EventDescription{Type: EventTokenCreated, KeepsAccess: true, Subjects: ofHolder, Written: "an API token was created", Members: []string{"tokens"}, After: "the token, without its secret"},
		EventDescription{Type: EventTokenRevoked, Subjects: ofHolder, Written: "an API token was revoked", Members: []string{"tokens"}, Before: "the token, without its secret", Reason: "why, unless the token itself was revoked"},
		EventDescription{Type: EventServiceAccountCreated, KeepsAccess: true, Subjects: ofAccount, Written: "a service account was created", After: "the service account"},
		EventDescription{Type: EventServiceAccountUpdated, Subjects: ofAccount, Written: "a service account was changed", Members: []string{"name", "description"}, Before: "the service account", After: "the service account"},
		EventDescription{Type: EventServiceAccountSuspended, Subjects: ofAccount, Written: "a service account was suspended", Members: []string{"status"}, Before: "the service account", After: "the service account", Reason: "the reason that the caller gave"},
		EventDescription{Type: EventServiceAccountResumed, Subjects: ofAccount, Written: "a suspended service account was resumed", Members: []string{"status"}, Before: "the service account", After: "the service account", Reason: "the reason that the caller gave"},
		EventDescription{Type: EventServiceAccountDeleted, Subjects: ofAccount, Written: "a service account was deleted", Before: "the service account"},
	),
	about(EventTopicWebhooks,
		EventDescription{Type: EventWebhookCreated, KeepsAccess: true, Subjects: ofWebhook, Written: "a webhook was created. The events of webhooks of operators are only in the operators' log, and have no `serviceAccountId`", After: "the webhook, without its secret"},
		EventDescription{Type: EventWebhookUpdated, KeepsAccess: true, Subjects: ofWebhook, Written: "a webhook was changed", Members: []string{"url", "types", "serviceAccountId", "ignoreActors", "enabled"}, Before: "the webhook", After: "the webhook"},
		EventDescription{Type: EventSecretRotated, KeepsAccess: true, Subjects: ofWebhook, Written: "a webhook got a new secret", Members: []string{"secret"}},
		EventDescription{Type: EventWebhookReplayed, KeepsAccess: true, Subjects: ofWebhook, Written: "the sending of earlier items of a webhook was started", After: "`from`, `to`"},
		EventDescription{Type: EventWebhookSkipped, KeepsAccess: true, Subjects: ofWebhook, Written: "items of a webhook were skipped", After: "`items`: the ids of the first item of each part that waited; absent if all items were skipped"},
		EventDescription{Type: EventWebhookDisabled, KeepsAccess: true, Subjects: ofWebhook, Written: "Rolecall disabled a webhook", Members: []string{"enabled"}, Before: "the webhook", After: "the webhook", Reason: "`status-410`, `failing` or `service-account-deleted`"},
		EventDescription{Type: EventWebhookDeleted, KeepsAccess: true, Subjects: ofWebhook, Written: "a webhook was deleted", Before: "the webhook"},
	),
	about(EventTopicTenant,
		EventDescription{Type: EventTenantCreated, Subjects: ofTenant, Written: "the tenant was created", After: "the tenant, and the invitation of the owner if it was created over the API"},
		EventDescription{Type: EventTenantUpdated, Subjects: ofTenant, Written: "the display name or the settings of the tenant were changed", Members: []string{"displayName", "settings"}, Before: "`displayName`, `settings`", After: "`displayName`, `settings`"},
		EventDescription{Type: EventLogoChanged, KeepsAccess: true, Subjects: ofTenant, Written: "a logo of the tenant was set or replaced", Members: []string{"logo"}, Before: "`logo`: `mediaType`, `width`, `height`, `size`, `hash`, `updatedAt`; null if there was no logo", After: "`logo`: `mediaType`, `width`, `height`, `size`, `hash`, `updatedAt`"},
		EventDescription{Type: EventLogoRemoved, KeepsAccess: true, Subjects: ofTenant, Written: "the logo of the tenant was removed", Members: []string{"logo"}, Before: "`logo`: `mediaType`, `width`, `height`, `size`, `hash`, `updatedAt`"},
		EventDescription{Type: EventTenantSuspended, Subjects: ofTenant, Written: "the tenant was suspended", Reason: "the reason that the operator gave"},
		EventDescription{Type: EventTenantResumed, Subjects: ofTenant, Written: "the suspended tenant was resumed", Reason: "the reason that the operator gave"},
		EventDescription{Type: EventTenantDeleted, Subjects: ofTenant, Written: "the tenant was deleted"},
		EventDescription{Type: EventTenantRestored, Subjects: ofTenant, Written: "the deleted tenant was restored", Reason: "the reason that the operator gave"},
		EventDescription{Type: EventRefused, KeepsAccess: true, Subjects: ofUserIfKnown, Written: "a caller was refused an operation with 403 (equal refusals within a second are one event)", Reason: "the operation and the problem code, and how many times"},
		EventDescription{Type: EventMailUndeliverable, KeepsAccess: true, Subjects: ofUserIfKnown, Written: "a mail could not be sent in time and was dropped", Reason: "the kind of mail"},
		EventDescription{Type: EventUsersExported, KeepsAccess: true, Subjects: ofTenant, Written: "a list of users was exported", Members: append(slices.Clone(personalFilters), "department", "status", "role", "group"), After: withoutPersonalFilters},
		EventDescription{Type: EventRoleUsersExported, KeepsAccess: true, Subjects: ofRole, Written: "the users with a role were exported", Members: append(slices.Clone(personalFilters), "department", "status", "direct"), After: withoutPersonalFilters},
		EventDescription{Type: EventEventsExported, KeepsAccess: true, Subjects: ofTenant, Written: "events were exported", Members: []string{"type", "actor", "subject", "from", "to"}, After: "the filters of the export"},
		EventDescription{Type: EventJobStarted, KeepsAccess: true, Subjects: ofTenant, Written: "a job that changes many users was started", Members: jobFilterNames, After: "the job, without the search text, which can be personal data", Reason: "the reason that the caller gave"},
		EventDescription{Type: EventJobCanceled, KeepsAccess: true, Subjects: ofTenant, Written: "a job was canceled", After: "`id`, `action`, and the numbers `changed`, `unchanged` and `refused` of users"},
		EventDescription{Type: EventJobEnded, KeepsAccess: true, Subjects: ofTenant, Written: "a job reached its last user, or stopped because the user or program that started it lost the right to it", After: "`id`, `action`, and the numbers `changed`, `unchanged` and `refused` of users", Reason: "the code of the problem that stopped the job"},
	),
	about(EventTopicOperators,
		EventDescription{Type: EventOperatorKeyCreated, Subjects: ofOperatorKey, Written: "an operator key was created (only in the operators' log)", After: "the key, without its secret"},
		EventDescription{Type: EventOperatorKeyRevoked, Subjects: ofOperatorKey, Written: "an operator key was revoked (only in the operators' log)", Before: "the key, without its secret"},
	),
)

// about returns the descriptions with the topic.
func about(topic EventTopic, descriptions ...EventDescription) []EventDescription {
	for i := range descriptions {
		descriptions[i].Topic = topic
	}
	return descriptions
}

// EventQuery selects events, newest first. A member with its zero value does not filter.
type EventQuery struct {
	Type    EventType
	Actor   AnyID
	Subject AnyID
	From    Time // start of the time range, included
	To      Time // end of the time range, excluded
	After   *Position
	Limit   int
}

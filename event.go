package rolecall

// Event is one fact of what happened, never changed. Ids are not commit order:
// nothing may build a feed on them.
type Event struct {
	ID         EventID
	Type       EventType
	OccurredAt Time
	Actor      Actor
	Subject    Subject
	Members    []string // the JSON names of the members that changed
	RequestID  string
	SessionID  SessionID
	Source     string // the client's address
	Reason     string
	Values     *EventValues // stored apart, so that they can be erased with the person

	// SubjectDepartment is the department of the user that the event is about, as
	// it is now or was when they were deleted; nil if it is about something else. It
	// is read along, to judge what of the values may be shown.
	SubjectDepartment *string
	SubjectDeleted    bool // the user was deleted, and can be restored
}

// EventValues are the changed members before and after, as JSON objects; nil
// where there is none.
type EventValues struct {
	Before []byte
	After  []byte

	// Withheld are the members that were taken out since the caller may not read them,
	// with the permission that would show each; zero if none would.
	Withheld map[string]Permission
}

// EventType says what happened, in the past tense.
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
	EventSignedIn         EventType = "session.started"
	EventSignInFailed     EventType = "session.sign_in_failed"
	EventSessionConfirmed EventType = "session.confirmed"
	EventSessionEnded     EventType = "session.ended"
	EventTokenReused      EventType = "session.token_reused"
	EventRefused          EventType = "request.refused"
	EventTenantCreated    EventType = "tenant.created"
	EventTenantUpdated    EventType = "tenant.updated"
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

	EventMailUndeliverable EventType = "mail.undeliverable"
)

// Actor is who did it.
type Actor struct {
	Type  ActorType
	ID    UserID     // of an operator's key; zero for a command and for nobody
	Via   string     // the door: http, token, command, mail
	Token APITokenID // by which they acted; zero: by none
}

// ActorType tells kinds of actors apart.
type ActorType string

// The types of actors.
const (
	ActorUser           ActorType = "user"
	ActorServiceAccount ActorType = "service_account"
	ActorOperator       ActorType = "operator"
	ActorAnonymous      ActorType = "anonymous"
)

// Subject is what it was done to. The id is that of a user, role, session or
// tenant, by type.
type Subject struct {
	Type SubjectType
	ID   AnyID
}

// SubjectType tells kinds of subjects apart.
type SubjectType string

// The types of subjects.
const (
	SubjectUser    SubjectType = "user"
	SubjectRole    SubjectType = "role"
	SubjectSession SubjectType = "session"
	SubjectTenant  SubjectType = "tenant"

	SubjectServiceAccount SubjectType = "service_account"
)

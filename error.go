package rolecall

import (
	"errors"
	"time"
)

// Kind groups errors by how the caller can react. The HTTP packages map
// each kind to one status.
type Kind uint8

// The closed set of kinds. The zero Kind is Internal, so that the text of an
// unclassified error is never sent to a client.
const (
	Internal             Kind = iota
	Malformed                 // the request breaks the protocol: a header, a path or query value, JSON syntax
	Invalid                   // the body was understood and breaks a rule
	Unauthenticated           // no valid session, or wrong credentials
	Forbidden                 // the caller is authenticated but not allowed
	NotFound                  // does not exist, or is not visible to this principal
	Conflict                  // conflicts with stored data
	PreconditionFailed        // If-Match named another version
	PreconditionRequired      // If-Match is missing
	TooMany                   // a limit was reached; a later request can succeed
	Unavailable               // the store is unreachable or a queue is full
)

// Error is a failure that may be shown to the client that caused it. Its texts
// contain no input values and no internal details.
type Error struct {
	Kind        Kind
	Code        string        // stable, for programs
	Detail      string        // for people: the cause and what to do
	FieldErrors []FieldError  // all field errors of the request, for Malformed and Invalid
	RetryAfter  time.Duration // for TooMany, Unavailable and some Conflicts
}

// FieldError is one field error of a request. Exactly one of Pointer (a JSON Pointer, RFC
// 6901), Header and Parameter is set and names the place.
type FieldError struct {
	Pointer   string
	Header    string
	Parameter string
	Code      string
	Detail    string
}

// Error returns the code and the detail.
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// Is makes errors.Is compare codes, so that a copy with another detail or with
// field errors still matches.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// With returns a copy of the error with another detail.
func (e *Error) With(detail string) *Error {
	c := *e
	c.Detail = detail
	return &c
}

// WithFieldErrors returns a copy of the error that lists the field errors.
func (e *Error) WithFieldErrors(faults ...FieldError) *Error {
	c := *e
	c.FieldErrors = faults
	return &c
}

// After returns a copy of the error with d as RetryAfter.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// KindOf returns the kind of err, or Internal if err is not an Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// The errors that service methods return. The problem catalogue (/problems/{code})
// is made from this list.
var (
	ErrInternal             = &Error{Kind: Internal, Code: "internal", Detail: "Something went wrong on our side. Repeat the request; if it fails again, tell the operator the request id."}
	ErrMalformed            = &Error{Kind: Malformed, Code: "malformed-request", Detail: "A header, a path or query value, or the JSON syntax is wrong; the errors say which."}
	ErrValidation           = &Error{Kind: Invalid, Code: "validation", Detail: "A member of the body breaks a rule; the errors say which."}
	ErrUnauthenticated      = &Error{Kind: Unauthenticated, Code: "unauthenticated", Detail: "No live session or token of this tenant came with the request. Sign in and repeat it."}
	ErrInvitationInvalid    = &Error{Kind: Unauthenticated, Code: "invitation-invalid", Detail: "This invitation was used, was replaced or is over. Ask for a new one."}
	ErrPasswordResetInvalid = &Error{Kind: Unauthenticated, Code: "password-reset-invalid", Detail: "This link for a new password was used, was replaced or is over. Ask for a new one."}
	ErrEmailChangeInvalid   = &Error{Kind: Unauthenticated, Code: "email-change-invalid", Detail: "This link to confirm an address was used, was replaced or is over. Ask for the change again."}
	ErrAmbiguousSession     = &Error{Kind: Unauthenticated, Code: "ambiguous-session", Detail: "Two live sessions came with the request. Sign out, or sign in again, to keep one."}
	ErrWrongCredentials     = &Error{Kind: Unauthenticated, Code: "wrong-credentials", Detail: "The address and the password do not belong together in this tenant."}
	ErrSecondFactorRequired = &Error{Kind: Unauthenticated, Code: "second-factor-required", Detail: "The password is right, and a second factor is needed too. Show one by the challenge with POST /auths/login/second-factor."}
	ErrEnrolmentRequired    = &Error{Kind: Unauthenticated, Code: "second-factor-enrolment-required", Detail: "The password is right, and this tenant demands a second factor that you do not have yet. Get one by the challenge with POST /auths/login/enrolment."}
	ErrWrongCode            = &Error{Kind: Unauthenticated, Code: "wrong-code", Detail: "This is not a second factor of yours, or it was used before. Wait for the next code, or take another method."}
	ErrChallengeInvalid     = &Error{Kind: Unauthenticated, Code: "challenge-invalid", Detail: "This challenge was used, failed too often or is over. Begin again with the password."}
	ErrPasskeyRefused       = &Error{Kind: Unauthenticated, Code: "passkey-refused", Detail: "This passkey signs nobody in here, or took too long. Try again, or sign in with the password."}
	ErrTenantSuspended      = &Error{Kind: Forbidden, Code: "tenant-suspended", Detail: "This tenant is suspended. Its operator can resume it."}
	ErrUserSuspended        = &Error{Kind: Forbidden, Code: "user-suspended", Detail: "This user is suspended. An administrator of the tenant can resume it."}
	ErrSessionRequired      = &Error{Kind: Forbidden, Code: "session-required", Detail: "This needs the session of a person. Tokens and keys cannot do it."}
	ErrNotRecent            = &Error{Kind: Forbidden, Code: "reauthentication-required", Detail: "Your sign-in is too long ago for this. Confirm who you are with POST /auths/confirm, then repeat the request."}
	ErrPermissionDenied     = &Error{Kind: Forbidden, Code: "permission-denied", Detail: "Your roles do not allow this."}
	ErrFieldNotReadable     = &Error{Kind: Forbidden, Code: "field-not-readable", Detail: "You may not read a member that this filter, sort or search uses."}
	ErrOutsideReach         = &Error{Kind: Forbidden, Code: "outside-reach", Detail: "Your permission does not reach the department that this would move a user to."}
	ErrBeyondOwnPermissions = &Error{Kind: Forbidden, Code: "beyond-own-permissions", Detail: "This would give, take or take over more than you hold yourself."}
	ErrNotFound             = &Error{Kind: NotFound, Code: "not-found", Detail: "There is nothing here that you may see."}
	ErrEmailTaken           = &Error{Kind: Conflict, Code: "email-taken", Detail: "Another user of this tenant has this address."}
	ErrUserPending          = &Error{Kind: Conflict, Code: "user-pending", Detail: "This user has set no password yet. Send them an invitation instead."}
	ErrExternalIDTaken      = &Error{Kind: Conflict, Code: "external-id-taken", Detail: "Another user of this tenant has this external id."}
	ErrRoleNameTaken        = &Error{Kind: Conflict, Code: "role-name-taken", Detail: "Another role of this tenant has this name."}
	ErrRoleKeyTaken         = &Error{Kind: Conflict, Code: "role-key-taken", Detail: "Another role of this tenant has this key."}
	ErrAccountNameTaken     = &Error{Kind: Conflict, Code: "service-account-name-taken", Detail: "Another service account of this tenant has this name."}
	ErrRoleInUse            = &Error{Kind: Conflict, Code: "role-in-use", Detail: "Users or service accounts hold this role. Take it from them first, or repeat with ?force=true to take it from all of them."}
	ErrSystemRole           = &Error{Kind: Conflict, Code: "system-role", Detail: "This role comes with the tenant and cannot be changed or deleted."}
	ErrLastOwner            = &Error{Kind: Conflict, Code: "last-owner", Detail: "A tenant keeps at least one active user who is Owner without end and without reach. Make another one first."}
	ErrFactorDemanded       = &Error{Kind: Conflict, Code: "second-factor-demanded", Detail: "This tenant demands a second factor of you, and this is your last. Add another one first."}
	ErrNoSecondFactor       = &Error{Kind: Conflict, Code: "no-second-factor", Detail: "You have no second factor for which recovery codes could stand. Add one first."}
	ErrTooManyTokens        = &Error{Kind: Conflict, Code: "too-many-tokens", Detail: "There are as many API tokens as one holder can have, those that ended in the last 30 days included. Revoke one that is not needed first."}
	ErrTooManyAccounts      = &Error{Kind: Conflict, Code: "too-many-service-accounts", Detail: "There are as many service accounts as a tenant can have. Delete one that is not needed first."}
	ErrPasskeyTaken         = &Error{Kind: Conflict, Code: "passkey-taken", Detail: "This passkey is somebody's already."}
	ErrTooManyPasskeys      = &Error{Kind: Conflict, Code: "too-many-passkeys", Detail: "You have as many passkeys as one can have. Remove one first."}
	ErrPasskeysUnavailable  = &Error{Kind: Conflict, Code: "passkeys-unavailable", Detail: "There is no domain here that passkeys could be bound to. The operator can name one with --public-url or --passkey-domain."}
	ErrTenantExists         = &Error{Kind: Conflict, Code: "tenant-exists", Detail: "A tenant of this name exists, or was deleted less than 30 days ago."}
	ErrKeyInProgress        = &Error{Kind: Conflict, Code: "idempotency-key-in-progress", Detail: "The first request with this idempotency key is still running. Repeat this one shortly.", RetryAfter: time.Second}
	ErrKeyReused            = &Error{Kind: Invalid, Code: "idempotency-key-reused", Detail: "This idempotency key came with another request before. Use a new key for a new request."}
	ErrTooManyKeys          = &Error{Kind: TooMany, Code: "too-many-idempotency-keys", Detail: "You have used very many idempotency keys in the last day. Wait for some to expire.", RetryAfter: 10 * time.Minute}
	ErrTooManyAttempts      = &Error{Kind: TooMany, Code: "too-many-attempts", Detail: "This was tried or asked for too often. Wait before the next time."}
	ErrTooManyMails         = &Error{Kind: TooMany, Code: "too-many-mails", Detail: "This tenant has sent as many links to other people as it may in an hour. Wait before the next one. The operator can raise the limit with --mail-limit."}
	ErrPreconditionFailed   = &Error{Kind: PreconditionFailed, Code: "precondition-failed", Detail: "What If-Match names is not the current version. Read it again and repeat the change on that."}
	ErrPreconditionRequired = &Error{Kind: PreconditionRequired, Code: "precondition-required", Detail: "This request needs If-Match. Read the resource and repeat the request with its ETag."}
	ErrUnavailable          = &Error{Kind: Unavailable, Code: "unavailable", Detail: "The service cannot answer this now. Nothing was lost; repeat the request shortly.", RetryAfter: time.Second}
	ErrBusy                 = &Error{Kind: Unavailable, Code: "busy", Detail: "Too many sign-ins are under way. Repeat the request shortly.", RetryAfter: time.Second}
)

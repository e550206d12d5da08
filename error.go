package rolecall

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Kind groups errors by the reaction that they need from the caller. The HTTP packages give
// all errors of a kind the same status code.
type Kind uint8

// The kinds of errors. The zero Kind is Internal, because the text of an Internal error is
// never sent to a client. This way, the text of an error without a kind is not sent either.
const (
	Internal             Kind = iota
	Malformed                 // the request breaks the protocol: a header, a path or query value, JSON syntax
	Invalid                   // the body was understood and breaks a rule
	Unauthenticated           // no valid session, or wrong credentials
	Forbidden                 // the caller is authenticated but not allowed
	NotFound                  // the object does not exist, or is not visible to the caller
	Conflict                  // the request conflicts with stored data
	Gone                      // the data existed, and is not kept any more
	PreconditionFailed        // the version in If-Match is not the stored one
	PreconditionRequired      // If-Match is missing
	TooMany                   // a limit was reached; a later request can succeed
	Unavailable               // the store is unreachable, the process is overloaded or stopping, or a row changes too often
)

// Error is a failure that may be shown to the client that caused it. Its texts
// contain no input values and no internal details.
type Error struct {
	Kind        Kind
	Code        string        // for programs; never changes
	Detail      string        // for people: the cause and what to do
	FieldErrors []FieldError  // all field errors of the request, for Malformed and Invalid
	RetryAfter  time.Duration // for TooMany, Unavailable and some Conflicts
}

// FieldError is one invalid value of a request. Exactly one of Pointer, Header and
// Parameter is set, and names the place of the value. Pointer is a JSON Pointer (RFC 6901)
// into the body.
type FieldError struct {
	Pointer   string
	Header    string
	Parameter string
	Code      string
	Detail    string
}

// Error returns the code and the detail.
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// Is reports whether target is an Error with the same code. Therefore, errors.Is also
// matches the copies that With, WithFieldErrors and After return.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// With returns a copy of the error with another Detail.
func (e *Error) With(detail string) *Error {
	c := *e
	c.Detail = detail
	return &c
}

// WithFieldErrors returns a copy of the error with these FieldErrors. If the Detail of the error says nothing
// more than that there are some, the copy names their places.
func (e *Error) WithFieldErrors(faults ...FieldError) *Error {
	c := *e
	c.FieldErrors = faults
	if len(faults) > 0 && (c.Detail == ErrValidation.Detail || c.Detail == ErrMalformed.Detail) {
		c.Detail = "These values are invalid: " + placesOf(faults) + ". See errors in this response for each of them."
	}
	return &c
}

const (
	placesNamed = 5  // by a Detail
	longestName = 60 // in bytes; clients choose names of members
)

// placesOf returns the places of the first field errors as text, such as "/email, /name, header If-Match".
func placesOf(faults []FieldError) string {
	var places []string
	for i := range faults {
		place := faults[i].place()
		switch {
		case slices.Contains(places, place):
		case len(places) == placesNamed:
			return strings.Join(places, ", ") + " and others"
		default:
			places = append(places, place)
		}
	}
	return strings.Join(places, ", ")
}

// place returns the place of the value as text.
func (f *FieldError) place() string {
	switch {
	case f.Header != "":
		return "header " + f.Header
	case f.Parameter != "":
		return "parameter " + f.Parameter
	case f.Pointer == "":
		return "the body"
	case len(f.Pointer) > longestName:
		return strings.ToValidUTF8(f.Pointer[:longestName], "") + "…"
	}
	return f.Pointer
}

// After returns a copy of the error with RetryAfter set to d.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Because returns an error that is e for callers, and whose text is that of the cause. The
// text is for the log and for commands. Clients see only the Detail of e.
func (e *Error) Because(cause error) error { return &causedError{e, cause} }

type causedError struct {
	error *Error
	cause error
}

func (e *causedError) Error() string { return e.cause.Error() }

func (e *causedError) Unwrap() []error { return []error{e.error, e.cause} }

// KindOf returns the kind of err, or Internal if err is not an Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// declared are the errors of the API, in the order of their declarations.
var declared []*Error

// Declare returns an error that the HTTP API can answer. It is called when a package is initialized. The API
// documents the error at /problems/{code}.
func Declare(e Error) *Error {
	declared = append(declared, &e)
	return &e
}

// DeclaredErrors returns all errors that Declare has returned, in the order of their declarations.
func DeclaredErrors() []*Error { return slices.Clone(declared) }

// The errors of the services. Clients identify an error by its code. The API reference groups errors by their status, and
// keeps the order of these declarations within a status.
var (
	ErrMalformed             = Declare(Error{Kind: Malformed, Code: "malformed-request", Detail: "A header, a parameter or the JSON of the request is invalid. See errors in this response for each invalid value."})
	ErrUnauthenticated       = Declare(Error{Kind: Unauthenticated, Code: "unauthenticated", Detail: "The request has no valid session or API token of this tenant. Sign in, or use a valid token, and repeat the request."})
	ErrAmbiguousSession      = Declare(Error{Kind: Unauthenticated, Code: "ambiguous-session", Detail: "The request has the cookies of two live sessions. Sign in again, or sign out to end both."})
	ErrWrongCredentials      = Declare(Error{Kind: Unauthenticated, Code: "wrong-credentials", Detail: "The email address or the password is wrong for this tenant. Try again, or request a password reset."})
	ErrInvitationInvalid     = Declare(Error{Kind: Unauthenticated, Code: "invitation-invalid", Detail: "This invitation is not valid. Its link may be incomplete or expired, or it was used, replaced or withdrawn. Ask for a new one."})
	ErrSecondFactorRequired  = Declare(Error{Kind: Unauthenticated, Code: "second-factor-required", Detail: "The password was accepted, but a second factor is also required. Send it with the challenge of this response to POST /auths/login/second-factor."})
	ErrEnrolmentRequired     = Declare(Error{Kind: Unauthenticated, Code: "second-factor-enrolment-required", Detail: "The password was accepted, but this tenant requires a second factor, and you have not enrolled one. Send the challenge of this response to POST /auths/login/enrolment."})
	ErrWrongCode             = Declare(Error{Kind: Unauthenticated, Code: "wrong-code", Detail: "This second factor is wrong, or was used before. Use the next code of the app, or another method."})
	ErrChallengeInvalid      = Declare(Error{Kind: Unauthenticated, Code: "challenge-invalid", Detail: "This challenge is unknown, used or expired, or it failed too often. Sign in again with the password."})
	ErrPasskeyRefused        = Declare(Error{Kind: Unauthenticated, Code: "passkey-refused", Detail: "This passkey was not accepted, or the sign-in took too long. Try again, or sign in with the password."})
	ErrPasswordResetInvalid  = Declare(Error{Kind: Unauthenticated, Code: "password-reset-invalid", Detail: "This link to set a new password is not valid. It may be incomplete or expired, or it was used, replaced or withdrawn. Request a new one."})
	ErrEmailChangeInvalid    = Declare(Error{Kind: Unauthenticated, Code: "email-change-invalid", Detail: "This link to confirm an email address is not valid. It may be incomplete or expired, or it was used, replaced or withdrawn. Request the change of the address again."})
	ErrCodeInvalid           = Declare(Error{Kind: Unauthenticated, Code: "sign-in-code-invalid", Detail: "This code is unknown, used or expired, or the verifier is not the one with which the sign-in began. Start the sign-in again."})
	ErrTenantSuspended       = Declare(Error{Kind: Forbidden, Code: "tenant-suspended", Detail: "This tenant is suspended. An operator of the service can resume it."})
	ErrUserSuspended         = Declare(Error{Kind: Forbidden, Code: "user-suspended", Detail: "This user is suspended. An administrator of the tenant can resume the user."})
	ErrPermissionDenied      = Declare(Error{Kind: Forbidden, Code: "permission-denied", Detail: "You do not have the permission for this. An administrator of the tenant can assign you a role that has it."})
	ErrScopeMissing          = Declare(Error{Kind: Forbidden, Code: "scope-missing", Detail: "This operator key does not have the scope that this operation needs. Use a key that has it. The command rolecall operator-key create NAME --scope SCOPE creates one."})
	ErrSessionRequired       = Declare(Error{Kind: Forbidden, Code: "session-required", Detail: "This operation needs the session of a user. API tokens and operator keys are refused. Sign in as a user and repeat the request."})
	ErrNotRecent             = Declare(Error{Kind: Forbidden, Code: "reauthentication-required", Detail: "This operation needs a more recent sign-in. Re-authenticate with POST /auths/confirm, then repeat the request."})
	ErrFieldNotReadable      = Declare(Error{Kind: Forbidden, Code: "field-not-readable", Detail: "This filter, sort order or search uses a field that you may not read. Remove it from the request."})
	ErrOutsideReach          = Declare(Error{Kind: Forbidden, Code: "outside-reach", Detail: "After this request, the user would be in a department that your permission does not include. Use a department that it includes."})
	ErrBeyondOwnPermissions  = Declare(Error{Kind: Forbidden, Code: "beyond-own-permissions", Detail: "You cannot grant or remove permissions that you do not have. If a user has more permissions than you, you cannot change how this user signs in. Ask an administrator of the tenant who has these permissions."})
	ErrAttemptInvalid        = Declare(Error{Kind: Forbidden, Code: "sign-in-attempt-invalid", Detail: "This sign-in did not begin in this browser, took too long, or was completed already. Go back to the application and sign in again."})
	ErrNotFound              = Declare(Error{Kind: NotFound, Code: "not-found", Detail: "This does not exist, or you may not see it. Check the IDs in the request."})
	ErrEmailTaken            = Declare(Error{Kind: Conflict, Code: "email-taken", Detail: "Another user of this tenant has this email address. Use another address, or first change the address of the other user."})
	ErrExternalIDTaken       = Declare(Error{Kind: Conflict, Code: "external-id-taken", Detail: "Another user of this tenant has this external ID. Use another external ID, or first change the external ID of the other user."})
	ErrRoleNameTaken         = Declare(Error{Kind: Conflict, Code: "role-name-taken", Detail: "Another role of this tenant has this name. Use another name."})
	ErrRoleKeyTaken          = Declare(Error{Kind: Conflict, Code: "role-key-taken", Detail: "Another role of this tenant has this key. Use another key."})
	ErrRoleInUse             = Declare(Error{Kind: Conflict, Code: "role-in-use", Detail: "Users, service accounts or groups have this role. Remove the role from them first. Or repeat the request with ?force=true, which removes the role from all of them and deletes it."})
	ErrRoleDemandsFactor     = Declare(Error{Kind: Conflict, Code: "role-demands-second-factor", Detail: "The tenant requires a second factor of the users with this role. An owner must first remove the role from the setting secondFactor."})
	ErrGroupNameTaken        = Declare(Error{Kind: Conflict, Code: "group-name-taken", Detail: "Another group of this tenant has this name. Use another name."})
	ErrGroupExternalIDTaken  = Declare(Error{Kind: Conflict, Code: "group-external-id-taken", Detail: "Another group of this tenant has this external ID. Use another external ID, or first change the external ID of the other group."})
	ErrGroupHasRoles         = Declare(Error{Kind: Conflict, Code: "group-has-roles", Detail: "This group has roles, which its members lose if it is deleted. Remove the roles from it first. Or repeat the request with ?force=true, which deletes it with its roles."})
	ErrAccountNameTaken      = Declare(Error{Kind: Conflict, Code: "service-account-name-taken", Detail: "Another service account of this tenant has this name. Use another name."})
	ErrLimitReached          = Declare(Error{Kind: Conflict, Code: "limit-reached", Detail: "The tenant or the account has the maximum number of these. Delete or remove one first."})
	ErrTooManyTokens         = Declare(Error{Kind: Conflict, Code: "too-many-tokens", Detail: "This account has the maximum number of API tokens, including those that expired in the last 30 days. Revoke one first."})
	ErrTooManyAccounts       = Declare(Error{Kind: Conflict, Code: "too-many-service-accounts", Detail: "This tenant has the maximum number of service accounts. Delete one first."})
	ErrTooManyWebhooks       = Declare(Error{Kind: Conflict, Code: "too-many-webhooks", Detail: "This tenant has the maximum number of webhooks. Delete one first."})
	ErrTooManyConnections    = Declare(Error{Kind: Conflict, Code: "too-many-connections", Detail: "This tenant has the maximum number of connections. Delete one first."})
	ErrTooManyIdentities     = Declare(Error{Kind: Conflict, Code: "too-many-identities", Detail: "This user has the maximum number of identities. Remove one first."})
	ErrTooManyJobs           = Declare(Error{Kind: Conflict, Code: "too-many-jobs", Detail: "This tenant has the maximum number of running jobs. Wait for one to end, or cancel one first."})
	ErrPasswordsOff          = Declare(Error{Kind: Conflict, Code: "password-sign-in-off", Detail: "Only owners of this tenant can sign in with a password. Other users sign in, and accept invitations, with an identity provider."})
	ErrConnectionNameTaken   = Declare(Error{Kind: Conflict, Code: "connection-name-taken", Detail: "Another connection of this tenant has this name. Use another name."})
	ErrIssuerTaken           = Declare(Error{Kind: Conflict, Code: "issuer-taken", Detail: "Another connection of this tenant has this issuer. Change that connection instead."})
	ErrDomainTaken           = Declare(Error{Kind: Conflict, Code: "domain-taken", Detail: "Another connection of this tenant has one of these domains. Remove the domain from that connection first."})
	ErrDirectoryNameTaken    = Declare(Error{Kind: Conflict, Code: "directory-name-taken", Detail: "Another directory of this tenant has this name. Use another name."})
	ErrManagedByDirectory    = Declare(Error{Kind: Conflict, Code: "managed-by-directory", Detail: "A directory or a connection manages this user or group. Make the change at the identity provider, or delete the directory or the connection first."})
	ErrConnectionInUse       = Declare(Error{Kind: Conflict, Code: "connection-in-use", Detail: "Users can sign in with this connection. Repeat the request with ?force=true to delete it with the identities of these users, and to end the sessions that began with them."})
	ErrIdentityTaken         = Declare(Error{Kind: Conflict, Code: "identity-taken", Detail: "This identity is linked to a user of this tenant already. Remove it there first."})
	ErrFactorDemanded        = Declare(Error{Kind: Conflict, Code: "second-factor-demanded", Detail: "This tenant requires you to have a second factor, and you have only this one. Add another one before you remove it."})
	ErrNoSecondFactor        = Declare(Error{Kind: Conflict, Code: "no-second-factor", Detail: "Recovery codes need a second factor, and you have not enrolled one. Add one first."})
	ErrPasskeyTaken          = Declare(Error{Kind: Conflict, Code: "passkey-taken", Detail: "This passkey is already registered. Use another passkey."})
	ErrTooManyPasskeys       = Declare(Error{Kind: Conflict, Code: "too-many-passkeys", Detail: "You have the maximum number of passkeys. Remove one first."})
	ErrPasskeysUnavailable   = Declare(Error{Kind: Conflict, Code: "passkeys-unavailable", Detail: "Passkeys are not available, because no domain is configured for them. The operator can set one with --public-url or --passkey-domain."})
	ErrUserPending           = Declare(Error{Kind: Conflict, Code: "user-pending", Detail: "This user has not set a password yet. Send an invitation instead."})
	ErrLogShorter            = Declare(Error{Kind: Conflict, Code: "log-shorter", Detail: "The audit log has fewer events than your checkpoint. Either the checkpoint is of another log, or events were removed after it."})
	ErrSystemRole            = Declare(Error{Kind: Conflict, Code: "system-role", Detail: "This is a system role. It cannot be changed or deleted. Create another role instead."})
	ErrLastOwner             = Declare(Error{Kind: Conflict, Code: "last-owner", Detail: "A tenant needs at least one active user whose owner role applies everywhere and never expires. Assign the owner role in this way to another user first."})
	ErrTenantExists          = Declare(Error{Kind: Conflict, Code: "tenant-exists", Detail: "A tenant with this name exists, or was deleted less than 30 days ago. Use another name."})
	ErrKeyInProgress         = Declare(Error{Kind: Conflict, Code: "idempotency-key-in-progress", Detail: "The first request with this idempotency key is still running. Repeat this one shortly.", RetryAfter: time.Second})
	ErrChangesExpired        = Declare(Error{Kind: Gone, Code: "changes-expired", Detail: "The changes after this cursor cannot be read without a gap: some were deleted, or the permissions to read their values have changed. Get a new cursor with at=now, read the lists again, and continue from there."})
	ErrHistoryExpired        = Declare(Error{Kind: Gone, Code: "history-expired", Detail: "The assignments of this time are not recorded. They are kept as long as events, and are recorded since the version of Rolecall that added them. Choose a later time."})
	ErrPreconditionFailed    = Declare(Error{Kind: PreconditionFailed, Code: "precondition-failed", Detail: "The value of If-Match is not the current version. Read the resource again and repeat the change."})
	ErrValidation            = Declare(Error{Kind: Invalid, Code: "validation", Detail: "At least one field is invalid. See errors in this response for each invalid value."})
	ErrKeyReused             = Declare(Error{Kind: Invalid, Code: "idempotency-key-reused", Detail: "This idempotency key was used with a different request. Use a new key for each new request."})
	ErrOwnerNeedsUser        = Declare(Error{Kind: Invalid, Code: "owner-needs-user", Detail: "The role Owner cannot be assigned to a group. Assign it to users."})
	ErrPreconditionRequired  = Declare(Error{Kind: PreconditionRequired, Code: "precondition-required", Detail: "This request needs the header If-Match. Read the resource and repeat the request with its ETag."})
	ErrTooManyKeys           = Declare(Error{Kind: TooMany, Code: "too-many-idempotency-keys", Detail: "You have too many idempotency keys that have not expired. Wait until some of them expire.", RetryAfter: 10 * time.Minute})
	ErrTooManyAttempts       = Declare(Error{Kind: TooMany, Code: "too-many-attempts", Detail: "Too many attempts. Wait before you try again."})
	ErrTooManyMails          = Declare(Error{Kind: TooMany, Code: "too-many-mails", Detail: "This tenant has reached its hourly limit of invitations and other mailed links that one person requests for another. Try again later. The operator can raise the limit with --mail-limit."})
	ErrTooManyWaits          = Declare(Error{Kind: TooMany, Code: "too-many-waits", Detail: "You have the maximum number of requests that wait for changes. Wait for the answer of one of them.", RetryAfter: time.Second})
	ErrInternal              = Declare(Error{Kind: Internal, Code: "internal", Detail: "An internal error occurred. Repeat the request. If it fails again, send the request ID to the operator."})
	ErrUnavailable           = Declare(Error{Kind: Unavailable, Code: "unavailable", Detail: "The service cannot answer now. If the request makes a change, the change may have been made. Repeat the request shortly, with the same idempotency key if it has one.", RetryAfter: time.Second})
	ErrConnectionUnavailable = Declare(Error{Kind: Unavailable, Code: "connection-unavailable", Detail: "The identity provider of this connection cannot be reached, or its configuration is wrong. Sign in in another way, or try again later.", RetryAfter: 5 * time.Second})
	ErrBusy                  = Declare(Error{Kind: Unavailable, Code: "busy", Detail: "Too many passwords are being verified or set. Repeat the request shortly.", RetryAfter: time.Second})
)

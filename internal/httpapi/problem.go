package httpapi

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/web"
)

// catalogue is every problem that can be answered, by status and code.
var catalogue = []*rolecall.Error{
	rolecall.ErrMalformed,
	rolecall.ErrUnauthenticated, rolecall.ErrAmbiguousSession, rolecall.ErrWrongCredentials, rolecall.ErrInvitationInvalid,
	rolecall.ErrSecondFactorRequired, rolecall.ErrEnrolmentRequired, rolecall.ErrWrongCode, rolecall.ErrChallengeInvalid, rolecall.ErrPasskeyRefused,
	rolecall.ErrPasswordResetInvalid, rolecall.ErrEmailChangeInvalid,
	rolecall.ErrTenantSuspended, rolecall.ErrUserSuspended, rolecall.ErrPermissionDenied, rolecall.ErrSessionRequired, rolecall.ErrNotRecent, rolecall.ErrFieldNotReadable,
	rolecall.ErrOutsideReach, rolecall.ErrBeyondOwnPermissions, web.ErrCrossOrigin, web.ErrCrossSite,
	rolecall.ErrNotFound, web.ErrUnknownPath,
	web.ErrMethodNotAllowed, web.ErrNotAcceptable,
	rolecall.ErrEmailTaken, rolecall.ErrExternalIDTaken, rolecall.ErrRoleNameTaken, rolecall.ErrRoleKeyTaken, rolecall.ErrRoleInUse, rolecall.ErrAccountNameTaken,
	rolecall.ErrTooManyTokens, rolecall.ErrTooManyAccounts,
	rolecall.ErrFactorDemanded, rolecall.ErrNoSecondFactor, rolecall.ErrPasskeyTaken, rolecall.ErrTooManyPasskeys, rolecall.ErrPasskeysUnavailable,
	rolecall.ErrUserPending,
	rolecall.ErrSystemRole, rolecall.ErrLastOwner, rolecall.ErrTenantExists, rolecall.ErrKeyInProgress,
	rolecall.ErrPreconditionFailed,
	web.ErrContentTooLarge, web.ErrURLTooLong, web.ErrMediaType,
	rolecall.ErrValidation, rolecall.ErrKeyReused,
	rolecall.ErrPreconditionRequired,
	rolecall.ErrTooManyKeys, rolecall.ErrTooManyAttempts, rolecall.ErrTooManyMails,
	web.ErrTooManyLines,
	rolecall.ErrInternal,
	rolecall.ErrUnavailable, rolecall.ErrBusy,
}

package httpapi

import (
	"encoding/json"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/openapi"
)

// version is the version of the API contract. Within a major version, no part of the contract is
// removed or changed.
const version = "1.0.0"

// Document returns the contract as an OpenAPI 3.1 document. It contains the operations of the
// router.
func Document() *huma.OpenAPI {
	contract := operation.Contract{
		Info: &huma.Info{
			Title: "Rolecall", Version: version,
			Description: "Users, roles, permissions and sessions for many tenants. Answers have only those members of a user that the caller may read.",
			License:     &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"},
			Contact:     &huma.Contact{Name: "Rolecall", URL: "https://github.com/rolecall/rolecall"},
		},
		Tags: []*huma.Tag{
			{Name: "Users", Description: "People of a tenant."},
			{Name: "Jobs", Description: "Changes of all users that match a filter, in the background."},
			{Name: "Invitations", Description: "Invitations that were not accepted and have not expired."},
			{Name: "Roles", Description: "Named sets of permissions, and the users who have them."},
			{Name: "Access", Description: "Who has a permission, and through which roles."},
			{Name: "ServiceAccounts", Description: "Programs of a tenant, their roles and their tokens."},
			{Name: "Connections", Description: "Identity providers (OpenID Connect) with which the users of a tenant sign in."},
			{Name: "Webhooks", Description: "Endpoints to which the items of the change feed are sent."},
			{Name: "Events", Description: "The audit log."},
			{Name: "Exports", Description: "Lists as CSV files."},
			{Name: "Tenant", Description: "The tenant (organization) of the request."},
			{Name: "Auths", Description: "Signing in and out, second factors (MFA), and permission checks."},
			{Name: "Operator", Description: "Tenants, for operators. The paths are unknown (404) until an operator key exists."},
		},
		Types: types, Catalogue: catalogue, Examples: loadExamples(),
	}
	return contract.Document(slices.Concat(operations, operatorOperations))
}

// YAML returns the OpenAPI document as YAML. It returns the same bytes if the contract has not
// changed.
func YAML() ([]byte, error) { return Document().YAML() }

// loadExamples returns the examples by operation id.
func loadExamples() map[string]operation.Example {
	var all map[string]operation.Example
	if err := json.Unmarshal(openapi.Examples, &all); err != nil {
		panic("httpapi: the examples of the document: " + err.Error()) // cannot happen: a test reads the examples
	}
	return all
}

// catalogue are all problems of the API, sorted by status.
var catalogue = []*rolecall.Error{
	rolecall.ErrMalformed,
	rolecall.ErrUnauthenticated, rolecall.ErrAmbiguousSession, rolecall.ErrWrongCredentials, rolecall.ErrInvitationInvalid,
	rolecall.ErrSecondFactorRequired, rolecall.ErrEnrolmentRequired, rolecall.ErrWrongCode, rolecall.ErrChallengeInvalid, rolecall.ErrPasskeyRefused,
	rolecall.ErrPasswordResetInvalid, rolecall.ErrEmailChangeInvalid, rolecall.ErrCodeInvalid,
	rolecall.ErrTenantSuspended, rolecall.ErrUserSuspended, rolecall.ErrPermissionDenied, rolecall.ErrScopeMissing, rolecall.ErrSessionRequired, rolecall.ErrNotRecent, rolecall.ErrFieldNotReadable,
	rolecall.ErrOutsideReach, rolecall.ErrBeyondOwnPermissions, rolecall.ErrAttemptInvalid, web.ErrCrossOrigin, web.ErrCrossSite,
	rolecall.ErrNotFound, web.ErrUnknownPath,
	web.ErrMethodNotAllowed, web.ErrNotAcceptable,
	rolecall.ErrEmailTaken, rolecall.ErrExternalIDTaken, rolecall.ErrRoleNameTaken, rolecall.ErrRoleKeyTaken, rolecall.ErrRoleInUse, rolecall.ErrRoleDemandsFactor, rolecall.ErrAccountNameTaken,
	rolecall.ErrLimitReached, rolecall.ErrTooManyTokens, rolecall.ErrTooManyAccounts, rolecall.ErrTooManyWebhooks, rolecall.ErrTooManyConnections, rolecall.ErrTooManyIdentities, rolecall.ErrTooManyJobs,
	rolecall.ErrPasswordsOff, rolecall.ErrConnectionNameTaken, rolecall.ErrIssuerTaken, rolecall.ErrDomainTaken, rolecall.ErrConnectionInUse, rolecall.ErrIdentityTaken,
	rolecall.ErrFactorDemanded, rolecall.ErrNoSecondFactor, rolecall.ErrPasskeyTaken, rolecall.ErrTooManyPasskeys, rolecall.ErrPasskeysUnavailable,
	rolecall.ErrUserPending, rolecall.ErrLogShorter,
	rolecall.ErrSystemRole, rolecall.ErrLastOwner, rolecall.ErrTenantExists, rolecall.ErrKeyInProgress,
	rolecall.ErrChangesExpired,
	rolecall.ErrHistoryExpired,
	rolecall.ErrPreconditionFailed,
	web.ErrContentTooLarge, web.ErrURLTooLong, web.ErrMediaType,
	rolecall.ErrValidation, rolecall.ErrKeyReused,
	rolecall.ErrPreconditionRequired,
	rolecall.ErrTooManyKeys, rolecall.ErrTooManyAttempts, rolecall.ErrTooManyMails, rolecall.ErrTooManyWaits,
	web.ErrTooManyLines,
	rolecall.ErrInternal,
	rolecall.ErrUnavailable, rolecall.ErrConnectionUnavailable, rolecall.ErrBusy,
}

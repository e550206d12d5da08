package httpapi

import (
	"cmp"
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
			{Name: "Groups", Description: "Sets of users, whose roles apply to their members."},
			{Name: "ServiceAccounts", Description: "Programs of a tenant, their roles and their tokens."},
			{Name: "Directories", Description: "Identity providers that provision users and groups with SCIM 2.0 (RFC 7644). Below /scim/v2/{tenant}, they send the requests of this standard, with the tokens of directories. See the guide on SCIM."},
			{Name: "Connections", Description: "Identity providers (OpenID Connect) with which the users of a tenant sign in."},
			{Name: "Webhooks", Description: "Endpoints to which the items of the change feed are sent."},
			{Name: "Events", Description: "The audit log."},
			{Name: "Exports", Description: "Lists as CSV files."},
			{Name: "Tenant", Description: "The tenant (organization) of the request."},
			{Name: "Auths", Description: "Signing in and out, second factors (MFA), and permission checks."},
			{Name: "Operator", Description: "Tenants, for operators. The paths are unknown (404) until an operator key exists."},
		},
		Catalogue: catalogue, Examples: loadExamples(),
	}
	return contract.Document(declared)
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
var catalogue = slices.SortedStableFunc(slices.Values(rolecall.DeclaredErrors()), func(a, b *rolecall.Error) int {
	return cmp.Compare(statusOf(a), statusOf(b))
})

func statusOf(e *rolecall.Error) int {
	status, _ := web.StatusOf(e)
	return status
}

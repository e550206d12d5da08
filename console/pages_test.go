package console

// looks maps the path of each page without a form to the operation of the API that the page
// corresponds to.
var looks = map[string]string{
	"":                                  "", // redirects to the next path
	"/{tenant}":                         "AuthsController_getSession",
	"/{tenant}/":                        "AuthsController_getSession",
	"/{tenant}/{rest...}":               "AuthsController_getSession", // unknown pages
	"/{tenant}/home":                    "TenantController_getSummary",
	"/{tenant}/find":                    "AuthsController_getSession",
	"/{tenant}/settings":                "TenantController_getTenant",
	"/{tenant}/account":                 "AuthsController_getFactors",
	"/{tenant}/users":                   "UsersController_listUsers",
	"/{tenant}/users/{id}":              "UsersController_getUserOverview",
	"/{tenant}/users/{id}/sessions":     "UsersController_listUserSessions",
	"/{tenant}/users/{id}/roles":        "UsersController_listUserRoles",
	"/{tenant}/users/{id}/roles/give":   "UsersController_getUser",
	"/{tenant}/users/{id}/events":       "UsersController_listUserEvents",
	"/{tenant}/users/{id}/deleted":      "UsersController_restoreUser",
	"/{tenant}/users/deleted":           "UsersController_listUsers",
	"/{tenant}/invitations":             "InvitationsController_listInvitations",
	"/{tenant}/jobs":                    "JobsController_listJobs",
	"/{tenant}/jobs/{id}":               "JobsController_getJob",
	"/{tenant}/jobs/{id}/users":         "JobsController_listJobResults",
	"/{tenant}/events":                  "EventsController_listEvents",
	"/{tenant}/events/export":           "ExportsController_exportEvents",
	"/{tenant}/users/export":            "ExportsController_exportUsers",
	"/{tenant}/roles/{id}/users/export": "ExportsController_exportRoleUsers",
	"/{tenant}/roles":                   "RolesController_listRoles",
	"/{tenant}/roles/{id}":              "RolesController_getRole",
	"/{tenant}/roles/{id}/users":        "RolesController_listRoleUsers",
	"/{tenant}/roles/{id}/compare":      "RolesController_getRole",
	"/{tenant}/users/{id}/compare":      "UsersController_getUserOverview",
	"/{tenant}/users/{id}/access":       "UsersController_getUserOverview",
	"/{tenant}/access":                  "AccessController_listAccess",

	"/{tenant}/events/checkpoint":                "EventsController_getCheckpoint",
	"/{tenant}/events/checkpoint/download":       "EventsController_getCheckpoint",
	"/{tenant}/webhooks":                         "WebhooksController_listWebhooks",
	"/{tenant}/webhooks/{id}":                    "WebhooksController_getWebhook",
	"/{tenant}/webhooks/{id}/deliveries":         "WebhooksController_listDeliveries",
	"/{tenant}/service-accounts":                 "ServiceAccountsController_listServiceAccounts",
	"/{tenant}/service-accounts/{id}":            "ServiceAccountsController_getServiceAccount",
	"/{tenant}/service-accounts/{id}/roles":      "ServiceAccountsController_listServiceAccountRoles",
	"/{tenant}/service-accounts/{id}/roles/give": "ServiceAccountsController_getServiceAccount",
	"/{tenant}/service-accounts/{id}/tokens":     "ServiceAccountsController_listServiceAccountTokens",
	"/{tenant}/users/{id}/tokens":                "UsersController_listUserTokens",
}

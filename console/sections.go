package console

import (
	"slices"

	"github.com/rolecall/rolecall/internal/authz"
)

// section is one entry of the navigation, or of the tabs within such a section. Only
// callers who satisfy all of its policies see it.
type section struct {
	name     string
	path     string
	icon     string
	keys     string // that lead there
	policies []*authz.Policy
}

var sections = []section{
	{"Users", "/users", "users", "g u", []*authz.Policy{authz.ListUsers}},
	{"Roles", "/roles", "roles", "g r", []*authz.Policy{authz.ReadRoles}},
	{"Events", "/events", "events", "g e", []*authz.Policy{authz.ReadEvents}},
	{"Service accounts", "/service-accounts", "machines", "g m", []*authz.Policy{authz.ReadServiceAccounts}},
	{settingsSection, "/settings", "settings", "g s", []*authz.Policy{authz.ReadTenant}},
}

// done is what the page that a form leads to says, by the word in its address. The
// words may name {whom} the page is about, and the {role} of the address.
var done = map[string]string{
	"saved":          "Saved.",
	"user-created":   "{whom} is created.",
	"user-invited":   "{whom} is created, and the invitation is on its way.",
	"suspended":      "{whom} is suspended, and signed out everywhere.",
	"resumed":        "{whom} is resumed.",
	"invited":        "The invitation of {whom} is on its way.",
	"email-asked":    "The new address is asked. Until it says yes, the old one stays.",
	"withdrawn":      "The invitation of {whom} is withdrawn.",
	"reset-sent":     "A link to choose a new password is on its way to {whom}.",
	"session-ended":  "The session is over.",
	"sessions-ended": "{whom} is signed out everywhere.",
	"factors-reset":  "All second factors of {whom} are removed.",
	"role-created":   "The role is created.",
	"role-deleted":   "The role is deleted, and taken from all who held it.",
	"role-given":     "{role} is given to {whom}.",
	"role-taken":     "{role} is taken from {whom}.",
	"deleted":        "The user is deleted. A restore is possible for 30 days.",
	"restored":       "{whom} is restored, and cannot sign in yet: what mends that is said here.",
	"erased":         "The user is erased for good.",

	"password-changed": "Your password is changed, and you are signed out everywhere else.",
	"app-added":        "Your authenticator app counts from now on.",
	"app-removed":      "The authenticator app is removed.",
	"codes-made":       "The new recovery codes count, the old ones no longer.",
	"passkey-added":    "The passkey signs you in from now on.",
	"passkey-removed":  "The passkey is removed.",

	"service-account-created":   "The service account is created. It holds nothing yet: give it a role, then make a token.",
	"service-account-suspended": "{whom} is suspended. Its tokens count for nothing.",
	"token-revoked":             "The token is revoked. Programs that use it are refused from now on.",
	"service-account-deleted":   "The service account is deleted, with its tokens.",
}

// doneBefore is done of the sign-in page.
var doneBefore = map[string]string{
	"signed-out":      "You are signed out.",
	"password-reset":  "Your new password is set. Sign in with it.",
	"email-changed":   "Your new address is confirmed. Sign in with it.",
	"reset-requested": "If somebody of this tenant signs in with this address, a link to choose a new password is on its way to it.",
}

// deletedPolicies are of the list of users with those who can be restored.
var deletedPolicies = []*authz.Policy{authz.ListUsers, authz.ListDeletedUsers}

// userLists are the lists that the section of users consists of.
var userLists = []section{
	{name: "All users", path: "/users", policies: []*authz.Policy{authz.ListUsers}},
	{name: "Invitations", path: "/invitations", policies: []*authz.Policy{authz.ListInvitations}},
	{name: "Deleted", path: "/users/deleted", policies: deletedPolicies},
}

// openTo returns those of the sections that are for the principal.
func openTo(p *authz.Principal, list []section) (shown []section) {
	for _, s := range list {
		if s.open(p) {
			shown = append(shown, s)
		}
	}
	return shown
}

// open reports whether the section is for the principal.
func (s section) open(p *authz.Principal) bool { return areAllowed(p, s.policies) }

// areAllowed reports whether all of the policies allow the principal to act.
func areAllowed(p *authz.Principal, policies []*authz.Policy) bool {
	return !slices.ContainsFunc(policies, func(policy *authz.Policy) bool { return policy.Authorize(p) != nil })
}

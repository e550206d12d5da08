package console

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

// section is one entry of the navigation, or of the tabs within such a section. It is
// shown to whom its need lets in.
type section struct {
	name string
	path string
	icon string
	keys string // that lead there
	need service.Need
}

var sections = []section{
	{"Users", "/users", "users", "g u", service.NeedListUsers},
	{"Roles", "/roles", "roles", "g r", service.NeedReadRoles},
	{"Events", "/events", "events", "g e", service.NeedReadEvents},
	{"Service accounts", "/service-accounts", "machines", "g m", service.NeedReadServiceAccounts},
	{settingsSection, "/settings", "settings", "g s", service.NeedReadTenant},
}

// done is what the page that a form leads to says: by the word in its address.
var done = map[string]string{
	"saved":           "Saved.",
	"user-created":    "Created.",
	"user-invited":    "Created, and the invitation is on its way.",
	"suspended":       "Suspended, and signed out everywhere.",
	"resumed":         "Resumed.",
	"invited":         "The invitation is on its way.",
	"email-asked":     "The new address is asked. Until it says yes, the old one stays.",
	"withdrawn":       "The invitation is withdrawn.",
	"reset-sent":      "A link to choose a new password is on its way.",
	"session-ended":   "The session is over.",
	"sessions-ended":  "Signed out everywhere.",
	"factors-reset":   "All second factors are removed.",
	"role-created":    "Created.",
	"role-deleted":    "Deleted.",
	"role-given":      "Given.",
	"role-taken":      "Taken away.",
	"deleted":         "Deleted. A restore is possible for 30 days.",
	"signed-out":      "You are signed out.",
	"password-reset":  "Your new password is set. Sign in with it.",
	"email-changed":   "Your new address is confirmed. Sign in with it.",
	"reset-requested": "If somebody of this tenant signs in with this address, a link to choose a new password is on its way to it.",

	"password-changed": "Your password is changed, and you are signed out everywhere else.",
	"app-added":        "Your authenticator app counts from now on.",
	"app-removed":      "The authenticator app is removed.",
	"codes-made":       "The new recovery codes count, the old ones no longer.",
	"passkey-added":    "The passkey signs you in from now on.",
	"passkey-removed":  "The passkey is removed.",

	"service-account-created":   "Created. It holds nothing yet: give it a role, then make a token.",
	"service-account-suspended": "Suspended. Its tokens count for nothing.",
	"service-account-deleted":   "Deleted, with its tokens.",
}

// userLists are the lists that the section of users consists of.
var userLists = []section{
	{name: "All users", path: "/users", need: service.NeedListUsers},
}

// openTo returns those of the sections that are for the principal.
func openTo(p *rolecall.Principal, list []section) (shown []section) {
	for _, s := range list {
		if s.open(p) {
			shown = append(shown, s)
		}
	}
	return shown
}

// open reports whether the section is for the principal.
func (s section) open(p *rolecall.Principal) bool { return s.need(p, rolecall.UserID{}) == nil }

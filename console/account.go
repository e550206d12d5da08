package console

import (
	"fmt"
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/service"
)

// accountPages are what people do about themselves.
func (c *console) accountPages() []httpapi.Page {
	return []httpapi.Page{
		{Path: "/{tenant}/account", Operation: "AuthsController_getFactors", Show: c.showAccount},
		{Path: "/{tenant}/account/password", Operation: "AuthsController_changePassword", Show: c.showPassword, Act: c.changePassword},
	}
}

// accountSection is what the pages of the account are called in frames: the entry of
// the navigation is the name of who is signed in.
const accountSection = "Account"

// accountSessions is how many of one's sessions the account shows.
const accountSessions = 5

// accountView is what the page of the account shows.
type accountView struct {
	frame
	factors  service.OwnFactors
	passkeys bool // can be added here
	sessions rolecall.Page[rolecall.Session]
	tokens   []rolecall.APIToken // the newest first
}

func (c *console) showAccount(v *httpapi.Visit) error {
	factors, err := c.service.Factors(v.Context(), v.Call())
	if err != nil {
		return err
	}
	sessions, err := c.service.UserSessions(v.Context(), v.Call(), v.Call().User.ID, nil, accountSessions)
	if err != nil {
		return err
	}
	tokens, err := c.service.UserTokens(v.Context(), v.Call(), v.Call().User.ID, nil, rolecall.APITokensMax)
	if err != nil {
		return err
	}
	slices.Reverse(tokens.Items)
	return c.show(v, "Your account", accountSection, func(f frame) templ.Component {
		passkeys := c.passkeyOptions(v) != "" && len(factors.Passkeys) < rolecall.PasskeysMax
		return accountPage(accountView{f, factors, passkeys, sessions, tokens.Items})
	})
}

// mayRemove reports whether one of the factors may go: all of them may where the tenant
// demands none.
func (a accountView) mayRemove() bool {
	return !a.factors.Demanded || a.factors.TOTP.Sealed != nil && len(a.factors.Passkeys) > 0 || len(a.factors.Passkeys) > 1
}

// own returns the page of who is signed in among the users, or one below it.
func (f frame) own(below string) string { return userAddress(f.Visit, f.Call().User.ID, below) }

// grantGroup is a part of what somebody may do.
type grantGroup struct {
	title  string
	grants []rolecall.Grant
}

// grantGroups returns what who is signed in may do, in the groups of the editor of
// roles, those of applications last.
func (f frame) grantGroups() (groups []grantGroup) {
	everywhere, scoped := f.Call().Grants()
	grants := slices.Clone(scoped)
	for _, p := range everywhere {
		grants = append(grants, rolecall.Grant{Permission: p, Reach: rolecall.Everywhere()})
	}
	for _, g := range append(permissionGroups, permissionGroup{title: applicationsTitle}) {
		group := grantGroup{title: g.title}
		for _, grant := range grants {
			if permissionTitle(grant.Permission) == g.title {
				group.grants = append(group.grants, grant)
			}
		}
		if group.grants != nil {
			groups = append(groups, group)
		}
	}
	return groups
}

func (c *console) showPassword(v *httpapi.Visit) error {
	return c.show(v, "Change your password", accountSection, passwordPage)
}

func (c *console) changePassword(v *httpapi.Visit) error {
	device, err := c.service.ChangePassword(v.Context(), v.Call(), v.Form("currentPassword"), v.Form("newPassword"))
	if err != nil {
		return err
	}
	v.Known(device)
	return v.Redirect(v.Path("/account") + "?done=password-changed")
}

// passwordAdvice says what a new password of who is signed in has to be like.
func (f frame) passwordAdvice() string {
	return fmt.Sprintf("At least %d characters. A sentence of a few words is easy to remember and hard to guess.", f.Call().Tenant.Settings.PasswordMinimum())
}

// toAccount leads to the account from the address of a form that is only sent.
func toAccount(v *httpapi.Visit) error { return v.Redirect(v.Path("/account")) }

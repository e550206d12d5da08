package console

import (
	"fmt"
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/signin"
)

// accountPages are what people do about themselves.
func (c *console) accountPages() []page {
	return []page{
		{path: "/{tenant}/account", operation: "AuthsController_getFactors", show: c.showAccount},
		{path: "/{tenant}/account/password", operation: "AuthsController_changePassword", show: c.showPassword, act: c.changePassword},
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
	factors  signin.OwnFactors
	passkeys bool // can be added here
	sessions rolecall.Page[rolecall.Session]
	tokens   []rolecall.APIToken // the newest first
}

func (c *console) showAccount(v *pageContext) error {
	factors, err := c.signin.Factors(v.ctx, v.call)
	if err != nil {
		return err
	}
	sessions, err := c.signin.UserSessions(v.ctx, v.call, v.call.User.ID, nil, accountSessions)
	if err != nil {
		return err
	}
	tokens, err := c.directory.Tokens(v.ctx, v.call, rolecall.HolderOf(v.call.User.ID), nil, rolecall.APITokensMax)
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
func (f frame) own(below string) string { return userAddress(f.pageContext, f.call.User.ID, below) }

// grantGroup is a part of what somebody may do.
type grantGroup struct {
	title  string
	grants []authz.Grant
}

// grantGroups returns what who is signed in may do, in the groups of the editor of
// roles, those of applications last.
func (f frame) grantGroups() (groups []grantGroup) {
	everywhere, scoped := f.call.Grants()
	grants := slices.Clone(scoped)
	for _, p := range everywhere {
		grants = append(grants, authz.Grant{Permission: p, Reach: rolecall.Everywhere()})
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

func (c *console) showPassword(v *pageContext) error {
	return c.show(v, "Change your password", accountSection, passwordPage)
}

func (c *console) changePassword(v *pageContext) error {
	device, err := c.signin.ChangePassword(v.ctx, v.call, v.form.Get("currentPassword"), v.form.Get("newPassword"))
	if err != nil {
		return err
	}
	v.setDevice(device)
	return v.redirect(v.path("/account") + "?done=password-changed")
}

// passwordAdvice says what a new password of who is signed in has to be like.
func (f frame) passwordAdvice() string {
	return fmt.Sprintf("At least %d characters. A sentence of a few words is easy to remember and hard to guess.", f.call.Tenant.Settings.PasswordMinimum())
}

// toAccount leads to the account from the address of a form that is only sent.
func toAccount(v *pageContext) error { return v.redirect(v.path("/account")) }

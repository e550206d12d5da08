package console

import (
	"fmt"
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/signin"
)

// accountPages returns the pages on which callers manage their own account.
func (c *console) accountPages() []page {
	return []page{
		{path: "/{tenant}/account", operation: "AuthsController_getFactors", show: c.showAccount},
		{path: "/{tenant}/account/password", operation: "AuthsController_changePassword", show: c.showPassword, act: c.changePassword},
	}
}

// accountSection is the section of the account pages. The navigation shows the name of the caller
// for it.
const accountSection = "Account"

// accountSessions is the number of the caller's sessions on the page of the account.
const accountSessions = 5

// accountView is the data of the page of the account.
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

// mayRemove reports whether the caller may remove one of the factors. If the tenant requires a
// second factor, the last one must stay.
func (a accountView) mayRemove() bool {
	return !a.factors.Demanded || a.factors.TOTP.Sealed != nil && len(a.factors.Passkeys) > 0 || len(a.factors.Passkeys) > 1
}

// own returns the address of the caller's page among the users. below is appended to its path.
func (f frame) own(below string) string { return userAddress(f.pageContext, f.call.User.ID, below) }

// grantGroup is a group of grants on the page of the account.
type grantGroup struct {
	title  string
	grants []authz.Grant
}

// grantGroups returns the grants of the caller in the groups of the role editor. The permissions of
// applications are the last group.
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

// passwordAdvice returns the rules for a new password of the caller.
func (f frame) passwordAdvice() string {
	return fmt.Sprintf("At least %d characters. A sentence of a few words is easy to remember and hard to guess.", f.call.Tenant.Settings.PasswordMinimum())
}

// toAccount redirects to the account. It answers GET at addresses that only accept forms.
func toAccount(v *pageContext) error { return v.redirect(v.path("/account")) }

func (c *console) sessionPages() []page {
	return []page{
		{path: "/{tenant}/users/{id}/sessions", operation: "UsersController_listUserSessions", query: pageParameters, show: c.showSessions},
		{path: "/{tenant}/users/{id}/sessions/{sessionId}/end", operation: "UsersController_endUserSession", show: c.askEndSession, act: c.endSession},
	}
}

// sessionsView is the data of the page of a user's sessions.
type sessionsView struct {
	frame
	pageLinks
	user rolecall.User
	page rolecall.Page[rolecall.Session]
}

func (c *console) showSessions(v *pageContext) error {
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	list := sessionsView{user: user}
	if v.faults == nil {
		after, limit := v.after, v.limit
		if list.page, err = c.signin.UserSessions(v.ctx, v.call, v.userID, after, limit); err != nil {
			return err
		}
	}
	title, here := "Sessions of "+nameOf(v, &user), "Users"
	if v.call.IsSelf(user.ID) {
		title, here = "Your sessions", accountSection
	}
	return c.show(v, title, here, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(nil, list.page.Next)
		return sessionsPage(list)
	})
}

func (c *console) askEndSession(v *pageContext) error {
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	return c.show(v, "End the session", "Users", func(f frame) templ.Component {
		return confirmForm(f, question{
			title: "End this session of", name: nameOf(f.pageContext, &user), label: "End the session", destructive: true,
			detail: "That browser is signed out at once. Its user can sign in again. Links that were sent in this session, such as invitations, stop working.",
			back:   userAddress(f.pageContext, user.ID, "/sessions"),
		})
	})
}

func (c *console) endSession(v *pageContext) error {
	if err := c.signin.EndUserSession(v.ctx, v.call, v.userID, v.sessionID); err != nil {
		return err
	}
	if v.sessionID == v.call.Session.ID {
		return signedOut(v)
	}
	return v.redirect(userAddress(v, v.userID, "/sessions") + "?done=session-ended")
}

// mayEnd reports whether the caller probably may end sessions of the user. The service decides.
func (l sessionsView) mayEnd() bool {
	return l.call.IsSelf(l.user.ID) || l.call.Reach(rolecall.SessionsRevoke).Includes(l.user.Department)
}

package console

import (
	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
)

func (c *console) sessionPages() []page {
	return []page{
		{path: "/{tenant}/users/{id}/sessions", operation: "UsersController_listUserSessions", query: pageParameters, show: c.showSessions},
		{path: "/{tenant}/users/{id}/sessions/{sessionId}/end", operation: "UsersController_endUserSession", show: c.askEndSession, act: c.endSession},
	}
}

// sessionsView is what the page of a user's sessions shows.
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
			asks: "End this session of", whom: nameOf(f.pageContext, &user), label: "End the session", grave: true,
			tells: "That browser is signed out at once. Its user can sign in again. Links that were sent in this session, such as invitations, stop working.",
			back:  userAddress(f.pageContext, user.ID, "/sessions"),
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

// mayEnd reports whether the caller may end sessions of the user, as far as that can
// be told beforehand.
func (l sessionsView) mayEnd() bool {
	return l.call.IsSelf(l.user.ID) || l.call.Reach(rolecall.SessionsRevoke).Includes(l.user.Department)
}

package console

import (
	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
)

func (c *console) sessionPages() []httpapi.Page {
	return []httpapi.Page{
		{Path: "/{tenant}/users/{id}/sessions", Operation: "UsersController_listUserSessions", Show: c.showSessions},
		{Path: "/{tenant}/users/{id}/sessions/{sessionId}/end", Operation: "UsersController_endUserSession", Show: c.askEndSession, Act: c.endSession},
	}
}

// sessionsView is what the page of a user's sessions shows.
type sessionsView struct {
	frame
	pageLinks
	user rolecall.User
	page rolecall.Page[rolecall.Session]
}

func (c *console) showSessions(v *httpapi.Visit) error {
	user, err := c.service.User(v.Context(), v.Call(), v.User())
	if err != nil {
		return err
	}
	list := sessionsView{user: user}
	if v.Faults() == nil {
		after, limit := v.Page()
		if list.page, err = c.service.UserSessions(v.Context(), v.Call(), v.User(), after, limit); err != nil {
			return err
		}
	}
	title, here := "Sessions of "+nameOf(v, &user), "Users"
	if v.Call().IsSelf(user.ID) {
		title, here = "Your sessions", accountSection
	}
	return c.show(v, title, here, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(nil, list.page.Next)
		return sessionsPage(list)
	})
}

func (c *console) askEndSession(v *httpapi.Visit) error {
	user, err := c.service.User(v.Context(), v.Call(), v.User())
	if err != nil {
		return err
	}
	return c.show(v, "End the session", "Users", func(f frame) templ.Component {
		return confirmForm(f, question{
			asks: "End this session of", whom: nameOf(f.Visit, &user), label: "End the session", grave: true,
			tells: "That browser is signed out at once. Its user can sign in again. Links that were sent in this session, such as invitations, stop working.",
			back:  userAddress(f.Visit, user.ID, "/sessions"),
		})
	})
}

func (c *console) endSession(v *httpapi.Visit) error {
	if err := c.service.EndUserSession(v.Context(), v.Call(), v.User(), v.Session()); err != nil {
		return err
	}
	if v.Session() == v.Call().Session.ID {
		return signedOut(v)
	}
	return v.Redirect(userAddress(v, v.User(), "/sessions") + "?done=session-ended")
}

// mayEnd reports whether the caller may end sessions of the user, as far as that can
// be told beforehand.
func (l sessionsView) mayEnd() bool {
	return l.Call().IsSelf(l.user.ID) || l.Call().Reach(rolecall.SessionsRevoke).Includes(l.user.Department)
}

package console

import (
	"context"
	"errors"
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
)

// action is an operation on a user or a service account. Its page describes the effect and asks for
// confirmation.
type action struct {
	path        string // below the address of the user or service account
	operation   string
	needsKey    bool   // the form has an idempotency key
	allowed     string // the name of the action in Overview.AllowedActions
	key         string // the prefix of the message keys: label, title and detail
	done        string // the word of the message after success; the message key is done.WORD
	destructive bool   // the action removes something
	reasoned    bool   // the form has a field for a reason
	addressed   bool   // the form has a field for an email address
	ends        bool   // the action ends all sessions of the user
	gone        bool   // the action deletes the user, so it redirects to the list
	sure        bool   // the user must type the user's email address to confirm; the action also works on deleted users
	offer       func(*userView) bool
	do          func(*console, *pageContext) error
}

var actions = []action{
	{
		path: "/invite", operation: "UsersController_inviteUser", needsKey: true, allowed: "invite", key: "action.invite", done: "invited",
		offer: func(u *userView) bool { return u.Overview.User.Status == rolecall.UserPending },
		do: func(s *console, v *pageContext) error {
			_, err := s.directory.InviteUser(v.ctx, v.call, v.key(), v.userID)
			return err
		},
	},
	{
		path: "/resume", operation: "UsersController_resumeUser", allowed: "resume", key: "action.resume", done: "resumed", reasoned: true,
		do: func(s *console, v *pageContext) error {
			return withReason(s.directory.ResumeUser, v, v.userID)
		},
	},
	{
		path: "/password-reset", operation: "UsersController_sendPasswordReset", needsKey: true, allowed: "invite", key: "action.password-reset", done: "reset-sent",
		offer: func(u *userView) bool { return u.Overview.User.Status == rolecall.UserActive },
		do: func(s *console, v *pageContext) error {
			_, err := s.signin.SendPasswordReset(v.ctx, v.call, v.key(), v.userID)
			return err
		},
	},
	{
		path: "/sign-out", operation: "UsersController_endUserSessions", allowed: "revokeSessions", key: "action.sign-out", done: "sessions-ended", destructive: true, ends: true,
		offer: func(u *userView) bool { return !u.SessionsReadable || u.Sessions.Count > 0 },
		do: func(s *console, v *pageContext) error {
			return s.signin.EndUserSessions(v.ctx, v.call, v.userID)
		},
	},
	{
		path: "/withdraw", operation: "UsersController_withdrawInvitation", allowed: "withdrawInvitation", key: "action.withdraw", done: "withdrawn", destructive: true,
		offer: func(u *userView) bool { return u.Invitation.ExpiresAt != 0 },
		do: func(s *console, v *pageContext) error {
			return s.directory.WithdrawInvitation(v.ctx, v.call, v.userID)
		},
	},
	{
		path: "/email", operation: "UsersController_requestEmailChange", needsKey: true, allowed: "changeEmail", key: "action.email", done: "email-asked", addressed: true,
		offer: func(u *userView) bool { return u.Overview.User.ManagedBy == nil },
		do: func(s *console, v *pageContext) error {
			_, err := s.signin.RequestEmailChange(v.ctx, v.call, v.key(), v.userID, v.form.Get("email"))
			return err
		},
	},
	{
		path: "/reset-factors", operation: "UsersController_resetFactors", allowed: "resetFactors", key: "action.reset-factors", done: "factors-reset", destructive: true, ends: true,
		offer: func(u *userView) bool { return !u.FactorsReadable || u.Factors.TOTP || u.Factors.Passkeys > 0 },
		do: func(s *console, v *pageContext) error {
			return s.signin.ResetFactors(v.ctx, v.call, v.userID)
		},
	},
	{
		path: "/suspend", operation: "UsersController_suspendUser", allowed: "suspend", key: "action.suspend", done: "suspended", destructive: true, reasoned: true, ends: true,
		do: func(s *console, v *pageContext) error {
			return withReason(s.directory.SuspendUser, v, v.userID)
		},
	},
	{
		path: "/delete", operation: "UsersController_deleteUser", allowed: "delete", key: "action.delete", done: "deleted", destructive: true, ends: true, gone: true,
		do: func(s *console, v *pageContext) error {
			return s.directory.DeleteUser(v.ctx, v.call, v.userID, nil)
		},
	},
	{
		path: "/erase", operation: "UsersController_eraseUser", allowed: "erase", key: "action.erase", done: "erased", destructive: true, ends: true, gone: true, sure: true,
		do: func(s *console, v *pageContext) error {
			return s.directory.EraseUser(v.ctx, v.call, v.userID, "")
		},
	},
}

func (c *console) actionPages() (pages []page) {
	for i := range actions {
		a := &actions[i]
		pages = append(pages, page{
			path: "/{tenant}/users/{id}" + a.path, operation: a.operation, needsKey: a.needsKey,
			show: func(v *pageContext) error { return c.askAction(v, a) },
			act:  func(v *pageContext) error { return c.act(v, a, "/users") },
		})
	}
	return pages
}

// askAction shows the page that asks the caller to confirm the action.
func (c *console) askAction(v *pageContext, a *action) error {
	overview, err := c.directory.Overview(v.ctx, v.call, v.userID)
	if a.sure && errors.Is(err, rolecall.ErrNotFound) {
		return c.showTombstone(v, a.key+".title", func(d deletedView) templ.Component {
			h := userHolder(v, &d.User)
			h.home = d.address("/deleted")
			return actionDialog(d.frame, h, a)
		})
	}
	if err != nil {
		return err
	}
	view := userView{Overview: overview, sight: v.call.ReadableMembers(&overview.User)}
	return c.show(v, msg(a.key+".title", "Name", nameOf(v, &overview.User)), usersSection, func(f frame) templ.Component {
		view.frame = f
		if !slices.Contains(view.actions(), a) && v.problem == nil {
			return unavailableAction(view.holder(), a)
		}
		return actionDialog(f, view.holder(), a)
	})
}

// act performs the action on the user or service account in the path, and redirects. list
// is the path of the list of users or of service accounts.
func (c *console) act(v *pageContext, a *action, list string) error {
	if a.sure {
		if err := c.checkSure(v); err != nil {
			return err
		}
	}
	if err := a.do(c, v); err != nil {
		return err
	}
	if a.ends && v.call.IsSelf(v.userID) {
		return signedOut(v, "signed-out")
	}
	if a.gone {
		address := v.path(list) + "?done=" + a.done
		if v.userID != (rolecall.UserID{}) && !a.sure {
			address += "&" + undoDeleted + "=" + v.userID.String()
		}
		return v.redirect(address)
	}
	return v.redirect(homeOf(v, list) + "?done=" + a.done)
}

// withReason calls the service method verb with the reason from the form.
func withReason[ID, T any](verb func(context.Context, access.Caller, ID, string) (T, error), v *pageContext, id ID) error {
	reason, err := v.reason()
	if err == nil {
		_, err = verb(v.ctx, v.call, id, reason)
	}
	return err
}

// class returns the CSS classes of the action as a menu item.
func (a *action) class() string {
	if a.destructive {
		return "menu-item grave"
	}
	return "menu-item"
}

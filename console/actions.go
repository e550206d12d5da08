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
	allowed     string // its name in Overview.AllowedActions
	label       string
	title       string // of the dialog, up to the name
	detail      string // the effect of the action
	done        string // the key of its message in done
	destructive bool   // the action removes something
	reasoned    bool   // the form has a field for a reason
	addressed   bool   // the form has a field for an email address
	ends        bool   // the action ends all sessions of the user
	gone        bool   // the action deletes the user, so it redirects to the list
	sure        bool   // typed confirmation: the user's address; works on deleted users too
	offer       func(*userView) bool
	do          func(*console, *pageContext) error
}

var actions = []action{
	{
		path: "/invite", operation: "UsersController_inviteUser", needsKey: true, allowed: "invite", label: "Invite", title: "Invite", done: "invited",
		detail: "They are mailed a link to set a password and sign in. An older invitation is void then.",
		offer:  func(u *userView) bool { return u.Overview.User.Status == rolecall.UserPending },
		do: func(s *console, v *pageContext) error {
			_, err := s.directory.InviteUser(v.ctx, v.call, v.key(), v.userID)
			return err
		},
	},
	{
		path: "/resume", operation: "UsersController_resumeUser", allowed: "resume", label: "Resume", title: "Resume", done: "resumed", reasoned: true,
		detail: "They can sign in again.",
		do: func(s *console, v *pageContext) error {
			return withReason(s.directory.ResumeUser, v, v.userID)
		},
	},
	{
		path: "/password-reset", operation: "UsersController_sendPasswordReset", needsKey: true, allowed: "invite", label: "Mail a password link", title: "Mail a password link to", done: "reset-sent",
		detail: "They are mailed a link to choose a new password. Nobody else sees it.",
		offer:  func(u *userView) bool { return u.Overview.User.Status == rolecall.UserActive },
		do: func(s *console, v *pageContext) error {
			_, err := s.signin.SendPasswordReset(v.ctx, v.call, v.key(), v.userID)
			return err
		},
	},
	{
		path: "/sign-out", operation: "UsersController_endUserSessions", allowed: "revokeSessions", label: "Sign out everywhere", title: "Sign out", done: "sessions-ended", destructive: true, ends: true,
		detail: "They are signed out of every browser at once, and can sign in again. Links that they sent in these sessions, such as invitations, stop working.",
		offer:  func(u *userView) bool { return !u.SessionsReadable || u.Sessions.Count > 0 },
		do: func(s *console, v *pageContext) error {
			return s.signin.EndUserSessions(v.ctx, v.call, v.userID)
		},
	},
	{
		path: "/withdraw", operation: "UsersController_withdrawInvitation", allowed: "withdrawInvitation", label: "Withdraw the invitation", title: "Withdraw the invitation of", done: "withdrawn", destructive: true,
		detail: "The link that they were mailed is void at once.",
		offer:  func(u *userView) bool { return u.Invitation.ExpiresAt != 0 },
		do: func(s *console, v *pageContext) error {
			return s.directory.WithdrawInvitation(v.ctx, v.call, v.userID)
		},
	},
	{
		path: "/email", operation: "UsersController_requestEmailChange", needsKey: true, allowed: "changeEmail", label: "Change the address", title: "Change the e-mail address of", done: "email-asked", addressed: true,
		detail: "A link goes to the new address, and a notice to the old one. Until it is opened there, for at most 24 hours, the old address stays and nothing changes. When it is opened, they are signed out everywhere and sign in with the new one, and the old one is told.",
		do: func(s *console, v *pageContext) error {
			_, err := s.signin.RequestEmailChange(v.ctx, v.call, v.key(), v.userID, v.form.Get("email"))
			return err
		},
	},
	{
		path: "/reset-factors", operation: "UsersController_resetFactors", allowed: "resetFactors", label: "Reset second factors", title: "Reset the second factors of", done: "factors-reset", destructive: true, ends: true,
		detail: "All their second factors are removed, they are signed out everywhere and told by mail. The password alone is enough then.",
		offer:  func(u *userView) bool { return !u.FactorsReadable || u.Factors.TOTP || u.Factors.Passkeys > 0 },
		do: func(s *console, v *pageContext) error {
			return s.signin.ResetFactors(v.ctx, v.call, v.userID)
		},
	},
	{
		path: "/suspend", operation: "UsersController_suspendUser", allowed: "suspend", label: "Suspend", title: "Suspend", done: "suspended", destructive: true, reasoned: true, ends: true,
		detail: "They are signed out everywhere and cannot sign in until resumed. Nothing is lost.",
		do: func(s *console, v *pageContext) error {
			return withReason(s.directory.SuspendUser, v, v.userID)
		},
	},
	{
		path: "/delete", operation: "UsersController_deleteUser", allowed: "delete", label: "Delete", title: "Delete", done: "deleted", destructive: true, ends: true, gone: true,
		detail: "They are signed out everywhere and gone from every list, and their address is free again. A restore is possible for 30 days.",
		do: func(s *console, v *pageContext) error {
			return s.directory.DeleteUser(v.ctx, v.call, v.userID, nil)
		},
	},
	{
		path: "/erase", operation: "UsersController_eraseUser", allowed: "erase", label: "Erase", title: "Erase", done: "erased", destructive: true, ends: true, gone: true, sure: true,
		detail: "All that is known of them is removed at once: nobody can undo it, and no restore brings them back. Events keep that something happened, and when, under an id that leads to nobody.",
		do: func(s *console, v *pageContext) error {
			return s.directory.EraseUser(v.ctx, v.call, v.userID)
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

// askAction asks whether it is to be done.
func (c *console) askAction(v *pageContext, a *action) error {
	overview, err := c.directory.Overview(v.ctx, v.call, v.userID)
	if a.sure && errors.Is(err, rolecall.ErrNotFound) {
		return c.showTombstone(v, a.title+" ", func(d deletedView) templ.Component {
			h := userHolder(v, &d.User)
			h.home = d.address("/deleted")
			return actionDialog(d.frame, h, a)
		})
	}
	if err != nil {
		return err
	}
	view := userView{Overview: overview, sight: v.call.ReadableMembers(&overview.User)}
	return c.show(v, a.title+" "+nameOf(v, &overview.User), "Users", func(f frame) templ.Component {
		view.frame = f
		if !slices.Contains(view.actions(), a) && v.problem == nil {
			return unavailableAction(view.holder(), a)
		}
		return actionDialog(f, view.holder(), a)
	})
}

// act does it to the one of the path, of the list at that path.
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
		return signedOut(v)
	}
	if a.gone {
		return v.redirect(v.path(list) + "?done=" + a.done)
	}
	return v.redirect(homeOf(v, list) + "?done=" + a.done)
}

// withReason calls the verb with the reason that the form gives.
func withReason[ID, T any](verb func(context.Context, access.Caller, ID, string) (T, error), v *pageContext, id ID) error {
	reason, err := v.reason()
	if err == nil {
		_, err = verb(v.ctx, v.call, id, reason)
	}
	return err
}

// class returns the CSS classes of the action in a menu.
func (a *action) class() string {
	if a.destructive {
		return "menu-item grave"
	}
	return "menu-item"
}

// button returns the CSS classes of the action as a button.
func (a *action) button() string {
	if a.destructive {
		return "button grave"
	}
	return "button"
}

package console

import (
	"errors"
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) userPages() []page {
	return []page{
		{path: "/{tenant}/users/{id}", operation: "UsersController_getUserOverview", show: c.showUser},
	}
}

// userView is what the page of one user shows.
type userView struct {
	frame
	directory.Overview
	sight rolecall.UserMembers
	names names // of who is in the recent events, and of who invited them
}

func (c *console) showUser(v *pageContext) error {
	overview, err := c.directory.Overview(v.ctx, v.call, v.userID)
	if errors.Is(err, rolecall.ErrNotFound) {
		if _, err := c.directory.DeletedUser(v.ctx, v.call, v.userID); err == nil {
			return v.redirect(userAddress(v, v.userID, "/deleted"))
		}
	}
	if err != nil {
		return err
	}
	view := userView{Overview: overview, sight: v.call.Sight(&overview.User)}
	if view.names, err = c.namesIn(v, overview.RecentEvents, rolecall.AnyID(overview.Invitation.CreatedBy)); err != nil {
		return err
	}
	return c.show(v, nameOf(v, &overview.User), "Users", func(f frame) templ.Component {
		view.frame = f
		return userPage(view)
	})
}

// name returns what to call the user.
func (u userView) name() string { return nameOf(u.pageContext, &u.Overview.User) }

// holder returns the user as whom they hold roles.
func (u userView) holder() holder { return userHolder(u.pageContext, &u.Overview.User) }

// isSelf reports whether the user is the one who looks.
func (u userView) isSelf() bool { return u.call.IsSelf(u.Overview.User.ID) }

// actions returns those of the user that the caller may do, in their order.
func (u userView) actions() (list []*action) {
	for i := range actions {
		if a := &actions[i]; slices.Contains(u.AllowedActions, a.allowed) && (a.offer == nil || a.offer(&u)) {
			list = append(list, a)
		}
	}
	return list
}

// offered returns the actions of the user in two: the most likely ones, and the others,
// among them all that take something away.
func (u userView) offered() (near, far []*action) {
	for i, a := range u.actions() {
		if i < 2 && !a.grave {
			near = append(near, a)
		} else {
			far = append(far, a)
		}
	}
	return near, far
}

// mending returns the action that removes an obstacle of the sign-in, nil if the
// caller may do none.
func (u userView) mending(operation string) *action {
	for _, a := range u.actions() {
		if a.operation == operation {
			return a
		}
	}
	return nil
}

// label returns what the action is called: an invitation that is open is sent again.
func (u userView) label(a *action) string {
	if a.path == "/invite" && u.isInvited() {
		return "Invite again"
	}
	return a.label
}

// isInvited reports whether the user has an invitation that can be accepted.
func (u userView) isInvited() bool { return u.Invitation.ExpiresAt > u.now }

// obstacle returns why the user cannot sign in.
func (u userView) obstacle(r *directory.SignInReason) string {
	switch {
	case r.Code == "user-pending" && u.isInvited():
		return "The user is invited, and has not set a password yet."
	case r.Covers == "source" && r.Source == "":
		return "Too many sign-ins failed from one address, which only readers of events may see. Sign-ins from there are refused until"
	case r.Covers == "source":
		return "Too many sign-ins failed from " + r.Source + ". Sign-ins from there are refused until"
	case r.Covers == "unknown-browsers":
		return "Too many sign-ins failed from browsers in which the user has not signed in. Sign-ins from such browsers are refused until"
	case r.Covers == "second-factor":
		return "Too many codes were wrong in browsers in which the user has not signed in. Codes from such browsers are refused until"
	}
	return obstacleWords[r.Code]
}

// isLimited reports whether the user can sign in, though not from everywhere.
func (u userView) isLimited() bool {
	return !u.SignIn.CanSignIn && !slices.ContainsFunc(u.SignIn.Reasons, func(r directory.SignInReason) bool { return r.Covers == "" })
}

// obstacleWords are the reasons for which somebody cannot sign in.
var obstacleWords = map[string]string{
	"tenant-suspended":                 "The tenant is suspended. An operator can resume it.",
	"user-suspended":                   "The user is suspended.",
	"user-pending":                     "The user has not set a password yet.",
	"invitation-expired":               "The invitation has expired.",
	"no-password":                      "The user has neither a password nor a passkey.",
	"second-factor-enrolment-required": "The tenant asks for a second factor, and the user has none. They add one at the next sign-in.",
}

// heldBack returns the permissions that would show what the page does not.
func (u userView) heldBack() (permissions []string) {
	for _, part := range []struct {
		readable   bool
		permission rolecall.Permission
	}{
		{u.AssignmentsReadable, rolecall.RolesRead}, {u.SessionsReadable, rolecall.SessionsRead},
		{u.FactorsReadable, rolecall.UsersFactors}, {u.EventsReadable, rolecall.EventsRead},
	} {
		if !part.readable {
			permissions = append(permissions, part.permission.String())
		}
	}
	return permissions
}

// factorWords are the second factors in words.
func factorWords(f *directory.FactorSummary) string {
	var has []string
	if f.TOTP {
		has = append(has, "an authenticator app")
	}
	if f.Passkeys > 0 {
		has = append(has, plural(f.Passkeys, "passkey"))
	}
	if has == nil {
		return "None"
	}
	if f.RecoveryCodes > 0 {
		has = append(has, plural(f.RecoveryCodes, "recovery code"))
	}
	return sentence(listed(has))
}

// address returns the page of the user, or one below it.
func (u userView) address(below string) string {
	return userAddress(u.pageContext, u.Overview.User.ID, below)
}

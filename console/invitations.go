package console

import (
	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) invitationPages() []page {
	return []page{
		{path: "/{tenant}/invitations", operation: "InvitationsController_listInvitations", query: pageParameters, show: c.showInvitations},
	}
}

// invitationsView is the data of the list of open invitations.
type invitationsView struct {
	frame
	pageLinks
	page  rolecall.Page[rolecall.Invited]
	names names // names of the users who sent the invitations
}

func (c *console) showInvitations(v *pageContext) (err error) {
	list := invitationsView{}
	if v.faults == nil {
		after, limit := v.after, v.limit
		if list.page, err = c.directory.Invitations(v.ctx, v.call, directory.InvitationListing{After: after, Limit: limit}); err != nil {
			return err
		}
	}
	authors := make([]rolecall.AnyID, len(list.page.Items))
	for i := range list.page.Items {
		authors[i] = rolecall.AnyID(list.page.Items[i].CreatedBy)
	}
	if list.names, err = c.namesOf(v, authors); err != nil {
		return err
	}
	return c.show(v, msg("nav.invitations"), usersSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(nil, list.page.Next)
		return invitationsPage(list)
	})
}

// mayBeInvited reports whether the user is pending. An invitation only helps pending users.
// mayBeInvited also returns true if the caller may not read the status.
func mayBeInvited(u *rolecall.User, sight rolecall.UserMembers) bool {
	return !sight.Has(rolecall.MemberStatus) || u.Status == rolecall.UserPending
}

func (c *console) newUserPages() []page {
	return []page{
		{path: "/{tenant}/users/create", operation: "UsersController_createUser", needsKey: true, show: c.showNewUser, act: c.createUser},
	}
}

// newUserView is the data of the form for a new user.
type newUserView struct {
	frame
	reach       rolecall.Reach // the reach in which the caller may create users
	departments []string       // the departments that the form suggests
}

func (c *console) showNewUser(v *pageContext) (err error) {
	reach := v.call.Reach(rolecall.UsersCreate)
	view := newUserView{reach: reach, departments: reach.Departments()}
	if reach.IsEverywhere() {
		if view.departments, err = c.directory.Departments(v.ctx, v.call); err != nil {
			return err
		}
	}
	return c.show(v, msg("new-user.title"), usersSection, func(f frame) templ.Component {
		view.frame = f
		return newUserPage(view)
	})
}

// newUserLabel returns the label of the form field of a member in the form for a new user.
func newUserLabel(m rolecall.UserMember) string {
	if m == rolecall.MemberExternalID {
		return msg("new-user.external-id")
	}
	return memberName(m)
}

func (c *console) createUser(v *pageContext) error {
	metadata, faults := pairsOf(typedPairs(v, fieldPairKey, fieldPairValue))
	draft := rolecall.UserDraft{
		Email: v.form.Get("email"), Name: v.form.Get("name"), Metadata: metadata, Invite: v.form.Get("invite") == "true",
	}
	for m := range rolecall.OptionalTexts.All() {
		*m.OfDraft(&draft) = orNil(v.form.Get(m.String()))
	}
	if faults != nil {
		return append(faults, draft.Check(v.call.Tenant.Settings.NameMinimum())...).Err()
	}
	created, err := c.directory.CreateUser(v.ctx, v.call, v.key(), draft)
	if err != nil {
		return err
	}
	word := "user-created"
	if draft.Invite {
		word = "user-invited"
	}
	return v.redirect(userAddress(v, created.Value.ID, "") + "?done=" + word)
}

// invites reports whether the checkbox that invites the new user is checked. At first it is
// checked if the caller may invite users.
func (f frame) invites() bool {
	return f.may(rolecall.UsersInvite) && (f.problem == nil || f.form.Get("invite") == "true")
}

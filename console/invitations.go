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

// invitationsView is what the page of open invitations shows.
type invitationsView struct {
	frame
	pageLinks
	page  rolecall.Page[rolecall.Invited]
	names names // of who invited
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
	return c.show(v, "Invitations", "Users", func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(nil, list.page.Next)
		return invitationsPage(list)
	})
}

// mayBeInvited reports whether an invitation is of use to the user, as far as the
// caller may know.
func mayBeInvited(u *rolecall.User, sight rolecall.UserMembers) bool {
	return !sight.Has(rolecall.MemberStatus) || u.Status == rolecall.UserPending
}

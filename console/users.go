package console

import (
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) usersPages() []page {
	return []page{
		{path: "/{tenant}/users", operation: "UsersController_listUsers", query: usersQuery, show: c.showUsers},
	}
}

// userParameters are those of the list that stay in its addresses, in the order in
// which they are written there. A cursor holds for one combination of them.
var userParameters = []string{"q", "status", "department", "role", "sort"}

// usersView is what the page of users shows.
type usersView struct {
	frame
	pageLinks
	page        directory.UserPage
	withheld    rolecall.UserMembers // of some user on the page
	roles       []rolecall.Role      // to filter by; nil if the caller may not read them
	departments []string             // to filter by
}

func (c *console) showUsers(v *pageContext) error {
	if v.request.URL.Query().Get("status") == string(rolecall.UserDeleted) {
		return v.redirect(v.path("/users/deleted"))
	}
	list := usersView{}
	if v.faults == nil {
		listing := v.userListing()
		if v.fragment() == "count" { // asked for apart: it takes longer than the page
			listing.Count, listing.Limit = true, 1
		}
		page, err := c.directory.Users(v.ctx, v.call, listing)
		if err != nil {
			return err
		}
		list.page = page
	}
	for i := range list.page.Items {
		list.withheld |= rolecall.AllUserMembers &^ v.call.ListSight(&list.page.Items[i])
	}
	if v.fragment() == "" {
		if err := c.filters(v, &list); err != nil {
			return err
		}
	}
	return c.show(v, "Users", "Users", func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(userParameters, list.page.Next)
		return usersPage(list)
	})
}

// filters loads what to filter the list by.
func (c *console) filters(v *pageContext, list *usersView) (err error) {
	if list.departments, err = c.directory.Departments(v.ctx, v.call); err != nil || authz.ReadRoles.Authorize(v.call.Principal) != nil {
		return err
	}
	roles, err := c.directory.Roles(v.ctx, v.call, directory.RoleListing{ByName: true, Limit: rolecall.MaxLimit})
	list.roles = roles.Items
	return err
}

// isFiltered reports whether the list shows only some users.
func (l usersView) isFiltered() bool {
	return slices.ContainsFunc([]string{"q", "status", "department", "role"}, func(name string) bool { return l.asked(name) != "" })
}

// countWords says how many users the list has; empty if that is to be asked for.
func (l usersView) countWords() string {
	switch total := l.page.Total; {
	case total != nil && total.Exact:
		return plural(total.Count, "user")
	case total != nil:
		return "More than " + plural(total.Count, "user")
	case l.page.Next == nil && l.asked("cursor") == "" && l.faults == nil:
		return plural(len(l.page.Items), "user")
	}
	return ""
}

// countSwap is how the count takes the place of the one before: what is to be asked
// for leaves it in sight until then.
func (l usersView) countSwap() string {
	if l.countWords() == "" && l.faults == nil {
		return "beforeend:#count"
	}
	return "innerHTML:#count"
}

// notes are what the page says above the list, of what is not shown and why.
func (l usersView) notes() (notes []string) {
	if l.page.RestrictedBy != 0 {
		notes = append(notes, "Only users whose "+listed(lowerNames(l.page.RestrictedBy))+" you may read are searched and sorted.")
	}
	if permissions := reads(l.withheld & listMembers); permissions != nil {
		notes = append(notes, "Some of this is held back: "+listed(permissions)+" would show it.")
	}
	return notes
}

// listMembers are those that the list has a column of.
var listMembers = rolecall.SetOf(rolecall.MemberEmail, rolecall.MemberName, rolecall.MemberDepartment, rolecall.MemberStatus, rolecall.MemberCreatedAt)

// reads returns the permissions that show the members.
func reads(members rolecall.UserMembers) (permissions []string) {
	for m := range members.All() {
		permissions = append(permissions, m.Read().String())
	}
	return permissions
}

// firstAdvice says how there come to be users.
func (l usersView) firstAdvice() string {
	if l.may(rolecall.UsersCreate) {
		return "Create the first one, and they are invited by mail."
	}
	return "Users appear here once they are created."
}

func lowerNames(members rolecall.UserMembers) (names []string) {
	for m := range members.All() {
		names = append(names, m.String())
	}
	return names
}

// statuses are those to filter by.
func (l usersView) statuses() []rolecall.UserStatus {
	list := []rolecall.UserStatus{rolecall.UserActive, rolecall.UserPending, rolecall.UserSuspended}
	if l.may(rolecall.UsersRestore) {
		list = append(list, rolecall.UserDeleted) // which has a page of its own
	}
	return list
}

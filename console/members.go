package console

import (
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) memberPages() []page {
	return []page{
		{path: "/{tenant}/groups/{id}/users", operation: "GroupsController_listGroupUsers", query: holdersQuery, show: c.showMembers},
		{path: "/{tenant}/groups/{id}/users/add", operation: "UsersController_listUsers", show: c.showAddable},
		{path: "/{tenant}/groups/{id}/users/{userId}", operation: "GroupsController_addGroupUser", show: c.askAddMember, act: c.addMember},
		{path: "/{tenant}/groups/{id}/users/{userId}/remove", operation: "GroupsController_removeGroupUser", show: c.askRemoveMember, act: c.removeMember},
		{path: "/{tenant}/users/{id}/groups", operation: "UsersController_listUserGroups", query: pageParameters, show: c.showUserGroups},
		{path: "/{tenant}/users/{id}/groups/add", operation: "GroupsController_listGroups", show: c.showJoinable},
	}
}

// membersView is the data of the list of a group's members.
type membersView struct {
	usersView
	group rolecall.Group
}

func (c *console) showMembers(v *pageContext) error {
	group, err := c.directory.Group(v.ctx, v.call, v.groupID)
	if err != nil {
		return err
	}
	list := membersView{group: group}
	if v.faults == nil {
		listing := v.userListing()
		if v.fragment() == "count" {
			listing.Count, listing.Limit = true, 1
		}
		if list.page, err = c.directory.GroupUsers(v.ctx, v.call, v.groupID, listing); err != nil {
			return err
		}
	}
	for i := range list.page.Items {
		list.withheld |= rolecall.AllUserMembers &^ v.call.ReadableListMembers(&list.page.Items[i])
	}
	if authz.RemoveMember.Authorize(v.call.Principal) == nil && !isFilled(&group) {
		list.removal = func(u *rolecall.User) string { return memberAddress(v, group.ID, u.ID, "/remove") }
	}
	return c.show(v, msg("groups.members-of", "Group", group.Name), groupsSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(userParameters, list.page.Next)
		return membersPage(list)
	})
}

// memberAddress returns the address of the form that adds the user to the group. With /remove as below, it is that of the
// form that removes the user.
func memberAddress(v *pageContext, group rolecall.GroupID, user rolecall.UserID, below string) string {
	return groupAddress(v, group, "/users/"+user.String()+below)
}

// addableView is the data of the page that lists the users to add to a group.
type addableView struct {
	frame
	group   rolecall.Group
	page    directory.UserPage
	members []rolecall.UserID // those of the users who are members already
}

// showAddable shows the users that match the search. The users and the members have the same order. So the first
// members that match include all members among the first users that match.
func (c *console) showAddable(v *pageContext) (err error) {
	view := addableView{}
	if view.group, err = c.directory.Group(v.ctx, v.call, v.groupID); err != nil {
		return err
	}
	listing := directory.UserListing{Words: typedWords(v), Limit: rolecall.DefaultLimit}
	if view.page, err = c.directory.Users(v.ctx, v.call, listing); err != nil {
		return err
	}
	members, err := c.directory.GroupUsers(v.ctx, v.call, v.groupID, listing)
	if err != nil {
		return err
	}
	for i := range members.Items {
		view.members = append(view.members, members.Items[i].ID)
	}
	return c.show(v, msg("groups.add-to", "Group", view.group.Name), groupsSection, func(f frame) templ.Component {
		view.frame = f
		if f.fragment() == "results" {
			f.replaceURL(f.listAddress([]string{"q"}))
		}
		return addablePage(view)
	})
}

// mayAdd reports whether the caller may add the user to groups, at least to those without roles.
func (f frame) mayAdd(u *rolecall.User) bool {
	return f.call.Reach(rolecall.GroupsMembers).Includes(u.Department)
}

// joinableView is the data of the page that lists the groups to which a user can be added.
type joinableView struct {
	frame
	holder
	user    rolecall.UserID
	page    rolecall.Page[rolecall.Group]
	in      []rolecall.GroupID // the groups of the user
	changes bool               // the caller may add the user to groups; the service decides
}

func (c *console) showJoinable(v *pageContext) (err error) {
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	view := joinableView{holder: userHolder(v, &user), user: user.ID, changes: changesMembership(v, &user)}
	query := rolecall.GroupQuery{Words: typedWords(v), ByName: true, Limit: rolecall.DefaultLimit}
	if view.page, err = c.directory.Groups(v.ctx, v.call, query); err != nil {
		return err
	}
	memberships, err := c.directory.UserGroups(v.ctx, v.call, v.userID, nil, rolecall.GroupsOfUserMax)
	if err != nil {
		return err
	}
	for _, m := range memberships.Items {
		view.in = append(view.in, m.Group.ID)
	}
	return c.show(v, msg("groups.add-user", "Name", view.name), usersSection, func(f frame) templ.Component {
		view.frame = f
		if f.fragment() == "results" {
			f.replaceURL(f.listAddress([]string{"q"}))
		}
		return joinablePage(view)
	})
}

// userGroupsView is the data of the list of a user's groups.
type userGroupsView struct {
	frame
	pageLinks
	holder
	memberships
	names names // names of those who added the user
}

// memberships are groups of a user.
type memberships struct {
	user    rolecall.UserID
	list    []rolecall.Membership
	changes bool // the caller may add the user to groups and remove the user from them; the service decides
}

func (c *console) showUserGroups(v *pageContext) error {
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	view := userGroupsView{holder: userHolder(v, &user), memberships: memberships{user: user.ID, changes: changesMembership(v, &user)}}
	var next *rolecall.Position
	if v.faults == nil {
		page, err := c.directory.UserGroups(v.ctx, v.call, v.userID, v.after, v.limit)
		if err != nil {
			return err
		}
		view.memberships.list, next = page.Items, page.Next
	}
	var ids []rolecall.AnyID
	for _, m := range view.memberships.list {
		ids = append(ids, rolecall.AnyID(m.AddedBy))
	}
	if view.names, err = c.namesOf(v, ids); err != nil {
		return err
	}
	return c.show(v, msg("groups.of", "Name", view.name), usersSection, func(f frame) templ.Component {
		view.frame = f
		view.pageLinks = f.pagesOf(nil, next)
		return userGroupsPage(view)
	})
}

// changesMembership reports whether the caller may add the user to groups and remove the user from them, at least from
// those without roles. The forms read the group, so the caller must be able to read groups.
func changesMembership(v *pageContext, u *rolecall.User) bool {
	return v.readsGroups() && v.call.Reach(rolecall.GroupsMembers).Includes(u.Department)
}

// membershipsOf returns the groups of the user. It returns nil if the caller may not read them.
func (c *console) membershipsOf(v *pageContext, u *rolecall.User) (*memberships, error) {
	if authz.ReadUserGroups.AuthorizeFor(v.call.Principal, u.ID) != nil {
		return nil, nil
	}
	page, err := c.directory.UserGroups(v.ctx, v.call, u.ID, nil, rolecall.GroupsOfUserMax)
	return &memberships{user: u.ID, list: page.Items, changes: changesMembership(v, u)}, err
}

// groupsShown is the number of groups on the page of a user.
const groupsShown = 8

// membershipView is the data of the forms that add a user to a group and remove a user from it.
type membershipView struct {
	frame
	group    rolecall.Group
	user     rolecall.User
	held     []rolecall.Assignment // the roles of the group
	isMember bool
}

// fieldFrom is the form field and the query parameter with the page to which the form leads back: fromUser for the page
// of the user, otherwise that of the group.
const (
	fieldFrom = "from"
	fromUser  = "user"
)

func (c *console) membershipView(v *pageContext) (view membershipView, err error) {
	if view.group, err = c.directory.Group(v.ctx, v.call, v.groupID); err != nil {
		return view, err
	}
	if view.user, err = c.directory.User(v.ctx, v.call, v.userID); err != nil {
		return view, err
	}
	if view.held, _, err = c.directory.Assignments(v.ctx, v.call, rolecall.HolderOf(v.groupID)); err != nil {
		return view, err
	}
	memberships, err := c.directory.UserGroups(v.ctx, v.call, v.userID, nil, rolecall.GroupsOfUserMax)
	view.isMember = slices.ContainsFunc(memberships.Items, func(m rolecall.Membership) bool { return m.Group.ID == v.groupID })
	return view, err
}

func (c *console) askAddMember(v *pageContext) error {
	return c.showMembership(v, msg("groups.add"), addMemberDialog)
}

func (c *console) askRemoveMember(v *pageContext) error {
	return c.showMembership(v, msg("groups.remove"), removeMemberDialog)
}

func (c *console) showMembership(v *pageContext, title string, form func(membershipView) templ.Component) error {
	view, err := c.membershipView(v)
	if err != nil {
		return err
	}
	return c.show(v, title, groupsSection, func(f frame) templ.Component {
		view.frame = f
		return form(view)
	})
}

func (c *console) addMember(v *pageContext) error {
	if err := c.directory.AddMember(v.ctx, v.call, v.groupID, v.userID); err != nil {
		return err
	}
	return v.redirect(v.afterMembership() + "?done=member-added")
}

func (c *console) removeMember(v *pageContext) error {
	if err := c.directory.RemoveMember(v.ctx, v.call, v.groupID, v.userID); err != nil {
		return err
	}
	return v.redirect(v.afterMembership() + "?done=member-removed")
}

// startedFrom returns the value of fieldFrom in the form or in the address.
func (v *pageContext) startedFrom() string {
	if v.form != nil {
		return v.form.Get(fieldFrom)
	}
	return v.request.URL.Query().Get(fieldFrom)
}

// afterMembership returns the address of the page to which the form about a membership leads back.
func (v *pageContext) afterMembership() string {
	if v.startedFrom() == fromUser {
		return userAddress(v, v.userID, "")
	}
	return groupAddress(v, v.groupID, "")
}

// name returns the name of the user.
func (m membershipView) name() string { return nameOf(m.pageContext, &m.user) }

// addition describes the effect of adding the user.
func (m membershipView) addition() string {
	if len(m.held) == 0 {
		return msg("groups.add-plain")
	}
	return msg("groups.add-roles", "Roles", rolesInLine(m.held))
}

// removal describes the effect of removing the user.
func (m membershipView) removal() string {
	if len(m.held) == 0 {
		return msg("groups.remove-plain")
	}
	return msg("groups.remove-roles", "Roles", rolesInLine(m.held))
}

// hindrance returns the reason why the caller may not add the user, or remove the user if removes is true. It returns
// an empty text if the caller probably may. The service decides.
func (m membershipView) hindrance(removes bool) string {
	switch {
	case isFilled(&m.group):
		return msg("groups.filled")
	case !m.mayAdd(&m.user):
		return msg("assignment.needs", "Permission", rolecall.GroupsMembers.String())
	case removes && !m.isMember:
		return msg("groups.not-member")
	case !removes && m.isMember:
		return msg("groups.is-member")
	case len(m.held) > 0 && !m.call.Reach(rolecall.RolesAssign).Includes(m.user.Department):
		return msg("groups.needs-roles", "Permission", rolecall.RolesAssign.String())
	}
	for _, a := range m.held {
		a.Holder = rolecall.HolderOf(m.user.ID)
		err := authz.RequireAssignable(m.call.Principal, &a)
		if removes {
			err = authz.RequireGrantable(m.call.Principal, &a.Role, a.Reach, m.now)
		}
		if err != nil {
			return detailOf(err)
		}
	}
	return ""
}

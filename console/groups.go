package console

import (
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) groupPages() []page {
	return []page{
		{path: "/{tenant}/groups", operation: "GroupsController_listGroups", query: groupsQuery, show: c.showGroups},
		{path: "/{tenant}/groups/create", operation: "GroupsController_createGroup", needsKey: true, show: c.showNewGroup, act: c.createGroup},
		{path: "/{tenant}/groups/{id}", operation: "GroupsController_getGroup", show: c.showGroup},
		{path: "/{tenant}/groups/{id}/edit", operation: "GroupsController_updateGroup", show: c.showGroupEdit, act: c.editGroup},
		{path: "/{tenant}/groups/{id}/delete", operation: "GroupsController_deleteGroup", show: c.askDeleteGroup, act: c.deleteGroup},
	}
}

// groupParameters are the query parameters that links to the list of groups keep.
var groupParameters = []string{"q", "sort"}

// groupsView is the data of the list of groups.
type groupsView struct {
	frame
	pageLinks
	page rolecall.Page[rolecall.Group]
}

func (c *console) showGroups(v *pageContext) error {
	list := groupsView{}
	if v.faults == nil {
		query := v.groupQuery()
		query.Count = true
		page, err := c.directory.Groups(v.ctx, v.call, query)
		if err != nil {
			return err
		}
		list.page = page
	}
	return c.show(v, msg(groupsSection), groupsSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(groupParameters, list.page.Next)
		return groupsPage(list)
	})
}

// countWords returns the number of groups as text, such as "3 groups".
func (l groupsView) countWords() string {
	switch total := l.page.Total; {
	case total == nil:
		return ""
	case total.Exact:
		return msg("groups.count", "Count", total.Count)
	default:
		return msg("groups.at-least", "Count", total.Count)
	}
}

func (c *console) showNewGroup(v *pageContext) error {
	return c.show(v, msg("groups.new"), groupsSection, newGroupPage)
}

func (c *console) createGroup(v *pageContext) error {
	created, err := c.directory.CreateGroup(v.ctx, v.call, v.key(), rolecall.GroupDraft{
		Name: v.form.Get("name"), Description: v.form.Get("description"), ExternalID: orNil(v.form.Get("externalId")),
	})
	if err != nil {
		return err
	}
	if !v.readsGroups() {
		return v.redirect(v.path("/") + "?done=group-created")
	}
	return v.redirect(groupAddress(v, created.Value.ID, "") + "?done=group-created")
}

// membersShown is the number of members on the page of a group.
const membersShown = 8

// groupView is the data of the pages of one group.
type groupView struct {
	frame
	holder
	group   rolecall.Group
	held    []rolecall.Assignment
	ended   []rolecall.Assignment // expired assignments, the most recently expired one first
	members *directory.UserPage   // the first members; nil if the caller may read no users
	history *history              // nil if the caller may not read events
	source  string                // the name of the connection that fills the group; empty: none, or the caller may not read it
}

// groupView returns the group that the path names, with its roles and its first members.
func (c *console) groupView(v *pageContext) (view groupView, err error) {
	if view.group, err = c.directory.Group(v.ctx, v.call, v.groupID); err != nil {
		return view, err
	}
	view.holder = groupHolder(v, &view.group)
	if view.held, view.ended, err = c.directory.Assignments(v.ctx, v.call, view.id); err != nil {
		return view, err
	}
	if authz.ListGroupUsers.Authorize(v.call.Principal) == nil {
		page, err := c.directory.GroupUsers(v.ctx, v.call, v.groupID, directory.UserListing{Limit: membersShown, Count: true})
		if err != nil {
			return view, err
		}
		view.members = &page
	}
	return view, nil
}

func (c *console) showGroup(v *pageContext) error {
	view, err := c.groupView(v)
	if err != nil {
		return err
	}
	if view.history, err = c.historyOf(v, rolecall.AnyID(view.group.ID), ""); err != nil {
		return err
	}
	if view.source, err = c.sourceName(v, &view.group); err != nil {
		return err
	}
	c.undoTaken(v, view.holder)
	return c.show(v, view.group.Name, groupsSection, func(f frame) templ.Component {
		view.frame = f
		return groupPage(view)
	})
}

// sourceName returns the name of the connection that fills the group. It is empty if no connection does, or if the caller
// may not read it.
func (c *console) sourceName(v *pageContext, g *rolecall.Group) (string, error) {
	if g.Source.Type != rolecall.SourceConnection || authz.ReadConnections.Authorize(v.call.Principal) != nil {
		return "", nil
	}
	connection, err := c.signin.Connection(v.ctx, v.call, rolecall.ConnectionID(g.Source.ID))
	if rolecall.KindOf(err) == rolecall.NotFound { // deleted at the same time
		return "", nil
	}
	return connection.Name, err
}

// isFilled reports whether a directory or a connection fills the group, so that its members cannot be changed here.
func isFilled(g *rolecall.Group) bool { return g.Source != (rolecall.MemberSource{}) }

// address returns the address of the group's page. below is appended to its path.
func (g groupView) address(below string) string {
	return groupAddress(g.pageContext, g.group.ID, below)
}

// withoutMembers explains why the page shows no members.
func (g groupView) withoutMembers() string {
	switch {
	case g.members.Next != nil || !g.call.Visible().IsEverywhere():
		return msg("groups.no-visible-members")
	case g.adds() && !isFilled(&g.group):
		return msg("groups.no-members-advice")
	}
	return msg("groups.no-members")
}

// memberWords returns the number of members that the caller may read as text. It returns an empty text if the number
// is not known.
func (g groupView) memberWords() string {
	switch total := g.members.Total; {
	case total.Count == 0 && !total.Exact:
		return "" // the count ended early, so there can be members
	case total.Count == 0:
		return msg("groups.no-members")
	case !total.Exact:
		return msg("user.at-least", "Count", total.Count)
	default:
		return msg("user.count", "Count", total.Count)
	}
}

// adds reports whether the caller may add some users to groups.
func (f frame) adds() bool { return f.may(rolecall.GroupsMembers) && f.readsGroups() }

// readsGroups reports whether the caller may read groups.
func (v *pageContext) readsGroups() bool { return authz.ReadGroups.Authorize(v.call.Principal) == nil }

// groupAddress returns the address of the group's page. below is appended to its path.
func groupAddress(v *pageContext, id rolecall.GroupID, below string) string {
	return v.path("/groups/" + id.String() + below)
}

// hindrances returns the reasons why the caller may not update or delete the group, without duplicates.
func (g groupView) hindrances() (reasons []string) {
	for _, reason := range []string{g.updateHindrance(), g.deleteHindrance()} {
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// updateHindrance returns the reason why the caller may not change the group. It returns an empty text if the caller
// may.
func (g groupView) updateHindrance() string {
	if authz.UpdateGroup.Authorize(g.call.Principal) != nil {
		return msg("assignment.needs", "Permission", rolecall.GroupsUpdate.String())
	}
	return ""
}

// deleteHindrance returns the reason why the caller may not delete the group. It returns an empty text if the caller
// may.
func (g groupView) deleteHindrance() string {
	if authz.DeleteGroup.Authorize(g.call.Principal) != nil {
		return msg("assignment.needs", "Permission", rolecall.GroupsDelete.String())
	}
	if isFilled(&g.group) {
		return msg("groups.filled")
	}
	for i := range g.held {
		if err := authz.RequireGrantable(g.call.Principal, &g.held[i].Role, g.held[i].Reach, g.now); err != nil {
			return detailOf(err)
		}
	}
	return ""
}

func (c *console) showGroupEdit(v *pageContext) error {
	view, err := c.groupView(v)
	if err != nil {
		return err
	}
	return c.show(v, msg("user.edit", "Name", view.group.Name), groupsSection, func(f frame) templ.Component {
		view.frame = f
		return groupEditPage(view)
	})
}

func (c *console) editGroup(v *pageContext) error {
	var patch rolecall.GroupPatch
	if name, changed := typed(v, "name"); changed {
		patch.Name = rolecall.Some(name)
	}
	if description, changed := typed(v, "description"); changed {
		patch.Description = rolecall.Some(description)
	}
	if externalID, changed := typed(v, "externalId"); changed {
		patch.ExternalID = rolecall.Some(orNil(externalID))
	}
	if _, err := c.directory.UpdateGroup(v.ctx, v.call, v.groupID, patch, match(v, v.groupTag)); err != nil {
		return err
	}
	return v.redirect(groupAddress(v, v.groupID, "") + "?done=saved")
}

func (c *console) askDeleteGroup(v *pageContext) error {
	view, err := c.groupView(v)
	if err != nil {
		return err
	}
	return c.show(v, msg("groups.delete-title", "Group", view.group.Name), groupsSection, func(f frame) templ.Component {
		view.frame = f
		return groupDeleteDialog(view)
	})
}

func (c *console) deleteGroup(v *pageContext) error {
	if err := c.directory.DeleteGroup(v.ctx, v.call, v.groupID, v.form.Get("force") == "true", nil); err != nil {
		return err
	}
	return v.redirect(v.path("/groups") + "?done=group-deleted")
}

// deletion describes the effect of the deletion in words.
func (g groupView) deletion() string {
	if len(g.held) == 0 {
		return msg("groups.delete-plain")
	}
	return msg("groups.delete-roles", "Roles", rolesInLine(g.held))
}

// rolesInLine names the roles of the assignments.
func rolesInLine(held []rolecall.Assignment) string {
	var roles []string
	for i := range held {
		roles = append(roles, held[i].Role.Name)
	}
	return listedInLine(roles)
}

// groupNamed returns words for the group, such as "the group Support". They say so if it was deleted or the caller may not
// read it. They are empty for no group.
func (c *console) groupNamed(v *pageContext, id rolecall.GroupID) (string, error) {
	f := frame{pageContext: v}
	if id.IsZero() {
		return "", nil
	}
	if !v.readsGroups() {
		return f.missingGroup(), nil
	}
	group, err := c.directory.Group(v.ctx, v.call, id)
	if rolecall.KindOf(err) == rolecall.NotFound {
		return f.missingGroup(), nil
	}
	return msg("groups.named", "Group", group.Name), err
}

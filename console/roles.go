package console

import (
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) rolePages() []page {
	return []page{
		{path: "/{tenant}/roles", operation: "RolesController_listRoles", query: rolesQuery, show: c.showRoles},
		{path: "/{tenant}/roles/{id}", operation: "RolesController_getRole", show: c.showRole},
		{path: "/{tenant}/roles/{id}/users", operation: "RolesController_listRoleUsers", query: holdersQuery, show: c.showHolders},
	}
}

// roleParameters are those of the list of roles, as userParameters are of users.
var roleParameters = []string{"q", "sort"}

// rolesView is what the page of roles shows.
type rolesView struct {
	frame
	pageLinks
	page rolecall.Page[rolecall.Role]
}

func (c *console) showRoles(v *pageContext) error {
	list := rolesView{}
	if v.faults == nil {
		listing := v.roleListing()
		listing.Count = true
		page, err := c.directory.Roles(v.ctx, v.call, listing)
		if err != nil {
			return err
		}
		list.page = page
	}
	return c.show(v, "Roles", "Roles", func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(roleParameters, list.page.Next)
		return rolesPage(list)
	})
}

// countWords says how many roles the list has.
func (l rolesView) countWords() string {
	switch total := l.page.Total; {
	case total == nil:
		return ""
	case total.Exact:
		return plural(total.Count, "role")
	default:
		return "More than " + plural(total.Count, "role")
	}
}

// roleView is what the page of one role shows.
type roleView struct {
	frame
	role    rolecall.Role
	holders *rolecall.Total // users who hold it, as far as the caller may know of them; nil if they may not
}

func (c *console) showRole(v *pageContext) error {
	view, err := c.roleView(v)
	if err != nil {
		return err
	}
	return c.show(v, view.role.Name, "Roles", func(f frame) templ.Component {
		view.frame = f
		return rolePage(view)
	})
}

// roleView returns the role of the path, and how many hold it.
func (c *console) roleView(v *pageContext) (view roleView, err error) {
	if view.role, err = c.directory.Role(v.ctx, v.call, v.roleID); err != nil {
		return view, err
	}
	if authz.ListRoleUsers.Authorize(v.call.Principal) == nil {
		page, err := c.directory.RoleUsers(v.ctx, v.call, v.roleID, directory.UserListing{Limit: 1, Count: true})
		if err != nil {
			return view, err
		}
		view.holders = page.Total
	}
	return view, nil
}

// address returns the page of the role, or one below it.
func (r roleView) address(below string) string { return r.path("/roles/" + r.role.ID.String() + below) }

// hindrance returns why the caller may not do with the role what needs the
// permission, in words; empty if they may.
func (r roleView) hindrance(needed rolecall.Permission) string {
	switch err := authz.RequireGrantable(r.call.Principal, &r.role, rolecall.Everywhere(), rolecall.Never); {
	case r.role.System:
		return rolecall.ErrSystemRole.Detail
	case !r.may(needed):
		return "Your roles do not allow this: it needs " + needed.String() + "."
	case err != nil:
		return detailOf(err)
	}
	return ""
}

// hindrances returns why the caller may not do something with the role, each reason
// once.
func (r roleView) hindrances() []string {
	var reasons []string
	for _, needed := range []rolecall.Permission{rolecall.RolesUpdate, rolecall.RolesDelete} {
		if reason := r.hindrance(needed); reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// holderWords says how many users hold the role.
func (r roleView) holderWords() string {
	switch {
	case r.holders == nil:
		return ""
	case r.holders.Count == 0:
		return "Nobody"
	case !r.holders.Exact:
		return "More than " + plural(r.holders.Count, "user")
	}
	return plural(r.holders.Count, "user")
}

// holdersView is what the page of a role's holders shows.
type holdersView struct {
	usersView
	role rolecall.Role
}

func (c *console) showHolders(v *pageContext) error {
	role, err := c.directory.Role(v.ctx, v.call, v.roleID)
	if err != nil {
		return err
	}
	list := holdersView{role: role}
	if v.faults == nil {
		listing := v.userListing()
		if v.fragment() == "count" {
			listing.Count, listing.Limit = true, 1
		}
		if list.page, err = c.directory.RoleUsers(v.ctx, v.call, v.roleID, listing); err != nil {
			return err
		}
	}
	return c.show(v, "Holders of "+role.Name, "Roles", func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(userParameters, list.page.Next)
		return holdersPage(list)
	})
}

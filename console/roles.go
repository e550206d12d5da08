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

func (c *console) roleFormPages() []page {
	return []page{
		{path: "/{tenant}/roles/create", operation: "RolesController_createRole", needsKey: true, show: c.showNewRole, act: c.createRole},
		{path: "/{tenant}/roles/{id}/edit", operation: "RolesController_updateRole", show: c.showRoleEdit, act: c.editRole},
		{path: "/{tenant}/roles/{id}/delete", operation: "RolesController_deleteRole", show: c.askDeleteRole, act: c.deleteRole},
	}
}

func (c *console) showNewRole(v *pageContext) error {
	return c.show(v, "New role", "Roles", func(f frame) templ.Component {
		return newRolePage(roleView{frame: f})
	})
}

func (c *console) createRole(v *pageContext) error {
	created, err := c.directory.CreateRole(v.ctx, v.call, v.key(), rolecall.RoleDraft{
		Key: orNil(v.form.Get("key")), Name: v.form.Get("name"), Description: v.form.Get("description"),
		Permissions: lines(v.form["permissions"]), Grants: lines(v.form["grants"]),
	})
	if err != nil {
		return err
	}
	if v.call.Reach(rolecall.RolesRead).IsNowhere() {
		return v.redirect(v.path("/") + "?done=role-created")
	}
	return v.redirect(v.path("/roles/"+created.Value.ID.String()) + "?done=role-created")
}

func (c *console) showRoleEdit(v *pageContext) error {
	role, err := c.directory.Role(v.ctx, v.call, v.roleID)
	if err != nil {
		return err
	}
	return c.show(v, "Edit "+role.Name, "Roles", func(f frame) templ.Component {
		return roleEditPage(roleView{frame: f, role: role})
	})
}

func (c *console) editRole(v *pageContext) error {
	var patch rolecall.RolePatch
	if name, changed := typed(v, "name"); changed {
		patch.Name = rolecall.Some(name)
	}
	if description, changed := typed(v, "description"); changed {
		patch.Description = rolecall.Some(description)
	}
	if permissions, changed := typedSet(v, "permissions"); changed {
		patch.Permissions = rolecall.Some(permissions)
	}
	if grants, changed := typedSet(v, "grants"); changed {
		patch.Grants = rolecall.Some(grants)
	}
	if _, err := c.directory.UpdateRole(v.ctx, v.call, v.roleID, patch, match(v, v.roleTag)); err != nil {
		return err
	}
	return v.redirect(v.path("/roles/"+v.roleID.String()) + "?done=saved")
}

func (c *console) askDeleteRole(v *pageContext) error {
	view, err := c.roleView(v)
	if err != nil {
		return err
	}
	return c.show(v, "Delete "+view.role.Name, "Roles", func(f frame) templ.Component {
		view.frame = f
		return roleDeleteDialog(view)
	})
}

func (c *console) deleteRole(v *pageContext) error {
	if err := c.directory.DeleteRole(v.ctx, v.call, v.roleID, v.form.Get("force") == "true", nil); err != nil {
		return err
	}
	return v.redirect(v.path("/roles") + "?done=role-deleted")
}

// isHeld reports whether the role is to be taken from somebody when it is deleted:
// those that the caller knows of, or others that were found by trying.
func (r roleView) isHeld() bool {
	return r.holders != nil && r.holders.Count > 0 || r.problem != nil && r.problem.Code == rolecall.ErrRoleInUse.Code
}

// deletion says what the deletion will do.
func (r roleView) deletion() string {
	const taken = "It is taken from all of them and from service accounts, and what only it allows them ends at once. This cannot be undone."
	switch {
	case r.holders != nil && r.holders.Count == 1:
		return "1 user holds it. " + taken
	case r.holders != nil && r.holders.Count > 1:
		return r.holderWords() + " hold it. " + taken
	case r.isHeld():
		return "Somebody holds it of whom you may not know, or a service account. " + taken
	case r.holders == nil:
		return "You may not know who holds it. Should somebody, you are asked again. This cannot be undone."
	}
	return "Nobody whom you may know of holds it. This cannot be undone."
}

// permissionGroup is a part of the editor.
type permissionGroup struct {
	title       string
	permissions []rolecall.Permission
}

// applicationsTitle is the group of what only applications know.
const applicationsTitle = "Applications"

// resourceTitles are the groups of permissions by their resource.
var resourceTitles = map[string]string{
	"users": "Users", "roles": "Roles", "sessions": "Sessions", "service-accounts": "Service accounts", "events": "Events", "tenant": "Tenant", "*": "Everything",
}

// permissionTitle returns the group that the permission is in.
func permissionTitle(p rolecall.Permission) string {
	switch {
	case !p.Own() && p != rolecall.AllApplications:
		return applicationsTitle
	case p.Field != "":
		return "Single members of users"
	}
	return resourceTitles[p.Resource]
}

// permissionGroups are Rolecall's own permissions as the editor offers them.
var permissionGroups = func() (groups []permissionGroup) {
	for _, p := range append(rolecall.OwnPermissions(), rolecall.AllOwn, rolecall.AllApplications) {
		title := permissionTitle(p)
		i := slices.IndexFunc(groups, func(g permissionGroup) bool { return g.title == title })
		if i < 0 {
			i, groups = len(groups), append(groups, permissionGroup{title: title})
		}
		if !slices.Contains(groups[i].permissions, p) {
			groups[i].permissions = append(groups[i].permissions, p)
		}
	}
	return groups
}()

// others returns those shown that have no box of their own.
func (s setChange) others() []string {
	return slices.DeleteFunc(slices.Clone(s.shown), func(text string) bool {
		return slices.ContainsFunc(permissionGroups, func(g permissionGroup) bool {
			return slices.ContainsFunc(g.permissions, func(p rolecall.Permission) bool { return p.String() == text })
		})
	})
}

// has reports whether the permission is shown as one of the set.
func (s setChange) has(p rolecall.Permission) bool { return slices.Contains(s.shown, p.String()) }

// covering returns another one of the set that covers the permission, empty for none.
func (s setChange) covering(p rolecall.Permission) string {
	for _, text := range s.shown {
		if held, err := rolecall.ParsePermission(text); err == nil && held != p && held.Covers(p) {
			return text
		}
	}
	return ""
}

// shows reports whether one of the group is shown as one of the set.
func (g permissionGroup) shows(s setChange) bool { return slices.ContainsFunc(g.permissions, s.has) }

// mayGive reports whether the caller may put the permission in a role.
func (r roleView) mayGive(p rolecall.Permission) bool {
	_, missing := r.call.MissingFor([]rolecall.Permission{p}, rolecall.Everywhere(), rolecall.Never, true)
	return !missing
}

// isBounded reports whether there is a permission that the caller may not put in a
// role.
func (r roleView) isBounded() bool {
	return slices.ContainsFunc(permissionGroups, func(g permissionGroup) bool {
		return slices.ContainsFunc(g.permissions, func(p rolecall.Permission) bool { return !r.mayGive(p) })
	})
}

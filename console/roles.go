package console

import (
	"slices"
	"strings"

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

// roleParameters are the query parameters that links to the list of roles keep.
var roleParameters = []string{"q", "sort"}

// rolesView is the data of the list of roles.
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
	return c.show(v, msg(rolesSection), rolesSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(roleParameters, list.page.Next)
		return rolesPage(list)
	})
}

// countWords returns the number of roles as text, such as "3 roles".
func (l rolesView) countWords() string {
	switch total := l.page.Total; {
	case total == nil:
		return ""
	case total.Exact:
		return msg("roles.count", "Count", total.Count)
	default:
		return msg("roles.at-least", "Count", total.Count)
	}
}

// roleView is the data of the page of one role.
type roleView struct {
	frame
	role    rolecall.Role
	left    int             // the number of permissions that the copy of another role leaves out
	holders *rolecall.Total // the number of users with the role that the caller may read; nil if the caller may read no users
	history *history        // nil if the caller may not read events
}

func (c *console) showRole(v *pageContext) error {
	view, err := c.roleView(v)
	if err != nil {
		return err
	}
	if view.history, err = c.historyOf(v, rolecall.AnyID(view.role.ID), ""); err != nil {
		return err
	}
	return c.show(v, view.role.Name, rolesSection, func(f frame) templ.Component {
		view.frame = f
		return rolePage(view)
	})
}

// roleView returns the role that the path names, with the number of users who have it.
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

// address returns the address of the role's page. below is appended to its path.
func (r roleView) address(below string) string { return r.path("/roles/" + r.role.ID.String() + below) }

// hindrance returns the reason why the caller may not change or delete the role. needed is
// the permission that the operation needs. hindrance returns an empty text if the caller
// may.
func (r roleView) hindrance(needed rolecall.Permission) string {
	switch err := authz.RequireGrantable(r.call.Principal, &r.role, rolecall.Everywhere(), rolecall.Never); {
	case r.role.System:
		return rolecall.ErrSystemRole.Detail
	case !r.may(needed):
		return msg("assignment.needs", "Permission", needed.String())
	case err != nil:
		return detailOf(err)
	case needed == rolecall.RolesDelete && r.call.Tenant.Settings.SecondFactor.Names(r.role.ID):
		return rolecall.ErrRoleDemandsFactor.Detail
	}
	return ""
}

// hindrances returns the reasons why the caller may not update or delete the role, without
// duplicates.
func (r roleView) hindrances() []string {
	var reasons []string
	for _, needed := range []rolecall.Permission{rolecall.RolesUpdate, rolecall.RolesDelete} {
		if reason := r.hindrance(needed); reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// holderWords returns the number of users with the role as text. It returns an empty text
// if the number is not known.
func (r roleView) holderWords() string {
	switch {
	case r.holders == nil || r.holders.Count == 0 && !r.holders.Exact:
		return "" // the count ended early, so there can be users with the role
	case r.holders.Count == 0:
		return msg("roles.no-users")
	case !r.holders.Exact:
		return msg("user.at-least", "Count", r.holders.Count)
	}
	return msg("user.count", "Count", r.holders.Count)
}

// holdersView is the data of the page of a role's holders.
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
	return c.show(v, msg("roles.holders", "Role", role.Name), rolesSection, func(f frame) templ.Component {
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

func (c *console) showNewRole(v *pageContext) (err error) {
	view := roleView{}
	if v.form == nil && v.request.URL.Query().Has("from") {
		if view.left, err = c.fillWithRole(v); err != nil {
			return err
		}
	}
	return c.show(v, msg("roles.new"), rolesSection, func(f frame) templ.Component {
		view.frame = f
		return newRolePage(view)
	})
}

// clonedName returns the name for a copy of the role. It cuts the name to RoleNameMax
// characters.
func clonedName(name string) string {
	copied := []rune(msg("roles.copy-of", "Role", name))
	return strings.TrimSpace(string(copied[:min(len(copied), rolecall.RoleNameMax)]))
}

// fillWithRole fills the form for a new role with the values of the role that the query
// parameter "from" names. It leaves out the permissions that the caller may not give to a
// role. left is the number of permissions left out.
func (c *console) fillWithRole(v *pageContext) (left int, err error) {
	id, err := rolecall.ParseID[rolecall.Role](v.request.URL.Query().Get("from"))
	if err != nil {
		return 0, rolecall.ErrNotFound
	}
	role, err := c.directory.Role(v.ctx, v.call, id)
	if err != nil {
		return 0, err
	}
	form := roleView{frame: frame{pageContext: v}}
	givable := func(permissions []rolecall.Permission) []string {
		kept := slices.DeleteFunc(slices.Clone(permissions), func(p rolecall.Permission) bool { return !form.mayGive(p) })
		left += len(permissions) - len(kept)
		return texts(kept)
	}
	v.form = map[string][]string{
		"name": {clonedName(role.Name)}, "description": {role.Description},
		"permissions": givable(role.Permissions), "grants": givable(role.Grants),
	}
	return left, nil
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
	return c.show(v, msg("user.edit", "Name", role.Name), rolesSection, func(f frame) templ.Component {
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
	return c.show(v, msg("roles.delete-title", "Role", view.role.Name), rolesSection, func(f frame) templ.Component {
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

// isHeld reports whether the deletion of the role also removes assignments. It returns true
// if the caller can read a user with the role, or if an attempt to delete the role has
// failed because the role is assigned.
func (r roleView) isHeld() bool {
	return r.holders != nil && r.holders.Count > 0 || r.problem != nil && r.problem.Code == rolecall.ErrRoleInUse.Code
}

// deletion describes the effect of the deletion in words.
func (r roleView) deletion() string {
	switch {
	case r.holders != nil && r.holders.Count > 0 && r.holders.Exact:
		return msg("roles.delete-held", "Count", r.holders.Count)
	case r.holders != nil && r.holders.Count > 0:
		return msg("roles.delete-at-least", "Count", r.holders.Count)
	case r.isHeld():
		return msg("roles.delete-hidden")
	case r.holders == nil || !r.holders.Exact:
		return msg("roles.delete-unknown")
	}
	if r.call.Visible().IsEverywhere() {
		return msg("roles.delete-nobody")
	}
	return msg("roles.delete-unused")
}

// permissionGroup is a group of permissions in the role editor.
type permissionGroup struct {
	title       string // the key of its message
	permissions []rolecall.Permission
}

// Message keys for the titles of groups of permissions.
const (
	applicationsTitle = "role-form.applications"
	fieldsTitle       = "role-form.fields"
)

// resourceTitles maps resources to the message keys of the titles of their permission
// groups.
var resourceTitles = map[string]string{
	"users": usersSection, "roles": rolesSection, "groups": groupsSection, "sessions": "user.sessions", "service-accounts": serviceAccountsSection, "events": eventsSection, "changes": eventsSection, "webhooks": "nav.webhooks", "connections": "nav.connections", "identities": "user.identities", "tenant": "settings.tenant", "*": "role-form.everything",
}

// permissionTitle returns the message key of the title of the permission's group.
func permissionTitle(p rolecall.Permission) string {
	switch {
	case !p.Own() && p != rolecall.AllApplications:
		return applicationsTitle
	case p.Field != "":
		return fieldsTitle
	}
	return resourceTitles[p.Resource]
}

// permissionGroups are the groups of checkboxes in the role editor. They contain Rolecall's
// own permissions, the wildcard for all of these, and the wildcard for all permissions of
// applications.
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

// others returns the values of the form field that have no checkbox in the role editor.
func (s setChange) others() []string {
	return slices.DeleteFunc(slices.Clone(s.shown), func(text string) bool {
		return slices.ContainsFunc(permissionGroups, func(g permissionGroup) bool {
			return slices.ContainsFunc(g.permissions, func(p rolecall.Permission) bool { return p.String() == text })
		})
	})
}

func (s setChange) has(p rolecall.Permission) bool { return slices.Contains(s.shown, p.String()) }

// covering returns a selected permission other than p that covers p. It returns an empty
// text if no other selected permission covers p.
func (s setChange) covering(p rolecall.Permission) string {
	for _, text := range s.shown {
		if held, err := rolecall.ParsePermission(text); err == nil && held != p && held.Covers(p) {
			return text
		}
	}
	return ""
}

// shows reports whether a permission of the group is selected in the form field.
func (g permissionGroup) shows(s setChange) bool { return slices.ContainsFunc(g.permissions, s.has) }

// mayGive reports whether the caller may add the permission to a role.
func (r roleView) mayGive(p rolecall.Permission) bool {
	_, missing := r.call.MissingFor([]rolecall.Permission{p}, rolecall.Everywhere(), rolecall.Never, true)
	return !missing
}

// isBounded reports whether the role editor shows permissions that the caller may not add
// to a role.
func (r roleView) isBounded() bool {
	return slices.ContainsFunc(permissionGroups, func(g permissionGroup) bool {
		return slices.ContainsFunc(g.permissions, func(p rolecall.Permission) bool { return !r.mayGive(p) })
	})
}

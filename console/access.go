package console

import (
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) accessPages() []page {
	return []page{
		{path: "/{tenant}/access", operation: "AccessController_listAccess", query: accessQuery, show: c.showAccess},
		{path: "/{tenant}/users/{id}/access", operation: "UsersController_getUserOverview", query: userAccessQuery, show: c.showUserAccess},
	}
}

// accessParameters are the query parameters that links to this list keep.
var accessParameters = []string{"permission", "department"}

// accessView is the data of the page that lists the users and service accounts with a
// permission.
type accessView struct {
	frame
	pageLinks
	page        rolecall.Page[directory.Access]
	withheld    rolecall.UserMembers // members that the caller may not read of at least one user on the page
	choices     []permissionGroup    // the permissions to choose from; set if the address names no permission
	known       []rolecall.Permission
	departments []string
}

func (c *console) showAccess(v *pageContext) (err error) {
	list := accessView{}
	if v.faults == nil && v.hasPermission() {
		if list.page, err = c.directory.Access(v.ctx, v.call, directory.AccessListing{
			Permission: v.permission, Department: v.department, After: v.after, Limit: v.limit,
		}); err != nil {
			return err
		}
	}
	for i := range list.page.Items {
		if u := list.page.Items[i].User; u != nil {
			list.withheld |= rolecall.AllUserMembers &^ v.call.ReadableListMembers(u)
		}
	}
	if v.fragment() == "" || !v.hasPermission() {
		if err := c.accessChoices(v, &list); err != nil {
			return err
		}
	}
	return c.show(v, msg(accessSection), accessSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(accessParameters, list.page.Next)
		return accessPage(list)
	})
}

// hasPermission reports whether the address names a known permission without wildcards.
func (v *pageContext) hasPermission() bool { return v.permission != rolecall.Permission{} }

// accessChoices loads the permissions and departments that the form suggests. The
// permissions are Rolecall's own, and those of applications in the first roles by name.
func (c *console) accessChoices(v *pageContext, list *accessView) (err error) {
	if list.departments, err = c.directory.Departments(v.ctx, v.call); err != nil {
		return err
	}
	roles, err := c.directory.Roles(v.ctx, v.call, directory.RoleListing{ByName: true, Limit: rolecall.MaxLimit})
	if err != nil {
		return err
	}
	applications := permissionGroup{title: applicationsTitle}
	for _, role := range roles.Items {
		for _, p := range role.Permissions {
			if !p.Own() && !p.HasWildcard() {
				applications.permissions = append(applications.permissions, p)
			}
		}
	}
	applications.permissions = rolecall.NormalPermissions(applications.permissions)
	typed := v.request.URL.Query().Get("permission")
	for _, g := range slices.Concat(permissionGroups, []permissionGroup{applications}) {
		g.permissions = slices.DeleteFunc(slices.Clone(g.permissions), rolecall.Permission.HasWildcard)
		list.known = append(list.known, g.permissions...)
		g.permissions = slices.DeleteFunc(g.permissions, func(p rolecall.Permission) bool { return !isMeant(p, typed) })
		if len(g.permissions) > 0 {
			list.choices = append(list.choices, g)
		}
	}
	return nil
}

// isMeant reports whether the text can be a search for the permission. The text matches if
// it is a wildcard that covers the permission, or if each of its words is a part of the
// permission's name or description.
func isMeant(p rolecall.Permission, text string) bool {
	if wildcard, err := rolecall.ParsePermission(text); err == nil && wildcard.Covers(p) {
		return true
	}
	described := strings.ToLower(p.String() + " " + openWords(p))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(text)), func(word string) bool { return !strings.Contains(described, word) })
}

// choice returns the address of the list of users and service accounts with the permission.
func (a accessView) choice(p rolecall.Permission) string {
	return a.listAddress(accessParameters, "permission", p.String())
}

// notes returns notes to show above the list. Each note says which data is missing, and
// which permission the caller lacks.
func (a accessView) notes() (notes []string) {
	if permissions := reads(a.withheld & rolecall.SetOf(rolecall.MemberName, rolecall.MemberStatus)); permissions != nil {
		notes = append(notes, msg("users.hidden", "Permissions", listed(permissions)))
	}
	if authz.ReadServiceAccounts.Authorize(a.call.Principal) != nil {
		notes = append(notes, msg("access.no-accounts", "Permission", rolecall.ServiceAccountsRead.String()))
	}
	return notes
}

// title returns the title of the list: what its users and service accounts may do.
func (a accessView) title() string {
	if a.department != "" {
		return msg("access.in", "Does", permissionName(a.permission), "Department", a.department)
	}
	return permissionName(a.permission)
}

// permissionName returns the description of the permission if no other permission has the
// same description. Otherwise it returns the permission itself, such as
// shop/invoices:approve.
func permissionName(p rolecall.Permission) string {
	if isDescribed(p) {
		return openWords(p)
	}
	return p.String()
}

func isDescribed(p rolecall.Permission) bool {
	return p == rolecall.AllOwn || p == rolecall.AllApplications || p.Own() && !p.HasWildcard()
}

// permissionNote returns the text to show next to permissionName: the permission itself if
// permissionName returns a description, otherwise the description.
func permissionNote(p rolecall.Permission) templ.Component {
	if isDescribed(p) {
		return code(p.String())
	}
	return plain(openWords(p))
}

// userAccessView is the data of the page with the permissions of a user.
type userAccessView struct {
	userView
	pageLinks
	departments []string
	shown       []authz.Grant // the permissions on the page, in the department that the reader has selected
	total       int           // number of permissions on all pages
}

func (c *console) showUserAccess(v *pageContext) error {
	overview, err := c.directory.Overview(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	view := userAccessView{userView: userView{Overview: overview, sight: v.call.ReadableMembers(&overview.User)}}
	if view.departments, err = c.directory.Departments(v.ctx, v.call); err != nil {
		return err
	}
	for _, g := range overview.Permissions {
		if v.department == "" || g.Reach.Includes(&v.department) {
			view.shown = append(view.shown, g)
		}
	}
	view.total = len(view.shown)
	next := view.turn(v.after, v.limit)
	return c.show(v, msg("access.of", "Name", nameOf(v, &overview.User)), usersSection, func(f frame) templ.Component {
		view.frame = f
		view.pageLinks = f.pagesOf([]string{"department"}, next)
		return userAccessPage(view)
	})
}

// turn reduces the shown permissions to the page after the position, and returns the position of the
// next page. The permissions are sorted by their text.
func (u *userAccessView) turn(after *rolecall.Position, limit int) (next *rolecall.Position) {
	if after != nil {
		u.shown = slices.DeleteFunc(u.shown, func(g authz.Grant) bool { return g.Permission.String() <= after.Key })
	}
	if len(u.shown) <= limit {
		return nil
	}
	u.shown = u.shown[:limit]
	return &rolecall.Position{Key: u.shown[limit-1].Permission.String()}
}

// rows returns a row for each shown permission, with its reach and links to the roles.
func (u userAccessView) rows() (list permissionList) {
	for _, g := range u.shown {
		list.add(len(u.shown), g.Permission, func() []templ.Component {
			return []templ.Component{bdi(reachWords(g.Reach)), roleLinks(u.frame, g.Roles)}
		})
	}
	return list
}

// roleLinksMax is the maximum number of links to roles in a row.
const roleLinksMax = 10

// count returns the number of permissions as text, such as "3 permissions".
func (u userAccessView) count() string { return msg("roles.permission-count", "Count", u.total) }

package console

import (
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// permissionsOpen is the maximum number of permissions that a page shows unfolded.
const permissionsOpen = 6

// permissionRow is a permission in a table, with the cells of the additional columns.
type permissionRow struct {
	permission rolecall.Permission
	cells      []templ.Component
}

// permissionsShown is the maximum number of permissions of a user or a service account in a table
// without pages. Each has a list of departments and a list of roles.
const permissionsShown = 100

// rolePermissionsShown is the maximum number of permissions in a table about roles. It has space
// for all permissions of two roles.
const rolePermissionsShown = 4 * rolecall.RolePermissionsMax

// permissionList is the content of a table of permissions: the first rows, and the number of all
// permissions.
type permissionList struct {
	rows  []permissionRow
	count int
}

// add adds a permission. The list gets a row for it if it has fewer than most rows.
func (l *permissionList) add(most int, p rolecall.Permission, cells func() []templ.Component) {
	if l.count++; len(l.rows) < most {
		l.rows = append(l.rows, permissionRow{p, cells()})
	}
}

// permissionSet is a group of rows in a table of permissions.
type permissionSet struct {
	title string // the message key of its title
	rows  []permissionRow
}

// inGroups sorts the rows into the groups of the role editor. The permissions of
// applications are the last group.
func inGroups(rows []permissionRow) (groups []permissionSet) {
	for _, g := range append(slices.Clone(permissionGroups), permissionGroup{title: applicationsTitle}) {
		group := permissionSet{title: g.title}
		for _, row := range rows {
			if permissionTitle(row.permission) == g.title {
				group.rows = append(group.rows, row)
			}
		}
		if group.rows != nil {
			groups = append(groups, group)
		}
	}
	return groups
}

// heldRows returns a row for each of the first permissions in grants, with its reach and the roles
// that give it.
func heldRows(grants []authz.Grant) permissionList {
	list := permissionList{count: len(grants)}
	for _, g := range grants[:min(permissionsShown, len(grants))] {
		list.rows = append(list.rows, permissionRow{g.Permission, []templ.Component{bdi(reachWords(g.Reach)), bdi(listedInLine(roleNames(g.Roles)))}})
	}
	return list
}

// ownRows returns a row for each of the first permissions of the caller, with its reach. If more is true, the
// caller has permissions that the list does not count.
func (f frame) ownRows() (list permissionList, more bool) {
	everywhere, scoped, more := f.call.Grants()
	for _, g := range scoped {
		list.add(permissionsShown, g.Permission, func() []templ.Component { return []templ.Component{bdi(reachWords(g.Reach))} })
	}
	for _, p := range everywhere {
		list.add(permissionsShown, p, func() []templ.Component { return []templ.Component{bdi(reachWords(rolecall.Everywhere()))} })
	}
	return list, more
}

// roleRows returns a row for each permission of the role. The cells say whether users with
// the role have the permission, and whether they can delegate it. Users can delegate each
// permission that they have.
func roleRows(r *rolecall.Role) (list permissionList) {
	for _, p := range r.Permissions {
		list.add(rolePermissionsShown, p, func() []templ.Component { return []templ.Component{yes(true), yes(true)} })
	}
	for _, p := range r.Grants {
		if !slices.Contains(r.Permissions, p) {
			list.add(rolePermissionsShown, p, func() []templ.Component { return []templ.Component{yes(false), yes(true)} })
		}
	}
	return list
}

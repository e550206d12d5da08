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

// heldRows returns a row for each permission in grants, with its reach and the roles that
// give it.
func heldRows(grants []authz.Grant) (rows []permissionRow) {
	for _, g := range grants {
		rows = append(rows, permissionRow{g.Permission, []templ.Component{bdi(reachWords(g.Reach)), bdi(listed(roleNames(g.Roles)))}})
	}
	return rows
}

// ownRows returns a row for each permission of the caller, with its reach. If more is true, the caller has
// further ones.
func (f frame) ownRows() (rows []permissionRow, more bool) {
	everywhere, scoped, more := f.call.Grants()
	for _, g := range scoped {
		rows = append(rows, permissionRow{g.Permission, []templ.Component{bdi(reachWords(g.Reach))}})
	}
	for _, p := range everywhere {
		rows = append(rows, permissionRow{p, []templ.Component{bdi(reachWords(rolecall.Everywhere()))}})
	}
	return rows, more
}

// roleRows returns a row for each permission of the role. The cells say whether users with
// the role have the permission, and whether they can delegate it. Users can delegate each
// permission that they have.
func roleRows(r *rolecall.Role) (rows []permissionRow) {
	for _, p := range r.Permissions {
		rows = append(rows, permissionRow{p, []templ.Component{yes(true), yes(true)}})
	}
	for _, p := range r.Grants {
		if !slices.Contains(r.Permissions, p) {
			rows = append(rows, permissionRow{p, []templ.Component{yes(false), yes(true)}})
		}
	}
	return rows
}

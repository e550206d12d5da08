package console

import (
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) comparePages() []page {
	return []page{
		{path: "/{tenant}/roles/{id}/compare", operation: "RolesController_getRole", show: c.showCompareRoles},
		{path: "/{tenant}/users/{id}/compare", operation: "UsersController_getUserOverview", show: c.showCompareUsers},
	}
}

// compared is one side of a comparison, or a candidate for the other side. The address of a
// candidate leads to the comparison with it.
type compared struct{ name, address, note string }

// compareView is the data of a comparison of two roles or of two users.
type compareView struct {
	frame
	section     string // the key of the name of the section
	list        string // the address of the list
	left        compared
	right       *compared // nil until the reader has chosen the other side
	candidates  []compared
	copies      string // address of the form that assigns the roles of the right user to the left one; empty if the caller may not
	cut         bool   // not all permissions of the users are compared
	more        bool   // not all candidates are shown
	hidden      string // the name of the user whose roles the caller may not read; empty if the caller may read the roles of both users
	most        int    // the maximum number of rows of each table
	differences permissionList
	same        permissionList
}

// compare sorts the permissions in named into equal and different ones, and adds a row for
// each to the view. For a permission, left and right return how the side has the
// permission, also through a wildcard. same compares these two values, and cell renders
// one.
func compare[T any](view *compareView, named [2][]rolecall.Permission, left, right func(rolecall.Permission) T, same func(a, b T) bool, cell func(T) templ.Component) {
	for _, p := range rolecall.NormalPermissions(slices.Concat(named[0], named[1])) {
		l, r := left(p), right(p)
		list := &view.differences
		if same(l, r) {
			list = &view.same
		}
		list.add(view.most, p, func() []templ.Component { return []templ.Component{cell(l), cell(r)} })
	}
}

// withAsked returns the id in the query parameter "with", which names the other side. ok is
// false if the address has no such parameter. An invalid id is ErrNotFound.
func withAsked[T any](v *pageContext) (id rolecall.ID[T], ok bool, err error) {
	text := v.request.URL.Query().Get("with")
	if text == "" {
		return id, false, nil
	}
	if id, err = rolecall.ParseID[T](text); err != nil {
		return id, false, rolecall.ErrNotFound
	}
	return id, true, nil
}

// typedWords returns the words of the search in the address.
func typedWords(v *pageContext) []string {
	words := rolecall.Words(v.request.URL.Query().Get("q"))
	return words[:min(len(words), 8)]
}

// showCompared shows the comparison. If the reader has not chosen the other side yet, it
// shows the candidates.
func (c *console) showCompared(v *pageContext, view compareView) error {
	title := msg("compare.choose", "Name", view.left.name)
	if view.right != nil {
		title = msg("compare.title", "Name", view.left.name, "Other", view.right.name)
	}
	return c.show(v, title, view.section, func(f frame) templ.Component {
		view.frame = f
		if f.fragment() == "results" {
			f.replaceURL(f.listAddress([]string{"q"}))
		}
		return comparePage(view)
	})
}

func (c *console) showCompareRoles(v *pageContext) error {
	role, err := c.directory.Role(v.ctx, v.call, v.roleID)
	if err != nil {
		return err
	}
	side := func(r *rolecall.Role) compared {
		return compared{name: r.Name, address: v.path("/roles/" + r.ID.String())}
	}
	view := compareView{section: rolesSection, most: rolePermissionsShown, list: v.path("/roles"), left: side(&role)}
	id, chosen, err := withAsked[rolecall.Role](v)
	if err != nil {
		return err
	}
	if !chosen {
		listing := directory.RoleListing{Words: typedWords(v), ByName: true, Limit: rolecall.DefaultLimit}
		roles, err := c.directory.Roles(v.ctx, v.call, listing)
		for i := range roles.Items {
			if r := &roles.Items[i]; r.ID != role.ID {
				view.candidates = append(view.candidates, compared{name: r.Name, address: "?with=" + r.ID.String(), note: r.Description})
			}
		}
		if view.more = roles.Next != nil; err != nil {
			return err
		}
		return c.showCompared(v, view)
	}
	other, err := c.directory.Role(v.ctx, v.call, id)
	if err != nil {
		return err
	}
	right := side(&other)
	view.right = &right
	named := [2][]rolecall.Permission{slices.Concat(role.Permissions, role.Grants), slices.Concat(other.Permissions, other.Grants)}
	of := func(r *rolecall.Role) func(rolecall.Permission) string {
		return func(p rolecall.Permission) string { return powerWords(r, p) }
	}
	compare(&view, named, of(&role), of(&other), func(a, b string) bool { return a == b }, wordsOrNo)
	return c.showCompared(v, view)
}

// powerWords says in words whether users with the role have the permission, or can only
// delegate it. It returns an empty text if the role gives neither.
func powerWords(r *rolecall.Role, p rolecall.Permission) string {
	covers := func(held rolecall.Permission) bool { return held.Covers(p) }
	switch {
	case slices.ContainsFunc(r.Permissions, covers):
		return msg("roles.can-do")
	case slices.ContainsFunc(r.Grants, covers):
		return msg("roles.can-delegate")
	}
	return ""
}

// wordsOrNo shows the words. It shows a dash if words is empty.
func wordsOrNo(words string) templ.Component {
	if words == "" {
		return yes(false)
	}
	return plain(words)
}

func (c *console) showCompareUsers(v *pageContext) error {
	user, err := c.directory.Overview(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	side := func(u *rolecall.User) compared {
		return compared{name: nameOf(v, u), address: userAddress(v, u.ID, "")}
	}
	view := compareView{section: usersSection, most: permissionsShown, list: v.path("/users"), left: side(&user.User)}
	id, chosen, err := withAsked[rolecall.User](v)
	if err != nil {
		return err
	}
	if !chosen {
		users, err := c.directory.Users(v.ctx, v.call, directory.UserListing{Words: typedWords(v), Limit: rolecall.DefaultLimit})
		for i := range users.Items {
			if u := &users.Items[i]; u.ID != user.User.ID {
				view.candidates = append(view.candidates, compared{name: nameOf(v, u), address: "?with=" + u.ID.String(), note: foundUser(v, u).note})
			}
		}
		if view.more = users.Next != nil; err != nil {
			return err
		}
		return c.showCompared(v, view)
	}
	other, err := c.directory.Overview(v.ctx, v.call, id)
	if err != nil {
		return err
	}
	right := side(&other.User)
	view.right = &right
	if userHolder(v, &user.User).assigns && user.AssignmentsReadable && other.AssignmentsReadable {
		view.copies = userAddress(v, user.User.ID, "/roles/copy?with="+id.String())
	}
	for _, o := range []*directory.Overview{&user, &other} {
		if !o.AssignmentsReadable {
			view.hidden = nameOf(v, &o.User)
			return c.showCompared(v, view)
		}
	}
	view.cut = user.MorePermissions || other.MorePermissions
	named := [2][]rolecall.Permission{permissionsOf(user.Permissions), permissionsOf(other.Permissions)}
	same := func(a, b rolecall.Reach) bool { return a.Covers(b) && b.Covers(a) }
	cell := func(r rolecall.Reach) templ.Component {
		if r.IsNowhere() {
			return yes(false)
		}
		return bdi(reachWords(r))
	}
	compare(&view, named, reachIn(user.Permissions), reachIn(other.Permissions), same, cell)
	return c.showCompared(v, view)
}

func permissionsOf(grants []authz.Grant) (list []rolecall.Permission) {
	for _, g := range grants {
		list = append(list, g.Permission)
	}
	return list
}

// reachIn returns the function that returns the reach that the grants give for a permission, as the
// union of all grants that cover it.
func reachIn(grants []authz.Grant) func(rolecall.Permission) rolecall.Reach {
	held := make(map[rolecall.Permission]rolecall.Reach, len(grants))
	for _, g := range grants {
		held[g.Permission] = g.Reach
	}
	return func(p rolecall.Permission) rolecall.Reach {
		union := rolecall.Nowhere()
		for _, covering := range p.CoveredBy() {
			if reach := held[covering]; reach.IsEverywhere() || p.CountsWithin() {
				union = union.Union(reach)
			}
		}
		return union
	}
}

package console

import (
	"errors"
	"slices"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

func (c *console) copyRolesPages() []page {
	return []page{
		{path: "/{tenant}/users/{id}/roles/copy", operation: "UsersController_assignRole", show: c.askCopyRoles, act: c.copyRoles},
	}
}

// copyView is the data of the form that assigns the roles of one user to another one.
type copyView struct {
	frame
	holder
	other   compared
	roles   []copiedRole
	refused []copiedRole // after the form was sent
	count   int          // the number of roles that were assigned
}

// copiedRole is a role of the other user. reason says why it cannot be assigned. It is empty if the
// caller may assign it.
type copiedRole struct {
	assignment rolecall.Assignment
	reason     string
}

// copyView returns the roles of the user that the query parameter "with" names, and says for each of them
// whether the caller may assign it to the user in the path.
func (c *console) copyView(v *pageContext) (view copyView, err error) {
	if view.holder, err = userOf(c, v); err != nil {
		return view, err
	}
	id, chosen, err := withAsked[rolecall.User](v)
	if err == nil && !chosen {
		err = rolecall.ErrNotFound
	}
	if err != nil {
		return view, err
	}
	other, err := c.directory.User(v.ctx, v.call, id)
	if err != nil {
		return view, err
	}
	view.other = compared{name: nameOf(v, &other), address: userAddress(v, id, "")}
	theirs, _, err := c.directory.Assignments(v.ctx, v.call, rolecall.HolderOf(id))
	if err != nil {
		return view, err
	}
	held, _, err := c.directory.Assignments(v.ctx, v.call, view.id)
	if err != nil {
		return view, err
	}
	for _, a := range theirs {
		a.Holder = view.id
		role := copiedRole{assignment: a}
		switch has := func(b rolecall.Assignment) bool { return b.Role.ID == a.Role.ID && !isThrough(&b) }; {
		case isThrough(&a) && slices.ContainsFunc(held, func(b rolecall.Assignment) bool { return b.Through == a.Through }):
			role.reason = msg("groups.is-member")
		case isThrough(&a):
			role.reason = msg("copy.through", "Group", a.Through.Name)
		case slices.ContainsFunc(held, has):
			role.reason = msg("assignment.held")
		case !view.assigns:
			role.reason = msg("assignment.needs", "Permission", view.needed.String())
		default:
			role.reason = detailOf(authz.RequireAssignable(v.call.Principal, &a))
		}
		view.roles = append(view.roles, role)
	}
	return view, nil
}

func (c *console) askCopyRoles(v *pageContext) error {
	view, err := c.copyView(v)
	if err != nil {
		return err
	}
	return c.showCopyRoles(v, view, copyDialog)
}

func (c *console) showCopyRoles(v *pageContext, view copyView, content func(copyView) templ.Component) error {
	return c.show(v, msg("copy.title", "Name", view.name, "Other", view.other.name), usersSection, func(f frame) templ.Component {
		view.frame = f
		return content(view)
	})
}

// copyRoles assigns the roles that the form selects, one after the other, with the departments and the
// expiry that the other user's assignments have. It is safe to send the form again.
func (c *console) copyRoles(v *pageContext) error {
	view, err := c.copyView(v)
	if err != nil {
		return err
	}
	for _, role := range view.roles {
		if role.reason != "" || !slices.Contains(v.form["role"], role.assignment.Role.ID.String()) {
			continue
		}
		draft := rolecall.AssignmentDraft{}
		if reach := role.assignment.Reach; !reach.IsEverywhere() {
			draft.Departments = reach.Departments()
		}
		if role.assignment.ExpiresAt != rolecall.Never {
			draft.ExpiresAt = &role.assignment.ExpiresAt
		}
		_, _, err := c.directory.AssignRole(v.ctx, v.call, view.id, role.assignment.Role.ID, draft)
		why, known := errors.AsType[*rolecall.Error](err)
		switch {
		case err == nil:
			view.count++
		case !known || why.Kind == rolecall.Unavailable:
			return err
		default:
			role.reason = detailWords(why.Code, why.Detail)
			view.refused = append(view.refused, role)
		}
	}
	if len(view.refused) == 0 && view.count > 0 {
		return v.redirect(view.home + "?done=roles-copied")
	}
	return c.showCopyRoles(v, view, copyOutcome)
}

// isEmpty reports whether the caller may assign none of the roles.
func (v copyView) isEmpty() bool {
	return !slices.ContainsFunc(v.roles, func(r copiedRole) bool { return r.reason == "" })
}

package console

import (
	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

func (c *console) editPages() []page {
	return []page{
		{path: "/{tenant}/users/{id}/edit", operation: "UsersController_updateUser", show: c.showEdit, act: c.edit},
	}
}

// editView is what the form of a user shows.
type editView struct {
	frame
	user        rolecall.User
	sight       rolecall.UserMembers
	departments []string // to choose from
}

func (c *console) showEdit(v *pageContext) error {
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	departments, err := c.directory.Departments(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, "Edit "+nameOf(v, &user), "Users", func(f frame) templ.Component {
		return editPage(editView{f, user, v.call.Sight(&user), departments})
	})
}

func (c *console) edit(v *pageContext) error {
	var patch rolecall.UserPatch
	if name, changed := typed(v, "name"); changed {
		patch.Name = rolecall.Some(name)
	}
	if department, changed := typed(v, "department"); changed {
		patch.Department = rolecall.Some(orNil(department))
	}
	if id, changed := typed(v, "externalId"); changed {
		patch.ExternalID = rolecall.Some(orNil(id))
	}
	pairs, faults := metadataPatch(v)
	if pairs != nil {
		patch.Metadata = rolecall.Some(pairs)
	}
	if err := authz.AuthorizeMembers(v.call.Principal, v.userID, patch.Members()); err != nil {
		return err
	}
	if faults != nil {
		return append(faults, patch.Check()...).Err()
	}
	if _, err := c.directory.UpdateUser(v.ctx, v.call, v.userID, patch, match(v, v.userTag)); err != nil {
		return err
	}
	return v.redirect(userAddress(v, v.userID, "") + "?done=saved")
}

// mayChange reports whether the caller may change the member of the user.
func (e editView) mayChange(m rolecall.UserMember) bool {
	return m == rolecall.MemberName && e.call.IsSelf(e.user.ID) || e.call.Updates(m).Includes(e.user.Department)
}

// value returns what is saved of the member, as far as the caller may read it.
func (e editView) value(m rolecall.UserMember) string {
	if !e.sight.Has(m) {
		return ""
	}
	switch m {
	case rolecall.MemberName:
		return e.user.Name
	case rolecall.MemberDepartment:
		return orEmpty(e.user.Department)
	case rolecall.MemberExternalID:
		return orEmpty(e.user.ExternalID)
	}
	return ""
}

// metadata returns what is saved of the metadata, as far as the caller may read it.
func (e editView) metadata() rolecall.Metadata {
	if !e.sight.Has(rolecall.MemberMetadata) {
		return rolecall.Metadata{}
	}
	return e.user.Metadata
}

// address returns where the form is.
func (e editView) address() string { return userAddress(e.pageContext, e.user.ID, "/edit") }

package console

import (
	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/service"
)

func (c *console) editPages() []httpapi.Page {
	return []httpapi.Page{
		{Path: "/{tenant}/users/{id}/edit", Operation: "UsersController_updateUser", Show: c.showEdit, Act: c.edit},
	}
}

// editView is what the form of a user shows.
type editView struct {
	frame
	user        rolecall.User
	sight       rolecall.UserMembers
	departments []string // to choose from
}

func (c *console) showEdit(v *httpapi.Visit) error {
	user, err := c.service.User(v.Context(), v.Call(), v.User())
	if err != nil {
		return err
	}
	departments, err := c.service.Departments(v.Context(), v.Call())
	if err != nil {
		return err
	}
	return c.show(v, "Edit "+nameOf(v, &user), "Users", func(f frame) templ.Component {
		return editPage(editView{f, user, v.Call().Sight(&user), departments})
	})
}

func (c *console) edit(v *httpapi.Visit) error {
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
	if err := service.NeedUpdateMembers(v.Call().Principal, v.User(), patch.Members()); err != nil {
		return err
	}
	if faults != nil {
		return append(faults, patch.Check()...).Err()
	}
	if _, err := c.service.UpdateUser(v.Context(), v.Call(), v.User(), patch, v.MatchUser()); err != nil {
		return err
	}
	return v.Redirect(userAddress(v, v.User(), "") + "?done=saved")
}

// mayChange reports whether the caller may change the member of the user.
func (e editView) mayChange(m rolecall.UserMember) bool {
	return m == rolecall.MemberName && e.Call().IsSelf(e.user.ID) || e.Call().Updates(m).Includes(e.user.Department)
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
func (e editView) address() string { return userAddress(e.Visit, e.user.ID, "/edit") }

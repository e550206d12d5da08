package console

import (
	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
)

func (c *console) newUserPages() []httpapi.Page {
	return []httpapi.Page{
		{Path: "/{tenant}/users/create", Operation: "UsersController_createUser", Show: c.showNewUser, Act: c.createUser},
	}
}

// newUserView is what the form of a new user shows.
type newUserView struct {
	frame
	reach       rolecall.Reach // in which the caller creates users
	departments []string       // to choose from
}

func (c *console) showNewUser(v *httpapi.Visit) (err error) {
	reach := v.Call().Reach(rolecall.UsersCreate)
	view := newUserView{reach: reach, departments: reach.Departments()}
	if reach.IsEverywhere() {
		if view.departments, err = c.service.Departments(v.Context(), v.Call()); err != nil {
			return err
		}
	}
	return c.show(v, "New user", "Users", func(f frame) templ.Component {
		view.frame = f
		return newUserPage(view)
	})
}

func (c *console) createUser(v *httpapi.Visit) error {
	metadata, faults := pairsOf(typedPairs(v, fieldPairKey, fieldPairValue))
	draft := rolecall.UserDraft{
		Email: v.Form("email"), Name: v.Form("name"), Department: orNil(v.Form("department")), ExternalID: orNil(v.Form("externalId")),
		Metadata: metadata, Invite: v.Form("invite") == "true",
	}
	if faults != nil {
		return append(faults, draft.Check()...).Err()
	}
	created, err := c.service.CreateUser(v.Context(), v.Call(), v.Key(), draft)
	if err != nil {
		return err
	}
	word := "user-created"
	if draft.Invite {
		word = "user-invited"
	}
	return v.Redirect(userAddress(v, created.Value.ID, "") + "?done=" + word)
}

// invites reports whether the form of a new user is to invite them: unless it says
// otherwise, who may does.
func (f frame) invites() bool {
	return f.may(rolecall.UsersInvite) && (f.Problem() == nil || f.Form("invite") == "true")
}

package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
)

func (s *Server) accessOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/access", ID: "AccessController_listAccess", Summary: "List who has a permission",
			Description: "Lists the users and then the service accounts that have the permission through their roles, also by a wildcard, with the roles that give it. It includes pending and suspended ones. Expired assignments and deleted users are not listed. Of the users, it lists only those whose roles the caller may read. A page can be short or empty although nextCursor is not null.",
			Policy:      authz.ListAccess,
			Answers:     operation.Answers{{http.StatusOK, "A page of users and service accounts, with the members that the caller may read.", []string{"Link", "Withheld-Fields"}}},
			Handler:     operation.JSON(s.listAccess),
		},
	}
}

type listAccessRequest struct {
	operation.PageRequest
	Permission permissionValue `query:"permission" required:"true" example:"users:erase" doc:"The permission, without wildcards, such as users:erase or shop/invoices:approve."`
	Department string          `query:"department" maxLength:"255" doc:"Only those who have the permission for the users of this department, or in the whole tenant. Upper and lower case, invisible characters and the number of blanks do not matter."`
}

func (s *Server) listAccess(ctx context.Context, c access.Caller, in *listAccessRequest) (operation.Response[accessPage], error) {
	permission := rolecall.Permission(in.Permission)
	page, err := s.directory.Access(ctx, c, directory.AccessListing{
		Permission: permission, Department: in.Department, After: in.After.At, Limit: in.Limit.OrDefault(),
	})
	response := operation.NewPage(&page, func(a *directory.Access) accessBody { return newAccessBody(c, a, permission) })
	return operation.Response[accessPage]{Body: accessPage{response.Body}, Next: response.Next}, err
}

// accessBody is a user or a service account that has a permission.
type accessBody struct {
	User           *userBody           `json:"user" nullable:"true" doc:"The user who has the permission, with the members that the caller may read. Null for a service account."`
	ServiceAccount *serviceAccountBody `json:"serviceAccount" nullable:"true" doc:"The service account that has the permission. Null for a user."`
	Grants         []accessGrant       `json:"grants" doc:"The role assignments that give the permission."`
}

var _ = operation.Component[accessBody]("Access", "A user or service account that has a permission, and the role assignments that give it.")

// accessGrant is an assignment that gives a permission.
type accessGrant struct {
	Role        roleName              `json:"role" doc:"The role."`
	Permissions []rolecall.Permission `json:"permissions" doc:"The permissions of the role that cover the permission of the request. They can have wildcards."`
	Through     throughBody           `json:"through" nullable:"true" doc:"The group through which the user has the role. Null if the role is assigned directly."`
	Reach       reachBody             `json:"reach" nullable:"true" doc:"The reach of the assignment. Null for the whole tenant."`
	ExpiresAt   rolecall.Time         `json:"expiresAt" nullable:"true" doc:"When the assignment expires. Null for never."`
}

var _ = operation.Component[accessGrant]("AccessGrant", "A role assignment that gives a permission.")

func newAccessBody(c access.Caller, a *directory.Access, permission rolecall.Permission) accessBody {
	body := accessBody{Grants: operation.Bodies(a.Assignments, func(a *rolecall.Assignment) accessGrant {
		return accessGrant{newRoleName(&a.Role), a.Role.Covering(permission), throughBody{a.Through}, reachBody{a.Reach}, a.ExpiresAt}
	})}
	if a.User != nil {
		body.User = &userBody{user: a.User, readable: c.ReadableListMembers(a.User)}
	} else {
		body.ServiceAccount = &serviceAccountBody{a.Account, true}
	}
	return body
}

// accessPage is a page of the users and service accounts that have a permission.
type accessPage struct{ operation.Page[accessBody] }

var _ = operation.Component[accessPage]("AccessPage", "A page of users and service accounts that have a permission.")

func (p *accessPage) HiddenMembers() string {
	readable := rolecall.AllUserMembers
	for _, item := range p.Items {
		if item.User != nil {
			readable &= item.User.readable
		}
	}
	return names(rolecall.AllUserMembers &^ readable)
}

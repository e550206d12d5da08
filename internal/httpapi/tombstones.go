package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
)

// listDeletedUsers returns a page of the users who can be restored.
func (s *Server) listDeletedUsers(ctx context.Context, c access.Caller, in *listUsersRequest) (Response[userPage], error) {
	if faults := in.besidesDeleted(); faults != nil {
		return Response[userPage]{}, rolecall.ErrMalformed.WithFaults(faults...)
	}
	page, err := s.directory.DeletedUsers(ctx, c, directory.DeletedListing{After: in.After.after, Limit: in.Limit.orDefault()})
	if err != nil {
		return Response[userPage]{}, err
	}
	body := newPage(&page, func(t *rolecall.Tombstone) userBody {
		return userBody{user: &t.User, readable: c.ListSight(&t.User), deletedAt: t.DeletedAt}
	})
	return Response[userPage]{Body: userPage{countedPageBody: countedPageBody[userBody]{pageBody: body.Body}}, Next: page.Next}, nil
}

// besidesDeleted returns a fault for each parameter that a list of deleted users
// does not take: they are in no index but that of their deletion.
func (r *listUsersRequest) besidesDeleted() (faults rolecall.Faults) {
	for _, given := range []struct {
		parameter string
		is        bool
	}{
		{"sort", r.Sort != orderValue{}}, {"q", r.Search != nil}, {"email", r.Email != ""}, {"externalId", r.ExternalID != ""},
		{"department", r.Department != ""}, {"role", !r.Role.IsZero()}, {"count", r.Count},
	} {
		if given.is {
			faults = append(faults, rolecall.Fault{Parameter: given.parameter, Code: "combination", Detail: "does not go with status=deleted"})
		}
	}
	return faults
}

type userRequest struct {
	userPath
}

// restoredUser is a user who was deleted and is back.
type restoredUser struct {
	User             userBody           `json:"user" doc:"The user, as far as the caller may read them."`
	RolesNotRestored *[]rolecall.RoleID `json:"rolesNotRestored,omitzero" doc:"The roles that the user held and does not hold again, because the caller may not assign them or because they were deleted. Absent if the caller may not read the roles of the user."` // nil: the caller may not read the user's roles
}

func (u *restoredUser) hiddenMembers() string { return u.User.hiddenMembers() }

func (s *Server) restoreUser(ctx context.Context, c access.Caller, in *userRequest) (Response[restoredUser], error) {
	restored, err := s.directory.RestoreUser(ctx, c, in.ID)
	body := restoredUser{User: newUserBody(c, &restored.User)}
	if restored.RolesReadable {
		body.RolesNotRestored = &restored.RolesNotRestored
	}
	return Response[restoredUser]{Body: body}, err
}

func (s *Server) eraseUser(ctx context.Context, c access.Caller, in *userRequest) (Response[NoContent], error) {
	return Response[NoContent]{}, s.directory.EraseUser(ctx, c, in.ID)
}

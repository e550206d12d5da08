package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
)

type inviteUserRequest struct {
	userPath
	operation.IdempotencyHeader
}

func (s *Server) inviteUser(ctx context.Context, c access.Caller, in *inviteUserRequest) (operation.Response[invitationBody], error) {
	created, err := s.directory.InviteUser(ctx, c, in.Key, in.ID)
	return operation.Response[invitationBody]{Body: newInvitationBody(&created.Value), Replayed: created.Replayed}, err
}

func (s *Server) listInvitations(ctx context.Context, c access.Caller, in *operation.PageRequest) (operation.Response[invitationPage], error) {
	page, err := s.directory.Invitations(ctx, c, directory.InvitationListing{After: in.After.At, Limit: in.Limit.OrDefault()})
	response := operation.NewPage(&page, func(i *rolecall.Invited) openInvitation {
		return openInvitation{
			UserID: i.UserID, CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt, CreatedBy: i.CreatedBy,
			User: userBody{user: &i.User, readable: c.ReadableListMembers(&i.User)},
		}
	})
	return operation.Response[invitationPage]{Body: invitationPage{response.Body}, Next: response.Next}, err
}

func (s *Server) withdrawInvitation(ctx context.Context, c access.Caller, in *userRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.WithdrawInvitation(ctx, c, in.ID)
}

// invitationBody is an invitation. If its user was erased, it has only the id.
type invitationBody struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	CreatedAt rolecall.Time   `json:"createdAt,omitzero" doc:"When the invitation was created."`
	ExpiresAt rolecall.Time   `json:"expiresAt,omitzero" doc:"When the invitation expires."`
}

func newInvitationBody(i *rolecall.Invitation) invitationBody {
	return invitationBody{i.UserID, i.CreatedAt, i.ExpiresAt}
}

// openInvitation is an unexpired invitation, with the members of its user that the caller may read.
type openInvitation struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	CreatedAt rolecall.Time   `json:"createdAt" doc:"When the invitation was created."`
	ExpiresAt rolecall.Time   `json:"expiresAt" doc:"When the invitation expires."`
	CreatedBy rolecall.UserID `json:"createdBy" nullable:"true" doc:"ID of the principal who created the invitation. Null for an operator."`
	User      userBody        `json:"user" doc:"The user, with the members that the caller may read."`
}

type invitationPage struct{ operation.Page[openInvitation] }

func (p *invitationPage) HiddenMembers() string {
	readable := rolecall.AllUserMembers
	for _, item := range p.Items {
		readable &= item.User.readable
	}
	return names(rolecall.AllUserMembers &^ readable)
}

type acceptInvitationBody struct{ newPasswordBody }

type acceptInvitationRequest struct {
	Anonymous access.Anonymous
	Body      acceptInvitationBody
}

func (s *Server) acceptInvitation(ctx context.Context, _ access.Caller, in *acceptInvitationRequest) (operation.Response[signInBody], error) {
	token, err := parseToken(in.Body.Token, rolecall.ErrInvitationInvalid)
	if err != nil {
		return operation.Response[signInBody]{}, err
	}
	signIn, err := s.signin.AcceptInvitation(ctx, in.Anonymous, token, in.Body.Password)
	return s.signedIn(&signIn), err
}

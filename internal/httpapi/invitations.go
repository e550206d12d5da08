package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
)

type inviteUserRequest struct {
	userPath
	idempotencyHeader
}

func (s *Server) inviteUser(ctx context.Context, c access.Caller, in *inviteUserRequest) (Response[invitationBody], error) {
	created, err := s.directory.InviteUser(ctx, c, in.Key, in.ID)
	return Response[invitationBody]{Body: newInvitationBody(&created.Value), Replayed: created.Replayed}, err
}

func (s *Server) listInvitations(ctx context.Context, c access.Caller, in *pageRequest) (Response[invitationPage], error) {
	page, err := s.directory.Invitations(ctx, c, directory.InvitationListing{After: in.After.after, Limit: in.Limit.orDefault()})
	response := newPage(&page, func(i *rolecall.Invited) openInvitation {
		return openInvitation{
			UserID: i.UserID, CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt, CreatedBy: i.CreatedBy,
			User: userBody{user: &i.User, readable: c.ListSight(&i.User)},
		}
	})
	return Response[invitationPage]{Body: invitationPage{response.Body}, Next: response.Next}, err
}

func (s *Server) withdrawInvitation(ctx context.Context, c access.Caller, in *userRequest) (Response[NoContent], error) {
	return Response[NoContent]{}, s.directory.WithdrawInvitation(ctx, c, in.ID)
}

// invitationBody is an invitation. If its user was erased, it has the id alone.
type invitationBody struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	CreatedAt rolecall.Time   `json:"createdAt,omitzero" doc:"When the invitation was created."`
	ExpiresAt rolecall.Time   `json:"expiresAt,omitzero" doc:"When the invitation expires."`
}

func newInvitationBody(i *rolecall.Invitation) invitationBody {
	return invitationBody{i.UserID, i.CreatedAt, i.ExpiresAt}
}

// openInvitation is an invitation that can be accepted, with its user as far as the caller
// may read them.
type openInvitation struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	CreatedAt rolecall.Time   `json:"createdAt" doc:"When the invitation was created."`
	ExpiresAt rolecall.Time   `json:"expiresAt" doc:"When the invitation expires."`
	CreatedBy rolecall.UserID `json:"createdBy" nullable:"true" doc:"ID of the principal who created the invitation. Null for an operator."`
	User      userBody        `json:"user" doc:"The user, as far as the caller may read them."`
}

type invitationPage struct{ pageBody[openInvitation] }

func (p *invitationPage) hiddenMembers() string {
	readable := rolecall.AllUserMembers
	for _, item := range p.Items {
		readable &= item.User.readable
	}
	return names(rolecall.AllUserMembers &^ readable)
}

// newPasswordBody is the token of a link and the password to set.
type newPasswordBody struct {
	Token    string `json:"token" required:"true" doc:"The token of the link."`
	Password string `json:"password" required:"true" format:"password" minLength:"8" maxLength:"1024" doc:"The new password. At least as long as the passwordMinimum of the tenant, and not easy to guess."`
}

type acceptInvitationBody struct{ newPasswordBody }

type acceptInvitationRequest struct {
	Attempt access.Anonymous
	Body    acceptInvitationBody
}

func (s *Server) acceptInvitation(ctx context.Context, _ access.Caller, in *acceptInvitationRequest) (Response[signInBody], error) {
	token, err := parseToken(in.Body.Token, rolecall.ErrInvitationInvalid)
	if err != nil {
		return Response[signInBody]{}, err
	}
	signIn, err := s.signin.AcceptInvitation(ctx, in.Attempt, token, in.Body.Password)
	return signedIn(&signIn), err
}

// parseToken returns the token of a link. A text that cannot be a token is answered as
// one that is not known, with the error invalid.
func parseToken(text string, invalid error) (secret.Token, error) {
	token, ok := secret.ParseToken(text)
	if !ok {
		return "", invalid
	}
	return token, nil
}

type changePasswordRequest struct{ Body changePasswordBody }

type changePasswordBody struct {
	CurrentPassword string `json:"currentPassword" required:"true" format:"password" doc:"The current password."`
	NewPassword     string `json:"newPassword" required:"true" format:"password" minLength:"8" maxLength:"1024" doc:"The new password. At least as long as the passwordMinimum of the tenant, and not easy to guess."`
}

func (s *Server) changePassword(ctx context.Context, c access.Caller, in *changePasswordRequest) (Response[NoContent], error) {
	device, err := s.signin.ChangePassword(ctx, c, in.Body.CurrentPassword, in.Body.NewPassword)
	return Response[NoContent]{Device: device}, err
}

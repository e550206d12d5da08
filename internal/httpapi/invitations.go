package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/web"
)

func (s *Server) invitationOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/invitations", ID: "InvitationsController_listInvitations", Summary: "List invitations",
			Description: "Lists the invitations that were not accepted and have not expired, of users that the caller may invite.",
			Policy:      authz.ListInvitations,
			Answers:     operation.Answers{{http.StatusOK, "A page of invitations, each with its user, with the members that the caller may read.", []string{"Link", "Withheld-Fields"}}},
			Handler:     operation.JSON(s.listInvitations),
		},
		{
			Method: http.MethodPost, Path: "/users/{id}/invitations", ID: "UsersController_inviteUser", Summary: "Invite a user",
			Description: "Mails the user a link to set a password and sign in. The link replaces an earlier invitation. With the delivery `return`, no mail is sent and the response has the link. This needs an operator key, or a service account with `users:issue-links`. Only an operator key gets the link of an owner.",
			Policy:      authz.InviteUser,
			Answers:     operation.Answers{{http.StatusCreated, "The invitation. It has the link only with the delivery `return`.", []string{"Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrUserSuspended, rolecall.ErrTooManyMails},
			Handler:     operation.JSON(s.inviteUser),
		},
		{
			Method: http.MethodDelete, Path: "/users/{id}/invitations", ID: "UsersController_withdrawInvitation", Summary: "Withdraw a user's invitation",
			Description: "Makes the link of the invitation invalid. The answer is the same for a user without an invitation.",
			Policy:      authz.WithdrawInvitation,
			Answers:     operation.Answers{{http.StatusNoContent, "The user has no invitation.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions},
			Handler:     operation.JSON(s.withdrawInvitation),
		},
		{
			Method: http.MethodPost, Path: "/auths/invitations/accept", ID: "AuthsController_acceptInvitation", Summary: "Accept an invitation",
			Description: "Sets the password and starts a session. All other sessions and API tokens of the user end. If a second factor is needed, the password is set, and the answer is 401 with a challenge.",
			Limiter:     web.PasswordLimiter,
			Policy:      authz.SignIn,
			Answers:     operation.Answers{{http.StatusOK, "The signed-in user and the session. The session cookie is set, or the tokens are in the body.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrInvitationInvalid, rolecall.ErrSecondFactorRequired, rolecall.ErrEnrolmentRequired, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended, rolecall.ErrPasswordsOff, rolecall.ErrBusy},
			Handler:     operation.JSON(s.acceptInvitation),
		},
	}
}

type inviteUserRequest struct {
	userPath
	operation.IdempotencyHeader
	Body deliveryBody `optional:"true"`
}

func (s *Server) inviteUser(ctx context.Context, c access.Caller, in *inviteUserRequest) (operation.Response[invitationBody], error) {
	issue := s.directory.InviteUser
	if rolecall.Delivery(in.Body.Delivery) == rolecall.DeliverInResponse {
		issue = s.directory.IssueInvitation
	}
	created, err := issue(ctx, c, in.Key, in.ID)
	body := newInvitationBody(&created.Value.Invitation)
	body.returnedLink = s.returnedLink(rolecall.MailInvitation, c, created.Value.Delivery, created.Value.Token, created.Replayed)
	return operation.Response[invitationBody]{Body: body, Replayed: created.Replayed}, err
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
	returnedLink
}

var _ = operation.Component[invitationBody]("Invitation", "An invitation to set a password and sign in. Only the mail to the user has the link.")

func newInvitationBody(i *rolecall.Invitation) invitationBody {
	return invitationBody{UserID: i.UserID, CreatedAt: i.CreatedAt, ExpiresAt: i.ExpiresAt}
}

// openInvitation is an invitation that has not expired, with those members of its user that the
// caller may read.
type openInvitation struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	CreatedAt rolecall.Time   `json:"createdAt" doc:"When the invitation was created."`
	ExpiresAt rolecall.Time   `json:"expiresAt" doc:"When the invitation expires."`
	CreatedBy rolecall.UserID `json:"createdBy" nullable:"true" doc:"ID of the principal who created the invitation. Null for an operator."`
	User      userBody        `json:"user" doc:"The user, with the members that the caller may read."`
}

var _ = operation.Component[openInvitation]("OpenInvitation", "An invitation that has not expired, with its user. The overview of the user shows whether it can be accepted.")

type invitationPage struct{ operation.Page[openInvitation] }

var _ = operation.Component[invitationPage]("InvitationPage", "A page of invitations.")

func (p *invitationPage) HiddenMembers() string {
	readable := rolecall.AllUserMembers
	for _, item := range p.Items {
		readable &= item.User.readable
	}
	return names(rolecall.AllUserMembers &^ readable)
}

type acceptInvitationBody struct {
	newPasswordBody
	transportBody
}

var _ = operation.Component[acceptInvitationBody]("AcceptInvitation", "The token of the invitation, and the password to set.")

type acceptInvitationRequest struct {
	Anonymous access.Anonymous
	Body      acceptInvitationBody
}

// ReturnsToken reports whether the response has the token of the session.
func (in *acceptInvitationRequest) ReturnsToken() bool { return in.Body.Transport == byBearer }

func (s *Server) acceptInvitation(ctx context.Context, _ access.Caller, in *acceptInvitationRequest) (operation.Response[signInBody], error) {
	token, err := parseToken(in.Body.Token, rolecall.ErrInvitationInvalid)
	if err != nil {
		return operation.Response[signInBody]{}, err
	}
	in.Body.apply(&in.Anonymous)
	signIn, err := s.signin.AcceptInvitation(ctx, in.Anonymous, token, in.Body.Password)
	return s.signedIn(&signIn), err
}

package httpapi

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

type emailBody struct {
	Email string `json:"email" required:"true" minLength:"3" maxLength:"254" format:"email" doc:"Email address."`
}

type requestPasswordResetRequest struct {
	Anonymous access.Anonymous
	Body      emailBody
}

// acceptedBody describes what happens after an accepted request.
type acceptedBody struct {
	Detail string `json:"detail" doc:"What happens next, as a sentence for users."`
}

// requestPasswordReset sends the same response for known and unknown addresses.
func (s *Server) requestPasswordReset(ctx context.Context, _ access.Caller, in *requestPasswordResetRequest) (operation.Response[acceptedBody], error) {
	err := s.signin.RequestPasswordReset(ctx, in.Anonymous, in.Body.Email)
	return operation.Response[acceptedBody]{Body: acceptedBody{
		"If a user of this tenant has this address, a link to set a new password will be sent to it.",
	}}, err
}

type resetPasswordBody struct{ newPasswordBody }

type resetPasswordRequest struct {
	Anonymous access.Anonymous
	Body      resetPasswordBody
}

func (s *Server) resetPassword(ctx context.Context, _ access.Caller, in *resetPasswordRequest) (operation.Response[operation.NoContent], error) {
	token, err := parseToken(in.Body.Token, rolecall.ErrPasswordResetInvalid)
	if err != nil {
		return operation.Response[operation.NoContent]{}, err
	}
	return operation.Response[operation.NoContent]{}, s.signin.ResetPassword(ctx, in.Anonymous, token, in.Body.Password)
}

// deliveryBody selects how a link reaches the user.
type deliveryBody struct {
	Delivery linkDelivery `json:"delivery" enum:"mail,return" default:"mail" doc:"How the link reaches the user. With mail, Rolecall mails it. With return, the response has it once, and no mail is sent."`
}

// linkDelivery is a delivery by mail or in the response.
type linkDelivery rolecall.Delivery

// UnmarshalWire reads the delivery.
func (l *linkDelivery) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if eitherOf(d, pointer, value, "mail", string(rolecall.DeliverInResponse)) == string(rolecall.DeliverInResponse) {
		*l = linkDelivery(rolecall.DeliverInResponse)
	}
}

// returnedLink has the members of a response to a request with the delivery return.
type returnedLink struct {
	SecretWithheld bool   `json:"secretWithheld,omitzero" doc:"True if the request was a repeat, and the token and the link are therefore not shown again. To replace a lost link, send the request with a new idempotency key. Absent otherwise."`
	Token          string `json:"token,omitzero" doc:"The token in the link. Only with the delivery return."`
	Link           string `json:"link,omitzero" doc:"The link that the user opens to set a password. Only with the delivery return."`
}

// returnedLink returns the members for a token that was issued. They are empty if the link is mailed.
func (s *Server) returnedLink(kind rolecall.MailKind, c access.Caller, by rolecall.Delivery, token secret.Token, replayed bool) (link returnedLink) {
	switch {
	case by == rolecall.DeliverByMail:
	case replayed:
		link.SecretWithheld = true
	default:
		link.Token, link.Link = string(token), s.site.Links.Link(kind, c.Tenant.Name, string(token))
	}
	return link
}

func (s *Server) sendPasswordReset(ctx context.Context, c access.Caller, in *inviteUserRequest) (operation.Response[passwordResetBody], error) {
	issue := s.signin.SendPasswordReset
	if rolecall.Delivery(in.Body.Delivery) == rolecall.DeliverInResponse {
		issue = s.signin.IssuePasswordReset
	}
	created, err := issue(ctx, c, in.Key, in.ID)
	reset := &created.Value
	return operation.Response[passwordResetBody]{Replayed: created.Replayed, Body: passwordResetBody{
		reset.UserID, reset.ExpiresAt, s.returnedLink(rolecall.MailPasswordReset, c, reset.Delivery, reset.Token, created.Replayed),
	}}, err
}

// passwordResetBody is a link to choose a new password, which was mailed to the user or is returned.
// If the user was erased, the response to a repeated request has only the id.
type passwordResetBody struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	ExpiresAt rolecall.Time   `json:"expiresAt,omitzero" doc:"When the link expires."`
	returnedLink
}

type requestEmailChangeRequest struct {
	userPath
	operation.IdempotencyHeader
	Body emailBody
}

func (s *Server) requestEmailChange(ctx context.Context, c access.Caller, in *requestEmailChangeRequest) (operation.Response[emailChangeBody], error) {
	created, err := s.signin.RequestEmailChange(ctx, c, in.Key, in.ID, in.Body.Email)
	return operation.Response[emailChangeBody]{Body: emailChangeBody{created.Value.UserID, created.Value.ExpiresAt}, Replayed: created.Replayed}, err
}

// emailChangeBody confirms that a link was mailed to the new address. If the user was erased, the
// response to a repeated request has only the id.
type emailChangeBody struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	ExpiresAt rolecall.Time   `json:"expiresAt,omitzero" doc:"When the link expires."`
}

type changeEmailBody struct {
	Token string `json:"token" required:"true" doc:"The token in the link."`
}

type changeEmailRequest struct {
	Anonymous access.Anonymous
	Body      changeEmailBody
}

func (s *Server) changeEmail(ctx context.Context, _ access.Caller, in *changeEmailRequest) (operation.Response[operation.NoContent], error) {
	token, err := parseToken(in.Body.Token, rolecall.ErrEmailChangeInvalid)
	if err != nil {
		return operation.Response[operation.NoContent]{}, err
	}
	return operation.Response[operation.NoContent]{}, s.signin.ChangeEmail(ctx, in.Anonymous, token)
}

type newPasswordBody struct {
	Token    string `json:"token" required:"true" doc:"The token in the link."`
	Password string `json:"password" required:"true" format:"password" minLength:"8" maxLength:"1024" doc:"The new password. It must have at least passwordMinimum characters, and must not be easy to guess."`
}

// parseToken returns the token in a link. If the text is not well-formed, parseToken returns the
// error invalid. Callers pass the error that an unknown token also gets.
func parseToken(text string, invalid error) (secret.Token, error) {
	token, ok := secret.ParseToken(text)
	if !ok {
		return "", invalid
	}
	return token, nil
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

type invitationPage struct{ operation.Page[openInvitation] }

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

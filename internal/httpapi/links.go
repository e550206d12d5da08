package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
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

// requestPasswordReset answers the same whether or not a user has the address.
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

func (s *Server) sendPasswordReset(ctx context.Context, c access.Caller, in *inviteUserRequest) (operation.Response[passwordResetBody], error) {
	created, err := s.signin.SendPasswordReset(ctx, c, in.Key, in.ID)
	return operation.Response[passwordResetBody]{Body: passwordResetBody{created.Value.UserID, created.Value.ExpiresAt}, Replayed: created.Replayed}, err
}

// passwordResetBody confirms that a user was sent a link to choose a new password. A repeated
// request for an erased user gets the id only.
type passwordResetBody struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	ExpiresAt rolecall.Time   `json:"expiresAt,omitzero" doc:"When the link expires."`
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

// emailChangeBody confirms that a link was sent to a new address. A repeated request for an erased
// user gets the id only.
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

// parseToken returns the token of a link. It returns the error invalid for a text that cannot be a
// token, as for an unknown token.
func parseToken(text string, invalid error) (secret.Token, error) {
	token, ok := secret.ParseToken(text)
	if !ok {
		return "", invalid
	}
	return token, nil
}

package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
)

type emailBody struct {
	Email string `json:"email" required:"true" minLength:"3" maxLength:"254" format:"email" doc:"Email address."`
}

type requestPasswordResetRequest struct {
	Attempt access.Anonymous
	Body    emailBody
}

// acceptedBody says what will come of a request, if anything does.
type acceptedBody struct {
	Detail string `json:"detail" doc:"What happens now, in a sentence for people."`
}

// requestPasswordReset has the same answer whether or not somebody has the address.
func (s *Server) requestPasswordReset(ctx context.Context, _ access.Caller, in *requestPasswordResetRequest) (Response[acceptedBody], error) {
	err := s.signin.RequestPasswordReset(ctx, in.Attempt, in.Body.Email)
	return Response[acceptedBody]{Body: acceptedBody{
		"If somebody of this tenant signs in with this address, a link to choose a new password is on its way to it.",
	}}, err
}

type resetPasswordBody struct{ newPasswordBody }

type resetPasswordRequest struct {
	Attempt access.Anonymous
	Body    resetPasswordBody
}

func (s *Server) resetPassword(ctx context.Context, _ access.Caller, in *resetPasswordRequest) (Response[NoContent], error) {
	token, err := parseToken(in.Body.Token, rolecall.ErrPasswordResetInvalid)
	if err != nil {
		return Response[NoContent]{}, err
	}
	return Response[NoContent]{}, s.signin.ResetPassword(ctx, in.Attempt, token, in.Body.Password)
}

func (s *Server) sendPasswordReset(ctx context.Context, c access.Caller, in *inviteUserRequest) (Response[passwordResetBody], error) {
	created, err := s.signin.SendPasswordReset(ctx, c, in.Key, in.ID)
	return Response[passwordResetBody]{Body: passwordResetBody{created.Value.UserID, created.Value.ExpiresAt}, Replayed: created.Replayed}, err
}

// passwordResetBody says that a user was mailed a link to choose a new password. A repeated request for an erased user is
// answered with the id alone.
type passwordResetBody struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	ExpiresAt rolecall.Time   `json:"expiresAt,omitzero" doc:"When the link expires."`
}

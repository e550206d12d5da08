package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
)

type requestEmailChangeRequest struct {
	userPath
	idempotencyHeader
	Body emailBody
}

func (s *Server) requestEmailChange(ctx context.Context, c access.Caller, in *requestEmailChangeRequest) (Response[emailChangeBody], error) {
	created, err := s.signin.RequestEmailChange(ctx, c, in.Key, in.ID, in.Body.Email)
	return Response[emailChangeBody]{Body: emailChangeBody{created.Value.UserID, created.Value.ExpiresAt}, Replayed: created.Replayed}, err
}

// emailChangeBody says that a link was mailed to a new address. A repeated request for an
// erased user is answered with the id alone.
type emailChangeBody struct {
	UserID    rolecall.UserID `json:"userId" doc:"ID of the user."`
	ExpiresAt rolecall.Time   `json:"expiresAt,omitzero" doc:"When the link expires."`
}

type changeEmailBody struct {
	Token string `json:"token" required:"true" doc:"The token of the link."`
}

type changeEmailRequest struct {
	Attempt access.Anonymous
	Body    changeEmailBody
}

func (s *Server) changeEmail(ctx context.Context, _ access.Caller, in *changeEmailRequest) (Response[NoContent], error) {
	token, err := parseToken(in.Body.Token, rolecall.ErrEmailChangeInvalid)
	if err != nil {
		return Response[NoContent]{}, err
	}
	return Response[NoContent]{}, s.signin.ChangeEmail(ctx, in.Attempt, token)
}

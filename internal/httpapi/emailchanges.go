package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

type requestEmailChangeRequest struct {
	userPath
	idempotencyHeader
	Body emailBody
}

func (s *Server) requestEmailChange(ctx context.Context, c service.Call, in *requestEmailChangeRequest) (Response[mailedLink], error) {
	created, err := s.service.RequestEmailChange(ctx, c, in.Key, in.ID, in.Body.Email)
	return Response[mailedLink]{Body: mailedLink{created.Value.UserID, created.Value.ExpiresAt}, Replayed: created.Replayed}, err
}

type changeEmailRequest struct {
	Attempt service.Attempt
	Body    struct {
		Token string `json:"token" required:"true"`
	}
}

func (s *Server) changeEmail(ctx context.Context, _ service.Call, in *changeEmailRequest) (Response[NoContent], error) {
	token, err := parseToken(in.Body.Token, rolecall.ErrEmailChangeInvalid)
	if err != nil {
		return Response[NoContent]{}, err
	}
	return Response[NoContent]{}, s.service.ChangeEmail(ctx, in.Attempt, token)
}

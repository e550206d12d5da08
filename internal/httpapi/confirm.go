package httpapi

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
)

type confirmBody struct {
	proofBody
	Password string `json:"password" required:"true" format:"password" doc:"Password of the user."`
}

type confirmRequest struct {
	Sessions []secret.Token // the session cookies of the request
	Body     confirmBody
}

func (s *Server) confirm(ctx context.Context, c access.Caller, in *confirmRequest) (Response[sessionBody], error) {
	if in.Body.count() > 1 {
		return Response[sessionBody]{}, rolecall.Faults{{Code: "one-of", Detail: "must hold at most one of code, recoveryCode and passkey"}}.Err()
	}
	signIn, err := s.signin.Confirm(ctx, c, in.Sessions, in.Body.Password, in.Body.proof())
	if err != nil || signIn.Challenge != nil {
		return Response[sessionBody]{Challenge: signIn.Challenge}, err
	}
	return Response[sessionBody]{Body: newSessionBody(signIn.Principal), SignIn: &signIn}, nil
}

package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/web"
)

func (s *Server) emailChangeOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodPost, Path: "/users/{id}/email-changes", ID: "UsersController_requestEmailChange", Summary: "Start changing a user's email address",
			Description: "Mails a confirmation link to the new address, unless another user has it. The answer is the same in both cases. The current address is notified, and stays in use until the new one is confirmed.",
			Policy:      authz.ChangeEmail,
			Answers:     operation.Answers{{http.StatusAccepted, "The request was accepted.", []string{"Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrUserSuspended, rolecall.ErrSessionRequired, rolecall.ErrTooManyAttempts, rolecall.ErrTooManyMails, rolecall.ErrManagedByDirectory},
			Handler:     operation.JSON(s.requestEmailChange),
		},
		{
			Method: http.MethodPost, Path: "/auths/email-changes/complete", ID: "AuthsController_changeEmail", Summary: "Confirm a new email address",
			Description: "Sets the email address with the token of a mailed link, and ends all sessions of the user except that of the request. It starts no session.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.SignIn,
			Answers:     operation.Answers{{http.StatusNoContent, "The email address was changed.", nil}},
			Problems:    problems{rolecall.ErrEmailChangeInvalid, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended, rolecall.ErrEmailTaken, rolecall.ErrManagedByDirectory},
			Handler:     operation.JSON(s.changeEmail),
		},
	}
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

var _ = operation.Component[emailChangeBody]("EmailChange", "The mail with a link to confirm a new address.")

type changeEmailBody struct {
	Token string `json:"token" required:"true" doc:"The token in the link."`
}

var _ = operation.Component[changeEmailBody]("ChangeEmail", "The token in the link.")

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

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

func (s *Server) passwordOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodPut, Path: "/auths/password", ID: "AuthsController_changePassword", Summary: "Change your password",
			Description: "Sets a new password and ends all other sessions of the user.",
			Limiter:     web.PasswordLimiter,
			Policy:      authz.ChangeOwnPassword,
			Answers:     operation.Answers{{http.StatusNoContent, "The password was changed.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrTooManyAttempts, rolecall.ErrBusy},
			Handler:     operation.JSON(s.changePassword),
		},
		{
			Method: http.MethodPost, Path: "/users/{id}/password-resets", ID: "UsersController_sendPasswordReset", Summary: "Send a user a password reset link",
			Description: "Mails the user a link to set a new password. The response does not have the link, except with the delivery `return`. Then no mail is sent. This needs an operator key, or a service account with `users:issue-links`. Only an operator key gets the link of an owner.",
			Policy:      authz.SendPasswordReset,
			Answers:     operation.Answers{{http.StatusCreated, "The link will be mailed to the user, or is in the response with the delivery `return`.", []string{"Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrUserSuspended, rolecall.ErrUserPending, rolecall.ErrPasswordsOff, rolecall.ErrTooManyMails},
			Handler:     operation.JSON(s.sendPasswordReset),
		},
		{
			Method: http.MethodPost, Path: "/auths/password-resets", ID: "AuthsController_requestPasswordReset", Summary: "Request a password reset",
			Description: "Mails a link to set a new password to the active user with this address. The answer is the same for every address.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.Anyone,
			Answers:     operation.Answers{{http.StatusAccepted, "The request was accepted.", nil}},
			Problems:    problems{rolecall.ErrTooManyAttempts},
			Handler:     operation.JSON(s.requestPasswordReset),
		},
		{
			Method: http.MethodPost, Path: "/auths/password-resets/complete", ID: "AuthsController_resetPassword", Summary: "Complete a password reset",
			Description: "Sets the password with the token of a mailed link, and ends all sessions and API tokens of the user. It starts no session. Failed sign-ins of the account until now are no longer counted. Wrong second factors are still counted.",
			Limiter:     web.PasswordLimiter,
			Policy:      authz.SignIn,
			Answers:     operation.Answers{{http.StatusNoContent, "The password was set.", nil}},
			Problems:    problems{rolecall.ErrPasswordResetInvalid, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended, rolecall.ErrBusy},
			Handler:     operation.JSON(s.resetPassword),
		},
	}
}

type changePasswordRequest struct{ Body changePasswordBody }

type changePasswordBody struct {
	CurrentPassword string `json:"currentPassword" required:"true" format:"password" doc:"The current password."`
	NewPassword     string `json:"newPassword" required:"true" format:"password" minLength:"8" maxLength:"1024" doc:"The new password. It must have at least passwordMinimum characters, and must not be easy to guess."`
}

var _ = operation.Component[changePasswordBody]("ChangePassword", "The current password and the new one.")

func (s *Server) changePassword(ctx context.Context, c access.Caller, in *changePasswordRequest) (operation.Response[operation.NoContent], error) {
	device, err := s.signin.ChangePassword(ctx, c, in.Body.CurrentPassword, in.Body.NewPassword)
	return operation.Response[operation.NoContent]{Cookies: func(w http.ResponseWriter, r *http.Request) { s.setDevice(w, r, c.Tenant.ID, device) }}, err
}

type emailBody struct {
	Email string `json:"email" required:"true" minLength:"3" maxLength:"254" format:"email" doc:"Email address."`
}

var _ = operation.Component[emailBody]("EmailAddress", "An email address.")

type requestPasswordResetRequest struct {
	Anonymous access.Anonymous
	Body      emailBody
}

// acceptedBody describes what happens after an accepted request.
type acceptedBody struct {
	Detail string `json:"detail" doc:"What happens next, as a sentence for users."`
}

var _ = operation.Component[acceptedBody]("Accepted", "The effect of the request.")

// requestPasswordReset sends the same response for known and unknown addresses.
func (s *Server) requestPasswordReset(ctx context.Context, _ access.Caller, in *requestPasswordResetRequest) (operation.Response[acceptedBody], error) {
	err := s.signin.RequestPasswordReset(ctx, in.Anonymous, in.Body.Email)
	return operation.Response[acceptedBody]{Body: acceptedBody{
		"If a user of this tenant has this address, a link to set a new password will be sent to it.",
	}}, err
}

type resetPasswordBody struct{ newPasswordBody }

var _ = operation.Component[resetPasswordBody]("ResetPassword", "The token of the link, and the password to set.")

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

var _ = operation.Component[passwordResetBody]("PasswordReset", "The mail with a link to set a new password.")

type newPasswordBody struct {
	Token    string `json:"token" required:"true" doc:"The token in the link."`
	Password string `json:"password" required:"true" format:"password" minLength:"8" maxLength:"1024" doc:"The new password. It must have at least passwordMinimum characters, and must not be easy to guess."`
}

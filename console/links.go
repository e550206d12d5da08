package console

import (
	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

// linkPages are where the links of mails lead. The token is in the fragment, which
// no server is sent; a script moves it into the form.
func (c *console) linkPages() []httpapi.Page {
	return []httpapi.Page{
		{Path: "/{tenant}/invitation", Operation: "AuthsController_acceptInvitation", Show: c.showInvitation, Act: c.acceptInvitation},
		{Path: "/{tenant}/password-reset", Operation: "AuthsController_resetPassword", Show: c.showPasswordReset, Act: c.resetPassword},
		{Path: "/{tenant}/password-reset/request", Operation: "AuthsController_requestPasswordReset", Show: c.showPasswordReset, Act: c.requestPasswordReset},
		{Path: "/{tenant}/email-change", Operation: "AuthsController_changeEmail", Show: c.showEmailChange, Act: c.changeEmail},
	}
}

// followed returns the attempt of somebody who followed a link, with the token that
// the form carries. A text that cannot be one is one that is not known, which is the
// error invalid.
func followed(v *httpapi.Visit, invalid *rolecall.Error) (service.Attempt, secret.Token, error) {
	token, ok := secret.ParseToken(v.Form("token"))
	if !ok {
		return service.Attempt{}, "", invalid
	}
	attempt, err := v.Attempt()
	return attempt, token, err
}

func (c *console) showInvitation(v *httpapi.Visit) error {
	if p := v.Problem(); p != nil && p.Challenge != nil {
		return c.showSignIn(v)
	}
	return c.showEntry(v, "Welcome", invitationPage)
}

func (c *console) acceptInvitation(v *httpapi.Visit) error {
	attempt, token, err := followed(v, rolecall.ErrInvitationInvalid)
	if err != nil {
		return err
	}
	signIn, err := c.service.AcceptInvitation(v.Context(), attempt, token, v.Form("password"))
	return c.signedIn(v, signIn, err)
}

func (c *console) showPasswordReset(v *httpapi.Visit) error {
	return c.showEntry(v, "New password", passwordResetPage)
}

func (c *console) resetPassword(v *httpapi.Visit) error {
	attempt, token, err := followed(v, rolecall.ErrPasswordResetInvalid)
	if err != nil {
		return err
	}
	if err := c.service.ResetPassword(v.Context(), attempt, token, v.Form("password")); err != nil {
		return err
	}
	return v.Redirect(v.Path("/sign-in") + "?done=password-reset")
}

func (c *console) requestPasswordReset(v *httpapi.Visit) error {
	attempt, err := v.Attempt()
	if err != nil {
		return err
	}
	if err := c.service.RequestPasswordReset(v.Context(), attempt, v.Form("email")); err != nil {
		return err
	}
	return v.Redirect(v.Path("/sign-in") + "?done=reset-requested")
}

func (c *console) showEmailChange(v *httpapi.Visit) error {
	return c.showEntry(v, "New address", func(f frame) templ.Component { return emailChangePage(f) })
}

func (c *console) changeEmail(v *httpapi.Visit) error {
	attempt, token, err := followed(v, rolecall.ErrEmailChangeInvalid)
	if err != nil {
		return err
	}
	if err := c.service.ChangeEmail(v.Context(), attempt, token); err != nil {
		return err
	}
	return v.Redirect(v.Path("/sign-in") + "?done=email-changed")
}

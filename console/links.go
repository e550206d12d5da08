package console

import (
	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
)

// linkPages are where the links of mails lead. The token is in the fragment, which
// no server is sent; a script moves it into the form.
func (c *console) linkPages() []page {
	return []page{
		{path: "/{tenant}/invitation", operation: "AuthsController_acceptInvitation", show: c.showInvitation, act: c.acceptInvitation},
		{path: "/{tenant}/password-reset", operation: "AuthsController_resetPassword", show: c.showPasswordReset, act: c.resetPassword},
		{path: "/{tenant}/password-reset/request", operation: "AuthsController_requestPasswordReset", show: c.showPasswordReset, act: c.requestPasswordReset},
		{path: "/{tenant}/email-change", operation: "AuthsController_changeEmail", show: c.showEmailChange, act: c.changeEmail},
	}
}

// followed returns the attempt of somebody who followed a link, with the token that
// the form carries. A text that cannot be one is one that is not known, which is the
// error invalid.
func followed(v *pageContext, invalid *rolecall.Error) (access.Anonymous, secret.Token, error) {
	token, ok := secret.ParseToken(v.form.Get("token"))
	if !ok {
		return access.Anonymous{}, "", invalid
	}
	attempt, err := v.anonymous()
	return attempt, token, err
}

func (c *console) showInvitation(v *pageContext) error {
	return c.showEntry(v, "Welcome", invitationPage)
}

func (c *console) acceptInvitation(v *pageContext) error {
	attempt, token, err := followed(v, rolecall.ErrInvitationInvalid)
	if err != nil {
		return err
	}
	signIn, err := c.signin.AcceptInvitation(v.ctx, attempt, token, v.form.Get("password"))
	return c.signedIn(v, signIn, err)
}

func (c *console) showPasswordReset(v *pageContext) error {
	return c.showEntry(v, "New password", passwordResetPage)
}

func (c *console) resetPassword(v *pageContext) error {
	attempt, token, err := followed(v, rolecall.ErrPasswordResetInvalid)
	if err != nil {
		return err
	}
	if err := c.signin.ResetPassword(v.ctx, attempt, token, v.form.Get("password")); err != nil {
		return err
	}
	return v.redirect(v.path("/sign-in") + "?done=password-reset")
}

func (c *console) requestPasswordReset(v *pageContext) error {
	attempt, err := v.anonymous()
	if err != nil {
		return err
	}
	if err := c.signin.RequestPasswordReset(v.ctx, attempt, v.form.Get("email")); err != nil {
		return err
	}
	return v.redirect(v.path("/sign-in") + "?done=reset-requested")
}

func (c *console) showEmailChange(v *pageContext) error {
	return c.showEntry(v, "New address", func(f frame) templ.Component { return emailChangePage(f) })
}

func (c *console) changeEmail(v *pageContext) error {
	attempt, token, err := followed(v, rolecall.ErrEmailChangeInvalid)
	if err != nil {
		return err
	}
	if err := c.signin.ChangeEmail(v.ctx, attempt, token); err != nil {
		return err
	}
	return v.redirect(v.path("/sign-in") + "?done=email-changed")
}

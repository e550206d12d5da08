package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// signInPages returns the pages to sign in and to sign out.
func (c *console) signInPages() []page {
	return []page{
		{path: "/", operation: "AuthsController_login", show: c.showSignIn, act: c.signIn},
		{path: "/{tenant}/sign-in", operation: "AuthsController_login", show: c.showSignIn, act: c.signIn},
		{path: "/{tenant}/sign-in/second-factor", operation: "AuthsController_completeLogin", show: c.showSecondFactor, act: c.completeSignIn},
		{path: "/{tenant}/sign-in/enrolment", operation: "AuthsController_completeLogin", show: c.showEnrolment, act: c.completeSignIn},
		{path: "/{tenant}/sign-in/passkey", operation: "AuthsController_signInByPasskey", show: c.showSignIn, act: c.signInByPasskey},
		{path: "/{tenant}/sign-out", operation: "AuthsController_logout", show: c.showSignOut, act: c.signOut},
	}
}

func (c *console) showSignIn(v *pageContext) error {
	return c.showEntry(v, msg("sign-in.title"), func(f frame) templ.Component { return signInPage(f, c.passkeyOptions(v)) })
}

// passkeyOptions returns the options for navigator.credentials.get, or an empty text if passkeys
// are not available.
func (c *console) passkeyOptions(v *pageContext) string {
	attempt, err := v.anonymous()
	if err != nil || v.tenant == "" {
		return ""
	}
	options, err := c.signin.PasskeySignInOptions(attempt)
	if err != nil {
		return ""
	}
	return string(options)
}

func (c *console) signIn(v *pageContext) error {
	if tenant := v.form.Get("tenant"); v.tenant == "" && !v.setTenant(strings.ToLower(strings.TrimSpace(tenant))) {
		return rolecall.ErrMalformed.WithFieldErrors(rolecall.FieldError{Parameter: "tenant", Code: "format", Detail: msg("sign-in.tenant-format")})
	}
	attempt, err := v.anonymous()
	if err != nil {
		return err
	}
	signIn, err := c.signin.Login(v.ctx, attempt, v.form.Get("email"), v.form.Get("password"))
	return c.signedIn(v, signIn, err)
}

// signedIn answers a successful password, passkey or code. If the sign-in needs a second
// factor, signedIn shows the form for it. Otherwise it sets the session cookie and
// redirects to the requested page. New recovery codes are shown before that page.
func (c *console) signedIn(v *pageContext, signIn signin.SignIn, err error) error {
	if err != nil {
		return err
	}
	if signIn.Challenge != nil {
		return c.showChallenge(v, signIn.Challenge)
	}
	if err := v.setSession(&signIn); err != nil {
		return err
	}
	next := returnAddress(v, v.form.Get("return"))
	if signIn.RecoveryCodes == nil {
		return v.redirect(next)
	}
	return c.showEntry(v, msg("sign-in.codes-page"), func(f frame) templ.Component { return recoveryCodesPage(f, signIn.RecoveryCodes, next) })
}

// challenge is a challenge for a second factor. The form carries it in hidden fields.
type challenge struct {
	token     string
	methods   string // accepted methods, separated by spaces
	publicKey string // options for navigator.credentials.get, in JSON
}

// challengeOf returns the values of the hidden fields for the challenge.
func challengeOf(c *signin.Challenge) challenge {
	methods := make([]string, len(c.Methods))
	for i, method := range c.Methods {
		methods[i] = string(method)
	}
	return challenge{c.Token, strings.Join(methods, " "), string(c.PublicKey)}
}

func (q challenge) takes(method rolecall.FactorMethod) bool {
	return strings.Contains(" "+q.methods+" ", " "+string(method)+" ")
}

// showChallenge shows the form for the second factor. If the user must first set up a
// second factor, it shows the enrolment. The response has the same status and
// WWW-Authenticate header as that of the API.
func (c *console) showChallenge(v *pageContext, asked *signin.Challenge) error {
	v.status, v.response.Header()["Www-Authenticate"] = http.StatusUnauthorized, challenges[true]
	if errors.Is(asked.Problem, rolecall.ErrEnrolmentRequired) {
		return c.askEnrolment(v, asked.Token)
	}
	return c.showEntry(v, msg("sign-in.second-factor-page"), func(f frame) templ.Component { return secondFactorPage(f, challengeOf(asked)) })
}

func (c *console) showSecondFactor(v *pageContext) error {
	q := challenge{v.form.Get("challenge"), v.form.Get("methods"), v.form.Get("public-key")}
	if p := v.problem; q.token == "" || p != nil && errors.Is(p.Error, rolecall.ErrChallengeInvalid) {
		return c.showEntry(v, msg("sign-in.title"), func(f frame) templ.Component { return signInPage(f, c.passkeyOptions(v)) })
	}
	return c.showEntry(v, msg("sign-in.second-factor-page"), func(f frame) templ.Component { return secondFactorPage(f, q) })
}

// answer returns the challenge and the second factor from the form.
func answer(v *pageContext) (secret.Token, signin.Proof, error) {
	challenge, ok := secret.ParseToken(v.form.Get("challenge"))
	if !ok {
		return "", signin.Proof{}, rolecall.ErrChallengeInvalid
	}
	proof := v.proof("")
	if proof.Passkey == nil && proof.Code == "" && proof.RecoveryCode == "" {
		return challenge, proof, rolecall.ErrWrongCode.With(msg("sign-in.no-proof"))
	}
	return challenge, proof, nil
}

func (c *console) completeSignIn(v *pageContext) error {
	challenge, proof, err := answer(v)
	if err != nil {
		return err
	}
	attempt, err := v.anonymous()
	if err != nil {
		return err
	}
	signIn, err := c.signin.CompleteSignIn(v.ctx, attempt, challenge, proof)
	return c.signedIn(v, signIn, err)
}

// enrolment has the data to set up a second factor during sign-in. The forms carry it in
// hidden fields, because a new call would return a new secret, which differs from the one
// in the user's authenticator app.
type enrolment struct{ challenge, secret, uri, publicKey string }

// askEnrolment shows the page on which a user sets up a second factor during sign-in.
func (c *console) askEnrolment(v *pageContext, challenge string) error {
	token, ok := secret.ParseToken(challenge)
	if !ok {
		return rolecall.ErrChallengeInvalid
	}
	attempt, err := v.anonymous()
	if err != nil {
		return err
	}
	made, err := c.signin.BeginEnrolment(v.ctx, attempt, token)
	if err != nil {
		return err
	}
	e := enrolment{challenge, made.Secret, made.URI, string(made.PublicKey)}
	return c.showEntry(v, msg("sign-in.second-factor-page"), func(f frame) templ.Component { return enrolmentPage(f, e) })
}

// showEnrolment shows the page for the enrolment again after an error.
func (c *console) showEnrolment(v *pageContext) error {
	e := enrolment{v.form.Get("challenge"), v.form.Get("secret"), v.form.Get("uri"), v.form.Get("public-key")}
	if p := v.problem; e.challenge == "" || p != nil && errors.Is(p.Error, rolecall.ErrChallengeInvalid) {
		return c.showEntry(v, msg("sign-in.title"), func(f frame) templ.Component { return signInPage(f, c.passkeyOptions(v)) })
	}
	return c.showEntry(v, msg("sign-in.second-factor-page"), func(f frame) templ.Component { return enrolmentPage(f, e) })
}

func (c *console) signInByPasskey(v *pageContext) error {
	attempt, err := v.anonymous()
	if err != nil {
		return err
	}
	signIn, err := c.signin.PasskeySignIn(v.ctx, attempt, []byte(v.form.Get("passkey")))
	return c.signedIn(v, signIn, err)
}

func (c *console) showSignOut(v *pageContext) error {
	return c.showEntry(v, msg("sign-in.sign-out"), signOutPage)
}

func (c *console) signOut(v *pageContext) error {
	tenant, err := c.directory.Tenant(v.ctx, v.tenant)
	if err != nil {
		return err
	}
	shared := c.site.AppendSessions(nil, v.request)
	if _, err := c.signin.Authenticate(v.ctx, tenant, shared, false); errors.Is(err, rolecall.ErrUnavailable) {
		return err
	} else if !errors.Is(err, rolecall.ErrUnauthenticated) { // if a session of this tenant remained, the user would still be signed in
		v.sessions, v.isShared = append(v.sessions, shared...), true
	}
	if err := v.logout(tenant, v.sessions); err != nil {
		return err
	}
	return signedOut(v, "signed-out")
}

// signedOutPrefix and the value of the query parameter "done" form the key of a message on the
// sign-in page.
const signedOutPrefix = "signed-out."

// whySignIn explains why a user must sign in again. why is the code of the problem. It
// returns an empty text for most codes.
func whySignIn(why string) string {
	switch why {
	case rolecall.ErrAmbiguousSession.Code:
		return msg("sign-in.two-sessions")
	case rolecall.ErrTenantSuspended.Code:
		return rolecall.ErrTenantSuspended.Detail
	}
	return ""
}

// signInAction returns the address to which the sign-in form is sent. The page where users
// enter the name of their tenant sends the form to itself.
func (f frame) signInAction() string {
	if f.request.URL.Path == f.root() {
		return f.root()
	}
	return f.path("/sign-in")
}

// linkPages returns the pages that mailed links open. The token is in the fragment of the
// address, which browsers do not send to servers. A script moves the token into the form.
func (c *console) linkPages() []page {
	return []page{
		{path: "/{tenant}/invitation", isShared: true, operation: "AuthsController_acceptInvitation", show: c.showInvitation, act: c.acceptInvitation},
		{path: "/{tenant}/password-reset", isShared: true, operation: "AuthsController_resetPassword", show: c.showPasswordReset, act: c.resetPassword},
		{path: "/{tenant}/password-reset/request", isShared: true, operation: "AuthsController_requestPasswordReset", show: c.showPasswordReset, act: c.requestPasswordReset},
		{path: "/{tenant}/email-change", isShared: true, operation: "AuthsController_changeEmail", show: c.showEmailChange, act: c.changeEmail},
	}
}

// followed returns the context and the token of a form that a mailed link has opened. If
// the token does not have the form of a token, it returns the error invalid.
func followed(v *pageContext, invalid *rolecall.Error) (access.Anonymous, secret.Token, error) {
	token, ok := secret.ParseToken(v.form.Get("token"))
	if !ok {
		return access.Anonymous{}, "", invalid
	}
	attempt, err := v.anonymous()
	return attempt, token, err
}

func (c *console) showInvitation(v *pageContext) error {
	return c.showEntry(v, msg("link.welcome"), invitationPage)
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
	return c.showEntry(v, msg("link.new-password"), passwordResetPage)
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
	return c.showEntry(v, msg("link.new-email-page"), func(f frame) templ.Component { return emailChangePage(f) })
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

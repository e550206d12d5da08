package console

import (
	"errors"
	"net/http"
	"net/url"
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
		{path: signedOutPath, operation: "AuthsController_signOutOidc", show: c.showSignedOut},
	}
}

func (c *console) showSignIn(v *pageContext) error {
	return c.showEntry(v, msg("sign-in.title"), func(f frame) templ.Component { return signInPage(f, c.passkeyOptions(v), c.offered(v)) })
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
	if v.form.Get("password") == "" {
		return c.signInByDomain(v, attempt)
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
	next := returnAddress(v, v.returnTail())
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
		return c.showSignIn(v)
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
		return c.showSignIn(v)
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

// signedOutPath is the page to which an identity provider returns the browser after the sign-out.
const signedOutPath = "/{tenant}/signed-out"

// signOut ends the session. If it began with an identity provider, the browser signs out there too.
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
	address, err := c.signin.LogoutAtProvider(v.ctx, v.anonymousOf(tenant, v.sessions), v.signedOutURI(), v.web.Leave)
	if err != nil {
		return err
	}
	if address == "" {
		return signedOut(v, "signed-out")
	}
	v.forgetSession()
	v.hasSignedOut = true
	v.leadsTo = address
	return c.showEntry(v, msg("sign-in.sign-out"), func(f frame) templ.Component {
		return leavingPage(msg("sign-in.sign-out"), msg("sign-in.signing-out"), address)
	})
}

// showSignedOut answers the return from an identity provider.
func (c *console) showSignedOut(v *pageContext) error {
	return v.redirect(v.path("/sign-in") + "?done=signed-out")
}

// signedOutURI returns the address that is registered at the identity provider of the tenant, as the one to
// which the browser returns after the sign-out.
func (v *pageContext) signedOutURI() string {
	return v.console.site.Address(v.request) + Path + strings.Replace(signedOutPath, "{tenant}", v.tenant, 1)
}

// forgets reports whether the page removes the saved input of the user who has signed out.
func (f frame) forgets() bool { return f.hasSignedOut || f.asked("done") == "signed-out" }

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
	return failureWords(why)
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
	return c.showEntry(v, msg("link.welcome"), func(f frame) templ.Component { return invitationPage(f, c.offered(v)) })
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

// The query parameters with which an identity provider's sign-in returns to the console.
const (
	fieldCode   = "code"
	fieldError  = "error"
	fieldReturn = "return"
)

// connectionSignInPages returns the pages of a sign-in with an identity provider. The form of the first page
// starts it, and the browser returns to the second one. An invitation can be accepted in the same way.
func (c *console) connectionSignInPages() []page {
	return []page{
		{path: "/{tenant}/sign-in/connection", operation: "AuthsController_startOidc", show: c.showSignIn, act: c.signInByConnection},
		{path: "/{tenant}/sign-in/connected", operation: "AuthsController_exchangeCode", show: c.connected},
		{path: "/{tenant}/invitation/connection", isShared: true, operation: "AuthsController_startOidc", show: c.showInvitation, act: c.acceptByConnection},
		{path: "/{tenant}/invitation/connected", isShared: true, operation: "AuthsController_exchangeCode", show: c.connected},
	}
}

// offered returns the connections of the tenant for the sign-in page. It returns none if they cannot be read,
// because the page also works without them.
func (c *console) offered(v *pageContext) []rolecall.Connection {
	if v.tenant == "" {
		return nil
	}
	tenant, err := c.directory.Tenant(v.ctx, v.tenant)
	if err != nil {
		return nil
	}
	list, err := c.signin.OfferedConnections(v.ctx, tenant.ID)
	if err != nil {
		return nil
	}
	return list
}

// passwordsOff reports whether only owners of the tenant in the address can sign in with a password.
func (f frame) passwordsOff() bool {
	tenant, err := f.console.directory.Tenant(f.ctx, f.tenant)
	return err == nil && tenant.Settings.PasswordScope() == rolecall.PasswordsOfOwners
}

func (c *console) signInByConnection(v *pageContext) error {
	id, err := v.chosenConnection()
	if err != nil {
		return err
	}
	return c.leaveToSignIn(v, signin.ConnectionStart{Connection: id}, "/sign-in/connected")
}

// signInByDomain starts a sign-in with the connection that has the domain of the typed address. If no connection
// has the domain, it returns an error of the field for the password.
func (c *console) signInByDomain(v *pageContext, a access.Anonymous) error {
	email := v.form.Get("email")
	found, err := c.signin.FindConnection(v.ctx, a.Tenant.ID, email)
	if err != nil {
		return err
	}
	if found == nil {
		return rolecall.FieldErrors{{Pointer: "/password", Code: "required", Detail: msg("sign-in.enter-password")}}.Err()
	}
	return c.leaveToSignIn(v, signin.ConnectionStart{Connection: found.ID, LoginHint: email}, "/sign-in/connected")
}

func (c *console) acceptByConnection(v *pageContext) error {
	id, err := v.chosenConnection()
	if err != nil {
		return err
	}
	token, ok := secret.ParseToken(v.form.Get("token"))
	if !ok {
		return rolecall.ErrInvitationInvalid
	}
	return c.leaveToSignIn(v, signin.ConnectionStart{Connection: id, Invitation: token}, "/invitation/connected")
}

// chosenConnection returns the id of the connection in the form.
func (v *pageContext) chosenConnection() (rolecall.ConnectionID, error) {
	id, err := rolecall.ParseID[rolecall.Connection](v.form.Get("connection"))
	if err != nil {
		return id, rolecall.ErrNotFound
	}
	return id, nil
}

// leaveToSignIn starts a sign-in. The code of its result works only in this browser, because the verifier
// is in a cookie.
func (c *console) leaveToSignIn(v *pageContext, start signin.ConnectionStart, back string) error {
	verifier := c.site.Verifier(v.request)
	if verifier == "" {
		verifier = secret.NewToken()
	}
	c.site.SetVerifier(v.response, verifier, signin.AttemptLifetime)
	start.Purpose, start.CodeChallenge = signin.PurposeSignIn, signin.CodeChallenge(verifier)
	return c.leave(v, start, back)
}

// leave shows a page that leads to the identity provider. It is not a redirect, because the
// Content-Security-Policy allows forms to lead to the own origin only.
func (c *console) leave(v *pageContext, start signin.ConnectionStart, back string) error {
	a, err := v.anonymous()
	if err != nil {
		return err
	}
	start.ReturnTo = c.site.Address(v.request) + Path + "/" + v.tenant + back
	if tail := v.returnTail(); tail != "" {
		start.ReturnTo += "?" + url.Values{fieldReturn: {tail}}.Encode()
	}
	ticket, err := c.signin.StartConnection(v.ctx, a, start, v.web.Leave)
	if err != nil {
		return err
	}
	address := c.site.Base + "/auths/oidc/begin?ticket=" + url.QueryEscape(ticket)
	v.leadsTo = address
	return c.showEntry(v, msg("sign-in.leaving-title"), func(f frame) templ.Component {
		return leavingPage(msg("sign-in.leaving-title"), msg("sign-in.leaving"), address)
	})
}

// connected signs in with the code with which the browser has returned. Without a code, it explains on the
// sign-in page why the sign-in failed.
func (c *console) connected(v *pageContext) error {
	query := v.request.URL.Query()
	code, ok := secret.ParseToken(query.Get(fieldCode))
	if !ok {
		return v.signInFailed(query.Get(fieldError))
	}
	a, err := v.anonymous()
	if err != nil {
		return err
	}
	in, err := c.signin.ExchangeCode(v.ctx, a, code, string(c.site.Verifier(v.request)))
	if known, ok := errors.AsType[*rolecall.Error](err); ok && known.Kind != rolecall.Unavailable {
		return v.signInFailed(known.Code)
	}
	return c.signedIn(v, in, err)
}

// signInFailed leads to the sign-in page, which explains the code of the failure.
func (v *pageContext) signInFailed(code string) error {
	query := url.Values{"why": {code}}
	if failureWords(code) == "" {
		query.Set("why", signin.CodeRefused)
	}
	if tail := v.returnTail(); tail != "" {
		query.Set(fieldReturn, tail)
	}
	return v.redirect(v.path("/sign-in") + "?" + query.Encode())
}

// failurePrefix and the code of a failed sign-in with an identity provider form the key of a message.
const failurePrefix = "failed-sign-in."

// failureWords explains why a sign-in with an identity provider failed. It returns an empty text for other
// codes.
func failureWords(code string) string {
	if key := failurePrefix + code; hasMessage(key) {
		return msg(key)
	}
	return ""
}
